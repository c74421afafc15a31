/*
 * test_replay_host.c: hosts that issue what their devices run: chains against
 * a queue run instruction by instruction, steps against what can be said by
 * hand.
 */
#include "core/numbers/rng.h"
#include "cost_models/compute/host_time.h"
#include "sim/replay/replay_host.h"
#include "tests/contract/sim/sim_fixture.h"

static int64_t latest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The queue: one thread issues, one device runs. */
typedef struct queue {
    int64_t host_ps, device_ps;
} queue;

static void run_one(queue *q, int64_t host_ps, int64_t ps, bool is_held)
{
    q->host_ps += host_ps;
    q->device_ps = latest(q->device_ps, q->host_ps) + ps;
    if (is_held)
        q->host_ps = latest(q->host_ps, q->device_ps);
}

static void test_chains(void)
{
    fr_err err;
    fr_rng *rng = NULL;
    if (!CHECK_OK(fr_rng_create(2385, &rng, &err), &err))
        return;
    for (int i = 0; i < 200; i++) {
        fr_host_chain chain = fr_host_chain_empty(), half = chain;
        int64_t device_ps = (int64_t)fr_rng_below(rng, 5000);
        int64_t host_ps = (int64_t)fr_rng_below(rng, 5000);
        queue q = {host_ps, device_ps};
        uint64_t n = 1 + fr_rng_below(rng, 20), cut = fr_rng_below(rng, n);
        for (uint64_t k = 0; k < n; k++) {
            int64_t h = (int64_t)fr_rng_below(rng, 900);
            int64_t d = (int64_t)fr_rng_below(rng, 1100);
            bool is_held = fr_rng_below(rng, 7) == 0;
            fr_host_chain_add(k < cut ? &chain : &half, h, d, is_held);
            run_one(&q, h, d, is_held);
        }
        fr_host_chain_append(&chain, &half);
        CHECK_INT(fr_host_chain_device(&chain, device_ps, host_ps),
                  q.device_ps);
        CHECK_INT(fr_host_chain_host(&chain, device_ps, host_ps), q.host_ps);
    }
    fr_rng_destroy(rng);
}

static const char gpu_xml[] =
    "<cluster name=\"gpu\">\n"
    "  <device id=\"gpu\" kind=\"gpu\" memory=\"80GiB\"\n"
    "          memory-bandwidth=\"3350GB/s\">\n"
    "    <peak dtype=\"fp32\" rate=\"67TFLOP/s\"/>\n"
    "  </device>\n"
    "  <node-type id=\"box\" device=\"gpu\" host-speed=\"%s\"/>\n"
    "  <group id=\"box\" node-type=\"box\"/>\n"
    "</cluster>\n";

/* Seconds of a step of one rank, and of it where nothing runs. */
static double step_of(int64_t hidden, int64_t seq, fr_kernel_set kernels,
                      fr_cuda_graphs graphs, fr_replay_detail detail,
                      const char *speed, double *launch_s)
{
    sim_fixture f;
    char xml[2048];
    fr_prediction p = {0};
    sim_fixture_init(&f);
    snprintf(xml, sizeof xml, gpu_xml, speed);
    f.model.hidden = hidden;
    f.model.ffn_hidden = 4 * hidden;
    f.model.head_dim = hidden / f.model.n_heads;
    f.model.n_layers = 8;
    f.model.max_seq = f.job.seq = seq;
    f.plan.execution.kernels = kernels;
    f.plan.execution.cuda_graphs = graphs;
    f.job.global_batch = 4;
    if (sim_fixture_cluster(&f, "gpus.xml", xml) && sim_fixture_lower(&f, 1))
        CHECK(sim_fixture_predict(&f, detail, false, &p));
    sim_fixture_release(&f);
    *launch_s = p.breakdown_s[FR_PART_HOST];
    return p.step_s;
}

static void test_steps(void)
{
    double launch_s, full_launch_s;
    const fr_replay_detail calls = FR_REPLAY_CALLS;
    /* Small: the host's; each layer has four products and attention. */
    double small = step_of(256, 64, FR_KERNELS_FUSED, FR_CUDA_GRAPHS_NONE,
                           calls, "1", &launch_s);
    double full = step_of(256, 64, FR_KERNELS_FUSED, FR_CUDA_GRAPHS_FULL, calls,
                          "1", &full_launch_s);
    double host = 4 * 8 * 5 * 115e-6 * (1 + 1.75);
    CHECK_WITHIN(small, 1.1 * host, 0.1 * host);
    CHECK(full < 0.3 * small && full_launch_s < 0.01 * full);
    CHECK(launch_s > 0.5 * small);
    CHECK_NEAR(step_of(256, 64, FR_KERNELS_FUSED, FR_CUDA_GRAPHS_NONE,
                       FR_REPLAY_INSTRUCTIONS, "1", &launch_s),
               small, 1e-12);
    /* Eager's operators cost less than Transformer Engine's modules. */
    CHECK(step_of(256, 64, FR_KERNELS_EAGER, FR_CUDA_GRAPHS_NONE, calls, "1",
                  &launch_s) < small);
    /* A host of half the speed. */
    CHECK_NEAR(step_of(256, 64, FR_KERNELS_FUSED, FR_CUDA_GRAPHS_NONE, calls,
                       "0.5", &launch_s),
               2 * small, 0.01);
    /* Large: the device's. */
    double large = step_of(8192, 2048, FR_KERNELS_FUSED, FR_CUDA_GRAPHS_NONE,
                           calls, "1", &launch_s);
    CHECK_NEAR(step_of(8192, 2048, FR_KERNELS_FUSED, FR_CUDA_GRAPHS_FULL, calls,
                       "1", &full_launch_s),
               large, 0.005);
}

/* ---- gathers by parameter ------------------------------------------------ */

typedef struct gathers {
    int64_t n_calls, n_elements;
    double step_s;
} gathers;

static gathers gathers_of(fr_zero_unit unit, fr_recompute recompute, int dp)
{
    sim_fixture f;
    char xml[2048];
    gathers sum = {0};
    fr_prediction p = {0};
    fr_err err;
    sim_fixture_init(&f);
    snprintf(xml, sizeof xml, sim_gpu_xml, 8, "200Gb/s", 8,
             "  <fabric kind=\"switch\"/>\n");
    f.model.hidden = 16384;
    f.model.ffn_hidden = 4 * f.model.hidden;
    f.model.head_dim = f.model.hidden / f.model.n_heads;
    f.model.n_layers = 2;
    f.plan.dp = dp;
    f.plan.zero_stage = 3;
    f.plan.is_resharded = true;
    f.plan.execution.zero_unit = unit;
    f.plan.recompute = recompute;
    f.job.global_batch = dp;
    if (sim_fixture_cluster(&f, "gpus.xml", xml) && sim_fixture_lower(&f, 8) &&
        CHECK_OK(fr_program_check(f.program, NULL, &err), &err) &&
        CHECK(sim_fixture_predict(&f, FR_REPLAY_CALLS, false, &p))) {
        const fr_rank_program *rank_program = &f.program->rank_programs[0];
        for (uint32_t i = 0; i < rank_program->n_calls; i++) {
            const fr_segment *s =
                &f.program->segments[rank_program->calls[i].i_segment];
            for (uint32_t k = 0; k < s->n_instrs; k++) {
                const fr_instr *instr = &f.program->instrs[s->first_instr + k];
                if (instr->op != FR_OP_ALL_GATHER ||
                    rank_program->calls[i].layer < 0)
                    continue;
                sum.n_calls++;
                sum.n_elements += instr->dim[0];
            }
        }
    }
    sum.step_s = p.step_s;
    sim_fixture_release(&f);
    return sum;
}

static void test_parameters(void)
{
    const fr_zero_unit layer = FR_ZERO_UNIT_LAYER;
    const fr_zero_unit parameter = FR_ZERO_UNIT_PARAMETER;
    gathers a = gathers_of(layer, FR_RECOMPUTE_NONE, 8);
    gathers b = gathers_of(parameter, FR_RECOMPUTE_NONE, 8);
    /* Attention's two products and the MLP's, the same elements. */
    CHECK_INT(b.n_calls, 4 * a.n_calls);
    CHECK_INT(b.n_elements, a.n_elements);
    CHECK(b.step_s > a.step_s);
    /* All but the last of a layer are dropped between their two uses. */
    gathers c = gathers_of(parameter, FR_RECOMPUTE_FULL, 8);
    CHECK(c.n_calls > b.n_calls && c.n_elements < 2 * b.n_elements);
    /* A view and a copy for each rank, gather by gather: what 16 more ranks
     * cost, 32 gathers and scatters of 10 us for each at least. */
    gathers d = gathers_of(parameter, FR_RECOMPUTE_NONE, 32);
    gathers e = gathers_of(layer, FR_RECOMPUTE_NONE, 32);
    CHECK(d.step_s - e.step_s > b.step_s - a.step_s);
}

/* ---- transfers that the host waits for ---------------------------------- */

static double stages_of(fr_schedule_kind schedule, fr_kernel_set kernels,
                        bool is_sync)
{
    sim_fixture f;
    char xml[2048];
    fr_prediction p = {0};
    fr_err err;
    sim_fixture_init(&f);
    snprintf(xml, sizeof xml, sim_gpu_xml, 8, "200Gb/s", 8,
             "  <fabric kind=\"switch\"/>\n");
    f.model.hidden = 1024;
    f.model.ffn_hidden = 4 * f.model.hidden;
    f.model.head_dim = f.model.hidden / f.model.n_heads;
    f.model.n_layers = 8;
    f.plan.pp = 4;
    f.plan.schedule = schedule;
    f.plan.execution.kernels = kernels;
    f.plan.execution.is_p2p_sync = is_sync;
    f.job.global_batch = 12;
    if (sim_fixture_cluster(&f, "gpus.xml", xml) && sim_fixture_lower(&f, 4) &&
        CHECK_OK(fr_program_check(f.program, NULL, &err), &err))
        CHECK(sim_fixture_predict(&f, FR_REPLAY_CALLS, false, &p));
    sim_fixture_release(&f);
    return p.step_s;
}

static void test_transfers(void)
{
    static const fr_schedule_kind schedules[] = {
        FR_SCHEDULE_GPIPE, FR_SCHEDULE_1F1B, FR_SCHEDULE_ZB_H1};
    for (size_t i = 0; i < FR_LENGTH(schedules); i++) {
        double ahead = stages_of(schedules[i], FR_KERNELS_FUSED, false);
        double held = stages_of(schedules[i], FR_KERNELS_FUSED, true);
        CHECK(held > ahead && held < 4 * ahead);
        /* A step that is one graph has no host to wait. */
        CHECK(stages_of(schedules[i], FR_KERNELS_OWN, true) < ahead);
    }
}

CHECK_MAIN({"chains", test_chains}, {"steps", test_steps},
           {"parameters", test_parameters}, {"transfers", test_transfers})
