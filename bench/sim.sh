#!/bin/bash
# sim.sh: the event queue, the max-min solver and the simulator by the clock.
# Prints a table and leaves build/bench-sim.json.
set -eu
build=${BUILD:-build}
exec "$build/bench/bench_sim" "$build/bench-sim.json"
