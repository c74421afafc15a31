/*
 * test_stage_memory.c: the parts of a stage's memory add up to what is
 * allocated, and those of the tightest rank to its peak: to the byte.
 */
#include "tests/contract/sim/sim_fixture.h"

static void check_stage(const fr_stage_memory *s)
{
    CHECK_INT(s->parameters_bytes + s->gradients_bytes + s->optimizer_bytes +
                  s->activations_bytes + s->buffers_bytes +
                  s->workspaces_bytes + s->alignment_bytes,
              s->allocated_bytes);
    /* At most 512 bytes a tensor, and a piece of up to 1 MiB that is not
     * split: no catch-all that hides a part. */
    CHECK(s->alignment_bytes < s->allocated_bytes / 2);
    CHECK(s->allocated_bytes <= s->reserved_bytes);
    CHECK(s->reserved_bytes <= s->device_bytes);
}

static void check_plan(const char *cluster, int pp, int zero, int64_t hidden)
{
    sim_fixture f;
    fr_prediction p;
    sim_fixture_init(&f);
    f.model.hidden = hidden;
    f.model.ffn_hidden = 4 * hidden;
    f.model.head_dim = hidden / f.model.n_heads;
    f.plan.dp = 2;
    f.plan.pp = pp;
    f.plan.zero_stage = zero;
    f.job.global_batch = 8;
    if (sim_fixture_cluster(&f, cluster, NULL) && sim_fixture_lower(&f, 0) &&
        CHECK(sim_fixture_predict(&f, FR_REPLAY_AUTO, false, &p))) {
        bool is_gpu = f.cluster.devices[0].kind == FR_DEVICE_GPU;
        CHECK_INT(p.memory.n_stages, is_gpu ? pp : 0);
        for (int32_t i = 0; i < p.memory.n_stages; i++) {
            check_stage(&p.memory.stages[i]);
            CHECK(p.memory.stages[i].workspaces_bytes > 0);
        }
        CHECK_INT(p.memory.parameters_bytes + p.memory.gradients_bytes +
                      p.memory.optimizer_bytes + p.memory.activations_bytes +
                      p.memory.buffers_bytes + p.memory.overhead_bytes,
                  p.memory.peak_bytes);
        CHECK_INT(p.memory.overhead_bytes - p.memory.workspaces_bytes -
                      p.memory.alignment_bytes,
                  p.memory.device_bytes - p.memory.allocated_bytes);
    }
    sim_fixture_release(&f);
}

static void test_adds_up(void)
{
    static const char *const clusters[] = {"dgx-h100:1", "dgx-a100:1",
                                           "two-hosts-1gbit"};
    for (size_t i = 0; i < sizeof clusters / sizeof clusters[0]; i++)
        for (int zero = 0; zero <= 3; zero++)
            for (int pp = 1; pp <= (i < 2 ? 4 : 1); pp *= 2)
                for (int64_t hidden = 128; hidden <= 2048; hidden *= 4)
                    check_plan(clusters[i], pp, zero, hidden);
}

CHECK_MAIN({"parts add up", test_adds_up})
