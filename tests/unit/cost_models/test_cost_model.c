/*
 * test_cost_model.c: costs from a made-up machine with known laws: measured
 * points come back as they are, other shapes by the law, other places, ranks,
 * sizes and groups by what physics says; without a profile the roofline.
 */
#include "cost_models/base/cost.h"
#include "cost_models/compute/compute_key.h"
#include "cost_models/compute/datasheet.h"
#include "tests/check.h"

#include <math.h>

static const double flops = 97.3e9, near_Bps = 71e9, memory_Bps = 11.3e9,
                    launch_s = 1.7e-6;
static const double alpha_s = 3.1e-6, beta_s = 0.231e-9;

static fr_fingerprint machine(void)
{
    return (fr_fingerprint){.cpu = "made up",
                            .n_cores = 2,
                            .n_nodes = 1,
                            .l2_bytes = 1 << 20,
                            .llc_bytes = 32 << 20,
                            .memory_bytes = UINT64_C(16) << 30};
}

static fr_instr linear(int64_t m, int64_t n, int64_t k, int weight_log2)
{
    fr_instr instr = {.op = FR_OP_LINEAR_FWD, .dim = {m, n, k}};

    instr.ref[0] = (fr_ref){.space = FR_SPACE_IN, .reuse_log2 = 14};
    instr.ref[1] =
        (fr_ref){.space = FR_SPACE_WEIGHT, .reuse_log2 = (uint8_t)weight_log2};
    instr.ref[3] = (fr_ref){.space = FR_SPACE_OUT, .reuse_log2 = 14};
    return instr;
}

/* The law that the fits must find; k ranks at once share the memory. */
static double law_s(const fr_instr *instr, int n_busy)
{
    double m = (double)instr->dim[0], n = (double)instr->dim[1],
           k = (double)instr->dim[2];
    bool is_far = instr->ref[1].reuse_log2 >= 25;
    double weight_s = 4.0 * n * k / (is_far ? memory_Bps / n_busy : near_Bps);

    return launch_s + 2.0 * m * n * k / flops +
           4.0 * (m * k + m * n) / near_Bps + weight_s;
}

static void add_linear(fr_profile *profile, const fr_instr *instr, int n_busy)
{
    fr_compute_point point;

    fr_compute_key(instr, &profile->fingerprint, 1, &point);
    point.n_busy = n_busy;
    point.sample = (fr_sample){law_s(instr, n_busy), 0.004, 11, 0};
    CHECK(fr_profile_add_compute(profile, &point, NULL) == FR_OK);
}

static void add_comm(fr_profile *profile, const char *op, const char *algorithm,
                     const char *scope, double n_alphas, double n_betas)
{
    for (uint64_t n = 16; n <= (1 << 24); n *= 4) {
        fr_comm_point point = {
            .n_group = 2,
            .n_bytes = n,
            .cpu_frac = 0.71,
            .sample = {n_alphas * alpha_s + n_betas * beta_s * (double)n, 0.01,
                       9, 0}};
        snprintf(point.op, sizeof point.op, "%s", op);
        snprintf(point.algorithm, sizeof point.algorithm, "%s", algorithm);
        snprintf(point.scope, sizeof point.scope, "%s", scope);
        CHECK(fr_profile_add_comm(profile, &point, NULL) == FR_OK);
    }
}

static fr_profile make_profile(void)
{
    fr_profile profile;
    fr_rate_point axpy = {"axpy", 1, 2, memory_Bps / 2, 0.01};

    fr_profile_init(&profile);
    profile.fingerprint = machine();
    profile.instr_overhead_s = 4.3e-8;
    profile.wake_s = 2.9e-6;
    profile.baseline_bytes = 20000001;
    profile.baseline_alone_bytes = 8000003;
    CHECK(fr_profile_add_rate(&profile, &axpy, NULL) == FR_OK);
    for (int far = 0; far < 2; far++)
        for (int64_t m = 32; m <= 512; m *= 2)
            for (int64_t n = 128; n <= 2048; n *= 2)
                for (int busy = 1; busy <= 2; busy++) {
                    fr_instr instr = linear(m, n, 3 * n / 2, far ? 26 : 14);
                    add_linear(&profile, &instr, busy);
                }
    add_comm(&profile, "all_reduce", "direct", "shm", 1.9, 1.9);
    add_comm(&profile, "all_reduce", "ring", "net", 2.0, 1.0);
    add_comm(&profile, "send", "", "net", 1.0, 1.0);
    return profile;
}

static fr_cluster load_cluster(const char *name)
{
    fr_err err = {0};
    fr_cluster cluster = {0};

    CHECK_OK(fr_cluster_load(NULL, name, &cluster, &err), &err);
    return cluster;
}

/* Eight hosts without GPUs. */
static fr_cluster cpu_cluster(void)
{
    static const char text[] =
        "<cluster name=\"cpus\"><device id=\"p\" kind=\"cpu\" cores=\"2\" "
        "memory=\"16GiB\"/><node-type id=\"n\" device=\"p\">"
        "<nic bandwidth=\"10Gb/s\" latency=\"20us\"/></node-type>"
        "<group id=\"n\" node-type=\"n\" count=\"8\"/>"
        "<fabric kind=\"switch\"/></cluster>";
    fr_err err = {0};
    fr_cluster cluster = {0};

    CHECK_OK(fr_cluster_parse("c.xml", text, strlen(text), &cluster, &err),
             &err);
    return cluster;
}

static fr_cost ask(const fr_cost_model *model, const fr_instr *instr, int n)
{
    fr_err err = {0};
    fr_cost cost = {0};

    CHECK_OK(fr_cost_compute(model, instr, n, 0, &cost, &err), &err);
    return cost;
}

static void test_compute(void)
{
    fr_err err = {0};
    fr_profile profile = make_profile();
    fr_cluster cluster = load_cluster("dgx-h100:2");
    fr_cost_model *model;
    fr_instr instr = linear(128, 512, 768, 14);
    fr_cost cost;

    CHECK_OK(fr_cost_model_create(&profile, &cluster, &model, &err), &err);
    cost = ask(model, &instr, 1);
    CHECK_INT(cost.source, FR_COST_MEASURED);
    CHECK(cost.work_s == law_s(&instr, 1));
    CHECK(cost.latency_s == profile.instr_overhead_s);
    CHECK(cost.cores == 1.0);
    /* Between the points, and in another shape. */
    instr = linear(200, 700, 900, 14);
    cost = ask(model, &instr, 1);
    CHECK_INT(cost.source, FR_COST_FITTED);
    CHECK_NEAR(cost.work_s, law_s(&instr, 1), 0.01);
    instr = linear(200, 700, 900, 26);
    CHECK_NEAR(ask(model, &instr, 1).work_s, law_s(&instr, 1), 0.01);
    /* Far outside. */
    instr = linear(4096, 4096, 4096, 26);
    cost = ask(model, &instr, 1);
    CHECK_INT(cost.source, FR_COST_EXTRAPOLATED);
    CHECK_NEAR(cost.work_s, law_s(&instr, 1), 0.05);
    CHECK(cost.rel_err > ask(model, &(fr_instr){0}, 1).rel_err ||
          cost.rel_err > 0.0);
    /* Threads that were never measured: half of the work each. */
    instr = linear(128, 512, 768, 14);
    cost = ask(model, &instr, 2);
    CHECK_INT(cost.source, FR_COST_EXTRAPOLATED);
    CHECK_NEAR(cost.work_s, law_s(&instr, 1) / 2, 1e-9);
    CHECK(cost.cores == 2.0);
    CHECK(fr_cost_baseline_bytes(model, 2) == 20000001);
    CHECK(fr_cost_baseline_bytes(model, 1) == 8000003);
    fr_cost_model_destroy(model);
    fr_cluster_release(&cluster);
    fr_profile_release(&profile);
}

/* Max-min with the demands: k flows of demand f on a link of 1. */
static void test_sharing(void)
{
    fr_err err = {0};
    fr_profile profile = make_profile();
    fr_cluster cluster = load_cluster("dgx-h100:2");
    fr_cost_model *model;

    CHECK_OK(fr_cost_model_create(&profile, &cluster, &model, &err), &err);
    for (int far = 14; far <= 26; far += 12) {
        fr_instr shapes[] = {linear(64, 1024, 1536, far),  /* measured */
                             linear(80, 1300, 1500, far)}; /* not */
        for (int i = 0; i < 2; i++) {
            fr_cost cost = ask(model, &shapes[i], 1);
            double together_s = cost.work_s * fmax(1.0, 2.0 * cost.memory_frac);
            CHECK_NEAR(together_s, law_s(&shapes[i], 2), 0.02);
        }
    }
    fr_cost_model_destroy(model);
    fr_cluster_release(&cluster);
    fr_profile_release(&profile);
}

static fr_cost communicate(const fr_cost_model *model, fr_op op,
                           fr_collective_kind algorithm, int64_t n,
                           fr_comm_scope scope, bool is_async)
{
    fr_err err = {0};
    fr_cost cost = {0};
    fr_instr instr = {.op = (uint8_t)op,
                      .axis = FR_AXIS_DP,
                      .algorithm = (uint8_t)algorithm,
                      .dim = {n}};

    instr.ref[0] = instr.ref[1] =
        (fr_ref){.space = FR_SPACE_GRAD, .reuse_log2 = 20};
    CHECK_OK(fr_cost_communicate(model, &instr, &scope, is_async, &cost, &err),
             &err);
    return cost;
}

static double total_s(fr_cost cost)
{
    return cost.latency_s + cost.work_s;
}

static void test_communicate(void)
{
    fr_err err = {0};
    fr_profile profile = make_profile();
    fr_cluster cluster = cpu_cluster();
    fr_comm_scope shm = {2, 1, 2, 0}, net = {2, 2, 1, 0}, alone = {1, 1, 1, 0};
    fr_comm_scope net8 = {8, 8, 1, 0};
    fr_cost_model *model;
    fr_cost cost;

    CHECK_OK(fr_cost_model_create(&profile, &cluster, &model, &err), &err);
    cost = communicate(model, FR_OP_ALL_REDUCE, FR_COLLECTIVE_DIRECT, 1 << 18,
                       shm, false);
    CHECK_INT(cost.source, FR_COST_MEASURED);
    CHECK_NEAR(total_s(cost), 1.9 * (alpha_s + beta_s * (1 << 20)), 1e-9);
    CHECK(cost.link_bytes == 0.0);
    CHECK_NEAR(cost.cores, 0.71, 1e-12);
    cost = communicate(model, FR_OP_ALL_REDUCE, FR_COLLECTIVE_DIRECT, 700000,
                       shm, false);
    CHECK_INT(cost.source, FR_COST_FITTED);
    CHECK_NEAR(total_s(cost), 1.9 * (alpha_s + beta_s * 2800000.0), 0.02);
    /* The communication thread must be woken, and wake the rank. */
    CHECK_NEAR(total_s(communicate(model, FR_OP_ALL_REDUCE,
                                   FR_COLLECTIVE_DIRECT, 1 << 18, shm, true)),
               1.9 * (alpha_s + beta_s * (1 << 20)) + 2 * 2.9e-6, 1e-9);
    cost = communicate(model, FR_OP_ALL_REDUCE, FR_COLLECTIVE_RING, 1 << 20,
                       net, false);
    CHECK_NEAR(cost.link_bytes, 4.0 * (1 << 20), 1e-12);
    /* 8 instead of 2 hosts: 2 n (g-1)/g of bytes and 2 (g-1) steps. */
    CHECK_NEAR(total_s(communicate(model, FR_OP_ALL_REDUCE, FR_COLLECTIVE_RING,
                                   1 << 22, net8, false)),
               2 * 7 * alpha_s + 2.0 * 7 / 8 * beta_s * 4 * (1 << 22), 0.03);
    cost =
        communicate(model, FR_OP_RECV, FR_COLLECTIVE_AUTO, 1 << 10, net, true);
    CHECK_NEAR(cost.link_bytes, 4096.0, 1e-12);
    cost = communicate(model, FR_OP_ALL_REDUCE, FR_COLLECTIVE_RING, 1 << 20,
                       alone, false);
    CHECK(total_s(cost) == 0.0);
    CHECK(fr_cost_communicate(model, &(fr_instr){.op = FR_OP_ZERO}, &shm, false,
                              &cost, &err) == FR_FAILURE);
    fr_cost_model_destroy(model);
    fr_cluster_release(&cluster);
    fr_profile_release(&profile);
}

/* GPUs: what was measured of just this group wins, the rest is NCCL's model. */
static void test_gpu_profile(void)
{
    fr_err err = {0};
    fr_profile profile;
    fr_cluster cluster = load_cluster("dgx-h100:4");
    fr_comm_scope near = {8, 1, 8, 0}, two = {16, 2, 8, 0}, far = {16, 4, 4, 0};
    fr_cost_model *model = NULL;
    fr_cost cost, free_cost;

    fr_profile_init(&profile);
    for (uint64_t n = 1 << 20; n <= (1 << 26); n *= 4) {
        fr_comm_point point = {
            .op = "all_reduce",
            .scope = "net:2",
            .n_group = 16,
            .n_bytes = n,
            .sample = {7.13e-5 + 9.1e-12 * (double)n, 0.01, 20, 0}};
        CHECK(fr_profile_add_comm(&profile, &point, NULL) == FR_OK);
    }
    for (int i = 0; i < 2; i++) { /* as imported: asynchronous, or not */
        fr_comm_point point = {.scope = "shm",
                               .n_group = 8,
                               .n_bytes = 1 << 22,
                               .is_async = i == 1,
                               .sample = {3.31e-5 + i, 0.01, 20, 0}};
        snprintf(point.op, sizeof point.op, "%s",
                 i == 1 ? "all_gather" : "reduce_scatter");
        CHECK(fr_profile_add_comm(&profile, &point, NULL) == FR_OK);
    }
    CHECK_OK(fr_cost_model_create(&profile, &cluster, &model, &err), &err);
    cost = communicate(model, FR_OP_ALL_GATHER, FR_COLLECTIVE_RING, 1 << 20,
                       near, true);
    CHECK_NEAR(total_s(cost), 1 + 3.31e-5, 1e-9);
    cost = communicate(model, FR_OP_REDUCE_SCATTER, FR_COLLECTIVE_RING, 1 << 20,
                       near, true);
    CHECK_NEAR(total_s(cost), 3.31e-5, 1e-9);
    CHECK_INT(cost.source, FR_COST_MEASURED);
    cost = communicate(model, FR_OP_ALL_REDUCE, FR_COLLECTIVE_RING, 1 << 20,
                       two, true);
    CHECK_INT(cost.source, FR_COST_MEASURED);
    CHECK_NEAR(total_s(cost), 7.13e-5 + 9.1e-12 * (1 << 22), 1e-9);
    /* Through NVLS in the nodes and a tree between: S / k per NIC. */
    CHECK_NEAR(cost.link_bytes, 4.0 * (1 << 20) / 8, 1e-12);
    CHECK(cost.cores > 0.0 && cost.cores < 0.3 && cost.memory_frac == 0.0);
    /* The same ranks on four nodes, and eight on one, were not measured. */
    free_cost = communicate(model, FR_OP_ALL_REDUCE, FR_COLLECTIVE_RING,
                            1 << 20, far, true);
    CHECK(free_cost.source == FR_COST_EXTRAPOLATED);
    cost = communicate(model, FR_OP_ALL_REDUCE, FR_COLLECTIVE_RING, 1 << 20,
                       near, true);
    CHECK_INT(cost.source, FR_COST_FITTED);
    CHECK(cost.link_bytes == 0.0 && cost.port_bytes > 4.0 * (1 << 20));
    fr_cost_model_destroy(model);
    fr_cluster_release(&cluster);
    fr_profile_release(&profile);
}

static void test_datasheet(void)
{
    fr_err err = {0};
    fr_cluster cluster = load_cluster("dgx-h100:2");
    fr_cost_model *model;
    fr_instr instr = linear(8192, 8192, 8192, 26);
    fr_comm_scope net = {2, 2, 1, 0};
    fr_cost cost;
    double peak = fr_device_peak_flops(fr_cluster_device(&cluster, 0), "bf16");

    instr.dtype = FR_DTYPE_BF16;
    CHECK_OK(fr_cost_model_create(NULL, &cluster, &model, &err), &err);
    cost = ask(model, &instr, 1);
    CHECK_INT(cost.source, FR_COST_FITTED); /* on kernels of its generation */
    CHECK(cost.work_s > 2.0 * pow(8192, 3) / peak);
    CHECK(cost.work_s < 2.0 * 2.0 * pow(8192, 3) / peak);
    cost = communicate(model, FR_OP_ALL_REDUCE, FR_COLLECTIVE_RING, 1 << 26,
                       net, true);
    CHECK_INT(cost.source, FR_COST_EXTRAPOLATED);
    CHECK(cost.work_s > 0.0 && cost.link_bytes > 0.0);
    CHECK(fr_cost_baseline_bytes(model, 2) == 0);
    CHECK(fr_cost_compute(model, &instr, 0, 0, &cost, &err) == FR_FAILURE);
    fr_cost_model_destroy(model);
    fr_cost_model_destroy(NULL);
    fr_cluster_release(&cluster);
}

/* Every node has the costs of its own device. */
static void test_devices_of_nodes(void)
{
    fr_err err = {0};
    fr_cluster cluster = load_cluster("mixed-a100-v100");
    fr_cost_model *model;
    fr_instr instr = linear(4096, 5120, 5120, 26);
    fr_cost first, last;
    int64_t n = fr_cluster_n_nodes(&cluster);
    const fr_device_type *a, *b;

    instr.dtype = FR_DTYPE_F16;
    CHECK_OK(fr_cost_model_create(NULL, &cluster, &model, &err), &err);
    CHECK_OK(fr_cost_compute(model, &instr, 1, 0, &first, &err), &err);
    CHECK_OK(fr_cost_compute(model, &instr, 1, n - 1, &last, &err), &err);
    a = fr_cluster_device(&cluster, 0);
    b = fr_cluster_device(&cluster, n - 1);
    CHECK(a != b);
    CHECK((first.work_s < last.work_s) ==
          (fr_device_peak_flops(a, "fp16") > fr_device_peak_flops(b, "fp16")));
    CHECK(first.work_s == ask(model, &instr, 1).work_s);
    instr = (fr_instr){.op = FR_OP_HOST_COPY, .dim = {1 << 30, 1}};
    CHECK_OK(fr_cost_compute(model, &instr, 1, 0, &first, &err), &err);
    CHECK_NEAR(first.work_s,
               (1 << 30) / fr_cluster_node_type(&cluster, 0)->host_link_Bps,
               1e-12);
    fr_cost_model_destroy(model);
    fr_cluster_release(&cluster);
}

/* More of anything never takes less. */
static void test_monotone(void)
{
    fr_err err = {0};
    fr_profile profile = make_profile();
    fr_cluster cluster = cpu_cluster();
    fr_comm_scope shm = {2, 1, 2, 0};
    fr_cost_model *model;
    double before_s = 0.0;

    CHECK_OK(fr_cost_model_create(&profile, &cluster, &model, &err), &err);
    for (int64_t n = 1; n < (1 << 25); n += n / 3 + 1) {
        double now_s = total_s(communicate(
            model, FR_OP_ALL_REDUCE, FR_COLLECTIVE_DIRECT, n, shm, false));
        CHECK(now_s >= before_s * (1 - 1e-12));
        before_s = now_s;
    }
    before_s = 0.0;
    for (int64_t m = 40; m <= 500; m += 20) {
        fr_instr instr = linear(m, 611, 900, 26);
        double now_s = ask(model, &instr, 1).work_s;
        CHECK(now_s > before_s);
        before_s = now_s;
    }
    fr_cost_model_destroy(model);
    fr_cluster_release(&cluster);
    fr_profile_release(&profile);
}

CHECK_MAIN({"compute", test_compute}, {"sharing", test_sharing},
           {"communicate", test_communicate}, {"gpu_profile", test_gpu_profile},
           {"datasheet", test_datasheet},
           {"devices of nodes", test_devices_of_nodes},
           {"monotone", test_monotone})
