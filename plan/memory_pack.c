/*
 * memory_pack.c: offline packing of buffers with known lifetimes.
 */
#include "plan/memory_pack.h"

#include <stdlib.h>

typedef struct slot {
    uint64_t n_bytes, offset_bytes;
    uint32_t first, last;
    uint32_t i_item;
} slot;

static int by_item(uint32_t a, uint32_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_size(const void *va, const void *vb)
{
    const slot *a = va, *b = vb;
    if (a->n_bytes != b->n_bytes)
        return a->n_bytes > b->n_bytes ? -1 : 1;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    return by_item(a->i_item, b->i_item);
}

/* Longest life first: activations that wait for backward lie at the bottom,
 * what comes and goes on top of them. */
static int compare_life(const void *va, const void *vb)
{
    const slot *a = va, *b = vb;
    uint32_t life_a = a->last - a->first, life_b = b->last - b->first;
    if (life_a != life_b)
        return life_a > life_b ? -1 : 1;
    return compare_size(va, vb);
}

static int compare_area(const void *va, const void *vb)
{
    const slot *a = va, *b = vb;
    double area_a = (double)a->n_bytes * (double)(a->last - a->first + 1);
    double area_b = (double)b->n_bytes * (double)(b->last - b->first + 1);
    if (area_a < area_b || area_a > area_b)
        return area_a > area_b ? -1 : 1;
    return compare_size(va, vb);
}

static int compare_first(const void *va, const void *vb)
{
    const slot *a = va, *b = vb;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    return compare_size(va, vb);
}

static int compare_last(const void *va, const void *vb)
{
    const slot *a = va, *b = vb;
    if (a->last != b->last)
        return a->last < b->last ? -1 : 1;
    return by_item(a->i_item, b->i_item);
}

/* Most bytes that live at once: no packing needs less. */
static uint64_t live_peak(const slot *by_first, const slot *by_last, size_t n)
{
    uint64_t live = 0, peak = 0;
    size_t gone = 0;
    for (size_t i = 0; i < n; i++) {
        for (; by_last[gone].last < by_first[i].first; gone++)
            live -= by_last[gone].n_bytes;
        live += by_first[i].n_bytes;
        peak = live > peak ? live : peak;
    }
    return peak;
}

/*
 * The smallest gap that holds the item.  `placed` is ascending by offset; the
 * gaps are those between the ones that live at the same time.
 */
static uint64_t find_gap(const slot *placed, size_t n, const slot *item)
{
    uint64_t low = 0, best = UINT64_MAX, best_gap = UINT64_MAX;
    for (size_t k = 0; k < n; k++) {
        const slot *other = &placed[k];
        if (other->last < item->first || other->first > item->last)
            continue;
        uint64_t gap =
            other->offset_bytes > low ? other->offset_bytes - low : 0;
        if (gap >= item->n_bytes && gap < best_gap) {
            best = low;
            best_gap = gap;
        }
        uint64_t end = other->offset_bytes + other->n_bytes;
        low = end > low ? end : low;
    }
    return best != UINT64_MAX ? best : low;
}

/* Places the items in order; they end up in `placed`. */
static uint64_t place_all(const slot *order, size_t n, slot *placed)
{
    uint64_t total = 0;
    for (size_t i = 0; i < n; i++) {
        slot item = order[i];
        item.offset_bytes = find_gap(placed, i, &item);
        size_t at = i;
        while (at > 0 && placed[at - 1].offset_bytes > item.offset_bytes) {
            placed[at] = placed[at - 1];
            at--;
        }
        placed[at] = item;
        if (item.offset_bytes + item.n_bytes > total)
            total = item.offset_bytes + item.n_bytes;
    }
    return total;
}

typedef int (*compare_fn)(const void *, const void *);

static void sort_items(const fr_pack_item *items, size_t n, compare_fn compare,
                       slot *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (slot){items[i].n_bytes, 0, items[i].first, items[i].last,
                        (uint32_t)i};
    qsort(out, n, sizeof *out, compare);
}

fr_status fr_memory_pack(fr_pack_item *items, size_t n, uint64_t *total_bytes,
                         fr_err *err)
{
    static const compare_fn orders[] = {compare_life, compare_size,
                                        compare_area, compare_first};
    slot *order = malloc((n + 1) * sizeof *order);
    slot *placed = malloc((n + 1) * sizeof *placed);
    uint64_t best = UINT64_MAX;
    if (!order || !placed) {
        free(order);
        free(placed);
        return fr_fail_no_memory(err);
    }
    sort_items(items, n, compare_first, order);
    sort_items(items, n, compare_last, placed);
    const uint64_t least = live_peak(order, placed, n);
    for (size_t o = 0; o < sizeof orders / sizeof orders[0]; o++) {
        sort_items(items, n, orders[o], order);
        uint64_t total = place_all(order, n, placed);
        if (total < best)
            for (size_t i = 0; i < n; i++)
                items[placed[i].i_item].offset_bytes = placed[i].offset_bytes;
        best = total < best ? total : best;
        if ((double)best <= 1.002 * (double)least)
            break; /* good enough: the slab is rounded to pages anyway */
    }
    *total_bytes = n ? best : 0;
    free(order);
    free(placed);
    return FR_OK;
}
