torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 512 \
    --num-attention-heads 8 --max-position-embeddings 512 --seq-length 512 \
    --micro-batch-size 1 --vocab-size 1024 --num-experts 16 \
    --moe-layer-freq '([0]*2+[1]*(2*3))' --moe-router-topk 4 \
    --moe-router-score-function sigmoid --moe-router-num-groups 8 \
    --moe-router-group-topk 2 --moe-router-topk-scaling-factor 2.5 \
    --moe-router-enable-expert-bias \
    --step-batch-size-schedule "0:16 2.4B:320,12B:1.536K"
