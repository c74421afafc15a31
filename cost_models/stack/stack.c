/* stack.c: see stack.h. */
#include "cost_models/stack/stack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A run that lies outside of what the others say with this probability, over
 * the number of runs, is taken for a mistake. */
static const double outlier_probability = 0.002;
enum { FEWEST_TO_JUDGE = 3 };
/* A step that is off by more than this is of another unit, or another plan,
 * however few others there are. */
static const double most_factor = 20;

struct fr_stack {
    fr_stack_prior prior;
    fr_run_point *runs; /* all */
    bool *is_outlier;
    size_t n;
    size_t *used; /* the runs of the process, in order */
    size_t n_used;
    fr_process *process;
};

static double square(double x)
{
    return x * x;
}

/* Returns the covariance of two steps: of their shares, of their similarity,
 * and of their kind alone. */
static double covariance(const fr_stack_prior *p, const fr_run_features *a,
                         const fr_run_features *b)
{
    double sum = square(p->common), sizes = 0, kinds = 0;
    for (int i = 0; i < FR_RUN_SHARE_N; i++)
        sum += square(p->share[i]) * a->share[i] * b->share[i];
    for (int i = 0; i < FR_RUN_SIZE_N; i++)
        sizes += square((a->size[i] - b->size[i]) / p->size[i]);
    for (int i = 0; i < FR_RUN_KIND_N; i++)
        kinds += a->kind[i] != b->kind[i] ? square(1 / p->kind[i]) : 0;
    return sum + square(p->alike) * exp(-(sizes + kinds) / 2) +
           square(p->same_kind) * exp(-kinds / 2);
}

static double log_ratio(const fr_run_point *run)
{
    return log(run->measured_s / run->predicted_s);
}

/* Without what all stacks have in common. */
static double residual(const fr_stack_prior *prior, const fr_run_point *run)
{
    return log_ratio(run) - prior->mean;
}

static fr_student about_mean(const fr_stack_prior *prior, fr_student value)
{
    value.mean += prior->mean;
    return value;
}

static fr_status make_process(const fr_stack_prior *prior,
                              const fr_run_point *runs, const size_t *used,
                              size_t n, fr_process **out, fr_err *err)
{
    double *cov;
    FR_TRY_CALLOC(cov, n * n + n + 1, err);
    double *y = cov + n * n;
    for (size_t i = 0; i < n; i++) {
        const fr_run_point *a = &runs[used != NULL ? used[i] : i];
        for (size_t k = 0; k < n; k++) {
            const fr_run_point *b = &runs[used != NULL ? used[k] : k];
            cov[i * n + k] = covariance(prior, &a->features, &b->features);
        }
        cov[i * n + i] += square(prior->noise);
        y[i] = residual(prior, a);
    }
    fr_status status = fr_process_create(cov, y, n, prior->dof, out, err);
    free(cov);
    return status;
}

static fr_status use_runs(fr_stack *s, fr_err *err)
{
    s->n_used = 0;
    for (size_t i = 0; i < s->n; i++)
        if (!s->is_outlier[i])
            s->used[s->n_used++] = i;
    fr_process_destroy(s->process);
    s->process = NULL;
    return make_process(&s->prior, s->runs, s->used, s->n_used, &s->process,
                        err);
}

/* The run that the others contradict most, n_used: none. */
static size_t worst_outlier(const fr_stack *s)
{
    double least = outlier_probability / (double)s->n;
    size_t worst = s->n_used;
    for (size_t i = 0; i < s->n_used; i++) {
        fr_student others = fr_process_without(s->process, i);
        double tail =
            fr_student_tail(&others, residual(&s->prior, &s->runs[s->used[i]]));
        if (tail < least) {
            least = tail;
            worst = i;
        }
    }
    return worst;
}

static fr_status drop_outliers(fr_stack *s, fr_err *err)
{
    while (s->n_used >= FEWEST_TO_JUDGE && 2 * s->n_used > s->n) {
        size_t worst = worst_outlier(s);
        if (worst == s->n_used)
            return FR_OK;
        s->is_outlier[s->used[worst]] = true;
        FR_TRY(use_runs(s, err));
    }
    return FR_OK;
}

fr_status fr_stack_create(const fr_stack_prior *prior, const fr_run_point *runs,
                          size_t n, fr_stack **out, fr_err *err)
{
    if (n > FR_STACK_MOST_RUNS)
        return fr_fail(err, FR_INPUT,
                       "%zu measured steps of a stack; give at most %d", n,
                       (int)FR_STACK_MOST_RUNS);
    fr_stack *s = calloc(1, sizeof *s);
    if (s == NULL)
        return fr_fail_no_memory(err);
    fr_status status = FR_OK;
    s->prior = *prior;
    s->n = n;
    s->runs = calloc(n + 1, sizeof *s->runs);
    s->is_outlier = calloc(n + 1, sizeof *s->is_outlier);
    s->used = calloc(n + 1, sizeof *s->used);
    if (s->runs == NULL || s->is_outlier == NULL || s->used == NULL)
        status = fr_fail_no_memory(err);
    if (status == FR_OK && n > 0)
        memcpy(s->runs, runs, n * sizeof *runs);
    for (size_t i = 0; status == FR_OK && i < n; i++)
        s->is_outlier[i] = !(fabs(log_ratio(&s->runs[i])) < log(most_factor));
    if (status == FR_OK)
        status = use_runs(s, err);
    if (status == FR_OK)
        status = drop_outliers(s, err);
    if (status != FR_OK) {
        fr_stack_destroy(s);
        return status;
    }
    *out = s;
    return FR_OK;
}

void fr_stack_destroy(fr_stack *stack)
{
    if (stack == NULL)
        return;
    fr_process_destroy(stack->process);
    free(stack->runs);
    free(stack->is_outlier);
    free(stack->used);
    free(stack);
}

size_t fr_stack_n(const fr_stack *stack)
{
    return stack->n;
}

size_t fr_stack_n_used(const fr_stack *stack)
{
    return stack->n_used;
}

bool fr_stack_is_outlier(const fr_stack *stack, size_t i)
{
    return stack->is_outlier[i];
}

/* Covariances with the runs that are used. */
static void cross_of(const fr_stack *s, const fr_run_features *features,
                     double *out)
{
    for (size_t i = 0; i < s->n_used; i++)
        out[i] = covariance(&s->prior, features, &s->runs[s->used[i]].features);
}

static double own_variance(const fr_stack *s, const fr_run_features *features)
{
    return covariance(&s->prior, features, features) + square(s->prior.noise);
}

fr_student fr_stack_at(const fr_stack *s, const fr_run_features *features)
{
    double cross[FR_STACK_MOST_RUNS];
    cross_of(s, features, cross);
    return about_mean(
        &s->prior, fr_process_at(s->process, cross, own_variance(s, features)));
}

fr_student fr_stack_before(const fr_stack *s, const fr_run_features *features)
{
    return (fr_student){.mean = s->prior.mean,
                        .scale = sqrt(own_variance(s, features)),
                        .dof = s->prior.dof};
}

/* Returns the variance of a term after conditioning on the runs; `cross` has
 * its covariances with them. */
static double left_of(const fr_stack *s, const double *cross, double variance)
{
    return fmax(fr_process_covariance(s->process, cross, cross, variance), 0);
}

const char *fr_stack_left(const fr_stack *s, const fr_run_features *features,
                          double *frac)
{
    double cross[FR_STACK_MOST_RUNS], all[FR_STACK_MOST_RUNS];
    cross_of(s, features, all);
    double total = left_of(s, all, own_variance(s, features));
    double most = square(s->prior.noise), of_shares = 0, of_plan;
    const char *what = "how steps of one plan differ";
    for (size_t i = 0; i < s->n_used; i++)
        cross[i] = all[i];
    for (int j = 0; j < FR_RUN_SHARE_N; j++) {
        double own = square(s->prior.share[j]) * features->share[j];
        double term[FR_STACK_MOST_RUNS];
        for (size_t i = 0; i < s->n_used; i++) {
            term[i] = own * s->runs[s->used[i]].features.share[j];
            cross[i] -= term[i];
        }
        double left = left_of(s, term, own * features->share[j]);
        of_shares += own * features->share[j];
        if (left > most) {
            most = left;
            what = fr_run_share_summaries[j];
        }
    }
    of_plan = left_of(s, cross,
                      covariance(&s->prior, features, features) - of_shares);
    if (of_plan > most) {
        most = of_plan;
        what = "how far the plan is from those that were measured";
    }
    *frac = total > 0 ? fmin(most / total, 1) : 0;
    return what;
}

fr_student fr_stack_without(const fr_stack *s, size_t i)
{
    for (size_t k = 0; k < s->n_used; k++)
        if (s->used[k] == i)
            return about_mean(&s->prior, fr_process_without(s->process, k));
    return fr_stack_at(s, &s->runs[i].features);
}

void fr_stack_factors(const fr_stack *s, const fr_run_features *features,
                      double share[FR_RUN_SHARE_N], double *rest)
{
    const double *weights = fr_process_weights(s->process);
    double all = fr_stack_at(s, features).mean, of_shares = 0;
    for (int j = 0; j < FR_RUN_SHARE_N; j++) {
        double sum = 0;
        for (size_t i = 0; i < s->n_used; i++)
            sum += weights[i] * s->runs[s->used[i]].features.share[j];
        share[j] = square(s->prior.share[j]) * sum;
        if (j < FR_RUN_LAUNCHES) /* parts of the step, which add up to it */
            share[j] += s->prior.mean;
        of_shares += share[j] * features->share[j];
        share[j] = exp(share[j]);
    }
    *rest = exp(all - of_shares);
}

/* Covariance of two further steps that is left. */
static double left_between(const fr_stack *s, const fr_run_features *a,
                           const fr_run_features *b)
{
    double of_a[FR_STACK_MOST_RUNS], of_b[FR_STACK_MOST_RUNS];
    double own = a == b ? own_variance(s, a) : covariance(&s->prior, a, b);
    cross_of(s, a, of_a);
    cross_of(s, b, of_b);
    return fr_process_covariance(s->process, of_a, of_b, own);
}

static double left_of_difference(const fr_stack *s, const fr_run_features *one,
                                 const fr_run_features *other)
{
    double left = left_between(s, one, one);
    if (other != NULL)
        left += left_between(s, other, other) - 2 * left_between(s, one, other);
    return fmax(left, 0);
}

fr_student fr_stack_difference(const fr_stack *s, const fr_run_features *one,
                               const fr_run_features *other)
{
    fr_student of_one = fr_stack_at(s, one), difference = of_one;
    double own = left_between(s, one, one);
    if (other != NULL)
        difference.mean -= fr_stack_at(s, other).mean;
    if (own > 0) /* the common scale is in of_one */
        difference.scale *= sqrt(left_of_difference(s, one, other) / own);
    return difference;
}

double fr_stack_gain(const fr_stack *s, const fr_run_features *one,
                     const fr_run_features *other,
                     const fr_run_features *measured)
{
    double left = left_of_difference(s, one, other);
    double with = left_between(s, one, measured);
    double own = left_between(s, measured, measured);
    if (other != NULL)
        with -= left_between(s, other, measured);
    if (left <= 0 || own <= 0)
        return 0;
    return 1 - sqrt(fmax(1 - with * with / left / own, 0));
}

fr_status fr_stack_log_density(const fr_stack_prior *prior,
                               const fr_run_point *runs, size_t n, double *out,
                               fr_err *err)
{
    fr_process *process;
    FR_TRY(make_process(prior, runs, NULL, n, &process, err));
    *out = fr_process_log_density(process);
    fr_process_destroy(process);
    return FR_OK;
}
