/*
 * option_list.h: every option that is no field of a plan or of a job, as X
 * macros in the order of the help text (options.h reads them).
 */
#ifndef FR_CLI_OPTION_OPTION_LIST_H
#define FR_CLI_OPTION_OPTION_LIST_H

#include "cli/option/goal_option_list.h"

/* symbol, name, letter, kind, metavar, group, names, min, max, help */
#define FR_OPTIONS_BEFORE_PLAN(X)                                              \
    X(HELP, "help", 'h', FLAG, 0, COMMON, 0, 0, 0,                             \
      "print this help; --help=all: with all options")                         \
    X(JSON, "json", 0, FLAG, 0, COMMON, 0, 0, 0,                               \
      "print one JSON object, nothing else, on stdout")                        \
    X(QUIET, "quiet", 'q', FLAG, 0, COMMON, 0, 0, 0,                           \
      "no chatter on stderr; errors are still printed")                        \
    X(PROFILE, "profile", 'p', PATH, "FILE", INPUT, 0, 0, 0,                   \
      "measurements of this machine (forerun calibrate)")                      \
    X(GPU, "gpu", 0, TEXT, "NAME", INPUT, 0, 0, 0,                             \
      "model of the GPUs (forerun catalog devices)")                           \
    X(POWER_CAP, "power-cap", 0, TEXT, "W,..", INPUT, 0, 0, 0,                 \
      "GPUs draw no more than that, and compute slower: 500W; tune takes a "   \
      "list, none among it, and chooses")                                      \
    X(NODE_TYPE, "node-type", 0, TEXT, "NAME", INPUT, 0, 0, 0,                 \
      "what the nodes are, where the file is silent (forerun catalog nodes)")  \
    X(NODES, "nodes", 0, COUNT, "N", INPUT, 0, 1, 1000000,                     \
      "how many such nodes (1)")                                               \
    X(MODEL, "model", 0, TEXT, "NAME", INPUT, 0, 0, 0,                         \
      "what is trained, where a configuration does not say it")                \
    X(FORCE, "force", 0, FLAG, 0, INPUT, 0, 0, 0,                              \
      "continue although the plan is predicted not to fit; the verdict stays " \
      "the first line")                                                        \
    X(FROM, "from", 0, PATH, "FILE", INPUT, 0, 0, 0,                           \
      "start from a framework's configuration: ds_config.json ...")            \
    X(OUTPUT, "output", 'o', PATH, "FILE", OUTPUT, 0, 0, 0,                    \
      "write the result to FILE")                                              \
    X(TO, "to", 0, CHOICE, "FORMAT", OUTPUT, &export_names, 0, 0,              \
      "what to write it for: a framework, a launcher, NCCL")                   \
    X(PROGRAM, "program", 0, TEXT, "NAME", OUTPUT, 0, 0, 0,                    \
      "what a launcher starts: megatron, deepspeed ...")                       \
    X(VERSION, "version", 0, TEXT, "V", OUTPUT, 0, 0, 0,                       \
      "of the framework of --to or --for (the newest)")                        \
    X(TIME_LIMIT, "time-limit", 0, TIME, "TIME", OUTPUT, 0, 60, 1e9,           \
      "end a submission after so long: 24h; default: twice the prediction, "   \
      "and half an hour")                                                      \
    X(TRACE, "trace", 0, PATH, "FILE", OUTPUT, 0, 0, 0,                        \
      "write a timeline for ui.perfetto.dev or chrome://tracing")              \
    X(GANTT, "gantt", 0, FLAG, 0, OUTPUT, 0, 0, 0,                             \
      "draw the step, one line per rank and lane")                             \
    X(COLUMNS, "columns", 0, TEXT, "N|NAME,..", OUTPUT, 0, 0, 0,               \
      "how wide lines are (the terminal, or 100), or which columns of "        \
      "tables to show: step,memory")                                           \
    X(TOP, "top", 0, COUNT, "N", OUTPUT, 0, 1, 1000,                           \
      "how many alternatives to print (10)")

#define FR_OPTIONS_AFTER_JOB(X)                                                \
    X(FRAMEWORK, "framework", 0, CHOICE, "NAME", PLAN, &fr_framework_names, 0, \
      0,                                                                       \
      "GPUs: what this framework does unless told: dtype and overlap of "      \
      "gradients, kernels, vocabulary; its name is in the answer")             \
    X(RANKS, "ranks", 0, COUNT, "N", MACHINE, 0, 1, 1 << 20,                   \
      "number of ranks")                                                       \
    X(RANKS_PER_NODE, "ranks-per-node", 0, COUNT, "N", MACHINE, 0, 1, 4096,    \
      "default: as many as a node has cores for; more share them")             \
    X(BACKEND, "backend", 0, CHOICE, "NAME", MACHINE, &fr_backend_names, 0, 0, \
      "what computes")                                                         \
    X(ALGORITHM, "algorithm", 0, TEXT, "NAME,..", MACHINE, 0, 0, 0,            \
      "of the collective: ring, double-tree, nvls ...")                        \
    X(HOSTFILE, "hostfile", 0, PATH, "FILE", MACHINE, 0, 0, 0,                 \
      "hosts, as mpirun reads them")                                           \
    X(SHARE_GPU, "share-gpu", 0, FLAG, 0, MACHINE, 0, 0, 0,                    \
      "several ranks may share a GPU, staged through the host: for tests")     \
    X(TIMEOUT, "timeout", 0, TIME, "TIME", MACHINE, 0, 0.1, 1e9,               \
      "give up on a rank that is silent for so long: 30s; 30 is seconds")      \
    X(CHECKPOINT, "checkpoint", 0, PATH, "DIR", MACHINE, 0, 0, 0,              \
      "save weights and optimizer state there")                                \
    X(CHECKPOINT_EVERY, "checkpoint-every", 0, COUNT, "N", MACHINE, 0, 1,      \
      FR_NO_LIMIT,                                                             \
      "steps between checkpoints; default: run: only the last; else the best") \
    X(RESUME, "resume", 0, FLAG, 0, MACHINE, 0, 0, 0,                          \
      "go on from --checkpoint if it holds one")                               \
    X(CHECKPOINT_ASYNC, "checkpoint-async", 0, FLAG, 0, MACHINE, 0, 0, 0,      \
      "training goes on while a copy of the state is written")                 \
    X(KEEP, "keep", 0, COUNT, "K", MACHINE, 0, 1, 100000,                      \
      "newest checkpoints that stay (2)")                                      \
    X(REPLICATE_EVERY, "replicate-every", 0, COUNT, "N", MACHINE, 0, 1,        \
      FR_NO_LIMIT,                                                             \
      "with --elastic: steps between copies of the state in the "              \
      "memory of this and another host")                                       \
    X(REPLICA_DIR, "replica-dir", 0, PATH, "DIR", MACHINE, 0, 0, 0,            \
      "file system in memory that holds those copies (/dev/shm)")              \
    X(ELASTIC, "elastic", 0, TEXT, "MIN:MAX", MACHINE, 0, 0, 0,                \
      "a rank that dies or hangs ends no run: go on with MIN to MAX ranks")    \
    X(MAX_RESTARTS, "max-restarts", 0, COUNT, "N", MACHINE, 0, 0, 1000000,     \
      "failures that --elastic goes on from (3)")                              \
    X(REBALANCE, "rebalance", 0, FLAG, 0, MACHINE, 0, 0, 0,                    \
      "with --elastic: move layers or samples away from a slow rank where "    \
      "that is predicted, and measured, to be faster")                         \
    X(METRICS, "metrics", 0, PATH, "FILE.jsonl", RUN, 0, 0, 0,                 \
      "write a line of JSON a step: loss, time by part, memory ...")           \
    X(PROMETHEUS, "prometheus", 0, OPTIONAL, "[ADDR:PORT]", RUN, 0, 0, 0,      \
      "serve the same numbers to Prometheus (127.0.0.1:9464)")                 \
    X(INJECT, "inject", 0, TEXT, "FAULT,..", RUN, 0, 0, 0,                     \
      "faults on purpose: kill:rank=2@30, hang:rank=0@50, "                    \
      "slow:rank=1x2@10..40, read:20MB/s@10..40")                              \
    X(EVAL_DATA, "eval-data", 0, PATH, "FILE", RUN, 0, 0, 0,                   \
      "validation: data whose loss is told, without training on them")         \
    X(EVAL_EVERY, "eval-every", 0, COUNT, "N", RUN, 0, 1, FR_NO_LIMIT,         \
      "steps between validations; default: only after the last")               \
    X(EVAL_BATCHES, "eval-batches", 0, COUNT, "N", RUN, 0, 1, FR_NO_LIMIT,     \
      "global batches of a validation, the same each time; default: 4")        \
    X(INIT, "init", 0, PATH, "DIR", RUN, 0, 0, 0,                              \
      "begin with these weights: safetensors of Hugging Face")                 \
    X(SAVE, "save", 0, PATH, "DIR", RUN, 0, 0, 0,                              \
      "write the weights there at the end, as safetensors")                    \
    X(STORAGE, "storage", 0, PATH, "DIR", MACHINE, 0, 0, 0,                    \
      "the storage to time is there (where the profile goes)")                 \
    X(QUICK, "quick", 0, FLAG, 0, MACHINE, 0, 0, 0,                            \
      "fewer repetitions and sizes")                                           \
    X(ALLOW, "allow", 0, CHOICE, "WHAT", SEARCH, &allow_names, 0, 0,           \
      "lossy: also plans that change the result")                              \
    X(SEARCH, "search", 0, CHOICE, "NAME", SEARCH, &search_names, 0, 0,        \
      "how the space is walked")                                               \
    X(BUDGET, "budget", 0, TEXT, "TIME", SEARCH, 0, 0, 0,                      \
      "stop after so long, 2s; default: about a second of work")               \
    X(EXACT, "exact", 0, FLAG, 0, SEARCH, 0, 0, 0,                             \
      "go on until the best plan is proven to be the best")                    \
    X(MEASURE, "measure", 0, COUNT, "K", SEARCH, 0, 1, 16,                     \
      "run the K best plans here for some steps, and choose by that")          \
    X(UPDATE_PROFILE, "update-profile", 0, FLAG, 0, SEARCH, 0, 0, 0,           \
      "write the measured steps into the --profile file")                      \
    X(FOR, "for", 0, CHOICE, "NAME", SEARCH, &executor_names, 0, 0,            \
      "only plans that this one can execute; any: whoever (forerun where it "  \
      "runs on this machine, else any)")                                       \
    X(JOBS, "jobs", 'j', COUNT, "N", SEARCH, 0, 1, 4096,                       \
      "threads of the search; any number gives the same answer")               \
    X(VARY, "vary", 0, REPEATED, "KEY=A,B,..", SEARCH, 0, 0, 0,                \
      "values to try; several: every combination.  8..64*2 is 8,16,32,64, "    \
      "x2 twice what the cluster has")                                         \
    X(FIXED, "fixed", 0, FLAG, 0, SEARCH, 0, 0, 0,                             \
      "keep the plan of the options; dp takes the devices that there are")     \
    X(WEAK, "weak", 0, FLAG, 0, SEARCH, 0, 0, 0,                               \
      "the global batch is that of the fewest devices and grows with them")    \
    X(KNEE, "knee", 0, SHARE, "SHARE", SEARCH, 0, 0, 1,                        \
      "where devices add less than this of what the first do (0.5)")           \
    X(TRIALS, "jobs", 0, COUNT, "N", SEARCH, 0, 1, 1000000,                    \
      "N independent trials: side by side on parts of the cluster, or one "    \
      "after the other on all of it?")                                         \
    FR_GOAL_OPTIONS(X)                                                         \
    X(CSV, "csv", 0, FLAG, 0, OUTPUT, 0, 0, 0, "print a CSV table")            \
    X(PLOT, "plot", 0, FLAG, 0, OUTPUT, 0, 0, 0, "draw the scaling curves")    \
    X(SOURCE, "source", 0, TEXT, "NAME", INPUT, 0, 0, 0,                       \
      "only rows whose source has NAME in it")                                 \
    X(MAX_RANKS, "max-ranks", 0, COUNT, "N", INPUT, 0, 1, 1 << 20,             \
      "do not run rows of more ranks")                                         \
    X(ALL, "all", 0, FLAG, 0, INPUT, 0, 0, 0,                                  \
      "score every row that runs, whatever its grade")                         \
    X(ROWS, "rows", 0, FLAG, 0, OUTPUT, 0, 0, 0, "print every row that ran")   \
    X(TEMPLATE, "template", 0, TEXT, "NAME", OUTPUT, 0, 0, 0,                  \
      "print a commented cluster file to start from")                          \
    X(RUNS_FILE, "runs", 0, PATH, "FILE.csv", INPUT, 0, 0, 0,                  \
      "measured steps of a stack to learn from, rows as validate reads them")  \
    X(NEXT_MEASUREMENT, "next-measurement", 0, FLAG, 0, OUTPUT, 0, 0, 0,       \
      "say which plan to run once to know best which one to choose")           \
    X(EXPLAIN_ROW, "explain-row", 0, TEXT, "ID", INPUT, 0, 0, 0,               \
      "say how the cells of this row are read, and no more")                   \
    X(SHOTS, "shots", 0, TEXT, "K,..", INPUT, 0, 0, 0,                         \
      "learn from K rows of each source, predict its others: 0,1,3")           \
    X(DRAWS, "draws", 0, COUNT, "N", INPUT, 0, 1, 10000,                       \
      "how often those rows are drawn (40)")                                   \
    X(CHECK, "check", 0, TEXT, "BOUND,..", OUTPUT, 0, 0, 0,                    \
      "exit 4 unless all hold, such as mape<=10%,concordance>=0.88")

#endif
