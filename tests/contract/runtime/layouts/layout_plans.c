/* layout_plans.c: the model, the job and the plan of each layout. */
#include "tests/check.h"
#include "tests/contract/runtime/layouts/layout_rows.h"
#include "tests/contract/runtime/rounding.h"

#include <stdlib.h>
#include <string.h>

/* Sequences are longer than the 16 positions that stretched rotary frequencies
 * begin at, and can be cut into 8. */
enum { GLOBAL_BATCH = 8, SEQ = 24 };

/* Shares of an auxiliary loss, and the rows that an expert has room for, are
 * those of a micro-batch. */
static bool is_by_micro_batch(const layout_row *row)
{
    return row->family == LAYOUT_AUX || row->family == LAYOUT_CAPPED;
}

layout_row layout_alone(const layout_row *row)
{
    return (layout_row){.name = "alone",
                        .is_llama = row->is_llama,
                        .family = row->family,
                        .optimizer = row->optimizer,
                        .is_bf16 = row->is_bf16,
                        .dropout = row->dropout,
                        .is_flash = row->dropout > 0,
                        .micro_batch = is_by_micro_batch(row) ? 2 : 8};
}

fr_job layout_job(const layout_row *row, int64_t n_steps)
{
    static const double rates[FR_OPTIMIZER_N] = {[FR_OPTIMIZER_SGD] = 0.03,
                                                 [FR_OPTIMIZER_LARS] = 0.5,
                                                 [FR_OPTIMIZER_LAMB] = 0.02,
                                                 [FR_OPTIMIZER_ADAMW] = 0.003};
    fr_job job;

    fr_job_init(&job);
    job.global_batch = GLOBAL_BATCH;
    job.seq = SEQ;
    job.n_steps = n_steps;
    job.seed = 20240311;
    job.optimizer = row->optimizer;
    job.lr = rates[row->optimizer];
    if (row->optimizer == FR_OPTIMIZER_SGD ||
        row->optimizer == FR_OPTIMIZER_LARS)
        job.beta1 = 0.9;
    job.trust_coefficient = 0.01;
    job.clip_norm = 0.7; /* of gradients with norms around 1 to 3 */
    job.warmup_steps = 3;
    job.dropout = row->dropout;
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
    plan.ep = row->ep ? row->ep : 1;
    plan.etp = row->etp;
    plan.is_ep_overlap = row->is_ep_overlap;
    plan.expert_capacity = row->family == LAYOUT_CAPPED ? 0.8 : 0;
    plan.is_expert_padded = row->is_padded;
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
    plan.is_tp_overlap = row->is_tp_overlap;
    plan.schedule = plan.pp > 1 ? row->schedule : FR_SCHEDULE_1F1B;
    plan.is_overlap = !row->is_serial;
    if (row->bucket_bytes)
        plan.bucket_bytes = row->bucket_bytes;
    plan.rank_order = row->order;
    plan.collective = row->collective;
    plan.server_place = row->server_place;
    plan.n_servers = row->n_servers;
    plan.activation_offload_frac = row->offload_frac;
    plan.is_optimizer_offloaded = row->is_optimizer_away;
    plan.n_threads = 1;
    int n_layers = 0;
    for (int i = 0; i < 4; i++)
        n_layers += row->split[i];
    for (int i = 0; n_layers > 0 && i < plan.pp; i++)
        plan.layer_split[plan.n_split++] = row->split[i];
    for (int i = 0; i < plan.dp && row->shares[i] > 0; i++)
        plan.batch_shares[plan.n_shares++] = row->shares[i];
    plan.is_flash = row->is_flash || (!row->is_unfused &&
                                      (row->is_bf16 || target == LAYOUT_GPU));
    if (row->is_bf16 || target == LAYOUT_GPU)
        plan.execution.kernels = FR_KERNELS_OWN;
    if (row->is_bf16)
        plan.precision = FR_DTYPE_BF16;
    if (row->has_bf16_grads)
        plan.grad_dtype = FR_DTYPE_BF16;
    return plan;
}

double layout_loss_tolerance(const layout_row *row)
{
    return row->is_bf16 ? rounding_of_loss(4, GLOBAL_BATCH * SEQ) : 1e-4;
}

double layout_gradient_tolerance(const layout_row *row)
{
    double sums =
        row->has_bf16_grads ? rounding_of_sums(GLOBAL_BATCH * SEQ) : 0;
    return row->is_bf16 ? rounding_of_gradients(4) + sums : 1e-5;
}

int layout_world(const layout_row *row)
{
    fr_plan plan = layout_plan(row, LAYOUT_CPU);

    return (int)fr_plan_world(&plan);
}

bool layout_can_share(const layout_row *row)
{
    return layout_world(row) == 1 ||
           (row->offload_frac <= 0 && !row->is_optimizer_away);
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
    /* Attention may be fused or not, but that of a ring is always fused. */
    plan.is_flash = false;
    const bool is_ring = plan.cp > 1 && plan.cp_kind == FR_CP_RING;
    if (target == LAYOUT_GPU && reason == NULL && !is_ring)
        CHECK_OK(fr_plan_check_executable_gpu(&plan, &model, &job, &err), &err);
    fr_model_release(&model);
    return status != FR_OK;
}

const char *layout_part(void)
{
    return getenv("LAYOUT");
}

bool layout_is_chosen(const layout_row *row)
{
    if (layout_part() != NULL)
        return strstr(row->name, layout_part()) != NULL;
    return check_in_slice((size_t)(row - layout_rows));
}
