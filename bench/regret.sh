#!/bin/sh
# make regret: runs every plan of a small space and compares the tuner's pick
# with the true best.  Result: build/regret.json.  The slow link needs root.
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build}
forerun=$PWD/$build/forerun
dir=$PWD/$build/regret
. bench/calibrate_links.sh
"$build/bench/bench_regret" "$forerun" "$dir" $profiles "$build/regret.json"
