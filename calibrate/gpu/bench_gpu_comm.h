/*
 * bench_gpu_comm.h: collectives and transfers between GPUs, enqueued the way
 * the runtime does: through NCCL's communicators, or, where ranks share a
 * device, through the host.
 *
 * Groups of 2, 4, ... and of all ranks; with several nodes the group of one
 * rank of each; and transfers to the next rank, inside a node and between two.
 * Only the group that is timed is busy.  A group that fails (NCCL, memory)
 * is left out with a line in the log, on all ranks alike.
 */
#ifndef FR_CALIBRATE_GPU_BENCH_GPU_COMM_H
#define FR_CALIBRATE_GPU_BENCH_GPU_COMM_H

#include "calibrate/cpu/shapes.h"
#include "calibrate/gpu/gpu_comm_set.h"
#include "calibrate/gpu/gpu_rig.h"
#include "calibrate/sampler.h"
#include "runtime/gpu_comm/gpu_links.h"

typedef struct fr_gpu_comm_bench {
    fr_gpu_rig *rig;
    bool is_shared; /* several ranks on one device */
    bool is_quick;
    const fr_shapes *shapes; /* of the kernels beside */
    fr_sampling schedule;    /* budget of all groups together */
    fr_profile *profile;     /* rank 0's gets the points */
} fr_gpu_comm_bench;

/* Collective; does nothing where the world is 1. */
FR_CHECKED fr_status fr_gpu_bench_comm(const fr_gpu_comm_bench *bench,
                                       fr_err *err);

/* Between the files of this bench: links for a program on the rig's memory;
 * all ranks come to the same end.  is_estimated: the library is asked what it
 * expects of the collectives. */
FR_CHECKED fr_status fr_gpu_comm_connect(const fr_gpu_comm_bench *bench,
                                         const fr_program *program,
                                         bool is_estimated, fr_gpu_links **out,
                                         fr_err *err);
FR_CHECKED fr_status fr_gpu_comm_enqueue(const fr_gpu_comm_set *set,
                                         const fr_gpu_rig *rig,
                                         fr_gpu_links *links, uint32_t i_instr,
                                         fr_gpu_stream stream, fr_err *err);

/* bench_gpu_overlap.c: how the two slow each other down, as sharing points
 * ("linear_fwd" beside "all_reduce" ...), by the members of the set.  false, on
 * all ranks alike: something failed, and the links may still be at work. */
bool fr_gpu_bench_overlap(const fr_gpu_comm_bench *bench,
                          const fr_gpu_comm_set *set, fr_gpu_links *links);

/* Measures the memory of communicators into profile->gpu. */
FR_CHECKED fr_status fr_gpu_bench_comm_memory(const fr_gpu_comm_bench *bench,
                                              fr_err *err);

#endif
