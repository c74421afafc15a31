/*
 * json_scan.c: is the text JSON as RFC 8259 has it, and where does each value
 * stand?  cJSON lets `01`, trailing text, broken UTF-8 and more pass.
 */
#include "core/base/text.h"
#include "core/document/json_impl.h"

#include <string.h>

typedef struct scanner {
    const char *name;
    const char *text;
    size_t n, at;
    int line;
    int depth;
    size_t n_values_max;
    fr_json_places *places;
    fr_err *err;
} scanner;

static fr_status scan_value(scanner *s);

static fr_status scan_fail(scanner *s, const char *what)
{
    return fr_fail(s->err, FR_INPUT, "%s:%d: %s", s->name, s->line, what);
}

/* The next byte, 0 at the end (a NUL in the text was refused before). */
static char peek(const scanner *s)
{
    return s->at < s->n ? s->text[s->at] : '\0';
}

static void skip_space(scanner *s)
{
    for (;; s->at++) {
        char c = peek(s);
        if (c == '\n')
            s->line++;
        else if (c != ' ' && c != '\t' && c != '\r')
            return;
    }
}

static fr_status expect(scanner *s, const char *wanted)
{
    char c = peek(s);

    if (s->at >= s->n)
        return fr_fail(s->err, FR_INPUT,
                       "%s:%d: the text ends where %s should follow", s->name,
                       s->line, wanted);
    if (c > ' ' && c < 0x7f)
        return fr_fail(s->err, FR_INPUT, "%s:%d: found '%c' instead of %s",
                       s->name, s->line, c, wanted);
    return fr_fail(s->err, FR_INPUT, "%s:%d: found byte 0x%02x instead of %s",
                   s->name, s->line, (unsigned)(unsigned char)c, wanted);
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Four digits after "\u"; -1 when they are not. */
static int scan_hex4(scanner *s)
{
    int code = 0;

    for (int i = 0; i < 4; i++, s->at++) {
        int digit = hex_value(peek(s));
        if (digit < 0)
            return -1;
        code = code * 16 + digit;
    }
    return code;
}

/* After the backslash. */
static fr_status scan_escape(scanner *s)
{
    char c = peek(s);
    int code;

    if (c && strchr("\"\\/bfnrt", c) != NULL) {
        s->at++;
        return FR_OK;
    }
    if (c != 'u')
        return scan_fail(s, "unknown escape after '\\' in a string");
    s->at++;
    code = scan_hex4(s);
    if (code < 0)
        return scan_fail(s, "\\u needs four hexadecimal digits");
    if (code == 0)
        return scan_fail(s, "a string must not hold \\u0000");
    if (code >= 0xdc00 && code <= 0xdfff)
        return scan_fail(s, "low surrogate without its high one");
    if (code >= 0xd800 && code <= 0xdbff) {
        if (s->n - s->at < 2 || s->text[s->at] != '\\' ||
            s->text[s->at + 1] != 'u')
            return scan_fail(s, "high surrogate without its low one");
        s->at += 2;
        code = scan_hex4(s);
        if (code < 0xdc00 || code > 0xdfff)
            return scan_fail(s, "high surrogate without its low one");
    }
    return FR_OK;
}

static fr_status scan_string(scanner *s)
{
    int first_line = s->line;

    s->at++;
    for (;;) {
        unsigned char c = (unsigned char)peek(s);
        if (s->at >= s->n)
            return fr_fail(s->err, FR_INPUT, "%s:%d: the string never ends",
                           s->name, first_line);
        if (c < 0x20)
            return scan_fail(s, c == '\n' ? "line break inside a string"
                                          : "control character inside a "
                                            "string");
        s->at++;
        if (c == '"')
            return FR_OK;
        if (c == '\\')
            FR_TRY(scan_escape(s));
    }
}

static size_t scan_digits(scanner *s)
{
    size_t n = 0;

    for (; peek(s) >= '0' && peek(s) <= '9'; s->at++)
        n++;
    return n;
}

static fr_status scan_number(scanner *s)
{
    size_t first = s->at;

    if (peek(s) == '-')
        s->at++;
    if (peek(s) == '0') {
        s->at++;
        if (peek(s) >= '0' && peek(s) <= '9')
            return scan_fail(s, "a number must not begin with 0");
    } else if (scan_digits(s) == 0) {
        return expect(s, "a digit");
    }
    if (peek(s) == '.') {
        s->at++;
        if (scan_digits(s) == 0)
            return expect(s, "a digit after the point");
    }
    if (peek(s) == 'e' || peek(s) == 'E') {
        s->at++;
        if (peek(s) == '-' || peek(s) == '+')
            s->at++;
        if (scan_digits(s) == 0)
            return expect(s, "a digit of the exponent");
    }
    /* The next character must end the number: 1x, 0x10 and 1.2.3 are errors. */
    if (s->at < s->n && strchr(" \t\r\n,]}", peek(s)) == NULL)
        return expect(s, "the end of the number");
    if (s->at - first > FR_JSON_NUMBER_MAX)
        return scan_fail(s, "a number of more than 63 characters");
    return FR_OK;
}

static fr_status scan_word(scanner *s, const char *word)
{
    size_t n = strlen(word);

    if (s->n - s->at < n || memcmp(s->text + s->at, word, n) != 0)
        return expect(s, "a value");
    s->at += n;
    return FR_OK;
}

static fr_status scan_member(scanner *s)
{
    if (peek(s) != '"')
        return expect(s, "a key in double quotes");
    FR_TRY(scan_string(s));
    skip_space(s);
    if (peek(s) != ':')
        return expect(s, "':' after a key");
    s->at++;
    skip_space(s);
    return scan_value(s);
}

static fr_status scan_container(scanner *s, char end)
{
    bool is_object = end == '}';

    if (++s->depth > FR_JSON_READ_DEPTH_MAX)
        return scan_fail(s, "nested deeper than 64");
    s->at++;
    skip_space(s);
    if (peek(s) == end) {
        s->at++;
        s->depth--;
        return FR_OK;
    }
    for (;;) {
        FR_TRY(is_object ? scan_member(s) : scan_value(s));
        skip_space(s);
        if (peek(s) == end)
            break;
        if (peek(s) != ',')
            return expect(s, is_object ? "',' or '}'" : "',' or ']'");
        s->at++;
        skip_space(s);
    }
    s->at++;
    s->depth--;
    return FR_OK;
}

static fr_status scan_value(scanner *s)
{
    fr_json_place place = {.first = s->at, .line = s->line};
    size_t i_place = s->places->n;
    char c = peek(s);

    if (i_place >= s->n_values_max)
        return scan_fail(s, "more than 2,097,152 values: is this a trace?");
    if (fr_vec_push(s->places, place) != FR_OK)
        return fr_fail_no_memory(s->err);
    if (c == '{') {
        place.kind = FR_JSON_OBJECT;
        FR_TRY(scan_container(s, '}'));
    } else if (c == '[') {
        place.kind = FR_JSON_ARRAY;
        FR_TRY(scan_container(s, ']'));
    } else if (c == '"') {
        place.kind = FR_JSON_STRING;
        FR_TRY(scan_string(s));
    } else if (c == '-' || (c >= '0' && c <= '9')) {
        place.kind = FR_JSON_NUMBER;
        FR_TRY(scan_number(s));
    } else if (c == 't' || c == 'f') {
        place.kind = FR_JSON_BOOL;
        FR_TRY(scan_word(s, c == 't' ? "true" : "false"));
    } else if (c == 'n') {
        place.kind = FR_JSON_NULL;
        FR_TRY(scan_word(s, "null"));
    } else {
        return expect(s, "a value");
    }
    place.n = s->at - place.first;
    s->places->items[i_place] = place;
    return FR_OK;
}

static int line_of(const char *text, size_t at)
{
    int line = 1;

    for (size_t i = 0; i < at; i++)
        line += text[i] == '\n';
    return line;
}

fr_status fr_json_scan(const char *name, const char *text, size_t n,
                       size_t n_values_max, fr_json_places *out, fr_err *err)
{
    scanner s = {.name = name,
                 .text = text,
                 .n = n,
                 .line = 1,
                 .n_values_max = n_values_max,
                 .places = out,
                 .err = err};
    const char *nul = n ? memchr(text, '\0', n) : NULL;
    size_t n_valid = fr_text_utf8_valid(text, n);

    if (nul != NULL)
        return fr_fail(err, FR_INPUT, "%s:%d: a NUL byte is no text", name,
                       line_of(text, (size_t)(nul - text)));
    if (n_valid < n)
        return fr_fail(err, FR_INPUT, "%s:%d: broken UTF-8", name,
                       line_of(text, n_valid));
    if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        return fr_fail(err, FR_INPUT,
                       "%s:1: begins with a byte order mark: save it without",
                       name);
    skip_space(&s);
    if (s.at == n)
        return fr_fail(err, FR_INPUT, "%s:%d: is empty", name, s.line);
    FR_TRY(scan_value(&s));
    skip_space(&s);
    if (s.at < n)
        return expect(&s, "the end of the text");
    return FR_OK;
}
