#!/usr/bin/env bash
# HAProxy before another server, so that each byte takes two streams: downloads and uploads (HTTP, TCP, and TCP by splice), load
# with keep-alive and without, and reloads under load, by the master process and by -sf, in which no request may fail.
. "$(dirname "$0")/lib.sh"
need haproxy haproxy
need nginx nginx-light
need curl curl
need ab apache2-utils
need_python

start_nginx() {
    BACKEND=$(free_port)
    cat >"$DIR/work/nginx.conf" <<EOF
user $(id -un) $(id -gn);
worker_processes 1;
daemon off;
pid $DIR/work/nginx.pid;
error_log $DIR/work/error.log;
events { worker_connections 512; }
http {
    access_log off;
    client_body_temp_path $DIR/work/body;
    proxy_temp_path $DIR/work/proxy;
    fastcgi_temp_path $DIR/work/fastcgi;
    uwsgi_temp_path $DIR/work/uwsgi;
    scgi_temp_path $DIR/work/scgi;
    keepalive_requests 1000000;
    server { listen 127.0.0.1:$BACKEND; root $DIR/www; }
}
EOF
    serve "$BACKEND" nginx -p "$DIR/work" -e "$DIR/work/error.log" -c "$DIR/work/nginx.conf"
}

start_sink() {
    BACKEND=$(free_port)
    serve "$BACKEND" "$PYTHON" "$HERE/programs/upload.py" serve "$BACKEND"
}

# start_haproxy MODE ARGUMENTS: a mode of HAProxy's (http, tcp), or splice: tcp with splice wherever it can be.
start_haproxy() {
    local mode=$1 option=
    shift
    [ "$mode" != splice ] || { mode=tcp option='option splice-auto'; }
    "$START_BACKEND" || return 1
    PORT=$(free_port)
    cat >"$DIR/work/haproxy.cfg" <<EOF
global
    maxconn 500
    nbthread 2
    hard-stop-after 60s
    stats socket $DIR/work/control mode 600 level admin expose-fd listeners
defaults
    mode $mode
    $option
    timeout connect 10s
    timeout client 60s
    timeout server 60s
    retries 0
frontend front
    bind 127.0.0.1:$PORT
    default_backend back
backend back
    server one 127.0.0.1:$BACKEND
EOF
    HAPROXY=(haproxy -D -f "$DIR/work/haproxy.cfg" -p "$DIR/work/haproxy.pid")
    serve_daemon "$PORT" "$DIR/work/haproxy.pid" "${HAPROXY[@]}" "$@"
}

# A proxy that is told to stop ends when its last stream has: at once, now that its clients are gone. (SIGTERM would kill it.)
stop_haproxy() {
    local pid
    [ -z "$QUICK" ] || return 0 # HAProxy looks for its end once in a second
    pid=$(cat "$DIR/work/haproxy.pid")
    kill -USR1 "$pid" && wait_gone "$pid"
}

download() {
    start_haproxy "$1" || return 1
    run curl -sS -f "http://127.0.0.1:$PORT/big" | sha || return 1
    stop_haproxy
}

# The end of the upload has to pass through both streams while the answer has yet to come.
upload() {
    local START_BACKEND=start_sink
    start_haproxy "$1" || return 1
    run "$PYTHON" "$HERE/programs/upload.py" send "$PORT" "$(size 20000000 200000000)" "$(size 2 4)" || return 1
    stop_haproxy
}

# One curl fetches all files over one connection.
small_files() {
    start_haproxy "$1" || return 1
    run curl -sS -f "http://127.0.0.1:$PORT/small[1-$FILES]" | sha || return 1
    stop_haproxy
}

ab_load() {
    start_haproxy http || return 1
    run ab -q -n "$(size 2000 30000)" -c 8 "$@" "http://127.0.0.1:$PORT/small9" >"$DIR/work/out" || return 1
    grep 'Complete requests\|Failed requests\|Write errors\|Non-2xx\|HTML transferred' "$DIR/work/out"
    stop_haproxy
}

# wrk names socket errors and bad answers only if there are any.
wrk_load() {
    start_haproxy "$1" || return 1
    run wrk -t 2 -c 16 -d "$(size 1 4)s" "http://127.0.0.1:$PORT/small9" >"$DIR/work/out" || return 1
    grep -i 'socket errors\|non-2xx' "$DIR/work/out" # none, usually
    awk '/requests in/ { print ($1 > 0) ? "answered" : "nothing" }' "$DIR/work/out"
    stop_haproxy
}

# The master executes itself anew and starts a worker; the old worker hands over its listening socket, and ends what it has.
by_master() { kill -USR2 "$(cat "$DIR/work/haproxy.pid")"; }

# A new process takes the listening socket from the old one, which ends what it has and goes.
by_new_process() {
    local old
    old=$(cat "$DIR/work/haproxy.pid")
    rm "$DIR/work/haproxy.pid"
    serve_daemon "$PORT" "$DIR/work/haproxy.pid" "${HAPROXY[@]}" -x "$DIR/work/control" -sf "$old"
}

# reload HOW MODE ARGUMENTS: downloads that outlive the process they began with, a client that keeps its connection as long as
# it is kept, and one that opens a connection for each request.
reload() {
    local how=$1 i loads=() failed=0
    shift
    start_haproxy "$@" || return 1
    for i in 1 2; do
        run curl -sS -f --limit-rate "$(size 40M 200M)" "http://127.0.0.1:$PORT/big" -o "$DIR/work/big$i" &
        loads+=($!)
    done
    run curl -sS -f "http://127.0.0.1:$PORT/small[1-$FILES]?[1-$(size 10 100)]" >"$DIR/work/kept" &
    loads+=($!)
    run ab -q -n "$(size 500 20000)" -c 4 "http://127.0.0.1:$PORT/small9" >"$DIR/work/out" &
    loads+=($!)
    for ((i = 0; i < $(size 2 4); i++)); do
        sleep 0.2
        "$how" || { echo "reload $i failed" >&2; failed=1; }
    done
    for i in "${loads[@]}"; do wait "$i" || { echo "a client failed" >&2; failed=1; }; done
    sha "$DIR/work/big1" "$DIR/work/big2" "$DIR/work/kept"
    grep 'Complete requests\|Failed requests\|Non-2xx' "$DIR/work/out"
    run curl -sS -f "http://127.0.0.1:$PORT/small7" | sha
    for i in "${SERVERS[@]:1}"; do
        [ "$i" = "$(cat "$DIR/work/haproxy.pid")" ] || wait_gone "$i" || failed=1
    done
    stop_haproxy && return $failed
}

START_BACKEND=start_nginx
mkdir "$DIR/www"
FILES=$(size 50 500)
make_file "$DIR/www/big" "$(size 33554432 536870912)"
for ((i = 1; i <= FILES; i++)); do head -c $((i * 37)) "$DIR/www/big" >"$DIR/www/small$i"; done

check "download, http" fast download http
check "upload and half-close, splice" fast upload splice
check "ab, keep-alive" fast ab_load -k
check "reload by the master under load, http" fast reload by_master http -W
check "reload by -sf under load, http" fast reload by_new_process http
[ -z "$QUICK" ] || finish

check "download, splice" fast download splice
check "upload and half-close, tcp" fast upload tcp
check "download, tcp" fast download tcp
check "small files, http" fast small_files http
check "small files, tcp" fast small_files tcp
check "ab, a connection each" any ab_load
if command -v wrk >/dev/null; then
    check "wrk, http" fast wrk_load http
    check "wrk, tcp" fast wrk_load tcp
else
    echo "skip $NAME wrk: not installed (package wrk)"
fi
check "reload by the master under load, tcp" fast reload by_master tcp -W
check "reload by -sf under load, splice" fast reload by_new_process splice
finish
