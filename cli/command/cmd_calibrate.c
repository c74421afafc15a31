/*
 * cmd_calibrate.c: measures this machine, or the hosts of a hostfile, or
 * GPUs.  Like run, the same command line is the supervisor and each of its
 * ranks.
 */
#include "api/answer/learn_runs.h"
#include "api/inputs.h"
#include "api/resolve/plan_options.h"
#include "calibrate/calibrate.h"
#include "calibrate/gpu/calibrate_gpu.h"
#include "calibrate/trust.h"
#include "cli/answer.h"
#include "cli/cli.h"
#include "cli/measured/measure_running.h"
#include "cli/train/gpu_ranks.h"
#include "cli/train/supervise.h"
#include "core/base/minmax.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "core/system/fileio.h"
#include "runtime/launch/launch.h"
#include "runtime/launch/rendezvous.h"
#include "runtime/run/run.h"
#include "spec/cluster/detect.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_OUTPUT "profile.json"
#define GPU_TIMEOUT_S 600 /* rank 0 times kernels while the others wait */

static const char *const cpu_models[] = {"gpt2-demo", NULL};
/* Between them they have all kernels. */
static const char *const gpu_models[] = {"gpt2-124m", "llama-3-8b", NULL};

typedef struct cases {
    fr_model models[FR_MAX_POSITIONAL];
    fr_job jobs[FR_MAX_POSITIONAL];
    fr_calibrate_case at[FR_MAX_POSITIONAL];
    size_t n;
} cases;

static void release_cases(cases *c)
{
    for (size_t i = 0; i < c->n; i++)
        fr_model_release(&c->models[i]);
}

static fr_status load_cases(const fr_cli *cli, cases *out, fr_err *err)
{
    const char *const *usual =
        fr_request_is_on_gpu(&cli->request) ? gpu_models : cpu_models;
    size_t n = (size_t)cli->request.n_positional;
    while (cli->request.n_positional == 0 && usual[n] != NULL)
        n++;
    for (size_t i = 0; i < n; i++) {
        const char *name = cli->request.n_positional > 0
                               ? cli->request.positional[i]
                               : usual[i];
        FR_TRY(fr_as_input(fr_model_load(fr_request_configs(&cli->request),
                                         name, &out->models[i], err),
                           err));
        out->n = i + 1;
        fr_job_init(&out->jobs[i]);
        if (out->models[i].max_seq > 0)
            out->jobs[i].seq =
                fr_min_i64(out->jobs[i].seq, out->models[i].max_seq);
        FR_TRY(fr_request_apply_job(&cli->request, &out->models[i],
                                    &out->jobs[i], err));
        fr_note_long_seq(&cli->request, &out->models[i], &out->jobs[i]);
        out->at[i] = (fr_calibrate_case){&out->models[i], &out->jobs[i]};
    }
    return FR_OK;
}

/* ---- the answer of rank 0 ------------------------------------------------ */
static void put_head(const fr_profile *profile, const char *path,
                     fr_document *out)
{
    const bool is_gpu = fr_profile_is_gpu(profile);
    char time[FR_FORMAT_MAX];
    fr_json_writer *json = &out->data;
    fr_json_put_string(json, "profile", path);
    fr_json_put_string(json, "cpu", profile->fingerprint.cpu);
    if (is_gpu) {
        fr_json_put_string(json, "gpu", profile->fingerprint.gpu.name);
        fr_json_put_string(json, "nccl_topology", fr_nccl_topology());
    }
    fr_json_put_i64(json, "cores", profile->fingerprint.n_cores);
    fr_json_put_i64(json, "nodes", profile->fingerprint.n_nodes);
    fr_json_put_double(json, "wall_s", profile->wall_s);
    fr_json_put_u64(json, "compute_points", profile->n_compute);
    fr_json_put_u64(json, "comm_points", profile->n_comm);
    fr_json_put_double(json, "jitter_frac", profile->jitter_frac);
    fr_document_printf(out, "%s: %s, ", path,
                       is_gpu ? profile->fingerprint.gpu.name
                              : profile->fingerprint.cpu);
    if (!is_gpu)
        fr_document_printf(out, "%d cores, ", profile->fingerprint.n_cores);
    fr_document_printf(out, "%zu kernel shapes, %zu transfers, %s\n\n",
                       profile->n_compute, profile->n_comm,
                       fr_format_s(time, sizeof time, profile->wall_s));
}

static void put_rates(const fr_profile *profile, fr_document *out)
{
    static const fr_column columns[] = {{"rate", "name"},
                                        {">threads", "threads"},
                                        {">busy ranks", "busy_ranks"},
                                        {">measured", "rate"}};
    char text[FR_FORMAT_MAX];
    fr_table *table =
        fr_document_records(out, "rates", columns, FR_LENGTH(columns));
    table->is_main = true;
    for (size_t i = 0; i < profile->n_rate; i++) {
        const fr_rate_point *rate = &profile->rate[i];
        const bool is_flops = strstr(rate->name, "gemm") != NULL;
        fr_table_text(table, rate->name);
        fr_table_count(table, rate->n_threads);
        fr_table_count(table, rate->n_busy);
        fr_table_number(table, FR_CELL_NUMBER, rate->rate, "%s",
                        is_flops
                            ? fr_format_flops(text, sizeof text, rate->rate)
                            : fr_format_Bps(text, sizeof text, rate->rate));
    }
}

static void put_held_out(const fr_profile *profile, fr_document *out)
{
    static const fr_column columns[] = {
        {"fit against sizes it never saw", "what"},
        {">n", "n"},
        {">mean error", "mean_ape"},
        {">worst error", "worst_ape"}};
    if (profile->n_held_out > 0)
        fr_document_puts(out, "\n");
    fr_table *table =
        fr_document_records(out, "held_out", columns, FR_LENGTH(columns));
    for (size_t i = 0; i < profile->n_held_out; i++) {
        const fr_held_out *check = &profile->held_out[i];
        fr_table_text(table, check->what);
        fr_table_count(table, check->n);
        fr_table_share(table, check->mean_ape);
        fr_table_share(table, check->worst_ape);
    }
}

/* The phases for programs; the sentence only if others disturbed one. */
static void put_others(const fr_profile *profile, fr_document *out)
{
    fr_buffer text;
    fr_json_writer *json = &out->data;
    fr_json_open_array(json, "others");
    for (size_t i = 0; i < profile->n_others; i++) {
        const fr_others_point *at = &profile->others[i];
        fr_json_begin_object(json);
        fr_json_put_string(json, "phase", at->phase);
        fr_json_put_double(json, "elapsed_s", at->elapsed_s);
        fr_json_put_double(json, "processors",
                           (at->others_s + at->stolen_s) / at->elapsed_s);
        fr_json_put_double(json, "stolen", at->stolen_s / at->elapsed_s);
        fr_json_put_i64(json, "of_processors", at->n_processors);
        fr_json_put_i64(json, "runnable", at->n_runnable);
        fr_json_put_bool(json, "is_disturbed", at->is_disturbed);
        fr_json_end_object(json);
    }
    fr_json_end_array(json);
    fr_json_put_i64(json, "disturbed", profile->n_disturbed);
    fr_buffer_init(&text);
    fr_calibrate_describe_others(profile, &text);
    if (text.n > 0)
        fr_document_printf(out, "\n%s; %d disturbed round%s timed again\n",
                           fr_buffer_text(&text), profile->n_disturbed,
                           profile->n_disturbed == 1 ? " was" : "s were");
    fr_buffer_release(&text);
}

static fr_status print(const fr_cli *cli, const fr_profile *profile,
                       const char *path, fr_err *err)
{
    fr_document answer;
    fr_document_init(&answer, "forerun.calibration/1");
    put_head(profile, path, &answer);
    put_rates(profile, &answer);
    put_held_out(profile, &answer);
    put_others(profile, &answer);
    return fr_answer_deliver(FR_OK, &answer, cli, err);
}

/* ---- ranks --------------------------------------------------------------- */
static const char *output_path(const fr_cli *cli)
{
    const char *path = fr_cli_text(cli, FR_OPT_OUTPUT);
    return path != NULL ? path : DEFAULT_OUTPUT;
}

/* A profile that is not good enough is shown, and written with --force only.
 */
static fr_status deliver(const fr_cli *cli, const fr_profile *profile,
                         fr_err *err)
{
    const char *path = output_path(cli);
    fr_err why;
    const bool is_good = fr_calibrate_judge(profile, &why) == FR_OK;

    if (!is_good && !fr_cli_on(cli, FR_OPT_FORCE)) {
        FR_TRY(print(cli, profile, path, err));
        return fr_fail(err, FR_CHECK,
                       "%s is not written: %s; calibrate again on an idle "
                       "machine, or add --force",
                       path, why.text);
    }
    FR_TRY(fr_profile_save(profile, path, err));
    if (!is_good)
        fr_cli_note(cli, "forerun: warning: %s: %s", path, why.text);
    return print(cli, profile, path, err);
}

static fr_status measure_on_cpus(const fr_cli *cli,
                                 const fr_calibrate_options *options,
                                 int64_t n_ranks, fr_profile *out,
                                 bool *is_first, fr_err *err)
{
    (void)cli;
    return fr_calibrate(options, n_ranks, out, is_first, err);
}

static fr_status measure_on_gpus(const fr_cli *cli,
                                 const fr_calibrate_options *options,
                                 int64_t n_ranks, fr_profile *out,
                                 bool *is_first, fr_err *err)
{
    fr_gpu_setup setup = {.is_shared = fr_cli_on(cli, FR_OPT_SHARE_GPU)};
    double timeout_s =
        options->timeout_s > 0 ? options->timeout_s : GPU_TIMEOUT_S;
    fr_transport *transport = NULL;
    fr_rendezvous place;
    FR_TRY(fr_gpu_system_cuda(&setup.system, err));
    if (n_ranks > 1 && !setup.is_shared)
        FR_TRY(fr_nccl_topology_ask(output_path(cli), err));
    FR_TRY(fr_rendezvous_find(&place, err));
    fr_status status =
        n_ranks > 1
            ? fr_rendezvous_join(&place, n_ranks, timeout_s, &transport, err)
            : fr_transport_alone_create(timeout_s, &transport, err);
    if (status == FR_OK) {
        *is_first = transport->rank == 0;
        status = fr_calibrate_gpu(transport, &setup, options, out, err);
    }
    fr_transport_destroy(transport);
    return status;
}

/* Unless told, the disk that is timed is the one that the profile goes to. */
static fr_status find_storage(const fr_cli *cli, char *out, size_t n_out,
                              fr_err *err)
{
    const char *storage = fr_cli_text(cli, FR_OPT_STORAGE);
    if (storage == NULL)
        return fr_path_dir(output_path(cli), out, n_out, err);
    if (!fr_dir_exists(storage) || !fr_text_copy(out, n_out, storage))
        return fr_fail(err, FR_IO, "--storage %s: no such folder", storage);
    return FR_OK;
}

static fr_status measure(const fr_cli *cli, int64_t n_ranks, fr_err *err)
{
    char storage[4096];
    cases c = {.n = 0};
    fr_profile profile;
    fr_log log;
    bool is_first = false;
    FR_TRY(find_storage(cli, storage, sizeof storage, err));
    fr_status status = load_cases(cli, &c, err);
    if (status != FR_OK)
        goto out_cases;
    bool is_silent = fr_cli_on(cli, FR_OPT_QUIET) || !fr_is_first_rank();
    fr_log_init_stream(&log, cli->chatter);
    fr_calibrate_options options = {
        .cases = c.at,
        .n_cases = c.n,
        .is_quick = fr_cli_on(cli, FR_OPT_QUICK),
        .timeout_s = cli->request.option[FR_OPT_TIMEOUT].real,
        .scratch_dir = storage,
        .log = is_silent ? NULL : &log,
    };
    FR_TRY_GOTO(status,
                (fr_request_is_on_gpu(&cli->request) ? measure_on_gpus
                                                     : measure_on_cpus)(
                    cli, &options, n_ranks, &profile, &is_first, err),
                out_cases);
    if (is_first) {
        status = deliver(cli, &profile, err);
        fr_profile_release(&profile);
    }
    if (status == FR_OK)
        fr_run_leave();
out_cases:
    release_cases(&c);
    return status;
}

static fr_status count_gpus(int64_t *out, fr_err *err)
{
    const fr_gpu_system *system = NULL;
    int n = 0;
    FR_TRY(fr_gpu_system_cuda(&system, err));
    FR_TRY(system->driver->count(system->context, &n, err));
    *out = n;
    return n > 0 ? FR_OK : fr_fail(err, FR_FAILURE, "there is no GPU here");
}

/* --ranks, else as many as a launcher started, else the hostfile's slots,
 * else one rank per core, or per GPU. */
static fr_status count_ranks(const fr_cli *cli, int64_t *out, fr_err *err)
{
    const char *hostfile = fr_cli_text(cli, FR_OPT_HOSTFILE);
    if (fr_cli_has(cli, FR_OPT_RANKS)) {
        *out = cli->request.option[FR_OPT_RANKS].count;
        return FR_OK;
    }
    *out = fr_request_is_on_gpu(&cli->request) ? 0 : fr_launched_ranks();
    if (fr_request_is_on_gpu(&cli->request)) {
        fr_rendezvous place;
        FR_TRY(fr_rendezvous_find(&place, err));
        *out = place.by == FR_BOOTSTRAP_ALONE ? 0 : place.world;
    }
    if (*out > 0)
        return FR_OK;
    if (hostfile != NULL)
        return fr_hostfile_slots(hostfile, out, err);
    if (fr_request_is_on_gpu(&cli->request))
        return count_gpus(out, err);
    fr_machine machine;
    fr_machine_detect(&machine);
    *out = machine.n_cores;
    return FR_OK;
}

/* By who started the ranks; without it a profile is complete, too. */
static fr_status measure_starts(const fr_cli *cli, int64_t n_ranks, fr_err *err)
{
    char storage[4096];
    fr_err why;
    fr_launch launch;
    fr_launch_detect(&launch);
    if (launch.role != FR_LAUNCH_STANDALONE || n_ranks < 2)
        return FR_OK;
    FR_TRY(find_storage(cli, storage, sizeof storage, err));
    if (fr_measure_running(&cli->request, n_ranks, output_path(cli), storage,
                           &why) != FR_OK)
        fr_cli_note(cli, "forerun: the time to start a run is not in %s: %s",
                    output_path(cli), why.text);
    return FR_OK;
}

static fr_status learn(const fr_cli *cli, fr_err *err)
{
    fr_document answer = {0};
    const fr_status status = fr_learn_runs(&cli->request, &answer, err);
    return fr_answer_deliver(status, &answer, cli, err);
}

FR_COMMAND_FUNCTION(calibrate)
{
    int64_t n_ranks;
    cases c = {.n = 0};
    if (fr_cli_has(cli, FR_OPT_RUNS_FILE))
        return learn(cli, err);
    if (fr_cli_has(cli, FR_OPT_PROFILE))
        return fr_fail(err, FR_USAGE, "--profile goes with --runs");
    /* Before anything is started: a bad model costs nothing. */
    fr_status status = load_cases(cli, &c, err);
    release_cases(&c);
    if (status != FR_OK)
        return status;
    FR_TRY(count_ranks(cli, &n_ranks, err));
    if (fr_request_is_on_gpu(&cli->request))
        return fr_supervised_gpus(cli, n_ranks, 1, measure, err);
    if (fr_cli_on(cli, FR_OPT_SHARE_GPU))
        return fr_fail(err, FR_USAGE, "--share-gpu needs --backend cuda");
    FR_TRY(fr_supervised(cli, n_ranks, 1, measure, err));
    return measure_starts(cli, n_ranks, err);
}
