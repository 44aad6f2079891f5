#!/usr/bin/env bash
# nginx with curl (a large download, many small files, keep-alive and not) and wrk.
. "$(dirname "$0")/lib.sh"
need nginx nginx-light
need curl curl

start_nginx() {
    PORT=$(free_port)
    cat >"$DIR/work/nginx.conf" <<EOF
user $(id -un) $(id -gn);
worker_processes 2;
daemon off;
pid $DIR/work/nginx.pid;
error_log $DIR/work/error.log;
events { worker_connections 512; }
http {
    access_log off;
    sendfile $1;
    client_body_temp_path $DIR/work/body;
    proxy_temp_path $DIR/work/proxy;
    fastcgi_temp_path $DIR/work/fastcgi;
    uwsgi_temp_path $DIR/work/uwsgi;
    scgi_temp_path $DIR/work/scgi;
    keepalive_requests 1000000;
    server { listen 127.0.0.1:$PORT; root $DIR/www; }
}
EOF
    serve "$PORT" nginx -p "$DIR/work" -e "$DIR/work/error.log" -c "$DIR/work/nginx.conf"
}

download() {
    start_nginx "$1" || return 1
    run curl -sS -f "http://127.0.0.1:$PORT/big" | sha
}

# One curl fetches all files over one connection.
keep_alive() {
    start_nginx on || return 1
    run curl -sS -f "http://127.0.0.1:$PORT/small[1-$FILES]" | sha
}

# A connection for each file.
close_each() {
    start_nginx on || return 1
    run curl -sS -f -H 'Connection: close' "http://127.0.0.1:$PORT/small[1-$FILES]" | sha
}

# wrk names socket errors and bad answers only if there are any.
load() {
    start_nginx on || return 1
    run wrk -t 2 -c 16 -d "$(size 1 4)s" "$@" "http://127.0.0.1:$PORT/small1" >"$DIR/work/out" || return 1
    grep -i 'socket errors\|non-2xx' "$DIR/work/out" # none, usually
    awk '/requests in/ { print ($1 > 0) ? "answered" : "nothing" }' "$DIR/work/out"
}

mkdir "$DIR/www"
FILES=$(size 50 500)
make_file "$DIR/www/big" "$(size 67108864 1073741824)"
for ((i = 1; i <= FILES; i++)); do head -c $((i * 37)) "$DIR/www/big" >"$DIR/www/small$i"; done

check "download, sendfile" fast download on
check "download, no sendfile" fast download off
check "small files, keep-alive" fast keep_alive
check "small files, a connection each" any close_each
if command -v wrk >/dev/null; then
    check "wrk, keep-alive" fast load
    check "wrk, a connection each" any load -H 'Connection: close'
else
    echo "skip $NAME wrk: not installed (package wrk)"
fi
finish
