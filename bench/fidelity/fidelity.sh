#!/bin/sh
# make fidelity: calibrates, predicts a list of plans, runs them, compares.
# Result: build/fidelity.json.  ROUNDS=5; the slow link needs root (network
# namespaces).
set -eu
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
forerun=$PWD/$build/forerun
dir=$PWD/$build/fidelity
. bench/calibrate_links.sh
"$build/bench/fidelity/bench_fidelity" bench/fidelity/fidelity.cases "$forerun" "$dir" \
    $profiles "$build/fidelity.json"
