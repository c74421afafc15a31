/* trace.c: events of Chrome JSON: an array, or an object with traceEvents. */
#include "interop/trace/trace.h"

#include "core/base/text.h"
#include "core/stream/json_events.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct reader {
    fr_json_events json;
    fr_trace_event event;
    fr_trace_about *about;
    fr_trace_event_fn take;
    void *self;
} reader;

static fr_status fail(const reader *r, fr_err *err, const char *what)
{
    return fr_fail(err, FR_INPUT, "%s:%llu: %s", fr_infile_name(r->json.file),
                   (unsigned long long)r->json.line, what);
}

/* ---- values ------------------------------------------------------------- */

enum { TEXT, REAL, LIST };

/* The destination of the value of a key. */
typedef struct place {
    const char *key;
    int kind;
    size_t offset, size;
} place;

#define PLACE(name, kind, type, member)                                        \
    {                                                                          \
        name, kind, offsetof(type, member), sizeof(((type *)0)->member)        \
    }
static const place of_event[] = {
    PLACE("name", TEXT, fr_trace_event, name),
    PLACE("cat", TEXT, fr_trace_event, category),
    PLACE("pid", TEXT, fr_trace_event, process),
    PLACE("tid", TEXT, fr_trace_event, thread),
    PLACE("ts", REAL, fr_trace_event, begin_us),
    PLACE("dur", REAL, fr_trace_event, dur_us),
};
static const place of_args[] = {
    PLACE("name", TEXT, fr_trace_event, label),
    PLACE("Input Dims", LIST, fr_trace_event, shapes),
    PLACE("Input type", LIST, fr_trace_event, types),
    PLACE("External id", REAL, fr_trace_event, external_id),
    PLACE("external id", REAL, fr_trace_event, external_id),
    PLACE("stream", REAL, fr_trace_event, stream),
    PLACE("Fwd thread id", REAL, fr_trace_event, forward_thread),
    PLACE("Collective name", TEXT, fr_trace_event, collective),
    PLACE("dtype", TEXT, fr_trace_event, dtype),
    PLACE("Process Group Ranks", LIST, fr_trace_event, ranks),
    PLACE("In msg nelems", REAL, fr_trace_event, n_in),
    PLACE("Out msg nelems", REAL, fr_trace_event, n_out),
    PLACE("Group size", REAL, fr_trace_event, n_group),
    PLACE("bytes", REAL, fr_trace_event, n_bytes),
};

static void add_text(char *out, size_t n, size_t *used, const char *text)
{
    size_t n_text = strlen(text);
    if (*used + n_text >= n)
        return;
    memcpy(out + *used, text, n_text + 1);
    *used += n_text;
}

/* The value as text without blanks, cut to fit: "[[32,64],[]]". */
static fr_status read_list(fr_json_events *json, char *out, size_t n,
                           fr_err *err)
{
    size_t used = 0;
    int depth = json->depth;
    out[0] = '\0';
    do {
        FR_TRY(fr_json_events_next(json, err));
        bool is_end = json->kind == FR_EVENT_ARRAY_END ||
                      json->kind == FR_EVENT_OBJECT_END;
        bool is_list =
            json->kind == FR_EVENT_ARRAY || json->kind == FR_EVENT_OBJECT;
        if (!is_end && used > 0 && out[used - 1] != '[')
            add_text(out, n, &used, ",");
        add_text(out, n, &used, is_end ? "]" : is_list ? "[" : json->text);
    } while (json->depth > depth);
    return FR_OK;
}

/* The value of the key that was just read, where a row has it. */
static fr_status read_place(fr_json_events *json, const place *places, size_t n,
                            void *out, fr_err *err)
{
    const place *found = NULL;
    for (size_t i = 0; i < n && found == NULL; i++)
        if (strcmp(places[i].key, json->text) == 0)
            found = &places[i];
    if (found == NULL)
        return fr_json_events_skip(json, err);
    char *to = (char *)out + found->offset;
    if (found->kind == LIST)
        return read_list(json, to, found->size, err);
    FR_TRY(fr_json_events_next(json, err));
    if (json->kind == FR_EVENT_OBJECT || json->kind == FR_EVENT_ARRAY)
        return fr_json_events_skip(json, err);
    if (found->kind == TEXT)
        fr_text_copy_cut(to, found->size, json->text);
    else if (json->kind == FR_EVENT_NUMBER)
        memcpy(to, &json->number, sizeof json->number);
    return FR_OK;
}

/* ---- events ------------------------------------------------------------- */

static fr_status read_args(reader *r, fr_err *err)
{
    int depth = r->json.depth;
    FR_TRY(fr_json_events_next(&r->json, err));
    if (r->json.kind != FR_EVENT_OBJECT)
        return fr_json_events_skip(&r->json, err);
    for (;;) {
        FR_TRY(fr_json_events_next(&r->json, err));
        if (r->json.depth == depth)
            return FR_OK;
        FR_TRY(
            read_place(&r->json, of_args, FR_LENGTH(of_args), &r->event, err));
    }
}

fr_trace_event fr_trace_event_none(void)
{
    fr_trace_event event = {.begin_us = NAN, .external_id = -1};
    event.stream = event.n_in = event.n_out = event.n_group = -1;
    event.n_bytes = event.forward_thread = -1;
    return event;
}

/* Kineto's first names of categories (2021) by those of today. */
static void rename_category(fr_trace_event *event)
{
    static const struct {
        const char *was, *is;
    } names[] = {{"Kernel", "kernel"},
                 {"Memcpy", "gpu_memcpy"},
                 {"Memset", "gpu_memset"},
                 {"Operator", "cpu_op"}};
    for (size_t i = 0; i < FR_LENGTH(names); i++)
        if (strcmp(event->category, names[i].was) == 0)
            fr_text_copy_cut(event->category, sizeof event->category,
                             names[i].is);
}

/* Behind its '{'. */
static fr_status read_event(reader *r, fr_err *err)
{
    fr_json_events *json = &r->json;
    int depth = json->depth;
    r->event = fr_trace_event_none();
    for (;;) {
        FR_TRY(fr_json_events_next(json, err));
        if (json->depth < depth)
            break;
        if (fr_json_events_is_key(json, "args")) {
            FR_TRY(read_args(r, err));
        } else if (fr_json_events_is_key(json, "ph")) {
            FR_TRY(fr_json_events_next(json, err));
            r->event.phase =
                json->kind == FR_EVENT_STRING ? json->text[0] : '\0';
            FR_TRY(fr_json_events_skip(json, err));
        } else {
            FR_TRY(read_place(json, of_event, FR_LENGTH(of_event), &r->event,
                              err));
        }
    }
    rename_category(&r->event);
    bool is_span = r->event.phase == 'X';
    if (is_span && (!(fabs(r->event.begin_us) < 1e17) ||
                    !(r->event.dur_us >= 0 && r->event.dur_us < 1e12)))
        return fail(r, err, "an event whose ts or dur makes no sense");
    if (!is_span && r->event.phase != 'M')
        return FR_OK;
    return r->take(r->self, &r->event, err);
}

static fr_status read_events(reader *r, fr_err *err)
{
    int depth = r->json.depth;
    for (;;) {
        FR_TRY(fr_json_events_next(&r->json, err));
        if (r->json.depth < depth)
            return FR_OK;
        if (r->json.kind != FR_EVENT_OBJECT)
            return fail(r, err, "an event is an object");
        FR_TRY(read_event(r, err));
    }
}

/* ---- what stands beside them -------------------------------------------- */

typedef struct device {
    char name[128];
    double memory_bytes, major, minor, n_processors;
} device;

static const place of_device[] = {
    PLACE("name", TEXT, device, name),
    PLACE("totalGlobalMem", REAL, device, memory_bytes),
    PLACE("computeMajor", REAL, device, major),
    PLACE("computeMinor", REAL, device, minor),
    PLACE("numSms", REAL, device, n_processors),
};
static const place of_run[] = {
    PLACE("rank", REAL, fr_trace_about, rank),
    PLACE("world_size", REAL, fr_trace_about, world_size),
};

static fr_status read_members(fr_json_events *json, const place *places,
                              size_t n, void *out, fr_err *err)
{
    int depth = json->depth;
    for (;;) {
        FR_TRY(fr_json_events_next(json, err));
        if (json->depth < depth)
            return FR_OK;
        FR_TRY(read_place(json, places, n, out, err));
    }
}

static fr_status read_devices(reader *r, fr_err *err)
{
    fr_json_events *json = &r->json;
    FR_TRY(fr_json_events_next(json, err));
    if (json->kind != FR_EVENT_ARRAY)
        return fr_json_events_skip(json, err);
    int depth = json->depth;
    for (;;) {
        device d = {{0}, 0, 0, 0, 0};
        FR_TRY(fr_json_events_next(json, err));
        if (json->depth < depth)
            return FR_OK;
        if (json->kind != FR_EVENT_OBJECT) {
            FR_TRY(fr_json_events_skip(json, err));
            continue;
        }
        FR_TRY(read_members(json, of_device, FR_LENGTH(of_device), &d, err));
        if (r->about->n_devices++ > 0)
            continue;
        fr_text_copy_cut(r->about->gpu, sizeof r->about->gpu, d.name);
        if (d.major >= 1 && d.major < 1000 && d.minor >= 0 && d.minor < 1000)
            snprintf(r->about->capability, sizeof r->about->capability,
                     "%.0f.%.0f", d.major, d.minor);
        r->about->memory_bytes = d.memory_bytes;
        r->about->n_processors = d.n_processors;
    }
}

static fr_status read_document(reader *r, bool *has_events, fr_err *err)
{
    fr_json_events *json = &r->json;
    for (;;) {
        FR_TRY(fr_json_events_next(json, err));
        if (json->depth == 0)
            return FR_OK;
        if (fr_json_events_is_key(json, "traceEvents")) {
            FR_TRY(fr_json_events_next(json, err));
            if (json->kind != FR_EVENT_ARRAY)
                return fail(r, err, "traceEvents is no array");
            *has_events = true;
            FR_TRY(read_events(r, err));
        } else if (fr_json_events_is_key(json, "deviceProperties")) {
            FR_TRY(read_devices(r, err));
        } else if (fr_json_events_is_key(json, "distributedInfo")) {
            FR_TRY(fr_json_events_next(json, err));
            if (json->kind == FR_EVENT_OBJECT)
                FR_TRY(read_members(json, of_run, FR_LENGTH(of_run), r->about,
                                    err));
            else
                FR_TRY(fr_json_events_skip(json, err));
        } else {
            FR_TRY(fr_json_events_skip(json, err));
        }
    }
}

fr_status fr_trace_read(fr_infile *file, fr_trace_event_fn take, void *self,
                        fr_trace_about *about, fr_err *err)
{
    fr_status status;
    bool has_events = false;
    reader r = {.about = about, .take = take, .self = self};
    *about = (fr_trace_about){.rank = -1, .world_size = -1};
    FR_TRY(fr_json_events_init(&r.json, file, err));
    FR_TRY_GOTO(status, fr_json_events_next(&r.json, err), out_json);
    if (r.json.kind == FR_EVENT_ARRAY) {
        has_events = true;
        FR_TRY_GOTO(status, read_events(&r, err), out_json);
    } else if (r.json.kind == FR_EVENT_OBJECT) {
        FR_TRY_GOTO(status, read_document(&r, &has_events, err), out_json);
    }
    if (!has_events)
        status = fail(&r, err, "no traceEvents: no Chrome trace");
    if (status == FR_OK)
        status = fr_json_events_next(&r.json, err);
out_json:
    fr_json_events_release(&r.json);
    return status;
}
