/*
 * test_partition.c: splits of layers against all splits, one by one.
 *
 * The oracle cuts a row of layers in every way and adds up by hand; it shares
 * nothing with the recurrence but the problem.
 */
#include "core/numbers/rng.h"
#include "tests/check.h"
#include "tuner/partition/partition_layers.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_LAYERS = 12, MOST_STAGES = 6, N_PROBLEMS = 4000 };

typedef struct row {
    int64_t pass_ps[MOST_LAYERS + 1];
    uint64_t state_bytes[MOST_LAYERS + 1], kept_bytes[MOST_LAYERS + 1];
} row;

typedef struct drawn {
    row rows[3]; /* kinds of devices */
    fr_partition_stage stages[MOST_STAGES];
    fr_partition_problem of;
} drawn;

static int64_t below(fr_rng *rng, int64_t n)
{
    return (int64_t)fr_rng_below(rng, (uint64_t)n);
}

static void draw_rows(fr_rng *rng, bool is_alike, drawn *d)
{
    const int64_t one = 700 + below(rng, 4000);
    for (int k = 0; k < 3; k++) {
        row *r = &d->rows[k];
        const int64_t slow = 100 + (k == 0 ? 0 : below(rng, 300));
        memset(r, 0, sizeof *r);
        for (int i = 0; i < MOST_LAYERS; i++) {
            int64_t ps = is_alike ? one : 100 + below(rng, 5000);
            r->pass_ps[i + 1] = r->pass_ps[i] + ps * slow / 100;
            r->state_bytes[i + 1] =
                r->state_bytes[i] + 10 + (uint64_t)below(rng, 50);
            r->kept_bytes[i + 1] =
                r->kept_bytes[i] + 3 + (uint64_t)below(rng, 20);
        }
    }
}

/* v chunks on each of p ranks; tight: memory is short. */
static void draw(fr_rng *rng, int p, int v, bool is_alike, bool is_tight,
                 drawn *d)
{
    draw_rows(rng, is_alike, d);
    d->of = (fr_partition_problem){
        .stages = d->stages, .n_stages = p * v, .n_ranks = p};
    d->of.n_layers = (int32_t)(p * v + below(rng, MOST_LAYERS - p * v + 1));
    int kinds[MOST_STAGES];
    uint64_t rooms[MOST_STAGES];
    for (int r = 0; r < p; r++) {
        kinds[r] = (int)below(rng, 3);
        rooms[r] = is_tight ? 90 + (uint64_t)below(rng, 600) : 1 << 30;
    }
    for (int s = 0; s < p * v; s++) {
        const row *r = &d->rows[kinds[s % p]];
        d->stages[s] = (fr_partition_stage){
            .pass_ps = r->pass_ps,
            .state_bytes = r->state_bytes,
            .kept_bytes = r->kept_bytes,
            .n_live = (uint64_t)(v * (p - s % p)),
            .end_ps = s == 0 || s + 1 == p * v ? below(rng, 4000) : 0,
            .end_bytes = (uint64_t)below(rng, 40),
            .headroom_bytes = rooms[s % p],
            .n_least = 1,
            .rank = s % p};
    }
}

/* ---- the oracle ---------------------------------------------------------- */

typedef struct best_of_all {
    bool fits;
    int64_t slowest_ps, sum_ps;
    double spread_s2;
} best_of_all;

static void look(const fr_partition_problem *p, const int32_t *split,
                 best_of_all *best)
{
    best_of_all at = {.fits = true};
    for (int r = 0; r < p->n_ranks; r++) {
        int64_t ps = 0;
        uint64_t bytes = 0, room = 0;
        int begin = 0;
        for (int s = 0; s < p->n_stages; s++) {
            const fr_partition_stage *g = &p->stages[s];
            uint64_t kept = 0;
            for (int l = begin; g->rank == r && l < begin + split[s]; l++) {
                ps += g->pass_ps[l + 1] - g->pass_ps[l];
                bytes += g->state_bytes[l + 1] - g->state_bytes[l];
                kept += g->kept_bytes[l + 1] - g->kept_bytes[l];
            }
            begin += split[s];
            if (g->rank != r)
                continue;
            bytes += kept * g->n_live * (uint64_t)p->n_ranks /
                         (uint64_t)p->n_stages +
                     g->end_bytes;
            ps += g->end_ps;
            room = g->headroom_bytes;
        }
        at.fits = at.fits && bytes <= room;
        at.slowest_ps = ps > at.slowest_ps ? ps : at.slowest_ps;
        at.sum_ps += ps;
        at.spread_s2 += 1e-24 * (double)ps * (double)ps;
    }
    if (!at.fits)
        return;
    bool is_better =
        !best->fits || at.slowest_ps < best->slowest_ps ||
        (at.slowest_ps == best->slowest_ps &&
         (at.sum_ps < best->sum_ps ||
          (at.sum_ps == best->sum_ps && at.spread_s2 < best->spread_s2)));
    if (is_better)
        *best = at;
}

static void try_all(const fr_partition_problem *p, int32_t *split, int s,
                    int n_left, best_of_all *best)
{
    if (s + 1 == p->n_stages) {
        split[s] = n_left;
        look(p, split, best);
        return;
    }
    for (int n = 1; n <= n_left - (p->n_stages - s - 1); n++) {
        split[s] = n;
        try_all(p, split, s + 1, n_left - n, best);
    }
}

/* ---- tests --------------------------------------------------------------- */

/* The result is a split of all layers, and was measured right. */
static void check_split(const fr_partition_problem *p, const int32_t *split,
                        const fr_partition *got)
{
    int32_t sum = 0;
    best_of_all own = {0};
    for (int s = 0; s < p->n_stages; s++) {
        CHECK(split[s] >= 1);
        sum += split[s];
    }
    CHECK_INT(sum, p->n_layers);
    look(p, split, &own);
    CHECK(own.fits);
    CHECK_INT(own.slowest_ps, got->slowest_ps);
    CHECK_INT(own.sum_ps, got->sum_ps);
}

static void compare(fr_rng *rng, bool is_tight, int *n_held, int *n_none)
{
    drawn d;
    fr_err err;
    fr_partition got;
    best_of_all best = {0};
    int32_t split[MOST_STAGES], scratch[MOST_STAGES];
    int p = 2 + (int)below(rng, MOST_STAGES - 1);
    draw(rng, p, 1, below(rng, 3) == 0, is_tight, &d);
    try_all(&d.of, scratch, 0, d.of.n_layers, &best);
    CHECK_OK(fr_partition_layers(&d.of, split, &got, &err), &err);
    CHECK_INT(got.fits, best.fits);
    *n_none += !best.fits;
    if (!best.fits || !got.fits)
        return;
    ++*n_held;
    check_split(&d.of, split, &got);
    CHECK_INT(got.slowest_ps, best.slowest_ps);
    CHECK_INT(got.sum_ps, best.sum_ps);
    CHECK_NEAR(got.spread_s2, best.spread_s2, 1e-9);
    CHECK(!fr_partition_may_beat(&d.of, got.slowest_ps) ||
          got.least_ps == got.slowest_ps);
    CHECK(fr_partition_may_beat(&d.of, got.slowest_ps + 1));
}

static void test_exact(void)
{
    fr_rng *rng;
    fr_err err;
    int n_held = 0, n_none = 0;
    CHECK_OK(fr_rng_create(2385, &rng, &err), &err);
    for (int i = 0; i < N_PROBLEMS; i++)
        compare(rng, false, &n_held, &n_none);
    CHECK_INT(n_none, 0);
    fr_rng_destroy(rng);
}

static void test_memory(void)
{
    fr_rng *rng;
    fr_err err;
    int n_held = 0, n_none = 0;
    CHECK_OK(fr_rng_create(811, &rng, &err), &err);
    for (int i = 0; i < N_PROBLEMS; i++)
        compare(rng, true, &n_held, &n_none);
    CHECK(n_held > N_PROBLEMS / 8);
    CHECK(n_none > N_PROBLEMS / 20);
    fr_rng_destroy(rng);
}

/* Layers alike: the slowest rank is as fast as can be, whatever the devices;
 * others: never below what is said to be the least. */
static void test_chunks(void)
{
    fr_rng *rng;
    fr_err err;
    int n_exact = 0, n_all = 0;
    double worst = 1;
    CHECK_OK(fr_rng_create(5021, &rng, &err), &err);
    for (int i = 0; i < N_PROBLEMS; i++) {
        drawn d;
        fr_partition got;
        best_of_all best = {0};
        int32_t split[MOST_STAGES], scratch[MOST_STAGES];
        int p = 2 + (int)below(rng, 2), v = p == 3 ? 2 : 2 + (i & 1);
        bool is_alike = below(rng, 2) == 0;
        draw(rng, p, v, is_alike, false, &d);
        try_all(&d.of, scratch, 0, d.of.n_layers, &best);
        CHECK_OK(fr_partition_layers(&d.of, split, &got, &err), &err);
        CHECK(got.fits);
        check_split(&d.of, split, &got);
        CHECK(got.least_ps <= best.slowest_ps);
        CHECK(got.slowest_ps >= best.slowest_ps);
        if (is_alike) {
            CHECK_INT(got.slowest_ps, best.slowest_ps);
            continue;
        }
        n_all++;
        n_exact += got.slowest_ps == best.slowest_ps;
        worst = fmax(worst, (double)got.slowest_ps / (double)best.slowest_ps);
    }
    printf("chunks that differ: %d of %d the least, worst %.3f of it\n",
           n_exact, n_all, worst);
    CHECK(n_exact > n_all * 6 / 10);
    CHECK(worst < 2);
    fr_rng_destroy(rng);
}

/* By hand: a head as long as two layers, and a device half as fast. */
static void test_by_hand(void)
{
    int64_t fast[9], slow[9];
    uint64_t none[9] = {0};
    for (int i = 0; i < 9; i++) {
        fast[i] = 1000 * i;
        slow[i] = 2000 * i;
    }
    fr_partition_stage stages[3];
    for (int s = 0; s < 3; s++)
        stages[s] = (fr_partition_stage){.pass_ps = fast,
                                         .state_bytes = none,
                                         .kept_bytes = none,
                                         .n_least = 1,
                                         .rank = s};
    fr_partition_problem p = {stages, 8, 3, 3};
    fr_partition got;
    fr_err err;
    int32_t split[3];
    stages[2].end_ps = 2000;
    CHECK_OK(fr_partition_layers(&p, split, &got, &err), &err);
    CHECK_INT(got.slowest_ps, 4000); /* 10 layers' worth over 3 */
    CHECK_INT(got.sum_ps, 10000);
    CHECK_INT(split[2], 1);
    stages[1].pass_ps = slow;
    CHECK_OK(fr_partition_layers(&p, split, &got, &err), &err);
    CHECK_INT(got.slowest_ps, 4000); /* 4 | 2 | 2 + head */
    CHECK_INT(split[0], 4);
    CHECK_INT(split[1], 2);
}

CHECK_MAIN({"exact", test_exact}, {"memory", test_memory},
           {"chunks", test_chunks}, {"by hand", test_by_hand})
