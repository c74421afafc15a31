/*
 * token_file.h: a file of tokens, and sets of them.
 *
 * Files that end in ".bin" hold 16-bit little-endian token numbers, after
 * llm.c's header of 256 32-bit words (magic 20240520, version 1, token count)
 * when the file begins with it; every other file is bytes, one token each.
 * Files are read with pread, not mapped: one that shrinks is an error, not a
 * signal, and the page cache does not count as the rank's memory.
 */
#ifndef FR_RUNTIME_DATA_TOKEN_FILE_H
#define FR_RUNTIME_DATA_TOKEN_FILE_H

#include "core/base/vec.h"

typedef struct fr_token_file {
    char path[512];
    int fd; /* -1: not open */
    uint64_t first_byte, n_tokens;
    unsigned token_bytes; /* 1 or 2 */
} fr_token_file;

/* FR_IO, or FR_INPUT with the mend. */
FR_CHECKED fr_status fr_token_file_open(fr_token_file *file, const char *path,
                                        fr_err *err);
void fr_token_file_close(fr_token_file *file);
/* Tokens [first, first + n) to out, by way of n * 2 bytes of scratch.  FR_IO;
 * FR_INPUT: one is not below vocab. */
FR_CHECKED fr_status fr_token_file_read(const fr_token_file *file,
                                        uint64_t first, uint64_t n,
                                        int64_t vocab, unsigned char *scratch,
                                        int32_t *out, fr_err *err);
/* Looks at all tokens whether the vocabulary has them, where one might not. */
FR_CHECKED fr_status fr_token_file_check(const fr_token_file *file,
                                         int64_t vocab, fr_err *err);

/*
 * Many files, of a manifest:
 *
 *     {"schema": "forerun.tokens/1", "shuffle": "ranges", "files": [
 *         {"path": "part-000.bin", "tokens": 1000000}, ...]}
 *
 * Paths count from the manifest's folder.  A file whose tokens it tells is
 * opened when it is read first, so a rank needs only those that it reads.
 */
typedef struct fr_token_set {
    fr_vec(fr_token_file) files;
    uint64_t *windows_before; /* [files.n + 1], of seq + 1 tokens */
    int64_t seq;
    /* A place in the global batch has its own part of all windows; else each
     * window may come anywhere. */
    bool has_ranges;
} fr_token_set;

/* A manifest where the name ends in ".json", else one file, whose tokens are
 * checked. */
FR_CHECKED fr_status fr_token_set_open(fr_token_set *set, const char *path,
                                       int64_t seq, int64_t vocab, fr_err *err);
void fr_token_set_close(fr_token_set *set);
/* The file of a window, open, and its first token there. */
FR_CHECKED fr_status fr_token_set_find(fr_token_set *set, uint64_t i_window,
                                       const fr_token_file **file,
                                       uint64_t *first, fr_err *err);
static inline uint64_t fr_token_set_windows(const fr_token_set *set)
{
    return set->windows_before[set->files.n];
}

#endif
