/*
 * goal_option_list.h: the options of goals and of runs over weeks; a part of
 * option_list.h, where the columns are named.
 */
#ifndef FR_CLI_OPTION_GOAL_OPTION_LIST_H
#define FR_CLI_OPTION_GOAL_OPTION_LIST_H

#define FR_GOAL_OPTIONS(X)                                                     \
    X(GOAL, "goal", 0, CHOICE, "NAME", GOAL, &goal_names, 0, 0,                \
      "what is best")                                                          \
    X(DEADLINE, "deadline", 0, TEXT, "TIME", GOAL, 0, 0, 0,                    \
      "the run has to end in: 30d, 36h")                                       \
    X(MAX_COST, "max-cost", 0, REAL, "USD", GOAL, 0, 0, FR_NO_LIMIT,           \
      "the run may cost")                                                      \
    X(MAX_ENERGY, "max-energy", 0, REAL, "KWH", GOAL, 0, 0, FR_NO_LIMIT,       \
      "the run may take")                                                      \
    X(MAX_DEVICES, "max-devices", 0, COUNT, "N", GOAL, 0, 1, FR_NO_LIMIT,      \
      "the run may have")                                                      \
    X(MIN_HEADROOM, "min-headroom", 0, SHARE, "SHARE", GOAL, 0, 0, 1,          \
      "of the memory stays free")                                              \
    X(FIT_CONFIDENCE, "fit-confidence", 0, SHARE, "SHARE", GOAL, 0, 0, 0.9999, \
      "how likely a plan has to fit the memory (0.9)")                         \
    X(CRITICAL_BATCH, "critical-batch", 0, TEXT, "TOKENS", GOAL, 0, 0, 0,      \
      "larger batches take more tokens: 1 + batch / critical batch times")     \
    X(SPOT, "spot", 0, FLAG, 0, GOAL, 0, 0, 0, "at spot prices")               \
    X(ON_DEMAND, "on-demand", 0, FLAG, 0, GOAL, 0, 0, 0,                       \
      "with --spot: any quarter of the nodes may be on demand, as is best")    \
    X(FOR_DAYS, "for-days", 0, REAL, "DAYS", RUN, 0, 0.001, 36500,             \
      "tell of the first so many days; without --tokens or --steps: of as "    \
      "many days of steps (90)")                                               \
    X(RUNS, "runs", 0, COUNT, "N", RUN, 0, 1, 1000000,                         \
      "how often the run is simulated (1000)")                                 \
    X(MTBF, "mtbf", 0, TIME, "TIME", RUN, 0, 1, 1e15,                          \
      "mean time between failures of one device: 50000h")                      \
    X(RESTART, "restart", 0, TIME, "TIME", RUN, 0, 0, 1e9,                     \
      "from a failure to training again: 10min")                               \
    X(CHECKPOINT_KIND, "checkpoint-kind", 0, CHOICE, "NAME", RUN,              \
      &fr_checkpoint_kind_names, 0, 0,                                         \
      "sync: training waits for the storage; async: for a copy in the host's " \
      "memory; memory: and another node has one")                              \
    X(STORAGE_WRITE, "storage-write", 0, TEXT, "RATE", RUN, 0, 0, 0,           \
      "of the storage, all nodes together: 100GB/s")                           \
    X(STORAGE_READ, "storage-read", 0, TEXT, "RATE", RUN, 0, 0, 0,             \
      "the same of reading")                                                   \
    X(SPARES, "spares", 0, COUNT, "N", RUN, 0, 0, 1000000,                     \
      "nodes that stand ready, paid too; default: there always is one; tune "  \
      "takes a list")                                                          \
    X(REPAIR, "repair", 0, TIME, "TIME", RUN, 0, 1, 1e9,                       \
      "with --spares: until a node that failed is back (24h)")                 \
    X(LEAST_NODES, "least-nodes", 0, COUNT, "N", RUN, 0, 1, 1000000,           \
      "with --spares: with fewer nodes the run goes on, replanned, down to "   \
      "so many; default: it waits; tune takes a list")                         \
    X(BACKUP_WORKERS, "backup-workers", 0, COUNT, "N", RUN, 0, 0, 1000000,     \
      "a step goes on without the last N data-parallel replicas, whose "       \
      "gradients are dropped (0)")                                             \
    X(MEETS, "meets", 0, TEXT, "EVENT,..", RUN, 0, 0, 0,                       \
      "besides: maintenance:4h@30d, evaluation:5min@1000 (steps), "            \
      "slow:2hx1.3@5000h (a node until it is noticed), rack:8@50000h (nodes "  \
      "at once)")                                                              \
    X(SPOT_EVERY, "spot-every", 0, TIME, "TIME", RUN, 0, 1, 1e15,              \
      "mean time until one spot node is taken away: 200h")                     \
    X(SPOT_TRACE, "spot-trace", 0, PATH, "FILE", RUN, 0, 0, 0,                 \
      "instead of --spot-every and --spot-wait: how many nodes there were "    \
      "(SkyPilot's JSON)")                                                     \
    X(SPOT_WAIT, "spot-wait", 0, TIME, "TIME", RUN, 0, 0, 1e9,                 \
      "until spot nodes are back, the mean (1h)")                              \
    X(SPOT_TOGETHER, "spot-together", 0, SHARE, "SHARE", RUN, 0, 0, 1,         \
      "of the nodes that go at once (0.85); 0: each by itself")                \
    X(SPOT_NOTICE, "spot-notice", 0, TIME, "TIME", RUN, 0, 0, 1e9,             \
      "warning before nodes are taken away: 2min; a checkpoint that takes "    \
      "less is made (0s)")

#endif
