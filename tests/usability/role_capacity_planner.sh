#!/bin/bash
# role_capacity_planner.sh: what to buy, what it costs, until when it is done.
. "$(dirname "$0")/expect.sh"

# A tree that is oversubscribed, and one that is not: other rows; back to 1 is
# faster than what the file says.
forerun catalog --template two-tier |
    sed 's/oversubscription="2"/oversubscription="64"/' >"$work/racks.xml"
sweep="forerun sweep llama-3-8b $work/racks.xml --fixed --zero 1 --tp 8
    --global-batch 64 --seq 4096 -q"
ask $sweep --vary oversubscription=1,64 --csv
ends_with 0
at_1=$(awk -F, '$1 == 1' "$work/.out" | cut -d, -f2- | head -n 1)
at_64=$(awk -F, '$1 == 64' "$work/.out" | cut -d, -f2- | head -n 1)
[ -n "$at_1" ] && [ "$at_1" != "$at_64" ]
verdict $? "the same row at 1 and 64: $at_1"
ask $sweep --vary oversubscription.1=1,64
ends_with 0
# What changes nothing says so; what is not there is named.
ask forerun sweep llama-3-8b dgx-h100:1 --fixed --zero 1 --global-batch 64 \
    --seq 4096 --vary nic=100Gb/s,400Gb/s
says 'nic has no effect'
ask forerun sweep llama-3-8b dgx-h100:2 --fixed --zero 1 --global-batch 64 \
    --seq 4096 --vary oversubscription=1,2
ends_with 3
says 'no switches above others'

# More nodes for one run, from a file with two equal racks.
ask $sweep --vary nodes=4,8,16
ends_with 0
says '^ *4 +32 ' '^ *16 +128 ' 'fits'

# Columns by name; a wrong one names those that there are.
ask $sweep --vary nodes=4,8 --columns nodes,step,fits
ends_with 0
says '^nodes +step +fits$'
never_says 'MFU'
ask $sweep --vary nodes=4,8 --columns nodes,stap
ends_with 2
warns "'stap'" 'step'

# Where no point is possible the reasons are the answer, whatever columns.
ask forerun sweep llama-3-8b dgx-h100:1 --vary oversubscription=2 --columns step
ends_with 3
says 'no switches above others'
ask forerun sweep llama-3-8b dgx-h100:2 --vary seq=4k --fixed --zero 1 \
    --compress-by tensor
ends_with 0
warns '--compress-by is ignored'
# Long runs are read in years.
ask forerun simulate llama-3-8b rtx-4090-4:2 --tokens 1T --zero 3 -q
ends_with 0
says '[0-9.]+ years'
never_says '[0-9]e[+][0-9]'

# A run that may shrink: what tune counts in closed form is what goodput lives
# through, and each is chosen where it is better.
may_shrink=(--tokens 1T --mtbf 500h --repair 20h)
for way in "--spares 0" "--spares 0 --least-nodes 7" \
    "--spares 0 --least-nodes 4" "--spares 1 --least-nodes 4"; do
    ask forerun tune llama-3-8b p5.48xlarge:8 --global-batch 512 --seq 4096 \
        --ranks 64 --goal time "${may_shrink[@]}" $way \
        --checkpoint-kind memory --top 1 -q -o plan.json --json
    ends_with 0
    tuned_s=$(value seconds) tuned_p95_s=$(value seconds_p95)
    tuned_usd=$(value usd) tuned_kwh=$(value kwh)
    ask forerun goodput plan.json p5.48xlarge:8 "${may_shrink[@]}" $way \
        --checkpoint-kind memory -q --json
    ends_with 0
    mean_s=$(awk "BEGIN { print 86400 * $(value mean) }")
    holds "$tuned_s / $mean_s > 0.99 && $tuned_s / $mean_s < 1.01"
    holds "$tuned_usd / $(value usd) > 0.99 && $tuned_usd / $(value usd) < 1.01"
    holds "$tuned_kwh / $(value kwh) > 0.97 && $tuned_kwh / $(value kwh) < 1.03"
    p95_s=$(awk "BEGIN { print 86400 * $(value p95) }")
    holds "$tuned_p95_s / $p95_s > 0.96 && $tuned_p95_s / $p95_s < 1.09"
done
ask forerun tune llama-3-8b p5.48xlarge:8 --global-batch 512 --seq 4096 \
    --ranks 64 --goal time "${may_shrink[@]}" --spares 0 --least-nodes 8,6 -q
ends_with 0
says 'continues on as few as 6 of 8 nodes'

# A power cap is chosen where energy is the goal; simulate and goodput of that
# plan under that cap say the same.
ask forerun tune llama-3-8b p5.48xlarge:2 --global-batch 256 --seq 4096 --tp 1 \
    --pp 1 --cp 1 --tokens 100B --goal energy --power-cap none,500W,600W \
    --top 1 -q -o plan.json --json
ends_with 0
says '"power_cap_w": 500'
tuned_kwh=$(value kwh) tuned_s=$(value step_s)
ask forerun simulate plan.json p5.48xlarge:2 --power-cap 500W -q --json
holds "$(value step_s) == $tuned_s"
ask forerun goodput plan.json p5.48xlarge:2 --power-cap 500W --tokens 100B -q --json
holds "$tuned_kwh / $(value kwh) > 0.97 && $tuned_kwh / $(value kwh) < 1.03"
ask forerun simulate plan.json p5.48xlarge:2 -q --json
holds "$(value step_s) < 0.95 * $tuned_s"

# The best plan under a deadline says how long the run is, and what it takes.
ask forerun tune llama-3-8b p5.48xlarge:8 --global-batch 512 --seq 8192 \
    --tokens 1T --goal deadline --deadline '60 days' --min-headroom 5% \
    --pp 1 --cp 1 --budget 1s -q
ends_with 0
says '^best' 'the run +nodes +devices +time' '[0-9.]+ [kM] USD' '[0-9.]+ [kM]Wh' 'fits' \
    '^left out [0-9,]+ plans: .* not a multiple of'
never_says '[0-9]e[+-][0-9]' ' % tp [0-9]+ != 0'
ask forerun tune llama-3-8b p5.48xlarge:8 --global-batch 512 --seq 8192 \
    --tokens 1T --goal deadline --deadline 60d --pp 1 --cp 1 --budget 1s \
    --fit-confidence 0.99 -q --json
ends_with 0
holds "$(value p_fits) >= 0.99"
holds "$(value nodes) >= 1 && $(value usd) > 1000 && $(value kwh) > 100"
# A budget of a second takes about one, on two cores.
ask_timed forerun tune llama-3-8b p5.48xlarge:64 --global-batch 512 --seq 8192 \
    --budget 1s --jobs 2 -q
ends_with 0
holds "$cpu_s < 5"

# The peak of the data type that is used.
ask forerun simulate llama-3-8b "$work/racks.xml" --zero 1 --seq 4096 -q --json
mfu=$(value mfu)
holds "$mfu > 0 && $mfu < 1"
summary
