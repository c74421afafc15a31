#!/bin/bash
# check_deepspeed.sh REPORT: plans that are exported to DeepSpeed, read by its
# own DeepSpeedConfig.  DEEPSPEED_DIR: a checkout of deepspeedai/DeepSpeed.
set -u
report=$1
here=$(cd "$(dirname "$0")" && pwd)
[ -n "${DEEPSPEED_DIR:-}" ] && python3 -c 'import pydantic' 2>/dev/null ||
    exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 "$here/deepspeed_configs.py" "$report" "$work"
