#!/bin/bash
# check_deepspeed.sh REPORT.json: 200 random plans for each checkout of
# DeepSpeed in DEEPSPEED_DIR (separated by ':'), by its own configuration and
# engine (deepspeed_configs.py).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/each_checkout.sh"
PYTHON=python3
"$PYTHON" -c 'import pydantic' 2>/dev/null || DEEPSPEED_DIR=
version_of() {
    local version
    version=$(cat "$1/version.txt")
    echo "${version%.*}"
}
each_checkout deepspeed "${DEEPSPEED_DIR:-}" "$1" deepspeed_configs.py
