#!/bin/sh
# tidy.sh FLAGS FILE...: clang-tidy over the files; fails on any finding.
set -eu
flags=$1
shift
# It says how many warnings of system headers it kept to itself: noise.
clang-tidy --quiet --warnings-as-errors='*' "$@" -- -xc $flags \
    2>"${TMPDIR:-/tmp}/tidy.$$" || {
    grep -v 'warnings generated' "${TMPDIR:-/tmp}/tidy.$$" >&2 || true
    rm -f "${TMPDIR:-/tmp}/tidy.$$"
    exit 1
}
rm -f "${TMPDIR:-/tmp}/tidy.$$"
