/*
 * kernels_merge.c: what context parallel ranks do around attention: outputs of
 * some keys and of others are merged, heads are packed for the ranks that get
 * them.
 *
 * With sums of exponentials e^a and e^b the weights of the two outputs are
 * e^a / (e^a + e^b) and e^b / (e^a + e^b); a row that saw none of the keys has
 * an lse of minus infinity and no weight.
 */
#include "kernels/cpu/kernels_simd.h"
#include "kernels/kernels_list.h"

#include <math.h>

FR_SIMD static void mix(float *restrict sum, const float *restrict part,
                        int64_t n, float sum_weight, float part_weight)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        sum[i] = sum[i] * sum_weight + part[i] * part_weight;
}

static void merge_row(float *sum, float *sum_lse, const float *part, float lse,
                      int64_t n)
{
    if (lse == -INFINITY)
        return;
    float most = fmaxf(*sum_lse, lse);
    float a = expf(*sum_lse - most), b = expf(lse - most);
    mix(sum, part, n, a / (a + b), b / (a + b));
    *sum_lse = most + logf(a + b);
}

void fr_kernel_attn_merge(const fr_kernel_call *call)
{
    const fr_merge_dims *dim = &call->instr->merge;
    const float *part = call->ptr[FR_ATTN_MERGE_O],
                *lse = call->ptr[FR_ATTN_MERGE_LSE];
    float *sum = call->ptr[FR_ATTN_MERGE_SUM],
          *sum_lse = call->ptr[FR_ATTN_MERGE_SUM_LSE];
    const int64_t heads = dim->q_heads, seq = dim->seq, n = dim->v_dim;
    int n_team = fr_team(call, dim->rows * heads * n);
    FR_FOR_TEAM(n_team);
#pragma omp parallel for num_threads(n_team) schedule(static)
    for (int64_t row = 0; row < dim->rows; row++) {
        for (int64_t h = 0; h < heads; h++) {
            int64_t i = (row / seq * heads + h) * seq + row % seq;
            int64_t at = (row * heads + h) * n;
            merge_row(sum + at, sum_lse + i, part + at, lse[i], n);
        }
    }
}

/* One group's elements of a row of `cols`: of queries, keys and values. */
static void move_group(const fr_heads_dims *dim, const float *src, float *dst,
                       int64_t group, bool is_back)
{
    const int64_t widths[] = {dim->q_cols, dim->k_cols,
                              dim->cols - dim->q_cols - dim->k_cols};
    int64_t begin = 0, packed = 0;
    for (int i = 0; i < 3; i++) {
        int64_t n = widths[i] / dim->n_groups, at = begin + group * n;
        memcpy(dst + (is_back ? at : packed), src + (is_back ? packed : at),
               (size_t)n * sizeof *dst);
        begin += widths[i];
        packed += n;
    }
}

void fr_kernel_pack_heads(const fr_kernel_call *call)
{
    const fr_heads_dims *dim = &call->instr->heads;
    const float *src = call->ptr[FR_PACK_HEADS_SRC];
    float *dst = call->ptr[FR_PACK_HEADS_DST];
    const int64_t rows = dim->rows, cols = dim->cols, n = dim->n_groups;
    bool is_back = (call->instr->flags & FR_INSTR_TRANSPOSE) != 0;
    int n_team = fr_team(call, rows * cols);
    FR_FOR_TEAM(n_team);
#pragma omp parallel for num_threads(n_team) schedule(static)
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t group = 0; group < n; group++) {
            int64_t packed = (group * rows + row) * (cols / n);
            move_group(dim, src + (is_back ? packed : row * cols),
                       dst + (is_back ? row * cols : packed), group, is_back);
        }
    }
}
