/*
 * kernels_cpu.c: the table of the CPU kernels.
 */
#include "runtime/kernels_cpu/kernels_list.h"

const fr_kernel_fn fr_kernels_cpu[FR_OP_N] = {
#define FR_KERNEL_ENTRY(symbol, name) [FR_OP_##symbol] = fr_kernel_##name,
    FR_KERNEL_LIST(FR_KERNEL_ENTRY) FR_KERNEL_CPU_LIST(FR_KERNEL_ENTRY)
#undef FR_KERNEL_ENTRY
};
