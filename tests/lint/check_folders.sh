#!/bin/bash
# check_folders.sh: two folders include each other only for a reason, which
# folder_pairs.txt gives; a pair of the list that no longer does is taken out.
set -u
cd "$(dirname "$0")/../.." || exit 1
floors=$(sed -n 's/^\([a-z_]*\):.*/\1/p' tests/lint/floors.txt)
# shellcheck disable=SC2086
found=$(find $floors -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' | sort |
    xargs grep -H '^#include "' | awk -F'[:"]' '
    function folder(path) { sub(/\/[^\/]*$/, "", path); return path }
    {
        from = folder($1)
        to = folder($3)
        if (from != to)
            sees[from, to] = 1
    }
    END {
        for (pair in sees) {
            split(pair, side, SUBSEP)
            if (side[1] < side[2] && (side[2], side[1]) in sees)
                print side[1], side[2]
        }
    }' | sort)
diff <(grep -v '^#' tests/lint/folder_pairs.txt | awk '{ print $1, $2 }' | sort) \
    <(echo "$found") | sed -n 's/^> /these folders include each other: /p
        s/^< /these folders no longer include each other (folder_pairs.txt): /p'
[ "${PIPESTATUS[0]}" = 0 ]
