/* data.c: token files and made-up tokens. */
#include "runtime/data/data.h"

#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/numbers/rng.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LLMC_MAGIC 20240520U
#define LLMC_HEADER_BYTES 1024
#define SCAN_BYTES 65536
#define IDENTITY_PIECES 64
#define IDENTITY_BYTES ((uint64_t)1 << 20) /* of a piece */

struct fr_data {
    int fd; /* -1: synthetic */
    char path[512];
    uint64_t seed;
    int64_t seq, vocab;
    uint64_t first_byte, n_tokens;
    unsigned token_bytes; /* 1 or 2 */
    unsigned char *window;
    int32_t *sample; /* tokens[seq], then targets[seq], of which a rank may
                        have a share */
};

static fr_status read_at(const fr_data *data, uint64_t offset, void *bytes,
                         size_t n, fr_err *err)
{
    size_t n_read = 0;

    while (n_read < n) {
        ssize_t got = pread(data->fd, (char *)bytes + n_read, n - n_read,
                            (off_t)(offset + n_read));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fr_fail(err, FR_IO, "%s: %s", data->path, strerror(errno));
        if (got == 0)
            return fr_fail(err, FR_IO, "%s: the file became shorter",
                           data->path);
        n_read += (size_t)got;
    }
    return FR_OK;
}

static uint32_t token_at(const fr_data *data, const unsigned char *bytes,
                         uint64_t i)
{
    if (data->token_bytes == 1)
        return bytes[i];
    return (uint32_t)bytes[2 * i] | (uint32_t)bytes[2 * i + 1] << 8;
}

static fr_status read_header(fr_data *data, uint64_t n_file, fr_err *err)
{
    unsigned char head[12];
    uint32_t word[3];

    if (n_file < LLMC_HEADER_BYTES)
        return FR_OK;
    FR_TRY(read_at(data, 0, head, sizeof head, err));
    for (int i = 0; i < 3; i++)
        word[i] = (uint32_t)head[4 * i] | (uint32_t)head[4 * i + 1] << 8 |
                  (uint32_t)head[4 * i + 2] << 16 |
                  (uint32_t)head[4 * i + 3] << 24;
    if (word[0] != LLMC_MAGIC)
        return FR_OK;
    if (word[1] != 1)
        return fr_fail(err, FR_INPUT,
                       "%s: token file of version %u, only version 1 is known",
                       data->path, word[1]);
    uint64_t n_there = (n_file - LLMC_HEADER_BYTES) / 2;
    if (word[2] > n_there)
        return fr_fail(err, FR_INPUT,
                       "%s: the header says %u tokens, the file has %llu",
                       data->path, word[2], (unsigned long long)n_there);
    data->first_byte = LLMC_HEADER_BYTES;
    data->n_tokens = word[2];
    return FR_OK;
}

/* Looks for tokens that the model has no row for; one pass at opening. */
static fr_status scan(const fr_data *data, fr_err *err)
{
    uint32_t largest = data->token_bytes == 1 ? UINT8_MAX : UINT16_MAX;

    if ((int64_t)largest < data->vocab)
        return FR_OK;
    unsigned char *piece = malloc(SCAN_BYTES);
    fr_status status = piece != NULL ? FR_OK : fr_fail_no_memory(err);
    uint64_t n_piece = SCAN_BYTES / data->token_bytes;
    for (uint64_t at = 0; status == FR_OK && at < data->n_tokens;
         at += n_piece) {
        uint64_t n =
            data->n_tokens - at < n_piece ? data->n_tokens - at : n_piece;
        status = read_at(data, data->first_byte + at * data->token_bytes, piece,
                         n * data->token_bytes, err);
        for (uint64_t i = 0; status == FR_OK && i < n; i++)
            if ((int64_t)token_at(data, piece, i) >= data->vocab)
                status = fr_fail(
                    err, FR_INPUT,
                    "%s: token %u at position %llu, the vocabulary has %lld; "
                    "take a model with a larger vocabulary%s",
                    data->path, token_at(data, piece, i),
                    (unsigned long long)(at + i), (long long)data->vocab,
                    data->token_bytes == 1 ? " or 7-bit text"
                                           : " or another token file");
    }
    free(piece);
    return status;
}

static fr_status open_file(fr_data *data, fr_err *err)
{
    struct stat info;

    data->fd = open(data->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (data->fd < 0 || fstat(data->fd, &info) != 0)
        return fr_fail(err, FR_IO, "%s: %s", data->path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return fr_fail(err, FR_INPUT, "%s: not a regular file", data->path);
    uint64_t n_file = (uint64_t)info.st_size;
    data->token_bytes = fr_text_ends(data->path, ".bin") ? 2 : 1;
    data->n_tokens = n_file / data->token_bytes;
    if (data->token_bytes == 2)
        FR_TRY(read_header(data, n_file, err));
    if (data->n_tokens < (uint64_t)data->seq + 1)
        return fr_fail(err, FR_INPUT,
                       "%s: %llu tokens, a sample needs seq + 1 = %lld; take "
                       "a longer file or a shorter sequence",
                       data->path, (unsigned long long)data->n_tokens,
                       (long long)data->seq + 1);
    return scan(data, err);
}

fr_status fr_data_open(const fr_job *job, int64_t vocab, fr_data **out,
                       fr_err *err)
{
    fr_data *data = calloc(1, sizeof *data);
    fr_status status = FR_OK;

    if (data == NULL)
        return fr_fail_no_memory(err);
    data->fd = -1;
    data->seed = job->seed;
    data->seq = job->seq;
    data->vocab = vocab;
    fr_text_copy_cut(data->path, sizeof data->path, job->data);
    data->window = malloc(2 * ((size_t)job->seq + 1));
    data->sample = malloc(2 * (size_t)job->seq * sizeof *data->sample);
    if (data->window == NULL || data->sample == NULL)
        status = fr_fail_no_memory(err);
    else if (data->path[0] != '\0')
        status = open_file(data, err);
    if (status != FR_OK) {
        fr_data_close(data);
        return status;
    }
    *out = data;
    return FR_OK;
}

void fr_data_close(fr_data *data)
{
    if (data == NULL)
        return;
    if (data->fd >= 0)
        (void)close(data->fd);
    free(data->window);
    free(data->sample);
    free(data);
}

fr_status fr_data_identity(const char *path, uint64_t *out, fr_err *err)
{
    fr_data data = {.fd = -1};
    struct stat info;
    fr_status status = FR_OK;

    *out = 0;
    if (path[0] == '\0')
        return FR_OK;
    fr_text_copy_cut(data.path, sizeof data.path, path);
    data.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    unsigned char *piece = malloc(IDENTITY_BYTES);
    if (piece == NULL)
        status = fr_fail_no_memory(err);
    else if (data.fd < 0 || fstat(data.fd, &info) != 0)
        status = fr_fail(err, FR_IO, "%s: %s", path, strerror(errno));
    if (status == FR_OK) {
        uint64_t n_file = (uint64_t)info.st_size, at = 0;
        uint64_t step = n_file <= IDENTITY_PIECES * IDENTITY_BYTES
                            ? IDENTITY_BYTES
                            : n_file / IDENTITY_PIECES;
        *out = fr_hash_bytes(&n_file, sizeof n_file, 0);
        for (; status == FR_OK && at < n_file; at += step) {
            uint64_t n =
                n_file - at < IDENTITY_BYTES ? n_file - at : IDENTITY_BYTES;
            status = read_at(&data, at, piece, n, err);
            if (status == FR_OK)
                *out = fr_hash_bytes(piece, n, *out);
        }
    }
    free(piece);
    if (data.fd >= 0)
        (void)close(data.fd);
    return status;
}

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

static void make_up(const fr_data *data, uint64_t sample, int32_t *tokens,
                    int32_t *targets)
{
    uint32_t token = next_token(data, sample, 0, 0);

    for (int64_t t = 0; t < data->seq; t++) {
        tokens[t] = (int32_t)token;
        token = next_token(data, sample, (uint64_t)t + 1, token);
        targets[t] = (int32_t)token;
    }
}

static fr_status load_window(fr_data *data, uint64_t first, int32_t *tokens,
                             int32_t *targets, fr_err *err)
{
    uint64_t n = (uint64_t)data->seq + 1;

    FR_TRY(read_at(data, data->first_byte + first * data->token_bytes,
                   data->window, n * data->token_bytes, err));
    for (uint64_t t = 0; t + 1 < n; t++) {
        tokens[t] = (int32_t)token_at(data, data->window, t);
        targets[t] = (int32_t)token_at(data, data->window, t + 1);
    }
    return FR_OK;
}

static fr_status load_sample(fr_data *data, int64_t i_step, int64_t i,
                             fr_err *err)
{
    int32_t *tokens = data->sample, *targets = data->sample + data->seq;
    uint64_t draw = fr_hash_u64(data->seed, (uint64_t)i_step, (uint64_t)i, 0);

    if (data->fd < 0) {
        make_up(data, draw, tokens, targets);
        return FR_OK;
    }
    uint64_t n_places = data->n_tokens - (uint64_t)data->seq;
    return load_window(data, draw % n_places, tokens, targets, err);
}

fr_status fr_data_load(fr_data *data, int64_t i_step, int64_t first, int64_t n,
                       fr_sequence_share share, int32_t *tokens, fr_err *err)
{
    const int64_t len = fr_sequence_share_len(share, data->seq);
    int32_t *targets = tokens + n * len;

    for (int64_t i = 0; i < n; i++) {
        FR_TRY(load_sample(data, i_step, first + i, err));
        for (int64_t t = 0; t < len; t++) {
            int64_t at = fr_sequence_position(share, len, t);
            tokens[i * len + t] = data->sample[at];
            targets[i * len + t] = data->sample[data->seq + at];
        }
    }
    return FR_OK;
}
