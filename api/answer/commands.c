/* commands.c: one row per command, in the order of the help text. */
#include "api/answer/answers.h"

#define OPTION(symbol) FR_OPT_##symbol,
/* The last of the lists of commands that take a plan. */
#define OF_PLAN_AND_JOB                                                        \
    FR_OPT_FRAMEWORK,                                                          \
        FR_PLAN_OPTION_LIST(OPTION, OPTION) FR_JOB_OPTIONS(OPTION) FR_OPT_N
/* Interruptions of a run, and the cost of its checkpoints. */
#define HAZARD_OPTIONS                                                         \
    FR_OPT_MTBF, FR_OPT_RESTART, FR_OPT_CHECKPOINT_KIND, FR_OPT_STORAGE_WRITE, \
        FR_OPT_STORAGE_READ, FR_OPT_SPOT_EVERY, FR_OPT_SPOT_WAIT,              \
        FR_OPT_SPOT_TOGETHER, FR_OPT_SPARES, FR_OPT_REPAIR,                    \
        FR_OPT_CHECKPOINT_EVERY
#define GOAL_OPTIONS                                                           \
    FR_OPT_GOAL, FR_OPT_DEADLINE, FR_OPT_MAX_COST, FR_OPT_MAX_ENERGY,          \
        FR_OPT_MAX_DEVICES, FR_OPT_MIN_HEADROOM, FR_OPT_FIT_CONFIDENCE,        \
        FR_OPT_CRITICAL_BATCH, FR_OPT_SPOT, HAZARD_OPTIONS

static const fr_option no_options[] = {FR_OPT_N};
static const fr_option table_options[] = {FR_OPT_COLUMNS, FR_OPT_N};
static const fr_option calibrate_options[] = {
    FR_OPT_COLUMNS,  FR_OPT_BACKEND, FR_OPT_RANKS,     FR_OPT_SHARE_GPU,
    FR_OPT_HOSTFILE, FR_OPT_QUICK,   FR_OPT_SEQ,       FR_OPT_GLOBAL_BATCH,
    FR_OPT_TIMEOUT,  FR_OPT_OUTPUT,  FR_OPT_RUNS_FILE, FR_OPT_PROFILE,
    FR_OPT_STORAGE,  FR_OPT_FORCE,   FR_OPT_N};
static const fr_option simulate_options[] = {
    FR_OPT_FROM,           FR_OPT_SET,    FR_OPT_MODEL,     FR_OPT_COLUMNS,
    FR_OPT_PROFILE,        FR_OPT_OUTPUT, FR_OPT_TRACE,     FR_OPT_GANTT,
    FR_OPT_RANKS_PER_NODE, FR_OPT_RANKS,  FR_OPT_POWER_CAP, OF_PLAN_AND_JOB};
static const fr_option tune_options[] = {
    FR_OPT_POWER_CAP, FR_OPT_FROM,        FR_OPT_SET,
    FR_OPT_MODEL,     FR_OPT_COLUMNS,     FR_OPT_PROFILE,
    FR_OPT_OUTPUT,    FR_OPT_RANKS,       FR_OPT_ALLOW,
    FR_OPT_SEARCH,    FR_OPT_BUDGET,      FR_OPT_EXACT,
    FR_OPT_FOR,       FR_OPT_VERSION,     FR_OPT_JOBS,
    FR_OPT_TOP,       GOAL_OPTIONS,       FR_OPT_MEASURE,
    FR_OPT_ON_DEMAND, FR_OPT_LEAST_NODES, FR_OPT_UPDATE_PROFILE,
    FR_OPT_TIMEOUT,   OF_PLAN_AND_JOB};
static const fr_option sweep_options[] = {
    FR_OPT_COLUMNS, FR_OPT_PROFILE, FR_OPT_VARY,    FR_OPT_FIXED, FR_OPT_WEAK,
    FR_OPT_KNEE,    FR_OPT_TRIALS,  FR_OPT_ALLOW,   FR_OPT_RANKS, GOAL_OPTIONS,
    FR_OPT_PLOT,    FR_OPT_EXACT,   OF_PLAN_AND_JOB};
/* --help names these; --help=all has the rest. */
static const fr_option simulate_usual[] = {FR_OPT_PROFILE,
                                           FR_OPT_DP,
                                           FR_OPT_TP,
                                           FR_OPT_PP,
                                           FR_OPT_ZERO,
                                           FR_OPT_RECOMPUTE,
                                           FR_OPT_MICRO_BATCH,
                                           FR_OPT_GLOBAL_BATCH,
                                           FR_OPT_SEQ,
                                           FR_OPT_PRECISION,
                                           FR_OPT_N};
static const fr_option tune_usual[] = {
    FR_OPT_PROFILE, FR_OPT_OUTPUT,  FR_OPT_RANKS,  FR_OPT_GLOBAL_BATCH,
    FR_OPT_SEQ,     FR_OPT_GOAL,    FR_OPT_TOKENS, FR_OPT_FOR,
    FR_OPT_BUDGET,  FR_OPT_MEASURE, FR_OPT_N};
static const fr_option sweep_usual[] = {
    FR_OPT_PROFILE, FR_OPT_VARY, FR_OPT_FIXED, FR_OPT_WEAK,         FR_OPT_GOAL,
    FR_OPT_TOKENS,  FR_OPT_PLOT, FR_OPT_SEQ,   FR_OPT_GLOBAL_BATCH, FR_OPT_N};
static const fr_option explain_usual[] = {
    FR_OPT_PROFILE, FR_OPT_GANTT,     FR_OPT_TOP,  FR_OPT_DP,
    FR_OPT_TP,      FR_OPT_PP,        FR_OPT_ZERO, FR_OPT_GLOBAL_BATCH,
    FR_OPT_SEQ,     FR_OPT_RECOMPUTE, FR_OPT_N};

static const fr_option run_options[] = {FR_OPT_COLUMNS,
                                        FR_OPT_FORCE,
                                        FR_OPT_DATA,
                                        FR_OPT_STEPS,
                                        FR_OPT_TOKENS,
                                        FR_OPT_BACKEND,
                                        FR_OPT_SHARE_GPU,
                                        FR_OPT_HOSTFILE,
                                        FR_OPT_PROFILE,
                                        FR_OPT_TIMEOUT,
                                        FR_OPT_TRACE,
                                        FR_OPT_GANTT,
                                        FR_OPT_OUTPUT,
                                        FR_OPT_RESUME,
                                        FR_OPT_CHECKPOINT,
                                        FR_OPT_CHECKPOINT_EVERY,
                                        FR_OPT_CHECKPOINT_ASYNC,
                                        FR_OPT_REPLICATE_EVERY,
                                        FR_OPT_REPLICA_DIR,
                                        FR_OPT_KEEP,
                                        FR_OPT_ELASTIC,
                                        FR_OPT_MAX_RESTARTS,
                                        FR_OPT_REBALANCE,
                                        FR_OPT_METRICS,
                                        FR_OPT_INJECT,
                                        FR_OPT_PROMETHEUS,
                                        FR_OPT_EVAL_DATA,
                                        FR_OPT_EVAL_EVERY,
                                        FR_OPT_EVAL_BATCHES,
                                        FR_OPT_INIT,
                                        FR_OPT_SAVE,
                                        FR_OPT_UPDATE_PROFILE,
                                        FR_OPT_N};
static const fr_option explain_options[] = {FR_OPT_FROM,
                                            FR_OPT_SET,
                                            FR_OPT_NEXT_MEASUREMENT,
                                            FR_OPT_MODEL,
                                            FR_OPT_FIT_CONFIDENCE,
                                            FR_OPT_RANKS_PER_NODE,
                                            FR_OPT_COLUMNS,
                                            FR_OPT_RANKS,
                                            FR_OPT_PROFILE,
                                            FR_OPT_GANTT,
                                            FR_OPT_TRACE,
                                            FR_OPT_ALLOW,
                                            FR_OPT_JOBS,
                                            FR_OPT_TOP,
                                            OF_PLAN_AND_JOB};
static const fr_option goodput_options[] = {
    FR_OPT_POWER_CAP,   FR_OPT_FROM,           FR_OPT_SET,
    FR_OPT_MODEL,       FR_OPT_SPOT,           FR_OPT_COLUMNS,
    FR_OPT_PROFILE,     FR_OPT_RANKS,          FR_OPT_FOR_DAYS,
    FR_OPT_RUNS,        FR_OPT_SPOT_NOTICE,    FR_OPT_SPOT_TRACE,
    FR_OPT_LEAST_NODES, FR_OPT_MEETS,          FR_OPT_INJECT,
    FR_OPT_TIMEOUT,     FR_OPT_BACKUP_WORKERS, FR_OPT_FORCE,
    HAZARD_OPTIONS,     OF_PLAN_AND_JOB};
static const fr_option goodput_usual[] = {FR_OPT_FOR_DAYS,
                                          FR_OPT_TOKENS,
                                          FR_OPT_RUNS,
                                          FR_OPT_MTBF,
                                          FR_OPT_CHECKPOINT_EVERY,
                                          FR_OPT_CHECKPOINT_KIND,
                                          FR_OPT_SPARES,
                                          FR_OPT_STORAGE_WRITE,
                                          FR_OPT_RESTART,
                                          FR_OPT_SPOT,
                                          FR_OPT_N};
static const fr_option report_options[] = {FR_OPT_PROFILE, FR_OPT_OUTPUT,
                                           FR_OPT_N};

static const fr_option validate_options[] = {
    FR_OPT_COLUMNS, FR_OPT_PROFILE, FR_OPT_SOURCE,      FR_OPT_MAX_RANKS,
    FR_OPT_ALL,     FR_OPT_JOBS,    FR_OPT_ROWS,        FR_OPT_TOP,
    FR_OPT_CHECK,   FR_OPT_OUTPUT,  FR_OPT_FRAMEWORK,   FR_OPT_SHOTS,
    FR_OPT_DRAWS,   FR_OPT_SEED,    FR_OPT_EXPLAIN_ROW, FR_OPT_N};

/* The words that an argument may be, NULL past the last. */
#define WORDS(name, ...)                                                       \
    static const char *name(int i)                                             \
    {                                                                          \
        static const char *const at[] = {__VA_ARGS__};                         \
        return i < (int)FR_LENGTH(at) ? at[i] : NULL;                          \
    }
WORDS(catalog_words, "models", "clusters", "nodes", "devices", "targets",
      "frameworks", "sources")
WORDS(report_words, "trace", "check-trace")
static const fr_option catalog_options[] = {FR_OPT_COLUMNS, FR_OPT_TEMPLATE,
                                            FR_OPT_N};
static const fr_option doctor_options[] = {FR_OPT_COLUMNS, FR_OPT_PROFILE,
                                           FR_OPT_HOSTFILE, FR_OPT_N};
WORDS(checkpoint_words, "inspect", "verify", "convert")

static const fr_option checkpoint_options[] = {FR_OPT_OUTPUT, FR_OPT_COLUMNS,
                                               FR_OPT_N};
static const fr_option import_options[] = {
    FR_OPT_SET,   FR_OPT_GPU,     FR_OPT_NODE_TYPE, FR_OPT_TEST,
    FR_OPT_NODES, FR_OPT_MODEL,   FR_OPT_RANKS,     FR_OPT_SEQ,
    FR_OPT_TOP,   FR_OPT_COLUMNS, FR_OPT_OUTPUT,    FR_OPT_N};
static const fr_option export_options[] = {
    FR_OPT_TO,         FR_OPT_PROGRAM,       FR_OPT_VERSION,
    FR_OPT_COLLECTIVE, FR_OPT_NCCL_PROTOCOL, FR_OPT_NCCL_CHANNELS,
    FR_OPT_TIME_LIMIT, FR_OPT_CHECKPOINT,    FR_OPT_CHECKPOINT_EVERY,
    FR_OPT_OUTPUT,     FR_OPT_FORCE,         FR_OPT_N};
static const fr_option collective_options[] = {
    FR_OPT_COLUMNS,   FR_OPT_PROFILE,
    FR_OPT_ALGORITHM, FR_OPT_NCCL_PROTOCOL,
    FR_OPT_RANKS,     FR_OPT_RANKS_PER_NODE,
    FR_OPT_N};
WORDS(collective_words, "all_reduce", "reduce_scatter", "all_gather",
      "all_to_all", "broadcast", "send")
WORDS(shell_words, "bash", "zsh", "fish")

#define IS(kind) FR_POSITIONAL_##kind
/* clang-format off */
const fr_command fr_commands[] = {
    {"calibrate", NULL,
     "measure this machine: kernels, memory, links, storage",
     "[MODEL...]", 0, 4, {IS(MODEL), IS(MODEL), IS(MODEL), IS(MODEL)},
     NULL, calibrate_options, NULL,
     "Time the kernels and collectives that 'forerun run' calls, over the "
     "shapes that\nthe models need (default: gpt2-demo; on GPUs gpt2-124m "
     "and llama-3-8b).\n--backend cuda starts one rank per GPU. --runs times "
     "nothing: it learns from\nmeasured steps of a stack (one is enough) and "
     "corrects the predictions of other\nsteps with -p.",
     "  forerun calibrate gpt2-demo -o machine.json\n"
     "  forerun calibrate --quick --ranks 2 -o machine.json\n"
     "  forerun calibrate --backend cuda -o gpu.json\n"
     "  forerun calibrate --runs mine.csv -o stack.json"},
    {"simulate", fr_api_simulate,
     "predict one plan: time of a step by part, memory, cost",
     "MODEL CLUSTER [PLAN] | PLAN CLUSTER", 1, 3,
     {IS(MODEL), IS(CLUSTER), IS(FILE)},
     NULL, simulate_options, simulate_usual,
     "Plan and job options override the PLAN file; without a file they start "
     "from a\nsingle rank. --from starts from the configuration of a "
     "framework and takes a\nCLUSTER alone. -o writes the plan with its "
     "prediction.",
     "  forerun simulate gpt2-demo this-machine --dp 2 -p machine.json\n"
     "  forerun simulate gpt2-124m this-machine --pp 2 --schedule 1f1b "
     "--micro-batch 1 --gantt\n"
     "  forerun simulate gpt2-124m this-machine plan.json --json\n"
     "  forerun simulate --from megatron.sh dgx-h100:4"},
    {"tune", fr_api_tune,
     "find the best plan that fits, and explain why the others lose",
     "MODEL CLUSTER | PLAN CLUSTER", 1, 2,
     {IS(MODEL), IS(CLUSTER)}, NULL, tune_options, tune_usual,
     "A plan option pins its axis; a list such as --tp 2,4,8 restricts the "
     "axis to\nthese values. On GPUs the plans are simulated in the order of "
     "their lower\nbounds, for about a second: the gap bounds how much "
     "better any other plan can\nbe, and --exact closes it. Plans that "
     "change the result (lossy compression) need\n--allow lossy, other "
     "batches need --goal loss. The answer always has the best\nplan of one "
     "device and of one node. A PLAN or the configuration of a "
     "framework\n(--from, with a CLUSTER alone) gives the model and the job, "
     "and is compared with\nthe best plan.",
     "  forerun tune gpt2-demo this-machine -p machine.json -o plan.json\n"
     "  forerun tune gpt2-demo this-machine -p machine.json --measure 3 "
     "--update-profile\n"
     "  forerun tune gpt2-124m this-machine --global-batch 8 --seq 256 "
     "--pp 1\n"
     "  forerun tune gpt2-124m two-hosts-1gbit --allow lossy --top 5\n"
     "  forerun tune gpt3-175b dgx-a100:128 --global-batch 1536 --tp 4,8 "
     "--for megatron\n"
     "  forerun tune llama-3-8b p5.48xlarge:8 --global-batch 512 --seq 4096 "
     "--tokens 1T \\\n      --goal deadline --deadline 60d\n"
     "  forerun tune --from ds_config.json dgx-h100:4 --model llama-3-8b "
     "--for deepspeed\n"
     "  forerun tune gpt2-1.5b p5.48xlarge:2 --seq 1024 --goal loss --tokens "
     "10B \\\n      --critical-batch 500k"},
    {"sweep", fr_api_sweep,
     "print a what-if table over nodes, GPUs, links, batches, prices",
     "MODEL CLUSTER [PLAN]", 2, 3, {IS(MODEL), IS(CLUSTER), IS(FILE)},
     NULL, sweep_options, sweep_usual,
     "Keys: cluster, node, nodes, gpu, gpus-per-node, nvlink, nics, nic, "
     "nic-latency,\noversubscription, memory, memory-bandwidth, flops, "
     "price, gpu-price, power,\nmtbf, restart, storage-write, storage-read, "
     "storage-latency, spot-every, jitter,\nslow, spares, repair, "
     "checkpoint-every, checkpoint-kind, spot, model, ranks, and\nall "
     "options of the plan and the job (loaders ...). Several keys: "
     "every\ncombination. Each point is tuned, or (--fixed) simulated under "
     "the plan of the\noptions. Impossible combinations are listed with the "
     "reason.",
     "  forerun sweep llama-3-8b p5.48xlarge:1 --vary nodes=1..16*2 --fixed "
     "--zero 1 \\\n      --recompute full --global-batch 512 --seq 4096 "
     "--plot\n"
     "  forerun sweep llama-3-8b dgx-h100:2 --vary gpu=h100,h200,b200 --vary "
     "nic=100Gb/s,400Gb/s \\\n      --global-batch 64 --seq 4096 --tp 1 "
     "--pp 1\n"
     "  forerun sweep llama-3-8b p5.48xlarge:8 --vary nodes=4,8,16,32 "
     "--fixed --zero 1 \\\n      --global-batch 1024 --seq 8192 --tokens 1T "
     "--goal deadline --deadline 60d"},
    {"run", NULL,
     "train under a plan and compare with its prediction", "PLAN", 1, 1,
     {IS(FILE)}, NULL, run_options, NULL,
     "Without a launcher, run starts its ranks with mpirun and watches them; "
     "inside\nmpirun, srun or a torchrun-style environment it is one of the "
     "ranks. On GPUs\n(--backend cuda) srun and torchrun need no MPI.\nWith "
     "--checkpoint, SIGTERM or SIGUSR1 ends the run after the current step "
     "and a\ncheckpoint; a second signal ends it at once. The run also ends "
     "if a rank gives\nno sign of life for 20 s, or if others wait for it "
     "for 60 s (--timeout sets\nboth).",
     "  forerun run plan.json --data book.txt --steps 100\n"
     "  forerun run plan.json --trace trace.json -p machine.json\n"
     "  mpirun -n 2 forerun run plan.json --json\n"
     "  srun -N 2 --ntasks-per-node 8 forerun run plan.json --backend cuda"},
    {"checkpoint", NULL,
     "inspect, verify and convert checkpoints",
     "inspect|verify|convert DIR [PLAN]", 2, 3,
     {IS(WORD), IS(FILE), IS(FILE)}, checkpoint_words, checkpoint_options,
     NULL,
     "DIR is the folder of run --checkpoint or one step-N in it; the folder "
     "stands for\nits newest complete checkpoint. verify reads every byte of "
     "all checkpoints and\nexits with 4 if one is damaged. convert writes a "
     "checkpoint for the ranks of\nPLAN to -o DIR; a run that resumes "
     "converts by itself.",
     "  forerun checkpoint inspect checkpoints\n"
     "  forerun checkpoint convert checkpoints plan-of-8.json -o for-8"},
    {"explain", fr_api_explain,
     "explain a plan: its parts, its bottleneck, the next change",
     "PLAN [CLUSTER] | MODEL CLUSTER", 1, 2,
     {IS(FILE), IS(CLUSTER)},
     NULL, explain_options, explain_usual,
     "With a CLUSTER, the step is simulated again with each rate and latency "
     "slightly\nlarger and smaller, and with every single change of the "
     "plan; without one,\nexplain shows the prediction that the plan "
     "carries. Plan and job options\noverride the file. --from starts from "
     "the configuration of a framework (forerun\nimport lists the formats).",
     "  forerun explain plan.json\n"
     "  forerun explain --from ds_config.json dgx-h100:4 --model llama-3-8b\n"
     "  forerun explain plan.json this-machine -p machine.json --gantt\n"
     "  forerun explain llama-3-8b dgx-h100:2 --dp 8 --tp 2 --zero 1 "
     "--global-batch 128 --seq 4096"},
    {"goodput", fr_api_goodput,
     "simulate a run of weeks: failures, checkpoints, finish time",
     "PLAN CLUSTER | MODEL CLUSTER", 1, 2, {IS(FILE), IS(CLUSTER)},
     NULL, goodput_options, goodput_usual,
     "The run is simulated --runs times: steps as predicted, failures by "
     "the\n<reliability> of the cluster or --mtbf, checkpoints to its "
     "storage at the best\ninterval (or --checkpoint-every). It ends after "
     "--tokens or --steps, otherwise\nafter 90 days. Values that you do not "
     "give are assumed and marked in the answer.\n--inject walks through one "
     "run of --steps with these faults, as run --inject\ndoes.",
     "  forerun goodput plan.json dgx-h100:16 --for-days 30\n"
     "  forerun goodput llama-3-405b llama3-24k --ranks 16384 --tp 8 --pp 16 "
     "--zero 1 \\\n      --global-batch 2048 --seq 8192 --tokens 15.6T "
     "--checkpoint-kind async\n"
     "  forerun goodput llama-3-8b p4d.24xlarge:8 --zero 1 --tokens 100B "
     "--spot \\\n      --spot-every 10h --spot-notice 2min"},
    {"compare", fr_api_compare,
     "compare two plans, predictions or runs",
     "A B | PREDICTED TRACE...", 2, 4, {IS(FILE), IS(FILE), IS(FILE), IS(FILE)},
     NULL, table_options, NULL,
     "A and B are plan files, or the --json output of simulate and "
     "run.\nTRACE shows where the run lost time against PREDICTED (a plan, "
     "such an output or\na trace), by category (compute, optimizer, exposed "
     "collectives, pipeline, data,\nidle) and by rank. A TRACE is a file per "
     "rank or a folder of files: forerun's\nown traces, traces of PyTorch's "
     "profiler, Chakra's, and exports of nsys to\nSQLite (each GPU is a "
     "rank; NVTX ranges like \"iteration 7\" mark steps). In a\ntrace "
     "without marked steps a step lasts from one update of the optimizer to "
     "the\nnext; without updates the trace is one step.",
     "  forerun compare plan.json other.json\n"
     "  forerun run plan.json --json > run.json && "
     "forerun compare plan.json run.json\n"
     "  forerun simulate llama-3-8b dgx-h100:1 plan.json --trace sim.json && "
     "\\\n      forerun compare sim.json profiler-traces/\n"
     "  nsys export --type sqlite run.nsys-rep && forerun compare plan.json "
     "run.sqlite"},
    {"validate", fr_api_validate,
     "predict a file of measured runs, and print the errors",
     "CASES.csv...", 1, 4, {IS(FILE), IS(FILE), IS(FILE), IS(FILE)},
     NULL, validate_options, NULL,
     "Each row is one measured run: model, gpu, num_gpus, tp, pp, mbs, gbs, "
     "precision,\nrecompute, step_time_s, peak_mem_gib ... (docs/formats.md "
     "explains all columns).\nRows graded A or B with a full configuration "
     "are scored; without such columns\nall rows are scored.",
     "  forerun validate runs.csv\n"
     "  forerun validate llm_steps.csv memory.csv --rows -o errors.json\n"
     "  forerun validate runs.csv --shots 0,1,3 --seed 7\n"
     "  forerun validate runs.csv --check 'mape<=10%,bias<=3%'"},
    {"collective", fr_api_collective,
     "predict the time and bandwidth of a collective by size",
     "OP BYTES CLUSTER", 3, 3, {IS(WORD), IS(WORD), IS(CLUSTER)},
     collective_words, collective_options, NULL,
     "OP: all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, or "
     "send (from\nthe first rank to the last). BYTES: the whole payload, "
     "1GB, or a range such as\n1kB..1GB (times 4) or 1kB..1GB*2. algbw and "
     "busbw are defined as in nccl-tests.\nWithout --algorithm the answer "
     "has the choice of NCCL (between CPUs: of forerun)\nand all other "
     "algorithms.",
     "  forerun collective all_reduce 1MB..4GB dgx-h100:4\n"
     "  forerun collective all_gather 256MB dgx-a100:16 --algorithm ring "
     "--ranks 64\n"
     "  forerun collective all_reduce 64kB..64MB this-machine -p "
     "machine.json"},
    {"flows", fr_api_flows,
     "predict the finish times of data flows on a shared network",
     "PLATFORM.xml FLOWS.csv", 2, 2, {IS(FILE), IS(FILE)}, NULL, table_options,
     NULL,
     "PLATFORM: a SimGrid platform.  FLOWS: id,src,dst,bytes,start_s,delay_s,"
     "deps\n(deps: ids joined by ';').  Links are shared max-min fairly.",
     "  forerun flows platform.xml flows.csv\n"
     "  forerun flows platform.xml flows.csv --json"},
    {"catalog", fr_api_catalog,
     "list models, clusters, nodes, devices, targets and frameworks",
     "[WHAT [NAME]]", 0, 2,
     {IS(WORD), IS(WORD)},
     catalog_words, catalog_options, NULL,
     "WHAT: models, clusters, nodes, devices, targets, frameworks or "
     "sources.\nA node "
     "times a count is a cluster: dgx-h100:16. Bandwidths are per "
     "direction,\npeaks are dense. --template prints a commented cluster "
     "file to start from:\nsingle-node, two-tier, rail, torus. targets NAME "
     "lists each field of a plan as\nthe framework takes it, and its rules "
     "with sources. frameworks says which\nnames --framework (run), export "
     "--to and --for (write), import (read) and\nimport log (log) accept.",
     "  forerun catalog\n  forerun catalog devices\n"
     "  forerun catalog targets megatron\n"
     "  forerun catalog frameworks\n"
     "  forerun catalog --template two-tier > racks.xml\n"
     "  forerun catalog nodes --json"},
    {"doctor", NULL,
     "check this machine and print a fix for each problem",
     "[CLUSTER [PLAN]]", 0, 2, {IS(CLUSTER), IS(FILE)}, NULL, doctor_options,
     NULL,
     "Each line is one check: its finding, the commands that a missing part "
     "stops, and\nits fix.\nWith CLUSTER, doctor checks whether this "
     "machine is one of its nodes; with\n--profile also, whether the "
     "measured collectives (forerun calibrate, or\nnccl-tests by forerun "
     "import) are as fast as the description of the cluster. It\nexits with "
     "4 if anything is missing.",
     "  forerun doctor\n  forerun doctor dgx-h100:2 -p nccl-tests.json\n"
     "  forerun doctor --hostfile hosts.txt"},
    {"import", fr_api_import,
     "read topologies, configurations, logs and traces of other tools",
     "[KIND] FILE [[KIND] FILE]", 1, 4,
     {IS(WORD), IS(FILE), IS(WORD), IS(FILE)}, fr_import_word, import_options,
     NULL,
     "KIND is guessed if it is left out. These kinds become a cluster "
     "file: nccl\n(topology XML), nccl-graph, hwloc (lstopo XML), topo-m "
     "(nvidia-smi topo -m),\nnvidia-smi (-q -x), amd-topo (rocm-smi, amd-"
     "smi topology), slurm\n(topology.conf), slurm-nodes (scontrol, sinfo, "
     "slurm.conf), simgrid (platform\nXML); nccl-tests (text or JSON) "
     "becomes a profile for --profile, and --test\nnames its test. Values "
     "that the file does not have are taken from the catalogue\nand noted "
     "on stderr. Two files, one with the switches (slurm) and one with "
     "a\nnode (nccl, hwloc, topo-m ...), make one cluster.\nConfigurations "
     "of frameworks become plan files: deepspeed "
     "(ds_config.json),\n"
     "torchtitan (TOML of 0.2), megatron (a script with its arguments), "
     "accelerate,\nmegatron-bridge, nemo, gpt-neox, nanotron, llm-foundry, "
     "primus (YAML),\nolmo-core (config.json of a run). --model and --ranks "
     "add the values that the\nfile does not have.\nRecords of runs are "
     "streamed, .gz too. log (of Megatron-LM, DeepSpeed,\ntorchtitan, NeMo, "
     "nanotron, llm-foundry, Hugging Face's Trainer, Lightning,\ntorchtune) "
     "becomes rows for validate. kineto (JSON of PyTorch's profiler), "
     "nsys\n(SQLite) and chakra (.et, JSON) become a table of kernels, with"
     " -o FILE.csv all\nof it, with -o FILE.json a profile. memory-snapshot"
     " (JSON of PyTorch's\nallocator) lists its contents and its peak.",
     "  forerun import nccl topo.xml --nodes 16 -o cluster.xml\n"
     "  forerun import topo.txt --gpu h100-sxm -o cluster.xml\n"
     "  forerun import topology.conf topo.txt --gpu h100-sxm -o "
     "cluster.xml\n"
     "  forerun import all_reduce.txt -o links.json\n"
     "  forerun import deepspeed ds_config.json --model llama-3-8b --ranks 32 "
     "-o plan.json\n"
     "  forerun import accelerate accelerate.yaml --model llama-3-8b -o "
     "plan.json\n"
     "  forerun import log train.log --gpu h100-sxm -o cases.csv\n"
     "  forerun import log a.log b.log.gz -o cases.csv && forerun validate "
     "cases.csv\n"
     "  forerun import kineto rank0.json.gz --top 30\n"
     "  forerun import kineto rank0.json.gz -o h100.json"},
    {"export", fr_api_export,
     "write a plan for another framework or a launcher",
     "PLAN [CLUSTER]", 1, 2, {IS(FILE), IS(CLUSTER)}, NULL, export_options,
     NULL,
     "A framework gets a file that holds the plan: arguments, a "
     "configuration, a\nscript. If it cannot run the plan, export exits with "
     "3, the reason and the\nnearest plan that it can run (forerun catalog "
     "targets NAME). A launcher starts\nsuch a --program on the nodes of "
     "CLUSTER (default: the cluster of the plan).\nnccl-csv writes a file "
     "for NCCL's example tuner plugin: algorithm, protocol and\nchannels for "
     "the reduction of gradients and the gathering of parameters, by\nsize.",
     "  forerun export plan.json --to megatron -o megatron.sh\n"
     "  forerun export plan.json --to accelerate -o accelerate/\n"
     "  forerun export plan.json --to slurm --program deepspeed -o job/\n"
     "  forerun export plan.json --to nccl-csv -o nccl_tuner.conf\n"
     "  forerun export plan.json dgx-h100:4 --to nccl-csv "
     "--nccl-protocol ll128"},
    {"report", NULL, "write and check timelines",
     "trace PLAN CLUSTER | check-trace FILE", 2, 3,
     {IS(WORD), IS(FILE), IS(CLUSTER)}, report_words, report_options, NULL,
     "trace writes the simulated step as a Chrome trace. check-trace exits "
     "with 4\nunless every track of a trace file is properly nested.",
     "  forerun report trace plan.json this-machine -p machine.json "
     "-o trace.json\n"
     "  forerun report check-trace trace.json"},
    {"help", NULL, "explain a command or a term of the field",
     "[COMMAND | TERM | terms]", 0, 1, {IS(COMMAND)}, NULL, no_options, NULL,
     NULL,
     "  forerun help\n  forerun help tune\n  forerun help bubble\n"
     "  forerun help terms"},
    {"version", NULL,
     "print the version and the features that were built in",
     "", 0, 0, {IS(NONE)}, NULL, no_options, NULL,
     NULL,
     "  forerun version\n  forerun version --json"},
    {"completions", NULL,
     "print the completion script of a shell",
     "bash|zsh|fish", 1, 1, {IS(WORD)}, shell_words, no_options, NULL,
     NULL,
     "  source <(forerun completions bash)\n"
     "  forerun completions fish > "
     "~/.config/fish/completions/forerun.fish"},
    {.name = NULL},
};
