/*
 * grid.h: ranks and their coordinates on the axes of a plan's process grid, and
 * the groups that talk along an axis.
 */
#ifndef FR_PLAN_DECIDE_GRID_H
#define FR_PLAN_DECIDE_GRID_H

#include "plan/decide/plan.h"

/* Coordinates of a rank on TP, CP, DP, PP, and back (grid.c).  cp changes
 * right after tp in every order. */
typedef struct fr_coord {
    int32_t tp, cp, dp, pp;
} fr_coord;

fr_coord fr_plan_coord(const fr_plan *plan, int64_t rank);
int64_t fr_plan_rank(const fr_plan *plan, fr_coord coord);

/* Ranks of a group of the axis; EMBED: of one that has an end. */
int64_t fr_plan_group_size(const fr_plan *plan, fr_axis axis);

/* Does every group of the axis lie on one node?  node_of_rank NULL: yes.
 * O(ranks). */
bool fr_plan_axis_is_local(const fr_plan *plan, fr_axis axis,
                           const int32_t *node_of_rank);

/*
 * The group of `rank` on `axis`, in coordinate order; returns its size and
 * writes the ranks to `ranks` (room for the world) and the position of
 * `rank` in it (may be NULL).  EMBED: first and last stage, size 1 elsewhere.
 * ETP, EP, EDP: see fr_axis.  MODEL: tp fastest.  WORLD: rank order.
 */
int64_t fr_plan_group(const fr_plan *plan, int64_t rank, fr_axis axis,
                      int64_t *ranks, int64_t *position);

#endif
