/*
 * goal_option_list.h: the options of goals and of runs over weeks; a part of
 * option_list.h, where the columns are named.
 */
#ifndef FR_API_REQUEST_GOAL_OPTION_LIST_H
#define FR_API_REQUEST_GOAL_OPTION_LIST_H

#define FR_GOAL_OPTIONS(X)                                                     \
    X(GOAL, "goal", 0, CHOICE, "NAME", GOAL, &goal_names, 0, 0,                \
      "goal of the search")                                                    \
    X(DEADLINE, "deadline", 0, TEXT, "TIME", GOAL, 0, 0, 0,                    \
      "longest time of the run: 30d, 36h")                                     \
    X(MAX_COST, "max-cost", 0, REAL, "USD", GOAL, 0, 0, FR_NO_LIMIT,           \
      "largest cost of the run")                                               \
    X(MAX_ENERGY, "max-energy", 0, REAL, "KWH", GOAL, 0, 0, FR_NO_LIMIT,       \
      "largest energy of the run")                                             \
    X(MAX_DEVICES, "max-devices", 0, COUNT, "N", GOAL, 0, 1, FR_NO_LIMIT,      \
      "largest number of devices")                                             \
    X(MIN_HEADROOM, "min-headroom", 0, SHARE, "SHARE", GOAL, 0, 0, 1,          \
      "share of the memory that stays free")                                   \
    X(FIT_CONFIDENCE, "fit-confidence", 0, SHARE, "SHARE", GOAL, 0, 0, 0.9999, \
      "smallest probability that the plan fits the memory (0.9)")              \
    X(CRITICAL_BATCH, "critical-batch", 0, TEXT, "TOKENS", GOAL, 0, 0, 0,      \
      "critical batch size: a batch needs 1 + batch / TOKENS times the "       \
      "tokens")                                                                \
    X(SPOT, "spot", 0, FLAG, 0, GOAL, 0, 0, 0, "use spot prices")              \
    X(ON_DEMAND, "on-demand", 0, FLAG, 0, GOAL, 0, 0, 0,                       \
      "let tune choose the share of on-demand nodes, in quarters")             \
    X(FOR_DAYS, "for-days", 0, REAL, "DAYS", RUN, 0, 0.001, 36500,             \
      "report the first DAYS of the run; without --tokens or --steps: run "    \
      "for DAYS of steps (90)")                                                \
    X(RUNS, "runs", 0, COUNT, "N", RUN, 0, 1, 1000000,                         \
      "number of simulated runs (1000)")                                       \
    X(MTBF, "mtbf", 0, TIME, "TIME", RUN, 0, 1, 1e15,                          \
      "mean time between failures of one device: 50000h")                      \
    X(RESTART, "restart", 0, TIME, "TIME", RUN, 0, 0, 1e9,                     \
      "time from a failure until training continues: 10min")                   \
    X(CHECKPOINT_KIND, "checkpoint-kind", 0, CHOICE, "NAME", RUN,              \
      &fr_checkpoint_kind_names, 0, 0,                                         \
      "sync waits for the storage, async for a copy in the host's memory, "    \
      "memory also for a copy on another node")                                \
    X(STORAGE_WRITE, "storage-write", 0, TEXT, "RATE", RUN, 0, 0, 0,           \
      "write rate of the storage, for all nodes together: 100GB/s")            \
    X(STORAGE_READ, "storage-read", 0, TEXT, "RATE", RUN, 0, 0, 0,             \
      "read rate of the storage, for all nodes together")                      \
    X(SPARES, "spares", 0, COUNT, "N", RUN, 0, 0, 1000000,                     \
      "number of spare nodes, which are paid too (default: a spare is always " \
      "ready); tune takes a list")                                             \
    X(REPAIR, "repair", 0, TIME, "TIME", RUN, 0, 1, 1e9,                       \
      "with --spares: time until a failed node is back (24h)")                 \
    X(LEAST_NODES, "least-nodes", 0, COUNT, "N", RUN, 0, 1, 1000000,           \
      "with --spares: continue replanned on fewer nodes, down to N (default: " \
      "wait for a node); tune takes a list")                                   \
    X(BACKUP_WORKERS, "backup-workers", 0, COUNT, "N", RUN, 0, 0, 1000000,     \
      "finish a step without the last N data-parallel replicas, whose "        \
      "gradients are dropped (0)")                                             \
    X(MEETS, "meets", 0, TEXT, "EVENT,..", RUN, 0, 0, 0,                       \
      "further events: maintenance:4h@30d, evaluation:5min@1000 (steps), "     \
      "slow:2hx1.3@5000h (a slow node until it is noticed), rack:8@50000h "    \
      "(nodes at once)")                                                       \
    X(SPOT_EVERY, "spot-every", 0, TIME, "TIME", RUN, 0, 1, 1e15,              \
      "mean time until a spot node is taken away: 200h")                       \
    X(SPOT_TRACE, "spot-trace", 0, PATH, "FILE", RUN, 0, 0, 0,                 \
      "number of nodes over time, instead of --spot-every and --spot-wait "    \
      "(SkyPilot's JSON)")                                                     \
    X(SPOT_WAIT, "spot-wait", 0, TIME, "TIME", RUN, 0, 0, 1e9,                 \
      "mean time until spot nodes are back (1h)")                              \
    X(SPOT_TOGETHER, "spot-together", 0, SHARE, "SHARE", RUN, 0, 0, 1,         \
      "share of the nodes that are taken away at once (0.85); 0: one by one")  \
    X(SPOT_NOTICE, "spot-notice", 0, TIME, "TIME", RUN, 0, 0, 1e9,             \
      "warning before nodes are taken away: 2min; a checkpoint that takes "    \
      "less is saved (0s)")

#endif
