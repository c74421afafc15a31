/*
 * log.h: the caller's side of long work.  Code below cli/ says things through a
 * fr_log it was given (NULL: silence) and asks it whether to stop; only the
 * caller decides where lines go.
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

/* Has the caller cancelled the work?  Once it is true, it stays true.  Any
 * thread of the work may ask, one at a time, several times a second; the answer
 * must be quick and must not call forerun. */
typedef bool (*fr_log_cancel_fn)(void *context);

typedef struct fr_log {
    fr_log_line_fn line;
    fr_log_progress_fn progress;   /* NULL: none is shown */
    fr_log_cancel_fn is_cancelled; /* NULL: it is never cancelled */
    void *context;
    fr_log_level least; /* lines below it are dropped */
} fr_log;

/* The same caller without lines and progress, for work inside other work; `log`
 * may be NULL. */
fr_log fr_log_quiet(const fr_log *log);

/* FR_INTERRUPTED if the caller has cancelled the work. */
FR_CHECKED fr_status fr_log_check(const fr_log *log, fr_err *err);

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
