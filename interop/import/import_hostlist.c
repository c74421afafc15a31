/* import_hostlist.c: brackets of Slurm. */
#include "interop/import/import_hostlist.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NAMES = 65536, MAX_DIGITS = 9 };

typedef struct expansion {
    const fr_import_text *in;
    int line;
    fr_arena *arena;
    fr_hostlist *out;
    char name[FR_HOSTLIST_NAME]; /* what stands before the rest */
} expansion;

static fr_status expand(expansion *e, size_t n_name, const char *rest,
                        size_t n_rest, fr_err *err);

static fr_status fail(const expansion *e, const char *what, fr_err *err)
{
    return fr_import_fail(e->in, e->line, err,
                          "%s in a list of names; write it as tux[0-3,12]",
                          what);
}

/* Digits of a range's end; their count is the width of all its numbers. */
static size_t digits(const char *text, size_t n, long *out)
{
    size_t length = 0;
    while (length < n && text[length] >= '0' && text[length] <= '9')
        length++;
    *out = length > 0 && length <= MAX_DIGITS ? strtol(text, NULL, 10) : -1;
    return length;
}

/* One "3" or "00-15" of a bracket, each followed by the rest of the name. */
static fr_status expand_range(expansion *e, size_t n_name, const char *range,
                              size_t n_range, const char *rest, size_t n_rest,
                              fr_err *err)
{
    long first, last;
    size_t width = digits(range, n_range, &first), at = width;
    last = first;
    if (at < n_range && range[at] == '-') {
        at++;
        at += digits(range + at, n_range - at, &last);
    }
    if (first < 0 || last < first || at != n_range)
        return fail(e, "a range that is none", err);
    for (long i = first; i <= last; i++) {
        char number[2 * MAX_DIGITS];
        int n = snprintf(number, sizeof number, "%0*ld", (int)width, i);
        if (n_name + (size_t)n >= FR_HOSTLIST_NAME)
            return fail(e, "a name of more than 255 bytes", err);
        memcpy(e->name + n_name, number, (size_t)n);
        FR_TRY(expand(e, n_name + (size_t)n, rest, n_rest, err));
    }
    return FR_OK;
}

static fr_status expand_bracket(expansion *e, size_t n_name, const char *rest,
                                size_t n_rest, fr_err *err)
{
    const char *end = memchr(rest, ']', n_rest);
    if (end == NULL)
        return fail(e, "a '[' without its ']'", err);
    const char *after = end + 1;
    size_t n_after = n_rest - (size_t)(after - rest);
    for (const char *at = rest + 1; at <= end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma != NULL ? comma : end;
        FR_TRY(expand_range(e, n_name, at, (size_t)(stop - at), after, n_after,
                            err));
        at = stop + 1;
    }
    return FR_OK;
}

/* Names that begin with e->name[n_name] and go on with `rest`. */
static fr_status expand(expansion *e, size_t n_name, const char *rest,
                        size_t n_rest, fr_err *err)
{
    size_t n = 0;
    while (n < n_rest && rest[n] != '[' && rest[n] != ']')
        n++;
    if (n_name + n >= FR_HOSTLIST_NAME)
        return fail(e, "a name of more than 255 bytes", err);
    memcpy(e->name + n_name, rest, n);
    if (n < n_rest && rest[n] == ']')
        return fail(e, "a ']' without its '['", err);
    if (n < n_rest)
        return expand_bracket(e, n_name + n, rest + n, n_rest - n, err);
    if (n_name + n == 0)
        return fail(e, "an empty name", err);
    if (e->out->n >= MAX_NAMES)
        return fail(e, "more than 65536 names", err);
    const char *name = fr_arena_strndup(e->arena, e->name, n_name + n);
    if (name == NULL || fr_vec_push(e->out, name) != FR_OK)
        return fr_fail_no_memory(err);
    return FR_OK;
}

fr_status fr_hostlist_expand(const fr_import_text *in, int line,
                             const char *text, fr_arena *arena,
                             fr_hostlist *out, fr_err *err)
{
    expansion e = {.in = in, .line = line, .arena = arena, .out = out};
    int depth = 0;
    const char *start = text;
    for (const char *at = text;; at++) {
        depth += (*at == '[') - (*at == ']');
        if (*at && (*at != ',' || depth > 0))
            continue;
        FR_TRY(expand(&e, 0, start, (size_t)(at - start), err));
        if (!*at)
            return FR_OK;
        start = at + 1;
    }
}
