/*
 * time_heap.h: which of n things comes first, their times changing often.
 * Things are numbered from 0; each has at most one time.
 */
#ifndef FR_SIM_ENGINE_TIME_HEAP_H
#define FR_SIM_ENGINE_TIME_HEAP_H

#include "core/base/err.h"

typedef struct fr_time_entry {
    int64_t time_ps;
    uint32_t id;
} fr_time_entry;

typedef struct fr_time_heap {
    fr_time_entry *entries;
    uint32_t *position; /* of an id, UINT32_MAX: not in */
    size_t n, n_ids;
} fr_time_heap;

void fr_time_heap_init(fr_time_heap *heap);
void fr_time_heap_release(fr_time_heap *heap);
/* Ids below n_ids may be used from now on. */
FR_CHECKED fr_status fr_time_heap_reserve(fr_time_heap *heap, size_t n_ids,
                                          fr_err *err);
/* Sets or changes the time; INT64_MAX takes the id out. */
void fr_time_heap_set(fr_time_heap *heap, uint32_t id, int64_t time_ps);
/* INT64_MAX when empty. */
int64_t fr_time_heap_next_ps(const fr_time_heap *heap);
uint32_t fr_time_heap_next(const fr_time_heap *heap); /* must not be empty */

#endif
