/* plan.c: sizes that follow from a plan alone. */
#include "plan/decide/plan.h"

#include "plan/codec/optimizer.h"

int64_t fr_plan_world(const fr_plan *plan)
{
    return (int64_t)plan->tp * plan->pp * plan->dp * plan->cp;
}

fr_dtype fr_plan_storage_dtype(const fr_plan *plan)
{
    switch (plan->precision) {
    case FR_DTYPE_F16:
        return FR_DTYPE_F16;
    case FR_DTYPE_BF16:
    case FR_DTYPE_FP8:
    case FR_DTYPE_FP4:
        return FR_DTYPE_BF16;
    default:
        return FR_DTYPE_F32;
    }
}

bool fr_plan_is_loss_narrow(const fr_plan *plan)
{
    return fr_plan_storage_dtype(plan) != FR_DTYPE_F32 &&
           (plan->execution.is_loss_fused ||
            plan->execution.kernels == FR_KERNELS_OWN);
}

bool fr_plan_has_master(const fr_plan *plan)
{
    return fr_plan_storage_dtype(plan) != FR_DTYPE_F32;
}

uint64_t fr_plan_checkpoint_bytes(const fr_plan *plan, const fr_model *model,
                                  const fr_job *job)
{
    const uint64_t n = fr_model_parameters(model);
    return n * fr_dtype_bytes(fr_plan_storage_dtype(plan)) +
           fr_optimizer_resident_bytes(job->optimizer, n,
                                       fr_plan_has_master(plan));
}

int32_t fr_plan_even_layers(const fr_plan *plan, const fr_model *model,
                            int32_t i_stage)
{
    int64_t n_stages = (int64_t)plan->pp * plan->vpp;
    int64_t rest = model->n_layers % n_stages;
    return (int32_t)(model->n_layers / n_stages + (i_stage < rest));
}

int32_t fr_plan_stage_layers(const fr_plan *plan, const fr_model *model,
                             int32_t i_stage)
{
    return plan->n_split > 0 ? plan->layer_split[i_stage]
                             : fr_plan_even_layers(plan, model, i_stage);
}
