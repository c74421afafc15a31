#!/bin/bash
# check_names.sh: a file name stands once in the tree (a .c and its .h share
# one), and a header is guarded by the name of its path.
set -u
cd "$(dirname "$0")/../.." || exit 1
bad=0
files=$(find core spec plan cost_models sim tuner runtime calibrate interop report \
    cli bench tests \( -name '*.[ch]' -o -name '*.cu' \
    -o -name '*.cuh' -o -name '*.cc' \) | sort)
twice=$(for file in $files; do echo "${file##*/}"; done | sort | uniq -d)
for name in $twice; do
    echo "$name stands more than once:" $(grep "/$name\$" <<<"$files")
    bad=1
done
for file in $files; do
    case $file in
    *.h | *.cuh)
        # The folders of tests/ may be left out of it.
        guard=FR_$(tr 'a-z/.' 'A-Z__' <<<"$file")
        short=FR_TESTS_$(tr 'a-z/.' 'A-Z__' <<<"${file##*/}")
        grep -qE "^#define ($guard|$short)\$" "$file" || {
            echo "$file:1: has no guard $guard"
            bad=1
        }
        ;;
    esac
done
exit $bad
