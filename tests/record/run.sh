#!/bin/bash
# run.sh: records the exact answers of this build in build/record/: plans.txt
# (random plans, see record_plans.c) and answers.json (commands as a user calls
# them, without times of the clock).  Two builds of the same behaviour leave the
# same bytes: `diff -r OLD/build/record NEW/build/record`.
#
# The digests of the record are held against those in frozen.tsv: exit code 4
# where one differs, with its plans or its command.  A commit that changes
# behaviour on purpose writes them anew (UPDATE=1) and lists what changed.
# Digests hold numbers to the last bit, so they are those of one C library.
#
#   PLANS=N   random plans for each full scene (default 2254, 14,200 in all);
#             another number is recorded and not compared
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
out=$build/record
mkdir -p "$out"
"$build/tests/record/record_plans" 2385 "${PLANS:-2254}" >"$out/plans.txt" ||
    exit 1

forerun=$(realpath "$build")/forerun
answer() { # ARGUMENTS ...: one object, without the clock's own numbers
    echo "== $*"
    "$forerun" "$@" --json 2>&1
    echo "exit $?"
}
{
    # The spaces of bench-tuner, as a user asks for them.
    answer tune gpt-1t dgx-a100:512 --global-batch 4096 --seq 2048 \
        --precision bf16 --ranks 4096
    answer tune gpt3-175b dgx-a100:128 --global-batch 1536 --seq 2048 \
        --precision bf16 --ranks 1024
    answer tune llama-3-405b dgx-h100:2048 --global-batch 2048 --seq 8192 \
        --precision bf16 --ranks 16384
    answer tune mixtral-8x7b selene-like --global-batch 256 --seq 4096
    answer tune llama-3-8b mixed-a100-v100 --global-batch 64 --seq 2048
    answer tune gpt2-mini tests/record/cpu_hosts.xml
    answer tune resnet-50 dgx-a100:2 --global-batch 512
    for goal in step throughput time cost energy headroom; do
        answer tune gpt2-1.5b dgx-h100:2 --global-batch 256 --goal "$goal" \
            --tokens 1B
    done
    answer tune gpt2-1.5b dgx-h100:2 --global-batch 256 --goal devices \
        --tokens 1B --deadline 10d
    answer tune gpt2-1.5b dgx-h100:2 --global-batch 256 --goal loss \
        --tokens 1B --critical-batch 1000000
    answer tune llama-3-8b dgx-h100:2 --global-batch 64 --seq 4096 \
        --allow lossy --search random
    for name in megatron deepspeed torchtitan; do
        answer tune llama-3-8b dgx-h100:2 --global-batch 64 --for "$name"
    done
    for model in gpt2-124m gpt2-1.5b llama-3-8b mixtral-8x7b bert-large; do
        for cluster in dgx-h100:4 selene-like cloud-p4d-8 torus-64; do
            answer simulate "$model" "$cluster" --dp 4 --tp 4 --pp 2 \
                --global-batch 64 --seq 512
        done
    done
    answer explain llama-3-8b dgx-h100:2 --dp 8 --tp 2 --global-batch 64
    answer sweep llama-3-8b dgx-h100:2 --global-batch 64 --vary nodes=1,2,4
} | grep -vE '"(wall_s|events_per_s|[a-z_]*cpu_s)"' >"$out/answers.json"
n=$(grep -c ' step ' "$out/plans.txt")
echo "$n plans simulated, $(wc -l <"$out/plans.txt") drawn: $out"

[ -z "${PLANS:-}" ] || exit 0
tests/record/digests.py "$out" >"$out/digests.tsv" || exit 1
if [ "${UPDATE:-0}" = 1 ]; then
    cp "$out/digests.tsv" tests/record/frozen.tsv
    exit
fi
diff tests/record/frozen.tsv "$out/digests.tsv" |
    sed -n 's/^> [0-9a-f]*\t/differs: /p' | tee "$out/differs.txt"
[ ! -s "$out/differs.txt" ] || exit 4
