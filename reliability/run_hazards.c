/* run_hazards.c: see run_hazards.h. */
#include "reliability/run_hazards.h"

#include <math.h>

static const double usual_device_mtbf_s = 54.0 * 24 * 3600 * 16384 / 419;
static const double usual_node_frac = 0.78;
static const double usual_hang_frac = 7.0 / 419;
static const double usual_hang_s = 600;
static const double usual_scheduling_s = 300;
static const double usual_repair_s = 24 * 3600;
static const double usual_spot_wait_s = 3600;
static const double usual_spot_together_frac = 0.85;

fr_run_hazards fr_run_hazards_none(void)
{
    return (fr_run_hazards){.restart_s = -1,
                            .n_spares = -1,
                            .repair_s = -1,
                            .spot_wait_s = -1,
                            .spot_together_frac = -1};
}

/*
 * From the first process to the first step: a power law through 38 runs of
 * MLPerf Training v3.0 to v4.0 on 4 to 11,616 H100 and H200 (GPT-3 and Llama 2
 * LoRA, logs of all submitters; mllog's init_start to run_start), by least
 * squares of logarithms.  Of 31 runs of v4.1, which are not in the fit, 74 %
 * took 1/1.5 to 1.5 times as long, the median 1.01.
 */
static double startup_s(int64_t n_devices)
{
    const double eight_s = 63, exponent = 0.273;

    return eight_s * pow((double)n_devices / 8, exponent);
}

static void meet_failures(const fr_run_hazards *h, const fr_cluster *cluster,
                          int64_t n_nodes, int64_t n_devices, fr_run_met *out)
{
    const double device_mtbf_s =
        h->device_mtbf_s > 0 ? h->device_mtbf_s : cluster->device_mtbf_s;
    const double node_mtbf_s = h->device_mtbf_s > 0 ? 0 : cluster->node_mtbf_s;
    fr_run_conditions *c = &out->conditions;
    if (device_mtbf_s > 0)
        c->failures_per_s = (double)n_devices / device_mtbf_s;
    if (node_mtbf_s > 0)
        c->failures_per_s += (double)n_nodes / node_mtbf_s;
    out->is_mtbf_assumed =
        !(c->failures_per_s > 0) && fr_cluster_is_all_gpu(cluster);
    if (out->is_mtbf_assumed)
        c->failures_per_s = (double)n_devices / usual_device_mtbf_s;
    out->job_mtbf_s = c->failures_per_s > 0 ? 1 / c->failures_per_s : HUGE_VAL;
    c->node_frac = usual_node_frac;
    c->hang_frac = usual_hang_frac;
    c->hang_s = usual_hang_s;
    c->n_spares = h->n_spares;
    c->repair_s = h->repair_s >= 0 ? h->repair_s : usual_repair_s;
}

/* A restart time from a file or an option covers everything until training
 * continues.  A measured one was measured with almost no state to load. */
static void meet_restarts(const fr_run_hazards *h, const fr_cluster *cluster,
                          int64_t n_devices, fr_run_met *out)
{
    fr_run_conditions *c = &out->conditions;
    const bool is_said = h->restart_s >= 0 || cluster->restart_s > 0;
    out->is_restart_assumed = !is_said && h->measured.n_ranks == 0;
    if (!is_said && h->measured.n_ranks > 0) {
        c->restart_s = h->measured.restart_s + out->checkpoint.load_s;
        c->start_s = h->measured.start_s;
        return;
    }
    if (out->is_restart_assumed)
        c->restart_s = startup_s(n_devices) + out->checkpoint.load_s;
    else
        c->restart_s = h->restart_s >= 0 ? h->restart_s : cluster->restart_s;
    c->start_s =
        c->restart_s + (out->is_restart_assumed ? usual_scheduling_s : 0);
}

static void meet_spot(const fr_run_hazards *h, const fr_cluster *cluster,
                      int64_t n_nodes, fr_run_met *out)
{
    const double per_s = h->spot_every_s > 0
                             ? 1 / h->spot_every_s
                             : cluster->spot_interruption_per_h / 3600;
    if (!h->is_spot)
        return;
    out->lacks_spot_rate = !(per_s > 0);
    const double together = h->spot_together_frac >= 0
                                ? h->spot_together_frac
                                : usual_spot_together_frac;
    const double n_spot =
        (double)n_nodes * (h->spot_frac > 0 ? h->spot_frac : 1);
    const double n_at_once = fmax(together * n_spot, 1);
    out->conditions.interruptions_per_s = per_s * n_spot / n_at_once;
    out->conditions.absence_s =
        h->spot_wait_s >= 0 ? h->spot_wait_s : usual_spot_wait_s;
}

/* Evaluation is between steps: it is set with their length. */
static void meet_events(const fr_run_events *events, int64_t n_nodes,
                        fr_run_conditions *c)
{
    const double n = (double)n_nodes;
    if (events->rack_every_s > 0) {
        c->rack_nodes = (int64_t)fmin(events->rack_nodes, n);
        c->racks_per_s = fmax(n / events->rack_nodes, 1) / events->rack_every_s;
    }
    if (events->slow_every_s > 0) {
        c->slowdowns_per_s = n / events->slow_every_s;
        c->slow_s = events->slow_s;
        c->slow_factor = events->slow_factor;
    }
    c->maintenance_s = events->maintenance_s;
    c->maintenance_every_s = events->maintenance_every_s;
}

fr_run_met fr_run_meet(const fr_run_hazards *hazards, const fr_cluster *cluster,
                       int64_t n_nodes, int64_t n_devices, uint64_t state_bytes)
{
    fr_run_met met = {0};
    met.checkpoint =
        fr_checkpoint_price(state_bytes, cluster, n_nodes,
                            hazards->checkpoint_kind, &hazards->storage);
    if (hazards->checkpoint_kind == FR_CHECKPOINT_SYNC)
        met.checkpoint.blocked_s += hazards->measured.checkpoint_s;
    else
        met.checkpoint.drain_s += hazards->measured.checkpoint_s;
    met.conditions.every_steps = hazards->every_steps;
    met.conditions.blocked_s = met.checkpoint.blocked_s;
    met.conditions.drain_s = met.checkpoint.drain_s;
    meet_failures(hazards, cluster, n_nodes, n_devices, &met);
    meet_restarts(hazards, cluster, n_devices, &met);
    meet_spot(hazards, cluster, n_nodes, &met);
    meet_events(&hazards->events, n_nodes, &met.conditions);
    return met;
}
