/*
 * data_identity.h: what is in a file of data, so that another one of the same
 * name is told from it.
 */
#ifndef FR_RUNTIME_DATA_DATA_IDENTITY_H
#define FR_RUNTIME_DATA_DATA_IDENTITY_H

#include "core/base/err.h"

typedef struct fr_data_identity {
    uint64_t hash; /* of the file itself; synthetic data: 0 */
    /* The hash of the files that a manifest names; 0: the data are no manifest,
     * not all of its files can be seen, or the checkpoint is older than this
     * hash. */
    uint64_t files_hash;
} fr_data_identity;

/*
 * Hashes the sizes and all bytes, or pieces spread over files larger than 64
 * MiB; the many files of a manifest share about as many bytes. "": synthetic.
 * FR_IO: it cannot be read.
 */
FR_CHECKED fr_status fr_data_identify(const char *path, fr_data_identity *out,
                                      fr_err *err);

/* Not known to be of different data. */
bool fr_data_identity_agrees(const fr_data_identity *a,
                             const fr_data_identity *b);
/* Does only one of them know the files of the manifest? */
bool fr_data_identity_is_unsure(const fr_data_identity *a,
                                const fr_data_identity *b);

#endif
