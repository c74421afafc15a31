/*
 * tensor.h: a parameter tensor as one rank holds it: its shape here and in the
 * whole model, and its place in the flat parameter list of the rank's program.
 */
#ifndef FR_PLAN_OP_TENSOR_H
#define FR_PLAN_OP_TENSOR_H

#include <stdbool.h>
#include <stdint.h>

typedef enum fr_tensor_init {
    FR_TENSOR_INIT_ZERO,
    FR_TENSOR_INIT_ONE,
    FR_TENSOR_INIT_NORMAL
} fr_tensor_init;

/* One parameter tensor of a rank program, as this rank holds it. */
typedef struct fr_tensor {
    char name[48];     /* "h.3.attn.qkv.weight" */
    uint64_t first, n; /* elements, in the rank program's flat parameter list */
    int64_t rows, cols;               /* local shape, a vector has rows 1 */
    int64_t global_rows, global_cols; /* local rows beyond: zero (the vocabulary
                                         is padded to 64 tp) */
    uint8_t sharded_dim;  /* 0: replicated over TP, 1: rows, 2: columns */
    uint8_t n_parts;      /* rows are n_parts stacked matrices (q, k, v; gate,
                             up), each sharded by itself */
    int64_t part_rows[3]; /* local rows of each part; of the bias of a
                             stacked matrix: its elements */
    int64_t n_experts;    /* > 0: rows are those of so many matrices, one for
                             each expert of this rank (axis EP), sharded over
                             ETP each, of which the parts are parts */
    bool is_decayed;      /* weight decay applies (matrices) */
    bool is_statistic;    /* kept beside what is trained: see optimizer.h */
    bool is_tied_copy;    /* second holder of a tied matrix: not counted */
    uint8_t init;         /* fr_tensor_init */
    double init_std;
    uint32_t id; /* global: the same tensor on any layout */
} fr_tensor;

#endif
