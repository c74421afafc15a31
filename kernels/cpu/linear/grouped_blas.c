/*
 * grouped_blas.c: products of rows with the matrices of their experts, one
 * expert after the other.
 */
#include "kernels/cpu/narrow/narrow.h"
#include "kernels/kernels_list.h"

/* The rows of one expert in one run. */
typedef struct piece {
    int64_t group, first;
    int64_t m;
} piece;

/* Goes through all that have rows; false: there is no further one. */
typedef struct piece_walk {
    int64_t i;
    piece at;
} piece_walk;

static bool next_piece(const fr_grouped_dims *d, const int32_t *counts,
                       piece_walk *walk)
{
    walk->at.first += walk->at.m;
    walk->at.m = 0;
    while (walk->i < d->n_runs * d->n_groups) {
        int64_t i = walk->i++;
        if (i % d->n_groups == 0)
            walk->at.first = i / d->n_groups * d->run_rows;
        if (counts[i] == 0)
            continue;
        walk->at.group = i % d->n_groups;
        walk->at.m = counts[i];
        return true;
    }
    return false;
}

void fr_kernel_grouped_fwd(const fr_kernel_call *call)
{
    const fr_grouped_dims *d = &call->instr->grouped;
    const int64_t n = d->n, k = d->k;
    piece_walk walk = {0};
    while (next_piece(d, call->ptr[FR_GROUPED_FWD_COUNTS], &walk)) {
        const piece *at = &walk.at;
        fr_product product = {
            .m = at->m,
            .n = n,
            .k = k,
            .a = fr_narrow_operand(call, FR_GROUPED_FWD_X, at->first * k, k),
            .b =
                fr_narrow_operand(call, FR_GROUPED_FWD_W, at->group * n * k, k),
            .c = fr_narrow_operand(call, FR_GROUPED_FWD_Y, at->first * n, n)};
        product.b.is_transposed = true;
        fr_product_run(call, &product);
    }
}

void fr_kernel_grouped_dgrad(const fr_kernel_call *call)
{
    const fr_grouped_dims *d = &call->instr->grouped;
    const int64_t n = d->n, k = d->k;
    piece_walk walk = {0};
    while (next_piece(d, call->ptr[FR_GROUPED_DGRAD_COUNTS], &walk)) {
        const piece *at = &walk.at;
        const fr_product product = {
            .m = at->m,
            .n = k,
            .k = n,
            .a = fr_narrow_operand(call, FR_GROUPED_DGRAD_DY, at->first * n, n),
            .b = fr_narrow_operand(call, FR_GROUPED_DGRAD_W, at->group * n * k,
                                   k),
            .c =
                fr_narrow_operand(call, FR_GROUPED_DGRAD_DX, at->first * k, k)};
        fr_product_run(call, &product);
    }
}

void fr_kernel_grouped_wgrad(const fr_kernel_call *call)
{
    const fr_grouped_dims *d = &call->instr->grouped;
    const int64_t n = d->n, k = d->k;
    piece_walk walk = {0};
    while (next_piece(d, call->ptr[FR_GROUPED_WGRAD_COUNTS], &walk)) {
        const piece *at = &walk.at;
        fr_product product = {
            .m = n,
            .n = k,
            .k = at->m,
            .a = fr_narrow_operand(call, FR_GROUPED_WGRAD_DY, at->first * n, n),
            .b = fr_narrow_operand(call, FR_GROUPED_WGRAD_X, at->first * k, k),
            .c = fr_narrow_operand(call, FR_GROUPED_WGRAD_DW, at->group * n * k,
                                   k),
            .is_added = true};
        product.a.is_transposed = true;
        fr_product_run(call, &product);
    }
}
