#!/bin/bash
# busy_machine.sh: a run next to processes that take all processors: does the
# answer say so?  The machine may be busy anyway, so nothing is asserted about
# times.
. "$(dirname "$0")/expect.sh"

# A loop that this script ends.
(while [ -d "$work" ]; do :; done) &
loop=$!
trap 'kill "$loop" 2>/dev/null; rm -rf "$work"' EXIT

ask forerun simulate gpt2-tiny this-machine --dp 2 --global-batch 16 --seq 64 \
    --steps 40 -o plan.json -q
ends_with 0

# The kernel counts: the sums are consistent, and the sentence is there if a
# step was disturbed.
ask forerun run plan.json --json
ends_with 0
if grep -q '"others": *null' "$work/.out"; then
    skip "the kernel does not count here"
else
    holds "$(value of_processors) >= 1 && $(value disturbed_steps) <= $(value known_steps)"
    holds "$(value known_steps) <= 40 && $(value processors) >= 0"
    holds "$(value processors) <= $(value of_processors) + 0.5"
    # The ranks want all processors, so the loop takes one from them.
    if [ "$(nproc)" -gt 2 ]; then
        skip "a processor is left for the loop"
    else
        holds "$(value disturbed_steps) > 0"
        ask forerun run plan.json
        ends_with 0
        says '^others used [0-9.]+ of [0-9]+ processors? .*during (all |[0-9]+ of )40 steps; '
    fi
fi

summary
