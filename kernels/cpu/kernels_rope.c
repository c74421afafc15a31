/*
 * kernels_rope.c: rotary positions (Su et al. 2021, arXiv 2104.09864) of all
 * or of the first columns of each head.
 */
#include "kernels/cpu/kernels_simd.h"
#include "kernels/kernels_list.h"
#include "spec/model/rope.h"

#include <math.h>

#define ROPE_BLOCK 16 /* positions rotated on from one exact angle */
#define ROPE_PAIRS 64 /* pairs of a head at a time: 2.5 KiB of stack */

/*
 * cos and sin of position * theta^(-2i/rotated) for n pairs from `first`.
 * libm's sincos at the first position of a block only; from there on by the
 * angle's own rotation in double, 16 times at most, which costs no digit of
 * the fp32 result.
 */
typedef struct rope_angles {
    int64_t first, n;
    double c[ROPE_PAIRS], s[ROPE_PAIRS];
    double step_c[ROPE_PAIRS], step_s[ROPE_PAIRS];
    float cos_f[ROPE_PAIRS], sin_f[ROPE_PAIRS];
} rope_angles;

static void angles_begin(rope_angles *at, const fr_kernel_call *call,
                         int64_t position, int64_t half, bool is_scaled)
{
    const fr_rope rope =
        fr_rope_of(is_scaled ? call->model : NULL, call->instr->scalar, half,
                   call->job != NULL ? call->job->seq : 0);
    const double magnitude = fr_rope_magnitude(&rope);
    for (int64_t i = 0; i < at->n; i++) {
        const double frequency = fr_rope_frequency(&rope, at->first + i);
        sincos((double)position * frequency, &at->s[i], &at->c[i]);
        sincos(frequency, &at->step_s[i], &at->step_c[i]);
        at->s[i] *= magnitude;
        at->c[i] *= magnitude;
    }
}

FR_SIMD static void angles_next(rope_angles *at, float sign)
{
    int64_t n = at->n;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        double c = at->c[i], s = at->s[i];
        at->cos_f[i] = (float)c;
        at->sin_f[i] = sign * (float)s;
        at->c[i] = c * at->step_c[i] - s * at->step_s[i];
        at->s[i] = s * at->step_c[i] + c * at->step_s[i];
    }
}

/* n_heads heads of `width` from `x` on; the pair of i is i + half. */
FR_SIMD static void rotate(float *x, const rope_angles *at, int64_t half,
                           int64_t width, int64_t n_heads)
{
    const float *restrict c = at->cos_f, *restrict s = at->sin_f;
    int64_t n = at->n;
    for (int64_t head = 0; head < n_heads; head++) {
        float *low = x + head * width + at->first;
        float *high = low + half;
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            float a = low[i], b = high[i];
            low[i] = a * c[i] - b * s[i];
            high[i] = b * c[i] + a * s[i];
        }
    }
}

/* Pairs of a head. */
static int64_t half_of(const fr_rope_dims *dim)
{
    return (dim->rotated > 0 ? dim->rotated : dim->head_dim) / 2;
}

/* Rotates the pairs of `at` in the heads of a row of qkv. */
static void rotate_row(const fr_kernel_call *call, const rope_angles *at,
                       int64_t row)
{
    const fr_rope_dims *dim = &call->instr->rope;
    const int64_t half = half_of(dim), width = dim->head_dim;
    const int64_t q = dim->q_heads * dim->head_dim,
                  kv = 2 * dim->kv_heads * dim->head_dim;
    float *qkv = call->ptr[FR_ROPE_FWD_QKV];
    if (call->instr->flags & FR_INSTR_KEYS_APART) {
        rotate(qkv + row * q, at, half, width, dim->q_heads);
        rotate(qkv + dim->rows * q + row * kv, at, half, width, dim->kv_heads);
    } else {
        rotate(qkv + row * (q + kv), at, half, width,
               dim->q_heads + dim->kv_heads);
    }
}

/* The pairs of `at` in all rows of a run of positions from its `first`. */
static void rotate_block(const fr_kernel_call *call, rope_angles *at,
                         const fr_sequence_run *run, int64_t first, float sign)
{
    const fr_rope_dims *dim = &call->instr->rope;
    angles_begin(at, call, run->position + first, half_of(dim),
                 dim->is_scaled != 0);
    for (int64_t t = first; t < first + ROPE_BLOCK && t < run->n; t++) {
        angles_next(at, sign);
        for (int64_t row = run->row + t; row < dim->rows; row += dim->seq)
            rotate_row(call, at, row);
    }
}

static void rope(const fr_kernel_call *call, float sign)
{
    const fr_rope_dims *dim = &call->instr->rope;
    const fr_sequence_rows rows = {call->share, false, dim->seq};
    int64_t half = half_of(dim), n_runs = fr_sequence_n_runs(&rows);
    int64_t per_run =
        (dim->seq / n_runs + ROPE_BLOCK - 1) / ROPE_BLOCK; /* blocks */
    int64_t n_work = dim->rows * (dim->q_heads + dim->kv_heads) * dim->head_dim;
    int n_team = fr_team(call, n_work);
    FR_FOR_TEAM(n_team);
#pragma omp parallel num_threads(n_team)
    {
        rope_angles at;
        fr_range part = fr_range_mine(n_runs * per_run, 1);
        for (int64_t block = part.first; block < part.last; block++) {
            fr_sequence_run run =
                fr_sequence_run_of(&rows, 1, 0, block / per_run);
            for (int64_t i = 0; i < half; i += ROPE_PAIRS) {
                at.first = i;
                at.n = half - i < ROPE_PAIRS ? half - i : ROPE_PAIRS;
                rotate_block(call, &at, &run, block % per_run * ROPE_BLOCK,
                             sign);
            }
        }
    }
}

void fr_kernel_rope_fwd(const fr_kernel_call *call)
{
    rope(call, 1.0F);
}

void fr_kernel_rope_bwd(const fr_kernel_call *call)
{
    rope(call, -1.0F);
}

/* ---- latent attention --------------------------------------------------- */

/* The pairs of `at`, side by side from x on. */
static void turn_pairs(float *x, const rope_angles *at)
{
    x += 2 * at->first;
    for (int64_t i = 0; i < at->n; i++) {
        float a = x[2 * i], b = x[2 * i + 1];
        x[2 * i] = a * at->cos_f[i] - b * at->sin_f[i];
        x[2 * i + 1] = b * at->cos_f[i] + a * at->sin_f[i];
    }
}

/* One row of the operands. */
typedef struct latent_row {
    float *q, *up, *shared, *keys;
} latent_row;

static latent_row latent_row_of(const fr_kernel_call *call, int64_t row,
                                bool is_backward)
{
    const fr_latent_dims *d = &call->instr->latent;
    float *up = call->ptr[is_backward ? FR_LATENT_BWD_DUP : FR_LATENT_FWD_UP];
    float *shared =
        call->ptr[is_backward ? FR_LATENT_BWD_DSHARED : FR_LATENT_FWD_SHARED];
    float *keys =
        call->ptr[is_backward ? FR_LATENT_BWD_DKEYS : FR_LATENT_FWD_KEYS];
    return (latent_row){
        (float *)call->ptr[FR_LATENT_FWD_Q] + row * d->heads * d->head_dim,
        up + row * d->heads * d->up_cols, shared + row * d->rotated,
        keys + row * d->heads * d->kv_cols};
}

static void copy_floats(float *to, const float *from, int64_t n)
{
    memcpy(to, from, (size_t)n * sizeof *to);
}

/* Copies the part of a row's keys that is not rotated, and its values. */
static void move_plain(const fr_latent_dims *d, const latent_row *row,
                       bool is_backward)
{
    const int64_t own = d->head_dim - d->rotated, v = d->up_cols - own;
    for (int64_t h = 0; h < d->heads; h++) {
        float *up = row->up + h * d->up_cols;
        float *key = row->keys + h * d->head_dim;
        float *value = row->keys + d->heads * d->head_dim + h * v;
        copy_floats(is_backward ? up : key, is_backward ? key : up, own);
        copy_floats(is_backward ? up + own : value,
                    is_backward ? value : up + own, v);
    }
}

static void latent_forward(const fr_latent_dims *d, const rope_angles *at,
                           const latent_row *row)
{
    const int64_t own = d->head_dim - d->rotated, first = 2 * at->first;
    float *turned = row->keys + own;
    copy_floats(turned + first, row->shared + first, 2 * at->n);
    turn_pairs(turned, at);
    for (int64_t h = 0; h < d->heads; h++) {
        turn_pairs(row->q + h * d->head_dim + own, at);
        if (h > 0)
            copy_floats(turned + h * d->head_dim + first, turned + first,
                        2 * at->n);
    }
}

static void latent_backward(const fr_latent_dims *d, const rope_angles *at,
                            const latent_row *row)
{
    const int64_t own = d->head_dim - d->rotated, first = 2 * at->first;
    const float *keys = row->keys + own + first;
    for (int64_t h = 0; h < d->heads; h++) {
        turn_pairs(row->q + h * d->head_dim + own, at);
        if (h == 0)
            copy_floats(row->shared + first, keys, 2 * at->n);
        else
            fr_floats_add(row->shared + first, keys + h * d->head_dim,
                          2 * at->n);
    }
    turn_pairs(row->shared, at);
}

/* All heads of the rows of one position. */
static void latent_position(const fr_kernel_call *call, const rope_angles *at,
                            int64_t first_row, bool is_backward)
{
    const fr_latent_dims *d = &call->instr->latent;
    for (int64_t i = first_row; i < d->rows; i += d->seq) {
        const latent_row row = latent_row_of(call, i, is_backward);
        if (at->first == 0)
            move_plain(d, &row, is_backward);
        if (is_backward)
            latent_backward(d, at, &row);
        else
            latent_forward(d, at, &row);
    }
}

static void latent_block(const fr_kernel_call *call, const fr_sequence_run *run,
                         int64_t first, bool is_backward)
{
    const fr_latent_dims *d = &call->instr->latent;
    const int64_t half = d->rotated / 2;
    rope_angles at;
    for (at.first = 0; at.first < half; at.first += ROPE_PAIRS) {
        const int64_t left = half - at.first;
        at.n = left < ROPE_PAIRS ? left : ROPE_PAIRS;
        angles_begin(&at, call, run->position + first, half, d->is_scaled != 0);
        for (int64_t t = first; t < first + ROPE_BLOCK && t < run->n; t++) {
            angles_next(&at, is_backward ? -1.0F : 1.0F);
            latent_position(call, &at, run->row + t, is_backward);
        }
    }
}

static void latent(const fr_kernel_call *call, bool is_backward)
{
    const fr_latent_dims *d = &call->instr->latent;
    const fr_sequence_rows rows = {call->share, false, d->seq};
    const int64_t n_runs = fr_sequence_n_runs(&rows);
    const int64_t per_run = (d->seq / n_runs + ROPE_BLOCK - 1) / ROPE_BLOCK;
    const int n_team = fr_team(call, d->rows * d->heads * d->kv_cols);
    FR_FOR_TEAM(n_team);
#pragma omp parallel num_threads(n_team)
    {
        fr_range part = fr_range_mine(n_runs * per_run, 1);
        for (int64_t block = part.first; block < part.last; block++) {
            const fr_sequence_run run =
                fr_sequence_run_of(&rows, 1, 0, block / per_run);
            latent_block(call, &run, block % per_run * ROPE_BLOCK, is_backward);
        }
    }
}

void fr_kernel_latent_fwd(const fr_kernel_call *call)
{
    latent(call, false);
}

void fr_kernel_latent_bwd(const fr_kernel_call *call)
{
    latent(call, true);
}
