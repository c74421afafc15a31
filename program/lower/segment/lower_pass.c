/*
 * lower_pass.c: a layer's pass in several calls, so that tensor parallel
 * collectives run beside products.
 *
 * Frameworks hide two of a column-parallel product's three collectives in
 * backward (Megatron-LM's "async communication" of its linear layers): while
 * the gradient of the input is computed the input's rows are gathered, while
 * that of the weight is computed the gradient of the input is summed.
 *
 * The code that emits the pass cuts it where a collective stands.  From there
 * on scratch lies in CARRY, one block for all calls of the pass; what goes
 * between lanes has a block of its own, a piece, which the call that makes it
 * sees as PIECE_OUT and the others as PIECE_IN.
 *
 * With is_ep_overlap a pass is also cut where tokens travel to their experts
 * and back; it has nothing to do meanwhile, so these stay in CARRY.
 */
#include "program/lower/framework/lower_overhead.h"
#include "program/lower/segment/lower_block.h"

#include <stdio.h>

static void add_call(lower_context *context, fr_lane lane, uint8_t in,
                     uint8_t out, bool is_added)
{
    lower_pass *pass = context->pass;
    if (pass->n_calls == LOWER_PASS_CALLS) {
        context->is_out_of_memory = true; /* more than any layer has */
        return;
    }
    uint64_t used = context->temp_used; /* scratch lives on */
    lower_pass_call call = {
        .lane = lane, .in = in, .out = out, .is_added = is_added};
    call.i_segment = lower_segment_begin(context, lane, "%s_%u", pass->name,
                                         (unsigned)pass->n_calls);
    context->temp_used = used;
    pass->calls[pass->n_calls++] = call;
}

void lower_pass_begin(lower_context *context, lower_pass *pass,
                      const char *name, const char *direction,
                      uint64_t first_bytes)
{
    context->pass = pass;
    context->temp_used = first_bytes;
    snprintf(pass->name, sizeof pass->name, "%s_%s", name, direction);
    add_call(context, FR_LANE_COMPUTE, LOWER_NO_PIECE, LOWER_NO_PIECE, false);
}

void lower_pass_end(lower_context *context)
{
    context->pass = NULL;
    context->temp_used = 0;
}

void lower_pass_compute(lower_context *context, uint8_t in, uint8_t out)
{
    add_call(context, FR_LANE_COMPUTE, in, out, false);
}

static void overlap(lower_context *context, uint8_t in, uint8_t out)
{
    add_call(context, FR_LANE_TP, in, out, false);
}

static uint8_t add_piece(lower_context *context, uint64_t n_bytes)
{
    lower_pass *pass = context->pass;
    if (pass->n_pieces == LOWER_PIECES) {
        context->is_out_of_memory = true;
        return 0;
    }
    pass->piece_bytes[pass->n_pieces] = n_bytes;
    return pass->n_pieces++;
}

/* Notes a space that a call on another lane touches, beyond its pieces. */
static void note_space(lower_context *context, fr_space space)
{
    lower_pass_call *call = &context->pass->calls[context->pass->n_calls - 1];
    call->has_saved = call->has_saved || space == FR_SPACE_SAVED;
    call->has_carry = call->has_carry || space == FR_SPACE_CARRY;
    call->has_input = call->has_input || space == FR_SPACE_INPUT;
}

/* In a pass that waits for its own exchange: what comes next on the rank's own
 * lane is of another micro-batch (lower_stage.c). */
bool lower_is_exchange_overlapped(const lower_context *context)
{
    return context->pass != NULL && context->plan->is_ep_overlap;
}

void lower_pass_exchange(lower_context *context, fr_ref src, fr_ref dst)
{
    add_call(context, FR_LANE_EP, LOWER_NO_PIECE, LOWER_NO_PIECE, false);
    note_space(context, (fr_space)src.space);
    note_space(context, (fr_space)dst.space);
}

/* Gathers x of all ranks while what follows runs; the piece that has it. */
static uint8_t gather_overlapped(lower_context *context, fr_ref x, int64_t cols)
{
    const lower_shape *s = &context->shape;
    fr_dtype dtype = lower_product_dtype(context);
    uint64_t n = (uint64_t)(s->rows * cols);
    uint8_t piece = add_piece(context, n * fr_dtype_bytes(dtype));
    overlap(context, LOWER_NO_PIECE, piece);
    note_space(context, (fr_space)x.space);
    lower_collective(context, FR_OP_ALL_GATHER, FR_AXIS_TP, dtype, n, x,
                     lower_ref(FR_SPACE_PIECE_OUT, 0));
    return piece;
}

/* Sums a piece over TP while what follows runs; the piece with the result. */
static uint8_t sum_overlapped(lower_context *context, uint8_t partial)
{
    uint8_t piece = add_piece(context, context->shape.stream_bytes);
    overlap(context, partial, piece);
    lower_sum_rows(context, lower_ref(FR_SPACE_PIECE_IN, 0),
                   lower_ref(FR_SPACE_PIECE_OUT, 0));
    return piece;
}

static fr_ref column_backward_overlapped(lower_context *context,
                                         const lower_kind *kind,
                                         const lower_matrix *matrix, fr_ref dy,
                                         fr_ref x)
{
    const lower_shape *s = &context->shape;
    bool is_gathered = context->plan->is_sequence_parallel;
    lower_gradient d =
        lower_gradient_operand(context, dy, false, s->rows, matrix->n);
    uint8_t whole =
        is_gathered ? gather_overlapped(context, x, matrix->k) : LOWER_NO_PIECE;
    uint8_t partial =
        add_piece(context, lower_bytes(context, s->rows, s->hidden));
    lower_pass_compute(context, LOWER_NO_PIECE, partial);
    lower_product_dgrad(context, kind, matrix, d.rows,
                        lower_ref(FR_SPACE_PIECE_OUT, 0));
    uint8_t sum = sum_overlapped(context, partial);
    lower_pass_compute(context, whole, LOWER_NO_PIECE);
    lower_product_wgrad(context, matrix, d.columns,
                        is_gathered ? lower_ref(FR_SPACE_PIECE_IN, 0) : x);
    lower_pass_compute(context, sum, LOWER_NO_PIECE);
    return lower_ref(FR_SPACE_PIECE_IN, 0);
}

/* ---- products in pieces ---- */

/*
 * With is_tp_overlap a product takes the rows of one rank at a time while
 * those of the next are on their way, and its sums go round the same way
 * (Transformer Engine's userbuffers, PyTorch's async TP; Wang et al., ASPLOS
 * 2023, doi 10.1145/3567955.3567959).  What goes round comes from the rank
 * before, so in turn i the rows of a gather are those of the rank i places
 * before, and the sums of a scatter those that the rank i + 1 places before
 * will have in the end.
 */
static bool is_in_pieces(const lower_context *context)
{
    return context->pass != NULL && context->plan->is_tp_overlap &&
           context->plan->is_sequence_parallel;
}

/* The operand of the last instruction is the part of its rank's turn of a
 * matrix of tp parts of n_bytes. */
static void place_part(lower_context *context, int i_ref, int64_t turn,
                       uint64_t n_bytes)
{
    fr_instr *instr = &context->instrs.items[context->instrs.n - 1];
    const int32_t tp = context->plan->tp;
    if (context->is_out_of_memory)
        return;
    instr->shard_axis = FR_AXIS_TP;
    instr->shard_bytes = n_bytes;
    instr->ref[i_ref].is_sharded = 1;
    instr->ref[i_ref].turn = (uint8_t)(turn % tp);
    instr->ref[i_ref].n_turns = (uint8_t)tp;
}

static void shift(lower_context *context, uint64_t n, fr_dtype dtype,
                  uint8_t from, uint8_t to)
{
    overlap(context, from, to);
    lower_collective(context, FR_OP_SHIFT, FR_AXIS_TP, dtype, n,
                     lower_ref(FR_SPACE_PIECE_IN, 0),
                     lower_ref(FR_SPACE_PIECE_OUT, 0));
}

/* Piece i of what goes round, while i + 1 is on its way. */
static uint8_t next_piece(lower_context *context, int64_t i, uint8_t now,
                          uint64_t n, fr_dtype dtype)
{
    if (i + 1 == context->plan->tp)
        return now;
    uint8_t next = add_piece(context, n * fr_dtype_bytes(dtype));
    shift(context, n, dtype, now, next);
    return next;
}

/* Makes the own rows the first piece that goes round. */
static uint8_t first_piece(lower_context *context, fr_ref shard,
                           uint64_t n_bytes)
{
    uint8_t piece = add_piece(context, n_bytes);
    lower_pass_compute(context, LOWER_NO_PIECE, piece);
    lower_copy(context, shard, lower_ref(FR_SPACE_PIECE_OUT, 0), n_bytes);
    return piece;
}

/* The columns of `part` in the rows of a turn of y, whose block of as many
 * columns begins there. */
static void place_product(lower_context *context, const lower_kind *kind,
                          const lower_matrix *part, int64_t turn, fr_ref y)
{
    lower_product_fwd(context, kind, part, lower_ref(FR_SPACE_PIECE_IN, 0), y);
    place_part(context, FR_LINEAR_FWD_Y, turn,
               lower_bytes(context, part->m, part->n));
}

/* Emits the product of one turn.  Parts that are separate in y (queries, then
 * keys and values) take a product each with our kernels, because the rows of a
 * turn are then not contiguous. */
static void product_of_turn(lower_context *context, const lower_kind *kind,
                            const lower_matrix *matrix, int64_t turn, fr_ref y)
{
    const int64_t first = matrix->n_first;
    lower_matrix part = *matrix;
    part.m = matrix->m / context->plan->tp;
    if (first > 0 && context->target.kernels == LOWER_KERNELS_RUN) {
        part.n_first = 0;
        part.n = first;
        place_product(context, kind, &part, turn, y);
        part.n = matrix->n - first;
        part.w += (uint64_t)(first * part.k);
        part.b += part.b == LOWER_ABSENT ? 0 : (uint64_t)first;
        y = lower_moved(y, lower_bytes(context, matrix->m, first));
    }
    place_product(context, kind, &part, turn, y);
}

static void gather_product(lower_context *context, const lower_kind *kind,
                           const lower_matrix *matrix, fr_ref shard, fr_ref y)
{
    const int64_t tp = context->plan->tp;
    const fr_dtype dtype = lower_product_dtype(context);
    const uint64_t n = (uint64_t)(matrix->m / tp * matrix->k);
    uint8_t now = first_piece(context, shard, n * fr_dtype_bytes(dtype));
    for (int64_t i = 0; i < tp; i++) {
        uint8_t next = next_piece(context, i, now, n, dtype);
        lower_pass_compute(context, now, LOWER_NO_PIECE);
        product_of_turn(context, kind, matrix, i, y);
        now = next;
    }
    lower_pass_compute(context, LOWER_NO_PIECE, LOWER_NO_PIECE);
}

static void product_scatter(lower_context *context, const lower_kind *kind,
                            const lower_matrix *matrix, fr_ref x, fr_ref target)
{
    const int64_t tp = context->plan->tp;
    const fr_dtype dtype = fr_plan_storage_dtype(context->plan);
    const uint64_t width = fr_dtype_bytes(lower_product_dtype(context));
    lower_matrix part = *matrix;
    part.m = matrix->m / tp;
    const int64_t n = part.m * part.n;
    const uint64_t n_bytes = lower_bytes(context, part.m, part.n);
    uint8_t arrived = LOWER_NO_PIECE;
    for (int64_t i = 0; i < tp; i++) {
        bool is_last = i + 1 == tp;
        uint8_t made = is_last ? LOWER_NO_PIECE : add_piece(context, n_bytes);
        fr_ref y = is_last ? target : lower_ref(FR_SPACE_PIECE_OUT, 0);
        lower_pass_compute(context, LOWER_NO_PIECE, made);
        lower_product_fwd(context, kind, &part, x, y);
        place_part(context, FR_LINEAR_FWD_X, i + 1,
                   (uint64_t)(part.m * part.k) * width);
        if (i > 0) {
            add_call(context, FR_LANE_COMPUTE, arrived, made, true);
            lower_add(context, lower_ref(FR_SPACE_PIECE_IN, 0), y, n);
        }
        if (is_last)
            break;
        arrived = add_piece(context, n_bytes);
        shift(context, (uint64_t)n, dtype, made, arrived);
    }
    lower_pass_compute(context, LOWER_NO_PIECE, LOWER_NO_PIECE);
}

/* The weight's gradient reads all rows, which are put together on the way. */
static lower_gradient gather_dgrad(lower_context *context,
                                   const lower_kind *kind,
                                   const lower_matrix *matrix, fr_ref dy,
                                   fr_ref dx)
{
    const int64_t tp = context->plan->tp;
    const fr_dtype dtype = lower_product_dtype(context);
    lower_matrix part = *matrix;
    part.m = matrix->m / tp;
    const uint64_t n = (uint64_t)(part.m * part.n);
    const uint64_t n_bytes = n * fr_dtype_bytes(dtype);
    fr_ref whole = lower_temp(context, n_bytes * (uint64_t)tp);
    fr_ref shard = lower_gradient_shard(context, dy, part.m, part.n);
    uint8_t now = first_piece(context, shard, n_bytes);
    for (int64_t i = 0; i < tp; i++) {
        uint8_t next = next_piece(context, i, now, n, dtype);
        lower_pass_compute(context, now, LOWER_NO_PIECE);
        lower_product_dgrad(context, kind, &part,
                            lower_ref(FR_SPACE_PIECE_IN, 0), dx);
        place_part(context, FR_LINEAR_DGRAD_DX, i,
                   lower_bytes(context, part.m, part.k));
        lower_copy(context, lower_ref(FR_SPACE_PIECE_IN, 0), whole, n_bytes);
        place_part(context, FR_COPY_DST, i, n_bytes);
        now = next;
    }
    lower_pass_compute(context, LOWER_NO_PIECE, LOWER_NO_PIECE);
    return lower_gradient_columns(context, whole, matrix->m, matrix->n);
}

/* ---- products over tensor parallel ranks ---- */

void lower_column_forward(lower_context *context, const lower_kind *kind,
                          const lower_matrix *matrix, fr_ref x, lower_kept kept,
                          fr_ref y)
{
    const int64_t rows = context->shape.stream_rows;
    uint64_t mark = lower_temp_mark(context);
    fr_ref shard = lower_operand(context, x, kept, rows, matrix->k);
    if (is_in_pieces(context)) {
        gather_product(context, kind, matrix, shard, y);
    } else {
        fr_ref whole = lower_gather_rows(context, shard, matrix->k,
                                         lower_product_dtype(context));
        lower_product_fwd(context, kind, matrix, whole, y);
    }
    lower_temp_reset(context, mark);
}

void lower_row_forward(lower_context *context, const lower_kind *kind,
                       const lower_matrix *matrix, fr_ref x, fr_ref target)
{
    if (is_in_pieces(context)) {
        product_scatter(context, kind, matrix, x, target);
        return;
    }
    fr_ref partial = lower_partial_rows(context, target);
    lower_product_fwd(context, kind, matrix, x, partial);
    lower_sum_rows(context, partial, target);
}

void lower_row_backward(lower_context *context, const lower_kind *kind,
                        const lower_matrix *matrix, fr_ref dy, fr_ref x,
                        fr_ref dx)
{
    lower_gradient d;
    if (is_in_pieces(context)) {
        d = gather_dgrad(context, kind, matrix, dy, dx);
    } else {
        d = lower_gradient_operand(context, dy, true, matrix->m, matrix->n);
        lower_product_dgrad(context, kind, matrix, d.rows, dx);
    }
    lower_product_wgrad(context, matrix, d.columns, x);
}

/* x of all ranks: gathered once more, but where autograd still has what full
 * recompute has just gathered (PyTorch's DTensor; Megatron keeps shards). */
static fr_ref gathered_input(lower_context *context, fr_ref x, int64_t cols)
{
    const fr_plan *plan = context->plan;
    const fr_dtype dtype = lower_product_dtype(context);
    if ((context->target.kernels & LOWER_KERNELS_PYTORCH) == 0 ||
        plan->recompute != FR_RECOMPUTE_FULL || !plan->is_sequence_parallel)
        return lower_gather_rows(context, x, cols, dtype);
    uint64_t n_bytes = (uint64_t)(context->shape.rows * cols) *
                       (uint64_t)fr_dtype_bytes(dtype);
    fr_ref whole = lower_temp(context, n_bytes);
    lower_overhead_alias(context, whole, whole, n_bytes);
    return whole;
}

fr_ref lower_column_backward(lower_context *context, const lower_kind *kind,
                             const lower_matrix *matrix, fr_ref dy, fr_ref x)
{
    const lower_shape *s = &context->shape;
    if (context->pass != NULL && lower_is_pass_cut(context))
        return column_backward_overlapped(context, kind, matrix, dy, x);
    fr_ref dx = lower_temp(context, s->stream_bytes);
    uint64_t after_dx = lower_temp_mark(context);
    lower_gradient d =
        lower_gradient_operand(context, dy, false, s->rows, matrix->n);
    uint64_t after_d = lower_temp_mark(context);
    fr_ref partial = lower_partial_rows(context, dx);
    lower_product_dgrad(context, kind, matrix, d.rows, partial);
    lower_sum_rows(context, partial, dx);
    lower_temp_reset(context, after_d);
    lower_product_wgrad(context, matrix, d.columns,
                        gathered_input(context, x, matrix->k));
    lower_temp_reset(context, after_dx);
    return dx;
}
