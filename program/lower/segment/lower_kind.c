/*
 * lower_kind.c: the kinds of layers, and where their parameters lie.
 */
#include "program/lower/segment/lower_kind.h"

#include "program/lower/images/lower_images.h"
#include "spec/model/model_traits.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static lower_linear place_linear(uint64_t *used, bool is_there, bool has_bias,
                                 int64_t n_matrices, int64_t out, int64_t in)
{
    lower_linear linear;
    linear.w = lower_place(used, is_there, n_matrices * out, in);
    linear.b = lower_place(used, is_there && has_bias, n_matrices, out);
    return linear;
}

bool lower_has_norm_bias(const fr_model *model)
{
    return !model->is_rms_norm && !fr_model_has(model, FR_TRAIT_NO_NORM_BIAS);
}

bool lower_has_head_norms(const fr_model *model)
{
    return model->has_qk_norm && model->kv_lora_rank == 0 &&
           !fr_model_has(model, FR_TRAIT_UNIT_QK);
}

/* The norms before branches and after them. */
static void place_norms(const fr_model *model, const lower_kind *kind,
                        int64_t hidden, lower_layer_layout *l, uint64_t *used)
{
    const bool has_bias = lower_has_norm_bias(model);
    const bool has_inputs = !fr_model_has(model, FR_TRAIT_NO_INPUT_NORMS);
    const bool has_outputs = fr_model_has(model, FR_TRAIT_OUTPUT_NORMS);
    const bool has_one = fr_model_has(model, FR_TRAIT_ONE_BLOCK_NORM);
    const bool has_mixer = kind->mixer->letter != '-';
    const bool is_there[4] = {
        has_inputs && has_mixer, has_inputs && kind->has_mlp && !has_one,
        has_outputs && has_mixer, has_outputs && kind->has_mlp};
    uint64_t *const w[4] = {&l->ln1_w, &l->ln2_w, &l->out1_w, &l->out2_w};
    uint64_t *const b[4] = {&l->ln1_b, &l->ln2_b, &l->out1_b, &l->out2_b};
    for (int i = 0; i < 4; i++) {
        *w[i] = lower_place(used, is_there[i], 1, hidden);
        *b[i] = lower_place(used, is_there[i] && has_bias, 1, hidden);
    }
}

static void place_replicated(const lower_context *context,
                             const lower_kind *kind, lower_layer_layout *l,
                             uint64_t *used)
{
    const fr_model *model = context->model;
    const lower_shape *s = &context->shape;
    bool has_bias = lower_has_norm_bias(model);
    bool is_latent = model->kv_lora_rank > 0;
    bool is_normed = lower_has_head_norms(model) && kind->mixer->is_attention &&
                     !fr_model_has(model, FR_TRAIT_WIDE_QK_NORM);
    place_norms(model, kind, s->hidden, l, used);
    l->q_norm = lower_place(used, is_normed || model->q_lora_rank > 0, 1,
                            is_latent ? model->q_lora_rank : s->head_dim);
    l->k_norm = lower_place(used, is_normed || is_latent, 1,
                            is_latent ? model->kv_lora_rank : s->head_dim);
    l->n_mix_whole = (uint64_t)kind->mix.whole;
    l->mix_whole = lower_place(used, kind->mix.whole > 0, 1, kind->mix.whole);
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
    l->router_bias = lower_place(used, kind->is_moe && model->has_router_bias,
                                 1, model->n_experts);
    l->router_offset = lower_place(
        used, kind->is_moe && fr_model_has(model, FR_TRAIT_ROUTER_OFFSET), 1,
        model->n_experts);
    l->shared_gate = lower_place(used,
                                 kind->is_moe && s->shared_ffn > 0 &&
                                     model->has_shared_expert_gate,
                                 1, s->hidden);
    l->mtp_join = lower_place(used, kind->is_mtp, s->hidden, 2 * s->hidden);
    l->n_norm = *used;
}

static void place_attention(const lower_context *context,
                            const lower_kind *kind, lower_layer_layout *l,
                            uint64_t *used)
{
    const fr_model *model = context->model;
    const lower_shape *s = &context->shape;
    const bool is_there = kind->mixer->is_attention;
    const bool is_latent = model->kv_lora_rank > 0;
    const bool is_wide = is_there && lower_has_head_norms(model) &&
                         fr_model_has(model, FR_TRAIT_WIDE_QK_NORM);
    int64_t q_rank = is_latent ? model->q_lora_rank : 0;
    int64_t q = s->q_heads * s->head_dim, c = s->hidden;
    l->qkv_w = lower_place(used, is_there && !is_latent, s->qkv, c);
    l->qkv_b = lower_place(used, is_there && !is_latent && model->has_qkv_bias,
                           1, s->qkv);
    if (is_wide) { /* each tensor parallel rank has its heads' weights */
        l->q_norm = lower_place(used, true, s->q_heads, s->head_dim);
        l->k_norm = lower_place(used, true, s->kv_heads, s->head_dim);
    }
    l->sinks = lower_place(
        used, is_there && fr_model_has(model, FR_TRAIT_SINKS), 1, s->q_heads);
    l->q_up = lower_place(used, is_latent, q, q_rank > 0 ? q_rank : c);
    l->kv_up = lower_place(used, is_latent,
                           s->q_heads * (model->qk_nope_head_dim + s->v_dim),
                           model->kv_lora_rank);
    l->out_w = lower_place(used, is_there, c, s->attn);
    l->out_b = lower_place(used, is_there && model->has_out_bias, 1, c);
}

/* A mixer that is no attention. */
static void place_mixer(const lower_context *context, const lower_kind *kind,
                        lower_layer_layout *l, uint64_t *used)
{
    const int64_t c = context->shape.hidden;
    const fr_mixer_sizes *mix = &kind->mix;
    l->mix_split = lower_place(used, mix->split > 0, 1, mix->split);
    l->mix_in = lower_place(used, mix->in > 0, mix->in, c);
    l->mix_out = lower_place(used, mix->inner > 0, c, mix->inner);
}

static void place_mlp(const lower_context *context, const lower_kind *kind,
                      lower_layer_layout *l, uint64_t *used)
{
    const fr_model *model = context->model;
    const lower_shape *s = &context->shape;
    bool has_bias = model->has_mlp_bias;
    bool is_dense = kind->has_mlp && !kind->is_moe;
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
    place_attention(context, kind, l, &used);
    place_mixer(context, kind, l, &used);
    place_mlp(context, kind, l, &used);
    if (context->target.is_low && context->plan->zero_stage < 3)
        kind->low_bytes = 2 * l->n * fr_dtype_bytes(context->plan->precision);
}

lower_partial lower_partial_norms(const lower_context *context,
                                  const lower_layer_layout *layout)
{
    const lower_shape *s = &context->shape;
    if (context->plan->is_sequence_parallel)
        return (lower_partial){0, layout->n_norm};
    if (context->plan->tp > 1 && layout->mix_whole != LOWER_ABSENT &&
        layout->q_norm == LOWER_ABSENT)
        return (lower_partial){layout->mix_whole,
                               lower_padded(layout->n_mix_whole)};
    if (context->plan->tp == 1 || layout->q_norm == LOWER_ABSENT ||
        context->model->kv_lora_rank > 0 ||
        fr_model_has(context->model, FR_TRAIT_WIDE_QK_NORM))
        return (lower_partial){0, 0};
    return (lower_partial){layout->q_norm,
                           layout->k_norm - layout->q_norm +
                               lower_padded((uint64_t)s->head_dim)};
}

/* ---- kinds ---- */

enum { KIND_DENSE, KIND_MOE, KIND_MTP, N_KINDS };

/* The letters of a layer: of its mixer, and of what follows. */
static void letters_of(const fr_model *model, int64_t layer, char *mixer,
                       char *mlp)
{
    *mixer = fr_model_mixer(model, layer)->letter;
    *mlp = fr_model_layer_is_moe(model, layer)    ? 'e'
           : fr_model_layer_has_mlp(model, layer) ? 'm'
                                                  : '-';
}

/* Marked models have a kind for each pair of letters; the last is that of later
 * tokens. */
static lower_kind *marked_kind(const lower_context *context, int32_t layer)
{
    char mixer, mlp;
    letters_of(context->model, layer, &mixer, &mlp);
    if (layer >= context->model->n_layers)
        return &context->kinds[context->n_kinds - 1];
    for (uint32_t i = 0; i + 1 < context->n_kinds; i++)
        if (context->kinds[i].mixer_letter == mixer &&
            context->kinds[i].mlp_letter == mlp)
            return &context->kinds[i];
    return &context->kinds[0];
}

lower_kind *lower_kind_of(const lower_context *context, int32_t layer)
{
    const fr_model *model = context->model;
    if (model->kind == FR_MODEL_LAYERS) {
        uint32_t low = 0, high = context->n_kinds - 1;
        while (low < high) {
            uint32_t middle = low + (high - low) / 2;
            if (layer < context->kinds[middle].end_layer)
                high = middle;
            else
                low = middle + 1;
        }
        return &context->kinds[low];
    }
    if (!fr_model_is_unmarked(model))
        return marked_kind(context, layer);
    if (layer >= model->n_layers)
        return &context->kinds[KIND_MTP];
    return &context->kinds[fr_model_layer_is_moe(model, layer) ? KIND_MOE
                                                               : KIND_DENSE];
}

uint64_t lower_stream_bytes(const lower_context *context, int32_t layer)
{
    if (context->model->kind != FR_MODEL_LAYERS)
        return context->shape.stream_bytes;
    return layer == 0 ? context->kinds[0].in_bytes
                      : lower_kind_of(context, layer - 1)->out_bytes;
}

uint64_t lower_input_bytes(const lower_context *context, int32_t layer)
{
    const bool has_embedding =
        layer == context->model->n_layers && lower_is_later_run(context);
    return lower_stream_bytes(context, layer) * (has_embedding ? 2 : 1);
}

/* Lists of layers give bytes in float32 for one sample. */
static uint64_t entry_bytes(const lower_context *context, uint64_t n_bytes)
{
    return n_bytes * (uint64_t)context->shape.batch *
           fr_dtype_bytes(fr_plan_storage_dtype(context->plan)) / sizeof(float);
}

/* The same of what the entry computes. */
static void init_images(lower_context *context, lower_kind *kind)
{
    const size_t i = (size_t)(kind->entry - context->model->layers);
    lower_image_steps steps;
    lower_image_steps_of(context, kind->entry, &steps);
    kind->in_bytes =
        lower_image_bytes(context, fr_model_layer_image(context->model, i));
    kind->layout.n = steps.n_parameters;
    kind->saved.n_bytes = steps.saved_bytes;
}

static void init_entries(lower_context *context)
{
    const fr_model *model = context->model;
    int64_t end_layer = 0;
    for (uint32_t i = 0; i < context->n_kinds; i++) {
        const fr_model_layer *entry = &model->layers[i];
        lower_kind *kind = &context->kinds[i];
        kind->entry = entry;
        kind->end_layer = end_layer += entry->repeat;
        kind->out_bytes = entry_bytes(context, entry->output_bytes);
        /* The list does not say how many bytes its first layer gets. */
        kind->in_bytes = i == 0 ? lower_bytes(context, 16, 1)
                                : context->kinds[i - 1].out_bytes;
        kind->saved.n_bytes = entry_bytes(context, entry->activation_bytes);
        kind->layout.n = lower_padded(entry->n_parameters);
        if (lower_is_images_run(context))
            init_images(context, kind);
        kind->layout.n_dense = kind->layout.n;
    }
}

/* The share of one tensor parallel rank. */
static fr_mixer_sizes mixer_share(const lower_context *context,
                                  const fr_mixer *mixer)
{
    const int64_t tp = context->plan->tp;
    if (mixer->sizes == NULL)
        return (fr_mixer_sizes){0};
    fr_mixer_sizes sizes = mixer->sizes(context->model);
    sizes.in /= tp;
    sizes.inner /= tp;
    sizes.split /= tp;
    if (sizes.reduced <= 1) /* else each rank keeps the whole sum */
        sizes.kept /= tp;
    sizes.core_flop /= (double)tp;
    sizes.core_moved /= (double)tp;
    return sizes;
}

/* A window that has as many pairs as chunks: W - W^2 / 2s keys a query. */
static int64_t window_of(const lower_context *context, const lower_kind *kind)
{
    const fr_model *model = context->model;
    const double s = (double)context->job->seq;
    const bool has_window =
        model->mixers[0] == '\0' || kind->mixer->is_windowed;
    if (!has_window || model->sliding_window >= context->job->seq)
        return 0;
    if (!kind->mixer->is_chunked)
        return model->sliding_window;
    const double span =
        fr_mixer_span(kind->mixer, model, context->job->seq, true);
    const int64_t window =
        (int64_t)lround(s - sqrt(fmax(s * s - 2.0 * s * span, 0.0)));
    return window > 0 ? window : 1;
}

static void set_kind(const lower_context *context, int64_t layer,
                     lower_kind *kind)
{
    const fr_model *model = context->model;
    letters_of(model, layer, &kind->mixer_letter, &kind->mlp_letter);
    kind->mixer = fr_model_mixer(model, layer);
    kind->mix = mixer_share(context, kind->mixer);
    kind->window = window_of(context, kind);
    kind->has_mlp = kind->mlp_letter != '-';
    kind->is_moe = kind->mlp_letter == 'e';
}

static void set_plain_kinds(lower_context *context)
{
    const fr_model *model = context->model;
    for (uint32_t i = 0; i < N_KINDS; i++) {
        lower_kind *kind = &context->kinds[i];
        set_kind(context, 0, kind);
        kind->has_mlp = true;
        kind->is_mtp = i == KIND_MTP;
        /* A later token's layer is like the model's last. */
        kind->is_moe = i == KIND_MOE ||
                       (i == KIND_MTP &&
                        fr_model_layer_is_moe(model, model->n_layers - 1));
    }
}

/* Pairs of letters that no earlier layer has. */
static bool is_first_of_kind(const fr_model *model, int64_t layer)
{
    char mixer, mlp, other_mixer, other_mlp;
    letters_of(model, layer, &mixer, &mlp);
    for (int64_t i = 0; i < layer; i++) {
        letters_of(model, i, &other_mixer, &other_mlp);
        if (other_mixer == mixer && other_mlp == mlp)
            return false;
    }
    return true;
}

static uint32_t count_marked_kinds(const fr_model *model)
{
    uint32_t n = 1; /* that of later tokens */
    for (int64_t i = 0; i < model->n_layers; i++)
        n += is_first_of_kind(model, i);
    return n;
}

static void set_marked_kinds(lower_context *context)
{
    const fr_model *model = context->model;
    uint32_t n = 0;
    for (int64_t i = 0; i < model->n_layers; i++)
        if (is_first_of_kind(model, i))
            set_kind(context, i, &context->kinds[n++]);
    set_kind(context, model->n_layers - 1, &context->kinds[n]);
    context->kinds[n].is_mtp = true;
}

fr_status lower_kinds_init(lower_context *context, fr_err *err)
{
    const fr_model *model = context->model;
    bool is_list = model->kind == FR_MODEL_LAYERS;
    context->n_kinds = is_list ? (uint32_t)model->n_layer_entries
                       : fr_model_is_unmarked(model)
                           ? N_KINDS
                           : count_marked_kinds(model);
    context->kinds = calloc(context->n_kinds, sizeof *context->kinds);
    if (context->kinds == NULL)
        return fr_fail_no_memory(err);
    if (is_list) {
        init_entries(context);
        return FR_OK;
    }
    if (fr_model_is_unmarked(model))
        set_plain_kinds(context);
    else
        set_marked_kinds(context);
    for (uint32_t i = 0; i < context->n_kinds; i++) {
        lower_kind *kind = &context->kinds[i];
        kind->in_bytes = kind->out_bytes = context->shape.stream_bytes;
        init_layer_layout(context, kind);
        lower_saved_init(context, kind);
    }
    return FR_OK;
}
