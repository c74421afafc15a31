/*
 * kernels_batch_norm.c: batch norm with the activation behind it and, where a
 * residual block ends, its sum, in two passes over memory each way.
 *
 * Sums of columns are made over fixed pieces of the rows, in float32 over a few
 * rows and in float64 beyond, so they do not depend on the team.  Columns are
 * counted from their first row's value, lest a large mean hides the deviation.
 */
#include "kernels/cpu/kernels_simd.h"
#include "kernels/kernels_list.h"
#include "plan/codec/optimizer.h"

#include <math.h>

/* Rows that float32 sums up, and columns at a time. */
enum { FEW_ROWS = 64, TILE = 256 };

uint64_t fr_batch_norm_scratch_bytes(const fr_instr *instr)
{
    return (2 * FR_SUM_PIECES * sizeof(double) + 4 * sizeof(float)) *
           (uint64_t)instr->batch_norm.cols;
}

/* The factor and the summand of each column. */
typedef struct columns {
    const float *scale, *shift;
} columns;

/* One run of rows of some columns; rows are `stride` apart. */
typedef struct tile {
    int64_t n_rows, n, stride;
    const float *x, *dy;
    const float *from; /* of each column */
    const uint8_t *mask;
    columns column; /* if the sign of the norm's output is asked for */
    bool has_relu;
    float *sum[2];
} tile;

/* sum[0] += x - from, sum[1] += its square */
FR_SIMD static void batch_norm_moments(const tile *t)
{
    float *restrict a = t->sum[0], *restrict b = t->sum[1];
    const float *restrict from = t->from;
    for (int64_t row = 0; row < t->n_rows; row++) {
        const float *restrict x = t->x + row * t->stride;
#pragma omp simd
        for (int64_t c = 0; c < t->n; c++) {
            const float away = x[c] - from[c];
            a[c] += away;
            b[c] += away * away;
        }
    }
}

/* The gradient behind the activation. */
FR_INLINE float masked(float dy, float x, float scale, float shift)
{
    return x * scale + shift > 0.0F ? dy : 0.0F;
}

/* sum[0] += dy, sum[1] += dy (x - from), dy behind the activation */
FR_SIMD static void batch_norm_gradient_sums(const tile *t)
{
    float *restrict a = t->sum[0], *restrict b = t->sum[1];
    const float *restrict from = t->from;
    const float *restrict scale = t->column.scale, *restrict shift =
                                                       t->column.shift;
    for (int64_t row = 0; row < t->n_rows; row++) {
        const float *restrict x = t->x + row * t->stride;
        const float *restrict dy = t->dy + row * t->stride;
        if (t->mask != NULL) {
            const uint8_t *restrict mask = t->mask + row * t->stride;
#pragma omp simd
            for (int64_t c = 0; c < t->n; c++) {
                const float g = mask[c] ? dy[c] : 0.0F;
                a[c] += g;
                b[c] += g * (x[c] - from[c]);
            }
        } else if (t->has_relu) {
#pragma omp simd
            for (int64_t c = 0; c < t->n; c++) {
                const float g = masked(dy[c], x[c], scale[c], shift[c]);
                a[c] += g;
                b[c] += g * (x[c] - from[c]);
            }
        } else {
#pragma omp simd
            for (int64_t c = 0; c < t->n; c++) {
                a[c] += dy[c];
                b[c] += dy[c] * (x[c] - from[c]);
            }
        }
    }
}

/* The sums of one piece of the rows: sums[0][cols], sums[1][cols]. */
static void sum_piece(const tile *all, fr_range rows, int64_t cols,
                      bool is_gradient, double *sums)
{
    float few[2][TILE];
    for (int64_t c = 0; c < 2 * cols; c++)
        sums[c] = 0;
    for (int64_t row = rows.first; row < rows.last; row += FEW_ROWS)
        for (int64_t first = 0; first < cols; first += TILE) {
            const int64_t at = row * cols + first;
            tile t = *all;
            t.n_rows = rows.last - row < FEW_ROWS ? rows.last - row : FEW_ROWS;
            t.n = cols - first < TILE ? cols - first : TILE;
            t.x += at;
            t.dy = t.dy != NULL ? t.dy + at : NULL;
            t.mask = t.mask != NULL ? t.mask + at : NULL;
            t.from += first;
            t.column.scale = is_gradient ? t.column.scale + first : NULL;
            t.column.shift = is_gradient ? t.column.shift + first : NULL;
            t.sum[0] = few[0];
            t.sum[1] = few[1];
            memset(few, 0, sizeof few);
            if (is_gradient)
                batch_norm_gradient_sums(&t);
            else
                batch_norm_moments(&t);
            for (int64_t c = 0; c < t.n; c++) {
                sums[first + c] += (double)few[0][c];
                sums[cols + first + c] += (double)few[1][c];
            }
        }
}

/* Both sums of all columns come to the first piece's place in the scratch. */
static const double *sum_columns(const fr_kernel_call *call, const tile *all,
                                 bool is_gradient)
{
    const fr_batch_norm_dims *d = &call->instr->batch_norm;
    double *sums = call->scratch;
    const int n_team = fr_team(call, d->rows * d->cols);
    FR_FOR_TEAM(n_team);
#pragma omp parallel for num_threads(n_team) schedule(static)
    for (int i = 0; i < FR_SUM_PIECES; i++)
        sum_piece(all, fr_range_part(d->rows, 1, i, FR_SUM_PIECES), d->cols,
                  is_gradient, sums + 2 * i * d->cols);
    for (int i = 1; i < FR_SUM_PIECES; i++)
        for (int64_t c = 0; c < 2 * d->cols; c++)
            sums[c] += sums[2 * i * d->cols + c];
    return sums;
}

/* The rows of an instruction's parameters. */
typedef struct parameters {
    const float *weight, *bias, *mean, *variance;
} parameters;

static parameters rows_of(const float *p, int64_t stride)
{
    return (parameters){p, p + stride, p + 2 * stride, p + 3 * stride};
}

/* ---- forward ------------------------------------------------------------ */

typedef struct apply {
    int64_t n, cols; /* n: elements, whole rows */
    const float *x, *add;
    columns column;
    float *y;
    uint8_t *mask;
    bool has_relu;
} apply;

FR_SIMD static void batch_norm_apply(const apply *at)
{
    const float *restrict scale = at->column.scale, *restrict shift =
                                                        at->column.shift;
    const int64_t n = at->cols;
    for (int64_t first = 0; first < at->n; first += n) {
        const float *x = at->x + first;
        float *y = at->y + first;
        if (at->mask != NULL) {
            const float *add = at->add + first;
            uint8_t *restrict mask = at->mask + first;
#pragma omp simd
            for (int64_t c = 0; c < n; c++) {
                const float made = x[c] * scale[c] + shift[c] + add[c];
                mask[c] = made > 0.0F;
                y[c] = made > 0.0F ? made : 0.0F;
            }
        } else if (at->add != NULL) {
            const float *add = at->add + first;
#pragma omp simd
            for (int64_t c = 0; c < n; c++)
                y[c] = x[c] * scale[c] + shift[c] + add[c];
        } else if (at->has_relu) {
#pragma omp simd
            for (int64_t c = 0; c < n; c++) {
                const float made = x[c] * scale[c] + shift[c];
                y[c] = made > 0.0F ? made : 0.0F;
            }
        } else {
#pragma omp simd
            for (int64_t c = 0; c < n; c++)
                y[c] = x[c] * scale[c] + shift[c];
        }
    }
}

/* The batch's mean and 1 / deviation of each column, or the running ones. */
static void find_stats(const fr_kernel_call *call, parameters p, float *stats)
{
    const fr_batch_norm_dims *d = &call->instr->batch_norm;
    const float *x = call->ptr[FR_BATCH_NORM_FWD_X];
    const double eps = call->instr->scalar, n = (double)d->rows;
    const double *sums = NULL;
    if (!call->is_evaluation) {
        const tile all = {.x = x, .from = x, .stride = d->cols};
        sums = sum_columns(call, &all, false);
    }
    for (int64_t c = 0; c < d->cols; c++) {
        double mean = (double)p.mean[c], variance = (double)p.variance[c];
        if (sums != NULL) {
            const double away = sums[c] / n;
            mean = (double)x[c] + away;
            variance = fmax(sums[d->cols + c] / n - away * away, 0);
        }
        stats[c] = (float)mean;
        stats[d->cols + c] = (float)(1 / sqrt(variance + eps));
    }
}

/* y = x scale + shift, into the scratch. */
static columns fold(const fr_kernel_call *call, parameters p,
                    const float *stats, void *room)
{
    const int64_t n = call->instr->batch_norm.cols;
    float *scale = room, *shift = scale + n;
    for (int64_t c = 0; c < n; c++) {
        scale[c] = stats[n + c] * p.weight[c];
        shift[c] = p.bias[c] - stats[c] * scale[c];
    }
    return (columns){scale, shift};
}

void fr_kernel_batch_norm_fwd(const fr_kernel_call *call)
{
    const fr_batch_norm_dims *d = &call->instr->batch_norm;
    const parameters p = rows_of(call->ptr[FR_BATCH_NORM_FWD_P], d->stride);
    float *stats = call->ptr[FR_BATCH_NORM_FWD_STATS];
    find_stats(call, p, stats);
    const apply all = {.cols = d->cols,
                       .x = call->ptr[FR_BATCH_NORM_FWD_X],
                       .add = call->ptr[FR_BATCH_NORM_FWD_ADD],
                       .y = call->ptr[FR_BATCH_NORM_FWD_Y],
                       .mask = call->ptr[FR_BATCH_NORM_FWD_MASK],
                       .column = fold(call, p, stats, call->scratch),
                       .has_relu = (call->instr->flags & FR_INSTR_RELU) != 0};
#pragma omp parallel num_threads(fr_team(call, d->rows * d->cols))
    {
        const fr_range mine = fr_range_mine(d->rows, 1);
        apply at = all;
        const int64_t first = mine.first * d->cols;
        at.n = (mine.last - mine.first) * d->cols;
        at.x += first;
        at.y += first;
        at.add = at.add != NULL ? at.add + first : NULL;
        at.mask = at.mask != NULL ? at.mask + first : NULL;
        batch_norm_apply(&at);
    }
}

/* ---- backward ----------------------------------------------------------- */

/* dx = scale dy + (x - mean) slope + level, of each column */
typedef struct unapply {
    int64_t n, cols;
    const float *x, *dy, *mean, *slope, *level;
    const uint8_t *mask;
    columns column;
    float *dx, *dadd;
    bool has_relu;
} unapply;

FR_SIMD static void batch_norm_unapply(const unapply *at)
{
    const float *restrict scale = at->column.scale, *restrict shift =
                                                        at->column.shift;
    const float *restrict mean = at->mean, *restrict slope = at->slope,
                          *restrict level = at->level;
    const int64_t n = at->cols;
    for (int64_t first = 0; first < at->n; first += n) {
        const float *x = at->x + first, *dy = at->dy + first;
        float *dx = at->dx + first;
        if (at->mask != NULL) {
            const uint8_t *restrict mask = at->mask + first;
            float *dadd = at->dadd + first;
#pragma omp simd
            for (int64_t c = 0; c < n; c++) {
                const float g = mask[c] ? dy[c] : 0.0F;
                dadd[c] = g;
                dx[c] = scale[c] * g + (x[c] - mean[c]) * slope[c] + level[c];
            }
        } else if (at->has_relu) {
#pragma omp simd
            for (int64_t c = 0; c < n; c++) {
                const float g = masked(dy[c], x[c], scale[c], shift[c]);
                dx[c] = scale[c] * g + (x[c] - mean[c]) * slope[c] + level[c];
            }
        } else {
#pragma omp simd
            for (int64_t c = 0; c < n; c++)
                dx[c] =
                    scale[c] * dy[c] + (x[c] - mean[c]) * slope[c] + level[c];
        }
    }
}

/* Gradients of the parameters, and how far the running statistics are from the
 * batch's (its variance with n - 1, as PyTorch has it). */
static void add_gradients(const fr_kernel_call *call, parameters p,
                          const float *stats, const double *sums, double eps)
{
    const fr_batch_norm_dims *d = &call->instr->batch_norm;
    const double n = (double)d->rows, share = call->instr->scalar;
    float *dp = call->ptr[FR_BATCH_NORM_BWD_DP];
    for (int64_t c = 0; c < d->cols; c++) {
        const double inverse = (double)stats[d->cols + c];
        const double variance =
            fmax(1 / (inverse * inverse) - eps, 0) * (n > 1 ? n / (n - 1) : 1);
        dp[c] += (float)(sums[d->cols + c] * inverse);
        dp[d->stride + c] += (float)sums[c];
        dp[2 * d->stride + c] +=
            (float)(share * ((double)p.mean[c] - (double)stats[c]));
        dp[3 * d->stride + c] +=
            (float)(share * ((double)p.variance[c] - variance));
    }
}

void fr_kernel_batch_norm_bwd(const fr_kernel_call *call)
{
    const fr_batch_norm_dims *d = &call->instr->batch_norm;
    const int64_t cols = d->cols;
    const parameters p = rows_of(call->ptr[FR_BATCH_NORM_BWD_P], d->stride);
    const float *stats = call->ptr[FR_BATCH_NORM_BWD_STATS];
    const bool has_relu = (call->instr->flags & FR_INSTR_RELU) != 0;
    /* Behind the sums: scale, shift, slope, level. */
    float *room = (float *)call->scratch + 4 * FR_SUM_PIECES * cols;
    const columns column = fold(call, p, stats, room);
    float *slope = room + 2 * cols, *level = room + 3 * cols;
    const tile sums_of = {.x = call->ptr[FR_BATCH_NORM_BWD_X],
                          .dy = call->ptr[FR_BATCH_NORM_BWD_DY],
                          .mask = call->ptr[FR_BATCH_NORM_BWD_MASK],
                          .from = stats,
                          .stride = cols,
                          .column = column,
                          .has_relu = has_relu};
    const double *sums = sum_columns(call, &sums_of, true);
    add_gradients(call, p, stats, sums, call->model->norm_eps);
    for (int64_t c = 0; c < cols; c++) {
        const double scale = (double)column.scale[c],
                     inverse = (double)stats[cols + c], n = (double)d->rows;
        slope[c] = (float)(-scale * inverse * inverse * sums[cols + c] / n);
        level[c] = (float)(-scale * sums[c] / n);
    }
    const unapply all = {.cols = cols,
                         .x = sums_of.x,
                         .dy = sums_of.dy,
                         .mask = sums_of.mask,
                         .mean = stats,
                         .slope = slope,
                         .level = level,
                         .column = column,
                         .dx = call->ptr[FR_BATCH_NORM_BWD_DX],
                         .dadd = call->ptr[FR_BATCH_NORM_BWD_DADD],
                         .has_relu = has_relu};
#pragma omp parallel num_threads(fr_team(call, d->rows *cols))
    {
        const fr_range mine = fr_range_mine(d->rows, 1);
        const int64_t first = mine.first * cols;
        unapply at = all;
        at.n = (mine.last - mine.first) * cols;
        at.x += first;
        at.dy += first;
        at.dx += first;
        at.dadd = at.dadd != NULL ? at.dadd + first : NULL;
        at.mask = at.mask != NULL ? at.mask + first : NULL;
        batch_norm_unapply(&at);
        /* The sum's other gradient is the same where nothing is masked. */
        if (at.dadd != NULL && at.mask == NULL && at.dadd != at.dy && at.n > 0)
            memcpy(at.dadd, at.dy, (size_t)at.n * sizeof *at.dadd);
    }
}
