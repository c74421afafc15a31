/*
 * option_list.h: every option that is no field of a plan or of a job, as X
 * macros in the order of the help text (options.h reads them).
 */
#ifndef FR_API_REQUEST_OPTION_LIST_H
#define FR_API_REQUEST_OPTION_LIST_H

#include "api/request/goal_option_list.h"

/* symbol, name, letter, kind, metavar, group, names, min, max, help */
#define FR_OPTIONS_BEFORE_PLAN(X)                                              \
    X(HELP, "help", 'h', FLAG, 0, COMMON, 0, 0, 0,                             \
      "print this help; --help=all: with all options")                         \
    X(JSON, "json", 0, FLAG, 0, COMMON, 0, 0, 0,                               \
      "print one JSON object and nothing else on stdout")                      \
    X(CSV, "csv", 0, FLAG, 0, COMMON, 0, 0, 0,                                 \
      "print CSV: the table of the answer, or each of its values")             \
    X(FORMAT, "format", 0, CHOICE, "FORMAT", COMMON, &fr_renderer_names, 0, 0, \
      "format of the answer on stdout")                                        \
    X(REPORT, "report", 0, PATH, "FILE", COMMON, 0, 0, 0,                      \
      "write the answer to FILE too, in the format of its ending: .txt, "      \
      ".json, .csv, .md")                                                      \
    X(QUIET, "quiet", 'q', FLAG, 0, COMMON, 0, 0, 0,                           \
      "print errors only on stderr")                                           \
    X(PROFILE, "profile", 'p', PATH, "FILE", INPUT, 0, 0, 0,                   \
      "use the measurements of FILE (forerun calibrate writes it)")            \
    X(GPU, "gpu", 0, TEXT, "NAME", INPUT, 0, 0, 0,                             \
      "model of the GPUs (forerun catalog devices)")                           \
    X(POWER_CAP, "power-cap", 0, TEXT, "W,..", INPUT, 0, 0, 0,                 \
      "cap the power of each GPU, which slows it down: 500W; tune tries each " \
      "value of a list such as 400W,500W,none")                                \
    X(NODE_TYPE, "node-type", 0, TEXT, "NAME", INPUT, 0, 0, 0,                 \
      "type of the nodes, if the file does not say it (forerun catalog "       \
      "nodes)")                                                                \
    X(TEST, "test", 0, TEXT, "NAME", INPUT, 0, 0, 0,                           \
      "test of nccl-tests, if the file does not say it: all_reduce, "          \
      "all_gather, reduce_scatter, alltoall, broadcast, sendrecv")             \
    X(NODES, "nodes", 0, COUNT, "N", INPUT, 0, 1, 1000000,                     \
      "number of such nodes (1)")                                              \
    X(MODEL, "model", 0, TEXT, "NAME", INPUT, 0, 0, 0,                         \
      "model to train, if a configuration does not name it")                   \
    X(FORCE, "force", 0, FLAG, 0, INPUT, 0, 0, 0,                              \
      "continue although the plan is predicted not to fit (the verdict stays " \
      "the first line); calibrate: write a profile whose fits are off")        \
    X(FROM, "from", 0, PATH, "FILE", INPUT, 0, 0, 0,                           \
      "start from the configuration of a framework: ds_config.json ...")       \
    X(SET, "set", 0, SETTING, "NAME=VALUE", INPUT, 0, 0, 0,                    \
      "set a variable of the script of --from; 1=VALUE sets its argument $1, " \
      "@='A B' all of them; may be given several times")                       \
    X(OUTPUT, "output", 'o', PATH, "FILE", OUTPUT, 0, 0, 0,                    \
      "write the result to FILE")                                              \
    X(TO, "to", 0, CHOICE, "FORMAT", OUTPUT, &fr_exporter_names, 0, 0,         \
      "target of the export: a framework, a launcher, NCCL")                   \
    X(PROGRAM, "program", 0, TEXT, "NAME", OUTPUT, 0, 0, 0,                    \
      "program that a launcher starts: megatron, deepspeed ...")               \
    X(VERSION, "version", 0, TEXT, "V", OUTPUT, 0, 0, 0,                       \
      "version of the framework of --to or --for (default: the newest)")       \
    X(TIME_LIMIT, "time-limit", 0, TIME, "TIME", OUTPUT, 0, 60, 6e7,           \
      "end a submission after so long: 24h; default: twice the prediction, "   \
      "and half an hour")                                                      \
    X(TRACE, "trace", 0, PATH, "FILE", OUTPUT, 0, 0, 0,                        \
      "write a timeline for ui.perfetto.dev or chrome://tracing")              \
    X(GANTT, "gantt", 0, FLAG, 0, OUTPUT, 0, 0, 0,                             \
      "draw the step, one line per rank and lane")                             \
    X(COLUMNS, "columns", 0, TEXT, "N|NAME,..", OUTPUT, 0, 0, 0,               \
      "width of lines (default: the terminal, or 100), or the columns of "     \
      "tables to show: step,memory")                                           \
    X(TOP, "top", 0, COUNT, "N", OUTPUT, 0, 1, 1000,                           \
      "number of alternatives to print (10)")

#define FR_OPTIONS_AFTER_JOB(X)                                                \
    X(FRAMEWORK, "framework", 0, CHOICE, "NAME", PLAN, &fr_framework_names, 0, \
      0,                                                                       \
      "GPUs: start from the defaults of this framework: dtype and overlap of " \
      "gradients, kernels, vocabulary; the answer names it")                   \
    X(RANKS, "ranks", 0, COUNT, "N", MACHINE, 0, 1, 1 << 20,                   \
      "number of ranks")                                                       \
    X(RANKS_PER_NODE, "ranks-per-node", 0, COUNT, "N", MACHINE, 0, 1, 4096,    \
      "number of ranks on each node (default: its cores); more ranks share "   \
      "cores")                                                                 \
    X(BACKEND, "backend", 0, CHOICE, "NAME", MACHINE, &fr_backend_names, 0, 0, \
      "device that computes")                                                  \
    X(ALGORITHM, "algorithm", 0, TEXT, "NAME,..", MACHINE, 0, 0, 0,            \
      "algorithm of the collective: ring, double-tree, nvls ...")              \
    X(HOSTFILE, "hostfile", 0, PATH, "FILE", MACHINE, 0, 0, 0,                 \
      "hosts, in the format of mpirun")                                        \
    X(SHARE_GPU, "share-gpu", 0, FLAG, 0, MACHINE, 0, 0, 0,                    \
      "let several ranks share a GPU, staged through the host (for tests)")    \
    X(TIMEOUT, "timeout", 0, TIME, "TIME", MACHINE, 0, 0.1, 1e9,               \
      "give up on a rank that is silent for this long: 30s; a bare 30 is "     \
      "seconds")                                                               \
    X(CHECKPOINT, "checkpoint", 0, PATH, "DIR", MACHINE, 0, 0, 0,              \
      "save weights and optimizer state in DIR")                               \
    X(CHECKPOINT_EVERY, "checkpoint-every", 0, COUNT, "N", MACHINE, 0, 1,      \
      FR_NO_LIMIT,                                                             \
      "steps between checkpoints (default: run: only the last step; "          \
      "otherwise: the best interval)")                                         \
    X(RESUME, "resume", 0, FLAG, 0, MACHINE, 0, 0, 0,                          \
      "continue from the checkpoint in --checkpoint, if there is one")         \
    X(CHECKPOINT_ASYNC, "checkpoint-async", 0, FLAG, 0, MACHINE, 0, 0, 0,      \
      "keep training while a copy of the state is written")                    \
    X(KEEP, "keep", 0, COUNT, "K", MACHINE, 0, 1, 100000,                      \
      "number of newest checkpoints to keep (2)")                              \
    X(REPLICATE_EVERY, "replicate-every", 0, COUNT, "N", MACHINE, 0, 1,        \
      FR_NO_LIMIT,                                                             \
      "with --elastic: steps between copies of the state to the memory of "    \
      "this and another host")                                                 \
    X(REPLICA_DIR, "replica-dir", 0, PATH, "DIR", MACHINE, 0, 0, 0,            \
      "file system in memory that holds these copies (/dev/shm)")              \
    X(ELASTIC, "elastic", 0, TEXT, "MIN:MAX", MACHINE, 0, 0, 0,                \
      "keep training when a rank dies or hangs, with MIN to MAX ranks")        \
    X(MAX_RESTARTS, "max-restarts", 0, COUNT, "N", MACHINE, 0, 0, 1000000,     \
      "number of failures that --elastic survives (3)")                        \
    X(REBALANCE, "rebalance", 0, FLAG, 0, MACHINE, 0, 0, 0,                    \
      "with --elastic: move layers or samples away from a slow rank if that "  \
      "is predicted and measured to be faster")                                \
    X(METRICS, "metrics", 0, PATH, "FILE.jsonl", RUN, 0, 0, 0,                 \
      "write one line of JSON per step: loss, time by part, memory ...")       \
    X(PROMETHEUS, "prometheus", 0, OPTIONAL, "[ADDR:PORT]", RUN, 0, 0, 0,      \
      "serve these metrics to Prometheus (127.0.0.1:9464)")                    \
    X(INJECT, "inject", 0, TEXT, "FAULT,..", RUN, 0, 0, 0,                     \
      "cause faults: kill:rank=2@30, hang:rank=0@50, slow:rank=1x2@10..40, "   \
      "read:20MB/s@10..40")                                                    \
    X(EVAL_DATA, "eval-data", 0, PATH, "FILE", RUN, 0, 0, 0,                   \
      "validation data: its loss is reported, it is not trained on")           \
    X(EVAL_EVERY, "eval-every", 0, COUNT, "N", RUN, 0, 1, FR_NO_LIMIT,         \
      "steps between validations (default: only after the last step)")         \
    X(EVAL_BATCHES, "eval-batches", 0, COUNT, "N", RUN, 0, 1, FR_NO_LIMIT,     \
      "global batches per validation, identical each time (4)")                \
    X(INIT, "init", 0, PATH, "DIR", RUN, 0, 0, 0,                              \
      "start from the weights in DIR: safetensors of Hugging Face")            \
    X(SAVE, "save", 0, PATH, "DIR", RUN, 0, 0, 0,                              \
      "write the final weights to DIR as safetensors")                         \
    X(STORAGE, "storage", 0, PATH, "DIR", MACHINE, 0, 0, 0,                    \
      "measure the storage of DIR (default: the folder of the profile)")       \
    X(QUICK, "quick", 0, FLAG, 0, MACHINE, 0, 0, 0,                            \
      "time fewer sizes, with fewer repetitions")                              \
    X(ALLOW, "allow", 0, CHOICE, "WHAT", SEARCH, &allow_names, 0, 0,           \
      "include plans that change the result")                                  \
    X(SEARCH, "search", 0, CHOICE, "NAME", SEARCH, &search_names, 0, 0,        \
      "search strategy")                                                       \
    X(BUDGET, "budget", 0, TEXT, "TIME", SEARCH, 0, 0, 0,                      \
      "stop the search after TIME, such as 2s (default: about a second of "    \
      "work)")                                                                 \
    X(EXACT, "exact", 0, FLAG, 0, SEARCH, 0, 0, 0,                             \
      "search until the best plan is proven to be the best")                   \
    X(MEASURE, "measure", 0, COUNT, "K", SEARCH, 0, 1, 16,                     \
      "run the K best plans here for some steps and choose the fastest")       \
    X(UPDATE_PROFILE, "update-profile", 0, FLAG, 0, SEARCH, 0, 0, 0,           \
      "write the measured steps to the --profile file")                        \
    X(FOR, "for", 0, CHOICE, "NAME", SEARCH, &fr_executor_names, 0, 0,         \
      "restrict to plans that NAME can execute, priced with its kernels "      \
      "(default: forerun on this machine, otherwise any)")                     \
    X(JOBS, "jobs", 'j', COUNT, "N", SEARCH, 0, 1, 4096,                       \
      "number of search threads; it does not change the answer")               \
    X(VARY, "vary", 0, REPEATED, "KEY=A,B,..", SEARCH, 0, 0, 0,                \
      "values to try: 1,2,4 or 8..64*2 (8,16,32,64) or x2 (twice the value "   \
      "of the cluster); several --vary: every combination")                    \
    X(FIXED, "fixed", 0, FLAG, 0, SEARCH, 0, 0, 0,                             \
      "keep the plan of the options; dp takes the remaining devices")          \
    X(WEAK, "weak", 0, FLAG, 0, SEARCH, 0, 0, 0,                               \
      "weak scaling: grow the global batch with the devices, from that of "    \
      "the fewest")                                                            \
    X(KNEE, "knee", 0, SHARE, "SHARE", SEARCH, 0, 0, 1,                        \
      "mark the point beyond which devices add less than SHARE of the first "  \
      "ones (0.5)")                                                            \
    X(TRIALS, "jobs", 0, COUNT, "N", SEARCH, 0, 1, 1000000,                    \
      "compare N independent trials: at the same time on parts of the "        \
      "cluster, or one after the other on the whole cluster")                  \
    FR_GOAL_OPTIONS(X)                                                         \
    X(PLOT, "plot", 0, FLAG, 0, OUTPUT, 0, 0, 0, "draw the scaling curves")    \
    X(SOURCE, "source", 0, TEXT, "NAME", INPUT, 0, 0, 0,                       \
      "restrict to rows whose source contains NAME")                           \
    X(MAX_RANKS, "max-ranks", 0, COUNT, "N", INPUT, 0, 1, 1 << 20,             \
      "skip rows with more ranks")                                             \
    X(ALL, "all", 0, FLAG, 0, INPUT, 0, 0, 0,                                  \
      "score every row that runs, of any grade")                               \
    X(ROWS, "rows", 0, FLAG, 0, OUTPUT, 0, 0, 0, "print every row that ran")   \
    X(TEMPLATE, "template", 0, TEXT, "NAME", OUTPUT, 0, 0, 0,                  \
      "print a commented cluster file to start from")                          \
    X(RUNS_FILE, "runs", 0, PATH, "FILE.csv", INPUT, 0, 0, 0,                  \
      "measured steps of a stack to learn from, in the rows of validate")      \
    X(NEXT_MEASUREMENT, "next-measurement", 0, FLAG, 0, OUTPUT, 0, 0, 0,       \
      "name the plan whose measurement would best decide between the plans")   \
    X(EXPLAIN_ROW, "explain-row", 0, TEXT, "ID", INPUT, 0, 0, 0,               \
      "only show how the cells of row ID are read")                            \
    X(SHOTS, "shots", 0, TEXT, "K,..", INPUT, 0, 0, 0,                         \
      "learn from K rows of each source and predict its other rows: 0,1,3")    \
    X(DRAWS, "draws", 0, COUNT, "N", INPUT, 0, 1, 10000,                       \
      "number of random draws of these rows (40)")                             \
    X(CHECK, "check", 0, TEXT, "BOUND,..", OUTPUT, 0, 0, 0,                    \
      "exit with 4 unless every bound holds, such as "                         \
      "mape<=10%,concordance>=0.88")

#endif
