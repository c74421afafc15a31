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

/* Can ranks repeat here at all: are nodes alike, with wide ways between them?
 */
bool fr_cluster_is_even(const fr_cluster *cluster);

/*
 * Returns the number of ranks that each of the first ones stands for, itself
 * included.  The program of the plan meets on `axes` and has peers on
 * `peer_axes` (masks of fr_axis); every node of an even cluster has
 * ranks_per_node ranks, node by node.  1: nothing repeats.  The number divides
 * dp.  Each group of an axis either is unchanged by the copies or has so many
 * times as many members.
 */
int64_t fr_rank_copies(const fr_plan *plan, int64_t ranks_per_node,
                       unsigned axes, unsigned peer_axes);

/* Ranks of each node, where all have as many and follow each other from the
 * first node on; else 0. */
int64_t fr_ranks_per_node(const int32_t *node_of_rank, int64_t n_ranks);

#endif
