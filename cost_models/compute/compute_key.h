/*
 * compute_key.h: what of an instruction decides its time on one machine: op,
 * dtype, variant, flags, dimensions and where each operand is when it begins.
 *
 * Calibration and cost models both build the key here, so that a measured
 * point is found again by the instruction that it was measured for.
 */
#ifndef FR_COST_MODELS_COMPUTE_COMPUTE_KEY_H
#define FR_COST_MODELS_COMPUTE_COMPUTE_KEY_H

#include "plan/op/op.h"
#include "spec/profile/profile.h"

/*
 * Key of `instr` run by a rank of n_threads threads on the machine of
 * `fingerprint`: every member of *out but n_busy, is_held_out and sample.
 *
 * An operand with a known reuse distance is NEAR when that fits the rank's
 * own caches (n_threads * l2), LLC when it fits the rank's share of the last
 * level (llc * n_threads / n_cores), else MEMORY.  Unknown distance: by
 * space; weights, gradients, optimizer and compressor state, and what
 * backward reads again come from MEMORY, the rest is NEAR.  On a GPU always by
 * space, and the rest is LLC, its L2, where all operands together fit there,
 * else MEMORY.
 */
void fr_compute_key(const fr_instr *instr, const fr_fingerprint *fingerprint,
                    int n_threads, fr_compute_point *out);

/* Same op, dtype, variant, flags, dimensions and places. */
bool fr_compute_key_equal(const fr_compute_point *a, const fr_compute_point *b);
/* The same but for the places. */
bool fr_compute_key_same_shape(const fr_compute_point *a,
                               const fr_compute_point *b);
/* The same kind of kernel: op, dtype, variant and flags. */
bool fr_compute_key_is_alike(const fr_compute_point *a,
                             const fr_compute_point *b);
/* Points of one fit: alike, by as many threads beside as many others. */
bool fr_compute_key_same_fit(const fr_compute_point *a,
                             const fr_compute_point *b);
uint64_t fr_compute_key_hash(const fr_compute_point *key);

/*
 * An instruction with that key: operands that are there have space IN and
 * offset 0.  False when the op or dtype is unknown to this version.
 */
bool fr_compute_key_instr(const fr_compute_point *key, fr_instr *out);

/* Index of an op or dtype by its name, -1 if there is none. */
int fr_op_find(const char *name);

#endif
