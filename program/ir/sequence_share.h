/*
 * sequence_share.h: which tokens of a sequence a context parallel rank has.
 *
 * A causal mask makes late tokens more work than early ones, so a sequence is
 * cut into 2 n pieces of which rank i has pieces i and 2 n - 1 - i, in this
 * order (Megatron-LM; Llama 3, arXiv 2407.21783, section 3.3.2).  What all n
 * ranks have, one after the other, is [share][sequence][row].
 */
#ifndef FR_PROGRAM_IR_SEQUENCE_SHARE_H
#define FR_PROGRAM_IR_SEQUENCE_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __CUDACC__
#define FR_SHARE_INLINE static inline __host__ __device__
#else
#define FR_SHARE_INLINE static inline
#endif

/* Share i of n; n 1: the whole sequence. */
typedef struct fr_sequence_share {
    int32_t i, n;
} fr_sequence_share;

/* Rows of one sequence as an operand has them: `len` of each share that is
 * there, which is one, or all n of them. */
typedef struct fr_sequence_rows {
    fr_sequence_share share;
    bool has_all;
    int64_t len;
} fr_sequence_rows;

/* Rows that follow each other both in memory and in the sequence. */
typedef struct fr_sequence_run {
    int64_t row;      /* in the operand, of `batch` sequences */
    int64_t position; /* in the sequence */
    int64_t index;    /* among the sequence's rows that are there, in the order
                         of the sequence */
    int64_t n;
} fr_sequence_run;

FR_SHARE_INLINE int64_t fr_sequence_n_runs(const fr_sequence_rows *rows)
{
    if (rows->share.n <= 1)
        return 1;
    return rows->has_all ? 2 * (int64_t)rows->share.n : 2;
}

/* The i-th run of sequence b; runs are in the order of the sequence. */
FR_SHARE_INLINE fr_sequence_run fr_sequence_run_of(const fr_sequence_rows *rows,
                                                   int64_t batch, int64_t b,
                                                   int64_t i)
{
    const int64_t n = rows->share.n, half = rows->len / 2;
    fr_sequence_run run = {b * rows->len, 0, 0, rows->len};
    if (n <= 1)
        return run;
    int64_t piece = i;
    if (!rows->has_all)
        piece = i == 0 ? rows->share.i : 2 * n - 1 - rows->share.i;
    int64_t owner = piece < n ? piece : 2 * n - 1 - piece;
    run.row = ((rows->has_all ? owner * batch : 0) + b) * rows->len +
              (piece < n ? 0 : half);
    run.position = piece * half;
    run.index = i * half;
    run.n = half;
    return run;
}

/* Tokens of a share of a sequence of `seq`. */
FR_SHARE_INLINE int64_t fr_sequence_share_len(fr_sequence_share share,
                                              int64_t seq)
{
    return share.n <= 1 ? seq : seq / share.n;
}

/* Returns the position in the sequence of row `row` of a share of `len`
 * rows. */
FR_SHARE_INLINE int64_t fr_sequence_position(fr_sequence_share share,
                                             int64_t len, int64_t row)
{
    const int64_t half = len / 2;
    if (share.n <= 1)
        return row;
    return row < half
               ? share.i * half + row
               : (2 * (int64_t)share.n - 1 - share.i) * half + row - half;
}

#endif
