/*
 * The rank that holds a run up, from made-up times of ranks: the slow one is
 * named with its steps, a slow rank is no slow link and the other way round,
 * and noise is nobody's fault.
 */
#include "core/numbers/rng.h"
#include "plan/decide/grid.h"
#include "runtime/watch/stragglers.h"
#include "tests/check.h"

#include <math.h>

#define MAX_WORLD 16
#define COMPUTE_S 0.2385
#define TRANSFER_S 0.0317

typedef struct scene {
    fr_plan plan;
    fr_stragglers *stragglers;
    double noise; /* standard deviation of times, as a share */
    uint64_t seed;
    double slow[MAX_WORLD]; /* compute times so much */
    double link;            /* transfers along dp of the first group too */
} scene;

static bool scene_init(scene *s, int tp, int dp, int pp)
{
    fr_err err = {0};

    memset(s, 0, sizeof *s);
    fr_plan_init(&s->plan);
    s->plan.tp = tp;
    s->plan.dp = dp;
    s->plan.pp = pp;
    s->noise = 0.05;
    s->seed = 2385;
    s->link = 1;
    for (int i = 0; i < MAX_WORLD; i++)
        s->slow[i] = 1;
    return CHECK_OK(fr_stragglers_create(&s->plan, false, &s->stragglers, &err),
                    &err);
}

static double jittered(const scene *s, double time_s, int64_t step, int64_t i)
{
    double u = 0;

    for (uint64_t k = 0; k < 12; k++) /* nearly normal */
        u += fr_hash_uniform(s->seed, (uint64_t)step, (uint64_t)i, k);
    return time_s * fmax(0.1, 1 + s->noise * (u - 6));
}

/* Ranks compute, then all of a dp group wait for its slowest and transfer. */
static void play(scene *s, int64_t first, int64_t end)
{
    const int64_t world = fr_plan_world(&s->plan);
    double part_s[MAX_WORLD * FR_PART_N], compute_s[MAX_WORLD];
    int64_t ranks[MAX_WORLD];
    fr_err err = {0};

    for (int64_t step = first; step < end; step++) {
        memset(part_s, 0, sizeof part_s);
        double step_s = 0;
        for (int64_t i = 0; i < world; i++)
            compute_s[i] = jittered(s, COMPUTE_S * s->slow[i], step, i);
        for (int64_t i = 0; i < world; i++) {
            double last_s = 0;
            int64_t n = fr_plan_group(&s->plan, i, FR_AXIS_DP, ranks, NULL);
            for (int64_t k = 0; k < n; k++)
                last_s = fmax(last_s, compute_s[ranks[k]]);
            double transfer_s = jittered(s, TRANSFER_S, step, 100 + ranks[0]);
            if (ranks[0] == 0)
                transfer_s *= s->link;
            part_s[i * FR_PART_N + FR_PART_COMPUTE] = compute_s[i];
            part_s[i * FR_PART_N + FR_PART_EXPOSED_DP] =
                last_s - compute_s[i] + transfer_s;
            step_s = fmax(step_s, last_s + transfer_s);
        }
        CHECK_OK(fr_stragglers_add(s->stragglers, step, step_s, part_s, &err),
                 &err);
    }
}

static const fr_straggler *only_one(const scene *s)
{
    const fr_straggler_list *found = fr_stragglers_found(s->stragglers);

    return CHECK_INT(found->n, 1) ? &found->items[0] : NULL;
}

static void test_slow_rank(void)
{
    scene s;

    if (!scene_init(&s, 2, 2, 2))
        return;
    play(&s, 2, 20);
    s.slow[5] = 2;
    play(&s, 20, 50);
    s.slow[5] = 1;
    play(&s, 50, 80);
    const fr_straggler *found = only_one(&s);
    if (found != NULL) {
        CHECK_INT(found->kind, FR_SLOW_RANK);
        CHECK_INT(found->index, 5);
        CHECK_WITHIN(found->factor, 2, 0.25);
        CHECK_WITHIN(found->lost_s, COMPUTE_S, 0.05);
        CHECK_INT(found->first_step, 20);
        CHECK_INT(found->last_step, 49);
    }
    fr_stragglers_destroy(s.stragglers);
}

static void test_slow_stage(void)
{
    scene s;

    if (!scene_init(&s, 1, 2, 2))
        return;
    play(&s, 2, 30);
    for (int64_t i = 0; i < 4; i++)
        if (fr_plan_coord(&s.plan, i).pp == 1)
            s.slow[i] = 1.7;
    play(&s, 30, 60);
    const fr_straggler *found = only_one(&s);
    if (found != NULL) {
        CHECK_INT(found->kind, FR_SLOW_STAGE);
        CHECK_INT(found->index, 1);
        CHECK_INT(found->last_step, -1);
        CHECK_WITHIN(found->factor, 1.7, 0.2);
    }
    fr_stragglers_destroy(s.stragglers);
}

/* One group of many from the first step on; the only one, later. */
static void test_slow_link(void)
{
    for (int n_tp = 1; n_tp <= 4; n_tp += 3) {
        scene s;
        if (!scene_init(&s, n_tp, 4, 1))
            return;
        s.link = n_tp > 1 ? 6 : 1;
        play(&s, 2, 30);
        s.link = 6;
        play(&s, 30, 60);
        const fr_straggler *found = only_one(&s);
        if (found != NULL) {
            CHECK_INT(found->kind, FR_SLOW_LINK);
            CHECK_INT(found->part, FR_PART_EXPOSED_DP);
            CHECK_INT(found->rank, 0);
            CHECK_INT(found->n_ranks, 4);
        }
        fr_stragglers_destroy(s.stragglers);
    }
}

/* Also where times spread by a third, as on a busy machine. */
static void test_no_false_alarm(void)
{
    static const double noises[] = {0, 0.05, 0.15, 0.33};
    static const int grids[][3] = {{1, 2, 1}, {2, 2, 2}, {1, 8, 2}, {4, 1, 4}};

    for (size_t k = 0; k < FR_LENGTH(noises); k++)
        for (size_t g = 0; g < FR_LENGTH(grids); g++) {
            scene s;
            if (!scene_init(&s, grids[g][0], grids[g][1], grids[g][2]))
                return;
            s.noise = noises[k];
            s.seed = 17 * k + g;
            play(&s, 2, 500);
            const fr_straggler_list *found = fr_stragglers_found(s.stragglers);
            if (!CHECK_INT(found->n, 0))
                printf("noise %g grid %zu: %s %lld, %g times, step %lld\n",
                       s.noise, g,
                       fr_name_of(&fr_slow_names, found->items[0].kind),
                       (long long)found->items[0].index, found->items[0].factor,
                       (long long)found->items[0].first_step);
            fr_stragglers_destroy(s.stragglers);
        }
}

/* A step that something else held up. */
static void test_one_bad_step(void)
{
    scene s;

    if (!scene_init(&s, 1, 4, 1))
        return;
    for (int64_t step = 2; step < 60; step++) {
        s.slow[2] = step % 20 == 7 ? 9 : 1;
        play(&s, step, step + 1);
    }
    CHECK_INT(fr_stragglers_found(s.stragglers)->n, 0);
    fr_stragglers_destroy(s.stragglers);
}

CHECK_MAIN({"slow rank", test_slow_rank}, {"slow stage", test_slow_stage},
           {"slow link", test_slow_link},
           {"no false alarm", test_no_false_alarm},
           {"one bad step", test_one_bad_step})
