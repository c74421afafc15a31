/* memory_sweep.c: see memory_sweep.h. */
#include "program/memory/memory_sweep.h"

#include "core/base/vec.h"

#include <string.h>

typedef struct gap {
    uint64_t offset_bytes, n_bytes;
} gap;

typedef struct sweep {
    fr_pack_item *items;
    fr_vec(gap) gaps; /* ascending, never touching each other or the top */
    uint32_t *live;   /* heap by last call, then by number */
    size_t n_live;
    uint64_t top_bytes, total_bytes;
} sweep;

typedef struct arrival {
    uint32_t first, i_item;
    uint64_t n_bytes;
} arrival;

static int compare_arrivals(const void *va, const void *vb)
{
    const arrival *a = va, *b = vb;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    if (a->n_bytes != b->n_bytes)
        return a->n_bytes > b->n_bytes ? -1 : 1;
    return a->i_item < b->i_item ? -1 : a->i_item > b->i_item;
}

static bool ends_before(const sweep *s, uint32_t a, uint32_t b)
{
    uint32_t last_a = s->items[a].last, last_b = s->items[b].last;
    return last_a != last_b ? last_a < last_b : a < b;
}

static void push_live(sweep *s, uint32_t item)
{
    size_t i = s->n_live++;
    while (i > 0 && ends_before(s, item, s->live[(i - 1) / 2])) {
        s->live[i] = s->live[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    s->live[i] = item;
}

static uint32_t pop_live(sweep *s)
{
    uint32_t first = s->live[0], item = s->live[--s->n_live];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= s->n_live)
            break;
        if (child + 1 < s->n_live &&
            ends_before(s, s->live[child + 1], s->live[child]))
            child++;
        if (!ends_before(s, s->live[child], item))
            break;
        s->live[i] = s->live[child];
        i = child;
    }
    s->live[i] = item;
    return first;
}

static void remove_gap(sweep *s, size_t at)
{
    memmove(&s->gaps.items[at], &s->gaps.items[at + 1],
            (--s->gaps.n - at) * sizeof *s->gaps.items);
}

/* Gives back the bytes of an item: they join the adjacent gaps, or come off the
 * top. */
static bool give_back(sweep *s, const fr_pack_item *item)
{
    gap freed = {item->offset_bytes, item->n_bytes};
    size_t low = 0, high = s->gaps.n;
    if (freed.n_bytes == 0)
        return true;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->gaps.items[middle].offset_bytes < freed.offset_bytes)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < s->gaps.n &&
        freed.offset_bytes + freed.n_bytes == s->gaps.items[low].offset_bytes) {
        freed.n_bytes += s->gaps.items[low].n_bytes;
        remove_gap(s, low);
    }
    if (low > 0 &&
        s->gaps.items[low - 1].offset_bytes + s->gaps.items[low - 1].n_bytes ==
            freed.offset_bytes) {
        low--;
        freed.offset_bytes = s->gaps.items[low].offset_bytes;
        freed.n_bytes += s->gaps.items[low].n_bytes;
        remove_gap(s, low);
    }
    if (freed.offset_bytes + freed.n_bytes == s->top_bytes) {
        s->top_bytes = freed.offset_bytes;
        return true;
    }
    if (fr_vec_push(&s->gaps, freed) != FR_OK)
        return false;
    memmove(&s->gaps.items[low + 1], &s->gaps.items[low],
            (s->gaps.n - 1 - low) * sizeof *s->gaps.items);
    s->gaps.items[low] = freed;
    return true;
}

static void place(sweep *s, fr_pack_item *item)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < s->gaps.n; i++)
        if (s->gaps.items[i].n_bytes >= item->n_bytes &&
            (best == SIZE_MAX ||
             s->gaps.items[i].n_bytes < s->gaps.items[best].n_bytes))
            best = i;
    if (best == SIZE_MAX) {
        item->offset_bytes = s->top_bytes;
        s->top_bytes += item->n_bytes;
    } else {
        gap *g = &s->gaps.items[best];
        item->offset_bytes = g->offset_bytes;
        g->offset_bytes += item->n_bytes;
        g->n_bytes -= item->n_bytes;
        if (g->n_bytes == 0)
            remove_gap(s, best);
    }
    if (s->top_bytes > s->total_bytes)
        s->total_bytes = s->top_bytes;
}

fr_status fr_memory_sweep(fr_pack_item *items, size_t n, uint64_t *total_bytes,
                          fr_err *err)
{
    sweep s = {.items = items};
    bool is_ok = true;
    arrival *arrivals = malloc((n + 1) * sizeof *arrivals);
    s.live = malloc((n + 1) * sizeof *s.live);
    if (arrivals == NULL || s.live == NULL)
        is_ok = false;
    for (size_t i = 0; is_ok && i < n; i++)
        arrivals[i] = (arrival){items[i].first, (uint32_t)i, items[i].n_bytes};
    if (is_ok)
        qsort(arrivals, n, sizeof *arrivals, compare_arrivals);
    for (size_t i = 0; is_ok && i < n; i++) {
        fr_pack_item *item = &items[arrivals[i].i_item];
        while (is_ok && s.n_live > 0 && items[s.live[0]].last < item->first)
            is_ok = give_back(&s, &items[pop_live(&s)]);
        place(&s, item);
        push_live(&s, arrivals[i].i_item);
    }
    free(arrivals);
    free(s.live);
    fr_vec_release(&s.gaps);
    if (!is_ok)
        return fr_fail_no_memory(err);
    *total_bytes = s.total_bytes;
    return FR_OK;
}
