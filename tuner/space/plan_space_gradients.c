/*
 * plan_space_gradients.c: axes of what comes beside and after the passes:
 * who holds which state, and how gradients are added.
 */
#include "plan/codec/compressor.h"
#include "tuner/space/plan_space_lists.h"

static int64_t data_ranks(const fr_plan *plan)
{
    return (int64_t)plan->dp * plan->cp;
}

void fr_list_zero(const fr_plan_space_request *request, const fr_plan *plan,
                  fr_plan_space_values *values)
{
    if (data_ranks(plan) == 1 || (plan->dp == 1 && !fr_is_gpu_space(request))) {
        fr_push_value(values, 0);
        return;
    }
    if (fr_push_given(request, FR_SPACE_AXIS_ZERO, values))
        return;
    for (int i = 0; i <= 3; i++)
        fr_push_value(values, i);
}

/* ZeRO 3 shards over all of dp x cp, or over the ranks of a node (HSDP). */
void fr_list_zero_group(const fr_plan_space_request *request,
                        const fr_plan *plan, fr_plan_space_values *values)
{
    int64_t n = data_ranks(plan);
    if (plan->zero_stage == 0) {
        fr_push_value(values, 0);
        return;
    }
    if (fr_push_given(request, FR_SPACE_AXIS_ZERO_GROUP, values))
        return;
    fr_push_value(values, 0);
    int64_t of_node =
        fr_is_gpu_space(request)
            ? fr_space_node_devices(request)
            : fr_cluster_node_slots(request->cluster, 0, plan->n_threads);
    int64_t inside = of_node / plan->tp;
    if (plan->zero_stage == 3 && inside > 1 && inside < n && n % inside == 0 &&
        request->model->n_experts == 0)
        fr_push_value(values, inside);
}

static void push_switch(const fr_plan_space_request *request,
                        fr_plan_field_id field, bool is_free,
                        fr_plan_space_values *values)
{
    if (fr_is_pinned(request, field) || !is_free) {
        fr_push_value(values, fr_field_get_i64(&fr_plan_fields[field].field,
                                               &request->base));
        return;
    }
    fr_push_value(values, 1);
    fr_push_value(values, 0);
}

void fr_list_reshard(const fr_plan_space_request *request, const fr_plan *plan,
                     fr_plan_space_values *values)
{
    push_switch(request, FR_PLAN_ZERO_RESHARD, plan->zero_stage == 3, values);
}

/* Offload is not searched: the plan has what was asked for. */
void fr_list_offload(const fr_plan_space_request *request, const fr_plan *plan,
                     fr_plan_space_values *values)
{
    (void)plan;
    if (!fr_push_given(request, FR_SPACE_AXIS_OFFLOAD_OPTIMIZER, values))
        fr_push_value(values, request->base.is_optimizer_offloaded);
}

void fr_list_compressor(const fr_plan_space_request *request,
                        const fr_plan *plan, fr_plan_space_values *values)
{
    if (plan->dp == 1) {
        fr_push_value(values, FR_COMPRESSOR_NONE);
        return;
    }
    if (fr_push_given(request, FR_SPACE_AXIS_COMPRESS, values))
        return;
    fr_push_value(values, FR_COMPRESSOR_NONE);
    for (int i = 1; request->allow_lossy && i < fr_n_compressors; i++)
        if (plan->zero_stage == 0 ||
            (plan->zero_stage == 1 && fr_compressors[i]->is_elementwise &&
             !fr_compressors[i]->wants_error_feedback))
            fr_push_value(values, i);
}

/* The gradient bytes of one rank, precise enough to leave out buckets that are
 * larger than all gradients. */
static uint64_t gradient_bytes(const fr_plan_space_request *request,
                               const fr_plan *plan)
{
    uint64_t n_parameters = fr_model_parameters(request->model);
    return 4 * n_parameters / (uint64_t)(plan->tp * plan->pp);
}

enum { N_BUCKETS = 4 };
static const uint64_t cpu_buckets[N_BUCKETS] = {1000000, 4000000, 25000000,
                                                100000000};
/* The defaults of PyTorch and of Megatron (40 M parameters of 4 bytes), and
 * two larger buckets. */
static const uint64_t gpu_buckets[N_BUCKETS] = {25000000, 160000000, 400000000,
                                                1000000000};

static const uint64_t *buckets_of(const fr_plan_space_request *request)
{
    return fr_is_gpu_space(request) ? gpu_buckets : cpu_buckets;
}

/* A single bucket is complete only when backward ends, so there is nothing to
 * overlap. */
void fr_list_overlap(const fr_plan_space_request *request, const fr_plan *plan,
                     fr_plan_space_values *values)
{
    bool can_split = buckets_of(request)[0] < gradient_bytes(request, plan) ||
                     plan->zero_stage > 1;
    if (data_ranks(plan) == 1) {
        fr_push_value(values, 1); /* the default, so that names stay short */
    } else if (fr_is_pinned(request, FR_PLAN_OVERLAP)) {
        fr_push_value(values, request->base.is_overlap);
    } else {
        if (can_split || fr_is_pinned(request, FR_PLAN_BUCKET))
            fr_push_value(values, 1);
        fr_push_value(values, 0);
    }
}

/* On GPUs ZeRO 1 and 2 gather parameters beside forward, or after the step. */
void fr_list_gather(const fr_plan_space_request *request, const fr_plan *plan,
                    fr_plan_space_values *values)
{
    push_switch(request, FR_PLAN_GATHER_OVERLAP,
                fr_is_gpu_space(request) &&
                    (plan->zero_stage == 1 || plan->zero_stage == 2),
                values);
}

/* ZeRO 2 and 3 reduce layer by layer, so bucket sizes make no difference. */
void fr_list_bucket(const fr_plan_space_request *request, const fr_plan *plan,
                    fr_plan_space_values *values)
{
    const uint64_t *buckets = buckets_of(request);
    if (data_ranks(plan) == 1 || plan->zero_stage > 1) {
        fr_push_value(values, (int64_t)request->base.bucket_bytes);
        return;
    }
    if (fr_push_given(request, FR_SPACE_AXIS_BUCKET, values))
        return;
    if (!plan->is_overlap) {
        fr_push_value(values, 0);
        return;
    }
    uint64_t all_bytes = gradient_bytes(request, plan);
    for (int i = 0; i < N_BUCKETS; i++)
        if (i == 0 || buckets[i] < all_bytes)
            fr_push_value(values, (int64_t)buckets[i]);
}
