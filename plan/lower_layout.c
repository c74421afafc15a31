/*
 * lower_layout.c: the flat parameter list of a class and its buckets.
 *
 * The flat list holds a class's tensors in forward order.  Each begins at a
 * multiple of 16 elements, each bucket at one of 16 dp, so that a shard of a
 * bucket is a whole number of cache lines.
 */
#include "plan/lower_internal.h"

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
            lower_place(&used, true, s->vocab_local, s->hidden);
        break;
    case LOWER_UNIT_EMBED:
        if (!is_split)
            e->wte = lower_place(&used, true, s->vocab_local, s->hidden);
        e->wpe = lower_place(&used, !model->is_rope, model->max_seq, s->hidden);
        break;
    case LOWER_UNIT_FINAL:
        e->norm_w = lower_place(&used, true, 1, s->hidden);
        e->norm_b = lower_place(&used, !model->is_rms_norm, 1, s->hidden);
        if (!model->is_tied)
            e->head = lower_place(&used, true, s->vocab_local, s->hidden);
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
        unit.n = lower_layout_of(context, layer)->n;
        unit.n_norm = lower_layout_of(context, layer)->n_norm;
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
        (uint64_t)LOWER_TENSOR_ALIGN * (uint64_t)lc->context->plan->dp;
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
    return FR_OK;
}
