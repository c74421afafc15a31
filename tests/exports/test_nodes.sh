#!/bin/bash
# test_nodes.sh: what launchers write is run, on nodes that are processes here, by stand-ins
# of mpirun, srun and torchrun: JAX and TensorFlow (stubs, nodes/sitecustomize.py) find all
# nodes and devices, Megatron-LM its folder.
. "$(dirname "$0")/../usability/expect.sh"
here=$root/tests/exports/nodes
if ! /usr/bin/python3 -c 'import numpy, yaml' 2>/dev/null; then
    echo "SKIP python3-numpy or python3-yaml is not installed (./setup.sh ci)"
    echo "# 0 passed, 0 failed, 1 skipped"
    exit 0
fi
mkdir bin
ln -s /usr/bin/python3 bin/python3
export PATH=$work/bin:$PATH STUB_DEVICES=8 PYTHONDONTWRITEBYTECODE=1
unset "${!SLURM_@}" "${!OMPI_@}" MASTER_ADDR MASTER_PORT

mpirun() { # runs the command once for each rank, in the environment of Open MPI 4
    local n=1 rank hostfile="" words=()
    while :; do
        case $1 in
        -np) n=$2 ;;
        --hostfile) hostfile=$2 ;;
        --map-by | --bind-to | --wdir) ;;
        -x) [[ $2 == *=* ]] && words+=("$2") || words+=("$2=${!2}") ;;
        *) break ;;
        esac
        shift 2
    done
    [ -z "$hostfile" ] || [ -r "$hostfile" ] || return 1
    for ((rank = 0; rank < n; rank++)); do
        env "${words[@]}" OMPI_MCA_orte_hnp_uri="1.0;tcp://10.0.0.9:1" \
            OMPI_COMM_WORLD_SIZE="$n" OMPI_COMM_WORLD_RANK=$rank \
            OMPI_COMM_WORLD_LOCAL_RANK=0 "$@" || return
    done
}
srun() {
    local node
    while [ "${1#--}" != "$1" ]; do shift; done
    for ((node = 0; node < 2; node++)); do
        env SLURM_STEP_NODELIST="$SLURM_JOB_NODELIST" SLURM_NTASKS=2 \
            SLURM_PROCID=$node SLURM_NODEID=$node SLURM_LOCALID=0 "$@" || return
    done
}
scontrol() { printf 'h1\nh2\n'; }
export -f mpirun srun scontrol
# Where srun, mpirun and Kubernetes start torchrun, it is a file.
cat >bin/torchrun <<'TORCHRUN'
#!/bin/bash
while [ "$1" != --no-python ]; do shift; done
LOCAL_RANK=0 "${@:2}"
TORCHRUN
chmod +x bin/torchrun
printf '# ours\n\nh1 slots=8\nh1 slots=8\nh2 slots=8\nh3 slots=8\n' >hostfile

# starts LAUNCHER FOLDER: what it wrote there, on two nodes.
starts() {
    local node
    case $1 in
    mpirun) "$2/launch.sh" hostfile ;;
    slurm) (
        export SLURM_SUBMIT_DIR=$2 SLURM_JOB_ID=7 SLURM_JOB_NODELIST="h[1-2]"
        bash "$2/job.sbatch"
    ) ;;
    kubernetes)
        rm -rf pods
        python3 "$here/run_pods.py" "$2/jobset.yaml" pods "MEGATRON=${MEGATRON:-}"
        ;;
    skypilot)
        python3 -c 'import sys, yaml
print(yaml.safe_load(open(sys.argv[1]))["run"])' "$2/task.yaml" >run.sh
        for node in 0 1; do
            (cd "$2" && SKYPILOT_NODE_IPS=$'h1\nh2' SKYPILOT_NODE_RANK=$node \
                bash ../run.sh) || return
        done
        ;;
    esac
}
export -f starts
export here

# on_nodes PLAN PROGRAM CHECK: by each launcher.
launchers="mpirun slurm kubernetes skypilot"
on_nodes() {
    local launcher
    for launcher in $launchers; do
        rm -rf job
        ask forerun export "$1" --to "$launcher" --program "$2" -o job
        ends_with 0
        ask env PYTHONPATH="$here" bash -c "starts $launcher job"
        ends_with 0
        "${@:3}" $launcher
    done
}
plan() { # OPTION...
    ask forerun simulate gpt2-tiny dgx-h100:2 --dp 16 --global-batch 64 "$@" \
        -o plan.json
    ends_with 0
}
first_host() {
    case $1 in
    kubernetes) echo gpt2-tiny-workers-0-0.gpt2-tiny ;;
    *) echo h1 ;;
    esac
}

finds_devices() {
    says "^node 0 of 2 at $(first_host "$1"):29500, 16 devices$" \
        "^node 1 of 2 at $(first_host "$1"):29500, 16 devices$"
}
plan --zero 3
on_nodes plan.json jax finds_devices

# One worker for each node, and where parameters are served one for each rank.
last_host() {
    case $1 in
    kubernetes) echo gpt2-tiny-workers-0-1.gpt2-tiny ;;
    *) echo h2 ;;
    esac
}
finds_workers() {
    local workers
    workers="of 2: $(first_host "$1"):29600, $(last_host "$1"):29600$"
    says "^worker 0 $workers" "^worker 1 $workers"
}
plan --no-flash-attention --no-overlap
on_nodes plan.json tensorflow finds_workers
finds_servers() {
    local workers
    workers="of 2: $(first_host "$1"):29602, $(last_host "$1"):29602$"
    says "^chief 0 $workers" "^ps 0 $workers" "^ps 1 $workers" "^worker 1 $workers"
    [ "$(wc -l <"$work/.out")" = 5 ]
    verdict $? "not 5 processes"
}
ask forerun simulate gpt2-tiny gh200-1:2 --dp 2 --global-batch 64 --no-flash-attention \
    --no-overlap --collective parameter-server --server-place worker -o plan.json
ends_with 0
launchers="mpirun kubernetes"
on_nodes plan.json tensorflow finds_servers

# The optimizer's step on the host joins its norms over gloo, which Ray has to be told.
ray_joins() { # BACKEND OPTION...
    plan --zero 3 "${@:2}"
    ask forerun export plan.json --to ray-train -o job/
    ask env PYTHONPATH="$here" python3 job/train_ray_fsdp2.py
    ends_with 0
    says "^workers 16, backend $1$"
}
ray_joins cpu:gloo,cuda:nccl --offload-optimizer
ray_joins None

# Megatron-LM is found where the user says it is, on every node.
mkdir megatron
echo 'print("started")' >megatron/pretrain_gpt.py
starts_twice() {
    [ "$(grep -cx started "$work/.out")" = 2 ]
    verdict $? "not started on both nodes"
}
ask forerun simulate llama-3-8b dgx-h100:2 --dp 8 --tp 2 --zero 1 --global-batch 64 \
    -o plan.json
ends_with 0
export MEGATRON=$work/megatron
launchers="mpirun slurm kubernetes"
on_nodes plan.json megatron starts_twice
unset MEGATRON
ask forerun export plan.json --to mpirun --program megatron -o job
ask bash -c "starts mpirun job"
ends_with 1
warns 'MEGATRON: the folder of Megatron-LM'
ask forerun export plan.json --to skypilot --program megatron -o job
ends_with 0
ask python3 -c 'import yaml; print(yaml.safe_load(open("job/task.yaml"))["envs"])'
says "^{'MEGATRON': None}$"

summary
