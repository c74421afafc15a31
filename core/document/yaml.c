/*
 * yaml.c: the events of libyaml are written anew as JSON, each value on its
 * line, which the strict reader of JSON then reads: duplicate keys and sizes
 * are judged there.  What has an anchor is a piece of that text, and an alias a
 * copy of it.
 */
#include "core/document/yaml.h"

#ifdef FR_HAVE_YAML

#include "core/base/vec.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

enum { DEPTH_MAX = 60, ANCHORS_MAX = 256, ANCHOR_NAME_MAX = 64 };
/* Text that aliases may add: a document of a few lines must not come to
 * gigabytes ("billion laughs"). */
static const size_t alias_bytes_max = (size_t)1 << 20;

typedef struct anchor {
    char name[ANCHOR_NAME_MAX];
    size_t first, n; /* of the text; n 0: it is still being read */
} anchor;

typedef struct reader {
    const char *name;
    yaml_parser_t *parser;
    yaml_event_t event; /* the one that was taken last; owned */
    int line_out;       /* of what is written */
    int depth;
    fr_buffer json;
    fr_vec(anchor) anchors;
    size_t n_alias_bytes;
    fr_err *err;
} reader;

static int line_of(const reader *r)
{
    return (int)r->event.start_mark.line + 1;
}

#define FAIL(r, ...) fail((r), fr_fail((r)->err, FR_INPUT, __VA_ARGS__))

static fr_status fail(const reader *r, fr_status status)
{
    fr_err_prefix(r->err, "%s:%d", r->name, line_of(r));
    return status;
}

static fr_status fail_parser(const reader *r)
{
    const yaml_parser_t *p = r->parser;
    /* The reader of characters knows no other place. */
    const yaml_mark_t *mark =
        p->error == YAML_READER_ERROR ? &p->mark : &p->problem_mark;
    if (p->error == YAML_MEMORY_ERROR)
        return fr_fail_no_memory(r->err);
    return fr_fail(
        r->err, FR_INPUT, "%s:%zu: %s%s%s%s", r->name, mark->line + 1,
        p->problem != NULL ? p->problem : "it is no YAML",
        p->context != NULL ? " (" : "", p->context != NULL ? p->context : "",
        p->context != NULL ? ")" : "");
}

static fr_status next(reader *r)
{
    yaml_event_delete(&r->event);
    if (!yaml_parser_parse(r->parser, &r->event))
        return fail_parser(r);
    return FR_OK;
}

/* Writes line ends, so that the next output is on the line of its source. */
static void keep_line(reader *r)
{
    for (; r->line_out < line_of(r); r->line_out++)
        fr_buffer_putc(&r->json, '\n');
}

/* ---- scalars ------------------------------------------------------------- */

typedef enum scalar_kind { NONE, STRING, NUMBER, BOOL, NOTHING } scalar_kind;

static size_t put_digits(const char **at, fr_buffer *out)
{
    size_t n = 0;
    for (; isdigit((unsigned char)**at) || (n > 0 && **at == '_'); (*at)++)
        if (**at != '_') {
            fr_buffer_putc(out, **at);
            n++;
        }
    return n;
}

/* A number as JSON writes it; false: the text is none, and *out is of no use.
 */
static bool put_number(const char *text, fr_buffer *out)
{
    const char *at = text + (*text == '+' || *text == '-');
    if (*text == '-')
        fr_buffer_putc(out, '-');
    if (at[0] == '0' && at[1] == 'x' && isxdigit((unsigned char)at[2]) &&
        strlen(at) <= 18) {
        char *end;
        fr_buffer_printf(out, "%llu", strtoull(at + 2, &end, 16));
        return *end == '\0';
    }
    size_t n = put_digits(&at, out);
    if (n == 0)
        fr_buffer_putc(out, '0');
    if (*at == '.') {
        at++;
        fr_buffer_putc(out, '.');
        size_t n_after = put_digits(&at, out);
        if (n_after == 0)
            fr_buffer_putc(out, '0');
        n += n_after;
    }
    if (n > 0 && (*at == 'e' || *at == 'E')) {
        fr_buffer_putc(out, *at++);
        if (*at == '+' || *at == '-')
            fr_buffer_putc(out, *at++);
        if (put_digits(&at, out) == 0)
            return false;
    }
    return n > 0 && *at == '\0';
}

/* true, True and TRUE are one word, tRUE is none. */
static bool is_word(const char *text, const char *word)
{
    const size_t n = strlen(word);
    size_t n_upper = 0;
    if (strcasecmp(text, word) != 0)
        return false;
    for (size_t i = 0; i < n; i++)
        n_upper += isupper((unsigned char)text[i]) != 0;
    return n_upper == 0 || n_upper == n ||
           (n_upper == 1 && isupper((unsigned char)text[0]) != 0);
}

static bool is_one_of(const char *text, const char *const *words)
{
    for (; *words != NULL; words++)
        if (is_word(text, *words))
            return true;
    return false;
}

/* Finds the kind of a plain scalar; writes it to *out unless it is a string. */
static fr_status resolve(reader *r, const char *text, fr_buffer *out,
                         scalar_kind *kind)
{
    static const char *const yes[] = {"true", "yes", "on", NULL};
    static const char *const no[] = {"false", "no", "off", NULL};
    static const char *const nothing[] = {"", "~", "null", NULL};
    const char *digits = text + (*text == '+' || *text == '-');
    if (strcasecmp(digits, ".inf") == 0 || strcasecmp(text, ".nan") == 0)
        return FAIL(r, "%s: give a finite number", text);
    if (is_one_of(text, nothing)) {
        fr_buffer_puts(out, "null");
        *kind = NOTHING;
    } else if (is_one_of(text, yes) || is_one_of(text, no)) {
        fr_buffer_puts(out, is_one_of(text, yes) ? "true" : "false");
        *kind = BOOL;
    } else if (put_number(text, out)) {
        *kind = NUMBER;
        if (digits[0] == '0' && isdigit((unsigned char)digits[1]))
            return FAIL(r,
                        "%.40s begins with 0: octal to YAML 1.1, decimal to "
                        "1.2; write it without",
                        text);
    } else {
        *kind = STRING;
    }
    return FR_OK;
}

#define CORE_TAG "tag:yaml.org,2002:"

/* The kind that a tag asks for; NONE: none is there. */
static fr_status read_tag(const reader *r, const char *tag, scalar_kind *out)
{
    static const struct {
        const char *tag;
        scalar_kind kind;
    } rows[] = {{"!", STRING},
                {CORE_TAG "str", STRING},
                {CORE_TAG "int", NUMBER},
                {CORE_TAG "float", NUMBER},
                {CORE_TAG "bool", BOOL},
                {CORE_TAG "null", NOTHING}};
    *out = NONE;
    if (tag == NULL)
        return FR_OK;
    for (size_t i = 0; i < FR_LENGTH(rows); i++)
        if (strcmp(rows[i].tag, tag) == 0)
            *out = rows[i].kind;
    if (*out == NONE)
        return FAIL(r, "the tag %.100s is not read; leave it out", tag);
    return FR_OK;
}

static fr_status put_string(reader *r, const char *text, size_t n)
{
    fr_json_writer writer;
    if (strlen(text) != n)
        return FAIL(r, "a string with a NUL");
    fr_json_writer_init(&writer, &r->json);
    fr_json_string(&writer, text);
    if (!r->json.has_failed)
        r->json.n--; /* the end of line after a whole document */
    return FR_OK;
}

static fr_status read_scalar(reader *r)
{
    const char *text = (const char *)r->event.data.scalar.value;
    const size_t n = r->event.data.scalar.length;
    scalar_kind wanted, kind = STRING;
    fr_buffer plain;
    FR_TRY(read_tag(r, (const char *)r->event.data.scalar.tag, &wanted));
    bool is_plain =
        r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE && wanted == NONE;
    if (!is_plain && (wanted == NONE || wanted == STRING))
        return put_string(r, text, n);
    fr_buffer_init(&plain);
    fr_status status = resolve(r, text, &plain, &kind);
    if (status == FR_OK && wanted != NONE && kind != wanted)
        status = FAIL(r, "'%.40s' is not what its tag says", text);
    if (status == FR_OK && kind == STRING)
        status = put_string(r, text, n);
    else if (status == FR_OK)
        fr_buffer_puts(&r->json, fr_buffer_text(&plain));
    fr_buffer_release(&plain);
    return status;
}

/* ---- nodes --------------------------------------------------------------- */

static fr_status read_node(reader *r);

static fr_status check_tag(const reader *r, const yaml_char_t *tag,
                           const char *core)
{
    const char *text = (const char *)tag;
    if (text == NULL || strcmp(text, "!") == 0 || strcmp(text, core) == 0)
        return FR_OK;
    return FAIL(r, "the tag %.100s is not read; leave it out", text);
}

static fr_status read_sequence(reader *r)
{
    FR_TRY(check_tag(r, r->event.data.sequence_start.tag, CORE_TAG "seq"));
    fr_buffer_putc(&r->json, '[');
    for (bool is_first = true;; is_first = false) {
        FR_TRY(next(r));
        if (r->event.type == YAML_SEQUENCE_END_EVENT)
            break;
        if (!is_first)
            fr_buffer_putc(&r->json, ',');
        FR_TRY(read_node(r));
    }
    fr_buffer_putc(&r->json, ']');
    return FR_OK;
}

static fr_status read_key(reader *r)
{
    const char *text = (const char *)r->event.data.scalar.value;
    if (r->event.type != YAML_SCALAR_EVENT)
        return FAIL(r, "a key that is no plain text");
    if (r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
        strcmp(text, "<<") == 0)
        return FAIL(r, "merge keys (<<) are not read; write the members out");
    keep_line(r);
    FR_TRY(put_string(r, text, r->event.data.scalar.length));
    fr_buffer_putc(&r->json, ':');
    return FR_OK;
}

static fr_status read_mapping(reader *r)
{
    FR_TRY(check_tag(r, r->event.data.mapping_start.tag, CORE_TAG "map"));
    fr_buffer_putc(&r->json, '{');
    for (bool is_first = true;; is_first = false) {
        FR_TRY(next(r));
        if (r->event.type == YAML_MAPPING_END_EVENT)
            break;
        if (!is_first)
            fr_buffer_putc(&r->json, ',');
        FR_TRY(read_key(r));
        FR_TRY(next(r));
        FR_TRY(read_node(r));
    }
    fr_buffer_putc(&r->json, '}');
    return FR_OK;
}

static fr_status read_alias(reader *r)
{
    const char *name = (const char *)r->event.data.alias.anchor;
    for (size_t i = r->anchors.n; i-- > 0;) {
        const anchor *of = &r->anchors.items[i];
        if (strcmp(of->name, name) != 0)
            continue;
        if (of->n == 0)
            return FAIL(r, "*%.60s stands within what it is the name of", name);
        r->n_alias_bytes += of->n;
        if (r->n_alias_bytes > alias_bytes_max)
            return FAIL(r, "aliases come to more than %zu bytes",
                        alias_bytes_max);
        for (size_t c = of->first, end = of->first + of->n;
             c < end && !r->json.has_failed; c++)
            fr_buffer_putc(&r->json,
                           r->json.data[c] == '\n' ? ' ' : r->json.data[c]);
        return FR_OK;
    }
    return FAIL(r, "*%.60s: nothing before has this anchor", name);
}

static const char *anchor_of(const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return (const char *)event->data.scalar.anchor;
    case YAML_SEQUENCE_START_EVENT:
        return (const char *)event->data.sequence_start.anchor;
    case YAML_MAPPING_START_EVENT:
        return (const char *)event->data.mapping_start.anchor;
    default:
        return NULL;
    }
}

static fr_status add_anchor(reader *r, const char *name)
{
    anchor made = {.first = r->json.n};
    if (strlen(name) >= sizeof made.name)
        return FAIL(r, "an anchor of more than %d characters",
                    ANCHOR_NAME_MAX - 1);
    if (r->anchors.n == ANCHORS_MAX)
        return FAIL(r, "more than %d anchors", ANCHORS_MAX);
    snprintf(made.name, sizeof made.name, "%s", name);
    FR_TRY_PUSH(&r->anchors, made, r->err);
    return FR_OK;
}

static fr_status read_content(reader *r)
{
    switch (r->event.type) {
    case YAML_SCALAR_EVENT:
        return read_scalar(r);
    case YAML_SEQUENCE_START_EVENT:
        return read_sequence(r);
    case YAML_MAPPING_START_EVENT:
        return read_mapping(r);
    default:
        return read_alias(r);
    }
}

static fr_status read_node(reader *r)
{
    const char *name = anchor_of(&r->event);
    const size_t i_anchor = r->anchors.n;
    if (r->depth == DEPTH_MAX)
        return FAIL(r, "values are nested deeper than %d", DEPTH_MAX);
    keep_line(r);
    if (name != NULL)
        FR_TRY(add_anchor(r, name));
    r->depth++;
    fr_status status = read_content(r);
    r->depth--;
    if (status == FR_OK && i_anchor < r->anchors.n) {
        anchor *made = &r->anchors.items[i_anchor];
        if (name != NULL)
            made->n = r->json.n - made->first;
    }
    return status;
}

static fr_status translate(reader *r)
{
    FR_TRY(next(r)); /* the stream begins */
    FR_TRY(next(r));
    if (r->event.type == YAML_STREAM_END_EVENT)
        return FAIL(r, "there is no document in it");
    FR_TRY(next(r));
    FR_TRY(read_node(r));
    FR_TRY(next(r)); /* the document ends */
    FR_TRY(next(r));
    if (r->event.type != YAML_STREAM_END_EVENT)
        return FAIL(r, "a second document; one is read");
    return fr_buffer_check(&r->json, r->err);
}

fr_status fr_yaml_parse(const char *name, const char *text, size_t n,
                        fr_json **out, fr_err *err)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return fr_fail_no_memory(err);
    reader r = {.name = name, .parser = &parser, .line_out = 1, .err = err};
    fr_buffer_init(&r.json);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
    fr_status status = translate(&r);
    yaml_event_delete(&r.event);
    yaml_parser_delete(&parser);
    if (status == FR_OK)
        status = fr_json_parse(name, r.json.data, r.json.n, out, err);
    fr_vec_release(&r.anchors);
    fr_buffer_release(&r.json);
    return status;
}

#else

fr_status fr_yaml_parse(const char *name, const char *text, size_t n,
                        fr_json **out, fr_err *err)
{
    (void)text;
    (void)n;
    (void)out;
    return fr_fail(err, FR_FAILURE,
                   "%s: this build has no libyaml; apt-get install "
                   "libyaml-dev and make again",
                   name);
}

#endif
