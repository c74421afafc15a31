/*
 * lower_shape.c: sizes on one rank, and which choices of the plan apply.
 */
#include "program/lower/segment/lower_shape.h"

#include "core/base/minmax.h"
#include "plan/decide/expert_capacity.h"
#include "plan/decide/grid.h"
#include "spec/model/model_traits.h"

#include <math.h>

enum { VOCAB_ALIGN = 64, TENSOR_ALIGN = 16 /* elements */ };

/* ---- sizes ---- */

uint64_t lower_bytes(const lower_context *context, int64_t rows, int64_t cols)
{
    return (uint64_t)rows * (uint64_t)cols *
           fr_dtype_bytes(fr_plan_storage_dtype(context->plan));
}

fr_dtype lower_product_dtype(const lower_context *context)
{
    return context->target.is_low ? context->plan->precision
                                  : fr_plan_storage_dtype(context->plan);
}

static void init_widths(lower_context *context)
{
    const fr_model *model = context->model;
    const fr_plan *plan = context->plan;
    lower_shape *s = &context->shape;
    bool is_latent = model->kv_lora_rank > 0;
    int64_t gate = model->is_gated_mlp ? 2 : 1;
    int64_t etp = plan->etp > 0 ? plan->etp : plan->tp;
    s->q_heads = model->n_heads / plan->tp;
    s->kv_heads = is_latent ? s->q_heads : model->n_kv_heads / plan->tp;
    s->head_dim = is_latent ? model->qk_nope_head_dim + model->qk_rope_head_dim
                            : model->head_dim;
    s->v_dim = is_latent ? model->v_head_dim : model->head_dim;
    s->attn = s->q_heads * s->v_dim;
    s->qkv = s->q_heads * s->head_dim + s->kv_heads * (s->head_dim + s->v_dim);
    if (fr_model_has(model, FR_TRAIT_OUTPUT_GATE))
        s->qkv += s->attn;
    s->ffn = model->ffn_hidden / plan->tp;
    s->fc1 = gate * s->ffn;
    if (model->n_experts == 0)
        return;
    s->experts_local = model->n_experts / plan->ep;
    s->expert_ffn = model->expert_ffn_hidden / etp;
    s->expert_fc1 = gate * s->expert_ffn;
    s->shared_ffn = model->shared_expert_ffn_hidden / plan->tp;
    s->shared_fc1 = gate * s->shared_ffn;
    s->routed_rows = s->stream_rows * model->n_experts_per_token;
    if (plan->ep > 1) {
        double busiest =
            ceil((double)s->routed_rows * plan->execution.expert_imbalance);
        s->routed_rows = ((int64_t)busiest + plan->ep - 1) / plan->ep *
                         plan->ep; /* as much to each */
    }
    const int64_t capacity = fr_expert_capacity(
        plan, s->stream_rows, model->n_experts_per_token, model->n_experts);
    if (plan->expert_capacity > 0)
        s->routed_rows =
            plan->is_expert_padded
                ? model->n_experts * capacity
                : fr_min_i64(s->routed_rows, model->n_experts * capacity);
    s->busy_rows = s->routed_rows;
    /* Room for all copies that can go from one rank to another. */
    if (plan->ep > 1 && lower_is_routed(context))
        s->routed_rows = fr_max_i64(
            s->routed_rows,
            plan->ep * fr_min_i64(s->stream_rows *
                                      fr_min_i64(model->n_experts_per_token,
                                                 s->experts_local),
                                  s->experts_local * capacity));
    /* With tokens that all TP ranks hold, nobody has to send its own. */
    s->expert_rows = s->routed_rows * (plan->is_sequence_parallel ? etp : 1);
    s->busy_rows *= plan->is_sequence_parallel ? etp : 1;
}

void lower_shape_init(lower_context *context)
{
    const fr_model *model = context->model;
    const fr_plan *plan = context->plan;
    lower_shape *s = &context->shape;
    int64_t vocab_unit = (int64_t)VOCAB_ALIGN * plan->tp;
    s->batch = plan->micro_batch;
    s->seq = context->job->seq / plan->cp;
    s->rows = s->batch * s->seq;
    s->stream_rows = plan->is_sequence_parallel ? s->rows / plan->tp : s->rows;
    s->hidden = model->hidden;
    s->vocab = model->vocab;
    s->vocab_local = (model->vocab + vocab_unit - 1) / vocab_unit * VOCAB_ALIGN;
    s->stream_bytes = (uint64_t)s->stream_rows * (uint64_t)s->hidden *
                      fr_dtype_bytes(fr_plan_storage_dtype(plan));
    if (model->kind == FR_MODEL_LAYERS)
        return;
    init_widths(context);
}

/* ---- choices of the plan ---- */

bool lower_is_recomputed(const lower_context *context, uint32_t part)
{
    const fr_plan *plan = context->plan;
    return plan->recompute == FR_RECOMPUTE_SELECTIVE &&
           (plan->recompute_parts & part) != 0;
}

bool lower_is_post_norm(const lower_context *context)
{
    return context->model->kind == FR_MODEL_ENCODER &&
           !context->model->has_final_norm;
}

bool lower_is_routed(const lower_context *context)
{
    return context->model->n_experts > 0 &&
           context->target.kernels == LOWER_KERNELS_RUN;
}

int64_t lower_router_sets(const lower_context *context)
{
    const fr_model *model = context->model;
    if (!lower_is_routed(context) || !(model->router_aux_coef > 0))
        return 0;
    return model->is_aux_by_sequence ? context->shape.batch : 1;
}

bool lower_is_ring(const lower_context *context)
{
    return context->plan->cp > 1 && context->plan->cp_kind == FR_CP_RING;
}

bool lower_is_keys_apart(const lower_context *context)
{
    const fr_plan *plan = context->plan;
    return (plan->cp > 1 && plan->cp_kind != FR_CP_ALL_TO_ALL) ||
           lower_is_latent_run(context);
}

bool lower_is_latent_run(const lower_context *context)
{
    return context->model->kv_lora_rank > 0 &&
           context->target.kernels == LOWER_KERNELS_RUN;
}

bool lower_is_later_run(const lower_context *context)
{
    return context->model->n_mtp_layers > 0 &&
           context->target.kernels == LOWER_KERNELS_RUN;
}

/* Returns whether the middle stream is recomputed.  The result of a
 * reduce-scatter is kept, because it is on torchtitan's list too. */
bool lower_is_mid_recomputed(const lower_context *context)
{
    return lower_is_recomputed(context, FR_RECOMPUTE_PART_PRODUCTS) &&
           !context->plan->is_sequence_parallel &&
           !lower_is_post_norm(context) && !lower_is_ring(context);
}

/*
 * Megatron Core's recompute module mla_up_proj: the latents are kept, their
 * products with the up projections are recomputed in backward.  Queries
 * without latents, a ring of keys, and heads that went to other ranks are kept.
 */
bool lower_is_latent_recomputed(const lower_context *context)
{
    const fr_plan *plan = context->plan;
    return lower_is_recomputed(context, FR_RECOMPUTE_PART_LATENT) &&
           context->model->kv_lora_rank > 0 &&
           context->model->q_lora_rank > 0 &&
           (plan->cp == 1 || plan->cp_kind == FR_CP_ALL_GATHER);
}

bool lower_is_pass_cut(const lower_context *context)
{
    const fr_plan *plan = context->plan;
    /* A backward that is split by schedule is one segment before.  PyTorch
     * waits for the input's gradients before those of weights, but for its
     * asynchronous tensor parallelism: DTensor redistributes in order, and
     * Inductor's reorder_for_compute_comm_overlap is off. */
    bool is_in_order = (context->target.kernels & LOWER_KERNELS_PYTORCH) != 0;
    return plan->tp > 1 &&
           (plan->is_tp_overlap || (!context->target.is_f32 && !is_in_order)) &&
           !context->schedule->is_split && !context->model->is_parallel_block;
}

/* ---- places in a flat list ---- */

uint64_t lower_padded(uint64_t n)
{
    return (n + TENSOR_ALIGN - 1) / TENSOR_ALIGN * TENSOR_ALIGN;
}

uint64_t lower_place(uint64_t *used, bool is_there, int64_t rows, int64_t cols)
{
    uint64_t at = *used;
    if (!is_there)
        return LOWER_ABSENT;
    *used += lower_padded((uint64_t)rows * (uint64_t)cols);
    return at;
}

/* Elements that fill a cache line whichever space they lie in. */
uint64_t lower_line_elements(const lower_context *context)
{
    uint64_t weight = lower_element_bytes(context, FR_SPACE_WEIGHT);
    uint64_t grad = lower_element_bytes(context, FR_SPACE_GRAD);
    return 64 / (weight < grad ? weight : grad);
}

uint64_t lower_part_padded(const lower_context *context, bool is_expert,
                           uint64_t n)
{
    const uint64_t quantum =
        lower_line_elements(context) *
        (uint64_t)fr_plan_group_size(context->plan,
                                     context->sharding.reduce_axis[is_expert]);
    return (n + quantum - 1) / quantum * quantum;
}
