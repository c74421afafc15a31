/*
 * data_identity.h: what is in a file of data, so that another one of the same
 * name is told from it.
 */
#ifndef FR_RUNTIME_DATA_DATA_IDENTITY_H
#define FR_RUNTIME_DATA_DATA_IDENTITY_H

#include "core/base/err.h"

typedef struct fr_data_identity {
    uint64_t hash; /* of the file itself; synthetic data: 0 */
    /* Of the files that it names, where it is a manifest; 0: it is none, not
     * all of them can be seen, or a checkpoint of before this was known. */
    uint64_t files_hash;
} fr_data_identity;

/*
 * Of the sizes and of all bytes, or of pieces spread over what is larger than
 * 64 MiB; many files of a manifest share about as much.  "": synthetic.
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
