/* lines.c: lines of bounded length. */
#include "core/stream/lines.h"

#include <string.h>

enum { BLOCK = 1 << 16 };

fr_status fr_lines_init(fr_lines *lines, fr_infile *stream, fr_err *err)
{
    fr_lines result = {.stream = stream, .has_more_numbers = true};
    result.text = malloc(FR_LINE_MAX + 1);
    result.block = malloc(BLOCK);
    if (result.text == NULL || result.block == NULL) {
        fr_lines_release(&result);
        return fr_fail_no_memory(err);
    }
    *lines = result;
    return FR_OK;
}

void fr_lines_release(fr_lines *lines)
{
    free(lines->text);
    free(lines->block);
    memset(lines, 0, sizeof *lines);
}

/* The first end of a line among n bytes, n when there is none. */
static size_t find_end(const char *bytes, size_t n)
{
    const char *end = memchr(bytes, '\n', n);
    size_t n_line = end != NULL ? (size_t)(end - bytes) : n;
    end = memchr(bytes, '\r', n_line);
    return end != NULL ? (size_t)(end - bytes) : n_line;
}

static fr_status append(fr_lines *lines, const char *bytes, size_t n,
                        fr_err *err)
{
    size_t n_free = FR_LINE_MAX - lines->n;
    if (memchr(bytes, '\0', n) != NULL)
        return fr_fail(err, FR_INPUT, "%s:%llu: a NUL byte: not a text",
                       fr_infile_name(lines->stream),
                       (unsigned long long)lines->number);
    n = n < n_free ? n : n_free;
    memcpy(lines->text + lines->n, bytes, n);
    lines->n += n;
    return FR_OK;
}

fr_status fr_lines_next(fr_lines *lines, bool *has_line, fr_err *err)
{
    bool is_any = false;
    lines->n = 0;
    lines->is_whole = false;
    lines->number += lines->has_more_numbers;
    lines->has_more_numbers = false;
    while (!lines->is_whole) {
        if (lines->at == lines->n_block) {
            lines->at = lines->n_block = 0;
            FR_TRY(fr_infile_read(lines->stream, lines->block, BLOCK,
                                  &lines->n_block, err));
            if (lines->n_block == 0)
                break;
        }
        is_any = true;
        const char *from = lines->block + lines->at;
        size_t n_left = lines->n_block - lines->at;
        size_t n = find_end(from, n_left);
        FR_TRY(append(lines, from, n, err));
        if (n < n_left) {
            lines->is_whole = true;
            lines->has_more_numbers = from[n] == '\n';
            n++;
        }
        lines->at += n;
    }
    lines->text[lines->n] = '\0';
    *has_line = is_any;
    return FR_OK;
}
