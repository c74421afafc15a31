/*
 * lower_ring.c: a layer whose keys and values go round a ring of context
 * parallel ranks (Liu et al. 2023, arXiv 2310.01889; as Transformer Engine
 * does it, with the sequence balanced in 2 cp pieces).
 *
 * The layer is several calls: what comes before attention, cp steps of its
 * core, what comes after.  Beside each step but the last the keys of the next
 * are on their way (lane TP), in blocks of their own: PIECE_IN is sent,
 * PIECE_OUT arrives.  In backward the gradients of keys follow a step behind
 * them: beside step i those that step i - 1 has added to, so that they arrive
 * where the same keys have just been looked at; and once more at the end,
 * home.  CARRY holds what the calls hand to each other.
 */
#include "core/base/minmax.h"
#include "program/lower/segment/lower_layer.h"

/* CARRY holds the gradients of qkv, then those of attention's output, then
 * those of a step's keys. */
static uint64_t dqkv_bytes(const lower_context *context)
{
    const lower_shape *s = &context->shape;
    return lower_bytes(context, s->rows, s->qkv);
}

static uint64_t carry_bytes(const lower_context *context)
{
    const lower_shape *s = &context->shape;
    return dqkv_bytes(context) + lower_bytes(context, s->rows, s->attn) +
           lower_key_bytes(context);
}

static uint64_t query_bytes(const lower_context *context)
{
    return dqkv_bytes(context) - lower_key_bytes(context);
}

static uint32_t segment(lower_context *context, const char *name,
                        const char *pass, const char *part)
{
    return lower_segment_begin(context, FR_LANE_COMPUTE, "%s_%s_%s", name, pass,
                               part);
}

/* Sends keys, or keys and their gradients, to the next rank. */
static void shift(lower_context *context, uint64_t n_bytes, fr_ref src,
                  fr_ref dst)
{
    lower_collective(context, FR_OP_SHIFT, FR_AXIS_CP,
                     fr_plan_storage_dtype(context->plan),
                     n_bytes / lower_bytes(context, 1, 1), src, dst);
}

/* The first of the segments with the keys of the ranks 1, 2 ... before. */
static uint32_t other_segments(lower_context *context, const lower_kind *kind,
                               const char *name, const char *pass,
                               bool is_forward)
{
    const fr_ref dqkv = lower_ref(FR_SPACE_CARRY, 0);
    const fr_ref d_o = lower_moved(dqkv, dqkv_bytes(context));
    const fr_ref dkeys =
        lower_moved(dqkv, carry_bytes(context) - lower_key_bytes(context));
    uint32_t first = (uint32_t)context->segments.n;
    for (int32_t step = 1; step < context->plan->cp; step++) {
        (void)segment(context, name, pass, "other");
        if (is_forward)
            lower_ring_core(context, kind, step);
        else
            lower_ring_core_backward(context, kind, d_o, dqkv, dkeys, step);
    }
    return first;
}

static void forward_segments(lower_context *context, lower_kind *kind,
                             lower_ring_segments *ring, const char *name,
                             const char *pass)
{
    const lower_saved *k = &kind->saved;
    const size_t first = context->segments.n;
    ring->piece_bytes = lower_key_bytes(context);
    ring->i_begin = segment(context, name, pass, "begin");
    lower_layer_before(context, kind);
    fr_ref keys = lower_saved_at(k->qkv);
    keys.offset_bytes += query_bytes(context);
    lower_copy(context, keys, lower_ref(FR_SPACE_PIECE_OUT, 0),
               lower_key_bytes(context));
    ring->i_own = segment(context, name, pass, "own");
    lower_ring_core(context, kind, 0);
    ring->i_other = other_segments(context, kind, name, pass, true);
    ring->i_shift =
        lower_segment_begin(context, FR_LANE_TP, "%s_%s_shift", name, pass);
    shift(context, lower_key_bytes(context), lower_ref(FR_SPACE_PIECE_IN, 0),
          lower_ref(FR_SPACE_PIECE_OUT, 0));
    ring->i_end = segment(context, name, pass, "end");
    bool is_recomputed = ring == &kind->segments.ring_recompute;
    lower_layer_after(context, kind,
                      is_recomputed ? lower_temp(context, kind->out_bytes)
                                    : lower_ref(FR_SPACE_OUT, 0));
    lower_segments_mark(context, first,
                        is_recomputed ? FR_SEGMENT_RECOMPUTE
                                      : FR_SEGMENT_FORWARD);
}

static uint32_t shift_segment(lower_context *context, const char *name,
                              const char *what, uint64_t first_bytes,
                              uint64_t n_bytes, fr_ref dst)
{
    uint32_t i =
        lower_segment_begin(context, FR_LANE_TP, "%s_bwd_%s", name, what);
    shift(context, n_bytes, lower_ref(FR_SPACE_PIECE_IN, first_bytes), dst);
    return i;
}

/* Writes the segments whose payload goes round in backward: [keys, their
 * gradients]. */
static void backward_pieces(lower_context *context, lower_ring_segments *ring,
                            const char *name)
{
    const uint64_t keys = lower_key_bytes(context);
    const fr_ref out = lower_ref(FR_SPACE_PIECE_OUT, 0);
    const fr_ref gradient = lower_ref(FR_SPACE_PIECE_OUT, keys);
    const fr_ref own = lower_ref(FR_SPACE_CARRY, query_bytes(context));
    const fr_ref part = lower_ref(FR_SPACE_CARRY, carry_bytes(context) - keys);
    ring->piece_bytes = 2 * keys;
    ring->i_own_gradient = segment(context, name, "bwd", "own_gradient");
    lower_copy(context, own, gradient, keys);
    ring->i_add = segment(context, name, "bwd", "add");
    lower_add(context, part, gradient,
              (int64_t)(keys / lower_bytes(context, 1, 1)));
    ring->i_shift = shift_segment(context, name, "shift", 0, keys, out);
    ring->i_shift_both =
        shift_segment(context, name, "shift_both", 0, 2 * keys, out);
    ring->i_shift_last =
        shift_segment(context, name, "shift_last", keys, keys, gradient);
    ring->i_home = shift_segment(context, name, "home", keys, keys, own);
}

static void backward_segments(lower_context *context, lower_kind *kind,
                              const char *name)
{
    const lower_saved *k = &kind->saved;
    lower_ring_segments *ring = &kind->segments.ring_bwd;
    const fr_ref dqkv = lower_ref(FR_SPACE_CARRY, 0);
    const fr_ref d_o = lower_ref(FR_SPACE_CARRY, dqkv_bytes(context));
    bool is_cut = lower_is_pass_cut(context);
    const size_t first = context->segments.n;
    if (is_cut)
        lower_pass_begin(context, &kind->backward, name, "bwd",
                         carry_bytes(context));
    else
        ring->i_begin = segment(context, name, "bwd", "begin");
    lower_layer_backward_before(context, kind, d_o);
    lower_pass_end(context);
    ring->i_keys = segment(context, name, "bwd", "keys");
    lower_copy(context,
               lower_moved(lower_saved_at(k->qkv), query_bytes(context)),
               lower_ref(FR_SPACE_PIECE_OUT, 0), lower_key_bytes(context));
    ring->i_own = segment(context, name, "bwd", "own");
    lower_ring_core_backward(context, kind, d_o, dqkv, lower_absent, 0);
    ring->i_other = other_segments(context, kind, name, "bwd", false);
    backward_pieces(context, ring, name);
    if (is_cut)
        lower_pass_begin(context, &kind->backward_end, name, "bwd_end",
                         carry_bytes(context));
    else
        ring->i_end = segment(context, name, "bwd", "end");
    lower_layer_backward_after(context, kind, dqkv);
    lower_pass_end(context);
    lower_segments_mark(context, first, FR_SEGMENT_BACKWARD);
    ring->carry_bytes = fr_max_u64(
        carry_bytes(context),
        fr_max_u64(kind->backward.carry_bytes, kind->backward_end.carry_bytes));
}

void lower_ring_write(lower_context *context, lower_kind *kind,
                      const char *name)
{
    forward_segments(context, kind, &kind->segments.ring_fwd, name, "fwd");
    if (context->plan->recompute == FR_RECOMPUTE_FULL)
        forward_segments(context, kind, &kind->segments.ring_recompute, name,
                         "recompute");
    backward_segments(context, kind, name);
}
