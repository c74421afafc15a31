#!/bin/sh
# make validate: predictions against published measurements, by source.
# Result: build/validate.json.  VALIDATE="--rows --max-ranks 64": more options.
set -eu
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
# shellcheck disable=SC2086
exec "$build/forerun" validate tests/validate/llm_steps.csv \
    tests/validate/memory.csv -o "$build/validate.json" ${VALIDATE:-}
