/* hjson.c: see hjson.h. */
#include "core/document/hjson.h"

#include <stdbool.h>
#include <string.h>

enum { DEPTH_MAX = 64 };

typedef struct reader {
    const char *name, *text;
    size_t n, at;
    int line, depth;
    fr_buffer *out;
    fr_err *err;
} reader;

static fr_status read_value(reader *r);

static char peek(const reader *r, size_t ahead)
{
    return r->n - r->at > ahead ? r->text[r->at + ahead] : '\0';
}

static fr_status fail(const reader *r, const char *why)
{
    return fr_fail(r->err, FR_INPUT, "%s:%d: %s", r->name, r->line, why);
}

/* The end of a comment that begins at `at`, or `at` where none does. */
static size_t comment_end(const char *text, size_t n, size_t at)
{
    const bool is_block = n - at > 1 && memcmp(text + at, "/*", 2) == 0;
    const char *end;
    if (text[at] != '#' && !is_block &&
        (n - at < 2 || memcmp(text + at, "//", 2) != 0))
        return at;
    end = is_block ? memmem(text + at + 2, n - at - 2, "*/", 2)
                   : memchr(text + at, '\n', n - at);
    return end == NULL ? n : (size_t)(end - text) + (is_block ? 2 : 0);
}

size_t fr_hjson_skip(const char *text, size_t n, size_t at)
{
    while (at < n) {
        size_t end = comment_end(text, n, at);
        if (end == at && memchr(" \t\r\n", text[at], 4) == NULL)
            break;
        at = end > at ? end : at + 1;
    }
    return at;
}

/* Passes blanks and comments over, and keeps their line breaks. */
static void skip(reader *r)
{
    const size_t end = fr_hjson_skip(r->text, r->n, r->at);
    for (; r->at < end; r->at++)
        if (r->text[r->at] == '\n') {
            fr_buffer_putc(r->out, '\n');
            r->line++;
        }
}

static bool is_punctuation(char c)
{
    return c != '\0' && strchr("{}[],:", c) != NULL;
}

/* A text of JSON, of bytes without escapes. */
static void put_text(reader *r, const char *text, size_t n)
{
    fr_buffer_putc(r->out, '"');
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)text[i] < 0x20)
            fr_buffer_printf(r->out, "\\u%04x", (unsigned)text[i]);
        else {
            if (text[i] == '"' || text[i] == '\\')
                fr_buffer_putc(r->out, '\\');
            fr_buffer_putc(r->out, text[i]);
        }
    }
    fr_buffer_putc(r->out, '"');
}

/* A text between quotes, whose escapes are those of JSON, and \'. */
static fr_status read_quoted(reader *r)
{
    const char quote = r->text[r->at++];
    fr_buffer_putc(r->out, '"');
    for (; r->at < r->n && r->text[r->at] != quote; r->at++) {
        const char c = r->text[r->at], next = peek(r, 1);
        if (c == '\n')
            return fail(r, "line break inside a string");
        if (c == '\\' && next == '\'') {
            r->at++;
            fr_buffer_putc(r->out, next);
            continue;
        }
        if (c == '"')
            fr_buffer_putc(r->out, '\\');
        fr_buffer_putc(r->out, c);
        if (c == '\\' && next != '\0') {
            r->at++;
            fr_buffer_putc(r->out, next);
        }
    }
    if (r->at == r->n)
        return fail(r, "the string never ends");
    r->at++;
    fr_buffer_putc(r->out, '"');
    return FR_OK;
}

/* A text between three single quotes. */
static fr_status read_lines(reader *r)
{
    const char *first = r->text + r->at + 3;
    const char *end = memmem(first, r->n - r->at - 3, "'''", 3);
    if (end == NULL)
        return fail(r, "the string never ends");
    put_text(r, first, (size_t)(end - first));
    for (const char *c = first; c < end; c++)
        if (*c == '\n') {
            fr_buffer_putc(r->out, '\n');
            r->line++;
        }
    r->at = (size_t)(end - r->text) + 3;
    return FR_OK;
}

static size_t count_digits(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n && text[i] >= '0' && text[i] <= '9')
        i++;
    return i;
}

static bool is_number(const char *text, size_t n)
{
    size_t at = n > 0 && text[0] == '-', k = count_digits(text + at, n - at);
    if (k == 0 || (k > 1 && text[at] == '0'))
        return false;
    at += k;
    if (at < n && text[at] == '.') {
        k = count_digits(text + at + 1, n - at - 1);
        if (k == 0)
            return false;
        at += 1 + k;
    }
    if (at < n && (text[at] == 'e' || text[at] == 'E')) {
        at++;
        at += at < n && (text[at] == '-' || text[at] == '+');
        k = count_digits(text + at, n - at);
        if (k == 0)
            return false;
        at += k;
    }
    return at == n;
}

/* A number, true, false or null. */
static bool is_literal(const char *text, size_t n)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < FR_LENGTH(words); i++)
        if (n == strlen(words[i]) && memcmp(words[i], text, n) == 0)
            return true;
    return is_number(text, n);
}

static size_t trimmed(const char *text, size_t n)
{
    while (n > 0 && memchr(" \t\r", text[n - 1], 3) != NULL)
        n--;
    return n;
}

/* A literal, which a comma, a bracket, a comment or the line ends; else a text,
 * which the line alone ends. */
static fr_status read_bare(reader *r)
{
    const char *first = r->text + r->at;
    const size_t n_left = r->n - r->at;
    size_t n = 0;
    for (; n < n_left && first[n] != '\n'; n++) {
        const bool may_end = memchr(",}]", first[n], 3) != NULL ||
                             comment_end(first, n_left, n) > n;
        if (may_end && is_literal(first, trimmed(first, n)))
            break;
    }
    const size_t n_value = trimmed(first, n);
    if (is_literal(first, n_value))
        fr_buffer_append(r->out, first, n_value);
    else
        put_text(r, first, n_value);
    r->at += n;
    return FR_OK;
}

static fr_status read_key(reader *r)
{
    const char *first = r->text + r->at;
    size_t n = 0;
    if (peek(r, 0) == '"' || peek(r, 0) == '\'')
        return read_quoted(r);
    while (r->at + n < r->n && !is_punctuation(first[n]) &&
           (unsigned char)first[n] > ' ')
        n++;
    if (n == 0)
        return fail(r, "a key should stand here");
    put_text(r, first, n);
    r->at += n;
    return FR_OK;
}

static fr_status read_member(reader *r)
{
    FR_TRY(read_key(r));
    skip(r);
    if (peek(r, 0) != ':')
        return fail(r, "':' should follow a key");
    r->at++;
    fr_buffer_putc(r->out, ':');
    skip(r);
    return read_value(r);
}

/* Up to `end`, '\0': the end of the text. */
static fr_status read_items(reader *r, bool is_object, char end)
{
    skip(r);
    for (size_t i = 0; peek(r, 0) != end; i++) {
        if (r->at == r->n)
            return fail(r, "the text ends inside brackets");
        if (i > 0)
            fr_buffer_putc(r->out, ',');
        FR_TRY(is_object ? read_member(r) : read_value(r));
        skip(r);
        if (peek(r, 0) == ',') {
            r->at++;
            skip(r);
        }
    }
    return FR_OK;
}

static fr_status read_container(reader *r)
{
    const bool is_object = peek(r, 0) == '{';
    const char end = is_object ? '}' : ']';
    if (++r->depth > DEPTH_MAX)
        return fail(r, "nested deeper than 64");
    fr_buffer_putc(r->out, r->text[r->at++]);
    FR_TRY(read_items(r, is_object, end));
    fr_buffer_putc(r->out, end);
    r->at++;
    r->depth--;
    return FR_OK;
}

static fr_status read_value(reader *r)
{
    const char c = peek(r, 0);
    if (c == '{' || c == '[')
        return read_container(r);
    if (c == '\0' || is_punctuation(c))
        return fail(r, "a value should stand here");
    if (r->n - r->at > 2 && memcmp(r->text + r->at, "'''", 3) == 0)
        return read_lines(r);
    return c == '"' || c == '\'' ? read_quoted(r) : read_bare(r);
}

fr_status fr_hjson_to_json(const char *name, const char *text, size_t n,
                           fr_buffer *out, fr_err *err)
{
    reader r = {
        .name = name, .text = text, .n = n, .line = 1, .out = out, .err = err};
    skip(&r);
    if (peek(&r, 0) == '{' || peek(&r, 0) == '[') {
        FR_TRY(read_value(&r));
    } else {
        fr_buffer_putc(out, '{');
        FR_TRY(read_items(&r, true, '\0'));
        fr_buffer_putc(out, '}');
    }
    skip(&r);
    if (r.at < n)
        return fail(&r, "the text should end here");
    return fr_buffer_check(out, err);
}
