/*
 * options.h: every option of the program: parser, help and completions come
 * from this list and from the fields of plan and job.  commands.c: whose.
 */
#ifndef FR_CLI_OPTION_OPTIONS_H
#define FR_CLI_OPTION_OPTIONS_H

#include "plan/decide/plan_fields.h"
#include "spec/model/job_fields.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum fr_option_kind {
    FR_OPTION_FLAG,     /* --x, or --no-x */
    FR_OPTION_COUNT,    /* integer in [min, max] */
    FR_OPTION_REAL,     /* finite number in [min, max]; 5k */
    FR_OPTION_SHARE,    /* the same; 20% */
    FR_OPTION_TIME,     /* seconds in [min, max]; 5min */
    FR_OPTION_BYTES,    /* "25MB" */
    FR_OPTION_TEXT,     /* checked by who uses it */
    FR_OPTION_REPEATED, /* the same, and may be given several times */
    FR_OPTION_PATH,     /* completes to files */
    FR_OPTION_CHOICE    /* one of a list of names */
} fr_option_kind;

extern const fr_names fr_backend_names; /* of --backend */

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
    X(NODE_TYPE, "node-type", 0, TEXT, "NAME", INPUT, 0, 0, 0,                 \
      "what the nodes are, where the file is silent (forerun catalog nodes)")  \
    X(NODES, "nodes", 0, COUNT, "N", INPUT, 0, 1, 1000000,                     \
      "how many such nodes (1)")                                               \
    X(MODEL, "model", 0, TEXT, "NAME", INPUT, 0, 0, 0,                         \
      "what is trained, where a configuration does not say it")                \
    X(FROM, "from", 0, PATH, "FILE", INPUT, 0, 0, 0,                           \
      "start from a framework's configuration: ds_config.json ...")            \
    X(OUTPUT, "output", 'o', PATH, "FILE", OUTPUT, 0, 0, 0,                    \
      "write the result to FILE")                                              \
    X(TO, "to", 0, CHOICE, "FORMAT", OUTPUT, &export_names, 0, 0,              \
      "what to write it for: a framework, a launcher, NCCL")                   \
    X(PROGRAM, "program", 0, TEXT, "NAME", OUTPUT, 0, 0, 0,                    \
      "what a launcher starts: megatron, deepspeed ...")                       \
    X(VERSION, "version", 0, TEXT, "V", OUTPUT, 0, 0, 0,                       \
      "of the framework (the newest that is known)")                           \
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
      FR_NO_LIMIT, "steps between checkpoints; default: only the last")        \
    X(RESUME, "resume", 0, FLAG, 0, MACHINE, 0, 0, 0,                          \
      "go on from --checkpoint if it holds one")                               \
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
    X(GOAL, "goal", 0, CHOICE, "NAME", GOAL, &goal_names, 0, 0,                \
      "what is best")                                                          \
    X(TOKENS, "tokens", 0, TEXT, "N", GOAL, 0, 0, 0,                           \
      "of the whole run: 15e12, 300B; default: --steps")                       \
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
      "nodes that stand ready, paid too; default: there always is one")        \
    X(REPAIR, "repair", 0, TIME, "TIME", RUN, 0, 1, 1e9,                       \
      "with --spares: until a node that failed is back (24h)")                 \
    X(SPOT_EVERY, "spot-every", 0, TIME, "TIME", RUN, 0, 1, 1e15,              \
      "mean time until one spot node is taken away: 200h")                     \
    X(SPOT_TRACE, "spot-trace", 0, PATH, "FILE", RUN, 0, 0, 0,                 \
      "instead of --spot-every and --spot-wait: how many nodes there were "    \
      "(SkyPilot's JSON)")                                                     \
    X(SPOT_WAIT, "spot-wait", 0, TIME, "TIME", RUN, 0, 0, 1e9,                 \
      "until spot nodes are back, the mean (1h)")                              \
    X(SPOT_NOTICE, "spot-notice", 0, TIME, "TIME", RUN, 0, 0, 1e9,             \
      "warning before nodes are taken away: 2min; a checkpoint that takes "    \
      "less is made (0s)")                                                     \
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

/* In the order of the help text. */
typedef enum fr_option {
#define FR_OPTION_ENUM(symbol, name, letter, kind, metavar, group, names, low, \
                       high, help)                                             \
    FR_OPT_##symbol,
#define FR_OPTION_FIELD(symbol) FR_OPT_##symbol,
    FR_OPTIONS_BEFORE_PLAN(FR_OPTION_ENUM) FR_PLAN_OPTIONS(FR_OPTION_FIELD)
        FR_JOB_OPTIONS(FR_OPTION_FIELD) FR_OPTIONS_AFTER_JOB(FR_OPTION_ENUM)
#undef FR_OPTION_ENUM
#undef FR_OPTION_FIELD
            FR_OPT_N
} fr_option;

/* The options of the fields of a plan and of a job, in the order of these. */
#define FR_OPT_OF_PLAN(id) ((fr_option)(FR_OPT_DP + (int)(id)))
#define FR_OPT_OF_JOB(id) ((fr_option)(FR_OPT_GLOBAL_BATCH + (int)(id)))

/* Headings of the help text, in order. */
typedef enum fr_option_group {
    FR_GROUP_INPUT,
    FR_GROUP_MACHINE,
    FR_GROUP_SEARCH,
    FR_GROUP_GOAL,
    FR_GROUP_RUN,
    FR_GROUP_PLAN,
    FR_GROUP_JOB,
    FR_GROUP_OUTPUT,
    FR_GROUP_COMMON,
    FR_GROUP_N
} fr_option_group;

const char *fr_option_group_title(fr_option_group group);

typedef struct fr_option_row {
    const char *name; /* without dashes */
    char letter;      /* 0: none */
    fr_option_kind kind;
    const char *metavar;
    fr_option_group group;
    const fr_names *names; /* CHOICE */
    double min, max;
    const char *help;
    bool (*is_offered)(int i); /* of names; NULL: all are */
} fr_option_row;

fr_option_row fr_option_get(fr_option option);

/* Name i that a CHOICE accepts, NULL past the last. */
const char *fr_option_choice(const fr_option_row *row, int i);

/* "FORERUN_MICRO_BATCH"; returns buf. */
char *fr_option_env_name(fr_option option, char *buf, int n_buf);

#endif
