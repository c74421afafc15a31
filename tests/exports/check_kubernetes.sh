#!/bin/bash
# check_kubernetes.sh REPORT.json: manifests of several plans against the
# schemas that JobSet and Kubeflow publish.
set -euo pipefail
report=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
manifests=()
for layout in "--dp 8 --zero 3" "--dp 32 --zero 2 --no-gather-overlap" \
    "--dp 64 --zero 3 --collective ring" "--dp 12 --zero 3"; do
    # shellcheck disable=SC2086
    forerun simulate llama-3-8b dgx-h100:8 $layout --global-batch 192 -q \
        -o "$work/plan.json" >"$work/out"
    folder=$work/${#manifests[@]}
    forerun export "$work/plan.json" --to kubernetes --program deepspeed \
        -o "$folder"
    manifests+=("$folder"/*.yaml)
done
/usr/bin/python3 "$here/kubernetes_schemas.py" "$report" "${manifests[@]}"
