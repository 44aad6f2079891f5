#!/usr/bin/env bash
# Node: its own HTTP server and client, keep-alive and not, large posts.
. "$(dirname "$0")/lib.sh"
need node nodejs

talk() {
    local port
    port=$(free_port)
    serve "$port" node "$HERE/programs/http_server.js" "$port" || return 1
    run node "$HERE/programs/http_client.js" "$port" "$(size 500 5000)" "$1"
}

check "keep-alive" fast talk keep
check "a connection each" any talk close
finish
