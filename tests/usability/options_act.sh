#!/bin/bash
# options_act.sh: no option of any command is accepted that nothing reads.  Each
# has a row here, or is one of simulate's, which tests/unit/cli/test_options_act.c
# turns for all commands that predict: what is said differs with it, or a file
# or a line is there that is its own.  An option without a row fails.
. "$(dirname "$0")/expect.sh"
data=$root/tests/golden/fixtures
cases=$root/tests/validate/llm_steps.csv
# Searches here end by themselves, within a second: one that the clock cuts answers
# by the speed of the machine.
covered=

declare -A known # what a line said before

cover() { covered+="$1 $2"$'\n'; }

# Without its files' time of day.
said() {
    timeout 120 "$@" >"$work/.out" 2>"$work/.err" </dev/null
    echo "status $?"
    sed -E 's/[0-9.]+ (s|ms|us)$//' "$work/.out" "$work/.err"
}

# acts COMMAND OPTION REST... -- CHANGE...: REST and REST CHANGE differ
acts() {
    local command=$1 option=$2 before after
    local -a rest=()
    shift 2
    while [ "$1" != -- ]; do
        rest+=("$1")
        shift
    done
    shift
    cover "$command" "$option"
    local line="$command ${rest[*]}"
    [ -n "${known[$line]:-}" ] || known[$line]=$(said forerun "$command" "${rest[@]}")
    before=${known[$line]}
    after=$(said forerun "$command" "${rest[@]}" "$@")
    asked="forerun $command ${rest[*]} $*"
    [ "$before" != "$after" ]
    verdict $? "$option changes nothing, and nothing says so"
}

# leaves COMMAND OPTION FILE REST...: the file is there afterwards
leaves() {
    local file=$3
    cover "$1" "$2"
    rm -rf "$file"
    ask forerun "$1" "${@:4}"
    [ -s "$file" ] || [ -d "$file" ]
    verdict $? "$2 leaves no $file"
}

# tells COMMAND OPTION PATTERN REST...: a line of the answer or of what is said
tells() {
    local pattern=$3
    cover "$1" "$2"
    ask forerun "$1" "${@:4}"
    cat "$work/.err" >>"$work/.out"
    says "$pattern"
}

# ---- tune, sweep, explain, goodput -------------------------------------------
small=(gpt2-124m dgx-a100:1 --global-batch 16 --seq 512)
acts tune --allow "${small[@]}" -- --allow lossy
acts tune --budget "${small[@]}" --top 1 -- --budget 0s
acts tune --exact "${small[@]}" --search random -- --exact
acts tune --fit-confidence llama-3-8b dgx-a100:1 -- --fit-confidence 0.999999
acts tune --for "${small[@]}" -- --for torchtitan
acts tune --version "${small[@]}" --for torchtitan -- --version 0.1
acts tune --goal "${small[@]}" -- --goal devices
acts tune --jobs "${small[@]}" -- --jobs 0
acts tune --search "${small[@]}" -- --search random
acts tune --top "${small[@]}" -- --top 1
acts tune --measure "${small[@]}" -- --measure 2
acts tune --update-profile "${small[@]}" -- --update-profile
acts tune --timeout "${small[@]}" --top 1 -- --timeout 3
weeks=(llama-3-8b p5.48xlarge:2 --tp 1 --pp 1 --cp 1 --tokens 100B --goal cost)
acts tune --deadline "${weeks[@]}" -- --deadline 1d
acts tune --max-cost "${weeks[@]}" -- --max-cost 100
acts tune --max-energy "${weeks[@]}" -- --max-energy 1
acts tune --max-devices "${weeks[@]}" -- --max-devices 2
acts tune --min-headroom "${weeks[@]}" -- --min-headroom 60%
acts tune --spot "${weeks[@]}" -- --spot
acts tune --mtbf "${weeks[@]}" -- --mtbf 1000h
acts tune --critical-batch gpt2-124m dgx-a100:1 --goal loss --tokens 1B \
    -- --critical-batch 1M
for option in --restart --storage-write --storage-read --spot-every \
    --spot-wait --spot-together --checkpoint-kind --spares --checkpoint-every; do
    case $option in
    --storage-*) value=10MB/s ;;
    --spot-together) value=2 ;;
    --checkpoint-kind) value=async ;;
    --spares) value=0 ;;
    --checkpoint-every) value=9 ;;
    *) value=77min ;;
    esac
    with=(--mtbf 1000h --spot --spot-every 50h)
    # tune chooses async by itself.
    acts tune $option "${weeks[@]}" "${with[@]}" -- $option ${value/#async/sync}
    acts sweep $option llama-3-8b p5.48xlarge:2 --vary nodes=2 --fixed --zero 3 \
        --tokens 100B --goal cost --csv "${with[@]}" -- $option $value
    acts goodput $option llama-3-8b p5.48xlarge:2 --zero 3 --runs 3 \
        --for-days 9 "${with[@]}" -- $option $value
done
acts tune --on-demand "${weeks[@]}" --spot --spot-every 2h --spot-wait 9h -- --on-demand
acts tune --repair "${weeks[@]}" --mtbf 1000h --spares 0 -- --repair 77h
acts tune --power-cap "${weeks[@]:0:8}" --tokens 100B --goal energy -- --power-cap 500W
acts tune --least-nodes "${weeks[@]:0:8}" --tokens 100B --goal time --mtbf 100h --spares 0 -- --least-nodes 1
acts sweep --repair llama-3-8b p5.48xlarge:2 --vary nodes=2 --fixed --zero 3 \
    --tokens 100B --goal cost --csv --mtbf 1000h --spares 0 -- --repair 77h
points=(gpt2-124m p5.48xlarge:1 --vary nodes=1,2 --fixed --zero 1
    --global-batch 32 --seq 512)
acts sweep --vary "${points[@]}" -- --vary micro-batch=1,2
acts sweep --fixed gpt2-124m dgx-a100:1 --vary nodes=1 --seq 512 -- --fixed
acts sweep --weak "${points[@]}" -- --weak
acts sweep --knee "${points[@]}" -- --knee
acts sweep --plot "${points[@]}" -- --plot
acts sweep --jobs "${points[@]}" -- --jobs 0
acts sweep --exact gpt2-124m dgx-a100:1 --vary nodes=1 --seq 512 -- --exact
acts sweep --allow gpt2-124m dgx-a100:1 --vary nodes=1 --seq 512 -- --allow lossy
acts sweep --fit-confidence llama-3-8b dgx-a100:1 --vary nodes=1 \
    -- --fit-confidence 0.999999
run=(--tokens 100B --goal cost)
acts sweep --goal "${points[@]}" --tokens 100B -- --goal cost
acts sweep --deadline "${points[@]}" "${run[@]}" -- --deadline 1h
acts sweep --max-cost "${points[@]}" "${run[@]}" -- --max-cost 1
acts sweep --max-energy "${points[@]}" "${run[@]}" -- --max-energy 1
acts sweep --max-devices "${points[@]}" "${run[@]}" -- --max-devices 8
acts sweep --min-headroom "${points[@]}" "${run[@]}" -- --min-headroom 99%
acts sweep --spot "${points[@]}" "${run[@]}" -- --spot
acts sweep --mtbf "${points[@]}" "${run[@]}" -- --mtbf 100h
acts sweep --critical-batch "${points[@]}" --tokens 1B --goal loss \
    -- --critical-batch 1M
layout=(llama-3-8b dgx-h100:1 --zero 3)
acts explain --allow gpt2-tiny two-hosts-1gbit --dp 2 --seq 64 --top 20 -- --allow lossy
acts explain --fit-confidence "${layout[@]}" -- --fit-confidence 0.999999
acts explain --jobs "${layout[@]}" -- --jobs 0
acts explain --top "${layout[@]}" -- --top 1
acts explain --next-measurement "${layout[@]}" -- --next-measurement
acts explain --model "${layout[@]}" -- --model llama-3-70b
weeks=(llama-3-8b p5.48xlarge:2 --zero 3 --runs 3)
acts goodput --for-days "${weeks[@]}" -- --for-days 3
acts goodput --model "${weeks[@]}" -- --model llama-3-70b
acts goodput --mtbf "${weeks[@]}" -- --mtbf 100h
acts goodput --repair "${weeks[@]}" --mtbf 100h --spares 1 -- --repair 77h
acts goodput --runs "${weeks[@]}" -- --runs 4
acts goodput --spot "${weeks[@]}" -- --spot
acts goodput --power-cap "${weeks[@]}" -- --power-cap 500W
acts goodput --least-nodes "${weeks[@]}" --mtbf 100h --spares 1 -- --least-nodes 1
acts goodput --inject "${weeks[@]:0:4}" --steps 60 -- --inject kill:rank=1@30
acts goodput --timeout "${weeks[@]:0:4}" --steps 60 --inject hang:rank=1@30 -- --timeout 7
acts goodput --backup-workers llama-3-8b p5.48xlarge:2 --runs 3 --tp 8 --dp 2 -- --backup-workers 1
acts goodput --meets "${weeks[@]}" --mtbf 100h -- --meets maintenance:4h@30d
acts goodput --spot-notice "${weeks[@]}" --spot --spot-every 5h \
    -- --spot-notice 20min
acts goodput --spot-trace "${weeks[@]}" --spot -- --spot-trace "$data/spot.json"

# ---- what measures, reads and writes -----------------------------------------
network=(all_reduce 1MB..16MB dgx-h100:2)
acts collective --algorithm "${network[@]}" -- --algorithm tree
acts collective --columns "${network[@]}" -- --columns busbw
acts collective --nccl-protocol "${network[@]}" -- --nccl-protocol ll
acts collective --profile "${network[@]}" -- --profile none.json
acts collective --ranks "${network[@]}" -- --ranks 4
acts collective --ranks-per-node "${network[@]}" -- --ranks-per-node 2
acts catalog --columns nodes -- --columns node
acts catalog --template -- --template two-tier
acts doctor --columns -- --columns none
acts doctor --profile dgx-h100:2 -- --profile none.json
three=$root/tests/golden/cases/flows-three
acts flows --columns "$three/three.xml" "$three/three.csv" -- --columns none
topology=$data/import/dump.xml
acts import --columns kineto "$data/trace/kineto_rank0.json.gz" -- --columns count
acts import --gpu nccl "$topology" -- --gpu a100-sxm-40gb
acts import --node-type nccl "$topology" -- --node-type dgx-h100
acts import --test nccl-tests "$data/import/old_style.txt" -- --test all_reduce
acts import --nodes nccl "$topology" -- --nodes 7
acts import --model nccl "$topology" -- --model llama-3-8b
acts import --ranks nccl "$topology" -- --ranks 8
acts import --seq nccl "$topology" -- --seq 512
acts import --set megatron "$root/tests/golden/cases/import-script/switches_off.sh" \
    -- --set TP=2
acts import --top kineto "$data/trace/kineto_rank0.json.gz" -- --top 1
leaves import --output cluster.xml nccl "$topology" -o cluster.xml

head -n 4 "$cases" >few.csv
sed '2,$s/,A,/,D,/' few.csv >doubtful.csv # another grade
acts validate --all doubtful.csv -- --all
acts validate --check few.csv -- --check 'mape<=0.1%'
acts validate --columns few.csv --rows -- --columns error
acts validate --framework few.csv -- --framework megatron-deepspeed-2021
acts validate --jobs few.csv -- --jobs 0
acts validate --max-ranks few.csv -- --max-ranks 2
acts validate --rows few.csv -- --rows
acts validate --source few.csv -- --source nobody
acts validate --top few.csv -- --top 1
acts validate --explain-row few.csv -- --explain-row 1
acts validate --shots few.csv -- --shots 0,1
acts validate --draws few.csv --shots 0,1 -- --draws 0
acts validate --seed few.csv -- --seed 3
acts validate --profile few.csv -- --profile none.json
leaves validate --output errors.json few.csv -o errors.json

leaves simulate --output plan.json gpt2-tiny this-machine --dp 1 --seq 32 \
    --global-batch 2 -o plan.json
acts export --to plan.json -- --to megatron
acts export --program plan.json dgx-h100:1 --to slurm -- --program deepspeed
acts export --version plan.json --to megatron -- --version 0.1
acts export --collective plan.json dgx-h100:1 --to megatron -- --collective ring
acts export --nccl-protocol plan.json --to megatron -- --nccl-protocol ll
acts export --nccl-channels plan.json --to megatron -- --nccl-channels 3
acts export --checkpoint plan.json --to megatron -- --checkpoint kept
acts export --checkpoint-every plan.json --to megatron -- --checkpoint-every 3
acts export --time-limit plan.json dgx-h100:1 --to slurm --program megatron --json -- --time-limit 2h
acts compare --columns plan.json plan.json -- --columns none
forerun simulate llama-3-70b dgx-h100:1 --dp 8 --global-batch 8 -q -o large.json >/dev/null
acts export --force large.json --to megatron -- --force
acts goodput --force llama-3-70b dgx-h100:1 --dp 8 --global-batch 8 --runs 3 -- --force
forerun simulate gpt2-124m this-machine --seq 1024 --micro-batch 2048 \
    --global-batch 2048 -q -o large.json >/dev/null
tells run --force 'force' large.json --force --data none.txt
leaves export --output megatron.sh plan.json --to megatron -o megatron.sh
leaves report --output t.json trace plan.json this-machine -o t.json
acts report --profile trace plan.json this-machine -o t.json -- -p none.json

# ---- calibrate, run ----------------------------------------------------------
tells doctor --hostfile 'none' --hostfile none
tells calibrate --backend 'backend|none' --backend none
tells calibrate --columns 'mape|MAPE|none|rows|learn' --runs few.csv -o s.json --columns none
tells calibrate --hostfile 'none|host' --quick --ranks 2 --hostfile none
tells calibrate --share-gpu 'share-gpu|GPU' --quick --backend cuda --share-gpu
tells calibrate --runs 'none\.csv' --runs none.csv
tells calibrate --ranks 'ranks 0' --ranks 0
tells calibrate --seq 'seq 0' --seq 0
tells calibrate --global-batch 'global-batch 0' --global-batch 0
tells calibrate --timeout 'timeout 0' --timeout 0
tells calibrate --profile 'none\.json' --runs few.csv -p none.json
tells calibrate --storage '/nowhere: no such folder' --storage /nowhere
leaves calibrate --output learned.json --runs few.csv -o learned.json
cover calibrate --force # role_operator.sh: a profile whose fits may be off
cover calibrate --quick # role_operator.sh: without it this takes minutes

leaves run --output run.json plan.json --steps 3 -o run.json
leaves run --checkpoint kept plan.json --steps 3 --checkpoint kept
leaves run --metrics m.csv plan.json --steps 3 --metrics m.csv
leaves run --trace r.json plan.json --steps 3 --trace r.json
leaves run --save w plan.json --steps 3 --save w
tells run --steps ' 2 steps| of 2 |2/2' plan.json --steps 2
tells run --tokens ' 2 steps| of 2 |2/2' plan.json --tokens 128
tells run --resume ': 2 steps' plan.json --steps 5 --checkpoint kept --resume
tells run --checkpoint-every 'needs --checkpoint|--checkpoint' plan.json \
    --steps 2 --checkpoint-every 1
tells run --backend 'cuda|GPU' plan.json --steps 2 --backend cuda
tells run --share-gpu 'share-gpu' plan.json --steps 2 --share-gpu
tells run --hostfile 'hostfile' plan.json --steps 2 --hostfile hosts.txt
tells run --columns 'columns|none' plan.json --steps 2 --columns none
tells run --data 'none\.txt' plan.json --steps 2 --data none.txt
tells run --gantt '█|#|─|rank 0' plan.json --steps 2 --gantt
tells run --init 'none' plan.json --steps 2 --init none
tells run --inject 'none' plan.json --steps 2 --inject none
tells run --profile 'none\.json' plan.json --steps 2 -p none.json
tells run --prometheus 'prometheus' plan.json --steps 2 --prometheus 0
tells run --timeout 'timeout' plan.json --steps 2 --timeout 0
tells run --update-profile 'profile' plan.json --steps 2 --update-profile
tells run --checkpoint-async 'checkpoint' plan.json --steps 2 --checkpoint-async
tells run --elastic 'checkpoint|elastic' plan.json --steps 2 --elastic
tells run --eval-batches 'eval' plan.json --steps 2 --eval-batches 2
tells run --eval-data 'none|eval' plan.json --steps 2 --eval-data none.txt
tells run --eval-every 'eval' plan.json --steps 2 --eval-every 1
tells run --keep 'checkpoint|keep' plan.json --steps 2 --keep 1
tells run --replicate-every 'elastic' plan.json --steps 2 --replicate-every 1
tells run --replica-dir 'replicate' plan.json --steps 2 --replica-dir /dev/shm
tells run --rebalance 'elastic' plan.json --steps 2 --rebalance
tells run --max-restarts 'elastic|restarts' plan.json --steps 2 --max-restarts 1

tells checkpoint --columns 'none' inspect kept --columns none
leaves checkpoint --output other convert kept plan.json -o other

# ---- has every option a row? -------------------------------------------------
options() {
    forerun "$1" --help=all | grep -oE '^ +(-[a-z], )?--[a-z0-9-]+' |
        grep -oE -- '--[a-z0-9-]+' | grep -vxE -- '--(help|json|csv|format|report|quiet)' | sort -u
}
options simulate >predicting
commands=$(forerun help | sed -n 's/^  \([a-z]*\)  .*/\1/p' | sort -u)
asked="options with a row"
for command in $commands; do
    case $command in
    simulate) continue ;;
    tune | sweep | explain | goodput) options "$command" | comm -23 - predicting ;;
    *) options "$command" ;;
    esac >wanted
    while read -r option; do
        grep -qxF -e "$command $option" <<<"$covered"
        verdict $? "forerun $command $option has no row in options_act.sh"
    done <wanted
done
summary
