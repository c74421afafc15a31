/*
 * metrics_file.h: the file of --metrics: whole lines only, each handed to the
 * system as it is made.
 */
#ifndef FR_CLI_WATCH_METRICS_FILE_H
#define FR_CLI_WATCH_METRICS_FILE_H

#include "core/base/buffer.h"

typedef struct fr_metrics_file {
    const char *path; /* borrowed; NULL: there is none */
    int fd;
    bool has_failed;  /* to write; it was said */
    bool is_replaced; /* older lines go when the first is written */
} fr_metrics_file;

/* Can it be written?  Nothing is changed, but an empty file made.  FR_IO. */
FR_CHECKED fr_status fr_metrics_file_check(const char *path, fr_err *err);
/* path NULL: no file, and nothing fails.  Lines are appended to what is there,
 * or replace it, as soon as there is one. */
FR_CHECKED fr_status fr_metrics_file_open(fr_metrics_file *file,
                                          const char *path, bool is_appended,
                                          fr_err *err);
void fr_metrics_file_close(fr_metrics_file *file);

/* FR_IO the first time that a line cannot be written whole: none of it stays,
 * and the next ones are tried again in silence. */
FR_CHECKED fr_status fr_metrics_file_add(fr_metrics_file *file,
                                         const fr_buffer *line, fr_err *err);

#endif
