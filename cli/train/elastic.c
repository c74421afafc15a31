/* elastic.c: see elastic.h. */
#include "cli/train/elastic.h"

#include "api/resolve/replan.h"
#include "cli/train/gpu_ranks.h"
#include "cli/train/rebalance.h"
#include "cli/train/restart_log.h"
#include "cli/train/run_fit.h"
#include "cli/train/supervise.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "core/system/clock.h"
#include "core/system/fileio.h"
#include "runtime/checkpoint/checkpoint_lock.h"
#include "runtime/launch/launch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_RESTARTS 3
#define MOST_DELAY_S 30 /* between two starts */
#define LOOK_S 1.0      /* between two looks at the hostfile */

fr_status fr_elastic_parse(const fr_request *request, fr_elastic_range *out,
                           fr_err *err)
{
    const char *text = fr_request_text(request, FR_OPT_ELASTIC);
    char least[32];
    const char *colon = strchr(text, ':');
    fr_err why;

    if (colon == NULL || (size_t)(colon - text) >= sizeof least)
        return fr_fail(err, FR_USAGE,
                       "--elastic '%.40s': give MIN:MAX, such as 2:4", text);
    (void)snprintf(least, sizeof least, "%.*s", (int)(colon - text), text);
    if (fr_parse_i64(least, &out->least, &why) != FR_OK ||
        fr_parse_i64(colon + 1, &out->most, &why) != FR_OK || out->least < 1 ||
        out->most < out->least || out->most > 1 << 20)
        return fr_fail(err, FR_USAGE,
                       "--elastic '%.40s': give MIN:MAX with 1 <= MIN <= MAX",
                       text);
    if (!fr_request_has(request, FR_OPT_CHECKPOINT))
        return fr_fail(err, FR_USAGE,
                       "--elastic needs --checkpoint DIR, and "
                       "--checkpoint-every N");
    return FR_OK;
}

typedef struct elastic {
    const fr_cli *cli;
    const fr_plan_file *file; /* the first plan */
    const fr_faults *faults;
    fr_elastic_range range;
    int64_t max_restarts, n_failures;
    int64_t world;          /* of the running plan ... */
    int n_threads;          /* ... of its ranks */
    int64_t n_planned;      /* places that it was made for */
    int64_t n_listed;       /* slots of the hostfile; 0: there is none */
    double listed_s;        /* when it was read */
    int64_t reached;        /* the furthest step that was begun, -1: none */
    int64_t reached_before; /* at the failure before, of which ... */
    int64_t n_in_vain;      /* ... so many made no step */
    int64_t at;             /* the step that is under way, since: */
    double progress_s;
    int64_t lost_until;   /* faults up to this step have taken their memory */
    char plan_path[1024]; /* of a later plan; "": the first */
    char resume[16];      /* the option */
    fr_restart_log log;
    fr_rebalance rebalance;
} elastic;

/* As far as the run has come, at most what it may use. */
static int64_t n_places(elastic *e)
{
    const char *hostfile = fr_cli_text(e->cli, FR_OPT_HOSTFILE);
    int64_t n = e->range.most, n_slots = 0;
    fr_err ignored;

    if (hostfile != NULL && fr_clock_s() - e->listed_s > LOOK_S) {
        if (fr_hostfile_slots(hostfile, &n_slots, &ignored) == FR_OK)
            e->n_listed = n_slots;
        e->listed_s = fr_clock_s();
    }
    if (e->n_listed > 0 && e->n_listed < n)
        n = e->n_listed;
    n -= fr_faults_count(e->faults, FR_FAULT_LOSE, e->reached);
    n += fr_faults_count(e->faults, FR_FAULT_JOIN, e->reached);
    return n < e->range.most ? n : e->range.most;
}

/* Is there room for more ranks than the plan was made for? */
static bool look(void *context, int64_t step)
{
    elastic *e = context;

    if (step != e->at) {
        e->at = step;
        e->progress_s = fr_clock_s();
    }
    if (step > e->reached)
        e->reached = step;
    if (step >= 0)
        fr_restart_log_resumed(&e->log);
    return n_places(e) > e->n_planned || (fr_cli_on(e->cli, FR_OPT_REBALANCE) &&
                                          fr_rebalance_look(&e->rebalance));
}

/* The command line of the ranks: another plan, and --resume. */
static char **make_argv(elastic *e, bool is_first)
{
    const fr_cli *cli = e->cli;
    char **argv = calloc((size_t)cli->argc + 2, sizeof *argv);

    if (argv == NULL)
        return NULL;
    for (int i = 0; i < cli->argc; i++) {
        const bool is_plan = e->plan_path[0] != '\0' &&
                             cli->argv[i] == cli->request.positional[0];
        argv[i] = is_plan ? e->plan_path : cli->argv[i];
    }
    if (!is_first && !fr_cli_on(cli, FR_OPT_RESUME))
        argv[cli->argc] = e->resume;
    return argv;
}

static fr_status run_generation(elastic *e, bool is_first, fr_err *err)
{
    char reached[32];
    char **argv = make_argv(e, is_first);

    if (argv == NULL)
        return fr_fail_no_memory(err);
    (void)snprintf(reached, sizeof reached, "%lld", (long long)e->reached);
    (void)setenv(FR_REACHED_ENV, reached, 1);
    fr_status status =
        fr_supervise_ranks(e->cli, argv, e->world, e->n_threads, look, e, err);
    free(argv);
    return status;
}

/* The next generation runs under it. */
static fr_status use_plan(elastic *e, const fr_plan_file *file,
                          const char *name, fr_err *err)
{
    const char *dir = fr_cli_text(e->cli, FR_OPT_CHECKPOINT);

    (void)snprintf(e->plan_path, sizeof e->plan_path, "%.900s/plan-%s.json",
                   dir, name);
    return fr_plan_file_save(file, e->plan_path, err);
}

/* As fr_replan_site asks for it. */
static fr_status check_fit(const void *context, const fr_plan_file *file,
                           fr_err *err)
{
    fr_fit_advice fit;
    return fr_run_fit_check(context, file, &fit, err);
}

/* A plan for other places than the one that ran. */
static fr_status plan_for(elastic *e, int64_t n, fr_err *err)
{
    fr_plan_file file;
    char text[512], name[24];

    const fr_replan_site site = {.request = &e->cli->request,
                                 .is_gpu =
                                     fr_request_is_on_gpu(&e->cli->request),
                                 .check_fit = check_fit,
                                 .context = e->cli};
    FR_TRY(fr_replan(&site, e->file, n, e->range.least, &file, err));
    (void)snprintf(name, sizeof name, "%lld", (long long)n);
    FR_TRY(use_plan(e, &file, name, err));
    fr_rebalance_begin(&e->rebalance, &e->cli->request, e->file, &file.plan,
                       e->reached);
    e->world = fr_plan_world(&file.plan);
    e->n_threads = file.plan.n_threads;
    fr_cli_note(e->cli, "forerun: %lld place%s: %s", (long long)n,
                n == 1 ? "" : "s",
                fr_plan_describe(&file.plan, text, sizeof text));
    return FR_OK;
}

/* A place that goes away takes the copies in its memory with it. */
static fr_status lose_memory(elastic *e, fr_err *err)
{
    char run[FR_REPLICA_PATH], store[FR_REPLICA_PATH];

    FR_TRY(fr_cli_replica_path(e->cli, run, err));
    for (size_t i = 0; run[0] != '\0' && i < e->faults->n; i++) {
        const fr_fault *fault = &e->faults->items[i];
        if (fault->kind != FR_FAULT_LOSE || fault->first_step > e->reached ||
            fault->first_step <= e->lost_until)
            continue;
        fr_replica_store_path(run, fault->rank, store);
        fr_dir_remove(store);
    }
    e->lost_until = e->reached;
    return FR_OK;
}

/* Frees the room of unfinished copies, which the next ranks need before they
 * load theirs. */
static void drop_slots(const fr_cli *cli)
{
    char run[FR_REPLICA_PATH];
    fr_err ignored = {0};

    if (fr_cli_replica_path(cli, run, &ignored) == FR_OK && run[0] != '\0' &&
        !fr_checkpoint_is_locked(fr_cli_text(cli, FR_OPT_CHECKPOINT)))
        fr_replica_drop_slots(run);
}

/* Nobody goes on from it any more, where no other run is at it. */
static void drop_memory(const fr_cli *cli)
{
    char run[FR_REPLICA_PATH];
    fr_err ignored = {0};

    if (fr_checkpoint_is_locked(fr_cli_text(cli, FR_OPT_CHECKPOINT)))
        return;
    if (fr_cli_replica_path(cli, run, &ignored) == FR_OK && run[0] != '\0')
        fr_dir_remove(run);
}

/* Prepares the next generation: the same plan if its places exist. */
static fr_status prepare_next(elastic *e, const fr_err *why, fr_err *err)
{
    FR_TRY(lose_memory(e, err));
    drop_slots(e->cli);
    const int64_t n = n_places(e);
    fr_restart restart = {.step = e->reached, .ranks_before = e->world};

    if (n < e->range.least)
        return fr_fail(err, FR_FAILURE,
                       "%lld place%s left, --elastic wants at least %lld; the "
                       "last failure: %s",
                       (long long)n, n == 1 ? " is" : "s are",
                       (long long)e->range.least, why->text);
    if (n != e->n_planned && (n < e->world || n > e->n_planned)) {
        FR_TRY(plan_for(e, n, err));
        e->n_planned = n;
    }
    fr_text_copy_cut(restart.why, sizeof restart.why, why->text);
    restart.ranks_after = e->world;
    fr_restart_log_add(&e->log, &restart, e->progress_s);
    return FR_OK;
}

/* The same ranks with other layers, or other shares of the batch. */
static fr_status rebalance(elastic *e, const fr_plan *plan, fr_err *err)
{
    fr_plan_file file = *e->file;
    fr_restart restart = {.step = e->reached,
                          .why = "work is moved away from a slow rank",
                          .ranks_before = e->world,
                          .ranks_after = e->world};

    file.plan = *plan;
    file.has_prediction = false;
    FR_TRY(use_plan(e, &file, "moved", err));
    fr_restart_log_add(&e->log, &restart, e->progress_s);
    return FR_OK;
}

double fr_elastic_delay_s(int64_t n_in_vain)
{
    double delay_s = 1;

    if (n_in_vain <= 0)
        return 0;
    for (int64_t i = 1; i < n_in_vain && delay_s < MOST_DELAY_S; i++)
        delay_s *= 2;
    return fmin(delay_s, MOST_DELAY_S);
}

/* A host or a folder that is away may come back, so failures without a step in
 * between are tried again later and later.  A signal ends the wait. */
static void rest(elastic *e)
{
    e->n_in_vain = e->reached > e->reached_before ? 0 : e->n_in_vain + 1;
    e->reached_before = e->reached;
    const double delay_s = fr_elastic_delay_s(e->n_in_vain);
    const double begin_s = fr_clock_s();
    if (delay_s > 0)
        fr_cli_note(e->cli,
                    "forerun: no step was done since the last start; the next "
                    "one comes in %.0f s",
                    delay_s);
    while (fr_clock_s() - begin_s < delay_s && fr_launch_held_signal() == 0)
        fr_sleep_s(0.05);
}

static fr_status go_on(elastic *e, const fr_err *why, fr_err *err)
{
    const fr_plan *moved = why->status == FR_PAUSED
                               ? fr_rebalance_take(&e->rebalance, e->reached)
                               : NULL;
    if (moved != NULL)
        return rebalance(e, moved, err);
    const bool has_grown =
        why->status == FR_PAUSED && n_places(e) > e->n_planned;

    /* Any other end would end the next run too, or was asked for. */
    if (why->status != FR_FAILURE && !has_grown) {
        *err = *why;
        return why->status;
    }
    if (!has_grown && ++e->n_failures > e->max_restarts)
        return fr_fail(err, FR_FAILURE, "given up after %lld restart%s: %s",
                       (long long)e->max_restarts,
                       e->max_restarts == 1 ? "" : "s", why->text);
    fr_cli_note(e->cli, "forerun: %s; continuing from the newest checkpoint",
                has_grown ? "there are more places" : why->text);
    if (!has_grown)
        rest(e);
    return prepare_next(e, why, err);
}

/* The plan wants more places than there are, and the range allows fewer. */
static fr_status begin_smaller(elastic *e, fr_err *err)
{
    if (e->n_planned < e->range.least)
        return fr_fail(err, FR_INFEASIBLE,
                       "%s has %lld place%s, --elastic wants at least %lld",
                       fr_cli_text(e->cli, FR_OPT_HOSTFILE),
                       (long long)e->n_planned, e->n_planned == 1 ? "" : "s",
                       (long long)e->range.least);
    fr_cli_note(e->cli,
                "forerun: the plan is of %lld ranks, and %s has %lld place%s: "
                "the run begins with fewer",
                (long long)e->world, fr_cli_text(e->cli, FR_OPT_HOSTFILE),
                (long long)e->n_planned, e->n_planned == 1 ? "" : "s");
    return plan_for(e, e->n_planned, err);
}

/* Before this run writes anything; its rank 0 takes the lock. */
static fr_status check_is_unused(const fr_request *request, fr_err *err)
{
    const char *dir = fr_request_text(request, FR_OPT_CHECKPOINT);
    int lock = -1;

    if (!fr_checkpoint_is_locked(dir))
        return FR_OK;
    FR_TRY(fr_checkpoint_lock(dir, FR_CHECKPOINT_LEAVE_S, &lock, err));
    fr_checkpoint_unlock(lock);
    return FR_OK;
}

fr_status fr_elastic_run(const fr_cli *cli, const fr_plan_file *file,
                         const fr_faults *faults, fr_err *err)
{
    elastic e = {.cli = cli,
                 .file = file,
                 .faults = faults,
                 .max_restarts =
                     fr_cli_has(cli, FR_OPT_MAX_RESTARTS)
                         ? cli->request.option[FR_OPT_MAX_RESTARTS].count
                         : DEFAULT_RESTARTS,
                 .world = fr_plan_world(&file->plan),
                 .n_threads = file->plan.n_threads,
                 .listed_s = -LOOK_S,
                 .resume = "--resume",
                 .reached = -1,
                 .reached_before = -1,
                 .at = -1,
                 .lost_until = -1,
                 .progress_s = fr_clock_s()};
    fr_status status = FR_OK;

    FR_TRY(fr_elastic_parse(&cli->request, &e.range, err));
    if (e.world < e.range.least || e.world > e.range.most)
        return fr_fail(err, FR_USAGE,
                       "--elastic %s: the plan is of %lld rank%s",
                       fr_cli_text(cli, FR_OPT_ELASTIC), (long long)e.world,
                       e.world == 1 ? "" : "s");
    FR_TRY(check_is_unused(&cli->request, err));
    FR_TRY(fr_restart_log_begin(&e.log, &cli->request, err));
    fr_rebalance_begin(&e.rebalance, &cli->request, file, &file->plan, -1);
    e.n_planned = n_places(&e);
    if (e.n_planned < e.world)
        FR_TRY_GOTO(status, begin_smaller(&e, err), out_log);
    for (bool is_first = true; status == FR_OK; is_first = false) {
        fr_err why = {0};
        why.status = run_generation(&e, is_first, &why);
        if (why.status == FR_OK)
            break;
        status = go_on(&e, &why, err);
    }
    drop_memory(cli);
out_log:
    fr_restart_log_release(&e.log);
    return status;
}
