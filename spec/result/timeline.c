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

int fr_span_compare(const void *a, const void *b)
{
    const fr_span *x = *(const fr_span *const *)a;
    const fr_span *y = *(const fr_span *const *)b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->lane != y->lane)
        return x->lane < y->lane ? -1 : 1;
    if (x->begin_ps != y->begin_ps)
        return x->begin_ps < y->begin_ps ? -1 : 1;
    if (x->end_ps != y->end_ps)
        return x->end_ps < y->end_ps ? -1 : 1;
    if (x->i_call != y->i_call)
        return x->i_call < y->i_call ? -1 : 1;
    return x < y ? -1 : x > y;
}
