/*
 * bench_machine.h: what the machine does at best, whatever the model: matrix
 * products, memory, storage; the sentinel; and the runtime's own overheads.
 */
#ifndef FR_CALIBRATE_CPU_BENCH_MACHINE_H
#define FR_CALIBRATE_CPU_BENCH_MACHINE_H

#include "calibrate/sampler.h"
#include "runtime/comm/transport.h"

/* The sentinel of a schedule: a small product in the core's own caches. */
typedef struct fr_sentinel fr_sentinel;
FR_CHECKED fr_status fr_sentinel_create(fr_sentinel **out, fr_err *err);
void fr_sentinel_destroy(fr_sentinel *sentinel); /* takes NULL */
/* The signature of fr_sampling.sentinel. */
FR_CHECKED fr_status fr_sentinel_run(void *sentinel, double *out_s,
                                     fr_err *err);

/*
 * Rates "sgemm", "axpy" (12 bytes per element) by threads, alone and with all
 * local ranks; "write", "read" of a file in `dir` (rank 0).  Collective;
 * rank 0's profile gets the points.
 */
FR_CHECKED fr_status fr_bench_rates(fr_transport *transport, const char *dir,
                                    const fr_sampling *schedule,
                                    fr_profile *profile, fr_err *err);

/* "write" and "read" alone. */
FR_CHECKED fr_status fr_bench_storage(fr_transport *transport, const char *dir,
                                      const fr_sampling *schedule,
                                      fr_profile *profile, fr_err *err);

/* instr_overhead_s, call_overhead_s, wake_s of the runtime.  Collective. */
FR_CHECKED fr_status fr_bench_overheads(fr_transport *transport,
                                        fr_profile *profile, fr_err *err);

/* Measures the memory of a rank beyond its slab with a run of an empty
 * program. */
FR_CHECKED fr_status fr_bench_baseline(fr_transport *transport,
                                       uint64_t *out_bytes, fr_err *err);

#endif
