#!/usr/bin/env bash
# NetPIPE: the whole sweep of sizes, and the mode that checks every byte.
. "$(dirname "$0")/lib.sh"
need NPtcp netpipe-tcp
LIMIT=$(size 60 280)

# Both ends need the same options. What must be equal is the list of sizes that were measured.
sweep() {
    local port
    port=$(free_port)
    serve "$port" NPtcp -P "$port" "$@" || return 1
    (cd "$DIR/work" && run NPtcp -h 127.0.0.1 -P "$port" -o np.out "$@" >out 2>&1) || { cat "$DIR/work/out" >&2; return 1; }
    awk '{ print $1 }' "$DIR/work/np.out"
}

# The transmitter's table has one "Integrity check passed" for each size; both ends compare what they get.
integrity() {
    local port
    port=$(free_port)
    serve "$port" NPtcp -P "$port" -i "$@" || return 1
    (cd "$DIR/work" && run NPtcp -h 127.0.0.1 -P "$port" -o np.out -i "$@" >out 2>&1) || { cat "$DIR/work/out" >&2; return 1; }
    ! grep -i "error\|fail" "$DIR/work/out" "$DIR/server.log" >&2 || return 1
    grep -ci "integrity check passed" "$DIR/work/out"
}

if [ -n "$QUICK" ]; then
    check "sweep to 128 KiB" fast sweep -n 300 -u 131072
else
    check "sweep to 8 MiB" fast sweep -u 8388608
fi
check "integrity" fast integrity -n 50 -u "$(size 65536 1048576)"
finish
