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

# Each background save is a fork of the server, whose child has all of its streams until it ends; meanwhile the parent
# goes on answering. The last one, loaded by a second server, must hold what was put in.
save() {
    start_redis || return 1
    local cli=(redis-cli -h 127.0.0.1 -p "$PORT") load try saves=0
    run "${cli[@]}" --pipe <"$DIR/commands" >"$DIR/work/out" || return 1
    run redis-benchmark -h 127.0.0.1 -p "$PORT" --csv -c 8 -n "$REQUESTS" -r 1000 -d 100 -t set,get,incr,lpush,lpop \
        >"$DIR/work/csv" &
    load=$!
    for try in $(seq "$(size 10 100)"); do
        run "${cli[@]}" BGSAVE >"$DIR/work/out" 2>&1
        grep -q 'saving started' "$DIR/work/out" && saves=$((saves + 1))
        sleep 0.1
    done
    wait "$load" || return 1
    cut -d, -f1 "$DIR/work/csv"
    [ "$saves" -gt 0 ] && echo "saved under load"
    run "${cli[@]}" INFO persistence | grep 'rdb_last_bgsave_status'
    seq -f 'GET key%.0f' "$KEYS" | run "${cli[@]}" | sha || return 1
    for try in {1..100}; do
        run "${cli[@]}" BGSAVE >"$DIR/work/out" 2>&1
        grep -q 'saving started' "$DIR/work/out" && break
        sleep 0.1
    done
    for try in {1..100}; do
        run "${cli[@]}" INFO persistence | grep -q 'rdb_bgsave_in_progress:0' && break
        sleep 0.1
    done
    stop_servers
    start_redis || return 1
    seq -f 'GET key%.0f' "$KEYS" | run redis-cli -h 127.0.0.1 -p "$PORT" | sha
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
check "background saves under load" fast save
finish
