#!/bin/bash
# role_operator.sh: runs on this machine: what does a rank that dies cost here?
. "$(dirname "$0")/expect.sh"

# Starts, restarts and ends are measured where ranks can be started.
asked="forerun calibrate --quick"
timeout 300 forerun calibrate gpt2-tiny --quick --force --ranks 2 -o machine.json \
    >.out 2>.err </dev/null
status=$?
ends_with 0
never_warns 'start a run'
[ -z "$(ls -d forerun-start-* 2>/dev/null)" ]
verdict $? "leaves a folder behind"
cp machine.json .out
# What others took of the processors is known of each phase, where the kernel
# counts it.
says '"phase": *"before"' '"phase": *"kernels"' '"phase": *"collectives"' '"phase": *"after"'
start=$(value start_s) restart=$(value restart_s) end=$(value end_s)
holds "$(value n_ranks) >= 2"
for seconds in "$start" "$restart" "$end"; do
    holds "$seconds > 0.001 && $seconds < 100"
done

# A run with a fault takes them; nothing is loaded that would show.
ask forerun simulate gpt2-tiny this-machine -p machine.json --dp 2 --seq 64 \
    --steps 50 -o plan.json -q
ends_with 0
ask forerun goodput plan.json this-machine -p machine.json --steps 50 \
    --checkpoint-every 20 --inject kill:rank=1@30 --json
ends_with 0
sum="$start + $restart + $end"
holds "$(value restart) >= $sum - 1e-9 && $(value restart) < $sum + 1"

# What is said goes before what was measured.
ask forerun goodput plan.json this-machine -p machine.json --steps 50 \
    --checkpoint-every 20 --inject kill:rank=1@30 --restart 100s --json
ends_with 0
holds "$(value restart) > 200 && $(value restart) < 201"

summary
