#!/bin/bash
# check_torchtitan.sh REPORT.json: 200 random plans for each checkout of
# torchtitan in TORCHTITAN_DIR (separated by ':'), by its own configuration and
# trainer (torchtitan_configs.py).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/each_checkout.sh"
version_of() {
    local version
    version=$(cat "$1/assets/version.txt")
    # What is released has TOML: its configuration lies in job_config.py.
    if [ ! -e "$1/torchtitan/config/job_config.py" ]; then
        echo main
    elif [ "$version" = 0.2.0 ]; then
        echo "$version"
    else
        echo "${version%.*}"
    fi
}
each_checkout torchtitan "${TORCHTITAN_DIR:-}" "$1" torchtitan_configs.py \
    llama-3-8b llama-3-70b llama-3-405b deepseek-v3
