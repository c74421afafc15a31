/* step_monitor.c: see step_monitor.h. */
#include "runtime/watch/step_monitor.h"

#include "core/numbers/stats.h"
#include "core/system/clock.h"
#include "runtime/rank/measure.h"
#include "runtime/watch/others.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Reading the memory costs some 10 us, more than a word with the neighbours. */
#define MEMORY_EVERY_NS 1000000000
/* Intervals of the kernel's counters, which count in ticks of 10 ms. */
#define OTHERS_EVERY_S 0.25

/* The message of a rank to the others after each step. */
typedef struct step_news {
    double step_s, own_loss, saving_s;
    double part_s[FR_PART_N];
    uint64_t memory_bytes, received_bytes;
    fr_busy_interval busy;
} step_news;

struct fr_step_monitor {
    const fr_executor *executor;
    bool has_norm; /* the program computes that of the gradients */
    step_news mine;
    step_news *all;  /* [world] */
    double *scratch; /* [world] */
    /* On rank 0, where the backend tells parts; else NULL. */
    fr_stragglers *stragglers;
    double *part_s;     /* [world * FR_PART_N] of the last step ... */
    double *part_sum_s; /* ... and of all steps after warm-up */
    int64_t n_steps, n_summed;
    int64_t cost_ns;         /* of n_steps steps */
    int64_t memory_ns;       /* when memory was looked at */
    uint64_t received_bytes; /* until the step before */
    fr_others *others;
    fr_busy_log *busy;             /* on rank 0, else NULL */
    int64_t first_step, last_step; /* of the run */
    int64_t n_interval;            /* steps of the interval of `others` */
};

static bool has_norm(const fr_executor *executor)
{
    fr_instr_walk at = {.program = executor->program,
                        .rank_program = executor->rank_program};

    while (fr_instr_walk_next(&at))
        if (at.instr->op == FR_OP_CLIP)
            return at.instr->scalar > 0;
    return false;
}

fr_status fr_step_monitor_create(const fr_executor *executor,
                                 fr_step_monitor **out, fr_err *err)
{
    size_t world = (size_t)executor->transport->world;
    fr_step_monitor *monitor = calloc(1, sizeof *monitor);

    if (monitor == NULL)
        return fr_fail_no_memory(err);
    monitor->executor = executor;
    monitor->has_norm = has_norm(executor);
    monitor->all = calloc(world, sizeof *monitor->all);
    monitor->scratch = calloc(world, sizeof *monitor->scratch);
    monitor->part_s = calloc(world * FR_PART_N, sizeof(double));
    monitor->part_sum_s = calloc(world * FR_PART_N, sizeof(double));
    fr_status status = FR_OK;
    if (monitor->all == NULL || monitor->scratch == NULL ||
        monitor->part_s == NULL || monitor->part_sum_s == NULL)
        status = fr_fail_no_memory(err);
    if (status == FR_OK && executor->transport->rank == 0 &&
        executor->ops->part_s != NULL)
        status = fr_stragglers_create(&executor->program->plan,
                                      executor->is_oversubscribed,
                                      &monitor->stragglers, err);
    if (status != FR_OK) {
        fr_step_monitor_destroy(monitor);
        return status;
    }
    *out = monitor;
    return FR_OK;
}

fr_status fr_step_monitor_begin(fr_step_monitor *monitor, int64_t first_step,
                                int64_t n_steps, fr_err *err)
{
    fr_transport *transport = monitor->executor->transport;

    monitor->first_step = first_step;
    monitor->last_step = n_steps - 1;
    FR_TRY(fr_others_create(transport, &monitor->executor->allowed,
                            &monitor->others, err));
    return transport->rank != 0
               ? FR_OK
               : fr_busy_log_create(n_steps - first_step, transport->world,
                                    &monitor->busy, err);
}

void fr_step_monitor_destroy(fr_step_monitor *monitor)
{
    if (monitor == NULL)
        return;
    fr_stragglers_destroy(monitor->stragglers);
    fr_others_destroy(monitor->others);
    fr_busy_log_destroy(monitor->busy);
    free(monitor->part_s);
    free(monitor->part_sum_s);
    free(monitor->all);
    free(monitor->scratch);
    free(monitor);
}

/* Ends an interval of others' processor time, if it is long enough. */
static void look_at_others(fr_step_monitor *monitor, int64_t i_step)
{
    const fr_executor *executor = monitor->executor;
    fr_busy_interval *mine = &monitor->mine.busy;

    *mine = (fr_busy_interval){0};
    if (monitor->others == NULL || fr_others_elapsed_s(monitor->others) < 0.0)
        return;
    monitor->n_interval++;
    if (i_step < monitor->last_step &&
        fr_others_elapsed_s(monitor->others) < OTHERS_EVERY_S)
        return;
    mine->n_steps = monitor->n_interval;
    mine->is_known = fr_others_end(monitor->others, &mine->share);
    mine->is_disturbed =
        mine->is_known &&
        fr_processor_share_is_disturbed(&mine->share,
                                        fr_others_n_ranks(monitor->others) *
                                            executor->program->plan.n_threads);
    monitor->n_interval = 0;
}

static void look(fr_step_monitor *monitor, int64_t i_step, double step_s)
{
    const fr_executor *executor = monitor->executor;
    step_news *mine = &monitor->mine;
    int64_t now_ns = fr_clock_ns();

    mine->step_s = step_s;
    mine->own_loss = executor->ops->own_loss != NULL
                         ? executor->ops->own_loss(executor)
                         : executor->ops->scalars(executor)->loss_sum;
    if (executor->ops->part_s != NULL)
        executor->ops->part_s(executor, mine->part_s);
    if (executor->ops->received_bytes != NULL) {
        uint64_t until_now = executor->ops->received_bytes(executor);
        mine->received_bytes = until_now - monitor->received_bytes;
        monitor->received_bytes = until_now;
    }
    if (monitor->memory_ns == 0 ||
        now_ns - monitor->memory_ns > MEMORY_EVERY_NS) {
        mine->memory_bytes = fr_measure_resident();
        monitor->memory_ns = now_ns;
    }
    look_at_others(monitor, i_step);
}

static void sum_up(fr_step_monitor *monitor, fr_step_record *record)
{
    int64_t world = monitor->executor->transport->world;

    record->has_parts = monitor->executor->ops->part_s != NULL;
    for (int64_t i = 0; i < world; i++) {
        const step_news *of = &monitor->all[i];
        const double compute_s = of->part_s[FR_PART_COMPUTE];
        if (record->bad_rank < 0 && !isfinite(of->own_loss))
            record->bad_rank = i;
        if (of->step_s > record->step_s)
            record->step_s = of->step_s;
        for (int part = 0; part < FR_PART_N; part++)
            record->part_s[part] += of->part_s[part] / (double)world;
        if (compute_s > record->slowest_compute_s) {
            record->slowest_compute_s = compute_s;
            record->slowest_rank = i;
        }
        if (of->memory_bytes > record->memory_bytes)
            record->memory_bytes = of->memory_bytes;
        if (of->saving_s > record->saving_s)
            record->saving_s = of->saving_s;
        record->received_bytes += of->received_bytes;
        if (monitor->busy != NULL)
            fr_busy_log_add(monitor->busy, record->step - monitor->first_step,
                            i, &of->busy);
        monitor->scratch[i] = compute_s;
    }
    record->median_compute_s = fr_stats_median(monitor->scratch, (size_t)world);
}

static fr_status look_for_stragglers(fr_step_monitor *monitor,
                                     fr_step_record *record, fr_err *err)
{
    const int64_t world = monitor->executor->transport->world;

    for (int64_t i = 0; i < world; i++)
        memcpy(&monitor->part_s[i * FR_PART_N], monitor->all[i].part_s,
               sizeof monitor->all[i].part_s);
    for (int64_t i = 0; i < world * FR_PART_N; i++)
        monitor->part_sum_s[i] += monitor->part_s[i];
    monitor->n_summed++;
    FR_TRY(fr_stragglers_add(monitor->stragglers, record->step, record->step_s,
                             monitor->part_s, err));
    const fr_straggler_list *found = fr_stragglers_found(monitor->stragglers);
    for (size_t i = 0; i < found->n; i++)
        if (found->items[i].last_step < 0 &&
            record->n_stragglers < FR_STEP_STRAGGLERS)
            record->stragglers[record->n_stragglers++] = found->items[i];
    return FR_OK;
}

fr_status fr_step_monitor_gather(fr_step_monitor *monitor, int64_t i_step,
                                 double step_s, fr_step_record *out,
                                 fr_err *err)
{
    const fr_executor *executor = monitor->executor;
    fr_step_record record = {.step = i_step, .bad_rank = -1};

    int64_t begin_ns = fr_clock_ns();
    look(monitor, i_step, step_s);
    fr_step_monitor_charge(monitor, fr_clock_ns() - begin_ns);
    FR_TRY(fr_transport_all_gather(executor->transport, &monitor->mine,
                                   sizeof monitor->mine, monitor->all, err));
    begin_ns = fr_clock_ns();
    const fr_step_scalars *scalars = executor->ops->scalars(executor);
    record.loss = scalars->loss_sum;
    record.grad_norm = monitor->has_norm ? scalars->grad_norm : NAN;
    sum_up(monitor, &record);
    if (++monitor->n_steps > executor->options->n_warmup &&
        monitor->stragglers != NULL)
        FR_TRY(look_for_stragglers(monitor, &record, err));
    fr_step_monitor_charge(monitor, fr_clock_ns() - begin_ns);
    *out = record;
    return FR_OK;
}

const fr_straggler_list *
fr_step_monitor_stragglers(const fr_step_monitor *monitor)
{
    return monitor->stragglers != NULL
               ? fr_stragglers_found(monitor->stragglers)
               : NULL;
}

fr_status fr_step_monitor_busy(const fr_step_monitor *monitor,
                               const double *step_s, int64_t n_skipped,
                               int64_t n_counted, fr_busy_steps *out,
                               fr_err *err)
{
    return fr_busy_log_summarise(monitor->busy, step_s, n_skipped, n_counted,
                                 out, err);
}

void fr_step_monitor_note_saving(fr_step_monitor *monitor, double saving_s)
{
    monitor->mine.saving_s = saving_s;
}

void fr_step_monitor_charge(fr_step_monitor *monitor, int64_t cost_ns)
{
    monitor->cost_ns += cost_ns;
}

double fr_step_monitor_cost_s(const fr_step_monitor *monitor)
{
    return monitor->n_steps > 0
               ? 1e-9 * (double)monitor->cost_ns / (double)monitor->n_steps
               : 0;
}

bool fr_step_monitor_means(const fr_step_monitor *monitor, double *compute_s,
                           double *wait_s)
{
    if (monitor->n_summed == 0)
        return false;
    const double n = (double)monitor->n_summed;
    for (int64_t i = 0; i < monitor->executor->transport->world; i++) {
        const double *sum_s = &monitor->part_sum_s[i * FR_PART_N];
        compute_s[i] = sum_s[FR_PART_COMPUTE] / n;
        wait_s[i] = 0;
        for (int part = FR_PART_EXPOSED_TP; part <= FR_PART_STRAGGLERS; part++)
            wait_s[i] += sum_s[part] / n;
    }
    return true;
}
