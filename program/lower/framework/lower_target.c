/* lower_target.c: from model, job, plan and placement to the target. */
#include "program/lower/framework/lower_target.h"

static lower_kernels kernels_of(const fr_model *model, const fr_job *job,
                                const fr_plan *plan)
{
    static const lower_kernels rows[FR_KERNELS_N] = {
        [FR_KERNELS_FUSED] = LOWER_KERNELS_FUSED,
        [FR_KERNELS_COMPILED] = LOWER_KERNELS_COMPILED,
        [FR_KERNELS_EAGER] = LOWER_KERNELS_EAGER,
        [FR_KERNELS_OWN] = LOWER_KERNELS_PLANNED};
    return fr_plan_is_executable(plan, model, job)
               ? LOWER_KERNELS_RUN
               : rows[plan->execution.kernels];
}

bool lower_has_row_scales(const fr_plan *plan)
{
    return plan->precision == FR_DTYPE_FP8 &&
           plan->execution.scaling == FR_SCALING_ROW;
}

lower_target lower_target_of(const fr_model *model, const fr_job *job,
                             const fr_plan *plan, bool is_framework_step)
{
    lower_target target = {.kernels = kernels_of(model, job, plan),
                           .is_framework_step = is_framework_step,
                           .is_f32 = plan->precision == FR_DTYPE_F32,
                           .is_low = fr_dtype_bytes(plan->precision) < 2 &&
                                     !lower_has_row_scales(plan)};
    /* torch.compile drops what nothing reads, but no wait for a collective
     * (torch/distributed/_functional_collectives.py, has_side_effect), so that
     * all before the last one is made again with tensor parallelism. */
    const bool is_cut = target.kernels == LOWER_KERNELS_COMPILED
                            ? plan->tp == 1
                            : plan->execution.is_early_stop;
    target.is_early_stop = target.is_f32 || is_cut;
    bool is_ours = !plan->is_flash &&
                   (target.is_f32 || target.kernels == LOWER_KERNELS_RUN);
    /* The runtime's fused kernels compute probabilities again themselves. */
    if (plan->is_flash || (is_ours && plan->recompute != FR_RECOMPUTE_NONE))
        target.attention = LOWER_ATTENTION_FUSED;
    else
        target.attention =
            is_ours ? LOWER_ATTENTION_ROWS : LOWER_ATTENTION_APART;
    target.is_core_recomputed =
        plan->recompute == FR_RECOMPUTE_SELECTIVE &&
        plan->recompute_parts & FR_RECOMPUTE_PART_ATTENTION && !is_ours;
    /*
     * Fused kernels around unfused attention are Megatron-LM's own: its product
     * of queries and keys takes an operand of the size of the scores that it
     * never gives back (core/transformer/dot_product_attention.py,
     * matmul_input_buffer of the global memory buffer).
     */
    target.has_scores_buffer = target.attention == LOWER_ATTENTION_APART &&
                               target.kernels == LOWER_KERNELS_FUSED &&
                               model->kind != FR_MODEL_LAYERS;
    target.is_unpadded = target.attention == LOWER_ATTENTION_FUSED &&
                         plan->execution.flash_kind == FR_FLASH_1;
    target.is_apart =
        target.kernels & LOWER_KERNELS_PYTORCH && model->is_gated_mlp;
    target.is_loss_narrow = fr_plan_is_loss_narrow(plan);
    return target;
}
