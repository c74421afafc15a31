/*
 * test_caching_replay.c: the replay of the caching allocator against one that
 * shares nothing with it: segments are arrays of stretches in address order,
 * and every question is answered by looking at all of them.  Random rank
 * programs with few sizes (so that equal ones decide), with many, and
 * pipelines.
 */
#include "program/memory/caching_allocator.h"
#include "tests/check.h"

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)

/* ---- the oracle --------------------------------------------------------- */

enum { MOST_STRETCHES = 8192, MOST_BLOCKS = 2048, FREE = -1 };

typedef struct stretch {
    uint64_t begin, n_bytes; /* address: 2^44 times the segment */
    int owner, name;
    bool is_small;
} stretch;

typedef struct oracle {
    stretch at[MOST_STRETCHES]; /* by address */
    int n, n_segments;
    int n_names, unused[MOST_STRETCHES], n_unused;
    uint64_t reserved, allocated, peak;
} oracle;

/* Names are given back last in, first out. */
static int next_name(oracle *o)
{
    return o->n_unused > 0 ? o->unused[--o->n_unused] : o->n_names++;
}

static void put(oracle *o, int i, stretch s)
{
    memmove(&o->at[i + 1], &o->at[i], (size_t)(o->n++ - i) * sizeof *o->at);
    o->at[i] = s;
}

static void drop(oracle *o, int i)
{
    o->unused[o->n_unused++] = o->at[i].name;
    memmove(&o->at[i], &o->at[i + 1], (size_t)(--o->n - i) * sizeof *o->at);
}

static int best(const oracle *o, uint64_t n, bool is_small)
{
    int found = -1;
    for (int i = 0; i < o->n; i++) {
        const stretch *s = &o->at[i], *b = &o->at[found < 0 ? i : found];
        if (s->owner != FREE || s->is_small != is_small || s->n_bytes < n)
            continue;
        if (found < 0 || s->n_bytes < b->n_bytes ||
            (s->n_bytes == b->n_bytes && s->name < b->name))
            found = i;
    }
    return found;
}

static uint64_t up(uint64_t n, uint64_t unit)
{
    return n % unit ? n + unit - n % unit : n;
}

static void oracle_take(oracle *o, uint64_t n_bytes, int owner)
{
    uint64_t n = n_bytes ? up(n_bytes, 512) : 512;
    bool is_small = n <= MIB;
    int i = best(o, n, is_small);
    if (i < 0) {
        i = o->n;
        put(o, i,
            (stretch){(uint64_t)++o->n_segments << 44,
                      is_small       ? 2 * MIB
                      : n < 10 * MIB ? 20 * MIB
                                     : up(n, 2 * MIB),
                      FREE, next_name(o), is_small});
        o->reserved += o->at[i].n_bytes;
    }
    stretch *s = &o->at[i];
    uint64_t rest = s->n_bytes - n;
    s->owner = owner;
    if (is_small ? rest >= 512 : rest > MIB) {
        s->n_bytes = n;
        put(o, i + 1,
            (stretch){s->begin + n, rest, FREE, next_name(o), is_small});
    }
    o->allocated += o->at[i].n_bytes;
    o->peak = o->allocated > o->peak ? o->allocated : o->peak;
}

static bool are_joined(const stretch *a, const stretch *b)
{
    return a->owner == FREE && b->owner == FREE &&
           a->begin + a->n_bytes == b->begin;
}

static void oracle_free(oracle *o, int owner)
{
    int i = 0;
    while (o->at[i].owner != owner)
        i++;
    o->at[i].owner = FREE;
    o->allocated -= o->at[i].n_bytes;
    if (i + 1 < o->n && are_joined(&o->at[i], &o->at[i + 1])) {
        o->at[i].n_bytes += o->at[i + 1].n_bytes;
        drop(o, i + 1);
    }
    if (i > 0 && are_joined(&o->at[i - 1], &o->at[i])) {
        o->at[i - 1].n_bytes += o->at[i].n_bytes;
        drop(o, i);
    }
}

/* One tensor a block: what outlives its call comes last. */
static void oracle_call(oracle *o, const fr_rank_program *k, uint32_t call)
{
    for (int is_last = 0; is_last < 2; is_last++)
        for (uint32_t i = 0; i < k->n_blocks; i++) {
            const fr_block *b = &k->blocks[i];
            if (!b->is_persistent && b->first_call == call &&
                (b->last_call > call) == is_last)
                oracle_take(o, b->n_bytes, (int)i);
        }
    for (uint32_t i = 0; i < k->n_blocks; i++)
        if (!k->blocks[i].is_persistent && k->blocks[i].last_call == call)
            oracle_free(o, (int)i);
}

static void compare(const fr_rank_program *k)
{
    static oracle o;
    fr_allocator_use use = {0};
    fr_err err;
    memset(&o, 0, sizeof o);
    for (uint32_t i = 0; i < k->n_blocks; i++)
        if (k->blocks[i].is_persistent)
            oracle_take(&o, k->blocks[i].n_bytes, (int)i);
    for (uint32_t call = 0; call < 2 * k->n_calls; call++)
        oracle_call(&o, k, call % k->n_calls);
    CHECK_OK(fr_rank_program_reserve(NULL, k, NULL, 0, &use, &err), &err);
    CHECK_INT(use.reserved_bytes, o.reserved);
    CHECK_INT(use.allocated_bytes, o.peak);
}

/* ---- rank programs ------------------------------------------------------ */

static uint64_t seed = 881726454;

static uint64_t draw(uint64_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % below;
}

static void random_rank_program(uint32_t n_calls, uint32_t n_blocks,
                                uint32_t n_sizes)
{
    static fr_block blocks[MOST_BLOCKS];
    uint64_t sizes[64];
    fr_rank_program k = {
        .n_calls = n_calls, .n_blocks = n_blocks, .blocks = blocks};
    for (uint32_t i = 0; i < n_sizes; i++)
        sizes[i] = draw(4) == 0   ? draw(2 * MIB)
                   : draw(2) == 0 ? draw(48 * MIB)
                                  : (1 + draw(24)) * MIB;
    for (uint32_t i = 0; i < n_blocks; i++) {
        uint32_t first = (uint32_t)draw(n_calls);
        uint32_t life = (uint32_t)draw(draw(3) ? 4 : n_calls);
        bool is_persistent = draw(32) == 0;
        blocks[i] =
            (fr_block){.n_bytes = sizes[draw(n_sizes)],
                       .is_persistent = is_persistent,
                       .first_call = is_persistent ? 0 : first,
                       .last_call = is_persistent || first + life >= n_calls
                                        ? n_calls - 1
                                        : first + life};
    }
    compare(&k);
}

static void test_random(void)
{
    for (int trial = 0; trial < 300; trial++)
        random_rank_program(2 + (uint32_t)draw(40), 1 + (uint32_t)draw(160),
                            1 + (uint32_t)draw(trial % 2 ? 3 : 60));
    random_rank_program(300, 1800, 50);
    random_rank_program(300, 1800, 5);
}

/* So many forwards ahead, then one of each: blocks of a few sizes wait. */
static void pipeline_rank_program(uint32_t n_ahead, uint32_t n_micro,
                                  uint32_t n_kept)
{
    static fr_block blocks[MOST_BLOCKS];
    uint32_t n = 0, n_calls = 2 * n_micro;
    uint64_t sizes[8];
    for (uint32_t i = 0; i < n_kept; i++)
        sizes[i] = 512 * KIB + draw(30 * MIB);
    for (uint32_t m = 0; m < n_micro; m++) {
        uint32_t f = m < n_ahead ? m : 2 * m - n_ahead + 1;
        uint32_t b = m + n_ahead < n_micro ? 2 * m + n_ahead : n_micro + m;
        for (uint32_t i = 0; i < n_kept; i++)
            blocks[n++] = (fr_block){
                .n_bytes = sizes[i], .first_call = f, .last_call = b};
        for (uint32_t i = 0; i < 3; i++)
            blocks[n++] = (fr_block){.n_bytes = sizes[i] / 2 + i * MIB,
                                     .first_call = i % 2 ? f : b,
                                     .last_call = i % 2 ? f : b};
    }
    fr_rank_program k = {.n_calls = n_calls, .n_blocks = n, .blocks = blocks};
    compare(&k);
}

static void test_pipelines(void)
{
    for (uint32_t n_ahead = 1; n_ahead <= 12; n_ahead++)
        pipeline_rank_program(n_ahead, 24 + (uint32_t)draw(40),
                              3 + (uint32_t)draw(5));
}

CHECK_MAIN({"random", test_random}, {"pipelines", test_pipelines})
