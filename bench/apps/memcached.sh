#!/usr/bin/env bash
# memcached: values in and out, a pipeline, a counter.
. "$(dirname "$0")/lib.sh"
need memcached memcached
need_python

talk() {
    local port
    port=$(free_port)
    serve "$port" memcached -l 127.0.0.1 -p "$port" -U 0 -t 2 -u "$(id -un)" || return 1
    run "$PYTHON" "$HERE/programs/memcached_client.py" "$port" "$(size 2000 20000)"
}

check "set, get, pipeline, incr, delete" fast talk
finish
