/*
 * lower_pass_calls.c: the calls of a layer's pass that is cut into several
 * segments, and what each of them reads and writes.
 */
#include "program/lower/step/lower_step.h"

/* The block of the layer's weights in the dtype of its products. */
uint32_t *lower_low_block(const lower_rank *rank, const lower_layer_at *at)
{
    return &rank->slots[rank->chunks[at->task->chunk].first_slot +
                        (uint32_t)at->i]
                .low;
}

void lower_bind_layer(lower_rank *rank, fr_space space,
                      const lower_layer_at *at, char access)
{
    const lower_unit *unit = lower_layer_unit(rank, at->task, at->i);
    const lower_unit *experts = lower_expert_unit(rank, unit);
    bool is_grad = space == FR_SPACE_GRAD;
    if (rank->context->sharding.is_by_unit) {
        lower_bind_set(rank, space, unit->i_set, access);
        return;
    }
    fr_builder_bind(rank->builder, space, is_grad ? unit->grad : unit->weight,
                    access);
    if (experts != NULL)
        fr_builder_use(rank->builder, is_grad ? experts->grad : experts->weight,
                       access);
}

void lower_add_layer_call(lower_rank *rank, const lower_layer_at *at,
                          uint32_t i_segment)
{
    lower_add_call(rank, i_segment, at->layer, at->task->micro_batch,
                   at->task->chunk);
    lower_bind_layer(rank, FR_SPACE_WEIGHT, at, 'r');
    fr_builder_bind(rank->builder, FR_SPACE_LOW, *lower_low_block(rank, at),
                    'r');
}

static void bind_compute(lower_rank *rank, const lower_layer_at *at,
                         const lower_pass_call *call,
                         const lower_pass_blocks *blocks, bool is_first)
{
    bool is_backward = blocks->gradient != FR_BLOCK_NONE;
    lower_add_layer_call(rank, at, call->i_segment);
    if (is_backward)
        lower_bind_layer(rank, FR_SPACE_GRAD, at, 'm');
    fr_builder_bind(rank->builder, FR_SPACE_IN,
                    is_backward ? blocks->gradient : at->input,
                    is_backward ? 'm' : 'r');
    if (is_backward)
        fr_builder_bind(rank->builder, FR_SPACE_INPUT, at->input, 'r');
    fr_builder_bind(rank->builder, FR_SPACE_SAVED, blocks->saved,
                    is_backward ? 'r'
                    : is_first  ? 'w'
                                : 'm');
    fr_builder_bind(rank->builder, FR_SPACE_OUT, blocks->out,
                    is_first ? 'w' : 'm');
    fr_builder_bind(rank->builder, FR_SPACE_CARRY, blocks->carry,
                    is_first && blocks->is_carry_new ? 'w' : 'm');
}

static void bind_overlapped(lower_rank *rank, const lower_layer_at *at,
                            const lower_pass_call *call,
                            const lower_pass_blocks *blocks)
{
    const char access = call->lane == FR_LANE_EP ? 'm' : 'r';
    lower_add_call(rank, call->i_segment, at->layer, at->task->micro_batch,
                   at->task->chunk);
    if (call->has_saved)
        fr_builder_bind(rank->builder, FR_SPACE_SAVED, blocks->saved, access);
    if (call->has_input)
        fr_builder_bind(rank->builder, FR_SPACE_INPUT, at->input, 'r');
    if (call->has_carry)
        fr_builder_bind(rank->builder, FR_SPACE_CARRY, blocks->carry, access);
}

void lower_pass_calls(lower_rank *rank, const lower_layer_at *at,
                      const lower_pass *pass, lower_pass_blocks blocks)
{
    uint32_t pieces[LOWER_PIECES];
    for (uint8_t i = 0; i < pass->n_pieces; i++)
        pieces[i] = fr_builder_add_block(rank->builder, FR_MEMORY_BUFFERS,
                                         false, pass->piece_bytes[i]);
    blocks.is_carry_new = blocks.carry == FR_BLOCK_NONE;
    if (blocks.is_carry_new)
        blocks.carry = fr_builder_add_block(rank->builder, FR_MEMORY_BUFFERS,
                                            false, pass->carry_bytes);
    for (uint16_t i = 0; i < pass->n_calls; i++) {
        const lower_pass_call *call = &pass->calls[i];
        if (call->lane == FR_LANE_COMPUTE)
            bind_compute(rank, at, call, &blocks, i == 0);
        else
            bind_overlapped(rank, at, call, &blocks);
        if (call->in != LOWER_NO_PIECE)
            fr_builder_bind(rank->builder, FR_SPACE_PIECE_IN, pieces[call->in],
                            'r');
        if (call->out != LOWER_NO_PIECE)
            fr_builder_bind(rank->builder, FR_SPACE_PIECE_OUT,
                            pieces[call->out], call->is_added ? 'm' : 'w');
        /* A piece that is still in transfer keeps its memory during this
         * call. */
        if (i > 0 && call->lane == FR_LANE_COMPUTE &&
            pass->calls[i - 1].lane != FR_LANE_COMPUTE &&
            pass->calls[i - 1].in != LOWER_NO_PIECE)
            fr_builder_keep(rank->builder, pieces[pass->calls[i - 1].in]);
    }
}

/* ---- a ring of keys and values ---- */

static uint32_t add_piece(lower_rank *rank, uint64_t n_bytes)
{
    return fr_builder_add_block(rank->builder, FR_MEMORY_BUFFERS, false,
                                n_bytes);
}

/* Sends `from` on and returns the piece that arrives. */
static uint32_t send_piece(lower_rank *rank, const lower_layer_at *at,
                           uint32_t i_shift, uint32_t from, uint64_t n_bytes)
{
    uint32_t to = add_piece(rank, n_bytes);
    lower_add_call(rank, i_shift, at->layer, at->task->micro_batch,
                   at->task->chunk);
    fr_builder_bind(rank->builder, FR_SPACE_PIECE_IN, from, 'r');
    fr_builder_bind(rank->builder, FR_SPACE_PIECE_OUT, to, 'w');
    return to;
}

/* The core of one step, with the keys in `piece`. */
static void add_core(lower_rank *rank, const lower_layer_at *at,
                     const lower_ring_segments *ring, int32_t step,
                     uint32_t saved, char saved_access, uint32_t piece)
{
    lower_add_layer_call(
        rank, at, step == 0 ? ring->i_own : ring->i_other + (uint32_t)step - 1);
    fr_builder_bind(rank->builder, FR_SPACE_SAVED, saved, saved_access);
    fr_builder_bind(rank->builder, FR_SPACE_PIECE_IN, piece, 'r');
}

/* Calls the core with the own keys, then with those of each other rank
 * while the next are on their way. */
static void ring_steps(lower_rank *rank, const lower_layer_at *at,
                       const lower_ring_segments *ring, uint32_t saved,
                       uint32_t piece)
{
    const int32_t cp = rank->context->plan->cp;
    for (int32_t step = 0; step < cp; step++) {
        uint32_t next = piece;
        if (step + 1 < cp)
            next =
                send_piece(rank, at, ring->i_shift, piece, ring->piece_bytes);
        add_core(rank, at, ring, step, saved, 'm', piece);
        piece = next;
    }
}

/* The same in backward, where gradients of keys arrive during the step that
 * adds to them; returns the piece that came last. */
static uint32_t ring_backward_steps(lower_rank *rank, const lower_layer_at *at,
                                    const lower_ring_segments *ring,
                                    uint32_t saved, uint32_t carry,
                                    uint32_t piece)
{
    const int32_t cp = rank->context->plan->cp;
    for (int32_t step = 0; step < cp; step++) {
        uint32_t i_shift = step == 0        ? ring->i_shift
                           : step + 1 == cp ? ring->i_shift_last
                                            : ring->i_shift_both;
        uint32_t next = send_piece(rank, at, i_shift, piece, ring->piece_bytes);
        add_core(rank, at, ring, step, saved, 'r', piece);
        fr_builder_bind(rank->builder, FR_SPACE_CARRY, carry, 'm');
        lower_add_call(rank, step == 0 ? ring->i_own_gradient : ring->i_add,
                       at->layer, at->task->micro_batch, at->task->chunk);
        fr_builder_bind(rank->builder, FR_SPACE_CARRY, carry, 'r');
        fr_builder_bind(rank->builder, FR_SPACE_PIECE_OUT, next, 'm');
        piece = next;
    }
    return piece;
}

void lower_ring_forward_calls(lower_rank *rank, const lower_layer_at *at,
                              const lower_ring_segments *ring, uint32_t saved,
                              uint32_t out)
{
    uint32_t piece = add_piece(rank, ring->piece_bytes);
    lower_add_layer_call(rank, at, ring->i_begin);
    fr_builder_bind(rank->builder, FR_SPACE_IN, at->input, 'r');
    fr_builder_bind(rank->builder, FR_SPACE_SAVED, saved, 'w');
    fr_builder_bind(rank->builder, FR_SPACE_PIECE_OUT, piece, 'w');
    ring_steps(rank, at, ring, saved, piece);
    lower_add_layer_call(rank, at, ring->i_end);
    fr_builder_bind(rank->builder, FR_SPACE_IN, at->input, 'r');
    fr_builder_bind(rank->builder, FR_SPACE_SAVED, saved, 'm');
    fr_builder_bind(rank->builder, FR_SPACE_OUT, out, 'w');
}

/* Adds a call of backward with all that it may touch but pieces. */
static void add_backward_call(lower_rank *rank, const lower_layer_at *at,
                              uint32_t i_segment, uint32_t saved,
                              uint32_t gradient)
{
    lower_add_layer_call(rank, at, i_segment);
    lower_bind_layer(rank, FR_SPACE_GRAD, at, 'm');
    fr_builder_bind(rank->builder, FR_SPACE_IN, gradient, 'm');
    fr_builder_bind(rank->builder, FR_SPACE_INPUT, at->input, 'r');
    fr_builder_bind(rank->builder, FR_SPACE_SAVED, saved, 'r');
}

void lower_ring_backward_calls(lower_rank *rank, const lower_layer_at *at,
                               uint32_t saved, uint32_t gradient)
{
    const lower_kind *kind = lower_kind_of(rank->context, at->layer);
    const lower_ring_segments *ring = &kind->segments.ring_bwd;
    bool is_cut = kind->backward.n_calls > 0;
    uint32_t piece = add_piece(rank, ring->piece_bytes);
    uint32_t carry = add_piece(rank, ring->carry_bytes);
    if (is_cut) {
        lower_pass_calls(
            rank, at, &kind->backward,
            (lower_pass_blocks){saved, gradient, FR_BLOCK_NONE, carry, false});
    } else {
        add_backward_call(rank, at, ring->i_begin, saved, gradient);
        fr_builder_bind(rank->builder, FR_SPACE_CARRY, carry, 'w');
    }
    lower_add_layer_call(rank, at, ring->i_keys);
    fr_builder_bind(rank->builder, FR_SPACE_SAVED, saved, 'r');
    fr_builder_bind(rank->builder, FR_SPACE_PIECE_OUT, piece, 'w');
    piece = ring_backward_steps(rank, at, ring, saved, carry, piece);
    lower_add_call(rank, ring->i_home, at->layer, at->task->micro_batch,
                   at->task->chunk);
    fr_builder_bind(rank->builder, FR_SPACE_PIECE_IN, piece, 'r');
    fr_builder_bind(rank->builder, FR_SPACE_CARRY, carry, 'm');
    if (is_cut) {
        lower_pass_calls(
            rank, at, &kind->backward_end,
            (lower_pass_blocks){saved, gradient, FR_BLOCK_NONE, carry, false});
        return;
    }
    add_backward_call(rank, at, ring->i_end, saved, gradient);
    fr_builder_bind(rank->builder, FR_SPACE_CARRY, carry, 'm');
}
