/*
 * rank_layout.h: where ranks sit and whom they meet, as tables: the node,
 * place and network rail of each rank, and its group on every axis that a
 * program uses.  Each group is listed once for all its members.
 *
 * Of ranks that repeat along dp (rank_copies.h) the first are listed, as those
 * of a grid of their own: a rank's number here is its number there.  Scopes
 * count all members of a group.
 */
#ifndef FR_SIM_TOPOLOGY_RANK_LAYOUT_H
#define FR_SIM_TOPOLOGY_RANK_LAYOUT_H

#include "core/base/vec.h"
#include "cost_models/base/cost.h"
#include "program/ir/program.h"
#include "spec/cluster/cluster.h"

/* All ranks in groups: those of an axis, of a node, of a rail. */
typedef struct fr_rank_groups {
    int32_t n_groups;       /* 0: not used by the program */
    int32_t *group_of_rank; /* [n_ranks] */
    int32_t *first;         /* [n_groups + 1] in members */
    int32_t *members;       /* [n_ranks] ranks, coordinate order */
    fr_comm_scope *scopes;  /* [n_groups], axes only */
} fr_rank_groups;

/* A peer of a rank program by point to point. */
typedef struct fr_peer {
    uint8_t axis;
    int16_t coordinate;
} fr_peer;

typedef struct fr_rank_layout {
    const fr_program *program;
    const fr_cluster *cluster;
    fr_plan grid;     /* the program's plan with the dp that is listed */
    int64_t n_copies; /* ranks that each one stands for; 1: itself */
    int64_t n_ranks;  /* listed: of the grid */
    int64_t n_nodes;  /* the first of the cluster, which hold them */
    int32_t *program_of_rank; /* number of its rank program */
    int32_t *local;           /* number of the rank on its node */
    fr_rank_groups node;
    fr_rank_groups rail;    /* GPU nodes: ranks that share a NIC; n_groups 0: no
                             node has NICs per device */
    int32_t *node_of_group; /* cluster node of each group of `node` */
    fr_rank_groups axes[FR_AXIS_N];
    uint16_t *axes_of_stage; /* [n_rank_programs] mask: of its collectives */
    fr_vec(fr_peer) peers;   /* rank program by rank program */
    uint32_t *first_peer;    /* [n_rank_programs + 1] */
} fr_rank_layout;

/* node_of_rank[world]; borrows program and cluster.  is_whole: every rank is
 * listed. */
FR_CHECKED fr_status fr_rank_layout_init(const fr_program *program,
                                         const fr_cluster *cluster,
                                         const int32_t *node_of_rank,
                                         bool is_whole, fr_rank_layout *out,
                                         fr_err *err);
void fr_rank_layout_release(fr_rank_layout *layout);

/* The number of a listed rank in the program's plan. */
int64_t fr_rank_layout_number(const fr_rank_layout *layout, int32_t rank);

/* Does anybody meet others on an axis? */
bool fr_rank_layout_meets(const fr_rank_layout *layout, int axis);

/* Ranks of a group of a partition. */
static inline int32_t fr_rank_groups_size(const fr_rank_groups *p,
                                          int32_t group)
{
    return p->first[group + 1] - p->first[group];
}

/* The rank at a coordinate of another one's group. */
static inline int32_t fr_rank_layout_peer(const fr_rank_layout *layout,
                                          int32_t rank, int axis,
                                          int coordinate)
{
    const fr_rank_groups *p = &layout->axes[axis];
    return p->members[p->first[p->group_of_rank[rank]] + coordinate];
}

/* The cluster's node of a rank. */
static inline int32_t fr_rank_layout_node(const fr_rank_layout *layout,
                                          int32_t rank)
{
    return layout->node_of_group[layout->node.group_of_rank[rank]];
}

/* Is it a GPU node? */
bool fr_rank_layout_is_gpu(const fr_rank_layout *layout, int32_t rank);

/* Returns the compute speed relative to the normal one: of the node, on GPU
 * nodes also of the device. */
double fr_rank_layout_compute_frac(const fr_rank_layout *layout, int32_t rank);

/* The bit of its node's type in the node_types of a scope. */
uint32_t fr_rank_layout_type_bit(const fr_rank_layout *layout, int32_t rank);

/* All NICs of the rank's rail together, one direction; 0: none. */
double fr_rank_layout_rail_Bps(const fr_rank_layout *layout, int32_t rank);

#endif
