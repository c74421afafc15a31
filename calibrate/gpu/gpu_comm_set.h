/*
 * gpu_comm_set.h: one group of ranks and all that it is asked to communicate,
 * as a small program of the runtime's: collectives over an axis of a plan, or
 * a transfer there and back between two stages of one.
 */
#ifndef FR_CALIBRATE_GPU_GPU_COMM_SET_H
#define FR_CALIBRATE_GPU_GPU_COMM_SET_H

#include "program/ir/program.h"
#include "runtime/comm/transport.h"
#include "spec/profile/profile.h"

typedef struct fr_gpu_comm_set {
    fr_plan plan; /* of all ranks */
    fr_axis axis; /* PP: transfers between stages and back */
    int32_t stage[2];
    int64_t *members; /* ranks; of the group of rank 0, or the two stages' */
    int64_t n_members;
    int64_t n_nodes;       /* that they sit on */
    fr_comm_point *points; /* by op, then size */
    size_t n_points;
    uint32_t *i_instr[2]; /* [n_points]; transfers: of the first stage, of the
                             second (its first one) */
    uint32_t i_align;     /* an all-reduce of one element; else unused */
    fr_program *program;
    uint64_t slab_bytes, dst_bytes; /* the second: place of results */
} fr_gpu_comm_set;

typedef struct fr_gpu_comm_group {
    fr_axis axis;
    int32_t n_group;  /* collectives: tp of the plan, dp takes the rest */
    int32_t stage[2]; /* transfers */
    uint64_t most_bytes;
    bool is_quick;
} fr_gpu_comm_group;

/* Pure function of its arguments, so the same on every rank. */
FR_CHECKED fr_status fr_gpu_comm_set_init(const fr_transport *transport,
                                          const fr_gpu_comm_group *group,
                                          fr_gpu_comm_set *out, fr_err *err);
void fr_gpu_comm_set_release(fr_gpu_comm_set *set);
bool fr_gpu_comm_set_has(const fr_gpu_comm_set *set, int64_t rank);

/* Collectives of one element over the first n_lanes lanes, for the memory of
 * communicators. */
FR_CHECKED fr_status fr_gpu_comm_set_lanes(const fr_transport *transport,
                                           int32_t n_group, int n_lanes,
                                           fr_program **out, fr_err *err);

#endif
