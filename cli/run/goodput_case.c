/* goodput_case.c: see goodput_case.h. */
#include "cli/run/goodput_case.h"

#include "cli/option/goal_options.h"
#include "core/base/units.h"
#include "cost_models/run/checkpoint_cost.h"
#include "sim/run/checkpoint_interval.h"

#include <math.h>

/*
 * Facts for what nobody says.
 *
 * A device between failures of any kind: 419 unexpected interruptions of
 * 16,384 H100 in 54 days (Llama 3, arXiv 2407.21783, section 3.3.4).  Of them
 * 78 % were hardware, which takes a node away, and 7 were hangs, found by
 * NCCL's watchdog (table 5), whose time-out is ten minutes (PyTorch,
 * torch/distributed/constants.py, default_pg_nccl_timeout).
 *
 * Starting a job of a thousand GPUs again takes ten minutes, without the
 * checkpoint (DLRover, docs/blogs/stabilize_llm_training_cn.md).
 *
 * Spot nodes were away for 0.8 to 1.1 hours at a time in the zones that have
 * them mostly (V100 of AWS us-west-2, SkyPilot's traces of February 2023).
 */
static const double usual_device_mtbf_s = 54.0 * 24 * 3600 * 16384 / 419;
static const double usual_node_frac = 0.78;
static const double usual_hang_frac = 7.0 / 419;
static const double usual_hang_s = 600;
static const double usual_restart_s = 600;
static const double usual_repair_s = 24 * 3600;
static const double usual_spot_wait_s = 3600;
static const double usual_days = 90;
static const int64_t usual_runs = 1000;
static const double day_s = 86400;

typedef struct making {
    const fr_cli *cli;
    const fr_inputs *inputs;
    const fr_plan_file *file;
    const fr_prediction *prediction;
    fr_goodput_case *out;
} making;

static double real_or(const fr_cli *cli, fr_option option, double otherwise)
{
    return fr_cli_has(cli, option) ? cli->option[option].real : otherwise;
}

/* ---- options that go with others ----------------------------------------- */

static fr_status check_options(const fr_cli *cli, fr_err *err)
{
    static const struct {
        fr_option option, other;
    } pairs[] = {{FR_OPT_REPAIR, FR_OPT_SPARES},
                 {FR_OPT_SPOT_EVERY, FR_OPT_SPOT},
                 {FR_OPT_SPOT_WAIT, FR_OPT_SPOT},
                 {FR_OPT_SPOT_TRACE, FR_OPT_SPOT},
                 {FR_OPT_SPOT_NOTICE, FR_OPT_SPOT}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (cli->option[pairs[i].option].source == FR_SOURCE_FLAG &&
            !fr_cli_has(cli, pairs[i].other))
            return fr_fail(err, FR_USAGE, "--%s goes with --%s",
                           fr_option_get(pairs[i].option).name,
                           fr_option_get(pairs[i].other).name);
    if (fr_cli_has(cli, FR_OPT_SPOT_TRACE) &&
        (fr_cli_has(cli, FR_OPT_SPOT_EVERY) ||
         fr_cli_has(cli, FR_OPT_SPOT_WAIT)))
        return fr_fail(err, FR_USAGE,
                       "--spot-trace says when nodes go and come back: leave "
                       "out --spot-every and --spot-wait");
    return FR_OK;
}

static fr_status read_rate(const fr_cli *cli, fr_option option, double *out,
                           fr_err *err)
{
    const char *text = fr_cli_text(cli, option);
    *out = 0;
    if (text == NULL)
        return FR_OK;
    if (fr_parse_quantity(FR_QUANTITY_BPS, text, 0, out, err) == FR_OK)
        return FR_OK;
    fr_err_prefix(err, "--%s", fr_option_get(option).name);
    return FR_USAGE;
}

/* ---- the run ------------------------------------------------------------- */

static fr_status make_length(const making *m, fr_err *err)
{
    const fr_cli *cli = m->cli;
    const bool has_length =
        fr_cli_has(cli, FR_OPT_TOKENS) || fr_cli_has(cli, FR_OPT_STEPS);
    const double days = real_or(cli, FR_OPT_FOR_DAYS, usual_days);
    const fr_job job = fr_goal_job(&m->file->model, &m->file->job);
    fr_goodput_setup *setup = &m->out->setup;
    fr_run_request *request = &m->out->request;
    fr_goal goal;
    FR_TRY(fr_cli_make_goal(cli, &goal, err));
    const fr_goal_run run =
        fr_goal_run_of(&goal, m->prediction->step_s, &m->file->plan, &job,
                       &m->inputs->cluster);
    *request = (fr_run_request){
        .work_s = has_length ? run.seconds : days * day_s,
        .horizon_s =
            has_length && !fr_cli_has(cli, FR_OPT_FOR_DAYS) ? 0 : days * day_s,
        .n_runs = fr_cli_has(cli, FR_OPT_RUNS) ? cli->option[FR_OPT_RUNS].count
                                               : usual_runs,
        .seed = m->file->job.seed};
    m->out->conditions.step_s = setup->step_s = m->prediction->step_s;
    m->out->conditions.straggler_frac =
        m->prediction->breakdown_s[FR_PART_STRAGGLERS] / setup->step_s;
    m->out->conditions.input_frac =
        m->prediction->breakdown_s[FR_PART_DATA] / setup->step_s;
    setup->work_days = request->work_s / day_s;
    setup->horizon_days = request->horizon_s / day_s;
    setup->n_nodes = run.n_nodes;
    setup->n_devices = run.n_devices;
    return FR_OK;
}

static void make_failures(const making *m)
{
    const fr_cluster *cluster = &m->inputs->cluster;
    fr_run_conditions *c = &m->out->conditions;
    fr_goodput_setup *setup = &m->out->setup;
    const double n_devices = (double)setup->n_devices;
    double per_s = 0;
    if (fr_cli_has(m->cli, FR_OPT_MTBF))
        per_s = n_devices / m->cli->option[FR_OPT_MTBF].real;
    else if (cluster->device_mtbf_s > 0)
        per_s = n_devices / cluster->device_mtbf_s;
    if (!fr_cli_has(m->cli, FR_OPT_MTBF) && cluster->node_mtbf_s > 0)
        per_s += (double)setup->n_nodes / cluster->node_mtbf_s;
    setup->is_mtbf_assumed = per_s <= 0 && fr_cluster_is_all_gpu(cluster);
    if (setup->is_mtbf_assumed)
        per_s = n_devices / usual_device_mtbf_s;
    c->failures_per_s = per_s;
    setup->job_mtbf_s = per_s > 0 ? 1 / per_s : HUGE_VAL;
    setup->device_mtbf_s = setup->job_mtbf_s * n_devices;
    c->node_frac = usual_node_frac;
    c->hang_frac = usual_hang_frac;
    c->hang_s = usual_hang_s;
    c->n_spares = setup->n_spares = fr_cli_has(m->cli, FR_OPT_SPARES)
                                        ? m->cli->option[FR_OPT_SPARES].count
                                        : -1;
    c->repair_s = setup->repair_s =
        real_or(m->cli, FR_OPT_REPAIR, usual_repair_s);
}

static fr_status make_checkpoints(const making *m, fr_err *err)
{
    const fr_cli *cli = m->cli;
    const fr_cluster *cluster = &m->inputs->cluster;
    const fr_checkpoint_kind kind =
        fr_cli_has(cli, FR_OPT_CHECKPOINT_KIND)
            ? (fr_checkpoint_kind)cli->option[FR_OPT_CHECKPOINT_KIND].count
            : FR_CHECKPOINT_SYNC;
    fr_run_conditions *c = &m->out->conditions;
    fr_goodput_setup *setup = &m->out->setup;
    fr_storage_rates rates;
    FR_TRY(read_rate(cli, FR_OPT_STORAGE_WRITE, &rates.write_Bps, err));
    FR_TRY(read_rate(cli, FR_OPT_STORAGE_READ, &rates.read_Bps, err));
    const fr_checkpoint_cost cost =
        fr_checkpoint_price(&m->file->model, &m->file->job, &m->file->plan,
                            cluster, setup->n_nodes, kind, &rates);
    c->blocked_s = setup->blocked_s = cost.blocked_s;
    c->drain_s = setup->drain_s = cost.drain_s;
    setup->checkpoint_kind = fr_name_of(&fr_checkpoint_kind_names, kind);
    setup->checkpoint_bytes = cost.bytes;
    setup->storage_write_Bps = cost.write_Bps;
    setup->is_storage_assumed = cost.is_write_assumed;
    /* What a file or an option says counts all until training goes on. */
    setup->is_restart_assumed =
        !fr_cli_has(cli, FR_OPT_RESTART) && cluster->restart_s <= 0;
    c->restart_s = setup->is_restart_assumed
                       ? usual_restart_s + cost.load_s
                       : real_or(cli, FR_OPT_RESTART, cluster->restart_s);
    c->start_s = setup->restart_s = c->restart_s;
    return FR_OK;
}

/* Nodes as they were somewhere; the mean spans are what is printed, and what
 * the best interval is found for. */
static fr_status make_spot_trace(const making *m, fr_err *err)
{
    fr_goodput_setup *setup = &m->out->setup;
    fr_run_conditions *c = &m->out->conditions;
    fr_spot_spans *spans = &m->out->spans;
    double there_s = 0, away_s = 0;
    FR_TRY(
        fr_as_input(fr_spot_trace_load(fr_cli_text(m->cli, FR_OPT_SPOT_TRACE),
                                       setup->n_nodes, spans, err),
                    err));
    for (size_t i = 0; i < spans->n; i += 2) {
        there_s += spans->items[i];
        away_s += spans->items[i + 1];
    }
    const double n = (double)spans->n / 2;
    c->presence = (fr_run_presence){spans->items, spans->n};
    c->interruptions_per_s = away_s > 0 ? n / there_s : 0;
    c->absence_s = away_s / n;
    return FR_OK;
}

static fr_status make_spot_rates(const making *m, fr_err *err)
{
    const fr_cluster *cluster = &m->inputs->cluster;
    fr_run_conditions *c = &m->out->conditions;
    fr_goodput_setup *setup = &m->out->setup;
    const double per_s = fr_cli_has(m->cli, FR_OPT_SPOT_EVERY)
                             ? 1 / m->cli->option[FR_OPT_SPOT_EVERY].real
                             : cluster->spot_interruption_per_h / 3600;
    if (!(per_s > 0))
        return fr_fail(err, FR_INPUT,
                       "how often spot nodes of '%s' are taken away is not "
                       "known; give --spot-every 200h, or the cluster a "
                       "<reliability spot-interruption-every=\"200h\"/>",
                       cluster->name);
    c->interruptions_per_s = per_s * (double)setup->n_nodes;
    c->absence_s = real_or(m->cli, FR_OPT_SPOT_WAIT, usual_spot_wait_s);
    return FR_OK;
}

static fr_status make_spot(const making *m, fr_err *err)
{
    fr_run_conditions *c = &m->out->conditions;
    fr_goodput_setup *setup = &m->out->setup;
    setup->is_spot = fr_cli_on(m->cli, FR_OPT_SPOT);
    if (!setup->is_spot)
        return FR_OK;
    if (fr_cli_has(m->cli, FR_OPT_SPOT_TRACE))
        FR_TRY(make_spot_trace(m, err));
    else
        FR_TRY(make_spot_rates(m, err));
    c->notice_s = real_or(m->cli, FR_OPT_SPOT_NOTICE, 0);
    setup->spot_mtbf_s = 1 / c->interruptions_per_s;
    setup->spot_wait_s = c->absence_s;
    return FR_OK;
}

/* Years, and hours of our own time, that nobody waits for. */
static fr_status check_effort(const fr_goodput_case *run, fr_err *err)
{
    const double most_days = 36500, most_interruptions = 1e9;
    const fr_run_conditions *c = &run->conditions;
    const double n_interruptions =
        run->request.work_s * (c->failures_per_s + c->interruptions_per_s) *
        (double)run->request.n_runs;
    if (run->setup.work_days > most_days)
        return fr_fail(err, FR_INPUT,
                       "the steps alone take %.4g days; give fewer --tokens or "
                       "--steps, or more devices",
                       run->setup.work_days);
    if (n_interruptions > most_interruptions * (double)run->request.n_runs)
        return fr_fail(err, FR_INPUT,
                       "something fails every %.3g s: no run gets anywhere; "
                       "check --mtbf, --spot-every and the cluster's "
                       "<reliability>",
                       run->request.work_s * (double)run->request.n_runs /
                           n_interruptions);
    if (n_interruptions > most_interruptions)
        return fr_fail(err, FR_INPUT,
                       "%lld runs meet about %.3g interruptions together, "
                       "which takes hours; give --runs %.0f",
                       (long long)run->request.n_runs, n_interruptions,
                       fmax(floor(most_interruptions / n_interruptions *
                                  (double)run->request.n_runs),
                            1));
    return FR_OK;
}

fr_status fr_goodput_case_make(const fr_cli *cli, const fr_inputs *inputs,
                               const fr_plan_file *file,
                               const fr_prediction *prediction,
                               fr_goodput_case *out, fr_err *err)
{
    const making m = {cli, inputs, file, prediction, out};
    *out = (fr_goodput_case){0};
    FR_TRY(check_options(cli, err));
    FR_TRY(make_length(&m, err));
    make_failures(&m);
    FR_TRY(make_checkpoints(&m, err));
    FR_TRY(make_spot(&m, err));
    out->setup.is_interval_best = !fr_cli_has(cli, FR_OPT_CHECKPOINT_EVERY);
    out->conditions.every_steps =
        out->setup.is_interval_best
            ? fr_checkpoint_best_interval(&out->conditions)
            : cli->option[FR_OPT_CHECKPOINT_EVERY].count;
    out->setup.every_steps = out->conditions.every_steps;
    return check_effort(out, err);
}

void fr_goodput_case_release(fr_goodput_case *run)
{
    fr_vec_release(&run->spans);
}

void fr_goodput_case_sum(const fr_cli *cli, const fr_cluster *cluster,
                         const fr_goodput *goodput, fr_goodput_case *out)
{
    fr_goodput_setup *setup = &out->setup;
    const double hours = goodput->finish_days_mean * 24;
    const int64_t n_paid =
        setup->n_nodes + (setup->n_spares > 0 ? setup->n_spares : 0);
    const double waiting = goodput->waterfall[FR_RUN_RESTART] +
                           goodput->waterfall[FR_RUN_REPLAN] +
                           goodput->waterfall[FR_RUN_IDLE];
    /* Spares are paid, and idle. */
    const double busy_w = fr_cluster_power_w(cluster, setup->n_nodes, 1);
    const double idle_w = fr_cluster_power_w(cluster, setup->n_nodes, 0);
    if (isinf(hours))
        return;
    setup->usd = hours * (double)n_paid / (double)setup->n_nodes *
                 fr_cluster_usd_per_h(cluster, setup->n_nodes,
                                      fr_cli_on(cli, FR_OPT_SPOT));
    setup->kwh =
        hours *
        (busy_w * (1 - waiting) + idle_w * waiting +
         idle_w * (double)(n_paid - setup->n_nodes) / (double)setup->n_nodes) /
        1000;
    setup->kgco2e = setup->kwh * cluster->carbon_g_per_kwh / 1000;
}
