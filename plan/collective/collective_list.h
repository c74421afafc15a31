/*
 * collective_list.h: the rows of the table of collective algorithms.
 *
 * An algorithm is a file with one const fr_collective and one row here: NAME
 * makes FR_COLLECTIVE_NAME, the number that plans and instructions hold, and
 * ENTRY names its struct fr_collective_ENTRY (collective.h).
 */
#ifndef FR_PLAN_COLLECTIVE_COLLECTIVE_LIST_H
#define FR_PLAN_COLLECTIVE_COLLECTIVE_LIST_H

#include "core/document/names.h"

#define FR_COLLECTIVES(ROW)                                                    \
    ROW(RING, ring)                                                            \
    ROW(HALVING_DOUBLING, halving_doubling)                                    \
    ROW(TREE, tree)                                                            \
    ROW(DIRECT, direct)                                                        \
    ROW(DOUBLE_TREE, double_tree)                                              \
    ROW(HIERARCHICAL, hierarchical)                                            \
    ROW(NVLS, nvls)                                                            \
    ROW(SHARP, sharp)                                                          \
    ROW(PAIRWISE, pairwise)                                                    \
    ROW(PARAMETER_SERVER, server)                                              \
    ROW(SHIFT, shift)

#define FR_COLLECTIVE_KIND(name, entry) FR_COLLECTIVE_##name,
typedef enum fr_collective_kind {
    FR_COLLECTIVE_AUTO, /* no row: lowering, or NCCL, takes one */
    FR_COLLECTIVES(FR_COLLECTIVE_KIND) FR_COLLECTIVE_N
} fr_collective_kind;
#undef FR_COLLECTIVE_KIND

/* Rows of the table, AUTO counted. */
extern const int fr_n_collectives;

extern const fr_names fr_collective_names;

#endif
