/*
 * replay_links.h: the resources of a replay as links of the max-min solver,
 * and costs as flows over them.
 *
 * A flow moves in core-seconds per second: an instruction that keeps `cores`
 * busy has that as its highest rate, so that threads which share a core get
 * equal shares of it, as an operating system gives them, and a communication
 * thread that needs little is not slowed at all.
 */
#ifndef FR_SIM_REPLAY_LINKS_H
#define FR_SIM_REPLAY_LINKS_H

#include "cost_models/cost.h"
#include "sim/maxmin.h"
#include "spec/cluster.h"

typedef struct fr_replay_links {
    const fr_cluster *cluster;
    const int32_t *node_of_rank;
    int64_t n_ranks, n_nodes;
    int n_threads;
    double *nic_Bps; /* [n_nodes] */
    fr_maxmin *maxmin;
    fr_maxmin_use *uses; /* room for the largest group */
} fr_replay_links;

FR_CHECKED fr_status fr_replay_links_init(const fr_cluster *cluster,
                                          const int32_t *node_of_rank,
                                          int64_t n_ranks, int n_threads,
                                          fr_replay_links *out, fr_err *err);
void fr_replay_links_release(fr_replay_links *links);

/*
 * Starts a flow for members[n]; `tag` comes back when it ends.  Communication
 * and what asynchronous lanes compute is the communication thread's.
 */
FR_CHECKED fr_status fr_replay_links_start(fr_replay_links *links,
                                           const fr_cost *cost,
                                           bool is_comm_thread,
                                           const int32_t *members, int64_t n,
                                           uint32_t tag, fr_err *err);

#endif
