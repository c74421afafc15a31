/*
 * lower_layout.c: the flat parameter list of a rank program and its buckets.
 *
 * The flat list holds a rank program's tensors in forward order.  Each begins
 * at a multiple of 16 elements, each bucket at one of 16 dp (32 dp for elements
 * of two bytes), so that a shard of a bucket is a whole number of cache lines.
 *
 * ZeRO 2 and 3 reduce by layer, as FSDP does: every unit is a bucket.
 */
#include "plan/lower/step/lower_internal.h"

#include <string.h>

bool lower_is_tied_apart(const lower_context *context)
{
    const int32_t pp = context->plan->pp;
    const int32_t last = pp * context->plan->vpp - 1;
    return context->model->is_tied &&
           fr_schedule_rank(context->schedule, 0, pp) !=
               fr_schedule_rank(context->schedule, last, pp);
}

fr_axis lower_reduce_axis(const lower_context *context, bool is_expert)
{
    (void)context;
    return is_expert ? FR_AXIS_EDP : FR_AXIS_DP;
}

fr_axis lower_shard_axis(const lower_context *context, bool is_expert)
{
    bool is_whole = lower_axis_size(context->plan, FR_AXIS_REPLICA) == 1;
    return is_expert ? FR_AXIS_EDP : is_whole ? FR_AXIS_DP : FR_AXIS_SHARD;
}

uint64_t lower_n_shards(const lower_context *context, bool is_expert)
{
    const fr_plan *plan = context->plan;
    return plan->zero_stage == 0
               ? 1
               : (uint64_t)lower_axis_size(
                     plan, lower_shard_axis(context, is_expert));
}

/* Elements that fill a cache line whichever space they lie in. */
static uint64_t line_elements(const lower_context *context)
{
    uint64_t weight = lower_element_bytes(context, FR_SPACE_WEIGHT);
    uint64_t grad = lower_element_bytes(context, FR_SPACE_GRAD);
    return 64 / (weight < grad ? weight : grad);
}

static uint64_t round_up(uint64_t n, uint64_t quantum)
{
    return (n + quantum - 1) / quantum * quantum;
}

uint64_t lower_part_padded(const lower_context *context, bool is_expert,
                           uint64_t n)
{
    return round_up(
        n, line_elements(context) *
               (uint64_t)lower_axis_size(
                   context->plan, lower_reduce_axis(context, is_expert)));
}

/* Positions in the flat list of what lies outside layers. */
static uint64_t place_ends(lower_class *lc, const lower_unit *unit)
{
    const fr_model *model = lc->context->model;
    const lower_shape *s = &lc->context->shape;
    lower_ends *e = &lc->ends;
    uint64_t used = unit->first;
    bool is_split = lower_is_tied_apart(lc->context);
    bool is_list = model->kind == FR_MODEL_LAYERS;
    switch (unit->kind) {
    case LOWER_UNIT_TIED:
        *(lc->is_first ? &e->wte : &e->head) =
            lower_place(&used, true, s->vocab_local, s->hidden);
        break;
    case LOWER_UNIT_EMBED:
        if (is_list) { /* nothing, but the unit has to be somewhere */
            lower_place(&used, true, 1, 1);
            break;
        }
        if (!is_split)
            e->wte =
                lower_place(&used, model->vocab > 0, s->vocab_local, s->hidden);
        e->wpe = lower_place(&used, !model->is_rope, model->max_seq, s->hidden);
        lower_place_encoder_ends(lc, false, &used);
        break;
    case LOWER_UNIT_FINAL:
        if (is_list) {
            lower_place(&used, true, 1, 1);
            break;
        }
        e->norm_w = lower_place(&used, model->has_final_norm, 1, s->hidden);
        e->norm_b = lower_place(
            &used, model->has_final_norm && !model->is_rms_norm, 1, s->hidden);
        if (!model->is_tied)
            e->head = lower_place(&used, model->kind == FR_MODEL_DECODER,
                                  s->vocab_local, s->hidden);
        else if (!is_split)
            e->head = e->wte;
        lower_place_encoder_ends(lc, true, &used);
        break;
    case LOWER_UNIT_LAYER:
        break;
    }
    return used - unit->first;
}

static bool add_unit(lower_class *lc, lower_unit_kind kind)
{
    const lower_context *context = lc->context;
    lower_unit unit = {.kind = kind,
                       .layer = -1,
                       .weight = FR_BLOCK_NONE,
                       .grad = FR_BLOCK_NONE};
    unit.n = round_up(place_ends(lc, &unit), line_elements(context));
    if (kind == LOWER_UNIT_FINAL && context->model->has_final_norm)
        unit.n_norm = (context->model->is_rms_norm ? 1U : 2U) *
                      lower_padded((uint64_t)context->shape.hidden);
    return fr_vec_push(&lc->units, unit) == FR_OK;
}

/* A layer: one unit, or two where it has experts. */
static bool add_layer_units(lower_class *lc, uint32_t slot, int32_t layer)
{
    const lower_context *context = lc->context;
    const lower_layer_layout *layout = lower_layout_of(context, layer);
    lower_unit dense = {.kind = LOWER_UNIT_LAYER,
                        .layer = layer,
                        .n = round_up(layout->n_dense, line_elements(context)),
                        .n_norm = layout->n_norm,
                        .weight = FR_BLOCK_NONE,
                        .grad = FR_BLOCK_NONE};
    lower_unit experts = dense;
    lc->layer_unit[slot] = (uint32_t)lc->units.n;
    if (fr_vec_push(&lc->units, dense) != FR_OK)
        return false;
    if (layout->n_dense == layout->n)
        return true;
    experts.is_expert = true;
    experts.n = layout->n - layout->n_dense;
    experts.n_norm = 0;
    return fr_vec_push(&lc->units, experts) == FR_OK;
}

static bool add_units(lower_class *lc)
{
    const lower_context *context = lc->context;
    bool is_split = lower_is_tied_apart(context);
    /* What one call uses must stand together (see lower_set). */
    bool is_final_early = lower_is_by_unit(context) && lc->is_first &&
                          lc->is_last && context->model->is_tied;
    bool is_ok = true;
    if (lc->is_first && is_split)
        is_ok = is_ok && add_unit(lc, LOWER_UNIT_TIED);
    if (lc->is_first && (!is_split || !context->model->is_rope))
        is_ok = is_ok && add_unit(lc, LOWER_UNIT_EMBED);
    if (is_final_early)
        is_ok = is_ok && add_unit(lc, LOWER_UNIT_FINAL);
    for (int32_t chunk = 0; chunk < context->plan->vpp; chunk++)
        for (int32_t i = 0; i < lc->chunk_layers[chunk]; i++)
            is_ok = is_ok &&
                    add_layer_units(lc, lc->chunk_slot[chunk] + (uint32_t)i,
                                    lc->chunk_first[chunk] + i);
    if (lc->is_last && !is_final_early)
        is_ok = is_ok && add_unit(lc, LOWER_UNIT_FINAL);
    if (lc->is_last && is_split)
        is_ok = is_ok && add_unit(lc, LOWER_UNIT_TIED);
    return is_ok;
}

/*
 * Buckets: units in the order in which backward completes them (from the end
 * of the list), until bucket_bytes are reached.  The tied matrix is alone, so
 * that both of its holders sum it in the same order; experts are alone, since
 * others sum them.
 */
static bool add_buckets(lower_class *lc)
{
    const lower_context *context = lc->context;
    const uint64_t wanted = context->plan->bucket_bytes;
    const uint64_t grad = lower_element_bytes(context, FR_SPACE_GRAD);
    bool is_open = false;
    for (size_t i = lc->units.n; i-- > 0;) {
        lower_unit *unit = &lc->units.items[i];
        bool is_tied = unit->kind == LOWER_UNIT_TIED;
        if (!is_open || is_tied ||
            unit->is_expert != lc->buckets.items[lc->buckets.n - 1].is_expert) {
            lower_bucket fresh = {.is_tied = is_tied,
                                  .is_expert = unit->is_expert,
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
        is_open = !is_tied && !lower_is_by_unit(context) &&
                  (wanted == 0 || bucket->n * grad < wanted);
    }
    return true;
}

/* Now that the buckets are known: positions, padding, tensors. */
static bool place_units(lower_class *lc)
{
    uint64_t used = 0;
    for (size_t b = lc->buckets.n; b-- > 0;) {
        lower_bucket *bucket = &lc->buckets.items[b];
        bucket->first = used;
        for (uint32_t i = 0; i < bucket->n_units; i++) {
            lower_unit *unit = &lc->units.items[bucket->first_unit + i];
            unit->first = used;
            used += unit->n;
        }
        bucket->n = lower_part_padded(lc->context, bucket->is_expert,
                                      used - bucket->first);
        used = bucket->first + bucket->n;
        lower_unit *last =
            &lc->units.items[bucket->first_unit + bucket->n_units - 1];
        last->n = used - last->first;
    }
    lc->rank_program->n_parameters = used;
    memset(&lc->ends, 0xff, sizeof lc->ends); /* LOWER_ABSENT */
    for (size_t i = 0; i < lc->units.n; i++) {
        const lower_unit *unit = &lc->units.items[i];
        place_ends(lc, unit);
        if (unit->is_expert) /* lower_push_layer() has done both parts */
            continue;
        if (!(unit->kind == LOWER_UNIT_LAYER ? lower_push_layer(lc, unit)
                                             : lower_push_ends(lc, unit)))
            return false;
    }
    return true;
}

fr_status lower_layout_class(lower_class *lc, fr_err *err)
{
    if (!add_units(lc) || !add_buckets(lc) || !place_units(lc))
        return fr_fail_no_memory(err);
    return lower_is_by_unit(lc->context) ? lower_sets_init(lc, err) : FR_OK;
}
