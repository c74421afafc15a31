/* caching_allocator.c: see caching_allocator.h. */
#include "program/memory/caching_allocator.h"

#include "core/base/vec.h"
#include "program/memory/block_tensors.h"
#include "program/memory/free_pieces.h"

#include <string.h>

#define MIB ((uint64_t)1 << 20)
#define NONE FR_PIECE_NONE

static const uint64_t round_bytes = 512, small_limit_bytes = MIB,
                      small_segment_bytes = 2 * MIB,
                      large_segment_bytes = 20 * MIB,
                      own_segment_limit_bytes = 10 * MIB,
                      segment_round_bytes = 2 * MIB;

/* A freed piece is filed at the next allocation: until then it is often joined
 * to pieces that are freed after it. */
typedef enum piece_state { IN_USE, FREED, FILED } piece_state;

/* A stretch of a segment, free or in use. */
typedef struct piece {
    uint64_t n_bytes;
    uint32_t before, after; /* neighbours in the segment */
    uint8_t state;          /* piece_state */
    bool is_small;
} piece;

typedef struct allocator {
    fr_vec(piece) pieces;
    fr_vec(uint32_t) unused; /* pieces that were joined to others */
    fr_vec(uint32_t) freed;  /* some of them joined to others */
    fr_free_pieces filed[2]; /* large, small */
    uint64_t allocated_bytes, reserved_bytes, peak_bytes;
} allocator;

static uint64_t round_up(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

static bool file(allocator *a, uint32_t i)
{
    piece *p = &a->pieces.items[i];
    p->state = FILED;
    return fr_free_pieces_add(&a->filed[p->is_small], p->n_bytes, i);
}

static bool file_freed(allocator *a)
{
    for (size_t k = 0; k < a->freed.n; k++) {
        uint32_t i = a->freed.items[k];
        if (a->pieces.items[i].state == FREED && !file(a, i))
            return false;
    }
    a->freed.n = 0;
    return true;
}

static uint32_t new_piece(allocator *a, const piece *like)
{
    if (a->unused.n > 0) {
        uint32_t i = a->unused.items[--a->unused.n];
        a->pieces.items[i] = *like;
        return i;
    }
    if (a->pieces.n >= FR_PIECE_NONE ||
        fr_vec_push(&a->pieces, *like) != FR_OK ||
        fr_vec_reserve(&a->unused, a->pieces.n) != FR_OK)
        return NONE;
    return (uint32_t)(a->pieces.n - 1);
}

static uint32_t new_segment(allocator *a, uint64_t n_bytes, bool is_small)
{
    piece whole = {.before = NONE, .after = NONE, .is_small = is_small};
    whole.n_bytes = is_small ? small_segment_bytes
                    : n_bytes < own_segment_limit_bytes
                        ? large_segment_bytes
                        : round_up(n_bytes, segment_round_bytes);
    a->reserved_bytes += whole.n_bytes;
    return new_piece(a, &whole);
}

/* Leaves n_bytes in piece i, the rest becomes a free neighbour. */
static bool split(allocator *a, uint32_t i, uint64_t n_bytes)
{
    piece rest = a->pieces.items[i];
    rest.n_bytes -= n_bytes;
    if (rest.is_small ? rest.n_bytes < round_bytes
                      : rest.n_bytes <= small_limit_bytes)
        return true;
    rest.before = i;
    uint32_t i_rest = new_piece(a, &rest);
    if (i_rest == NONE)
        return false;
    if (rest.after != NONE)
        a->pieces.items[rest.after].before = i_rest;
    a->pieces.items[i].after = i_rest;
    a->pieces.items[i].n_bytes = n_bytes;
    return file(a, i_rest);
}

/* Returns the bytes that the allocator gives for a tensor. */
static uint64_t rounded(uint64_t n_bytes)
{
    return round_up(n_bytes > 0 ? n_bytes : 1, round_bytes);
}

/* The piece that holds so many rounded bytes; NONE: out of memory. */
static uint32_t allocate(allocator *a, uint64_t n_bytes)
{
    bool is_small = n_bytes <= small_limit_bytes;
    if (!file_freed(a))
        return NONE;
    uint32_t i = fr_free_pieces_take(&a->filed[is_small], n_bytes);
    if (i != NONE)
        a->pieces.items[i].state = IN_USE;
    else
        i = new_segment(a, n_bytes, is_small);
    if (i == NONE || !split(a, i, n_bytes))
        return NONE;
    a->allocated_bytes += a->pieces.items[i].n_bytes;
    if (a->allocated_bytes > a->peak_bytes)
        a->peak_bytes = a->allocated_bytes;
    return i;
}

/* Joins two neighbours that are free or about to be. */
static void join(allocator *a, uint32_t i_left, uint32_t i_right)
{
    piece *left = &a->pieces.items[i_left];
    const piece *right = &a->pieces.items[i_right];
    left->n_bytes += right->n_bytes;
    left->after = right->after;
    if (right->after != NONE)
        a->pieces.items[right->after].before = i_left;
    a->unused.items[a->unused.n++] = i_right;
}

/* Is it free?  Then it is filed no more. */
static bool unfile(allocator *a, uint32_t i)
{
    if (i == NONE || a->pieces.items[i].state == IN_USE)
        return false;
    piece *p = &a->pieces.items[i];
    if (p->state == FILED)
        fr_free_pieces_remove(&a->filed[p->is_small], p->n_bytes, i);
    return true;
}

static bool give_back(allocator *a, uint32_t i)
{
    uint32_t before = a->pieces.items[i].before;
    uint32_t after = a->pieces.items[i].after;
    a->allocated_bytes -= a->pieces.items[i].n_bytes;
    if (unfile(a, after)) {
        a->pieces.items[after].state = IN_USE; /* it is no more */
        join(a, i, after);
    }
    if (unfile(a, before)) {
        join(a, before, i);
        i = before;
    }
    piece *p = &a->pieces.items[i];
    if (p->state == FREED)
        return true;
    p->state = FREED;
    return fr_vec_push(&a->freed, i) == FR_OK;
}

/*
 * Blocks by first and by last call: lists begin at heads[call].  Block i is
 * allocated as tensors first_tensor[i] up to first_tensor[i + 1].
 */
typedef struct lifetimes {
    uint32_t *first, *last;           /* [n_calls + 1] */
    uint32_t *next_first, *next_last; /* [n_blocks] */
    uint32_t *first_tensor;           /* [n_blocks + 1] */
    fr_vec(uint64_t) tensors;         /* rounded bytes */
    uint32_t *piece_of;               /* [tensors] */
} lifetimes;

static void release_lifetimes(lifetimes *l)
{
    free(l->first);
    free(l->last);
    free(l->next_first);
    free(l->next_last);
    free(l->first_tensor);
    fr_vec_release(&l->tensors);
    free(l->piece_of);
}

static bool list_tensors(fr_tensor_marks *marks,
                         const fr_rank_program *rank_program, lifetimes *l)
{
    for (uint32_t i = 0; i < rank_program->n_blocks; i++) {
        size_t n =
            fr_block_tensors(marks, rank_program, &rank_program->blocks[i]);
        const uint64_t *cuts = marks->cuts.items;
        l->first_tensor[i] = (uint32_t)l->tensors.n;
        if (n == 0 || fr_vec_reserve(&l->tensors, n) != FR_OK)
            return false;
        for (size_t k = 0; k < n; k++)
            l->tensors.items[l->tensors.n++] = rounded(cuts[k + 1] - cuts[k]);
    }
    l->first_tensor[rank_program->n_blocks] = (uint32_t)l->tensors.n;
    l->piece_of = malloc((l->tensors.n + 1) * sizeof *l->piece_of);
    return l->piece_of != NULL;
}

/* Is it one tensor that outlives the call that makes it? */
static bool is_output(const fr_rank_program *rank_program, const lifetimes *l,
                      uint32_t i_block)
{
    const fr_block *block = &rank_program->blocks[i_block];
    return block->last_call > block->first_call &&
           l->first_tensor[i_block + 1] - l->first_tensor[i_block] == 1;
}

static void push_first(const fr_rank_program *rank_program, uint32_t i_block,
                       lifetimes *l)
{
    uint32_t *head = &l->first[rank_program->blocks[i_block].first_call];
    l->next_first[i_block] = *head;
    *head = i_block;
}

static bool is_passing(const fr_rank_program *rank_program, uint32_t i_block)
{
    const fr_block *block = &rank_program->blocks[i_block];
    return !block->is_persistent && block->last_call < rank_program->n_calls;
}

/* A call's outputs are the last tensors that it makes. */
static void link_blocks(const fr_rank_program *rank_program, lifetimes *l)
{
    for (uint32_t i = rank_program->n_blocks; i-- > 0;)
        if (is_passing(rank_program, i) && is_output(rank_program, l, i))
            push_first(rank_program, i, l);
    for (uint32_t i = rank_program->n_blocks; i-- > 0;) {
        if (!is_passing(rank_program, i))
            continue;
        if (!is_output(rank_program, l, i))
            push_first(rank_program, i, l);
        l->next_last[i] = l->last[rank_program->blocks[i].last_call];
        l->last[rank_program->blocks[i].last_call] = i;
    }
}

static bool list_lifetimes(fr_tensor_marks *marks,
                           const fr_rank_program *rank_program, lifetimes *l)
{
    size_t n_calls = rank_program->n_calls + 1,
           n_blocks = rank_program->n_blocks + 1;
    l->first = malloc(n_calls * sizeof *l->first);
    l->last = malloc(n_calls * sizeof *l->last);
    l->next_first = malloc(n_blocks * sizeof *l->next_first);
    l->next_last = malloc(n_blocks * sizeof *l->next_last);
    l->first_tensor = malloc(n_blocks * sizeof *l->first_tensor);
    if (l->first == NULL || l->last == NULL || l->next_first == NULL ||
        l->next_last == NULL || l->first_tensor == NULL ||
        !list_tensors(marks, rank_program, l))
        return false;
    memset(l->first, 0xff, n_calls * sizeof *l->first);
    memset(l->last, 0xff, n_calls * sizeof *l->last);
    link_blocks(rank_program, l);
    return true;
}

static bool allocate_block(allocator *a, lifetimes *l, uint32_t i_block)
{
    for (uint32_t t = l->first_tensor[i_block];
         t < l->first_tensor[i_block + 1]; t++)
        if ((l->piece_of[t] = allocate(a, l->tensors.items[t])) == NONE)
            return false;
    return true;
}

static bool give_back_block(allocator *a, const lifetimes *l, uint32_t i_block)
{
    for (uint32_t t = l->first_tensor[i_block];
         t < l->first_tensor[i_block + 1]; t++)
        if (!give_back(a, l->piece_of[t]))
            return false;
    return true;
}

static bool run_step(allocator *a, const fr_rank_program *rank_program,
                     lifetimes *l)
{
    for (uint32_t call = 0; call < rank_program->n_calls; call++) {
        for (uint32_t i = l->first[call]; i != NONE; i = l->next_first[i])
            if (!allocate_block(a, l, i))
                return false;
        for (uint32_t i = l->last[call]; i != NONE; i = l->next_last[i])
            if (!give_back_block(a, l, i))
                return false;
    }
    return true;
}

static bool run_steps(allocator *a, const fr_rank_program *rank_program,
                      lifetimes *l, const uint64_t *overhead_bytes,
                      int n_overhead)
{
    enum { N_STEPS = 2 };
    bool is_ok = true;
    for (uint32_t i = 0; is_ok && i < rank_program->n_blocks; i++)
        if (rank_program->blocks[i].is_persistent)
            is_ok = allocate_block(a, l, i);
    for (int i = 0; is_ok && i < n_overhead; i++)
        is_ok = allocate(a, rounded(overhead_bytes[i])) != NONE;
    for (int step = 0; is_ok && step < N_STEPS; step++)
        is_ok = run_step(a, rank_program, l);
    return is_ok;
}

fr_status fr_rank_program_reserve(const fr_program *program,
                                  const fr_rank_program *rank_program,
                                  const uint64_t *overhead_bytes,
                                  int n_overhead, fr_allocator_use *out,
                                  fr_err *err)
{
    fr_tensor_marks marks;
    allocator a = {0};
    lifetimes l = {0};
    FR_TRY(fr_tensor_marks_init(program, &marks, err));
    fr_free_pieces_init(&a.filed[0]);
    fr_free_pieces_init(&a.filed[1]);
    bool is_ok = list_lifetimes(&marks, rank_program, &l) &&
                 run_steps(&a, rank_program, &l, overhead_bytes, n_overhead);
    fr_tensor_marks_release(&marks);
    release_lifetimes(&l);
    fr_vec_release(&a.pieces);
    fr_vec_release(&a.unused);
    fr_vec_release(&a.freed);
    fr_free_pieces_release(&a.filed[0]);
    fr_free_pieces_release(&a.filed[1]);
    if (!is_ok)
        return fr_fail_no_memory(err);
    *out = (fr_allocator_use){a.peak_bytes, a.reserved_bytes};
    return FR_OK;
}
