#!/usr/bin/env bash
# sockperf: ping-pong and throughput over TCP.
. "$(dirname "$0")/lib.sh"
need sockperf sockperf

# sockperf numbers its messages: none may be dropped, doubled or out of order.
measure() {
    local port
    port=$(free_port)
    serve "$port" sockperf server --tcp -i 127.0.0.1 -p "$port" || return 1
    run sockperf "$@" --tcp -i 127.0.0.1 -p "$port" -t "$(size 1 5)" >"$DIR/work/out" 2>&1 ||
        { tail -n 3 "$DIR/work/out" >&2; return 1; }
    grep -o '# dropped messages = [0-9]*; # duplicated messages = [0-9]*; # out-of-order messages = [0-9]*' "$DIR/work/out"
    grep -q 'Test ended\|Summary:' "$DIR/work/out" && echo ended
}

# Without a bound it gives up (_seqN > m_maxSequenceNo) where more come back in a second than it has planned for.
check "ping-pong -m 14" fast measure ping-pong -m 14 --mps=200000
check "ping-pong -m 4096" fast measure ping-pong -m 4096 --mps=200000
check "throughput -m 64" fast measure throughput -m 64
check "throughput -m 1472" fast measure throughput -m 1472
finish
