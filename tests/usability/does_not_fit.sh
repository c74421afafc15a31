#!/bin/bash
# does_not_fit.sh: a plan that does not fit is refused where something would be
# done with it, and says so in the first line wherever it is shown.
. "$(dirname "$0")/expect.sh"
fixtures=$root/tests/golden/fixtures
large=(llama-3-70b dgx-h100:64 --dp 512 --global-batch 512 --seq 4096)
small=(llama-3-70b dgx-h100:64 --dp 16 --tp 8 --pp 4 --zero 1 --global-batch 512 --seq 4096)

first_line() { # PATTERN: of stdout
    head -n 1 "$work/.out" | grep -qE -e "$1"
    verdict $? "the first line is not '$1'"
}
is_silent() {
    [ ! -s "$work/.out" ]
    verdict $? "stdout has an answer"
}
is_not_there() {
    [ ! -e "$1" ]
    verdict $? "$1 was made"
}
refused() { # COMMAND...: exit 3, nothing on stdout, the verdict first on stderr
    ask "$@" -q
    ends_with 3
    is_silent
    head -n 1 "$work/.err" |
        grep -qE '^forerun: DOES NOT FIT: needs .* of .* \(.* sure\).*; .*--force'
    verdict $? "the refusal does not say the verdict first"
}

# ---- the verdict -------------------------------------------------------------

# Its numbers are those of the JSON, in GiB of 2^30 bytes.
ask forerun simulate llama-3-8b dgx-h100:2 --dp 16 --zero 1 --global-batch 128 --seq 8192 -q --json
ends_with 0
peak=$(value peak_bytes) capacity=$(value capacity_bytes) p_fits=$(value p_fits)
line=$(awk "BEGIN { printf \"DOES NOT FIT: needs %.1f of %.1f GiB (%.0f %% sure)\",
    $peak / 2^30, $capacity / 2^30, 100 * (1 - $p_fits) }")
says "\"verdict\": \"$(sed 's/[().]/\\&/g' <<<"$line")\""
for command in simulate explain "goodput --force"; do
    # shellcheck disable=SC2086
    ask forerun $command llama-3-8b dgx-h100:2 --dp 16 --zero 1 --global-batch 128 \
        --seq 8192 -q
    ends_with 0
    [ "$(head -n 1 "$work/.out")" = "$line" ]
    verdict $? "the first line is not '$line'"
done

# Whatever the plan: refused where `simulate` says that it does not fit, else not.
for options in "--zero 0" "--zero 1" "--zero 2" "--zero 3" "--zero 1 --recompute full" \
    "--tp 8 --dp 2" "--pp 2 --dp 8"; do
    # shellcheck disable=SC2086
    set -- llama-3-8b dgx-h100:2 --dp 16 --global-batch 128 --seq 8192 $options -q
    ask forerun simulate "$@" -o plan.json --json
    fits=$(grep -oE '"fits": (true|false)' "$work/.out" | head -n 1)
    ask forerun simulate "$@"
    case $fits in
    *true) expected=0 && never_says 'DOES NOT FIT' ;;
    *) expected=3 && first_line '^DOES NOT FIT' ;;
    esac
    ask forerun goodput "$@" --runs 2
    ends_with $expected
    ask forerun export plan.json --to mpirun --program megatron -q -o job/
    ends_with $expected
    [ -e job ] && [ $expected = 0 ] || is_not_there job
    rm -rf job
done

# ---- goodput -----------------------------------------------------------------

refused forerun goodput "${large[@]}" --zero 0
refused forerun goodput "${large[@]}" --json
refused forerun goodput "${large[@]}" --steps 60 --inject kill:rank=1@30
refused forerun goodput llama-3-70b dgx-h100:2 --tp 8 --dp 2 --backup-workers 1
ask forerun goodput "${large[@]}" --force -q
ends_with 0
first_line '^DOES NOT FIT: needs'
says '^goodput '
ask forerun goodput "${large[@]}" --force -q --json
ends_with 0
says '"does_not_fit"' '"goodput"'
ask forerun goodput "${large[@]}" --steps 60 --inject kill:rank=1@30 --force -q
first_line '^DOES NOT FIT: needs'
ask forerun goodput "${small[@]}" --runs 2 -q
ends_with 0
never_says 'NOT FIT'
# A command line that is wrong is that first.
ask forerun goodput "${large[@]}" --repair 5h
ends_with 2

# ---- export ------------------------------------------------------------------

ask forerun simulate "${large[@]}" -q -o large.json
jq 'del(.prediction)' large.json >bare.json
jq '.cluster = ""' large.json >homeless.json
ask forerun simulate "${small[@]}" -q -o small.json
# Edited by hand: the prediction that it carries is of another plan.
jq '.plan.dp = 512 | .plan.tp = 1 | .plan.pp = 1 | .plan.zero = 0 | .plan.vpp = 1' \
    small.json >edited.json
for plan in large bare homeless edited; do
    refused forerun export $plan.json --to megatron -o $plan.sh
    is_not_there $plan.sh
done
refused forerun export homeless.json dgx-h100:64 --to megatron
for target in $(forerun catalog targets --json | jq -r '.targets[].name'); do
    ask forerun export large.json --to "$target" -q -o of-target/
    [ "$status" != 0 ]
    verdict $? "$target is written"
    is_not_there of-target
done
for launcher in slurm kubernetes torchrun mpirun skypilot; do
    refused forerun export large.json --to $launcher --program megatron -o job/
    is_not_there job
    ask forerun export large.json --to $launcher --program megatron --force -q -o job/
    ends_with 0
    grep -LE '^ *# DOES NOT FIT: needs' job/* >"$work/.out"
    is_silent # each file says it
    rm -rf job
done
refused forerun export large.json --to nccl-csv --collective ring -o rows.csv
is_not_there rows.csv
refused forerun export large.json --to nccl-csv --collective ring --json
ask forerun export large.json --to nccl-csv --collective ring --force -q
first_line '^# DOES NOT FIT: needs'
ask forerun export large.json --to megatron --force -q --json
ends_with 0
says '"does_not_fit"' '"files"'
# The nearest plan that a target can have is judged, too.
ask forerun export small.json --to horovod -q
ends_with 3
warns 'nearest plan: dp[0-9]+ .*, which DOES NOT FIT: needs'
ask forerun simulate gpt2-124m dgx-h100:1 --dp 2 --tp 4 --global-batch 64 --seq 256 -q -o narrow.json
ask forerun export narrow.json --to horovod -q
ends_with 3
warns 'nearest plan: '
! grep -q 'NOT FIT' "$work/.err"
verdict $? "a nearest plan that fits is said not to"
# A cluster on which nothing can be predicted is none that it runs on.
for plan in large small; do
    ask forerun simulate $plan.json dgx-1-v100:64 -q
    ends_with 3
    why=$(sed 's/^forerun: //' "$work/.err")
    ask forerun export $plan.json dgx-1-v100:64 --to slurm --program megatron -q -o job/
    ends_with 3
    warns "$why"
    is_not_there job
    ask forerun export $plan.json dgx-1-v100:64 --to slurm --program megatron --force -o job/
    ends_with 0
    warns "$why"
    grep -q '^# memory was not checked' job/job.sbatch
    verdict $? "the job does not say that memory was not checked"
    rm -rf job
done
ask forerun export small.json dgx-h100:8 --to slurm --program megatron -q -o job/
ends_with 3
# Without a cluster and a prediction, whatever is not known is named.
jq 'del(.prediction) | .cluster = "" | .cluster_hash = null | .backend = "cpu"' small.json >unknown.json
ask forerun export unknown.json --to slurm --program megatron -o job/
ends_with 0
for word in 'memory was not checked' '--gres: ' '--time: '; do
    warns "$word"
    grep -qe "^# $word" job/job.sbatch
    verdict $? "job.sbatch lacks: $word"
done
! grep -qe '^#SBATCH --\(gres\|time\)' job/job.sbatch
verdict $? "job.sbatch has what it says it lacks"
rm -rf job
# The same plan where it fits.
ask forerun export small.json --to megatron -q
ends_with 0
never_says 'NOT FIT'
ask forerun compare large.json small.json
first_line '^A DOES NOT FIT: needs'
ask forerun simulate edited.json dgx-h100:64 -q --json
step_s=$(value expected_step_s)
ask forerun compare small.json edited.json --json
warns 'edited.json: the prediction in the file belongs to another plan; the plan was predicted anew on dgx-h100:64'
[ "$(jq .b.step_s "$work/.out")" = "$step_s" ]
verdict $? "the step is not that of the edited plan, $step_s s"
# A file is read once: a pipe does.
ask bash -c 'forerun compare <(cat edited.json) edited.json -q'
ends_with 0
ask forerun compare small.json edited.json
first_line '^B DOES NOT FIT: needs'
ask forerun compare small.json small.json
never_says 'NOT FIT'
[ ! -s "$work/.err" ]
verdict $? "a plan with its own prediction is predicted anew"
jq '.job.tokens = 1e9' small.json >contradicts.json
ask forerun compare small.json contradicts.json
ends_with 5
warns 'contradicts.json:.*: steps is 20, but'

# ---- tune, sweep -------------------------------------------------------------

ask forerun tune large.json dgx-h100:64 --budget 0.1s -q
first_line "^today's plan DOES NOT FIT: needs"
ask forerun tune gpt3-175b dgx-h100:1 --global-batch 8 --budget 0.1s
ends_with 3
first_line '^the nearest plan DOES NOT FIT: needs'

some=(llama-3-70b p5.48xlarge:1 --fixed --tp 8 --sequence-parallel --zero 1
    --vary nodes=2..32*2
    --global-batch 64 --seq 4096 --tokens 100B --goal deadline --deadline 900d -q)
ask forerun sweep "${some[@]}" --json
ends_with 0
points=$(jq '.points | length' "$work/.out")
n=$(jq '[.points[] | select(.is_too_large)] | length' "$work/.out")
holds "$n > 0 && $n < $points && $n == $(value too_large)"
[ "$(jq '[.points[] | select(.is_too_large) |
    select(.is_best or .is_pareto or .is_knee or .is_feasible or .run_s != null or
        .run_usd != null or .step_s != null)] | length' "$work/.out")" = 0 ]
verdict $? "a point that does not fit is marked, or has a duration or a price"
[ "$(jq '[.points[] | select(.is_feasible | not) |
    select((.why | startswith("DOES NOT FIT: needs")) != .is_too_large)] | length' \
    "$work/.out")" = 0 ]
verdict $? "the reason is not the verdict"
ask forerun sweep "${some[@]}"
if [ "$n" = 1 ]; then verb=DOES; else verb=DO; fi
first_line "^$n of $points points $verb NOT FIT\$"
ask forerun sweep llama-3-70b dgx-h100:1 --vary nodes=1,2 --fixed --global-batch 64
ends_with 3
first_line '^2 of 2 points DO NOT FIT$'
never_says 'best' 'pareto' 'knee'
ask forerun sweep llama-3-70b dgx-h100:1 --vary nodes=1,2 --fixed --global-batch 64 --csv
ends_with 3
warns '2 of 2 points DO NOT FIT'

# ---- run ---------------------------------------------------------------------

# A machine of 40 MiB that is this one in all else.
mkdir -p here/clusters
ln -s "$root/configs/models" here/models
sed 's/memory="[0-9.]*MiB"/memory="40MiB"/' "$fixtures/tiny-memory.xml" \
    >here/clusters/this-machine.xml
here() { FORERUN_CONFIGS=$work/here ask "$@"; }
tiny=(gpt2-tiny this-machine --seq 256 --micro-batch 8 --global-batch 8)
here forerun simulate "${tiny[@]}" -q -o tiny.json
first_line '^DOES NOT FIT: needs'
jq 'del(.prediction)' tiny.json >bare.json
for plan in tiny bare; do
    FORERUN_CONFIGS=$work/here refused forerun run $plan.json --steps 2 \
        --checkpoint kept --metrics m.jsonl
    is_not_there kept
    is_not_there m.jsonl
done
FORERUN_CONFIGS=$work/here refused forerun run tiny.json --steps 2 --json
here forerun run tiny.json --steps 2 --force
ends_with 0
first_line '^DOES NOT FIT: needs'
warns 'DOES NOT FIT.*--force'
here forerun run tiny.json --steps 2 --force --json
says '"does_not_fit"' '"loss"'
# Where it fits it is started, whatever it was made for, with a warning.
ask forerun run tiny.json --steps 2
ends_with 0
never_says 'NOT FIT'
warns 'on this-machine the plan DOES NOT FIT: needs'
here forerun report trace tiny.json this-machine -o trace.json
warns '^forerun: DOES NOT FIT: needs'
# Ranks share the memory of their machine.
ask forerun simulate gpt2-tiny this-machine --dp 2 --seq 256 --micro-batch 2 --global-batch 4 \
    --ranks-per-node 2 -q -o two.json
FORERUN_CONFIGS=$work/here refused forerun run two.json --steps 2

# A run that loses ranks does not go on with a plan that does not fit.
sed 's/cores="2" memory="9MiB"/cores="1" memory="7MiB"/
    s,</node-type>,<nic bandwidth="1Gb/s" latency="30us"/></node-type>,
    s,count="1"/>,count="4"/><fabric kind="switch"/>,' "$fixtures/tiny-memory.xml" >four.xml
printf 'localhost slots=4\n' >hosts.txt
ask forerun simulate gpt2-tiny ./four.xml --dp 4 --zero 3 --global-batch 4 --seq 32 -q -o four.json
never_says 'NOT FIT'
lossy=(forerun run four.json --steps 20 --checkpoint kept --checkpoint-every 5 --elastic 2:4
    --hostfile hosts.txt --inject "lose:rank=3@8,lose:rank=2@8")
ask "${lossy[@]}"
ends_with 3
is_silent
warns 'trains this job: DOES NOT FIT: needs'
rm -rf kept
ask "${lossy[@]}" --force
ends_with 0
first_line '^DOES NOT FIT: needs'

summary
