/* snapshot.c: segments, blocks and the history of allocations. */
#include "interop/trace/snapshot.h"

#include "core/base/text.h"
#include "core/stream/json_events.h"

#include <math.h>
#include <string.h>

/* Live bytes along the history, from an unknown begin. */
typedef struct history {
    double live_bytes, peak_bytes; /* of allocations */
    double segment_bytes, segment_peak_bytes;
    uint64_t n;
} history;

typedef struct reader {
    fr_json_events json;
    fr_snapshot *out;
    history history[FR_SNAPSHOT_DEVICES];
} reader;

static fr_status fail(const reader *r, const char *what, fr_err *err)
{
    return fr_fail(err, FR_INPUT, "%s:%llu: %s", fr_infile_name(r->json.file),
                   (unsigned long long)r->json.line, what);
}

/* Members of a segment, a block or an event that are asked for. */
typedef struct thing {
    char word[32]; /* state or action */
    double device, size_bytes;
} thing;

static fr_status read_member(reader *r, thing *out, fr_err *err)
{
    fr_json_events *json = &r->json;
    bool is_word = fr_json_events_is_key(json, "state") ||
                   fr_json_events_is_key(json, "action");
    bool is_size = fr_json_events_is_key(json, "size") ||
                   fr_json_events_is_key(json, "total_size");
    bool is_device = fr_json_events_is_key(json, "device");
    if (!is_word && !is_size && !is_device)
        return fr_json_events_skip(json, err);
    FR_TRY(fr_json_events_next(json, err));
    if (is_word && json->kind == FR_EVENT_STRING)
        fr_text_copy_cut(out->word, sizeof out->word, json->text);
    else if (!is_word && json->kind == FR_EVENT_NUMBER && json->number >= 0 &&
             json->number < 1e18)
        *(is_size ? &out->size_bytes : &out->device) = json->number;
    else
        return fail(r, "a size, device or state that makes no sense", err);
    return FR_OK;
}

static void add_block(const thing *block, fr_snapshot_device *device)
{
    if (strcmp(block->word, "inactive") == 0) {
        device->free_bytes += block->size_bytes;
        device->largest_free_bytes =
            fmax(device->largest_free_bytes, block->size_bytes);
        return;
    }
    device->n_blocks++;
    if (strcmp(block->word, "active_allocated") == 0)
        device->allocated_bytes += block->size_bytes;
}

/* The array of blocks of a segment, whose device may be named behind it. */
static fr_status read_blocks(reader *r, fr_snapshot_device *sum, fr_err *err)
{
    fr_json_events *json = &r->json;
    FR_TRY(fr_json_events_next(json, err));
    if (json->kind != FR_EVENT_ARRAY)
        return fail(r, "blocks are an array", err);
    int depth = json->depth;
    for (;;) {
        thing block = {{0}, 0, 0};
        FR_TRY(fr_json_events_next(json, err));
        if (json->depth < depth)
            return FR_OK;
        if (json->kind != FR_EVENT_OBJECT)
            return fail(r, "a block is an object", err);
        for (;;) {
            FR_TRY(fr_json_events_next(json, err));
            if (json->depth == depth)
                break;
            FR_TRY(read_member(r, &block, err));
        }
        add_block(&block, sum);
    }
}

static fr_status find_device(reader *r, double number, fr_snapshot_device **out,
                             fr_err *err)
{
    if (!(number >= 0 && number < FR_SNAPSHOT_DEVICES))
        return fail(r, "a device beyond 63", err);
    if (number >= r->out->n_devices)
        r->out->n_devices = (int)number + 1;
    *out = &r->out->device[(int)number];
    return FR_OK;
}

static fr_status read_segment(reader *r, fr_err *err)
{
    fr_json_events *json = &r->json;
    fr_snapshot_device sum = {0}, *device;
    thing segment = {{0}, 0, 0};
    int depth = json->depth;
    for (;;) {
        FR_TRY(fr_json_events_next(json, err));
        if (json->depth < depth)
            break;
        if (fr_json_events_is_key(json, "blocks"))
            FR_TRY(read_blocks(r, &sum, err));
        else
            FR_TRY(read_member(r, &segment, err));
    }
    if (!(segment.size_bytes > 0))
        return fail(r, "a segment without its total_size", err);
    FR_TRY(find_device(r, segment.device, &device, err));
    device->n_segments++;
    device->n_blocks += sum.n_blocks;
    device->reserved_bytes += segment.size_bytes;
    device->allocated_bytes += sum.allocated_bytes;
    device->free_bytes += sum.free_bytes;
    device->largest_free_bytes =
        fmax(device->largest_free_bytes, sum.largest_free_bytes);
    return FR_OK;
}

/* Actions of torch/csrc/cuda/memory_snapshot.cpp. */
static void add_event(const thing *event, history *h)
{
    h->n++;
    if (strcmp(event->word, "alloc") == 0)
        h->live_bytes += event->size_bytes;
    else if (strcmp(event->word, "free_completed") == 0)
        h->live_bytes -= event->size_bytes;
    else if (strcmp(event->word, "segment_alloc") == 0 ||
             strcmp(event->word, "segment_map") == 0)
        h->segment_bytes += event->size_bytes;
    else if (strcmp(event->word, "segment_free") == 0 ||
             strcmp(event->word, "segment_unmap") == 0)
        h->segment_bytes -= event->size_bytes;
    h->peak_bytes = fmax(h->peak_bytes, h->live_bytes);
    h->segment_peak_bytes = fmax(h->segment_peak_bytes, h->segment_bytes);
}

/* An array of events per device. */
static fr_status read_traces(reader *r, fr_err *err)
{
    fr_json_events *json = &r->json;
    int depth = json->depth, device = 0;
    for (;; device++) {
        fr_snapshot_device *of;
        FR_TRY(fr_json_events_next(json, err));
        if (json->depth < depth)
            return FR_OK;
        if (json->kind != FR_EVENT_ARRAY)
            return fail(r, "device_traces has an array per device", err);
        FR_TRY(find_device(r, device, &of, err));
        for (;;) {
            thing event = {{0}, 0, 0};
            FR_TRY(fr_json_events_next(json, err));
            if (json->depth == depth)
                break;
            if (json->kind != FR_EVENT_OBJECT)
                return fail(r, "an event is an object", err);
            for (;;) {
                FR_TRY(fr_json_events_next(json, err));
                if (json->depth == depth + 1)
                    break;
                FR_TRY(read_member(r, &event, err));
            }
            add_event(&event, &r->history[device]);
        }
    }
}

static fr_status read_segments(reader *r, fr_err *err)
{
    int depth = r->json.depth;
    for (;;) {
        FR_TRY(fr_json_events_next(&r->json, err));
        if (r->json.depth < depth)
            return FR_OK;
        if (r->json.kind != FR_EVENT_OBJECT)
            return fail(r, "a segment is an object", err);
        FR_TRY(read_segment(r, err));
    }
}

/* The history ends in what the snapshot holds: that gives its begin. */
static void finish(reader *r)
{
    for (int i = 0; i < r->out->n_devices; i++) {
        const history *h = &r->history[i];
        fr_snapshot_device *device = &r->out->device[i];
        device->n_events = h->n;
        device->peak_bytes =
            device->allocated_bytes + h->peak_bytes - h->live_bytes;
        device->peak_reserved_bytes =
            device->reserved_bytes + h->segment_peak_bytes - h->segment_bytes;
    }
}

static fr_status read_document(reader *r, fr_err *err)
{
    fr_json_events *json = &r->json;
    bool has_segments = false;
    FR_TRY(fr_json_events_next(json, err));
    bool is_list = json->kind == FR_EVENT_ARRAY; /* of torch 1.x */
    if (is_list)
        FR_TRY(read_segments(r, err));
    while (!is_list && json->kind == FR_EVENT_OBJECT && json->depth == 1) {
        FR_TRY(fr_json_events_next(json, err));
        if (json->depth == 0)
            break;
        bool is_segments = fr_json_events_is_key(json, "segments");
        bool is_traces = fr_json_events_is_key(json, "device_traces");
        has_segments |= is_segments;
        if (!is_segments && !is_traces) {
            FR_TRY(fr_json_events_skip(json, err));
        } else {
            FR_TRY(fr_json_events_next(json, err));
            if (json->kind != FR_EVENT_ARRAY)
                return fail(r, "segments and device_traces are arrays", err);
            FR_TRY(is_segments ? read_segments(r, err) : read_traces(r, err));
        }
        json->kind = FR_EVENT_OBJECT; /* the document's, which is still open */
    }
    if (!is_list && !has_segments)
        return fail(r, "no segments: no snapshot of PyTorch's allocator", err);
    return fr_json_events_next(json, err);
}

fr_status fr_snapshot_read(fr_infile *file, fr_snapshot *out, fr_err *err)
{
    reader *r;
    fr_snapshot *result;
    FR_TRY_CALLOC(result, 1, err);
    r = calloc(1, sizeof *r);
    fr_status status = r != NULL ? fr_json_events_init(&r->json, file, err)
                                 : fr_fail_no_memory(err);
    if (status == FR_OK) {
        r->out = result;
        status = read_document(r, err);
        fr_json_events_release(&r->json);
    }
    if (status == FR_OK && result->n_devices == 0)
        status = fr_fail(err, FR_INPUT, "%s: a snapshot of no memory",
                         fr_infile_name(file));
    if (status == FR_OK) {
        finish(r);
        *out = *result;
    }
    free(r);
    free(result);
    return status;
}
