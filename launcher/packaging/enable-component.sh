#!/bin/sh
# Enables one more component of the distribution for apt, in both kinds of source files. Running it again changes
# nothing. Entries of other suites (third parties) and those without «main» are left alone.
#
#   enable-component.sh COMPONENT CODENAME DIR      such as: non-free bookworm /etc/apt
set -eu
component=$1
codename=$2
dir=$3
[ -n "$codename" ] || { echo "$0: no code name" >&2; exit 2; }

# edit FILE AWK-PROGRAM: replaces the file if the program says that it has added something.
edit() {
    new=$(mktemp)
    if awk -v component="$component" -v codename="$codename" "$2 END { exit !added }" "$1" >"$new"; then
        # Through the old file, which keeps its owner and mode.
        cat "$new" >"$1"
        echo "enabled $component in $1"
    fi
    rm -f "$new"
}

# deb [options] URI SUITE COMPONENT...
for file in "$dir/sources.list" "$dir"/sources.list.d/*.list; do
    [ -f "$file" ] || continue
    edit "$file" '
        $1 != "deb" { print; next }
        {
            line = $0
            comment = ""
            if (match(line, /[ \t]*#/)) {
                comment = substr(line, RSTART)
                line = substr(line, 1, RSTART - 1)
            }
            fields = line
            sub(/^deb[ \t]+(\[[^]]*\][ \t]*)?/, "", fields)
            n = split(fields, word, /[ \t]+/)
            ours = index(word[2], codename) == 1
            main = have = 0
            for (i = 3; i <= n; i++) {
                if (word[i] == "main") main = 1
                if (word[i] == component) have = 1
            }
            if (ours && main && !have) {
                sub(/[ \t]+$/, "", line)
                line = line " " component
                added = 1
            }
            print line comment
        }'
done

# Stanzas of fields (deb822).
for file in "$dir"/sources.list.d/*.sources; do
    [ -f "$file" ] || continue
    edit "$file" '
        BEGIN { RS = ""; FS = "\n" }
        {
            ours = binary = main = have = at = 0
            on = 1
            for (i = 1; i <= NF; i++) {
                n = split($i, word, /[ \t]+/)
                name = tolower(word[1])
                for (j = 2; j <= n; j++) {
                    if (name == "types:" && word[j] == "deb") binary = 1
                    if (name == "suites:" && index(word[j], codename) == 1) ours = 1
                    if (name == "enabled:" && tolower(word[j]) == "no") on = 0
                    if (name == "components:" && word[j] == "main") { main = 1; at = i }
                    if (name == "components:" && word[j] == component) have = 1
                }
            }
            if (ours && binary && on && main && !have) {
                sub(/[ \t]+$/, "", $at)
                $at = $at " " component
                added = 1
            }
            if (NR > 1) print ""
            for (i = 1; i <= NF; i++) print $i
        }'
done
