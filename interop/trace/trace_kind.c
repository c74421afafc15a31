/* trace_kind.c: what a trace looks like. */
#include "core/base/text.h"
#include "interop/trace/trace.h"

#include <stdlib.h>
#include <string.h>

enum { HEAD = 1 << 15 };

static fr_trace_kind kind_of_text(const char *path, const char *text, size_t n)
{
    const char *first = text + strspn(text, " \t\r\n");
    if (n >= 16 && memcmp(text, "SQLite format 3", 16) == 0)
        return FR_TRACE_NSYS;
    if (fr_text_ends(path, ".et") || fr_text_ends(path, ".et.gz") ||
        memmem(text, n, "\"workload_graph\"", 16) != NULL)
        return FR_TRACE_CHAKRA;
    if (*first == '[' || memmem(text, n, "\"traceEvents\"", 13) != NULL)
        return FR_TRACE_CHROME;
    return FR_TRACE_NONE;
}

fr_trace_kind fr_trace_kind_of(const char *path)
{
    fr_err err;
    fr_infile *file;
    size_t n = 0, n_read = 1;
    if (fr_infile_open(path, &file, &err) != FR_OK)
        return FR_TRACE_NONE;
    char *text = calloc(HEAD + 1, 1);
    while (text != NULL && n < HEAD && n_read > 0 &&
           fr_infile_read(file, text + n, HEAD - n, &n_read, &err) == FR_OK)
        n += n_read;
    fr_trace_kind kind =
        text != NULL ? kind_of_text(path, text, n) : FR_TRACE_NONE;
    free(text);
    fr_infile_close(file);
    return kind;
}
