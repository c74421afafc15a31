/*
 * toml.c: the text is written anew as JSON, each value on its line, which the
 * strict reader of JSON then reads: numbers, escapes, duplicate keys and depth
 * are judged there.
 */
#include "core/document/toml.h"

#include <ctype.h>
#include <string.h>

enum { DEPTH_MAX = 16, KEY_MAX = 128 };

typedef struct reader {
    const char *name, *at, *end;
    int line, line_out; /* of the text, and of what is written */
    fr_buffer json;
    char path[DEPTH_MAX][KEY_MAX]; /* tables that are open */
    bool has_items[DEPTH_MAX + 1];
    int depth, nesting; /* of tables, of values within one */
    fr_err *err;
} reader;

#define FAIL(r, ...) fail((r), fr_fail((r)->err, FR_INPUT, __VA_ARGS__))

static fr_status fail(const reader *r, fr_status status)
{
    fr_err_prefix(r->err, "%s:%d", r->name, r->line);
    return status;
}

static char peek(const reader *r)
{
    return r->at < r->end ? *r->at : '\0';
}

static bool take(reader *r, char c)
{
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

static void skip_blanks(reader *r)
{
    while (peek(r) == ' ' || peek(r) == '\t')
        r->at++;
}

/* Blanks, comments and ends of lines. */
static void skip_lines(reader *r)
{
    for (;;) {
        skip_blanks(r);
        if (peek(r) == '#')
            while (r->at < r->end && *r->at != '\n')
                r->at++;
        if (peek(r) == '\r')
            r->at++;
        if (!take(r, '\n'))
            return;
        r->line++;
    }
}

/* Writes line ends, so that the next output is on the line of its source. */
static void keep_line(reader *r)
{
    while (r->line_out < r->line) {
        fr_buffer_putc(&r->json, '\n');
        r->line_out++;
    }
}

static void put_comma(reader *r)
{
    if (r->has_items[r->depth])
        fr_buffer_putc(&r->json, ',');
    r->has_items[r->depth] = true;
}

static bool is_bare(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* ---- keys and tables ----------------------------------------------------- */

/* One part of a key, without quotes. */
static fr_status read_part(reader *r, char out[KEY_MAX])
{
    size_t n = 0;
    char quote = peek(r) == '"' || peek(r) == '\'' ? *r->at++ : '\0';
    while (r->at < r->end && (quote != '\0' ? *r->at != quote && *r->at != '\n'
                                            : is_bare(*r->at))) {
        if (n + 1 == KEY_MAX || *r->at == '\\' || *r->at == '"' ||
            (unsigned char)*r->at < ' ')
            return FAIL(r, "a key that is too long or has an escape");
        out[n++] = *r->at++;
    }
    out[n] = '\0';
    if (quote != '\0' && !take(r, quote))
        return FAIL(r, "a key without its closing quote");
    if (n == 0)
        return FAIL(r, "a key is expected");
    return FR_OK;
}

static fr_status read_key(reader *r, char parts[DEPTH_MAX][KEY_MAX], int *n_out)
{
    int n = 0;
    do {
        if (n == DEPTH_MAX)
            return FAIL(r, "more than %d parts of a key", DEPTH_MAX);
        skip_blanks(r);
        FR_TRY(read_part(r, parts[n++]));
        skip_blanks(r);
    } while (take(r, '.'));
    *n_out = n;
    return FR_OK;
}

static void put_key(reader *r, const char *key)
{
    fr_buffer_printf(&r->json, "\"%s\":", key);
}

static void open_table(reader *r, const char *key)
{
    put_comma(r);
    put_key(r, key);
    fr_buffer_putc(&r->json, '{');
    memcpy(r->path[r->depth++], key, KEY_MAX);
    r->has_items[r->depth] = false;
}

static fr_status read_header(reader *r)
{
    char parts[DEPTH_MAX][KEY_MAX];
    int n, n_common = 0;
    if (peek(r) == '[')
        return FAIL(r, "an array of tables ([[...]]) is not read");
    FR_TRY(read_key(r, parts, &n));
    if (!take(r, ']'))
        return FAIL(r, "a table's name without ']'");
    while (n_common < n && n_common < r->depth &&
           strcmp(parts[n_common], r->path[n_common]) == 0)
        n_common++;
    for (; r->depth > n_common; r->depth--)
        fr_buffer_putc(&r->json, '}');
    keep_line(r);
    for (int i = n_common; i < n; i++)
        open_table(r, parts[i]);
    return FR_OK;
}

/* ---- values -------------------------------------------------------------- */

static fr_status read_value(reader *r);

static fr_status read_string(reader *r)
{
    const char quote = *r->at++;
    if (r->at + 1 < r->end && r->at[0] == quote && r->at[1] == quote)
        return FAIL(r, "a string of several lines is not read");
    fr_buffer_putc(&r->json, '"');
    for (; r->at < r->end && *r->at != quote; r->at++) {
        if (*r->at == '\n')
            break;
        if (quote == '\'' && (*r->at == '"' || *r->at == '\\'))
            fr_buffer_putc(&r->json, '\\');
        fr_buffer_putc(&r->json, *r->at);
        if (quote == '"' && *r->at == '\\' && r->at + 1 < r->end &&
            r->at[1] != '\n')
            fr_buffer_putc(&r->json, *++r->at);
    }
    fr_buffer_putc(&r->json, '"');
    return take(r, quote) ? FR_OK
                          : FAIL(r, "a string without its closing quote");
}

/* A number, true or false; JSON judges what is left of it. */
static fr_status read_word(reader *r)
{
    const char *first = r->at;
    while (r->at < r->end &&
           (is_bare(*r->at) || *r->at == '+' || *r->at == '.' || *r->at == ':'))
        r->at++;
    const size_t n = (size_t)(r->at - first);
    bool is_switch = (n == 4 && memcmp(first, "true", 4) == 0) ||
                     (n == 5 && memcmp(first, "false", 5) == 0);
    if (n == 0)
        return FAIL(r, "a value is expected");
    if (!is_switch &&
        (isalpha((unsigned char)*first) || memchr(first, ':', n) != NULL))
        return FAIL(r, "'%.*s' is no value; strings stand in quotes",
                    (int)(n < 40 ? n : 40), first);
    for (size_t i = 0; i < n; i++)
        if (first[i] != '_' && !(i == 0 && first[i] == '+'))
            fr_buffer_putc(&r->json, first[i]);
    return FR_OK;
}

static fr_status read_array(reader *r)
{
    bool has_items = false;
    r->at++;
    fr_buffer_putc(&r->json, '[');
    for (;;) {
        skip_lines(r);
        if (take(r, ']'))
            break;
        if (has_items)
            fr_buffer_putc(&r->json, ',');
        has_items = true;
        keep_line(r);
        FR_TRY(read_value(r));
        skip_lines(r);
        if (take(r, ',') || peek(r) == ']')
            continue;
        return FAIL(r, "',' or ']' is expected in an array");
    }
    fr_buffer_putc(&r->json, ']');
    return FR_OK;
}

static fr_status read_inline_table(reader *r)
{
    char key[KEY_MAX];
    bool has_items = false;
    r->at++;
    fr_buffer_putc(&r->json, '{');
    for (;;) {
        skip_blanks(r);
        if (!has_items && take(r, '}'))
            break;
        FR_TRY(read_part(r, key));
        skip_blanks(r);
        if (!take(r, '='))
            return FAIL(r, "'=' is expected after '%s'", key);
        if (has_items)
            fr_buffer_putc(&r->json, ',');
        has_items = true;
        put_key(r, key);
        FR_TRY(read_value(r));
        skip_blanks(r);
        if (take(r, '}'))
            break;
        if (!take(r, ','))
            return FAIL(r, "',' or '}' is expected in a table");
    }
    fr_buffer_putc(&r->json, '}');
    return FR_OK;
}

static fr_status read_value(reader *r)
{
    fr_status status;
    skip_blanks(r);
    if (peek(r) == '"' || peek(r) == '\'')
        return read_string(r);
    if (peek(r) != '[' && peek(r) != '{')
        return read_word(r);
    if (r->nesting == DEPTH_MAX)
        return FAIL(r, "values are nested deeper than %d", DEPTH_MAX);
    r->nesting++;
    status = peek(r) == '[' ? read_array(r) : read_inline_table(r);
    r->nesting--;
    return status;
}

static fr_status read_member(reader *r)
{
    char parts[DEPTH_MAX][KEY_MAX];
    int n;
    FR_TRY(read_key(r, parts, &n));
    if (!take(r, '='))
        return FAIL(r, "'=' is expected after '%s'", parts[n - 1]);
    put_comma(r);
    keep_line(r);
    for (int i = 0; i < n; i++) {
        put_key(r, parts[i]);
        if (i + 1 < n)
            fr_buffer_putc(&r->json, '{');
    }
    FR_TRY(read_value(r));
    fr_buffer_fill(&r->json, '}', (size_t)(n - 1));
    return FR_OK;
}

static fr_status translate(reader *r)
{
    fr_buffer_putc(&r->json, '{');
    for (;;) {
        skip_lines(r);
        if (r->at == r->end)
            break;
        FR_TRY(take(r, '[') ? read_header(r) : read_member(r));
        skip_blanks(r);
        char next = peek(r);
        if (r->at < r->end && next != '\n' && next != '\r' && next != '#')
            return FAIL(r, "more text on the line of a value");
    }
    fr_buffer_fill(&r->json, '}', (size_t)r->depth + 1);
    return fr_buffer_check(&r->json, r->err);
}

fr_status fr_toml_parse(const char *name, const char *text, size_t n,
                        fr_json **out, fr_err *err)
{
    reader r = {.name = name,
                .at = text,
                .end = text + n,
                .line = 1,
                .line_out = 1,
                .err = err};
    fr_buffer_init(&r.json);
    fr_status status = translate(&r);
    if (status == FR_OK)
        status = fr_json_parse(name, r.json.data, r.json.n, out, err);
    fr_buffer_release(&r.json);
    return status;
}
