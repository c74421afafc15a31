#!/bin/bash
# check_accelerate.sh REPORT.json: 200 random plans for each checkout of
# Hugging Face's Accelerate in ACCELERATE_DIR (separated by ':'), by its own
# configuration, launcher and plugins (accelerate_configs.py).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/each_checkout.sh"
PYTHON=/usr/bin/python3
"$PYTHON" -c 'import yaml' 2>/dev/null || ACCELERATE_DIR=
# The newest of our versions that is not newer than the checkout.
version_of() {
    local minor version=1.0
    minor=$(sed -n 's/^ *version="1\.\([0-9]*\).*/\1/p' "$1/setup.py")
    for known in 6 10 12 13 14; do
        if [ "$minor" -ge $known ]; then
            version=1.$known
        fi
    done
    echo "$version"
}
each_checkout accelerate "${ACCELERATE_DIR:-}" "$1" accelerate_configs.py
