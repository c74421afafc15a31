/* goal.c: the table of objectives, and the run that a step time makes. */
#include "tuner/answer/goal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/text.h"
#include "core/base/units.h"

static const fr_goal_row rows[FR_GOAL_N] = {
    [FR_GOAL_STEP] = {"step", "s", "seconds of a step", 0},
    [FR_GOAL_THROUGHPUT] = {"throughput", "device s/token",
                            "device seconds of a token", 0},
    [FR_GOAL_TIME] = {"time", "s", "seconds of the run", 0},
    [FR_GOAL_COST] = {"cost", "USD", "dollars of the run", FR_GOAL_NEEDS_PRICE},
    [FR_GOAL_ENERGY] = {"energy", "kWh", "energy of the run",
                        FR_GOAL_NEEDS_POWER},
    [FR_GOAL_DEADLINE] = {"deadline", "USD",
                          "dollars of a run that meets the deadline",
                          FR_GOAL_NEEDS_DEADLINE | FR_GOAL_NEEDS_PRICE},
    [FR_GOAL_DEVICES] = {"devices", "devices",
                         "devices of a run that meets the deadline",
                         FR_GOAL_NEEDS_DEADLINE},
    [FR_GOAL_LOSS] = {"loss", "s",
                      "seconds to the loss that so many tokens reach in small "
                      "batches",
                      FR_GOAL_NEEDS_TOKENS | FR_GOAL_NEEDS_CRITICAL_BATCH},
    [FR_GOAL_HEADROOM] = {"headroom", "of memory",
                          "share of the memory that is taken", 0},
};

const fr_goal_row *fr_goal_row_of(fr_goal_kind kind)
{
    return (unsigned)kind < FR_GOAL_N ? &rows[kind] : NULL;
}

void fr_goal_init(fr_goal *goal)
{
    *goal = (fr_goal){.kind = FR_GOAL_STEP};
}

fr_status fr_goal_check(const fr_goal *goal, fr_err *err)
{
    const fr_goal_row *row = &rows[goal->kind];
    const double amounts[] = {goal->tokens,     goal->critical_batch,
                              goal->deadline_s, goal->most_usd,
                              goal->most_kwh,   goal->least_headroom_frac};
    for (size_t i = 0; i < sizeof amounts / sizeof amounts[0]; i++)
        if (!(amounts[i] >= 0 && isfinite(amounts[i])))
            return fr_fail(err, FR_USAGE,
                           "goal '%s': amounts are positive and finite",
                           row->name);
    if (goal->least_headroom_frac >= 1)
        return fr_fail(err, FR_USAGE,
                       "a headroom of all memory leaves none for the plan");
    if ((row->needs & FR_GOAL_NEEDS_DEADLINE) && goal->deadline_s <= 0)
        return fr_fail(err, FR_USAGE,
                       "goal '%s' needs a deadline, such as --deadline 30d",
                       row->name);
    if ((row->needs & FR_GOAL_NEEDS_TOKENS) && goal->tokens <= 0)
        return fr_fail(err, FR_USAGE,
                       "goal '%s' needs the tokens that the loss takes in "
                       "small batches, such as --tokens 300B",
                       row->name);
    if ((row->needs & FR_GOAL_NEEDS_CRITICAL_BATCH) &&
        goal->critical_batch <= 0)
        return fr_fail(err, FR_USAGE,
                       "goal '%s' needs the critical batch in tokens, such as "
                       "--critical-batch 4M",
                       row->name);
    if ((row->needs & FR_GOAL_NEEDS_CRITICAL_BATCH) &&
        goal->critical_batch > goal->tokens)
        return fr_fail(
            err, FR_USAGE,
            "goal '%s': a critical batch of %.4g tokens is more than "
            "the %.4g of the whole training",
            row->name, goal->critical_batch, goal->tokens);
    return FR_OK;
}

static double usd_per_h(const fr_goal *goal, const fr_cluster *cluster,
                        int64_t n_nodes)
{
    return fr_cluster_usd_per_h(cluster, n_nodes, goal->is_spot);
}

fr_status fr_goal_check_cluster(const fr_goal *goal, const fr_cluster *cluster,
                                fr_err *err)
{
    const fr_goal_row *row = &rows[goal->kind];
    bool needs_price =
        (row->needs & FR_GOAL_NEEDS_PRICE) != 0 || goal->most_usd > 0;
    bool needs_power =
        (row->needs & FR_GOAL_NEEDS_POWER) != 0 || goal->most_kwh > 0;
    if (needs_price && usd_per_h(goal, cluster, 1) <= 0)
        return fr_fail(err, FR_INPUT,
                       "cluster '%s' has no price; give its node type one "
                       "(price=\"20USD/h\"), or name a node of a cloud "
                       "(forerun catalog nodes)",
                       cluster->name);
    if (needs_power && fr_cluster_power_w(cluster, 1, 1) <= 0)
        return fr_fail(err, FR_INPUT,
                       "cluster '%s': what its devices draw is not known; "
                       "give them a power (power=\"700W\")",
                       cluster->name);
    return FR_OK;
}

/* ---- a run --------------------------------------------------------------- */

/* Nodes from the first on that have room for the ranks. */
static int64_t nodes_of(const fr_plan *plan, const fr_cluster *cluster)
{
    int64_t n_ranks = fr_plan_world(plan), n_fit = 0;
    int64_t n_nodes = fr_cluster_n_nodes(cluster), node = 0;
    while (node < n_nodes && n_fit < n_ranks)
        n_fit += fr_cluster_node_slots(cluster, node++, plan->n_threads);
    return node;
}

fr_goal_scale fr_goal_scale_of(const fr_goal *goal, const fr_plan *plan,
                               const fr_job *job, const fr_cluster *cluster)
{
    double batch = (double)job->global_batch * (double)job->seq;
    double least =
        goal->tokens > 0 ? goal->tokens : batch * (double)job->n_steps;
    double more =
        goal->critical_batch > 0 ? 1 + batch / goal->critical_batch : 1;
    int64_t n_nodes = nodes_of(plan, cluster);
    return (fr_goal_scale){
        .tokens = least * more,
        .n_steps = least * more / batch,
        .usd_per_h = usd_per_h(goal, cluster, n_nodes),
        .kw = fr_cluster_power_w(cluster, n_nodes, 1) / 1000,
        .n_nodes = n_nodes,
        .n_devices = fr_plan_world(plan),
    };
}

static fr_goal_run run_at(const fr_goal_scale *scale, double step_s)
{
    double seconds = scale->n_steps * step_s, hours = seconds / 3600;
    return (fr_goal_run){.n_steps = scale->n_steps,
                         .tokens = scale->tokens,
                         .seconds = seconds,
                         .usd = scale->usd_per_h * hours,
                         .kwh = scale->kw * hours,
                         .n_nodes = scale->n_nodes,
                         .n_devices = scale->n_devices};
}

fr_goal_run fr_goal_run_of(const fr_goal *goal, double step_s,
                           const fr_plan *plan, const fr_job *job,
                           const fr_cluster *cluster)
{
    fr_goal_scale scale = fr_goal_scale_of(goal, plan, job, cluster);
    return run_at(&scale, step_s);
}

fr_job fr_goal_job(const fr_model *model, const fr_job *job)
{
    fr_job counted = *job;
    if (model->kind == FR_MODEL_LAYERS)
        counted.seq = 1;
    return counted;
}

/* Equally many devices: the faster run is better, by less than one device. */
static double devices_value(const fr_goal *goal, const fr_goal_run *run)
{
    return (double)run->n_devices + 0.5 * run->seconds / goal->deadline_s;
}

/* HUGE_VAL where there is no price, or no power. */
static double known(double rate, double amount)
{
    return rate > 0 ? amount : HUGE_VAL;
}

static double objective(const fr_goal *goal, const fr_goal_scale *scale,
                        const fr_goal_run *run, double step_s,
                        double taken_frac)
{
    switch (goal->kind) {
    case FR_GOAL_STEP:
        return step_s;
    case FR_GOAL_THROUGHPUT:
        return run->seconds * (double)run->n_devices / run->tokens;
    case FR_GOAL_TIME:
    case FR_GOAL_LOSS:
        return run->seconds;
    case FR_GOAL_COST:
    case FR_GOAL_DEADLINE:
        return known(scale->usd_per_h, run->usd);
    case FR_GOAL_ENERGY:
        return known(scale->kw, run->kwh);
    case FR_GOAL_DEVICES:
        return devices_value(goal, run);
    case FR_GOAL_HEADROOM:
        return taken_frac;
    case FR_GOAL_N:
        break;
    }
    return HUGE_VAL;
}

/* ---- constraints --------------------------------------------------------- */

typedef struct limit {
    const char *what;
    bool is_given;
    double is, most;
    char *(*format)(char *out, size_t n, double value);
} limit;

enum { N_LIMITS = 5 };

static char *format_duration(char *out, size_t n, double seconds)
{
    if (seconds < 86400)
        return fr_format_s(out, n, seconds);
    snprintf(out, n, "%.3g days", seconds / 86400);
    return out;
}

static char *format_usd(char *out, size_t n, double usd)
{
    snprintf(out, n, "%.4g USD", usd);
    return out;
}

static char *format_kwh(char *out, size_t n, double kwh)
{
    snprintf(out, n, "%.4g kWh", kwh);
    return out;
}

static char *format_percent(char *out, size_t n, double frac)
{
    snprintf(out, n, "%.1f %%", 100 * frac);
    return out;
}

static char *format_devices(char *out, size_t n, double n_devices)
{
    snprintf(out, n, "%.0f devices", n_devices);
    return out;
}

/* An unknown amount breaks a limit on it. */
static void list_limits(const fr_goal *goal, const fr_goal_scale *scale,
                        const fr_goal_run *run, double taken_frac, limit *out)
{
    const limit all[N_LIMITS] = {
        {"time", goal->deadline_s > 0, run->seconds, goal->deadline_s,
         format_duration},
        {"cost", goal->most_usd > 0, known(scale->usd_per_h, run->usd),
         goal->most_usd, format_usd},
        {"energy", goal->most_kwh > 0, known(scale->kw, run->kwh),
         goal->most_kwh, format_kwh},
        {"devices", goal->most_devices > 0, (double)run->n_devices,
         (double)goal->most_devices, format_devices},
        {"memory taken", goal->least_headroom_frac > 0, taken_frac,
         1 - goal->least_headroom_frac, format_percent},
    };
    memcpy(out, all, sizeof all);
}

static bool is_broken(const limit *l)
{
    return l->is_given && !(l->is <= l->most);
}

/* is / limit of the constraint that is exceeded most; 0: there is none. */
static double excess(const limit *limits)
{
    double most = 0;
    for (int i = 0; i < N_LIMITS; i++)
        if (limits[i].is_given)
            most = fmax(most, limits[i].is / limits[i].most);
    return most;
}

bool fr_goal_has_limits(const fr_goal *goal)
{
    return goal->deadline_s > 0 || goal->most_usd > 0 || goal->most_kwh > 0 ||
           goal->most_devices > 0 || goal->least_headroom_frac > 0;
}

bool fr_goal_weighs_devices(const fr_goal *goal)
{
    switch (goal->kind) {
    case FR_GOAL_THROUGHPUT:
    case FR_GOAL_COST:
    case FR_GOAL_ENERGY:
    case FR_GOAL_DEADLINE:
    case FR_GOAL_DEVICES:
        return true;
    default:
        return goal->most_usd > 0 || goal->most_kwh > 0 ||
               goal->most_devices > 0;
    }
}

double fr_goal_at(const fr_goal *goal, const fr_goal_scale *scale,
                  double step_s, double taken_frac)
{
    limit limits[N_LIMITS];
    if (goal->kind == FR_GOAL_STEP && !fr_goal_has_limits(goal))
        return step_s;
    fr_goal_run run = run_at(scale, step_s);
    list_limits(goal, scale, &run, taken_frac, limits);
    if (goal->is_nearest)
        return excess(limits);
    for (int i = 0; i < N_LIMITS; i++)
        if (is_broken(&limits[i]))
            return HUGE_VAL;
    return objective(goal, scale, &run, step_s, taken_frac);
}

double fr_goal_objective(const fr_goal *goal, const fr_goal_scale *scale,
                         double step_s, double taken_frac)
{
    fr_goal_run run = run_at(scale, step_s);
    return objective(goal, scale, &run, step_s, taken_frac);
}

/* Objectives are straight lines over the step; constraints are left out. */
double fr_goal_step_for(const fr_goal *goal, const fr_goal_scale *scale,
                        double value)
{
    fr_goal_run none = run_at(scale, 0), one = run_at(scale, 1);
    if (goal->is_nearest || goal->kind == FR_GOAL_HEADROOM)
        return HUGE_VAL;
    if (goal->kind == FR_GOAL_STEP)
        return value;
    double at_0 = objective(goal, scale, &none, 0, 0);
    double at_1 = objective(goal, scale, &one, 1, 0);
    return at_1 > at_0 ? (value - at_0) / (at_1 - at_0) : HUGE_VAL;
}

double fr_goal_taken_frac(const fr_prediction *prediction)
{
    double capacity = (double)prediction->memory.capacity_bytes;
    return capacity > 0 ? (double)prediction->memory.peak_bytes / capacity : 0;
}

double fr_goal_value(const fr_goal *goal, const fr_prediction *prediction,
                     const fr_plan *plan, const fr_job *job,
                     const fr_cluster *cluster)
{
    fr_goal_scale scale = fr_goal_scale_of(goal, plan, job, cluster);
    if (!prediction->memory.fits || !(prediction->step_s > 0))
        return HUGE_VAL;
    return fr_goal_at(goal, &scale, prediction->step_s,
                      fr_goal_taken_frac(prediction));
}

/* The one that is exceeded most. */
static const limit *find_broken(const limit *limits)
{
    const limit *found = NULL;
    for (int i = 0; i < N_LIMITS; i++)
        if (is_broken(&limits[i]) &&
            (found == NULL ||
             limits[i].is / limits[i].most > found->is / found->most))
            found = &limits[i];
    return found;
}

char *fr_goal_why_not(const fr_goal *goal, const fr_prediction *prediction,
                      const fr_plan *plan, const fr_job *job,
                      const fr_cluster *cluster, char *buf, size_t n_buf)
{
    char is[FR_FORMAT_MAX], most[FR_FORMAT_MAX];
    limit limits[N_LIMITS];
    fr_goal_scale scale = fr_goal_scale_of(goal, plan, job, cluster);
    fr_goal_run run = run_at(&scale, prediction->step_s);
    list_limits(goal, &scale, &run, fr_goal_taken_frac(prediction), limits);
    const limit *broken = find_broken(limits);
    buf[0] = '\0';
    if (broken == NULL)
        return buf;
    if (isfinite(broken->is))
        broken->format(is, sizeof is, broken->is);
    else
        snprintf(is, sizeof is, "not known");
    broken->format(most, sizeof most, broken->most);
    snprintf(buf, n_buf, "%s is %s, the limit %s", broken->what, is, most);
    return buf;
}

/* ---- learning rate ------------------------------------------------------- */

/*
 * SGD: the best step is e_max / (1 + B_crit / B) (McCandlish et al.,
 * section 2.2): linear in small batches, constant in large ones.  Adam: the
 * square root (Malladi et al., "On the SDEs and Scaling Rules for Adaptive
 * Gradient Algorithms", arXiv 2205.10287), LAMB likewise (You et al., arXiv
 * 1904.00962), LARS linear with warm-up (You et al., arXiv 1708.03888).
 */
char *fr_goal_lr_rule(const fr_job *job, char *buf, size_t n_buf)
{
    static const char *const published[FR_OPTIMIZER_N] = {
        [FR_OPTIMIZER_SGD] = "lr ~ 1 / (1 + B_crit / B)",
        [FR_OPTIMIZER_ADAMW] = "lr ~ sqrt(B)",
        [FR_OPTIMIZER_LARS] = "lr ~ B, with warm-up",
        [FR_OPTIMIZER_LAMB] = "lr ~ sqrt(B)",
    };
    static const char *const named[FR_LR_RULE_N] = {
        [FR_LR_RULE_LINEAR] = "lr ~ B",
        [FR_LR_RULE_SQRT] = "lr ~ sqrt(B)",
    };
    const char *rule = named[job->lr_rule];
    snprintf(buf, n_buf, "%s (%s)",
             rule != NULL ? rule : published[job->optimizer],
             rule != NULL ? "--lr-rule"
                          : fr_name_of(&fr_optimizer_names, job->optimizer));
    return buf;
}
