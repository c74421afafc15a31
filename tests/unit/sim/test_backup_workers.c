/*
 * Backup workers: order statistics against published values (Teichroew, Annals
 * of Mathematical Statistics 27, 1956), and which slow nodes are not waited
 * for.
 */
#include "reliability/backup_workers.h"
#include "tests/check.h"

static void test_order_means(void)
{
    CHECK_WITHIN(fr_order_mean(1, 1), 0, 1e-9);
    CHECK_NEAR(fr_order_mean(2, 2), 0.5641895835, 1e-8);
    CHECK_WITHIN(fr_order_mean(3, 2), 0, 1e-9);
    CHECK_NEAR(fr_order_mean(5, 4), 0.4950189705, 1e-8);
    CHECK_NEAR(fr_order_mean(5, 5), 1.1629644736, 1e-8);
    CHECK_NEAR(fr_order_mean(20, 19), 1.4076040959, 1e-8);
    CHECK_NEAR(fr_order_mean(20, 20), 1.8674750598, 1e-8);
}

static fr_plan plan_of(int dp, int tp)
{
    fr_plan plan;

    fr_plan_init(&plan);
    plan.dp = dp;
    plan.tp = tp;
    return plan;
}

static const char two_slow[] =
    "<cluster name=\"c\"><device id=\"g\" kind=\"gpu\" cores=\"80\" "
    "memory=\"16GiB\"><peak dtype=\"fp32\" rate=\"10TFLOP/s\"/></device>"
    "<node-type id=\"n\" device=\"g\" devices=\"2\"><intra kind=\"pcie\" "
    "bandwidth=\"10GB/s\"/><nic bandwidth=\"100Gb/s\" latency=\"2us\"/>"
    "</node-type><group id=\"a\" node-type=\"n\" count=\"4\"/>"
    "<fabric kind=\"switch\"/><jitter compute=\"3%\"/>"
    "<slow node=\"a-1\" compute=\"0.8\"/>"
    "<slow node=\"a-3\" compute=\"0.5\"/></cluster>";

/* Eight replicas, two on a node: the slowest node goes first, whole or not at
 * all. */
static void test_slow_nodes(void)
{
    static const double left[5][2] = {
        {0.8, 0.5}, {0.8, 0.5}, {0.8, 1}, {0.8, 1}, {1, 1}};
    const fr_plan plan = plan_of(8, 1);
    fr_cluster cluster, seen;
    fr_err err = {0};

    if (!CHECK_OK(fr_cluster_parse("c.xml", two_slow, sizeof two_slow - 1,
                                   &cluster, &err),
                  &err))
        return;
    for (int64_t n = 0; n < 5; n++) {
        if (!CHECK_OK(fr_backup_cluster(&cluster, &plan, n, &seen, &err), &err))
            break;
        CHECK_NEAR(seen.slow[0].compute_frac, left[n][0], 1e-12);
        CHECK_NEAR(seen.slow[1].compute_frac, left[n][1], 1e-12);
        fr_cluster_release(&seen);
    }
    fr_cluster_release(&cluster);
}

/* With tensor parallelism ranks of one replica wait for each other too. */
static void test_jitter(void)
{
    const fr_plan flat = plan_of(8, 1), deep = plan_of(4, 2);
    fr_cluster cluster, seen;
    fr_err err = {0};

    if (!CHECK_OK(fr_cluster_parse("c.xml", two_slow, sizeof two_slow - 1,
                                   &cluster, &err),
                  &err))
        return;
    if (CHECK_OK(fr_backup_cluster(&cluster, &flat, 1, &seen, &err), &err)) {
        CHECK_NEAR(seen.jitter_compute_frac,
                   0.03 * fr_order_mean(8, 7) / fr_order_mean(8, 8), 1e-9);
        fr_cluster_release(&seen);
    }
    if (CHECK_OK(fr_backup_cluster(&cluster, &deep, 1, &seen, &err), &err)) {
        CHECK_NEAR(seen.jitter_compute_frac, 0.03, 1e-12);
        fr_cluster_release(&seen);
    }
    fr_cluster_release(&cluster);
}

static void test_refused(void)
{
    fr_plan plan = plan_of(4, 1);
    fr_err err = {0};

    CHECK_OK(fr_backup_check(&plan, 3, &err), &err);
    CHECK_FAILS(fr_backup_check(&plan, 4, &err), FR_USAGE, &err);
    plan.zero_stage = 1;
    CHECK_FAILS(fr_backup_check(&plan, 1, &err), FR_USAGE, &err);
    plan.zero_stage = 0;
    plan.ep = 2;
    CHECK_FAILS(fr_backup_check(&plan, 1, &err), FR_USAGE, &err);
}

CHECK_MAIN({"order_means", test_order_means}, {"slow_nodes", test_slow_nodes},
           {"jitter", test_jitter}, {"refused", test_refused})
