/* goal_run.c: see goal_run.h. */
#include "tuner/goal/goal_run.h"

#include "spec/cluster/cluster_power.h"

#include <math.h>

static double training_w(const fr_plan *plan, const fr_cluster *cluster,
                         int64_t n_nodes)
{
    return fr_cluster_training_w(cluster, n_nodes, fr_plan_world(plan),
                                 plan->n_threads, 1);
}

static fr_run_way undisturbed(const fr_goal *goal, const fr_plan *plan,
                              const fr_goal_subject *subject,
                              const fr_goal_scale *scale)
{
    const fr_cluster *cluster = subject->cluster;
    const int64_t n_nodes = scale->n_nodes;
    return (fr_run_way){
        .stretch = {.seconds = 1},
        .conditions.n_spares = -1,
        .usd_per_h = fr_cluster_usd_per_h(cluster, n_nodes, goal->is_spot),
        .training_kw = training_w(plan, cluster, n_nodes) / 1000,
        .idle_kw = fr_cluster_power_w(cluster, n_nodes, 0) / 1000,
        .spot_frac = goal->is_spot ? 1 : 0};
}

fr_goal_scale fr_goal_scale_bare(const fr_goal *goal, const fr_plan *plan,
                                 const fr_goal_subject *subject)
{
    const fr_job *job = subject->job;
    double batch = (double)job->global_batch * (double)job->seq;
    double least = goal->tokens > 0  ? goal->tokens
                   : job->tokens > 0 ? (double)job->tokens
                                     : batch * (double)job->n_steps;
    double more =
        goal->critical_batch > 0 ? 1 + batch / goal->critical_batch : 1;
    return (fr_goal_scale){
        .tokens = least * more,
        .n_steps = least * more / batch,
        .n_nodes = fr_cluster_nodes_of_ranks(
            subject->cluster, fr_plan_world(plan), plan->n_threads),
        .n_devices = fr_plan_world(plan),
        .n_threads = plan->n_threads};
}

/* Returns the site of a run that is interrupted; it borrows the hazards. */
static fr_run_site site_of(const fr_goal *goal, const fr_plan *plan,
                           const fr_goal_subject *subject,
                           const fr_goal_scale *scale, fr_run_hazards *hazards)
{
    *hazards = goal->hazards;
    hazards->is_spot = goal->is_spot;
    return (fr_run_site){
        .hazards = hazards,
        .choices = &goal->choices,
        .cluster = subject->cluster,
        .n_nodes = scale->n_nodes,
        .n_devices = scale->n_devices,
        .state_bytes =
            fr_plan_checkpoint_bytes(plan, subject->model, subject->job),
        .training_w = training_w(plan, subject->cluster, scale->n_nodes)};
}

fr_status fr_goal_scale_make(const fr_goal *goal, const fr_plan *plan,
                             const fr_goal_subject *subject, fr_goal_scale *out,
                             fr_err *err)
{
    fr_goal_scale scale = fr_goal_scale_bare(goal, plan, subject);
    fr_run_hazards hazards;
    if (goal->is_disturbed) {
        const fr_run_site site = site_of(goal, plan, subject, &scale, &hazards);
        const fr_status status = fr_run_ways_list(&site, &scale.ways, err);
        if (status != FR_OK) {
            fr_goal_scale_release(&scale);
            return status;
        }
    } else {
        FR_TRY_PUSH(&scale.ways, undisturbed(goal, plan, subject, &scale), err);
    }
    *out = scale;
    return FR_OK;
}

void fr_goal_scale_release(fr_goal_scale *scale)
{
    fr_vec_release(&scale->ways);
    *scale = (fr_goal_scale){0};
}

void fr_goal_ways_visit(const fr_goal *goal, const fr_plan *plan,
                        const fr_goal_subject *subject,
                        const fr_goal_scale *scale, fr_run_way_fn visit,
                        void *context)
{
    fr_run_hazards hazards;
    if (goal->is_disturbed) {
        const fr_run_site site = site_of(goal, plan, subject, scale, &hazards);
        fr_run_ways_visit(&site, visit, context);
    } else {
        const fr_run_way way = undisturbed(goal, plan, subject, scale);
        visit(context, &way);
    }
}

/* The stretch, of a fixed interval that of the step. */
static fr_run_stretch stretch_at(const fr_run_way *way, double step_s)
{
    fr_run_conditions conditions = way->conditions;
    if (conditions.every_steps == 0)
        return way->stretch;
    conditions.step_s = step_s;
    return fr_run_expected_stretch(&conditions);
}

/* Seconds that 95 of 100 runs take at most.  Interruptions of the run and the
 * error of its step are independent; many interruptions add up to a normal
 * distribution, errors of steps multiply.  Grows with the seconds also in the
 * last bit. */
static double p95_s(double seconds, double deviation_s,
                    const fr_weighed_step *step)
{
    const double quantile_95 = 1.6448536269514722;
    const double met_s = seconds + quantile_95 * deviation_s;
    if (!(step->p95_factor > 1 && seconds > 0))
        return met_s;
    return fmax(met_s, seconds * exp(hypot(log(met_s / seconds),
                                           log(step->p95_factor))));
}

/* All nodes draw their idle power all the time, and the rest while they
 * compute, lost steps among them. */
static double kwh_of(const fr_run_way *way, const fr_run_stretch *stretch,
                     double busy_s, double seconds)
{
    const double more_kw = (way->training_kw - way->idle_kw) *
                           fr_run_stepping_frac(stretch) * stretch->seconds;
    return ((way->idle_kw + way->spares_kw) * seconds + more_kw * busy_s) /
           3600;
}

fr_goal_run fr_goal_run_by(const fr_goal_scale *scale, const fr_run_way *way,
                           const fr_weighed_step *step)
{
    const double step_s = step->seconds;
    const fr_run_stretch stretch = stretch_at(way, step_s);
    const double steps_s = scale->n_steps * step_s;
    /* Seconds of steps, or steps, and what each takes: whose products the list
     * of ways is cut by. */
    const bool is_fixed = stretch.per_step_s > 0;
    const double n = is_fixed ? scale->n_steps : steps_s;
    const double each_s = is_fixed ? stretch.per_step_s : stretch.seconds;
    const double seconds = each_s * n;
    const double interruptions = steps_s * stretch.interruptions;
    const double deviation_s = sqrt(stretch.variance_s2_per_s * each_s * n);
    /* With fewer, 19 of 20 runs meet none. */
    const bool is_met = interruptions > -log(0.95);
    const double seconds_p95 = p95_s(seconds, is_met ? deviation_s : 0, step);
    const double p95_factor = seconds > 0 ? seconds_p95 / seconds : 1;
    const double usd = way->usd_per_h * each_s * n / 3600;
    const double kwh =
        kwh_of(way, &stretch, step->busy_s * scale->n_steps, each_s * n);
    const fr_run_outlook outlook = {
        .seconds = seconds,
        .seconds_p95 = seconds_p95,
        .usd = usd,
        .usd_p95 = usd * p95_factor,
        .kwh = kwh,
        .kwh_p95 = kwh * p95_factor,
        .useful_frac = step->useful_frac / stretch.seconds,
        .interruptions = interruptions,
        .checkpoint_kind = fr_name_of(&fr_checkpoint_kind_names, way->kind),
        .checkpoint_every_s = stretch.cycle_s,
        .n_spares = way->conditions.n_spares,
        .spot_frac = way->spot_frac,
        .least_nodes = way->least_nodes};
    return (fr_goal_run){.n_steps = scale->n_steps,
                         .tokens = scale->tokens,
                         .outlook = outlook,
                         .n_nodes = scale->n_nodes,
                         .n_devices = scale->n_devices};
}
