#include "plan/caching_allocator.h"

#include "core/vec.h"

#include <string.h>

#define MIB ((uint64_t)1 << 20)
#define NONE UINT32_MAX

static const uint64_t round_bytes = 512, small_limit_bytes = MIB,
                      small_segment_bytes = 2 * MIB,
                      large_segment_bytes = 20 * MIB,
                      own_segment_limit_bytes = 10 * MIB,
                      segment_round_bytes = 2 * MIB;

/* A stretch of a segment, free or in use. */
typedef struct piece {
    uint64_t n_bytes;
    uint32_t before, after; /* neighbours in the segment */
    bool is_free, is_small;
} piece;

typedef struct allocator {
    fr_vec(piece) pieces;
    fr_vec(uint32_t) unused;  /* pieces that were joined to others */
    fr_vec(uint64_t) free[2]; /* large, small: sorted keys */
    uint64_t allocated_bytes, reserved_bytes, peak_bytes;
} allocator;

static uint64_t round_up(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* Keys of free pieces sort by size, then by number. */
enum { NUMBER_BITS = 24 };
static const uint32_t most_pieces = 1 << NUMBER_BITS;

static uint64_t key_of(uint64_t n_bytes, uint32_t number)
{
    return n_bytes / round_bytes << NUMBER_BITS | number;
}

static uint32_t number_of(uint64_t key)
{
    return (uint32_t)(key & (most_pieces - 1));
}

/* The first key in the list that is not before `key`. */
static size_t free_at(const allocator *a, bool is_small, uint64_t key)
{
    const uint64_t *keys = a->free[is_small].items;
    size_t at = 0, n = a->free[is_small].n;
    /* No branch on what is compared: it cannot be foreseen. */
    for (size_t half; n > 0; n -= half) {
        half = (n + 1) / 2;
        at += keys[at + half - 1] < key ? half : 0;
    }
    return at;
}

static bool list_free(allocator *a, uint32_t i)
{
    piece *p = &a->pieces.items[i];
    uint64_t key = key_of(p->n_bytes, i);
    size_t at = free_at(a, p->is_small, key);
    if (fr_vec_push(&a->free[p->is_small], key) != FR_OK)
        return false;
    uint64_t *items = a->free[p->is_small].items;
    memmove(&items[at + 1], &items[at],
            (a->free[p->is_small].n - 1 - at) * sizeof *items);
    items[at] = key;
    p->is_free = true;
    return true;
}

static void unlist_free(allocator *a, uint32_t i)
{
    piece *p = &a->pieces.items[i];
    size_t at = free_at(a, p->is_small, key_of(p->n_bytes, i));
    uint64_t *items = a->free[p->is_small].items;
    memmove(&items[at], &items[at + 1],
            (--a->free[p->is_small].n - at) * sizeof *items);
    p->is_free = false;
}

static uint32_t new_piece(allocator *a, const piece *like)
{
    if (a->unused.n > 0) {
        uint32_t i = a->unused.items[--a->unused.n];
        a->pieces.items[i] = *like;
        return i;
    }
    if (a->pieces.n >= most_pieces ||
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
    return list_free(a, i_rest);
}

/* The piece that holds n_bytes; NONE: out of memory. */
static uint32_t allocate(allocator *a, uint64_t n_bytes)
{
    n_bytes = round_up(n_bytes > 0 ? n_bytes : 1, round_bytes);
    bool is_small = n_bytes <= small_limit_bytes;
    size_t at = free_at(a, is_small, key_of(n_bytes, 0));
    uint32_t i;
    if (at < a->free[is_small].n) {
        i = number_of(a->free[is_small].items[at]);
        unlist_free(a, i);
    } else {
        i = new_segment(a, n_bytes, is_small);
    }
    if (i == NONE || !split(a, i, n_bytes))
        return NONE;
    a->allocated_bytes += a->pieces.items[i].n_bytes;
    if (a->allocated_bytes > a->peak_bytes)
        a->peak_bytes = a->allocated_bytes;
    return i;
}

/* Joins the free neighbour `i_right` to `i_left`. */
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

static bool give_back(allocator *a, uint32_t i)
{
    const piece *p = &a->pieces.items[i];
    uint32_t before = p->before, after = p->after;
    a->allocated_bytes -= p->n_bytes;
    if (after != NONE && a->pieces.items[after].is_free) {
        unlist_free(a, after);
        join(a, i, after);
    }
    if (before != NONE && a->pieces.items[before].is_free) {
        unlist_free(a, before);
        join(a, before, i);
        i = before;
    }
    return list_free(a, i);
}

/*
 * Blocks by first and by last call: lists begin at heads[call].  Block i is
 * allocated as tensors first_tensor[i] up to first_tensor[i + 1].
 */
typedef struct lifetimes {
    uint32_t *first, *last;           /* [n_calls + 1] */
    uint32_t *next_first, *next_last; /* [n_blocks] */
    uint32_t *first_tensor;           /* [n_blocks + 1] */
    fr_vec(uint64_t) tensors;         /* bytes */
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

/* Adds `at` to cuts[0..n), which are sorted and differ. */
static int add_cut(uint64_t *cuts, int n, uint64_t at)
{
    int i = n;
    while (i > 0 && cuts[i - 1] > at)
        i--;
    if (i > 0 && cuts[i - 1] == at)
        return n;
    memmove(&cuts[i + 1], &cuts[i], (size_t)(n - i) * sizeof *cuts);
    cuts[i] = at;
    return n + 1;
}

/* Where the tensors of a block begin, as the call sees it that makes them. */
static int find_cuts(const fr_program *program, const fr_class *klass,
                     const fr_block *block, uint64_t *cuts, int n_max)
{
    int n = add_cut(cuts, 0, 0);
    const fr_call *call = &klass->calls[block->first_call];
    const fr_segment *segment = &program->segments[call->i_segment];
    for (uint32_t i = 0; i < segment->n_instrs; i++) {
        const fr_instr *instr = &program->instrs[segment->first_instr + i];
        for (int k = 0; k < FR_INSTR_REFS && n < n_max; k++) {
            const fr_ref *ref = &instr->ref[k];
            uint64_t at = call->base_bytes[ref->space] + ref->offset_bytes;
            bool is_many = ref->space == FR_SPACE_TEMP ||
                           ref->space == FR_SPACE_SAVED ||
                           ref->space == FR_SPACE_CARRY;
            if (is_many && at >= block->offset_bytes &&
                at - block->offset_bytes < block->n_bytes)
                n = add_cut(cuts, n, at - block->offset_bytes);
        }
    }
    return n;
}

static bool list_tensors(const fr_program *program, const fr_class *klass,
                         uint32_t i_block, lifetimes *l)
{
    enum { MAX_CUTS = 64 };
    uint64_t cuts[MAX_CUTS + 1];
    const fr_block *block = &klass->blocks[i_block];
    int n = 1;
    cuts[0] = 0;
    if (program != NULL && !block->is_persistent &&
        block->first_call < klass->n_calls)
        n = find_cuts(program, klass, block, cuts, MAX_CUTS);
    cuts[n] = block->n_bytes;
    l->first_tensor[i_block] = (uint32_t)l->tensors.n;
    for (int i = 0; i < n; i++)
        if (fr_vec_push(&l->tensors, cuts[i + 1] - cuts[i]) != FR_OK)
            return false;
    return true;
}

static bool list_lifetimes(const fr_program *program, const fr_class *klass,
                           lifetimes *l)
{
    size_t n_calls = klass->n_calls + 1, n_blocks = klass->n_blocks + 1;
    l->first = malloc(n_calls * sizeof *l->first);
    l->last = malloc(n_calls * sizeof *l->last);
    l->next_first = malloc(n_blocks * sizeof *l->next_first);
    l->next_last = malloc(n_blocks * sizeof *l->next_last);
    l->first_tensor = malloc(n_blocks * sizeof *l->first_tensor);
    if (!l->first || !l->last || !l->next_first || !l->next_last ||
        !l->first_tensor)
        return false;
    memset(l->first, 0xff, n_calls * sizeof *l->first);
    memset(l->last, 0xff, n_calls * sizeof *l->last);
    for (uint32_t i = 0; i < klass->n_blocks; i++)
        if (!list_tensors(program, klass, i, l))
            return false;
    l->first_tensor[klass->n_blocks] = (uint32_t)l->tensors.n;
    l->piece_of = malloc((l->tensors.n + 1) * sizeof *l->piece_of);
    if (!l->piece_of)
        return false;
    for (uint32_t i = klass->n_blocks; i-- > 0;) {
        const fr_block *block = &klass->blocks[i];
        if (block->is_persistent || block->last_call >= klass->n_calls)
            continue;
        l->next_first[i] = l->first[block->first_call];
        l->first[block->first_call] = i;
        l->next_last[i] = l->last[block->last_call];
        l->last[block->last_call] = i;
    }
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

static bool is_output(const fr_class *klass, const lifetimes *l,
                      uint32_t i_block)
{
    const fr_block *block = &klass->blocks[i_block];
    return block->last_call > block->first_call &&
           l->first_tensor[i_block + 1] - l->first_tensor[i_block] == 1;
}

/* Blocks of one tensor that outlive the call, or all others. */
static bool allocate_call(allocator *a, const fr_class *klass, uint32_t call,
                          bool is_last, lifetimes *l)
{
    for (uint32_t i = l->first[call]; i != NONE; i = l->next_first[i])
        if (is_output(klass, l, i) == is_last && !allocate_block(a, l, i))
            return false;
    return true;
}

/* A call's output is the last tensor that it makes. */
static bool run_step(allocator *a, const fr_class *klass, lifetimes *l)
{
    for (uint32_t call = 0; call < klass->n_calls; call++) {
        if (!allocate_call(a, klass, call, false, l) ||
            !allocate_call(a, klass, call, true, l))
            return false;
        for (uint32_t i = l->last[call]; i != NONE; i = l->next_last[i])
            if (!give_back_block(a, l, i))
                return false;
    }
    return true;
}

fr_status fr_class_reserve(const fr_class *klass, fr_allocator_use *out,
                           fr_err *err)
{
    return fr_class_reserve_beside(NULL, klass, NULL, 0, out, err);
}

fr_status fr_class_reserve_beside(const fr_program *program,
                                  const fr_class *klass,
                                  const uint64_t *besides_bytes, int n_besides,
                                  fr_allocator_use *out, fr_err *err)
{
    enum { N_STEPS = 2 };
    allocator a = {0};
    lifetimes l = {0};
    bool is_ok = list_lifetimes(program, klass, &l);
    for (uint32_t i = 0; is_ok && i < klass->n_blocks; i++)
        if (klass->blocks[i].is_persistent)
            is_ok = allocate_block(&a, &l, i);
    for (int i = 0; is_ok && i < n_besides; i++)
        is_ok = allocate(&a, besides_bytes[i]) != NONE;
    for (int step = 0; is_ok && step < N_STEPS; step++)
        is_ok = run_step(&a, klass, &l);
    release_lifetimes(&l);
    fr_vec_release(&a.pieces);
    fr_vec_release(&a.unused);
    fr_vec_release(&a.free[0]);
    fr_vec_release(&a.free[1]);
    if (!is_ok)
        return fr_fail_no_memory(err);
    *out = (fr_allocator_use){a.peak_bytes, a.reserved_bytes};
    return FR_OK;
}
