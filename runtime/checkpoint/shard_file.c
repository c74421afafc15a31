/* shard_file.c: see shard_file.h. */
#include "runtime/checkpoint/shard_file.h"

#include "core/base/hash.h"
#include "runtime/checkpoint/stream_copy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char magic[8] = {'F', 'R', 'C', 'K', 'P', 'T', '3', '\n'};

typedef struct head {
    char magic[8];
    uint64_t layout, n_slices, own_bytes, n_bytes;
} head;

void fr_shard_release(fr_shard *shard)
{
    fr_vec_release(&shard->slices);
    fr_vec_release(&shard->own);
}

static head head_of(const fr_shard *shard)
{
    head h = {.layout = shard->layout, .n_slices = shard->slices.n};

    memcpy(h.magic, magic, sizeof magic);
    h.n_bytes = sizeof h + shard->slices.n * sizeof(fr_tensor_slice);
    for (size_t i = 0; i < shard->slices.n; i++)
        h.n_bytes += fr_tensor_slice_bytes(&shard->slices.items[i]);
    for (size_t i = 0; i < shard->own.n; i++)
        h.own_bytes += shard->own.items[i].n_bytes;
    h.n_bytes += h.own_bytes;
    return h;
}

uint64_t fr_shard_bytes(const fr_shard *shard)
{
    return head_of(shard).n_bytes;
}

static fr_status fail_io(const char *path, fr_err *err)
{
    return fr_fail(err, FR_IO, "%s: %s", path, strerror(errno));
}

/* ---- writing ------------------------------------------------------------- */

/* A file whose hash is that of its blocks, one after the other; or memory. */
typedef struct output {
    const char *path;
    FILE *file;           /* NULL: `bytes` is the whole image */
    unsigned char *bytes; /* [BLOCK_BYTES] of a file */
    uint64_t n, hash;
} output;

#define BLOCK_BYTES FR_STATE_PIECE_BYTES

static fr_status put_block(output *out, const void *bytes, size_t n,
                           fr_err *err)
{
    out->hash = fr_hash_bytes(bytes, n, out->hash);
    return fwrite(bytes, 1, n, out->file) == n ? FR_OK
                                               : fail_io(out->path, err);
}

static fr_status put(output *out, const void *bytes, uint64_t n, fr_err *err)
{
    const unsigned char *at = bytes;

    while (n > 0) {
        const uint64_t room = out->file != NULL ? BLOCK_BYTES - out->n : n;
        const uint64_t n_now = n < room ? n : room;
        memcpy(out->bytes + out->n, at, n_now);
        out->n += n_now;
        at += n_now;
        n -= n_now;
        if (out->file != NULL && out->n == BLOCK_BYTES) {
            FR_TRY(put_block(out, out->bytes, BLOCK_BYTES, err));
            out->n = 0;
        }
    }
    return FR_OK;
}

static fr_status put_state(output *out, const fr_state *state, uint64_t at,
                           uint64_t n_bytes, fr_err *err)
{
    while (n_bytes > 0) {
        const uint64_t n =
            n_bytes < FR_STATE_PIECE_BYTES ? n_bytes : FR_STATE_PIECE_BYTES;
        const void *bytes = NULL;
        FR_TRY(state->view(state->context, at, n, &bytes, err));
        FR_TRY(put(out, bytes, n, err));
        at += n;
        n_bytes -= n;
    }
    return FR_OK;
}

/* *places, where it is wanted: where each slice begins, and the end of the
 * last. */
static fr_status put_index(output *out, const fr_shard *shard, uint64_t *places,
                           fr_err *err)
{
    const head h = head_of(shard);
    uint64_t at = sizeof h + shard->slices.n * sizeof(fr_tensor_slice);

    FR_TRY(put(out, &h, sizeof h, err));
    for (size_t i = 0; i < shard->slices.n; i++) {
        fr_tensor_slice slice = shard->slices.items[i];
        slice.at_bytes = at;
        if (places != NULL)
            places[i] = at;
        at += fr_tensor_slice_bytes(&slice);
        FR_TRY(put(out, &slice, sizeof slice, err));
    }
    if (places != NULL)
        places[shard->slices.n] = at;
    return FR_OK;
}

static fr_status put_own(output *out, const fr_shard *shard,
                         const fr_state *state, fr_err *err)
{
    for (size_t i = 0; i < shard->own.n; i++)
        FR_TRY(put_state(out, state, shard->own.items[i].at_bytes,
                         shard->own.items[i].n_bytes, err));
    return FR_OK;
}

static fr_status put_shard(output *out, const fr_shard *shard,
                           const fr_state *state, fr_err *err)
{
    FR_TRY(put_index(out, shard, NULL, err));
    for (size_t i = 0; i < shard->slices.n; i++) {
        const fr_tensor_slice *slice = &shard->slices.items[i];
        FR_TRY(put_state(out, state, slice->at_bytes,
                         fr_tensor_slice_bytes(slice), err));
    }
    return put_own(out, shard, state, err);
}

fr_status fr_shard_copy(const fr_shard *shard, const fr_state *state,
                        unsigned char *image, fr_err *err)
{
    output out = {.bytes = image};
    const size_t n = shard->slices.n;
    uint64_t *at;

    if (state->memory == NULL)
        return put_shard(&out, shard, state, err);
    FR_TRY_CALLOC(at, n + 1, err);
    fr_status status = put_index(&out, shard, at, err);
#pragma omp parallel for schedule(dynamic)
    for (size_t i = 0; i < n; i++)
        fr_stream_copy(image + at[i],
                       state->memory + shard->slices.items[i].at_bytes,
                       fr_tensor_slice_bytes(&shard->slices.items[i]));
    out.n = at[n];
    if (status == FR_OK)
        status = put_own(&out, shard, state, err);
    free(at);
    return status;
}

static fr_status put_image(output *out, const unsigned char *image,
                           uint64_t n_bytes, fr_err *err)
{
    for (uint64_t at = 0; at < n_bytes; at += BLOCK_BYTES) {
        const uint64_t n_left = n_bytes - at;
        FR_TRY(put_block(out, image + at,
                         n_left < BLOCK_BYTES ? n_left : BLOCK_BYTES, err));
    }
    return FR_OK;
}

uint64_t fr_shard_image_hash(const unsigned char *image, uint64_t n_bytes)
{
    uint64_t hash = 0;

    for (uint64_t at = 0; at < n_bytes; at += BLOCK_BYTES) {
        const uint64_t n_left = n_bytes - at;
        hash = fr_hash_bytes(image + at,
                             n_left < BLOCK_BYTES ? n_left : BLOCK_BYTES, hash);
    }
    return hash;
}

/* The source of the file: the state, or an image of it. */
typedef struct source {
    const fr_shard *shard;
    const fr_state *state;
    const unsigned char *image; /* NULL: there is none */
    uint64_t n_bytes;           /* of the image */
} source;

static fr_status put_all(output *out, const source *from, fr_err *err)
{
    if (from->image != NULL)
        return put_image(out, from->image, from->n_bytes, err);
    out->bytes = malloc(BLOCK_BYTES);
    if (out->bytes == NULL)
        return fr_fail_no_memory(err);
    fr_status status = put_shard(out, from->shard, from->state, err);
    if (status == FR_OK && out->n > 0)
        status = put_block(out, out->bytes, out->n, err);
    free(out->bytes);
    return status;
}

static fr_status write_file(const char *path, const source *from,
                            uint64_t *hash, fr_err *err)
{
    char temporary[FR_CHECKPOINT_PATH + 8];
    output out = {.path = temporary};

    (void)snprintf(temporary, sizeof temporary, "%s.tmp", path);
    out.file = fopen(temporary, "wb");
    if (out.file == NULL)
        return fail_io(temporary, err);
    fr_status status = put_all(&out, from, err);
    if (status == FR_OK &&
        (fflush(out.file) != 0 || fsync(fileno(out.file)) != 0))
        status = fail_io(temporary, err);
    if (fclose(out.file) != 0 && status == FR_OK)
        status = fail_io(temporary, err);
    if (status == FR_OK && rename(temporary, path) != 0)
        status = fail_io(temporary, err);
    if (status != FR_OK)
        (void)remove(temporary);
    else
        *hash = out.hash;
    return status;
}

fr_status fr_shard_write(const fr_shard *shard, const char *path,
                         const fr_state *state, uint64_t *hash, fr_err *err)
{
    const source from = {.shard = shard, .state = state};

    return write_file(path, &from, hash, err);
}

fr_status fr_shard_write_image(const unsigned char *image, uint64_t n_bytes,
                               const char *path, uint64_t *hash, fr_err *err)
{
    const source from = {.image = image, .n_bytes = n_bytes};

    return write_file(path, &from, hash, err);
}

/* ---- reading ------------------------------------------------------------- */

void fr_shard_index_release(fr_shard_index *index)
{
    fr_vec_release(&index->slices);
}

uint64_t fr_shard_index_bytes(const fr_shard_index *index)
{
    return sizeof(head) + index->slices.n * sizeof(fr_tensor_slice);
}

static bool is_sound(const fr_tensor_slice *slice, uint64_t n_bytes)
{
    const int64_t most = (int64_t)1 << 40;

    return slice->row >= 0 && slice->col >= 0 && slice->n_rows > 0 &&
           slice->n_cols > 0 && slice->row < most && slice->col < most &&
           slice->n_rows < most && slice->n_cols < most &&
           (double)slice->n_rows * (double)slice->n_cols < 0x1p60 &&
           slice->element_bytes >= 1 && slice->element_bytes <= 8 &&
           slice->at_bytes <= n_bytes &&
           fr_tensor_slice_bytes(slice) <= n_bytes - slice->at_bytes;
}

static fr_status read_index(const char *path, FILE *file, fr_shard_index *out,
                            fr_err *err)
{
    head h;

    if (fread(&h, sizeof h, 1, file) != 1)
        return fr_fail(err, FR_IO, "%s: cut off", path);
    if (memcmp(h.magic, magic, sizeof magic) != 0)
        return fr_fail(err, FR_IO, "%s: no checkpoint of this version", path);
    if (fseeko(file, 0, SEEK_END) != 0)
        return fail_io(path, err);
    const uint64_t n_there = (uint64_t)ftello(file);
    const uint64_t n_after = n_there - sizeof h;
    if (h.n_bytes != n_there ||
        h.n_slices > n_after / sizeof(fr_tensor_slice) ||
        h.own_bytes > n_after - h.n_slices * sizeof(fr_tensor_slice))
        return fr_fail(err, FR_IO, "%s: cut off", path);
    out->layout = h.layout;
    out->n_bytes = h.n_bytes;
    out->own_bytes = h.own_bytes;
    out->own_at_bytes = h.n_bytes - h.own_bytes;
    if (fseeko(file, (off_t)sizeof h, SEEK_SET) != 0)
        return fail_io(path, err);
    for (uint64_t i = 0; i < h.n_slices; i++) {
        fr_tensor_slice slice;
        if (fread(&slice, sizeof slice, 1, file) != 1 ||
            !is_sound(&slice, h.n_bytes))
            return fr_fail(err, FR_IO, "%s: damaged: its index is not sound",
                           path);
        FR_TRY_PUSH(&out->slices, slice, err);
    }
    return FR_OK;
}

fr_status fr_shard_read_index(const char *path, fr_shard_index *out,
                              fr_err *err)
{
    fr_shard_index index = {0};
    FILE *file = fopen(path, "rb");

    if (file == NULL)
        return fail_io(path, err);
    fr_status status = read_index(path, file, &index, err);
    (void)fclose(file);
    if (status == FR_OK)
        *out = index;
    else
        fr_shard_index_release(&index);
    return status;
}

fr_status fr_shard_verify(const char *path, uint64_t n_bytes, uint64_t hash,
                          fr_err *err)
{
    FILE *file = fopen(path, "rb");
    uint64_t own = 0, n_read = 0;
    fr_status status = FR_OK;

    if (file == NULL)
        return fail_io(path, err);
    unsigned char *bytes = malloc(BLOCK_BYTES);
    if (bytes == NULL)
        status = fr_fail_no_memory(err);
    for (size_t n;
         status == FR_OK && (n = fread(bytes, 1, BLOCK_BYTES, file)) > 0;
         n_read += n)
        own = fr_hash_bytes(bytes, n, own);
    if (status == FR_OK && ferror(file))
        status = fail_io(path, err);
    free(bytes);
    (void)fclose(file);
    if (status == FR_OK && n_read != n_bytes)
        status = fr_fail(err, FR_IO, "%s: %s", path,
                         n_read < n_bytes ? "cut off" : "longer than it was");
    if (status == FR_OK && own != hash)
        status = fr_fail(err, FR_IO,
                         "%s: damaged: its hash is not the manifest's", path);
    return status;
}
