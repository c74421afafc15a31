/*
 * kernels_norm.c: LayerNorm (Ba, Kiros, Hinton 2016, arXiv 1607.06450) and
 * RMSNorm (Zhang and Sennrich 2019, arXiv 1910.07467) with gradients.
 *
 * Rows are shared among the threads for y and dx; for dw and db the columns
 * are, in a second pass over dy and x (which lie in cache by then): no
 * scratch, and the same bits for any number of threads.
 */
#include "kernels/cpu/kernels_simd.h"
#include "kernels/kernels_list.h"

#include <math.h>

FR_SIMD static float row_sum(const float *restrict x, int64_t n)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

FR_SIMD static float row_sq_sum(const float *restrict x, float mean, int64_t n)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        sum += (x[i] - mean) * (x[i] - mean);
    return sum;
}

typedef struct norm_row {
    const float *x, *w, *b, *dy;
    float *y; /* forward: y, backward: dx */
    float mean, rstd;
    float mean_g, mean_gx; /* means of dy*w and dy*w*xhat */
} norm_row;

FR_SIMD static void row_scale(const norm_row *row, int64_t n)
{
    const float *restrict x = row->x, *restrict w = row->w;
    const float *restrict b = row->b;
    float *restrict y = row->y;
    float mean = row->mean, rstd = row->rstd;
    if (b != NULL) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] - mean) * rstd * w[i] + b[i];
    } else {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] - mean) * rstd * w[i];
    }
}

void fr_kernel_norm_fwd(const fr_kernel_call *call)
{
    int64_t rows = call->instr->matrix.rows, cols = call->instr->matrix.cols;
    const float *x = call->ptr[FR_NORM_FWD_X];
    float *y = call->ptr[FR_NORM_FWD_Y], *stats = call->ptr[FR_NORM_FWD_STATS];
    bool is_rms = call->instr->flags & FR_INSTR_RMS;
    double eps = call->instr->scalar;
#pragma omp parallel for num_threads(fr_team(call, rows *cols)) schedule(static)
    for (int64_t i = 0; i < rows; i++) {
        norm_row row = {.x = x + i * cols,
                        .w = call->ptr[FR_NORM_FWD_W],
                        .b = call->ptr[FR_NORM_FWD_B],
                        .y = y + i * cols};
        if (!is_rms)
            row.mean = row_sum(row.x, cols) / (float)cols;
        double variance =
            (double)row_sq_sum(row.x, row.mean, cols) / (double)cols;
        row.rstd = (float)(1.0 / sqrt(variance + eps));
        row_scale(&row, cols);
        stats[i] = row.mean;
        stats[rows + i] = row.rstd;
    }
}

FR_SIMD static void row_grad_means(norm_row *row, int64_t n)
{
    const float *restrict x = row->x, *restrict w = row->w;
    const float *restrict dy = row->dy;
    float mean = row->mean, rstd = row->rstd;
    float sum_g = 0, sum_gx = 0;
#pragma omp simd reduction(+ : sum_g, sum_gx)
    for (int64_t i = 0; i < n; i++) {
        float g = dy[i] * w[i];
        sum_g += g;
        sum_gx += g * ((x[i] - mean) * rstd);
    }
    row->mean_g = sum_g / (float)n;
    row->mean_gx = sum_gx / (float)n;
}

/* dx may be dy itself (not restrict). */
FR_SIMD static void row_grad(const norm_row *row, int64_t n, bool is_added)
{
    const float *x = row->x, *w = row->w, *dy = row->dy;
    float *dx = row->y;
    float mean = row->mean, rstd = row->rstd;
    float mean_g = row->mean_g, mean_gx = row->mean_gx;
    if (is_added) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            dx[i] +=
                rstd * (dy[i] * w[i] - mean_g - (x[i] - mean) * rstd * mean_gx);
    } else {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            dx[i] =
                rstd * (dy[i] * w[i] - mean_g - (x[i] - mean) * rstd * mean_gx);
    }
}

/* Columns [first, last) of four rows (fewer at the end: rows with scale 0). */
typedef struct norm_columns {
    const float *dy[4], *x[4];
    float mean[4], rstd[4];
    float *dw, *db;
} norm_columns;

FR_SIMD static void columns_grad(const norm_columns *at, int64_t first,
                                 int64_t last)
{
    const float *restrict dy0 = at->dy[0], *restrict x0 = at->x[0];
    const float *restrict dy1 = at->dy[1], *restrict x1 = at->x[1];
    const float *restrict dy2 = at->dy[2], *restrict x2 = at->x[2];
    const float *restrict dy3 = at->dy[3], *restrict x3 = at->x[3];
    float m0 = at->mean[0], m1 = at->mean[1], m2 = at->mean[2];
    float m3 = at->mean[3];
    float r0 = at->rstd[0], r1 = at->rstd[1], r2 = at->rstd[2];
    float r3 = at->rstd[3];
    float *restrict dw = at->dw;
#pragma omp simd
    for (int64_t i = first; i < last; i++)
        dw[i] += (dy0[i] * ((x0[i] - m0) * r0) + dy1[i] * ((x1[i] - m1) * r1)) +
                 (dy2[i] * ((x2[i] - m2) * r2) + dy3[i] * ((x3[i] - m3) * r3));
}

FR_SIMD static void column_grad(const norm_columns *at, int64_t first,
                                int64_t last)
{
    const float *restrict dy = at->dy[0], *restrict x = at->x[0];
    float mean = at->mean[0], rstd = at->rstd[0];
    float *restrict dw = at->dw;
#pragma omp simd
    for (int64_t i = first; i < last; i++)
        dw[i] += dy[i] * ((x[i] - mean) * rstd);
}

static void weight_grad(const fr_kernel_call *call, fr_range part)
{
    int64_t rows = call->instr->matrix.rows, cols = call->instr->matrix.cols;
    const float *dy = call->ptr[0], *x = call->ptr[1], *stats = call->ptr[3];
    norm_columns at = {.dw = call->ptr[5]};
    for (int64_t i = 0; i < rows;) {
        int n = rows - i >= 4 ? 4 : 1;
        for (int j = 0; j < n; j++) {
            at.dy[j] = dy + (i + j) * cols;
            at.x[j] = x + (i + j) * cols;
            at.mean[j] = stats[i + j];
            at.rstd[j] = stats[rows + i + j];
        }
        if (n == 4)
            columns_grad(&at, part.first, part.last);
        else
            column_grad(&at, part.first, part.last);
        i += n;
    }
}

void fr_kernel_norm_bwd(const fr_kernel_call *call)
{
    int64_t rows = call->instr->matrix.rows, cols = call->instr->matrix.cols;
    const float *dy = call->ptr[FR_NORM_BWD_DY], *x = call->ptr[FR_NORM_BWD_X],
                *stats = call->ptr[FR_NORM_BWD_STATS];
    float *dx = call->ptr[FR_NORM_BWD_DX];
    bool is_rms = call->instr->flags & FR_INSTR_RMS;
    bool is_added = call->instr->flags & FR_INSTR_ACCUMULATE;
    int n_team = fr_team(call, rows * cols);
    /* Columns first: dx may be written over dy. */
#pragma omp parallel num_threads(n_team)
    weight_grad(call, fr_range_mine(cols, 16));
    if (call->ptr[FR_NORM_BWD_DB] != NULL)
        fr_kernel_add_column_sums(dy, call->ptr[FR_NORM_BWD_DB], rows, cols,
                                  n_team);
#pragma omp parallel for num_threads(n_team) schedule(static)
    for (int64_t i = 0; i < rows; i++) {
        norm_row row = {.x = x + i * cols,
                        .w = call->ptr[FR_NORM_BWD_W],
                        .dy = dy + i * cols,
                        .y = dx + i * cols,
                        .mean = stats[i],
                        .rstd = stats[rows + i]};
        row_grad_means(&row, cols);
        if (is_rms)
            row.mean_g = 0;
        row_grad(&row, cols, is_added);
    }
}

/* ---- norms of heads ----------------------------------------------------- */

/* Head h of row i, of those that the instruction norms, in qkv. */
static float *head_at(const fr_kernel_call *call, int64_t i, int64_t h)
{
    const fr_head_norm_dims *d = &call->instr->head_norm;
    float *qkv = call->ptr[FR_HEAD_NORM_FWD_QKV];
    return qkv + (i * d->row_heads + d->first_head + h) * d->head_dim;
}

void fr_kernel_head_norm_fwd(const fr_kernel_call *call)
{
    const fr_head_norm_dims *d = &call->instr->head_norm;
    const int64_t n = d->head_dim, n_all = d->rows * d->n_heads;
    float *raw = call->ptr[FR_HEAD_NORM_FWD_RAW],
          *stats = call->ptr[FR_HEAD_NORM_FWD_STATS];
    double eps = call->instr->scalar;
#pragma omp parallel for num_threads(fr_team(call, n_all *n)) schedule(static)
    for (int64_t at = 0; at < n_all; at++) {
        norm_row row = {.x = raw + at * n,
                        .w = call->ptr[FR_HEAD_NORM_FWD_W],
                        .y = head_at(call, at / d->n_heads, at % d->n_heads)};
        memcpy(raw + at * n, row.y, (size_t)n * sizeof *raw);
        double variance = (double)row_sq_sum(row.x, 0.0F, n) / (double)n;
        row.rstd = (float)(1.0 / sqrt(variance + eps));
        row_scale(&row, n);
        stats[at] = 0.0F;
        stats[n_all + at] = row.rstd;
    }
}

/* The weight is short and every head adds to it: one thread, in order. */
static void head_weight_grad(const fr_kernel_call *call)
{
    const fr_head_norm_dims *d = &call->instr->head_norm;
    const int64_t n = d->head_dim, n_all = d->rows * d->n_heads;
    const float *raw = call->ptr[FR_HEAD_NORM_BWD_RAW],
                *stats = call->ptr[FR_HEAD_NORM_BWD_STATS];
    norm_columns at = {.dw = call->ptr[FR_HEAD_NORM_BWD_DW]};
    for (int64_t i = 0; i < n_all; i++) {
        at.dy[0] = head_at(call, i / d->n_heads, i % d->n_heads);
        at.x[0] = raw + i * n;
        at.mean[0] = stats[i];
        at.rstd[0] = stats[n_all + i];
        column_grad(&at, 0, n);
    }
}

void fr_kernel_head_norm_bwd(const fr_kernel_call *call)
{
    const fr_head_norm_dims *d = &call->instr->head_norm;
    const int64_t n = d->head_dim, n_all = d->rows * d->n_heads;
    const float *raw = call->ptr[FR_HEAD_NORM_BWD_RAW],
                *stats = call->ptr[FR_HEAD_NORM_BWD_STATS];
    head_weight_grad(call); /* first: dx is written over dy */
#pragma omp parallel for num_threads(fr_team(call, n_all *n)) schedule(static)
    for (int64_t at = 0; at < n_all; at++) {
        float *dy = head_at(call, at / d->n_heads, at % d->n_heads);
        norm_row row = {.x = raw + at * n,
                        .w = call->ptr[FR_HEAD_NORM_BWD_W],
                        .dy = dy,
                        .y = dy,
                        .mean = stats[at],
                        .rstd = stats[n_all + at]};
        row_grad_means(&row, n);
        row.mean_g = 0;
        row_grad(&row, n, false);
    }
}
