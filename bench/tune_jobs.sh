#!/bin/bash
# tune_jobs.sh [LIMIT_S]: how long `tune` takes for each job of tune_jobs.txt,
# up to 4,096 GPUs, mixed clusters and eager frameworks among them.  Prints each
# row as it comes: seconds, those of processors, plans simulated, the best step.
# A job that takes longer than LIMIT_S (default 60) is ended.
set -u
cd "$(dirname "$0")/.." || exit 1
limit=${1:-60}
answer=$(mktemp) took=$(mktemp)
trap 'rm -f "$answer" "$took"' EXIT
TIMEFORMAT='%R %U'
printf '%8s %8s %9s  %-9s %s\n' s 'cpu s' simulated step job
while read -r job; do
    # shellcheck disable=SC2086 # a job is several words
    { time timeout "$limit" "${BUILD:-build}/forerun" tune $job --json \
        >"$answer" 2>/dev/null; } 2>"$took"
    read -r wall_s cpu_s <"$took"
    step=$(grep -o -m1 '"step_s": *[0-9.e-]*' "$answer" | head -n 1)
    simulated=$(grep -o -m1 '"simulated": *[0-9]*' "$answer" | head -n 1)
    printf '%8s %8s %9s  %-9.6s %s\n' "$wall_s" "$cpu_s" \
        "${simulated##*[: ]}" "${step##*[: ]}" "$job"
done <bench/tune_jobs.txt
