#!/bin/bash
# test_scripts.sh: exported training scripts are run, two processes over gloo, and their
# losses compared with those of `forerun run` on the same weights and tokens.
# Ends with "# N passed, N failed, N skipped"; without PyTorch all are skipped.
set -u
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.." || exit 1
root=$PWD
case ${BUILD:=build} in
/*) ;;
*) BUILD=$root/$BUILD ;;
esac
export PATH=$BUILD:$PATH LC_ALL=C OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cluster=$root/tests/golden/fixtures/two-cores.xml
usual="--steps 5 --global-batch 8 --seq 32 --precision f32 --no-flash-attention"
n_passed=0 n_failed=0 n_skipped=0

python=
for one in python3 /usr/bin/python3; do
    "$one" -c 'import torch' 2>/dev/null && python=$one && break
done

# plan NAME MODEL OPTIONS: a plan; with its losses, as forerun trains it.
plan() {
    # shellcheck disable=SC2086
    forerun simulate "$2" "$cluster" $usual "${@:3}" -q -o "$work/$1.json" \
        >/dev/null
}
trained() {
    plan "$@" && forerun run "$work/$1.json" --json -q >"$work/$1.run"
}

# script NAME TARGET PLAN RUN ARGUMENTS: a script of a plan, which shall train as
# forerun trained RUN; it is run later.
script() {
    forerun export "$work/$3.json" --to "$2" -o "$work/$1/" || return
    local path
    path=$(echo "$work/$1"/train_*.py)
    echo "$path ${*:5}" >>"$work/jobs"
    echo "$1 $path $work/$4.run" >>"$work/list"
}

# verdict NAME SCRIPT RUN: within 1e-4, or as close as the name says.
verdict() {
    if "$python" "$here/script_losses.py" "$@"; then
        n_passed=$((n_passed + 1))
    else
        n_failed=$((n_failed + 1))
    fi
}

: >"$work/jobs"
: >"$work/list"
. "$here/script_rows.sh"
if [ -z "$python" ]; then
    n_skipped=$(wc -l <"$work/list")
    echo "SKIP python3-torch is not installed (./setup.sh ci installs it)"
else
    timeout 280 "$python" "$here/script_ranks.py" 2 "$work/jobs" \
        >"$work/log" 2>&1 || cat "$work/log"
    while read -r name script run; do
        verdict "$name" "$script" "$run"
    done <"$work/list"
fi
echo "# $n_passed passed, $n_failed failed, $n_skipped skipped"
[ "$n_failed" = 0 ]
