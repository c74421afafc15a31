#include "cost_models/gpu_memory.h"

static const double context_bytes = 500e6;
static const double nccl_pair_bytes = 342e6, nccl_group_bytes = 392e6;
/* Both figures spread by a factor of 1.5 to 2 between versions. */
static const double spread_rel_err = 0.3;

fr_gpu_memory fr_gpu_memory_besides(const fr_plan *plan)
{
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
    return (fr_gpu_memory){.context_bytes = (uint64_t)context_bytes,
                           .nccl_bytes = (uint64_t)nccl_bytes,
                           .rel_err = spread_rel_err};
}
