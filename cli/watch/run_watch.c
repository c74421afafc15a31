/* run_watch.c: see run_watch.h. */
#include "cli/watch/run_watch.h"

#include "cli/train/supervise.h"
#include "core/base/units.h"
#include "core/system/clock.h"

#include <math.h>
#include <time.h>

#define SHOW_EVERY_S 0.2

static bool cli_serves(const fr_request *request)
{
    return fr_request_has(request, FR_OPT_PROMETHEUS);
}

fr_status fr_run_watch_check(const fr_request *request, fr_err *err)
{
    const char *metrics = fr_request_text(request, FR_OPT_METRICS);

    /* Rank 0 may be on another host. */
    if (metrics != NULL && !fr_request_has(request, FR_OPT_HOSTFILE))
        FR_TRY(fr_metrics_file_check(metrics, err));
    if (cli_serves(request) && !fr_request_has(request, FR_OPT_HOSTFILE)) {
        fr_metrics_server *server = NULL;
        FR_TRY(fr_metrics_server_create(
            fr_request_text(request, FR_OPT_PROMETHEUS), &server, err));
        fr_metrics_server_destroy(server);
    }
    return FR_OK;
}

fr_status fr_run_watch_open(fr_run_watch *watch, const fr_cli *cli,
                            const fr_plan_file *file, bool is_writer,
                            fr_err *err)
{
    fr_run_watch opened = {.cli = cli,
                           .is_shown = fr_cli_shows_progress(cli),
                           .metrics.fd = -1,
                           .reporter.request = &cli->request};

    opened.state.tokens_per_step =
        (double)(file->job.global_batch *
                 fr_model_sample_tokens(&file->model, file->job.seq));
    opened.state.counted = fr_model_counted(&file->model);
    opened.state.count_per_step = fr_model_count_of(
        &file->model, file->job.seq, (double)file->job.global_batch);
    if (file->has_prediction)
        opened.state.ideal_step_s =
            file->prediction.mfu * file->prediction.expected_step_s;
    if (is_writer)
        FR_TRY(fr_metrics_file_open(&opened.metrics,
                                    fr_cli_text(cli, FR_OPT_METRICS),
                                    fr_cli_on(cli, FR_OPT_RESUME), err));
    if (is_writer && cli_serves(&cli->request)) {
        fr_status status = fr_metrics_server_create(
            fr_cli_text(cli, FR_OPT_PROMETHEUS), &opened.server, err);
        if (status != FR_OK) {
            fr_metrics_file_close(&opened.metrics);
            return status;
        }
        fr_metrics_server_show(opened.server, &opened.state);
    }
    fr_buffer_init(&opened.line);
    *watch = opened;
    return FR_OK;
}

void fr_run_watch_close(fr_run_watch *watch)
{
    fr_metrics_file_close(&watch->metrics);
    fr_metrics_server_destroy(watch->server);
    fr_cli_status_end(watch->cli);
    fr_buffer_release(&watch->line);
}

static void write_metrics(fr_run_watch *watch)
{
    fr_err err = {0};

    if (watch->metrics.path == NULL)
        return;
    watch->line.n = 0;
    fr_metrics_line(&watch->state, &watch->line);
    fr_status status = fr_buffer_check(&watch->line, &err);
    if (status == FR_OK)
        status = fr_metrics_file_add(&watch->metrics, &watch->line, &err);
    if (status != FR_OK)
        fr_cli_note(watch->cli, "forerun: step %lld: %s; training continues",
                    (long long)watch->state.last.step, err.text);
}

/* The entry of a list that is about the same; NULL: there is none. */
static const fr_straggler *find_straggler(const fr_straggler *list, int n,
                                          const fr_straggler *like)
{
    for (int i = 0; i < n; i++)
        if (list[i].kind == like->kind && list[i].index == like->index &&
            list[i].part == like->part &&
            list[i].first_step == like->first_step)
            return &list[i];
    return NULL;
}

/* Says who has begun to hold the run up, and who does no longer. */
static void name_stragglers(fr_run_watch *watch, const fr_step_record *record)
{
    char text[160];

    for (int i = 0; i < record->n_stragglers; i++) {
        const fr_straggler *at = &record->stragglers[i];
        if (find_straggler(watch->named, watch->n_named, at) == NULL)
            fr_cli_note(watch->cli,
                        "forerun: step %lld: %s, since step %lld: %.0f %% of "
                        "the step",
                        (long long)record->step,
                        fr_straggler_text(at, text, sizeof text),
                        (long long)at->first_step,
                        100 * at->lost_s / record->step_s);
    }
    for (int i = 0; i < watch->n_named; i++) {
        const fr_straggler *at = &watch->named[i];
        if (find_straggler(record->stragglers, record->n_stragglers, at) ==
            NULL)
            fr_cli_note(
                watch->cli, "forerun: step %lld: %s %lld is slow no longer",
                (long long)record->step, fr_name_of(&fr_slow_names, at->kind),
                (long long)at->index);
    }
    watch->n_named = record->n_stragglers;
    for (int i = 0; i < record->n_stragglers; i++)
        watch->named[i] = record->stragglers[i];
}

/* One that is not finite ends the run, which says so. */
static void name_loss(fr_run_watch *watch, const fr_step_record *record)
{
    double usual = NAN;

    if (fr_spike_add(&watch->losses, record->loss, &usual) == FR_SPIKE_HIGH)
        fr_cli_note(watch->cli,
                    "forerun: step %lld: the loss jumped to %.4f from about "
                    "%.4f (gradient norm %.3g)",
                    (long long)record->step, record->loss, usual,
                    record->grad_norm);
}

/* About twenty lines, whatever the number of steps, and a line that is drawn
 * again and again under them. */
static void show_progress(fr_run_watch *watch, const fr_step_record *record)
{
    const int64_t every = (record->n_steps + 19) / 20;
    const int64_t n_left = record->n_steps - record->step - 1;
    const double now_s = fr_clock_s();
    const double rate =
        record->step_s > 0 ? watch->state.count_per_step / record->step_s : 0;
    char left[FR_FORMAT_MAX];

    if (record->step % every == 0 || n_left == 0)
        fr_cli_note(watch->cli, "step %5lld  loss %8.4f  %8.1f ms",
                    (long long)record->step, record->loss,
                    1e3 * record->step_s);
    if (watch->state.n_done == 1)
        watch->begin_s = now_s;
    if (n_left == 0 || watch->state.n_done == 1 ||
        now_s - watch->shown_s < SHOW_EVERY_S)
        return;
    watch->shown_s = now_s;
    fr_cli_status(watch->cli,
                  "step %lld of %lld  loss %.4f  %.*f %s/s  %s left",
                  (long long)record->step + 1, (long long)record->n_steps,
                  record->loss, rate < 10, rate, watch->state.counted,
                  fr_format_s(left, sizeof left,
                              (now_s - watch->begin_s) * (double)n_left /
                                  (double)(watch->state.n_done - 1)));
}

void fr_run_watch_step(void *context, const fr_step_record *record)
{
    fr_run_watch *watch = context;

    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    fr_metrics_add(&watch->state, record,
                   (double)now.tv_sec + 1e-9 * (double)now.tv_nsec);
    write_metrics(watch);
    if (watch->server != NULL)
        fr_metrics_server_show(watch->server, &watch->state);
    fr_slow_reporter_step(&watch->reporter, record);
    name_stragglers(watch, record);
    name_loss(watch, record);
    if (watch->is_shown)
        show_progress(watch, record);
}

void fr_run_watch_note(void *context, const char *line)
{
    fr_cli_note(((fr_run_watch *)context)->cli, "forerun: %s", line);
}
