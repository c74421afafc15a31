/*
 * test_estimate_keys.c: what an estimator remembers is kept under all that it
 * depends on.  After one plan it says of another, which differs in a single
 * field, the same as an estimator that has seen nothing: over every field of
 * fr_plan, so that a new one that a key forgets is found here.
 */
#include "core/numbers/rng.h"
#include "plan/decide/plan_fields.h"
#include "sim/bound/estimate.h"
#include "tests/contract/sim/sim_fixture.h"
#include "tests/record/random_plans.h"

enum { N_PLANS = 400, N_RANKS = 64 };

typedef struct answer {
    fr_status status;
    fr_estimate estimate;
} answer;

static answer ask(fr_estimator *estimator, const fr_plan *plan)
{
    answer out;
    fr_err err;
    memset(&out, 0, sizeof out);
    out.status = fr_estimate_plan(estimator, plan, &out.estimate, &err);
    return out;
}

static answer ask_anew(const sim_fixture *f, const fr_plan *plan)
{
    fr_estimator *estimator = NULL;
    fr_err err;
    answer out = {.status = FR_FAILURE};
    if (CHECK_OK(fr_estimator_create(&f->model, &f->job, &f->cluster, f->costs,
                                     &estimator, &err),
                 &err))
        out = ask(estimator, plan);
    fr_estimator_destroy(estimator);
    return out;
}

static bool is_same(const answer *a, const answer *b)
{
    const fr_estimate *x = &a->estimate, *y = &b->estimate;
    return a->status == b->status && x->lower_bound_s == y->lower_bound_s &&
           x->estimate_s == y->estimate_s && x->peak_bytes == y->peak_bytes &&
           x->least_bytes == y->least_bytes &&
           x->capacity_bytes == y->capacity_bytes;
}

/* One field as another plan has it; false: it is a list, or has that value. */
static bool change(const fr_plan_field *row, const fr_plan *other,
                   fr_plan *plan)
{
    if (row->field.kind == FR_FIELD_LIST ||
        fr_field_get(&row->field, plan) == fr_field_get(&row->field, other))
        return false;
    fr_field_set(&row->field, fr_field_get(&row->field, other), plan);
    return true;
}

static void try_fields(const sim_fixture *f, fr_rng *rng, int *n_known)
{
    fr_plan other;
    random_plans_next(rng, &f->model, N_RANKS, &other);
    for (int i = 0; i < FR_PLAN_ITEMS_N; i++) {
        fr_estimator *estimator = NULL;
        fr_err err;
        fr_plan plan = f->plan;
        if (!change(fr_plan_item_row(fr_plan_items[i]), &other, &plan) ||
            fr_plan_world(&plan) > N_RANKS)
            continue;
        answer fresh = ask_anew(f, &plan);
        if (fresh.status != FR_OK)
            continue;
        if (!CHECK_OK(fr_estimator_create(&f->model, &f->job, &f->cluster,
                                          f->costs, &estimator, &err),
                      &err))
            return;
        ask(estimator, &f->plan);
        answer after = ask(estimator, &plan);
        n_known[i]++;
        if (!CHECK(is_same(&fresh, &after))) {
            char text[256];
            printf("  after another %s: %s\n",
                   fr_plan_item_row(fr_plan_items[i])->field.key,
                   fr_plan_describe(&plan, text, sizeof text));
            printf("  bound %a estimate %a peak %llu least %llu, not bound %a "
                   "estimate %a peak %llu least %llu\n",
                   after.estimate.lower_bound_s, after.estimate.estimate_s,
                   (unsigned long long)after.estimate.peak_bytes,
                   (unsigned long long)after.estimate.least_bytes,
                   fresh.estimate.lower_bound_s, fresh.estimate.estimate_s,
                   (unsigned long long)fresh.estimate.peak_bytes,
                   (unsigned long long)fresh.estimate.least_bytes);
        }
        fr_estimator_destroy(estimator);
    }
}

static void try_plans(sim_fixture *f, fr_rng *rng)
{
    int n_known[FR_PLAN_ITEMS_N] = {0}, n_fields = 0;
    for (int i = 0; i < N_PLANS; i++) {
        random_plans_next(rng, &f->model, N_RANKS, &f->plan);
        f->plan.n_split = 0;
        if (ask_anew(f, &f->plan).status == FR_OK)
            try_fields(f, rng, n_known);
    }
    for (int i = 0; i < FR_PLAN_ITEMS_N; i++)
        n_fields += n_known[i] > 0;
    printf("%d of %d fields were changed\n", n_fields, (int)FR_PLAN_ITEMS_N);
    CHECK(n_fields > FR_PLAN_ITEMS_N * 3 / 4);
}

static void test_keys(int64_t n_experts)
{
    sim_fixture f;
    fr_rng *rng = NULL;
    fr_err err;
    sim_fixture_init(&f);
    f.model.n_experts = n_experts;
    f.model.n_experts_per_token = n_experts > 0 ? 2 : 0;
    if (sim_fixture_cluster(&f, "dgx-h100:8", NULL) &&
        CHECK_OK(fr_rng_create(1789, &rng, &err), &err))
        try_plans(&f, rng);
    fr_rng_destroy(rng);
    fr_model_release(&f.model);
    sim_fixture_release(&f);
}

static void test_dense(void)
{
    test_keys(0);
}

static void test_experts(void)
{
    test_keys(8);
}

CHECK_MAIN({"dense model", test_dense}, {"experts", test_experts})
