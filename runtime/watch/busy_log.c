/* busy_log.c: see busy_log.h. */
#include "runtime/watch/busy_log.h"

#include "core/numbers/stats.h"

#include <stdlib.h>

typedef struct step_state {
    bool is_known, is_disturbed;
} step_state;

struct fr_busy_log {
    int64_t n_steps, world;
    step_state *step; /* [n_steps] */
    /* [world] sums over the known and over the disturbed intervals. */
    fr_processor_share *known, *disturbed;
};

fr_status fr_busy_log_create(int64_t n_steps, int64_t world, fr_busy_log **out,
                             fr_err *err)
{
    fr_busy_log *log = calloc(1, sizeof *log);

    if (log == NULL)
        return fr_fail_no_memory(err);
    log->n_steps = n_steps > 0 ? n_steps : 0;
    log->world = world;
    log->step = calloc((size_t)log->n_steps + 1, sizeof *log->step);
    log->known = calloc((size_t)world, sizeof *log->known);
    log->disturbed = calloc((size_t)world, sizeof *log->disturbed);
    if (log->step == NULL || log->known == NULL || log->disturbed == NULL) {
        fr_busy_log_destroy(log);
        return fr_fail_no_memory(err);
    }
    *out = log;
    return FR_OK;
}

void fr_busy_log_destroy(fr_busy_log *log)
{
    if (log == NULL)
        return;
    free(log->step);
    free(log->known);
    free(log->disturbed);
    free(log);
}

void fr_busy_log_add(fr_busy_log *log, int64_t i_step, int64_t rank,
                     const fr_busy_interval *interval)
{
    const int64_t first = i_step - interval->n_steps + 1;

    if (interval->n_steps <= 0 || !interval->is_known)
        return;
    for (int64_t i = first < 0 ? 0 : first; i <= i_step && i < log->n_steps;
         i++) {
        log->step[i].is_known = true;
        log->step[i].is_disturbed =
            log->step[i].is_disturbed || interval->is_disturbed;
    }
    fr_processor_share_add(&log->known[rank], &interval->share);
    if (interval->is_disturbed)
        fr_processor_share_add(&log->disturbed[rank], &interval->share);
}

/* The sum in which others had most; NULL: all are empty. */
static const fr_processor_share *find_most(const fr_processor_share *sums,
                                           int64_t n, int64_t *rank)
{
    const fr_processor_share *most = NULL;

    for (int64_t i = 0; i < n; i++)
        if (sums[i].elapsed_s > 0.0 &&
            (most == NULL || fr_processor_share_others(&sums[i]) >
                                 fr_processor_share_others(most))) {
            most = &sums[i];
            *rank = i;
        }
    return most;
}

fr_status fr_busy_log_summarise(const fr_busy_log *log, const double *step_s,
                                int64_t n_skipped, int64_t n_counted,
                                fr_busy_steps *out, fr_err *err)
{
    fr_busy_steps busy = {.n_steps = log->n_steps};
    double *calm_s = NULL;
    size_t n_calm = 0;

    FR_TRY_CALLOC(calm_s, (size_t)log->n_steps + 1, err);
    for (int64_t i = 0; i < log->n_steps; i++) {
        const step_state *step = &log->step[i];
        busy.n_known += step->is_known;
        busy.n_disturbed += step->is_disturbed;
        if (step->is_known && !step->is_disturbed && i >= n_skipped &&
            i < n_counted)
            calm_s[n_calm++] = step_s[i];
    }
    if (n_calm > 0)
        busy.undisturbed_step_s = fr_stats_median(calm_s, n_calm);
    free(calm_s);
    const fr_processor_share *most =
        find_most(log->disturbed, log->world, &busy.rank);
    if (most == NULL)
        most = find_most(log->known, log->world, &busy.rank);
    if (most != NULL) {
        busy.n_processors = most->n_processors;
        busy.n_runnable = most->n_runnable;
        busy.others = fr_processor_share_others(most);
        busy.stolen = most->steal_s / most->elapsed_s;
    }
    *out = busy;
    return FR_OK;
}
