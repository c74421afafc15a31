/* layout_rows.c: the layouts, and the model, the job and the plan of each. */
#include "tests/contract/runtime/layout_rows.h"

#include "tests/check.h"

#include <string.h>

#define GPIPE FR_SCHEDULE_GPIPE
#define F1B FR_SCHEDULE_1F1B
#define INTERLEAVED FR_SCHEDULE_INTERLEAVED
#define SGD FR_OPTIMIZER_SGD
#define LARS FR_OPTIMIZER_LARS
#define LAMB FR_OPTIMIZER_LAMB
#define ADAMW FR_OPTIMIZER_ADAMW

const layout_row layout_rows[] = {
    /* one rank */
    {.name = "accumulate 4", .micro_batch = 2, .optimizer = ADAMW},
    {.name = "accumulate 8, full recompute",
     .micro_batch = 1,
     .optimizer = ADAMW,
     .recompute = FR_RECOMPUTE_FULL},
    {.name = "selective recompute",
     .micro_batch = 8,
     .optimizer = SGD,
     .recompute = FR_RECOMPUTE_SELECTIVE},
    {.name = "llama full recompute",
     .is_llama = true,
     .micro_batch = 4,
     .optimizer = ADAMW,
     .recompute = FR_RECOMPUTE_FULL},
    /* two ranks */
    {.name = "dp2", .dp = 2, .micro_batch = 4, .optimizer = ADAMW},
    {.name = "dp2 small buckets",
     .dp = 2,
     .micro_batch = 2,
     .optimizer = LAMB,
     .bucket_bytes = 40000},
    {.name = "dp2 serial lars",
     .dp = 2,
     .micro_batch = 4,
     .optimizer = LARS,
     .is_serial = true},
    {.name = "dp2 ring over messages",
     .dp = 2,
     .micro_batch = 4,
     .optimizer = SGD,
     .collective = FR_COLLECTIVE_RING},
    {.name = "dp2 zero1",
     .dp = 2,
     .micro_batch = 4,
     .optimizer = ADAMW,
     .zero = 1},
    {.name = "dp2 zero1 lamb buckets",
     .dp = 2,
     .micro_batch = 2,
     .optimizer = LAMB,
     .zero = 1,
     .bucket_bytes = 60000},
    {.name = "llama dp2 zero1 lars",
     .is_llama = true,
     .dp = 2,
     .micro_batch = 2,
     .optimizer = LARS,
     .zero = 1},
    {.name = "tp2", .tp = 2, .micro_batch = 8, .optimizer = ADAMW},
    {.name = "tp2 sequence parallel",
     .tp = 2,
     .micro_batch = 4,
     .optimizer = ADAMW,
     .is_sequence_parallel = true},
    {.name = "llama tp2 lamb",
     .is_llama = true,
     .tp = 2,
     .micro_batch = 4,
     .optimizer = LAMB},
    {.name = "llama tp2 sp full recompute",
     .is_llama = true,
     .tp = 2,
     .micro_batch = 4,
     .optimizer = ADAMW,
     .is_sequence_parallel = true,
     .recompute = FR_RECOMPUTE_FULL},
    {.name = "pp2 gpipe",
     .pp = 2,
     .micro_batch = 2,
     .optimizer = ADAMW,
     .schedule = GPIPE},
    {.name = "pp2 1f1b",
     .pp = 2,
     .micro_batch = 1,
     .optimizer = SGD,
     .schedule = F1B},
    {.name = "pp2 uneven",
     .pp = 2,
     .micro_batch = 2,
     .optimizer = ADAMW,
     .schedule = F1B,
     .split = {1, 3}},
    {.name = "pp2 interleaved",
     .pp = 2,
     .vpp = 2,
     .micro_batch = 2,
     .optimizer = ADAMW,
     .schedule = INTERLEAVED},
    {.name = "llama pp2 selective",
     .is_llama = true,
     .pp = 2,
     .micro_batch = 2,
     .optimizer = ADAMW,
     .schedule = F1B,
     .recompute = FR_RECOMPUTE_SELECTIVE},
    /* four ranks */
    {.name = "dp4 zero1",
     .dp = 4,
     .micro_batch = 1,
     .optimizer = ADAMW,
     .zero = 1},
    {.name = "dp2 tp2", .dp = 2, .tp = 2, .micro_batch = 4, .optimizer = LAMB},
    {.name = "dp2 tp2 sp zero1",
     .dp = 2,
     .tp = 2,
     .micro_batch = 2,
     .optimizer = ADAMW,
     .zero = 1,
     .is_sequence_parallel = true,
     .order = FR_RANK_ORDER_DP_TP_PP},
    {.name = "dp2 pp2",
     .dp = 2,
     .pp = 2,
     .micro_batch = 1,
     .optimizer = ADAMW,
     .schedule = F1B},
    {.name = "llama dp2 pp2 zero1",
     .is_llama = true,
     .dp = 2,
     .pp = 2,
     .micro_batch = 2,
     .optimizer = LAMB,
     .schedule = F1B,
     .zero = 1,
     .order = FR_RANK_ORDER_PP_DP_TP},
    {.name = "tp2 pp2",
     .tp = 2,
     .pp = 2,
     .micro_batch = 2,
     .optimizer = LARS,
     .schedule = F1B},
    {.name = "llama tp2 pp2 interleaved sp",
     .is_llama = true,
     .tp = 2,
     .pp = 2,
     .vpp = 2,
     .micro_batch = 2,
     .optimizer = ADAMW,
     .schedule = INTERLEAVED,
     .is_sequence_parallel = true},
    {.name = "pp4 1f1b",
     .pp = 4,
     .micro_batch = 1,
     .optimizer = ADAMW,
     .schedule = F1B,
     .recompute = FR_RECOMPUTE_FULL},
    {.name = "tp4 sp",
     .tp = 4,
     .micro_batch = 4,
     .optimizer = ADAMW,
     .is_sequence_parallel = true},
    {.name = "dp4 halving and doubling",
     .dp = 4,
     .micro_batch = 2,
     .optimizer = SGD,
     .collective = FR_COLLECTIVE_HALVING_DOUBLING,
     .gpu_refusal = "collectives that NCCL has not"},
    {.name = "dp4 two trees",
     .dp = 4,
     .micro_batch = 2,
     .optimizer = ADAMW,
     .collective = FR_COLLECTIVE_DOUBLE_TREE},
    /* gradients and parameters sharded */
    {.name = "dp2 zero2",
     .dp = 2,
     .micro_batch = 4,
     .optimizer = ADAMW,
     .zero = 2},
    {.name = "dp2 zero3",
     .dp = 2,
     .micro_batch = 4,
     .optimizer = ADAMW,
     .zero = 3},
    {.name = "dp2 zero3 accumulate",
     .dp = 2,
     .micro_batch = 1,
     .optimizer = ADAMW,
     .zero = 3},
    {.name = "llama dp4 zero3 kept",
     .is_llama = true,
     .dp = 4,
     .micro_batch = 1,
     .optimizer = LAMB,
     .zero = 3,
     .is_kept = true},
    {.name = "dp4 zero3 groups of 2",
     .dp = 4,
     .micro_batch = 1,
     .optimizer = ADAMW,
     .zero = 3,
     .zero_group = 2},
    {.name = "dp4 zero1 groups of 2",
     .dp = 4,
     .micro_batch = 1,
     .optimizer = SGD, /* whose step follows the norm it is clipped to */
     .zero = 1,
     .zero_group = 2},
    {.name = "tp2 dp2 zero3 sp",
     .dp = 2,
     .tp = 2,
     .micro_batch = 2,
     .optimizer = ADAMW,
     .zero = 3,
     .is_sequence_parallel = true},
    {.name = "dp2 pp2 zero2",
     .dp = 2,
     .pp = 2,
     .micro_batch = 1,
     .optimizer = ADAMW,
     .schedule = F1B,
     .zero = 2},
    {.name = "dp2 pp2 zero3",
     .dp = 2,
     .pp = 2,
     .micro_batch = 1,
     .optimizer = ADAMW,
     .schedule = F1B,
     .zero = 3},
    /* a backward in two parts */
    {.name = "pp2 zb-h1",
     .pp = 2,
     .micro_batch = 1,
     .optimizer = ADAMW,
     .schedule = FR_SCHEDULE_ZB_H1},
    {.name = "pp2 zb-v",
     .pp = 2,
     .vpp = 2,
     .micro_batch = 1,
     .optimizer = ADAMW,
     .schedule = FR_SCHEDULE_ZB_V},
    {.name = "llama pp4 zb-h1",
     .is_llama = true,
     .pp = 4,
     .micro_batch = 1,
     .optimizer = SGD,
     .schedule = FR_SCHEDULE_ZB_H1},
    /* parts of the activations made again */
    {.name = "full recompute of two layers",
     .micro_batch = 2,
     .optimizer = ADAMW,
     .recompute = FR_RECOMPUTE_FULL,
     .recompute_layers = 2,
     .cpu_refusal = "recompute of some layers",
     .gpu_refusal = "recompute of some layers"},
    {.name = "recompute norms",
     .micro_batch = 2,
     .optimizer = ADAMW,
     .recompute = FR_RECOMPUTE_SELECTIVE,
     .recompute_parts = FR_RECOMPUTE_PART_NORM},
    {.name = "recompute activations",
     .micro_batch = 2,
     .optimizer = ADAMW,
     .recompute = FR_RECOMPUTE_SELECTIVE,
     .recompute_parts = FR_RECOMPUTE_PART_ACTIVATION},
    {.name = "recompute mlp",
     .is_llama = true,
     .micro_batch = 2,
     .optimizer = ADAMW,
     .recompute = FR_RECOMPUTE_SELECTIVE,
     .recompute_parts = FR_RECOMPUTE_PART_MLP},
    {.name = "recompute products",
     .is_llama = true,
     .micro_batch = 2,
     .optimizer = ADAMW,
     .recompute = FR_RECOMPUTE_SELECTIVE,
     .recompute_parts = FR_RECOMPUTE_PART_PRODUCTS},
    /* the ends alone */
    {.name = "pp4 ends alone",
     .pp = 4,
     .micro_batch = 1,
     .optimizer = ADAMW,
     .schedule = F1B,
     .split = {0, 2, 2, 0}},
    /* shares of sequences */
    {.name = "cp2 keys gathered",
     .cp = 2,
     .cp_kind = FR_CP_ALL_GATHER,
     .micro_batch = 4,
     .optimizer = ADAMW,
     .gpu_refusal = "context parallelism on GPUs"},
    {.name = "llama cp2 keys gathered",
     .is_llama = true,
     .cp = 2,
     .cp_kind = FR_CP_ALL_GATHER,
     .micro_batch = 4,
     .optimizer = ADAMW,
     .gpu_refusal = "context parallelism on GPUs"},
    {.name = "llama cp4 keys gathered",
     .is_llama = true,
     .cp = 4,
     .cp_kind = FR_CP_ALL_GATHER,
     .micro_batch = 2,
     .optimizer = LAMB,
     .gpu_refusal = "context parallelism on GPUs"},
    {.name = "cp2 ring",
     .cp = 2,
     .micro_batch = 4,
     .is_flash = true,
     .optimizer = ADAMW,
     .gpu_refusal = "context parallelism on GPUs"},
    {.name = "llama cp4 ring",
     .is_llama = true,
     .cp = 4,
     .micro_batch = 2,
     .is_flash = true,
     .optimizer = ADAMW,
     .gpu_refusal = "context parallelism on GPUs"},
    /* part of the activations wait on the host */
    {.name = "llama activations away",
     .is_llama = true,
     .micro_batch = 2,
     .optimizer = ADAMW,
     .offload_frac = 0.6,
     .cpu_refusal = "activations on the host"},
    {.name = "pp2 activations away",
     .pp = 2,
     .micro_batch = 1,
     .optimizer = SGD,
     .schedule = F1B,
     .offload_frac = 0.5,
     .cpu_refusal = "activations on the host"},
    /* variants of dense decoders */
    {.name = "qwen2 dp2",
     .family = LAYOUT_QWEN2,
     .dp = 2,
     .micro_batch = 2,
     .optimizer = ADAMW},
    {.name = "qwen2 tp2 sp",
     .family = LAYOUT_QWEN2,
     .tp = 2,
     .micro_batch = 4,
     .is_sequence_parallel = true,
     .optimizer = ADAMW},
    {.name = "qwen2 pp2 zb-h1",
     .family = LAYOUT_QWEN2,
     .pp = 2,
     .micro_batch = 1,
     .schedule = FR_SCHEDULE_ZB_H1,
     .optimizer = ADAMW},
    {.name = "qwen3 accumulate",
     .family = LAYOUT_QWEN3,
     .micro_batch = 2,
     .optimizer = ADAMW,
     .gpu_refusal = "q and k norms"},
    {.name = "qwen3 tp2",
     .family = LAYOUT_QWEN3,
     .tp = 2,
     .micro_batch = 4,
     .optimizer = ADAMW,
     .gpu_refusal = "q and k norms"},
    {.name = "qwen3 tp2 sp zero1 dp2",
     .family = LAYOUT_QWEN3,
     .tp = 2,
     .dp = 2,
     .zero = 1,
     .micro_batch = 2,
     .is_sequence_parallel = true,
     .optimizer = ADAMW,
     .gpu_refusal = "q and k norms"},
    {.name = "qwen3 dp2 zero3 full recompute",
     .family = LAYOUT_QWEN3,
     .dp = 2,
     .zero = 3,
     .micro_batch = 2,
     .recompute = FR_RECOMPUTE_FULL,
     .optimizer = ADAMW,
     .gpu_refusal = "q and k norms"},
    {.name = "qwen3 tp2 pp2 interleaved",
     .family = LAYOUT_QWEN3,
     .tp = 2,
     .pp = 2,
     .vpp = 2,
     .micro_batch = 2,
     .schedule = INTERLEAVED,
     .optimizer = ADAMW,
     .gpu_refusal = "q and k norms"},
    {.name = "qwen3 pp2 zb-v",
     .family = LAYOUT_QWEN3,
     .pp = 2,
     .vpp = 2,
     .micro_batch = 1,
     .schedule = FR_SCHEDULE_ZB_V,
     .optimizer = ADAMW,
     .gpu_refusal = "q and k norms"},
    {.name = "neox accumulate",
     .family = LAYOUT_NEOX,
     .micro_batch = 2,
     .optimizer = ADAMW,
     .gpu_refusal = "attention and MLP side by side"},
    {.name = "neox tp2",
     .family = LAYOUT_NEOX,
     .tp = 2,
     .micro_batch = 4,
     .optimizer = ADAMW,
     .gpu_refusal = "attention and MLP side by side"},
    {.name = "neox tp2 sp full recompute",
     .family = LAYOUT_NEOX,
     .tp = 2,
     .micro_batch = 4,
     .is_sequence_parallel = true,
     .recompute = FR_RECOMPUTE_FULL,
     .optimizer = ADAMW,
     .gpu_refusal = "attention and MLP side by side"},
    {.name = "neox recompute mlp",
     .family = LAYOUT_NEOX,
     .micro_batch = 2,
     .recompute = FR_RECOMPUTE_SELECTIVE,
     .recompute_parts = FR_RECOMPUTE_PART_MLP,
     .optimizer = ADAMW,
     .gpu_refusal = "attention and MLP side by side"},
    {.name = "neox pp2 zb-h1",
     .family = LAYOUT_NEOX,
     .pp = 2,
     .micro_batch = 1,
     .schedule = FR_SCHEDULE_ZB_H1,
     .optimizer = ADAMW,
     .gpu_refusal = "attention and MLP side by side"},
    {.name = "neox dp2 pp2 zero2",
     .family = LAYOUT_NEOX,
     .dp = 2,
     .pp = 2,
     .zero = 2,
     .micro_batch = 1,
     .schedule = F1B,
     .optimizer = ADAMW,
     .gpu_refusal = "attention and MLP side by side"},
    {.name = "gemma tp2",
     .family = LAYOUT_GEMMA,
     .tp = 2,
     .micro_batch = 2,
     .optimizer = ADAMW,
     .gpu_refusal = "a scaled embedding"},
    {.name = "gemma tp2 sp pp2",
     .family = LAYOUT_GEMMA,
     .tp = 2,
     .pp = 2,
     .micro_batch = 2,
     .schedule = F1B,
     .is_sequence_parallel = true,
     .optimizer = ADAMW,
     .gpu_refusal = "a scaled embedding"},
    {.name = "gemma dp4 zero3",
     .family = LAYOUT_GEMMA,
     .dp = 4,
     .zero = 3,
     .micro_batch = 1,
     .optimizer = ADAMW,
     .gpu_refusal = "a scaled embedding"},
    {.name = "mistral accumulate",
     .family = LAYOUT_MISTRAL,
     .micro_batch = 2,
     .optimizer = ADAMW,
     .gpu_refusal = "a sliding window"},
    {.name = "mistral selective recompute",
     .family = LAYOUT_MISTRAL,
     .micro_batch = 2,
     .recompute = FR_RECOMPUTE_SELECTIVE,
     .optimizer = ADAMW,
     .gpu_refusal = "a sliding window"},
    {.name = "mistral tp2 dp2",
     .family = LAYOUT_MISTRAL,
     .tp = 2,
     .dp = 2,
     .micro_batch = 2,
     .optimizer = ADAMW,
     .gpu_refusal = "a sliding window"},
};

const int layout_rows_n = sizeof layout_rows / sizeof *layout_rows;

layout_row layout_alone(const layout_row *row)
{
    return (layout_row){.name = "alone",
                        .is_llama = row->is_llama,
                        .family = row->family,
                        .optimizer = row->optimizer,
                        .micro_batch = 8};
}

fr_job layout_job(const layout_row *row, int64_t n_steps)
{
    static const double rates[FR_OPTIMIZER_N] = {
        [SGD] = 0.03, [LARS] = 0.5, [LAMB] = 0.02, [ADAMW] = 0.003};
    fr_job job;

    fr_job_init(&job);
    job.global_batch = 8;
    job.seq = 32;
    job.n_steps = n_steps;
    job.seed = 20240311;
    job.optimizer = row->optimizer;
    job.lr = rates[row->optimizer];
    if (row->optimizer == SGD || row->optimizer == LARS)
        job.beta1 = 0.9;
    job.trust_coefficient = 0.01;
    job.clip_norm = 0.7; /* of gradients with norms around 1 to 3 */
    job.warmup_steps = 3;
    job.lr_schedule = FR_LR_COSINE;
    return job;
}

fr_plan layout_plan(const layout_row *row, layout_target target)
{
    fr_plan plan;

    fr_plan_init(&plan);
    plan.dp = row->dp ? row->dp : 1;
    plan.tp = row->tp ? row->tp : 1;
    plan.pp = row->pp ? row->pp : 1;
    plan.vpp = row->vpp ? row->vpp : 1;
    plan.cp = row->cp ? row->cp : 1;
    plan.cp_kind = row->cp_kind;
    plan.micro_batch = row->micro_batch;
    plan.zero_stage = row->zero;
    plan.zero_group = row->zero_group;
    plan.is_resharded = !row->is_kept;
    plan.recompute_layers = row->recompute_layers;
    if (row->recompute_parts != 0)
        plan.recompute_parts = row->recompute_parts;
    plan.recompute = row->recompute;
    plan.is_sequence_parallel = row->is_sequence_parallel;
    plan.schedule = plan.pp > 1 ? row->schedule : F1B;
    plan.is_overlap = !row->is_serial;
    if (row->bucket_bytes)
        plan.bucket_bytes = row->bucket_bytes;
    plan.rank_order = row->order;
    plan.collective = row->collective;
    plan.activation_offload_frac = row->offload_frac;
    plan.n_threads = 1;
    int n_layers = 0;
    for (int i = 0; i < 4; i++)
        n_layers += row->split[i];
    for (int i = 0; n_layers > 0 && i < plan.pp; i++)
        plan.layer_split[plan.n_split++] = row->split[i];
    plan.is_flash = row->is_flash || target == LAYOUT_GPU;
    if (target == LAYOUT_GPU) {
        plan.kernels = FR_KERNELS_OWN;
    }
    return plan;
}

int layout_world(const layout_row *row)
{
    fr_plan plan = layout_plan(row, LAYOUT_CPU);

    return (int)fr_plan_world(&plan);
}

bool layout_is_refused(const layout_row *row, layout_target target)
{
    const char *reason =
        target == LAYOUT_GPU ? row->gpu_refusal : row->cpu_refusal;
    fr_plan plan = layout_plan(row, target);
    fr_job job = layout_job(row, 1);
    fr_model model;
    fr_err err = {0};

    if (!CHECK_OK(layout_model(row, &model, &err), &err))
        return true;
    fr_status status =
        target == LAYOUT_GPU
            ? fr_plan_check_executable_gpu(&plan, &model, &job, &err)
            : fr_plan_check_executable(&plan, &model, &job, &err);
    check_that((status != FR_OK) == (reason != NULL), __FILE__, __LINE__,
               "%s: %s", row->name, status != FR_OK ? err.text : "not refused");
    if (reason != NULL && status != FR_OK)
        check_that(strstr(err.text, reason) != NULL, __FILE__, __LINE__,
                   "%s is refused for another reason: %s", row->name, err.text);
    /* Fused attention is the only difference between the two plans. */
    plan = layout_plan(row, LAYOUT_CPU);
    if (target == LAYOUT_GPU && reason == NULL)
        CHECK(fr_plan_check_executable_gpu(&plan, &model, &job, &err) ==
                  FR_INPUT &&
              strstr(err.text, "attention that keeps its probabilities") !=
                  NULL);
    fr_model_release(&model);
    return status != FR_OK;
}
