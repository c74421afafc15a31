#!/bin/bash
# run.sh: runs tests, two at a time, and closes with
#     N passed, N failed, N skipped
# alone on its line; fails when something failed.
#   run.sh lint | golden | usability | exports | PROGRAM ...
# A program reports its counts in a line "# N passed, N failed, N skipped"; one
# without it counts as one test by its exit status (77: skipped).
#   BUILD=dir  TEST_TIMEOUT=seconds  WRAP="valgrind ..."  TEST_JOBS=2
#   BUDGET_TIMES=n    budgets are n times as large (sanitizers: 3)
# Each line ends with the seconds that passed and those that processors worked,
# which other programs on the machine hardly change; tests/budgets.tsv says how
# many of the latter a test may take.  A test beyond its budget is named at the
# end and does not fail.  Expensive tests start first, so that none is left over
# when the others are done.
set -u
cd "$(dirname "$0")/.." || exit 1
export BUILD=${BUILD:-build}
log_dir=$BUILD/tests/log
# OpenBLAS takes CPUs that are newer than itself for old ones (core_blas.h).
case "$(grep -m 1 '^flags' /proc/cpuinfo 2>/dev/null) " in
*' avx512vl '*) export OPENBLAS_CORETYPE=${OPENBLAS_CORETYPE:-SkylakeX} ;;
*' avx2 '*) export OPENBLAS_CORETYPE=${OPENBLAS_CORETYPE:-Haswell} ;;
esac
# Threads that wait for others of their team sleep: two programs at once have more
# threads than there are processors, and those that spin take the time of others.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
rm -rf "$log_dir"
mkdir -p "$log_dir"

TIMEFORMAT='%U %S'
declare -A budgets
default_budget=5
while IFS=$'\t' read -r name seconds _; do
    case $name in
    '' | '#'*) ;;
    *) budgets[$name]=$seconds ;;
    esac
done <tests/budgets.tsv

# Output of test number $1 goes to a file; the verdict to another.
run_one() {
    local i=$1 name=$2 out status counts start busy passed=0 failed=0 skipped=0
    local budget=$((${budgets[$2]:-$default_budget} * ${BUDGET_TIMES:-1}))
    shift 2
    # A folder of its own: two runs at once have nothing in common.
    if ! TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/forerun-test-XXXXXX"); then
        printf '0 1 0\nFAIL %s: there is no temporary folder\n' "$name" \
            >"$log_dir/$i.verdict"
        return
    fi
    export TMPDIR
    out=$log_dir/${name//[\/ ]/-}.txt
    start=$(date +%s%N)
    { time timeout -k 10 "${TEST_TIMEOUT:-1200}" "$@" >"$out" 2>&1 </dev/null; } \
        2>"$out.busy"
    status=$?
    busy=$(awk '{ print $1 + $2 }' "$out.busy")
    rm -rf "$TMPDIR" "$out.busy"
    counts=$(grep -aE '^# [0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' \
        "$out" | tail -n 1)
    if [ -n "$counts" ]; then
        read -r _ passed _ failed _ skipped _ <<<"$counts"
        case $status in
        0 | 1 | 77) [ $status != 1 ] || [ "$failed" != 0 ] || failed=1 ;;
        *) failed=$((failed + 1)) ;;
        esac
    elif [ $status = 0 ]; then
        passed=1
    elif [ $status = 77 ]; then
        skipped=1
    else
        failed=1
    fi
    {
        echo "$passed $failed $skipped"
        if [ "$failed" = 0 ] && [ "$passed" = 0 ]; then
            printf 'skip'
        elif [ "$failed" = 0 ]; then
            printf 'ok  '
        else
            printf 'FAIL'
        fi
        printf ' %-38s %4d passed' "$name" "$passed"
        [ "$failed" = 0 ] || printf ', %d failed' "$failed"
        [ "$skipped" = 0 ] || printf ', %d skipped' "$skipped"
        awk -v ns=$(($(date +%s%N) - start)) -v busy="$busy" \
            -v budget="$budget" 'BEGIN {
            printf ", %.1f s, processors %.1f of %d s%s\n", ns / 1e9,
                busy, budget, (busy > budget ? " OVER" : "") }'
        grep -aE '^SKIP ' "$out" | sed 's/^/     /'
        if [ "$failed" != 0 ]; then
            case $status in
            0 | 1 | 77) ;;
            124 | 137) echo "     ran longer than ${TEST_TIMEOUT:-1200} s" ;;
            *) echo "     ended with status $status" ;;
            esac
            grep -av '^# ' "$out" | head -n 40 | sed 's/^/     /'
            echo "     (all of it: $out)"
        fi
    } >"$log_dir/$i.verdict"
}

names=()
commands=()
add() {
    names+=("$1")
    commands+=("$2")
}
for what in "$@"; do
    case $what in
    lint)
        for script in tests/lint/check_*.sh; do
            base=${script##*/check_}
            add "lint/${base%.sh}" "$script"
        done
        ;;
    golden) add golden tests/golden/run.sh ;;
    usability)
        for script in tests/usability/*.sh; do
            [ "$script" != tests/usability/expect.sh ] || continue
            base=${script##*/}
            base=${base#role_}
            add "usability/${base%.sh}" "$script"
        done
        ;;
    exports)
        for script in tests/exports/test_*.sh; do
            base=${script##*/test_}
            add "exports/${base%.sh}" "$script"
        done
        ;;
    */tests/fuzz/fuzz_*)
        base=${what##*/fuzz_}
        add "fuzz/$base" "${WRAP:-} $what tests/fuzz/corpus/$base"
        ;;
    *) add "${what##*/tests/}" "${WRAP:-} $what" ;;
    esac
done

# By falling budgets.
order=($(for i in "${!names[@]}"; do
    printf '%d\t%d\n' "${budgets[${names[i]}]:-$default_budget}" "$i"
done | sort -k 1,1nr -k 2,2n | cut -f 2))

n_passed=0 n_failed=0 n_skipped=0
report() {
    local passed failed skipped
    {
        read -r passed failed skipped
        cat
    } <"$log_dir/$1.verdict"
    n_passed=$((n_passed + passed))
    n_failed=$((n_failed + failed))
    n_skipped=$((n_skipped + skipped))
}

# Verdicts are printed in order, as soon as all before them are there.
n=${#names[@]} next=0 running=0
for ((i = 0; i < n; i++)); do
    if ((running >= ${TEST_JOBS:-2})); then
        wait -n
        running=$((running - 1))
        while [ -e "$log_dir/$next.done" ]; do
            report $next
            next=$((next + 1))
        done
    fi
    # shellcheck disable=SC2086
    (
        run_one $i "${names[order[i]]}" ${commands[order[i]]}
        : >"$log_dir/$i.done"
    ) &
    running=$((running + 1))
done
wait
for (( ; next < n; next++)); do
    report $next
done
awk '/, processors / {
        name = $2
        sub(/.*, processors /, "")
        sum += $1
        if (/ OVER$/)
            printf "beyond its budget: %s: %s of %s s\n", name, $1, $3
    }
    END { printf "processors worked %.0f s\n", sum }' "$log_dir"/*.verdict
echo "$n_passed passed, $n_failed failed, $n_skipped skipped"
[ "$n_failed" = 0 ]
