/*
 * test_stragglers.c: waiting for slower ranks is a part of its own: what
 * jitter and a slow node add to a step is booked there and nowhere else.
 */
#include "tests/contract/sim/sim_fixture.h"

static bool predict(const char *more, int tp, int pp, fr_prediction *out)
{
    sim_fixture f;
    char xml[2048];
    sim_fixture_init(&f);
    snprintf(xml, sizeof xml, sim_gpu_xml, 8, "200Gb/s", 2, more);
    f.model.n_layers = 8;
    f.model.hidden = 4096;
    f.model.ffn_hidden = 16384;
    f.model.head_dim = 4096 / f.model.n_heads;
    f.plan.dp = 2;
    f.plan.tp = tp;
    f.plan.pp = pp;
    f.plan.is_overlap = false;
    f.plan.execution.cuda_graphs = FR_CUDA_GRAPHS_FULL;
    f.job.global_batch = 8;
    bool is_done = sim_fixture_cluster(&f, "gpus.xml", xml) &&
                   sim_fixture_lower(&f, (int64_t)tp * pp) &&
                   CHECK(sim_fixture_predict(&f, FR_REPLAY_CALLS, false, out));
    sim_fixture_release(&f);
    return is_done;
}

/* Checks that `more` changes the part of stragglers alone. */
static void check_booked(const char *more, int tp, double tolerance)
{
    fr_prediction calm, other;
    if (!predict("  <fabric kind=\"switch\"/>\n", tp, 1, &calm) ||
        !predict(more, tp, 1, &other))
        return;
    double longer_s = other.step_s - calm.step_s;
    CHECK(longer_s > 0);
    CHECK_NEAR(calm.breakdown_s[FR_PART_STRAGGLERS], 0, 1e-15);
    CHECK_WITHIN(other.breakdown_s[FR_PART_STRAGGLERS], longer_s,
                 tolerance * longer_s);
    for (int i = 0; i < FR_PART_N; i++)
        if (i != FR_PART_STRAGGLERS)
            CHECK_WITHIN(other.breakdown_s[i], calm.breakdown_s[i],
                         tolerance * longer_s);
}

static void test_jitter(void)
{
    static const char *const jitter = "  <fabric kind=\"switch\"/>\n"
                                      "  <jitter compute=\"2.385%\"/>\n";
    check_booked(jitter, 1, 0.02);
    check_booked(jitter, 8, 0.02);
}

/* The fast node waits; the step that is looked at is the slow one's, or a fast
 * one's that waited for it: its time is stretched, the parts say by what. */
static void test_slow_node(void)
{
    fr_prediction calm, slow;
    if (!predict("  <fabric kind=\"switch\"/>\n", 1, 1, &calm) ||
        !predict("  <fabric kind=\"switch\"/>\n"
                 "  <slow node=\"box-1\" compute=\"0.77\"/>\n",
                 1, 1, &slow))
        return;
    double longer_s = slow.step_s - calm.step_s;
    CHECK(longer_s > 0.1 * calm.breakdown_s[FR_PART_COMPUTE]);
    CHECK_WITHIN(slow.breakdown_s[FR_PART_EXPOSED_DP],
                 calm.breakdown_s[FR_PART_EXPOSED_DP], 0.01 * longer_s);
    CHECK(slow.breakdown_s[FR_PART_OPTIMIZER] <
          calm.breakdown_s[FR_PART_OPTIMIZER] + 0.3 * longer_s);
}

/* The last stage of a pipeline waits for the first: the wait is its bubble,
 * neither optimizer nor straggler. */
static void test_pipeline(void)
{
    fr_prediction p;
    if (!predict("  <fabric kind=\"switch\"/>\n", 1, 4, &p))
        return;
    CHECK_NEAR(p.breakdown_s[FR_PART_STRAGGLERS], 0, 1e-15);
    CHECK(p.breakdown_s[FR_PART_BUBBLE] > 0.2 * p.step_s);
    CHECK(p.breakdown_s[FR_PART_OPTIMIZER] < 0.1 * p.step_s);
}

CHECK_MAIN({"jitter", test_jitter}, {"slow node", test_slow_node},
           {"pipeline", test_pipeline})
