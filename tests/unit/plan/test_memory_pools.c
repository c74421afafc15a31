/*
 * test_memory_pools.c: items that live together never share memory, and what
 * a pipeline keeps is packed about as tightly as it can be.
 */
#include "program/memory/memory_pools.h"
#include "tests/check.h"

#include <stdlib.h>

enum { N_MOST = 4096 };

typedef struct items {
    fr_pack_item at[N_MOST];
    size_t n;
    uint32_t n_calls;
} items;

static void add(items *all, uint64_t n_bytes, uint32_t first, uint32_t last)
{
    all->at[all->n++] =
        (fr_pack_item){.n_bytes = n_bytes, .first = first, .last = last};
    if (last >= all->n_calls)
        all->n_calls = last + 1;
}

/* Independently: by pairs, and live bytes call by call. */
static void check_packing(const items *all, uint64_t total, double tolerance)
{
    uint64_t most = 0;
    for (size_t i = 0; i < all->n; i++) {
        const fr_pack_item *a = &all->at[i];
        CHECK(a->offset_bytes + a->n_bytes <= total);
        for (size_t k = i + 1; k < all->n; k++) {
            const fr_pack_item *b = &all->at[k];
            bool is_together = a->first <= b->last && b->first <= a->last;
            bool is_overlap = a->offset_bytes < b->offset_bytes + b->n_bytes &&
                              b->offset_bytes < a->offset_bytes + a->n_bytes;
            if (is_together && is_overlap) {
                CHECK(!is_together);
                return;
            }
        }
    }
    for (uint32_t call = 0; call < all->n_calls; call++) {
        uint64_t live = 0;
        for (size_t i = 0; i < all->n; i++)
            if (all->at[i].first <= call && call <= all->at[i].last)
                live += all->at[i].n_bytes;
        most = live > most ? live : most;
    }
    CHECK((double)total <= tolerance * (double)most);
}

/* 1F1B: forward of micro-batch m, then backward of m - warmup. */
static void test_pipeline(void)
{
    static items all;
    enum { N_MICRO = 96, WARMUP = 7, LAYERS = 6 };
    uint32_t fwd[N_MICRO], bwd[N_MICRO], call = 0;
    fr_err err;
    uint64_t total = 0;
    bool is_good = false;
    memset(&all, 0, sizeof all);
    for (int i = 0; i < N_MICRO + WARMUP; i++) {
        if (i < N_MICRO) {
            fwd[i] = call;
            call += LAYERS;
        }
        if (i >= WARMUP) {
            bwd[i - WARMUP] = call;
            call += LAYERS;
        }
    }
    for (int m = 0; m < N_MICRO; m++)
        for (uint32_t l = 0; l < LAYERS; l++) {
            add(&all, 3385 * 64, fwd[m] + l, bwd[m] + LAYERS - 1 - l);
            add(&all, 517 * 64, fwd[m] + l, bwd[m] + LAYERS - 1 - l);
            add(&all, 91 * 64, fwd[m] + l, fwd[m] + l);
            add(&all, 113 * 64, bwd[m] + l, bwd[m] + l);
        }
    if (CHECK_OK(fr_memory_pools(all.at, all.n, &total, &is_good, &err),
                 &err)) {
        CHECK(is_good);
        check_packing(&all, total, 1.02);
    }
}

static void test_random(void)
{
    static items all;
    static const uint64_t sizes[] = {64, 640, 6400, 2368};
    unsigned random = 12345;
    for (int round = 0; round < 8; round++) {
        fr_err err;
        uint64_t total = 0;
        bool is_good = false;
        memset(&all, 0, sizeof all);
        for (int i = 0; i < 700; i++) {
            random = random * 1664525u + 1013904223u;
            uint32_t first = random >> 8 & 511;
            uint32_t life = random >> 20 & 63;
            add(&all, sizes[random >> 28 & 3], first, first + life);
        }
        if (CHECK_OK(fr_memory_pools(all.at, all.n, &total, &is_good, &err),
                     &err))
            check_packing(&all, total, is_good ? 1.02 : 4.0);
    }
}

/* More sizes than pools: not good, and no harm. */
static void test_many_sizes(void)
{
    static items all;
    fr_err err;
    uint64_t total = 0;
    bool is_good = true;
    memset(&all, 0, sizeof all);
    for (uint32_t i = 0; i < 300; i++)
        add(&all, 64 * (i + 1), i, i + 5);
    if (CHECK_OK(fr_memory_pools(all.at, all.n, &total, &is_good, &err), &err))
        CHECK(!is_good);
}

CHECK_MAIN({"pipeline", test_pipeline}, {"random", test_random},
           {"many sizes", test_many_sizes})
