#!/bin/sh
# Copies what was built in release mode into a prefix, or takes it out again.
#
#   install.sh install|uninstall
#
# From the environment: TARGET (the release directory), PREFIX, LIBDIR (the library's directory), DESTDIR.
set -eu
cd "$(dirname "$0")/../.."
: "${TARGET:?}" "${PREFIX:?}" "${LIBDIR:?}"
DESTDIR=${DESTDIR:-}
bin=$PREFIX/bin
man=$PREFIX/share/man/man1
share=$PREFIX/share/sidewire
doc=$PREFIX/share/doc/sidewire
bash=$PREFIX/share/bash-completion/completions
zsh=$PREFIX/share/zsh/site-functions
fish=$PREFIX/share/fish/vendor_completions.d
# Where the library is, for a launcher that would not look there by itself (launcher/src/library.rs).
recorded=$share/libdir

# The directories that were not there before, one a line; uninstall takes out those that are empty then. Others may be
# somebody's even if they are empty, as /usr/local/bin of a fresh system.
directories=$share/directories
made=

# directory DIR: makes it and those above it, and notes which.
directory() {
    if [ -d "$DESTDIR$1" ]; then
        return
    fi
    directory "$(dirname "$1")"
    mkdir "$DESTDIR$1"
    made="$made$1
"
}

# put MODE SOURCE DIR NAME: the new file takes the old one's place in one step, so that a program which starts just now
# finds one of them whole; those that run keep the old one.
put() {
    directory "$3"
    install -m "$1" "$2" "$DESTDIR$3/$4.new"
    mv -f "$DESTDIR$3/$4.new" "$DESTDIR$3/$4"
}

pages() {
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    launcher=$TARGET/sidewire
    "$launcher" man "$scratch"
    for page in "$scratch"/*.1; do
        put 644 "$page" "$man" "$(basename "$page")"
    done
    "$launcher" completions bash >"$scratch/bash"
    put 644 "$scratch/bash" "$bash" sidewire
    "$launcher" completions zsh >"$scratch/zsh"
    put 644 "$scratch/zsh" "$zsh" _sidewire
    "$launcher" completions fish >"$scratch/fish"
    put 644 "$scratch/fish" "$fish" sidewire.fish
}

# The launcher looks at these two places, which move with it; any other one it has to be told.
record_libdir() {
    rm -f "$DESTDIR$recorded"
    case $LIBDIR in
        "$PREFIX/lib/sidewire" | "$PREFIX/lib/$(uname -m)-linux-gnu/sidewire") return ;;
        /*) absolute=$LIBDIR ;;
        *) absolute=$PWD/$LIBDIR ;;
    esac
    scratch=$(mktemp)
    echo "$absolute" >"$scratch"
    put 644 "$scratch" "$share" libdir
    rm -f "$scratch"
}

# Those of earlier installations stay noted.
record_directories() {
    directory "$share"
    {
        cat "$DESTDIR$directories" 2>/dev/null || true
        printf %s "$made"
    } | LC_ALL=C sort -u >"$DESTDIR$directories.new"
    mv -f "$DESTDIR$directories.new" "$DESTDIR$directories"
}

case ${1:-} in
    install)
        if [ -n "$DESTDIR" ]; then
            mkdir -p "$DESTDIR"
        fi
        put 644 "$TARGET/libsidewire.so" "$LIBDIR" libsidewire.so
        for program in sidewire sidewire-run sidewire-bench; do
            put 755 "$TARGET/$program" "$bin" "$program"
        done
        for script in bench/apps/*.sh; do
            put 755 "$script" "$share/apps" "$(basename "$script")"
        done
        for program in bench/apps/programs/*; do
            put 644 "$program" "$share/apps/programs" "$(basename "$program")"
        done
        for page in README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE; do
            put 644 "$page" "$doc" "$page"
        done
        record_libdir
        pages
        record_directories
        ;;
    uninstall)
        # Whoever uninstalls need not remember what LIBDIR was.
        if [ -f "$DESTDIR$recorded" ]; then
            LIBDIR=$(cat "$DESTDIR$recorded")
        fi
        library=$LIBDIR/libsidewire.so
        if [ -z "$DESTDIR" ] && grep -qsF "$library" /etc/ld.so.preload; then
            echo "/etc/ld.so.preload names $library: take that line out first" >&2
            exit 1
        fi
        made=$(cat "$DESTDIR$directories" 2>/dev/null || true)
        rm -f "$DESTDIR$library" "$DESTDIR$man"/sidewire.1 "$DESTDIR$man"/sidewire-*.1
        for program in sidewire sidewire-run sidewire-bench; do
            rm -f "$DESTDIR$bin/$program"
        done
        rm -f "$DESTDIR$bash/sidewire" "$DESTDIR$zsh/_sidewire" "$DESTDIR$fish/sidewire.fish"
        rm -rf "$DESTDIR$share" "$DESTDIR$doc"
        rmdir "$DESTDIR$LIBDIR" 2>/dev/null || true
        # Inner ones first.
        printf '%s\n' "$made" | LC_ALL=C sort -r | while IFS= read -r dir; do
            if [ -n "$dir" ] && [ -d "$DESTDIR$dir" ]; then
                rmdir "$DESTDIR$dir" 2>/dev/null || true
            fi
        done
        ;;
    *)
        echo "usage: $0 install|uninstall" >&2
        exit 2
        ;;
esac
