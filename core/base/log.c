/* log.c: see log.h. */
#include "core/base/log.h"

#include <stdarg.h>
#include <string.h>
#include <unistd.h>

static void stream_line(void *context, fr_log_level level, const char *line)
{
    FILE *stream = context;

    /* A progress line may stand there. */
    if (isatty(fileno(stream)))
        fputs("\r\033[K", stream);
    if (level == FR_LOG_WARNING)
        fputs("warning: ", stream);
    fputs(line, stream);
    fputc('\n', stream);
    fflush(stream);
}

static void stream_progress(void *context, double done_frac, const char *text)
{
    FILE *stream = context;
    char line[512];

    if (text == NULL)
        snprintf(line, sizeof line, "\r\033[K");
    else if (done_frac < 0)
        snprintf(line, sizeof line, "\r\033[K%.400s", text);
    else
        snprintf(line, sizeof line, "\r\033[K%3.0f%% %.400s",
                 100 * (done_frac > 1 ? 1 : done_frac), text);
    fputs(line, stream);
    fflush(stream);
}

void fr_log_init_stream(fr_log *log, FILE *stream)
{
    log->line = stream_line;
    log->progress = isatty(fileno(stream)) ? stream_progress : NULL;
    log->is_cancelled = NULL;
    log->context = stream;
    log->least = FR_LOG_INFO;
}

fr_log fr_log_quiet(const fr_log *log)
{
    return log == NULL ? (fr_log){.line = NULL}
                       : (fr_log){.is_cancelled = log->is_cancelled,
                                  .context = log->context};
}

fr_status fr_log_check(const fr_log *log, fr_err *err)
{
    bool is_cancelled;
    if (log == NULL || log->is_cancelled == NULL)
        return FR_OK;
#pragma omp critical(fr_log_check)
    is_cancelled = log->is_cancelled(log->context);
    return is_cancelled ? fr_fail(err, FR_INTERRUPTED,
                                  "the caller has cancelled the work")
                        : FR_OK;
}

static void make_one_line(char *text)
{
    for (; *text; text++)
        if (*text == '\n' || *text == '\r')
            *text = ' ';
}

void fr_log_write(const fr_log *log, fr_log_level level, const char *format,
                  ...)
{
    char line[2048];
    va_list args;

    if (log == NULL || log->line == NULL || level < log->least)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    make_one_line(line);
    log->line(log->context, level, line);
}

void fr_log_progress(const fr_log *log, double done_frac, const char *format,
                     ...)
{
    char line[512];
    va_list args;

    if (log == NULL || log->progress == NULL)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    make_one_line(line);
    log->progress(log->context, done_frac, line);
}

void fr_log_progress_end(const fr_log *log)
{
    if (log != NULL && log->progress != NULL)
        log->progress(log->context, -1, NULL);
}
