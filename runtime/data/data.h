/*
 * data.h: training tokens: bytes of any file, GPT-2 token files, or made up.
 *
 * Sample i of step s is a window of seq + 1 tokens whose place depends on
 * (seed, s, i) alone, so every layout sees the same global batch.
 *
 * The format follows from the name: files that end in ".bin" hold 16-bit
 * little-endian token numbers, after llm.c's header of 256 32-bit words
 * (magic 20240520, version 1, token count) when the file begins with it;
 * every other file is bytes, one token each.
 */
#ifndef FR_RUNTIME_DATA_DATA_H
#define FR_RUNTIME_DATA_DATA_H

#include "core/base/err.h"
#include "plan/ir/sequence_share.h"
#include "spec/model/job.h"

typedef struct fr_data fr_data;

/*
 * Opens job->data ("": synthetic tokens, a noisy chain whose loss can fall).
 * FR_IO: cannot be read; FR_INPUT with the mend: shorter than a window, or a
 * token that the vocabulary does not have.  Windows are read with pread, not
 * mapped: a file that shrinks is an error, not a signal, and the page cache
 * does not count as the rank's memory.
 */
FR_CHECKED fr_status fr_data_open(const fr_job *job, int64_t vocab,
                                  fr_data **out, fr_err *err);
void fr_data_close(fr_data *data); /* takes NULL */

/*
 * A hash of what is in a file, so that another one of the same name is told
 * from it: of its size and all bytes, of more than 64 MiB of 64 pieces spread
 * over it.  "": synthetic, 0.  FR_IO: it cannot be read.
 */
FR_CHECKED fr_status fr_data_identity(const char *path, uint64_t *out,
                                      fr_err *err);

/*
 * Samples [first, first + n) of step i_step: tokens[n][len], then
 * targets[n][len] (the same window moved by one), of len = seq / share.n each,
 * the share's part of them.  FR_IO on a read error.
 */
FR_CHECKED fr_status fr_data_load(fr_data *data, int64_t i_step, int64_t first,
                                  int64_t n, fr_sequence_share share,
                                  int32_t *tokens, fr_err *err);

#endif
