/*
 * comm_fit.h: seconds of a collective or a transfer by size.
 *
 * Measured sizes are joined by a monotone curve (log over log); a group of
 * another size than the measured ones takes the shape of the algorithm's
 * closed form (collective.h), through the measured curve.
 *
 * Scopes of the profile's points: FR_PROFILE_SCOPE_SHM inside a node,
 * FR_PROFILE_SCOPE_NET between nodes, and "net:4" between just 4 nodes, where
 * groups of the same size lie differently (n_group 32 on 4 and on 32 nodes).
 * Points without an algorithm (nccl-tests) are the library's own choice: AUTO.
 */
#ifndef FR_COST_MODELS_LINK_COMM_FIT_H
#define FR_COST_MODELS_LINK_COMM_FIT_H

#include "plan/collective/collective.h"
#include "spec/profile/profile.h"

typedef struct fr_comm_fits fr_comm_fits;

/* Borrows nothing; a profile without communication gives an empty set. */
FR_CHECKED fr_status fr_comm_fits_create(const fr_profile *profile,
                                         fr_comm_fits **out, fr_err *err);
void fr_comm_fits_destroy(fr_comm_fits *fits); /* takes NULL */

typedef struct fr_comm_query {
    fr_op op; /* SEND and RECV are one */
    fr_collective_kind algorithm;
    bool is_net, is_async;
    bool is_cold; /* the payload is in memory, not in a cache */
    int64_t n_group;
    int64_t n_nodes; /* 0: as few as there are members on the network */
    uint64_t n_bytes;
    uint64_t element_bytes;
    fr_servers servers; /* counted; all zero where none carry it out */
} fr_comm_query;

typedef struct fr_comm_answer {
    double seconds;
    double latency_s; /* of these, what the smallest message takes too */
    double cpu_frac;
    double rel_err;
    bool is_measured; /* this very size and group */
    bool is_inside;   /* of the measured range and group */
} fr_comm_answer;

/* False when nothing of the kind was measured. */
bool fr_comm_fits_ask(const fr_comm_fits *fits, const fr_comm_query *query,
                      fr_comm_answer *out);

/* Link constants of the measured point-to-point transfers; false if none. */
bool fr_comm_fits_link(const fr_comm_fits *fits, bool is_net,
                       fr_link_cost *out);

#endif
