/*
 * log.h: chatter.  Code below cli/ says things through a fr_log it was given
 * (NULL: silence); only cli/ decides where they go (stderr).
 */
#ifndef FR_CORE_BASE_LOG_H
#define FR_CORE_BASE_LOG_H

#include "core/base/err.h"

#include <stdio.h>

typedef enum fr_log_level {
    FR_LOG_DEBUG,
    FR_LOG_INFO,
    FR_LOG_WARNING
} fr_log_level;

/* One line without its newline. */
typedef void (*fr_log_line_fn)(void *context, fr_log_level level,
                               const char *line);
/* Replaces the progress line; done_frac < 0: unknown; text NULL: clear it. */
typedef void (*fr_log_progress_fn)(void *context, double done_frac,
                                   const char *text);

typedef struct fr_log {
    fr_log_line_fn line;
    fr_log_progress_fn progress; /* NULL: none is shown */
    void *context;
    fr_log_level least; /* lines below it are dropped */
} fr_log;

/*
 * Lines go to `stream`, progress too when it is a terminal (redrawn in
 * place).  The stream is borrowed.
 */
void fr_log_init_stream(fr_log *log, FILE *stream);
void fr_log_write(const fr_log *log, fr_log_level level, const char *format,
                  ...) FR_PRINTF(3, 4);
void fr_log_progress(const fr_log *log, double done_frac, const char *format,
                     ...) FR_PRINTF(3, 4);
void fr_log_progress_end(const fr_log *log);

#endif
