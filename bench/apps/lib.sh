# Common ground of the scripts in this directory; sourced, never run.
#
# Each script takes one real program and runs every case twice: plain, and with both ends under Sidewire. A case is a
# function that starts its servers with `serve`, its clients with `run`, and prints what has to be equal on all sides
# (checksums, counts; never times). `check CASE fast FUNCTION ...` runs it on each side, compares the results, and
# demands that at least one stream went by the faster wire; `check CASE any ...` does not demand that.
#
#   SIDEWIRE   the launcher (default: the one of this build or installation; "none": plain only)
#   QUICK=1    small sizes
#   SIDES      default "plain both"; "client" and "server" put only that end under Sidewire
#   LIMIT      seconds for one command (default 120)
#   KEEP=1     leave the temporary directory
#
# Output: `ok NAME CASE`, `FAIL NAME CASE: why`, `skip NAME: why`; exit 1 if anything failed.

set -u -o pipefail
exec </dev/null
export LC_ALL=C

NAME=$(basename "$0" .sh)
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
DIR=$(mktemp -d "${TMPDIR:-/tmp}/sidewire-app.XXXXXX") || exit 1
chmod 755 "$DIR"
QUICK=${QUICK:-}
SIDES=${SIDES:-plain both}
LIMIT=${LIMIT:-120}
SIDE=plain
STATS=$DIR/stats
AS=()
SERVERS=()
FAILED=0
PATH=$PATH:/usr/sbin:/usr/local/sbin:/sbin

find_launcher() {
    local candidate
    case ${SIDEWIRE:-} in
        none) return ;;
        '') ;;
        *) realpath "$SIDEWIRE" && return ;;
    esac
    for candidate in "$HERE/../../target/release/sidewire" "$HERE/../../../bin/sidewire"; do
        [ -x "$candidate" ] && realpath "$candidate" && return
    done
    command -v sidewire
}
LAUNCHER=$(find_launcher)

# A script may redefine this to undo what it has done outside of $DIR.
at_exit() { :; }
cleanup() {
    stop_servers
    at_exit
    [ -n "${KEEP:-}" ] || rm -rf "$DIR"
}
trap cleanup EXIT
trap 'exit 143' TERM INT

ok() { echo "ok $NAME $*"; }
fail() {
    echo "FAIL $NAME $*"
    FAILED=1
}
finish() { exit "$FAILED"; }

# need PROGRAM PACKAGE: end the script, skipped, if the program is not installed.
need() {
    command -v "$1" >/dev/null && return
    echo "skip $NAME: $1 is not installed (package $2)"
    exit 0
}

# The real interpreter: what is called python3 may be a shell script that looks for it.
need_python() {
    need python3 python3
    PYTHON=$(python3 -c 'import sys; print(sys.executable)')
}

# small A, or full B
size() { if [ -n "$QUICK" ]; then echo "$1"; else echo "$2"; fi; }

# make_file FILE BYTES: random content, the same for all sides of this script.
make_file() { [ -s "$1" ] || head -c "$2" /dev/urandom >"$1"; }

sha() { sha256sum "$@" | cut -d' ' -f1; }

# State 0A is LISTEN; addresses are in hex.
listening() { awk -v port="$(printf ':%04X' "$1")" '$4 == "0A" && substr($2, length($2) - 4) == port { found = 1 }
    END { exit !found }' /proc/net/tcp /proc/net/tcp6 2>/dev/null; }

free_port() {
    local port try
    for try in {1..50}; do
        port=$((20000 + RANDOM % 12000))
        grep -qi "$(printf ':%04X ' "$port")" /proc/net/tcp /proc/net/tcp6 2>/dev/null || break
    done
    echo "$port"
}

wait_listening() {
    local try
    for try in {1..200}; do
        listening "$1" && return
        sleep 0.05
    done
    echo "nobody listens on port $1" >&2
    return 1
}

# The words that put one end (client or server) on this side.
prefix() {
    PREFIX=()
    case $SIDE in
        both | "$1") [ -z "$LAUNCHER" ] || PREFIX=(env SIDEWIRE_STATS_FILE="$STATS" "$LAUNCHER" run --) ;;
    esac
}

# run COMMAND: a client, with a time limit. Everything stays in this script's process group (--foreground), so that
# whoever started the script can end all of it.
run() {
    prefix client
    timeout --foreground -k 5 "$LIMIT" "${AS[@]}" "${PREFIX[@]}" "$@"
}

# serve PORT COMMAND: a server in the foreground of its own job, until the case ends.
serve() {
    local port=$1
    shift
    prefix server
    timeout --foreground -k 5 $((LIMIT * 4)) "${AS[@]}" "${PREFIX[@]}" "$@" >>"$DIR/server.log" 2>&1 &
    SERVERS+=($!)
    wait_listening "$port"
}

# serve_daemon PORT PIDFILE COMMAND: a server that puts itself into the background, until the case ends.
serve_daemon() {
    local port=$1 file=$2 try
    shift 2
    prefix server
    timeout --foreground -k 5 "$LIMIT" "${AS[@]}" "${PREFIX[@]}" "$@" >>"$DIR/server.log" 2>&1 || return 1
    for try in {1..200}; do
        [ -s "$file" ] && break
        sleep 0.05
    done
    SERVERS+=("$(cat "$file")")
    wait_listening "$port"
}

# wait_gone PID: until that process has ended, at most ten seconds.
wait_gone() {
    local try
    for try in {1..200}; do
        kill -0 "$1" 2>/dev/null || return 0
        sleep 0.05
    done
    echo "process $1 does not end" >&2
    return 1
}

# End the servers of this case; timeout passes the signal on to the program.
stop_servers() {
    local pid try
    for pid in "${SERVERS[@]}"; do
        kill -TERM "$pid" 2>/dev/null
    done
    for pid in "${SERVERS[@]}"; do
        for try in {1..160}; do
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.05
        done
        kill -KILL "$pid" 2>/dev/null
        wait "$pid" 2>/dev/null
    done
    SERVERS=()
}

fast_streams() { grep -o '"fast": *[0-9]*' "$STATS" | awk -F: '{ sum += $2 } END { print sum + 0 }'; }
reasons() { grep -o '"reasons": *{[^}]*}' "$STATS" | sort | uniq -c | sort -rn | head -3 | tr -s ' \n' ' '; }

# check CASE fast|any FUNCTION ARGUMENTS...
check() {
    local case=$1 wanted=$2 result reference='' status note=''
    shift 2
    for SIDE in $SIDES; do
        [ "$SIDE" = plain ] || [ -n "$LAUNCHER" ] || { note=" (plain only: no launcher)"; continue; }
        STATS=$DIR/stats.$SIDE
        : >"$STATS"
        chmod 666 "$STATS"
        rm -rf "$DIR/work" "$DIR/server.log"
        mkdir -m 777 "$DIR/work"
        result=$DIR/result.$SIDE
        "$@" >"$result" 2>"$DIR/log"
        status=$?
        stop_servers
        if [ $status -ne 0 ]; then
            fail "$case: $SIDE run ended with $status: $(tail -n 2 "$DIR/log" | tr '\n' ' ')"
            tail -n 5 "$DIR/server.log" 2>/dev/null | sed 's/^/    server: /'
            return
        fi
        if [ ! -s "$result" ]; then
            fail "$case: the $SIDE run gave nothing to compare"
            return
        fi
        if [ -z "$reference" ]; then
            reference=$result
        elif ! cmp -s "$reference" "$result"; then
            fail "$case: $SIDE differs from plain: $(diff "$reference" "$result" | head -n 4 | tr '\n' ' ')"
            return
        fi
        [ "$SIDE" = both ] || continue
        note=", $(fast_streams) fast"
        if [ "$wanted" = fast ] && [ "$(fast_streams)" -eq 0 ]; then
            fail "$case: right, but no stream was fast: $([ -s "$STATS" ] && reasons || echo no statistics)"
            return
        fi
    done
    ok "$case$note"
}
