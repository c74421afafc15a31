#!/bin/bash
# kernels.sh: the tests of the CUDA kernels on the GPU of this machine, then
# once more under compute-sanitizer where there is one; exit 77 without a GPU.
set -u
cd "$(dirname "$0")/../.." || exit 1
export BUILD=${BUILD:-build}
if ! nvidia-smi -L 2>/dev/null | grep -q '^GPU'; then
    echo "skipped: no GPU" >&2
    exit 77
fi
tests=$(ls "$BUILD"/tests/gpu/test_cuda_* | grep -v '\.[od]$')
tests/run.sh $tests || exit 1
command -v compute-sanitizer >/dev/null || exit 0
for tool in memcheck racecheck; do
    WRAP="compute-sanitizer --tool $tool --error-exitcode 99 -q" \
        TEST_TIMEOUT=600 TEST_JOBS=1 tests/run.sh $tests || exit 1
done
