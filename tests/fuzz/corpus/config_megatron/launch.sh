#!/bin/bash
#SBATCH --nodes=2
# The forms that launch scripts take: sizes by case, functions, sourced files,
# here-documents, arguments and what only the machine knows.
set -euo pipefail
source "$(dirname "$0")/sizes.sh"
MODEL=${1:-7b}
TP=$2
GPUS=${GPUS_PER_NODE:-8}
WORLD=$((GPUS * SLURM_NNODES))
set_size "$MODEL" || { echo "unknown $MODEL" >&2; exit 1; }
if [ ! -d "$CHECKPOINTS" ]; then
    mkdir -p "$CHECKPOINTS"
fi
LOGGING=(--log-interval 1)
if [[ -n "$WANDB_KEY" ]]; then
    LOGGING+=(--wandb-project "$USER")
fi
PARALLEL="--tensor-model-parallel-size $TP"
(( TP > 1 )) && PARALLEL+=" --sequence-parallel"
if [ "$PRECISION" == fp8 ]; then
    PARALLEL+=" --fp8-format hybrid"
fi
cat > ds.json <<JSON
{"train_batch_size": $((WORLD * 4))}
JSON
CMD="torchrun --nproc_per_node $GPUS --nnodes $SLURM_NNODES pretrain_gpt.py ${SIZE[*]} \\
    --seq-length 2048 --max-position-embeddings 2048 --vocab-size 32000 --bf16 \\
    --micro-batch-size 1 --global-batch-size $((WORLD * 4)) $PARALLEL ${LOGGING[@]} $EXTRA"
srun bash -c "$CMD 2>&1 | tee log.txt"
