#!/bin/sh
# make fidelity: calibrates, predicts a list of plans, runs them, compares.
#   fidelity.sh [FORERUN]    result: build/fidelity.json
# ROUNDS=5 rounds; the slow link needs root (network namespaces).
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build}
forerun=${1:-$PWD/$build/forerun}
dir=$PWD/$build/fidelity
hosts=
mkdir -p "$dir"

cleanup() {
    bench/two_hosts.sh down "$dir/hosts"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

if bench/two_hosts.sh up 1gbit "$dir/hosts"; then
    hosts=$dir/hosts
fi
echo "calibrating this machine ..." >&2
"$forerun" calibrate gpt2-mini gpt2-demo -o "$dir/shm.json" >"$dir/shm.txt"
set -- "$dir/shm.json"
if [ -n "$hosts" ]; then
    echo "calibrating the 1 Gbit/s link ..." >&2
    bench/two_hosts.sh exec "$hosts" "$forerun" calibrate gpt2-mini \
        gpt2-demo --hostfile "$hosts/hostfile" -o "$dir/net.json" \
        >"$dir/net.txt"
    set -- "$@" "$dir/net.json" "$hosts"
fi
"$build/bench/bench_fidelity" bench/fidelity.cases "$forerun" "$dir" "$@" \
    "$build/fidelity.json"
