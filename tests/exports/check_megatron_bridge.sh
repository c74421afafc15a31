#!/bin/bash
# check_megatron_bridge.sh REPORT.json: 200 random plans for each checkout of
# Megatron-Bridge in BRIDGE_DIR (separated by ':'), by its own ConfigContainer
# (bridge_recipes.py), with the Megatron-LM that it is built on in
# MEGATRON_CORE_DIR.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/each_checkout.sh"
[ -n "${MEGATRON_CORE_DIR:-}" ] || BRIDGE_DIR=
version_of() {
    local info=$1/src/megatron/bridge/package_info.py
    echo "$(sed -n 's/^MAJOR *= *//p' "$info").$(
        sed -n 's/^MINOR *= *//p' "$info")"
}
each_checkout megatron-bridge "${BRIDGE_DIR:-}" "$1" bridge_recipes.py
