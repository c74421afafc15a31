/* explain_fixture.h: a small model on a cluster, and a plan to explain. */
#ifndef FR_TESTS_UNIT_TUNER_EXPLAIN_FIXTURE_H
#define FR_TESTS_UNIT_TUNER_EXPLAIN_FIXTURE_H

#include "cost_models/base/cost.h"
#include "tests/check.h"
#include "tests/unit/small_model.h"
#include "tuner/study/explain_plan.h"

typedef struct explain_fixture {
    fr_cluster cluster;
    fr_cost_model *costs;
    fr_model model;
    fr_job job;
    fr_plan plan;
    fr_explain_request request;
} explain_fixture;

/* f->cluster is there already; the plan is one rank in 16 bits. */
static inline void explain_fixture_open(explain_fixture *f, int64_t n_layers,
                                        int64_t global_batch, int64_t seq)
{
    fr_err err;
    CHECK_OK(fr_cost_model_create(NULL, &f->cluster, &f->costs, &err), &err);
    small_model(&f->model, n_layers, 16, 64, 5003, 1024);
    fr_job_init(&f->job);
    f->job.global_batch = global_batch;
    f->job.seq = seq;
    fr_plan_init(&f->plan);
    f->plan.precision = FR_DTYPE_BF16;
    f->plan.is_flash = true;
    f->request = (fr_explain_request){.model = &f->model,
                                      .job = &f->job,
                                      .cluster = &f->cluster,
                                      .costs = f->costs,
                                      .plan = &f->plan,
                                      .n_threads = 1};
}

static inline void explain_fixture_close(explain_fixture *f)
{
    fr_cost_model_destroy(f->costs);
    fr_cluster_release(&f->cluster);
}

#endif
