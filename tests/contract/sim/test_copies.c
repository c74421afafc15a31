/*
 * test_copies.c: ranks that are not listed change nothing.  Steps, memory, cost
 * and the scopes of groups are those of all ranks listed, over random grids on
 * clusters with and without narrow links; and a million ranks are as few as
 * those of some nodes.
 */
#include "plan/decide/grid.h"
#include "tests/contract/sim/sim_fixture.h"

typedef struct grid_case {
    int dp, tp, pp, cp, zero, zero_group, ep;
    bool is_ring; /* of cp, with fused attention */
    fr_rank_order order;
} grid_case;

static const char pcie_xml[] =
    "<cluster name=\"pcie\">\n"
    "  <device id=\"gpu\" like=\"a100-pcie-80g\"/>\n"
    "  <node-type id=\"box\" device=\"gpu\" devices=\"8\">\n"
    "    <intra kind=\"pcie\" bandwidth=\"24GB/s\" latency=\"4us\"/>\n"
    "    <nic count=\"1\" bandwidth=\"100Gb/s\" latency=\"5us\"/>\n"
    "    <pcie switches=\"4\" uplink=\"17GB/s\"/>\n"
    "  </node-type>\n"
    "  <group id=\"box\" node-type=\"box\" count=\"512\"/>\n"
    "  <fabric kind=\"switch\"/>\n"
    "</cluster>\n";

static const char *const switched =
    "  <fabric kind=\"switch\"/>\n"
    "  <jitter compute=\"0.02385\" network=\"0.017\"/>\n";
static const char *const narrow =
    "  <fabric kind=\"fat-tree\">\n"
    "    <level down=\"2\" oversubscription=\"2.385\" latency=\"1us\"/>\n"
    "    <level down=\"256\" latency=\"1us\"/>\n"
    "  </fabric>\n";

static bool setup(sim_fixture *f, const grid_case *c, const char *xml)
{
    sim_fixture_init(f);
    fr_plan *p = &f->plan;
    p->dp = c->dp;
    p->tp = c->tp;
    p->pp = c->pp;
    p->cp = c->cp > 0 ? c->cp : 1;
    p->ep = c->ep > 0 ? c->ep : 1;
    p->zero_stage = c->zero;
    p->zero_group = c->zero_group;
    p->rank_order = c->order;
    p->is_flash = c->is_ring;
    p->cp_kind = c->is_ring ? FR_CP_RING : FR_CP_ALL_GATHER;
    p->is_overlap = true;
    p->bucket_bytes = 4 << 20;
    if (c->ep > 0) {
        f->model.n_experts = 8;
        f->model.n_experts_per_token = 2;
        f->model.expert_ffn_hidden = f->model.ffn_hidden;
    }
    f->job.global_batch = (int64_t)c->dp * (c->pp > 1 ? 4 : 1);
    return sim_fixture_cluster(f, "test.xml", xml) && sim_fixture_lower(f, 0);
}

/* The groups of the listed ranks are the same among all ranks. */
static void compare_scopes(const fr_rank_layout *few, const fr_rank_layout *all)
{
    for (int32_t r = 0; r < few->n_ranks; r++) {
        int32_t number = (int32_t)fr_rank_layout_number(few, r);
        CHECK_INT(few->local[r], all->local[number]);
        CHECK_INT(few->program_of_rank[r], all->program_of_rank[number]);
        for (int axis = 0; axis < FR_AXIS_N; axis++) {
            const fr_rank_groups *p = &few->axes[axis], *q = &all->axes[axis];
            if (p->n_groups == 0 || q->n_groups == 0) {
                CHECK_INT(p->n_groups, q->n_groups);
                continue;
            }
            const fr_comm_scope *a = &p->scopes[p->group_of_rank[r]];
            const fr_comm_scope *b = &q->scopes[q->group_of_rank[number]];
            CHECK_INT(a->n_group, b->n_group);
            CHECK_INT(a->n_nodes, b->n_nodes);
            CHECK_INT(a->ranks_on_node, b->ranks_on_node);
            CHECK_INT(a->node_types, b->node_types);
            CHECK_INT(fr_rank_layout_meets(few, axis),
                      fr_rank_layout_meets(all, axis));
        }
    }
}

static bool predict(const sim_fixture *f, bool is_whole, fr_prediction *out)
{
    fr_err err;
    fr_placement placement = {.n_ranks = fr_plan_world(&f->plan),
                              .node_of_rank = f->node_of_rank,
                              .by_framework = fr_gpu_is_by_framework(
                                  &f->plan, &f->cluster.devices[0])};
    fr_replay_options replay = {.is_whole = is_whole};
    fr_simulate_options options = {.replay = &replay};
    return CHECK_OK(fr_simulate(f->program, f->costs, &f->cluster, &placement,
                                &options, out, &err),
                    &err);
}

static void compare_predictions(const sim_fixture *f)
{
    fr_prediction a, b;
    if (!predict(f, false, &a) || !predict(f, true, &b))
        return;
    a.sim.wall_s = b.sim.wall_s = 0;
    CHECK(a.step_s == b.step_s && a.step_s > 0);
    CHECK(a.step_s_p5 == b.step_s_p5);
    CHECK(a.mfu == b.mfu && a.hfu == b.hfu);
    for (int part = 0; part < FR_PART_N; part++)
        CHECK(a.breakdown_s[part] == b.breakdown_s[part]);
    CHECK_INT(a.memory.peak_bytes, b.memory.peak_bytes);
    CHECK(a.cost.kwh == b.cost.kwh && a.cost.usd_total == b.cost.usd_total);
    CHECK_INT(a.sim.events, b.sim.events);
    CHECK_INT(a.sim.ranks_simulated, b.sim.ranks_simulated);
    CHECK_INT(a.sim.ranks_total, b.sim.ranks_total);
}

/* Returns how many ranks of the plan each listed one is. */
static int64_t compare(const grid_case *c, const char *xml)
{
    sim_fixture f;
    fr_rank_layout few = {0}, all = {0};
    fr_err err;
    int64_t n_copies = 0;
    if (setup(&f, c, xml) &&
        CHECK_OK(fr_rank_layout_init(f.program, &f.cluster, f.node_of_rank,
                                     false, &few, &err),
                 &err) &&
        CHECK_OK(fr_rank_layout_init(f.program, &f.cluster, f.node_of_rank,
                                     true, &all, &err),
                 &err)) {
        CHECK_INT(all.n_copies, 1);
        CHECK_INT(few.n_ranks * few.n_copies, all.n_ranks);
        compare_scopes(&few, &all);
        compare_predictions(&f);
        n_copies = few.n_copies;
    }
    fr_rank_layout_release(&few);
    fr_rank_layout_release(&all);
    sim_fixture_release(&f);
    return n_copies;
}

/* 0 .. n - 1, the same in every run. */
static int draw(uint64_t *state, int n)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (int)((*state >> 33) % (uint64_t)n);
}

static grid_case random_case(uint64_t *state)
{
    static const int dps[] = {2, 3, 4, 6, 8, 12, 16, 24, 32};
    grid_case c = {.dp = dps[draw(state, 9)],
                   .tp = 1 << draw(state, 4),
                   .pp = 1 << draw(state, 3),
                   .cp = 1 << draw(state, 2),
                   .zero = draw(state, 4),
                   .is_ring = draw(state, 2) == 0,
                   .order = (fr_rank_order)draw(state, FR_RANK_ORDER_N)};
    if (c.pp > 1 && c.zero > 1)
        c.zero = 1;
    if (c.zero > 0 && draw(state, 3) == 0)
        c.zero_group = c.dp % 2 == 0 && c.dp > 2 ? c.dp / 2 : 0;
    if (draw(state, 4) == 0 && c.cp == 1) {
        c.ep = c.dp % 4 == 0 ? 4 : 1;
        c.zero_group = 0;
    }
    return c;
}

static void test_random(void)
{
    uint64_t state = 2385;
    int n_repeated = 0, n_narrow = 0;
    char wide_xml[2048], narrow_xml[2048];
    snprintf(wide_xml, sizeof wide_xml, sim_gpu_xml, 4, "200Gb/s", 512,
             switched);
    snprintf(narrow_xml, sizeof narrow_xml, sim_gpu_xml, 4, "200Gb/s", 512,
             narrow);
    for (int i = 0; i < 120; i++) {
        grid_case c = random_case(&state);
        n_repeated += compare(&c, wide_xml) > 1;
        n_repeated += compare(&c, pcie_xml) > 1;
        if (i % 8 == 0)
            n_narrow += compare(&c, narrow_xml) > 1;
    }
    CHECK(n_repeated > 100);
    CHECK_INT(n_narrow, 0); /* links of switches are not all alike */
}

/* Ranks that are listed of a million, and of as many as fill no node. */
static void test_million(void)
{
    static const struct {
        grid_case grid;
        int64_t n_listed;
    } rows[] = {
        {{.dp = 1000000, .tp = 1, .pp = 1}, 8},
        {{.dp = 62500, .tp = 2, .pp = 8, .zero = 1}, 64},
        {{.dp = 62500,
          .tp = 2,
          .pp = 8,
          .zero = 1,
          .order = FR_RANK_ORDER_TP_PP_DP},
         16},
        {{.dp = 125000, .tp = 8, .pp = 1, .zero = 3, .zero_group = 8}, 64},
        {{.dp = 12345, .tp = 2, .pp = 1}, 24690},
    };
    char xml[2048];
    snprintf(xml, sizeof xml, sim_gpu_xml, 8, "400Gb/s", 125000, switched);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sim_fixture f;
        fr_rank_layout layout = {0};
        fr_err err;
        if (setup(&f, &rows[i].grid, xml) &&
            CHECK_OK(fr_rank_layout_init(f.program, &f.cluster, f.node_of_rank,
                                         false, &layout, &err),
                     &err))
            CHECK_INT(layout.n_ranks, rows[i].n_listed);
        fr_rank_layout_release(&layout);
        sim_fixture_release(&f);
    }
}

/* Blocks of an odd number of ranks begin at ever other places of a node: next
 * to no two ranks are alike, which nobody waits for. */
static void check_bounded(bool is_bounded)
{
    const grid_case odd = {
        .dp = 15625, .tp = 8, .pp = 8, .order = FR_RANK_ORDER_DP_TP_PP};
    const fr_replay_options options = {.is_bounded = is_bounded};
    char xml[2048];
    sim_fixture f;
    fr_err err;
    fr_replay replay;
    snprintf(xml, sizeof xml, sim_gpu_xml, 8, "400Gb/s", 125000, switched);
    if (setup(&f, &odd, xml) &&
        CHECK_FAILS(fr_replay_prepare(f.program, f.costs, &f.cluster,
                                      f.node_of_rank, &options, &replay, &err),
                    FR_INFEASIBLE, &err))
        CHECK(strstr(err.text, "kinds of ranks") != NULL);
    sim_fixture_release(&f);
}

static void test_bounded(void)
{
    check_bounded(true);
    check_bounded(false);
}

CHECK_MAIN({"random grids", test_random}, {"a million", test_million},
           {"bounded", test_bounded})
