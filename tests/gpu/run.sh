#!/bin/bash
# run.sh: make check-gpu: the kernels against the CPU's.
set -u
exec "$(dirname "$0")/kernels.sh"
