/*
 * bench_compute.h: times the runtime's kernels with every operand where the
 * key says that a step leaves it.
 *
 * Before each timed execution, in this order: operands that come from MEMORY
 * are written and flushed from all caches, and as much of a pool is dirtied,
 * so that no cache has free room that a step would not find; operands in the
 * LLC are written and pushed out of the core's own caches by dirtying twice
 * their size of the pool; NEAR operands are written last.  Data are positive,
 * of the size of activations, without denormals.
 */
#ifndef FR_CALIBRATE_CPU_BENCH_COMPUTE_H
#define FR_CALIBRATE_CPU_BENCH_COMPUTE_H

#include "calibrate/cpu/shapes.h"
#include "calibrate/sampler.h"
#include "runtime/comm/transport.h"

typedef struct fr_compute_bench fr_compute_bench;

/*
 * Timed points: every shape that fits alone on rank 0, and again with all
 * local ranks at once where their threads have a core each.  Borrows shapes,
 * fingerprint and transport, whose slab it opens; collective over its ranks.
 */
FR_CHECKED fr_status fr_compute_bench_create(const fr_shapes *shapes,
                                             const fr_fingerprint *machine,
                                             fr_transport *transport,
                                             fr_compute_bench **out,
                                             fr_err *err);
void fr_compute_bench_destroy(fr_compute_bench *bench); /* takes NULL */

/* The table for the sampler. */
fr_bench fr_compute_bench_table(fr_compute_bench *bench);

#endif
