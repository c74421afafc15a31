#!/bin/bash
# check_style.sh: limits that a compiler does not know.  Files of at most 600
# lines, functions of at most 80, lines of at most 80 characters; no tab, no
# blank at an end, nothing left open (T-O-D-O and its kin).
set -u
cd "$(dirname "$0")/../.." || exit 1
export LC_ALL=C.UTF-8
floors=$(sed -n 's/^\([a-z_]*\):.*/\1/p' tests/lint/floors.txt)
# shellcheck disable=SC2086
files=$(find $floors bench tests \( -name '*.[ch]' -o -name '*.cu' \
    -o -name '*.cuh' -o -name '*.cc' \) | sort)
bad=0
# Characters, not bytes, which awk would count.  (oracle: generated numbers.)
grep -nE '^.{81,}' $(grep -v '^tests/oracle/' <<<"$files") /dev/null |
    sed -E 's/^([^:]*:[0-9]+):.*/\1: more than 80 characters/'
[ "${PIPESTATUS[0]}" != 0 ] || bad=1
awk '
function complain(line, text) {
    printf "%s:%d: %s\n", file, line, text
    n_bad++
}
function end_file() {
    if (file != "" && n_lines > 600)
        complain(n_lines, n_lines " lines, 600 are the limit")
}
FNR == 1 { end_file(); file = FILENAME; start = 0 }
{ n_lines = FNR }
/\t/ { complain(FNR, "a tab") }
/[ \t\r]$/ { complain(FNR, "a blank at the end of the line") }
/(TODO|FIXME|HACK|(^|[^X])XXX([^X]|$))/ { complain(FNR, "something is left open") }
/^{/ { start = FNR }
/^}/ {
    if (start && FNR - start - 1 > 80)
        complain(start, "a function of " FNR - start - 1 " lines, 80 are " \
                 "the limit")
    start = 0
}
END { end_file(); exit n_bad > 0 }
' $files || bad=1
exit $bad
