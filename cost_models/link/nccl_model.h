/*
 * nccl_model.h: seconds of NCCL's collectives without calibration.
 *
 * Each algorithm and protocol is latency + bytes / rate, with the latencies
 * and limits of NCCL's tuner (nccl_constants.h) over the rates that links
 * reach (fabric_links.h); the one that takes least is taken, as the tuner
 * does.  With n members on n_nodes nodes, k = n / n_nodes, S bytes, c = 2
 * (n-1)/n for an all-reduce and (n-1)/n for its halves:
 *
 *   ring       c S through every member's port and every node's NICs
 *   tree       2 S through ports and (from 3 nodes on) NICs, 2 log2 n_nodes
 *              steps between nodes (double binary tree, as NCCL's)
 *   PAT        gather and scatter with one member per node in log2 steps
 *   NVLS       the switch adds: S (1 + 1/n) through each port, S n/(n-1) for
 *              the halves (as the tuner has it)
 *   NVLS tree  NVLS inside the nodes, a double tree per rail between them
 *   SHARP      (when asked for, where the network's switches add) NVLS or
 *              halves of a ring inside the nodes; the tuner gives the NICs a
 *              ring's c S for an all-reduce, and S for its halves
 *   pairs      all-to-all, point to point, and all to the next one
 *   hierarchy  (when asked for) scatter in the node, ring between, gather
 */
#ifndef FR_COST_MODELS_LINK_NCCL_MODEL_H
#define FR_COST_MODELS_LINK_NCCL_MODEL_H

#include "cost_models/link/fabric_links.h"
#include "plan/collective/collective.h"

typedef struct fr_nccl_ask {
    fr_op op;                  /* a collective, SEND or RECV */
    fr_collective_kind wanted; /* AUTO: what NCCL takes.  Algorithms that
                                  NCCL does not have for it: AUTO, too */
    fr_protocol protocol;      /* the same; goes with `wanted`: where no
                                  algorithm has both, NCCL chooses */
    double n_bytes;            /* fr_instr_payload_bytes */
    double n_copies;           /* all-to-all: of a row, spread evenly, of which
                                  a node is sent one, which goes on to each
                                  rank once; 0: all go their own ways */
} fr_nccl_ask;

typedef struct fr_nccl_time {
    const char *algorithm; /* "ring", "tree" ... */
    const char *protocol;  /* "LL", "LL128", "Simple" */
    double latency_s;      /* until the first byte moves, and hand-over */
    double work_s;         /* bytes over rates */
    double net_bytes;      /* per member and direction, see fr_cost */
    double port_bytes;
} fr_nccl_time;

/* Finds the time for a group of 2 or more whose links are otherwise idle.
 * Fails (false) only when the members of different nodes have no network. */
bool fr_nccl_time_of(const fr_gpu_fabric *fabric, const fr_group_links *links,
                     const fr_nccl_ask *ask, fr_nccl_time *out);

#endif
