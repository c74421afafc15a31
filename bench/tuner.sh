#!/bin/bash
# tuner.sh: estimates, branch and bound and tune by the clock, on large spaces.
# Prints a table and leaves build/bench-tuner.json.
set -eu
build=${BUILD:-build}
exec "$build/bench/bench_tuner" "$build/bench-tuner.json"
