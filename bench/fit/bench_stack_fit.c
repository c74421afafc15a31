/*
 * bench_stack_fit.c: how far stacks are from what is predicted of them, fitted
 * to the rows of what `forerun validate --json` printed, and printed as
 * cost_models/stack/stack_prior.inc: from all sources, then without each of
 * them.
 *
 *     bench_stack_fit build/validate.json > cost_models/stack/stack_prior.inc
 *
 * It maximises the sum over sources of the mean log density of a few of their
 * rows together, drawn 12 times: what a user knows of a stack are a few steps,
 * and no source outweighs the others.  To it comes the log density of a wide
 * hyperprior: logarithms of the parameters are normal about `usual` with a
 * deviation of 0.7.
 */
#include "core/document/json.h"
#include "core/numbers/rng.h"
#include "cost_models/stack/stack.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SOURCES = 64, FEW = 3, N_DRAWS = 12 };

typedef struct source {
    char name[96];
    fr_run_point *runs;
    size_t n;
} source;

typedef struct sources {
    source at[MOST_SOURCES];
    size_t n;
} sources;

static const fr_stack_prior usual = {
    .mean = 0.05,
    .common = 0.1,
    .share = {0.15, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.2, 0.2},
    .alike = 0.1,
    .size = {3, 3, 3, 3, 3, 3, 3},
    .kind = {1, 1, 1, 1, 1},
    .same_kind = 0.05,
    .noise = 0.03,
    .dof = 5,
};
static const double spread = 0.7;

/* ---- rows ---------------------------------------------------------------- */

static source *find_source(sources *all, const char *name)
{
    for (size_t i = 0; i < all->n; i++)
        if (strcmp(all->at[i].name, name) == 0)
            return &all->at[i];
    if (all->n == MOST_SOURCES)
        return NULL;
    source *s = &all->at[all->n++];
    snprintf(s->name, sizeof s->name, "%s", name);
    return s;
}

static fr_status read_row(const fr_json_value *row, sources *all, fr_err *err)
{
    const char *name;
    fr_run_point run = {.measured_s = 0};
    const fr_json_value *features;
    FR_TRY(fr_json_get_string(row, "source", &name, err));
    FR_TRY(fr_json_get_double(row, "measured_s", &run.measured_s, err));
    FR_TRY(fr_json_get_double(row, "at_best_s", &run.predicted_s, err));
    FR_TRY(fr_json_get_object(row, "features", &features, err));
    for (size_t i = 0; i < FR_RUN_FEATURES_N; i++) {
        const fr_field *field = &fr_run_feature_fields[i];
        double value;
        FR_TRY(fr_json_get_double(features, field->key, &value, err));
        memcpy((char *)&run.features + field->offset, &value, sizeof value);
    }
    source *s = find_source(all, name);
    fr_run_point *more =
        s != NULL ? realloc(s->runs, (s->n + 1) * sizeof run) : NULL;
    if (more == NULL)
        return fr_fail_no_memory(err);
    s->runs = more;
    s->runs[s->n++] = run;
    return FR_OK;
}

static fr_status read_rows(const fr_json_value *root, sources *all, fr_err *err)
{
    const fr_json_value *rows;
    FR_TRY(fr_json_get_array(root, "rows", &rows, err));
    for (size_t i = 0; i < fr_json_n(rows); i++)
        FR_TRY(read_row(fr_json_at(rows, i), all, err));
    return FR_OK;
}

/* A few rows of the source, others for every draw; returns how many. */
static size_t draw(const source *s, uint64_t i_draw, fr_run_point out[FEW])
{
    size_t n = s->n < FEW ? s->n : FEW, order[FEW];
    for (size_t i = 0; i < n; i++) {
        bool is_new = false;
        for (uint64_t try = 0; !is_new; try++) {
            double u = fr_hash_uniform(i_draw, i, try, s->n);
            order[i] = (size_t)(u * (double)s->n);
            is_new = true;
            for (size_t k = 0; k < i; k++)
                is_new = is_new && order[k] != order[i];
        }
        out[i] = s->runs[order[i]];
    }
    return n;
}

/* ---- the fit ------------------------------------------------------------- */

static bool add_source(const fr_stack_prior *prior, const source *s,
                       double *mean)
{
    for (uint64_t d = 0; d < N_DRAWS; d++) {
        fr_run_point runs[FEW];
        size_t n = draw(s, d, runs);
        double density;
        fr_err err;
        if (fr_stack_log_density(prior, runs, n, &density, &err) != FR_OK)
            return false;
        *mean += density / N_DRAWS;
    }
    return true;
}

/* x: logarithms of the parameters; -INFINITY where they make no prior. */
static double log_posterior(const sources *all, size_t without,
                            const double x[FR_STACK_PRIOR_N])
{
    double value[FR_STACK_PRIOR_N], start[FR_STACK_PRIOR_N], sum = 0;
    fr_stack_prior prior;
    memcpy(start, &usual, sizeof start);
    for (int i = 0; i < FR_STACK_PRIOR_N; i++) {
        value[i] = exp(x[i]);
        double off = (x[i] - log(start[i])) / spread;
        sum -= off * off / 2;
    }
    memcpy(&prior, value, sizeof prior);
    for (size_t i = 0; i < all->n; i++) {
        double mean = 0;
        if (i != without && !add_source(&prior, &all->at[i], &mean))
            return -INFINITY;
        sum += mean;
    }
    return sum;
}

/* One parameter after the other up or down, by steps that grow where it helps
 * and shrink where it does not. */
static void climb(const sources *all, size_t without,
                  double x[FR_STACK_PRIOR_N])
{
    double step[FR_STACK_PRIOR_N], largest = 1;
    double best = log_posterior(all, without, x);
    for (int i = 0; i < FR_STACK_PRIOR_N; i++)
        step[i] = 0.4;
    for (int round = 0; round < 200 && largest > 0.02; round++) {
        largest = 0;
        for (int i = 0; i < FR_STACK_PRIOR_N; i++) {
            const double before = x[i];
            bool is_better = false;
            for (int sign = 1; sign >= -1 && !is_better; sign -= 2) {
                x[i] = before + sign * step[i];
                double found = log_posterior(all, without, x);
                is_better = found > best + 1e-9;
                best = is_better ? found : best;
            }
            if (!is_better)
                x[i] = before;
            step[i] *= is_better ? 1.5 : 0.5;
            largest = fmax(largest, step[i]);
        }
    }
}

static void print_list(const double *x, int n, const char *end)
{
    for (int i = 0; i < n; i++)
        printf("%s%.3g", i > 0 ? ", " : "{", x[i]);
    printf("}%s", end);
}

static void print_prior(const char *without, const fr_stack_prior *p)
{
    printf("{\"%s\",\n {%.3g, %.3g, ", without, p->mean, p->common);
    print_list(p->share, FR_RUN_SHARE_N, ",\n  ");
    printf("%.3g, ", p->alike);
    print_list(p->size, FR_RUN_SIZE_N, ", ");
    print_list(p->kind, FR_RUN_KIND_N, ",\n  ");
    printf("%.3g, %.3g, %.3g}},\n", p->same_kind, p->noise, p->dof);
}

static void fit_without(const sources *all, size_t without,
                        double x[FR_STACK_PRIOR_N])
{
    double value[FR_STACK_PRIOR_N];
    fr_stack_prior prior;
    climb(all, without, x);
    for (int i = 0; i < FR_STACK_PRIOR_N; i++)
        value[i] = exp(x[i]);
    memcpy(&prior, value, sizeof prior);
    print_prior(without < all->n ? all->at[without].name : "", &prior);
}

static void fit_all(sources *all)
{
    double of_all[FR_STACK_PRIOR_N], x[FR_STACK_PRIOR_N];
    memcpy(of_all, &usual, sizeof of_all);
    for (int i = 0; i < FR_STACK_PRIOR_N; i++)
        of_all[i] = log(of_all[i]);
    printf("/* Printed by `make fit-stack`. */\n");
    fit_without(all, all->n, of_all);
    for (size_t i = 0; i < all->n; i++) {
        memcpy(x, of_all, sizeof x);
        fit_without(all, i, x);
    }
}

int main(int argc, char **argv)
{
    fr_err err;
    sources all = {.n = 0};
    fr_json *doc = NULL;
    if (argc != 2) {
        fprintf(stderr, "usage: bench_stack_fit VALIDATION.json\n");
        return 2;
    }
    fr_status status = fr_json_load(argv[1], &doc, &err);
    if (status == FR_OK)
        status = read_rows(fr_json_root(doc), &all, &err);
    if (status == FR_OK && all.n < 2)
        status = fr_fail(&err, FR_INPUT, "%s: fewer than two sources", argv[1]);
    if (status == FR_OK)
        fit_all(&all);
    else
        fprintf(stderr, "bench_stack_fit: %s\n", err.text);
    for (size_t i = 0; i < all.n; i++)
        free(all.at[i].runs);
    fr_json_destroy(doc);
    return status == FR_OK ? 0 : 1;
}
