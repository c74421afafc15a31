#!/bin/bash
# first_answers.sh: what is printed first can be launched: without a plan the
# answer is one that fits, images are counted as images, and a search that finds
# nothing proposes what does fit and what the framework can do.
. "$(dirname "$0")/expect.sh"
# A cluster of unlike nodes, those of the old generation first.
old_first=$work/old-first.xml
awk '/<group id="a100"/ { kept = $0; next } { print }
    /<group id="v100"/ { print kept }' \
    "$root/configs/clusters/mixed-a100-v100.xml" >"$old_first"

fits() { # the plan of the answer
    says '"fits": true'
}

# ---- a model and a cluster alone ---------------------------------------------

while read -r model cluster; do
    ask forerun simulate "$model" "$cluster" --json
    ends_with 0
    fits
    warns "no plan was given: this is the best plan of a quick search"
done <<'END'
gpt2-124m dgx-a100
bert-large p4d.24xlarge:2
resnet-50 dgx-h100:4
llama-3-8b dgx-h100
llama-3-70b dgx-h100:4
mixtral-8x7b dgx-h100:2
gpt3-175b dgx-a100:16
END
# One decision is a plan that somebody has made: it stays as it is.
ask forerun simulate llama-3-70b dgx-h100:4 --tp 8
says 'dp4 tp8 pp1 mb1'
says '^DOES NOT FIT'

# ---- micro-batches and images ------------------------------------------------

# All of a rank's images at once, if they fit.
ask forerun simulate resnet-50 dgx-a100:4 --dp 32 --global-batch 2048
ends_with 0
says 'dp32 tp1 pp1 mb64 '
says '[0-9] images/s'
ask forerun simulate resnet-50 dgx-a100:4 --dp 32 --global-batch 2048 --micro-batch 1
says 'dp32 tp1 pp1 mb1 '
ask forerun simulate bert-large dgx-a100 --dp 8 --global-batch 256
says 'dp8 tp1 pp1 mb32 '
# A share that does not fit is cut until it does.
ask forerun simulate bert-large dgx-a100 --dp 8 --global-batch 4096 --json
fits
says 'dp8 tp1 pp1 mb[0-9]+ '
ask forerun sweep resnet-50 dgx-a100 --vary nodes=1,2
ends_with 0
says '^batch 512, bf16, fused kernels, jitter'
says 'images/s'

# ---- nothing fits ------------------------------------------------------------

ask forerun tune llama-3-70b dgx-a100 --framework deepspeed --global-batch 32 --seq 4096
ends_with 3
says '^offload-optimizer'
warns 'it fits with offload-optimizer$'
ask forerun tune llama-3-70b dgx-h100 --global-batch 32 --seq 4096
ends_with 3
warns 'it fits with .*offload-optimizer$'
# DeepSpeed under Hugging Face models has no pipeline and no tensor parallelism
# that the plan did not have.
ask forerun simulate llama-3-8b dgx-a100 --framework deepspeed --dp 8 --global-batch 8
ends_with 0
says '^DOES NOT FIT'
says '^zero 0 -> '
never_says '(pp|tp) 1 -> '

# ---- one node of a mixed cluster ---------------------------------------------

one_node() { # CLUSTER: prints the step of the baseline
    ask forerun tune gpt2-124m "$1" --global-batch 64 --seq 1024 --tp 1 --cp 1 \
        --zero 1 --schedule 1f1b --json
    ends_with 0
    sed -n '/"what": "one node"/,$p' "$work/.out" |
        grep -o '"step_s": *[0-9.e-]*' | head -n 1 | grep -o '[0-9.e-]*$'
}
new=$(one_node mixed-a100-v100) old=$(one_node "$old_first")
[ -n "$new" ] && awk "BEGIN { exit !($new / $old > 0.99 && $new / $old < 1.01) }"
verdict $? "one node takes $new s where its kind is the first, $old s where it is not"
summary
