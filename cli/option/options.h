/*
 * options.h: every option of the program, one row each: the parser, the help
 * text, the completions and the manual page are made from this list alone.
 * A command names the rows that it takes (commands.c).
 */
#ifndef FR_CLI_OPTION_OPTIONS_H
#define FR_CLI_OPTION_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "plan/decide/plan.h"

typedef enum fr_option_kind {
    FR_OPTION_FLAG,     /* --x, or --no-x */
    FR_OPTION_COUNT,    /* integer in [min, max] */
    FR_OPTION_REAL,     /* finite number in [min, max] */
    FR_OPTION_BYTES,    /* "25MB" */
    FR_OPTION_TEXT,     /* checked by who uses it */
    FR_OPTION_REPEATED, /* the same, and may be given several times */
    FR_OPTION_PATH,     /* completes to files */
    FR_OPTION_CHOICE    /* one of a list of names */
} fr_option_kind;

/* Name i of a choice, NULL past the last. */
typedef const char *(*fr_choice_fn)(int i);

const char *fr_choice_schedule(int i);
const char *fr_choice_recompute(int i);
const char *fr_choice_rank_order(int i);
const char *fr_choice_collective(int i);
const char *fr_choice_protocol(int i);
const char *fr_choice_server_place(int i);
const char *fr_choice_cp_kind(int i);
const char *fr_choice_dispatch(int i);
const char *fr_choice_flash_kind(int i);
const char *fr_choice_kernels(int i);
const char *fr_choice_scaling(int i);
const char *fr_choice_cuda_graphs(int i);
const char *fr_choice_zero_unit(int i);
const char *fr_choice_optimizer(int i);
const char *fr_choice_lr_schedule(int i);
const char *fr_choice_lr_rule(int i);
const char *fr_choice_precision(int i);
const char *fr_choice_allow(int i);
const char *fr_choice_backend(int i);
const char *fr_choice_search(int i);
const char *fr_choice_goal(int i);
const char *fr_choice_framework(int i);
const char *fr_choice_export(int i);

#define FR_BIG 1e15 /* "no upper limit" of a COUNT, exact in a double */

/* symbol, name, letter, kind, metavar, group, choice, min, max, help */
#define FR_OPTION_LIST(X)                                                      \
    X(HELP, "help", 'h', FLAG, 0, COMMON, 0, 0, 0, "print this help")          \
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
    X(OUTPUT, "output", 'o', PATH, "FILE", OUTPUT, 0, 0, 0,                    \
      "write the result to FILE")                                              \
    X(TO, "to", 0, CHOICE, "FORMAT", OUTPUT, fr_choice_export, 0, 0,           \
      "what to write: the file of NCCL's example tuner plugin")                \
    X(TRACE, "trace", 0, PATH, "FILE", OUTPUT, 0, 0, 0,                        \
      "write a timeline for ui.perfetto.dev or chrome://tracing")              \
    X(GANTT, "gantt", 0, FLAG, 0, OUTPUT, 0, 0, 0,                             \
      "draw the step, one line per rank and lane")                             \
    X(TOP, "top", 0, COUNT, "N", OUTPUT, 0, 1, 1000,                           \
      "how many alternatives to print (10)")                                   \
    X(DP, "dp", 0, COUNT, "N", PLAN, 0, 1, 1 << 20, "data-parallel ranks")     \
    X(TP, "tp", 0, COUNT, "N", PLAN, 0, 1, 1 << 20, "tensor-parallel ranks")   \
    X(PP, "pp", 0, COUNT, "N", PLAN, 0, 1, 512, "pipeline stages")             \
    X(CP, "cp", 0, COUNT, "N", PLAN, 0, 1, 1 << 20, "context-parallel ranks")  \
    X(EP, "ep", 0, COUNT, "N", PLAN, 0, 1, 1 << 20, "expert-parallel ranks")   \
    X(VPP, "vpp", 0, COUNT, "N", PLAN, 0, 1, 512,                              \
      "virtual stages (model chunks) per pipeline rank")                       \
    X(MICRO_BATCH, "micro-batch", 0, COUNT, "N", PLAN, 0, 1, FR_BIG,           \
      "sequences per micro-batch")                                             \
    X(SCHEDULE, "schedule", 0, CHOICE, "NAME", PLAN, fr_choice_schedule, 0, 0, \
      "pipeline schedule")                                                     \
    X(ZERO, "zero", 0, COUNT, "N", PLAN, 0, 0, 3,                              \
      "ZeRO stage: 1 shards the optimizer state over dp")                      \
    X(RECOMPUTE, "recompute", 0, CHOICE, "NAME", PLAN, fr_choice_recompute, 0, \
      0, "activations made again in backward")                                 \
    X(SEQUENCE_PARALLEL, "sequence-parallel", 0, FLAG, 0, PLAN, 0, 0, 0,       \
      "shard norms and residuals along the sequence over tp")                  \
    X(OVERLAP, "overlap", 0, FLAG, 0, PLAN, 0, 0, 0,                           \
      "reduce gradients while backward still runs")                            \
    X(BUCKET, "bucket", 0, BYTES, "BYTES", PLAN, 0, 0, 0,                      \
      "gradient bucket, 25MB; 0B: one bucket")                                 \
    X(COMPRESS, "compress", 0, TEXT, "NAME", PLAN, 0, 0, 0,                    \
      "gradients on the wire: none, bf16, int8, topk[:DENSITY], "              \
      "powersgd[:RANK]")                                                       \
    X(ERROR_FEEDBACK, "error-feedback", 0, FLAG, 0, PLAN, 0, 0, 0,             \
      "carry what compression dropped into the next step")                     \
    X(COLLECTIVE, "collective", 0, CHOICE, "NAME", PLAN, fr_choice_collective, \
      0, 0, "algorithm of the gradient reduction")                             \
    X(NCCL_PROTOCOL, "nccl-protocol", 0, CHOICE, "NAME", PLAN,                 \
      fr_choice_protocol, 0, 0, "GPUs: NCCL's protocol for the same")          \
    X(NCCL_CHANNELS, "nccl-channels", 0, COUNT, "N", PLAN, 0, 0,               \
      FR_MAX_CHANNELS, "GPUs: NCCL's channels for the same, 0: its choice")    \
    X(SERVER_PLACE, "server-place", 0, CHOICE, "NAME", PLAN,                   \
      fr_choice_server_place, 0, 0,                                            \
      "parameter servers: nodes push, workers push, or devices serve")         \
    X(SERVERS, "servers", 0, COUNT, "N", PLAN, 0, 0, 1 << 20,                  \
      "parameter servers: nodes (devices) that serve, 0: all")                 \
    X(RANK_ORDER, "rank-order", 0, CHOICE, "NAME", PLAN, fr_choice_rank_order, \
      0, 0, "which axis changes fastest along the ranks")                      \
    X(LAYER_SPLIT, "layer-split", 0, TEXT, "SPLIT", PLAN, 0, 0, 0,             \
      "layers of each stage: N,N,.., even, or auto (stages that take alike)")  \
    X(PRECISION, "precision", 0, CHOICE, "NAME", PLAN, fr_choice_precision, 0, \
      0, "data type of weights and activations")                               \
    X(GRAD_DTYPE, "grad-dtype", 0, CHOICE, "NAME", PLAN, fr_choice_precision,  \
      0, 0, "data type in which gradients add up and are reduced")             \
    X(FLASH_ATTENTION, "flash-attention", 0, FLAG, 0, PLAN, 0, 0, 0,           \
      "fused attention, no probabilities in memory (on GPUs: on)")             \
    X(FLASH_KIND, "flash-kind", 0, CHOICE, "NAME", PLAN, fr_choice_flash_kind, \
      0, 0, "which fused attention kernel runs")                               \
    X(KERNELS, "kernels", 0, CHOICE, "NAME", PLAN, fr_choice_kernels, 0, 0,    \
      "how the framework runs what is no matrix product")                      \
    X(SCALING, "scaling", 0, CHOICE, "NAME", PLAN, fr_choice_scaling, 0, 0,    \
      "where the scales of fp8 operands come from")                            \
    X(CUDA_GRAPHS, "cuda-graphs", 0, CHOICE, "NAME", PLAN,                     \
      fr_choice_cuda_graphs, 0, 0, "GPUs: what the host issues as one")        \
    X(RECOMPUTE_PARTS, "recompute-parts", 0, TEXT, "NAME,..", PLAN, 0, 0, 0,   \
      "of selective: attention, norm, activation, mlp, experts, products, "    \
      "latent")                                                                \
    X(RECOMPUTE_LAYERS, "recompute-layers", 0, COUNT, "N", PLAN, 0, 0,         \
      1 << 20, "of full: layers of each chunk, 0: all")                        \
    X(ZERO_GROUP, "zero-group", 0, COUNT, "N", PLAN, 0, 0, 1 << 20,            \
      "ranks that share one copy, 0: all of dp x cp")                          \
    X(ZERO_RESHARD, "zero-reshard", 0, FLAG, 0, PLAN, 0, 0, 0,                 \
      "ZeRO 3: drop gathered weights after forward")                           \
    X(ZERO_PREFETCH, "zero-prefetch", 0, COUNT, "N", PLAN, 0, 0, 1 << 20,      \
      "ZeRO 3: layers gathered ahead of their use")                            \
    X(ZERO_UNIT, "zero-unit", 0, CHOICE, "NAME", PLAN, fr_choice_zero_unit, 0, \
      0, "ZeRO 3: what one gather brings")                                     \
    X(GATHER_OVERLAP, "gather-overlap", 0, FLAG, 0, PLAN, 0, 0, 0,             \
      "ZeRO 1, 2: gather parameters beside the next forward")                  \
    X(TP_OVERLAP, "tp-overlap", 0, FLAG, 0, PLAN, 0, 0, 0,                     \
      "tensor-parallel collectives in pieces beside the products")             \
    X(EP_OVERLAP, "ep-overlap", 0, FLAG, 0, PLAN, 0, 0, 0,                     \
      "experts' all-to-all beside the passes of another micro-batch")          \
    X(CP_KIND, "cp-kind", 0, CHOICE, "NAME", PLAN, fr_choice_cp_kind, 0, 0,    \
      "how context-parallel ranks exchange keys and values")                   \
    X(ETP, "etp", 0, COUNT, "N", PLAN, 0, 0, 1 << 20,                          \
      "ranks that split one expert, 0: tp")                                    \
    X(EXPERT_DISPATCH, "expert-dispatch", 0, CHOICE, "NAME", PLAN,             \
      fr_choice_dispatch, 0, 0, "how tokens get to their experts")             \
    X(EXPERT_IMBALANCE, "expert-imbalance", 0, REAL, "X", PLAN, 0, 1, 1e6,     \
      "tokens of the busiest expert-parallel rank over the mean")              \
    X(OFFLOAD_OPTIMIZER, "offload-optimizer", 0, FLAG, 0, PLAN, 0, 0, 0,       \
      "optimizer state and step on the host")                                  \
    X(OFFLOAD_ACTIVATIONS, "offload-activations", 0, REAL, "X", PLAN, 0, 0, 1, \
      "share of what forward keeps that waits in host memory")                 \
    X(THREADS, "threads", 0, COUNT, "N", PLAN, 0, 1, 4096,                     \
      "compute threads per rank")                                              \
    X(GLOBAL_BATCH, "global-batch", 0, COUNT, "N", JOB, 0, 1, FR_BIG,          \
      "sequences per step")                                                    \
    X(SEQ, "seq", 0, COUNT, "N", JOB, 0, 1, FR_BIG, "tokens per sequence")     \
    X(STEPS, "steps", 0, COUNT, "N", JOB, 0, 1, FR_BIG, "training steps")      \
    X(SEED, "seed", 0, COUNT, "N", JOB, 0, 0, FR_BIG,                          \
      "of weights and data order")                                             \
    X(OPTIMIZER, "optimizer", 0, CHOICE, "NAME", JOB, fr_choice_optimizer, 0,  \
      0, "update rule")                                                        \
    X(LR, "lr", 0, REAL, "X", JOB, 0, 0, FR_BIG, "peak learning rate")         \
    X(LR_SCHEDULE, "lr-schedule", 0, CHOICE, "NAME", JOB,                      \
      fr_choice_lr_schedule, 0, 0, "decay after warm-up")                      \
    X(LR_RULE, "lr-rule", 0, CHOICE, "NAME", JOB, fr_choice_lr_rule, 0, 0,     \
      "how the learning rate follows the batch")                               \
    X(LR_BASE_BATCH, "lr-base-batch", 0, COUNT, "N", JOB, 0, 1, FR_BIG,        \
      "global batch that --lr was chosen for")                                 \
    X(WARMUP, "warmup", 0, COUNT, "N", JOB, 0, 0, FR_BIG, "warm-up steps")     \
    X(DROPOUT, "dropout", 0, REAL, "X", JOB, 0, 0, 1,                          \
      "share of activations that are dropped in training")                     \
    X(CLIP, "clip", 0, REAL, "X", JOB, 0, 0, FR_BIG,                           \
      "largest global gradient norm; 0: no clipping")                          \
    X(WEIGHT_DECAY, "weight-decay", 0, REAL, "X", JOB, 0, 0, FR_BIG,           \
      "decoupled decay of matrices")                                           \
    X(DATA, "data", 0, PATH, "FILE", JOB, 0, 0, 0,                             \
      "text or GPT-2 token file to train on")                                  \
    X(RANKS, "ranks", 0, COUNT, "N", MACHINE, 0, 1, 1 << 20,                   \
      "number of ranks")                                                       \
    X(RANKS_PER_NODE, "ranks-per-node", 0, COUNT, "N", MACHINE, 0, 1, 4096,    \
      "default: as many as a node has cores for; more share them")             \
    X(BACKEND, "backend", 0, CHOICE, "NAME", MACHINE, fr_choice_backend, 0, 0, \
      "what computes")                                                         \
    X(HOSTFILE, "hostfile", 0, PATH, "FILE", MACHINE, 0, 0, 0,                 \
      "hosts, as mpirun reads them")                                           \
    X(SHARE_GPU, "share-gpu", 0, FLAG, 0, MACHINE, 0, 0, 0,                    \
      "several ranks may share a GPU, staged through the host: for tests")     \
    X(TIMEOUT, "timeout", 0, REAL, "SECONDS", MACHINE, 0, 0.1, 1e9,            \
      "give up on a rank that is silent for so long")                          \
    X(CHECKPOINT, "checkpoint", 0, PATH, "DIR", MACHINE, 0, 0, 0,              \
      "save weights and optimizer state there")                                \
    X(CHECKPOINT_EVERY, "checkpoint-every", 0, COUNT, "N", MACHINE, 0, 1,      \
      FR_BIG, "steps between checkpoints; default: only the last")             \
    X(RESUME, "resume", 0, FLAG, 0, MACHINE, 0, 0, 0,                          \
      "go on from --checkpoint if it holds one")                               \
    X(QUICK, "quick", 0, FLAG, 0, MACHINE, 0, 0, 0,                            \
      "fewer repetitions and sizes")                                           \
    X(ALLOW, "allow", 0, CHOICE, "WHAT", SEARCH, fr_choice_allow, 0, 0,        \
      "lossy: also plans that change the result")                              \
    X(SEARCH, "search", 0, CHOICE, "NAME", SEARCH, fr_choice_search, 0, 0,     \
      "how the space is walked")                                               \
    X(BUDGET, "budget", 0, TEXT, "TIME", SEARCH, 0, 0, 0,                      \
      "stop after so long, 2s; default: about a second of work")               \
    X(EXACT, "exact", 0, FLAG, 0, SEARCH, 0, 0, 0,                             \
      "go on until the best plan is proven to be the best")                    \
    X(MEASURE, "measure", 0, COUNT, "K", SEARCH, 0, 1, 16,                     \
      "run the K best plans here for some steps, and choose by that")          \
    X(UPDATE_PROFILE, "update-profile", 0, FLAG, 0, SEARCH, 0, 0, 0,           \
      "write the measured steps into the --profile file")                      \
    X(FOR, "for", 0, CHOICE, "NAME", SEARCH, fr_choice_framework, 0, 0,        \
      "only plans that this framework accepts")                                \
    X(JOBS, "jobs", 'j', COUNT, "N", SEARCH, 0, 1, 4096,                       \
      "threads of the search; any number gives the same answer")               \
    X(VARY, "vary", 0, REPEATED, "KEY=A,B,..", SEARCH, 0, 0, 0,                \
      "values to try; several: every combination.  8..64*2 is 8,16,32,64, "    \
      "x2 twice what the cluster has")                                         \
    X(FIXED, "fixed", 0, FLAG, 0, SEARCH, 0, 0, 0,                             \
      "keep the plan of the options; dp takes the devices that there are")     \
    X(WEAK, "weak", 0, FLAG, 0, SEARCH, 0, 0, 0,                               \
      "the global batch is that of the fewest devices and grows with them")    \
    X(KNEE, "knee", 0, REAL, "SHARE", SEARCH, 0, 0, 1,                         \
      "where devices add less than this of what the first do (0.5)")           \
    X(TRIALS, "jobs", 0, COUNT, "N", SEARCH, 0, 1, 1000000,                    \
      "N independent trials: side by side on parts of the cluster, or one "    \
      "after the other on all of it?")                                         \
    X(GOAL, "goal", 0, CHOICE, "NAME", GOAL, fr_choice_goal, 0, 0,             \
      "what is best")                                                          \
    X(TOKENS, "tokens", 0, TEXT, "N", GOAL, 0, 0, 0,                           \
      "of the whole run: 15e12, 300B; default: --steps")                       \
    X(DEADLINE, "deadline", 0, TEXT, "TIME", GOAL, 0, 0, 0,                    \
      "the run has to end in: 30d, 36h")                                       \
    X(MAX_COST, "max-cost", 0, REAL, "USD", GOAL, 0, 0, FR_BIG,                \
      "the run may cost")                                                      \
    X(MAX_ENERGY, "max-energy", 0, REAL, "KWH", GOAL, 0, 0, FR_BIG,            \
      "the run may take")                                                      \
    X(MAX_DEVICES, "max-devices", 0, COUNT, "N", GOAL, 0, 1, FR_BIG,           \
      "the run may have")                                                      \
    X(MIN_HEADROOM, "min-headroom", 0, REAL, "SHARE", GOAL, 0, 0, 1,           \
      "of the memory stays free")                                              \
    X(CRITICAL_BATCH, "critical-batch", 0, TEXT, "TOKENS", GOAL, 0, 0, 0,      \
      "larger batches take more tokens: 1 + batch / critical batch times")     \
    X(SPOT, "spot", 0, FLAG, 0, GOAL, 0, 0, 0, "at spot prices")               \
    X(CSV, "csv", 0, FLAG, 0, OUTPUT, 0, 0, 0, "print a CSV table")            \
    X(PLOT, "plot", 0, FLAG, 0, OUTPUT, 0, 0, 0, "draw the scaling curves")    \
    X(SOURCE, "source", 0, TEXT, "NAME", INPUT, 0, 0, 0,                       \
      "only rows whose source has NAME in it")                                 \
    X(MAX_RANKS, "max-ranks", 0, COUNT, "N", INPUT, 0, 1, 1 << 20,             \
      "do not run rows of more ranks")                                         \
    X(ALL, "all", 0, FLAG, 0, INPUT, 0, 0, 0,                                  \
      "score every row that runs, whatever its grade")                         \
    X(ROWS, "rows", 0, FLAG, 0, OUTPUT, 0, 0, 0, "print every row that ran")   \
    X(CHECK, "check", 0, TEXT, "BOUND,..", OUTPUT, 0, 0, 0,                    \
      "exit 4 unless all hold, such as mape<=10%,concordance>=0.88")

typedef enum fr_option {
#define FR_OPTION_ENUM(symbol, name, letter, kind, metavar, group, choice,     \
                       low, high, help)                                        \
    FR_OPT_##symbol,
    FR_OPTION_LIST(FR_OPTION_ENUM)
#undef FR_OPTION_ENUM
        FR_OPT_N
} fr_option;

/* Headings of the help text, in order. */
typedef enum fr_option_group {
    FR_GROUP_INPUT,
    FR_GROUP_MACHINE,
    FR_GROUP_SEARCH,
    FR_GROUP_GOAL,
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
    fr_choice_fn choice;
    double min, max;
    const char *help;
} fr_option_row;

extern const fr_option_row fr_options[FR_OPT_N];

/* "FORERUN_MICRO_BATCH"; returns buf. */
char *fr_option_env_name(fr_option option, char *buf, int n_buf);

#endif
