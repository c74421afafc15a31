/*
 * json_events.h: strict JSON read piece by piece, for files that are too
 * large for a tree (core/document/json.h): nothing is kept but the place.
 *
 * Texts longer than FR_EVENT_TEXT_MAX are cut; nesting deeper than 64, and
 * whatever RFC 8259 does not allow, is FR_INPUT "path:line: ...".  Keys may
 * stand twice.
 */
#ifndef FR_CORE_STREAM_JSON_EVENTS_H
#define FR_CORE_STREAM_JSON_EVENTS_H

#include "core/stream/infile.h"

enum { FR_EVENT_TEXT_MAX = 4096, FR_EVENT_DEPTH_MAX = 64 };

typedef enum fr_event_kind {
    FR_EVENT_OBJECT, /* { */
    FR_EVENT_OBJECT_END,
    FR_EVENT_ARRAY, /* [ */
    FR_EVENT_ARRAY_END,
    FR_EVENT_KEY,
    FR_EVENT_STRING,
    FR_EVENT_NUMBER,
    FR_EVENT_WORD, /* true, false, null */
    FR_EVENT_END   /* of the document */
} fr_event_kind;

typedef struct fr_json_events {
    fr_infile *file; /* borrowed */
    fr_event_kind kind;
    char *text; /* of a key, a string, a number, a word */
    size_t n_text;
    double number;
    uint64_t line;
    int depth;
    char stack[FR_EVENT_DEPTH_MAX]; /* '{' or '[' */
    bool has_items, has_key, is_done;
    unsigned char *block;
    size_t at, n_block;
} fr_json_events;

FR_CHECKED fr_status fr_json_events_init(fr_json_events *events,
                                         fr_infile *file, fr_err *err);
void fr_json_events_release(fr_json_events *events);
/* The next piece: kind, text and number of *events. */
FR_CHECKED fr_status fr_json_events_next(fr_json_events *events, fr_err *err);
/* Behind the value that the last piece began. */
FR_CHECKED fr_status fr_json_events_skip(fr_json_events *events, fr_err *err);
/* Is the last piece a key of this name? */
bool fr_json_events_is_key(const fr_json_events *events, const char *name);

#endif
