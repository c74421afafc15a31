/*
 * shapes.h: which kernels on which shapes to time: what the programs of the
 * candidate plans need, each key once, and grids from which other shapes are
 * fitted.
 */
#ifndef FR_CALIBRATE_CPU_SHAPES_H
#define FR_CALIBRATE_CPU_SHAPES_H

#include "core/base/vec.h"
#include "cost_models/compute/compute_key.h"
#include "program/ir/program.h"

typedef struct fr_shape {
    fr_compute_point key; /* n_busy and sample are not set yet */
    fr_instr instr;
    const fr_program *program; /* its kernel needs the plan, job and tensors */
    uint32_t i_stage;
    uint64_t n_uses; /* over all programs */
    uint64_t hash;
} fr_shape;

typedef struct fr_shapes {
    fr_vec(fr_shape) list;
    fr_vec(fr_program *) programs; /* owned */
} fr_shapes;

void fr_shapes_init(fr_shapes *shapes);
void fr_shapes_release(fr_shapes *shapes);

/*
 * Takes the program over (also on failure) and adds the compute instructions
 * of its plan that are not there yet.  It marks the reuse distances first,
 * but on GPUs.
 */
FR_CHECKED fr_status fr_shapes_add_program(fr_shapes *shapes,
                                           fr_program *program,
                                           const fr_fingerprint *machine,
                                           fr_err *err);

/* Adds one whose key is not there yet; sets its hash. */
FR_CHECKED fr_status fr_shapes_add(fr_shapes *shapes, fr_shape *shape,
                                   fr_err *err);

typedef struct fr_candidates {
    const fr_model *model;
    const fr_job *job; /* optimizer, and batch limits */
    int64_t n_ranks;   /* largest world */
    int n_cores;       /* ranks * threads never exceeds it */
    bool is_quick;     /* fewer micro-batches, no compressors, no other ways */
} fr_candidates;

/*
 * Lowers the candidate plans of a model: worlds 1..n_ranks (powers of two and
 * n_ranks itself), every split into dp, tp, pp, micro-batches in powers of
 * two, recompute; sequence parallelism, ZeRO, interleaving, a split backward,
 * fused attention, shares of sequences, experts spread, offload, bf16,
 * compressors and optimizers one at a time.  Illegal ones are skipped.
 */
FR_CHECKED fr_status fr_shapes_add_candidates(fr_shapes *shapes,
                                              const fr_candidates *candidates,
                                              const fr_fingerprint *machine,
                                              fr_err *err);

/*
 * Keeps of the shapes that differ only in where their operands are the n_kept
 * that occur most; the fits know the others.
 */
void fr_shapes_thin(fr_shapes *shapes, int n_kept);

/*
 * Adds for every key that there is neighbours that differ in size: halved
 * and three-halves rows or elements, held out from the fits, at most
 * n_per_op of each op.
 */
FR_CHECKED fr_status fr_shapes_add_held_out(fr_shapes *shapes, int n_per_op,
                                            const fr_fingerprint *machine,
                                            fr_err *err);

/*
 * The dimension that may be another one so that the fits are checked: rows,
 * which scale with the micro-batch, or the number of elements.  -1: there is
 * none, the operation is bound to the tensors of its rank program.
 */
int fr_shape_free_dim(fr_op op);

/* Draws tokens for an operand of n_bytes from the vocabulary of the shape. */
void fr_shape_fill_tokens(const fr_shape *shape, uint64_t seed, int32_t *tokens,
                          uint64_t n_bytes);

/* Is the operand who goes to which expert?  Then it is filled, evenly. */
bool fr_shape_fill_routes(const fr_shape *shape, int i_ref, void *operand,
                          uint64_t n_bytes);

/* Bytes of all operands, each rounded up to pages. */
uint64_t fr_shape_bytes(const fr_shape *shape);

#endif
