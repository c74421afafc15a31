# expect.sh: what the scripts of the roles share.  A script asks commands and
# says what they must mean; every expectation is a test of its own.
#   ask COMMAND...       runs it; its stdout, stderr and status are kept; no line
#                        of stdout is wider than 100 columns, but of JSON and CSV
#   ask_timed COMMAND... the same, cpu_s are its seconds of the processor
#   ends_with STATUS
#   says PATTERN...      some line of stdout matches (grep -E), each pattern
#   never_says PATTERN...
#   warns PATTERN...     the same of stderr
#   never_warns PATTERN...
#   holds EXPRESSION     arithmetic of awk on what `value` printed
#   skip REASON          an expectation that this machine cannot be asked: counted
#   value KEY            the first number under that key of a JSON answer
# A script ends with `summary`.
set -u
cd "$(dirname "$0")/../.." || exit 1
root=$PWD
fixtures=$root/tests/usability/fixtures
case ${BUILD:-build} in
/*) PATH=$BUILD:$PATH ;;
*) PATH=$root/${BUILD:-build}:$PATH ;;
esac
export PATH LC_ALL=C.UTF-8
unset COLUMNS
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
n_passed=0 n_failed=0 n_skipped=0 asked="" status=0 cpu_s=0
TIMEFORMAT=%U

verdict() { # PASSED(0|1) TEXT
    if [ "$1" = 0 ]; then
        n_passed=$((n_passed + 1))
        return
    fi
    n_failed=$((n_failed + 1))
    echo "FAIL $asked"
    echo "    $2"
    head -n 12 "$work/.out" "$work/.err" | sed 's/^/    | /'
}

ask() {
    asked="$*"
    timeout 60 "$@" >"$work/.out" 2>"$work/.err" </dev/null
    status=$?
    case " $* " in
    *" --json "* | *" --csv "*) ;;
    *) is_narrow ;;
    esac
}

# The same, and `cpu_s` is what it took of the processor: other work on the
# machine makes it no slower.
ask_timed() {
    { time ask "$@"; } 2>"$work/.time"
    cpu_s=$(cat "$work/.time")
}

ends_with() {
    [ "$status" = "$1" ]
    verdict $? "ends with $status, not $1"
}

look() { # FILE WANTED(0|1) WHAT PATTERN...
    local file=$1 wanted=$2 what=$3 pattern found
    shift 3
    for pattern in "$@"; do
        grep -qE -e "$pattern" "$work/$file"
        found=$?
        [ "$found" = "$wanted" ]
        verdict $? "$what '$pattern'"
    done
}
says() { look .out 0 "stdout does not say" "$@"; }
never_says() { look .out 1 "stdout says" "$@"; }
warns() { look .err 0 "stderr does not say" "$@"; }
never_warns() { look .err 1 "stderr says" "$@"; }

is_narrow() {
    local width
    width=$(wc -L <"$work/.out")
    [ "$width" -le 100 ]
    verdict $? "a line of $width columns"
}

value() {
    grep -oE "\"$1\": *-?[0-9.e+-]+" "$work/.out" | head -n 1 |
        sed 's/.*: *//'
}

holds() {
    awk "BEGIN { exit !($*) }" </dev/null
    verdict $? "does not hold: $*"
}

skip() { # REASON
    n_skipped=$((n_skipped + 1))
    echo "SKIP $1"
}

summary() {
    echo "# $n_passed passed, $n_failed failed, $n_skipped skipped"
    [ "$n_failed" = 0 ]
}
