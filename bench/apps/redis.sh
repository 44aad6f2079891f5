#!/usr/bin/env bash
# Redis: all of redis-benchmark's tests, with one client, with 50, pipelined; and the data itself.
. "$(dirname "$0")/lib.sh"
need redis-server redis-server
need redis-cli redis-tools
need redis-benchmark redis-tools

start_redis() {
    PORT=$(free_port)
    serve "$PORT" redis-server --bind 127.0.0.1 --port "$PORT" --dir "$DIR/work" --save '' --appendonly no
}

# What must be equal is the list of tests that ran to their end.
benchmark() {
    start_redis || return 1
    run redis-benchmark -h 127.0.0.1 -p "$PORT" --csv "$@" >"$DIR/work/out" || return 1
    cut -d, -f1 "$DIR/work/out"
}

# Keys go in through a pipeline and come out again one by one; a large value both ways.
data() {
    start_redis || return 1
    local cli=(redis-cli -h 127.0.0.1 -p "$PORT")
    run "${cli[@]}" --pipe <"$DIR/commands" || return 1
    run "${cli[@]}" --no-raw DBSIZE || return 1
    run "${cli[@]}" -x SET big <"$DIR/big" || return 1
    run "${cli[@]}" GET big | sha || return 1
    seq -f 'GET key%.0f' "$KEYS" | run "${cli[@]}" | sha
}

KEYS=$(size 5000 50000)
make_file "$DIR/big" "$(size 4000000 100000000)"
for ((i = 1; i <= KEYS; i++)); do echo "SET key$i value-of-$i-$RANDOM"; done >"$DIR/commands"

REQUESTS=$(size 2000 50000)
check "benchmark -c 1" fast benchmark -c 1 -n "$REQUESTS"
check "benchmark -c 50" fast benchmark -c 50 -n "$REQUESTS"
check "benchmark -c 50 -P 16" fast benchmark -c 50 -P 16 -n "$REQUESTS"
check "benchmark -d 20000" fast benchmark -c 4 -d 20000 -n "$REQUESTS" -t set,get
check "benchmark -k 0" any benchmark -k 0 -c 4 -n "$(size 500 5000)" -t ping
check "data" fast data
finish
