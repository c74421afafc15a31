/* framework_plan.c: see framework_plan.h; the facts stand with the rows. */
#include "frameworks/framework_plan.h"

#include <string.h>

/* Megatron: max(40 M, 1 M x dp) gradients, and one bucket where nothing
 * overlaps.  Others: PyTorch's DDP, which the field begins with. */
static uint64_t bucket_of(const fr_framework_facts *how, const fr_plan *plan)
{
    double n = 40e6 > 1e6 * plan->dp ? 40e6 : 1e6 * plan->dp;
    uint64_t grad_bytes = plan->grad_dtype == FR_DTYPE_F32 ? 4 : 2;
    if (how->bucket_elements > 0)
        return how->bucket_elements * grad_bytes;
    if (!how->has_megatron_buckets)
        return (uint64_t)fr_plan_fields[FR_PLAN_BUCKET].field.initial;
    return plan->is_overlap ? (uint64_t)n * grad_bytes : 0;
}

/* In float32, but where all frameworks add up in f16, or this one in bf16. */
static fr_dtype grad_dtype_of(const fr_framework_facts *how,
                              const fr_plan *plan)
{
    if (plan->precision == FR_DTYPE_F16)
        return FR_DTYPE_F16;
    return how->is_bf16_grad && fr_plan_storage_dtype(plan) == FR_DTYPE_BF16
               ? FR_DTYPE_BF16
               : FR_DTYPE_F32;
}

/* All that the framework executes in a way of its own.  Graphs and the
 * imbalance of experts are no framework's: they stay. */
static void set_execution(const fr_framework_facts *how, fr_plan *plan)
{
    fr_execution *execution = &plan->execution;
    execution->kernels = how->kernels;
    execution->flash_kind = how->flash_kind;
    execution->compress_by = how->compress_by;
    execution->scaling = how->scaling;
    execution->zero_unit =
        plan->zero_stage == 3 ? how->zero_unit : FR_ZERO_UNIT_LAYER;
    execution->is_loss_fused = how->is_loss_fused;
    execution->n_loss_metrics = how->n_loss_metrics;
    execution->is_grad_added_apart =
        how->is_grad_added_apart && plan->grad_dtype == FR_DTYPE_F16;
    execution->is_grad_listed = how->is_grad_listed;
    execution->is_routing_fused = how->is_routing_fused;
    execution->is_norm_fused = how->is_norm_fused;
    execution->is_early_stop = how->is_early_stop;
    execution->is_p2p_sync = how->is_p2p_sync;
}

static void take_back(const fr_field *field, const fr_plan *asked,
                      fr_plan *plan)
{
    memcpy((char *)plan + field->offset, (const char *)asked + field->offset,
           field->n_bytes);
}

void fr_framework_set_plan(const fr_framework *framework, uint64_t given,
                           fr_execution_bits facts, fr_plan *plan)
{
    const fr_framework_facts *how = framework->facts;
    const fr_plan asked = *plan;
    const bool is_gathered = plan->zero_stage == 3; /* overlaps always */
    plan->grad_dtype = grad_dtype_of(how, plan);
    plan->is_overlap = how->is_overlap || is_gathered;
    plan->is_gather_overlap = how->is_gather_overlap || is_gathered;
    plan->is_tp_overlap = how->is_tp_overlap && plan->tp > 1;
    plan->is_sequence_parallel = how->has_sequence_parallel && plan->tp > 1;
    plan->is_flash = plan->is_flash && !how->is_unfused;
    /* torchtitan keeps gathered weights where a pipeline would gather them
     * once per micro-batch (reshard_after_forward: default). */
    plan->is_resharded = !(how->is_mbs_local && plan->pp > 1);
    plan->recompute_parts = how->is_per_op_recompute
                                ? FR_RECOMPUTE_PART_PRODUCTS
                                : FR_RECOMPUTE_PART_ATTENTION;
    plan->cp_kind = how->cp_kind;
    for (int i = 0; i < FR_PLAN_FIELDS_N; i++)
        if (given >> i & 1)
            take_back(&fr_plan_fields[i].field, &asked, plan);
    /* These follow from what the plan has now. */
    set_execution(how, plan);
    for (int i = 0; i < FR_EXECUTION_FIELDS_N; i++)
        if (facts >> i & 1)
            take_back(&fr_execution_fields[i].field, &asked, plan);
    if (!(given & FR_GIVEN(BUCKET)))
        plan->bucket_bytes = bucket_of(how, plan);
}

/* Does the configuration have the fact, or is it refused?  Kernel sets but the
 * compiler's are those of a framework, which no key asks for. */
static bool is_said(const fr_target *target, int i, const fr_plan *plan)
{
    if (i == FR_EXECUTION_KERNELS &&
        plan->execution.kernels != FR_KERNELS_COMPILED)
        return false;
    return fr_target_item(target, FR_PLAN_FIELDS_N + i).fate !=
           FR_FATE_PREDICTED;
}

fr_execution_bits fr_framework_said_facts(const fr_framework *framework,
                                          const fr_plan *plan)
{
    fr_execution_bits facts = 0;
    if (framework->target == NULL)
        return 0;
    const fr_target *backend = fr_target_backend(framework->target, plan);
    for (int i = 0; i < FR_EXECUTION_FIELDS_N; i++)
        if (is_said(backend, i, plan))
            facts |= (fr_execution_bits)1 << i;
    return facts;
}

void fr_framework_run_plan(const fr_framework *framework,
                           fr_execution_bits given, fr_plan *plan)
{
    const fr_plan asked = *plan;
    const fr_framework *own = framework;
    if (framework->target != NULL) {
        const fr_target *backend = fr_target_backend(framework->target, plan);
        own = backend->executes_as != NULL ? backend->executes_as : framework;
    }
    given |= fr_framework_said_facts(framework, plan);
    set_execution(own->facts, plan);
    for (int i = 0; i < FR_EXECUTION_FIELDS_N; i++)
        if (given >> i & 1)
            take_back(&fr_execution_fields[i].field, &asked, plan);
}

int64_t fr_framework_vocab(const fr_framework *framework, const fr_plan *plan,
                           const fr_model *model)
{
    const int64_t unit = 128 * (int64_t)plan->tp;
    if (!framework->facts->is_vocab_padded || model->kind == FR_MODEL_LAYERS)
        return model->vocab;
    return (model->vocab + unit - 1) / unit * unit;
}

double fr_framework_dropout(const fr_framework *framework,
                            const char *model_name)
{
    const bool has_dropout = strcasestr(model_name, "gpt") != NULL ||
                             strcasestr(model_name, "bert") != NULL;
    return has_dropout ? framework->facts->gpt_dropout : 0;
}
