#!/usr/bin/env bash
# Short-lived clients that never get hot, as package managers start them: many processes, a small file each.
. "$(dirname "$0")/lib.sh"
need curl curl
need_python

fetch_all() {
    local port i
    port=$(free_port)
    serve "$port" "$PYTHON" -m http.server --bind 127.0.0.1 --directory "$DIR/www" "$port" || return 1
    for ((i = 1; i <= FILES; i++)); do
        run curl -sS -f "http://127.0.0.1:$port/$i" || return 1
    done | sha || return 1
    # What is not there must fail in the same way.
    run curl -sS -f "http://127.0.0.1:$port/missing" 2>/dev/null
    echo "missing: $?"
    run curl -sS "http://127.0.0.1:$(free_port)/" 2>/dev/null
    echo "nobody there: $?"
}

mkdir "$DIR/www"
FILES=$(size 20 200)
for ((i = 1; i <= FILES; i++)); do head -c $((i * 11)) /dev/urandom >"$DIR/www/$i"; done
check "a process for each file" any fetch_all
finish
