#!/usr/bin/env bash
# gunicorn, whose workers inherit one listener: with several processes and with threads in them, connections kept and
# not, and a reload of all workers under load.
. "$(dirname "$0")/lib.sh"
need_python
need gunicorn gunicorn
need curl curl

export PYTHONDONTWRITEBYTECODE=1
CLIENTS=4
REQUESTS=$(size 60 3000)

start_gunicorn() {
    PORT=$(free_port)
    serve "$PORT" gunicorn --bind "127.0.0.1:$PORT" --pid "$DIR/work/pid" --chdir "$HERE/programs" \
        --worker-tmp-dir "$DIR/work" --keep-alive 30 --graceful-timeout 20 "$@" app:application
}

requests() {
    local mode=$1
    shift
    start_gunicorn "$@" || return 1
    run "$PYTHON" "$HERE/programs/app_client.py" "$PORT" "$CLIENTS" "$REQUESTS" "$mode"
}

# The process that answers now.
answering() { run curl -sS -f "http://127.0.0.1:$PORT/PID"; }

# HUP replaces the workers one by one. A kept connection may end between two requests, but no request may be lost.
reload() {
    local mode=$1 client master old new try
    shift
    start_gunicorn "$@" || return 1
    old=$(answering) || return 1
    # Read once: gunicorn removes the file for a moment when it reloads.
    master=$(cat "$DIR/work/pid")
    run "$PYTHON" "$HERE/programs/app_client.py" "$PORT" "$CLIENTS" "$((REQUESTS * 3))" "$mode" &
    client=$!
    for try in $(seq "$(size 3 20)"); do
        sleep 0.4
        kill -0 "$client" 2>/dev/null || break
        kill -HUP "$master" || return 1
    done
    wait "$client" || return 1
    for try in {1..100}; do
        new=$(answering) || return 1
        [ "$new" = "$old" ] || { echo "reloaded"; return; }
        sleep 0.1
    done
    echo "the old worker still answers"
}

check "threads, keep-alive" fast requests keep --workers 2 --threads 4
check "reload under load, a connection each" any reload close --workers 2
check "reload under load, threads, keep-alive" fast reload retry --workers 2 --threads 4
[ -z "$QUICK" ] || finish
check "a connection each" any requests close --workers 3
check "threads, a connection each" any requests close --workers 2 --threads 4
finish
