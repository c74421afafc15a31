/*
 * test_replay_host.c: hosts that issue what their devices run: chains against
 * a queue run instruction by instruction, steps against what can be said by
 * hand.
 */
#include "core/rng.h"
#include "cost_models/host_time.h"
#include "sim/replay_host.h"
#include "tests/contract/sim_fixture.h"

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
                      const char *speed, double *other_s)
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
    f.plan.kernels = kernels;
    f.plan.cuda_graphs = graphs;
    f.job.global_batch = 4;
    if (sim_fixture_cluster(&f, "gpus.xml", xml) && sim_fixture_lower(&f, 1))
        CHECK(sim_fixture_predict(&f, detail, false, &p));
    sim_fixture_release(&f);
    *other_s = p.breakdown_s[FR_PART_OTHER];
    return p.step_s;
}

static void test_steps(void)
{
    double other_s, full_other_s;
    const fr_replay_detail calls = FR_REPLAY_CALLS;
    /* Small: the host's; each layer has four products and attention. */
    double small = step_of(256, 64, FR_KERNELS_FUSED, FR_CUDA_GRAPHS_NONE,
                           calls, "1", &other_s);
    double full = step_of(256, 64, FR_KERNELS_FUSED, FR_CUDA_GRAPHS_FULL, calls,
                          "1", &full_other_s);
    double host = 4 * 8 * 5 * 115e-6 * (1 + 1.75);
    CHECK_WITHIN(small, 1.1 * host, 0.1 * host);
    CHECK(full < 0.3 * small && full_other_s < 0.01 * full);
    CHECK(other_s > 0.5 * small);
    CHECK_NEAR(step_of(256, 64, FR_KERNELS_FUSED, FR_CUDA_GRAPHS_NONE,
                       FR_REPLAY_INSTRUCTIONS, "1", &other_s),
               small, 1e-12);
    /* Eager's operators cost less than Transformer Engine's modules. */
    CHECK(step_of(256, 64, FR_KERNELS_EAGER, FR_CUDA_GRAPHS_NONE, calls, "1",
                  &other_s) < small);
    /* A host of half the speed. */
    CHECK_NEAR(step_of(256, 64, FR_KERNELS_FUSED, FR_CUDA_GRAPHS_NONE, calls,
                       "0.5", &other_s),
               2 * small, 0.01);
    /* Large: the device's. */
    double large = step_of(8192, 2048, FR_KERNELS_FUSED, FR_CUDA_GRAPHS_NONE,
                           calls, "1", &other_s);
    CHECK_NEAR(step_of(8192, 2048, FR_KERNELS_FUSED, FR_CUDA_GRAPHS_FULL, calls,
                       "1", &full_other_s),
               large, 0.005);
}

CHECK_MAIN({"chains", test_chains}, {"steps", test_steps})
