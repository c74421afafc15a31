/*
 * cmd_run.c: trains under a plan.  The same command line is the supervisor
 * that starts the ranks, and each rank; rank 0 prints the answer.  GPU ranks
 * may also be started by srun or torchrun, without MPI.
 */
#include "api/answer/learn_runs.h"
#include "api/inputs.h"
#include "api/resolve/no_effect.h"
#include "api/resolve/plan_options.h"
#include "cli/answer.h"
#include "cli/cli.h"
#include "cli/train/elastic.h"
#include "cli/train/gpu_ranks.h"
#include "cli/train/rebalance.h"
#include "cli/train/run_answer.h"
#include "cli/train/run_fit.h"
#include "cli/train/supervise.h"
#include "cli/watch/run_watch.h"
#include "core/system/fileio.h"
#include "plan/decide/plan_json.h"
#include "program/lower/step/lower.h"
#include "runtime/gpu/executor_gpu.h"
#include "runtime/launch/launch.h"
#include "runtime/launch/rendezvous.h"
#include "runtime/run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_TIMEOUT_S 60
#define TRACED_STEPS 5 /* the parts are their mean, the trace their median */

/* GPUs take no part in what makes computing slow or stand still. */
static fr_status parse_faults(const fr_cli *cli, const fr_plan_file *file,
                              fr_faults *out, fr_err *err)
{
    const char *words = fr_cli_text(cli, FR_OPT_INJECT);
    int64_t reached = 0;

    if (words == NULL)
        return FR_OK;
    FR_TRY(fr_faults_parse(words, out, err));
    /* A run that continues after a failure has had some of them, and may have
     * fewer ranks. */
    if (fr_launch_number(FR_REACHED_ENV, -1, INT64_MAX, &reached))
        fr_faults_forget(out, reached);
    else
        FR_TRY(fr_faults_check(out, fr_plan_world(&file->plan),
                               file->job.n_steps, err));
    if (fr_faults_has(out, FR_FAULT_JOIN) && !fr_cli_has(cli, FR_OPT_ELASTIC))
        return fr_fail(err, FR_USAGE, "--inject: join needs --elastic MIN:MAX");
    if (fr_request_is_on_gpu(&cli->request) &&
        (fr_faults_has(out, FR_FAULT_SLOW) ||
         fr_faults_has(out, FR_FAULT_HANG)))
        return fr_fail(err, FR_USAGE,
                       "--inject: slow and hang are for CPUs, not for "
                       "--backend cuda");
    return FR_OK;
}

static fr_status check_faults(const fr_cli *cli, const fr_plan_file *file,
                              fr_err *err)
{
    fr_faults faults = {0};
    fr_status status = parse_faults(cli, file, &faults, err);

    fr_vec_release(&faults);
    return status;
}

/* Changes the file's job by the options. */
static fr_status apply_options(const fr_cli *cli, fr_plan_file *file,
                               fr_err *err)
{
    FR_TRY(fr_request_apply_job(&cli->request, &file->model, &file->job, err));
    static const fr_option of_checkpoints[] = {
        FR_OPT_RESUME, FR_OPT_CHECKPOINT_EVERY, FR_OPT_CHECKPOINT_ASYNC,
        FR_OPT_KEEP};
    for (size_t i = 0; i < FR_LENGTH(of_checkpoints); i++)
        if (fr_cli_has(cli, of_checkpoints[i]) &&
            !fr_cli_has(cli, FR_OPT_CHECKPOINT))
            return fr_fail(err, FR_USAGE, "--%s needs --checkpoint DIR",
                           fr_option_get(of_checkpoints[i]).name);
    if (fr_cli_has(cli, FR_OPT_ELASTIC))
        FR_TRY(fr_elastic_parse(&cli->request, &(fr_elastic_range){0}, err));
    else if (fr_cli_has(cli, FR_OPT_MAX_RESTARTS))
        return fr_fail(err, FR_USAGE, "--max-restarts needs --elastic MIN:MAX");
    if (fr_cli_has(cli, FR_OPT_REPLICATE_EVERY) &&
        !fr_cli_has(cli, FR_OPT_ELASTIC))
        return fr_fail(err, FR_USAGE,
                       "--replicate-every needs --elastic MIN:MAX: copies in "
                       "memory go when the run ends");
    if (fr_cli_has(cli, FR_OPT_REPLICA_DIR) &&
        !fr_cli_has(cli, FR_OPT_REPLICATE_EVERY))
        return fr_fail(err, FR_USAGE,
                       "--replica-dir needs --replicate-every N");
    FR_TRY(fr_rebalance_check(&cli->request, file, err));
    FR_TRY(check_faults(cli, file, err));
    if ((fr_cli_has(cli, FR_OPT_EVAL_EVERY) ||
         fr_cli_has(cli, FR_OPT_EVAL_BATCHES)) &&
        !fr_cli_has(cli, FR_OPT_EVAL_DATA))
        return fr_fail(err, FR_USAGE,
                       "--eval-every and --eval-batches need --eval-data FILE");
    if (fr_cli_on(cli, FR_OPT_SHARE_GPU) &&
        !fr_request_is_on_gpu(&cli->request))
        return fr_fail(err, FR_USAGE, "--share-gpu needs --backend cuda");
    if (!fr_request_is_on_gpu(&cli->request))
        return fr_plan_check_executable(&file->plan, &file->model, &file->job,
                                        err);
    FR_TRY(fr_plan_check_executable_gpu(&file->plan, &file->model, &file->job,
                                        err));
    /* Our kernels run, whichever the plan was predicted with. */
    file->plan.execution.kernels = FR_KERNELS_OWN;
    return FR_OK;
}

/* ---- rank ---------------------------------------------------------------- */
static fr_run_options make_options(const fr_cli *cli, const fr_job *job,
                                   const fr_faults *faults, fr_run_watch *watch)
{
    fr_run_options options;
    fr_run_options_init(&options);
    options.trace_steps =
        job->n_steps < TRACED_STEPS ? job->n_steps : TRACED_STEPS;
    options.checkpoint_dir = fr_cli_text(cli, FR_OPT_CHECKPOINT);
    options.checkpoint_every =
        cli->request.option[FR_OPT_CHECKPOINT_EVERY].count;
    options.is_resumed = fr_cli_on(cli, FR_OPT_RESUME);
    options.eval_data = fr_cli_text(cli, FR_OPT_EVAL_DATA);
    options.eval_every = cli->request.option[FR_OPT_EVAL_EVERY].count;
    options.eval_batches = cli->request.option[FR_OPT_EVAL_BATCHES].count;
    options.is_checkpoint_async = fr_cli_on(cli, FR_OPT_CHECKPOINT_ASYNC);
    options.n_checkpoints_kept = cli->request.option[FR_OPT_KEEP].count;
    options.replicate_every = cli->request.option[FR_OPT_REPLICATE_EVERY].count;
    options.replica_dir = fr_cli_text(cli, FR_OPT_REPLICA_DIR);
    options.init_path = fr_cli_text(cli, FR_OPT_INIT);
    options.save_dir = fr_cli_text(cli, FR_OPT_SAVE);
    if (fr_cli_has(cli, FR_OPT_TIMEOUT))
        options.timeout_s = cli->request.option[FR_OPT_TIMEOUT].real;
    options.faults = faults;
    options.on_step = fr_run_watch_step;
    options.on_note = fr_run_watch_note;
    options.context = watch;
    return options;
}

/* The environment of a rank; transport NULL: fr_run() finds the others. */
typedef struct stage {
    int64_t rank;
    fr_placement placement;
    fr_transport *transport;
    const fr_backend *backend;
} stage;

static fr_status lower_and_run(const fr_cli *cli, const fr_plan_file *file,
                               const stage *on, fr_err *err)
{
    fr_program *program = NULL;
    fr_timeline timeline;
    fr_run_result result;
    fr_run_watch watch;
    fr_faults faults = {0};
    fr_rank_guard *guard = NULL;
    fr_run_options options = make_options(cli, &file->job, &faults, &watch);
    options.backend = on->backend;
    FR_TRY(fr_run_watch_open(&watch, cli, file, on->rank == 0, err));
    fr_timeline_init(&timeline);
    fr_status status;
    if (fr_plan_world(&file->plan) == 1)
        FR_TRY_GOTO(status, fr_cli_guard(cli, &guard, err), out_program);
    if (guard != NULL)
        options.page = fr_rank_guard_page(guard);
    FR_TRY_GOTO(status, parse_faults(cli, file, &faults, err), out_program);
    FR_TRY_GOTO(status,
                fr_lower(&file->model, &file->job, &file->plan, &on->placement,
                         &program, err),
                out_program);
    status = on->transport != NULL
                 ? fr_run_over(on->transport, program, &options, &timeline,
                               &result, err)
                 : fr_run(program, &options, &timeline, &result, err);
    if (status != FR_OK)
        goto out_program;
    if (on->rank == 0)
        status = fr_run_answer(cli, file, program, &timeline, &result, err);
    if (status == FR_OK && on->rank == 0 &&
        fr_cli_on(cli, FR_OPT_UPDATE_PROFILE))
        status = fr_learn_run(&cli->request, file, result.step_s_median, err);
    /* The answer is out; the state of the last step is lost. */
    if (status == FR_OK && on->rank == 0 && result.unsaved[0] != '\0')
        status = fr_fail(err, FR_IO,
                         "the last state is in no checkpoint: %s; make room "
                         "and go on with --resume",
                         result.unsaved);
    fr_run_result_release(&result);
    fr_transport_destroy(on->transport);
    fr_run_leave();
out_program:
    fr_rank_guard_destroy(guard);
    fr_run_watch_close(&watch);
    fr_vec_release(&faults);
    fr_timeline_release(&timeline);
    fr_program_destroy(program);
    return status;
}

/* Why a plan for another cluster is refused is a consequence of that. */
static fr_status load_file(const fr_cli *cli, fr_plan_file *out, fr_err *err)
{
    const char *path = cli->request.positional[0];
    FR_TRY(fr_inputs_load_plan(&cli->request, path, "this-machine", out, err));
    fr_status status = apply_options(cli, out, err);
    if (status == FR_OK)
        return FR_OK;
    if (fr_run_is_for_other_devices(&cli->request, out))
        fr_err_prefix(err,
                      "%s is a plan for %s, and this is a run on the %s of "
                      "this machine; make one for it ('forerun tune %s "
                      "this-machine -o plan.json')%s",
                      path, out->cluster,
                      fr_request_is_on_gpu(&cli->request) ? "GPUs" : "CPUs",
                      out->model.name,
                      fr_request_is_on_gpu(&cli->request)
                          ? ""
                          : " or run it there with "
                            "--backend cuda");
    fr_plan_file_release(out);
    return status;
}

/* Said once, by who starts the ranks. */
static void note_other_devices(const fr_cli *cli, const fr_plan_file *file)
{
    fr_launch launch;
    fr_launch_detect(&launch);
    if (launch.role == FR_LAUNCH_STANDALONE && file->has_prediction &&
        fr_run_is_for_other_devices(&cli->request, file))
        fr_cli_note(cli,
                    "forerun: %s was predicted for %s, which this machine is "
                    "not: the prediction is not of this run",
                    cli->request.positional[0], file->cluster);
}

/* A plan for several hosts, without their names. */
static void note_hosts(const fr_cli *cli, const fr_plan_file *file)
{
    fr_launch launch;
    fr_cluster cluster;
    fr_err ignored;
    const int64_t world = fr_plan_world(&file->plan);

    fr_launch_detect(&launch);
    if (launch.role != FR_LAUNCH_STANDALONE ||
        fr_cli_has(cli, FR_OPT_HOSTFILE) || file->cluster[0] == '\0' ||
        fr_cluster_load(fr_request_configs(&cli->request), file->cluster,
                        &cluster, &ignored) != FR_OK)
        return;
    int64_t n =
        fr_cluster_nodes_of_ranks(&cluster, world, file->plan.n_threads);
    fr_cluster_release(&cluster);
    for (int64_t i = 0; file->node_of_rank != NULL && i < world; i++)
        if (file->node_of_rank[i] >= n)
            n = file->node_of_rank[i] + 1;
    if (n > 1)
        fr_cli_note(cli,
                    "forerun: %s is a plan for %lld hosts, and all its %lld "
                    "ranks run on this one: --hostfile FILE names others",
                    cli->request.positional[0], (long long)n, (long long)world);
}

static fr_status run_rank(const fr_cli *cli, int64_t world, fr_err *err)
{
    fr_plan_file file;
    int64_t rank;
    FR_TRY(load_file(cli, &file, err));
    int32_t *node_of_rank = calloc((size_t)world, sizeof *node_of_rank);
    fr_status status = node_of_rank != NULL ? FR_OK : fr_fail_no_memory(err);
    if (status == FR_OK)
        status = fr_run_join(world, &rank, node_of_rank, err);
    if (status == FR_OK) {
        stage on = {
            .rank = rank,
            .placement = {.n_ranks = world, .node_of_rank = node_of_rank}};
        status = lower_and_run(cli, &file, &on, err);
    }
    free(node_of_rank);
    fr_plan_file_release(&file);
    return status;
}

/* ---- ranks on GPUs ------------------------------------------------------- */
static fr_status run_gpu_rank(const fr_cli *cli, int64_t world, fr_err *err)
{
    fr_plan_file file;
    fr_rendezvous place;
    const char *graph = getenv("FORERUN_GPU_GRAPH");
    fr_gpu_setup setup = {.is_shared = fr_cli_on(cli, FR_OPT_SHARE_GPU),
                          .is_launched =
                              graph != NULL && strcmp(graph, "0") == 0,
                          .is_estimated = fr_cli_on(cli, FR_OPT_JSON)};
    stage on = {.placement = {.n_ranks = world}};
    double timeout_s = fr_cli_has(cli, FR_OPT_TIMEOUT)
                           ? cli->request.option[FR_OPT_TIMEOUT].real
                           : DEFAULT_TIMEOUT_S;

    FR_TRY(fr_gpu_system_cuda(&setup.system, err));
    const char *output = fr_run_trace_path(&cli->request);
    if (world > 1 && !setup.is_shared && output != NULL)
        FR_TRY(fr_nccl_topology_ask(output, err));
    fr_backend backend = fr_gpu_backend(&setup);
    on.backend = &backend;
    FR_TRY(fr_rendezvous_find(&place, err));
    FR_TRY(load_file(cli, &file, err));
    fr_status status = FR_OK;
    if (world > 1)
        status =
            fr_rendezvous_join(&place, world, timeout_s, &on.transport, err);
    if (status == FR_OK && on.transport != NULL) {
        on.rank = on.transport->rank;
        on.placement.node_of_rank = on.transport->node_of_rank;
    }
    if (status == FR_OK)
        status = lower_and_run(cli, &file, &on, err);
    fr_plan_file_release(&file);
    return status;
}

/* Checks files that would be missed after hours of training; rank 0 may be on
 * another host. */
static fr_status check_files(const fr_cli *cli, fr_err *err)
{
    const char *trace = fr_run_trace_path(&cli->request);
    if (trace != NULL && !fr_cli_has(cli, FR_OPT_HOSTFILE))
        FR_TRY(fr_file_check_writable(trace, err));
    return fr_run_watch_check(&cli->request, err);
}

/* This process is none of the ranks, and starts them as often as it takes. */
static fr_status run_elastic(const fr_cli *cli, const fr_plan_file *file,
                             fr_err *err)
{
    fr_faults faults = {0};
    fr_status status = parse_faults(cli, file, &faults, err);

    if (status == FR_OK)
        status = fr_elastic_run(cli, file, &faults, err);
    fr_vec_release(&faults);
    return status;
}

/* The plan is read before anything is started: a bad one costs nothing. */
FR_COMMAND_FUNCTION(run)
{
    fr_plan_file file;
    fr_launch launch;
    if (fr_cli_on(cli, FR_OPT_UPDATE_PROFILE) &&
        !fr_cli_has(cli, FR_OPT_PROFILE))
        return fr_fail(err, FR_USAGE,
                       "--update-profile writes the file of --profile");
    if (fr_cli_has(cli, FR_OPT_CHECKPOINT))
        fr_launch_hold_signals(); /* who asks early is heard, too */
    FR_TRY(load_file(cli, &file, err));
    int64_t world = fr_plan_world(&file.plan);
    int n_threads = file.plan.n_threads;
    note_other_devices(cli, &file);
    note_hosts(cli, &file);
    if (world == 1 && fr_cli_has(cli, FR_OPT_HOSTFILE) &&
        !fr_request_is_on_gpu(&cli->request))
        fr_note_ignored(&cli->request, "--hostfile",
                        "a one-rank plan always runs on this machine");
    fr_status status = fr_run_fit_begin(&cli->request, &file, err);
    if (status == FR_OK && fr_is_first_rank())
        status = check_files(cli, err);
    fr_launch_detect(&launch);
    const bool is_elastic =
        fr_cli_has(cli, FR_OPT_ELASTIC) && launch.role == FR_LAUNCH_STANDALONE;
    if (status == FR_OK && is_elastic)
        status = run_elastic(cli, &file, err);
    fr_plan_file_release(&file);
    if (status != FR_OK || is_elastic)
        return status;
    if (fr_request_is_on_gpu(&cli->request))
        return fr_supervised_gpus(cli, world, n_threads, run_gpu_rank, err);
    return fr_supervised(cli, world, n_threads, run_rank, err);
}
