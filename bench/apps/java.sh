#!/usr/bin/env bash
# Java: an echo with blocking sockets and one with NIO selectors, in every mixture.
. "$(dirname "$0")/lib.sh"
need javac default-jdk-headless
need java default-jdk-headless
javac -d "$DIR/classes" "$HERE/programs/Echo.java" >"$DIR/javac.log" 2>&1 ||
    { fail "javac: $(head -n 1 "$DIR/javac.log")"; finish; }

echo_with() {
    local port
    port=$(free_port)
    serve "$port" java -cp "$DIR/classes" Echo "$1-server" "$port" || return 1
    run java -cp "$DIR/classes" Echo "$2-client" "$port" "$(size 300 5000)"
}

for server in blocking nio; do
    for client in blocking nio; do
        check "$server server, $client client" fast echo_with "$server" "$client"
    done
done
finish
