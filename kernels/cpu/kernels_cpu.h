/*
 * kernels_cpu.h: the CPU kernel of every compute instruction (op.h gives
 * shapes and operands).  Matrix products go to OpenBLAS, the rest is OpenMP
 * and run-time dispatched SIMD.  Sums are made in a fixed order for a given
 * number of threads, so a rerun gives the same bits.
 */
#ifndef FR_KERNELS_CPU_KERNELS_CPU_H
#define FR_KERNELS_CPU_KERNELS_CPU_H

#include "core/base/err.h"
#include "plan/op/op.h"
#include "program/ir/program.h"
#include "program/ir/sequence_share.h"
#include "spec/model/job.h"

/* All that a kernel may need in addition to its operands. */
typedef struct fr_kernel_call {
    const fr_instr *instr;
    void *ptr[FR_INSTR_REFS]; /* resolved operands; NULL: absent */
    int coordinate, n_group;  /* of the rank on instr->axis */
    int tp_coordinate;        /* decides which rank counts replicated tensors */
    fr_sequence_share share;  /* of a sequence, that the rank's rows are */
    int n_threads;
    const struct fr_convs *convs; /* images/conv.h; NULL: none is run */
    bool is_evaluation;           /* nothing is learnt from it */
    void *scratch;  /* fr_kernels_cpu_scratch_bytes(); the thread's own */
    int64_t i_step; /* from 0 */
    /* The position of the rows in training, from which random numbers are
     * drawn: the layer, the first sequence of the global batch, the first
     * existing row. */
    int64_t layer, first_sequence, first_row;
    double dropout; /* the job's; 0 where nothing is trained */
    const fr_job *job;
    const fr_plan *plan;
    const fr_model *model;
    const fr_tensor *tensors; /* of the rank's program */
    uint32_t n_tensors;
} fr_kernel_call;

typedef void (*fr_kernel_fn)(const fr_kernel_call *call);

/* Indexed by fr_op; NULL for communication and LOAD_TOKENS.  Some know float32
 * alone, so whoever may have other operands calls fr_kernels_cpu_run(). */
extern const fr_kernel_fn fr_kernels_cpu[FR_OP_N];

/* Runs an instruction that has a kernel, on float32 or bfloat16. */
void fr_kernels_cpu_run(const fr_kernel_call *call);

/* Returns the bytes that call->scratch must have; 0: it may be NULL. */
uint64_t fr_kernels_cpu_scratch_bytes(const fr_instr *instr);

/* Sets OpenMP's and OpenBLAS's thread count of the calling thread. */
void fr_kernels_cpu_set_threads(int n_threads);

/*
 * Fills the parameters of one rank program from the seed: every element depends
 * on (seed, tensor id, global row and column) alone, so any layout starts from
 * the same model.  `weights`: n elements of the flat list from `first` on, of
 * which what belongs to no tensor (padding) is left as it is; place: the
 * rank's.
 */
void fr_kernels_cpu_init_weights(float *weights, int64_t first, int64_t n,
                                 const fr_tensor *tensors, uint32_t n_tensors,
                                 const fr_tensor_place *place, uint64_t seed,
                                 int n_threads);

/* Columns of a product's result that are one matrix. */
typedef struct fr_linear_columns {
    int64_t first, n;
} fr_linear_columns;

/* One matrix, or two that lie one after the other; returns how many. */
static inline int fr_linear_columns_of(const fr_linear_dims *dim,
                                       fr_linear_columns out[2])
{
    bool is_pair = dim->n_first > 0;
    out[0] = (fr_linear_columns){0, is_pair ? dim->n_first : dim->n};
    out[1] = (fr_linear_columns){dim->n_first, dim->n - dim->n_first};
    return is_pair ? 2 : 1;
}

/* Heads of the model before the first of the rank's in an attention. */
static inline int64_t fr_kernel_first_head(const fr_kernel_call *call)
{
    const fr_instr *instr = call->instr;
    const fr_attention_dims *dim = &instr->attention;
    bool is_exchanged = instr->axis == FR_AXIS_CP && instr->peer == 0 &&
                        dim->key_rows <= dim->seq;
    int64_t n_shares = is_exchanged ? call->share.n : 1;
    int64_t i_share = is_exchanged ? call->share.i : 0;
    return (call->tp_coordinate * n_shares + i_share) * dim->q_heads;
}

#endif
