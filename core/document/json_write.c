/* json_write.c: the writer; see json.h. */
#include "core/base/text.h"
#include "core/document/json_impl.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fr_json_writer_init(fr_json_writer *writer, fr_buffer *buffer)
{
    *writer = (fr_json_writer){.buffer = buffer};
}

void fr_json_writer_init_line(fr_json_writer *writer, fr_buffer *buffer)
{
    *writer = (fr_json_writer){.buffer = buffer, .is_line = true};
}

void fr_json_writer_init_sink(fr_json_writer *writer, const fr_json_sink *sink,
                              void *context)
{
    *writer = (fr_json_writer){.sink = sink, .context = context};
}

static char container(const fr_json_writer *w)
{
    return w->depth ? w->stack[w->depth - 1] : '\0';
}

static void new_line(fr_json_writer *w)
{
    if (w->is_line)
        return;
    fr_buffer_putc(w->buffer, '\n');
    fr_buffer_fill(w->buffer, ' ', 2 * (size_t)w->depth);
}

/* Comma and indentation before an item of the open container. */
static void begin_item(fr_json_writer *w)
{
    const bool is_spaced = w->is_line || container(w) == 'r';

    if (w->depth == 0 || w->sink != NULL)
        return;
    if (w->has_items[w->depth - 1])
        fr_buffer_puts(w->buffer, is_spaced ? ", " : ",");
    if (container(w) != 'r')
        new_line(w);
    w->has_items[w->depth - 1] = true;
}

static void begin_value(fr_json_writer *w)
{
    assert(w->has_key == (container(w) == '{'));
    if (w->has_key)
        w->has_key = false;
    else
        begin_item(w);
}

/* The end of the whole document is the end of its last line. */
static void end_value(fr_json_writer *w)
{
    if (w->depth == 0 && w->sink == NULL)
        fr_buffer_putc(w->buffer, '\n');
}

static void begin_container(fr_json_writer *w, char kind)
{
    assert(w->depth < FR_JSON_DEPTH_MAX);
    begin_value(w);
    if (w->sink != NULL)
        w->sink->begin(w->context, kind);
    else
        fr_buffer_putc(w->buffer, kind == '{' ? '{' : '[');
    w->stack[w->depth] = kind;
    w->has_items[w->depth] = false;
    w->depth++;
}

static void end_container(fr_json_writer *w, char end)
{
    char kind = container(w);

    assert(w->depth > 0 && (kind == '{') == (end == '}') && !w->has_key);
    w->depth--;
    if (w->sink != NULL) {
        w->sink->end(w->context);
        return;
    }
    if (w->has_items[w->depth] && kind != 'r')
        new_line(w);
    fr_buffer_putc(w->buffer, end);
    end_value(w);
}

void fr_json_begin_object(fr_json_writer *w)
{
    begin_container(w, '{');
}

void fr_json_end_object(fr_json_writer *w)
{
    end_container(w, '}');
}

void fr_json_begin_array(fr_json_writer *w)
{
    begin_container(w, '[');
}

void fr_json_begin_row(fr_json_writer *w)
{
    begin_container(w, 'r');
}

void fr_json_end_array(fr_json_writer *w)
{
    end_container(w, ']');
}

static void write_escaped(fr_buffer *buffer, unsigned char c)
{
    static const char letters[] = "\"\"\\\\\bb\ff\nn\rr\tt";

    for (size_t i = 0; letters[i]; i += 2) {
        if (c == (unsigned char)letters[i]) {
            fr_buffer_putc(buffer, '\\');
            fr_buffer_putc(buffer, letters[i + 1]);
            return;
        }
    }
    fr_buffer_printf(buffer, "\\u%04x", (unsigned)c);
}

static void write_string(fr_buffer *buffer, const char *text)
{
    size_t n = strlen(text), i = 0;

    fr_buffer_putc(buffer, '"');
    while (i < n) {
        size_t n_valid = fr_text_utf8_valid(text + i, n - i);
        size_t end = i + n_valid;
        while (i < end) {
            size_t n_plain = i;
            while (n_plain < end && (unsigned char)text[n_plain] >= 0x20 &&
                   text[n_plain] != '"' && text[n_plain] != '\\' &&
                   text[n_plain] != 0x7f)
                n_plain++;
            fr_buffer_append(buffer, text + i, n_plain - i);
            i = n_plain;
            if (i < end)
                write_escaped(buffer, (unsigned char)text[i++]);
        }
        if (i < n) {
            /* One byte for one: what fitted a field still does when it is
             * read back. */
            fr_buffer_putc(buffer, '?');
            i++;
        }
    }
    fr_buffer_putc(buffer, '"');
}

void fr_json_key(fr_json_writer *w, const char *key)
{
    assert(container(w) == '{' && !w->has_key);
    begin_item(w);
    w->has_key = true;
    if (w->sink != NULL) {
        w->sink->key(w->context, key);
        return;
    }
    write_string(w->buffer, key);
    fr_buffer_puts(w->buffer, ": ");
}

void fr_json_open_object(fr_json_writer *w, const char *key)
{
    fr_json_key(w, key);
    begin_container(w, '{');
}

void fr_json_open_array(fr_json_writer *w, const char *key)
{
    fr_json_key(w, key);
    begin_container(w, '[');
}

void fr_json_plain(fr_json_writer *w, const char *text)
{
    begin_value(w);
    if (w->sink != NULL)
        w->sink->plain(w->context, text);
    else
        fr_buffer_puts(w->buffer, text);
    end_value(w);
}

void fr_json_string(fr_json_writer *w, const char *text)
{
    if (text == NULL) {
        fr_json_null(w);
        return;
    }
    begin_value(w);
    if (w->sink != NULL)
        w->sink->string(w->context, text);
    else
        write_string(w->buffer, text);
    end_value(w);
}

void fr_json_double(fr_json_writer *w, double value)
{
    char text[40] = "null";

    if (isfinite(value)) {
        for (int n_digits = 15; n_digits <= 17; n_digits++) {
            snprintf(text, sizeof text, "%.*g", n_digits, value);
            if (strtod(text, NULL) == value)
                break;
        }
    }
    fr_json_plain(w, text);
}

void fr_json_u64(fr_json_writer *w, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, value);
    fr_json_plain(w, text);
}

void fr_json_i64(fr_json_writer *w, int64_t value)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRId64, value);
    fr_json_plain(w, text);
}

void fr_json_bool(fr_json_writer *w, bool value)
{
    fr_json_plain(w, value ? "true" : "false");
}

void fr_json_null(fr_json_writer *w)
{
    fr_json_plain(w, "null");
}

/* Short arrays of plain values, such as curves, stand on one line. */
static bool is_row(const fr_json_value *value)
{
    for (size_t i = 0; i < value->n; i++)
        if (value->items[i].kind != FR_JSON_NUMBER)
            return false;
    return value->n > 0;
}

static void copy_items(fr_json_writer *w, const fr_json_value *value)
{
    bool is_object = value->kind == FR_JSON_OBJECT;

    if (is_object)
        fr_json_begin_object(w);
    else if (is_row(value))
        fr_json_begin_row(w);
    else
        fr_json_begin_array(w);
    for (size_t i = 0; i < value->n; i++) {
        if (is_object)
            fr_json_key(w, value->items[i].key);
        fr_json_copy(w, &value->items[i]);
    }
    if (is_object)
        fr_json_end_object(w);
    else
        fr_json_end_array(w);
}

void fr_json_copy(fr_json_writer *w, const fr_json_value *value)
{
    switch (value->kind) {
    case FR_JSON_NULL:
        fr_json_null(w);
        break;
    case FR_JSON_BOOL:
        fr_json_bool(w, value->truth);
        break;
    case FR_JSON_NUMBER:
        fr_json_plain(w, value->text);
        break;
    case FR_JSON_STRING:
        fr_json_string(w, value->text);
        break;
    case FR_JSON_ARRAY:
    case FR_JSON_OBJECT:
        copy_items(w, value);
        break;
    }
}

#define DEFINE_PUT(X, type)                                                    \
    void fr_json_put_##X(fr_json_writer *w, const char *key, type value)       \
    {                                                                          \
        fr_json_key(w, key);                                                   \
        fr_json_##X(w, value);                                                 \
    }

DEFINE_PUT(string, const char *)
DEFINE_PUT(double, double)
DEFINE_PUT(u64, uint64_t)
DEFINE_PUT(i64, int64_t)
DEFINE_PUT(bool, bool)

void fr_json_put_null(fr_json_writer *w, const char *key)
{
    fr_json_key(w, key);
    fr_json_null(w);
}

void fr_json_put_doubles(fr_json_writer *w, const char *key,
                         const double *values, size_t n)
{
    fr_json_key(w, key);
    fr_json_begin_row(w);
    for (size_t i = 0; i < n; i++)
        fr_json_double(w, values[i]);
    fr_json_end_array(w);
}
