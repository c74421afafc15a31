/*
 * kernels_powersgd.c: PowerSGD (Vogels, Karimireddy, Jaggi 2019, arXiv
 * 1905.13727, algorithm 1) over the matrices of a bucket.
 *
 *   stage 0   M = g + error;  P = M Q          (Q: last step's, or random)
 *   stage 1   P orthonormalised; Q = M^T P; error = M - P Q^T (own Q)
 *   decode    g = P Q^T with the summed Q, which is kept for the next step
 *
 * As the own Qs add up to the summed one, sum(error) = sum(M) - g exactly.
 * P and Q are stored transposed, [rank, rows] and [rank, cols], so that every
 * loop runs along memory.  The skinny products are memory-bound: plain loops
 * (the communication thread, which must not enter OpenBLAS, runs them too).
 */
#include "core/numbers/rng.h"
#include "kernels/cpu/kernels_simd.h"
#include "kernels/kernels_list.h"
#include "kernels/powersgd_layout.h"
#include "plan/codec/compressor.h"

#include <assert.h>
#include <math.h>

/* One matrix of the bucket and its factors. */
typedef struct factors {
    int64_t rows, cols, rank;
    const float *g;
    const float *m; /* gradient + error if kept, else the gradient */
    float *error;   /* NULL: not kept */
    float *out;     /* decoded gradient */
    float *p, *q;   /* transposed, in the state */
    uint32_t tensor_id;
} factors;

/* ---- loops along rows --------------------------------------------------- */

/* p[k*p_stride] = m . q[k*n...] for the four k at a time that there are */
FR_SIMD static void row_dots(const float *restrict m, const float *restrict q,
                             int64_t n, float sums[4], int n_dots)
{
    const float *q1 = q + (n_dots > 1 ? n : 0);
    const float *q2 = q + (n_dots > 2 ? 2 * n : 0);
    const float *q3 = q + (n_dots > 3 ? 3 * n : 0);
    float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
    for (int64_t i = 0; i < n; i++) {
        s0 += m[i] * q[i];
        s1 += m[i] * q1[i];
        s2 += m[i] * q2[i];
        s3 += m[i] * q3[i];
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

/* y += a x */
FR_SIMD static void add_scaled(float *restrict y, const float *restrict x,
                               int64_t n, float a)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] += a * x[i];
}

/* y += a[0] x[0] + ... + a[3] x[3], the rows of x `stride` apart */
FR_SIMD static void add_scaled_4(float *restrict y, const float *restrict x,
                                 int64_t stride, int64_t n, const float a[4])
{
    const float *restrict x1 = x + stride, *restrict x2 = x1 + stride;
    const float *restrict x3 = x2 + stride;
    float a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] += (a0 * x[i] + a1 * x1[i]) + (a2 * x2[i] + a3 * x3[i]);
}

/* y += sum over k of a[k] x[k], n_k rows of x */
static void add_combination(float *y, const float *x, int64_t stride, int64_t n,
                            const float *a, int64_t n_k)
{
    int64_t k = 0;
    for (; k + 4 <= n_k; k += 4)
        add_scaled_4(y, x + k * stride, stride, n, a + k);
    for (; k < n_k; k++)
        add_scaled(y, x + k * stride, n, a[k]);
}

FR_SIMD static double dot(const float *a, const float *b, int64_t n)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* ---- products ----------------------------------------------------------- */

/* p^T[k, row] = m[row, :] . q^T[k, :] */
static void multiply_q(const factors *f, float *p_t, int n_team)
{
    FR_FOR_TEAM(n_team);
#pragma omp parallel for num_threads(n_team) schedule(static)
    for (int64_t row = 0; row < f->rows; row++) {
        for (int64_t k = 0; k < f->rank; k += 4) {
            int n_dots = f->rank - k < 4 ? (int)(f->rank - k) : 4;
            float sums[4];
            row_dots(f->m + row * f->cols, f->q + k * f->cols, f->cols, sums,
                     n_dots);
            for (int j = 0; j < n_dots; j++)
                p_t[(k + j) * f->rows + row] = sums[j];
        }
    }
}

#define COLUMN_BLOCK 512 /* columns of q^T that stay in the first cache */

/*
 * q^T[k, cols] = sum over rows of p^T[k, row] m[row, cols].  The threads
 * share the columns; rows are added in order, four at a time.
 */
static void multiply_p(const factors *f, float *q_t, int n_team)
{
    int64_t n_blocks = (f->cols + COLUMN_BLOCK - 1) / COLUMN_BLOCK;
    int64_t block = n_blocks < n_team ? 64 : COLUMN_BLOCK;
#pragma omp parallel for num_threads(n_team) schedule(static)
    for (int64_t first = 0; first < f->cols; first += block) {
        int64_t left = f->cols - first, n = left < block ? left : block;
        for (int64_t k = 0; k < f->rank; k++)
            memset(q_t + k * f->cols + first, 0, (size_t)n * sizeof *q_t);
        for (int64_t row = 0; row < f->rows; row += 4) {
            int64_t n_rows = f->rows - row < 4 ? f->rows - row : 4;
            for (int64_t k = 0; k < f->rank; k++)
                add_combination(q_t + k * f->cols + first,
                                f->m + row * f->cols + first, f->cols, n,
                                f->p + k * f->rows + row, n_rows);
        }
    }
}

/* y[row, :] (+)= sign * sum over k of p^T[k, row] q^T[k, :] */
static void add_product(const factors *f, const float *q_t, float *y,
                        float sign, int n_team)
{
    FR_FOR_TEAM(n_team);
#pragma omp parallel for num_threads(n_team) schedule(static)
    for (int64_t row = 0; row < f->rows; row++) {
        float p[FR_POWERSGD_MAX_RANK];
        for (int64_t k = 0; k < f->rank; k++)
            p[k] = sign * f->p[k * f->rows + row];
        if (sign > 0)
            memset(y + row * f->cols, 0, (size_t)f->cols * sizeof *y);
        add_combination(y + row * f->cols, q_t, f->cols, f->cols, p, f->rank);
    }
}

/* ---- orthonormal columns ------------------------------------------------ */

/*
 * Takes the components along columns 0..k-1 out of column k.  Classical
 * Gram-Schmidt; done twice it is orthogonal to working precision (Giraud et
 * al., Numer. Math. 101, 2005).
 */
static void project_out(float *p, int64_t rows, int64_t k, int n_team)
{
    float along[FR_POWERSGD_MAX_RANK];
    float *column = p + k * rows;
    FR_FOR_TEAM(n_team);
#pragma omp parallel num_threads(n_team)
    {
#pragma omp for schedule(static)
        for (int64_t j = 0; j < k; j++)
            along[j] = (float)dot(p + j * rows, column, rows);
        fr_range part = fr_range_mine(rows, 16);
        for (int64_t j = 0; j < k; j++)
            add_scaled(column + part.first, p + j * rows + part.first,
                       part.last - part.first, -along[j]);
    }
}

/*
 * A column that lies in the span of those before it becomes 0 (not noise
 * blown up to length 1): then P P^T is still a projection, and M - P P^T M
 * never longer than M.
 */
static void orthonormalise(float *p, int64_t rows, int64_t rank, int n_team)
{
    for (int64_t k = 0; k < rank; k++) {
        float *column = p + k * rows;
        double before = sqrt(dot(column, column, rows));
        if (before > 0 && isfinite(before))
            fr_floats_scale(column, rows, (float)(1 / before));
        for (int pass = 0; pass < 2 && k > 0; pass++)
            project_out(p, rows, k, n_team);
        double length = sqrt(dot(column, column, rows));
        /* written so that a NaN is not taken for 0 */
        fr_floats_scale(column, rows,
                        length < 1e-5 ? 0.0F : (float)(1 / length));
    }
}

/* ---- the bucket --------------------------------------------------------- */

static factors factors_of(const fr_powersgd_layout *at,
                          const fr_powersgd_piece *piece, float *g)
{
    return (factors){.rows = piece->rows,
                     .cols = piece->cols,
                     .rank = piece->rank,
                     .g = g + piece->first,
                     .m = (at->error != NULL ? at->error : g) + piece->first,
                     .error =
                         at->error != NULL ? at->error + piece->first : NULL,
                     .out = g + piece->first,
                     .p = at->p + piece->p,
                     .q = at->q + piece->q,
                     .tensor_id = piece->tensor_id};
}

/* A column of Q that is 0 (at the start, or lost) begins at random: the same
 * on every rank, as Q is. */
static void revive(const factors *f, uint64_t seed)
{
    for (int64_t k = 0; k < f->rank; k++) {
        float *column = f->q + k * f->cols;
        bool is_zero = true;
        for (int64_t i = 0; i < f->cols && is_zero; i++)
            is_zero = column[i] == 0.0F;
        for (int64_t i = 0; i < f->cols && is_zero; i++)
            column[i] = (float)fr_hash_normal(seed, f->tensor_id, (uint64_t)k,
                                              (uint64_t)i);
    }
}

static void stage_p(const fr_kernel_call *call, const factors *f, float *p_t)
{
    int n_team = fr_team(call, f->rows * f->cols);
    revive(f, call->job->seed);
    if (f->error != NULL) {
#pragma omp parallel num_threads(n_team)
        {
            fr_range part = fr_range_mine(f->rows * f->cols, 16);
            fr_floats_add(f->error + part.first, f->g + part.first,
                          part.last - part.first);
        }
    }
    multiply_q(f, p_t, n_team);
}

static void stage_q(const fr_kernel_call *call, const factors *f,
                    const float *p_t, float *q_t)
{
    int n_team = fr_team(call, f->rows * f->cols);
    memcpy(f->p, p_t, (size_t)(f->rows * f->rank) * sizeof *p_t);
    orthonormalise(f->p, f->rows, f->rank, fr_team(call, f->rows * f->rank));
    multiply_p(f, q_t, n_team);
    if (f->error != NULL)
        add_product(f, q_t, f->error, -1.0F, n_team);
}

void fr_kernel_powersgd_compress(const fr_kernel_call *call)
{
    float *g = call->ptr[0];
    fr_powersgd_layout at = fr_powersgd_layout_of(call, call->ptr[2]);
    bool is_first = call->instr->compress.stage == 0;
    fr_powersgd_piece piece = {0};
    while (fr_powersgd_next(&at.bucket, call->plan->compressor_rank, &piece)) {
        factors f = factors_of(&at, &piece, g);
        if (!piece.is_matrix && is_first)
            memcpy(at.wire_raw + piece.raw, g + piece.first,
                   piece.n * sizeof *g);
        else if (piece.is_matrix && is_first)
            stage_p(call, &f, at.wire_p + piece.p);
        else if (piece.is_matrix)
            stage_q(call, &f, at.wire_p + piece.p, at.wire_q + piece.q);
    }
}

void fr_kernel_powersgd_decompress(const fr_kernel_call *call)
{
    float *g = call->ptr[2];
    fr_powersgd_layout at = fr_powersgd_layout_of(call, call->ptr[0]);
    assert(g != NULL);
    fr_powersgd_piece piece = {0};
    while (fr_powersgd_next(&at.bucket, call->plan->compressor_rank, &piece)) {
        if (!piece.is_matrix) {
            memcpy(g + piece.first, at.wire_raw + piece.raw,
                   piece.n * sizeof *g);
            continue;
        }
        factors f = factors_of(&at, &piece, g);
        assert(f.q != NULL);
        memcpy(f.q, at.wire_q + piece.q,
               (size_t)(f.cols * f.rank) * sizeof *f.q);
        add_product(&f, f.q, f.out, 1.0F, fr_team(call, f.rows * f.cols));
    }
}
