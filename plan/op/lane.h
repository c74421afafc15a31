/*
 * lane.h: lanes of a rank.
 *
 * Each lane executes its calls in program order; different lanes overlap.
 * COMPUTE is the rank's main thread (or main stream), the others are driven by
 * its communication thread (or streams of their own).
 */
#ifndef FR_PLAN_OP_LANE_H
#define FR_PLAN_OP_LANE_H

typedef enum fr_lane {
    FR_LANE_COMPUTE,
    FR_LANE_DP,      /* gradient reduction, parameter gather */
    FR_LANE_PP_SEND, /* activations and gradients to the neighbour stages */
    FR_LANE_PP_RECV,
    FR_LANE_IO,     /* data loading, checkpoints, offload */
    FR_LANE_GATHER, /* parameters gathered ahead of their use */
    FR_LANE_TP,     /* collectives of a layer that run beside its products */
    FR_LANE_EP,     /* tokens to experts and back, beside another micro-batch */
    FR_LANE_N
} fr_lane;

const char *fr_lane_name(fr_lane lane);

#endif
