#!/bin/bash
# check_names.sh: a file name stands once in the tree (a .c and its .h share
# one), a header is guarded by the name of its path, and functions of several
# targets (FR_SIMD) have names of their own.
set -u
cd "$(dirname "$0")/../.." || exit 1
bad=0
floors=$(sed -n 's/^\([a-z_]*\):.*/\1/p' tests/lint/floors.txt)
# shellcheck disable=SC2086
files=$(find $floors bench tests \( -name '*.[ch]' -o -name '*.cu' \
    -o -name '*.cuh' -o -name '*.cc' \) | sort)
twice=$(sed 's|.*/||' <<<"$files" | sort | uniq -d)
for name in $twice; do
    echo "$name stands more than once:" $(grep "/$name\$" <<<"$files")
    bad=1
done
# The folders of tests/ may be left out of a guard.
# shellcheck disable=SC2086
unguarded=$(awk '
    FNR == 1 {
        guard = "FR_" toupper(FILENAME)
        gsub(/[\/.]/, "_", guard)
        short = toupper(FILENAME)
        sub(/.*\//, "", short)
        gsub(/\./, "_", short)
        wanted[FILENAME] = guard
    }
    $0 == "#define " guard || $0 == "#define FR_TESTS_" short {
        delete wanted[FILENAME]
    }
    END {
        for (file in wanted)
            print file ":1: has no guard " wanted[file]
    }' $(grep -E '\.(h|cuh)$' <<<"$files") /dev/null | sort)
[ -z "$unguarded" ] || {
    echo "$unguarded"
    bad=1
}
# Clang 14 gives the resolver of a static function of several targets a name
# that other files see.
clones=$(grep -rhoE "^FR_SIMD static [a-z0-9_ ]+[ *][a-z0-9_]+\(" kernels runtime calibrate \
    --include='*.c' | sed -E 's/.*[ *]([a-z0-9_]+)\($/\1/' | sort | uniq -d)
for name in $clones; do
    echo "$name() is FR_SIMD in two files: give one another name"
    bad=1
done
exit $bad
