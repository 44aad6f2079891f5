#!/usr/bin/env bash
# iperf3: one stream, four at once, reverse, both directions.
. "$(dirname "$0")/lib.sh"
need iperf3 iperf3

# What must be equal: how many streams reported a transfer at the receiver, none of them empty.
transfer() {
    local port
    port=$(free_port)
    serve "$port" iperf3 -s -1 -B 127.0.0.1 -p "$port" || return 1
    run iperf3 -c 127.0.0.1 -p "$port" "$@" >"$DIR/work/out" || { cat "$DIR/work/out" >&2; return 1; }
    grep ' receiver' "$DIR/work/out" | awk '/ 0.00 Bytes/ { empty++ } { lines++ } END { print lines + 0, empty + 0 }'
}

TIME=(-t "$(size 1 3)")
check "one stream" fast transfer "${TIME[@]}"
check "-P 4" fast transfer "${TIME[@]}" -P 4
check "-R" fast transfer "${TIME[@]}" -R
check "--bidir" fast transfer "${TIME[@]}" --bidir
check "-l 100" fast transfer "${TIME[@]}" -l 100
check "-Z (sendfile)" any transfer "${TIME[@]}" -Z
check "-n 256M" fast transfer -n 256M
finish
