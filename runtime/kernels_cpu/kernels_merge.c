/*
 * kernels_merge.c: attention over some keys joins that over others.
 *
 * With sums of exponentials e^a and e^b the weights of the two outputs are
 * e^a / (e^a + e^b) and e^b / (e^a + e^b); a row that saw none of the keys has
 * an lse of minus infinity and no weight.
 */
#include "runtime/kernels_cpu/kernels_list.h"
#include "runtime/kernels_cpu/kernels_simd.h"

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
