#!/bin/bash
# stand_in.sh: stands for what starts a job, by the name that it is linked to:
# torchrun, mpirun, srun, sbatch, scontrol, kubectl, sky, deepspeed, accelerate,
# python3 and forerun.  Each takes its own options, as its manual has them, runs
# what the real one would run, and notes in $LOG
#   NAME FILE HASH  for each of its arguments that is a file by name of $NAMES
#   NAME argument WORD  for each argument of the program that is reached
# $LOST is where srun starts tasks on a node without the folder.
set -u
name=${0##*/}

note() { # WORD...
    local word file hash
    for word in "$@"; do
        file=${word##*/}
        case " $NAMES " in *" $file "*) ;; *) continue ;; esac
        hash=$(md5sum <"$word" 2>/dev/null) || hash=missing
        echo "$name $file ${hash%% *}" >>"$LOG"
    done
}

arguments() { # WORD...
    local word
    for word in "$@"; do
        echo "$name argument $word" >>"$LOG"
    done
}

skip_options() { # ARGUMENTS...: N_SKIPPED of options and of their values
    n_skipped=0
    while [[ ${1:-} == -* ]]; do
        case $1 in
        -x) kept+=("$2") && shift && n_skipped=$((n_skipped + 1)) ;;
        --wdir) folder=$2 && shift && n_skipped=$((n_skipped + 1)) ;;
        -np | --hostfile | --map-by | --bind-to | --nnodes | --nproc_per_node | \
            --node_rank | --master_addr | --master_port | --rdzv_*)
            shift && n_skipped=$((n_skipped + 1))
            ;;
        -m | --no-python) return ;;
        esac
        shift
        n_skipped=$((n_skipped + 1))
    done
}

kept=() folder=$PWD
case $name in
torchrun) # --no-python PROGRAM, -m MODULE or SCRIPT, with its arguments
    skip_options "$@"
    shift $n_skipped
    note "$@"
    case $1 in
    --no-python) shift && LOCAL_RANK=0 exec "$@" ;;
    -m) # `python -m` finds modules in the current directory.
        [[ " $* " != *" --module forerun_recipe "* ]] || note forerun_recipe.py
        ! grep -qs '^pipeline_parallel_schedule_csv' torchtitan.toml || note schedule.csv
        ;;
    esac
    ;;
mpirun) # Another node has of the environment only what -x exports.
    skip_options "$@"
    shift $n_skipped
    cd "$folder" || exit 1
    for i in "${!kept[@]}"; do
        [[ ${kept[i]} == *=* ]] || kept[i]="${kept[i]}=${!kept[i]}"
    done
    exec env -i PATH="$PATH" LOG="$LOG" NAMES="$NAMES" LOST="$LOST" \
        OMPI_COMM_WORLD_RANK=0 "${kept[@]}" "$@"
    ;;
srun) # A node without the folder starts tasks in /tmp.
    skip_options "$@"
    shift $n_skipped
    [ "${IS_LOST:-}" = "" ] || cd "$LOST" || exit 1
    exec env SLURM_NODEID=0 "$@"
    ;;
sbatch) # [--chdir=FOLDER] [SCRIPT [ARGUMENTS]], which runs from a spool folder
    export SLURM_SUBMIT_DIR=$PWD SLURM_JOB_ID=7 SLURM_JOB_NODELIST='n[0-1]'
    if [[ ${1:-} == --chdir=* ]]; then
        cd "${1#*=}" || exit 1
        shift
    fi
    export SLURM_JOB_RECORD=$LOST/record
    spool=$LOST/spool/job00007
    mkdir -p "$spool"
    if [ $# = 0 ]; then
        cat >"$spool/slurm_script"
        echo '   Command=(null)' >"$SLURM_JOB_RECORD"
    else
        script=$1
        shift
        [[ $script == /* ]] || script=$PWD/$script
        cp -- "$script" "$spool/slurm_script" || exit 1
        printf 'JobId=7 JobName=job\n   Command=%s\n   WorkDir=%s\n' \
            "$script${*:+ $*}" "$PWD" >"$SLURM_JOB_RECORD"
    fi
    exec bash "$spool/slurm_script" "$@"
    ;;
scontrol)
    case "$1 $2" in
    'show job') cat "$SLURM_JOB_RECORD" ;;
    'show hostnames') printf 'n0\nn1\n' ;;
    esac
    ;;
kubectl | sky)
    exec /usr/bin/python3 "${STAND_INS:?}/run_manifest.py" "$name" "$@"
    ;;
accelerate)
    note "$@"
    file=$(sed -n 's/^ *deepspeed_config_file: //p' accelerate.yaml)
    [ "$file" = "" ] || note "$file"
    ;;
deepspeed | python3 | forerun)
    note "$@"
    arguments "$@"
    ;;
esac
