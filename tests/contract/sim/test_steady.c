/*
 * test_steady.c: a step of many micro-batches that is lowered as one of few and
 * multiplied, against the replay of all of them: the same picoseconds, events
 * and bytes, over random plans of every schedule, with and without jitter.
 */
#include "core/numbers/rng.h"
#include "plan/schedule/schedule.h"
#include "sim/replay/replay.h"
#include "tests/contract/sim/sim_fixture.h"

static int64_t one_of(fr_rng *rng, const int64_t *values, uint64_t n)
{
    return values[fr_rng_below(rng, n)];
}

#define PICK(rng, ...)                                                         \
    one_of(rng, (const int64_t[]){__VA_ARGS__},                                \
           sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static void choose_pipeline(fr_rng *rng, fr_plan *plan)
{
    plan->pp = (int32_t)PICK(rng, 1, 2, 3, 4, 8);
    plan->schedule = FR_SCHEDULE_1F1B;
    if (plan->pp == 1)
        return;
    plan->schedule =
        (fr_schedule_kind)PICK(rng, FR_SCHEDULE_1F1B, FR_SCHEDULE_INTERLEAVED,
                               FR_SCHEDULE_ZB_H1, FR_SCHEDULE_ZB_V);
    if (fr_schedules[plan->schedule]->n_chunks != 1)
        plan->vpp = 2;
}

static void choose(fr_rng *rng, sim_fixture *f)
{
    fr_plan *plan = &f->plan;
    choose_pipeline(rng, plan);
    plan->tp = (int32_t)PICK(rng, 1, 1, 2, 4);
    plan->dp = (int32_t)PICK(rng, 1, 2, 3);
    plan->cp = (int32_t)PICK(rng, 1, 1, 2);
    plan->cp_kind = FR_CP_ALL_GATHER;
    plan->is_sequence_parallel = plan->tp > 1 && fr_rng_below(rng, 2) > 0;
    plan->is_overlap = fr_rng_below(rng, 2) > 0;
    plan->zero_stage = plan->dp > 1 ? (int32_t)PICK(rng, 0, 0, 1, 2, 3) : 0;
    plan->rank_order = (fr_rank_order)fr_rng_below(rng, FR_RANK_ORDER_N);
    plan->execution.cuda_graphs =
        (fr_cuda_graphs)PICK(rng, FR_CUDA_GRAPHS_NONE, FR_CUDA_GRAPHS_FULL);
    plan->recompute =
        (fr_recompute)PICK(rng, FR_RECOMPUTE_NONE, FR_RECOMPUTE_FULL);
    plan->execution.kernels =
        (fr_kernel_set)PICK(rng, FR_KERNELS_FUSED, FR_KERNELS_EAGER);
    plan->bucket_bytes = 1 << 20;
    f->model.n_layers = 16;
    f->model.max_seq = 1024;
    f->job.seq = PICK(rng, 128, 1024);
    f->job.global_batch =
        plan->dp * plan->pp * (PICK(rng, 960, 1087, 1211) / plan->pp);
}

static const char *const clusters[] = {
    "  <fabric kind=\"switch\"/>\n",
    "  <fabric kind=\"switch\"/>\n  <jitter compute=\"1.7%\"/>\n",
    "  <fabric kind=\"switch\"/>\n"
    "  <slow node=\"box-0\" compute=\"0.77\"/>\n"
    "  <jitter compute=\"2.3%\" network=\"3.1%\"/>\n",
};

typedef struct outcome {
    int64_t makespan_ps, n_skipped;
    uint64_t n_events;
} outcome;

static bool replay(const sim_fixture *f, const fr_program *program,
                   outcome *out)
{
    fr_replay made = {0};
    const fr_replay_options options = {0};
    fr_err err;
    bool is_ok =
        CHECK_OK(fr_replay_prepare(program, f->costs, &f->cluster,
                                   f->node_of_rank, &options, &made, &err),
                 &err) &&
        CHECK_OK(fr_replay_finish(&made, &err), &err);
    *out = (outcome){made.makespan_ps, made.skip.n, made.n_events};
    fr_replay_release(&made);
    return is_ok;
}

static bool compare_predictions(const fr_prediction *a, const fr_prediction *b)
{
    /* An allocator's cache depends on the number of micro-batches a little: by
     * a segment or two, up and down. */
    bool is_same = CHECK_NEAR((double)a->memory.peak_bytes,
                              (double)b->memory.peak_bytes, 0.01) &&
                   CHECK_NEAR((double)a->memory.allocated_bytes,
                              (double)b->memory.allocated_bytes, 0.01);
    CHECK_NEAR(a->hfu, b->hfu, 1e-9);
    CHECK_NEAR(a->step_s_p95, b->step_s_p95, 1e-4);
    for (int part = 0; part < FR_PART_N; part++)
        CHECK_WITHIN(a->breakdown_s[part], b->breakdown_s[part],
                     1e-8 * b->step_s);
    return is_same;
}

/* Returns whether rounds were skipped. */
static bool compare(sim_fixture *f)
{
    const fr_placement placement = {.n_ranks = fr_plan_world(&f->plan),
                                    .node_of_rank = f->node_of_rank,
                                    .by_framework = true,
                                    .is_whole = true};
    fr_prediction few, all;
    outcome short_, whole_;
    fr_program *whole;
    fr_err err;
    if (!CHECK_OK(
            fr_lower(&f->model, &f->job, &f->plan, &placement, &whole, &err),
            &err))
        return false;
    bool has_skipped = false;
    CHECK_INT(whole->n_repeats, 0);
    if (f->program->n_repeats > 0 && replay(f, f->program, &short_) &&
        short_.n_skipped > 0 && replay(f, whole, &whole_)) {
        bool is_same = CHECK_INT(short_.makespan_ps, whole_.makespan_ps) &&
                       CHECK_INT(short_.n_events, whole_.n_events);
        has_skipped = true;
        if (CHECK_OK(fr_simulate(f->program, f->costs, &f->cluster, &placement,
                                 NULL, &few, &err),
                     &err) &&
            CHECK_OK(fr_simulate(whole, f->costs, &f->cluster, &placement, NULL,
                                 &all, &err),
                     &err))
            is_same = compare_predictions(&few, &all) && is_same;
        char name[256];
        if (!is_same)
            printf("  %s\n", fr_plan_describe(&f->plan, name, sizeof name));
    }
    fr_program_destroy(whole);
    return has_skipped;
}

static void test_random_plans(void)
{
    enum { N_PLANS = 36 };
    int n_tried = 0, n_skipped = 0;
    fr_rng *rng;
    fr_err err;
    if (!CHECK_OK(fr_rng_create(2385, &rng, &err), &err))
        return;
    for (int i = 0; i < N_PLANS; i++) {
        sim_fixture f;
        char xml[2048];
        sim_fixture_init(&f);
        choose(rng, &f);
        snprintf(xml, sizeof xml, sim_gpu_xml, 4, "200Gb/s", 32,
                 clusters[i % 3]);
        if (fr_plan_check_lowerable(&f.plan, &f.model, &f.job, &err) == FR_OK &&
            sim_fixture_cluster(&f, "gpus.xml", xml) &&
            sim_fixture_lower(&f, 0)) {
            n_tried++;
            n_skipped += compare(&f);
        }
        sim_fixture_release(&f);
    }
    fr_rng_destroy(rng);
    CHECK(n_tried > N_PLANS / 2);
    /* Replicas of unlike speed, or reductions that fall behind, have no steady
     * state of them all. */
    CHECK(4 * n_skipped > 3 * n_tried);
}

CHECK_MAIN({"random plans", test_random_plans})
