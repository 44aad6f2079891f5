#!/usr/bin/env bash
# OpenSSH to an sshd of our own: own port, own keys, own configuration. A large copy each way, by ssh and by scp, and
# through a tunnel, where ssh and sshd are each the end of two streams.
. "$(dirname "$0")/lib.sh"
need sshd openssh-server
need ssh openssh-client
need ssh-keygen openssh-client

# sshd insists on this directory when it runs as root.
MADE=
if [ "$(id -u)" -eq 0 ] && [ ! -d /run/sshd ]; then
    mkdir -m 755 /run/sshd && MADE=1
fi
at_exit() { [ -z "$MADE" ] || rmdir /run/sshd; }

ssh-keygen -q -t ed25519 -N '' -f "$DIR/host_key"
ssh-keygen -q -t ed25519 -N '' -f "$DIR/user_key"
make_file "$DIR/big" "$(size 67108864 1073741824)"

start_sshd() {
    PORT=$(free_port)
    cat >"$DIR/work/sshd_config" <<EOF
Port $PORT
ListenAddress 127.0.0.1
HostKey $DIR/host_key
AuthorizedKeysFile $DIR/user_key.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
PasswordAuthentication no
UseDNS no
Subsystem sftp internal-sftp
EOF
    cat >"$DIR/work/ssh_config" <<EOF
Host bench
    HostName 127.0.0.1
    Port $PORT
    User $(id -un)
    IdentityFile $DIR/user_key
    IdentitiesOnly yes
    StrictHostKeyChecking no
    UserKnownHostsFile $DIR/work/known_hosts
    LogLevel ERROR
EOF
    serve "$PORT" "$(command -v sshd)" -D -e -f "$DIR/work/sshd_config"
}

commands() {
    start_sshd || return 1
    local i
    for i in 1 2 3 4 5; do
        run ssh -F "$DIR/work/ssh_config" bench "echo hello $i; exit $i"
        echo "exit $?"
    done
}

by_ssh() {
    start_sshd || return 1
    run ssh -F "$DIR/work/ssh_config" bench "cat '$DIR/big'" | sha || return 1
    run ssh -F "$DIR/work/ssh_config" bench "cat >'$DIR/work/copy'" <"$DIR/big" || return 1
    sha "$DIR/work/copy"
}

by_scp() {
    start_sshd || return 1
    run scp -q -F "$DIR/work/ssh_config" "bench:$DIR/big" "$DIR/work/down" || return 1
    run scp -q -F "$DIR/work/ssh_config" "$DIR/big" "bench:$DIR/work/up" || return 1
    sha "$DIR/work/down" "$DIR/work/up"
}

# tunnel -L (the listener is ssh's) or -R (it is sshd's). What is behind it sends a file: a stream of curl
# to the one, one between ssh and sshd, one of the other to the server.
tunnel() {
    local to from client status=0
    to=$(free_port)
    serve "$to" "$PYTHON" -m http.server --bind 127.0.0.1 --directory "$DIR/www" "$to" || return 1
    start_sshd || return 1
    from=$(free_port)
    touch "$DIR/work/in-use"
    # A command that ends, and not -N and a signal: ssh and sshd have something to tell at their ends.
    run ssh -o ExitOnForwardFailure=yes "$1" "127.0.0.1:$from:127.0.0.1:$to" -F "$DIR/work/ssh_config" bench \
        "while [ -e '$DIR/work/in-use' ]; do sleep 0.1; done" &
    client=$!
    wait_listening "$from" && run curl -sS -f "http://127.0.0.1:$from/big" | sha &&
        run curl -sS -f "http://127.0.0.1:$from/small" "http://127.0.0.1:$from/small" | sha || status=1
    rm "$DIR/work/in-use"
    wait "$client" && return $status
}

tunnels() {
    if command -v curl >/dev/null && command -v python3 >/dev/null; then
        need_python
        mkdir "$DIR/www"
        head -c "$(size 10000000 1073741824)" "$DIR/big" >"$DIR/www/big"
        head -c 10000 "$DIR/big" >"$DIR/www/small"
        check "tunnel -L" fast tunnel -L
        check "tunnel -R" fast tunnel -R
    else
        echo "skip $NAME tunnel: curl or python3 is not installed"
    fi
}

check "short commands" any commands
check "copy by ssh and cat" fast by_ssh
check "copy by scp" fast by_scp
tunnels
finish
