/*
 * replay_links.h: the resources of a replay as links of the max-min solver,
 * and costs as flows over them.
 *
 * A flow moves in core-seconds per second: an instruction that keeps `cores`
 * busy has that as its highest rate, so that threads which share a core get
 * equal shares of it, as an operating system gives them, and a communication
 * thread that needs little is not slowed at all.  A GPU rank has one core: all
 * multiprocessors of its device.
 *
 * Where actors stand for several ranks, a flow stands for those of all of
 * them, and takes of each link what they take together.
 */
#ifndef FR_SIM_REPLAY_REPLAY_LINKS_H
#define FR_SIM_REPLAY_REPLAY_LINKS_H

#include "cost_models/base/cost.h"
#include "sim/engine/maxmin.h"
#include "sim/replay/actors.h"

enum { FR_DEMAND_NETS = 6 };

/* The share of each link that a member of a flow takes at the flow's highest
 * rate. */
typedef struct fr_demand {
    fr_work work;
    int64_t cap;
    double unit_cores; /* the flow's rate in cores when nothing holds it back */
    double cores;      /* over unit_cores */
    double memory;     /* of the node's channels, over unit_cores */
    double port_Bps;   /* into the node's fabric */
    bool is_comm_thread;
    bool is_transfer; /* first member sends, second receives */
    uint8_t n_nets;
    struct {
        double Bps;                   /* through the NIC */
        const fr_fabric_flow *fabric; /* NULL: nothing beyond it */
        bool is_local;                /* inside the node, through no NIC */
    } nets[FR_DEMAND_NETS];
} fr_demand;

typedef struct fr_fabric_load fr_fabric_load;

typedef struct fr_replay_links {
    const fr_actors *actors;
    const fr_fabric_uses *fabric;
    int n_threads;
    int32_t n_places, n_rails, n_fabric;
    int32_t *place;    /* [n actors] */
    int32_t *rail;     /* [n actors] */
    int32_t *on_place; /* [n actors] ranks of the colour there */
    int32_t *on_rail;
    bool *is_gpu;         /* [n_places] */
    double *nic_Bps;      /* [n_places], 0 where ranks have rails */
    double *rail_Bps;     /* [n_rails] */
    double *port_Bps;     /* [n_places] of one rank; 0: not told */
    int32_t *fabric_link; /* [links of the fabric] number here, -1: none */
    fr_fabric_load *load; /* the crossings of ranks; NULL: none */
    int64_t *capacity;    /* [n_links] */
    size_t n_links;
    fr_maxmin *maxmin;       /* NULL: only asked for solo rates */
    fr_maxmin_use *uses;     /* scratch: room for all links */
    uint32_t *place_in_uses; /* [n_links] UINT32_MAX: not among them */
    bool is_exceeded; /* a flow needs more of a link than can be said: the
                         actors stand for too many */
} fr_replay_links;

FR_CHECKED fr_status fr_replay_links_init(const fr_actors *actors,
                                          const fr_fabric_uses *fabric,
                                          int n_threads, bool has_solver,
                                          fr_replay_links *out, fr_err *err);
void fr_replay_links_release(fr_replay_links *links);

/* Returns the demand of a cost. traffic has the links beyond the NIC that its
 * bytes cross; NULL: none. */
fr_demand fr_demand_of(const fr_cost *cost, bool is_comm_thread,
                       bool is_transfer, const fr_fabric_flow *traffic);

/* Adds bytes that stay inside the node and cross `traffic` there. */
void fr_demand_add_local(fr_demand *demand, double Bps,
                         const fr_fabric_flow *traffic);

/* Starts a flow for members[n] (actors); `tag` comes back when it ends, *flow
 * is the solver's handle until then. */
FR_CHECKED fr_status fr_replay_links_start(fr_replay_links *links,
                                           const fr_demand *demand,
                                           const int32_t *members, int64_t n,
                                           uint32_t tag, uint32_t *flow,
                                           fr_err *err);

/*
 * Picoseconds of the flow with nothing beside it but what stands for the
 * same actors: a group's collective runs at the same time as that of every
 * group alike.
 */
int64_t fr_replay_links_solo_ps(fr_replay_links *links, const fr_demand *demand,
                                const int32_t *members, int64_t n);

#endif
