#!/bin/sh
# make bench-runtime: training speed of the CPU runtime beside sgemm and
# PyTorch; result: build/bench-runtime.json.  ROUNDS=3.
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build}
forerun=$PWD/$build/forerun
dir=$PWD/$build/bench-runtime
mkdir -p "$dir"
shape="gpt2-124m this-machine --global-batch 4 --seq 64"
"$forerun" simulate $shape --dp 1 --micro-batch 4 --threads 2 \
    -o "$dir/single.json" --json >/dev/null
"$forerun" simulate $shape --dp 2 --micro-batch 2 --threads 1 \
    -o "$dir/dp2.json" --json >/dev/null
"$forerun" simulate bench/models/bert-medium.json this-machine \
    --global-batch 16 --seq 128 --dp 1 --micro-batch 16 --threads 2 \
    -o "$dir/bert.json" --json >/dev/null
"$forerun" simulate bench/models/mixtral-small.json this-machine \
    --global-batch 16 --seq 128 --dp 1 --micro-batch 16 --threads 2 \
    -o "$dir/mixtral.json" --json >/dev/null
peer=
# Debian's package belongs to the system's interpreter; its OpenBLAS must be
# the OpenMP one, the fastest that was found.
if /usr/bin/python3 -c 'import torch' 2>/dev/null; then
    peer="/usr/bin/python3 bench/pytorch_gpt2.py 12 768 12 50304 4 64 2 6"
    libraries=$(ls -d /usr/lib/*/openblas-openmp 2>/dev/null | head -n 1)
    [ -z "$libraries" ] || peer="LD_LIBRARY_PATH=$libraries $peer"
fi
"$build/bench/bench_runtime" "$forerun" "$dir" "$peer" \
    "$build/bench-runtime.json"
