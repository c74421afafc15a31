/*
 * lower_split.c: a layer's backward in two parts, for schedules that run the
 * gradients of weights apart (Qi et al., ICLR 2024, arXiv 2401.10241).
 *
 * The whole backward is written first, with no scratch used twice.  Then the
 * products that make gradients of weights are taken out of it: they become the
 * second segment.  Scratch that they read lives from the first part to the
 * second (space WIRE); all other scratch is packed anew by its lifetime.  The
 * gradient of the stream is worked on in place, so what the second part needs
 * of it is copied.  What forward keeps is cut the same way: what the second
 * part reads (space CARRY) outlives the rest, which dies after the first.
 */
#include "program/lower/segment/lower_layer.h"
#include "program/memory/memory_pack.h"

/* A piece of what forward keeps that the second part reads. */
typedef struct late_piece {
    uint64_t first, n, at; /* in SAVED; in CARRY */
} late_piece;

enum { MAX_LATE_PIECES = 32 };

typedef struct split {
    lower_context *context;
    uint32_t first, n;     /* instructions of the whole backward */
    fr_pack_item *items;   /* of the scratch; offset_bytes: new place */
    bool *is_kept;         /* [scratch] */
    uint64_t (*copied)[2]; /* [instruction][operand] place of a copy */
    uint64_t n_kept_bytes;
    late_piece late[MAX_LATE_PIECES]; /* ascending */
    size_t n_late;
} split;

void lower_keep_temps(lower_context *context)
{
    context->is_temp_kept = context->schedule->is_split;
    context->temps.n = 0;
}

static bool is_of_weights(const fr_instr *instr)
{
    return instr->op == FR_OP_LINEAR_WGRAD ||
           instr->op == FR_OP_GROUPED_WGRAD || instr->op == FR_OP_BIAS_GRAD;
}

static fr_instr instr_at(const split *s, uint32_t i)
{
    return s->context->instrs.items[s->first + i];
}

/* The piece of scratch that holds an operand. */
static size_t temp_of(const split *s, const fr_ref *ref)
{
    size_t i = s->context->temps.n;
    while (i > 1 && s->context->temps.items[i - 1].first > ref->offset_bytes)
        i--;
    return i - 1;
}

static uint64_t keep(split *s, uint64_t n_bytes)
{
    uint64_t at = s->n_kept_bytes;
    s->n_kept_bytes += (n_bytes + 63) / 64 * 64;
    return at;
}

/* Adds a piece; one that reaches into another is joined to it. */
static void add_late(split *s, uint64_t first, uint64_t n_bytes)
{
    size_t i = 0;
    n_bytes = (n_bytes + 63) / 64 * 64;
    while (i < s->n_late && s->late[i].first + s->late[i].n <= first)
        i++;
    if (i < s->n_late && s->late[i].first < first + n_bytes) {
        uint64_t end = s->late[i].first + s->late[i].n;
        end = first + n_bytes > end ? first + n_bytes : end;
        if (first < s->late[i].first)
            s->late[i].first = first;
        s->late[i].n = end - s->late[i].first;
        return;
    }
    if (s->n_late == MAX_LATE_PIECES)
        return; /* it stays with the rest (is_saved_late) */
    for (size_t k = s->n_late++; k > i; k--)
        s->late[k] = s->late[k - 1];
    s->late[i] = (late_piece){first, n_bytes, 0};
}

static void find_late(split *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        fr_instr instr = instr_at(s, i);
        for (int r = 0; is_of_weights(&instr) && r < FR_INSTR_REFS; r++)
            if (instr.ref[r].space == FR_SPACE_SAVED)
                add_late(s, instr.ref[r].offset_bytes,
                         fr_instr_ref_bytes(&instr, r, 1));
    }
    for (size_t i = 1; i < s->n_late; i++)
        s->late[i].at = s->late[i - 1].at + s->late[i - 1].n;
}

/* Moves an operand in SAVED to its new place. */
static void move_saved(const split *s, fr_ref *ref)
{
    uint64_t gone = 0;
    if (ref->space != FR_SPACE_SAVED)
        return;
    for (size_t i = 0; i < s->n_late; i++) {
        const late_piece *piece = &s->late[i];
        if (ref->offset_bytes < piece->first)
            break;
        if (ref->offset_bytes < piece->first + piece->n) {
            ref->space = FR_SPACE_CARRY;
            ref->offset_bytes += piece->at - piece->first;
            return;
        }
        gone += piece->n;
    }
    ref->offset_bytes -= gone;
}

/* Forward and recompute write to the new places. */
static void move_forward(const split *s, uint32_t i_segment)
{
    const fr_segment *segment = &s->context->segments.items[i_segment];
    for (uint32_t i = 0; i < segment->n_instrs; i++)
        for (int r = 0; r < FR_INSTR_REFS; r++)
            move_saved(
                s, &s->context->instrs.items[segment->first_instr + i].ref[r]);
}

/* Finds the lifetimes of the scratch, and which of it the second part
 * reads. */
static void find_lives(split *s)
{
    const lower_context *context = s->context;
    for (uint32_t i = 0; i < s->n; i++) {
        fr_instr instr = instr_at(s, i);
        bool is_late = is_of_weights(&instr);
        for (int r = 0; r < FR_INSTR_REFS; r++) {
            if (is_late && r < 2 && instr.ref[r].space == FR_SPACE_IN)
                s->copied[i][r] = keep(s, fr_instr_ref_bytes(&instr, r, 1));
            if (instr.ref[r].space != FR_SPACE_TEMP)
                continue;
            size_t t = temp_of(s, &instr.ref[r]);
            fr_pack_item *item = &s->items[t];
            if (item->n_bytes == 0)
                *item = (fr_pack_item){context->temps.items[t].n, i, i, 0};
            item->last = i;
            if (is_late && !s->is_kept[t]) {
                s->is_kept[t] = true;
                item->offset_bytes = keep(s, context->temps.items[t].n);
            }
        }
    }
}

/* Finds new places for the scratch that is not kept, and its size. */
static fr_status pack(split *s, uint64_t *n_bytes, fr_err *err)
{
    size_t n_temps = s->context->temps.n, n = 0;
    fr_pack_item *packed = calloc(n_temps + 1, sizeof *packed);
    if (packed == NULL)
        return fr_fail_no_memory(err);
    for (size_t t = 0; t < n_temps; t++)
        if (!s->is_kept[t] && s->items[t].n_bytes > 0)
            packed[n++] = s->items[t];
    fr_status status = fr_memory_pack(packed, n, n_bytes, err);
    n = 0;
    for (size_t t = 0; t < n_temps; t++)
        if (!s->is_kept[t] && s->items[t].n_bytes > 0)
            s->items[t].offset_bytes = packed[n++].offset_bytes;
    free(packed);
    return status;
}

/* Writes one instruction of the old segment with its new places. */
static void move(const split *s, uint32_t i)
{
    fr_instr instr = instr_at(s, i);
    bool is_late = is_of_weights(&instr);
    for (int r = 0; r < FR_INSTR_REFS; r++) {
        fr_ref *ref = &instr.ref[r];
        if (is_late && r < 2 && ref->space == FR_SPACE_IN) {
            *ref = lower_ref(FR_SPACE_WIRE, s->copied[i][r]);
        } else if (ref->space == FR_SPACE_TEMP) {
            size_t t = temp_of(s, ref);
            ref->offset_bytes +=
                s->items[t].offset_bytes - s->context->temps.items[t].first;
            if (s->is_kept[t])
                ref->space = FR_SPACE_WIRE;
        }
        move_saved(s, ref);
    }
    *lower_emit(s->context, (fr_op)instr.op) = instr;
}

static void copy_stream(const split *s, uint32_t i)
{
    fr_instr instr = instr_at(s, i);
    for (int r = 0; r < 2; r++) {
        if (instr.ref[r].space != FR_SPACE_IN)
            continue;
        fr_instr *copy = lower_emit(s->context, FR_OP_COPY);
        copy->copy.n_bytes = (int64_t)fr_instr_ref_bytes(&instr, r, 1);
        copy->ref[FR_COPY_SRC] = instr.ref[r];
        copy->ref[FR_COPY_DST] = lower_ref(FR_SPACE_WIRE, s->copied[i][r]);
    }
}

static void write_parts(const split *s, lower_kind *kind, const char *name,
                        uint64_t temp_bytes)
{
    lower_context *context = s->context;
    kind->segments.i_input =
        lower_segment_begin(context, FR_LANE_COMPUTE, "%s_bwd_input", name);
    lower_segments_mark(context, kind->segments.i_input, FR_SEGMENT_BACKWARD);
    for (uint32_t i = 0; i < s->n; i++) {
        fr_instr instr = instr_at(s, i);
        if (is_of_weights(&instr))
            copy_stream(s, i);
        else
            move(s, i);
    }
    if (!context->is_out_of_memory)
        context->segments.items[kind->segments.i_input].temp_bytes = temp_bytes;
    kind->segments.i_weights =
        lower_segment_begin(context, FR_LANE_COMPUTE, "%s_bwd_weights", name);
    lower_segments_mark(context, kind->segments.i_weights, FR_SEGMENT_WEIGHTS);
    for (uint32_t i = 0; i < s->n; i++) {
        fr_instr instr = instr_at(s, i);
        if (!is_of_weights(&instr))
            continue;
        move(s, i);
        instr = context->instrs.items[context->instrs.n - 1];
        for (int r = 0; r < FR_INSTR_REFS; r++) {
            kind->is_input_late |= instr.ref[r].space == FR_SPACE_INPUT;
            kind->is_saved_late |= instr.ref[r].space == FR_SPACE_SAVED;
        }
    }
    kind->split_bytes = s->n_kept_bytes;
    for (size_t i = 0; i < s->n_late; i++)
        kind->late_bytes += s->late[i].n;
    kind->saved.n_bytes -= kind->late_bytes;
    move_forward(s, kind->segments.i_fwd);
    if (context->plan->recompute == FR_RECOMPUTE_FULL)
        move_forward(s, kind->segments.i_recompute);
}

void lower_split_backward(lower_context *context, lower_kind *kind,
                          const char *name)
{
    uint64_t temp_bytes = 0;
    fr_err unused = {0};
    if (!context->is_temp_kept || context->is_out_of_memory)
        return;
    context->is_temp_kept = false;
    const fr_segment *whole = &context->segments.items[kind->segments.i_bwd];
    split s = {
        .context = context, .first = whole->first_instr, .n = whole->n_instrs};
    s.items = calloc(context->temps.n + 1, sizeof *s.items);
    s.is_kept = calloc(context->temps.n + 1, sizeof *s.is_kept);
    s.copied = calloc((size_t)s.n + 1, sizeof *s.copied);
    if (s.items != NULL && s.is_kept != NULL && s.copied != NULL) {
        find_lives(&s);
        find_late(&s);
        if (pack(&s, &temp_bytes, &unused) == FR_OK)
            write_parts(&s, kind, name, temp_bytes);
        else
            context->is_out_of_memory = true;
    } else {
        context->is_out_of_memory = true;
    }
    free(s.items);
    free(s.is_kept);
    free(s.copied);
}
