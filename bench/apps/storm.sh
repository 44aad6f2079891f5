#!/usr/bin/env bash
# Processes of many threads, some of which start programs all the time while the others keep TCP streams busy: each
# start takes streams from the faster wire for a moment, or leaves a child that shares them.
. "$(dirname "$0")/lib.sh"
need_python

# storm SERVER'S-STARTERS CLIENT'S-STARTERS
storm() {
    local port
    port=$(free_port)
    serve "$port" "$PYTHON" "$HERE/programs/storm.py" server "$port" "$1" || return 1
    run "$PYTHON" "$HERE/programs/storm.py" client "$port" 6 "$MESSAGES" "$2" || return 1
    cat "$DIR/server.log" # nothing
}

# Streams that children of the server read and write, too, and that it goes on using afterwards.
handoff() {
    local port
    port=$(free_port)
    serve "$port" "$PYTHON" "$HERE/programs/handoff.py" server "$port" || return 1
    run "$PYTHON" "$HERE/programs/handoff.py" client "$port" "$1" $((MESSAGES * 3)) || return 1
    cat "$DIR/server.log" # nothing
}

MESSAGES=$(size 200 5000)
check "the client starts programs" fast storm 0 2
check "the server starts programs" fast storm 2 0
check "both start programs" any storm 2 2
check "children use the stream" fast handoff 1
check "children use four streams at once" fast handoff 4
finish
