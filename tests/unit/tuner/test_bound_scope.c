/*
 * test_bound_scope.c: the part of a vast space that a search looks at, and the
 * order of its seeds, against the plans themselves.
 */
#include "spec/catalog/catalog.h"
#include "tests/check.h"
#include "tests/unit/small_model.h"
#include "tuner/search/bound_scope.h"
#include "tuner/search/bound_seeds.h"

#include <stdlib.h>

typedef struct fixture {
    fr_cluster cluster;
    fr_model model;
    fr_job job;
    fr_plan_space_request request;
    fr_plan_space_choices layers;
} fixture;

static void setup(fixture *f)
{
    fr_err err;
    memset(f, 0, sizeof *f);
    CHECK_OK(fr_catalog_cluster("dgx-h100", 2, &f->cluster, &err), &err);
    small_model(&f->model, 4, 32, 128, 5003, 4096);
    fr_job_init(&f->job);
    f->job.global_batch = 64;
    f->job.seq = 4096;
    f->request.model = &f->model;
    f->request.job = &f->job;
    f->request.cluster = &f->cluster;
    fr_plan_init(&f->request.base);
    f->request.base.precision = FR_DTYPE_BF16;
    f->request.base.is_flash = true;
    CHECK_OK(fr_plan_space_list(&f->request, FR_DECISION_LAYERS,
                                &f->request.base, NULL, NULL, &f->layers, &err),
             &err);
}

static void teardown(fixture *f)
{
    fr_vec_release(&f->layers);
    fr_cluster_release(&f->cluster);
}

static fr_plan plan_of(const fixture *f, const fr_plan_space_choice *layers)
{
    fr_plan plan = f->request.base;
    fr_plan_space_set(&f->request, FR_DECISION_LAYERS, layers, &plan);
    return plan;
}

static bool is_same_layout(const fr_plan *a, const fr_plan *b)
{
    return fr_plan_world(a) == fr_plan_world(b) && a->tp == b->tp &&
           a->pp == b->pp && a->cp == b->cp && a->ep == b->ep &&
           a->etp == b->etp;
}

/* Each layout of 16 ranks is there, with defaults alone. */
static void test_coarse(void)
{
    fixture f;
    fr_bound_scope scope;
    size_t n_in = 0;
    setup(&f);
    fr_bound_scope_coarse(&f.request, &f.layers, &scope);
    for (size_t i = 0; i < f.layers.n; i++) {
        const fr_plan plan = plan_of(&f, &f.layers.items[i]);
        bool is_covered = false;
        for (size_t k = 0; k < f.layers.n && !is_covered; k++) {
            const fr_plan other = plan_of(&f, &f.layers.items[k]);
            is_covered = is_same_layout(&plan, &other) &&
                         fr_bound_scope_has(&scope, &f.layers.items[k]);
        }
        CHECK(is_covered == (fr_plan_world(&plan) == 16));
        if (!fr_bound_scope_has(&scope, &f.layers.items[i]))
            continue;
        n_in++;
        CHECK_INT(plan.rank_order, FR_RANK_ORDER_TP_DP_PP);
        CHECK(plan.is_sequence_parallel == (plan.tp > 1));
        CHECK(!plan.is_tp_overlap);
        CHECK(plan.micro_batch == 1 ||
              plan.micro_batch * 4096 / plan.cp <= 32768);
    }
    CHECK(n_in > 0 && 4 * n_in < f.layers.n);
    teardown(&f);
}

/* The scope has all values that the user has pinned or listed. */
static void test_given(void)
{
    static fr_axis_range ranges[FR_SPACE_AXIS_N];
    fixture f;
    fr_bound_scope scope;
    bool has_large = false, has_plain = false;
    setup(&f);
    ranges[FR_SPACE_AXIS_MICRO_BATCH] = (fr_axis_range){2, {1, 8}};
    f.request.ranges = ranges;
    f.request.pins = FR_PIN(SEQUENCE_PARALLEL);
    fr_bound_scope_coarse(&f.request, &f.layers, &scope);
    for (size_t i = 0; i < f.layers.n; i++) {
        const fr_plan plan = plan_of(&f, &f.layers.items[i]);
        if (!fr_bound_scope_has(&scope, &f.layers.items[i]))
            continue;
        has_large |= plan.micro_batch == 8 && plan.cp == 1;
        has_plain |= plan.tp > 1 && !plan.is_sequence_parallel;
    }
    CHECK(has_large && has_plain);
    teardown(&f);
}

/* All choices of the layouts that were added, and of no others; each kind of
 * plan adds some. */
static void test_fine(void)
{
    fixture f;
    fr_bound_scope scope;
    fr_bounded entries[3] = {{.estimate = 1, .seems_to_fit = false},
                             {.estimate = 2, .seems_to_fit = true},
                             {.estimate = 3, .seems_to_fit = false}};
    fr_bounded_list list = {.items = entries, .n = 3};
    fr_plan of[3];
    setup(&f);
    for (size_t i = 0, n = 0; i < f.layers.n && n < 3; i++) {
        const fr_plan plan = plan_of(&f, &f.layers.items[i]);
        if (n > 0 && is_same_layout(&plan, &of[n - 1]))
            continue;
        entries[n].candidate = f.layers.items[i].candidate;
        of[n++] = plan;
    }
    fr_bound_scope_coarse(&f.request, &f.layers, &scope);
    fr_bound_scope_add(&list, 2, &scope);
    CHECK_INT(scope.n_layouts, 2); /* the one that fits, then the first */
    for (size_t i = 0; i < f.layers.n; i++) {
        const fr_plan plan = plan_of(&f, &f.layers.items[i]);
        CHECK(fr_bound_scope_has(&scope, &f.layers.items[i]) ==
              (is_same_layout(&plan, &of[0]) || is_same_layout(&plan, &of[1])));
    }
    fr_bound_scope_add(&list, 3, &scope);
    CHECK_INT(scope.n_layouts, 3);
    teardown(&f);
}

/* The limit of a side search is lower, and balanced layers count for more. */
static void test_vast(void)
{
    fr_plan_space_request request = {0};
    const fr_plan_space_choices few = {.n = 1 << 15}, many = {.n = 1 << 18};
    CHECK(!fr_bound_scope_is_vast(&request, &few, false));
    CHECK(fr_bound_scope_is_vast(&request, &many, false));
    CHECK(fr_bound_scope_is_vast(&request, &many, true));
    request.balance = (fr_balance *)&request;
    CHECK(fr_bound_scope_is_vast(&request, &few, false));
}

/* Seeds that seem to fit come first; otherwise the order is kept. */
static void test_likely_first(void)
{
    fr_bounded entries[5];
    fr_bounded_list list = {.items = entries, .n = 5};
    static const double want[5] = {1, 3, 0, 2, 4};
    memset(entries, 0, sizeof entries);
    for (int i = 0; i < 5; i++) {
        entries[i].estimate = i;
        entries[i].seems_to_fit = i == 1 || i == 3;
    }
    fr_seeds_likely_first(&list);
    for (int i = 0; i < 5; i++)
        CHECK_NEAR(entries[i].estimate, want[i], 0);
}

/* By turns an entry of each list, until the other one has none. */
static void test_alternate(void)
{
    fr_err err;
    fr_bounded others[2] = {{.estimate = 10}, {.estimate = 11}};
    const fr_bounded_list with = {.items = others, .n = 2};
    fr_bounded_list list = {0};
    static const double want[5] = {0, 10, 1, 11, 2};
    for (int i = 0; i < 3; i++) {
        const fr_bounded entry = {.estimate = i};
        CHECK(fr_vec_push(&list, entry) == FR_OK);
    }
    CHECK_OK(fr_seeds_alternate(&with, &list, &err), &err);
    CHECK_INT(list.n, 5);
    for (size_t i = 0; i < list.n; i++)
        CHECK_NEAR(list.items[i].estimate, want[i], 0);
    fr_vec_release(&list);
}

CHECK_MAIN({"coarse", test_coarse}, {"given", test_given}, {"fine", test_fine},
           {"vast", test_vast}, {"likely_first", test_likely_first},
           {"alternate", test_alternate})
