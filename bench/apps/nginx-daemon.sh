#!/usr/bin/env bash
# nginx as a daemon, with curl and ab: stopping gracefully, a new configuration (SIGHUP) and a new program (SIGUSR2) under
# load. Downloads that are under way end right, and no request fails.
. "$(dirname "$0")/lib.sh"
need nginx nginx-light
need curl curl
need ab apache2-utils

start_nginx() {
    PORT=$(free_port)
    PIDFILE=$DIR/work/nginx.pid
    cat >"$DIR/work/nginx.conf" <<EOF
user $(id -un) $(id -gn);
worker_processes 2;
daemon on;
pid $PIDFILE;
error_log $DIR/work/error.log notice;
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
    # By its full name, with which it starts its successor.
    serve_daemon "$PORT" "$PIDFILE" "$(command -v nginx)" -p "$DIR/work" -e "$DIR/work/error.log" -c "$DIR/work/nginx.conf"
}

# Downloads that take longer than the processes they began with.
start_downloads() {
    local i
    LOADS=()
    for i in 1 2 3; do
        run curl -sS -f --limit-rate "$(size 40M 200M)" "http://127.0.0.1:$PORT/big" -o "$DIR/work/big$i" &
        LOADS+=($!)
    done
}

# Each request has a connection: one that is kept and idle may be closed under its client's next request.
start_requests() {
    run ab -q -n "$(size 1500 50000)" -c 4 "http://127.0.0.1:$PORT/small" >"$DIR/work/out" &
    LOADS+=($!)
}

end_load() {
    local pid failed=0
    for pid in "${LOADS[@]}"; do wait "$pid" || { echo "a client failed" >&2; failed=1; }; done
    sha "$DIR"/work/big[123]
    [ ! -e "$DIR/work/out" ] || grep 'Complete requests\|Failed requests\|Non-2xx' "$DIR/work/out"
    # A worker that crashed would be replaced.
    ! grep 'exited on signal\|\[alert\]\|\[crit\]' "$DIR/work/error.log" >&2 && return $failed
}

master() { cat "$PIDFILE"; }

# The server goes as soon as its last stream has ended.
quit() {
    start_nginx on || return 1
    start_downloads
    sleep 0.3
    kill -QUIT "$(master)" || return 1
    end_load || return 1
    wait_gone "${SERVERS[0]}"
}

reload() {
    local i
    start_nginx "$1" || return 1
    start_downloads
    start_requests
    for ((i = 0; i < $(size 2 6); i++)); do
        sleep 0.25
        kill -HUP "$(master)" || return 1
    done
    end_load || return 1
    run curl -sS -f "http://127.0.0.1:$PORT/small" | sha
    echo "reloads $(grep -c 'reconfiguring$' "$DIR/work/error.log")"
}

# The old master starts a new one, which has the listening socket, and goes when its last stream has ended.
upgrade() {
    local old try
    start_nginx on || return 1
    start_downloads
    start_requests
    old=$(master)
    sleep 0.2
    kill -USR2 "$old" || return 1
    for try in {1..400}; do
        [ -s "$PIDFILE" ] && [ "$(master)" != "$old" ] && break
        sleep 0.05
    done
    [ "$(master)" != "$old" ] || { echo "no new master" >&2; return 1; }
    SERVERS+=("$(master)")
    kill -QUIT "$old" || return 1
    end_load || return 1
    wait_gone "$old" || return 1
    run curl -sS -f "http://127.0.0.1:$PORT/small" | sha
}

mkdir "$DIR/www"
make_file "$DIR/www/big" "$(size 33554432 536870912)"
head -c 1000 "$DIR/www/big" >"$DIR/www/small"

check "reload under load" fast reload on
[ -n "$QUICK" ] || check "reload under load, no sendfile" fast reload off
check "a new program under load" fast upgrade
check "graceful end under load" fast quit
finish
