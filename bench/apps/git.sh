#!/usr/bin/env bash
# git: a clone, a fetch and a push by git://, and a clone by http. Short-lived processes that pass their sockets on.
. "$(dirname "$0")/lib.sh"
need git git
export HOME=$DIR GIT_CONFIG_NOSYSTEM=1 GIT_TERMINAL_PROMPT=0
export GIT_AUTHOR_NAME=bench GIT_AUTHOR_EMAIL=bench@localhost GIT_COMMITTER_NAME=bench GIT_COMMITTER_EMAIL=bench@localhost

make_repository() {
    local i
    git init -q "$DIR/source" && cd "$DIR/source" || return 1
    for ((i = 1; i <= $(size 10 50); i++)); do
        head -c "$(size 100000 2000000)" /dev/urandom >"file$i"
        git add . && git commit -q -m "commit $i" || return 1
    done
    git clone -q --bare "$DIR/source" "$DIR/origin.git" && git -C "$DIR/origin.git" update-server-info
    cd "$DIR" || return 1
}

describe() {
    git -C "$1" fsck --full >/dev/null 2>&1
    echo "fsck $?"
    git -C "$1" rev-parse HEAD
    git -C "$1" ls-tree -r HEAD | sha
}

by_daemon() {
    local port
    port=$(free_port)
    cp -r "$DIR/origin.git" "$DIR/work/origin.git"
    serve "$port" git daemon --export-all --enable=receive-pack --base-path="$DIR/work" --listen=127.0.0.1 --port="$port" ||
        return 1
    run git clone -q "git://127.0.0.1:$port/origin.git" "$DIR/work/clone" || return 1
    describe "$DIR/work/clone"
    cd "$DIR/work/clone" && cp "$DIR/source/file1" pushed && git add pushed || return 1
    GIT_AUTHOR_DATE='2000-01-01T00:00:00Z' GIT_COMMITTER_DATE='2000-01-01T00:00:00Z' git commit -q -m pushed
    run git push -q origin HEAD || return 1
    run git fetch -q origin || return 1
    cd "$DIR" && describe "$DIR/work/origin.git"
}

by_http() {
    local port
    port=$(free_port)
    serve "$port" "$PYTHON" -m http.server --bind 127.0.0.1 --directory "$DIR" "$port" || return 1
    run git clone -q "http://127.0.0.1:$port/origin.git" "$DIR/work/clone" || return 1
    describe "$DIR/work/clone"
}

make_repository 2>"$DIR/make.log" || { fail "repository: $(tail -n 1 "$DIR/make.log")"; finish; }
if [ -x "$(git --exec-path)/git-daemon" ]; then
    check "clone, push and fetch by git://" any by_daemon
else
    echo "skip $NAME git://: git has no daemon here"
fi
need_python
check "clone by http" any by_http
finish
