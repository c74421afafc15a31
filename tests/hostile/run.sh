#!/bin/bash
# What a hostile user or file may do: each script of this folder, or those that
# are named.  Every case has a bound of time and of memory, an exit code, one
# line of error, and leaves nothing behind.
cd "$(dirname "$0")/../.." || exit 1
PATH=$PWD/build:$PATH
here=$PWD/tests/hostile
root=$PWD
scratch=$(mktemp -d "${TMPDIR:-/tmp}/forerun-hostile-XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
export TMPDIR=$scratch
n_passed=0 n_failed=0 n_skipped=0

fail() { # what output...
    n_failed=$((n_failed + 1))
    echo "FAIL $1"
    shift
    printf '    %s\n' "$@"
}

pass() {
    n_passed=$((n_passed + 1))
}

# refuses CODE WORDS COMMAND...: ends within 20 s and 6 GB with that exit code,
# nothing on stdout, and one line on stderr that has the words.
refuses() {
    local code=$1 words=$2 out rc
    shift 2
    out=$(ulimit -v 6000000; timeout -s KILL "${LIMIT_S:-20}" "$@" -q 2>&1 >"$scratch/out")
    rc=$?
    if [ "$rc" = "$code" ] && [ "${out#*"$words"}" != "$out" ] &&
        [ ! -s "$scratch/out" ] && [ "$(printf '%s\n' "$out" | grep -vc '^Try ')" = 1 ] &&
        ! printf '%s' "$out" | LC_ALL=C grep -q '[[:cntrl:]]'; then
        pass
    else
        fail "$*" "exit $rc, not $code; expected: $words" "${out:0:300}"
    fi
}

# answers WORDS COMMAND...: the same for an answer.
answers() {
    local words=$1 out rc
    shift
    out=$(ulimit -v 6000000; timeout -s KILL "${LIMIT_S:-20}" "$@" -q 2>&1)
    rc=$?
    if [ $rc = 0 ] && [ "${out#*"$words"}" != "$out" ]; then
        pass
    else
        fail "$*" "exit $rc; expected: $words" "${out:0:300}"
    fi
}

scripts=("$@")
[ $# = 0 ] && scripts=(numbers documents leaving traces full_disk)
for script in "${scripts[@]}"; do
    mkdir "$scratch/$script"
    cd "$scratch/$script" || exit 1
    # shellcheck source=/dev/null
    . "$here/$script.sh"
    cd "$root" || exit 1
done
echo "# $n_passed passed, $n_failed failed, $n_skipped skipped"
[ $n_failed = 0 ]
