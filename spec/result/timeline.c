/* timeline.c: a growing list of spans. */
#include "spec/result/timeline.h"

#include <stdlib.h>
#include <string.h>

void fr_timeline_init(fr_timeline *timeline)
{
    memset(timeline, 0, sizeof *timeline);
}

void fr_timeline_release(fr_timeline *timeline)
{
    if (timeline == NULL)
        return;
    free(timeline->at);
    free(timeline->spans_of_rank);
    fr_timeline_init(timeline);
}

fr_status fr_timeline_add(fr_timeline *timeline, fr_span span, fr_err *err)
{
    if (timeline->n == timeline->cap) {
        size_t cap = timeline->cap ? timeline->cap * 2 : 256;
        if (cap > SIZE_MAX / sizeof span)
            return fr_fail_no_memory(err);
        fr_span *at = realloc(timeline->at, cap * sizeof span);
        if (at == NULL)
            return fr_fail_no_memory(err);
        timeline->at = at;
        timeline->cap = cap;
    }
    timeline->at[timeline->n++] = span;
    return FR_OK;
}
