/*
 * memory_pack.c: offline packing of buffers with known lifetimes.
 */
#include "program/memory/memory_pack.h"

#include "program/memory/memory_pools.h"
#include "program/memory/memory_sweep.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* From so many items on pools are tried before the careful orders, whose cost
 * grows faster than their number. */
enum { MANY_ITEMS = 768 };

/* From so many on careful orders take seconds. */
enum { TOO_MANY_ITEMS = 8192 };

/* Calls: what lives as long waits for backward, what does not comes and goes.
 */
enum { SHORT_LIFE = 8 };

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

/* Most bytes that live at once: no packing needs less. */
static uint64_t live_peak(const fr_pack_item *items, size_t n, uint64_t *change,
                          size_t n_calls)
{
    uint64_t live = 0, peak = 0;
    memset(change, 0, (n_calls + 1) * sizeof *change);
    for (size_t i = 0; i < n; i++) { /* modulo 2^64 */
        change[items[i].first] += items[i].n_bytes;
        change[items[i].last + 1] -= items[i].n_bytes;
    }
    for (size_t i = 0; i < n_calls; i++) {
        live += change[i];
        peak = live > peak ? live : peak;
    }
    return peak;
}

/*
 * The placed items, ascending by offset: all of them, and cut by time into
 * spans, so that a short life is compared only with its neighbours in time.
 */
enum { N_SPANS = 16 };

typedef struct placed {
    uint64_t begin, end; /* bytes */
    uint32_t first, last;
} placed;

typedef struct placed_list {
    placed *at;
    size_t n;
} placed_list;

typedef struct placement {
    slot *slots;         /* in the order of placing */
    uint32_t span_calls; /* calls of a span */
    placed_list all, spans[N_SPANS];
    placed *memory;
} placement;

/* A scan over placed slots, in ascending offset. */
typedef struct gap_search {
    uint64_t low, best, best_gap;
} gap_search;

static void meet(gap_search *g, const placed *other, const slot *item)
{
    if (other->last < item->first || other->first > item->last)
        return;
    uint64_t gap = other->begin > g->low ? other->begin - g->low : 0;
    if (gap >= item->n_bytes && gap < g->best_gap) {
        g->best = g->low;
        g->best_gap = gap;
    }
    g->low = other->end > g->low ? other->end : g->low;
}

/*
 * The smallest gap that holds the item, between the placed ones that live at
 * the same time.  (Who stands in two spans is met twice, which changes
 * nothing.)
 */
static uint64_t find_gap(const placement *p, const slot *item)
{
    uint32_t first = item->first / p->span_calls;
    uint32_t last = item->last / p->span_calls;
    static const placed_list none = {0};
    const placed_list *a = last - first > 1 ? &p->all : &p->spans[first];
    const placed_list *b = last - first == 1 ? &p->spans[last] : &none;
    const placed *x = a->at, *y = b->at;
    const placed *end_x = x + a->n, *end_y = y + b->n;
    gap_search g = {0, UINT64_MAX, UINT64_MAX};
    while (x < end_x && y < end_y)
        meet(&g, x->begin <= y->begin ? x++ : y++, item);
    while (x < end_x)
        meet(&g, x++, item);
    while (y < end_y)
        meet(&g, y++, item);
    return g.best != UINT64_MAX ? g.best : g.low;
}

/* After all whose offset is not larger. */
static void insert(placed_list *list, const placed *fresh)
{
    size_t low = 0, high = list->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list->at[middle].begin <= fresh->begin)
            low = middle + 1;
        else
            high = middle;
    }
    memmove(list->at + low + 1, list->at + low,
            (list->n - low) * sizeof *list->at);
    list->at[low] = *fresh;
    list->n++;
}

/* Room in every list for what will stand there. */
static bool init_placement(placement *p, const fr_pack_item *items, size_t n)
{
    size_t n_in[N_SPANS] = {0}, n_total = n + 1;
    uint32_t last = 0;
    for (size_t i = 0; i < n; i++)
        last = items[i].last > last ? items[i].last : last;
    p->span_calls = last / N_SPANS + 1;
    for (size_t i = 0; i < n; i++)
        for (uint32_t s = items[i].first / p->span_calls;
             s <= items[i].last / p->span_calls; s++, n_total++)
            n_in[s]++;
    p->slots = malloc((n + 1) * sizeof *p->slots);
    p->memory = malloc(n_total * sizeof *p->memory);
    if (p->slots == NULL || p->memory == NULL)
        return false;
    p->all.at = p->memory;
    placed *next = p->memory + n + 1;
    for (int s = 0; s < N_SPANS; s++) {
        p->spans[s].at = next;
        next += n_in[s];
    }
    return true;
}

/* Places the slots in their order; returns the end of the highest, or what
 * it is as soon as that is not below `limit`. */
static uint64_t place_all(placement *p, size_t n, uint64_t limit)
{
    uint64_t total = 0;
    p->all.n = 0;
    for (int s = 0; s < N_SPANS; s++)
        p->spans[s].n = 0;
    for (size_t i = 0; i < n && total < limit; i++) {
        slot *item = &p->slots[i];
        item->offset_bytes = find_gap(p, item);
        placed fresh = {item->offset_bytes, item->offset_bytes + item->n_bytes,
                        item->first, item->last};
        insert(&p->all, &fresh);
        for (uint32_t s = item->first / p->span_calls;
             s <= item->last / p->span_calls; s++)
            insert(&p->spans[s], &fresh);
        total = fresh.end > total ? fresh.end : total;
    }
    return total;
}

/* ---- orders ------------------------------------------------------------- */

typedef int (*compare_fn)(const void *, const void *);

static void sort_items(const fr_pack_item *items, size_t n, compare_fn compare,
                       slot *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (slot){items[i].n_bytes, 0, items[i].first, items[i].last,
                        (uint32_t)i};
    qsort(out, n, sizeof *out, compare);
}

/* Places the items by careful orders until the total is within `tolerance` of
 * what lives at once, which it returns too. */
static fr_status pack_carefully(fr_pack_item *items, size_t n, double tolerance,
                                uint64_t *total_bytes, uint64_t *least_bytes,
                                fr_err *err)
{
    static const compare_fn orders[] = {compare_life, compare_size,
                                        compare_area, compare_first};
    placement p = {0};
    uint64_t best = UINT64_MAX;
    size_t n_calls = 1;
    for (size_t i = 0; i < n; i++)
        n_calls = items[i].last >= n_calls ? items[i].last + 1U : n_calls;
    uint64_t *change = malloc((n_calls + 1) * sizeof *change);
    if (change == NULL || !init_placement(&p, items, n)) {
        free(change);
        free(p.slots);
        free(p.memory);
        return fr_fail_no_memory(err);
    }
    *least_bytes = live_peak(items, n, change, n_calls);
    for (size_t o = 0; o < sizeof orders / sizeof orders[0]; o++) {
        sort_items(items, n, orders[o], p.slots);
        uint64_t total = place_all(&p, n, best);
        if (total < best)
            for (size_t i = 0; i < n; i++)
                items[p.slots[i].i_item].offset_bytes = p.slots[i].offset_bytes;
        best = total < best ? total : best;
        if ((double)best <= tolerance * (double)*least_bytes)
            break; /* good enough: the slab is rounded to pages anyway */
    }
    *total_bytes = n ? best : 0;
    free(change);
    free(p.slots);
    free(p.memory);
    return FR_OK;
}

/* Long lives in pools, short ones carefully on top of them. */
static fr_status pack_mixed(const fr_pack_item *items, size_t n,
                            fr_pack_item *mixed, uint64_t *total_bytes,
                            fr_err *err)
{
    size_t n_long = 0, at = 0;
    uint64_t bottom = 0, top = 0, least;
    bool is_good;
    for (size_t i = 0; i < n; i++)
        if (items[i].last - items[i].first >= SHORT_LIFE)
            mixed[n_long++] = items[i];
    for (size_t i = 0; i < n; i++)
        if (items[i].last - items[i].first < SHORT_LIFE)
            mixed[n_long + at++] = items[i];
    FR_TRY(fr_memory_pools(mixed, n_long, &bottom, &is_good, err));
    if (!is_good)
        bottom = UINT64_MAX / 4; /* too much */
    else
        FR_TRY(pack_carefully(mixed + n_long, n - n_long, 1.02, &top, &least,
                              err));
    for (size_t i = n_long; i < n; i++)
        mixed[i].offset_bytes += bottom;
    *total_bytes = bottom + top;
    return FR_OK;
}

/* Pools, then the mixture, if they are near what lives at once. */
static fr_status pack_many(fr_pack_item *items, size_t n, uint64_t *total_bytes,
                           bool *is_good, fr_err *err)
{
    FR_TRY(fr_memory_pools(items, n, total_bytes, is_good, err));
    if (*is_good)
        return FR_OK;
    size_t n_calls = 1, n_long = 0, at = 0;
    for (size_t i = 0; i < n; i++) {
        n_calls = items[i].last >= n_calls ? items[i].last + 1U : n_calls;
        n_long += items[i].last - items[i].first >= SHORT_LIFE;
    }
    fr_status status = FR_OK;
    fr_pack_item *mixed = malloc((n + 1) * sizeof *mixed);
    uint64_t *change = malloc((n_calls + 1) * sizeof *change);
    if (mixed == NULL || change == NULL)
        status = fr_fail_no_memory(err);
    else
        status = pack_mixed(items, n, mixed, total_bytes, err);
    if (status == FR_OK)
        *is_good = (double)*total_bytes <=
                   1.02 * (double)live_peak(items, n, change, n_calls);
    for (size_t i = 0; status == FR_OK && *is_good && i < n; i++) {
        bool is_long = items[i].last - items[i].first >= SHORT_LIFE;
        items[i].offset_bytes = mixed[is_long ? at++ : n_long++].offset_bytes;
    }
    free(mixed);
    free(change);
    return status;
}

fr_status fr_memory_pack(fr_pack_item *items, size_t n, uint64_t *total_bytes,
                         fr_err *err)
{
    uint64_t least;
    if (n >= TOO_MANY_ITEMS) {
        bool is_good;
        FR_TRY(fr_memory_pools(items, n, total_bytes, &is_good, err));
        return is_good ? FR_OK : fr_memory_sweep(items, n, total_bytes, err);
    }
    if (n >= MANY_ITEMS) {
        bool is_good;
        FR_TRY(pack_many(items, n, total_bytes, &is_good, err));
        if (is_good)
            return FR_OK;
    }
    return pack_carefully(items, n, n >= MANY_ITEMS ? 1.02 : 1.002, total_bytes,
                          &least, err);
}
