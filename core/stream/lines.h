/*
 * lines.h: the lines of a stream, one at a time.  What stands behind the
 * first FR_LINE_MAX bytes of a line is dropped: no line takes more memory.
 * A carriage return ends a line too, as progress bars write it.
 */
#ifndef FR_CORE_STREAM_LINES_H
#define FR_CORE_STREAM_LINES_H

#include "core/stream/infile.h"

enum { FR_LINE_MAX = 1 << 16 };

typedef struct fr_lines {
    fr_infile *stream; /* borrowed */
    char *text;        /* the line, with a NUL and without its end */
    size_t n;
    uint64_t number;       /* of the line, from 1 */
    bool is_whole;         /* it has an end: the file is not cut in it */
    bool has_more_numbers; /* the next one has the next number */
    char *block;
    size_t at, n_block;
} fr_lines;

FR_CHECKED fr_status fr_lines_init(fr_lines *lines, fr_infile *stream,
                                   fr_err *err);
void fr_lines_release(fr_lines *lines);
/* FR_INPUT "path:line: ..." for a NUL byte: no text has one. */
FR_CHECKED fr_status fr_lines_next(fr_lines *lines, bool *has_line,
                                   fr_err *err);

#endif
