#!/bin/bash
# sweep.sh: what a table of a thousand tuned points costs, and what its quick
# search gives away against that of tune (the default budget).  Prints a table
# and leaves build/bench-sweep.json.
set -eu
build=${BUILD:-build}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
TIMEFORMAT='%R %U'

cases=(
    "llama-3-8b dgx-h100:16 --global-batch 256 --vary nodes=2..16*2 --vary nic=100..800Gb/s*2 --vary seq=2048,4096,8192,16384 --vary gpu=a100,h100,h200,b200 --vary oversubscription=1,2,4,8"
    "llama-3-8b dgx-h100:16 --global-batch 512 --vary nodes=2..16+1 --vary nic=100..800Gb/s*2 --vary seq=2048,8192 --vary gpu=h100,b200"
    "mixtral-8x7b dgx-h100:8 --global-batch 256 --seq 4096 --vary nodes=4,8,16 --vary nic=100..800Gb/s*2 --vary gpu=h100,h200,b200"
    "llama-3-70b dgx-h100:16 --global-batch 256 --seq 8192 --vary nodes=8,16,32 --vary nic=100..800Gb/s*2 --vary gpu=h100,h200,b200"
)

echo "points    wall s   core s   ms of a core per point  sweep"
json=
for case in "${cases[@]}"; do
    # shellcheck disable=SC2086
    { time "$build/forerun" sweep $case -q --csv >"$scratch/csv"; } \
        2>"$scratch/time"
    read -r wall_s core_s <"$scratch/time"
    n=$(($(wc -l <"$scratch/csv") - 1))
    awk -v n=$n -v w="$wall_s" -v c="$core_s" -v what="$case" 'BEGIN {
        printf "%6d %9.1f %8.1f %9.1f               %s\n", n, w, c, 1000 * c / n, what }'
    json="$json${json:+,}{\"points\":$n,\"wall_s\":$wall_s,\"core_s\":$core_s,\"sweep\":\"$case\"}"
done

# A sample: the step of sweep over that of tune.
step_of() { sed -n 's/^ *"step_s": \([0-9.e-]*\),*$/\1/p' | head -1; }
echo
echo "sweep / tune  core s of each  job"
sample=
for model in llama-3-8b mixtral-8x7b llama-3-70b gpt3-175b; do
    for nodes in 8 16; do
        job="--global-batch 256 --seq 4096"
        [ $model = gpt3-175b ] && job="--global-batch 512 --seq 2048"
        # shellcheck disable=SC2086
        { time "$build/forerun" sweep $model dgx-h100:1 $job --vary nodes=$nodes \
            -q --json >"$scratch/sweep"; } 2>"$scratch/time" || true
        read -r _ quick_s <"$scratch/time"
        # shellcheck disable=SC2086
        { time "$build/forerun" tune $model dgx-h100:$nodes $job -q --json \
            >"$scratch/tune"; } 2>"$scratch/time" || true
        read -r _ tune_s <"$scratch/time"
        quick=$(step_of <"$scratch/sweep")
        best=$(step_of <"$scratch/tune")
        [ -n "$quick" ] && [ -n "$best" ] || continue
        ratio=$(awk -v a="$quick" -v b="$best" 'BEGIN { printf "%.4f", a / b }')
        printf '%12s  %6s %6s   %s\n' "$ratio" "$quick_s" "$tune_s" \
            "$model dgx-h100:$nodes $job"
        sample="$sample${sample:+,}{\"job\":\"$model dgx-h100:$nodes $job\",\"ratio\":$ratio,\"sweep_core_s\":$quick_s,\"tune_core_s\":$tune_s}"
    done
done
echo "{\"sweeps\":[$json],\"against_tune\":[$sample]}" >"$build/bench-sweep.json"
