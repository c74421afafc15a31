#!/bin/bash
# test_job.sh: the job of a plan reaches every file that is exported: its steps
# follow from its tokens, and the learning-rate schedule, the time limit, the
# checkpoints and the data are written, or the file names what it leaves out.
. "$(dirname "$0")/../usability/expect.sh"

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

lacks() { # FILE PATTERN
    asked="$1"
    ! grep -qE -- "$2" "$1"
    verdict $? "$1 has: $2"
}

steps_of() { # TOKENS BATCH SEQ: the last step is a full one
    echo $((($1 + $2 * $3 - 1) / ($2 * $3)))
}

job_of() { # PLAN KEY
    sed -nE "s/^ +\"$2\": ([0-9]+),?\$/\\1/p" "$1"
}

job_has() { # PLAN STEPS TOKENS
    asked="$1"
    [ "$(job_of "$1" steps) $(job_of "$1" tokens)" = "$2 $3" ]
    verdict $? "its job has $(job_of "$1" steps) steps, $(job_of "$1" tokens) tokens; expected $2, $3"
}

# ---- the plan keeps the tokens -----------------------------------------------
T=1000000000000
small=(gpt2-1.5b dgx-h100:2 --seq 1024 --global-batch 512)
ask forerun tune "${small[@]}" --tp 1 --pp 1 --cp 1 --tokens 1T -o tuned.json -q
ends_with 0
job_has tuned.json "$(steps_of $T 512 1024)" $T
ask forerun simulate "${small[@]}" --dp 16 --tokens 1T -o plan.json -q
job_has plan.json "$(steps_of $T 512 1024)" $T
# Whatever changes the batch changes the steps.
ask forerun simulate plan.json dgx-h100:2 --global-batch 96 -o other.json -q
job_has other.json "$(steps_of $T 96 1024)" $T
ask forerun simulate plan.json dgx-h100:2 --seq 256 -o other.json -q
job_has other.json "$(steps_of $T 512 256)" $T
# The other of the two takes the place of what the plan has.
ask forerun simulate plan.json dgx-h100:2 --steps 500 -o other.json -q
job_has other.json 500 ""
ask forerun simulate other.json dgx-h100:2 --tokens 3B -o other.json -q
job_has other.json "$(steps_of 3000000000 512 1024)" 3000000000
# A batch that nobody gave is chosen before the steps are counted.
ask forerun simulate gpt2-1.5b dgx-h100:2 --tokens 1T -o other.json -q
job_has other.json "$(steps_of $T "$(job_of other.json global_batch)" "$(job_of other.json seq)")" $T
# With a critical batch the plan trains on the tokens of its own batch:
# E (1 + B / B_crit), here twice as many.
ask forerun tune gpt2-1.5b dgx-h100:2 --seq 1024 --global-batch 512 --tp 1 --pp 1 --cp 1 \
    --goal loss --tokens 1T --critical-batch $((512 * 1024)) -o other.json -q
job_has other.json "$(steps_of $((2 * T)) 512 1024)" $((2 * T))
# A list of layers counts samples.
ask forerun simulate resnet-50 dgx-h100:1 --dp 8 --global-batch 256 --tokens 128116700 -o images.json -q
job_has images.json "$(steps_of 128116700 256 1)" 128116700
# The plan says how long the run is, and what it costs.
ask forerun simulate plan.json dgx-h100:2 -q
says "1 T tokens, $(steps_of $T 512 1024) steps"
ask forerun goodput plan.json dgx-h100:2 -q --runs 3
full=$(grep -oE '[0-9.]+ days' "$work/.out" | head -1)
ask forerun goodput "${small[@]}" --dp 16 --tokens 1T -q --runs 3
says "$full"

# ---- contradictions ----------------------------------------------------------
for command in simulate tune explain goodput; do
    ask forerun $command "${small[@]}" --tokens 1T --steps 500
    ends_with 2
    warns '--tokens 1T and --steps 500 both say'
done
ask forerun sweep "${small[@]}" --fixed --dp 16 --vary steps=5,6 --tokens 1T
ends_with 2
ask forerun run plan.json --tokens 1T --steps 5
ends_with 2
# A flag goes before the environment.
FORERUN_STEPS=500 ask forerun simulate "${small[@]}" --dp 16 --tokens 1T -o other.json -q
job_has other.json "$(steps_of $T 512 1024)" $T
FORERUN_TOKENS=1T ask forerun simulate "${small[@]}" --dp 16 --steps 500 -o other.json -q
job_has other.json 500 ""
# A file that says both has to mean the same.
line=$(grep -nE '"steps": ' plan.json | cut -d: -f1)
sed -E 's/"steps": [0-9]+/"steps": 20/' plan.json >bad.json
ask forerun simulate bad.json dgx-h100:2
ends_with 5
warns "bad.json:$line: steps is 20, but $T tokens take $(steps_of $T 512 1024) steps"
sed -E '/"steps": [0-9]+/d' plan.json >short.json
ask forerun simulate short.json dgx-h100:2 -o other.json -q
ends_with 0
job_has other.json "$(steps_of $T 512 1024)" $T

# ---- runs --------------------------------------------------------------------
ask forerun simulate gpt2-tiny this-machine --dp 1 --seq 32 --global-batch 2 --tokens 250 \
    -o tiny.json -q
job_has tiny.json 4 250
ask forerun run tiny.json --steps 2 --checkpoint kept -q
says ': 2 steps'
# The length is no part of what a checkpoint has to agree with.
ask forerun run tiny.json --checkpoint kept --resume -q
ends_with 0
says ': 2 steps' # 3 and 4
ask forerun run tiny.json --tokens 320 -q
says ': 5 steps'

# ---- sweeps ------------------------------------------------------------------
ask forerun sweep "${small[@]:0:4}" --fixed --dp 16 --vary global-batch=64,512 --tokens 100B \
    --goal time --csv -q
[ "$(wc -l <"$work/.out")" = 3 ]
verdict $? "a row for each batch"
ask forerun sweep "${small[@]}" --fixed --dp 16 --vary tokens=100B,200B --goal time --csv -q
ends_with 0
run_s=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "run_s") k = i }
    NR > 1 { printf "%s ", $k }' "$work/.out")
awk -v s="$run_s" 'BEGIN { split(s, a, " "); exit !(a[2] / a[1] > 1.99 && a[2] / a[1] < 2.01) }'
verdict $? "twice the tokens take twice the time: $run_s"

# ---- every target ------------------------------------------------------------
# plan_for TARGET MODEL: a plan of 16 GPUs that it can have
plan_for() {
    ask forerun tune "$2" dgx-h100:2 --for "$1" --ranks 16 --tp 1 --pp 1 --cp 1 \
        --global-batch 256 --seq 1024 --tokens 1T --lr-schedule cosine --warmup 2000 \
        -o "$1.json" -q
    ends_with 0
}
n=$(steps_of $T 256 1024)
for target in megatron megatron-bridge torchtitan accelerate deepspeed ddp fsdp2 horovod \
    ray-train jax; do
    model=gpt2-1.5b
    [ $target != torchtitan ] || model=llama-3-8b
    plan_for $target $model
    ask forerun export $target.json --to $target -o $target/
    ends_with 0
    cat $target/* >$target.all
    has $target.all "Job: $n steps of 256 x 1024 tokens, which train on $T tokens"
done
has megatron.all "--train-iters $n\$" "--lr-decay-iters $n\$" '--lr-warmup-iters 2000$' \
    '--lr-decay-style cosine' '--save checkpoints$' '--load checkpoints$' \
    '--save-interval [0-9]+$' '--mock-data$'
has megatron-bridge.all "train_iters=$n," "lr_decay_iters=$n," 'lr_warmup_iters=2000,' \
    'save="checkpoints"' 'load="checkpoints"' 'save_interval=[0-9]+'
has torchtitan.all "steps=$n," 'warmup_steps=2000' 'checkpoint.enable = True' \
    'checkpoint.folder = "checkpoints"' 'checkpoint.interval = [0-9]+'
has accelerate.all "--max_steps $n " '--warmup_steps 2000' '--output_dir checkpoints' \
    '--save_strategy steps --save_steps [0-9]+'
has deepspeed.all "\"total_num_steps\": $n" '"warmup_num_steps": 2000' \
    'checkpoint after each [0-9]+ steps: .*engine.save_checkpoint'
for script in ddp fsdp2 horovod ray-train jax; do
    has $script.all "\"steps\": $n," '"warmup_steps": 2000,' '"lr_schedule": "cosine"' \
        'checkpoint after each [0-9]+ steps: the script saves'
done
ask forerun export torchtitan.json --to torchtitan --version 0.2 -o old.toml
ends_with 0
has old.toml "^steps = $n\$" '^enable = true$' '^folder = "checkpoints"$' '^interval = [0-9]+$'
# What is written comes back.
for file in megatron/megatron.sh=gpt2-1.5b deepspeed/ds_config.json=gpt2-1.5b \
    old.toml=llama-3-8b; do
    ask forerun import ${file%=*} --model ${file#*=} --ranks 16 --seq 1024 -o back.json -q
    ends_with 0
    job_has back.json "$n" ""
done

# ---- checkpoints and data ----------------------------------------------------
ask forerun export megatron.json --to megatron --checkpoint '/scratch/my run' \
    --checkpoint-every 77 -o megatron.sh
has megatron.sh "--save '/scratch/my run'\$" "--load '/scratch/my run'\$" '--save-interval 77$'
ask bash -n megatron.sh
ends_with 0
ask forerun export torchtitan.json --to torchtitan --checkpoint 'my"run' -o titan/
has titan/forerun_recipe.py 'checkpoint.folder = "my\\"run"'
# A short run has none, and says so; who wants one gets it.
ask forerun simulate "${small[@]}" --dp 16 -o brief.json -q
ask forerun export brief.json --to megatron -o brief.sh
has brief.sh 'saves no checkpoint, because it is short' '--train-iters 20$'
lacks brief.sh '--save'
ask forerun export brief.json --to megatron --checkpoint kept -o brief.sh
has brief.sh '--save kept$' '--save-interval 20$'
# Data that Megatron-LM reads, and others.
ask forerun simulate "${small[@]}" --dp 16 --data /data/c4_text_document -o data.json -q
ask forerun export data.json --to megatron -o data.sh
has data.sh '--data-path /data/c4_text_document$'
lacks data.sh 'mock-data'
ask forerun export data.json --to megatron-bridge -o data.py
has data.py 'blend=\(\["/data/c4_text_document"\], None\)'
echo text >book.txt
ask forerun simulate "${small[@]}" --dp 16 --data book.txt -o data.json -q
ask forerun export data.json --to megatron -o data.sh
has data.sh '^# data: Megatron-LM reads PREFIX.bin .*mock data' '--mock-data'

# ---- launchers ---------------------------------------------------------------
minutes() { # of #SBATCH --time=D-HH:MM
    sed -nE 's/^#SBATCH --time=([0-9]+)-0*([0-9]+):0*([0-9]+)$/\1 \2 \3/p' "$1" |
        awk '{ print ($1 * 24 + $2) * 60 + $3 }'
}
step_s=$(sed -nE 's/^ +"expected_step_s": ([0-9.e+-]+),$/\1/p' megatron.json)
ask forerun export megatron.json --to slurm --program megatron -o whole
asked="$work/whole/job.sbatch"
awk -v m="$(minutes whole/job.sbatch)" -v s="$step_s" -v n="$n" 'BEGIN {
    want = 2 * s * n / 60 + 30; exit !(m >= want && m < want + 1) }'
verdict $? "the limit is twice the prediction and half an hour"
has whole/job.sbatch 'with --time-limit 24h'
ask forerun export megatron.json --to slurm --program megatron --time-limit 36h -o parts
has parts/job.sbatch '^#SBATCH --time=1-12:00$' 'sbatch --dependency=singleton job.sbatch'
every=$(sed -nE 's/^ +--save-interval ([0-9]+)$/\1/p' parts/megatron.sh)
said=$(sed -nE 's/.*seq ([0-9]+)\).*/\1/p' parts/job.sbatch)
awk -v k="$said" -v s="$step_s" -v n="$n" -v e="$every" 'BEGIN {
    each = 36 * 3600 - e * s
    exit !(e * s <= 9 * 3600 && k * each >= s * n && (k - 1) * each < s * n) }'
verdict $? "$said submissions with a checkpoint after each $every steps"
has parts/megatron.sh '--exit-duration-in-mins 2145$'
ask forerun export megatron.json --to kubernetes --program megatron --time-limit 2h -o k8s
has k8s/jobset.yaml '^        activeDeadlineSeconds: 7200$'
has k8s/pytorchjob.yaml '^    activeDeadlineSeconds: 7200$'
for launcher in torchrun mpirun skypilot; do
    ask forerun export megatron.json --to $launcher --program megatron --time-limit 2h -o $launcher
    cat $launcher/* >$launcher.all
    has $launcher.all '^# time limit of 120 minutes: '
done
ask forerun export megatron.json --to slurm --program megatron --time-limit 1h \
    --checkpoint-every 100000 -o never
ends_with 2
warns 'before its first checkpoint'
ask forerun export megatron.json --to megatron --time-limit 1h
ends_with 2
warns '--time-limit is for launchers: --to slurm --program megatron'
ask forerun export megatron.json --to nccl-csv --checkpoint kept
ends_with 2
warns '--checkpoint is for jobs'
# A run that cannot continue does not end within a limit that is shorter.
for program in ddp fsdp2 horovod jax; do
    ask forerun export $program.json --to slurm --program $program --time-limit 2h -o $program-job
    ends_with 3
    warns "$program cannot continue it" 'leave out --time-limit'
    ask forerun export $program.json --to slurm --program $program --time-limit 2h --force \
        -o $program-job
    has $program-job/job.sbatch 'cannot continue from where it ended'
    ask forerun export $program.json --to slurm --program $program --checkpoint kept \
        --checkpoint-every 5 -o $program-job
    ends_with 0
    warns '--checkpoint has no effect' '--checkpoint-every has no effect'
    has $program-job/job.sbatch '^# no checkpoint after each 5 steps: the script saves'
done
for launcher in torchrun mpirun kubernetes skypilot; do
    ask forerun export ddp.json --to $launcher --program ddp -o ddp-$launcher
    cat ddp-$launcher/{launch.sh,jobset.yaml,task.yaml} 2>/dev/null | grep '^# no check' >said
    has said '^# no checkpoint after each [0-9]+ steps: the script saves'
done
# The user's own script may save.
ask forerun export deepspeed.json --to slurm --program deepspeed --time-limit 2h -o deepspeed-job
ends_with 0
warns 'warning: --time-limit ends the run before its end'
has deepspeed-job/job.sbatch '^# no checkpoint after each [0-9]+ steps: .*engine.save_checkpoint'
ask forerun simulate "${small[@]}" --dp 16 -o brief.json -q
ask forerun export brief.json --to ddp -o brief.py
lacks brief.py 'checkpoint DIR asks for them'
# An empty comment ends the list of what is not in a file.
for job in parts ddp-job whole; do
    awk '/^# Not in this file:/ { inside = 1 } /^#$/ { inside = 0 }
        inside && /--time|sbatch|submissions/ { exit 1 }' $job/job.sbatch
    asked="$job"
    verdict $? "the list of what is not in the file has what is in it"
done
# The longest limit.
ask forerun export megatron.json --to slurm --program megatron --time-limit 700d -o long
ends_with 2
warns 'must be 60 s to 60000000 s'
ask forerun export megatron.json --to slurm --program megatron --time-limit 24
warns 'a number without a unit is seconds'
ask forerun simulate "${small[@]}" --dp 16 --tokens 1000T -o long.json -q
ask forerun export long.json --to slurm --program megatron -o long
warns 'the time limit is 1000000 minutes, the longest'
has long/job.sbatch '^# --time: the longest that is written' '^#SBATCH --time=694-10:40$'
# Bytes of checkpoints: all of them, or those that the program keeps.
bytes_of() { # FILE PATTERN: the number of GiB or TiB behind it, in GiB
    sed -nE "s/.*$2 ([0-9.]+) ([GTP])iB.*/\\1 \\2/p" "$1" |
        awk '{ print $1 * ($2 == "P" ? 1048576 : $2 == "T" ? 1024 : 1) }'
}
ask forerun export megatron.json --to megatron --checkpoint-every 1000 -o sizes.sh
each=$(bytes_of sizes.sh 'of about') all=$(bytes_of sizes.sh 'each are')
n_saved=$(((n + 999) / 1000))
has sizes.sh "Nothing deletes checkpoints: $n_saved of about"
awk -v each="$each" -v all="$all" -v n=$n_saved 'BEGIN {
    r = all / (each * n); exit !(r > 0.99 && r < 1.01) }'
verdict $? "$n_saved checkpoints of $each GiB are $all GiB"
has torchtitan.all 'The newest 2 checkpoints stay' 'checkpoint.keep_latest_k = 2'
has accelerate.all 'The newest 2 checkpoints stay' '--save_total_limit 2'
ask forerun export megatron.json --to megatron --checkpoint-every 1 -o sizes.sh
has sizes.sh 'saves a checkpoint after each step;'
ask forerun export megatron.json --to megatron --checkpoint '~/kept' -o home.sh
ends_with 2
warns "'~' is no folder" '\$HOME/kept'
# Another cluster: its own prediction, and so its own limit.
ask forerun simulate megatron.json dgx-a100:2 --json -q
other_s=$(value expected_step_s)
ask forerun export megatron.json dgx-a100:2 --to slurm --program megatron -o other
ends_with 0
warns 'this is a plan for dgx-h100:2, not for 2 nodes of .dgx-a100.: it is predicted anew'
awk -v m="$(minutes other/job.sbatch)" -v s="$other_s" -v n="$n" 'BEGIN {
    want = 2 * s * n / 60 + 30; exit !(m >= want * 0.999 && m < want * 1.001 + 1) }'
verdict $? "the limit is that of $other_s s a step"
has other/megatron.sh "Predicted: $(printf %.4g "$other_s") s a step"
# Images are counted as images.
ask forerun simulate resnet-50 dgx-h100:1 --dp 8 --global-batch 256 --kernels forerun --precision f32 \
    -o images.json -q
ask forerun export images.json --to mpirun --program forerun -o images
has images/launch.sh 'images/s'
ask forerun export megatron.json --to slurm --program forerun --time-limit 2h -o own
has own/job.sbatch '--checkpoint checkpoints --checkpoint-every [0-9]+ --checkpoint-async --resume' \
    '--checkpoint checkpoints.* \|\| code=' 'requeued until it is done'
# A short limit leaves a tenth of it to save, and at most five minutes.
has own/job.sbatch '^#SBATCH --signal=USR1@300$'
ask forerun export megatron.json --to slurm --program forerun --time-limit 20min \
    --checkpoint-every 1 -o short
ends_with 0
has short/job.sbatch '^#SBATCH --signal=USR1@120$'
ask forerun export megatron.json --to megatron --checkpoint=-kept -o dash.sh
ends_with 2
warns 'looks like an option' '"./-kept"'
# The prediction under a power cap stays: export has no such option.
ask forerun simulate llama-3-8b dgx-h100:2 --dp 16 --zero 3 --recompute full --global-batch 1024 \
    --seq 4096 --power-cap 400W -o capped.json --json -q
capped_s=$(value expected_step_s)
ask forerun export capped.json --to slurm --program megatron -o capped
ends_with 0
warns 'the prediction in the plan stays'
has capped/megatron.sh "Predicted: $(printf %.4g "$capped_s") s a step"
summary
