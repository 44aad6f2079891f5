#!/usr/bin/env bash
# Apache httpd, as processes (mpm_prefork) and as threads (mpm_event), with curl, ab and wrk: a large download, many small
# files, keep-alive and not, load without a failed request, and a graceful restart under load.
. "$(dirname "$0")/lib.sh"
need apache2 apache2-bin
need curl curl
need ab apache2-utils
MODULES=/usr/lib/apache2/modules
[ -f $MODULES/mod_mpm_event.so ] || { echo "skip $NAME: there are no modules in $MODULES"; exit 0; }

# Apache's children must not be root, and only streams between processes of one user are fast.
if [ "$(id -u)" -eq 0 ]; then
    id www-data >/dev/null 2>&1 || { echo "skip $NAME: there is no user www-data"; exit 0; }
    UNPRIVILEGED=(setpriv --reuid=www-data --regid=www-data --clear-groups env HOME="$DIR")
    AS=("${UNPRIVILEGED[@]}")
fi

# start_apache MPM LINES: with more lines of configuration, if any.
start_apache() {
    PORT=$(free_port)
    {
        cat <<EOF
ServerRoot $DIR/work
DefaultRuntimeDir $DIR/work
PidFile $DIR/work/apache.pid
ErrorLog $DIR/work/error.log
ServerName localhost
Listen 127.0.0.1:$PORT
LoadModule mpm_$1_module $MODULES/mod_mpm_$1.so
LoadModule authz_core_module $MODULES/mod_authz_core.so
DocumentRoot $DIR/www
EnableMMAP On
MaxKeepAliveRequests 0
MaxRequestWorkers 120
EOF
        # As many as the load has connections: Apache takes seconds to start more of them. And more threads than that in a
        # child: one whose threads are all busy closes kept connections, which ab counts as failed requests.
        [ "$1" = prefork ] && printf 'StartServers 16\nMinSpareServers 2\nMaxSpareServers 16\n'
        [ "$1" = event ] && printf 'StartServers 2\nThreadsPerChild 60\nMinSpareThreads 60\nMaxSpareThreads 120\n'
        shift
        [ $# -eq 0 ] || printf '%s\n' "$@"
    } >"$DIR/work/apache.conf"
    serve "$PORT" apache2 -f "$DIR/work/apache.conf" -DFOREGROUND
}

# A child that crashed would be replaced, and its client might try again.
no_crash() {
    ! grep -i 'exit signal\|AH00052\|child .* still did not exit' "$DIR/work/error.log" >&2
}

download() {
    start_apache "$1" "EnableSendfile $2" || return 1
    run curl -sS -f "http://127.0.0.1:$PORT/big" | sha || return 1
    no_crash
}

# One curl fetches all files over one connection.
keep_alive() {
    start_apache "$1" || return 1
    run curl -sS -f "http://127.0.0.1:$PORT/small[1-$FILES]" | sha || return 1
    no_crash
}

# A connection for each file.
close_each() {
    start_apache "$1" 'KeepAlive Off' || return 1
    run curl -sS -f "http://127.0.0.1:$PORT/small[1-$FILES]" | sha || return 1
    no_crash
}

# The server must survive clients that go away in the middle of an answer.
hang_up() {
    local i
    start_apache "$1" || return 1
    for ((i = 0; i < $(size 1 5); i++)); do
        run curl -sS -f "http://127.0.0.1:$PORT/big" 2>/dev/null | head -c 16000000 | sha
    done
    run curl -sS -f "http://127.0.0.1:$PORT/small7" | sha || return 1
    no_crash
}

ab_load() {
    start_apache "$1" || return 1
    shift
    run ab -q -n "$(size 3000 50000)" -c 16 "$@" "http://127.0.0.1:$PORT/small9" >"$DIR/work/out" || return 1
    grep 'Complete requests\|Failed requests\|Write errors\|Non-2xx\|HTML transferred' "$DIR/work/out" || return 1
    no_crash
}

# wrk names socket errors and bad answers only if there are any.
wrk_load() {
    start_apache "$1" || return 1
    shift
    run wrk -t 2 -c 16 -d "$(size 1 4)s" "$@" "http://127.0.0.1:$PORT/small9" >"$DIR/work/out" || return 1
    grep -i 'socket errors\|non-2xx' "$DIR/work/out" # none, usually
    awk '/requests in/ { print ($1 > 0) ? "answered" : "nothing" }' "$DIR/work/out"
    no_crash
}

# Children give up their listening socket, finish what they have, and go; new ones take over. A kept connection that is
# idle may be closed under its client's next request, so the load opens one for each.
graceful() {
    local i loads=() failed=0
    start_apache "$1" || return 1
    for i in 1 2; do
        run curl -sS -f --limit-rate "$(size 60M 200M)" "http://127.0.0.1:$PORT/big" -o "$DIR/work/big$i" &
        loads+=($!)
    done
    run ab -q -n "$(size 1000 30000)" -c 4 "http://127.0.0.1:$PORT/small9" >"$DIR/work/out" &
    loads+=($!)
    for i in 1 2 3; do
        sleep 0.15
        kill -USR1 "$(cat "$DIR/work/apache.pid")" || failed=1
    done
    for i in "${loads[@]}"; do wait "$i" || failed=1; done
    sha "$DIR/work/big1" "$DIR/work/big2"
    grep 'Complete requests\|Failed requests\|Non-2xx' "$DIR/work/out"
    grep -q 'Graceful restart requested' "$DIR/work/error.log" && echo restarted
    no_crash && return $failed
}

# As root the server's children change their user after they were forked: right, and never faster than TCP.
other_user() {
    AS=()
    start_apache event 'User www-data' 'Group www-data' || { AS=("${UNPRIVILEGED[@]}"); return 1; }
    run curl -sS -f "http://127.0.0.1:$PORT/small[1-$FILES]" | sha
    run curl -sS -f "http://127.0.0.1:$PORT/big" | sha
    AS=("${UNPRIVILEGED[@]}")
    no_crash
}

mkdir "$DIR/www"
FILES=$(size 50 500)
make_file "$DIR/www/big" "$(size 33554432 536870912)"
for ((i = 1; i <= FILES; i++)); do head -c $((i * 37)) "$DIR/www/big" >"$DIR/www/small$i"; done

for mpm in prefork event; do
    check "$mpm, download, sendfile" fast download $mpm On
    check "$mpm, small files, keep-alive" fast keep_alive $mpm
    check "$mpm, ab, keep-alive" fast ab_load $mpm -k
    [ -n "$QUICK" ] && [ $mpm = prefork ] && continue
    check "$mpm, download, no sendfile" fast download $mpm Off
    check "$mpm, small files, a connection each" any close_each $mpm
    check "$mpm, the client hangs up" fast hang_up $mpm
    check "$mpm, ab, a connection each" any ab_load $mpm
    check "$mpm, graceful restart under load" fast graceful $mpm
    [ -z "$QUICK" ] || continue
    if command -v wrk >/dev/null; then
        check "$mpm, wrk, keep-alive" fast wrk_load $mpm
    else
        echo "skip $NAME wrk: not installed (package wrk)"
    fi
done
[ "$(id -u)" -ne 0 ] || check "another user's clients" any other_user
finish
