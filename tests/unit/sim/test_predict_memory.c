/*
 * test_predict_memory.c: predicted memory on GPUs against formulas written
 * down apart from the program: Megatron-LM's bytes per parameter
 * (training/theoretical_memory_usage.py: 18, with a distributed optimizer
 * 6 + 12/d), Korthikanti et al. (arXiv 2205.05198, eq. 1 and table 2) for
 * activations; and what must hold between the numbers.
 */
#include "cost_models/gpu/gpu_memory.h"
#include "program/lower/step/lower.h"
#include "program/memory/caching_allocator.h"
#include "sim/predict/predict_memory.h"
#include "sim/predict/simulate.h"
#include "spec/catalog/catalog.h"
#include "tests/check.h"

#define MIB 1048576.0

enum { HIDDEN = 1024, HEADS = 16, LAYERS = 8, VOCAB = 51200, SEQ = 1024 };

typedef struct fixture {
    fr_model model;
    fr_job job;
    fr_plan plan;
} fixture;

static fixture gpt(void)
{
    fixture f;
    fr_model_init(&f.model);
    snprintf(f.model.name, sizeof f.model.name, "gpt");
    f.model.n_layers = LAYERS;
    f.model.n_heads = f.model.n_kv_heads = HEADS;
    f.model.head_dim = HIDDEN / HEADS;
    f.model.hidden = HIDDEN;
    f.model.ffn_hidden = 4 * HIDDEN;
    f.model.vocab = VOCAB;
    f.model.max_seq = SEQ;
    f.model.is_tied = true;
    fr_job_init(&f.job);
    f.job.seq = SEQ;
    f.job.global_batch = 16;
    fr_plan_init(&f.plan);
    f.plan.micro_batch = 2;
    f.plan.precision = FR_DTYPE_BF16;
    f.plan.grad_dtype = FR_DTYPE_F32;
    f.plan.is_flash = true;
    return f;
}

/* Word and position embeddings, 12 h^2 + 13 h a layer, the last norm. */
static double gpt_parameters(void)
{
    double h = HIDDEN;
    return VOCAB * h + SEQ * h + LAYERS * (12 * h * h + 13 * h) + 2 * h;
}

static fr_prediction predict(const fixture *f)
{
    fr_err err;
    fr_cluster cluster;
    fr_cost_model *costs = NULL;
    fr_program *program = NULL;
    fr_prediction out = {0};
    const fr_placement placement = {
        .n_ranks = 8, .by_framework = f->plan.execution.is_grad_listed};
    if (!CHECK_OK(fr_catalog_cluster("dgx-h100", 1, &cluster, &err), &err))
        return out;
    CHECK_OK(fr_cost_model_create(NULL, &cluster, &costs, &err), &err);
    if (CHECK_OK(
            fr_lower(&f->model, &f->job, &f->plan, &placement, &program, &err),
            &err))
        CHECK_OK(fr_simulate(program, costs, &cluster, NULL, NULL, &out, &err),
                 &err);
    fr_program_destroy(program);
    fr_cost_model_destroy(costs);
    fr_cluster_release(&cluster);
    return out;
}

static double state_bytes(const fr_prediction *p)
{
    return (double)(p->memory.parameters_bytes + p->memory.gradients_bytes +
                    p->memory.optimizer_bytes);
}

static void check_share(double value, double expected, double rel)
{
    if (!CHECK(value > expected * (1 - rel) && value < expected * (1 + rel)))
        printf("    %.6g, expected %.6g\n", value, expected);
}

static void test_bytes_per_parameter(void)
{
    fixture f = gpt();
    fr_prediction p = predict(&f);
    check_share(state_bytes(&p), 18 * gpt_parameters(), 0.005);
    f.plan.dp = 4;
    f.plan.zero_stage = 1;
    p = predict(&f);
    check_share(state_bytes(&p), (6 + 12.0 / 4) * gpt_parameters(), 0.005);
}

/* Few tokens: the step is the peak, and there 16-bit gradients have copies. */
static void test_gradient_copies(void)
{
    fixture f = gpt();
    f.job.seq = 64;
    f.job.global_batch = f.plan.micro_batch = 1;
    f.plan.grad_dtype = FR_DTYPE_BF16;
    fr_prediction p = predict(&f);
    check_share(state_bytes(&p), 20 * gpt_parameters(), 0.005);
    f.plan.grad_dtype = FR_DTYPE_F32;
    p = predict(&f);
    check_share(state_bytes(&p), 18 * gpt_parameters(), 0.005);
}

/* DeepSpeed's list of partitions: all gradients once more, and those pieces of
 * them side by side that go together; of 5e8 gradients and less all. */
static void test_listed_gradients(void)
{
    fixture f = gpt();
    fr_err err;
    f.job.seq = 64;
    f.job.global_batch = f.plan.dp = 4;
    f.plan.micro_batch = 1;
    f.plan.zero_stage = 1;
    f.plan.precision = f.plan.grad_dtype = FR_DTYPE_F16;
    f.plan.bucket_bytes = 0;
    f.plan.is_overlap = false;
    f.plan.execution.is_grad_listed = true;
    fr_prediction p = predict(&f);
    CHECK_OK(fr_plan_check(&f.plan, &f.model, &f.job, &err), &err);
    check_share((double)p.memory.buffers_bytes, 4 * gpt_parameters(), 0.01);
}

/* s b h (34 + 5 a s / h) a layer, 34 with fused attention (and 4 a s b bytes
 * of its statistics); the rest are a few activations of the stream. */
static void test_activations(void)
{
    fixture f = gpt();
    double sbh = (double)SEQ * 2 * HIDDEN;
    f.job.dropout = 0.1;
    fr_prediction p = predict(&f);
    double rest = (double)p.memory.activations_bytes -
                  LAYERS * (34 * sbh + 4.0 * HEADS * SEQ * 2);
    CHECK(rest > -2 * sbh && rest < 8 * sbh);
    f.plan.is_flash = false;
    p = predict(&f);
    rest = (double)p.memory.activations_bytes -
           LAYERS * sbh * (34 + 5.0 * HEADS * SEQ / HIDDEN);
    CHECK(rest > -2 * sbh && rest < 8 * sbh);
}

static double stage_sum(const fr_stage_memory *s)
{
    return (double)(s->parameters_bytes + s->gradients_bytes +
                    s->optimizer_bytes + s->activations_bytes +
                    s->buffers_bytes);
}

static void test_stages(void)
{
    fixture f = gpt();
    f.plan.pp = 4;
    f.plan.schedule = FR_SCHEDULE_1F1B;
    fr_prediction p = predict(&f);
    if (!CHECK_INT(p.memory.n_stages, 4))
        return;
    uint64_t most = 0;
    /* Two cuBLAS workspaces and Transformer Engine's, of 32 MiB each. */
    const double overhead = 96 * MIB;
    for (int i = 0; i < 4; i++) {
        const fr_stage_memory *s = &p.memory.stages[i];
        CHECK((double)s->allocated_bytes >= stage_sum(s) + overhead);
        CHECK((double)s->allocated_bytes < 1.05 * stage_sum(s) + overhead);
        CHECK(s->reserved_bytes >= s->allocated_bytes);
        CHECK_INT(s->device_bytes - s->reserved_bytes,
                  p.memory.stages[0].device_bytes -
                      p.memory.stages[0].reserved_bytes);
        most = s->device_bytes > most ? s->device_bytes : most;
    }
    CHECK_INT(p.memory.peak_bytes, most);
    CHECK_INT(p.memory.device_bytes,
              p.memory.stages[p.memory.tightest_stage].device_bytes);
    /* 1F1B: the first stage has four micro-batches in flight, the third two */
    check_share((double)p.memory.stages[0].activations_bytes /
                    (double)p.memory.stages[2].activations_bytes,
                2, 0.1);
}

static void test_fits(void)
{
    double before = 1;
    for (int64_t micro = 1; micro <= 256; micro *= 4) {
        fixture f = gpt();
        f.plan.micro_batch = micro;
        f.job.global_batch = 256;
        fr_prediction p = predict(&f);
        CHECK(p.memory.p_fits <= before);
        CHECK((p.memory.p_fits >= 0.5) == p.memory.fits);
        before = p.memory.p_fits;
    }
    CHECK(before < 1e-3); /* 256 sequences do not fit 80 GiB */
}

static fr_gpu_workspaces spaces_of(const char *device, fr_kernel_set kernels,
                                   int64_t n_experts)
{
    fixture f = gpt();
    const fr_catalog_device *found = fr_catalog_device_find(device);
    f.plan.execution.kernels = kernels;
    f.model.n_experts = n_experts;
    CHECK(found != NULL);
    return fr_gpu_workspaces_of(&f.plan, &f.model, &found->type);
}

static void test_workspaces(void)
{
    fr_gpu_workspaces s = spaces_of("a100-sxm-80g", FR_KERNELS_EAGER, 0);
    CHECK_INT(s.n, 2);
    CHECK_INT(s.n_bytes[1], 8519680);
    s = spaces_of("a100-sxm-80g", FR_KERNELS_FUSED, 0);
    CHECK_INT(s.n, 3);
    CHECK_INT(s.n_bytes[2], 4194304);
    s = spaces_of("h100-sxm", FR_KERNELS_FUSED, 8);
    CHECK_INT(s.n, 7);
    CHECK_INT(s.n_bytes[6], 33554432);
}

/* 342 MB a communicator of two ranks, 392 MB of more, one for each group. */
static void test_communicators(void)
{
    static const struct {
        int32_t dp, tp, pp, zero_stage, zero_group;
        uint64_t n_bytes;
    } want[] = {
        {8, 1, 1, 0, 0, 392000000}, /* the world's, which is dp's */
        {2, 2, 2, 1, 0, 392000000 + 3 * 342000000},
        {2, 2, 2, 0, 0, 2 * 392000000 + 3 * 342000000}, /* and the norm's */
        {1, 1, 2, 0, 0, 342000000},
        {8, 1, 1, 1, 4, 2 * 392000000 + 342000000}, /* shards, replicas */
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        fr_plan plan;
        fr_plan_init(&plan);
        plan.dp = want[i].dp;
        plan.tp = want[i].tp;
        plan.pp = want[i].pp;
        plan.zero_stage = want[i].zero_stage;
        plan.zero_group = want[i].zero_group;
        const fr_gpu_memory m = fr_gpu_memory_overhead(
            &plan, &fr_catalog_device_find("h100-sxm")->type);
        CHECK_INT(m.nccl_bytes, want[i].n_bytes);
    }
}

/* The state that an optimizer on the host keeps there. */
static void test_hosts(void)
{
    fixture f = gpt();
    f.plan.dp = 8;
    f.plan.zero_stage = 1;
    f.plan.is_optimizer_offloaded = true;
    fr_prediction p = predict(&f);
    /* State 12 bytes, gradients 4, new weights 2, all sharded over the node. */
    check_share((double)p.memory.host_bytes, 18 * gpt_parameters(), 0.01);
    CHECK_INT(p.memory.host_capacity_bytes, 2048ull << 30);
    CHECK(p.memory.fits && !fr_prediction_lacks_host(&p));
    p.memory.host_capacity_bytes = p.memory.host_bytes - 1000;
    CHECK(fr_prediction_lacks_host(&p));
    CHECK_INT(fr_memory_short_by(&p, 0.9), 1000);
    p.memory.host_capacity_bytes = 0; /* not known */
    CHECK(!fr_prediction_lacks_host(&p));
}

CHECK_MAIN({"communicators", test_communicators}, {"hosts", test_hosts},
           {"bytes per parameter", test_bytes_per_parameter},
           {"gradient copies", test_gradient_copies},
           {"listed gradients", test_listed_gradients},
           {"activations", test_activations}, {"stages", test_stages},
           {"fits", test_fits}, {"workspaces", test_workspaces})
