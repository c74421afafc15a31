#!/bin/bash
# check_accelerate.sh REPORT: plans that are exported to Accelerate, read by its
# own configuration, launcher and plugins.  ACCELERATE_DIR: checkouts of
# huggingface/accelerate, separated by ':', of releases from 1.0.
set -u
report=$1
here=$(cd "$(dirname "$0")" && pwd)
[ -n "${ACCELERATE_DIR:-}" ] && python3 -c 'import yaml' 2>/dev/null || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 "$here/accelerate_configs.py" make "$work" || exit 1
status=0
IFS=: read -ra folders <<<"$ACCELERATE_DIR"
for folder in "${folders[@]}"; do
    python3 "$here/accelerate_configs.py" check "$work" "$folder" || status=1
done
jq -s 'map({(.release): .}) | add' "$work"/report-*.json >"$report"
exit $status
