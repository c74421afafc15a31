#!/bin/bash
# Megatron-DeepSpeed: the ZeRO stage stands in a file that the script writes.
ZERO=$1
CONFIG=./ds_config.$SLURM_JOBID.json
cat <<TEMPLATE > template.json
{
    "train_micro_batch_size_per_gpu": CONFIG_MICRO,
    "zero_optimization": {"stage": CONFIG_STAGE}
}
TEMPLATE
sed -e "s/CONFIG_MICRO/2/" template.json | sed "s/CONFIG_STAGE/${ZERO}/" > $CONFIG
deepspeed --num_nodes ${NODES:-2} --num_gpus 8 pretrain_gpt.py --num-layers 8 \
    --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --fp16 \
    --max-position-embeddings 2048 --vocab-size 32000 --micro-batch-size 2 \
    --global-batch-size 64 --deepspeed --deepspeed_config $CONFIG
