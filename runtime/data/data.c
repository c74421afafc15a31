/* data.c: samples of token files and of images, and made-up ones. */
#include "runtime/data/data.h"

#include "core/base/hash.h"
#include "core/numbers/rng.h"
#include "core/system/clock.h"
#include "runtime/data/image_set.h"
#include "runtime/data/prefetch.h"
#include "runtime/data/token_file.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define NO_TARGET (-100) /* as PyTorch's cross entropy ignores */
#define NAP_S                                                                  \
    0.02 /* of a slow reader, which looks whether it is still wanted */

/* The buffers of a thread that reads. */
typedef struct reader {
    unsigned char *window; /* the bytes of a sample */
    int32_t *tokens;       /* seq + 1 of it */
    float *image;          /* one that is to be unfolded */
    double due_s;          /* when a slow one may read again */
} reader;

struct fr_data {
    bool is_synthetic, looks_ahead;
    uint64_t seed;
    int64_t seq, vocab, global_batch;
    fr_token_set set;
    fr_image_set images;   /* no files: of tokens */
    int64_t patch_size;    /* 0: images are not unfolded */
    pthread_mutex_t lock;  /* of `set`, which opens files as they are read */
    fr_prefetch *prefetch; /* NULL: synthetic */
    reader readers[2];     /* of who asks, of the thread that reads ahead */
    const fr_faults *faults;
    int64_t rank;
};

/*
 * A chain: the next token is a fixed scramble of the last one three times of
 * four, else small numbers are likelier (density 1/(2 sqrt(u))).  So there is
 * something to learn, for the embedding alone and for attention.
 */
static uint32_t next_token(const fr_data *data, uint64_t sample, uint64_t t,
                           uint32_t last)
{
    double u = fr_hash_uniform(data->seed, sample, t, 1);
    double v = fr_hash_uniform(data->seed, sample, t, 2);
    uint64_t n = (uint64_t)data->vocab;

    if (t > 0 && u < 0.75)
        return (uint32_t)((last * 7ULL + 3) % n);
    uint64_t token = (uint64_t)(v * v * (double)n);
    return (uint32_t)(token < n ? token : n - 1);
}

static void make_up(const fr_data *data, uint64_t sample, int32_t *tokens)
{
    uint32_t token = 0;

    for (int64_t t = 0; t <= data->seq; t++) {
        token = next_token(data, sample, (uint64_t)t, token);
        tokens[t] = (int32_t)token;
    }
}

/* Reading at a rate that was asked for: waits until so many bytes were due. */
static void hold_up(const fr_data *data, reader *by, int64_t i_step,
                    uint64_t n_bytes)
{
    const fr_fault *slow =
        data->faults != NULL
            ? fr_faults_at(data->faults, FR_FAULT_READ, data->rank, i_step)
            : NULL;

    if (slow == NULL)
        return;
    double now_s = fr_clock_s();
    by->due_s = (by->due_s > now_s ? by->due_s : now_s) +
                (double)n_bytes / slow->rate_Bps;
    while (now_s < by->due_s && !fr_prefetch_is_over(data->prefetch)) {
        const double left_s = by->due_s - now_s;
        fr_sleep_s(left_s < NAP_S ? left_s : NAP_S);
        now_s = fr_clock_s();
    }
}

/* The window of sample i of a step: anywhere, or in the part of all windows
 * that belongs to this place of the global batch. */
static uint64_t window_of(const fr_data *data, int64_t i_step, int64_t i)
{
    const uint64_t draw =
        fr_hash_u64(data->seed, (uint64_t)i_step, (uint64_t)i, 0);
    const uint64_t n = fr_token_set_windows(&data->set);
    const uint64_t n_parts = (uint64_t)data->global_batch;

    if (!data->set.has_ranges || n < n_parts)
        return draw % n;
    const uint64_t part = (uint64_t)i % n_parts;
    const uint64_t begin = n / n_parts * part;
    const uint64_t end = part + 1 == n_parts ? n : begin + n / n_parts;
    return begin + draw % (end - begin);
}

/* Sample i of a step, seq + 1 tokens in by->tokens. */
static fr_status load_sample(fr_data *data, reader *by, int64_t i_step,
                             int64_t i, fr_err *err)
{
    const fr_token_file *file = NULL;
    const uint64_t n = (uint64_t)data->seq + 1;
    uint64_t first = 0;

    if (data->is_synthetic) {
        make_up(data, fr_hash_u64(data->seed, (uint64_t)i_step, (uint64_t)i, 0),
                by->tokens);
        return FR_OK;
    }
    (void)pthread_mutex_lock(&data->lock);
    fr_status status = fr_token_set_find(&data->set, window_of(data, i_step, i),
                                         &file, &first, err);
    (void)pthread_mutex_unlock(&data->lock);
    if (status != FR_OK)
        return status;
    hold_up(data, by, i_step, n * file->token_bytes);
    return fr_token_file_read(file, first, n, data->vocab, by->window,
                              by->tokens, err);
}

static fr_status load_batch(void *context, bool is_ahead,
                            const fr_batch_request *request, int32_t *tokens,
                            fr_err *err)
{
    fr_data *data = context;
    reader *by = &data->readers[is_ahead];
    const int64_t len = fr_sequence_share_len(request->share, data->seq);
    int32_t *targets = tokens + request->n * len;
    int32_t *later = data->looks_ahead ? targets + request->n * len : NULL;

    for (int64_t i = 0; i < request->n; i++) {
        FR_TRY(load_sample(data, by, request->i_step, request->first + i, err));
        for (int64_t t = 0; t < len; t++) {
            int64_t at = fr_sequence_position(request->share, len, t);
            tokens[i * len + t] = by->tokens[at];
            targets[i * len + t] = by->tokens[at + 1];
            if (later != NULL)
                later[i * len + t] =
                    at + 2 <= data->seq ? by->tokens[at + 2] : NO_TARGET;
        }
    }
    return FR_OK;
}

fr_status fr_data_load(fr_data *data, int64_t i_step, int64_t first, int64_t n,
                       fr_sequence_share share, int32_t *tokens, fr_err *err)
{
    const fr_batch_request request = {
        .i_step = i_step,
        .first = first,
        .n = n,
        .share = share,
        .n_values = (data->looks_ahead ? 3 : 2) *
                    (size_t)(n * fr_sequence_share_len(share, data->seq))};

    return data->prefetch != NULL
               ? fr_prefetch_get(data->prefetch, &request, tokens, err)
               : load_batch(data, false, &request, tokens, err);
}

/* ---- images ------------------------------------------------------------- */

static uint64_t image_of(const fr_data *data, int64_t i_step, int64_t i)
{
    return fr_image_set_at(&data->images, data->seed,
                           (uint64_t)i_step * (uint64_t)data->global_batch +
                               (uint64_t)i);
}

/* Numbers of a sample in a request for a share of it. */
static uint64_t sample_numbers(const fr_data *data, fr_sequence_share share)
{
    const int64_t patch = data->patch_size;

    return patch == 0 ? fr_image_set_bytes(&data->images)
                      : (uint64_t)(fr_sequence_share_len(share, data->seq) *
                                   data->images.n_channels * patch * patch);
}

/* Patches in the order of their rows, each channel by channel, as the weights
 * of a convolution over them lie. */
static void unfold(const fr_data *data, const float *image,
                   fr_sequence_share share, float *out)
{
    const fr_image_set *set = &data->images;
    const int64_t patch = data->patch_size, n_across = set->size / patch;
    const int64_t n_numbers = set->n_channels * patch * patch;
    const int64_t len = fr_sequence_share_len(share, data->seq);

    for (int64_t t = 0; t < len; t++) {
        const int64_t i = fr_sequence_position(share, len, t) - 1;
        const int64_t row = i / n_across * patch, col = i % n_across * patch;
        if (i < 0)
            memset(out, 0, (size_t)n_numbers * sizeof *out);
        for (int64_t k = 0; k < n_numbers && i >= 0; k++) {
            const int64_t y = row + k / patch % patch, x = col + k % patch;
            out[k] = image[(y * set->size + x) * set->n_channels +
                           k / (patch * patch)];
        }
        out += n_numbers;
    }
}

/* The numbers of a request are float32 here. */
static fr_status load_images(void *context, bool is_ahead,
                             const fr_batch_request *request, int32_t *numbers,
                             fr_err *err)
{
    fr_data *data = context;
    reader *by = &data->readers[is_ahead];
    float *out = (float *)(void *)numbers;
    const uint64_t n = sample_numbers(data, request->share);

    for (int64_t i = 0; i < request->n; i++) {
        float *sample = out + (uint64_t)i * n;
        hold_up(data, by, request->i_step, fr_image_set_bytes(&data->images));
        FR_TRY(fr_image_set_read(
            &data->images, image_of(data, request->i_step, request->first + i),
            by->window, data->patch_size > 0 ? by->image : sample, err));
        if (data->patch_size > 0)
            unfold(data, by->image, request->share, sample);
    }
    return FR_OK;
}

bool fr_data_has_images(const fr_data *data)
{
    return data != NULL && data->images.files.n > 0;
}

fr_status fr_data_load_images(fr_data *data, int64_t i_step, int64_t first,
                              int64_t n, fr_sequence_share share, float *out,
                              fr_err *err)
{
    const fr_batch_request request = {.i_step = i_step,
                                      .first = first,
                                      .n = n,
                                      .share = share,
                                      .n_values = (size_t)n *
                                                  sample_numbers(data, share)};

    return fr_prefetch_get(data->prefetch, &request, (int32_t *)(void *)out,
                           err);
}

fr_status fr_data_load_labels(const fr_data *data, int64_t i_step,
                              int64_t first, int64_t n, int32_t *out,
                              fr_err *err)
{
    for (int64_t i = 0; i < n; i++)
        FR_TRY(fr_image_set_label(
            &data->images, image_of(data, i_step, first + i), &out[i], err));
    return FR_OK;
}

/* ---- life --------------------------------------------------------------- */

static fr_status begin(fr_data *data, const char *path, fr_err *err)
{
    const size_t n = (size_t)data->seq + 1;

    for (int i = 0; i < 2; i++) {
        FR_TRY_CALLOC(data->readers[i].window, 2 * n, err);
        FR_TRY_CALLOC(data->readers[i].tokens, n, err);
    }
    if (data->is_synthetic)
        return FR_OK;
    FR_TRY(fr_token_set_open(&data->set, path, data->seq, data->vocab, err));
    return fr_prefetch_create(load_batch, data, &data->prefetch, err);
}

static fr_data *create(const fr_job *job)
{
    fr_data *data = calloc(1, sizeof *data);

    if (data == NULL)
        return NULL;
    data->seed = job->seed;
    data->seq = job->seq;
    data->global_batch = job->global_batch;
    (void)pthread_mutex_init(&data->lock, NULL);
    return data;
}

static fr_status finish(fr_data *data, fr_status status, fr_data **out)
{
    if (status == FR_OK)
        *out = data;
    else
        fr_data_close(data);
    return status;
}

fr_status fr_data_open(const fr_job *job, int64_t vocab, fr_data **out,
                       fr_err *err)
{
    fr_data *data = create(job);

    if (data == NULL)
        return fr_fail_no_memory(err);
    data->vocab = vocab;
    data->is_synthetic = job->data[0] == '\0';
    return finish(data, begin(data, job->data, err), out);
}

static fr_status begin_images(fr_data *data, const char *path,
                              const fr_model *model, fr_err *err)
{
    FR_TRY(fr_image_set_open(&data->images, path, model, err));
    data->patch_size = model->patch_size;
    for (int i = 0; i < 2; i++) {
        const size_t n = fr_image_set_bytes(&data->images);
        FR_TRY_CALLOC(data->readers[i].window, n, err);
        if (data->patch_size > 0)
            FR_TRY_CALLOC(data->readers[i].image, n, err);
    }
    return fr_prefetch_create(load_images, data, &data->prefetch, err);
}

fr_status fr_data_open_images(const fr_job *job, const fr_model *model,
                              fr_data **out, fr_err *err)
{
    fr_data *data = create(job);

    if (data == NULL)
        return fr_fail_no_memory(err);
    return finish(data, begin_images(data, job->data, model, err), out);
}

void fr_data_close(fr_data *data)
{
    if (data == NULL)
        return;
    fr_prefetch_destroy(data->prefetch);
    fr_token_set_close(&data->set);
    fr_image_set_close(&data->images);
    (void)pthread_mutex_destroy(&data->lock);
    for (int i = 0; i < 2; i++) {
        free(data->readers[i].window);
        free(data->readers[i].tokens);
        free(data->readers[i].image);
    }
    free(data);
}

void fr_data_look_ahead(fr_data *data)
{
    data->looks_ahead = true;
}

void fr_data_inject(fr_data *data, const fr_faults *faults, int64_t rank)
{
    data->faults = faults;
    data->rank = rank;
}
