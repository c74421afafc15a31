/* time_heap.c: a four-way heap that knows where each id is. */
#include "sim/engine/time_heap.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define ABSENT UINT32_MAX

void fr_time_heap_init(fr_time_heap *heap)
{
    memset(heap, 0, sizeof *heap);
}

void fr_time_heap_release(fr_time_heap *heap)
{
    free(heap->entries);
    free(heap->position);
    fr_time_heap_init(heap);
}

fr_status fr_time_heap_reserve(fr_time_heap *heap, size_t n_ids, fr_err *err)
{
    if (n_ids <= heap->n_ids)
        return FR_OK;
    fr_time_entry *entries =
        realloc(heap->entries, n_ids * sizeof *heap->entries);
    if (entries == NULL)
        return fr_fail_no_memory(err);
    heap->entries = entries;
    uint32_t *position = realloc(heap->position, n_ids * sizeof *position);
    if (position == NULL)
        return fr_fail_no_memory(err);
    heap->position = position;
    for (size_t i = heap->n_ids; i < n_ids; i++)
        position[i] = ABSENT;
    heap->n_ids = n_ids;
    return FR_OK;
}

static void put(fr_time_heap *heap, size_t i, fr_time_entry entry)
{
    heap->entries[i] = entry;
    heap->position[entry.id] = (uint32_t)i;
}

static void sift_up(fr_time_heap *heap, size_t i, fr_time_entry entry)
{
    while (i > 0) {
        size_t parent = (i - 1) / 4;
        if (heap->entries[parent].time_ps <= entry.time_ps)
            break;
        put(heap, i, heap->entries[parent]);
        i = parent;
    }
    put(heap, i, entry);
}

static void sift_down(fr_time_heap *heap, size_t i, fr_time_entry entry)
{
    const fr_time_entry *e = heap->entries;
    for (;;) {
        size_t first = 4 * i + 1, end = first + 4;
        if (first >= heap->n)
            break;
        end = end < heap->n ? end : heap->n;
        size_t best = first;
        for (size_t j = first + 1; j < end; j++)
            best = e[j].time_ps < e[best].time_ps ? j : best;
        if (entry.time_ps <= e[best].time_ps)
            break;
        put(heap, i, e[best]);
        i = best;
    }
    put(heap, i, entry);
}

static void take_out(fr_time_heap *heap, size_t i)
{
    heap->position[heap->entries[i].id] = ABSENT;
    heap->n--;
    if (i == heap->n)
        return;
    fr_time_entry last = heap->entries[heap->n];
    if (i > 0 && heap->entries[(i - 1) / 4].time_ps > last.time_ps)
        sift_up(heap, i, last);
    else
        sift_down(heap, i, last);
}

void fr_time_heap_set(fr_time_heap *heap, uint32_t id, int64_t time_ps)
{
    fr_time_entry entry = {time_ps, id};
    size_t i = heap->position[id];

    assert(id < heap->n_ids);
    if (i == ABSENT) {
        if (time_ps != INT64_MAX)
            sift_up(heap, heap->n++, entry);
    } else if (time_ps == INT64_MAX) {
        take_out(heap, i);
    } else if (time_ps < heap->entries[i].time_ps) {
        sift_up(heap, i, entry);
    } else if (time_ps > heap->entries[i].time_ps) {
        sift_down(heap, i, entry);
    }
}

int64_t fr_time_heap_next_ps(const fr_time_heap *heap)
{
    return heap->n ? heap->entries[0].time_ps : INT64_MAX;
}

uint32_t fr_time_heap_next(const fr_time_heap *heap)
{
    assert(heap->n > 0);
    return heap->entries[0].id;
}
