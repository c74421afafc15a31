/*
 * kernels_cpu.c: the table of the CPU kernels.
 */
#include "kernels/cpu/narrow/narrow.h"
#include "kernels/kernels_list.h"

const fr_kernel_fn fr_kernels_cpu[FR_OP_N] = {
#define FR_KERNEL_ENTRY(symbol, name) [FR_OP_##symbol] = fr_kernel_##name,
    FR_KERNEL_LIST(FR_KERNEL_ENTRY) FR_KERNEL_CPU_LIST(FR_KERNEL_ENTRY)
#undef FR_KERNEL_ENTRY
};

/* Has it a kernel that goes by the types of its operands? */
static bool is_typed(fr_op op)
{
    switch (op) {
    case FR_OP_CAST:
    case FR_OP_EMBED_FWD:
    case FR_OP_EMBED_BWD:
    case FR_OP_LINEAR_FWD:
    case FR_OP_LINEAR_DGRAD:
    case FR_OP_LINEAR_WGRAD:
    case FR_OP_GROUPED_FWD:
    case FR_OP_GROUPED_DGRAD:
    case FR_OP_GROUPED_WGRAD:
    case FR_OP_OPT_NORMS:
    case FR_OP_OPT_STEP:
        return true;
    default:
        return false;
    }
}

void fr_kernels_cpu_run(const fr_kernel_call *call)
{
    const fr_op op = (fr_op)call->instr->op;
    if (is_typed(op) || !fr_narrow_is_met(call->instr))
        fr_kernels_cpu[op](call);
    else
        fr_narrow_run(call, fr_kernels_cpu[op]);
}

static uint64_t product_bytes(const fr_instr *instr)
{
    const fr_linear_dims *d = &instr->linear;
    switch ((fr_op)instr->op) {
    case FR_OP_LINEAR_FWD:
    case FR_OP_GROUPED_FWD:
        return fr_product_scratch_bytes(d->m, d->n, d->k);
    case FR_OP_LINEAR_DGRAD:
    case FR_OP_GROUPED_DGRAD:
        return fr_product_scratch_bytes(d->m, d->k, d->n);
    case FR_OP_LINEAR_WGRAD:
    case FR_OP_GROUPED_WGRAD:
        return fr_product_scratch_bytes(d->n, d->k, d->m);
    default:
        return 0;
    }
}

uint64_t fr_kernels_cpu_scratch_bytes(const fr_instr *instr)
{
    if (instr->op == FR_OP_BATCH_NORM_FWD || instr->op == FR_OP_BATCH_NORM_BWD)
        return fr_batch_norm_scratch_bytes(instr);
    /* Collectives have no kernel: the engine sums in pieces of its own. */
    if (fr_kernels_cpu[instr->op] == NULL || !fr_narrow_is_met(instr))
        return 0;
    if (!is_typed((fr_op)instr->op))
        return fr_narrow_scratch_bytes(instr);
    uint64_t n = product_bytes(instr);
    if (instr->op != FR_OP_LINEAR_WGRAD)
        return n;
    const fr_instr sums = fr_linear_bias_gradient(instr, instr->linear.n);
    uint64_t n_sums = fr_narrow_scratch_bytes(&sums);
    return n > n_sums ? n : n_sums;
}
