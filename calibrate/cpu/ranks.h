/*
 * ranks.h: what the ranks of a calibration say to each other.
 */
#ifndef FR_CALIBRATE_CPU_RANKS_H
#define FR_CALIBRATE_CPU_RANKS_H

#include "runtime/comm/transport.h"

/* Nobody leaves before everybody came; at once where the world is 1. */
FR_CHECKED fr_status fr_ranks_barrier(fr_transport *transport, fr_err *err);

/* Everybody gets rank 0's bytes; the signature of fr_sampling.share. */
FR_CHECKED fr_status fr_ranks_share(void *transport, void *bytes,
                                    size_t n_bytes, fr_err *err);

/* The transport's open_slab, after everybody has left the slab before. */
FR_CHECKED fr_status fr_ranks_open_slab(fr_transport *transport,
                                        uint64_t n_bytes, fr_err *err);

/*
 * Sets *out_s to the offset of this rank's clock (fr_clock_s) from rank 0's: 0
 * where all ranks are on one machine; else from the fastest of some exchanges
 * (Cristian, Distributed Computing 3, 1989), accurate to half the time of that
 * exchange.
 */
FR_CHECKED fr_status fr_ranks_clock_offset(fr_transport *transport,
                                           double *out_s, fr_err *err);

/* Sets *out to the directory in which the storage is timed: on rank 0 its own;
 * on other ranks, which write nothing, "/".  NULL on all ranks if rank 0 has
 * none. */
FR_CHECKED fr_status fr_ranks_scratch_dir(fr_transport *transport,
                                          const char *own, const char **out,
                                          fr_err *err);

#endif
