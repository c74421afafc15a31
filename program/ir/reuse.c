/* reuse.c: see reuse.h. */
#include "program/ir/reuse.h"

#include "plan/decide/grid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    REUSE_PIECES = 4096,      /* of a slab, at most */
    REUSE_PIECE_BYTES = 4096, /* at least: a page */
    REUSE_INSTANCES = 100000,
    REUSE_SAMPLES = 4 /* pieces of an operand that are looked at */
};

/*
 * Stack distances (Mattson et al. 1970) by the usual trick: every piece has
 * the time slot of its last use, a Fenwick tree counts the pieces per slot,
 * and the distance of a piece is the number of pieces in later slots.  When
 * the slots run out the pieces are renumbered in their order.
 */
typedef struct reuse_stack {
    uint32_t n_pieces, n_slots, next_slot;
    uint64_t piece_bytes;
    uint32_t *slot_of_piece; /* 0: never used; slots count from 1 */
    uint32_t *piece_of_slot; /* UINT32_MAX: nobody's */
    uint32_t *tree;          /* [n_slots + 1] */
} reuse_stack;

static void tree_add(reuse_stack *stack, uint32_t slot, uint32_t delta)
{
    for (; slot <= stack->n_slots; slot += slot & -slot)
        stack->tree[slot] += delta; /* modulo 2^32: -1 works */
}

static uint32_t tree_sum(const reuse_stack *stack, uint32_t slot)
{
    uint32_t sum = 0;

    for (; slot > 0; slot -= slot & -slot)
        sum += stack->tree[slot];
    return sum;
}

static void stack_release(reuse_stack *stack)
{
    free(stack->slot_of_piece);
    free(stack->piece_of_slot);
    free(stack->tree);
}

static fr_status stack_init(reuse_stack *stack, uint64_t slab_bytes,
                            fr_err *err)
{
    memset(stack, 0, sizeof *stack);
    stack->piece_bytes = slab_bytes / REUSE_PIECES + 1;
    if (stack->piece_bytes < REUSE_PIECE_BYTES)
        stack->piece_bytes = REUSE_PIECE_BYTES;
    stack->n_pieces = (uint32_t)(slab_bytes / stack->piece_bytes) + 1;
    stack->n_slots = 4 * stack->n_pieces;
    stack->next_slot = 1;
    stack->slot_of_piece = calloc(stack->n_pieces, sizeof(uint32_t));
    stack->piece_of_slot = calloc(stack->n_slots + 1, sizeof(uint32_t));
    stack->tree = calloc(stack->n_slots + 1, sizeof(uint32_t));
    if (stack->slot_of_piece == NULL || stack->piece_of_slot == NULL ||
        stack->tree == NULL) {
        stack_release(stack);
        return fr_fail_no_memory(err);
    }
    memset(stack->piece_of_slot, 0xff, (stack->n_slots + 1) * sizeof(uint32_t));
    return FR_OK;
}

static void stack_compact(reuse_stack *stack)
{
    uint32_t next = 1;

    memset(stack->tree, 0, (stack->n_slots + 1) * sizeof(uint32_t));
    for (uint32_t slot = 1; slot <= stack->n_slots; slot++) {
        uint32_t piece = stack->piece_of_slot[slot];
        if (piece == UINT32_MAX)
            continue;
        stack->piece_of_slot[slot] = UINT32_MAX;
        stack->piece_of_slot[next] = piece;
        stack->slot_of_piece[piece] = next;
        tree_add(stack, next, 1);
        next++;
    }
    stack->next_slot = next;
}

static void stack_touch(reuse_stack *stack, uint32_t piece)
{
    uint32_t old = stack->slot_of_piece[piece];

    if (old == stack->next_slot - 1 && old != 0)
        return;
    if (stack->next_slot > stack->n_slots) {
        stack_compact(stack);
        old = stack->slot_of_piece[piece];
    }
    if (old != 0) {
        tree_add(stack, old, UINT32_MAX);
        stack->piece_of_slot[old] = UINT32_MAX;
    }
    stack->slot_of_piece[piece] = stack->next_slot;
    stack->piece_of_slot[stack->next_slot] = piece;
    tree_add(stack, stack->next_slot, 1);
    stack->next_slot++;
}

/* Counts the bytes of pieces that were used after this one's last use; < 0: it
 * was never used. */
static double stack_distance(const reuse_stack *stack, uint32_t piece)
{
    uint32_t slot = stack->slot_of_piece[piece];

    if (slot == 0)
        return -1.0;
    return (double)stack->piece_bytes *
           (double)(tree_sum(stack, stack->n_slots) - tree_sum(stack, slot));
}

/* ---- the walk ------------------------------------------------------------ */

/* Sum and number of log2 distances of each operand of each instruction. */
typedef struct reuse_mean {
    double sum[FR_INSTR_REFS];
    uint32_t n[FR_INSTR_REFS];
} reuse_mean;

typedef struct reuse_walk {
    const fr_program *program;
    const fr_rank_program *rank_program;
    reuse_stack stack;
    reuse_mean *mean; /* [n_instrs]; NULL while nothing is recorded */
} reuse_walk;

static bool operand_pieces(const reuse_walk *walk, const fr_call *call,
                           const fr_instr *instr, int i_ref, uint32_t *first,
                           uint32_t *last)
{
    const fr_ref *ref = &instr->ref[i_ref];
    int group =
        (int)fr_plan_group_size(&walk->program->plan, (fr_axis)instr->axis);
    uint64_t n_bytes, begin;

    if (ref->space == FR_SPACE_NONE || ref->space >= FR_SPACE_N)
        return false;
    n_bytes = fr_instr_ref_bytes(instr, i_ref, group);
    begin = fr_call_base_bytes(walk->rank_program, call, ref->space) +
            ref->offset_bytes;
    if (n_bytes == 0 || begin >= walk->rank_program->slab_bytes)
        return false;
    if (n_bytes > walk->rank_program->slab_bytes - begin)
        n_bytes = walk->rank_program->slab_bytes - begin;
    *first = (uint32_t)(begin / walk->stack.piece_bytes);
    *last = (uint32_t)((begin + n_bytes - 1) / walk->stack.piece_bytes);
    return true;
}

static void record(reuse_walk *walk, reuse_mean *mean, int i_ref,
                   uint32_t first, uint32_t last)
{
    uint32_t n = last - first + 1;
    uint32_t n_samples = n < REUSE_SAMPLES ? n : REUSE_SAMPLES;

    for (uint32_t i = 0; i < n_samples; i++) {
        uint32_t piece =
            first + (uint32_t)((uint64_t)(2 * i + 1) * n / (2 * n_samples));
        double distance = stack_distance(&walk->stack, piece);
        if (distance < 0.0)
            continue;
        mean->sum[i_ref] += log2(distance + 2.0);
        mean->n[i_ref]++;
    }
}

/* An operand that was just made by the same instruction is not its reuse:
 * all distances are taken before anything is touched. */
static void walk_instr(reuse_walk *walk, const fr_call *call, uint32_t i_instr)
{
    const fr_instr *instr = &walk->program->instrs[i_instr];
    uint32_t first[FR_INSTR_REFS], last[FR_INSTR_REFS];
    bool is_there[FR_INSTR_REFS];

    for (int i = 0; i < FR_INSTR_REFS; i++) {
        is_there[i] = operand_pieces(walk, call, instr, i, &first[i], &last[i]);
        if (is_there[i] && walk->mean != NULL)
            record(walk, &walk->mean[i_instr], i, first[i], last[i]);
    }
    for (int i = 0; i < FR_INSTR_REFS; i++)
        for (uint32_t p = first[i]; is_there[i] && p <= last[i]; p++)
            stack_touch(&walk->stack, p);
}

static void walk_rank_program(reuse_walk *walk)
{
    const fr_rank_program *rank_program = walk->rank_program;
    uint32_t n_instances = 0;

    for (uint32_t c = 0; c < rank_program->n_calls; c++) {
        const fr_call *call = &rank_program->calls[c];
        const fr_segment *segment = &walk->program->segments[call->i_segment];
        for (uint32_t i = 0; i < segment->n_instrs; i++) {
            if (n_instances++ >= REUSE_INSTANCES)
                return;
            walk_instr(walk, call, segment->first_instr + i);
        }
    }
}

fr_status fr_program_mark_reuse(fr_program *program, fr_err *err)
{
    reuse_mean *mean = calloc(program->n_instrs + 1, sizeof *mean);

    if (mean == NULL)
        return fr_fail_no_memory(err);
    for (uint32_t i = 0; i < program->n_rank_programs; i++) {
        reuse_walk walk = {.program = program,
                           .rank_program = &program->rank_programs[i]};
        fr_status status =
            stack_init(&walk.stack, walk.rank_program->slab_bytes, err);
        if (status != FR_OK) {
            free(mean);
            return status;
        }
        walk_rank_program(&walk); /* the step before */
        walk.mean = mean;
        walk_rank_program(&walk);
        stack_release(&walk.stack);
    }
    for (uint32_t i = 0; i < program->n_instrs; i++)
        for (int r = 0; r < FR_INSTR_REFS; r++)
            if (mean[i].n[r] > 0)
                program->instrs[i].ref[r].reuse_log2 =
                    (uint8_t)lround(mean[i].sum[r] / (double)mean[i].n[r]);
    free(mean);
    return FR_OK;
}
