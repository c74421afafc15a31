/* gpu_memory.c: see gpu_memory.h. */
#include "cost_models/gpu/gpu_memory.h"

#include "cost_models/gpu/gpu_model.h"

static const double context_bytes = 500e6;
static const double volta_context_bytes = 1113.0 * 1048576;
static const double nccl_pair_bytes = 342e6, nccl_group_bytes = 392e6;
/* Both figures spread by a factor of 1.5 to 2 between versions. */
static const double spread_rel_err = 0.3;

bool fr_gpu_is_by_framework(const fr_plan *plan, const fr_device_type *device)
{
    return device->kind == FR_DEVICE_GPU && plan->kernels != FR_KERNELS_OWN;
}

fr_gpu_memory fr_gpu_memory_overhead(const fr_plan *plan,
                                     const fr_device_type *device)
{
    const fr_gpu_generation_row *row =
        &fr_gpu_generations[fr_gpu_generation_of(device)];
    int64_t n_data = (int64_t)plan->dp * plan->cp;
    int64_t n_stage = n_data * plan->tp;
    int64_t etp = plan->etp > 0 ? plan->etp : plan->tp;
    const int64_t groups[] = {
        fr_plan_world(plan),
        plan->tp,
        plan->cp,
        plan->pp,
        n_data,
        plan->ep,
        /* Experts have a data-parallel group of their own. */
        plan->ep > 1 ? n_stage / (plan->ep * etp) : 1,
    };
    double nccl_bytes = 0;
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        /* The world's communicator serves the axis that is all of it. */
        if (i > 0 && groups[i] == groups[0])
            continue;
        if (groups[i] > 1)
            nccl_bytes += groups[i] == 2 ? nccl_pair_bytes : nccl_group_bytes;
    }
    return (fr_gpu_memory){.context_bytes = (uint64_t)(row->has_large_context
                                                           ? volta_context_bytes
                                                           : context_bytes),
                           .nccl_bytes = (uint64_t)nccl_bytes,
                           .rel_err = spread_rel_err};
}

fr_gpu_workspaces fr_gpu_workspaces_of(const fr_plan *plan,
                                       const fr_model *model,
                                       const fr_device_type *device)
{
    enum { N_HANDLES = 2, N_GROUPED_STREAMS = 4 };
    fr_gpu_workspaces out = {0};
    const fr_gpu_generation_row *row =
        &fr_gpu_generations[fr_gpu_generation_of(device)];
    for (int i = 0; i < N_HANDLES; i++)
        out.n_bytes[out.n++] = row->blas_bytes;
    if (row->fused_bytes == 0 || !plan->is_flash ||
        plan->kernels != FR_KERNELS_FUSED || model->kind == FR_MODEL_LAYERS)
        return out;
    int n = 1 + (model->n_experts > 0 ? N_GROUPED_STREAMS : 0);
    for (int i = 0; i < n; i++)
        out.n_bytes[out.n++] = row->fused_bytes;
    return out;
}
