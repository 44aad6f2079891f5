#!/usr/bin/env bash
# Python: http.server with a large download and many small ones, and an asyncio echo over several streams.
. "$(dirname "$0")/lib.sh"
need_python

download() {
    local port
    port=$(free_port)
    serve "$port" "$PYTHON" -m http.server --bind 127.0.0.1 --directory "$DIR/www" "$port" || return 1
    run "$PYTHON" -c 'import hashlib, sys, urllib.request
digest = hashlib.sha256()
with urllib.request.urlopen(sys.argv[1]) as answer:
    while data := answer.read(100000):
        digest.update(data)
print(digest.hexdigest())' "http://127.0.0.1:$port/big"
}

asyncio_echo() {
    local port
    port=$(free_port)
    serve "$port" "$PYTHON" "$HERE/programs/echo.py" server "$port" || return 1
    run "$PYTHON" "$HERE/programs/echo.py" client "$port" "$@"
}

mkdir "$DIR/www"
make_file "$DIR/www/big" "$(size 67108864 1073741824)"
check "http.server download" fast download
check "asyncio, one stream" fast asyncio_echo 1 "$(size 100 1000)"
check "asyncio, 20 streams" fast asyncio_echo 20 "$(size 20 200)"
finish
