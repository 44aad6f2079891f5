#!/usr/bin/env bash
# An rsync daemon: a tree of many files and one large one there and back, then again with changes (which it finds by
# checksums of blocks), compressed, and with deletions.
. "$(dirname "$0")/lib.sh"
need rsync rsync

FILES=$(size 100 5000)
make_file "$DIR/big" "$(size 4000000 1000000000)"
mkdir -p "$DIR/tree"/{a,b,c}/{x,y,z}
for ((i = 0; i < FILES; i++)); do
    to=("$DIR/tree"/*/*)
    tail -c "+$((i * 100 + 1))" "$DIR/big" | head -c $((i * 37 % 9000)) >"${to[i % 9]}/file$i"
done
cp "$DIR/big" "$DIR/tree/a/big"
ln -s ../a/big "$DIR/tree/b/link"

start_rsync() {
    PORT=$(free_port)
    mkdir "$DIR/work/module"
    cat >"$DIR/work/rsyncd.conf" <<EOF
use chroot = no
uid = $(id -un)
gid = $(id -gn)
log file = $DIR/work/rsyncd.log
[files]
    path = $DIR/work/module
    read only = no
EOF
    serve "$PORT" rsync --daemon --no-detach --address=127.0.0.1 --port="$PORT" --config="$DIR/work/rsyncd.conf"
}

# Everything about a tree that has to be equal; a file's time counts in whole seconds.
describe() {
    (
        cd "$1" || exit 1
        find . -printf '%y %m %s %l %P %Ts\n' | grep -v '^d' | sort
        find . -type f -print0 | sort -z | xargs -0 sha256sum
    ) >"$DIR/work/described" || return 1
    sha "$DIR/work/described"
}

there_and_back() {
    start_rsync || return 1
    run rsync "$@" "$DIR/tree/" "rsync://127.0.0.1:$PORT/files/" || return 1
    run rsync "$@" "rsync://127.0.0.1:$PORT/files/" "$DIR/work/back" || return 1
    describe "$DIR/tree" || return 1
    describe "$DIR/work/module" || return 1
    describe "$DIR/work/back"
}

# The other side has another version of the large file and files of its own.
changes() {
    start_rsync || return 1
    cp -a "$DIR/tree/." "$DIR/work/module"
    { head -c 1000000 "$DIR/big"; echo inserted; tail -c +1000001 "$DIR/big"; } >"$DIR/work/module/a/big"
    mv "$DIR/work/module/b/x" "$DIR/work/module/moved"
    run rsync -a --checksum --no-whole-file --delete "$@" "$DIR/tree/" "rsync://127.0.0.1:$PORT/files/" || return 1
    describe "$DIR/tree" || return 1
    describe "$DIR/work/module"
}

# Several at once, each into a directory of its own.
parallel() {
    start_rsync || return 1
    local i clients=()
    for i in 1 2 3 4; do
        run rsync -a --exclude big "$DIR/tree/" "rsync://127.0.0.1:$PORT/files/$i/" &
        clients+=($!)
    done
    for i in "${clients[@]}"; do wait "$i" || return 1; done
    for i in 1 2 3 4; do describe "$DIR/work/module/$i" || return 1; done
}

list() {
    start_rsync || return 1
    cp -a "$DIR/tree/." "$DIR/work/module"
    run rsync "rsync://127.0.0.1:$PORT/" || return 1
    run rsync -r "rsync://127.0.0.1:$PORT/files/" >"$DIR/work/list" || return 1
    awk '!/^d/ { $3 = $4 = ""; print }' "$DIR/work/list" | sha
}

check "there and back" fast there_and_back -a
check "changes, compressed" any changes -z
check "four clients at once" any parallel
[ -z "$QUICK" ] || finish
check "there and back, compressed" fast there_and_back -az
check "there and back, a limited rate" any there_and_back -a --bwlimit=100m
check "changes" any changes
check "lists" any list
finish
