/* supervise.c: who am I: the user's process, or one of the ranks? */
#include "cli/train/supervise.h"

#include "cli/train/gpu_ranks.h"
#include "runtime/launch/launch.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Set by a supervisor whose stderr is a terminal, for its ranks. */
#define PROGRESS_ENV "FORERUN_SHOW_PROGRESS"

/* The receiver of the lines and the progress of the ranks. */
typedef struct onlooker {
    const fr_cli *cli;
    bool (*look)(void *context, int64_t step); /* NULL: nobody looks */
    void *context;
} onlooker;

static void pass_line(void *context, const char *line)
{
    const onlooker *o = context;
    if (line[0] == '\r')
        fr_cli_status(o->cli, "%s", line + 1);
    else
        fr_cli_note(o->cli, "%s", line);
}

static bool pass_step(void *context, int64_t step)
{
    const onlooker *o = context;
    return o->look != NULL && o->look(o->context, step);
}

fr_status fr_cli_replica_path(const fr_cli *cli, char out[FR_REPLICA_PATH],
                              fr_err *err)
{
    out[0] = '\0';
    return fr_cli_has(cli, FR_OPT_REPLICATE_EVERY)
               ? fr_replica_run_path(fr_cli_text(cli, FR_OPT_REPLICA_DIR),
                                     fr_cli_text(cli, FR_OPT_CHECKPOINT), out,
                                     err)
               : FR_OK;
}

/* A rank that stands still for so long hangs, where nobody waits for it; 0: it
 * may, as on GPUs, which have limits of their own. */
static double still_s_of(const fr_request *request)
{
    return fr_request_has(request, FR_OPT_TIMEOUT) &&
                   !fr_request_is_on_gpu(request)
               ? request->option[FR_OPT_TIMEOUT].real
               : 0;
}

fr_status fr_supervise_ranks(const fr_cli *cli, char *const *argv,
                             int64_t n_ranks, int n_threads,
                             bool (*look)(void *context, int64_t step),
                             void *context, fr_err *err)
{
    fr_launch_options options;
    onlooker o = {cli, look, context};
    char memory_dir[FR_REPLICA_PATH];
    FR_TRY(fr_cli_replica_path(cli, memory_dir, err));
    if (fr_cli_has(cli, FR_OPT_HOSTFILE))
        FR_TRY(fr_hostfile_check(fr_cli_text(cli, FR_OPT_HOSTFILE), n_ranks,
                                 err));
    fr_launch_options_init(&options);
    options.world = n_ranks;
    options.n_threads = n_threads;
    options.hostfile = fr_cli_text(cli, FR_OPT_HOSTFILE);
    options.memory_dir = memory_dir[0] != '\0' ? memory_dir : NULL;
    options.is_stoppable = fr_cli_has(cli, FR_OPT_CHECKPOINT);
    if (fr_cli_has(cli, FR_OPT_TIMEOUT))
        options.hung_s = cli->request.option[FR_OPT_TIMEOUT].real;
    options.still_s = still_s_of(&cli->request);
    options.on_line = pass_line;
    options.on_look = pass_step;
    options.context = &o;
    if (isatty(fileno(cli->chatter)))
        setenv(PROGRESS_ENV, "1", 1);
    fr_status status = fr_launch_supervise(argv, &options, err);
    fr_cli_status_end(cli);
    return status;
}

static void tell_line(void *context, const char *line)
{
    fr_cli_note(context, "%s", line);
}

/* The thread that stands still cannot be asked to clean up. */
static void end_hung(void *context, const char *why)
{
    const fr_cli *cli = context;
    fprintf(cli->chatter, "forerun: %s\n", why);
    fflush(cli->chatter);
    _exit(fr_status_exit_code(FR_FAILURE));
}

fr_status fr_cli_guard(const fr_cli *cli, fr_rank_guard **out, fr_err *err)
{
    const fr_rank_guard_options options = {
        .is_stoppable = fr_cli_has(cli, FR_OPT_CHECKPOINT),
        .still_s = still_s_of(&cli->request),
        .on_line = tell_line,
        .on_hang = end_hung,
        .context = (void *)(uintptr_t)cli};
    *out = NULL;
    if (fr_launch_is_supervised() ||
        (!options.is_stoppable && options.still_s <= 0))
        return FR_OK;
    return fr_rank_guard_create(&options, out, err);
}

int64_t fr_launched_ranks(void)
{
    fr_launch launch;
    fr_launch_detect(&launch);
    return launch.role == FR_LAUNCH_RANK ? launch.world : 0;
}

bool fr_is_first_rank(void)
{
    fr_launch launch;
    fr_launch_detect(&launch);
    return launch.role != FR_LAUNCH_RANK || launch.rank == 0;
}

bool fr_cli_shows_progress(const fr_cli *cli)
{
    const char *is_asked = getenv(PROGRESS_ENV);
    return !fr_cli_on(cli, FR_OPT_QUIET) &&
           (isatty(fileno(cli->chatter)) ||
            (is_asked != NULL && strcmp(is_asked, "1") == 0));
}

/* Nobody who reads what is told (SIGPIPE) ends no work; nobody who reads the
 * answer ends it, but after all the rest. */
static fr_status work_alone(const fr_cli *cli,
                            fr_status (*work)(const fr_cli *cli,
                                              int64_t n_ranks, fr_err *err),
                            fr_err *err)
{
    const struct timespec at_once = {0};
    sigset_t pipes, before;
    (void)sigemptyset(&pipes);
    (void)sigaddset(&pipes, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &pipes, &before);
    fr_status status = work(cli, 1, err);
    if (!ferror(cli->out))
        (void)sigtimedwait(&pipes, NULL, &at_once);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

fr_status fr_supervised(const fr_cli *cli, int64_t n_ranks, int n_threads,
                        fr_status (*work)(const fr_cli *cli, int64_t n_ranks,
                                          fr_err *err),
                        fr_err *err)
{
    fr_launch launch;
    fr_launch_detect(&launch);
    if (launch.role == FR_LAUNCH_BYSTANDER)
        return FR_OK;
    if (launch.role == FR_LAUNCH_STANDALONE)
        return n_ranks == 1 ? work_alone(cli, work, err)
                            : fr_supervise_ranks(cli, cli->argv, n_ranks,
                                                 n_threads, NULL, NULL, err);
    fr_launch_begin_rank(launch.rank);
    fr_status status =
        launch.world == n_ranks
            ? work(cli, n_ranks, err)
            : fr_fail(err, FR_INPUT,
                      "%lld rank%s needed, %s started %lld; start %lld, or "
                      "leave the launcher out",
                      (long long)n_ranks, n_ranks == 1 ? " is" : "s are",
                      launch.launcher, (long long)launch.world,
                      (long long)n_ranks);
    /* One line for all: the supervisor prints it, or the rank that failed;
     * what every rank finds out alike, the first one says. */
    bool is_alike = launch.world != n_ranks && launch.rank != 0;
    if (status != FR_OK && (fr_launch_report(err) || is_alike))
        err->text[0] = '\0';
    return status;
}
