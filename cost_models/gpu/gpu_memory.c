/* gpu_memory.c: see gpu_memory.h. */
#include "cost_models/gpu/gpu_memory.h"

#include "cost_models/gpu/gpu_model.h"
#include "plan/decide/grid.h"

static const double context_bytes = 500e6;
static const double volta_context_bytes = 1113.0 * 1048576;
static const double nccl_pair_bytes = 342e6, nccl_group_bytes = 392e6;
/* Both figures spread by a factor of 1.5 to 2 between versions. */
static const double spread_rel_err = 0.3;

bool fr_gpu_is_by_framework(const fr_plan *plan, const fr_device_type *device)
{
    return device->kind == FR_DEVICE_GPU &&
           plan->execution.kernels != FR_KERNELS_OWN;
}

/* Groups of one rank have none; the world's serves the axis that is all of
 * it, and where experts are not spread their groups are the others'. */
static bool has_communicator(const fr_plan *plan, fr_axis axis, bool is_sharded)
{
    const int64_t n = fr_plan_group_size(plan, axis);
    if (n < 2 || (axis != FR_AXIS_WORLD && n == fr_plan_world(plan)))
        return false;
    switch (axis) {
    case FR_AXIS_DP:
        return plan->zero_group == 0;
    case FR_AXIS_SHARD:
    case FR_AXIS_REPLICA:
        return plan->zero_group > 0;
    case FR_AXIS_EDP:
        return plan->ep > 1;
    case FR_AXIS_ETP:
        return n != plan->tp;
    case FR_AXIS_MODEL: /* sums the norm of gradients that nobody shards */
        return !is_sharded && plan->tp > 1 && plan->pp > 1;
    case FR_AXIS_EMBED: /* of two stages only */
        return false;
    default:
        return true;
    }
}

static fr_gpu_memory overhead_of(const fr_plan *plan,
                                 const fr_device_type *device, bool is_sharded)
{
    const fr_gpu_generation_row *row =
        &fr_gpu_generations[fr_gpu_generation_of(device)];
    double nccl_bytes = 0;
    for (int axis = FR_AXIS_NONE; axis < FR_AXIS_N; axis++)
        if (has_communicator(plan, (fr_axis)axis, is_sharded))
            nccl_bytes += fr_plan_group_size(plan, (fr_axis)axis) == 2
                              ? nccl_pair_bytes
                              : nccl_group_bytes;
    return (fr_gpu_memory){.context_bytes = (uint64_t)(row->has_large_context
                                                           ? volta_context_bytes
                                                           : context_bytes),
                           .nccl_bytes = (uint64_t)nccl_bytes,
                           .rel_err = spread_rel_err};
}

fr_gpu_memory fr_gpu_memory_overhead(const fr_plan *plan,
                                     const fr_device_type *device)
{
    return overhead_of(plan, device, plan->zero_stage > 0);
}

fr_gpu_memory fr_gpu_memory_least(const fr_plan *plan,
                                  const fr_device_type *device)
{
    return overhead_of(plan, device, true);
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
        plan->execution.kernels != FR_KERNELS_FUSED ||
        model->kind == FR_MODEL_LAYERS)
        return out;
    int n = 1 + (model->n_experts > 0 ? N_GROUPED_STREAMS : 0);
    for (int i = 0; i < n; i++)
        out.n_bytes[out.n++] = row->fused_bytes;
    return out;
}
