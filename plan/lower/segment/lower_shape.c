/*
 * lower_shape.c: sizes on one rank, the kinds of layers, and where a layer's
 * parameters lie.
 */
#include "plan/lower/segment/lower_block.h"

#include <math.h>

enum { VOCAB_ALIGN = 64 };

uint64_t lower_padded(uint64_t n)
{
    return (n + LOWER_TENSOR_ALIGN - 1) / LOWER_TENSOR_ALIGN *
           LOWER_TENSOR_ALIGN;
}

uint64_t lower_place(uint64_t *used, bool is_there, int64_t rows, int64_t cols)
{
    uint64_t at = *used;
    if (!is_there)
        return LOWER_ABSENT;
    *used += lower_padded((uint64_t)rows * (uint64_t)cols);
    return at;
}

static lower_linear place_linear(uint64_t *used, bool is_there, bool has_bias,
                                 int64_t n_matrices, int64_t out, int64_t in)
{
    lower_linear linear;
    linear.w = lower_place(used, is_there, n_matrices * out, in);
    linear.b = lower_place(used, is_there && has_bias, n_matrices, out);
    return linear;
}

static void place_replicated(const lower_context *context,
                             const lower_kind *kind, lower_layer_layout *l,
                             uint64_t *used)
{
    const fr_model *model = context->model;
    const lower_shape *s = &context->shape;
    bool has_bias = !model->is_rms_norm, is_latent = model->kv_lora_rank > 0;
    l->ln1_w = lower_place(used, true, 1, s->hidden);
    l->ln1_b = lower_place(used, has_bias, 1, s->hidden);
    l->ln2_w = lower_place(used, true, 1, s->hidden);
    l->ln2_b = lower_place(used, has_bias, 1, s->hidden);
    l->q_norm = lower_place(used, model->has_qk_norm || model->q_lora_rank > 0,
                            1, is_latent ? model->q_lora_rank : s->head_dim);
    l->k_norm = lower_place(used, model->has_qk_norm || is_latent, 1,
                            is_latent ? model->kv_lora_rank : s->head_dim);
    for (int i = 0; i < 2; i++) {
        l->mtp_norm[i] = lower_place(used, kind->is_mtp, 1, s->hidden);
        l->mtp_last[i] = lower_place(used, kind->is_mtp && (i == 0 || has_bias),
                                     1, s->hidden);
    }
    /* Matrices that see a TP rank's own rows of the stream, as norms do. */
    l->q_down = lower_place(used, is_latent && model->q_lora_rank > 0,
                            model->q_lora_rank, s->hidden);
    l->kv_down =
        lower_place(used, is_latent,
                    model->kv_lora_rank + model->qk_rope_head_dim, s->hidden);
    l->router = lower_place(used, kind->is_moe, model->n_experts, s->hidden);
    l->shared_gate = lower_place(used,
                                 kind->is_moe && s->shared_ffn > 0 &&
                                     model->has_shared_expert_gate,
                                 1, s->hidden);
    l->mtp_join = lower_place(used, kind->is_mtp, s->hidden, 2 * s->hidden);
    l->n_norm = *used;
}

static void place_attention(const lower_context *context, lower_layer_layout *l,
                            uint64_t *used)
{
    const fr_model *model = context->model;
    const lower_shape *s = &context->shape;
    bool is_latent = model->kv_lora_rank > 0;
    int64_t q_rank = is_latent ? model->q_lora_rank : 0;
    int64_t q = s->q_heads * s->head_dim, c = s->hidden;
    l->qkv_w = lower_place(used, !is_latent, s->qkv, c);
    l->qkv_b = lower_place(used, !is_latent && model->has_qkv_bias, 1, s->qkv);
    l->q_up = lower_place(used, is_latent, q, q_rank > 0 ? q_rank : c);
    l->kv_up = lower_place(used, is_latent,
                           s->q_heads * (model->qk_nope_head_dim + s->v_dim),
                           model->kv_lora_rank);
    l->out_w = lower_place(used, true, c, s->attn);
    l->out_b = lower_place(used, model->has_out_bias, 1, c);
}

static void place_mlp(const lower_context *context, const lower_kind *kind,
                      lower_layer_layout *l, uint64_t *used)
{
    const fr_model *model = context->model;
    const lower_shape *s = &context->shape;
    bool has_bias = model->has_mlp_bias, is_dense = !kind->is_moe;
    bool is_shared = kind->is_moe && s->shared_ffn > 0;
    int64_t c = s->hidden, n = s->experts_local;
    l->fc1_w = lower_place(used, is_dense, s->fc1, c);
    l->fc1_b = lower_place(used, is_dense && has_bias, 1, s->fc1);
    l->fc2_w = lower_place(used, is_dense, c, s->ffn);
    l->fc2_b = lower_place(used, is_dense && has_bias, 1, c);
    l->shared_fc1 =
        place_linear(used, is_shared, has_bias, 1, s->shared_fc1, c);
    l->shared_fc2 =
        place_linear(used, is_shared, has_bias, 1, c, s->shared_ffn);
    if (kind->is_moe) /* others share the experts: both parts are sharded */
        *used = lower_part_padded(context, false, *used);
    l->n_dense = *used;
    l->expert_fc1 =
        place_linear(used, kind->is_moe, has_bias, n, s->expert_fc1, c);
    l->expert_fc2 =
        place_linear(used, kind->is_moe, has_bias, n, c, s->expert_ffn);
    if (kind->is_moe)
        *used =
            l->n_dense + lower_part_padded(context, true, *used - l->n_dense);
    l->n = *used;
}

static void init_layer_layout(const lower_context *context, lower_kind *kind)
{
    lower_layer_layout *l = &kind->layout;
    uint64_t used = 0;
    place_replicated(context, kind, l, &used);
    place_attention(context, l, &used);
    place_mlp(context, kind, l, &used);
    if (context->is_low && context->plan->zero_stage < 3)
        kind->low_bytes = 2 * l->n * fr_dtype_bytes(context->plan->precision);
}

/* ---- kinds ----------------------------------------------------------------
 */

enum { KIND_DENSE, KIND_MOE, KIND_MTP, N_KINDS };

lower_kind *lower_kind_of(const lower_context *context, int32_t layer)
{
    const fr_model *model = context->model;
    if (model->kind == FR_MODEL_LAYERS) {
        size_t i = 0;
        int64_t end = model->layers[0].repeat;
        while (layer >= end && i + 1 < model->n_layer_entries)
            end += model->layers[++i].repeat;
        return &context->kinds[i];
    }
    if (layer >= model->n_layers)
        return &context->kinds[KIND_MTP];
    return &context->kinds[fr_model_layer_is_moe(model, layer) ? KIND_MOE
                                                               : KIND_DENSE];
}

const lower_layer_layout *lower_layout_of(const lower_context *context,
                                          int32_t layer)
{
    return &lower_kind_of(context, layer)->layout;
}

lower_layer_calls lower_calls_of(const lower_context *context, int32_t layer)
{
    return lower_kind_of(context, layer)->calls;
}

uint64_t lower_saved_bytes(const lower_context *context, int32_t layer)
{
    return lower_kind_of(context, layer)->saved.n_bytes;
}

uint64_t lower_stream_bytes(const lower_context *context, int32_t layer)
{
    if (context->model->kind != FR_MODEL_LAYERS)
        return context->shape.stream_bytes;
    return layer == 0 ? context->kinds[0].in_bytes
                      : lower_kind_of(context, layer - 1)->out_bytes;
}

int32_t lower_first_layer(const lower_context *context, int32_t stage)
{
    int32_t first = 0;
    for (int32_t i = 0; i < stage; i++)
        first += fr_plan_stage_layers(context->plan, context->model, i);
    return first;
}

/* Bytes of a list are those of float32 and of one sample. */
static uint64_t entry_bytes(const lower_context *context, uint64_t n_bytes)
{
    return n_bytes * (uint64_t)context->shape.batch *
           fr_dtype_bytes(fr_plan_storage_dtype(context->plan)) / sizeof(float);
}

static void init_entries(lower_context *context)
{
    const fr_model *model = context->model;
    for (uint32_t i = 0; i < context->n_kinds; i++) {
        const fr_model_layer *entry = &model->layers[i];
        lower_kind *kind = &context->kinds[i];
        kind->entry = entry;
        kind->out_bytes = entry_bytes(context, entry->output_bytes);
        /* What the first gets, the list does not say. */
        kind->in_bytes = i == 0 ? lower_bytes(context, 16, 1)
                                : context->kinds[i - 1].out_bytes;
        kind->saved.n_bytes = entry_bytes(context, entry->activation_bytes);
        kind->layout.n = lower_padded(entry->n_parameters);
        kind->layout.n_dense = kind->layout.n;
    }
}

static void init_attention_kind(lower_context *context)
{
    const fr_plan *plan = context->plan;
    bool is_selected = plan->recompute == FR_RECOMPUTE_SELECTIVE &&
                       plan->recompute_parts & FR_RECOMPUTE_PART_ATTENTION;
    /* In f32 the fused kernel of the CPU runtime makes them again itself. */
    bool is_cpu = plan->precision == FR_DTYPE_F32 && !plan->is_flash;
    context->is_fused =
        plan->is_flash || (is_cpu && plan->recompute != FR_RECOMPUTE_NONE);
    context->is_core_remade = is_selected && !is_cpu;
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
        double busiest = ceil((double)s->routed_rows * plan->expert_imbalance);
        s->routed_rows = ((int64_t)busiest + plan->ep - 1) / plan->ep *
                         plan->ep; /* as much to each */
    }
    /* With tokens that all TP ranks hold, nobody has to send its own. */
    s->expert_rows = s->routed_rows * (plan->is_sequence_parallel ? etp : 1);
}

fr_status lower_shape_init(lower_context *context, fr_err *err)
{
    const fr_model *model = context->model;
    const fr_plan *plan = context->plan;
    lower_shape *s = &context->shape;
    int64_t vocab_unit = (int64_t)VOCAB_ALIGN * plan->tp;
    bool is_list = model->kind == FR_MODEL_LAYERS;
    s->batch = plan->micro_batch;
    s->seq = context->job->seq / plan->cp;
    s->rows = s->batch * s->seq;
    s->stream_rows = plan->is_sequence_parallel ? s->rows / plan->tp : s->rows;
    s->hidden = model->hidden;
    s->vocab = model->vocab;
    s->vocab_local = (model->vocab + vocab_unit - 1) / vocab_unit * VOCAB_ALIGN;
    s->stream_bytes = (uint64_t)s->stream_rows * (uint64_t)s->hidden *
                      fr_dtype_bytes(fr_plan_storage_dtype(plan));
    context->is_low = fr_dtype_bytes(plan->precision) < 2;
    context->n_kinds = is_list ? (uint32_t)model->n_layer_entries : N_KINDS;
    context->kinds = calloc(context->n_kinds, sizeof *context->kinds);
    if (!context->kinds)
        return fr_fail_no_memory(err);
    if (is_list) {
        init_entries(context);
        return FR_OK;
    }
    init_widths(context);
    init_attention_kind(context);
    for (uint32_t i = 0; i < N_KINDS; i++) {
        lower_kind *kind = &context->kinds[i];
        kind->is_mtp = i == KIND_MTP;
        /* A later token's layer is like the model's last. */
        kind->is_moe = i == KIND_MOE ||
                       (i == KIND_MTP &&
                        fr_model_layer_is_moe(model, model->n_layers - 1));
        kind->in_bytes = kind->out_bytes = s->stream_bytes;
        init_layer_layout(context, kind);
        lower_saved_init(context, kind);
    }
    return FR_OK;
}
