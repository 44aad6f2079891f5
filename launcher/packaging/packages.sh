#!/bin/sh
# Installs what is missing of a set of Debian or Ubuntu packages; changes nothing if nothing is.
#
#   packages.sh build|demo|test
#
# Services that come with a package are not started.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
build='gcc libc6-dev'
demo="$build netperf netpipe-tcp redis-server redis-tools"
test="$demo apache2-bin apache2-utils curl default-jdk-headless git gunicorn haproxy iperf3 memcached nginx \
nodejs openbsd-inetd openssh-client openssh-server openssl postgresql postgresql-contrib procps python3 rsync \
socat sockperf wrk"

case ${1:-} in
    build) wanted=$build ;;
    demo) wanted=$demo ;;
    test) wanted=$test ;;
    *)
        echo "usage: $0 build|demo|test" >&2
        exit 2
        ;;
esac

command -v dpkg-query >/dev/null && command -v apt-get >/dev/null || {
    echo "This is no Debian or Ubuntu machine. Please see to it that these are installed: $wanted" >&2
    exit 0
}

# What a package is for, where another one may provide it.
provided() {
    case $1 in
        gcc) command -v cc >/dev/null && command -v gcc >/dev/null ;;
        default-jdk-headless) command -v javac >/dev/null && command -v java >/dev/null ;;
        nginx) command -v nginx >/dev/null || [ -x /usr/sbin/nginx ] ;;
        nodejs) command -v node >/dev/null ;;
        *) false ;;
    esac
}

installed() {
    dpkg-query -W -f '${Status}\n' "$1" 2>/dev/null | grep -q '^install ok installed$'
}

missing=
for package in $wanted; do
    installed "$package" || provided "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -eq 0 ]; then
    as_root() { "$@"; }
elif command -v sudo >/dev/null; then
    as_root() { sudo "$@"; }
else
    echo "These packages are missing, and only root can install them:$missing" >&2
    exit 1
fi

candidate() {
    apt-cache policy "$1" 2>/dev/null | grep -q '^  Candidate: [^(]'
}

all_candidates() {
    for package in $missing; do
        candidate "$package" || return 1
    done
}

echo "Installing:$missing"
as_root apt-get update -q
if ! all_candidates; then
    # netperf is not free enough for the main component.
    . /etc/os-release
    case $ID in
        ubuntu) component=multiverse ;;
        *) component=non-free ;;
    esac
    case "$missing " in
        *' netperf '*)
            if ! candidate netperf; then
                as_root "$here/enable-component.sh" "$component" "${VERSION_CODENAME:-}" /etc/apt
                as_root apt-get update -q
            fi
            ;;
    esac
fi

available=
for package in $missing; do
    if candidate "$package"; then
        available="$available $package"
    else
        echo "note: there is no package $package here; what needs it is skipped" >&2
    fi
done
[ -n "$available" ] || exit 0

# A policy-rc.d of 101 keeps maintainer scripts from starting services.
policy=/usr/sbin/policy-rc.d
ours=
undo() { [ -z "$ours" ] || as_root rm -f "$policy"; }
trap undo EXIT
trap 'exit 143' INT TERM
if [ ! -e "$policy" ]; then
    ours=1
    printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
    as_root chmod 755 "$policy"
fi
# shellcheck disable=SC2086
as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends $available
