/* narrow.c: see narrow.h. */
#include "kernels/cpu/narrow/narrow.h"

#include "kernels/cpu/kernels_simd.h"
#include "plan/op/op_table.h"

/* The limit of the part of an instruction's operands that is in scratch at
 * once; a single row or operands of all rows may be larger. */
#define WINDOW_BYTES (2 << 20)

void fr_narrow_load(float *out, const void *from, fr_dtype dtype, int64_t first,
                    int64_t n)
{
    const void *at = fr_narrow_at(from, dtype, first);
    if (dtype == FR_DTYPE_BF16)
        fr_floats_of_bf16(out, at, n);
    else
        memcpy(out, at, (size_t)n * sizeof *out);
}

void fr_narrow_store(void *to, fr_dtype dtype, int64_t first, const float *x,
                     int64_t n)
{
    void *at = fr_narrow_at(to, dtype, first);
    if (dtype == FR_DTYPE_BF16)
        fr_floats_to_bf16(at, x, n);
    else
        memcpy(at, x, (size_t)n * sizeof *x);
}

bool fr_narrow_is_met(const fr_instr *instr)
{
    for (int i = 0; i < FR_INSTR_REFS; i++)
        if (fr_op_access((fr_op)instr->op, i) != 0 &&
            instr->ref[i].space != FR_SPACE_NONE &&
            fr_instr_ref_dtype(instr, i) == FR_DTYPE_BF16)
            return true;
    return false;
}

/* ---- windows ------------------------------------------------------------- */

/*
 * Rows of dimension 0 that belong together; 0: the instruction is not cut.
 * Rows of a sequence keep their places only where whole sequences go.
 */
static int64_t grain_of(const fr_instr *instr)
{
    switch ((fr_op)instr->op) {
    case FR_OP_NORM_FWD:
    case FR_OP_NORM_BWD:
    case FR_OP_HEAD_NORM_FWD:
    case FR_OP_HEAD_NORM_BWD:
    case FR_OP_BIAS_GRAD:
    case FR_OP_SWIGLU_FWD:
    case FR_OP_SWIGLU_BWD:
    case FR_OP_RESIDUAL_ADD:
    case FR_OP_DROPOUT_ADD:
    case FR_OP_DROPOUT_BWD:
    case FR_OP_XENT:
    case FR_OP_XENT_MAX:
    case FR_OP_XENT_SUM:
    case FR_OP_XENT_GRAD:
        return 1;
    case FR_OP_GELU_FWD:
    case FR_OP_GELU_BWD:
    case FR_OP_ADD:
    case FR_OP_GRAD_SQSUM:
        return 64;
    case FR_OP_ROPE_FWD:
    case FR_OP_ROPE_BWD:
        return instr->flags & FR_INSTR_KEYS_APART ? 0 : instr->rope.seq;
    case FR_OP_LATENT_FWD:
    case FR_OP_LATENT_BWD:
        return instr->latent.seq;
    case FR_OP_ATTN_FWD:
    case FR_OP_ATTN_BWD:
        return instr->axis == FR_AXIS_CP ? 0 : 1;
    default:
        return 0;
    }
}

/* An operand as the float kernel sees it. */
typedef struct window {
    unsigned char *at;
    fr_dtype dtype;
    bool is_by_rows; /* else it belongs to all of them */
    bool is_apart;   /* it goes through scratch */
    bool is_read, is_written;
    /* Two planes of so many elements for a row: statistics, tokens. */
    int64_t n_planes, per_row;
} window;

typedef struct windows {
    window at[FR_INSTR_REFS];
    int64_t n_rows, n_at_once;
    uint64_t scratch_bytes;
} windows;

static bool is_by_rows(const op_operand *operand)
{
    for (int i = 0; i < 3; i++)
        if (operand->count.dim[i] == 1)
            return true;
    return operand->element == OP_ELEMENT_SPECIAL;
}

static window window_of(const fr_instr *instr, int i, int64_t n_rows)
{
    const op_operand *operand = &op_rows[instr->op].operands[i];
    window out = {.dtype = fr_instr_ref_dtype(instr, i), .n_planes = 1};
    out.is_by_rows = n_rows > 0 && is_by_rows(operand);
    bool is_added = (instr->flags & FR_INSTR_ACCUMULATE) != 0;
    out.is_read = operand->access == 'r' || operand->access == 'm' ||
                  (operand->access == 'w' && is_added);
    out.is_written = operand->access != 'r';
    if (out.is_by_rows && operand->count.factor == 2 &&
        (out.dtype == FR_DTYPE_F32 || out.dtype == FR_DTYPE_I32))
        out.n_planes = 2;
    out.is_apart = out.dtype == FR_DTYPE_BF16 || out.n_planes > 1;
    out.per_row =
        (int64_t)(fr_instr_ref_bytes(instr, i, 1) / fr_dtype_bytes(out.dtype)) /
        out.n_planes;
    if (out.is_by_rows)
        out.per_row /= n_rows;
    return out;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static windows windows_of(const fr_instr *instr)
{
    const int64_t grain = grain_of(instr);
    windows all = {.n_rows = grain > 0 ? instr->dim[0] : 0};
    uint64_t fixed = 0, per_row = 0;
    for (int i = 0; i < FR_INSTR_REFS; i++) {
        if (instr->ref[i].space == FR_SPACE_NONE ||
            fr_op_access((fr_op)instr->op, i) == 0)
            continue;
        window *w = &all.at[i];
        *w = window_of(instr, i, all.n_rows);
        uint64_t bytes = (uint64_t)(w->n_planes * w->per_row) * sizeof(float);
        if (w->is_apart)
            *(w->is_by_rows ? &per_row : &fixed) += bytes;
    }
    all.n_at_once = all.n_rows;
    if (all.n_rows > 0 && per_row > 0) {
        uint64_t n = WINDOW_BYTES / per_row / (uint64_t)grain * (uint64_t)grain;
        n = n < (uint64_t)grain ? (uint64_t)grain : n;
        all.n_at_once = (int64_t)n < all.n_rows ? (int64_t)n : all.n_rows;
    }
    all.scratch_bytes =
        fixed + (all.n_at_once < all.n_rows
                     ? larger(WINDOW_BYTES, per_row * (uint64_t)grain)
                     : per_row * (uint64_t)all.n_rows);
    return all;
}

uint64_t fr_narrow_scratch_bytes(const fr_instr *instr)
{
    return fr_narrow_is_met(instr) ? windows_of(instr).scratch_bytes : 0;
}

/* Between an operand's plane and scratch, elements [first, first + n). */
static void move_plane(const fr_kernel_call *call, const window *w, float *room,
                       int64_t first, int64_t n, bool is_in)
{
    const int n_team = fr_team(call, n);
    FR_FOR_TEAM(n_team);
#pragma omp parallel num_threads(n_team)
    {
        fr_range part = fr_range_mine(n, 32);
        int64_t n_mine = part.last - part.first;
        if (is_in)
            fr_narrow_load(room + part.first, w->at, w->dtype,
                           first + part.first, n_mine);
        else
            fr_narrow_store(w->at, w->dtype, first + part.first,
                            room + part.first, n_mine);
    }
}

static void move(const fr_kernel_call *call, const windows *all,
                 const window *w, float *room, int64_t row, int64_t n,
                 bool is_in)
{
    const int64_t n_elements = (w->is_by_rows ? n : 1) * w->per_row;
    if (!w->is_by_rows)
        row = 0;
    for (int64_t plane = 0; plane < w->n_planes; plane++)
        move_plane(call, w, room + plane * n_elements,
                   (plane * all->n_rows + row) * w->per_row, n_elements, is_in);
}

/* Moves what is `is_by_rows`, or all else, in or out; sets the pointers of
 * `part`. */
static void move_all(const fr_kernel_call *part, const windows *all,
                     int64_t row, bool is_by_rows, bool is_in)
{
    float *room = part->scratch;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < FR_INSTR_REFS; i++) {
            const window *w = &all->at[i];
            if (w->at == NULL || !w->is_apart || w->is_by_rows != (pass == 1))
                continue;
            int64_t n = w->is_by_rows ? part->instr->dim[0] : 1;
            if (w->is_by_rows == is_by_rows &&
                (is_in ? w->is_read : w->is_written))
                move(part, all, w, room, row, n, is_in);
            room += w->n_planes * w->per_row * n;
        }
}

static void set_pointers(fr_kernel_call *part, const windows *all, int64_t row)
{
    float *room = part->scratch;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < FR_INSTR_REFS; i++) {
            const window *w = &all->at[i];
            if (w->at == NULL || w->is_by_rows != (pass == 1))
                continue;
            int64_t n = w->is_by_rows ? part->instr->dim[0] : 1;
            part->ptr[i] =
                w->is_apart
                    ? (void *)room
                    : fr_narrow_at(w->at, w->dtype,
                                   w->is_by_rows ? row * w->per_row : 0);
            if (w->is_apart)
                room += w->n_planes * w->per_row * n;
        }
}

/* A range that is cut says itself where it begins. */
static void place_range(const fr_kernel_call *call, fr_instr *instr,
                        int64_t row)
{
    if (instr->op != FR_OP_GRAD_SQSUM)
        return;
    instr->range.first =
        fr_instr_range_first(call->instr, call->coordinate) + row;
    instr->flags &= (uint16_t)~FR_INSTR_SHARD;
}

void fr_narrow_run(const fr_kernel_call *call, fr_kernel_fn kernel)
{
    fr_instr instr = *call->instr;
    fr_kernel_call part = *call;
    windows all = windows_of(&instr);
    for (int i = 0; i < FR_INSTR_REFS; i++)
        all.at[i].at = call->ptr[i];
    part.instr = &instr;
    const int64_t n_rows = all.n_rows > 0 ? all.n_rows : 1;
    const int64_t step = all.n_rows > 0 ? all.n_at_once : 1;
    for (int64_t row = 0; row < n_rows; row += step) {
        if (all.n_rows > 0)
            instr.dim[0] = n_rows - row < step ? n_rows - row : step;
        if (row == 0)
            move_all(&part, &all, row, false, true);
        place_range(call, &instr, row);
        if (instr.op == FR_OP_ATTN_FWD || instr.op == FR_OP_ATTN_BWD)
            part.first_sequence = call->first_sequence + row;
        else
            part.first_row = row;
        move_all(&part, &all, row, true, true);
        set_pointers(&part, &all, row);
        kernel(&part);
        move_all(&part, &all, row, true, false);
    }
    move_all(&part, &all, 0, false, false);
}
