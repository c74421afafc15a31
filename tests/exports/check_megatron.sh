#!/bin/bash
# check_megatron.sh REPORT.json: 200 random plans for each checkout of
# Megatron-LM in MEGATRON_DIR (separated by ':'), by its own parser and checks
# (megatron_arguments.py).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/each_checkout.sh"
version_of() {
    local info=$1/megatron/core/package_info.py
    echo "core-$(sed -n 's/^MAJOR *= *//p' "$info").$(
        sed -n 's/^MINOR *= *//p' "$info")"
}
each_checkout megatron "${MEGATRON_DIR:-}" "$1" megatron_arguments.py
