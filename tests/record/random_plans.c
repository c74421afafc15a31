/* random_plans.c: plans for the recorder, see random_plans.h. */
#include "tests/record/random_plans.h"

static int64_t pick(fr_rng *rng, int64_t n)
{
    return (int64_t)fr_rng_below(rng, (uint64_t)n);
}

static int32_t power(fr_rng *rng, int64_t n)
{
    return (int32_t)(1 << pick(rng, n));
}

/* One time in n: true. */
static bool once_in(fr_rng *rng, int64_t n)
{
    return pick(rng, n) == 0;
}

static void draw_ranks(fr_rng *rng, const fr_model *model, int64_t n_devices,
                       fr_plan *plan)
{
    do {
        plan->tp = power(rng, 4);
        plan->pp = power(rng, 4);
        plan->dp = power(rng, once_in(rng, 4) ? 8 : 4);
        plan->cp = once_in(rng, 4) ? power(rng, 3) : 1;
    } while (fr_plan_world(plan) > (n_devices < 512 ? n_devices : 512));
    if (model->n_experts > 0) {
        plan->ep = power(rng, 4);
        plan->etp = pick(rng, 2) ? 1 : 0;
    }
    plan->rank_order = (fr_rank_order)pick(rng, FR_RANK_ORDER_N);
    plan->micro_batch = power(rng, 3);
    plan->schedule = (fr_schedule_kind)pick(rng, FR_SCHEDULE_N);
    plan->vpp = plan->schedule == FR_SCHEDULE_INTERLEAVED ? power(rng, 2) * 2
                : plan->schedule == FR_SCHEDULE_ZB_V      ? 2
                                                          : 1;
    if (plan->pp == 1) {
        plan->schedule = FR_SCHEDULE_1F1B;
        plan->vpp = 1;
    }
}

static void draw_memory(fr_rng *rng, fr_plan *plan)
{
    plan->zero_stage = (int32_t)pick(rng, 4);
    if (plan->zero_stage > 0 && once_in(rng, 4))
        plan->zero_group = power(rng, 3);
    plan->is_resharded = pick(rng, 2);
    plan->n_prefetch = (int32_t)pick(rng, 3);
    if (plan->zero_stage == 3 && once_in(rng, 6))
        plan->execution.zero_unit = FR_ZERO_UNIT_PARAMETER;
    plan->recompute = (fr_recompute)pick(rng, FR_RECOMPUTE_N);
    plan->recompute_parts = FR_RECOMPUTE_PART_ATTENTION;
    if (plan->recompute == FR_RECOMPUTE_SELECTIVE && pick(rng, 2))
        plan->recompute_parts = 1 + (uint32_t)pick(rng, FR_RECOMPUTE_PARTS_ALL);
    if (plan->recompute == FR_RECOMPUTE_FULL)
        plan->recompute_layers = (int32_t)pick(rng, 3);
    plan->is_optimizer_offloaded = once_in(rng, 8);
    plan->activation_offload_frac = once_in(rng, 16) ? 0.37 : 0;
}

static void draw_kernels(fr_rng *rng, fr_plan *plan)
{
    static const fr_dtype dtypes[] = {FR_DTYPE_F32,  FR_DTYPE_BF16,
                                      FR_DTYPE_BF16, FR_DTYPE_BF16,
                                      FR_DTYPE_TF32, FR_DTYPE_FP8};
    plan->is_flash = pick(rng, 4) != 0;
    plan->execution.flash_kind = once_in(rng, 4)
                                     ? (fr_flash_kind)pick(rng, FR_FLASH_N)
                                     : FR_FLASH_NATIVE;
    plan->execution.kernels = once_in(rng, 3)
                                  ? (fr_kernel_set)pick(rng, FR_KERNELS_N)
                                  : FR_KERNELS_FUSED;
    plan->execution.scaling = (fr_scaling)pick(rng, FR_SCALING_N);
    plan->execution.cuda_graphs = (fr_cuda_graphs)pick(rng, FR_CUDA_GRAPHS_N);
    plan->execution.is_loss_fused = pick(rng, 2);
    plan->execution.n_loss_metrics =
        once_in(rng, 6) ? (int32_t)pick(rng, 4) : 0;
    plan->execution.is_grad_added_apart = once_in(rng, 4);
    plan->execution.is_routing_fused = once_in(rng, 4);
    plan->execution.is_norm_fused = once_in(rng, 4);
    plan->execution.is_grad_listed = once_in(rng, 4);
    /* Not drawn: plans of a seed stay what they were. */
    plan->execution.is_early_stop =
        plan->execution.is_norm_fused != plan->execution.is_grad_listed;
    plan->execution.is_p2p_sync = once_in(rng, 4);
    plan->precision = dtypes[pick(rng, 6)];
    plan->grad_dtype = plan->precision == FR_DTYPE_BF16 && once_in(rng, 4)
                           ? FR_DTYPE_BF16
                           : FR_DTYPE_F32;
    plan->n_threads = once_in(rng, 8) ? 2 : 1;
}

static void draw_overlap(fr_rng *rng, fr_plan *plan)
{
    static const uint64_t buckets[] = {0, 1, 1 << 20, 25 << 20, 1 << 30};
    plan->is_sequence_parallel = plan->tp > 1 && pick(rng, 2);
    plan->is_overlap = pick(rng, 2);
    plan->is_gather_overlap = pick(rng, 2);
    plan->is_tp_overlap = plan->is_sequence_parallel && once_in(rng, 4);
    plan->cp_kind = (fr_cp_kind)pick(rng, FR_CP_N);
    plan->bucket_bytes = buckets[pick(rng, 5)];
    plan->expert_dispatch =
        once_in(rng, 6) ? FR_DISPATCH_BY_NODE : FR_DISPATCH_ALL_TO_ALL;
    plan->execution.expert_imbalance =
        plan->ep > 1 && once_in(rng, 4) ? 1.283 : 1;
    if (plan->ep > 1 && pick(rng, 2) &&
        (plan->pp == 1 || plan->schedule == FR_SCHEDULE_INTERLEAVED)) {
        plan->is_ep_overlap = true;
        plan->zero_stage %= 2;
        if (plan->recompute == FR_RECOMPUTE_FULL)
            plan->recompute = FR_RECOMPUTE_NONE;
    }
}

static void draw_gradients(fr_rng *rng, fr_plan *plan)
{
    if (plan->dp > 1 && plan->ep == 1 && plan->zero_stage == 0 &&
        once_in(rng, 4)) {
        plan->compressor = (fr_compressor_kind)(1 + pick(rng, 4));
        plan->compressor_rank = power(rng, 4);
        plan->compressor_density = 0.01 * (double)(1 + pick(rng, 5));
        plan->has_error_feedback = pick(rng, 2);
    }
    if (once_in(rng, 5))
        plan->collective =
            (fr_collective_kind)pick(rng, FR_COLLECTIVE_PARAMETER_SERVER);
    plan->protocol = once_in(rng, 4) ? (fr_protocol)pick(rng, FR_PROTOCOL_N)
                                     : FR_PROTOCOL_AUTO;
    plan->n_channels = once_in(rng, 6) ? (int32_t)(1 + pick(rng, 8)) : 0;
    if (plan->zero_stage == 0 && plan->pp == 1 && once_in(rng, 16)) {
        plan->collective = FR_COLLECTIVE_PARAMETER_SERVER;
        plan->server_place = (fr_server_place)pick(rng, FR_SERVER_N);
        plan->n_servers = (int32_t)pick(rng, 3);
    }
}

/* An uneven split: one layer from the first stage to the last. */
static void draw_split(fr_rng *rng, const fr_model *model, fr_plan *plan)
{
    int32_t n = plan->pp * plan->vpp;
    if (n == 1 || model->n_layers < n || !once_in(rng, 4))
        return;
    plan->n_split = n;
    for (int32_t i = 0; i < n; i++)
        plan->layer_split[i] =
            (int32_t)(model->n_layers / n) + (i < model->n_layers % n ? 1 : 0);
    if (plan->layer_split[0] > 1) {
        plan->layer_split[0]--;
        plan->layer_split[n - 1]++;
    }
}

void random_plans_next(fr_rng *rng, const fr_model *model, int64_t n_devices,
                       fr_plan *out)
{
    fr_plan_init(out);
    draw_ranks(rng, model, n_devices, out);
    draw_memory(rng, out);
    draw_kernels(rng, out);
    draw_overlap(rng, out);
    draw_gradients(rng, out);
    draw_split(rng, model, out);
}

void random_plans_share(fr_rng *rng, const fr_job *job, fr_plan *plan)
{
    const int64_t n = job->global_batch / plan->micro_batch;

    plan->n_shares = 0;
    if (plan->dp == 1 || n < plan->dp)
        return;
    for (int32_t i = 0; i < plan->dp; i++)
        plan->batch_shares[i] = 1;
    for (int64_t left = n - plan->dp; left > 0; left--)
        plan->batch_shares[pick(rng, plan->dp)]++;
    plan->n_shares = plan->dp;
}
