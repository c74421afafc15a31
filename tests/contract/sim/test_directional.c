/*
 * test_directional.c: what a change of the machine must do to a step: more
 * bandwidth never slows where nothing contends, a narrower bottleneck slows,
 * tensor parallelism across nodes costs, an idle link changes nothing, and
 * all bytes and bandwidths doubled are the same picoseconds.
 */
#include "program/ir/micro_program.h"
#include "tests/contract/sim/sim_fixture.h"
#include "tests/unit/sim/whole_replay.h"

typedef struct machine {
    int n_nics, n_nodes;
    const char *nic, *more;
} machine;

static const char *const plain = "  <fabric kind=\"switch\"/>\n";

/* Step in seconds; 0 when something failed. */
static double step_s(const machine *m, int dp, int tp, int pp,
                     fr_rank_order order, bool is_overlap)
{
    sim_fixture f;
    char xml[4096];
    fr_prediction out = {0};
    sim_fixture_init(&f);
    snprintf(xml, sizeof xml, sim_gpu_xml, m->n_nics, m->nic, m->n_nodes,
             m->more);
    f.plan.execution.cuda_graphs =
        FR_CUDA_GRAPHS_FULL; /* else hosts set the pace */
    f.plan.dp = dp;
    f.plan.tp = tp;
    f.plan.pp = pp;
    f.plan.rank_order = order;
    f.plan.is_overlap = is_overlap;
    f.job.global_batch = 4 * dp;
    int64_t world = (int64_t)dp * tp * pp;
    if (sim_fixture_cluster(&f, "gpus.xml", xml) &&
        sim_fixture_lower(&f, (world + m->n_nodes - 1) / m->n_nodes))
        (void)sim_fixture_predict(&f, FR_REPLAY_AUTO, false, &out);
    sim_fixture_release(&f);
    CHECK(out.step_s > 0);
    return out.step_s;
}

static void test_more_bandwidth(void)
{
    static const char *const nics[] = {"25Gb/s", "50Gb/s", "100Gb/s", "200Gb/s",
                                       "400Gb/s"};
    static const int plans[][3] = {{16, 1, 1}, {2, 8, 1}, {8, 2, 1}, {4, 2, 2}};
    for (size_t p = 0; p < sizeof plans / sizeof plans[0]; p++) {
        double last_s = INFINITY;
        for (size_t i = 0; i < sizeof nics / sizeof nics[0]; i++) {
            machine m = {8, 2, nics[i], plain};
            double s = step_s(&m, plans[p][0], plans[p][1], plans[p][2],
                              FR_RANK_ORDER_TP_DP_PP, false);
            CHECK(s <= last_s);
            last_s = s;
        }
    }
}

static const char tree_xml[] =
    "  <fabric kind=\"fat-tree\">\n"
    "    <level down=\"%d\" oversubscription=\"%g\" latency=\"0s\"/>\n"
    "    <level down=\"4\" latency=\"0s\"/>\n"
    "  </fabric>\n";

/* Replicas lie across leaves: the way up is the bottleneck. */
static void test_bottleneck(void)
{
    double last_s = 0;
    for (double over = 1; over <= 16; over *= 2) {
        char fabric[512];
        snprintf(fabric, sizeof fabric, tree_xml, 2, over);
        machine m = {8, 8, "200Gb/s", fabric};
        double s = step_s(&m, 64, 1, 1, FR_RANK_ORDER_TP_DP_PP, false);
        /* A ring leaves a leaf of two nodes with half of its traffic. */
        CHECK(over <= 2 ? s >= last_s : s > 1.05 * last_s);
        last_s = s;
    }
    /* All under one leaf: nothing goes up. */
    char wide[512], narrow[512];
    snprintf(wide, sizeof wide, tree_xml, 8, 1.0);
    snprintf(narrow, sizeof narrow, tree_xml, 8, 16.0);
    machine a = {8, 8, "200Gb/s", wide}, b = {8, 8, "200Gb/s", narrow};
    CHECK(step_s(&a, 64, 1, 1, FR_RANK_ORDER_TP_DP_PP, false) ==
          step_s(&b, 64, 1, 1, FR_RANK_ORDER_TP_DP_PP, false));
}

static void test_tp_across_nodes(void)
{
    machine m = {8, 2, "200Gb/s", plain};
    double inside_s = step_s(&m, 2, 8, 1, FR_RANK_ORDER_TP_DP_PP, false);
    double across_s = step_s(&m, 2, 8, 1, FR_RANK_ORDER_DP_TP_PP, false);
    CHECK(across_s > 1.02 * inside_s);
}

static const char links_xml[] =
    "  <fabric kind=\"links\">\n"
    "    <switch id=\"a\"/><switch id=\"b\"/>\n"
    "    <link id=\"l0\" from=\"box-0\" to=\"a\" bandwidth=\"%s\" "
    "latency=\"1us\"/>\n"
    "    <link id=\"l1\" from=\"box-1\" to=\"a\" bandwidth=\"400Gb/s\" "
    "latency=\"1us\"/>\n"
    "    <link id=\"idle\" from=\"a\" to=\"b\" bandwidth=\"%s\" "
    "latency=\"1us\"/>\n"
    "  </fabric>\n";

static void test_idle_link(void)
{
    char slow[1024], fast[1024], narrow[1024];
    snprintf(slow, sizeof slow, links_xml, "400Gb/s", "1Gb/s");
    snprintf(fast, sizeof fast, links_xml, "400Gb/s", "800Gb/s");
    snprintf(narrow, sizeof narrow, links_xml, "50Gb/s", "800Gb/s");
    machine a = {8, 2, "400Gb/s", slow}, b = {8, 2, "400Gb/s", fast};
    machine c = {8, 2, "400Gb/s", narrow};
    double a_s = step_s(&a, 16, 1, 1, FR_RANK_ORDER_TP_DP_PP, true);
    CHECK(a_s == step_s(&b, 16, 1, 1, FR_RANK_ORDER_TP_DP_PP, true));
    CHECK(step_s(&c, 16, 1, 1, FR_RANK_ORDER_TP_DP_PP, true) > a_s);
}

/* ---- PCIe ---------------------------------------------------------------- */

static const char pcie_xml[] =
    "<cluster name=\"pcie\">\n"
    "  <device id=\"gpu\" like=\"a100-pcie-80g\"/>\n"
    "  <node-type id=\"box\" device=\"gpu\" devices=\"8\">\n"
    "    <intra kind=\"pcie\" bandwidth=\"24GB/s\" latency=\"4us\"/>\n"
    "    <nic count=\"1\" bandwidth=\"400Gb/s\" latency=\"5us\"/>\n"
    "    <pcie switches=\"%d\" uplink=\"%s\"/>\n"
    "  </node-type>\n"
    "  <group id=\"box\" node-type=\"box\" count=\"2\"/>\n"
    "  <fabric kind=\"switch\"/>\n"
    "</cluster>\n";

static double pcie_s(int n_switches, const char *uplink)
{
    sim_fixture f;
    char xml[2048];
    fr_prediction out = {0};
    sim_fixture_init(&f);
    snprintf(xml, sizeof xml, pcie_xml, n_switches, uplink);
    f.plan.dp = 16;
    f.job.global_batch = 16;
    if (sim_fixture_cluster(&f, "pcie.xml", xml) && sim_fixture_lower(&f, 8))
        (void)sim_fixture_predict(&f, FR_REPLAY_AUTO, false, &out);
    sim_fixture_release(&f);
    CHECK(out.step_s > 0);
    return out.step_s;
}

/* Data that leave the node go up from the switches without the NIC. */
static void test_pcie(void)
{
    CHECK(pcie_s(4, "5GB/s") > 1.05 * pcie_s(4, "10GB/s"));
    CHECK(pcie_s(4, "10GB/s") > pcie_s(4, "200GB/s"));
    CHECK(pcie_s(1, "5GB/s") == pcie_s(1, "200GB/s"));
}

/* ---- scaling ------------------------------------------------------------ */

static const char scaled_xml[] =
    "<cluster name=\"hosts\">\n"
    "  <device id=\"core\" kind=\"cpu\" cores=\"16\" memory=\"64GiB\"\n"
    "          memory-bandwidth=\"%dGB/s\">\n"
    "    <peak dtype=\"fp32\" rate=\"317GFLOP/s\"/>\n"
    "  </device>\n"
    "  <node-type id=\"host\" device=\"core\">\n"
    "    <intra kind=\"shared-memory\" bandwidth=\"%dGB/s\" latency=\"1us\"/>\n"
    "    <nic bandwidth=\"%dGb/s\" latency=\"20us\"/>\n"
    "  </node-type>\n"
    "  <group id=\"host\" node-type=\"host\" count=\"4\"/>\n"
    "  <fabric kind=\"fat-tree\">\n"
    "    <level down=\"2\" oversubscription=\"2.385\" latency=\"1us\"/>\n"
    "    <level down=\"2\" latency=\"1us\"/>\n"
    "  </fabric>\n"
    "</cluster>\n";

/* An all-reduce of `scale` MiB over eight ranks beside one of a quarter. */
static int64_t reduce_ps(int scale)
{
    sim_fixture f;
    char xml[2048];
    fr_err err;
    fr_micro *micro;
    fr_replay replay = {0};
    int64_t ps = 0;
    sim_fixture_init(&f);
    snprintf(xml, sizeof xml, scaled_xml, 100 * scale, 8 * scale, 10 * scale);
    f.plan.dp = 8;
    f.node_of_rank = calloc(8, sizeof *f.node_of_rank);
    for (int i = 0; i < 8; i++)
        f.node_of_rank[i] = i / 2;
    if (sim_fixture_cluster(&f, "hosts.xml", xml) &&
        CHECK_OK(fr_micro_create(&f.plan, &micro, &err), &err)) {
        static const fr_lane lanes[] = {FR_LANE_COMPUTE, FR_LANE_DP};
        for (int i = 0; i < 2; i++) {
            fr_instr instr = fr_micro_communicate(
                FR_OP_ALL_REDUCE, FR_AXIS_DP, FR_COLLECTIVE_RING,
                (uint64_t)scale << (i == 0 ? 20 : 18), 0, 1 << 26);
            uint32_t segment =
                fr_micro_segment(micro, lanes[i], "reduce", &instr, 1);
            (void)fr_micro_call(micro, 0, segment, UINT32_MAX);
        }
        if (CHECK_OK(fr_micro_finish(micro, 1 << 28, &f.program, &err), &err) &&
            CHECK_OK(replay_with(&whole_replay, f.program, f.costs, &f.cluster,
                                 f.node_of_rank, &replay, &err),
                     &err))
            ps = replay.makespan_ps;
    }
    fr_replay_release(&replay);
    sim_fixture_release(&f);
    return ps;
}

static void test_doubled(void)
{
    int64_t ps = reduce_ps(1);
    CHECK(ps > 0);
    CHECK_INT(reduce_ps(2), ps);
    CHECK_INT(reduce_ps(8), ps);
}

CHECK_MAIN({"more bandwidth", test_more_bandwidth},
           {"bottleneck", test_bottleneck},
           {"tp across nodes", test_tp_across_nodes},
           {"idle link", test_idle_link}, {"pcie", test_pcie},
           {"doubled", test_doubled})
