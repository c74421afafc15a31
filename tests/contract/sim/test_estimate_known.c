/*
 * test_estimate_known.c: what the estimator has no closed form for is told by
 * one list.  Over random plans of every field, fr_estimate_plan() refuses those
 * that fr_estimate_knows() does not know and no others, and a plan without what
 * is not known is known.
 */
#include "core/numbers/rng.h"
#include "cost_models/link/gpu_comm.h"
#include "plan/schedule/schedule.h"
#include "sim/bound/estimate.h"
#include "tests/contract/sim/sim_fixture.h"
#include "tests/record/random_plans.h"

enum { N_PLANS = 30000, N_LEGAL = 2000, N_UNKNOWN = 4 };

/* Features of a plan that only the simulator knows, listed by hand. */
static unsigned unknown_of(const fr_plan *plan)
{
    return (plan->activation_offload_frac > 0 ? 1u : 0) |
           (plan->zero_stage == 3 &&
                    plan->execution.zero_unit == FR_ZERO_UNIT_PARAMETER
                ? 2u
                : 0) |
           (plan->collective == FR_COLLECTIVE_PARAMETER_SERVER ? 4u : 0) |
           (plan->expert_dispatch != FR_DISPATCH_ALL_TO_ALL ? 8u : 0);
}

/* Is it legal for reasons that do not concern the estimator? */
static bool is_legal(const sim_fixture *f)
{
    fr_err err;
    const int64_t m = fr_plan_micro_batches(&f->plan, &f->job);
    return fr_plan_check_lowerable(&f->plan, &f->model, &f->job, &err) ==
               FR_OK &&
           fr_gpu_comm_check(fr_cost_gpu_comm(f->costs), f->plan.collective,
                             &err) == FR_OK &&
           fr_schedule_fits(fr_schedules[f->plan.schedule], f->plan.pp, m,
                            f->plan.vpp);
}

static bool look(const sim_fixture *f, fr_estimator *estimator)
{
    fr_estimate estimate;
    fr_plan known;
    fr_err err;
    const unsigned unknown = unknown_of(&f->plan);
    const fr_status status =
        fr_estimate_plan(estimator, &f->plan, &estimate, &err);
    fr_estimate_leave_unknown(&f->plan, &known);
    bool is_ok = CHECK_INT(fr_estimate_knows(&f->plan), unknown == 0);
    is_ok = CHECK_INT(status, unknown == 0 ? FR_OK : FR_INPUT) && is_ok;
    is_ok = CHECK(fr_estimate_knows(&known)) && is_ok;
    is_ok =
        CHECK_OK(fr_estimate_plan(estimator, &known, &estimate, &err), &err) &&
        is_ok;
    if (!is_ok) {
        char text[256];
        printf("  %s\n", fr_plan_describe(&f->plan, text, sizeof text));
    }
    return is_ok;
}

static void look_at_plans(sim_fixture *f, fr_estimator *estimator, fr_rng *rng)
{
    int n_legal = 0, n_unknown[N_UNKNOWN] = {0};
    for (int i = 0; i < N_PLANS && n_legal < N_LEGAL; i++) {
        random_plans_next(rng, &f->model, 64, &f->plan);
        f->plan.n_split = 0;
        if (!is_legal(f))
            continue;
        n_legal++;
        for (int k = 0; k < N_UNKNOWN; k++)
            n_unknown[k] += (int)(unknown_of(&f->plan) >> k & 1u);
        if (!look(f, estimator))
            return;
    }
    CHECK_INT(n_legal, N_LEGAL);
    for (int k = 0; k < N_UNKNOWN; k++)
        CHECK(n_unknown[k] > 0);
}

static void test_random_plans(void)
{
    sim_fixture f;
    fr_estimator *estimator = NULL;
    fr_rng *rng = NULL;
    fr_err err;
    sim_fixture_init(&f);
    f.model.n_experts = 8;
    f.model.n_experts_per_token = 2;
    if (sim_fixture_cluster(&f, "dgx-h100:8", NULL) &&
        CHECK_OK(fr_rng_create(2385, &rng, &err), &err) &&
        CHECK_OK(fr_estimator_create(&f.model, &f.job, &f.cluster, f.costs,
                                     &estimator, &err),
                 &err))
        look_at_plans(&f, estimator, rng);
    fr_estimator_destroy(estimator);
    fr_rng_destroy(rng);
    fr_model_release(&f.model);
    sim_fixture_release(&f);
}

CHECK_MAIN({"random plans", test_random_plans})
