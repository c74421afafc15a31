/* goodput_changes.c: see goodput_changes.h. */
#include "api/goodput/goodput_changes.h"

/* As many as tell one per cent of the goodput apart. */
static const int64_t most_runs = 400;

/* False: it is so already, or there is nothing to change. */
typedef bool (*change_fn)(fr_goodput_case *run);

static bool save_as(fr_goodput_case *run, fr_checkpoint_kind kind)
{
    if (run->setup.every_steps == 0 || run->hazards.checkpoint_kind >= kind)
        return false;
    run->hazards.checkpoint_kind = kind;
    return true;
}

static bool save_async(fr_goodput_case *run)
{
    return save_as(run, FR_CHECKPOINT_ASYNC);
}

static bool save_in_memory(fr_goodput_case *run)
{
    return run->setup.n_nodes > 1 && save_as(run, FR_CHECKPOINT_MEMORY);
}

static bool save_at_best(fr_goodput_case *run)
{
    if (run->setup.is_interval_best)
        return false;
    run->setup.is_interval_best = true;
    return true;
}

static bool store_faster(fr_goodput_case *run)
{
    run->hazards.storage = (fr_storage_rates){2 * run->setup.storage_write_Bps,
                                              2 * run->setup.storage_read_Bps};
    return run->setup.every_steps > 0;
}

static bool restart_faster(fr_goodput_case *run)
{
    run->hazards.restart_s = run->setup.restart_s / 2;
    return run->setup.restart_s > 0;
}

static bool have_spare(fr_goodput_case *run)
{
    run->setup.n_spares++;
    run->conditions.n_spares++;
    return run->conditions.n_spares > 0;
}

static bool pay_on_demand(fr_goodput_case *run)
{
    const bool is_spot = run->hazards.is_spot;
    run->hazards.is_spot = false;
    return is_spot;
}

static bool see_slow_earlier(fr_goodput_case *run)
{
    run->hazards.events.slow_s /= 2;
    return run->conditions.slowdowns_per_s > 0;
}

static bool fail_less(fr_goodput_case *run)
{
    run->hazards.device_mtbf_s = 2 * run->setup.device_mtbf_s;
    return run->conditions.failures_per_s > 0;
}

static const struct {
    const char *name;
    change_fn apply;
} changes[FR_GOODPUT_CHANGES] = {
    {"the best interval", save_at_best},
    {"checkpoints async", save_async},
    {"checkpoints in memory", save_in_memory},
    {"storage twice as fast", store_faster},
    {"restarts in half the time", restart_faster},
    {"one more spare node", have_spare},
    {"on demand, not spot", pay_on_demand},
    {"slow nodes seen in half the time", see_slow_earlier},
    {"devices that fail half as often", fail_less},
};

fr_status fr_goodput_changes(const fr_cluster *cluster,
                             const fr_goodput_case *run, fr_goodput_change *out,
                             size_t *n, fr_err *err)
{
    *n = 0;
    for (int i = 0; i < FR_GOODPUT_CHANGES; i++) {
        fr_goodput_case changed = *run;
        fr_goodput goodput;
        if (!changes[i].apply(&changed))
            continue;
        if (changed.request.n_runs > most_runs)
            changed.request.n_runs = most_runs;
        fr_goodput_case_meet(cluster, &changed);
        FR_TRY(fr_goodput_case_live(&changed, &goodput, err));
        fr_goodput_case_sum(cluster, &goodput, &changed);
        out[(*n)++] =
            (fr_goodput_change){.name = changes[i].name,
                                .goodput = goodput.goodput,
                                .finish_days_p50 = goodput.finish_days.p50,
                                .finish_days_p95 = goodput.finish_days.p95,
                                .usd = changed.setup.usd};
    }
    return FR_OK;
}
