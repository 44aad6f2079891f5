#!/usr/bin/env bash
# OpenSSH to an sshd of our own: own port, own keys, own configuration. A large copy each way, by ssh and by scp.
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

check "short commands" any commands
check "copy by ssh and cat" fast by_ssh
check "copy by scp" fast by_scp
finish
