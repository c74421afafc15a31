/* memory_pools.c: slots of one size each, taken and left call by call. */
#include "program/memory/memory_pools.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_SIZES = 64 };

/* ---- pools -------------------------------------------------------------- */

typedef struct pool {
    uint64_t n_bytes, base_bytes;
    uint32_t n_slots;   /* in all */
    uint32_t free_slot; /* UINT32_MAX: none */
} pool;

typedef struct pools {
    fr_pack_item *items;
    size_t n, n_pools;
    pool pool[MOST_SIZES];
    uint8_t *pool_of_item;
    uint32_t *slot_of_item;
    uint32_t *next_free; /* [slots], chained by pool: of the item that left */
    uint32_t *first_to_come, *next_to_come; /* items by first call */
    uint32_t *first_to_go, *next_to_go;     /* by last call */
    uint64_t *above_bytes; /* per call: what lives for it alone */
    uint32_t n_calls;
} pools;

static bool is_brief(const fr_pack_item *item)
{
    return item->first == item->last;
}

static fr_status pools_alloc(pools *p, fr_err *err)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->items[i].last >= p->n_calls)
            p->n_calls = p->items[i].last + 1;
    p->pool_of_item = calloc(p->n + 1, sizeof *p->pool_of_item);
    p->slot_of_item = calloc(p->n + 1, sizeof *p->slot_of_item);
    p->next_free = malloc((p->n + 1) * sizeof *p->next_free);
    p->next_to_come = malloc((p->n + 1) * sizeof *p->next_to_come);
    p->next_to_go = malloc((p->n + 1) * sizeof *p->next_to_go);
    p->first_to_come = malloc(((size_t)p->n_calls + 1) * sizeof(uint32_t));
    p->first_to_go = malloc(((size_t)p->n_calls + 1) * sizeof(uint32_t));
    p->above_bytes = calloc((size_t)p->n_calls + 1, sizeof *p->above_bytes);
    if (p->pool_of_item == NULL || p->slot_of_item == NULL ||
        p->next_free == NULL || p->next_to_come == NULL ||
        p->next_to_go == NULL || p->first_to_come == NULL ||
        p->first_to_go == NULL || p->above_bytes == NULL)
        return fr_fail_no_memory(err);
    memset(p->first_to_come, 0xff,
           ((size_t)p->n_calls + 1) * sizeof *p->first_to_come);
    memset(p->first_to_go, 0xff,
           ((size_t)p->n_calls + 1) * sizeof *p->first_to_go);
    return FR_OK;
}

static void pools_release(pools *p)
{
    free(p->pool_of_item);
    free(p->slot_of_item);
    free(p->next_free);
    free(p->next_to_come);
    free(p->next_to_go);
    free(p->first_to_come);
    free(p->first_to_go);
    free(p->above_bytes);
}

/* The pool of each item; false: too many sizes. */
static bool find_pools(pools *p)
{
    for (size_t i = p->n; i-- > 0;) {
        const fr_pack_item *item = &p->items[i];
        if (is_brief(item))
            continue;
        size_t at = 0;
        while (at < p->n_pools && p->pool[at].n_bytes != item->n_bytes)
            at++;
        if (at == MOST_SIZES)
            return false;
        if (at == p->n_pools)
            p->pool[p->n_pools++] =
                (pool){.n_bytes = item->n_bytes, .free_slot = UINT32_MAX};
        p->pool_of_item[i] = (uint8_t)at;
        p->next_to_come[i] = p->first_to_come[item->first];
        p->first_to_come[item->first] = (uint32_t)i;
        p->next_to_go[i] = p->first_to_go[item->last];
        p->first_to_go[item->last] = (uint32_t)i;
    }
    return true;
}

/* Slots are named by the item that had them first. */
static void take_slots(pools *p)
{
    for (uint32_t call = 0; call < p->n_calls; call++) {
        for (uint32_t i = p->first_to_come[call]; i != UINT32_MAX;
             i = p->next_to_come[i]) {
            pool *of = &p->pool[p->pool_of_item[i]];
            if (of->free_slot == UINT32_MAX) {
                p->slot_of_item[i] = of->n_slots++;
                continue;
            }
            p->slot_of_item[i] = p->slot_of_item[of->free_slot];
            of->free_slot = p->next_free[of->free_slot];
        }
        for (uint32_t i = p->first_to_go[call]; i != UINT32_MAX;
             i = p->next_to_go[i]) {
            pool *of = &p->pool[p->pool_of_item[i]];
            p->next_free[i] = of->free_slot;
            of->free_slot = i;
        }
    }
}

/* Writes the offsets and returns the total. */
static uint64_t place_pools(pools *p)
{
    uint64_t bottom = 0, top = 0;
    for (size_t k = 0; k < p->n_pools; k++) {
        p->pool[k].base_bytes = bottom;
        bottom += p->pool[k].n_bytes * p->pool[k].n_slots;
    }
    for (size_t i = 0; i < p->n; i++) {
        fr_pack_item *item = &p->items[i];
        const pool *of = &p->pool[p->pool_of_item[i]];
        if (!is_brief(item)) {
            item->offset_bytes =
                of->base_bytes + of->n_bytes * p->slot_of_item[i];
            continue;
        }
        item->offset_bytes = bottom + p->above_bytes[item->first];
        p->above_bytes[item->first] += item->n_bytes;
        if (p->above_bytes[item->first] > top)
            top = p->above_bytes[item->first];
    }
    return bottom + top;
}

/* Most bytes that live at once, by call. */
static uint64_t pools_live_peak(const pools *p)
{
    uint64_t live = 0, peak = 0;
    for (uint32_t call = 0; call < p->n_calls; call++) {
        for (uint32_t i = p->first_to_come[call]; i != UINT32_MAX;
             i = p->next_to_come[i])
            live += p->items[i].n_bytes;
        if (live + p->above_bytes[call] > peak)
            peak = live + p->above_bytes[call];
        for (uint32_t i = p->first_to_go[call]; i != UINT32_MAX;
             i = p->next_to_go[i])
            live -= p->items[i].n_bytes;
    }
    return peak;
}

fr_status fr_memory_pools(fr_pack_item *items, size_t n, uint64_t *total_bytes,
                          bool *is_good, fr_err *err)
{
    pools p = {.items = items, .n = n};
    *is_good = false;
    fr_status status = pools_alloc(&p, err);
    if (status == FR_OK && find_pools(&p)) {
        take_slots(&p);
        *total_bytes = place_pools(&p);
        *is_good = (double)*total_bytes <= 1.02 * (double)pools_live_peak(&p);
    }
    pools_release(&p);
    return status;
}
