/*
 * test_offload_parts.c: what a step waits for copies to the host's memory and
 * back is a part of its own: neither the optimizer's nor that of gradients.
 */
#include "spec/catalog/catalog.h"
#include "tests/contract/sim/sim_fixture.h"

static void predict(double activations, bool is_optimizer, fr_prediction *out)
{
    sim_fixture f;
    fr_err err;
    memset(out, 0, sizeof *out);
    sim_fixture_init(&f);
    small_model(&f.model, 8, 16, 64, 5003, 1024);
    f.job.seq = 1024;
    f.job.global_batch = 32;
    f.plan.precision = FR_DTYPE_BF16;
    f.plan.dp = 8;
    f.plan.micro_batch = 4;
    f.plan.zero_stage = 1;
    f.plan.activation_offload_frac = activations;
    f.plan.is_optimizer_offloaded = is_optimizer;
    if (CHECK_OK(fr_catalog_cluster("dgx-h100", 1, &f.cluster, &err), &err) &&
        CHECK_OK(fr_cost_model_create(NULL, &f.cluster, &f.costs, &err),
                 &err) &&
        sim_fixture_lower(&f, 8))
        sim_fixture_predict(&f, FR_REPLAY_AUTO, false, out);
    sim_fixture_release(&f);
}

static double sum_of(const fr_prediction *p)
{
    double sum_s = 0;
    for (int part = 0; part < FR_PART_N; part++)
        sum_s += p->breakdown_s[part];
    return sum_s;
}

static void test_activations(void)
{
    fr_prediction plain, away;
    predict(0, false, &plain);
    predict(1, false, &away);
    const double longer_s = away.step_s - plain.step_s;
    CHECK(plain.breakdown_s[FR_PART_EXPOSED_OFFLOAD] <= 0);
    CHECK(longer_s > 0.1 * plain.step_s);
    CHECK_NEAR(away.breakdown_s[FR_PART_OPTIMIZER],
               plain.breakdown_s[FR_PART_OPTIMIZER], 0.01);
    CHECK(away.breakdown_s[FR_PART_EXPOSED_OFFLOAD] > 0.8 * longer_s);
    CHECK_NEAR(sum_of(&away), away.step_s, 1e-9);
    /* Devices that wait are not at work: the energy of a step grows less. */
    CHECK(away.cost.kwh / away.step_s < plain.cost.kwh / plain.step_s);
}

static void test_optimizer(void)
{
    fr_prediction plain, away;
    predict(0, false, &plain);
    predict(0, true, &away);
    CHECK(away.breakdown_s[FR_PART_EXPOSED_OFFLOAD] > 0);
    CHECK(away.breakdown_s[FR_PART_EXPOSED_DP] <
          1.01 * plain.breakdown_s[FR_PART_EXPOSED_DP]);
    CHECK(away.breakdown_s[FR_PART_OPTIMIZER] >
          plain.breakdown_s[FR_PART_OPTIMIZER]);
    CHECK_NEAR(sum_of(&away), away.step_s, 1e-9);
}

CHECK_MAIN({"activations", test_activations}, {"optimizer", test_optimizer})
