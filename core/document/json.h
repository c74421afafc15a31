/*
 * json.h: strict JSON in, exact JSON out.
 *
 * The reader refuses what RFC 8259 does not allow and what would be guessed
 * at: trailing text, duplicate keys, `01`, comments, NaN, numbers that do not
 * fit a double, broken UTF-8, NUL, nesting deeper than 64, more than 64 MiB.
 * Keys are case sensitive.  Every value knows its line.  Whole numbers up to 64
 * bits are exact.  A document owns all its values and strings.
 */
#ifndef FR_CORE_DOCUMENT_JSON_H
#define FR_CORE_DOCUMENT_JSON_H

#include "core/base/buffer.h"
#include "core/base/err.h"

typedef struct fr_json fr_json;
typedef struct fr_json_value fr_json_value;

typedef enum fr_json_kind {
    FR_JSON_NULL,
    FR_JSON_BOOL,
    FR_JSON_NUMBER,
    FR_JSON_STRING,
    FR_JSON_ARRAY,
    FR_JSON_OBJECT
} fr_json_kind;

/* FR_IO when unreadable, FR_INPUT "path:line: what" when not strict JSON. */
FR_CHECKED fr_status fr_json_load(const char *path, fr_json **out, fr_err *err);
/* The same up to 1 GiB, and any number of values. */
FR_CHECKED fr_status fr_json_load_trace(const char *path, fr_json **out,
                                        fr_err *err);
/* The same from text (n bytes, no NUL needed); `name` stands in messages. */
FR_CHECKED fr_status fr_json_parse(const char *name, const char *text, size_t n,
                                   fr_json **out, fr_err *err);
void fr_json_destroy(fr_json *json); /* takes NULL */
const fr_json_value *fr_json_root(const fr_json *json);

/* ---- looking around; values belong to the document --------------------- */
fr_json_kind fr_json_kind_of(const fr_json_value *value);
const char *fr_json_kind_name(fr_json_kind kind); /* "an array" */
int fr_json_line(const fr_json_value *value);
/* NULL when `object` is NULL or no object, or the key is absent or null. */
const fr_json_value *fr_json_find(const fr_json_value *object, const char *key);
/* The place that an error about a key names: its value, or the object that
 * lacks it. */
const fr_json_value *fr_json_blamed(const fr_json_value *object,
                                    const char *key);
/* Elements of an array or members of an object, in file order; else 0. */
size_t fr_json_n(const fr_json_value *value);
const fr_json_value *fr_json_at(const fr_json_value *value, size_t i);
const char *fr_json_key_at(const fr_json_value *object, size_t i);

void fr_json_err_write(const fr_json_value *value, fr_err *err,
                       const char *format, ...) FR_PRINTF(3, 4);
/*
 * fr_status fr_json_fail(const fr_json_value *, fr_err *, const char *format,
 * ...): writes "path:line: ..." and returns FR_INPUT.
 */
#define fr_json_fail(value, err, ...)                                          \
    (fr_json_err_write((value), (err), __VA_ARGS__), fr_status_same(FR_INPUT))

/* ---- typed access -------------------------------------------------------
 * fr_json_as_X reads a value, fr_json_get_X a required member (absent or null
 * is an error), fr_json_get_X_or an optional one (absent or null gives
 * `otherwise`; a wrong kind fails).  FR_INPUT says path:line, key and what was
 * expected.  Strings are borrowed.
 */
#define FR_JSON_READERS(X, type)                                               \
    FR_CHECKED fr_status fr_json_as_##X(const fr_json_value *value, type *out, \
                                        fr_err *err);                          \
    FR_CHECKED fr_status fr_json_get_##X(                                      \
        const fr_json_value *object, const char *key, type *out, fr_err *err); \
    FR_CHECKED fr_status fr_json_get_##X##_or(const fr_json_value *object,     \
                                              const char *key, type otherwise, \
                                              type *out, fr_err *err);
FR_JSON_READERS(string, const char *)
FR_JSON_READERS(double, double)
FR_JSON_READERS(i64, int64_t)
FR_JSON_READERS(u64, uint64_t)
FR_JSON_READERS(bool, bool)
FR_CHECKED fr_status fr_json_get_array(const fr_json_value *object,
                                       const char *key,
                                       const fr_json_value **out, fr_err *err);
FR_CHECKED fr_status fr_json_get_object(const fr_json_value *object,
                                        const char *key,
                                        const fr_json_value **out, fr_err *err);

/*
 * Refuses members that are not in `known`: "path:line: unknown key 'hiden':
 * did you mean 'hidden'?".
 */
FR_CHECKED fr_status fr_json_check_keys(const fr_json_value *object,
                                        const char *const *known,
                                        size_t n_known, fr_err *err);

/* ---- writer -------------------------------------------------------------
 * Appends to a buffer the caller owns; failure is sticky in the buffer.
 * Two-space indentation; arrays that hold only numbers stay on one line when
 * begun with fr_json_begin_row.  Misuse (a key outside an object, an end too
 * many) is our own bug: assert.
 */
enum { FR_JSON_DEPTH_MAX = 64 };

/* Takes what a writer is given instead of text: keys in objects, beginnings
 * ('{', '[' or 'r') and ends of containers, values.  Texts are borrowed. */
typedef struct fr_json_sink {
    void (*key)(void *context, const char *key);
    void (*begin)(void *context, char container);
    void (*end)(void *context);
    /* A number, true, false or null as it stands in JSON. */
    void (*plain)(void *context, const char *text);
    void (*string)(void *context, const char *text);
} fr_json_sink;

typedef struct fr_json_writer {
    fr_buffer *buffer;        /* NULL where there is a sink */
    const fr_json_sink *sink; /* NULL: text */
    void *context;            /* of the sink */
    int depth;
    char stack[FR_JSON_DEPTH_MAX]; /* '{', '[' or 'r' for a row */
    bool has_items[FR_JSON_DEPTH_MAX];
    bool has_key; /* a key was written, its value is due */
    bool is_line; /* a document is one line, as in JSON Lines */
} fr_json_writer;

void fr_json_writer_init(fr_json_writer *w, fr_buffer *buffer);
void fr_json_writer_init_line(fr_json_writer *w, fr_buffer *buffer);
void fr_json_writer_init_sink(fr_json_writer *w, const fr_json_sink *sink,
                              void *context);
void fr_json_begin_object(fr_json_writer *w);
void fr_json_end_object(fr_json_writer *w);
void fr_json_begin_array(fr_json_writer *w);
void fr_json_begin_row(fr_json_writer *w); /* array on one line */
void fr_json_end_array(fr_json_writer *w); /* ends either */
void fr_json_key(fr_json_writer *w, const char *key);
/* A key, and the beginning of its value. */
void fr_json_open_object(fr_json_writer *w, const char *key);
void fr_json_open_array(fr_json_writer *w, const char *key);
/* A value; a key and its value.  Strings: escaped, NULL writes null, a byte
 * that is no UTF-8 becomes "?".  Doubles: the shortest text that reads back
 * the same; NaN and infinities write null. */
#define FR_JSON_WRITERS(X, type)                                               \
    void fr_json_##X(fr_json_writer *w, type value);                           \
    void fr_json_put_##X(fr_json_writer *w, const char *key, type value);
FR_JSON_WRITERS(string, const char *)
FR_JSON_WRITERS(double, double)
FR_JSON_WRITERS(i64, int64_t)
FR_JSON_WRITERS(u64, uint64_t)
FR_JSON_WRITERS(bool, bool)
void fr_json_null(fr_json_writer *w);
/* A number, true, false or null that is written already. */
void fr_json_plain(fr_json_writer *w, const char *text);
/* Copies a value that was read, numbers as they stood in the file. */
void fr_json_copy(fr_json_writer *w, const fr_json_value *value);
void fr_json_put_null(fr_json_writer *w, const char *key);
void fr_json_put_doubles(fr_json_writer *w, const char *key,
                         const double *values, size_t n); /* a row */

#endif
