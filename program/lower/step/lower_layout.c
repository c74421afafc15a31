/*
 * lower_layout.c: the flat parameter list of a rank program and its buckets.
 *
 * The flat list holds a rank program's tensors in forward order.  Each begins
 * at a multiple of 16 elements, each bucket at one of 16 dp (32 dp for elements
 * of two bytes), so that a shard of a bucket is a whole number of cache lines.
 *
 * ZeRO 2 and 3 reduce by layer, as FSDP does: every unit is a bucket.
 */
#include "plan/outline/bucket_cut.h"
#include "program/lower/step/lower_step.h"
#include "spec/model/model_traits.h"

#include <string.h>

/* Elements that fill whole cache lines, and where there are experts such that
 * no bucket needs padding, which would part a layer's experts from its rest. */
static uint64_t in_lines(const lower_context *context, uint64_t n)
{
    const uint64_t line = lower_line_elements(context);
    return context->model->n_experts > 0 ? lower_part_padded(context, false, n)
                                         : (n + line - 1) / line * line;
}

static void place_encoder_embed(lower_rank *rank, uint64_t *used)
{
    const fr_model *m = rank->context->model;
    lower_embed_places *e = &rank->ends.embed;
    const int64_t c = rank->context->shape.hidden;
    bool is_image = m->n_channels > 0, has_bias = lower_has_norm_bias(m);
    e->types = lower_place(used, m->n_token_types > 0, m->n_token_types, c);
    e->norm_w = lower_place(used, m->has_embed_norm, 1, c);
    e->norm_b = lower_place(used, m->has_embed_norm && has_bias, 1, c);
    e->patch = lower_place(used, is_image, c,
                           m->n_channels * m->patch_size * m->patch_size);
    e->patch_b = lower_place(used, is_image, 1, c);
    e->first_token = lower_place(used, is_image, 1, c);
}

/* Places the parts of the masked-token head that, like norms, see only a TP
 * rank's own rows. */
static void place_dense(lower_rank *rank, uint64_t *used)
{
    const fr_model *m = rank->context->model;
    const lower_shape *s = &rank->context->shape;
    lower_head_places *e = &rank->ends.head;
    const int64_t c = s->hidden;
    e->dense = lower_place(used, m->has_mlm_head, c, c);
    e->dense_b = lower_place(used, m->has_mlm_head, 1, c);
    e->dense_norm_w = lower_place(used, m->has_mlm_head, 1, c);
    e->dense_norm_b =
        lower_place(used, m->has_mlm_head && !m->is_rms_norm, 1, c);
}

static void place_encoder_head(lower_rank *rank, uint64_t *used)
{
    const fr_model *m = rank->context->model;
    const lower_shape *s = &rank->context->shape;
    lower_head_places *e = &rank->ends.head;
    const int64_t c = s->hidden;
    bool has_pair = m->has_pooler && m->has_mlm_head;
    e->pooler = lower_place(used, m->has_pooler, c, c);
    e->pooler_b = lower_place(used, m->has_pooler, 1, c);
    e->vocab_b = lower_place(
        used, m->has_mlm_head || fr_model_has(m, FR_TRAIT_HEAD_BIAS), 1,
        s->vocab_local);
    e->pair = lower_place(used, has_pair, 2, c);
    e->pair_b = lower_place(used, has_pair, 1, 2);
    e->labels = lower_place(used, m->n_labels > 0, m->n_labels, c);
    e->labels_b = lower_place(used, m->n_labels > 0, 1, m->n_labels);
}

/* Finds the positions in the flat list of what lies outside layers. */
static uint64_t place_ends(lower_rank *rank, lower_unit *unit)
{
    const fr_model *model = rank->context->model;
    const lower_shape *s = &rank->context->shape;
    lower_embed_places *embed = &rank->ends.embed;
    lower_head_places *head = &rank->ends.head;
    uint64_t used = unit->first;
    bool is_split =
        fr_stages_are_tied_apart(rank->context->plan, rank->context->model);
    bool is_list = model->kind == FR_MODEL_LAYERS;
    switch (unit->kind) {
    case LOWER_UNIT_TIED:
        /* The last stage has it for its head, for later tokens, or both. */
        embed->wte = lower_place(&used, true, s->vocab_local, s->hidden);
        if (!rank->is_first && model->is_tied)
            head->head = embed->wte;
        break;
    case LOWER_UNIT_EMBED:
        if (is_list) { /* nothing, but the unit has to be somewhere */
            lower_place(&used, true, 1, 1);
            break;
        }
        if (!is_split)
            embed->wte =
                lower_place(&used, model->vocab > 0, s->vocab_local, s->hidden);
        embed->wpe = lower_place(&used, fr_model_has_position_table(model),
                                 model->max_seq, s->hidden);
        place_encoder_embed(rank, &used);
        if (model->has_embed_norm) { /* the last */
            unit->norm_first = embed->norm_w - unit->first;
            unit->n_norm = used - embed->norm_w;
        }
        break;
    case LOWER_UNIT_FINAL:
        if (is_list) {
            lower_place(&used, true, 1, 1);
            break;
        }
        head->norm_w = lower_place(&used, model->has_final_norm, 1, s->hidden);
        head->norm_b = lower_place(
            &used, model->has_final_norm && lower_has_norm_bias(model), 1,
            s->hidden);
        place_dense(rank, &used);
        unit->n_norm = used - unit->first;
        if (!model->is_tied)
            head->head = lower_place(&used, model->kind == FR_MODEL_DECODER,
                                     s->vocab_local, s->hidden);
        else if (!is_split)
            head->head = embed->wte;
        place_encoder_head(rank, &used);
        break;
    case LOWER_UNIT_LAYER:
        break;
    }
    return used - unit->first;
}

static bool add_unit(lower_rank *rank, lower_unit_kind kind)
{
    const lower_context *context = rank->context;
    lower_unit unit = {.kind = kind,
                       .layer = -1,
                       .weight = FR_BLOCK_NONE,
                       .grad = FR_BLOCK_NONE};
    unit.n = in_lines(context, place_ends(rank, &unit));
    return fr_vec_push(&rank->units, unit) == FR_OK;
}

/* Adds a layer: one unit, or two where it has experts. */
static bool add_layer_units(lower_rank *rank, uint32_t slot, int32_t layer)
{
    const lower_context *context = rank->context;
    const lower_layer_layout *layout = &lower_kind_of(context, layer)->layout;
    lower_unit dense = {.kind = LOWER_UNIT_LAYER,
                        .layer = layer,
                        .n = in_lines(context, layout->n_dense),
                        .n_norm = layout->n_norm,
                        .weight = FR_BLOCK_NONE,
                        .grad = FR_BLOCK_NONE};
    lower_unit experts = dense;
    rank->slots[slot].unit = (uint32_t)rank->units.n;
    if (fr_vec_push(&rank->units, dense) != FR_OK)
        return false;
    if (layout->n_dense == layout->n)
        return true;
    experts.is_expert = true;
    experts.n = layout->n - layout->n_dense;
    experts.n_norm = 0;
    return fr_vec_push(&rank->units, experts) == FR_OK;
}

static bool add_units(lower_rank *rank)
{
    const lower_context *context = rank->context;
    bool is_split = fr_stages_are_tied_apart(context->plan, context->model);
    /* The weights of one call must be contiguous (see lower_set). */
    bool is_final_early =
        context->sharding.is_by_unit && rank->is_first && rank->is_last &&
        (context->model->is_tied || lower_is_later_run(context));
    bool is_ok = true;
    bool has_more = fr_model_has_position_table(context->model) ||
                    context->model->has_embed_norm;
    if (rank->is_first && is_split)
        is_ok = is_ok && add_unit(rank, LOWER_UNIT_TIED);
    if (rank->is_first && (!is_split || has_more))
        is_ok = is_ok && add_unit(rank, LOWER_UNIT_EMBED);
    if (is_final_early)
        is_ok = is_ok && add_unit(rank, LOWER_UNIT_FINAL);
    for (int32_t chunk = 0; chunk < context->plan->vpp; chunk++)
        for (int32_t i = 0; i < rank->chunks[chunk].n_layers; i++)
            is_ok =
                is_ok && add_layer_units(
                             rank, rank->chunks[chunk].first_slot + (uint32_t)i,
                             rank->chunks[chunk].span.first + i);
    if (rank->is_last && !is_final_early)
        is_ok = is_ok && add_unit(rank, LOWER_UNIT_FINAL);
    if (rank->is_last && is_split)
        is_ok = is_ok && add_unit(rank, LOWER_UNIT_TIED);
    return is_ok;
}

/* Buckets: units in the order in which backward completes them, from the end of
 * the list. */
static bool add_buckets(lower_rank *rank)
{
    fr_bucket_cut cut = fr_bucket_cut_of(rank->context->plan);
    for (size_t i = rank->units.n; i-- > 0;) {
        lower_unit *unit = &rank->units.items[i];
        bool is_tied = unit->kind == LOWER_UNIT_TIED;
        if (fr_bucket_cut_next(&cut, unit->n, unit->is_expert, is_tied)) {
            lower_bucket fresh = {.is_tied = is_tied,
                                  .is_expert = unit->is_expert,
                                  .opt = FR_BLOCK_NONE,
                                  .error = FR_BLOCK_NONE,
                                  .wire = FR_BLOCK_NONE};
            if (fr_vec_push(&rank->buckets, fresh) != FR_OK)
                return false;
        }
        lower_bucket *bucket = &rank->buckets.items[rank->buckets.n - 1];
        bucket->first_unit = (uint32_t)i;
        bucket->n_units++;
        bucket->n_pending++;
        bucket->n += unit->n;
        unit->i_bucket = (uint32_t)(rank->buckets.n - 1);
    }
    return true;
}

/* With the buckets known, gives units their positions, padding and tensors. */
static bool place_units(lower_rank *rank)
{
    uint64_t used = 0;
    for (size_t b = rank->buckets.n; b-- > 0;) {
        lower_bucket *bucket = &rank->buckets.items[b];
        bucket->first = used;
        for (uint32_t i = 0; i < bucket->n_units; i++) {
            lower_unit *unit = &rank->units.items[bucket->first_unit + i];
            unit->first = used;
            used += unit->n;
        }
        bucket->n = lower_part_padded(rank->context, bucket->is_expert,
                                      used - bucket->first);
        used = bucket->first + bucket->n;
        lower_unit *last =
            &rank->units.items[bucket->first_unit + bucket->n_units - 1];
        last->n = used - last->first;
    }
    rank->rank_program->n_parameters = used;
    memset(&rank->ends, 0xff, sizeof rank->ends); /* LOWER_ABSENT */
    for (size_t i = 0; i < rank->units.n; i++) {
        lower_unit *unit = &rank->units.items[i];
        place_ends(rank, unit);
        if (unit->is_expert) /* lower_push_layer() has done both parts */
            continue;
        if (!(unit->kind == LOWER_UNIT_LAYER ? lower_push_layer(rank, unit)
                                             : lower_push_ends(rank, unit)))
            return false;
    }
    return true;
}

fr_status lower_layout(lower_rank *rank, fr_err *err)
{
    if (!add_units(rank) || !add_buckets(rank) || !place_units(rank))
        return fr_fail_no_memory(err);
    return FR_OK;
}
