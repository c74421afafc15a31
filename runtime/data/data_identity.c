/* data_identity.c: see data_identity.h. */
#include "runtime/data/data_identity.h"

#include "core/base/hash.h"
#include "core/base/text.h"
#include "runtime/data/manifest_path.h"
#include "runtime/data/read_at.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The sample that is read of a file: at most so many pieces. */
typedef struct sample {
    uint64_t n_pieces, piece_bytes;
} sample;

static const sample of_one = {64, (uint64_t)1 << 20};

/* Files of a manifest share pieces and bytes: each read may take a
 * millisecond on network storage, and the other ranks wait. */
static sample sample_of_many(uint64_t n_files)
{
    enum { PIECES = 4096, LEAST_PIECES = 2, LEAST_BYTES = 4096 };
    sample each = of_one;

    if (each.n_pieces * n_files > PIECES)
        each.n_pieces = PIECES / n_files;
    if (each.n_pieces < LEAST_PIECES)
        each.n_pieces = LEAST_PIECES;
    each.piece_bytes /= n_files;
    if (each.piece_bytes < LEAST_BYTES)
        each.piece_bytes = LEAST_BYTES;
    return each;
}

static fr_status hash_pieces(int fd, const char *path, const sample *of,
                             unsigned char *piece, uint64_t *hash, fr_err *err)
{
    struct stat info;

    if (fstat(fd, &info) != 0)
        return fr_fail(err, FR_IO, "%s: %s", path, strerror(errno));
    const uint64_t n_file = (uint64_t)info.st_size;
    const uint64_t step = n_file <= of->n_pieces * of->piece_bytes
                              ? of->piece_bytes
                              : n_file / of->n_pieces;
    uint64_t sum = fr_hash_bytes(&n_file, sizeof n_file, *hash);
    for (uint64_t at = 0; at < n_file; at += step) {
        const uint64_t n =
            n_file - at < of->piece_bytes ? n_file - at : of->piece_bytes;
        FR_TRY(fr_read_at(fd, path, at, piece, n, err));
        sum = fr_hash_bytes(piece, n, sum);
    }
    *hash = sum;
    return FR_OK;
}

static fr_status add_file(const char *path, const sample *of, uint64_t *hash,
                          fr_err *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    unsigned char *piece = malloc(of->piece_bytes);
    fr_status status = FR_OK;

    if (piece == NULL)
        status = fr_fail_no_memory(err);
    else if (fd < 0)
        status = fr_fail(err, FR_IO, "%s: %s", path, strerror(errno));
    if (status == FR_OK)
        status = hash_pieces(fd, path, of, piece, hash, err);
    free(piece);
    if (fd >= 0)
        (void)close(fd);
    return status;
}

/* ---- manifests ---------------------------------------------------------- */

/* Adds an entry of tokens, or of images with their labels. */
static fr_status add_entry(const char *folder, const fr_json_value *entry,
                           const sample *of, uint64_t *hash, fr_err *err)
{
    static const char *const keys[] = {"path", "labels"};

    for (size_t i = 0; i < FR_LENGTH(keys); i++) {
        const char *name = NULL;
        char path[512];
        FR_TRY(fr_json_get_string_or(entry, keys[i], "", &name, err));
        if (name[0] == '\0')
            continue;
        FR_TRY(fr_manifest_path(folder, entry, name, path, err));
        FR_TRY(add_file(path, of, hash, err));
    }
    return FR_OK;
}

static fr_status add_entries(const char *path, const fr_json_value *root,
                             uint64_t *hash, fr_err *err)
{
    const fr_json_value *files = NULL;
    char folder[512];

    FR_TRY(fr_json_get_array(root, "files", &files, err));
    FR_TRY(fr_path_dir(path, folder, sizeof folder, err));
    const sample each = sample_of_many(fr_json_n(files) + 1);
    for (size_t i = 0; i < fr_json_n(files); i++)
        FR_TRY(add_entry(folder, fr_json_at(files, i), &each, hash, err));
    return FR_OK;
}

/* A rank need not see the files that it does not read: 0, where this one does
 * not see them all. */
static uint64_t hash_named_files(const char *path)
{
    fr_json *json = NULL;
    uint64_t hash = 0;
    fr_err ignored = {0};

    if (fr_json_load(path, &json, &ignored) != FR_OK)
        return 0;
    const fr_status status =
        add_entries(path, fr_json_root(json), &hash, &ignored);
    fr_json_destroy(json);
    return status == FR_OK ? hash : 0;
}

fr_status fr_data_identify(const char *path, fr_data_identity *out, fr_err *err)
{
    fr_data_identity found = {0};

    if (path[0] != '\0')
        FR_TRY(add_file(path, &of_one, &found.hash, err));
    if (fr_text_ends(path, ".json"))
        found.files_hash = hash_named_files(path);
    *out = found;
    return FR_OK;
}

bool fr_data_identity_agrees(const fr_data_identity *a,
                             const fr_data_identity *b)
{
    return a->hash == b->hash &&
           (a->files_hash == b->files_hash || fr_data_identity_is_unsure(a, b));
}

bool fr_data_identity_is_unsure(const fr_data_identity *a,
                                const fr_data_identity *b)
{
    return (a->files_hash == 0) != (b->files_hash == 0);
}
