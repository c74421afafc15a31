#!/bin/bash
# test_job_folders.sh: the folder that export writes starts its own files, wherever
# it is called from: each launcher with each program, by stand-ins for what a
# cluster has (stand_ins/), from the folder, from its parent, and from a directory
# full of stale files of the same names.
. "$(dirname "$0")/../usability/expect.sh"

FORERUN=$(command -v forerun)
export FORERUN LOG=$work/log LOST=$work/lost IMAGE=$work/image TO_BE_SET=$work/megatron
export STAND_INS=$root/tests/exports/stand_ins NAMES
stubs=$work/stubs job="$work/jobs/a job's" stale=$work/stale
mkdir -p "$stubs" "$stale" "$LOST" "$IMAGE" megatron own
for name in torchrun mpirun srun sbatch scontrol kubectl sky deepspeed accelerate python3 forerun; do
    ln -s "$STAND_INS/stand_in.sh" "$stubs/$name"
done
echo "print('of Megatron-LM')" >megatron/pretrain_gpt.py
echo "print('of the user')" >own/train.py
cp own/train.py "$IMAGE"
printf 'n0 slots=8\nn1 slots=8\n' >hostfile
: >"$LOG"

plan_of() { # MODEL NAME OPTION...
    ask "$FORERUN" simulate "$1" dgx-h100:2 "${@:3}" --global-batch 64 --seq 256 -q -o "$2.json"
    ends_with 0
}
plan() { plan_of gpt2-tiny "$@"; }
plan megatron --dp 16
plan ddp --dp 16
plan deepspeed --dp 16 --zero 2 --no-gather-overlap
plan fsdp2 --dp 16 --zero 3
plan_of llama-tiny titan --dp 4 --pp 4 --zero 3 --schedule zb-h1 --recompute full
plan jax --dp 16 --micro-batch 4
plan tensorflow --dp 16 --no-flash-attention --no-overlap
plan forerun --dp 16 --precision f32
programs="megatron=megatron megatron-bridge=ddp deepspeed=deepspeed torchtitan=titan
    accelerate=deepspeed ddp=ddp fsdp2=fsdp2 horovod=ddp jax=jax
    tensorflow=tensorflow forerun=forerun"

# An export into $job, and stale files of all its names in $stale and $LOST.
export_job() { # LAUNCHER PROGRAM PLAN
    local file
    rm -rf "$job" "$stale" "$LOST"
    mkdir -p "$stale" "$LOST"
    asked="export of $2 for $1"
    "$FORERUN" export "$3.json" --to "$1" --program "$2" -q -o "$job" >.out 2>.err || return 1
    cp own/train.py "$job/"
    NAMES="pretrain_gpt.py"
    for file in "$job"/*; do
        file=${file##*/}
        NAMES+=" $file"
        # shellcheck disable=SC2016 # Of the stale file.
        printf '#!/bin/bash\necho stale %s >>"$LOG"\n' "$file" >"$stale/$file"
        chmod +x "$stale/$file"
    done
    cp "$stale"/* "$LOST"
}

# What a start must have noted: these files, as they were written.
expected() { # PROGRAM
    case $1 in
    megatron) echo torchrun megatron.sh && echo python3 pretrain_gpt.py ;;
    megatron-bridge) echo torchrun recipe.py ;;
    deepspeed)
        echo torchrun run_deepspeed.sh
        printf 'python3 %s\n' train.py ds_config.json
        ;;
    torchtitan) echo torchrun forerun_recipe.py ;;
    accelerate) printf 'accelerate %s\n' accelerate.yaml train.py ds_config.json ;;
    ddp | fsdp2) echo "torchrun train_$1.py" ;;
    horovod | jax | tensorflow) echo "python3 train_$1.py" ;;
    forerun) echo forerun plan.json ;;
    esac | while read -r name file; do
        case $file in
        pretrain_gpt.py) hash=$(md5sum <"megatron/$file") ;;
        *) hash=$(md5sum <"$job/$file") ;;
        esac
        echo "$name $file ${hash%% *}"
    done | sort
}

# The command of a launcher, called in $PWD with the folder under the name $1.
start() { # FOLDER LAUNCHER PROGRAM [ARGUMENT]
    local MEGATRON
    MEGATRON=$(realpath --relative-to="$PWD" "$work/megatron")
    export MEGATRON
    : >"$LOG"
    case $2 in
    torchrun) "$1/launch.sh" 0 n0 "${@:4}" ;;
    mpirun) "$1/launch.sh" "$(realpath --relative-to="$PWD" "$work/hostfile")" "${@:4}" ;;
    slurm) sbatch "$1/job.sbatch" "${@:4}" ;;
    slurm-lost) IS_LOST=1 sbatch "$1/job.sbatch" ;;
    kubernetes) kubectl apply -f "$1/jobset.yaml" ;;
    pytorchjob) kubectl apply -f "$1/pytorchjob.yaml" ;;
    skypilot)
        local options=()
        [ "$3" != megatron ] || options=(--env "MEGATRON=$work/megatron")
        case $3 in deepspeed | accelerate) options=(--workdir "$work/own") ;; esac
        sky launch "${options[@]}" "$1/task.yaml"
        ;;
    esac
}

# starts LAUNCHER PROGRAM: from three places, each starts the files of the folder.
starts() {
    local place folder wanted places=("$job" "${job%/*}" "$stale")
    case $1 in kubernetes | skypilot | pytorchjob | slurm-lost) places=("$stale") ;; esac
    wanted=$(expected "$2")
    for place in "${places[@]}"; do
        folder=$(realpath --relative-to="$place" "$job")
        asked="$1 --program $2 in $(realpath --relative-to="$work" "$place")"
        (cd "$place" && PATH=$stubs:$PATH start "./$folder" "$1" "$2") >.out 2>.err </dev/null
        verdict $? "it ends with an error"
        [ "$(grep -v ' argument ' "$LOG" | sort -u)" = "$wanted" ]
        verdict $? "it starts $(tr '\n' ';' <"$LOG"), not $(echo "$wanted" | tr '\n' ';')"
    done
}

for pair in $programs; do
    program=${pair%=*} plan=${pair#*=}
    for launcher in torchrun mpirun slurm kubernetes skypilot; do
        case $launcher:$program in # These launchers do not start these programs.
        *:jax | *:tensorflow | *:accelerate) [ $launcher != torchrun ] || continue ;;
        *:horovod | *:forerun) case $launcher in mpirun | slurm) ;; *) continue ;; esac ;;
        esac
        if ! export_job $launcher "$program" "$plan"; then
            verdict 1 "it is refused"
            continue
        fi
        starts $launcher "$program"
        [ ! -e "$job/pytorchjob.yaml" ] || starts pytorchjob "$program"
        # A module is found in the current directory alone.
        [ $launcher:$program = slurm:torchtitan ] || [ $launcher != slurm ] ||
            starts slurm-lost "$program"
    done
done

# ---- how a folder is called ------------------------------------------------------

# runs PLACE COMMAND...: there, with the stand-ins and an empty log.
runs() {
    local place=$1
    shift
    asked="$* in ${place#"$work"/}"
    : >"$LOG"
    (cd "$place" && PATH=$stubs:$PATH "$@") >.out 2>.err </dev/null
    status=$?
}
notes() { # PROGRAM: what the last start must have noted
    ends_with 0
    [ "$(grep -v ' argument ' "$LOG" | sort -u)" = "$(expected "$1")" ]
    verdict $? "it starts $(tr '\n' ';' <"$LOG")"
}
starts_nothing() {
    [ "$status" != 0 ] && [ ! -s "$LOG" ]
    verdict $? "it ends with $status and starts $(tr '\n' ';' <"$LOG")"
}

export_job slurm megatron megatron
export MEGATRON=$work/megatron
mkdir -p links
ln -sf "$job" links/folder
ln -sf "$job/job.sbatch" links/script
runs "$stale" sbatch ../links/folder/job.sbatch && notes megatron
runs "$stale" sbatch "$work/links/script" && notes megatron
runs "$stale" sbatch "$job/job.sbatch" with arguments "of it's own" && notes megatron
runs / sbatch --chdir="$stale" "$job/job.sbatch" && notes megatron
runs / sbatch --chdir="${job%/*}" "./${job##*/}/job.sbatch" && notes megatron
runs "$stale" env CDPATH="$stale:$work/jobs" bash "../jobs/${job##*/}/job.sbatch"
warns 'SLURM_JOB_NODELIST'
runs "$stale" env SLURM_JOB_ID=9 SLURM_JOB_NODELIST=n0 bash "$job/job.sbatch" && notes megatron
runs "$stale" bash -c "sbatch <'../jobs/a job'\''s/job.sbatch'"
starts_nothing
warns 'JOB_DIR: job.sbatch came from a pipe: set JOB_DIR to its folder'
runs "$stale" bash -c "JOB_DIR='../jobs/a job'\''s' sbatch <'../jobs/a job'\''s/job.sbatch'"
notes megatron
mkdir -p bare
cp "$job/job.sbatch" bare
runs "$stale" sbatch ../bare/job.sbatch
starts_nothing
warns "job.sbatch: '.*/bare' has no megatron.sh; start the job.sbatch of a whole folder"

# A folder from a pipe is no folder; a link to its script is one.
export_job torchrun megatron megatron
ln -sf "$job/launch.sh" links/launch
runs "$stale" ../links/launch 0 n0 && notes megatron
runs "$stale" env CDPATH="$stale:$work/jobs" "../jobs/${job##*/}/launch.sh" 0 n0 && notes megatron
runs "$stale" bash -c "bash -s 0 n0 <'../jobs/a job'\''s/launch.sh'"
starts_nothing

for launcher in torchrun mpirun; do
    export_job $launcher megatron megatron
    rm -rf bare
    mkdir bare
    cp "$job/launch.sh" bare
    runs "$stale" ../bare/launch.sh ../hostfile n0
    starts_nothing
    warns "launch.sh: '.*/bare' has no megatron.sh; start the launch.sh of a whole folder"
done

# ---- scripts of the user ---------------------------------------------------------

# Their kind, and their path from where the job is called.
kinds() { # LAUNCHER: the option that each kind of script reads, before the user's own
    local kind wanted own=--own
    [ "$1" != kubernetes ] || own=""
    export_job "$1" deepspeed deepspeed
    for kind in deepspeed trainer; do
        wanted="--deepspeed --deepspeed_config"
        [ $kind = deepspeed ] || wanted="--deepspeed"
        wanted+=${own:+ $own}
        asked="SCRIPT_KIND=$kind of $1"
        (cd "$stale" && PATH=$stubs:$PATH SCRIPT_KIND=$kind \
            start "../jobs/${job##*/}" "$1" deepspeed $own) >.out 2>.err </dev/null
        [ "$(grep -o ' argument --.*' "$LOG" | sed 's/ argument //' | paste -sd ' ')" = "$wanted" ]
        verdict $? "it passes $(tr '\n' ';' <"$LOG")"
    done
}
for launcher in torchrun mpirun slurm kubernetes; do
    kinds $launcher
    has_kind=$(grep -l 'SCRIPT_KIND' "$job"/job.sbatch "$job"/launch.sh "$job"/jobset.yaml 2>/dev/null)
    [ "$has_kind" != "" ]
    verdict $? "the job does not say for which kind of script it is"
done

# without_launcher PROGRAM SCRIPT: what starts a program alone, and its TRAIN.
without_launcher() {
    ask "$FORERUN" export deepspeed.json --to "$1" -q -o "$job/"
    ends_with 0
    export NODE_RANK=0 MASTER_ADDR=n0
    cp own/train.py hostfile "$job/"
    runs "$stale" "../jobs/${job##*/}/$2"
    ends_with 0
    [ "$(grep -v ' argument ' "$LOG" | cut -d ' ' -f 2,3 | sort -u)" = "$(
        expected "$1" | grep -v run_ | cut -d ' ' -f 2,3
    )" ]
    verdict $? "it starts $(tr '\n' ';' <"$LOG")"
    rm "$job/train.py"
    runs "$stale" "$job/$2"
    starts_nothing
    warns "$2: '.*/train.py' does not exist; TRAIN=FILE names the training script"
    runs "$work" env TRAIN=own/train.py "$job/$2"
    ends_with 0
    grep -q " train.py $(md5sum <own/train.py | cut -d ' ' -f 1)" "$LOG"
    verdict $? "it does not start TRAIN"
}
export_job slurm deepspeed deepspeed
without_launcher deepspeed run_deepspeed.sh
runs "$work" env TRAIN=own/train.py SCRIPT_KIND=other "$job/run_deepspeed.sh"
starts_nothing
warns 'SCRIPT_KIND=other is neither trainer nor deepspeed'
cp own/train.py "$job/"
rm -f "$job/hostfile"
runs "$stale" env -u LOCAL_RANK -u HOSTFILE "$job/run_deepspeed.sh"
starts_nothing
warns "run_deepspeed.sh: '.*/hostfile' does not exist; HOSTFILE=FILE names it"
export_job slurm accelerate deepspeed
without_launcher accelerate run_accelerate.sh
# From the newest whole checkpoint, where there is one.
ask "$FORERUN" export deepspeed.json --to accelerate --checkpoint "kept here" -q -o "$job/"
cp own/train.py "$job/"
resumed() { grep -o 'resume_from_checkpoint.*' "$LOG" "$work/.out" "$work/.err" | head -1; }
mkdir -p "$job/kept here"/checkpoint-{5,20,100}
runs "$stale" bash -x "$job/run_accelerate.sh"
ends_with 0
[ "$(resumed)" = "" ]
verdict $? "it continues from a checkpoint that is not whole: $(resumed)"
touch "$job/kept here"/checkpoint-{5,20}/trainer_state.json
runs "$stale" bash -x "$job/run_accelerate.sh"
ends_with 0
warns "--resume_from_checkpoint 'kept here/checkpoint-20'"
summary
