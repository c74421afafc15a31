/* export_read_back.h: files that were written, read as those of a user. */
#ifndef FR_FRAMEWORKS_WRITE_EXPORT_READ_BACK_H
#define FR_FRAMEWORKS_WRITE_EXPORT_READ_BACK_H

#include "frameworks/write/export.h"

/* The outcome of a file that was read back. */
typedef struct fr_read_back {
    bool is_read;   /* the framework has a reader of such a file */
    bool is_same;   /* its plan is that of the request */
    char text[320]; /* for heads: "the same plan", or the field that differs */
} fr_read_back;

/* Reads the first of the files with the framework's reader, as it reads those
 * of a user. */
FR_CHECKED fr_status fr_export_read_back(const fr_framework *framework,
                                         const fr_export_request *request,
                                         const fr_export_files *files,
                                         fr_read_back *out, fr_err *err);

#endif
