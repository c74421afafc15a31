/*
 * collective.h: collective algorithms as lists of transfers.
 *
 * One emit per algorithm: the CPU runtime executes it, the simulator replays
 * it, the closed form is bound to it by a contract test.
 */
#ifndef FR_PLAN_COLLECTIVE_COLLECTIVE_H
#define FR_PLAN_COLLECTIVE_COLLECTIVE_H

#include "plan/collective/transfer.h"
#include "plan/decide/plan.h"
#include "plan/op/op.h"

/* Does the axis carry gradients and parameters: is it one that the plan's
 * collective, protocol and channels are about? */
bool fr_collective_is_of_data(fr_axis axis);
/* Writes the plan's protocol and channels into a collective that they are
 * about. */
void fr_collective_tell(const fr_plan *plan, fr_instr *instr);
/* Does the plan leave anything of it not to NCCL? */
bool fr_collective_has_choice(const fr_plan *plan);

/* A collective of a step that a library of GPUs carried out. */
typedef struct fr_collective_note {
    fr_op op;
    fr_axis axis;
    /* The plan's settings for the library; AUTO, 0: the library chooses. */
    fr_collective_kind algorithm;
    fr_protocol protocol;
    int32_t n_channels;
    int64_t n_group;
    uint64_t n_bytes; /* fr_instr_payload_bytes */
    /* Plans of this operation that the library made on the communicator, and
     * how many of them could be made as told. */
    int64_t n_asked, n_granted;
    double estimate_s; /* by the library's own model; 0: not known */
} fr_collective_note;

/* The link as a closed form sees it. */
typedef struct fr_link_cost {
    double latency_s;
    double s_per_byte;
    double reduce_s_per_byte; /* adding the received bytes in */
} fr_link_cost;

/* The algorithms of NCCL's model (nccl_model.c). */
typedef enum fr_nccl_algorithm {
    FR_NCCL_NO_ALGORITHM,
    FR_NCCL_RING,
    FR_NCCL_TREE,
    FR_NCCL_NVLS,
    FR_NCCL_SHARP,
    FR_NCCL_PAIRS,
    FR_NCCL_HIERARCHY
} fr_nccl_algorithm;

/*
 * Working buffer of each member: ALL_REDUCE n elements in place;
 * REDUCE_SCATTER n elements, result of member i at [i*n/g, (i+1)*n/g);
 * ALL_GATHER the same layout, member i's part filled at the start.
 * ALL_TO_ALL src and dst are two buffers of n elements: src_first is in the
 * source's src, dst_first in the destination's dst; the own slice stays out.
 * n need not divide by g for ALL_REDUCE; it must for the others.
 */
typedef struct fr_collective {
    const char *name;
    const char *summary;
    /* The part that the runtime lacks to execute the algorithm ("a parameter
     * server"); NULL: it executes the algorithm. */
    const char *not_executable;
    bool is_internal;    /* lowering takes it by itself; nobody asks for it */
    bool is_direct;      /* everybody reads what lies with the others, which
                            shared memory does without copies */
    bool is_by_servers;  /* members send to servers, not to each other */
    bool is_whole;       /* an all-reduce takes the whole payload through the
                            link of a member in each direction */
    bool has_nccl;       /* NCCL has it, and can be told to take it */
    bool is_simple_only; /* and does so with protocol Simple alone */
    fr_nccl_algorithm nccl; /* of NCCL's model that stands for it on GPUs */
    /* Does it implement `op` for a group of this size? */
    bool (*fits)(fr_op op, int64_t n_group);
    /* Into an empty list. */
    FR_CHECKED fr_status (*emit)(fr_op op, int64_t n_group, uint64_t n,
                                 fr_transfer_list *list, fr_err *err);
    /* Seconds with all links idle and equal (source: Thakur, Rabenseifner,
     * Gropp, IJHPCA 19(1), 2005), element_bytes per element. */
    double (*idle_s)(fr_op op, int64_t n_group, uint64_t n,
                     uint64_t element_bytes, const fr_link_cost *link);
} fr_collective;

/* Indexed by fr_collective_kind, fr_n_collectives with AUTO, which has no
 * entry (NULL). */
extern const fr_collective *const fr_collectives[];

/* NCCL's algorithm that stands for an entry, also for AUTO, which has none. */
fr_nccl_algorithm fr_collective_nccl(fr_collective_kind kind);
/* An algorithm that GPUs have and our runtime has not: a plan with it is
 * lowered for simulation alone. */
fr_collective_kind fr_collective_of_simulation(void);
/* Is it one that parameter servers carry out? */
bool fr_collective_is_by_servers(fr_collective_kind kind);

/* The entries, one file each. */
#define FR_COLLECTIVE_ENTRY(name, entry)                                       \
    extern const fr_collective fr_collective_##entry;
FR_COLLECTIVES(FR_COLLECTIVE_ENTRY)
#undef FR_COLLECTIVE_ENTRY

/* Seconds of a collective whose halves, reduction and gathering, move alike. */
double fr_collective_halves_s(fr_op op, double move_s, double reduce_s);

/* Hierarchical over n_nodes nodes of n_local members, with one link inside the
 * nodes and another one between them. */
double fr_hierarchical_idle_s(fr_op op, int64_t n_nodes, int64_t n_local,
                              double n_bytes, const fr_link_cost *inside,
                              const fr_link_cost *between);

/*
 * Parameter servers of a group (fr_server_place), the payload divided over
 * them.  On the host a node's server is its first member, and the first nodes
 * serve; else the first members do.
 */
typedef struct fr_servers {
    fr_server_place place;
    int64_t n_servers; /* 0: all nodes (DEVICE: members) */
    int64_t n_group, n_nodes;
} fr_servers;

/* Returns the servers of an instruction. */
fr_servers fr_servers_asked(const fr_instr *instr, int64_t n_group,
                            int64_t n_nodes);
/* Sets *out to the number of servers; FR_INPUT: there are fewer nodes (members)
 * than asked for. */
FR_CHECKED fr_status fr_servers_count(const fr_servers *servers, int64_t *out,
                                      fr_err *err);
/*
 * Appends to an empty list.  What is pushed to a server stands in the order in
 * which it is added by messages: of the members after it, round to the one
 * before it.  node_of_member[n_group]: n_nodes different numbers; NULL: one
 * node.
 */
FR_CHECKED fr_status fr_servers_emit(const fr_servers *servers,
                                     const int32_t *node_of_member, uint64_t n,
                                     fr_transfer_list *list, fr_err *err);
/*
 * Seconds of n_servers over one link: push and pull with the busier of a
 * server's and a member's, 2 (alpha + beta max((g-1) n / s, n)), and the sums;
 * and of all that the group does, with one link inside the nodes and another
 * one between them, for a number of servers that fr_servers_count() gave.
 */
double fr_server_idle_s(int64_t n_group, int64_t n_servers, double n_bytes,
                        const fr_link_cost *link);
double fr_servers_idle_s(const fr_servers *servers, double n_bytes,
                         const fr_link_cost *inside,
                         const fr_link_cost *between);

/*
 * The algorithm of one collective: `wanted` where it does `op` for n_group
 * members; else (and for AUTO) one that the runtime can execute: DIRECT when
 * the members share a node, halving and doubling for small payloads, and the
 * ring.  GPUs: NCCL chooses when it runs (nccl_model.h).
 */
fr_collective_kind fr_collective_choose(fr_collective_kind wanted, fr_op op,
                                        int64_t n_group, uint64_t n_bytes,
                                        bool is_on_one_node);

#endif
