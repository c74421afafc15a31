/*
 * lower_layout.c: sizes on one rank, the flat parameter list of a class and
 * its buckets.
 *
 * The flat list holds a class's tensors in forward order.  Each begins at a
 * multiple of 16 elements, each bucket at one of 16 dp, so that a shard of a
 * bucket is a whole number of cache lines.
 */
#include "plan/lower_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TENSOR_ALIGN = 16, VOCAB_ALIGN = 64 };

/* Tensor ids, the same on any layout; layers follow, 16 ids each. */
enum { ID_WTE, ID_WPE, ID_NORM_W, ID_NORM_B, ID_HEAD, ID_LAYERS = 16 };

uint64_t lower_padded(uint64_t n)
{
    return (n + TENSOR_ALIGN - 1) / TENSOR_ALIGN * TENSOR_ALIGN;
}

static uint64_t place(uint64_t *used, bool is_there, int64_t rows, int64_t cols)
{
    uint64_t at = *used;
    if (!is_there)
        return LOWER_ABSENT;
    *used += lower_padded((uint64_t)rows * (uint64_t)cols);
    return at;
}

static void init_layer_layout(lower_context *context)
{
    const fr_model *model = context->model;
    const lower_shape *s = &context->shape;
    lower_layer_layout *l = &context->layer;
    bool has_norm_bias = !model->is_rms_norm;
    uint64_t used = 0;
    l->ln1_w = place(&used, true, 1, s->hidden);
    l->ln1_b = place(&used, has_norm_bias, 1, s->hidden);
    l->ln2_w = place(&used, true, 1, s->hidden);
    l->ln2_b = place(&used, has_norm_bias, 1, s->hidden);
    l->n_norm = used;
    l->qkv_w = place(&used, true, s->qkv, s->hidden);
    l->qkv_b = place(&used, model->has_qkv_bias, 1, s->qkv);
    l->out_w = place(&used, true, s->hidden, s->attn);
    l->out_b = place(&used, model->has_out_bias, 1, s->hidden);
    l->fc1_w = place(&used, true, s->fc1, s->hidden);
    l->fc1_b = place(&used, model->has_mlp_bias, 1, s->fc1);
    l->fc2_w = place(&used, true, s->hidden, s->ffn);
    l->fc2_b = place(&used, model->has_mlp_bias, 1, s->hidden);
    l->n = used;
}

static uint64_t keep(uint64_t *used, int64_t rows, int64_t cols)
{
    uint64_t at = *used;
    *used += ((uint64_t)rows * (uint64_t)cols * sizeof(float) + 63) / 64 * 64;
    return at;
}

static void init_saved(lower_context *context)
{
    const lower_shape *s = &context->shape;
    lower_saved *k = &context->saved;
    uint64_t used = 0;
    k->n1 = keep(&used, s->stream_rows, s->hidden);
    k->stats1 = keep(&used, 2, s->stream_rows);
    k->qkv = keep(&used, s->rows, s->qkv);
    k->o = keep(&used, s->rows, s->attn);
    k->kept =
        keep(&used, s->rows * s->q_heads, context->is_probs_saved ? s->seq : 1);
    k->mid = keep(&used, s->stream_rows, s->hidden);
    k->n2 = keep(&used, s->stream_rows, s->hidden);
    k->stats2 = keep(&used, 2, s->stream_rows);
    k->fc1 = keep(&used, s->rows, s->fc1);
    k->act = keep(&used, s->rows, s->ffn);
    k->n_bytes = used;
}

void lower_shape_init(lower_context *context)
{
    const fr_model *model = context->model;
    const fr_plan *plan = context->plan;
    lower_shape *s = &context->shape;
    int64_t vocab_unit = (int64_t)VOCAB_ALIGN * plan->tp;
    s->batch = plan->micro_batch;
    s->seq = context->job->seq;
    s->rows = s->batch * s->seq;
    s->stream_rows = plan->is_sequence_parallel ? s->rows / plan->tp : s->rows;
    s->hidden = model->hidden;
    s->q_heads = model->n_heads / plan->tp;
    s->kv_heads = model->n_kv_heads / plan->tp;
    s->head_dim = model->head_dim;
    s->attn = s->q_heads * s->head_dim;
    s->qkv = (s->q_heads + 2 * s->kv_heads) * s->head_dim;
    s->ffn = model->ffn_hidden / plan->tp;
    s->fc1 = model->is_gated_mlp ? 2 * s->ffn : s->ffn;
    s->vocab = model->vocab;
    s->vocab_local = (model->vocab + vocab_unit - 1) / vocab_unit * VOCAB_ALIGN;
    s->stream_bytes =
        (uint64_t)s->stream_rows * (uint64_t)s->hidden * sizeof(float);
    context->is_probs_saved = plan->recompute == FR_RECOMPUTE_NONE;
    init_layer_layout(context);
    init_saved(context);
}

/* What a tensor is, before it is placed. */
typedef struct tensor_spec {
    uint32_t id;
    uint64_t at; /* in the unit; LOWER_ABSENT: not there */
    int64_t rows, cols, global_rows, global_cols;
    uint8_t sharded_dim;
    fr_tensor_init init;
    double std;
    const char *gpt2_name, *llama_name;
} tensor_spec;

static bool push_tensor(lower_class *lc, const tensor_spec *spec,
                        uint64_t unit_first, int32_t layer)
{
    const fr_model *model = lc->context->model;
    bool is_llama = model->is_rms_norm;
    fr_tensor tensor = {
        .first = unit_first + spec->at,
        .n = (uint64_t)spec->rows * (uint64_t)spec->cols,
        .rows = spec->rows,
        .cols = spec->cols,
        .global_rows = spec->global_rows,
        .global_cols = spec->global_cols,
        .sharded_dim = lc->context->plan->tp > 1 ? spec->sharded_dim : 0,
        .n_parts = 1,
        .part_rows = {spec->rows},
        .is_decayed = spec->rows > 1,
        .init = (uint8_t)spec->init,
        .init_std = spec->std,
        .id = spec->id,
    };
    if (spec->at == LOWER_ABSENT)
        return true;
    const char *name = is_llama ? spec->llama_name : spec->gpt2_name;
    if (layer >= 0)
        snprintf(tensor.name, sizeof tensor.name, "%s.%d.%s",
                 is_llama ? "layers" : "h", (int)layer, name);
    else
        snprintf(tensor.name, sizeof tensor.name, "%s", name);
    return fr_vec_push(&lc->tensors, tensor) == FR_OK;
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

static bool push_linear(lower_class *lc, const linear_spec *spec,
                        uint64_t unit_first, int32_t layer)
{
    char gpt2[2][32], llama[2][32];
    for (int i = 0; i < 2; i++) {
        const char *part = i == 0 ? "weight" : "bias";
        snprintf(gpt2[i], sizeof gpt2[i], "%s.%s", spec->gpt2_name, part);
        snprintf(llama[i], sizeof llama[i], "%s.%s", spec->llama_name, part);
    }
    tensor_spec weight = {spec->id,          spec->w,
                          spec->out,         spec->in,
                          spec->global_out,  spec->global_in,
                          spec->sharded_dim, FR_TENSOR_INIT_NORMAL,
                          spec->std,         gpt2[0],
                          llama[0]};
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
                        gpt2[1],
                        llama[1]};
    return push_tensor(lc, &weight, unit_first, layer) &&
           push_tensor(lc, &bias, unit_first, layer);
}

static bool push_norm(lower_class *lc, uint32_t id, uint64_t w, uint64_t b,
                      uint64_t unit_first, int32_t layer,
                      const char *const names[2])
{
    int64_t c = lc->context->shape.hidden;
    char gpt2[2][32], llama[2][48];
    for (int i = 0; i < 2; i++) {
        const char *part = i == 0 ? "weight" : "bias";
        snprintf(gpt2[i], sizeof gpt2[i], "%s.%s", names[0], part);
        snprintf(llama[i], sizeof llama[i], "%s.%s", names[1], part);
    }
    tensor_spec weight = {id, w,       1,       c, 1, c, 0, FR_TENSOR_INIT_ONE,
                          0,  gpt2[0], llama[0]};
    tensor_spec bias = {id + 1,  b,       1, c, 1, c, 0, FR_TENSOR_INIT_ZERO, 0,
                        gpt2[1], llama[1]};
    return push_tensor(lc, &weight, unit_first, layer) &&
           push_tensor(lc, &bias, unit_first, layer);
}

/* Stacked matrices, each sharded by itself: q, k, v; gate, up. */
static void mark_parts(lower_class *lc, uint32_t id, uint8_t n_parts,
                       const int64_t part_rows[3])
{
    for (size_t i = 0; i < lc->tensors.n; i++) {
        fr_tensor *tensor = &lc->tensors.items[i];
        if (tensor->id != id && tensor->id != id + 1)
            continue;
        tensor->n_parts = n_parts;
        memcpy(tensor->part_rows, part_rows, 3 * sizeof part_rows[0]);
    }
}

static bool push_layer(lower_class *lc, const lower_unit *unit)
{
    const lower_context *context = lc->context;
    const fr_model *model = context->model;
    const lower_shape *s = &context->shape;
    const lower_layer_layout *l = &context->layer;
    static const char *const norm1[2] = {"ln_1", "input_layernorm"};
    static const char *const norm2[2] = {"ln_2", "post_attention_layernorm"};
    const uint32_t id = ID_LAYERS + 16 * (uint32_t)unit->layer;
    const double std = 0.02;
    /* GPT-2 (Radford et al. 2019, section 2.3): residual projections are
     * scaled by 1/sqrt(2 layers); Llama does not. */
    const double residual_std =
        model->is_rms_norm ? std : std / sqrt(2.0 * (double)model->n_layers);
    const int64_t tp = context->plan->tp, c = s->hidden;
    const linear_spec linears[] = {
        {id + 4, 1, l->qkv_w, l->qkv_b, s->qkv, c, s->qkv * tp, c, std,
         "attn.c_attn", "self_attn.qkv_proj"},
        {id + 6, 2, l->out_w, l->out_b, c, s->attn, c, s->attn * tp,
         residual_std, "attn.c_proj", "self_attn.o_proj"},
        {id + 8, 1, l->fc1_w, l->fc1_b, s->fc1, c, s->fc1 * tp, c, std,
         "mlp.c_fc", model->is_gated_mlp ? "mlp.gate_up_proj" : "mlp.up_proj"},
        {id + 10, 2, l->fc2_w, l->fc2_b, c, s->ffn, c, s->ffn * tp,
         residual_std, "mlp.c_proj", "mlp.down_proj"},
    };
    const int64_t q = s->attn, kv = s->kv_heads * s->head_dim;
    bool is_ok = push_norm(lc, id, l->ln1_w, l->ln1_b, unit->first, unit->layer,
                           norm1) &&
                 push_norm(lc, id + 2, l->ln2_w, l->ln2_b, unit->first,
                           unit->layer, norm2);
    for (size_t i = 0; is_ok && i < sizeof linears / sizeof linears[0]; i++)
        is_ok = push_linear(lc, &linears[i], unit->first, unit->layer);
    mark_parts(lc, id + 4, 3, (const int64_t[3]){q, kv, kv});
    if (model->is_gated_mlp)
        mark_parts(lc, id + 8, 2, (const int64_t[3]){s->ffn, s->ffn, 0});
    return is_ok;
}

/* wte, wpe, last norm and head, as far as the unit has them. */
static bool push_ends(lower_class *lc, const lower_unit *unit)
{
    const fr_model *model = lc->context->model;
    const lower_shape *s = &lc->context->shape;
    const lower_ends *e = &lc->ends;
    static const char *const norm[2] = {"ln_f", "norm"};
    bool is_split = model->is_tied && lc->context->plan->pp > 1;
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
                       "embed_tokens.weight"};
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
                       "position_embeddings.weight"};
    switch (unit->kind) {
    case LOWER_UNIT_TIED:
        wte.at = lc->is_first ? e->wte : e->head;
        if (!push_tensor(lc, &wte, 0, -1))
            return false;
        lc->tensors.items[lc->tensors.n - 1].is_tied_copy = !lc->is_first;
        return true;
    case LOWER_UNIT_EMBED:
        return (is_split || push_tensor(lc, &wte, 0, -1)) &&
               push_tensor(lc, &wpe, 0, -1);
    case LOWER_UNIT_FINAL:
        wte.id = ID_HEAD;
        wte.at = e->head;
        wte.gpt2_name = wte.llama_name = "lm_head.weight";
        return push_norm(lc, ID_NORM_W, e->norm_w, e->norm_b, 0, -1, norm) &&
               (model->is_tied || push_tensor(lc, &wte, 0, -1));
    case LOWER_UNIT_LAYER:
        break;
    }
    return true;
}

/* Positions in the flat list of what lies outside layers. */
static uint64_t place_ends(lower_class *lc, const lower_unit *unit)
{
    const fr_model *model = lc->context->model;
    const lower_shape *s = &lc->context->shape;
    lower_ends *e = &lc->ends;
    uint64_t used = unit->first;
    bool is_split = model->is_tied && lc->context->plan->pp > 1;
    switch (unit->kind) {
    case LOWER_UNIT_TIED:
        *(lc->is_first ? &e->wte : &e->head) =
            place(&used, true, s->vocab_local, s->hidden);
        break;
    case LOWER_UNIT_EMBED:
        if (!is_split)
            e->wte = place(&used, true, s->vocab_local, s->hidden);
        e->wpe = place(&used, !model->is_rope, model->max_seq, s->hidden);
        break;
    case LOWER_UNIT_FINAL:
        e->norm_w = place(&used, true, 1, s->hidden);
        e->norm_b = place(&used, !model->is_rms_norm, 1, s->hidden);
        if (!model->is_tied)
            e->head = place(&used, true, s->vocab_local, s->hidden);
        else if (!is_split)
            e->head = e->wte;
        break;
    case LOWER_UNIT_LAYER:
        break;
    }
    return used - unit->first;
}

static bool add_unit(lower_class *lc, lower_unit_kind kind, int32_t layer)
{
    const lower_context *context = lc->context;
    lower_unit unit = {.kind = kind,
                       .layer = layer,
                       .weight = FR_BLOCK_NONE,
                       .grad = FR_BLOCK_NONE};
    if (kind == LOWER_UNIT_LAYER) {
        unit.n = context->layer.n;
        unit.n_norm = context->layer.n_norm;
    } else {
        unit.n = place_ends(lc, &unit);
        if (kind == LOWER_UNIT_FINAL)
            unit.n_norm = (context->model->is_rms_norm ? 1U : 2U) *
                          lower_padded((uint64_t)context->shape.hidden);
    }
    return fr_vec_push(&lc->units, unit) == FR_OK;
}

static bool add_units(lower_class *lc)
{
    const lower_context *context = lc->context;
    bool is_split = context->model->is_tied && context->plan->pp > 1;
    bool is_ok = true;
    if (lc->is_first && is_split)
        is_ok = is_ok && add_unit(lc, LOWER_UNIT_TIED, -1);
    if (lc->is_first && (!is_split || !context->model->is_rope))
        is_ok = is_ok && add_unit(lc, LOWER_UNIT_EMBED, -1);
    for (int32_t chunk = 0; chunk < context->plan->vpp; chunk++)
        for (int32_t i = 0; i < lc->chunk_layers[chunk]; i++)
            is_ok = is_ok &&
                    add_unit(lc, LOWER_UNIT_LAYER, lc->chunk_first[chunk] + i);
    if (lc->is_last)
        is_ok = is_ok && add_unit(lc, LOWER_UNIT_FINAL, -1);
    if (lc->is_last && is_split)
        is_ok = is_ok && add_unit(lc, LOWER_UNIT_TIED, -1);
    return is_ok;
}

/*
 * Buckets: units in the order in which backward completes them (from the end
 * of the list), until bucket_bytes are reached.  The tied matrix is alone, so
 * that both of its holders sum it in the same order.
 */
static bool add_buckets(lower_class *lc)
{
    const uint64_t wanted = lc->context->plan->bucket_bytes;
    bool is_open = false;
    for (size_t i = lc->units.n; i-- > 0;) {
        lower_unit *unit = &lc->units.items[i];
        bool is_tied = unit->kind == LOWER_UNIT_TIED;
        if (!is_open || is_tied) {
            lower_bucket fresh = {.is_tied = is_tied,
                                  .opt = FR_BLOCK_NONE,
                                  .error = FR_BLOCK_NONE,
                                  .wire = FR_BLOCK_NONE};
            if (fr_vec_push(&lc->buckets, fresh) != FR_OK)
                return false;
        }
        lower_bucket *bucket = &lc->buckets.items[lc->buckets.n - 1];
        bucket->first_unit = (uint32_t)i;
        bucket->n_units++;
        bucket->n_pending++;
        bucket->n += unit->n;
        unit->i_bucket = (uint32_t)(lc->buckets.n - 1);
        is_open =
            !is_tied && (wanted == 0 || bucket->n * sizeof(float) < wanted);
    }
    return true;
}

/* Now that the buckets are known: positions, padding, tensors. */
static bool place_units(lower_class *lc)
{
    const uint64_t quantum =
        (uint64_t)TENSOR_ALIGN * (uint64_t)lc->context->plan->dp;
    uint64_t used = 0;
    for (size_t b = lc->buckets.n; b-- > 0;) {
        lower_bucket *bucket = &lc->buckets.items[b];
        bucket->first = used;
        for (uint32_t i = 0; i < bucket->n_units; i++) {
            lower_unit *unit = &lc->units.items[bucket->first_unit + i];
            unit->first = used;
            used += unit->n;
        }
        bucket->n = (used - bucket->first + quantum - 1) / quantum * quantum;
        used = bucket->first + bucket->n;
        lower_unit *last =
            &lc->units.items[bucket->first_unit + bucket->n_units - 1];
        last->n = used - last->first;
    }
    lc->klass->n_parameters = used;
    lc->ends = (lower_ends){LOWER_ABSENT, LOWER_ABSENT, LOWER_ABSENT,
                            LOWER_ABSENT, LOWER_ABSENT};
    for (size_t i = 0; i < lc->units.n; i++) {
        const lower_unit *unit = &lc->units.items[i];
        place_ends(lc, unit);
        if (!(unit->kind == LOWER_UNIT_LAYER ? push_layer(lc, unit)
                                             : push_ends(lc, unit)))
            return false;
    }
    return true;
}

fr_status lower_layout_class(lower_class *lc, fr_err *err)
{
    if (!add_units(lc) || !add_buckets(lc) || !place_units(lc))
        return fr_fail_no_memory(err);
    return FR_OK;
}
