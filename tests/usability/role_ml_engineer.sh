#!/bin/bash
# role_ml_engineer.sh: two configurations of Hugging Face and four DGX H100:
# will it fit, how fast is it, what should be changed?
. "$(dirname "$0")/expect.sh"
llama=$fixtures/llama-3.1-8b/config.json
qwen=$fixtures/qwen2.5-7b

# Nothing else said: the whole cluster, the length that was asked for, and a
# header that tells what was assumed.
ask forerun simulate "$llama" dgx-h100:4 --dp 32 --seq 8192 -q
ends_with 0
says 'batch 32, sequence 8192, 32 of 32 GPUs, bf16, .*jitter' \
    '^step .*\(90 % between' '^DOES NOT FIT: needs .* of 79\.6 GiB \(.* sure\)'
# Which attention an MFU counts stands beside it.
says 'MFU .*attention counted in full, .*causal half'

# Why not, by how much, and the smallest changes after which it does.
ask forerun simulate "$qwen" dgx-h100:4 --seq 8192 --micro-batch 4 -q
says 'GiB too large' 'activations of .*4 sequences' \
    'optimizer state, not sharded' '^it fits with +step +memory +fits' \
    '^zero 0 -> [123], .* (9[0-9]|>99) %'

# One option makes it fit; it is the header's plan, and the parts add up.
ask forerun simulate "$llama" dgx-h100:4 --seq 8192 --zero 1 --recompute full -q
ends_with 0
says 'zero1' 'fits with probability'
never_says 'DOES NOT FIT'
ask forerun simulate "$llama" dgx-h100:4 --seq 8192 --zero 1 --recompute full \
    -q --json
step_s=$(value step_s)
plain_mfu=$(value mfu)
sum=$(sed -n '/"breakdown_s"/,/}/p' "$work/.out" | grep -oE ': *[0-9.e+-]+' |
    tr -d ': ' | paste -sd+)
holds "($sum) / $step_s > 0.999 && ($sum) / $step_s < 1.001"
holds "$plain_mfu > 0.2 && $plain_mfu < 0.8"
says '"stragglers"' '"host"'

# Names and counts as hands type them.
ask forerun simulate "$llama" dgx-h100:4 --seq 4k --mbs 2 --fsdp -q
ends_with 0
says 'mb2 .*zero3' 'batch 64,'
ask forerun simulate "$llama" dgx-h100:4 --seq 8192 --precision bfloat16 \
    --batch-size 64 -q
ends_with 0
says 'batch 64, sequence 8192, .* bf16'
ask env FORERUN_MIRCO_BATCH=2 forerun simulate "$llama" dgx-h100:4 --seq 4096
ends_with 0
warns 'FORERUN_MIRCO_BATCH.*FORERUN_MICRO_BATCH'
ask forerun simulate "$llama" a100:4 --seq 4096
ends_with 5
warns "did you mean 'dgx-a100'"
ask forerun simulate "$llama" p5:8 --seq 4096
ends_with 5
warns "did you mean 'p5.48xlarge'"

ask forerun simulate "$llama" a3-mega:4 --seq 4096
ends_with 5
warns "did you mean 'a3-megagpu-8g'"
ask forerun simulate "$llama" h100-sxm:8 --seq 4096
ends_with 5
warns "did you mean 'dgx-h100'"
ask forerun simulate mixtral dgx-h100:4
ends_with 5
warns "did you mean 'mixtral-8x7b'"
ask forerun simulate "$llama" dgx-h100:4 --seq 4096 --precision BF16 \
    --optimizer AdamW --flash-attn -q
ends_with 0
ask forerun simulate "$llama" dgx-h100:4 --overlap 0
ends_with 2
warns 'write --overlap=0'
ask forerun simulate "$llama" dgx-h100:4 --gradient-accumulation-steps 4
ends_with 2
warns 'dp x micro-batch x steps'
# What belongs to nothing of the plan is named, and what is not as it is called.
ask forerun simulate "$llama" dgx-h100:4 --seq 4096 --compress-by tensor \
    --zero-prefetch 3
ends_with 0
warns '--compress-by, --zero-prefetch are ignored'
ask forerun simulate "$llama" dgx-h100:4 --seq 4096 --compress int8 -q
says 'int8 are gathered'

# Beyond the positions of the model: said, and answered.
ask forerun simulate "$qwen" dgx-h100:4 --seq 65536
ends_with 0
warns '65536 is beyond the 32768 positions'

# What the devices cannot do is refused with what they can.
ask forerun simulate "$llama" dgx-a100:4 --seq 8192 --collective nvls
ends_with 5
warns 'no nvls' 'ring'
ask forerun simulate "$llama" dgx-h100:4 --seq 8192 --zero 1 --collective ring \
    -q --json
ring_s=$(value step_s)
holds "$ring_s > 0"

# Gradients in 16 bits add up on the wire: not slower than gathering 32 times.
ask forerun simulate "$llama" dgx-h100:4 --dp 32 --seq 4096 -q --json
plain_s=$(value step_s)
ask forerun simulate "$llama" dgx-h100:4 --dp 32 --seq 4096 --compress bf16 -q --json
holds "$(value step_s) < 1.1 * $plain_s"

# A collective by itself: what NCCL takes is marked, larger is never slower.
ask forerun collective all_reduce 1MB..1GB dgx-h100:4 -q
ends_with 0
says 'algbw' 'busbw' '\*[0-9.]+ [mu]s' 'nvls' 'ring'
# On 24 ranks, too, NCCL has trees; all that were asked for are shown.
ask forerun collective allreduce 1MB dgx-h100:3 -q
ends_with 0
says 'double-tree' '\*[0-9.]+ us +[0-9.]+ us$'
ask forerun collective all_reduce 1MB dgx-h100:1 --algorithm ring,tree -q
says 'ring +tree$'
ask forerun collective all_reduce 1MB dgx-h100:1 --algorithm rnig
ends_with 2
warns "did you mean 'ring'" 'double-tree'
ask forerun collective all_reduce 256MB dgx-h100:4 -q --json
ends_with 0
big=$(value time_s)
ask forerun collective all_reduce 1MB dgx-h100:4 -q --json
small=$(value time_s)
holds "$big > $small && $small > 0"

# The best plan: it fits, and its probability of fitting is a column.
ask forerun tune "$llama" dgx-h100:4 --global-batch 128 --seq 8192 -q \
    -o "$work/plan.json"
ends_with 0
says 'fits' '^best .* (9[0-9]|>99) %'
never_says '^best .* [0-8][0-9] %'
# One device is not enough: by how much the plan that was simulated lacks.
says '^one device .*does not fit'
ask forerun explain "$work/plan.json" dgx-h100:4 -q
ends_with 0
says '^bound by' 'one change'
summary
