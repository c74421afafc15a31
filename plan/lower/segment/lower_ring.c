/*
 * lower_ring.c: a layer whose keys and values go round a ring of context
 * parallel ranks (Liu et al. 2023, arXiv 2310.01889; as Transformer Engine
 * does it, with the sequence balanced in 2 cp pieces).
 *
 * The layer is several calls: what comes before attention, cp steps of its
 * core, what comes after.  Beside each step but the last the keys of the next
 * are on their way (lane TP), in blocks of their own: PIECE_IN is sent,
 * PIECE_OUT arrives.  In backward their gradients travel with them, and once
 * more at the end, home.  CARRY holds what the calls hand to each other.
 */
#include "plan/lower/segment/lower_block.h"

/* Bytes of CARRY: the gradients of qkv, then of attention's output. */
static uint64_t dqkv_bytes(const lower_context *context)
{
    const lower_shape *s = &context->shape;
    return lower_bytes(context, s->rows, s->qkv);
}

static uint64_t carry_bytes(const lower_context *context)
{
    const lower_shape *s = &context->shape;
    return dqkv_bytes(context) + lower_bytes(context, s->rows, s->attn);
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

/* Keys, or keys and their gradients, to the next rank. */
static void shift(lower_context *context, uint64_t n_bytes, fr_ref src,
                  fr_ref dst)
{
    fr_instr *instr = lower_collective(context, FR_OP_SHIFT, FR_AXIS_CP,
                                       fr_plan_storage_dtype(context->plan),
                                       n_bytes / lower_bytes(context, 1, 1));
    instr->ref[0] = src;
    instr->ref[1] = dst;
}

static void forward_segments(lower_context *context, lower_kind *kind,
                             lower_ring_calls *calls, const char *name,
                             const char *pass)
{
    const lower_saved *k = &kind->saved;
    const size_t first = context->segments.n;
    calls->i_begin = segment(context, name, pass, "begin");
    lower_layer_before(context, kind);
    fr_ref keys = lower_saved_at(k->qkv);
    keys.offset_bytes += query_bytes(context);
    lower_copy(context, keys, lower_ref(FR_SPACE_PIECE_OUT, 0),
               lower_key_bytes(context));
    calls->i_own = segment(context, name, pass, "own");
    lower_ring_core(context, kind, true);
    calls->i_other = segment(context, name, pass, "other");
    lower_ring_core(context, kind, false);
    calls->i_shift =
        lower_segment_begin(context, FR_LANE_TP, "%s_%s_shift", name, pass);
    shift(context, lower_key_bytes(context), lower_ref(FR_SPACE_PIECE_IN, 0),
          lower_ref(FR_SPACE_PIECE_OUT, 0));
    calls->i_end = segment(context, name, pass, "end");
    bool is_remade = calls == &kind->calls.ring_remake;
    lower_layer_after(context, kind,
                      is_remade ? lower_temp(context, kind->out_bytes)
                                : lower_ref(FR_SPACE_OUT, 0));
    lower_segments_mark(context, first,
                        is_remade ? FR_SEGMENT_RECOMPUTE : FR_SEGMENT_FORWARD);
}

static void backward_segments(lower_context *context, lower_kind *kind,
                              const char *name)
{
    const lower_saved *k = &kind->saved;
    const uint64_t keys = lower_key_bytes(context);
    lower_ring_calls *calls = &kind->calls.ring_bwd;
    const fr_ref dqkv = lower_ref(FR_SPACE_CARRY, 0);
    const fr_ref d_o = lower_ref(FR_SPACE_CARRY, dqkv_bytes(context));
    const fr_ref in = lower_ref(FR_SPACE_PIECE_IN, 0);
    const fr_ref out = lower_ref(FR_SPACE_PIECE_OUT, 0);
    bool is_cut = lower_is_pass_cut(context);
    const size_t first = context->segments.n;
    if (is_cut)
        lower_pass_begin(context, &kind->backward, name, "bwd",
                         carry_bytes(context));
    else
        calls->i_begin = segment(context, name, "bwd", "begin");
    lower_layer_backward_before(context, kind, d_o);
    lower_pass_end(context);
    calls->i_keys = segment(context, name, "bwd", "keys");
    fr_ref kept = lower_saved_at(k->qkv);
    kept.offset_bytes += query_bytes(context);
    lower_copy(context, kept, out, keys);
    fr_instr *instr = lower_emit(context, FR_OP_ZERO);
    instr->dim[0] = (int64_t)keys;
    instr->ref[0] = lower_ref(FR_SPACE_PIECE_OUT, keys);
    calls->i_own = segment(context, name, "bwd", "own");
    lower_ring_core_backward(context, kind, d_o, dqkv, true);
    calls->i_other = segment(context, name, "bwd", "other");
    lower_ring_core_backward(context, kind, d_o, dqkv, false);
    calls->i_shift =
        lower_segment_begin(context, FR_LANE_TP, "%s_bwd_shift", name);
    shift(context, 2 * keys, in, out);
    calls->i_home =
        lower_segment_begin(context, FR_LANE_TP, "%s_bwd_home", name);
    shift(context, keys, lower_ref(FR_SPACE_PIECE_IN, keys),
          lower_ref(FR_SPACE_CARRY, query_bytes(context)));
    if (is_cut)
        lower_pass_begin(context, &kind->backward_end, name, "bwd_end",
                         carry_bytes(context));
    else
        calls->i_end = segment(context, name, "bwd", "end");
    lower_layer_backward_after(context, kind, dqkv);
    lower_pass_end(context);
    lower_segments_mark(context, first, FR_SEGMENT_BACKWARD);
}

void lower_ring_segments(lower_context *context, lower_kind *kind,
                         const char *name)
{
    forward_segments(context, kind, &kind->calls.ring_fwd, name, "fwd");
    if (context->plan->recompute == FR_RECOMPUTE_FULL)
        forward_segments(context, kind, &kind->calls.ring_remake, name,
                         "recompute");
    backward_segments(context, kind, name);
}

/* ---- calls ------------------------------------------------------------------
 */

static uint32_t add_piece(lower_class *lc, uint64_t n_bytes)
{
    return fr_builder_add_block(lc->builder, FR_MEMORY_BUFFERS, false, n_bytes);
}

/* Sends `from` on; what arrives. */
static uint32_t send_piece(lower_class *lc, const lower_layer_at *at,
                           uint32_t i_shift, uint32_t from, uint64_t n_bytes)
{
    uint32_t to = add_piece(lc, n_bytes);
    lower_add_call(lc, i_shift, at->layer, at->task->micro_batch,
                   at->task->chunk);
    fr_builder_bind(lc->builder, FR_SPACE_PIECE_IN, from, 'r');
    fr_builder_bind(lc->builder, FR_SPACE_PIECE_OUT, to, 'w');
    return to;
}

void lower_ring_forward(lower_class *lc, const lower_layer_at *at,
                        const lower_ring_calls *calls, uint32_t saved,
                        uint32_t out)
{
    const lower_context *context = lc->context;
    const uint64_t n_bytes = lower_key_bytes(context);
    uint32_t piece = add_piece(lc, n_bytes);
    lower_add_layer_call(lc, at, calls->i_begin);
    fr_builder_bind(lc->builder, FR_SPACE_IN, at->input, 'r');
    fr_builder_bind(lc->builder, FR_SPACE_SAVED, saved, 'w');
    fr_builder_bind(lc->builder, FR_SPACE_PIECE_OUT, piece, 'w');
    for (int32_t step = 0; step < context->plan->cp; step++) {
        uint32_t next = piece;
        if (step + 1 < context->plan->cp)
            next = send_piece(lc, at, calls->i_shift, piece, n_bytes);
        lower_add_layer_call(lc, at, step == 0 ? calls->i_own : calls->i_other);
        fr_builder_bind(lc->builder, FR_SPACE_SAVED, saved, 'm');
        fr_builder_bind(lc->builder, FR_SPACE_PIECE_IN, piece, 'r');
        piece = next;
    }
    lower_add_layer_call(lc, at, calls->i_end);
    fr_builder_bind(lc->builder, FR_SPACE_IN, at->input, 'r');
    fr_builder_bind(lc->builder, FR_SPACE_SAVED, saved, 'm');
    fr_builder_bind(lc->builder, FR_SPACE_OUT, out, 'w');
}

static uint64_t largest(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t most = a > b ? a : b;
    return most > c ? most : c;
}

/* A call of backward: all that it may touch but pieces. */
static void add_backward_call(lower_class *lc, const lower_layer_at *at,
                              uint32_t i_segment, uint32_t saved,
                              uint32_t gradient)
{
    lower_add_layer_call(lc, at, i_segment);
    lower_bind_layer_grads(lc, at);
    fr_builder_bind(lc->builder, FR_SPACE_IN, gradient, 'm');
    fr_builder_bind(lc->builder, FR_SPACE_INPUT, at->input, 'r');
    fr_builder_bind(lc->builder, FR_SPACE_SAVED, saved, 'r');
}

void lower_ring_backward(lower_class *lc, const lower_layer_at *at,
                         uint32_t saved, uint32_t gradient)
{
    const lower_context *context = lc->context;
    const lower_layer_calls all = lower_calls_of(context, at->layer);
    const lower_ring_calls *calls = &all.ring_bwd;
    const uint64_t n_bytes = 2 * lower_key_bytes(context);
    const lower_kind *kind = lower_kind_of(context, at->layer);
    bool is_cut = kind->backward.n_steps > 0;
    uint32_t piece = add_piece(lc, n_bytes);
    uint32_t carry =
        add_piece(lc, largest(carry_bytes(context), kind->backward.carry_bytes,
                              kind->backward_end.carry_bytes));
    if (is_cut) {
        lower_pass_calls(
            lc, at, &kind->backward,
            (lower_pass_blocks){saved, gradient, FR_BLOCK_NONE, carry, false});
    } else {
        add_backward_call(lc, at, calls->i_begin, saved, gradient);
        fr_builder_bind(lc->builder, FR_SPACE_CARRY, carry, 'w');
    }
    lower_add_layer_call(lc, at, calls->i_keys);
    fr_builder_bind(lc->builder, FR_SPACE_SAVED, saved, 'r');
    fr_builder_bind(lc->builder, FR_SPACE_PIECE_OUT, piece, 'w');
    for (int32_t step = 0; step < context->plan->cp; step++) {
        uint32_t next = piece;
        if (step + 1 < context->plan->cp)
            next = send_piece(lc, at, calls->i_shift, piece, n_bytes);
        lower_add_layer_call(lc, at, step == 0 ? calls->i_own : calls->i_other);
        fr_builder_bind(lc->builder, FR_SPACE_SAVED, saved, 'r');
        fr_builder_bind(lc->builder, FR_SPACE_CARRY, carry, 'm');
        fr_builder_bind(lc->builder, FR_SPACE_PIECE_IN, piece, 'r');
        piece = next;
    }
    lower_add_call(lc, calls->i_home, at->layer, at->task->micro_batch,
                   at->task->chunk);
    fr_builder_bind(lc->builder, FR_SPACE_PIECE_IN, piece, 'r');
    fr_builder_bind(lc->builder, FR_SPACE_CARRY, carry, 'm');
    if (is_cut) {
        lower_pass_calls(
            lc, at, &kind->backward_end,
            (lower_pass_blocks){saved, gradient, FR_BLOCK_NONE, carry, false});
        return;
    }
    add_backward_call(lc, at, calls->i_end, saved, gradient);
    fr_builder_bind(lc->builder, FR_SPACE_CARRY, carry, 'm');
}
