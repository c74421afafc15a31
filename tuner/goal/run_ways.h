/*
 * run_ways.h: what is chosen of a run beside its plan: how it saves, how many
 * nodes stand ready, which of its nodes are spot ones.  Each combination is a
 * way, and what a goal says of a plan is that of the best one.
 */
#ifndef FR_TUNER_GOAL_RUN_WAYS_H
#define FR_TUNER_GOAL_RUN_WAYS_H

#include "core/base/vec.h"
#include "reliability/checkpoint_interval.h"
#include "reliability/run_hazards.h"

enum { FR_RUN_SPARES = 16 };

/* The speeds of a run on n_devices when nodes are missing; borrowed. */
typedef struct fr_node_elastic {
    int64_t n_devices;
    fr_run_elastic elastic; /* down to as few as anything asks for */
} fr_node_elastic;

/* The choices of a run.  If all members are 0, there is no choice and the
 * hazards decide. */
typedef struct fr_run_choices {
    bool is_kind_free; /* of checkpoints */
    bool is_spot_free; /* any quarter of the nodes may be on demand */
    int n_spares;
    int64_t spares[FR_RUN_SPARES];
    int n_least_nodes; /* with which a run goes on; as many as it has, or more:
                          it waits */
    int64_t least_nodes[FR_RUN_SPARES];
    const fr_node_elastic *elastic; /* [n_elastic], borrowed; of other numbers
                                       of devices none can be missing */
    int n_elastic;
} fr_run_choices;

typedef struct fr_run_way {
    fr_run_conditions conditions;
    fr_run_stretch stretch; /* the effect of interruptions on the steps */
    double usd_per_h;       /* of all nodes; 0: not known */
    /* The same of them while all compute, and while they wait for each other, a
     * node, a restart or a checkpoint; and of the spares, all the time. */
    double training_kw, idle_kw, spares_kw;
    double spot_frac;    /* of the nodes */
    int64_t least_nodes; /* 0: all of them */
    fr_checkpoint_kind kind;
} fr_run_way;

typedef fr_vec(fr_run_way) fr_run_way_list;

/* The share of a run with such a stretch in which it does steps, useful or
 * lost. */
double fr_run_stepping_frac(const fr_run_stretch *stretch);

/* The inputs from which ways to run are made. */
typedef struct fr_run_site {
    const fr_run_hazards *hazards; /* as a user says them */
    const fr_run_choices *choices;
    const fr_cluster *cluster;
    int64_t n_nodes, n_devices;
    uint64_t state_bytes; /* of a checkpoint */
    double training_w;    /* of the nodes while all compute */
} fr_run_site;

/*
 * Lists the Pareto front over cost, energy, time and reliability; ways with a
 * checkpoint every fixed number of steps are all listed.  The list has at least
 * one way.
 */
FR_CHECKED fr_status fr_run_ways_list(const fr_run_site *site,
                                      fr_run_way_list *out, fr_err *err);

/* Shows all of them, one after the other, to be looked at once; the best by any
 * goal is one of the list, to the last bit. */
typedef void (*fr_run_way_fn)(void *context, const fr_run_way *way);
void fr_run_ways_visit(const fr_run_site *site, fr_run_way_fn visit,
                       void *context);

#endif
