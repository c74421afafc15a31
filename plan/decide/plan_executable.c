/*
 * plan_executable.c: which plans the runtime can train, on CPUs and on GPUs.
 */
#include "plan/collective/collective.h"
#include "plan/decide/plan.h"
#include "plan/decide/plan_refuse.h"
#include "plan/schedule/schedule.h"

/* What of the model's arithmetic has kernels. */
static fr_status check_model_executable(const fr_model *model, int64_t seq,
                                        const char *whose, fr_err *err)
{
    if (model->kind == FR_MODEL_LAYERS)
        return fr_plan_refuse(err, "a plain list of layers",
                              "choose a decoder transformer");
    if (model->kind == FR_MODEL_ENCODER)
        return fr_plan_refuse(err, "an encoder",
                              "choose a decoder transformer");
    if (model->n_experts > 0)
        return fr_plan_refuse(err, "a mixture of experts",
                              "choose a dense model");
    if (model->kv_lora_rank > 0)
        return fr_plan_refuse(
            err, "multi-head latent attention",
            "choose a model with plain or grouped-query attention");
    if (model->has_qk_norm)
        return fr_plan_refuse(err, "q and k norms (qwen3)",
                              "choose a model without them");
    if (model->is_parallel_block || model->rope_frac < 1.0)
        return fr_plan_refuse(err, "attention and MLP side by side (gpt_neox)",
                              "choose gpt2 or llama");
    if (model->has_rope_scaling)
        return fr_plan_refuse(err, "rescaled rotary frequencies",
                              "leave rope scaling out");
    if (model->has_scaled_embedding)
        return fr_plan_refuse(err, "a scaled embedding (gemma)",
                              "choose gpt2 or llama");
    fr_activation expected =
        model->is_gated_mlp ? FR_ACTIVATION_SILU : FR_ACTIVATION_GELU_TANH;
    if (model->activation != expected)
        return fr_fail(err, FR_INPUT,
                       "the %s runtime has %s in %s MLPs, not %s; change the "
                       "activation",
                       whose, fr_activation_name(expected),
                       model->is_gated_mlp ? "gated" : "plain",
                       fr_activation_name(model->activation));
    if (model->sliding_window > 0 && model->sliding_window < seq)
        return fr_plan_refuse(err, "a sliding window that is shorter than seq",
                              "choose a shorter seq");
    return FR_OK;
}

static fr_status check_precision_executable(const fr_plan *plan, bool is_gpu,
                                            fr_err *err)
{
    bool is_known = plan->precision == FR_DTYPE_F32 ||
                    (is_gpu && (plan->precision == FR_DTYPE_TF32 ||
                                plan->precision == FR_DTYPE_BF16));
    bool is_grad_known = plan->grad_dtype == FR_DTYPE_F32 ||
                         (is_gpu && plan->grad_dtype == FR_DTYPE_BF16);
    if (is_gpu && !plan->is_flash)
        return fr_plan_refuse(err,
                              "attention that keeps its probabilities, on GPUs",
                              "choose flash attention");
    if (is_known && is_grad_known)
        return FR_OK;
    return is_gpu
               ? fr_plan_refuse(err, "precisions other than f32, tf32 and bf16",
                                "choose precision bf16")
               : fr_plan_refuse(err, "precisions other than f32",
                                "choose precision f32");
}

/* Between GPUs the collectives are NCCL's. */
static fr_status check_collective_executable(const fr_plan *plan, bool is_gpu,
                                             fr_err *err)
{
    const fr_collective *entry = fr_collectives[plan->collective];
    if (entry == NULL)
        return FR_OK;
    if (entry->not_executable != NULL)
        return fr_plan_refuse(err, entry->not_executable,
                              "choose collective auto");
    if (!is_gpu || entry->has_nccl || plan->dp * plan->cp == 1)
        return FR_OK;
    return fr_fail(err, FR_INPUT,
                   "the runtime has no %s between GPUs (NCCL has none); choose "
                   "collective ring, double-tree or auto",
                   entry->name);
}

static fr_status check_executable(const fr_plan *plan, const fr_model *model,
                                  const fr_job *job, bool is_gpu, fr_err *err)
{
    FR_TRY(fr_plan_check_lowerable(plan, model, job, err));
    FR_TRY(
        check_model_executable(model, job->seq, is_gpu ? "GPU" : "CPU", err));
    if (job->dropout > 0)
        return fr_plan_refuse(err, "dropout", "choose dropout 0");
    if (plan->cp > 1 && (is_gpu || plan->cp_kind != FR_CP_ALL_GATHER))
        return fr_plan_refuse(err, "context parallel plans", "choose cp 1");
    if (plan->ep > 1)
        return fr_plan_refuse(err, "expert parallel plans", "choose ep 1");
    FR_TRY(check_precision_executable(plan, is_gpu, err));
    if (plan->recompute == FR_RECOMPUTE_FULL && plan->recompute_layers > 0)
        return fr_plan_refuse(err, "recompute of some layers",
                              "choose recompute_layers 0, all of them");
    if (plan->zero_stage == 3 && plan->zero_unit == FR_ZERO_UNIT_PARAMETER)
        return fr_plan_refuse(err, "ZeRO 3 parameter by parameter",
                              "choose zero_unit layer");
    if (plan->compressor != FR_COMPRESSOR_NONE &&
        (plan->zero_stage > 1 || plan->zero_group > 0))
        return fr_plan_refuse(err,
                              "compressed gradients with ZeRO 2, 3 or over a "
                              "part of dp",
                              "choose zero 1, or compress none");
    if (plan->is_tp_overlap)
        return fr_plan_refuse(err, "tensor-parallel overlap", "leave it out");
    if (plan->is_optimizer_offloaded ||
        (plan->activation_offload_frac > 0 && !is_gpu))
        return fr_plan_refuse(err, "offload to the host", "leave it out");
    return check_collective_executable(plan, is_gpu, err);
}

fr_status fr_plan_check_executable(const fr_plan *plan, const fr_model *model,
                                   const fr_job *job, fr_err *err)
{
    FR_TRY(check_executable(plan, model, job, false, err));
    if (plan->protocol != FR_PROTOCOL_AUTO || plan->n_channels > 0)
        return fr_fail(err, FR_INPUT,
                       "the CPU runtime has no NCCL; leave out nccl_protocol "
                       "and nccl_channels");
    return FR_OK;
}

fr_status fr_plan_check_executable_gpu(const fr_plan *plan,
                                       const fr_model *model, const fr_job *job,
                                       fr_err *err)
{
    return check_executable(plan, model, job, true, err);
}

bool fr_plan_is_executable(const fr_plan *plan, const fr_model *model,
                           const fr_job *job)
{
    return check_executable(plan, model, job, false, NULL) == FR_OK ||
           (plan->kernels == FR_KERNELS_OWN &&
            check_executable(plan, model, job, true, NULL) == FR_OK);
}
