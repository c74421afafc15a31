/* goal.c: the run that a step time makes, and its value. */
#include "tuner/goal/goal.h"

#include "core/base/text.h"
#include "core/base/units.h"
#include "tuner/goal/goal_rows.h"
#include "tuner/goal/goal_run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const fr_goal_row *fr_goal_row_of(fr_goal_kind kind)
{
    return (int)kind >= 0 && (int)kind < fr_n_goals ? fr_goal_rows[kind] : NULL;
}

void fr_goal_init(fr_goal *goal)
{
    *goal = (fr_goal){.kind = FR_GOAL_STEP};
}

/* ---- what was given ------------------------------------------------------ */

fr_status fr_goal_check(const fr_goal *goal, fr_err *err)
{
    const fr_goal_row *row = fr_goal_rows[goal->kind];
    const double amounts[] = {goal->tokens,     goal->critical_batch,
                              goal->deadline_s, goal->most_usd,
                              goal->most_kwh,   goal->least_headroom_frac};
    const struct {
        unsigned bit;
        double amount;
        const char *what;
    } needs[] = {{FR_GOAL_NEEDS_DEADLINE, goal->deadline_s,
                  "a deadline, such as --deadline 30d"},
                 {FR_GOAL_NEEDS_TOKENS, goal->tokens,
                  "the tokens that the loss takes in small batches, such as "
                  "--tokens 300B"},
                 {FR_GOAL_NEEDS_CRITICAL_BATCH, goal->critical_batch,
                  "the critical batch in tokens, such as --critical-batch 4M"}};
    for (size_t i = 0; i < sizeof amounts / sizeof amounts[0]; i++)
        if (!(amounts[i] >= 0 && isfinite(amounts[i])))
            return fr_fail(err, FR_USAGE,
                           "goal '%s': amounts are positive and finite",
                           row->name);
    if (goal->least_headroom_frac >= 1)
        return fr_fail(err, FR_USAGE,
                       "a headroom of all memory leaves none for the plan");
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++)
        if ((row->needs & needs[i].bit) && needs[i].amount <= 0)
            return fr_fail(err, FR_USAGE, "goal '%s' needs %s", row->name,
                           needs[i].what);
    if ((row->needs & FR_GOAL_NEEDS_CRITICAL_BATCH) &&
        goal->critical_batch > goal->tokens)
        return fr_fail(
            err, FR_USAGE,
            "goal '%s': a critical batch of %.4g tokens is more than "
            "the %.4g of the whole training",
            row->name, goal->critical_batch, goal->tokens);
    return FR_OK;
}

fr_status fr_goal_check_cluster(const fr_goal *goal, const fr_cluster *cluster,
                                fr_err *err)
{
    const fr_goal_row *row = fr_goal_rows[goal->kind];
    bool needs_price =
        (row->needs & FR_GOAL_NEEDS_PRICE) != 0 || goal->most_usd > 0;
    bool needs_power = fr_goal_weighs_energy(goal);
    if (needs_price && fr_cluster_usd_per_h(cluster, 1, goal->is_spot) <= 0)
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
    if (goal->choices.is_spot_free && !(goal->hazards.spot_every_s > 0) &&
        !(cluster->spot_interruption_per_h > 0))
        return fr_fail(err, FR_INPUT,
                       "how often spot nodes of '%s' are taken away is not "
                       "known, so none would be on demand; give --spot-every "
                       "200h, or the cluster a <reliability "
                       "spot-interruption-every=\"200h\"/>",
                       cluster->name);
    return FR_OK;
}

/* ---- the job ------------------------------------------------------------- */

fr_job fr_goal_job(const fr_model *model, const fr_job *job)
{
    fr_job counted = *job;
    counted.seq = fr_model_sample_tokens(model, job->seq);
    return counted;
}

bool fr_goal_has_tokens(const fr_goal *goal, const fr_job *job)
{
    return goal->tokens > 0 || job->tokens > 0;
}

/* ---- constraints --------------------------------------------------------- */

typedef char *(*format_fn)(char *out, size_t n, double amount);

typedef struct limit {
    const char *what;
    bool is_given;
    double is, most;
    format_fn format;
} limit;

enum { N_LIMITS = 5 };

static char *as_duration(char *out, size_t n, double seconds)
{
    enum { DAY_S = 86400, YEAR_S = 31557600 };
    if (seconds < DAY_S || seconds >= YEAR_S)
        return fr_format_s(out, n, seconds);
    snprintf(out, n, "%.3g days", seconds / DAY_S);
    return out;
}

static char *as_devices(char *out, size_t n, double amount)
{
    snprintf(out, n, "%.0f devices", amount);
    return out;
}

static char *as_percent(char *out, size_t n, double share)
{
    snprintf(out, n, "%.1f %%", 100 * share);
    return out;
}

/* An unknown amount breaks a limit on it. */
static double unless_unknown(double amount, double expected)
{
    return expected < HUGE_VAL ? amount : HUGE_VAL;
}

static void list_limits(const fr_goal_point *at, limit out[N_LIMITS])
{
    const fr_goal *goal = at->goal;
    const fr_run_outlook *run = &at->run.outlook;
    const bool is_sure = !(run->seconds_p95 > run->seconds);
    const limit all[N_LIMITS] = {
        {is_sure ? "time" : "time of 19 in 20 runs", goal->deadline_s > 0,
         run->seconds_p95, goal->deadline_s, as_duration},
        {is_sure ? "cost" : "cost of 19 in 20 runs", goal->most_usd > 0,
         unless_unknown(run->usd_p95, fr_goal_usd(at)), goal->most_usd,
         fr_format_usd},
        {is_sure ? "energy" : "energy of 19 in 20 runs", goal->most_kwh > 0,
         unless_unknown(run->kwh_p95, fr_goal_kwh(at)), goal->most_kwh,
         fr_format_kwh},
        {"devices", goal->most_devices > 0, (double)at->run.n_devices,
         (double)goal->most_devices, as_devices},
        {"memory taken", goal->least_headroom_frac > 0, at->taken_frac,
         1 - goal->least_headroom_frac, as_percent},
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

static bool limits_devices(const fr_goal *goal)
{
    return goal->most_usd > 0 || goal->most_kwh > 0 || goal->most_devices > 0;
}

bool fr_goal_has_limits(const fr_goal *goal)
{
    return limits_devices(goal) || goal->deadline_s > 0 ||
           goal->least_headroom_frac > 0;
}

bool fr_goal_weighs_devices(const fr_goal *goal)
{
    return fr_goal_rows[goal->kind]->weighs_devices || limits_devices(goal);
}

bool fr_goal_weighs_energy(const fr_goal *goal)
{
    return (fr_goal_rows[goal->kind]->needs & FR_GOAL_NEEDS_POWER) != 0 ||
           goal->most_kwh > 0;
}

/* ---- values -------------------------------------------------------------- */

static fr_goal_point point_by(const fr_goal *goal, const fr_goal_scale *scale,
                              const fr_run_way *way,
                              const fr_weighed_step *step, double taken_frac)
{
    return (fr_goal_point){goal,
                           scale,
                           way->usd_per_h,
                           way->training_kw,
                           fr_goal_run_by(scale, way, step),
                           *step,
                           taken_frac};
}

/* HUGE_VAL: a limit is broken. */
static double value_of(const fr_goal_point *at)
{
    limit limits[N_LIMITS];
    list_limits(at, limits);
    if (at->goal->is_nearest)
        return excess(limits);
    for (int i = 0; i < N_LIMITS; i++)
        if (is_broken(&limits[i]))
            return HUGE_VAL;
    return fr_goal_rows[at->goal->kind]->value(at);
}

static double excess_of(const fr_goal_point *at)
{
    limit limits[N_LIMITS];
    list_limits(at, limits);
    return excess(limits);
}

/* A point with a smaller value is better.  If values are equal, the smaller
 * excess over the limits decides, then the shorter run. */
static bool is_better(const fr_goal_point *a, const fr_goal_point *b)
{
    const double x = value_of(a), y = value_of(b);
    if (x != y)
        return x < y;
    if (x == HUGE_VAL && excess_of(a) != excess_of(b))
        return excess_of(a) < excess_of(b);
    return a->run.outlook.seconds < b->run.outlook.seconds;
}

fr_weighed_step fr_weighed_step_of(const fr_prediction *prediction)
{
    const double *parts_s = prediction->breakdown_s;
    const double waits_s = parts_s[FR_PART_STRAGGLERS] + parts_s[FR_PART_DATA];
    const double seconds = prediction->expected_step_s;
    fr_weighed_step step = {seconds, seconds * prediction->busy_frac, 1, 1};
    if (seconds > 0 && prediction->step_s_p95 > seconds)
        step.p95_factor = prediction->step_s_p95 / seconds;
    if (prediction->step_s > waits_s)
        step.useful_frac = 1 - waits_s / prediction->step_s;
    return step;
}

static fr_goal_point point_at(const fr_goal *goal, const fr_goal_scale *scale,
                              const fr_weighed_step *step, double taken_frac)
{
    const fr_run_way *ways = scale->ways.items;
    fr_goal_point best = point_by(goal, scale, &ways[0], step, taken_frac);
    for (size_t i = 1; i < scale->ways.n; i++) {
        const fr_goal_point other =
            point_by(goal, scale, &ways[i], step, taken_frac);
        if (is_better(&other, &best))
            best = other;
    }
    return best;
}

typedef struct choice {
    fr_goal_point best; /* with the goal, the scale, step and memory of all */
    bool has_best;
} choice;

static void choose(void *context, const fr_run_way *way)
{
    choice *c = context;
    const fr_goal_point *at = &c->best;
    const fr_goal_point other =
        point_by(at->goal, at->scale, way, &at->step, at->taken_frac);
    if (!c->has_best || is_better(&other, &c->best))
        c->best = other;
    c->has_best = true;
}

/* The same of one step, for which no list is made. */
static fr_goal_point point_of(const fr_goal *goal, const fr_plan *plan,
                              const fr_goal_subject *subject,
                              const fr_goal_scale *scale,
                              const fr_weighed_step *step, double taken_frac)
{
    choice c = {.best = {.goal = goal,
                         .scale = scale,
                         .step = *step,
                         .taken_frac = taken_frac}};
    fr_goal_ways_visit(goal, plan, subject, scale, choose, &c);
    return c.best;
}

fr_goal_run fr_goal_run_of(const fr_goal *goal, const fr_weighed_step *step,
                           const fr_plan *plan, const fr_goal_subject *subject)
{
    const fr_goal_scale scale = fr_goal_scale_bare(goal, plan, subject);
    return point_of(goal, plan, subject, &scale, step, 0).run;
}

static bool is_step_alone(const fr_goal *goal)
{
    return fr_goal_rows[goal->kind]->is_step && !fr_goal_has_limits(goal);
}

double fr_goal_at(const fr_goal *goal, const fr_goal_scale *scale,
                  const fr_weighed_step *step, double taken_frac)
{
    if (is_step_alone(goal))
        return step->seconds;
    const fr_goal_point at = point_at(goal, scale, step, taken_frac);
    return value_of(&at);
}

double fr_goal_objective(const fr_goal *goal, const fr_goal_scale *scale,
                         const fr_weighed_step *step, double taken_frac)
{
    const fr_goal_point at = point_at(goal, scale, step, taken_frac);
    return fr_goal_rows[goal->kind]->value(&at);
}

/* For each way to run, an objective is a straight line over the step, except
 * with a checkpoint every fixed number of steps.  Constraints are ignored. */
double fr_goal_step_for(const fr_goal *goal, const fr_goal_scale *scale,
                        double busy_s, double value)
{
    double longest_s = 0;
    const fr_goal_row *row = fr_goal_rows[goal->kind];
    if (goal->is_nearest || row->of == FR_GOAL_OF_MEMORY)
        return HUGE_VAL;
    if (row->is_step)
        return value;
    for (size_t i = 0; i < scale->ways.n; i++) {
        const fr_run_way *way = &scale->ways.items[i];
        const fr_weighed_step step_0 = {0, busy_s, 1, 1};
        const fr_weighed_step step_1 = {1, busy_s, 1, 1};
        const fr_goal_point at_0 = point_by(goal, scale, way, &step_0, 0);
        const fr_goal_point at_1 = point_by(goal, scale, way, &step_1, 0);
        const double value_0 = fr_goal_rows[goal->kind]->value(&at_0);
        const double value_1 = fr_goal_rows[goal->kind]->value(&at_1);
        if (way->conditions.every_steps > 0 || !(value_1 > value_0))
            return HUGE_VAL;
        longest_s = fmax(longest_s, (value - value_0) / (value_1 - value_0));
    }
    return longest_s;
}

double fr_goal_taken_frac(const fr_prediction *prediction)
{
    double capacity = (double)prediction->memory.capacity_bytes;
    return capacity > 0 ? (double)prediction->memory.peak_bytes / capacity : 0;
}

double fr_goal_value(const fr_goal *goal, const fr_prediction *prediction,
                     const fr_plan *plan, const fr_goal_subject *subject)
{
    if (!prediction->memory.fits || !(prediction->expected_step_s > 0))
        return HUGE_VAL;
    if (is_step_alone(goal))
        return prediction->expected_step_s;
    const fr_goal_scale scale = fr_goal_scale_bare(goal, plan, subject);
    const fr_weighed_step step = fr_weighed_step_of(prediction);
    const fr_goal_point at = point_of(goal, plan, subject, &scale, &step,
                                      fr_goal_taken_frac(prediction));
    return value_of(&at);
}

static double excess_at(const limit *l)
{
    return l->is / l->most;
}

/* The next one that is exceeded, those that are most first. */
static limit *take_broken(limit *limits)
{
    limit *found = NULL;
    for (int i = 0; i < N_LIMITS; i++)
        if (is_broken(&limits[i]) &&
            (found == NULL || excess_at(&limits[i]) > excess_at(found)))
            found = &limits[i];
    if (found != NULL)
        found->is_given = false;
    return found;
}

char *fr_goal_why_not(const fr_goal *goal, const fr_prediction *prediction,
                      const fr_plan *plan, const fr_goal_subject *subject,
                      char *buf, size_t n_buf)
{
    char is[FR_FORMAT_MAX], most[FR_FORMAT_MAX];
    limit limits[N_LIMITS];
    const fr_goal_scale scale = fr_goal_scale_bare(goal, plan, subject);
    const fr_weighed_step step = fr_weighed_step_of(prediction);
    const fr_goal_point at = point_of(goal, plan, subject, &scale, &step,
                                      fr_goal_taken_frac(prediction));
    list_limits(&at, limits);
    buf[0] = '\0';
    for (const limit *l; (l = take_broken(limits)) != NULL;) {
        const size_t used = strlen(buf);
        fr_text_copy_cut(is, sizeof is, "not known");
        if (isfinite(l->is))
            l->format(is, sizeof is, l->is);
        const int n =
            snprintf(buf + used, n_buf - used, "%s%s is %s, the limit %s",
                     used > 0 ? "; " : "", l->what, is,
                     l->format(most, sizeof most, l->most));
        if (used > 0 && (size_t)n >= n_buf - used)
            buf[used] = '\0'; /* for which there is no room */
    }
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
