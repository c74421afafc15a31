#!/bin/bash
# test_tune_for.sh: what tune picks for a target, export writes.
# shellcheck source=tests/usability/expect.sh
. "$(dirname "$0")/../usability/expect.sh"

# picks TARGET[=VERSION] OPTION...
picks() {
    local target=${1%=*} version=()
    [ "$target" = "$1" ] || version=(--version "${1#*=}")
    shift
    ask forerun tune "$@" --for "$target" "${version[@]}" --budget 1s \
        -o "$target.json"
    ends_with 0
    ask forerun export "$target.json" --to "$target" "${version[@]}" \
        -o "$target-files/"
    ends_with 0
    never_warns 'predicted as' # the search has priced what is written
    comes_back "$target" "$1" "$2"
}

# The file that holds the plan, read as a user's own, is predicted as the plan
# was: the same step, the same memory.  TARGET MODEL CLUSTER
comes_back() {
    local file job
    file=$(ls "$work/$1-files"/{megatron.sh,ds_config.json,torchtitan.toml,accelerate.yaml} \
        2>/dev/null | head -n 1)
    [ -n "$file" ] || return 0 # a program, which is not read
    grep -qhs 'Read back: the same plan$' "$work/$1-files"/*
    verdict $? "the head of $1 does not say that it was read back"
    # What the file leaves to the training script.
    job=$(jq -r '"--seq \(.job.seq) --global-batch \(.job.global_batch)
        --micro-batch \(.plan.micro_batch)"' "$work/$1.json")
    ask forerun simulate "$1.json" "$3" --json -q
    ends_with 0
    step=$(value step_s) peak=$(value peak_bytes)
    # shellcheck disable=SC2086
    ask forerun simulate "$2" "$3" --from "$file" $job --json -q
    ends_with 0
    holds "$(value step_s) > 0.99 * $step && $(value step_s) < 1.01 * $step"
    holds "$(value peak_bytes) > 0.99 * $peak && $(value peak_bytes) < 1.01 * $peak"
}

for target in megatron megatron-bridge deepspeed accelerate ddp fsdp2 horovod \
    jax; do
    picks $target gpt2-1.5b dgx-a100:2 --global-batch 64 --seq 1024
done
for target in megatron deepspeed torchtitan accelerate; do
    picks $target llama-3-8b dgx-h100:4 --global-batch 128 --seq 8192
done
picks megatron mixtral-8x7b dgx-h100:4 --global-batch 128 --seq 4096
picks torchtitan=0.2 deepseek-v3 dgx-b200:32 --global-batch 512 --seq 2048
picks megatron=core-0.8 llama-3-8b dgx-h100:4 --global-batch 128 --seq 8192
picks accelerate=1.0 llama-3-8b dgx-h100:4 --global-batch 128 --seq 8192
# A plan that was predicted with fused kernels is written with the prediction of
# the kernels that execute it, which a simulation with them gives too.
plan=(llama-3-8b dgx-h100:4 --dp 32 --zero 3 --global-batch 64 --seq 4096
    --micro-batch 1)
ask forerun simulate "${plan[@]}" -o fused.json
for target in fsdp2 accelerate deepspeed; do
    ask forerun simulate fused.json dgx-h100:4 --kernels eager --flash-kind flash-2 \
        -q --json
    ends_with 0
    step=$(value expected_step_s)
    ask forerun export fused.json --to $target -o as-executed-$target/
    warns "predicted as $target executes the plan: .*kernels eager"
    said=$(grep -hs 'Predicted: ' as-executed-$target/* | sed 's/.*Predicted: //; s/ s a step.*//' | head -n 1)
    holds "$said > 0.999 * $step && $said < 1.001 * $step"
done
# Models that torchtitan has not.
for model in resnet-50 gpt2-1.5b mixtral-8x7b; do
    ask forerun tune $model dgx-h100:4 --global-batch 128 --for torchtitan \
        --budget 1s
    ends_with 5
    warns 'torchtitan needs'
done
summary
