/*
 * kernels_xent.c: fused softmax cross entropy, whole or over a vocabulary
 * that tensor parallelism has cut (then max, sum and gradient are three ops
 * with two small reductions between them).
 *
 * Columns beyond the vocabulary (padding of the last shard) have probability
 * and gradient 0.  A row whose target is outside the vocabulary (-100 by the
 * usual convention) is ignored.  The rows' losses are added in double over
 * fixed pieces.
 */
#include "kernels/cpu/kernels_simd.h"
#include "kernels/kernels_list.h"

#include <math.h>

#define SUM_BLOCK 1024 /* exponentials added in fp32 before double */

/* y = exp(x - shift), y may be x */
FR_SIMD static float block_exp(float *y, const float *x, int64_t n, float shift)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) {
        float e = fr_fast_expf(x[i] - shift);
        y[i] = e;
        sum += e;
    }
    return sum;
}

FR_SIMD static float block_exp_sum(const float *x, int64_t n, float shift)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        sum += fr_fast_expf(x[i] - shift);
    return sum;
}

/* x = exp(x - shift) if is_written; returns the sum. */
static double row_exp(float *x, int64_t n, float shift, bool is_written)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i += SUM_BLOCK) {
        int64_t m = n - i < SUM_BLOCK ? n - i : SUM_BLOCK;
        sum += (double)(is_written ? block_exp(x + i, x + i, m, shift)
                                   : block_exp_sum(x + i, m, shift));
    }
    return sum;
}

/* The shape of the logits. */
typedef struct xent_shape {
    int64_t rows, cols; /* cols: local, padding included */
    int64_t vocab;      /* global */
    int64_t first;      /* global column of the local column 0 */
    int64_t n_valid;    /* local columns that are in the vocabulary */
    const int32_t *targets;
} xent_shape;

static xent_shape shape_of(const fr_kernel_call *call)
{
    const fr_loss_dims *dim = &call->instr->loss;
    const int32_t *tokens = call->ptr[1];
    xent_shape shape = {.rows = dim->rows,
                        .cols = dim->n_local,
                        .vocab = dim->vocab,
                        .first = call->instr->op == FR_OP_XENT
                                     ? 0
                                     : call->coordinate * dim->n_local,
                        .targets = tokens + dim->rows};
    int64_t left = shape.vocab - shape.first;
    shape.n_valid = left < 0 ? 0 : (left < dim->n_local ? left : dim->n_local);
    return shape;
}

static bool is_ignored(const xent_shape *shape, int64_t row)
{
    return shape->targets[row] < 0 || shape->targets[row] >= shape->vocab;
}

/* Local column of the row's target; -1: in another shard, or ignored. */
static int64_t target_column(const xent_shape *shape, int64_t row)
{
    int64_t column = shape->targets[row] - shape->first;
    bool is_here = column >= 0 && column < shape->n_valid;
    return is_here && !is_ignored(shape, row) ? column : -1;
}

/* exp(logit - max) -> gradient, given the sum over the whole vocabulary */
static void row_finish(const xent_shape *shape, float *x, int64_t row,
                       double sum, double scale)
{
    int64_t column = target_column(shape, row);
    size_t n_padding = (size_t)(shape->cols - shape->n_valid);
    if (is_ignored(shape, row))
        memset(x, 0, (size_t)shape->n_valid * sizeof *x);
    else
        fr_floats_scale(x, shape->n_valid, (float)(scale / sum));
    if (column >= 0)
        x[column] -= (float)scale;
    memset(x + shape->n_valid, 0, n_padding * sizeof *x);
}

typedef double (*row_loss_fn)(const fr_kernel_call *call,
                              const xent_shape *shape, int64_t row);

/* The losses of all rows, added over fixed pieces. */
static double sum_losses(const fr_kernel_call *call, const xent_shape *shape,
                         row_loss_fn row_loss)
{
    double losses[FR_SUM_PIECES], loss = 0;
#pragma omp parallel for schedule(static)                                      \
    num_threads(fr_team(call, shape->rows * shape->cols))
    for (int piece = 0; piece < FR_SUM_PIECES; piece++) {
        fr_range part = fr_range_part(shape->rows, 1, piece, FR_SUM_PIECES);
        double sum = 0;
        for (int64_t row = part.first; row < part.last; row++)
            sum += row_loss(call, shape, row);
        losses[piece] = sum;
    }
    for (int piece = 0; piece < FR_SUM_PIECES; piece++)
        loss += losses[piece];
    return loss;
}

static bool is_told(const fr_kernel_call *call)
{
    return (call->instr->flags & FR_INSTR_UNTOLD) == 0;
}

static double xent_row(const fr_kernel_call *call, const xent_shape *shape,
                       int64_t row)
{
    float *logits = call->ptr[FR_XENT_LOGITS], *x = logits + row * shape->cols;
    int64_t column = target_column(shape, row);
    float max = fr_floats_max(x, shape->n_valid, x[0]);
    float target = column >= 0 ? x[column] : 0.0F;
    double sum = row_exp(x, shape->n_valid, max, true);
    row_finish(shape, x, row, sum, call->instr->scalar);
    return column >= 0 ? log(sum) + (double)max - (double)target : 0.0;
}

void fr_kernel_xent(const fr_kernel_call *call)
{
    xent_shape shape = shape_of(call);
    fr_step_scalars *step = call->ptr[FR_XENT_STEP];
    const double loss = sum_losses(call, &shape, xent_row);
    if (call->tp_coordinate == 0 &&
        is_told(call)) /* others have the same logits */
        step->loss_sum += loss * call->instr->scalar;
}

void fr_kernel_xent_max(const fr_kernel_call *call)
{
    xent_shape shape = shape_of(call);
    const float *logits = call->ptr[FR_XENT_MAX_LOGITS];
    float *max = call->ptr[FR_XENT_MAX_ROW_MAX];
#pragma omp parallel for schedule(static)                                      \
    num_threads(fr_team(call, shape.rows *shape.cols))
    for (int64_t row = 0; row < shape.rows; row++)
        max[row] =
            fr_floats_max(logits + row * shape.cols, shape.n_valid, -INFINITY);
}

void fr_kernel_xent_sum(const fr_kernel_call *call)
{
    xent_shape shape = shape_of(call);
    float *logits = call->ptr[FR_XENT_SUM_LOGITS];
    const float *max = call->ptr[FR_XENT_SUM_ROW_MAX];
    float *sums = call->ptr[FR_XENT_SUM_SUMS];
#pragma omp parallel for schedule(static)                                      \
    num_threads(fr_team(call, shape.rows *shape.cols))
    for (int64_t row = 0; row < shape.rows; row++) {
        float *x = logits + row * shape.cols;
        int64_t column = target_column(&shape, row);
        sums[row] = (float)row_exp(x, shape.n_valid, max[row], false);
        sums[shape.rows + row] = column >= 0 ? x[column] : 0.0F;
    }
}

static double grad_row(const fr_kernel_call *call, const xent_shape *shape,
                       int64_t row)
{
    float *logits = call->ptr[0];
    float *x = logits + row * shape->cols;
    const float *max = call->ptr[2], *sums = call->ptr[3];
    double sum = (double)sums[row];
    row_exp(x, shape->n_valid, max[row], true);
    row_finish(shape, x, row, sum, call->instr->scalar);
    if (is_ignored(shape, row))
        return 0;
    return log(sum) + (double)max[row] - (double)sums[shape->rows + row];
}

void fr_kernel_xent_grad(const fr_kernel_call *call)
{
    xent_shape shape = shape_of(call);
    fr_step_scalars *step = call->ptr[FR_XENT_GRAD_STEP];
    double loss = sum_losses(call, &shape, grad_row);
    if (call->coordinate == 0 && is_told(call))
        step->loss_sum += loss * call->instr->scalar;
}
