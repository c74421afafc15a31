/* step_monitor.c: see step_monitor.h. */
#include "runtime/watch/step_monitor.h"

#include "core/base/clock.h"
#include "core/numbers/stats.h"
#include "runtime/run/measure.h"

#include <math.h>
#include <stdlib.h>

/* Reading the memory costs some 10 us, more than a word with the neighbours. */
#define MEMORY_EVERY_NS 1000000000

/* What ranks tell each other after each step. */
typedef struct step_news {
    double step_s;
    double part_s[FR_PART_N];
    uint64_t memory_bytes, received_bytes;
} step_news;

struct fr_step_monitor {
    const fr_executor *executor;
    bool has_norm; /* the program computes that of the gradients */
    step_news mine;
    step_news *all;          /* [world] */
    double *scratch;         /* [world] */
    int64_t memory_ns;       /* when memory was looked at */
    uint64_t received_bytes; /* until the step before */
};

static bool has_norm(const fr_executor *executor)
{
    fr_instr_walk at = {.program = executor->program,
                        .rank_program = executor->rank_program};

    while (fr_instr_walk_next(&at))
        if (at.instr->op == FR_OP_CLIP)
            return true;
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
    if (monitor->all == NULL || monitor->scratch == NULL) {
        fr_step_monitor_destroy(monitor);
        return fr_fail_no_memory(err);
    }
    *out = monitor;
    return FR_OK;
}

void fr_step_monitor_destroy(fr_step_monitor *monitor)
{
    if (monitor == NULL)
        return;
    free(monitor->all);
    free(monitor->scratch);
    free(monitor);
}

static void look(fr_step_monitor *monitor, double step_s)
{
    const fr_executor *executor = monitor->executor;
    step_news *mine = &monitor->mine;
    int64_t now_ns = fr_clock_ns();

    mine->step_s = step_s;
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
}

static void sum_up(fr_step_monitor *monitor, fr_step_record *record)
{
    int64_t world = monitor->executor->transport->world;

    record->has_parts = monitor->executor->ops->part_s != NULL;
    for (int64_t i = 0; i < world; i++) {
        const step_news *of = &monitor->all[i];
        const double compute_s = of->part_s[FR_PART_COMPUTE];
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
        record->received_bytes += of->received_bytes;
        monitor->scratch[i] = compute_s;
    }
    record->median_compute_s = fr_stats_median(monitor->scratch, (size_t)world);
}

fr_status fr_step_monitor_gather(fr_step_monitor *monitor, int64_t i_step,
                                 double step_s, fr_step_record *out,
                                 fr_err *err)
{
    const fr_executor *executor = monitor->executor;
    fr_step_record record = {.step = i_step};

    look(monitor, step_s);
    FR_TRY(fr_transport_all_gather(executor->transport, &monitor->mine,
                                   sizeof monitor->mine, monitor->all, err));
    const fr_step_scalars *scalars = executor->ops->scalars(executor);
    record.loss = scalars->loss_sum;
    record.grad_norm = monitor->has_norm ? scalars->grad_norm : NAN;
    sum_up(monitor, &record);
    *out = record;
    return FR_OK;
}
