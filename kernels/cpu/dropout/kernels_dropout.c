/* kernels_dropout.c: see dropout.h. */
#include "core/numbers/rng.h"
#include "kernels/cpu/dropout/dropout.h"
#include "kernels/cpu/kernels_simd.h"
#include "kernels/kernels_list.h"

/* Places of a layer: the sums behind attention and behind the MLP are
 * instr->place, the probabilities come after them. */
enum { PLACE_PROBABILITIES = 3, N_PLACES = 4 };

void fr_philox(const uint32_t counter[4], const uint32_t key[2],
               uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)c0 * 0xd2511f53U;
        uint64_t b = (uint64_t)c2 * 0xcd9e8d57U;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += 0x9e3779b9U;
        k1 += 0xbb67ae85U;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

static fr_dropout_row row_at(const fr_kernel_call *call, int place)
{
    const uint64_t seed = fr_hash_u64(call->job->seed, 0x64726f70, 0, 0);
    return (fr_dropout_row){
        .key = {(uint32_t)seed,
                (uint32_t)(seed >> 32) ^ (uint32_t)call->i_step},
        .word = {0, 0, (uint32_t)(call->layer * N_PLACES + place)},
        .rate = call->dropout};
}

/* Row `row` of the operand of a DROPOUT_ADD. */
static fr_dropout_row row_of(const fr_kernel_call *call, int64_t row)
{
    const fr_plan *plan = call->plan;
    /* A list of layers has a row for each sample. */
    const bool is_list =
        call->model != NULL && call->model->kind == FR_MODEL_LAYERS;
    const int64_t len =
        is_list ? 1 : fr_sequence_share_len(call->share, call->job->seq);
    fr_dropout_row out = row_at(call, call->instr->place);
    row += call->first_row;
    /* Sequence parallel ranks have a part of the rows each. */
    if (plan->is_sequence_parallel && plan->tp > 1)
        row += call->tp_coordinate * (plan->micro_batch * len / plan->tp);
    out.word[0] =
        is_list ? 0
                : (uint32_t)fr_sequence_position(call->share, len, row % len);
    out.word[1] = (uint32_t)(call->first_sequence + row / len);
    return out;
}

void fr_dropout_factors(const fr_dropout_row *row, int64_t first, int64_t n,
                        float *out)
{
    const uint32_t limit = (uint32_t)(row->rate * 0x1p32);
    const float scale = (float)(1.0 / (1.0 - row->rate));
    uint32_t words[4];
    for (int64_t i = first; i < first + n; i++) {
        if (i == first || i % 4 == 0)
            fr_philox((uint32_t[]){(uint32_t)(i / 4), row->word[0],
                                   row->word[1], row->word[2]},
                      row->key, words);
        out[i - first] = words[i % 4] < limit ? 0.0F : scale;
    }
}

void fr_dropout_keys(const fr_kernel_call *call, const int64_t query[3],
                     int64_t first, int64_t n, float *out)
{
    fr_dropout_row row = row_at(call, PLACE_PROBABILITIES);
    row.word[0] = (uint32_t)query[2];
    row.word[1] =
        (uint32_t)((call->first_sequence + query[0]) * call->model->n_heads +
                   fr_kernel_first_head(call) + query[1]);
    fr_dropout_factors(&row, first, n, out);
}

#define COLS 512 /* at once */

/* out = a (+ bias), with elements dropped, + b */
static void add_row(const fr_kernel_call *call, int64_t i)
{
    const int64_t cols = call->instr->matrix.cols;
    const float *a = (const float *)call->ptr[FR_DROPOUT_ADD_A] + i * cols,
                *b = call->ptr[FR_DROPOUT_ADD_B],
                *bias = call->ptr[FR_DROPOUT_ADD_BIAS],
                *bias2 = call->ptr[FR_DROPOUT_ADD_BIAS2];
    float *out = (float *)call->ptr[FR_DROPOUT_ADD_OUT] + i * cols;
    uint8_t *mask = (uint8_t *)call->ptr[FR_DROPOUT_ADD_MASK] + i * cols;
    const fr_dropout_row row = row_of(call, i);
    float factor[COLS];
    for (int64_t at = 0; at < cols; at += COLS) {
        const int64_t n = cols - at < COLS ? cols - at : COLS;
        fr_dropout_factors(&row, at, n, factor);
        for (int64_t j = at; j < at + n; j++) {
            float x = a[j] + (bias != NULL ? bias[j] : 0.0F) +
                      (bias2 != NULL ? bias2[j] : 0.0F);
            mask[j] = factor[j - at] != 0.0F;
            out[j] = x * factor[j - at] + (b != NULL ? b[i * cols + j] : 0.0F);
        }
    }
}

void fr_kernel_dropout_add(const fr_kernel_call *call)
{
    const int64_t rows = call->instr->matrix.rows;
    const int n_team = fr_team(call, rows * call->instr->matrix.cols);
    FR_FOR_TEAM(n_team);
#pragma omp parallel for num_threads(n_team) schedule(static)
    for (int64_t i = 0; i < rows; i++)
        add_row(call, i);
}

void fr_kernel_dropout_bwd(const fr_kernel_call *call)
{
    const int64_t n = call->instr->matrix.rows * call->instr->matrix.cols;
    const float scale = (float)(1.0 / (1.0 - call->job->dropout));
    const float *dy = call->ptr[FR_DROPOUT_BWD_DY];
    const uint8_t *mask = call->ptr[FR_DROPOUT_BWD_MASK];
    float *dx = call->ptr[FR_DROPOUT_BWD_DX];
    const int n_team = fr_team(call, n);
    FR_FOR_TEAM(n_team);
#pragma omp parallel for num_threads(n_team) schedule(static)
    for (int64_t i = 0; i < n; i++)
        dx[i] = mask[i] != 0 ? dy[i] * scale : 0.0F;
}
