#!/bin/bash
# Written by forerun from plan.json: mixtral-8x7b
# Plan: dp4 tp2 pp4 ep4 mb1 interleaved vpp2 zero1 sp recompute=selective:attention,experts fp8 current-scaling flash split=3-4-4-4-4-4-4-5
# Predicted: 2.918 s a step, 1.796e+05 tokens/s
# Not in this file:
# dp 4: the ranks that the other degrees leave
# schedule interleaved: 1f1b without virtual stages, interleaved with them
#
# Arguments of pretrain_gpt.py of Megatron-LM, tag core_v0.19.0.
# MEGATRON is its folder.  Run it on each of 4 nodes, or export for a launcher
# (--to slurm --program megatron); more arguments may follow.
# Its warm-up begins with a rate of 0, a step behind forerun's.
set -euo pipefail

MEGATRON=${MEGATRON:?the folder of Megatron-LM}
# asked for with tp and cp before Blackwell
export CUDA_DEVICE_MAX_CONNECTIONS=1

# The model.
MODEL=(
    --num-layers 32
    --hidden-size 4096
    --ffn-hidden-size 14336
    --num-attention-heads 32
    --group-query-attention
    --num-query-groups 8
    --kv-channels 128
    --seq-length 4096
    --max-position-embeddings 32768
    --position-embedding-type rope
    --rotary-base 1000000
    --normalization RMSNorm
    --norm-epsilon 1e-05
    --swiglu
    --disable-bias-linear
    --untie-embeddings-and-output-weights
    --num-experts 8
    --moe-router-topk 2
    --moe-grouped-gemm
    --moe-ffn-hidden-size 14336
)

# The job.
TRAINING=(
    --micro-batch-size 1
    --global-batch-size 128
    --train-iters 20
    --seed 1
    --optimizer adam
    --adam-beta1 0.9
    --adam-beta2 0.95
    --adam-eps 1e-08
    --weight-decay 0.1
    --clip-grad 1
    --lr 0.0003
    --min-lr 0
    --lr-decay-style constant
    --lr-decay-iters 20
    --lr-warmup-iters 0
    --attention-dropout 0
    --hidden-dropout 0
    --eval-iters 0
    --log-interval 1
)

# The data.
DATA=(
    # For data of tools/preprocess_data.py: --data-path PREFIX, and their tokenizer.
    --mock-data
    --tokenizer-type NullTokenizer
    # the vocabulary is padded to a multiple of 128 x tp
    --vocab-size 32000
)

# How it is split.
PARALLEL=(
    --tensor-model-parallel-size 2
    --sequence-parallel
    --pipeline-model-parallel-size 4
    --pipeline-model-parallel-layout 'Et*3|t*4|t*4|t*4|t*4|t*4|t*4|t*5L'
    --context-parallel-size 1
    --expert-model-parallel-size 4
    --moe-token-dispatcher-type alltoall
)

# Data parallelism, memory and kernels.
MEMORY=(
    --use-distributed-optimizer
    --overlap-grad-reduce
    --overlap-param-gather
    --ddp-bucket-size 6250000
    --accumulate-allreduce-grads-in-fp32
    --recompute-granularity selective
    --recompute-modules core_attn moe
    --bf16
    --fp8-format hybrid
    --fp8-recipe tensorwise
    --attention-backend auto
)

ARGUMENTS=("${MODEL[@]}" "${TRAINING[@]}" "${DATA[@]}" "${PARALLEL[@]}" "${MEMORY[@]}")

# Under torchrun, each process has its rank in the environment.
if [[ -n "${LOCAL_RANK:-}" ]]; then
    exec python3 "$MEGATRON/pretrain_gpt.py" "${ARGUMENTS[@]}" "$@"
fi
exec torchrun --nnodes 4 --nproc-per-node 8 \
    --node-rank "${NODE_RANK:?0 on the first node}" \
    --master-addr "${MASTER_ADDR:?the first node}" \
    --master-port "${MASTER_PORT:-29500}" \
    "$MEGATRON/pretrain_gpt.py" "${ARGUMENTS[@]}" "$@"
