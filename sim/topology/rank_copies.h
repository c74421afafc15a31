/*
 * rank_copies.h: how often the ranks of a plan repeat along dp.
 *
 * Where nodes are alike and nothing between them is narrower than their NICs,
 * moving every rank ahead along dp by so many that nodes come to lie on nodes
 * maps each group on one of the same axis and each rank on one of the same
 * stage.  Ranks that lie on one another do the same, so the first of them
 * stand for all: those of a plan with fewer dp, on the first nodes.
 */
#ifndef FR_SIM_TOPOLOGY_RANK_COPIES_H
#define FR_SIM_TOPOLOGY_RANK_COPIES_H

#include "plan/decide/grid.h"
#include "spec/cluster/cluster.h"

/*
 * How many ranks each of the first ones stands for, itself too, of a plan
 * whose program meets on `axes` and has peers on `peer_axes` (masks of
 * fr_axis); 1: nothing repeats.  It divides dp.  Groups of an axis either
 * stay as they are or have so many times as many members.
 */
int64_t fr_rank_copies(const fr_plan *plan, const fr_cluster *cluster,
                       const int32_t *node_of_rank, unsigned axes,
                       unsigned peer_axes);

#endif
