/*
 * bench_comm.h: times collectives and transfers by executing a micro-program
 * in the runtime's interpreter: its engine, its communication thread, its way
 * of waiting.
 *
 * Each execution is preceded by a write of the payload (as the kernel that
 * made it would have done; cold: followed by dirtying a pool, so that the
 * payload is in memory again) and by a barrier of the same group on the same
 * lane; what a collective takes is counted from the last rank that began to
 * the last one that ended, on one clock.
 */
#ifndef FR_CALIBRATE_CPU_BENCH_COMM_H
#define FR_CALIBRATE_CPU_BENCH_COMM_H

#include "calibrate/sampler.h"
#include "core/base/vec.h"
#include "plan/collective/collective.h"
#include "runtime/comm/transport.h"

/* The points to time; their cpu_frac and sample are not set yet. */
typedef fr_vec(fr_comm_point) fr_comm_list;

typedef struct fr_comm_wanted {
    int64_t n_group;
    bool is_net;
    bool is_quick;
    uint64_t min_bytes, max_bytes; /* sizes in (min, max] */
    const uint64_t *sizes;         /* more sizes: of buckets, activations */
    size_t n_sizes;
} fr_comm_wanted;

/* Every op with every algorithm that fits, sync and async, powers of four
 * from 16 bytes and `sizes`; held-out sizes in between.  fr_vec_release() it,
 * also after a failure. */
FR_CHECKED fr_status fr_comm_list_fill(fr_comm_list *list,
                                       const fr_comm_wanted *wanted,
                                       fr_err *err);

typedef struct fr_comm_bench fr_comm_bench;

/*
 * All points must agree in is_async and in being transfers or not; sizes
 * should be alike, for a round times all of them.  Opens the transport's
 * slab; collective.  Borrows the points and the transport.
 */
FR_CHECKED fr_status fr_comm_bench_create(const fr_comm_point *points, size_t n,
                                          const fr_fingerprint *machine,
                                          fr_transport *transport, int n_max,
                                          fr_comm_bench **out, fr_err *err);
void fr_comm_bench_destroy(fr_comm_bench *bench); /* takes NULL */
fr_bench fr_comm_bench_table(fr_comm_bench *bench);

#endif
