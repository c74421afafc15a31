/* json_events.c: a JSON reader that keeps nothing but its place. */
#include "core/stream/json_events.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

enum { BLOCK = 1 << 16 };

fr_status fr_json_events_init(fr_json_events *events, fr_infile *file,
                              fr_err *err)
{
    fr_json_events result = {.file = file, .line = 1};
    result.text = malloc(FR_EVENT_TEXT_MAX + 1);
    result.block = malloc(BLOCK);
    if (result.text == NULL || result.block == NULL) {
        fr_json_events_release(&result);
        return fr_fail_no_memory(err);
    }
    *events = result;
    return FR_OK;
}

void fr_json_events_release(fr_json_events *events)
{
    free(events->text);
    free(events->block);
    memset(events, 0, sizeof *events);
}

static fr_status fail(const fr_json_events *e, const char *what, fr_err *err)
{
    return fr_fail(err, FR_INPUT, "%s:%llu: %s", fr_infile_name(e->file),
                   (unsigned long long)e->line, what);
}

/* The next byte without taking it, -1 at the end. */
static inline fr_status peek(fr_json_events *e, int *c, fr_err *err)
{
    if (e->at == e->n_block) {
        e->at = 0;
        FR_TRY(fr_infile_read(e->file, e->block, BLOCK, &e->n_block, err));
    }
    *c = e->at < e->n_block ? e->block[e->at] : -1;
    return FR_OK;
}

static fr_status peek_behind_blanks(fr_json_events *e, int *c, fr_err *err)
{
    for (;;) {
        FR_TRY(peek(e, c, err));
        if (*c != ' ' && *c != '\n' && *c != '\r' && *c != '\t')
            return FR_OK;
        e->line += *c == '\n';
        e->at++;
    }
}

static inline void put(fr_json_events *e, int c)
{
    if (e->n_text < FR_EVENT_TEXT_MAX)
        e->text[e->n_text++] = (char)c;
}

/* ---- strings ------------------------------------------------------------ */

static void put_code(fr_json_events *e, unsigned code)
{
    if (code == 0)
        code = '?';
    if (code < 0x80) {
        put(e, (int)code);
    } else if (code < 0x800) {
        put(e, (int)(0xc0 | code >> 6));
        put(e, (int)(0x80 | (code & 0x3f)));
    } else if (code >= 0xd800 && code < 0xe000) {
        put(e, '?'); /* halves of a pair: no name needs them */
    } else {
        put(e, (int)(0xe0 | code >> 12));
        put(e, (int)(0x80 | (code >> 6 & 0x3f)));
        put(e, (int)(0x80 | (code & 0x3f)));
    }
}

static fr_status read_escape(fr_json_events *e, fr_err *err)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    int c;
    unsigned code = 0;
    FR_TRY(peek(e, &c, err));
    const char *at = c > 0 ? strchr(from, c) : NULL;
    e->at += c >= 0;
    if (at != NULL) {
        put(e, to[at - from]);
        return FR_OK;
    }
    if (c != 'u')
        return fail(e, "an escape in a string that JSON does not have", err);
    for (int i = 0; i < 4; i++) {
        FR_TRY(peek(e, &c, err));
        if (c < 0 || !isxdigit(c))
            return fail(e, "\\u without four hexadecimal digits", err);
        code = code * 16 +
               (unsigned)(isdigit(c) ? c - '0' : tolower(c) - 'a' + 10);
        e->at++;
    }
    put_code(e, code);
    return FR_OK;
}

/* Behind the first quote. */
static fr_status read_string(fr_json_events *e, fr_err *err)
{
    int c;
    e->n_text = 0;
    for (;;) {
        FR_TRY(peek(e, &c, err));
        if (c < 0)
            return fail(e, "the file is cut off in a string", err);
        e->at++;
        if (c == '"')
            break;
        if (c < 0x20)
            return fail(e, "a control character in a string", err);
        if (c == '\\')
            FR_TRY(read_escape(e, err));
        else
            put(e, c);
    }
    e->text[e->n_text] = '\0';
    return FR_OK;
}

/* ---- numbers and words -------------------------------------------------- */

static const char *skip_digits(const char *at)
{
    while (isdigit((unsigned char)*at))
        at++;
    return at;
}

/* RFC 8259, 6: -? (0 | [1-9][0-9]*) (.[0-9]+)? ([eE][+-]?[0-9]+)? */
static bool is_number(const char *text)
{
    const char *at = text + (*text == '-');
    const char *end = *at == '0' ? at + 1 : skip_digits(at);
    if (end == at)
        return false;
    if (*end == '.') {
        at = end + 1;
        end = skip_digits(at);
        if (end == at)
            return false;
    }
    if (*end == 'e' || *end == 'E') {
        at = end + 1;
        at += *at == '+' || *at == '-';
        end = skip_digits(at);
        if (end == at)
            return false;
    }
    return *end == '\0';
}

static fr_status read_plain(fr_json_events *e, fr_err *err)
{
    int c;
    e->n_text = 0;
    for (;;) {
        FR_TRY(peek(e, &c, err));
        if (c < 0 || (!isalnum(c) && c != '+' && c != '-' && c != '.'))
            break;
        put(e, c);
        e->at++;
    }
    e->text[e->n_text] = '\0';
    e->kind = FR_EVENT_WORD;
    if (strcmp(e->text, "true") == 0 || strcmp(e->text, "false") == 0 ||
        strcmp(e->text, "null") == 0)
        return FR_OK;
    if (e->n_text == 0)
        return fail(e, c < 0 ? "the file is cut off" : "this is no JSON", err);
    if (e->n_text > 400 || !is_number(e->text))
        return fail(e, "neither a number, nor true, false or null", err);
    e->kind = FR_EVENT_NUMBER;
    e->number = strtod(e->text, NULL);
    return isfinite(e->number) ? FR_OK
                               : fail(e, "a number that is too large", err);
}

/* ---- structure ---------------------------------------------------------- */

static fr_status open(fr_json_events *e, int c, fr_err *err)
{
    if (e->depth == FR_EVENT_DEPTH_MAX)
        return fail(e, "nested more than 64 deep", err);
    e->stack[e->depth++] = (char)c;
    e->has_items = false;
    e->kind = c == '{' ? FR_EVENT_OBJECT : FR_EVENT_ARRAY;
    e->at++;
    return FR_OK;
}

static fr_status read_value(fr_json_events *e, int c, fr_err *err)
{
    e->has_key = false;
    if (c == '{' || c == '[')
        return open(e, c, err);
    e->has_items = true;
    if (c != '"') {
        FR_TRY(read_plain(e, err));
    } else {
        e->at++;
        e->kind = FR_EVENT_STRING;
        FR_TRY(read_string(e, err));
    }
    e->is_done = e->depth == 0;
    return FR_OK;
}

static fr_status read_key(fr_json_events *e, int c, fr_err *err)
{
    if (c != '"')
        return fail(e, c < 0 ? "the file is cut off" : "a key is no string",
                    err);
    e->at++;
    FR_TRY(read_string(e, err));
    FR_TRY(peek_behind_blanks(e, &c, err));
    if (c != ':')
        return fail(e, c < 0 ? "the file is cut off" : "a key without a ':'",
                    err);
    e->at++;
    e->has_key = true;
    e->kind = FR_EVENT_KEY;
    return FR_OK;
}

static void close_one(fr_json_events *e, fr_event_kind kind)
{
    e->at++;
    e->depth--;
    e->has_items = true;
    e->is_done = e->depth == 0;
    e->kind = kind;
}

fr_status fr_json_events_next(fr_json_events *e, fr_err *err)
{
    int c;
    FR_TRY(peek_behind_blanks(e, &c, err));
    if (e->is_done) {
        e->kind = FR_EVENT_END;
        return c < 0 ? FR_OK : fail(e, "text behind the document", err);
    }
    if (e->depth == 0 || e->has_key)
        return read_value(e, c, err);
    bool is_object = e->stack[e->depth - 1] == '{';
    if (c == (is_object ? '}' : ']')) {
        close_one(e, is_object ? FR_EVENT_OBJECT_END : FR_EVENT_ARRAY_END);
        return FR_OK;
    }
    if (e->has_items) {
        if (c != ',')
            return fail(e,
                        c < 0 ? "the file is cut off: a trace whose run ended "
                                "before it was written"
                              : "no ',' between two values",
                        err);
        e->at++;
        FR_TRY(peek_behind_blanks(e, &c, err));
    }
    return is_object ? read_key(e, c, err) : read_value(e, c, err);
}

fr_status fr_json_events_skip(fr_json_events *e, fr_err *err)
{
    int depth = e->depth;
    if (e->kind == FR_EVENT_KEY) {
        FR_TRY(fr_json_events_next(e, err));
        if (e->kind != FR_EVENT_OBJECT && e->kind != FR_EVENT_ARRAY)
            return FR_OK;
    } else if (e->kind == FR_EVENT_OBJECT || e->kind == FR_EVENT_ARRAY) {
        depth--;
    } else {
        return FR_OK;
    }
    while (e->depth > depth)
        FR_TRY(fr_json_events_next(e, err));
    return FR_OK;
}

bool fr_json_events_is_key(const fr_json_events *e, const char *name)
{
    return e->kind == FR_EVENT_KEY && strcmp(e->text, name) == 0;
}
