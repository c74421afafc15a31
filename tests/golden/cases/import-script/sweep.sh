# Two trainings that differ: the last is read.
for TP in 2 4; do
    python -m torch.distributed.run --nproc_per_node=8 pretrain_gpt.py \
        --num-layers 8 --hidden-size 2048 --num-attention-heads 16 --bf16 \
        --seq-length 2048 --max-position-embeddings 2048 --vocab-size 32000 \
        --micro-batch-size 1 --global-batch-size 64 \
        --tensor-model-parallel-size $TP
done
python tools/plot.py --log train.log
