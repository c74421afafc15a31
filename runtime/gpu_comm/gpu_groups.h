/*
 * gpu_groups.h: which communicators a program needs, and who takes part.
 *
 * One for each (axis, lane) of collectives, so that lanes never wait for each
 * other but where the program says so; one of two ranks for each direction
 * between two stages, because operations of one communicator run in order on
 * both sides.  NCCL matches by order, not by tag: where a receiver takes
 * several boundaries of one sender in another order than they are sent, each
 * boundary gets its own.
 *
 * All are splits of the world, made in the same order on every rank; pairs
 * that share no rank are one split.  Pure functions of the program.
 */
#ifndef FR_RUNTIME_GPU_COMM_GPU_GROUPS_H
#define FR_RUNTIME_GPU_COMM_GPU_GROUPS_H

#include "program/ir/program.h"

/* One collective call of split(), and this rank's part in it. */
typedef struct fr_gpu_split {
    int32_t colour; /* FR_GPU_NO_COLOUR: takes no part */
    int32_t key;
    bool is_pair;
    uint8_t axis, lane; /* of a group; pairs: FR_AXIS_PP and the own lane */
} fr_gpu_split;

/* The way in which this rank carries out one communication instruction. */
typedef struct fr_gpu_route {
    int32_t i_split; /* -1: a group of one, nothing to communicate */
    int32_t peer;    /* SEND, RECV: 1 or 0; BROADCAST: the root's place */
    int32_t n_group, position;
    int64_t peer_rank; /* SEND, RECV: in the world; else -1 */
} fr_gpu_route;

typedef struct fr_gpu_groups {
    uint32_t n_splits;
    fr_gpu_split *splits;
    uint32_t n_instrs;
    fr_gpu_route *routes; /* [n_instrs]; meaningless where this rank has not
                             the instruction */
} fr_gpu_groups;

/* FR_CHECK: a transfer that no axis but the pipeline's has. */
FR_CHECKED fr_status fr_gpu_groups_init(const fr_program *program, int64_t rank,
                                        fr_gpu_groups *out, fr_err *err);
void fr_gpu_groups_release(fr_gpu_groups *groups);

#endif
