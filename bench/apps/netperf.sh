#!/usr/bin/env bash
# netperf: streams in both directions, sendfile, request/response, a connection for each transaction, omni.
. "$(dirname "$0")/lib.sh"
need netperf netperf
need netserver netperf

SECONDS_EACH=$(size 1 3)
make_file "$DIR/fill" 33554432

# netperf measures and does not check; what must be equal is that the test ends well and moved something.
test_of() {
    local port kind=$1
    shift
    port=$(free_port)
    serve "$port" netserver -D -N -L 127.0.0.1 -p "$port" || return 1
    # The sendfile test is netperf's old code, which knows no output selectors: size, size, size, time, rate.
    if [ "$kind" = TCP_SENDFILE ]; then
        run netperf -H 127.0.0.1 -p "$port" -P 0 -l "$SECONDS_EACH" -F "$DIR/fill" -t "$kind" -- "$@" |
            awk 'NF == 5 { moved = $5 > 0 } END { print moved ? "moved" : "nothing"; exit !moved }'
        return
    fi
    run netperf -H 127.0.0.1 -p "$port" -P 0 -l "$SECONDS_EACH" -t "$kind" -- "$@" \
        -k THROUGHPUT,THROUGHPUT_UNITS >"$DIR/work/out" || return 1
    awk -F= '$1 == "THROUGHPUT" { moved = $2 > 0 } $1 == "THROUGHPUT_UNITS" { unit = $2 }
        END { print moved ? "moved" : "nothing", unit; exit !moved }' "$DIR/work/out"
}

for bytes in 1 64 1024 16384 65536 1048576; do
    check "TCP_STREAM -m $bytes" fast test_of TCP_STREAM -m "$bytes"
done
check "TCP_STREAM -m 4096 -M 100" fast test_of TCP_STREAM -m 4096 -M 100
check "TCP_STREAM -s 8192 -S 8192" fast test_of TCP_STREAM -m 4096 -s 8192 -S 8192
check "TCP_STREAM -s 1048576 -S 1048576" fast test_of TCP_STREAM -m 65536 -s 1048576 -S 1048576
check "TCP_MAERTS -m 1024" fast test_of TCP_MAERTS -m ,1024
check "TCP_MAERTS" fast test_of TCP_MAERTS
check "TCP_SENDFILE" fast test_of TCP_SENDFILE -m 65536
for sizes in 1,1 64,8192 8192,64 65536,65536; do
    check "TCP_RR -r $sizes" fast test_of TCP_RR -r "$sizes"
done
check "TCP_RR -r 1,1 -D" fast test_of TCP_RR -r 1,1 -D
check "TCP_CRR -r 1,1" any test_of TCP_CRR -r 1,1
check "omni -d stream" fast test_of omni -d stream -m 8192
check "omni -d maerts" fast test_of omni -d maerts
check "omni -d rr" fast test_of omni -d rr -r 100,100
finish
