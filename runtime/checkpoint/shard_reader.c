/* shard_reader.c: see shard_reader.h. */
#include "runtime/checkpoint/shard_reader.h"

#include "core/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* A slice of a file. */
typedef struct entry {
    fr_tensor_slice slice;
    int64_t i_file;
} entry;

struct fr_shard_reader {
    char dir[FR_CHECKPOINT_PATH - 64];
    fr_manifest manifest;
    fr_shard_index *index; /* [n_files] */
    entry *entries;        /* by tensor and what */
    size_t n_entries;
    int fd; /* of file i_open; -1: none is open */
    int64_t i_open;
};

static char *path_of(const fr_shard_reader *reader, int64_t i_file,
                     char path[FR_CHECKPOINT_PATH])
{
    return fr_shard_path(reader->dir, reader->manifest.n_steps_done, i_file,
                         path);
}

static int compare_keys(const fr_tensor_slice *a, const fr_tensor_slice *b)
{
    if (a->tensor != b->tensor)
        return a->tensor < b->tensor ? -1 : 1;
    return (a->what > b->what) - (a->what < b->what);
}

static int compare_entries(const void *a, const void *b)
{
    const entry *left = a, *right = b;
    const int order = compare_keys(&left->slice, &right->slice);

    return order != 0 ? order
                      : (left->slice.row > right->slice.row) -
                            (left->slice.row < right->slice.row);
}

static fr_status read_indices(fr_shard_reader *reader, fr_err *err)
{
    const fr_manifest *manifest = &reader->manifest;
    char path[FR_CHECKPOINT_PATH];
    size_t n = 0;

    FR_TRY_CALLOC(reader->index, (size_t)manifest->n_files, err);
    for (int64_t i = 0; i < manifest->n_files; i++) {
        FR_TRY(fr_shard_read_index(path_of(reader, i, path), &reader->index[i],
                                   err));
        if (reader->index[i].n_bytes != manifest->files[i].n_bytes)
            return fr_fail(err, FR_IO, "%s: not as long as the manifest says",
                           path);
        n += reader->index[i].slices.n;
    }
    FR_TRY_CALLOC(reader->entries, n + 1, err);
    for (int64_t i = 0; i < manifest->n_files; i++)
        for (size_t k = 0; k < reader->index[i].slices.n; k++)
            reader->entries[reader->n_entries++] =
                (entry){reader->index[i].slices.items[k], i};
    qsort(reader->entries, n, sizeof *reader->entries, compare_entries);
    return FR_OK;
}

fr_status fr_shard_reader_open(const char *dir, int64_t n_steps_done,
                               fr_shard_reader **out, fr_err *err)
{
    fr_shard_reader *reader;

    FR_TRY_CALLOC(reader, 1, err);
    reader->fd = -1;
    fr_status status =
        fr_text_copy(reader->dir, sizeof reader->dir, dir)
            ? fr_manifest_read(dir, n_steps_done, &reader->manifest, err)
            : fr_fail(err, FR_INPUT, "%s: the path is too long", dir);
    if (status == FR_OK)
        status = read_indices(reader, err);
    if (status != FR_OK)
        fr_shard_reader_close(reader);
    else
        *out = reader;
    return status;
}

void fr_shard_reader_close(fr_shard_reader *reader)
{
    if (reader == NULL)
        return;
    for (int64_t i = 0; reader->index != NULL && i < reader->manifest.n_files;
         i++)
        fr_shard_index_release(&reader->index[i]);
    if (reader->fd >= 0)
        (void)close(reader->fd);
    fr_manifest_release(&reader->manifest);
    free(reader->index);
    free(reader->entries);
    free(reader);
}

const fr_manifest *fr_shard_reader_manifest(const fr_shard_reader *reader)
{
    return &reader->manifest;
}

const fr_shard_index *fr_shard_reader_index(const fr_shard_reader *reader,
                                            int64_t i_file)
{
    return &reader->index[i_file];
}

fr_status fr_shard_reader_verify(const fr_shard_reader *reader, int64_t i_file,
                                 fr_err *err)
{
    const fr_manifest_file *file = &reader->manifest.files[i_file];
    char path[FR_CHECKPOINT_PATH];

    return fr_shard_verify(path_of(reader, i_file, path), file->n_bytes,
                           file->hash, err);
}

/* ---- slices ------------------------------------------------------------- */

static fr_status read_file(fr_shard_reader *reader, int64_t i_file,
                           uint64_t at_bytes, void *bytes, uint64_t n_bytes,
                           fr_err *err)
{
    char path[FR_CHECKPOINT_PATH];
    unsigned char *to = bytes;

    path_of(reader, i_file, path);
    if (reader->fd < 0 || reader->i_open != i_file) {
        if (reader->fd >= 0)
            (void)close(reader->fd);
        reader->fd = open(path, O_RDONLY | O_CLOEXEC);
        reader->i_open = i_file;
        if (reader->fd < 0)
            return fr_fail(err, FR_IO, "%s: %s", path, strerror(errno));
    }
    while (n_bytes > 0) {
        const ssize_t n = pread(reader->fd, to, n_bytes, (off_t)at_bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return fr_fail(err, FR_IO, "%s: %s", path,
                           n < 0 ? strerror(errno) : "cut off");
        to += n;
        at_bytes += (uint64_t)n;
        n_bytes -= (uint64_t)n;
    }
    return FR_OK;
}

/* The entries of a slice's tensor. */
static size_t first_entry(const fr_shard_reader *reader,
                          const fr_tensor_slice *slice)
{
    size_t low = 0, high = reader->n_entries;

    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (compare_keys(&reader->entries[middle].slice, slice) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Copies the part of a slice that an entry has, and adds its number of elements
 * to *n_taken. */
static fr_status take(fr_shard_reader *reader, const entry *from,
                      const fr_tensor_slice *slice, unsigned char *bytes,
                      int64_t *n_taken, fr_err *err)
{
    const fr_tensor_slice *have = &from->slice;
    const uint64_t size = slice->element_bytes;
    const int64_t row = most(have->row, slice->row);
    const int64_t end =
        least(have->row + have->n_rows, slice->row + slice->n_rows);
    const int64_t col = most(have->col, slice->col);
    const int64_t n =
        least(have->col + have->n_cols, slice->col + slice->n_cols) - col;

    if (row >= end || n <= 0)
        return FR_OK;
    if (have->element_bytes != size)
        return fr_fail(err, FR_IO, "tensor %u has elements of %llu bytes",
                       slice->tensor, (unsigned long long)have->element_bytes);
    /* Rows that follow each other in both are read at once. */
    const bool is_whole = n == have->n_cols && n == slice->n_cols;
    const int64_t n_at_once = is_whole ? end - row : 1;
    for (int64_t r = row; r < end; r += n_at_once) {
        const int64_t in_file =
            (r - have->row) * have->n_cols + (col - have->col);
        const int64_t in_slice =
            (r - slice->row) * slice->n_cols + (col - slice->col);
        FR_TRY(read_file(reader, from->i_file,
                         have->at_bytes + (uint64_t)in_file * size,
                         bytes + (uint64_t)in_slice * size,
                         (uint64_t)(n_at_once * n) * size, err));
        *n_taken += n_at_once * n;
    }
    return FR_OK;
}

fr_status fr_shard_reader_get(fr_shard_reader *reader,
                              const fr_tensor_slice *slice, void *bytes,
                              fr_err *err)
{
    int64_t n_taken = 0;

    for (size_t i = first_entry(reader, slice);
         i < reader->n_entries &&
         compare_keys(&reader->entries[i].slice, slice) == 0;
         i++)
        FR_TRY(take(reader, &reader->entries[i], slice, bytes, &n_taken, err));
    if (n_taken == slice->n_rows * slice->n_cols)
        return FR_OK;
    return fr_fail(err, FR_IO,
                   "step-%lld: of tensor %u (%u) %lld elements are there, not "
                   "%lld",
                   (long long)reader->manifest.n_steps_done, slice->tensor,
                   slice->what, (long long)n_taken,
                   (long long)(slice->n_rows * slice->n_cols));
}

/* The first rows of a slice, or columns of one row, that fit a piece. */
static fr_tensor_slice cut_front(fr_tensor_slice *rest)
{
    const int64_t room = (int64_t)(FR_STATE_PIECE_BYTES / rest->element_bytes);
    fr_tensor_slice front = *rest;

    if (rest->n_cols <= room) {
        front.n_rows = least(rest->n_rows, room / rest->n_cols);
        rest->row += front.n_rows;
        rest->n_rows -= front.n_rows;
    } else {
        /* A row is too long: what follows is first the rest of it. */
        front.n_rows = 1;
        front.n_cols = room;
        rest->col += room;
        rest->n_cols -= room;
    }
    rest->at_bytes += fr_tensor_slice_bytes(&front);
    return front;
}

static fr_status restore_rows(fr_shard_reader *reader, fr_tensor_slice rest,
                              const fr_state *state, unsigned char *bytes,
                              fr_err *err)
{
    while (rest.n_rows > 0 && rest.n_cols > 0) {
        const fr_tensor_slice front = cut_front(&rest);
        FR_TRY(fr_shard_reader_get(reader, &front, bytes, err));
        FR_TRY(state->store(state->context, front.at_bytes,
                            fr_tensor_slice_bytes(&front), bytes, err));
    }
    return FR_OK;
}

static fr_status restore(fr_shard_reader *reader, const fr_tensor_slice *slice,
                         const fr_state *state, unsigned char *bytes,
                         fr_err *err)
{
    const bool is_wide =
        (uint64_t)slice->n_cols * slice->element_bytes > FR_STATE_PIECE_BYTES;
    fr_tensor_slice row = *slice;

    if (!is_wide)
        return restore_rows(reader, row, state, bytes, err);
    row.n_rows = 1;
    for (int64_t i = 0; i < slice->n_rows; i++) {
        FR_TRY(restore_rows(reader, row, state, bytes, err));
        row.row++;
        row.at_bytes += fr_tensor_slice_bytes(&row);
    }
    return FR_OK;
}

fr_status fr_shard_reader_restore(fr_shard_reader *reader,
                                  const fr_tensor_slices *slices,
                                  const fr_state *state, fr_err *err)
{
    unsigned char *bytes = malloc(FR_STATE_PIECE_BYTES);
    fr_status status = bytes != NULL ? FR_OK : fr_fail_no_memory(err);

    for (size_t i = 0; status == FR_OK && i < slices->n; i++)
        status = restore(reader, &slices->items[i], state, bytes, err);
    free(bytes);
    return status;
}

fr_status fr_shard_reader_restore_own(fr_shard_reader *reader, int64_t rank,
                                      uint64_t layout,
                                      const fr_byte_ranges *ranges,
                                      const fr_state *state, bool *is_there,
                                      fr_err *err)
{
    uint64_t n_all = 0;
    fr_status status = FR_OK;

    *is_there = false;
    for (size_t i = 0; i < ranges->n; i++)
        n_all += ranges->items[i].n_bytes;
    if (rank >= reader->manifest.n_files ||
        reader->index[rank].layout != layout ||
        reader->index[rank].own_bytes != n_all)
        return FR_OK;
    *is_there = true;
    unsigned char *bytes = malloc(FR_STATE_PIECE_BYTES);
    if (bytes == NULL)
        return fr_fail_no_memory(err);
    uint64_t from = reader->index[rank].own_at_bytes;
    for (size_t i = 0; i < ranges->n; i++) {
        uint64_t at = ranges->items[i].at_bytes, n = 0;
        const uint64_t end = at + ranges->items[i].n_bytes;
        for (; status == FR_OK && at < end; at += n, from += n) {
            n = end - at < FR_STATE_PIECE_BYTES ? end - at
                                                : FR_STATE_PIECE_BYTES;
            status = read_file(reader, rank, from, bytes, n, err);
            if (status == FR_OK)
                status = state->store(state->context, at, n, bytes, err);
        }
    }
    free(bytes);
    return status;
}
