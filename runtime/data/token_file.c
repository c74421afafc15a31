/* token_file.c: see token_file.h. */
#include "runtime/data/token_file.h"

#include "core/base/text.h"
#include "runtime/data/read_at.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LLMC_MAGIC 20240520U
#define LLMC_HEADER_BYTES 1024
#define SCAN_TOKENS 32768

static fr_status read_at(const fr_token_file *file, uint64_t offset,
                         void *bytes, size_t n, fr_err *err)
{
    return fr_read_at(file->fd, file->path, offset, bytes, n, err);
}

static uint32_t token_at(const fr_token_file *file, const unsigned char *bytes,
                         uint64_t i)
{
    if (file->token_bytes == 1)
        return bytes[i];
    return (uint32_t)bytes[2 * i] | (uint32_t)bytes[2 * i + 1] << 8;
}

static fr_status read_header(fr_token_file *file, uint64_t n_file, fr_err *err)
{
    unsigned char head[12];
    uint32_t word[3];

    if (n_file < LLMC_HEADER_BYTES)
        return FR_OK;
    FR_TRY(read_at(file, 0, head, sizeof head, err));
    for (int i = 0; i < 3; i++)
        word[i] = (uint32_t)head[4 * i] | (uint32_t)head[4 * i + 1] << 8 |
                  (uint32_t)head[4 * i + 2] << 16 |
                  (uint32_t)head[4 * i + 3] << 24;
    if (word[0] != LLMC_MAGIC)
        return FR_OK;
    if (word[1] != 1)
        return fr_fail(err, FR_INPUT,
                       "%s: token file of version %u, only version 1 is known",
                       file->path, word[1]);
    uint64_t n_there = (n_file - LLMC_HEADER_BYTES) / 2;
    if (word[2] > n_there)
        return fr_fail(err, FR_INPUT,
                       "%s: the header says %u tokens, the file has %llu",
                       file->path, word[2], (unsigned long long)n_there);
    file->first_byte = LLMC_HEADER_BYTES;
    file->n_tokens = word[2];
    return FR_OK;
}

static fr_status begin(fr_token_file *file, fr_err *err)
{
    struct stat info;

    file->fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file->fd < 0 || fstat(file->fd, &info) != 0)
        return fr_fail(err, FR_IO, "%s: %s", file->path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return fr_fail(err, FR_INPUT, "%s: not a regular file", file->path);
    uint64_t n_file = (uint64_t)info.st_size;
    file->token_bytes = fr_text_ends(file->path, ".bin") ? 2 : 1;
    file->n_tokens = n_file / file->token_bytes;
    return file->token_bytes == 2 ? read_header(file, n_file, err) : FR_OK;
}

fr_status fr_token_file_open(fr_token_file *file, const char *path, fr_err *err)
{
    fr_token_file opened = {.fd = -1};

    if (!fr_text_copy(opened.path, sizeof opened.path, path))
        return fr_fail(err, FR_INPUT, "%.80s...: the path is too long", path);
    fr_status status = begin(&opened, err);
    if (status == FR_OK)
        *file = opened;
    else
        fr_token_file_close(&opened);
    return status;
}

void fr_token_file_close(fr_token_file *file)
{
    if (file->fd >= 0)
        (void)close(file->fd);
    file->fd = -1;
}

static bool may_exceed(const fr_token_file *file, int64_t vocab)
{
    return (int64_t)(file->token_bytes == 1 ? UINT8_MAX : UINT16_MAX) >= vocab;
}

fr_status fr_token_file_read(const fr_token_file *file, uint64_t first,
                             uint64_t n, int64_t vocab, unsigned char *scratch,
                             int32_t *out, fr_err *err)
{
    const bool is_checked = may_exceed(file, vocab);

    FR_TRY(read_at(file, file->first_byte + first * file->token_bytes, scratch,
                   n * file->token_bytes, err));
    for (uint64_t i = 0; i < n; i++) {
        const uint32_t token = token_at(file, scratch, i);
        if (is_checked && (int64_t)token >= vocab)
            return fr_fail(
                err, FR_INPUT,
                "%s: token %u at position %llu, the vocabulary has %lld; "
                "take a model with a larger vocabulary%s",
                file->path, token, (unsigned long long)(first + i),
                (long long)vocab,
                file->token_bytes == 1 ? " or 7-bit text"
                                       : " or another token file");
        out[i] = (int32_t)token;
    }
    return FR_OK;
}

fr_status fr_token_file_check(const fr_token_file *file, int64_t vocab,
                              fr_err *err)
{
    if (!may_exceed(file, vocab))
        return FR_OK;
    unsigned char *scratch = malloc((size_t)2 * SCAN_TOKENS);
    int32_t *tokens = malloc(SCAN_TOKENS * sizeof *tokens);
    fr_status status =
        scratch != NULL && tokens != NULL ? FR_OK : fr_fail_no_memory(err);
    for (uint64_t at = 0; status == FR_OK && at < file->n_tokens;
         at += SCAN_TOKENS) {
        const uint64_t left = file->n_tokens - at;
        status = fr_token_file_read(file, at,
                                    left < SCAN_TOKENS ? left : SCAN_TOKENS,
                                    vocab, scratch, tokens, err);
    }
    free(scratch);
    free(tokens);
    return status;
}
