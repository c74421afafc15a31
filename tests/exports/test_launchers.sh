#!/bin/bash
# test_launchers.sh: what launchers write is read by parsers that are not ours
# (bash, shellcheck, PyYAML), and starts as many processes as the plan has.
. "$(dirname "$0")/../usability/expect.sh"
export FORERUN_FORCE=1 # plans of all shapes, whatever their memory

reads() { # FILE: as the language of its name
    local ok=0
    asked="parser of $1"
    case $1 in
    *.sh | *.sbatch)
        bash -n "$1" >.out 2>.err || ok=1
        if command -v shellcheck >/dev/null; then
            shellcheck -s bash "$1" >>.out 2>&1 || ok=1
        fi
        ;;
    *.yaml)
        /usr/bin/python3 -c 'import sys, yaml
list(yaml.safe_load_all(open(sys.argv[1])))' "$1" >.out 2>.err || ok=1
        ;;
    esac
    verdict $ok "$1 cannot be parsed"
}

# has FILE PATTERN...
has() {
    local file=$1 pattern
    shift
    asked="$file"
    for pattern in "$@"; do
        grep -qE -- "$pattern" "$file"
        verdict $? "$file lacks: $pattern"
    done
}

ask forerun simulate llama-3-8b dgx-h100:4 --dp 32 --zero 2 --global-batch 64 \
    --no-gather-overlap --collective ring --nccl-protocol ll128 --nccl-channels 8 -o plan.json
ends_with 0
for launcher in torchrun mpirun slurm kubernetes skypilot; do
    ask forerun export plan.json --to $launcher --program deepspeed -o $launcher
    ends_with 0
    for file in "$launcher"/*; do
        reads "$file"
    done
    has $launcher/ds_config.json '"train_batch_size": 64'
done
has torchrun/launch.sh '--nnodes 4 --nproc_per_node 8' 'export NCCL_ALGO=Ring' \
    'export NCCL_PROTO=LL128' 'export NCCL_MIN_CTAS=8'
has mpirun/launch.sh 'mpirun -np 4 ' 'ppr:1:node' '-x NCCL_ALGO=Ring'
has slurm/job.sbatch '#SBATCH --nodes=4' '#SBATCH --ntasks-per-node=1' \
    '#SBATCH --gres=gpu:8' '#SBATCH --time=[0-9]+-[0-9]{2}:[0-9]{2}$'
has kubernetes/jobset.yaml 'parallelism: 4' 'nvidia.com/gpu: 8'
has kubernetes/pytorchjob.yaml 'nprocPerNode: "8"' 'replicas: 3'
has skypilot/task.yaml 'accelerators: H100:8' 'num_nodes: 4'
# Devices of other makers are called otherwise; files of the program can be run.
for cluster in mi300x-8:2=amd.com/gpu tpu-v6e-256=google.com/tpu dgx-h100:2=nvidia.com/gpu; do
    ask forerun simulate gpt2-tiny "${cluster%=*}" --dp 16 --micro-batch 4 --global-batch 64 -o other.json
    ask forerun export other.json --to kubernetes --program jax -o other
    ends_with 0
    reads other/jobset.yaml
    has other/jobset.yaml "^ *${cluster#*=}: [0-9]+$" '^ *defaultMode: 0755$'
    ask forerun export other.json --to kubernetes --program ddp -o other
    case $cluster in
    tpu-*)
        ends_with 3
        warns 'ddp does not run on TPUs .*; choose jax'
        ;;
    *)
        ends_with 0
        has other/pytorchjob.yaml "^ *${cluster#*=}: [0-9]+$" '^ *defaultMode: 0755$'
        ;;
    esac
done
ask forerun tune gpt2-tiny tpu-v6e-256 --global-batch 256 --for megatron
ends_with 3
warns 'megatron does not run on TPUs'
# A rack of one NVLink domain is servers of 4 GPUs.
ask forerun simulate llama-3-8b gb200-nvl72-8 --dp 64 --global-batch 64 --seq 1024 -o rack.json
for launcher in torchrun slurm kubernetes skypilot; do
    ask forerun export rack.json --to $launcher --program ddp -o rack
    ends_with 0
done
has rack/launch.sh '--nnodes 16 --nproc_per_node 4 '
has rack/job.sbatch '#SBATCH --nodes=16' '#SBATCH --gres=gpu:4'
has rack/jobset.yaml 'parallelism: 16' 'nvidia.com/gpu: 4'
has rack/task.yaml 'accelerators: GB200:4' 'num_nodes: 16'

# 4 nodes of 8 GPUs and 8 of 4: what says no number of its own for each node is refused.
ask forerun simulate llama-3-8b mixed-a100-v100 --dp 64 --global-batch 64 --seq 1024 -o mixed.json
for launcher in slurm kubernetes skypilot; do
    ask forerun export mixed.json --to $launcher --program ddp -o no
    ends_with 3
    warns 'and here 12 nodes of mixed-a100-v100 have 4 to 8'
done
ask forerun export mixed.json --to mpirun --program accelerate -o no
ends_with 3
for launcher in torchrun mpirun; do
    ask forerun export mixed.json --to $launcher --program megatron -o mixed
    ends_with 0
    reads mixed/launch.sh
    has mixed/launch.sh 'torchrun --nnodes 12 --nproc_per_node gpu '
done
has mixed/megatron.sh 'torchrun --nnodes 12 --nproc_per_node gpu '
ask forerun simulate llama-3-8b mixed-a100-v100 --dp 64 --precision f32 --global-batch 64 \
    --seq 1024 -o mixed.json
ask forerun export mixed.json --to mpirun --program forerun -o mixed
ends_with 0
has mixed/launch.sh 'mpirun -np 64 --hostfile "\$hostfile" --map-by slot '
ask forerun simulate llama-3-8b mixed-a100-v100 --dp 64 --zero 3 --global-batch 64 --seq 1024 \
    -o mixed.json
ask forerun export mixed.json --to deepspeed -o mixed
ends_with 0
has mixed/run_deepspeed.sh '--num_nodes 12 \\$'
ask forerun simulate llama-3-8b mixed-a100-v100 --dp 61 --global-batch 61 --seq 1024 -o mixed.json
ask forerun export mixed.json --to torchrun --program ddp -o no
ends_with 3
ask forerun simulate llama-3-8b mixed-a100-v100 --dp 32 --global-batch 64 --seq 1024 -o mixed.json
ask forerun export mixed.json --to slurm --program ddp -o mixed
ends_with 0
has mixed/job.sbatch '#SBATCH --nodes=4' '#SBATCH --gres=gpu:8'
ask forerun simulate gpt2-tiny two-generations --dp 128 --global-batch 128 -o mixed.json
ask forerun export mixed.json --to skypilot --program ddp -o no
ends_with 3
warns 'two-generations have several devices'
# Of 13 ranks no two nodes of 8 have as many.
ask forerun simulate gpt2-tiny dgx-h100:2 --dp 13 --global-batch 13 -o mixed.json
ask forerun export mixed.json --to slurm --program ddp -o no
ends_with 3
warns 'have 5 to 8'
ask forerun export plan.json dgx-h100:2 --to slurm --program deepspeed -o no
ends_with 3
warns '32 ranks do not fit'

# Words of NCCL_ALGO: an operation without an algorithm would stop the job.
words() { # NCCL_ALGO COLLECTIVE CLUSTER OPTION...
    local word=$1 collective=$2
    shift 2
    rm -rf words
    ask forerun simulate llama-3-8b "$@" --global-batch 128 --seq 4096 \
        --collective "$collective" -o words.json
    ends_with 0
    for launcher in torchrun mpirun slurm kubernetes skypilot; do
        ask forerun export words.json --to $launcher --program ddp \
            -o words/$launcher
        ends_with 0
        for file in words/$launcher/*; do
            reads "$file"
        done
    done
    # shellcheck disable=SC2016 # Bash of the file's.
    asked="NCCL_ALGO of $collective"
    [ "$(bash -c "$(grep '^export NCCL_ALGO=' words/torchrun/launch.sh)
        echo \"\$NCCL_ALGO\"")" = "$word" ]
    verdict $? "NCCL_ALGO is not $word"
    has words/torchrun/train_ddp.py "\"NCCL_ALGO\": \"$word\"" 'NCCL 2.24'
    ask forerun export words.json --to megatron -o words/megatron.sh
    reads words/megatron.sh
    ask forerun import megatron words/megatron.sh --model llama-3-8b \
        -o again.json
    ends_with 0
    has again.json "\"collective\": \"$collective\""
}
words allreduce:Tree double-tree dgx-h100:4 --zero 0
words allreduce:NVLS,NVLSTree,Ring nvls dgx-h100:4 --zero 0
words 'allreduce:NVLS,Ring;allgather:NVLS,Ring;reducescatter:NVLS,Ring' nvls \
    dgx-h100:1 --zero 1 --no-gather-overlap

# Slurm knows every directive (man sbatch).
asked="directives of sbatch"
! grep -oE '^#SBATCH --[a-z-]+' slurm/job.sbatch |
    grep -vE -- '--(job-name|nodes|ntasks-per-node|gres|exclusive|output|time)$'
verdict $? "a directive that sbatch does not have"

# Accelerate, by each of its backends, alone and started on every node.
accelerate() { # OPTION...
    rm -rf acc
    ask forerun simulate llama-3-8b dgx-h100:4 --global-batch 256 "$@" \
        -o acc.json
    ask forerun export acc.json --to accelerate -o acc/alone
    ends_with 0
    for launcher in mpirun slurm kubernetes skypilot; do
        ask forerun export acc.json --to $launcher --program accelerate \
            -o acc/$launcher
        ends_with 0
    done
    for file in acc/*/*; do
        reads "$file"
    done
}
accelerate --dp 32
has acc/alone/accelerate.yaml 'distributed_type: MULTI_GPU'
has acc/mpirun/launch.sh '-x MASTER_ADDR=' 'bash "\$folder/run_accelerate.sh"'
has acc/slurm/job.sbatch '#SBATCH --ntasks-per-node=1'
accelerate --dp 8 --tp 2 --cp 2 --zero 3 --grad-dtype bf16 --kernels compiled
has acc/alone/accelerate.yaml 'distributed_type: FSDP' 'INDUCTOR'
accelerate --dp 32 --zero 2 --no-gather-overlap
has acc/alone/accelerate.yaml 'distributed_type: DEEPSPEED'
has acc/alone/ds_config.json '"stage": 2'
accelerate --dp 8 --pp 4 --no-overlap --recompute full
has acc/alone/accelerate.yaml 'distributed_type: MEGATRON_LM'

# Ranks that are no multiple of a node's devices, one node, and CPUs.
ask forerun simulate llama-3-8b dgx-h100:2 --dp 12 --zero 3 --global-batch 24 -o odd.json
ask forerun export odd.json --to slurm --program deepspeed -o odd
has odd/job.sbatch '#SBATCH --nodes=2' '--nproc_per_node 6'
ask forerun simulate llama-3-8b dgx-h100:1 --dp 8 --zero 3 --global-batch 24 -o one.json
ask forerun export one.json --to torchrun --program deepspeed -o one
has one/launch.sh '--nnodes 1 --nproc_per_node 8 --no-python "\$folder/run_deepspeed.sh"'
ask forerun simulate gpt2-demo this-machine --dp 2 --global-batch 4 --seq 64 \
    -o cpu.json
ask forerun export cpu.json --to forerun-slurm -o cpu
ends_with 0
has cpu/job.sbatch '#SBATCH --ntasks-per-node=2' \
    'srun --kill-on-bad-exit=1 --mpi=pmix forerun run "\$folder/plan.json" --backend cpu'
ask forerun run cpu/plan.json --steps 1
ends_with 0

# What cannot be.
ask forerun export plan.json --to slurm
ends_with 2
warns 'give --program'
ask forerun export plan.json --to slurm --program nobody
ends_with 2
ask forerun export plan.json --to deepspeed --program deepspeed
ends_with 2
ask forerun export cpu.json --to skypilot --program forerun -o no
ends_with 3
warns 'take slurm or mpirun'
ask forerun export plan.json --to kubernetes --program deepspeed
ends_with 2
warns 'give a folder'
ask forerun export plan.json --to deepspeed --version 1.0
ends_with 2
ask forerun export plan.json nowhere-at-all --to slurm --program deepspeed -o no
ends_with 5

# The page says what the table says.
asked="docs/exports.md"
FORERUN=$(command -v forerun) "$root/tests/exports/fates.sh" >fates.txt
[ "$(grep -cxFf fates.txt "$root/docs/exports.md")" = "$(wc -l <fates.txt)" ]
verdict $? "its table is old: tests/exports/fates.sh --update"
summary
