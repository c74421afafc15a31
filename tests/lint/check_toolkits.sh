#!/bin/bash
# check_toolkits.sh: the kernels and their hosts compile without warnings with
# every CUDA toolkit that is here besides the build's: those in /usr/local, and
# the folders in $CUDA_HOMES (bin/nvcc, include).  The newest toolkit alone
# would not show what CUDA 12 lacks.
set -u
cd "$(dirname "$0")/../.." || exit 1
own=$(readlink -f "${CUDA_HOME:-/usr/local/cuda}")
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
n_found=0 status=0

compile() { # TOOLKIT FILE
    case $2 in
    *.cu)
        "$1/bin/nvcc" -O1 -std=c++17 -gencode arch=compute_80,code=sm_80 \
            -Xcompiler -Wall,-Wextra,-Werror -Werror all-warnings -I. \
            -c -o "$dir/x.o" "$2"
        ;;
    *_nccl.c)
        [ ! -e "$1/include/nccl.h" ] || host "$1" "$2"
        ;;
    *) host "$1" "$2" ;;
    esac
}

host() {
    ${CC:-cc} -std=c11 -D_GNU_SOURCE -DFR_HAVE_CUDA -DFR_HAVE_NCCL -Wall \
        -Wextra -Wpedantic -Wshadow -Wconversion -Werror -fsyntax-only -I. \
        -isystem "$1/include" "$2"
}

for toolkit in ${CUDA_HOMES:-} /usr/local/cuda-*; do
    [ -x "$toolkit/bin/nvcc" ] && [ -e "$toolkit/include/cuda.h" ] || continue
    [ "$(readlink -f "$toolkit")" != "$own" ] || continue
    n_found=$((n_found + 1))
    for file in kernels/cuda/*.cu kernels/cuda/*/*.cu kernels/cuda/*_cuda.c \
        runtime/*/*_cuda.c runtime/*/*_nccl.c; do
        if ! compile "$toolkit" "$file" >"$dir/log" 2>&1; then
            echo "$file with $toolkit:"
            head -n 10 "$dir/log"
            status=1
        fi
    done
done
if [ $n_found = 0 ]; then
    echo "no CUDA toolkit but the build's (name others in CUDA_HOMES)"
    exit 77
fi
exit $status
