/*
 * free_pieces.h: free pieces of memory, of which the best fit is asked for.
 *
 * Of hundreds of pieces that are free at once there are a dozen sizes, so
 * sizes stand in order, each with the set of its pieces as bits: nothing
 * costs more than a search among the sizes.  The piece that came last waits
 * beside them: often it is the next to be split, or to be joined to its
 * neighbour.
 */
#ifndef FR_PROGRAM_MEMORY_FREE_PIECES_H
#define FR_PROGRAM_MEMORY_FREE_PIECES_H

#include "core/base/vec.h"

#include <stdbool.h>

#define FR_PIECE_NONE UINT32_MAX

typedef struct fr_free_size {
    uint64_t n_bytes;
    uint32_t set, n_pieces;
} fr_free_size;

/* Pieces are numbered from 0; memory grows with the largest number times the
 * sizes that are free at once. */
typedef struct fr_free_pieces {
    fr_vec(fr_free_size) sizes; /* ascending */
    size_t n_empty;             /* of them have no piece left */
    fr_vec(uint32_t) unused_sets;
    uint64_t *bits;      /* [sets][words, then which of them are not 0] */
    size_t n_sets;       /* at most as many sizes */
    size_t n_words;      /* of a set: a multiple of 64 */
    uint64_t last_bytes; /* the piece beside them */
    uint32_t last;       /* FR_PIECE_NONE: there is none */
} fr_free_pieces;

void fr_free_pieces_init(fr_free_pieces *out);
void fr_free_pieces_release(fr_free_pieces *pieces);

/* False: out of memory. */
FR_CHECKED bool fr_free_pieces_add(fr_free_pieces *pieces, uint64_t n_bytes,
                                   uint32_t number);
/* One that is there, with the size it was added with. */
void fr_free_pieces_remove(fr_free_pieces *pieces, uint64_t n_bytes,
                           uint32_t number);
/* Removes the smallest piece of at least n_bytes, of equal ones the lowest
 * number, and returns it; FR_PIECE_NONE: there is none. */
uint32_t fr_free_pieces_take(fr_free_pieces *pieces, uint64_t n_bytes);

#endif
