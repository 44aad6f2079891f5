#!/usr/bin/env bash
# Servers that start a program for each connection, which becomes its standard input and output: socat and inetd. And
# socket activation, where a program is started with a listener that another one has made.
. "$(dirname "$0")/lib.sh"
need_python
need socat socat

STREAMS=$(size 4 8)
MESSAGES=$(size 60 2000)
CONNECTIONS=$(size 2 50)
make_file "$DIR/big" "$(size 8000000 1000000000)"
head -c 100000 "$DIR/big" >"$DIR/small"
cat >"$DIR/lines" <<'EOF'
#!/bin/sh
# The shell reads byte by byte and leaves to its children what it has not read.
read -r count
i=0
while [ "$i" -lt "$count" ]; do
    read -r word
    echo "$i $word"
    i=$((i + 1))
done
head -c 5
exec cat
EOF
chmod 755 "$DIR/lines"
{
    echo 40
    for ((i = 0; i < 40; i++)); do echo "word$((i * i))"; done
    cat "$DIR/small"
} >"$DIR/talk"

# A service at the other end of one socket pair, with socat copying to and from it.
start_socat() {
    PORT=$(free_port)
    serve "$PORT" socat "TCP-LISTEN:$PORT,bind=127.0.0.1,reuseaddr,fork,backlog=100" "EXEC:$1"
}

# The connection itself becomes the service's standard input and output.
start_socat_nofork() { start_socat "$1,nofork"; }

# inetd hands on its environment (-E), or launders it: then the service is a program without Sidewire.
inetd_with() {
    PORT=$(free_port)
    echo "127.0.0.1:$PORT stream tcp nowait.0 $(id -un) $(command -v "${2%% *}") $2" >"$DIR/work/inetd.conf"
    serve "$PORT" "$(command -v inetd)" "$1" -R 0 "$DIR/work/inetd.conf"
}
start_inetd() { inetd_with -iE "$1"; }
start_laundering_inetd() { inetd_with -i "$1"; }

# systemd-socket-activate gives its service only what it is told to.
PASSED=()
for name in LD_PRELOAD "${!SIDEWIRE_@}" SIDEWIRE_STATS_FILE; do PASSED+=(-E "$name"); done
start_accept() {
    PORT=$(free_port)
    serve "$PORT" systemd-socket-activate "${PASSED[@]}" --accept --inetd -l "127.0.0.1:$PORT" "$(command -v "$1")"
}
start_activate() {
    PORT=$(free_port)
    serve "$PORT" systemd-socket-activate "${PASSED[@]}" -l "127.0.0.1:$PORT" \
        "$PYTHON" "$HERE/programs/activated.py" serve
}
start_launcher() {
    PORT=$(free_port)
    serve "$PORT" "$PYTHON" "$HERE/programs/activated.py" launch "$PORT" \
        "$PYTHON" "$HERE/programs/activated.py" serve
}

exchange() {
    "$@" || return 1
    run "$PYTHON" "$HERE/programs/exchange.py" "$PORT" "$STREAMS" "$MESSAGES"
}

# socat's client half-closes at the end of its input and waits (-t) for the rest of the answer.
send() { run socat -t "$LIMIT" - "TCP:127.0.0.1:$PORT" <"$1"; }

# Nothing comes back before everything is there: the answer goes over a half-closed connection.
digest() {
    "$@" sha256sum || return 1
    local i
    send "$DIR/big" || return 1
    for ((i = 0; i < CONNECTIONS; i++)); do send "$DIR/small" || return 1; done
}

back() {
    "$@" cat || return 1
    send "$DIR/big" | sha
}

script() {
    "$@" "$DIR/lines" || return 1
    local i
    for ((i = 0; i < CONNECTIONS; i++)); do send "$DIR/talk" | sha || return 1; done
}

services() {
    local name=$1 start=$2
    check "$name, cat, messages" fast exchange "$start" cat
    # sha256sum reads by stdio, which keeps a stream on TCP.
    check "$name, sha256sum" any digest "$start"
    [ -z "$QUICK" ] || return 0
    check "$name, cat, a file" fast back "$start"
    check "$name, a shell script" any script "$start"
}

services "socat" start_socat
[ -z "$QUICK" ] || check "socat, nofork, a shell script" any script start_socat_nofork
services "socat, nofork" start_socat_nofork
if command -v inetd >/dev/null; then
    services "inetd" start_inetd
    check "inetd without its environment, cat" any exchange start_laundering_inetd cat
else
    echo "skip $NAME inetd: not installed (package openbsd-inetd)"
fi
check "a listener by LISTEN_FDS" fast exchange start_launcher
if command -v systemd-socket-activate >/dev/null; then
    check "systemd-socket-activate" fast exchange start_activate
    check "systemd-socket-activate --accept" fast exchange start_accept cat
else
    echo "skip $NAME systemd-socket-activate: not installed (package systemd)"
fi
finish
