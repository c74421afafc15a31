#!/bin/sh
# make demo: calibrate this machine, tune a small GPT over its cores, train it
# on real text under the best plan, show predicted beside measured.
#   BUILD=build  where the program is; STEPS=60 training steps
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build}
forerun=$build/forerun
dir=$build/demo
steps=${STEPS:-60}
model=gpt2-demo
mkdir -p "$dir"

say() {
    printf '\n--- %s\n' "$*"
}

# Texts that every Debian system has: the licences (package base-files).
text=$dir/text.txt
cat /usr/share/common-licenses/[A-Z]* >"$text" 2>/dev/null || true
if [ ! -s "$text" ]; then
    echo "demo: /usr/share/common-licenses is missing (package base-files)" >&2
    exit 1
fi

say "1. What can this machine do?  Timing the kernels and links that training uses."
# On a machine that others use a fit may be off: the line says so, and the demo
# continues.
"$forerun" calibrate "$model" --quick --force -o "$dir/machine.json"

say "2. Which plan is fastest?  Simulating every layout of a small GPT."
"$forerun" tune "$model" this-machine --profile "$dir/machine.json" \
    --global-batch 8 --seq 128 --steps "$steps" --lr 1e-3 --warmup 5 \
    --lr-schedule cosine --data "$text" --top 5 -o "$dir/plan.json"

say "3. What does it do?"
"$forerun" explain "$dir/plan.json" this-machine \
    --profile "$dir/machine.json" --gantt

say "4. Is that true?  Training $steps steps on $(wc -c <"$text") bytes of licence texts."
"$forerun" run "$dir/plan.json" --profile "$dir/machine.json" \
    --trace "$dir/trace.json"

say "Both timelines: $dir/trace.json (open it in ui.perfetto.dev or chrome://tracing)"
