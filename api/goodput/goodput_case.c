/* goodput_case.c: see goodput_case.h. */
#include "api/goodput/goodput_case.h"

#include "api/goodput/run_length.h"
#include "api/resolve/goal_options.h"
#include "api/resolve/hazard_options.h"
#include "reliability/checkpoint_interval.h"
#include "spec/cluster/cluster_power.h"

#include <math.h>

static const double usual_days = 90;
static const int64_t usual_runs = 1000;
static const double day_s = 86400;

typedef struct making {
    const fr_request *request;
    const fr_inputs *inputs;
    const fr_plan_file *file;
    const fr_prediction *prediction;
    fr_goodput_case *out;
} making;

/* ---- options that go with others ----------------------------------------- */

static fr_status check_options(const fr_request *request, fr_err *err)
{
    static const struct {
        fr_option option, other;
    } pairs[] = {{FR_OPT_REPAIR, FR_OPT_SPARES},
                 {FR_OPT_LEAST_NODES, FR_OPT_SPARES},
                 {FR_OPT_SPOT_EVERY, FR_OPT_SPOT},
                 {FR_OPT_SPOT_WAIT, FR_OPT_SPOT},
                 {FR_OPT_SPOT_TOGETHER, FR_OPT_SPOT},
                 {FR_OPT_SPOT_TRACE, FR_OPT_SPOT},
                 {FR_OPT_SPOT_NOTICE, FR_OPT_SPOT}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (request->option[pairs[i].option].source == FR_SOURCE_FLAG &&
            !fr_request_has(request, pairs[i].other))
            return fr_fail(err, FR_USAGE, "--%s goes with --%s",
                           fr_option_get(pairs[i].option).name,
                           fr_option_get(pairs[i].other).name);
    if (fr_request_has(request, FR_OPT_SPOT_TRACE) &&
        (fr_request_has(request, FR_OPT_SPOT_EVERY) ||
         fr_request_has(request, FR_OPT_SPOT_TOGETHER) ||
         fr_request_has(request, FR_OPT_SPOT_WAIT)))
        return fr_fail(err, FR_USAGE,
                       "--spot-trace says when nodes go and come back: leave "
                       "out --spot-every, --spot-wait and --spot-together");
    return FR_OK;
}

/* ---- the run ------------------------------------------------------------- */

static fr_status make_length(const making *m, fr_err *err)
{
    const fr_request *request = m->request;
    const bool has_length = fr_request_has_length(request, &m->file->job);
    const double days = fr_request_has(request, FR_OPT_FOR_DAYS)
                            ? request->option[FR_OPT_FOR_DAYS].real
                            : usual_days;
    const fr_job job = fr_goal_job(&m->file->model, &m->file->job);
    fr_goodput_setup *setup = &m->out->setup;
    fr_run_request *run_asked = &m->out->request;
    fr_goal goal;
    FR_TRY(fr_request_make_goal(request, &goal, err));
    const fr_goal_subject subject = {&m->file->model, &job,
                                     &m->inputs->cluster};
    const fr_weighed_step step = fr_weighed_step_of(m->prediction);
    const fr_goal_run run =
        fr_goal_run_of(&goal, &step, &m->file->plan, &subject);
    *run_asked = (fr_run_request){
        .work_s = has_length ? run.n_steps * m->prediction->expected_step_s
                             : days * day_s,
        .horizon_s = has_length && !fr_request_has(request, FR_OPT_FOR_DAYS)
                         ? 0
                         : days * day_s,
        .n_runs = fr_request_has(request, FR_OPT_RUNS)
                      ? request->option[FR_OPT_RUNS].count
                      : usual_runs,
        .seed = m->file->job.seed,
        .log = fr_request_log(request)};
    setup->step_s = m->prediction->expected_step_s;
    setup->work_days = run_asked->work_s / day_s;
    setup->horizon_days = run_asked->horizon_s / day_s;
    setup->n_nodes = run.n_nodes;
    setup->n_devices = run.n_devices;
    return FR_OK;
}

/* Steps with their share of the evaluations, which are made after so many. */
static void make_steps(const making *m)
{
    const fr_run_events *events = &m->out->hazards.events;
    fr_run_conditions *c = &m->out->conditions;
    const double step_s = m->prediction->expected_step_s;
    const double evaluation_s =
        events->evaluation_s / fmax(events->evaluation_every_steps, 1);
    c->step_s = step_s + evaluation_s;
    c->evaluation_frac = evaluation_s / c->step_s;
    const double part = (1 - c->evaluation_frac) / m->prediction->step_s;
    c->straggler_frac = m->prediction->breakdown_s[FR_PART_STRAGGLERS] * part;
    c->input_frac = m->prediction->breakdown_s[FR_PART_DATA] * part;
    m->out->request.work_s *= c->step_s / step_s;
    m->out->step_p95_factor = fr_weighed_step_of(m->prediction).p95_factor;
    m->out->training_w = fr_cluster_training_w(
        &m->inputs->cluster, m->out->setup.n_nodes, m->out->setup.n_devices,
        m->file->plan.n_threads, m->prediction->busy_frac);
}

static void save_best(fr_goodput_case *run)
{
    if (run->setup.is_interval_best)
        run->conditions.every_steps =
            fr_checkpoint_best_interval(&run->conditions);
    run->setup.every_steps = run->conditions.every_steps;
}

static fr_run_met meet(const fr_cluster *cluster, fr_goodput_case *run)
{
    fr_goodput_setup *setup = &run->setup;
    fr_run_conditions *c = &run->conditions;
    const fr_run_met met =
        fr_run_meet(&run->hazards, cluster, setup->n_nodes, setup->n_devices,
                    setup->checkpoint_bytes);
    const fr_run_conditions *to = &met.conditions;
    c->failures_per_s = to->failures_per_s;
    c->hang_frac = to->hang_frac;
    c->hang_s = to->hang_s;
    c->node_frac = to->node_frac;
    c->repair_s = setup->repair_s = to->repair_s;
    c->start_s = to->start_s;
    c->restart_s = setup->restart_s = to->restart_s;
    c->blocked_s = setup->blocked_s = to->blocked_s;
    c->drain_s = setup->drain_s = to->drain_s;
    c->racks_per_s = to->racks_per_s;
    c->rack_nodes = to->rack_nodes;
    c->slowdowns_per_s = to->slowdowns_per_s;
    c->slow_s = to->slow_s;
    c->slow_factor = to->slow_factor;
    c->maintenance_s = to->maintenance_s;
    c->maintenance_every_s = to->maintenance_every_s;
    if (c->presence.n == 0 || !run->hazards.is_spot) {
        c->presence = (fr_run_presence){0};
        c->interruptions_per_s = to->interruptions_per_s;
        c->absence_s = to->absence_s;
    }
    setup->is_mtbf_assumed = met.is_mtbf_assumed;
    setup->job_mtbf_s = met.job_mtbf_s;
    setup->device_mtbf_s = met.job_mtbf_s * (double)setup->n_devices;
    setup->checkpoint_kind =
        fr_name_of(&fr_checkpoint_kind_names, run->hazards.checkpoint_kind);
    setup->storage_write_Bps = met.checkpoint.write_Bps;
    setup->storage_read_Bps = met.checkpoint.read_Bps;
    setup->is_storage_assumed = met.checkpoint.is_write_assumed;
    setup->is_restart_assumed = met.is_restart_assumed;
    setup->is_spot = run->hazards.is_spot;
    return met;
}

void fr_goodput_case_meet(const fr_cluster *cluster, fr_goodput_case *run)
{
    (void)meet(cluster, run);
    save_best(run);
}

static fr_status make_hazards(const making *m, fr_err *err)
{
    const fr_request *request = m->request;
    fr_goodput_setup *setup = &m->out->setup;
    fr_run_conditions *c = &m->out->conditions;
    FR_TRY(fr_request_make_hazards(request, &m->out->hazards, err));
    fr_hazards_take_profile(m->inputs->has_profile ? &m->inputs->profile : NULL,
                            &m->inputs->cluster, setup->n_nodes,
                            &m->out->hazards);
    setup->n_backups = request->option[FR_OPT_BACKUP_WORKERS].count;
    setup->n_replicas = m->file->plan.dp;
    /* A node that becomes slow is one that is not waited for. */
    if (setup->n_backups > 0 && m->out->hazards.events.slow_every_s > 0)
        m->out->hazards.events.slow_factor = 1;
    setup->events = m->out->hazards.events;
    make_steps(m);
    setup->checkpoint_bytes = fr_plan_checkpoint_bytes(
        &m->file->plan, &m->file->model, &m->file->job);
    c->n_spares = setup->n_spares = m->out->hazards.n_spares;
    if (meet(&m->inputs->cluster, m->out).lacks_spot_rate &&
        !fr_request_has(request, FR_OPT_SPOT_TRACE))
        return fr_fail(err, FR_INPUT,
                       "how often spot nodes of '%s' are taken away is not "
                       "known; give --spot-every 200h, or the cluster a "
                       "<reliability spot-interruption-every=\"200h\"/>",
                       m->inputs->cluster.name);
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
    FR_TRY(fr_as_input(
        fr_spot_trace_load(fr_request_text(m->request, FR_OPT_SPOT_TRACE),
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

static fr_status make_spot(const making *m, fr_err *err)
{
    fr_run_conditions *c = &m->out->conditions;
    fr_goodput_setup *setup = &m->out->setup;
    if (!setup->is_spot)
        return FR_OK;
    if (fr_request_has(m->request, FR_OPT_SPOT_TRACE))
        FR_TRY(make_spot_trace(m, err));
    c->notice_s = m->request->option[FR_OPT_SPOT_NOTICE].real;
    setup->spot_mtbf_s = 1 / c->interruptions_per_s;
    setup->spot_wait_s = c->absence_s;
    return FR_OK;
}

static fr_status make_elastic(const making *m, fr_err *err)
{
    const int64_t least = m->request->option[FR_OPT_LEAST_NODES].count;
    fr_goodput_setup *setup = &m->out->setup;
    if (!fr_request_has(m->request, FR_OPT_LEAST_NODES))
        return FR_OK;
    if (least >= setup->n_nodes)
        return fr_fail(err, FR_USAGE,
                       "--least-nodes %lld: the run has %lld; give fewer",
                       (long long)least, (long long)setup->n_nodes);
    const fr_plan_file *file = m->file;
    const fr_elastic_subject subject = {
        &file->model,     &file->job,  &m->inputs->cluster,
        m->inputs->costs, &file->plan, fr_request_log(m->request)};
    const fr_elastic_request request = {setup->n_devices, setup->n_nodes, least,
                                        setup->step_s};
    fr_node_steps known = {0};
    fr_status status =
        fr_elastic_speeds(&subject, &request, &known, &m->out->speeds, err);
    fr_vec_release(&known);
    FR_TRY(status);
    FR_TRY(fr_elastic_check(&m->out->speeds, least, err));
    m->out->conditions.elastic = fr_elastic_of(&m->out->speeds);
    setup->least_nodes = least;
    setup->speed_without_one = m->out->speeds.items[0];
    return FR_OK;
}

/* Years, and hours of our own time, that nobody waits for. */
static fr_status check_effort(const fr_goodput_case *run, fr_err *err)
{
    const double most_days = 36500, most_interruptions = 1e9;
    const fr_run_conditions *c = &run->conditions;
    const double n_interruptions =
        run->request.work_s *
        (c->failures_per_s + c->racks_per_s + c->interruptions_per_s +
         c->slowdowns_per_s +
         (c->maintenance_every_s > 0 ? 1 / c->maintenance_every_s : 0)) *
        (double)run->request.n_runs;
    if (run->setup.work_days > most_days)
        return fr_fail(err, FR_INPUT,
                       "the steps alone take %.4g days; give fewer --tokens or "
                       "--steps, or more devices",
                       run->setup.work_days);
    if (n_interruptions > most_interruptions * (double)run->request.n_runs)
        return fr_fail(err, FR_INPUT,
                       "something fails every %.3g s: no run gets anywhere; "
                       "check --mtbf, --meets, --spot-every and the cluster's "
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

fr_status fr_goodput_case_make(const fr_request *request,
                               const fr_inputs *inputs,
                               const fr_plan_file *file,
                               const fr_prediction *prediction,
                               fr_goodput_case *out, fr_err *err)
{
    const making m = {request, inputs, file, prediction, out};
    *out = (fr_goodput_case){0};
    FR_TRY(check_options(request, err));
    FR_TRY(make_length(&m, err));
    FR_TRY(make_hazards(&m, err));
    FR_TRY(make_spot(&m, err));
    FR_TRY(make_elastic(&m, err));
    out->setup.is_interval_best =
        !fr_request_has(request, FR_OPT_CHECKPOINT_EVERY);
    out->conditions.every_steps =
        request->option[FR_OPT_CHECKPOINT_EVERY].count;
    save_best(out);
    return check_effort(out, err);
}

void fr_goodput_case_release(fr_goodput_case *run)
{
    fr_vec_release(&run->spans);
    fr_vec_release(&run->speeds);
}

/* Returns the ratio of a quantile to the median where interruptions alone make
 * it `by_luck`, and the error of the step alone `factor`. */
static double with_step(double by_luck, double factor)
{
    return exp(hypot(log(by_luck), log(factor)));
}

fr_status fr_goodput_case_live(const fr_goodput_case *run, fr_goodput *out,
                               fr_err *err)
{
    const double factor = run->step_p95_factor;
    fr_spread *finish = &out->finish_days;
    FR_TRY(fr_run_replicas(&run->conditions, &run->request, out, err));
    if (isinf(finish->p50))
        return FR_OK;
    finish->p5 = finish->p50 / with_step(finish->p50 / finish->p5, factor);
    if (!isinf(finish->p95))
        finish->p95 =
            finish->p50 * with_step(finish->p95 / finish->p50, factor);
    return FR_OK;
}

void fr_goodput_case_sum(const fr_cluster *cluster, const fr_goodput *goodput,
                         fr_goodput_case *out)
{
    fr_goodput_setup *setup = &out->setup;
    const double hours = goodput->finish_days_mean * 24;
    const int64_t n_paid =
        setup->n_nodes + (setup->n_spares > 0 ? setup->n_spares : 0);
    const double waiting = goodput->waterfall[FR_RUN_RESTART] +
                           goodput->waterfall[FR_RUN_REPLAN] +
                           goodput->waterfall[FR_RUN_IDLE] +
                           goodput->waterfall[FR_RUN_MAINTENANCE] +
                           goodput->waterfall[FR_RUN_CHECKPOINT];
    /* Spares are paid, and idle. */
    const double idle_w = fr_cluster_power_w(cluster, setup->n_nodes, 0);
    if (isinf(hours))
        return;
    setup->usd = hours * (double)n_paid / (double)setup->n_nodes *
                 fr_cluster_usd_per_h(cluster, setup->n_nodes, setup->is_spot);
    setup->kwh =
        hours *
        (out->training_w * (1 - waiting) + idle_w * waiting +
         idle_w * (double)(n_paid - setup->n_nodes) / (double)setup->n_nodes) /
        1000;
    setup->kgco2e = setup->kwh * cluster->carbon_g_per_kwh / 1000;
}
