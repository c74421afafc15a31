/*
 * test_replay_detail.c: calls as a whole against instruction by instruction:
 * to the picosecond where nothing overlaps, within 2 % where reductions run
 * beside backward, and with far fewer events.
 */
#include "tests/contract/sim/sim_fixture.h"

typedef struct detail_case {
    int dp, tp, pp, zero, n_nodes, n_nics;
    bool is_sp, is_overlap;
    fr_cuda_graphs graphs;
    fr_rank_order order;
    double tolerance; /* 0: exactly */
} detail_case;

static bool setup(sim_fixture *f, const detail_case *c, const char *more)
{
    char xml[2048];
    sim_fixture_init(f);
    snprintf(xml, sizeof xml, sim_gpu_xml, c->n_nics, "200Gb/s", 8, more);
    f->model.n_layers = 16;
    f->plan.dp = c->dp;
    f->plan.tp = c->tp;
    f->plan.pp = c->pp;
    f->plan.zero_stage = c->zero;
    f->plan.is_sequence_parallel = c->is_sp;
    f->plan.is_overlap = c->is_overlap;
    f->plan.rank_order = c->order;
    f->plan.execution.cuda_graphs = c->graphs;
    f->plan.bucket_bytes = 4 << 20;
    f->job.global_batch = 8 * c->dp;
    int64_t world = (int64_t)c->dp * c->tp * c->pp;
    return sim_fixture_cluster(f, "gpus.xml", xml) &&
           sim_fixture_lower(f, (world + c->n_nodes - 1) / c->n_nodes);
}

static void compare(const detail_case *c, const char *more)
{
    sim_fixture f;
    fr_prediction calls, instrs;
    if (setup(&f, c, more) &&
        sim_fixture_predict(&f, FR_REPLAY_CALLS, false, &calls) &&
        sim_fixture_predict(&f, FR_REPLAY_INSTRUCTIONS, false, &instrs)) {
        bool is_near = CHECK_NEAR(calls.step_s, instrs.step_s, c->tolerance);
        for (int part = 0; part < FR_PART_N; part++)
            is_near = CHECK_WITHIN(
                          calls.breakdown_s[part], instrs.breakdown_s[part],
                          (c->tolerance > 0 ? 0.02 : 1e-11) * instrs.step_s) &&
                      is_near;
        if (c->tolerance <= 0)
            CHECK_NEAR(calls.step_s_p95, instrs.step_s_p95, 1e-6);
        CHECK(calls.sim.events < instrs.sim.events);
        if (!is_near)
            printf("  dp %d tp %d pp %d: %.9f %.9f\n", c->dp, c->tp, c->pp,
                   calls.step_s, instrs.step_s);
    }
    sim_fixture_release(&f);
}

static const char *const plain = "  <fabric kind=\"switch\"/>\n";

static void test_exact(void)
{
    static const detail_case cases[] = {
        {.dp = 1, .tp = 1, .pp = 1, .n_nodes = 1, .n_nics = 8},
        {.dp = 4, .tp = 2, .pp = 1, .n_nodes = 1, .n_nics = 8},
        {.dp = 1, .tp = 8, .pp = 1, .n_nodes = 1, .n_nics = 8, .is_sp = true},
        {.dp = 4, .tp = 4, .pp = 1, .n_nodes = 4, .n_nics = 8, .zero = 1},
        {.dp = 4,
         .tp = 4,
         .pp = 1,
         .n_nodes = 4,
         .n_nics = 8,
         .graphs = FR_CUDA_GRAPHS_FULL},
        /* groups of tp over two nodes share the NICs of both */
        {.dp = 4,
         .tp = 4,
         .pp = 1,
         .n_nodes = 2,
         .n_nics = 4,
         .order = FR_RANK_ORDER_DP_TP_PP},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        compare(&cases[i], plain);
}

/* Transfers between stages take multiprocessors beside products, on average
 * over a call or just when they run. */
static void test_stages(void)
{
    static const detail_case cases[] = {
        {.dp = 1, .tp = 8, .pp = 2, .n_nodes = 2, .n_nics = 8, .is_sp = true},
        {.dp = 2, .tp = 4, .pp = 4, .n_nodes = 4, .n_nics = 8},
        {.dp = 2, .tp = 4, .pp = 4, .n_nodes = 4, .n_nics = 8, .zero = 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        detail_case c = cases[i];
        c.tolerance = 0.001;
        compare(&c, plain);
    }
}

static void test_overlap(void)
{
    static const detail_case cases[] = {
        {.dp = 8, .tp = 1, .pp = 1, .n_nodes = 1, .n_nics = 8},
        /* transfers of one stage meet collectives of another at the NICs */
        {.dp = 4,
         .tp = 4,
         .pp = 2,
         .n_nodes = 4,
         .n_nics = 2,
         .is_sp = true,
         .order = FR_RANK_ORDER_DP_TP_PP},
        {.dp = 8, .tp = 2, .pp = 1, .n_nodes = 2, .n_nics = 8},
        {.dp = 8, .tp = 4, .pp = 2, .n_nodes = 8, .n_nics = 4, .zero = 1},
        {.dp = 4, .tp = 4, .pp = 4, .n_nodes = 8, .n_nics = 2, .is_sp = true},
        {.dp = 4,
         .tp = 4,
         .pp = 2,
         .n_nodes = 4,
         .n_nics = 2,
         .order = FR_RANK_ORDER_DP_TP_PP},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        detail_case c = cases[i];
        c.is_overlap = true;
        c.tolerance = 0.02;
        compare(&c, plain);
    }
}

/* A slow device slows its group down by as much either way; the hosts of
 * this small model would be slower still. */
static void test_slow(void)
{
    const char *slow = "  <fabric kind=\"switch\"/>\n"
                       "  <slow node=\"box-0\" compute=\"0.77\"/>\n";
    static const detail_case cases[] = {
        {.dp = 4, .tp = 4, .pp = 1, .n_nodes = 2, .n_nics = 8},
        {.dp = 2, .tp = 4, .pp = 2, .n_nodes = 2, .n_nics = 8},
        {.dp = 2, .tp = 8, .pp = 1, .n_nodes = 4, .n_nics = 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        detail_case c = cases[i];
        c.tolerance = 0.02;
        c.graphs = FR_CUDA_GRAPHS_FULL;
        compare(&c, slow);
    }
}

CHECK_MAIN({"exact", test_exact}, {"stages", test_stages},
           {"overlap", test_overlap}, {"slow", test_slow})
