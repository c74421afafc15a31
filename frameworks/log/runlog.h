/*
 * runlog.h: what a training run printed, read as one row of measured cases
 * (spec/result/cases.h): the configuration that the framework wrote at its
 * start, and the median of its steady steps.
 *
 * A log is read once, line by line, in bounded memory.  The words of a
 * framework stand in runlog_NAME.c of its folder, which its row names; words of
 * configurations that several share are rows of runlog_words.c.
 */
#ifndef FR_FRAMEWORKS_LOG_RUNLOG_H
#define FR_FRAMEWORKS_LOG_RUNLOG_H

#include "core/base/buffer.h"
#include "core/stream/infile.h"
#include "frameworks/framework.h"
#include "spec/result/cases.h"

enum { FR_RUNLOG_FIELD = 160 };

/* Lines of steps, in the order of the log. */
typedef struct fr_runlog_steps {
    uint64_t n_lines;    /* of steps with the last global batch */
    uint64_t n_first;    /* of them, left out: they warm up */
    uint64_t n_outliers; /* beyond 5 median absolute deviations: counted in
                            the median, which they do not move */
    double median_s, p5_s, p95_s, slowest_s;
} fr_runlog_steps;

typedef struct fr_runlog {
    char field[FR_CASE_COLUMN_N][FR_RUNLOG_FIELD]; /* "": the log is silent */
    fr_runlog_steps steps;
    const char *format; /* the framework's name: "megatron" */
    fr_buffer notes;    /* what was left out or is to be filled in, by line */
} fr_runlog;

/*
 * FR_INPUT "path:line: what" where there is no step of a known framework, or
 * the steps or settings of two runs.  fr_runlog_release() frees after success.
 */
FR_CHECKED fr_status fr_runlog_read(fr_infile *stream, fr_runlog *out,
                                    fr_err *err);
void fr_runlog_release(fr_runlog *log);

/* Notes the columns that are still empty; the caller has filled in what the
 * user gave. */
void fr_runlog_note_missing(fr_runlog *log);

/* Heading and a row for each log, as `forerun validate` reads them. */
void fr_runlog_write(const fr_runlog *logs, size_t n, fr_buffer *out);

#endif
