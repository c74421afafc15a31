/*
 * axis.h: axes of the process grid.
 *
 * The group of a rank on an axis is the ordered list of ranks that differ from
 * it in that coordinate only; MODEL varies tp and pp (all ranks that hold one
 * replica), WORLD is everyone, EMBED is the first and the last pipeline stage
 * (tied embedding).
 *
 * DP holds all ranks with the same dense parameters: dp and cp vary, cp
 * fastest.  ZeRO may share a copy among fewer: DP is then cut into blocks of
 * zero_group neighbours (SHARD), REPLICA joins the same place of all blocks.
 * Experts lie on a grid of their own over the ranks of a stage in the order
 * tp, cp, dp: etp ranks split an expert (ETP), ep ranks share the experts
 * (EP), the rest hold the same experts (EDP).
 */
#ifndef FR_PLAN_OP_AXIS_H
#define FR_PLAN_OP_AXIS_H

typedef enum fr_axis {
    FR_AXIS_NONE,
    FR_AXIS_TP,
    FR_AXIS_CP,
    FR_AXIS_EP,
    FR_AXIS_DP,
    FR_AXIS_PP,
    FR_AXIS_EMBED,
    FR_AXIS_MODEL,
    FR_AXIS_WORLD,
    FR_AXIS_SHARD,
    FR_AXIS_REPLICA,
    FR_AXIS_ETP,
    FR_AXIS_EDP,
    FR_AXIS_N
} fr_axis;

const char *fr_axis_name(fr_axis axis);

#endif
