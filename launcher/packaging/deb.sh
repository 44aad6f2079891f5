#!/bin/sh
# Makes a Debian package of what was built in release mode; prints its name.
#
#   deb.sh OUTDIR
#
# From the environment: TARGET (the release directory).
set -eu
out=$1
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")/../.."
: "${TARGET:?}"
arch=$(dpkg --print-architecture)
version=$("$TARGET/sidewire" --version | cut -d' ' -f2)
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
chmod 755 "$stage"
umask 022

libdir=/usr/lib/$(uname -m)-linux-gnu/sidewire
TARGET=$TARGET PREFIX=/usr LIBDIR=$libdir DESTDIR=$stage sh launcher/packaging/install.sh install
# Directories are the package manager's business.
rm "$stage/usr/share/sidewire/directories"
if command -v strip >/dev/null; then
    strip --strip-unneeded "$stage$libdir/libsidewire.so" "$stage"/usr/bin/*
fi
gzip -9n "$stage"/usr/share/man/man1/*.1 "$stage/usr/share/doc/sidewire/CHANGELOG.md"
mv "$stage/usr/share/doc/sidewire/CHANGELOG.md.gz" "$stage/usr/share/doc/sidewire/changelog.gz"
# Debian has the Apache licence on every machine.
rm "$stage/usr/share/doc/sidewire/LICENSE-APACHE"
{
    echo 'Sidewire, copyright (c) the Sidewire developers.'
    echo
    echo 'Licence: MIT or Apache-2.0, as you choose. The text of the Apache License 2.0 is in'
    echo '/usr/share/common-licenses/Apache-2.0; that of the MIT licence follows.'
    echo
    cat LICENSE-MIT
} >"$stage/usr/share/doc/sidewire/copyright"
rm "$stage/usr/share/doc/sidewire/LICENSE-MIT"

# The newest glibc that any of the files asks for.
glibc=$(grep -aoh 'GLIBC_2\.[0-9.]*' "$TARGET/libsidewire.so" "$TARGET/sidewire" "$TARGET/sidewire-run" \
    "$TARGET/sidewire-bench" | cut -d_ -f2 | sort -V | tail -n 1)
size=$(du -sk "$stage" | cut -f1)
mkdir "$stage/DEBIAN"
cat >"$stage/DEBIAN/control" <<EOF
Package: sidewire
Version: $version
Architecture: $arch
Maintainer: the Sidewire developers <sidewire@localhost>
Installed-Size: $size
Depends: libc6 (>= ${glibc:-2.34}), libgcc-s1
Suggests: netperf, netpipe-tcp, redis-server
Section: net
Priority: optional
Description: moves TCP streams of unchanged programs onto shared memory
 A preload library and its launcher: \`sidewire run PROGRAM\` starts any socket
 program so that its TCP connections to other such programs on the same host
 carry their bytes through shared memory, in mid-stream and unseen by the
 program. Everything else stays on TCP.
EOF
cat >"$stage/DEBIAN/prerm" <<EOF
#!/bin/sh
# A library that is gone but still listed would make every program complain.
set -e
list=/etc/ld.so.preload
if [ "\$1" = remove ] && grep -qsF $libdir/libsidewire.so \$list; then
    sed -i 's|$libdir/libsidewire.so||' \$list
    grep -q '[^[:space:]]' \$list || rm -f \$list
fi
EOF
chmod 755 "$stage/DEBIAN/prerm"
package=$out/sidewire_${version}_$arch.deb
dpkg-deb --root-owner-group --build "$stage" "$package" >/dev/null
echo "$package"
