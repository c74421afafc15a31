/*
 * data.h: training tokens: bytes of any file, GPT-2 token files, manifests of
 * many of them (token_file.h), or made up; or images of files (image_set.h).
 *
 * Sample i of step s is a window of seq + 1 tokens whose place depends on
 * (seed, s, i) alone (and, where a manifest gives places of the batch their
 * own ranges, on the global batch), so every layout sees the same global
 * batch.  Files are read a step ahead (prefetch.h).
 */
#ifndef FR_RUNTIME_DATA_DATA_H
#define FR_RUNTIME_DATA_DATA_H

#include "core/base/err.h"
#include "program/ir/sequence_share.h"
#include "spec/model/faults.h"
#include "spec/model/job.h"
#include "spec/model/model.h"

typedef struct fr_data fr_data;

/*
 * Opens job->data ("": synthetic tokens, a noisy chain whose loss can fall).
 * FR_IO: cannot be read; FR_INPUT with the mend: shorter than a window, or a
 * token that the vocabulary does not have.
 */
FR_CHECKED fr_status fr_data_open(const fr_job *job, int64_t vocab,
                                  fr_data **out, fr_err *err);
void fr_data_close(fr_data *data); /* takes NULL */
/* Before the first load: what is to go wrong on this rank; borrowed. */
void fr_data_inject(fr_data *data, const fr_faults *faults, int64_t rank);

/* Before the first load: the targets one token further on follow the others,
 * -100 beyond a sample's end. */
void fr_data_look_ahead(fr_data *data);

/*
 * Samples [first, first + n) of step i_step: tokens[n][len], then
 * targets[n][len] (the same window moved by one), of len = seq / share.n each,
 * the share's part of them.  FR_IO on a read error.
 */
FR_CHECKED fr_status fr_data_load(fr_data *data, int64_t i_step, int64_t first,
                                  int64_t n, fr_sequence_share share,
                                  int32_t *tokens, fr_err *err);

/*
 * Images of the model's size from job->data, which is not "".  Sample i of step
 * s is image s * global_batch + i of the epochs one after the other.
 */
FR_CHECKED fr_status fr_data_open_images(const fr_job *job,
                                         const fr_model *model, fr_data **out,
                                         fr_err *err);
bool fr_data_has_images(const fr_data *data); /* NULL: no */
/*
 * Samples [first, first + n) of step i_step: [sample][row][column][channel].
 * A model that takes patches gets the share's part of each sequence of them,
 * [sample][patch][channel][row][column], the first patch of a sequence 0; for
 * others the share is of 1.
 */
FR_CHECKED fr_status fr_data_load_images(fr_data *data, int64_t i_step,
                                         int64_t first, int64_t n,
                                         fr_sequence_share share, float *out,
                                         fr_err *err);
/* Their labels. */
FR_CHECKED fr_status fr_data_load_labels(const fr_data *data, int64_t i_step,
                                         int64_t first, int64_t n, int32_t *out,
                                         fr_err *err);

#endif
