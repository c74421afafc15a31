#!/bin/bash
# check_kubernetes.sh REPORT.json: manifests of 200 random plans against
# the schemas that JobSet and Kubeflow publish.
set -euo pipefail
report=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
manifests=()
# A CRD or two that the environment names, or there is nothing to compare with.
[ -n "${JOBSET_CRD:-}${PYTORCHJOB_CRD:-}" ] || exit 77
programs=(deepspeed megatron torchtitan ddp fsdp2 horovod ray-train jax)
RANDOM=2385
n=0
while [ "$n" -lt "${PLANS:-200}" ]; do
    program=${programs[RANDOM % ${#programs[@]}]}
    options=(--dp $((1 << RANDOM % 7)) --zero $((RANDOM % 2 * 3))
        --micro-batch $((1 << RANDOM % 2)) --global-batch 128)
    [ $((RANDOM % 3)) != 0 ] || options+=(--tp 2 --sequence-parallel)
    [ $((RANDOM % 3)) != 0 ] || options+=(--pp 2)
    [ $((RANDOM % 2)) != 0 ] || options+=(--no-gather-overlap)
    [ $((RANDOM % 4)) != 0 ] || options+=(--collective ring --nccl-channels 8)
    forerun simulate llama-3-8b dgx-h100:32 "${options[@]}" --seq 2048 -q \
        -o "$work/plan.json" >"$work/out" 2>&1 || continue
    folder=$work/$n
    forerun export "$work/plan.json" --to kubernetes --program "$program" --force \
        -o "$folder" >"$work/out" 2>&1 || continue # the program cannot have it
    manifests+=("$folder"/*.yaml)
    n=$((n + 1))
done
/usr/bin/python3 "$here/kubernetes_schemas.py" "$report" "${manifests[@]}"
