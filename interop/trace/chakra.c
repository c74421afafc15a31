/*
 * chakra.c: execution traces of MLCommons Chakra
 * (github.com/mlcommons/chakra, schema/protobuf/et_def.proto): messages of
 * protobuf's wire format, each behind its length (first GlobalMetadata, then
 * Nodes), or the same as JSON ("workload_graph").
 *
 * The wire format (protobuf.dev/programming-guides/encoding): a key is
 * field << 3 | type; type 0 a varint, 1 eight bytes, 2 a length and so many
 * bytes, 5 four bytes.
 */
#include "core/base/text.h"
#include "core/stream/json_events.h"
#include "interop/trace/trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_MAX = 1 << 24, BLOCK = 1 << 16 };

/* NodeType and CollectiveCommType of et_def.proto. */
enum { NODE_COMP = 4, NODE_SEND = 5, NODE_RECV = 6, NODE_COLLECTIVE = 7 };
static const char *const node_types[] = {
    "INVALID_NODE", "METADATA_NODE",  "MEM_LOAD_NODE",  "MEM_STORE_NODE",
    "COMP_NODE",    "COMM_SEND_NODE", "COMM_RECV_NODE", "COMM_COLL_NODE"};
static const char *const collectives[] = {
    "all_reduce", "reduce",     "all_gather",     "gather",         "scatter",
    "broadcast",  "all_to_all", "reduce_scatter", "reduce_scatter", "barrier"};

/* The values of a node. */
typedef struct node {
    char name[192], shapes[192], types[96];
    double id, type, begin_us, dur_us, is_cpu_op, comm_type, n_bytes;
} node;

typedef struct reader {
    fr_trace_event_fn take;
    void *self;
    const char *name;
} reader;

static fr_status emit(const reader *r, const node *n, fr_err *err)
{
    fr_trace_event event = fr_trace_event_none();
    int type = n->type >= 0 && n->type < 8 ? (int)n->type : 0;
    bool is_comm =
        type == NODE_SEND || type == NODE_RECV || type == NODE_COLLECTIVE;
    if (type != NODE_COMP && !is_comm)
        return FR_OK;
    event.phase = 'X';
    fr_text_copy_cut(event.name, sizeof event.name, n->name);
    fr_text_copy_cut(event.shapes, sizeof event.shapes, n->shapes);
    fr_text_copy_cut(event.types, sizeof event.types, n->types);
    /* Files for simulators run a node on the device unless the node says that
     * it does not. */
    snprintf(event.category, sizeof event.category, "%s",
             n->is_cpu_op > 0 && !is_comm ? "cpu_op" : "kernel");
    event.begin_us = n->begin_us;
    event.dur_us = n->dur_us;
    if (type == NODE_COLLECTIVE && n->comm_type >= 0 && n->comm_type < 10)
        snprintf(event.collective, sizeof event.collective, "%s",
                 collectives[(int)n->comm_type]);
    if (is_comm && n->n_bytes >= 0) {
        event.n_in = event.n_out = n->n_bytes;
        snprintf(event.dtype, sizeof event.dtype, "Byte");
    }
    if (!(event.begin_us >= 0 && event.begin_us < 1e17) ||
        !(event.dur_us >= 0 && event.dur_us < 1e12))
        return fr_fail(err, FR_INPUT,
                       "%s: node %.0f: a time that makes no sense", r->name,
                       n->id);
    return r->take(r->self, &event, err);
}

/* ---- protobuf ----------------------------------------------------------- */

/* Bytes of a message that are still unread. */
typedef struct bytes {
    const uint8_t *at, *end;
} bytes;

typedef struct field {
    uint64_t number, value; /* value: of types 0, 1 and 5 */
    int type;
    bytes inner; /* of type 2 */
} field;

static bool read_varint(bytes *b, uint64_t *out)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && b->at < b->end; shift += 7) {
        uint8_t byte = *b->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = value;
            return true;
        }
    }
    return false;
}

/* Little-endian, as far as there are so many bytes. */
static bool read_fixed(bytes *b, int n, uint64_t *out)
{
    uint64_t value = 0;
    if (b->end - b->at < n)
        return false;
    for (int i = 0; i < n; i++)
        value |= (uint64_t)*b->at++ << (8 * i);
    *out = value;
    return true;
}

static bool read_field(bytes *b, field *out)
{
    uint64_t key, n;
    field f = {0};
    if (!read_varint(b, &key))
        return false;
    f.number = key >> 3;
    f.type = (int)(key & 7);
    if (f.type == 2) {
        if (!read_varint(b, &n) || n > (uint64_t)(b->end - b->at))
            return false;
        f.inner = (bytes){b->at, b->at + n};
        b->at += n;
    } else if (f.type == 0   ? !read_varint(b, &f.value)
               : f.type == 1 ? !read_fixed(b, 8, &f.value)
               : f.type == 5 ? !read_fixed(b, 4, &f.value)
                             : true) {
        return false;
    }
    *out = f;
    return true;
}

static void copy_text(bytes from, char *out, size_t n)
{
    size_t n_text = (size_t)(from.end - from.at);
    char text[256];
    n_text = n_text < sizeof text - 1 ? n_text : sizeof text - 1;
    memcpy(text, from.at, n_text);
    text[n_text] = '\0';
    fr_text_copy_cut(out, n, text);
}

static void put_attribute(const char *name, double value, node *out)
{
    if (strcmp(name, "is_cpu_op") == 0)
        out->is_cpu_op = value;
    else if (strcmp(name, "comm_type") == 0)
        out->comm_type = value;
    else if (strcmp(name, "comm_size") == 0)
        out->n_bytes = value;
}

/* The number of an AttributeProto: fields 3 to 27 by type. */
static double number_of(const field *f)
{
    double real;
    float single;
    uint32_t low = (uint32_t)f->value;
    switch (f->number) {
    case 3:
        memcpy(&real, &f->value, sizeof real);
        return real;
    case 5:
        memcpy(&single, &low, sizeof single);
        return single;
    case 15:
    case 17: /* zigzag */
        return (double)(int64_t)(f->value >> 1 ^ -(f->value & 1));
    default:
        return (double)(int64_t)f->value;
    }
}

static bool read_attribute(bytes b, node *out)
{
    char name[32] = "";
    double value = -1;
    field f;
    while (b.at < b.end) {
        if (!read_field(&b, &f))
            return false;
        if (f.number == 1 && f.type == 2)
            copy_text(f.inner, name, sizeof name);
        else if (f.number >= 3 && f.type != 2)
            value = number_of(&f);
    }
    put_attribute(name, value, out);
    return true;
}

/* IOInfo: 2 shapes, 3 types. */
static bool read_operands(bytes b, node *out)
{
    field f;
    while (b.at < b.end) {
        if (!read_field(&b, &f))
            return false;
        if (f.number == 2 && f.type == 2)
            copy_text(f.inner, out->shapes, sizeof out->shapes);
        if (f.number == 3 && f.type == 2)
            copy_text(f.inner, out->types, sizeof out->types);
    }
    return true;
}

static bool read_node(bytes b, node *out)
{
    field f;
    *out = (node){.comm_type = -1, .n_bytes = -1};
    while (b.at < b.end) {
        if (!read_field(&b, &f))
            return false;
        bool is_text = f.type == 2;
        if (f.number == 1 && !is_text)
            out->id = (double)f.value;
        else if (f.number == 2 && is_text)
            copy_text(f.inner, out->name, sizeof out->name);
        else if (f.number == 3 && !is_text)
            out->type = (double)f.value;
        else if (f.number == 6 && !is_text)
            out->begin_us = (double)f.value;
        else if (f.number == 7 && !is_text)
            out->dur_us = (double)f.value;
        else if ((f.number == 8 && is_text && !read_operands(f.inner, out)) ||
                 (f.number == 10 && is_text && !read_attribute(f.inner, out)))
            return false;
    }
    return true;
}

/* The stream as messages: one block of memory that grows to the largest. */
typedef struct messages {
    fr_infile *file;
    uint8_t *at;
    size_t n, cap, used;
} messages;

/* At least n unread bytes, unless the file ends. */
static fr_status fill(messages *m, size_t n, fr_err *err)
{
    size_t n_read = 1;
    memmove(m->at, m->at + m->used, m->n - m->used);
    m->n -= m->used;
    m->used = 0;
    if (n + BLOCK > m->cap) {
        uint8_t *at = realloc(m->at, n + BLOCK);
        if (at == NULL)
            return fr_fail_no_memory(err);
        m->at = at;
        m->cap = n + BLOCK;
    }
    while (m->n < n && n_read > 0) {
        FR_TRY(
            fr_infile_read(m->file, m->at + m->n, m->cap - m->n, &n_read, err));
        m->n += n_read;
    }
    return FR_OK;
}

static fr_status next_message(messages *m, bytes *out, bool *is_there,
                              fr_err *err)
{
    uint64_t n;
    if (m->n - m->used < 10)
        FR_TRY(fill(m, 10, err));
    bytes head = {m->at + m->used, m->at + m->n};
    *is_there = head.at < head.end;
    if (!*is_there)
        return FR_OK;
    if (!read_varint(&head, &n) || n > MESSAGE_MAX)
        return fr_fail(err, FR_INPUT,
                       "%s: no length of a message: no trace of Chakra",
                       fr_infile_name(m->file));
    m->used = (size_t)(head.at - m->at);
    if (m->n - m->used < n)
        FR_TRY(fill(m, n, err));
    if (m->n - m->used < n)
        return fr_fail(err, FR_INPUT, "%s: cut off in a message",
                       fr_infile_name(m->file));
    *out = (bytes){m->at + m->used, m->at + m->used + n};
    m->used += n;
    return FR_OK;
}

static fr_status read_wire(const reader *r, messages *m, fr_err *err)
{
    for (uint64_t i = 0;; i++) {
        bytes message = {NULL, NULL};
        bool is_there;
        node n;
        FR_TRY(next_message(m, &message, &is_there, err));
        if (!is_there)
            return FR_OK;
        if (i == 0) /* GlobalMetadata */
            continue;
        if (!read_node(message, &n))
            return fr_fail(err, FR_INPUT,
                           "%s: message %llu is no node of "
                           "Chakra",
                           r->name, (unsigned long long)i + 1);
        FR_TRY(emit(r, &n, err));
    }
}

/* ---- JSON --------------------------------------------------------------- */

/* A number, a number as text, true, or the name of a node type. */
static double value_of(const fr_json_events *json)
{
    if (json->kind == FR_EVENT_NUMBER)
        return json->number;
    for (size_t i = 0; i < FR_LENGTH(node_types); i++)
        if (strcmp(json->text, node_types[i]) == 0)
            return (double)i;
    if (strcasecmp(json->text, "true") == 0)
        return 1;
    char *end;
    double value = strtod(json->text, &end);
    return end != json->text && *end == '\0' && isfinite(value) ? value : 0;
}

static void put_member(const char *key, const fr_json_events *json, node *out)
{
    static const struct {
        const char *key;
        size_t offset;
    } numbers[] = {
        {"id", offsetof(node, id)},
        {"nodetype", offsetof(node, type)},
        {"type", offsetof(node, type)},
        {"runtime", offsetof(node, dur_us)},
        {"duration_micros", offsetof(node, dur_us)},
        {"start_time_micros", offsetof(node, begin_us)},
        {"is_cpu_op", offsetof(node, is_cpu_op)},
        {"comm_type", offsetof(node, comm_type)},
        {"comm_size", offsetof(node, n_bytes)},
    };
    double value = value_of(json);
    if (strcasecmp(key, "name") == 0)
        fr_text_copy_cut(out->name, sizeof out->name, json->text);
    for (size_t i = 0; i < FR_LENGTH(numbers); i++)
        if (strcasecmp(key, numbers[i].key) == 0)
            memcpy((char *)out + numbers[i].offset, &value, sizeof value);
}

static fr_status read_graph(const reader *r, fr_json_events *json, fr_err *err)
{
    char key[48];
    int depth = json->depth;
    for (;;) {
        node n = {.comm_type = -1, .n_bytes = -1};
        FR_TRY(fr_json_events_next(json, err));
        if (json->depth < depth)
            return FR_OK;
        if (json->kind != FR_EVENT_OBJECT)
            return fr_fail(err, FR_INPUT, "%s:%llu: a node is an object",
                           r->name, (unsigned long long)json->line);
        while (json->depth > depth) {
            FR_TRY(fr_json_events_next(json, err));
            if (json->kind != FR_EVENT_KEY)
                continue;
            fr_text_copy_cut(key, sizeof key, json->text);
            FR_TRY(fr_json_events_next(json, err));
            if (json->kind == FR_EVENT_OBJECT || json->kind == FR_EVENT_ARRAY)
                FR_TRY(fr_json_events_skip(json, err));
            else
                put_member(key, json, &n);
        }
        FR_TRY(emit(r, &n, err));
    }
}

static fr_status read_json(const reader *r, fr_json_events *json, fr_err *err)
{
    bool has_graph = false;
    FR_TRY(fr_json_events_next(json, err));
    while (json->kind != FR_EVENT_END) {
        bool is_graph =
            json->depth == 1 && fr_json_events_is_key(json, "workload_graph");
        FR_TRY(fr_json_events_next(json, err));
        if (!is_graph || json->kind != FR_EVENT_ARRAY)
            continue;
        has_graph = true;
        FR_TRY(read_graph(r, json, err));
    }
    return has_graph
               ? FR_OK
               : fr_fail(err, FR_INPUT,
                         "%s: no workload_graph: no trace of Chakra", r->name);
}

/* ---- either ------------------------------------------------------------- */

/* '{' is also the length of a first message of 123 bytes, whose first key
 * would be that of a text (0x0a) or of a message (0x12). */
static bool is_json(const uint8_t *at, size_t n)
{
    bool is_line = n > 2 && at[1] == '\n' &&
                   (at[2] == ' ' || at[2] == '\t' || at[2] == '"');
    return n > 1 && at[0] == '{' &&
           (is_line || at[1] == ' ' || at[1] == '"' || at[1] == '\r');
}

fr_status fr_chakra_read(const char *path, fr_trace_event_fn take, void *self,
                         fr_trace_about *about, fr_err *err)
{
    messages m = {0};
    fr_json_events json = {0};
    reader r = {take, self, path};
    *about = (fr_trace_about){.rank = -1, .world_size = -1};
    FR_TRY(fr_infile_open(path, &m.file, err));
    m.at = malloc(BLOCK);
    m.cap = m.at != NULL ? BLOCK : 0;
    fr_status status =
        m.at != NULL ? fill(&m, 16, err) : fr_fail_no_memory(err);
    if (status == FR_OK && is_json(m.at, m.n)) {
        fr_infile_close(m.file);
        m.file = NULL;
        status = fr_infile_open(path, &m.file, err);
        if (status == FR_OK)
            status = fr_json_events_init(&json, m.file, err);
        if (status == FR_OK)
            status = read_json(&r, &json, err);
    } else if (status == FR_OK) {
        status = read_wire(&r, &m, err);
    }
    fr_json_events_release(&json);
    fr_infile_close(m.file);
    free(m.at);
    return status;
}
