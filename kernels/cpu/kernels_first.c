/*
 * kernels_first.c: the first token of each sequence, which stands for all of
 * it, what is to be told of the sequence, and images as sequences of patches.
 */
#include "kernels/cpu/kernels_simd.h"
#include "kernels/kernels_list.h"
#include "spec/model/labels.h"

#include <string.h>

/* The row that sequence i begins with, of the rank's rows; -1: another's, as
 * are all but those of the first context parallel rank. */
static int64_t row_of(const fr_kernel_call *call, int64_t i)
{
    const fr_first_rows_dims *d = &call->instr->first_rows;
    const bool is_part = d->rows < d->batch * d->seq;
    const int64_t first = is_part ? call->tp_coordinate * d->rows : 0;
    const int64_t row = i * d->seq - first;
    return call->share.i == 0 && row >= 0 && row < d->rows ? row : -1;
}

void fr_kernel_first_rows_fwd(const fr_kernel_call *call)
{
    const fr_first_rows_dims *d = &call->instr->first_rows;
    const float *src = call->ptr[FR_FIRST_ROWS_FWD_SRC];
    float *dst = call->ptr[FR_FIRST_ROWS_FWD_DST];
    for (int64_t i = 0; i < d->batch; i++) {
        const int64_t row = row_of(call, i);
        if (row >= 0)
            memcpy(dst + i * d->cols, src + row * d->cols,
                   (size_t)d->cols * sizeof *dst);
        else
            memset(dst + i * d->cols, 0, (size_t)d->cols * sizeof *dst);
    }
}

void fr_kernel_first_rows_bwd(const fr_kernel_call *call)
{
    const fr_first_rows_dims *d = &call->instr->first_rows;
    const float *dy = call->ptr[FR_FIRST_ROWS_BWD_DY];
    float *dx = call->ptr[FR_FIRST_ROWS_BWD_DX];
    for (int64_t i = 0; i < d->batch; i++) {
        const int64_t row = row_of(call, i);
        for (int64_t c = 0; row >= 0 && c < d->cols; c++)
            dx[row * d->cols + c] += dy[i * d->cols + c];
    }
}

static int32_t label_of(const fr_kernel_call *call, int64_t i, int64_t n_labels)
{
    return fr_sample_label(call->job->seed, call->i_step,
                           call->first_sequence + i, n_labels);
}

void fr_kernel_labels(const fr_kernel_call *call)
{
    const fr_labels_dims *d = &call->instr->labels;
    int32_t *tokens = call->ptr[FR_LABELS_TOKENS];
    /* Only the rank with the first token has labels; a row without a target
     * counts nothing. */
    for (int64_t i = 0; i < d->n; i++) {
        tokens[i] = 0;
        tokens[d->n + i] =
            call->share.i == 0 ? label_of(call, i, d->n_labels) : -1;
    }
}

/* ---- images ------------------------------------------------------------- */

/* Row t, of n values, of sample i: a class has a picture of its own, a sample
 * as much noise. */
static void make_row(const fr_kernel_call *call, int64_t i, int64_t t,
                     int64_t n, float *out)
{
    const uint64_t seed = call->job->seed;
    const uint64_t label = (uint64_t)label_of(call, i, call->model->n_labels);
    for (int64_t c = 0; c < n; c++) {
        const uint64_t pixel = (uint64_t)(t * n + c);
        const double own = fr_hash_uniform(seed, label, UINT64_MAX, pixel);
        const double noise =
            fr_hash_uniform(seed, (uint64_t)call->i_step,
                            (uint64_t)(call->first_sequence + i), pixel);
        out[c] = (float)(own + noise - 1.0);
    }
}

/* Returns the position of a row in its sequence. */
static int64_t position_of(const fr_kernel_call *call, int64_t row)
{
    const int64_t len = call->instr->first_rows.seq;
    return fr_sequence_position(call->share, len, row % len);
}

void fr_kernel_patches(const fr_kernel_call *call)
{
    const fr_first_rows_dims *d = &call->instr->first_rows;
    float *out = call->ptr[FR_PATCHES_OUT];
    const int n_team = fr_team(call, 64 * d->rows * d->cols);
    FR_FOR_TEAM(n_team);
#pragma omp parallel for num_threads(n_team) schedule(static)
    for (int64_t row = 0; row < d->rows; row++) {
        const int64_t t = position_of(call, row);
        if (t == 0)
            memset(out + row * d->cols, 0, (size_t)d->cols * sizeof *out);
        else
            make_row(call, row / d->seq, t, d->cols, out + row * d->cols);
    }
}

void fr_kernel_images(const fr_kernel_call *call)
{
    const fr_images_dims *d = &call->instr->images;
    float *out = call->ptr[FR_IMAGES_OUT];
    const int64_t n_rows = d->batch * d->pixels;
    const int n_team = fr_team(call, 64 * n_rows * d->channels);
    FR_FOR_TEAM(n_team);
#pragma omp parallel for num_threads(n_team) schedule(static)
    for (int64_t row = 0; row < n_rows; row++)
        make_row(call, row / d->pixels, row % d->pixels, d->channels,
                 out + row * d->channels);
}

void fr_kernel_patch_embed_fwd(const fr_kernel_call *call)
{
    const fr_first_rows_dims *d = &call->instr->first_rows;
    const float *wpe = call->ptr[FR_PATCH_EMBED_FWD_WPE];
    const float *first = call->ptr[FR_PATCH_EMBED_FWD_FIRST];
    float *sum = call->ptr[FR_PATCH_EMBED_FWD_SUM];
#pragma omp parallel for schedule(static)                                      \
    num_threads(fr_team(call, d->rows * d->cols))
    for (int64_t row = 0; row < d->rows; row++) {
        float *out = sum + row * d->cols;
        const int64_t t = position_of(call, row);
        if (t == 0)
            memcpy(out, first, (size_t)d->cols * sizeof *out);
        fr_floats_add(out, wpe + t * d->cols, d->cols);
    }
}

/* Threads share the columns: every sum runs in the order of the rows. */
void fr_kernel_patch_embed_bwd(const fr_kernel_call *call)
{
    const fr_first_rows_dims *d = &call->instr->first_rows;
    float *dy = call->ptr[FR_PATCH_EMBED_BWD_DY];
    float *dwpe = call->ptr[FR_PATCH_EMBED_BWD_DWPE];
    float *dfirst = call->ptr[FR_PATCH_EMBED_BWD_DFIRST];
#pragma omp parallel num_threads(fr_team(call, d->rows * d->cols))
    {
        const fr_range part = fr_range_mine(d->cols, 16);
        const int64_t n = part.last - part.first;
        for (int64_t row = 0; row < d->rows && n > 0; row++) {
            float *at = dy + row * d->cols + part.first;
            const int64_t t = position_of(call, row);
            fr_floats_add(dwpe + t * d->cols + part.first, at, n);
            if (t != 0)
                continue;
            fr_floats_add(dfirst + part.first, at, n);
            memset(at, 0, (size_t)n * sizeof *at);
        }
    }
}
