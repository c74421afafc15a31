/*
 * plugged_fixture.h: a plan with a strategy that a test has put into a table,
 * taken through all that plans go through: legality, lowering, the check of the
 * program, its simulation and the estimate, whose bound no replay is below.
 */
#ifndef FR_TESTS_PLUGGED_FIXTURE_H
#define FR_TESTS_PLUGGED_FIXTURE_H

#include "sim/bound/estimate.h"
#include "tests/contract/sim/sim_fixture.h"
#include "tuner/space/plan_space.h"
#include "tuner/study/plan_changes.h"

CHECK_MAYBE_UNUSED static bool plugged_init(sim_fixture *f, int n_nodes)
{
    char xml[2048];
    sim_fixture_init(f);
    snprintf(xml, sizeof xml, sim_gpu_xml, 8, "400Gb/s", n_nodes,
             "  <fabric kind=\"switch\"/>\n");
    f->job.seq = 256;
    f->job.global_batch = 32;
    return sim_fixture_cluster(f, "plugged.xml", xml);
}

/* The plan of the fixture; *step_s (may be NULL) is what its replay takes. */
CHECK_MAYBE_UNUSED static void plugged_run(sim_fixture *f, double *step_s)
{
    fr_estimator *estimator = NULL;
    fr_estimate estimate;
    fr_prediction prediction;
    fr_err err;
    char text[256];
    f->program = NULL;
    f->node_of_rank = NULL;
    fr_plan_describe(&f->plan, text, sizeof text);
    if (CHECK_OK(fr_plan_check_lowerable(&f->plan, &f->model, &f->job, &err),
                 &err) &&
        sim_fixture_lower(f, 0) &&
        CHECK_OK(fr_program_check(f->program, NULL, &err), &err) &&
        sim_fixture_predict(f, FR_REPLAY_AUTO, false, &prediction) &&
        CHECK_OK(fr_estimator_create(&f->model, &f->job, &f->cluster, f->costs,
                                     &estimator, &err),
                 &err) &&
        CHECK_OK(fr_estimate_plan(estimator, &f->plan, &estimate, &err),
                 &err)) {
        bool is_below =
            CHECK(estimate.lower_bound_s <= prediction.step_s * (1 + 1e-9)) &&
            CHECK(estimate.lower_bound_s > 0.2 * prediction.step_s) &&
            CHECK(estimate.capacity_bytes - estimate.least_bytes >=
                  prediction.memory.capacity_bytes -
                      prediction.memory.peak_bytes);
        if (!is_below)
            printf("  %s: bound %.9f s, replay %.9f s\n", text,
                   estimate.lower_bound_s, prediction.step_s);
        if (step_s != NULL)
            *step_s = prediction.step_s;
    }
    fr_estimator_destroy(estimator);
    fr_program_destroy(f->program);
    free(f->node_of_rank);
    f->program = NULL;
    f->node_of_rank = NULL;
}

/* Returns the number of plans of the space for which a question holds. */
CHECK_MAYBE_UNUSED static size_t plugged_count(const sim_fixture *f,
                                               bool (*is_one)(const fr_plan *))
{
    fr_plan_space_request request = {.model = &f->model,
                                     .job = &f->job,
                                     .cluster = &f->cluster,
                                     .world = 8,
                                     .allow_lossy = true};
    fr_plan_space space;
    fr_err err;
    size_t n = 0;
    fr_plan_init(&request.base);
    request.pins = FR_PIN(LAYER_SPLIT) | FR_PIN(RANK_ORDER) |
                   FR_PIN(RECOMPUTE) | FR_PIN(BUCKET);
    if (!CHECK_OK(fr_plan_space_create(&request, NULL, NULL, &space, &err),
                  &err))
        return 0;
    for (size_t i = 0; i < space.plans.n; i++) {
        fr_plan plan;
        fr_plan_space_plan(&space.request, &space.plans.items[i], &plan);
        n += is_one(&plan);
    }
    fr_plan_space_release(&space);
    return n;
}

/* Does explain look at a plan that is changed like this? */
CHECK_MAYBE_UNUSED static bool plugged_is_change(const sim_fixture *f,
                                                 const char *what)
{
    fr_changed_plan changed[128];
    size_t n = fr_plan_changes(&f->plan, &f->model, &f->cluster, true, changed,
                               sizeof changed / sizeof changed[0]);
    for (size_t i = 0; i < n; i++)
        if (strcmp(changed[i].what, what) == 0)
            return true;
    return false;
}

#endif
