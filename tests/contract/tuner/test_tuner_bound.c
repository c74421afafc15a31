/*
 * test_tuner_bound.c: branch and bound against looking at everything.
 *
 * Small random problems on GPU clusters, some with experts, some short of
 * memory: every plan of the space is simulated one by one, and tune has to
 * find the same optimum and prove it, with one thread and with two, to the
 * byte.  On the way no simulation is shorter than the plan's bound, none has
 * more room than the least bytes leave, and no group of gradients has a plan
 * below the bound of the group.  Then the same for every goal, with limits
 * that some plans keep, or none: the best value of all plans, or the least
 * excess.
 */
#include "core/numbers/rng.h"
#include "sim/bound/estimate.h"
#include "tests/contract/sim/sim_fixture.h"
#include "tests/unit/tuner/tuning_text.h"
#include "tuner/answer/tune.h"
#include "tuner/bound/bound_layers.h"
#include "tuner/partition/balance_layers.h"
#include "tuner/search/evaluate.h"
#include "tuner/space/decision_lists.h"

#include <math.h>

enum { N_PROBLEMS = 60, MOST_PLANS = 240, N_GOALS = 45, MOST_GOAL_PLANS = 90 };

static const char cluster_xml[] =
    "<cluster name=\"gpus\">\n"
    "  <device id=\"gpu\" kind=\"gpu\" memory=\"%dMiB\"\n"
    "          memory-bandwidth=\"3350GB/s\" power=\"691W\">\n"
    "    <peak dtype=\"fp32\" rate=\"67TFLOP/s\"/>\n"
    "    <peak dtype=\"bf16\" rate=\"989TFLOP/s\"/>\n"
    "  </device>\n"
    "  <node-type id=\"box\" device=\"gpu\" devices=\"%d\"\n"
    "             price=\"31.7USD/h\" spot-price=\"12.9USD/h\">\n"
    "    <intra kind=\"nvswitch\" bandwidth=\"450GB/s\" latency=\"2us\"/>\n"
    "    <nic count=\"2\" bandwidth=\"%dGb/s\" latency=\"5us\"/>\n"
    "  </node-type>\n"
    "  <group id=\"box\" node-type=\"box\" count=\"%d\"/>\n"
    "  <fabric kind=\"switch\"/>\n"
    "</cluster>\n";

typedef struct problem {
    sim_fixture f;
    fr_axis_range ranges[FR_SPACE_AXIS_N];
    fr_plan_space_request request;
    fr_plan_space space;
    double best_s; /* of all that were simulated and fit */
    size_t n_too_large;
    size_t most_plans;
    bool is_any_world;
} problem;

static int64_t pick(fr_rng *rng, int64_t n)
{
    return (int64_t)fr_rng_below(rng, (uint64_t)n);
}

static void range(problem *p, fr_plan_space_axis axis, int n, const int64_t *at)
{
    p->ranges[axis].n = n;
    for (int i = 0; i < n; i++)
        p->ranges[axis].at[i] = at[i];
}

static void range_one(problem *p, fr_plan_space_axis axis, int64_t value)
{
    range(p, axis, 1, &value);
}

/* Leaves few values of most axes, others on others each time. */
static void draw_ranges(problem *p, fr_rng *rng)
{
    memset(p->ranges, 0, sizeof p->ranges);
    for (int axis = 0; axis < FR_SPACE_AXIS_N; axis++) {
        static const int64_t powers[] = {1, 2, 4};
        int64_t n = axis == FR_SPACE_AXIS_RECOMPUTE ? FR_RECOMPUTE_N
                    : axis == FR_SPACE_AXIS_ZERO    ? 4
                                                    : 0;
        if (axis == FR_SPACE_AXIS_TP || axis == FR_SPACE_AXIS_PP ||
            axis == FR_SPACE_AXIS_MICRO_BATCH)
            range(p, (fr_plan_space_axis)axis, 2, &powers[pick(rng, 2)]);
        else if (n > 0 && pick(rng, 2))
            range_one(p, (fr_plan_space_axis)axis, pick(rng, n));
    }
    if (pick(rng, 4))
        range_one(p, FR_SPACE_AXIS_CP, 1);
    if (pick(rng, 2))
        range_one(p, FR_SPACE_AXIS_RECOMPUTE_LAYERS, 0);
    if (pick(rng, 2))
        range_one(p, FR_SPACE_AXIS_BUCKET, 1 << 20);
}

static bool draw_machine(problem *p, fr_rng *rng)
{
    char xml[2048];
    const int n_devices = 2 << pick(rng, 2), n_nodes = 1 + (int)pick(rng, 2);
    const int memory = pick(rng, 2) ? 81920 : 1750 + (int)pick(rng, 900);
    sim_fixture *f = &p->f;
    sim_fixture_init(f);
    snprintf(xml, sizeof xml, cluster_xml, memory, n_devices,
             100 << pick(rng, 3), n_nodes);
    f->model.n_layers = 2 + pick(rng, 5);
    f->model.hidden = 512 << pick(rng, 2);
    f->model.ffn_hidden = 4 * f->model.hidden;
    f->model.head_dim = f->model.hidden / f->model.n_heads;
    f->model.is_tied = pick(rng, 2);
    if (pick(rng, 4) == 0) {
        f->model.n_experts = 4;
        f->model.n_experts_per_token = 2;
        f->model.expert_ffn_hidden = f->model.ffn_hidden;
    }
    f->job.seq = 128 << pick(rng, 2);
    f->job.global_batch = 4 * (1 + pick(rng, 4));
    /* Some wait for their data. */
    if (f->job.global_batch % 8 == 4)
        f->job.decode_s = 3.7e-4 * n_devices;
    return sim_fixture_cluster(f, "test.xml", xml);
}

/* A space of some plans, but not too many; false: none of many was. */
static bool draw_space(problem *p, fr_rng *rng)
{
    fr_err err;
    for (int i = 0; i < 300; i++) {
        draw_ranges(p, rng);
        if (!CHECK_OK(
                fr_plan_space_create(&p->request, NULL, NULL, &p->space, &err),
                &err))
            return false;
        if (p->space.plans.n >= 4 && p->space.plans.n <= p->most_plans)
            return true;
        fr_plan_space_release(&p->space);
    }
    return false;
}

static bool draw(problem *p, fr_rng *rng, bool is_any_world)
{
    for (int i = 0; i < 100; i++) {
        memset(p, 0, sizeof *p);
        p->is_any_world = is_any_world;
        p->most_plans = is_any_world ? MOST_GOAL_PLANS : MOST_PLANS;
        if (!draw_machine(p, rng))
            return false;
        p->request = (fr_plan_space_request){
            .model = &p->f.model,
            .job = &p->f.job,
            .cluster = &p->f.cluster,
            .world = is_any_world ? 0 : fr_cluster_slots(&p->f.cluster),
            .is_any_nodes = is_any_world,
            .ranges = p->ranges};
        fr_plan_init(&p->request.base);
        p->request.base.precision = FR_DTYPE_BF16;
        p->request.base.is_flash = pick(rng, 4) > 0;
        p->request.allow_lossy = pick(rng, 4) == 0;
        fr_err err;
        if (fr_balance_is_wanted(&p->request) &&
            !CHECK_OK(
                fr_balance_create(p->f.costs, 1, &p->request.balance, &err),
                &err))
            return false;
        if (draw_space(p, rng))
            return true;
        fr_balance_destroy(p->request.balance);
        sim_fixture_release(&p->f);
    }
    printf("  no space of the right size\n");
    return CHECK(false);
}

/* Simulates plan i, and holds it to its bounds. */
static bool look(problem *p, fr_estimator *estimator, size_t i)
{
    fr_plan plan;
    fr_evaluation evaluation;
    fr_estimate estimate;
    fr_err err;
    char name[FR_TUNED_NAME];
    fr_plan_space_plan(&p->space.request, &p->space.plans.items[i], &plan);
    fr_plan_describe(&plan, name, sizeof name);
    if (!CHECK_OK(fr_plan_check_lowerable(&plan, &p->f.model, &p->f.job, &err),
                  &err) ||
        !CHECK_OK(
            fr_evaluate(&p->request, p->f.costs, &plan, &evaluation, &err),
            &err) ||
        !CHECK_OK(fr_estimate_plan(estimator, &plan, &estimate, &err), &err))
        return false;
    const fr_prediction *prediction = &evaluation.prediction;
    bool is_ok =
        CHECK(prediction->memory.device_bytes == 0 ||
              estimate.least_bytes <= prediction->memory.peak_bytes) &&
        (evaluation.outcome == FR_OUTCOME_SIMULATED
             ? CHECK(estimate.lower_bound_s <= prediction->step_s * (1 + 1e-9))
             : CHECK(evaluation.outcome == FR_OUTCOME_TOO_LARGE));
    if (!is_ok)
        printf("  %s\n", name);
    if (evaluation.outcome == FR_OUTCOME_SIMULATED)
        p->best_s = fmin(p->best_s, prediction->expected_step_s);
    else
        p->n_too_large++;
    return is_ok;
}

/* Bounds of plans before each of them is simulated. */
typedef struct early_bound {
    double work_s;
    uint64_t lack_bytes;
} early_bound;

/* Every plan of a group against the bound of the group. */
static bool look_at_group(problem *p, fr_estimator *estimator, fr_plan *plan,
                          const fr_decision_list *gradients,
                          const fr_gradient_group *group,
                          const early_bound *early)
{
    fr_estimate least, first, one;
    fr_err err;
    fr_plan_space_set(&p->request, FR_DECISION_GRADIENTS,
                      &gradients->choices.items[group->i_free], plan);
    if (!CHECK_OK(fr_estimate_least(estimator, plan, &group->variants, HUGE_VAL,
                                    &least, &err),
                  &err) ||
        !CHECK_OK(fr_estimate_least(estimator, plan, &group->variants, 0,
                                    &first, &err),
                  &err) ||
        !CHECK(first.lower_bound_s <= least.lower_bound_s))
        return false;
    for (size_t i = group->first; i < group->first + group->n; i++) {
        fr_plan_space_set(&p->request, FR_DECISION_GRADIENTS,
                          &gradients->choices.items[i], plan);
        if (!CHECK_OK(fr_estimate_plan(estimator, plan, &one, &err), &err) ||
            !CHECK(least.lower_bound_s <= one.lower_bound_s) ||
            !CHECK(early->work_s <= one.lower_bound_s) ||
            !CHECK(one.capacity_bytes + early->lack_bytes <=
                   (early->lack_bytes > 0 ? one.least_bytes
                                          : one.capacity_bytes)) ||
            !CHECK(least.least_bytes <= one.least_bytes))
            return false;
    }
    return true;
}

/* All plans of some LAYERS. */
static bool look_at_layers(problem *p, fr_estimator *estimator,
                           const fr_decision_list *pipelines,
                           const fr_decision_list *gradients, fr_plan *plan)
{
    fr_err err;
    fr_bound_layers needs = {0};
    fr_least_work work[2] = {0};
    bool is_ok =
        CHECK_OK(fr_bound_layers_find(estimator, &p->request, plan, pipelines,
                                      gradients, &needs, &err),
                 &err);
    for (int i = 0; i < 2 && is_ok; i++)
        is_ok = !pipelines->has_split[i] ||
                CHECK_OK(fr_bound_layers_work(estimator, plan, i > 0, &work[i],
                                              &err),
                         &err);
    for (size_t k = 0; is_ok && k < pipelines->choices.n; k++) {
        const fr_estimate_share *share = &pipelines->shares.items[k];
        const uint64_t kept = fr_estimate_kept(&needs.headroom, share);
        fr_plan_space_set(&p->request, FR_DECISION_PIPELINE,
                          &pipelines->choices.items[k], plan);
        for (size_t g = 0; is_ok && g < gradients->groups.n; g++) {
            const early_bound of = {
                work[share->is_split].lane_s,
                fr_bound_layers_lack(&needs, kept, needs.state_bytes.items[g])};
            is_ok =
                CHECK(needs.least_state_bytes <= needs.state_bytes.items[g]) &&
                look_at_group(p, estimator, plan, gradients,
                              &gradients->groups.items[g], &of);
        }
    }
    fr_bound_layers_release(&needs);
    return is_ok;
}

static void look_at_groups(problem *p, fr_estimator *estimator)
{
    fr_err err;
    fr_decision_lists *lists = NULL;
    fr_plan_space_choices layers = {0};
    const fr_decision_list *pipelines, *gradients;
    size_t n = 0;
    bool is_ok =
        CHECK_OK(fr_decision_lists_create(&p->request, &lists, &err), &err) &&
        CHECK_OK(fr_plan_space_list(&p->request, FR_DECISION_LAYERS,
                                    &p->request.base, NULL, NULL, &layers,
                                    &err),
                 &err);
    for (size_t i = 0; is_ok && i < layers.n; i++) {
        fr_plan plan = p->request.base;
        fr_plan_space_set(&p->request, FR_DECISION_LAYERS, &layers.items[i],
                          &plan);
        is_ok = CHECK_OK(fr_decision_lists_find(lists, FR_DECISION_PIPELINE,
                                                &plan, &pipelines, &err),
                         &err) &&
                CHECK_OK(fr_decision_lists_find(lists, FR_DECISION_GRADIENTS,
                                                &plan, &gradients, &err),
                         &err) &&
                look_at_layers(p, estimator, pipelines, gradients, &plan);
        n += pipelines->choices.n * gradients->choices.n;
    }
    CHECK_INT(n, p->space.plans.n);
    fr_vec_release(&layers);
    fr_decision_lists_destroy(lists);
}

static void check_tuning(const problem *p, const fr_tuning *t)
{
    CHECK_INT(t->space.plans, p->space.plans.n);
    CHECK_INT(t->space.simulated + t->space.infeasible_memory +
                  t->space.pruned_by_bound,
              p->space.plans.n);
    CHECK(t->space.infeasible_memory <= p->n_too_large);
    if (p->best_s == HUGE_VAL) {
        CHECK(t->best.plan == NULL && t->nearest.plan != NULL);
        return;
    }
    CHECK(t->certificate.optimal_in_space && t->certificate.gap == 0);
    CHECK_NEAR(t->best.prediction.expected_step_s, p->best_s, 0);
}

/* Baselines are spaces of their own: looked at now and then. */
static void tune_twice(problem *p, bool is_best_only)
{
    fr_err err;
    char *text[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
        fr_tuning t;
        fr_tune_options options = {.space = p->request,
                                   .is_exact = true,
                                   .is_best_only = is_best_only,
                                   .n_alternatives = 4,
                                   .n_threads = i + 1};
        if (!CHECK_OK(fr_tune(&options, p->f.costs, &t, &err), &err))
            break;
        check_tuning(p, &t);
        text[i] = tuning_text(&t);
        fr_tuning_release(&t);
    }
    if (text[0] != NULL && text[1] != NULL)
        CHECK_STR(text[1], text[0]);
    free(text[0]);
    free(text[1]);
}

static void try_problem(problem *p, bool is_best_only)
{
    fr_estimator *estimator = NULL;
    fr_err err;
    p->best_s = HUGE_VAL;
    if (!CHECK_OK(fr_estimator_create(&p->f.model, &p->f.job, &p->f.cluster,
                                      p->f.costs, &estimator, &err),
                  &err))
        return;
    bool is_ok = true;
    for (size_t i = 0; is_ok && i < p->space.plans.n; i++)
        is_ok = look(p, estimator, i);
    look_at_groups(p, estimator);
    fr_estimator_destroy(estimator);
    if (is_ok)
        tune_twice(p, is_best_only);
}

static void test_against_enumeration(void)
{
    fr_rng *rng = NULL;
    fr_err err;
    size_t n_plans = 0, n_too_large = 0, n_none = 0;
    static problem p;
    if (!CHECK_OK(fr_rng_create(2385, &rng, &err), &err))
        return;
    const int n_problems = (int)check_slice_of(N_PROBLEMS);
    for (int i = 0; i < n_problems; i++) {
        if (draw(&p, rng, false))
            try_problem(&p, i % 4 > 0);
        n_plans += p.space.plans.n;
        n_too_large += p.n_too_large;
        n_none += p.best_s == HUGE_VAL;
        fr_plan_space_release(&p.space);
        fr_balance_destroy(p.request.balance);
        sim_fixture_release(&p.f);
    }
    printf("  %d problems, %zu plans, %zu do not fit, %zu problems where none "
           "does\n",
           n_problems, n_plans, n_too_large, n_none);
    fr_rng_destroy(rng);
}

/* ---- goals --------------------------------------------------------------- */

/* The result of a walk over every plan. */
typedef struct enumerated {
    fr_evaluation at[MOST_GOAL_PLANS];
    fr_plan plans[MOST_GOAL_PLANS];
    double best, least_excess;
} enumerated;

static bool enumerate(const problem *p, enumerated *out)
{
    fr_err err;
    for (size_t i = 0; i < p->space.plans.n; i++) {
        fr_plan_space_plan(&p->space.request, &p->space.plans.items[i],
                           &out->plans[i]);
        if (!CHECK_OK(fr_evaluate(&p->request, p->f.costs, &out->plans[i],
                                  &out->at[i], &err),
                      &err))
            return false;
    }
    return true;
}

static fr_goal_subject subject_of(const problem *p)
{
    return (fr_goal_subject){&p->f.model, &p->f.job, &p->f.cluster};
}

static void weigh(const problem *p, const fr_goal *goal, enumerated *all)
{
    fr_goal nearest = *goal;
    nearest.is_nearest = true;
    all->best = all->least_excess = HUGE_VAL;
    for (size_t i = 0; i < p->space.plans.n; i++) {
        const fr_prediction *at = &all->at[i].prediction;
        const fr_plan *plan = &all->plans[i];
        const fr_goal_subject subject = subject_of(p);
        if (all->at[i].outcome != FR_OUTCOME_SIMULATED)
            continue;
        all->best = fmin(all->best, fr_goal_value(goal, at, plan, &subject));
        all->least_excess = fmin(all->least_excess,
                                 fr_goal_value(&nearest, at, plan, &subject));
    }
}

/* Limits about where some plan of the problem is. */
static fr_goal draw_goal(const problem *p, const enumerated *all, int i,
                         fr_rng *rng)
{
    fr_goal goal = {.kind = (fr_goal_kind)(i % FR_GOAL_N),
                    .tokens = 1e9,
                    .critical_batch = 3e5};
    size_t k = (size_t)pick(rng, (int64_t)p->space.plans.n);
    while (all->at[k].outcome != FR_OUTCOME_SIMULATED && k > 0)
        k--;
    double step_s = fmax(all->at[k].prediction.expected_step_s, 1e-3);
    const fr_goal_subject subject = subject_of(p);
    /* Failures every so often, whatever the rate. */
    goal.is_disturbed = pick(rng, 2) == 0;
    goal.hazards = fr_run_hazards_none();
    goal.hazards.device_mtbf_s = 1e4 * (double)(1 + pick(rng, 1000));
    goal.hazards.restart_s = 60 * (double)pick(rng, 10);
    goal.hazards.every_steps = pick(rng, 3) == 0 ? 1 + pick(rng, 300) : 0;
    goal.hazards.spot_every_s = 1e4 * (double)(1 + pick(rng, 100));
    goal.choices = (fr_run_choices){.is_kind_free = pick(rng, 2) == 0,
                                    .is_spot_free = pick(rng, 3) == 0,
                                    .n_spares = (int)pick(rng, 3),
                                    .spares = {0, 1 + pick(rng, 3)}};
    const fr_weighed_step step = {step_s, step_s, 1, 1};
    const fr_run_outlook run =
        fr_goal_run_of(&goal, &step, &all->plans[k], &subject).outlook;
    double slack = 0.3 + 0.2 * (double)pick(rng, 7);
    const fr_goal_row *row = fr_goal_row_of(goal.kind);
    goal.is_spot = pick(rng, 3) == 0;
    if ((row->needs & FR_GOAL_NEEDS_DEADLINE) || pick(rng, 3) == 0)
        goal.deadline_s = slack * run.seconds;
    if (pick(rng, 5) == 0)
        goal.most_usd = slack * run.usd;
    if (pick(rng, 5) == 0)
        goal.most_kwh = slack * run.kwh;
    if (pick(rng, 5) == 0)
        goal.most_devices = 1 + pick(rng, fr_plan_world(&all->plans[k]));
    if (pick(rng, 4) == 0)
        goal.least_headroom_frac = 0.1 * (double)(1 + pick(rng, 5));
    return goal;
}

static void check_goal(const problem *p, const fr_goal *goal,
                       const enumerated *all, const fr_tuning *t)
{
    CHECK_INT(t->space.plans, p->space.plans.n);
    CHECK_STR(t->goal.name, fr_goal_row_of(goal->kind)->name);
    if (all->best < HUGE_VAL) {
        CHECK(t->certificate.optimal_in_space && t->certificate.gap == 0);
        CHECK_NEAR(t->best.value, all->best, 0);
        CHECK_NEAR(t->certificate.bound, all->best, 0);
    } else if (all->least_excess < HUGE_VAL) {
        CHECK(t->best.plan == NULL && t->nearest.plan != NULL);
        CHECK_NEAR(t->nearest.value, all->least_excess, 0);
        CHECK(t->broken[0] != '\0' && t->nearest.value > 1);
        CHECK(t->certificate.bound == HUGE_VAL);
    } else {
        CHECK(t->best.plan == NULL && t->broken[0] == '\0');
    }
}

static void tune_for(problem *p, const fr_goal *goal, const enumerated *all,
                     bool is_best_only)
{
    fr_err err;
    char *text[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
        fr_tuning t;
        fr_tune_options options = {.space = p->request,
                                   .goal = goal,
                                   .is_exact = true,
                                   .is_best_only = is_best_only,
                                   .n_alternatives = 4,
                                   .n_threads = i + 1};
        if (!CHECK_OK(fr_tune(&options, p->f.costs, &t, &err), &err))
            break;
        check_goal(p, goal, all, &t);
        text[i] = tuning_text(&t);
        fr_tuning_release(&t);
    }
    if (text[0] != NULL && text[1] != NULL)
        CHECK_STR(text[1], text[0]);
    free(text[0]);
    free(text[1]);
}

static void test_goals(void)
{
    fr_rng *rng = NULL;
    fr_err err;
    size_t n_limited = 0, n_broken = 0;
    static problem p;
    static enumerated all;
    if (!CHECK_OK(fr_rng_create(911, &rng, &err), &err))
        return;
    const int n_goals = (int)check_slice_of(N_GOALS);
    for (int i = 0; i < n_goals; i++) {
        if (draw(&p, rng, true) && enumerate(&p, &all)) {
            const fr_goal goal = draw_goal(&p, &all, i, rng);
            weigh(&p, &goal, &all);
            tune_for(&p, &goal, &all, i % 5 > 0);
            n_limited += fr_goal_has_limits(&goal);
            n_broken += all.best == HUGE_VAL && all.least_excess < HUGE_VAL;
        }
        fr_plan_space_release(&p.space);
        sim_fixture_release(&p.f);
    }
    printf("  %d problems of %d goals, %zu with limits that %zu cannot keep\n",
           n_goals, FR_GOAL_N, n_limited, n_broken);
    CHECK(n_limited > (size_t)n_goals / 2);
    CHECK(n_broken >= 5 || n_goals < N_GOALS);
    fr_rng_destroy(rng);
}

CHECK_MAIN({"against enumeration", test_against_enumeration},
           {"goals", test_goals})
