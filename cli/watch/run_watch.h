/*
 * run_watch.h: what rank 0 shows and writes of a training run while it goes
 * on: the progress on the terminal, --metrics, --prometheus.
 */
#ifndef FR_CLI_WATCH_RUN_WATCH_H
#define FR_CLI_WATCH_RUN_WATCH_H

#include "cli/cli.h"
#include "cli/train/slow_news.h"
#include "cli/watch/metrics_file.h"
#include "cli/watch/metrics_server.h"
#include "core/numbers/spike.h"
#include "plan/decide/plan_json.h"

typedef struct fr_run_watch {
    const fr_cli *cli;
    bool is_shown;           /* the progress */
    double begin_s, shown_s; /* the first step was over; last shown */
    fr_spike_watch losses;
    fr_metrics_state state;
    fr_metrics_file metrics;
    fr_metrics_server *server; /* NULL: there is none */
    fr_buffer line;
    fr_slow_reporter reporter;
    int n_named; /* stragglers that were named, and still are ones */
    fr_straggler named[FR_STEP_STRAGGLERS];
} fr_run_watch;

/* Before any rank is started: what was asked for can be had, as far as it can
 * be known. */
FR_CHECKED fr_status fr_run_watch_check(const fr_request *request, fr_err *err);

/* Opens what rank 0 writes; `is_writer` false: nothing, on the others. */
FR_CHECKED fr_status fr_run_watch_open(fr_run_watch *watch, const fr_cli *cli,
                                       const fr_plan_file *file, bool is_writer,
                                       fr_err *err);
void fr_run_watch_close(fr_run_watch *watch);

/* As run.h calls them; `context` is the watch. */
void fr_run_watch_step(void *context, const fr_step_record *record);
void fr_run_watch_note(void *context, const char *line);

#endif
