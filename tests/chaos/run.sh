#!/bin/bash
# tests/chaos/run.sh [short | N_SCRIPTED N_RANDOM]: runs of a tiny model on 1 to
# 4 ranks whose processes are killed, stopped, asked to stop or lost, and whose
# checkpoints are torn.  None may hang, lose more than what was done since the
# last checkpoint or copy in memory, or end with other losses: the same to the bit where the
# layout is the same, else within 1e-4.  Nothing is left behind.
#
# short: 60 runs.  SEED=n draws others, JOBS=n runs so many at a time (one for
# each core).  What a run does is drawn from its number alone, so that
# CASE="random 17" runs that one again.  Leaves build/chaos.json.
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
PATH=$PWD/$build:$PATH
root=$PWD
report=$PWD/$build/chaos.json
scratch=$(mktemp -d "${TMPDIR:-/tmp}/forerun-chaos-XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
seed=${SEED:-1}
jobs=${JOBS:-$(nproc)}
if ! command -v mpirun >/dev/null; then
    echo "skipped: there is no mpirun"
    exit 77
fi
case ${1:-short} in
short) n_scripted=42 n_random=18 ;;
*) n_scripted=$1 n_random=${2:-0} ;;
esac
steps=60 every=10
started=$SECONDS

# The model, the layouts, and what each comes to when nobody disturbs it.  One
# thread each: more of them wait for each other wherever cores are short.
cat >model.json <<'M'
{"model_type": "gpt2", "n_layer": 4, "n_embd": 32, "n_head": 4, "n_inner": 64,
 "n_positions": 32, "vocab_size": 61, "layer_norm_epsilon": 1e-5,
 "activation_function": "gelu_new"}
M
layouts=(
    "alone --dp 1 --micro-batch 8"
    "dp2 --dp 2 --micro-batch 4"
    "zero3 --dp 2 --zero 3 --micro-batch 2"
    "tp2 --tp 2 --micro-batch 8"
    "pp2 --pp 2 --micro-batch 2"
    "dp3 --dp 3 --micro-batch 2"
    "dp4zero1 --dp 4 --zero 1 --micro-batch 2"
    "dp2tp2 --dp 2 --tp 2 --micro-batch 2"
)

loss_of() { # the row of losses of an answer
    sed -n 's/^  "loss": \[\(.*\)\],*$/\1/p' "$1"
}

member() { # a number of an answer
    sed -n "s/^ *\"$2\": \([0-9.e+-]*\),*\$/\1/p" "$1" | tail -n 1
}

for layout in "${layouts[@]}"; do
    read -r name options <<<"$layout"
    # shellcheck disable=SC2086
    forerun simulate model.json "$root/configs/clusters/this-machine.xml" $options \
        --threads 1 --ranks-per-node 4 --global-batch 24 --seq 32 --steps $steps -q -o "$name.json" >/dev/null &&
        forerun run "$name.json" --json -q >"$name.answer" || exit 1
    loss_of "$name.answer" >"$name.loss"
    worlds[${#worlds[@]}]=$(member "$name.answer" world_size)
done

# Largest difference of two rows, relative to the second.
distance() {
    awk -v RS='[, \n]+' 'FNR == NR { a[n++] = $1; next } { b[m++] = $1 }
    END {
        worst = n == m && n > 0 ? 0 : 1e9
        for (i = 0; i < n && i < m; i++) {
            d = (a[i] - b[i]) / b[i]
            if (d < 0) d = -d
            if (d > worst) worst = d
        }
        print worst + 0
    }' "$1" "$2"
}

# What a case came to, a word a line: those of all jobs are counted at the end.
result() {
    echo "$1" >>results
}

fail() { # CASE WHAT ...
    result failed
    echo "FAIL $case: $1: $2"
    shift 2
    [ $# = 0 ] || printf '    %s\n' "$@"
}

# judge CASE LAYOUT RC: the answer against the undisturbed run.
judge() {
    local name=$1 layout=$2 rc=$3 far lost limit=$every
    [ -z "$copies" ] || limit=$copies
    if [ "$rc" = 124 ] || [ "$rc" = 137 ]; then
        result hung
        fail "$name" "hangs" "$(tail -n 5 error)"
        return
    fi
    if [ "$rc" != 0 ]; then
        fail "$name" "exit $rc" "$(tail -n 3 error)"
        return
    fi
    loss_of answer >loss
    grep '"ranks_before"' answer | sed 's/.*/restart/' >>results
    # An asynchronous checkpoint may be on its way, and a copy is.
    case $flags in *async* | *replicate*) limit=$((2 * limit)) ;; esac
    lost=$(member answer resumed_from_step) # null: from the beginning
    lost=$(($(member answer step) + 1 - ${lost:-0}))
    if grep -q '"ranks_before"' answer && [ "$lost" -gt "$((limit + 1))" ]; then
        fail "$name" "lost $lost steps, more than $limit"
    elif cmp -s loss "$scratch/$layout.loss"; then
        result passed
    elif ! grep '"ranks_\(before\|after\)"' answer | grep -qv ": $world,"; then
        fail "$name" "other bits in the same layout"
    else
        far=$(distance loss "$scratch/$layout.loss")
        if awk "BEGIN { exit !($far <= 1e-4) }"; then
            result passed
        else
            fail "$name" "losses differ by $far"
        fi
    fi
}

# elastic CASE LAYOUT FAULTS: a run with faults on purpose.
elastic() {
    rm -rf checkpoints
    # shellcheck disable=SC2086
    timeout -s KILL 150 forerun run "$scratch/$2.json" --checkpoint checkpoints \
        --checkpoint-every $every --elastic 1:4 --max-restarts 9 --timeout 3 \
        --json -q $flags ${3:+--inject "$3"} >answer 2>error
    judge "$1 $2 $3 $flags" "$2" $?
}

pick() { # a layout at random, of at least $1 ranks
    local i
    while :; do
        i=$((RANDOM % ${#layouts[@]}))
        layout=${layouts[i]%% *}
        world=${worlds[i]}
        [ "$world" -ge "$1" ] && return
    done
}

# Copies in memory every few steps, and checkpoints every $every: what a rank
# loses that dies, that takes its own copy with it, and that takes the copy of
# another one too, where the disk is left.
copied() {
    local kind=$(($1 % 4)) victim
    copies=3
    flags="--replicate-every $copies --replica-dir $PWD/memory"
    mkdir -p memory
    pick $((kind == 2 ? 3 : 2))
    victim=$((RANDOM % world))
    case $kind in
    0) elastic "killed with copies" "$layout" "kill:rank=$victim@$step" ;;
    1) elastic "lost with copies" "$layout" "lose:rank=$victim@$step" ;;
    2)
        copies=$every
        elastic "lost with its copy" "$layout" \
            "lose:rank=$victim@$step,lose:rank=$(((victim + 1) % world))@$step"
        ;;
    3)
        elastic "lost and back with copies" "$layout" \
            "lose:rank=1@$((step / 2)),join:rank=1@$((step / 2 + 15))"
        ;;
    esac
}

scripted() {
    local step=$((RANDOM % (steps - 2) + 1))
    flags= copies=
    [ $((RANDOM % 3)) = 0 ] && flags=--checkpoint-async
    case $(($1 % 8)) in
    0 | 1 | 2)
        pick 1
        elastic killed "$layout" "kill:rank=$((RANDOM % world))@step=$step"
        ;;
    3)
        pick 2
        elastic "killed twice" "$layout" \
            "kill:rank=0@$step,kill:rank=$((RANDOM % world))@$(((step + steps) / 2))"
        ;;
    4)
        pick 2
        elastic lost "$layout" "lose:rank=$((RANDOM % world))@$step"
        ;;
    5)
        pick 2
        torn
        ;;
    6)
        if [ $(($1 % 16)) = 6 ]; then
            pick 2
            elastic hung "$layout" "hang:rank=$((RANDOM % world))@$step"
        else
            pick 2
            elastic "lost and back" "$layout" \
                "lose:rank=1@$((step / 2)),join:rank=1@$((step / 2 + 15))"
        fi
        ;;
    7) copied $(($1 / 8)) ;;
    esac
}

# Half of a run, a checkpoint that is torn, and the rest.
torn() {
    local file size
    flags=
    rm -rf checkpoints
    if ! timeout -s KILL 60 forerun run "$scratch/$layout.json" --checkpoint checkpoints \
        --checkpoint-every $every --keep 3 --steps 30 --json -q >/dev/null 2>error; then
        fail "torn $layout" "the first half" "$(cat error)"
        return
    fi
    # shellcheck disable=SC2012
    file=$(ls checkpoints/step-30/* checkpoints/latest | shuf -n 1 --random-source=<(yes $RANDOM))
    size=$(stat -c %s "$file")
    if [ $((RANDOM % 2)) = 0 ]; then
        truncate -s $((RANDOM % size)) "$file"
    else
        printf '\xff\x00\xa5' | dd of="$file" bs=1 seek=$((RANDOM * 7 % size)) conv=notrunc status=none
    fi
    timeout -s KILL 60 forerun run "$scratch/$layout.json" --checkpoint checkpoints \
        --checkpoint-every $every --elastic 1:4 --resume --json -q >answer 2>error
    judge "torn $layout $file" "$layout" $?
}

ranks_of() { # processes of the run's ranks
    local mpirun
    mpirun=$(pgrep -P "$1" mpirun) && pgrep -P "$mpirun"
}

# A rank, or all that is asked to stop, at an instant that nobody has chosen.
random() {
    local supervisor victim rc how=$((RANDOM % 6))
    flags= copies=
    [ $((RANDOM % 2)) = 0 ] && flags=--checkpoint-async
    if [ $((RANDOM % 3)) = 0 ]; then
        copies=4
        flags="--replicate-every $copies --replica-dir $PWD/memory"
        mkdir -p memory
    fi
    pick 1
    rm -rf checkpoints
    # shellcheck disable=SC2086
    forerun run "$scratch/$layout.json" --checkpoint checkpoints --checkpoint-every $every \
        --elastic 1:4 --max-restarts 9 --timeout 3 --json -q $flags >answer 2>error &
    supervisor=$!
    sleep "$((RANDOM % 2)).$((RANDOM % 10))"
    victim=$(ranks_of $supervisor | shuf -n 1 --random-source=<(yes $RANDOM))
    case $how in
    0) [ -z "$victim" ] || kill -STOP "$victim" 2>/dev/null ;;
    1) kill -TERM $supervisor 2>/dev/null ;;
    *) [ -z "$victim" ] || kill -KILL "$victim" 2>/dev/null ;;
    esac
    for _ in $(seq 600); do
        kill -0 $supervisor 2>/dev/null || break
        sleep 0.1
    done
    kill -KILL $supervisor 2>/dev/null
    wait $supervisor 2>/dev/null
    rc=$?
    if [ $how = 1 ] && [ $rc = 75 ]; then
        timeout -s KILL 60 forerun run "$scratch/$layout.json" --checkpoint checkpoints \
            --checkpoint-every $every --elastic 1:4 --resume --json -q >answer 2>error
        rc=$?
    elif [ $how = 1 ] && [ ! -e checkpoints ] &&
        { grep -q "stopped by SIGTERM" error || [ $rc = 143 ]; }; then
        rc=0 # before there was a run to save
        cp "$scratch/$layout.answer" answer
    fi
    judge "random $how $layout $flags" "$layout" $rc
}

# one KIND NUMBER
one() {
    case="$1 $2"
    RANDOM=$((seed * 32749 + $2 * 7 + ${#1}))
    "$@"
}

# Every so many of the cases, beginning with $1, in a folder of its own.
job() {
    local i
    mkdir "$scratch/job-$1" && cd "$scratch/job-$1" || exit 1
    export TMPDIR=$PWD
    for ((i = $1; i < n_scripted; i += jobs)); do
        one scripted $i
    done
    for ((i = $1; i < n_random; i += jobs)); do
        one random $i
    done
}

if [ -n "${CASE:-}" ]; then
    # shellcheck disable=SC2086
    one $CASE
    exit
fi
for ((j = 0; j < jobs; j++)); do
    job "$j" &
done
wait
# A word's number of lines.
count() {
    cat job-*/results 2>/dev/null | grep -cx "$1"
}
case="at the end"
cd job-0 || exit 1

# What is left: processes that were started here, memory that nobody maps.
sleep 0.5
left=$(pgrep -f "forerun run .*--checkpoint checkpoints" | while read -r pid; do
    case $(readlink "/proc/$pid/cwd") in "$scratch"*) echo "process $pid" ;; esac
done)
[ -z "$left" ] || fail processes "left: $left"
left=$(ls -d "$scratch"/job-*/forerun-?????? "$scratch"/job-*/ompi.* \
    "$scratch"/job-*/memory/* 2>/dev/null)
[ -z "$left" ] || fail files "left: $left"
cd "$scratch" || exit 1

seconds=$((SECONDS - started))
n_failed=$(count failed) n_restarts=$(count restart)
printf '{"runs": %d, "failed": %d, "hung": %d, "restarts": %d, "seconds": %d, "seed": %d}\n' \
    $((n_scripted + n_random)) "$n_failed" "$(count hung)" "$n_restarts" $seconds "$seed" >"$report"
echo "# $(count passed) passed, $n_failed failed, 0 skipped; $n_restarts restarts in $seconds s"
[ "$n_failed" = 0 ]
