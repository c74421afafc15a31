#!/bin/bash
# run.sh [CASE...]: golden cases.  A case is a folder cases/NAME with
#   cmd         a bash script; `forerun` is the program that was built, the
#               working folder is the case's own, $TMP one that is thrown away
#   expect.out  its stdout, expect.err its stderr (absent: empty)
#   expect.rc   its exit status (absent: 0)
#   needs       optional: one command that must exist, else the case is skipped
# UPDATE=1 writes what came instead of comparing: review it as a diff.
# CHECK_SLICE=n tries each n-th case alone, of those that are not named.
set -u
cd "$(dirname "$0")/../.." || exit 1
root=$PWD
build=${BUILD:-build}
case $build in
/*) ;;
*) build=$root/$build ;;
esac
export PATH=$build:$PATH ROOT=$root LC_ALL=C
unset COLUMNS
# Answers are wrapped by the length of the names of files: not in TMPDIR.
scratch=$(mktemp -d -p /tmp)
trap 'rm -rf "$scratch"' EXIT

compare() { # NAME PART GOT
    local expected=cases/$1/expect.$2
    [ -e "$expected" ] || expected=/dev/null
    diff -u --label "expected $2" --label "got $2" "$expected" "$3"
}

update() { # NAME PART GOT EMPTY
    if [ "$(cat "$3")" = "$4" ]; then
        rm -f "cases/$1/expect.$2"
    else
        cp "$3" "cases/$1/expect.$2"
    fi
}

n_passed=0 n_failed=0 n_skipped=0
cd tests/golden || exit 1
if [ $# = 0 ]; then
    set -- $(cd cases && ls | awk -v n="${CHECK_SLICE:-1}" 'n < 2 || NR % n == 0')
fi
for name in "$@"; do
    [ -e "cases/$name/cmd" ] || {
        echo "$name: has no cmd"
        n_failed=$((n_failed + 1))
        continue
    }
    if [ -e "cases/$name/needs" ] &&
        ! command -v "$(cat "cases/$name/needs")" >/dev/null; then
        echo "SKIP $name: needs $(cat "cases/$name/needs")"
        n_skipped=$((n_skipped + 1))
        continue
    fi
    rm -rf "$scratch/tmp"
    mkdir "$scratch/tmp"
    (cd "cases/$name" && TMP=$scratch/tmp timeout 120 bash ./cmd \
        >"$scratch/out" 2>"$scratch/err" </dev/null)
    echo $? >"$scratch/rc"
    if [ "${UPDATE:-0}" = 1 ]; then
        update "$name" out "$scratch/out" ""
        update "$name" err "$scratch/err" ""
        update "$name" rc "$scratch/rc" 0
        continue
    fi
    bad=0
    compare "$name" out "$scratch/out" >"$scratch/diff" || bad=1
    compare "$name" err "$scratch/err" >>"$scratch/diff" || bad=1
    wanted=$(cat "cases/$name/expect.rc" 2>/dev/null || echo 0)
    [ "$wanted" = "$(cat "$scratch/rc")" ] || {
        bad=1
        echo "exit status $(cat "$scratch/rc"), not $wanted" >>"$scratch/diff"
    }
    if [ $bad = 0 ]; then
        n_passed=$((n_passed + 1))
    else
        n_failed=$((n_failed + 1))
        echo "FAIL $name"
        sed 's/^/    /' "$scratch/diff"
    fi
done
if [ "${UPDATE:-0}" != 1 ] && [ $((n_passed + n_failed + n_skipped)) = 0 ]; then
    echo "CHECK_SLICE=${CHECK_SLICE:-} leaves no case"
    n_failed=1
fi
echo "# $n_passed passed, $n_failed failed, $n_skipped skipped"
[ $n_failed = 0 ]
