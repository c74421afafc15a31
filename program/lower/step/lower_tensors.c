/*
 * lower_tensors.c: the parameter tensors of a unit: names, shapes, how they
 * are sharded and how they begin.
 */
#include "plan/op/tensor_role.h"
#include "program/lower/images/lower_images.h"
#include "program/lower/step/lower_step.h"
#include "spec/model/model_traits.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Tensor ids are the same on any layout. */
enum {
    ID_WTE = FR_TENSOR_EMBED - FR_TENSOR_LAYER_END,
    ID_WPE = FR_TENSOR_POSITIONS - FR_TENSOR_LAYER_END,
    ID_NORM = FR_TENSOR_LAST_NORM - FR_TENSOR_LAYER_END,
    ID_HEAD = FR_TENSOR_HEAD - FR_TENSOR_LAYER_END
};

/* Describes a tensor before it is placed. */
typedef struct tensor_spec {
    uint32_t id;
    uint64_t at; /* in the unit; LOWER_ABSENT: not there */
    int64_t rows, cols, global_rows, global_cols;
    uint8_t sharded_dim;
    fr_tensor_init init;
    double std;
    const char *gpt2_name, *llama_name;
    const char *part; /* ".weight", ".bias"; NULL: the name has it */
} tensor_spec;

static bool push_tensor(lower_rank *rank, const tensor_spec *spec,
                        uint64_t unit_first, int32_t layer)
{
    const fr_model *model = rank->context->model;
    bool is_llama = model->is_rms_norm;
    if (spec->at == LOWER_ABSENT)
        return true;
    fr_tensor tensor = {
        .first = unit_first + spec->at,
        .n = (uint64_t)spec->rows * (uint64_t)spec->cols,
        .rows = spec->rows,
        .cols = spec->cols,
        .global_rows = spec->global_rows,
        .global_cols = spec->global_cols,
        .sharded_dim = rank->context->plan->tp > 1 ? spec->sharded_dim : 0,
        .n_parts = 1,
        .part_rows = {spec->rows},
        .is_decayed = spec->rows > 1,
        .init = (uint8_t)spec->init,
        .init_std = spec->std,
        .id = spec->id,
    };
    const char *name = is_llama ? spec->llama_name : spec->gpt2_name;
    const char *part = spec->part != NULL ? spec->part : "";
    if (layer >= 0)
        snprintf(tensor.name, sizeof tensor.name, "%s.%d.%s%s",
                 is_llama ? "layers" : "h", (int)layer, name, part);
    else
        snprintf(tensor.name, sizeof tensor.name, "%s%s", name, part);
    return fr_vec_push(&rank->tensors, tensor) == FR_OK;
}

/* A weight (out x in) and its bias. */
typedef struct linear_spec {
    uint32_t id;
    uint8_t sharded_dim; /* of the weight */
    uint64_t w, b;
    int64_t out, in, global_out, global_in;
    double std;
    const char *gpt2_name, *llama_name;
} linear_spec;

static bool push_linear(lower_rank *rank, const linear_spec *spec,
                        uint64_t unit_first, int32_t layer)
{
    tensor_spec weight = {spec->id,          spec->w,
                          spec->out,         spec->in,
                          spec->global_out,  spec->global_in,
                          spec->sharded_dim, FR_TENSOR_INIT_NORMAL,
                          spec->std,         spec->gpt2_name,
                          spec->llama_name,  ".weight"};
    /* A row-parallel linear's bias is added after the sum over TP. */
    tensor_spec bias = {spec->id + 1,
                        spec->b,
                        1,
                        spec->out,
                        1,
                        spec->global_out,
                        spec->sharded_dim == 1 ? 2 : 0,
                        FR_TENSOR_INIT_ZERO,
                        0,
                        spec->gpt2_name,
                        spec->llama_name,
                        ".bias"};
    return push_tensor(rank, &weight, unit_first, layer) &&
           push_tensor(rank, &bias, unit_first, layer);
}

static bool push_norm(lower_rank *rank, uint32_t id, uint64_t w, uint64_t b,
                      uint64_t unit_first, int32_t layer,
                      const char *const names[2])
{
    int64_t c = rank->context->shape.hidden;
    tensor_spec weight = {id, w,        1,        c,
                          1,  c,        0,        FR_TENSOR_INIT_ONE,
                          0,  names[0], names[1], ".weight"};
    tensor_spec bias = {id + 1, b,        1,        c,
                        1,      c,        0,        FR_TENSOR_INIT_ZERO,
                        0,      names[0], names[1], ".bias"};
    return push_tensor(rank, &weight, unit_first, layer) &&
           push_tensor(rank, &bias, unit_first, layer);
}

/* Marks stacked matrices, which are sharded one by one: q, k, v; gate, up. */
static void mark_parts(lower_rank *rank, size_t first, uint32_t id,
                       uint8_t n_parts, const int64_t part_rows[3])
{
    for (size_t i = first; i < rank->tensors.n; i++) {
        fr_tensor *tensor = &rank->tensors.items[i];
        if (tensor->id != id && tensor->id != id + 1)
            continue;
        tensor->n_parts = n_parts;
        memcpy(tensor->part_rows, part_rows, 3 * sizeof part_rows[0]);
    }
}

/* A matrix or vector that only larger models have. */
typedef struct more_spec {
    uint64_t at;
    uint8_t sharded_dim;
    int64_t rows, cols, global_rows, global_cols;
    const char *name;
    bool is_zero; /* at the beginning: a bias */
} more_spec;

static fr_tensor_init first_value(const more_spec *spec)
{
    if (spec->is_zero)
        return FR_TENSOR_INIT_ZERO;
    return spec->rows == 1 ? FR_TENSOR_INIT_ONE : FR_TENSOR_INIT_NORMAL;
}

static bool push_specs(lower_rank *rank, const more_spec *specs, size_t n,
                       uint32_t first_id, uint64_t unit_first, int32_t layer)
{
    bool is_ok = true;
    for (size_t i = 0; is_ok && i < n; i++) {
        const more_spec *p = &specs[i];
        const tensor_spec tensor = {.id = first_id + (uint32_t)i,
                                    .at = p->at,
                                    .rows = p->rows,
                                    .cols = p->cols,
                                    .global_rows = p->global_rows,
                                    .global_cols = p->global_cols,
                                    .sharded_dim = p->sharded_dim,
                                    .init = first_value(p),
                                    .std = 0.02,
                                    .gpt2_name = p->name,
                                    .llama_name = p->name};
        is_ok = push_tensor(rank, &tensor, unit_first, layer);
    }
    return is_ok;
}

/* Marks what is stacked: the matrices of experts, gate and up; the gate of the
 * shared expert is a matrix of one row. */
static void mark_stack(const lower_context *context,
                       const lower_layer_layout *layout, uint64_t unit_first,
                       fr_tensor *tensor)
{
    const uint64_t at = tensor->first - unit_first;
    bool is_up = at == layout->expert_fc1.w || at == layout->shared_fc1.w;
    int64_t n = 1;
    if (at == layout->expert_fc1.w || at == layout->expert_fc2.w)
        n = tensor->n_experts = context->shape.experts_local;
    if (is_up && context->model->is_gated_mlp) {
        tensor->n_parts = 2;
        tensor->part_rows[0] = tensor->part_rows[1] = tensor->rows / n / 2;
    }
    if (at == layout->shared_gate)
        tensor->init = FR_TENSOR_INIT_NORMAL;
}

static uint32_t more_id(int32_t layer)
{
    return FR_TENSOR_ID_MORE + FR_TENSOR_IDS_MORE * (uint32_t)layer;
}

/* Heads' and latents' norms, latent projections, router, experts, what joins a
 * later token; experts are stacked, sharded over EP and ETP. */
static bool push_more(lower_rank *rank, const lower_unit *unit)
{
    const lower_context *context = rank->context;
    const fr_model *m = context->model;
    const lower_shape *s = &context->shape;
    const lower_kind *kind = lower_kind_of(context, unit->layer);
    const lower_layer_layout *l = &kind->layout;
    const int64_t c = s->hidden, e = s->experts_local, tp = context->plan->tp;
    const int64_t all = m->n_experts, gate = m->is_gated_mlp ? 2 : 1;
    const int64_t shared = m->shared_expert_ffn_hidden;
    const int64_t wide = m->expert_ffn_hidden;
    const int64_t q_in = m->q_lora_rank > 0 ? m->q_lora_rank : c;
    const int64_t kv_out = s->q_heads * (m->qk_nope_head_dim + s->v_dim);
    const int64_t kv_in = m->kv_lora_rank + m->qk_rope_head_dim;
    bool is_latent = m->kv_lora_rank > 0;
    const int64_t q = s->q_heads * s->head_dim, d = s->head_dim;
    const int64_t qn = is_latent ? m->q_lora_rank : d;
    const int64_t kn = is_latent ? m->kv_lora_rank : d;
    const bool is_wide = fr_model_has(m, FR_TRAIT_WIDE_QK_NORM);
    const int64_t q_rows = is_wide ? s->q_heads : 1;
    const int64_t k_rows = is_wide ? s->kv_heads : 1;
    const int64_t q_all = is_wide ? m->n_heads : 1;
    const int64_t k_all = is_wide ? m->n_kv_heads : 1;
    const fr_mixer_sizes *mix = &kind->mix;
    const more_spec specs[] = {
        {l->q_norm, is_wide, q_rows, qn, q_all, qn, "q_norm", false},
        {l->k_norm, is_wide, k_rows, kn, k_all, kn, "k_norm", false},
        {l->q_down, 0, m->q_lora_rank, c, m->q_lora_rank, c, "q_a_proj", false},
        {l->q_up, 1, q, q_in, q * tp, q_in, "q_b_proj", false},
        {l->kv_down, 0, kv_in, c, kv_in, c, "kv_a_proj", false},
        {l->kv_up, 1, kv_out, m->kv_lora_rank, kv_out * tp, m->kv_lora_rank,
         "kv_b_proj", false},
        {l->router, 0, all, c, all, c, "router", false},
        {l->shared_gate, 0, 1, c, 1, c, "shared_gate", false},
        {l->shared_fc1.w, 1, s->shared_fc1, c, gate * shared, c, "shared_up",
         false},
        {l->shared_fc1.b, 2, 1, s->shared_fc1, 1, gate * shared,
         "shared_up_bias", true},
        {l->shared_fc2.w, 2, c, s->shared_ffn, c, shared, "shared_down", false},
        {l->shared_fc2.b, 0, 1, c, 1, c, "shared_down_bias", true},
        {l->mtp_norm[0], 0, 1, c, 1, c, "hnorm", false},
        {l->mtp_norm[1], 0, 1, c, 1, c, "enorm", false},
        {l->mtp_last[0], 0, 1, c, 1, c, "last_norm", false},
        {l->mtp_last[1], 0, 1, c, 1, c, "last_norm_bias", true},
        {l->mtp_join, 0, c, 2 * c, c, 2 * c, "eh_proj", false},
        {l->expert_fc1.w, 1, e * s->expert_fc1, c, all * gate * wide, c,
         "experts_up", false},
        {l->expert_fc1.b, 1, e, s->expert_fc1, all, gate * wide,
         "experts_up_bias", true},
        {l->expert_fc2.w, 2, e * c, s->expert_ffn, all * c, wide,
         "experts_down", false},
        {l->expert_fc2.b, 1, e, c, all, c, "experts_down_bias", true},
        {l->router_bias, 0, 1, all, 1, all, "router_bias", true},
        {l->router_offset, 0, 1, all, 1, all, "router_offset", true},
        {l->out1_w, 0, 1, c, 1, c, "attention_output_norm", false},
        {l->out1_b, 0, 1, c, 1, c, "attention_output_norm_bias", true},
        {l->out2_w, 0, 1, c, 1, c, "mlp_output_norm", false},
        {l->out2_b, 0, 1, c, 1, c, "mlp_output_norm_bias", true},
        {l->sinks, 2, 1, s->q_heads, 1, m->n_heads, "sinks", true},
        {l->mix_whole, 0, 1, mix->whole, 1, mix->whole, "mixer_norm", false},
        {l->mix_split, 2, 1, mix->split, 1, mix->split * tp, "mixer_vectors",
         false},
        {l->mix_in, 1, mix->in, c, mix->in * tp, c, "mixer_in", false},
        {l->mix_out, 2, c, mix->inner, c, mix->inner * tp, "mixer_out", false},
    };
    const size_t before = rank->tensors.n;
    bool is_ok = push_specs(rank, specs, FR_LENGTH(specs), more_id(unit->layer),
                            unit->first, unit->layer);
    for (size_t i = before; is_ok && i < rank->tensors.n; i++)
        mark_stack(context, l, unit->first, &rank->tensors.items[i]);
    return is_ok;
}

static int compare_places(const void *va, const void *vb)
{
    const fr_tensor *a = va, *b = vb;
    return a->first < b->first ? -1 : a->first > b->first;
}

static void sort_from(lower_rank *rank, size_t first)
{
    if (rank->tensors.n > first)
        qsort(&rank->tensors.items[first], rank->tensors.n - first,
              sizeof rank->tensors.items[0], compare_places);
}

/* Weight and bias of a product, the four rows of a batch norm. */
static bool push_step(lower_rank *rank, const lower_unit *unit,
                      const lower_image_step *step, int64_t number,
                      uint32_t *id)
{
    static const struct {
        const char *part;
        fr_tensor_init init;
    } rows[] = {{".weight", FR_TENSOR_INIT_ONE},
                {".bias", FR_TENSOR_INIT_ZERO},
                {".running_mean", FR_TENSOR_INIT_ZERO},
                {".running_var", FR_TENSOR_INIT_ONE}};
    const bool is_norm = step->op->kind == FR_LAYER_OP_BATCH_NORM;
    const int64_t n = step->out.channels;
    char name[32];
    bool is_ok = true;
    snprintf(name, sizeof name, "%s%s%d",
             step->op->is_shortcut ? "shortcut." : "",
             fr_name_of(&fr_layer_op_names, step->op->kind), (int)number);
    for (int i = 0; is_ok && i < (is_norm ? 4 : 2); i++) {
        tensor_spec spec = {.id = (*id)++,
                            .at = i == 0 ? step->w : step->b,
                            .rows = 1,
                            .cols = n,
                            .init = rows[i].init,
                            .gpt2_name = name,
                            .llama_name = name,
                            .part = rows[i].part};
        if (is_norm) {
            spec.at = step->w + (uint64_t)i * lower_image_stride(step);
        } else if (i == 0) {
            spec.rows = n;
            spec.cols = fr_layer_op_weight(step->op, step->in) / n;
            spec.init = FR_TENSOR_INIT_NORMAL;
            spec.std = lower_image_std(step);
        }
        spec.global_rows = spec.rows;
        spec.global_cols = spec.cols;
        is_ok = push_tensor(rank, &spec, unit->first, unit->layer);
        if (is_ok && i >= 2)
            rank->tensors.items[rank->tensors.n - 1].is_statistic = true;
    }
    return is_ok;
}

static bool push_steps(lower_rank *rank, const lower_unit *unit)
{
    int64_t n_of_kind[2][FR_LAYER_OP_N] = {{0}};
    uint32_t id = more_id(unit->layer);
    lower_image_steps steps;
    bool is_ok = true;
    lower_image_steps_of(rank->context,
                         lower_kind_of(rank->context, unit->layer)->entry,
                         &steps);
    for (int i = 0; is_ok && i < steps.n; i++) {
        const lower_image_step *step = &steps.items[i];
        int64_t *n = n_of_kind[step->op->is_shortcut];
        if (step->w != LOWER_ABSENT)
            is_ok = push_step(rank, unit, step, ++n[step->op->kind], &id);
    }
    return is_ok;
}

static bool push_entry(lower_rank *rank, const lower_unit *unit)
{
    if (lower_is_images_run(rank->context))
        return push_steps(rank, unit);
    const fr_model_layer *entry =
        lower_kind_of(rank->context, unit->layer)->entry;
    const int64_t n = (int64_t)entry->n_parameters;
    const tensor_spec spec = {.id = more_id(unit->layer),
                              .at = n > 0 ? 0 : LOWER_ABSENT,
                              .rows = 1,
                              .cols = n,
                              .global_rows = 1,
                              .global_cols = n,
                              .init = FR_TENSOR_INIT_NORMAL,
                              .std = 0.02,
                              .gpt2_name = "weights",
                              .llama_name = "weights"};
    return push_tensor(rank, &spec, unit->first, unit->layer);
}

bool lower_push_layer(lower_rank *rank, const lower_unit *unit)
{
    const lower_context *context = rank->context;
    const fr_model *model = context->model;
    if (model->kind == FR_MODEL_LAYERS)
        return push_entry(rank, unit);
    const lower_shape *s = &context->shape;
    const lower_layer_layout *l = &lower_kind_of(context, unit->layer)->layout;
    static const char *const norm1[2] = {"ln_1", "input_layernorm"};
    static const char *const norm2[2] = {"ln_2", "post_attention_layernorm"};
    const uint32_t id =
        FR_TENSOR_ID_LAYERS + FR_TENSOR_IDS_LAYER * (uint32_t)unit->layer;
    const double std = 0.02;
    /* GPT-2 (Radford et al. 2019, section 2.3): residual projections are
     * scaled by 1/sqrt(2 layers); Llama does not. */
    const double residual_std =
        model->is_rms_norm ? std : std / sqrt(2.0 * (double)model->n_layers);
    const int64_t tp = context->plan->tp, c = s->hidden;
    const linear_spec linears[] = {
        {id + FR_TENSOR_QKV, 1, l->qkv_w, l->qkv_b, s->qkv, c, s->qkv * tp, c,
         std, "attn.c_attn", "self_attn.qkv_proj"},
        {id + FR_TENSOR_OUT, 2, l->out_w, l->out_b, c, s->attn, c, s->attn * tp,
         residual_std, "attn.c_proj", "self_attn.o_proj"},
        {id + FR_TENSOR_FC1, 1, l->fc1_w, l->fc1_b, s->fc1, c, s->fc1 * tp, c,
         std, "mlp.c_fc",
         model->is_gated_mlp ? "mlp.gate_up_proj" : "mlp.up_proj"},
        {id + FR_TENSOR_FC2, 2, l->fc2_w, l->fc2_b, c, s->ffn, c, s->ffn * tp,
         residual_std, "mlp.c_proj", "mlp.down_proj"},
    };
    const int64_t kv = s->kv_heads * s->head_dim, q = s->qkv - 2 * kv;
    const size_t n_before = rank->tensors.n;
    bool is_ok = push_norm(rank, id, l->ln1_w, l->ln1_b, unit->first,
                           unit->layer, norm1) &&
                 push_norm(rank, id + FR_TENSOR_NORM2, l->ln2_w, l->ln2_b,
                           unit->first, unit->layer, norm2);
    for (size_t i = 0; is_ok && i < FR_LENGTH(linears); i++)
        is_ok = push_linear(rank, &linears[i], unit->first, unit->layer);
    mark_parts(rank, n_before, id + FR_TENSOR_QKV, 3,
               (const int64_t[3]){q, kv, kv});
    if (model->is_gated_mlp)
        mark_parts(rank, n_before, id + FR_TENSOR_FC1, 2,
                   (const int64_t[3]){s->ffn, s->ffn, 0});
    /* The list is in the order of the tensors' places. */
    is_ok = is_ok && push_more(rank, unit);
    sort_from(rank, n_before);
    return is_ok;
}

/* Appends the tensors at the ends of encoders. */
static bool push_encoder_ends(lower_rank *rank, bool is_final)
{
    const fr_model *m = rank->context->model;
    const lower_shape *s = &rank->context->shape;
    const lower_embed_places *e = &rank->ends.embed;
    const lower_head_places *h = &rank->ends.head;
    const int64_t c = s->hidden;
    const int64_t patch = m->n_channels * m->patch_size * m->patch_size;
    const more_spec specs[] = {
        {e->types, 0, m->n_token_types, c, m->n_token_types, c, "types", false},
        {e->norm_w, 0, 1, c, 1, c, "embed_norm", false},
        {e->norm_b, 0, 1, c, 1, c, "embed_norm_bias", true},
        {e->patch, 0, c, patch, c, patch, "patch", false},
        {e->patch_b, 0, 1, c, 1, c, "patch_bias", true},
        {e->first_token, 0, 1, c, 1, c, "first_token", true},
        {h->pooler, 0, c, c, c, c, "pooler", false},
        {h->pooler_b, 0, 1, c, 1, c, "pooler_bias", true},
        {h->dense, 0, c, c, c, c, "dense", false},
        {h->dense_b, 0, 1, c, 1, c, "dense_bias", true},
        {h->dense_norm_w, 0, 1, c, 1, c, "dense_norm", false},
        {h->dense_norm_b, 0, 1, c, 1, c, "dense_norm_bias", true},
        {h->vocab_b, 2, 1, s->vocab_local, 1, s->vocab, "vocab_bias", true},
        {h->pair, 0, 2, c, 2, c, "pair", false},
        {h->pair_b, 0, 1, 2, 1, 2, "pair_bias", true},
        {h->labels, 0, m->n_labels, c, m->n_labels, c, "labels", false},
        {h->labels_b, 0, 1, m->n_labels, 1, m->n_labels, "labels_bias", true},
    };
    const size_t n_first = 6, n_all = FR_LENGTH(specs);
    return push_specs(rank, &specs[is_final ? n_first : 0],
                      is_final ? n_all - n_first : n_first,
                      FR_TENSOR_ID_ENDS +
                          (is_final ? FR_TENSOR_POOLER - FR_TENSOR_ENDS : 0U),
                      0, -1);
}

/* wte, wpe, last norm and head, as far as the unit has them. */
static bool push_ends(lower_rank *rank, const lower_unit *unit)
{
    const fr_model *model = rank->context->model;
    const lower_shape *s = &rank->context->shape;
    const lower_embed_places *e = &rank->ends.embed;
    const lower_head_places *h = &rank->ends.head;
    static const char *const norm[2] = {"ln_f", "norm"};
    bool is_split =
        fr_stages_are_tied_apart(rank->context->plan, rank->context->model);
    tensor_spec wte = {ID_WTE,
                       e->wte,
                       s->vocab_local,
                       s->hidden,
                       s->vocab,
                       s->hidden,
                       1,
                       FR_TENSOR_INIT_NORMAL,
                       0.02,
                       "wte.weight",
                       "embed_tokens.weight",
                       NULL};
    tensor_spec wpe = {ID_WPE,
                       e->wpe,
                       model->max_seq,
                       s->hidden,
                       model->max_seq,
                       s->hidden,
                       0,
                       FR_TENSOR_INIT_NORMAL,
                       0.02,
                       "wpe.weight",
                       "position_embeddings.weight",
                       NULL};
    switch (unit->kind) {
    case LOWER_UNIT_TIED:
        if (!push_tensor(rank, &wte, 0, -1))
            return false;
        rank->tensors.items[rank->tensors.n - 1].is_tied_copy = !rank->is_first;
        return true;
    case LOWER_UNIT_EMBED:
        return (is_split || push_tensor(rank, &wte, 0, -1)) &&
               push_tensor(rank, &wpe, 0, -1) && push_encoder_ends(rank, false);
    case LOWER_UNIT_FINAL:
        wte.id = ID_HEAD;
        wte.at = h->head;
        wte.gpt2_name = wte.llama_name = "lm_head.weight";
        return push_norm(rank, ID_NORM, h->norm_w, h->norm_b, 0, -1, norm) &&
               (model->is_tied || push_tensor(rank, &wte, 0, -1)) &&
               push_encoder_ends(rank, true);
    case LOWER_UNIT_LAYER:
        break;
    }
    return true;
}

/* The list is in the order of the tensors' places. */
bool lower_push_ends(lower_rank *rank, const lower_unit *unit)
{
    const size_t before = rank->tensors.n;
    bool is_ok = push_ends(rank, unit);
    sort_from(rank, before);
    return is_ok;
}
