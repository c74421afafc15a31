/*
 * test_fold.c: ranks that are folded into one change nothing: makespan,
 * parts, interval and critical path of a folded replay are those of every
 * rank by itself, to the picosecond, whatever the plan and the cluster; and
 * what is not alike is not folded.
 */
#include "tests/contract/sim/sim_fixture.h"
#include "tests/unit/sim/whole_replay.h"

typedef struct fold_case {
    int dp, tp, pp, vpp, zero, nodes;
    bool is_sp, has_no_overlap, is_uneven;
    fr_rank_order order;
    const char *more; /* "slow": one node is; else a <fabric> of GPU nodes */
    const char *xml;  /* of the whole cluster, if not NULL */
} fold_case;

static const char *const slow_cpu =
    "  <slow node=\"host-1\" compute=\"0.83\" network=\"0.71\"/>\n";
static const char *const slow_gpu =
    "  <fabric kind=\"switch\"/>\n"
    "  <slow node=\"box-1\" compute=\"0.83\" network=\"0.71\"/>\n";
static const char *const jittery =
    "  <fabric kind=\"switch\"/>\n"
    "  <slow node=\"box-1\" compute=\"0.83\"/>\n"
    "  <jitter compute=\"0.023\" network=\"0.017\"/>\n";

static const fold_case cases[] = {
    {.dp = 4, .tp = 1, .pp = 1, .nodes = 1},
    {.dp = 8, .tp = 1, .pp = 1, .nodes = 2, .zero = 1},
    {.dp = 2, .tp = 4, .pp = 1, .nodes = 1, .is_sp = true},
    {.dp = 4, .tp = 2, .pp = 2, .nodes = 2, .order = FR_RANK_ORDER_TP_PP_DP},
    {.dp = 2, .tp = 2, .pp = 4, .nodes = 4, .order = FR_RANK_ORDER_DP_TP_PP},
    {.dp = 2, .tp = 8, .pp = 2, .nodes = 4, .order = FR_RANK_ORDER_DP_PP_TP},
    {.dp = 8, .tp = 2, .pp = 2, .nodes = 4, .order = FR_RANK_ORDER_PP_TP_DP},
    {.dp = 4, .tp = 4, .pp = 2, .nodes = 8, .order = FR_RANK_ORDER_PP_DP_TP},
    {.dp = 4, .tp = 2, .pp = 2, .vpp = 2, .nodes = 2, .zero = 1},
    {.dp = 3, .tp = 2, .pp = 4, .nodes = 3, .is_uneven = true},
    {.dp = 6, .tp = 1, .pp = 4, .nodes = 4, .has_no_overlap = true},
    {.dp = 4, .tp = 2, .pp = 4, .nodes = 4, .more = "slow"},
    {.dp = 8, .tp = 4, .pp = 1, .nodes = 4, .more = "slow", .zero = 1},
    {.dp = 8, .tp = 4, .pp = 2, .nodes = 8, .is_sp = true, .zero = 1},
    {.dp = 16, .tp = 8, .pp = 8, .nodes = 128, .is_sp = true, .zero = 1},
    {.dp = 32, .tp = 4, .pp = 8, .nodes = 128, .more = "slow"},
};

static const char *more_of(const fold_case *c, bool is_gpu)
{
    bool is_slow = c->more && strcmp(c->more, "slow") == 0;
    if (!is_gpu)
        return is_slow ? slow_cpu : "";
    if (is_slow)
        return slow_gpu;
    return c->more ? c->more : "  <fabric kind=\"switch\"/>\n";
}

static bool setup(sim_fixture *f, const fold_case *c, bool is_gpu)
{
    char xml[2048];
    int n_nodes = c->nodes > 8 ? c->nodes : 8;
    sim_fixture_init(f);
    if (is_gpu)
        snprintf(xml, sizeof xml, sim_gpu_xml, 4, "200Gb/s", n_nodes,
                 more_of(c, is_gpu));
    else
        snprintf(xml, sizeof xml, sim_cpu_xml, 24, n_nodes, more_of(c, is_gpu));
    if (c->xml)
        snprintf(xml, sizeof xml, "%s", c->xml);
    f->plan.dp = c->dp;
    f->plan.tp = c->tp;
    f->plan.pp = c->pp;
    f->plan.vpp = c->vpp > 0 ? c->vpp : 1;
    f->plan.schedule = c->vpp > 1 ? FR_SCHEDULE_INTERLEAVED : FR_SCHEDULE_1F1B;
    f->plan.zero_stage = c->zero;
    f->plan.is_sequence_parallel = c->is_sp;
    f->plan.is_overlap = !c->has_no_overlap;
    f->plan.rank_order = c->order;
    f->plan.bucket_bytes = 4 << 20;
    f->job.global_batch = (c->pp > 1 ? 8 : 2) * c->dp;
    if (c->is_uneven) {
        const int32_t split[] = {3, 2, 2, 1};
        f->plan.n_split = 4;
        memcpy(f->plan.layer_split, split, sizeof split);
    }
    int64_t world = (int64_t)c->dp * c->tp * c->pp;
    return sim_fixture_cluster(f, "test.xml", xml) &&
           sim_fixture_lower(f, (world + c->nodes - 1) / c->nodes);
}

static bool replay(const sim_fixture *f, fr_replay_detail detail,
                   bool is_unfolded, fr_replay *out)
{
    fr_err err;
    fr_replay_options options = {.detail = detail, .is_unfolded = is_unfolded};
    return CHECK_OK(replay_with(&options, f->program, f->costs, &f->cluster,
                                f->node_of_rank, out, &err),
                    &err);
}

static const fr_replay_record *at(const fr_replay *r, uint32_t i)
{
    return &r->records.items[i];
}

/* Step by step back from the end: the same calls at the same time. */
static void compare_paths(const fr_replay *a, const fr_replay *b)
{
    uint32_t i = a->last, k = b->last;
    while (i != FR_REPLAY_NONE && k != FR_REPLAY_NONE) {
        const fr_replay_record *x = at(a, i), *y = at(b, k);
        const int32_t *color = b->context->fold.color_of_rank;
        if (!CHECK_INT(x->start_ps, y->start_ps) ||
            !CHECK_INT(x->end_ps, y->end_ps) ||
            !CHECK_INT(x->ready_ps, y->ready_ps) ||
            !CHECK_INT(x->i_call, y->i_call) ||
            !CHECK_INT(x->i_instr, y->i_instr) ||
            !CHECK_INT(
                color[fr_rank_layout_number(&a->context->layout, x->rank)],
                color[y->rank]))
            return;
        i = x->cause;
        k = y->cause;
    }
    CHECK(i == FR_REPLAY_NONE && k == FR_REPLAY_NONE);
}

/* Every record of a rank is that of its colour's. */
static void compare_records(const fr_replay *folded, const fr_replay *all)
{
    const fr_fold *fold = &folded->context->fold;
    size_t n = 0;
    int64_t sum = 0, sum_all = 0;
    for (size_t i = 0; i < folded->records.n; i++) {
        const fr_replay_record *r = &folded->records.items[i];
        int32_t n_alike = fold->n_alike[fold->color_of_rank[r->rank]];
        n += (size_t)n_alike;
        sum += n_alike * (r->start_ps + 3 * r->end_ps);
    }
    for (size_t i = 0; i < all->records.n; i++) {
        const fr_replay_record *r = &all->records.items[i];
        sum_all += r->start_ps + 3 * r->end_ps;
    }
    CHECK_INT(n, all->records.n);
    CHECK_INT(sum, sum_all);
}

static void compare_predictions(const sim_fixture *f, fr_replay_detail detail)
{
    fr_prediction a, b;
    if (!sim_fixture_predict(f, detail, false, &a) ||
        !sim_fixture_predict(f, detail, true, &b))
        return;
    CHECK(a.step_s == b.step_s);
    for (int part = 0; part < FR_PART_N; part++)
        CHECK(a.breakdown_s[part] == b.breakdown_s[part]);
    CHECK_NEAR(a.step_s_p5, b.step_s_p5, 1e-12);
    CHECK_NEAR(a.step_s_p95, b.step_s_p95, 1e-12);
    CHECK_NEAR(a.mfu, b.mfu, 1e-12);
    CHECK_INT(a.memory.peak_bytes, b.memory.peak_bytes);
    CHECK_STR(a.source, b.source);
    CHECK_INT(a.sim.ranks_total, b.sim.ranks_simulated);
}

static void compare(const fold_case *c, bool is_gpu, fr_replay_detail detail)
{
    sim_fixture f;
    fr_replay folded = {0}, all = {0};
    if (setup(&f, c, is_gpu) && replay(&f, detail, false, &folded) &&
        replay(&f, detail, true, &all)) {
        bool is_same = CHECK_INT(folded.makespan_ps, all.makespan_ps);
        compare_paths(&folded, &all);
        compare_records(&folded, &all);
        compare_predictions(&f, detail);
        CHECK(folded.n_simulated <= all.n_simulated);
        CHECK_INT(all.n_simulated, fr_plan_world(&f.plan));
        if (!is_same)
            printf("  dp %d tp %d pp %d order %s %s\n", c->dp, c->tp, c->pp,
                   fr_name_of(&fr_rank_order_names, c->order),
                   is_gpu ? "gpu" : "cpu");
    }
    fr_replay_release(&folded);
    fr_replay_release(&all);
    sim_fixture_release(&f);
}

static void test_cpu(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        compare(&cases[i], false, FR_REPLAY_INSTRUCTIONS);
}

static void test_gpu_instructions(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        compare(&cases[i], true, FR_REPLAY_INSTRUCTIONS);
}

static void test_gpu_calls(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        compare(&cases[i], true, FR_REPLAY_CALLS);
}

/* ---- narrow networks ---------------------------------------------------- */

static const char *const fabrics[] = {
    "  <fabric kind=\"fat-tree\">\n"
    "    <level down=\"2\" oversubscription=\"3\" latency=\"1us\"/>\n"
    "    <level down=\"2\" oversubscription=\"1.5\" latency=\"1us\"/>\n"
    "    <level down=\"2\" latency=\"1us\"/>\n"
    "  </fabric>\n",
    "  <fabric kind=\"rail\">\n"
    "    <level down=\"4\" oversubscription=\"2.385\" latency=\"1us\"/>\n"
    "    <level down=\"2\" latency=\"1us\"/>\n"
    "  </fabric>\n",
    "  <fabric kind=\"torus\" dims=\"2x4\" bandwidth=\"100Gb/s\"\n"
    "          latency=\"1us\"/>\n",
    "  <fabric kind=\"dragonfly\" groups=\"2\" routers=\"2\"\n"
    "          nodes-per-router=\"2\" bandwidth=\"100Gb/s\"\n"
    "          latency=\"1us\" global-bandwidth=\"50Gb/s\"/>\n",
    "  <fabric kind=\"links\">\n"
    "    <switch id=\"a\"/><switch id=\"b\"/>\n"
    "    <link id=\"l0\" from=\"box-0\" to=\"a\" bandwidth=\"80Gb/s\" "
    "latency=\"1us\"/>\n"
    "    <link id=\"l1\" from=\"box-1\" to=\"a\" bandwidth=\"80Gb/s\" "
    "latency=\"1us\"/>\n"
    "    <link id=\"l2\" from=\"box-2\" to=\"a\" bandwidth=\"80Gb/s\" "
    "latency=\"1us\"/>\n"
    "    <link id=\"l3\" from=\"box-3\" to=\"a\" bandwidth=\"80Gb/s\" "
    "latency=\"1us\"/>\n"
    "    <link id=\"l4\" from=\"box-4\" to=\"b\" bandwidth=\"80Gb/s\" "
    "latency=\"1us\"/>\n"
    "    <link id=\"l5\" from=\"box-5\" to=\"b\" bandwidth=\"80Gb/s\" "
    "latency=\"1us\"/>\n"
    "    <link id=\"l6\" from=\"box-6\" to=\"b\" bandwidth=\"80Gb/s\" "
    "latency=\"1us\"/>\n"
    "    <link id=\"l7\" from=\"box-7\" to=\"b\" bandwidth=\"80Gb/s\" "
    "latency=\"1us\"/>\n"
    "    <link id=\"ab\" from=\"a\" to=\"b\" bandwidth=\"100Gb/s\" "
    "latency=\"1us\"/>\n"
    "  </fabric>\n",
};

/* The expected straggler waits the same for folded ranks and for all. */
static void test_jitter(void)
{
    for (size_t i = 0; i + 2 < sizeof cases / sizeof cases[0]; i++) {
        fold_case c = cases[i];
        c.more = jittery;
        compare(&c, true, FR_REPLAY_INSTRUCTIONS);
        compare(&c, true, FR_REPLAY_CALLS);
    }
}

static void test_fabrics(void)
{
    static const fold_case plans[] = {
        {.dp = 8, .tp = 8, .pp = 1, .nodes = 8},
        {.dp = 4, .tp = 4, .pp = 4, .nodes = 8},
        {.dp = 4,
         .tp = 4,
         .pp = 2,
         .nodes = 8,
         .zero = 1,
         .order = FR_RANK_ORDER_PP_DP_TP},
        {.dp = 4,
         .tp = 2,
         .pp = 4,
         .nodes = 4,
         .order = FR_RANK_ORDER_TP_PP_DP},
    };
    for (size_t k = 0; k < sizeof fabrics / sizeof fabrics[0]; k++) {
        for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
            fold_case c = plans[i];
            c.more = fabrics[k];
            compare(&c, true, FR_REPLAY_INSTRUCTIONS);
            compare(&c, true, FR_REPLAY_CALLS);
        }
    }
}

/* GPUs and one NIC behind PCIe switches; old nodes beside new ones. */
static const char *const clusters[] = {
    "<cluster name=\"pcie\">\n"
    "  <device id=\"gpu\" like=\"a100-pcie-80g\"/>\n"
    "  <node-type id=\"box\" device=\"gpu\" devices=\"8\">\n"
    "    <intra kind=\"pcie\" bandwidth=\"24GB/s\" latency=\"4us\"/>\n"
    "    <nic count=\"1\" bandwidth=\"100Gb/s\" latency=\"5us\"/>\n"
    "    <pcie switches=\"4\" uplink=\"17GB/s\"/>\n"
    "  </node-type>\n"
    "  <group id=\"box\" node-type=\"box\" count=\"4\"/>\n"
    "  <fabric kind=\"switch\"/>\n"
    "</cluster>\n",
    "<cluster name=\"mixed\">\n"
    "  <device id=\"new\" like=\"a100-sxm-80g\"/>\n"
    "  <device id=\"old\" like=\"v100-sxm2-32g\"/>\n"
    "  <node-type id=\"new\" device=\"new\" devices=\"8\">\n"
    "    <intra kind=\"nvswitch\" bandwidth=\"300GB/s\" latency=\"2us\"/>\n"
    "    <nic count=\"4\" bandwidth=\"200Gb/s\" latency=\"5us\"/>\n"
    "  </node-type>\n"
    "  <node-type id=\"old\" device=\"old\" devices=\"8\">\n"
    "    <intra kind=\"nvlink\" bandwidth=\"150GB/s\" latency=\"2us\"/>\n"
    "    <nic count=\"1\" bandwidth=\"100Gb/s\" latency=\"5us\"/>\n"
    "  </node-type>\n"
    "  <group id=\"new\" node-type=\"new\" count=\"2\"/>\n"
    "  <group id=\"old\" node-type=\"old\" count=\"2\"/>\n"
    "  <fabric kind=\"switch\"/>\n"
    "  <slow node=\"old-1\" device=\"3\" compute=\"0.8\"/>\n"
    "</cluster>\n",
};

static void test_clusters(void)
{
    static const fold_case plans[] = {
        {.dp = 4, .tp = 8, .pp = 1, .nodes = 4},
        {.dp = 32, .tp = 1, .pp = 1, .nodes = 4},
        {.dp = 4, .tp = 2, .pp = 4, .nodes = 4},
        {.dp = 4,
         .tp = 4,
         .pp = 2,
         .nodes = 4,
         .zero = 1,
         .order = FR_RANK_ORDER_PP_DP_TP},
    };
    for (size_t k = 0; k < sizeof clusters / sizeof clusters[0]; k++) {
        for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
            fold_case c = plans[i];
            c.xml = clusters[k];
            compare(&c, true, FR_REPLAY_INSTRUCTIONS);
            compare(&c, true, FR_REPLAY_CALLS);
        }
    }
}

/* ---- plans that only simulation knows ----------------------------------- */

typedef struct feature_case {
    const char *model;
    int dp, tp, pp, ep, zero, zero_group, vpp;
    fr_schedule_kind schedule;
    bool is_offloaded, is_in_turn;
} feature_case;

static bool setup_feature(sim_fixture *f, const feature_case *c)
{
    fr_err err;
    sim_fixture_init(f);
    if (!CHECK_OK(fr_model_load(NULL, c->model, &f->model, &err), &err))
        return false;
    f->model.n_layers = 8;
    f->job.seq = 512;
    f->job.global_batch = 8 * c->dp;
    f->plan.dp = c->dp;
    f->plan.tp = c->tp;
    f->plan.pp = c->pp;
    f->plan.ep = c->ep > 0 ? c->ep : 1;
    f->plan.vpp = c->vpp > 0 ? c->vpp : 1;
    f->plan.schedule = c->schedule;
    f->plan.zero_stage = c->zero;
    f->plan.zero_group = c->zero_group;
    f->plan.is_resharded = c->zero == 3;
    f->plan.n_prefetch = c->zero == 3 ? 1 : 0;
    f->plan.is_sequence_parallel = c->tp > 1;
    f->plan.is_optimizer_offloaded = c->is_offloaded;
    f->plan.is_ep_overlap = c->is_in_turn;
    f->plan.precision = FR_DTYPE_BF16;
    return sim_fixture_cluster(f, "dgx-a100:4", NULL) &&
           sim_fixture_lower(f, 0);
}

static void test_features(void)
{
    static const feature_case features[] = {
        {"llama-3-8b", .dp = 16, .tp = 2, .pp = 1, .zero = 3},
        {"llama-3-8b", .dp = 32, .tp = 1, .pp = 1, .zero = 3, .zero_group = 8},
        {"llama-3-8b", .dp = 16, .tp = 1, .pp = 2, .zero = 2},
        {"llama-3-8b", .dp = 8, .tp = 1, .pp = 4, .vpp = 2,
         .schedule = FR_SCHEDULE_INTERLEAVED},
        {"llama-3-8b", .dp = 4, .tp = 4, .pp = 2, .is_offloaded = true,
         .zero = 1},
        {"mixtral-8x7b", .dp = 16, .tp = 2, .pp = 1, .ep = 8},
        {"mixtral-8x7b", .dp = 8, .tp = 1, .pp = 4, .ep = 4},
        {"mixtral-8x7b", .dp = 16, .tp = 2, .pp = 1, .ep = 8,
         .schedule = FR_SCHEDULE_1F1B, .is_in_turn = true},
        {"mixtral-8x7b", .dp = 8, .tp = 1, .pp = 4, .ep = 4, .vpp = 2,
         .schedule = FR_SCHEDULE_INTERLEAVED, .is_in_turn = true},
    };
    for (size_t i = 0; i < sizeof features / sizeof features[0]; i++) {
        const feature_case *c = &features[i];
        sim_fixture f;
        fr_prediction calls = {0}, instrs = {0};
        if (setup_feature(&f, c)) {
            compare_predictions(&f, FR_REPLAY_CALLS);
            compare_predictions(&f, FR_REPLAY_INSTRUCTIONS);
            if (sim_fixture_predict(&f, FR_REPLAY_CALLS, false, &calls) &&
                sim_fixture_predict(&f, FR_REPLAY_INSTRUCTIONS, false, &instrs))
                CHECK_NEAR(calls.step_s, instrs.step_s, 0.02);
        }
        fr_model_release(&f.model);
        sim_fixture_release(&f);
    }
}

/* ---- how much is folded ------------------------------------------------- */

static int64_t colors(const fold_case *c)
{
    sim_fixture f;
    fr_replay folded = {0};
    int64_t n = -1;
    if (setup(&f, c, true) && replay(&f, FR_REPLAY_AUTO, false, &folded))
        n = folded.n_simulated;
    fr_replay_release(&folded);
    sim_fixture_release(&f);
    return n;
}

/* A regular grid folds to its stages; one slow node of eight in one replica
 * unfolds that replica and no more. */
static void test_counts(void)
{
    fold_case even = {.dp = 8, .tp = 8, .pp = 1, .nodes = 8};
    CHECK_INT(colors(&even), 1);
    even.more = "slow";
    CHECK_INT(colors(&even), 2);
    fold_case stages = {.dp = 4, .tp = 4, .pp = 4, .nodes = 8};
    CHECK_INT(colors(&stages), 4);
    stages.more = "slow"; /* box 1: one stage's half, replicas 2 and 3 */
    CHECK_INT(colors(&stages), 8);
}

CHECK_MAIN({"cpu", test_cpu}, {"gpu instructions", test_gpu_instructions},
           {"gpu calls", test_gpu_calls}, {"jitter", test_jitter},
           {"fabrics", test_fabrics}, {"clusters", test_clusters},
           {"features", test_features}, {"counts", test_counts})
