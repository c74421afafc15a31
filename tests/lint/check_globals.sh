#!/bin/bash
# check_globals.sh: the library has no mutable globals, visible or static.
# (Relocated constant tables live in .data.rel.ro and are fine; the locks of
# `omp critical` belong to the compiler, handles of kernels to nvcc; NCCL's
# tuner interface has no argument for what nccl_choices_in_use says.)
set -u
cd "$(dirname "$0")/../.." || exit 1
library=${BUILD:-build}/libforerun.a
if [ ! -e "$library" ]; then
    echo "$library is not built"
    exit 77
fi
if objdump -t "$library" | grep -q '__asan\|__ubsan'; then
    echo "a sanitizer adds its own"
    exit 77
fi
found=$(objdump -t "$library" | awk '
    /^[a-z0-9_]+\.(cu\.)?o:/ { object = $1 }
    # value flags section size name: objects (O) of a writable section
    $0 ~ / O / {
        for (i = 1; i <= NF; i++)
            if ($i ~ /^(\.data|\.bss|\*COM\*|\.tdata|\.tbss)/ &&
                $i !~ /^\.data\.rel\.ro/ && $NF !~ /^\.gomp_critical/ &&
                $NF != "nccl_choices_in_use" &&
                $NF !~ /__device_stub__|Cubin|^__fat|__cudart|^DW.ref/)
                print object, $NF
    }')
[ -z "$found" ] && exit 0
echo "mutable globals:"
echo "$found"
exit 1
