/* tensor_slices.c: see tensor_slices.h. */
#include "runtime/checkpoint/tensor_slices.h"

#include "plan/codec/compressor.h"
#include "plan/decide/grid.h"
#include "runtime/checkpoint/weight_parts.h"
#include "runtime/rank/rank_context.h"

#include <string.h>

uint64_t fr_tensor_slice_bytes(const fr_tensor_slice *slice)
{
    return (uint64_t)slice->n_rows * (uint64_t)slice->n_cols *
           slice->element_bytes;
}

/* ---- ranges of the flat list -------------------------------------------- */

/* Elements [first, first + n) of the flat list, as they lie in the slab. */
typedef struct flat_range {
    int64_t first, n;
    uint64_t weight_bytes, state_bytes; /* begin of the parameters and of the
                                           optimizer's state */
    uint64_t element_bytes;             /* of a parameter */
    uint32_t n_states;
} flat_range;

typedef fr_vec(flat_range) flat_ranges;

static uint64_t place_of(const fr_rank_context *context,
                         const fr_instr_walk *at, int i_ref)
{
    return fr_call_operand_bytes(context->rank_program, at->call, at->instr,
                                 context->coordinate, i_ref);
}

/* Lists the ranges that the rank updates: each step of the optimizer has a
 * separate range. */
static fr_status list_updates(const fr_program *program, int64_t rank,
                              flat_ranges *out, fr_err *err)
{
    fr_rank_context context;

    FR_TRY(fr_rank_context_init(program, rank, NULL, &context, err));
    fr_instr_walk at = {.program = program,
                        .rank_program = context.rank_program};
    while (fr_instr_walk_next(&at)) {
        const fr_instr *instr = at.instr;
        if (instr->op != FR_OP_OPT_STEP || instr->range.n == 0)
            continue;
        const uint64_t n = (uint64_t)instr->range.n;
        const bool has_state =
            instr->ref[FR_OPT_STEP_OPT].space != FR_SPACE_NONE;
        const flat_range range = {
            .first =
                fr_instr_range_first(instr, context.coordinate[instr->axis]),
            .n = instr->range.n,
            .weight_bytes = fr_updated_bytes(&context, at.call, instr),
            .state_bytes =
                has_state ? place_of(&context, &at, FR_OPT_STEP_OPT) : 0,
            .element_bytes = fr_instr_ref_bytes(instr, FR_OPT_STEP_W,
                                                context.n_group[instr->axis]) /
                             n,
            .n_states = (uint32_t)((uint64_t)instr->range.opt_bytes /
                                   (n * sizeof(float)))};
        FR_TRY_PUSH(out, range, err);
    }
    return FR_OK;
}

/* ---- cutting ranges into slices ------------------------------------------ */

/* A slice of a range before it is known where the range lies. */
typedef struct piece {
    fr_tensor_slice slice; /* its place is that of element `flat` */
    int64_t flat;          /* of the flat list */
    const flat_range *range;
    bool is_copy; /* of a tied matrix whose other holder counts */
} piece;

typedef fr_vec(piece) pieces;

typedef struct cutter {
    const fr_tensor *tensor;
    const fr_tensor_place *place;
    const flat_range *range;
    pieces *out;
} cutter;

static fr_status push_piece(const cutter *c, int64_t row, int64_t n_rows,
                            int64_t col, int64_t n_cols, fr_err *err)
{
    const fr_tensor *tensor = c->tensor;
    const piece p = {
        .slice = {.tensor = tensor->id,
                  .row = fr_tensor_global_row(tensor, row, c->place),
                  .col = fr_tensor_global_col(tensor, col, c->place),
                  .n_rows = n_rows,
                  .n_cols = n_cols},
        .flat = (int64_t)tensor->first + row * tensor->cols + col,
        .range = c->range,
        .is_copy = tensor->is_tied_copy};
    FR_TRY_PUSH(c->out, p, err);
    return FR_OK;
}

/* Columns [col, end) of one row, each run of which is one of the whole
 * tensor's. */
static fr_status cut_row(const cutter *c, int64_t row, int64_t col, int64_t end,
                         fr_err *err)
{
    while (col < end) {
        const int64_t first = fr_tensor_global_col(c->tensor, col, c->place);
        int64_t n = 1;
        if (first >= c->tensor->global_cols)
            return FR_OK; /* padding */
        while (col + n < end &&
               fr_tensor_global_col(c->tensor, col + n, c->place) ==
                   first + n &&
               first + n < c->tensor->global_cols)
            n++;
        FR_TRY(push_piece(c, row, 1, col, n, err));
        col += n;
    }
    return FR_OK;
}

/* Rows [row, end), whole ones. */
static fr_status cut_rows(const cutter *c, int64_t row, int64_t end,
                          fr_err *err)
{
    const fr_tensor *tensor = c->tensor;
    const int64_t cols = tensor->cols;
    const int64_t first_col = fr_tensor_global_col(tensor, 0, c->place);
    const int64_t last_col = fr_tensor_global_col(tensor, cols - 1, c->place);
    const bool is_run =
        last_col == first_col + cols - 1 && last_col < tensor->global_cols;

    while (row < end) {
        const int64_t first = fr_tensor_global_row(tensor, row, c->place);
        int64_t n = 1;
        if (first >= tensor->global_rows)
            return FR_OK; /* padding of the vocabulary */
        while (is_run && row + n < end && first + n < tensor->global_rows &&
               fr_tensor_global_row(tensor, row + n, c->place) == first + n)
            n++;
        FR_TRY(is_run ? push_piece(c, row, n, 0, cols, err)
                      : cut_row(c, row, 0, cols, err));
        row += n;
    }
    return FR_OK;
}

/* Elements [begin, end) of a tensor: the rest of a row, rows, the begin of a
 * row. */
static fr_status cut_tensor(const cutter *c, int64_t begin, int64_t end,
                            fr_err *err)
{
    const int64_t cols = c->tensor->cols;
    int64_t row = begin / cols, last = end / cols;

    if (row == last || begin % cols != 0) {
        int64_t stop = row == last ? end % cols : cols;
        if (fr_tensor_global_row(c->tensor, row, c->place) <
            c->tensor->global_rows)
            FR_TRY(cut_row(c, row, begin % cols, stop, err));
        if (row == last)
            return FR_OK;
        row++;
    }
    FR_TRY(cut_rows(c, row, last, err));
    if (end % cols != 0 && fr_tensor_global_row(c->tensor, last, c->place) <
                               c->tensor->global_rows)
        FR_TRY(cut_row(c, last, 0, end % cols, err));
    return FR_OK;
}

static fr_status cut_range(const fr_program *program, int64_t rank,
                           const flat_range *range, pieces *out, fr_err *err)
{
    const fr_rank_program *rank_program = fr_program_of_rank(program, rank);
    const fr_tensor_place place = fr_tensor_place_of(&program->plan, rank);

    for (uint32_t i = 0; i < rank_program->n_tensors; i++) {
        const fr_tensor *tensor = &rank_program->tensors[i];
        const cutter c = {tensor, &place, range, out};
        int64_t begin = range->first - (int64_t)tensor->first;
        int64_t end = begin + range->n;
        begin = begin > 0 ? begin : 0;
        end = end < (int64_t)tensor->n ? end : (int64_t)tensor->n;
        if (begin < end)
            FR_TRY(cut_tensor(&c, begin, end, err));
    }
    return FR_OK;
}

/* ---- the lists ---------------------------------------------------------- */

static fr_status push_slice(const piece *p, uint32_t what,
                            fr_tensor_slices *out, fr_err *err)
{
    const flat_range *range = p->range;
    const uint64_t i = (uint64_t)(p->flat - range->first);
    fr_tensor_slice slice = p->slice;

    slice.what = what;
    slice.element_bytes = what == 0 ? range->element_bytes : sizeof(float);
    slice.at_bytes =
        what == 0 ? range->weight_bytes + i * slice.element_bytes
                  : range->state_bytes +
                        ((what - 1) * (uint64_t)range->n + i) * sizeof(float);
    FR_TRY_PUSH(out, slice, err);
    return FR_OK;
}

/* The parameters of a rank, which may be more than it updates. */
static fr_status hold_weights(const fr_program *program, int64_t rank,
                              uint64_t element_bytes, fr_tensor_slices *out,
                              fr_err *err)
{
    fr_weight_parts parts = {0};
    pieces list = {0};
    fr_status status = fr_weight_parts_list(program, rank, &parts, err);

    for (size_t i = 0; status == FR_OK && i < parts.n; i++) {
        const flat_range range = {.first = parts.items[i].first,
                                  .n = parts.items[i].n,
                                  .weight_bytes = parts.items[i].offset_bytes,
                                  .element_bytes = element_bytes};
        list.n = 0;
        status = cut_range(program, rank, &range, &list, err);
        for (size_t k = 0; status == FR_OK && k < list.n; k++)
            status = push_slice(&list.items[k], 0, out, err);
    }
    fr_vec_release(&list);
    fr_vec_release(&parts);
    return status;
}

fr_status fr_tensor_slices_held(const fr_program *program, int64_t rank,
                                fr_tensor_slices *out, fr_err *err)
{
    flat_ranges updates = {0};
    pieces list = {0};
    fr_status status = list_updates(program, rank, &updates, err);

    if (status == FR_OK && updates.n > 0)
        status = hold_weights(program, rank, updates.items[0].element_bytes,
                              out, err);
    for (size_t i = 0; status == FR_OK && i < updates.n; i++) {
        const flat_range *range = &updates.items[i];
        list.n = 0;
        status = cut_range(program, rank, range, &list, err);
        for (size_t k = 0; status == FR_OK && k < list.n; k++)
            for (uint32_t s = 1; status == FR_OK && s <= range->n_states; s++)
                status = push_slice(&list.items[k], s, out, err);
    }
    fr_vec_release(&list);
    fr_vec_release(&updates);
    return status;
}

/* ---- who writes what several hold --------------------------------------- */

typedef struct holder {
    fr_tensor_slice slice;
    int64_t rank;
} holder;

typedef fr_vec(holder) holders;

static int compare_slices(const fr_tensor_slice *a, const fr_tensor_slice *b)
{
    const int64_t left[] = {a->tensor, a->row, a->col, a->n_rows, a->n_cols};
    const int64_t right[] = {b->tensor, b->row, b->col, b->n_rows, b->n_cols};

    for (size_t i = 0; i < FR_LENGTH(left); i++)
        if (left[i] != right[i])
            return left[i] < right[i] ? -1 : 1;
    return 0;
}

static int compare_holders(const void *a, const void *b)
{
    const holder *left = a, *right = b;
    const int order = compare_slices(&left->slice, &right->slice);

    return order != 0 ? order
                      : (left->rank > right->rank) - (left->rank < right->rank);
}

static fr_status list_pieces(const fr_program *program, int64_t rank,
                             flat_ranges *updates, pieces *out, fr_err *err)
{
    FR_TRY(list_updates(program, rank, updates, err));
    for (size_t i = 0; i < updates->n; i++)
        FR_TRY(cut_range(program, rank, &updates->items[i], out, err));
    return FR_OK;
}

static fr_status list_holders(const fr_program *program, holders *out,
                              fr_err *err)
{
    const int64_t world = fr_plan_world(&program->plan);
    fr_status status = FR_OK;

    for (int64_t rank = 0; status == FR_OK && rank < world; rank++) {
        flat_ranges updates = {0};
        pieces list = {0};
        status = list_pieces(program, rank, &updates, &list, err);
        for (size_t i = 0; status == FR_OK && i < list.n; i++) {
            const holder h = {list.items[i].slice, rank};
            if (!list.items[i].is_copy && fr_vec_push(out, h) != FR_OK)
                status = fr_fail_no_memory(err);
        }
        fr_vec_release(&list);
        fr_vec_release(&updates);
    }
    if (status == FR_OK && out->n > 0)
        qsort(out->items, out->n, sizeof *out->items, compare_holders);
    return status;
}

/* Finds the index of a rank among the holders of a slice, and their number. */
static void find_place(const holders *all, const fr_tensor_slice *slice,
                       int64_t rank, int64_t *i, int64_t *n)
{
    size_t low = 0, high = all->n;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (compare_slices(&all->items[middle].slice, slice) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *i = *n = 0;
    for (; low < all->n && compare_slices(&all->items[low].slice, slice) == 0;
         low++, (*n)++)
        if (all->items[low].rank == rank)
            *i = *n;
}

/* The i-th of n parts of a piece: some of its rows, or of its columns where it
 * is one row; nothing where it is not worth parting. */
static bool take_part(piece *p, int64_t i, int64_t n)
{
    enum { WORTH = 1024 }; /* elements of a part */
    fr_tensor_slice *slice = &p->slice;
    const bool is_row = slice->n_rows == 1;
    int64_t *at = is_row ? &slice->col : &slice->row;
    int64_t *count = is_row ? &slice->n_cols : &slice->n_rows;
    const int64_t whole = *count;

    if (slice->n_rows * slice->n_cols < n * WORTH || whole < n)
        return (slice->tensor + (uint64_t)slice->row) % (uint64_t)n ==
               (uint64_t)i;
    const int64_t first = whole * i / n;
    *count = whole * (i + 1) / n - first;
    *at += first;
    p->flat += first * (is_row ? 1 : slice->n_cols);
    return true;
}

fr_status fr_tensor_slices_written(const fr_program *program, int64_t rank,
                                   fr_tensor_slices *out, fr_err *err)
{
    flat_ranges updates = {0};
    pieces list = {0};
    holders all = {0};
    fr_status status = list_holders(program, &all, err);

    if (status == FR_OK)
        status = list_pieces(program, rank, &updates, &list, err);
    for (size_t k = 0; status == FR_OK && k < list.n; k++) {
        piece *p = &list.items[k];
        int64_t i, n;
        if (p->is_copy)
            continue;
        find_place(&all, &p->slice, rank, &i, &n);
        const uint32_t n_states = p->range->n_states;
        if (!take_part(p, i, n))
            continue;
        for (uint32_t s = 0; status == FR_OK && s <= n_states; s++)
            status = push_slice(p, s, out, err);
    }
    fr_vec_release(&all);
    fr_vec_release(&list);
    fr_vec_release(&updates);
    return status;
}

/* ---- what is of no tensor ----------------------------------------------- */

/* Takes [at, end) out of the ranges. */
static fr_status take_out(fr_byte_ranges *ranges, uint64_t at, uint64_t end,
                          fr_err *err)
{
    const size_t n = ranges->n;

    for (size_t i = 0; i < n; i++) {
        fr_byte_range *range = &ranges->items[i];
        const uint64_t first = range->at_bytes, last = first + range->n_bytes;
        if (at >= last || end <= first)
            continue;
        range->n_bytes = at > first ? at - first : 0;
        if (end < last) {
            const fr_byte_range rest = {end, last - end};
            FR_TRY_PUSH(ranges, rest, err);
        }
    }
    return FR_OK;
}

/* Does what is kept of a gradient's element depend on what lies beside it? */
static bool is_coded_together(const fr_plan *plan)
{
    const fr_compressor *compressor = fr_compressor_of(plan);
    return plan->compressor != FR_COMPRESSOR_NONE &&
           !(compressor->is_elementwise && compressor->wire == FR_WIRE_REDUCE);
}

/* Then gradients differ on ranks that hold the same tensor. */
static bool have_replicas_parted(const fr_plan *plan)
{
    return is_coded_together(plan) && (plan->tp > 1 || plan->pp > 1);
}

/* Local rows of a tensor that are there; the others fill the vocabulary up. */
static int64_t n_rows_there(const fr_tensor *tensor,
                            const fr_tensor_place *place)
{
    if (tensor->n_parts > 1 || tensor->n_experts > 0)
        return tensor->rows;
    const int64_t n =
        tensor->global_rows - fr_tensor_global_row(tensor, 0, place);
    return n < 0 ? 0 : n < tensor->rows ? n : tensor->rows;
}

/* Adds the part of a range that fills a tensor up: signs have no zero, so the
 * filling is trained. */
static fr_status push_filling(const fr_tensor *tensor,
                              const fr_tensor_place *place,
                              const flat_range *range, fr_byte_ranges *out,
                              fr_err *err)
{
    const int64_t last = range->first + range->n;
    int64_t begin =
        (int64_t)tensor->first + n_rows_there(tensor, place) * tensor->cols;
    int64_t end = (int64_t)tensor->first + tensor->rows * tensor->cols;
    begin = begin > range->first ? begin : range->first;
    end = end < last ? end : last;
    if (begin >= end)
        return FR_OK;
    const uint64_t at = (uint64_t)(begin - range->first);
    const uint64_t n = (uint64_t)(end - begin);
    const fr_byte_range weights = {range->weight_bytes +
                                       at * range->element_bytes,
                                   n * range->element_bytes};
    FR_TRY_PUSH(out, weights, err);
    for (uint32_t s = 0; s < range->n_states; s++) {
        const fr_byte_range state = {
            range->state_bytes + (s * (uint64_t)range->n + at) * sizeof(float),
            n * sizeof(float)};
        FR_TRY_PUSH(out, state, err);
    }
    return FR_OK;
}

static fr_status list_filling(const fr_program *program, int64_t rank,
                              const flat_ranges *updates, fr_byte_ranges *out,
                              fr_err *err)
{
    const fr_rank_program *rank_program = fr_program_of_rank(program, rank);
    const fr_tensor_place place = fr_tensor_place_of(&program->plan, rank);

    for (size_t i = 0; i < updates->n; i++)
        for (uint32_t t = 0; t < rank_program->n_tensors; t++)
            FR_TRY(push_filling(&rank_program->tensors[t], &place,
                                &updates->items[i], out, err));
    return FR_OK;
}

static bool is_replica(const fr_rank_program *rank_program, uint32_t id)
{
    for (uint32_t i = 0; i < rank_program->n_tensors; i++) {
        const fr_tensor *tensor = &rank_program->tensors[i];
        if (tensor->id == id &&
            (tensor->sharded_dim == 0 || tensor->is_tied_copy))
            return true;
    }
    return false;
}

/* This rank's own copies of what others hold too. */
static fr_status list_replicas(const fr_program *program, int64_t rank,
                               fr_byte_ranges *out, fr_err *err)
{
    const fr_rank_program *rank_program = fr_program_of_rank(program, rank);
    fr_tensor_slices held = {0};
    fr_status status = fr_tensor_slices_held(program, rank, &held, err);

    for (size_t k = 0; status == FR_OK && k < held.n; k++) {
        const fr_tensor_slice *slice = &held.items[k];
        const fr_byte_range range = {slice->at_bytes,
                                     fr_tensor_slice_bytes(slice)};
        if (is_replica(rank_program, slice->tensor) &&
            fr_vec_push(out, range) != FR_OK)
            status = fr_fail_no_memory(err);
    }
    fr_vec_release(&held);
    return status;
}

fr_status fr_layout_ranges(const fr_program *program, int64_t rank,
                           fr_byte_ranges *out, fr_err *err)
{
    const fr_rank_program *rank_program = fr_program_of_rank(program, rank);
    flat_ranges updates = {0};
    size_t n = 0;

    for (uint32_t i = 0; i < rank_program->n_blocks; i++) {
        const fr_block *block = &rank_program->blocks[i];
        const fr_byte_range range = {block->offset_bytes, block->n_bytes};
        if (block->is_persistent && block->kind == FR_MEMORY_OPTIMIZER)
            FR_TRY_PUSH(out, range, err);
    }
    fr_status status = list_updates(program, rank, &updates, err);
    for (size_t i = 0; status == FR_OK && i < updates.n; i++) {
        const flat_range *range = &updates.items[i];
        const uint64_t n_bytes =
            range->n_states * (uint64_t)range->n * sizeof(float);
        status = take_out(out, range->state_bytes, range->state_bytes + n_bytes,
                          err);
    }
    for (size_t i = 0; status == FR_OK && i < out->n; i++)
        if (out->items[i].n_bytes > 0)
            out->items[n++] = out->items[i];
    if (status == FR_OK)
        out->n = n;
    if (status == FR_OK && is_coded_together(&program->plan))
        status = list_filling(program, rank, &updates, out, err);
    fr_vec_release(&updates);
    return status == FR_OK && have_replicas_parted(&program->plan)
               ? list_replicas(program, rank, out, err)
               : status;
}
