#!/bin/sh
# make validate: predictions against published measurements, by source, then
# efficiency of data parallel training by number of GPUs (ROWS=1: every row).
# Result: build/validate.json.  VALIDATE="--rows --max-ranks 64": more options.
set -eu
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
# shellcheck disable=SC2086
"$build/forerun" validate tests/validate/llm_steps.csv \
    tests/validate/mlperf_llm_steps.csv \
    tests/validate/memory.csv -o "$build/validate.json" ${VALIDATE:-}
echo
exec "$build/tests/contract/sim/test_scaling"
