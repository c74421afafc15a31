/*
 * run_hazards.h: what interrupts a run on a cluster, and what saving it takes:
 * from what a user says, else from the cluster, else from what was published.
 *
 * Facts for what nobody says.  A device between failures of any kind: 419
 * unexpected interruptions of 16,384 H100 in 54 days (Llama 3, arXiv
 * 2407.21783, section 3.3.4).  Of them 78 % were hardware, which takes a node
 * away, and 7 were hangs, found by NCCL's watchdog (table 5), whose time-out
 * is ten minutes (PyTorch, torch/distributed/constants.py,
 * default_pg_nccl_timeout).  Processes start on nodes that the job has; its
 * first start waits five minutes for the scheduler, images and packages (a job
 * of a thousand GPUs; DLRover, docs/blogs/stabilize_llm_training_cn.md).  Spot
 * nodes were away for 0.8 to 1.1 hours at a time in the zones that have them
 * mostly (V100 of AWS us-west-2, SkyPilot's traces of February 2023), and go
 * together: nodes lost in one event, of those asked for, are 0.06 (p3 and g4dn,
 * Bamboo's traces, NSDI 2023) to 1.05 (those that came back meanwhile count
 * again; six traces of SkyPilot, NSDI 2024), 0.85 in the middle of eight.
 */
#ifndef FR_RELIABILITY_RUN_HAZARDS_H
#define FR_RELIABILITY_RUN_HAZARDS_H

#include "cost_models/storage/checkpoint_cost.h"
#include "reliability/run_conditions.h"
#include "spec/profile/running_costs.h"
#include "spec/run/run_events.h"

/* The hazards that a user gives.  All members are 0 if nothing is given, except
 * restart_s, n_spares, repair_s and spot_*, which are negative then. */
typedef struct fr_run_hazards {
    double device_mtbf_s; /* instead of all that the cluster has */
    double restart_s;     /* all until training goes on */
    fr_checkpoint_kind checkpoint_kind;
    int64_t every_steps; /* between checkpoints; 0: the best */
    fr_storage_rates storage;
    int64_t n_spares; /* nodes that stand ready; < 0: there always is one */
    double repair_s;  /* until a node that failed is back */
    bool is_spot;
    double spot_frac;    /* of the nodes, the others are on demand; 0: all */
    double spot_every_s; /* of a node */
    double spot_wait_s;
    double spot_together_frac; /* of the nodes go at once */
    fr_run_events events;
    fr_running_costs measured; /* of forerun's own runs on these machines */
} fr_run_hazards;

/* Nothing said. */
fr_run_hazards fr_run_hazards_none(void);

typedef struct fr_run_met {
    fr_run_conditions conditions; /* its step is not set */
    fr_checkpoint_cost checkpoint;
    double job_mtbf_s; /* HUGE_VAL: no failures are known */
    bool is_mtbf_assumed, is_restart_assumed;
    bool lacks_spot_rate; /* nobody said how often spot nodes go: as if never */
} fr_run_met;

/* Returns the conditions of n_devices on the first n_nodes of a cluster, with a
 * state of state_bytes, counted once. */
fr_run_met fr_run_meet(const fr_run_hazards *hazards, const fr_cluster *cluster,
                       int64_t n_nodes, int64_t n_devices,
                       uint64_t state_bytes);

#endif
