/* sweep.c: points by their keys, and the curves through them. */
#include "spec/result/sweep.h"

#include "core/base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_VALUES = 100000 }; /* of one key */

void fr_sweep_init(fr_sweep *sweep)
{
    memset(sweep, 0, sizeof *sweep);
    sweep->i_scale_key = -1;
    sweep->knee_frac = 0.5;
    sweep->has_tokens = true;
    sweep->counted = "tokens";
}

void fr_sweep_release(fr_sweep *sweep)
{
    for (int i = 0; i < sweep->n_keys; i++)
        free(sweep->keys[i].values);
    free(sweep->points);
    fr_sweep_init(sweep);
}

fr_status fr_sweep_add_key(fr_sweep *sweep, const char *name, fr_err *err)
{
    if (fr_sweep_find_key(sweep, name) >= 0)
        return fr_fail(err, FR_USAGE, "%.80s is varied twice; join the values",
                       name);
    if (sweep->n_keys == FR_SWEEP_KEYS)
        return fr_fail(err, FR_USAGE, "more than %d keys are varied",
                       FR_SWEEP_KEYS);
    fr_sweep_key *key = &sweep->keys[sweep->n_keys];
    memset(key, 0, sizeof *key);
    if (!fr_text_copy(key->name, sizeof key->name, name))
        return fr_fail(err, FR_USAGE, "there is no key '%.80s'", name);
    sweep->n_keys++;
    return FR_OK;
}

fr_status fr_sweep_add_value(fr_sweep *sweep, const char *value, fr_err *err)
{
    fr_sweep_key *key = &sweep->keys[sweep->n_keys - 1];
    for (size_t i = 0; i < key->n_values; i++)
        if (strcmp(key->values[i], value) == 0)
            return fr_fail(err, FR_USAGE, "%s has the value '%.80s' twice",
                           key->name, value);
    if (key->n_values == MOST_VALUES)
        return fr_fail(err, FR_USAGE, "%s has more than %d values", key->name,
                       MOST_VALUES);
    if (strlen(value) >= FR_SWEEP_VALUE)
        return fr_fail(err, FR_USAGE,
                       "%s: '%.80s...' is longer than %d letters", key->name,
                       value, FR_SWEEP_VALUE - 1);
    void *grown =
        realloc(key->values, (key->n_values + 1) * sizeof *key->values);
    if (grown == NULL)
        return fr_fail_no_memory(err);
    key->values = grown;
    fr_text_copy_cut(key->values[key->n_values++], FR_SWEEP_VALUE, value);
    return FR_OK;
}

fr_status fr_sweep_make_points(fr_sweep *sweep, size_t n_max, fr_err *err)
{
    double product = 1;
    for (int i = 0; i < sweep->n_keys; i++)
        product *= (double)sweep->keys[i].n_values;
    if (product > (double)n_max)
        return fr_fail(err, FR_USAGE, "%.0f points; at most %zu", product,
                       n_max);
    size_t n = (size_t)product;
    sweep->points = calloc(n + 1, sizeof *sweep->points);
    if (sweep->points == NULL)
        return fr_fail_no_memory(err);
    sweep->n_points = n;
    for (size_t i = 0; i < n; i++)
        sweep->points[i].efficiency = sweep->points[i].marginal = NAN;
    return FR_OK;
}

int fr_sweep_find_key(const fr_sweep *sweep, const char *name)
{
    for (int i = 0; i < sweep->n_keys; i++)
        if (strcmp(sweep->keys[i].name, name) == 0)
            return i;
    return -1;
}

size_t fr_sweep_stride(const fr_sweep *sweep, int i_key)
{
    size_t stride = 1;
    for (int i = i_key + 1; i < sweep->n_keys; i++)
        stride *= sweep->keys[i].n_values;
    return stride;
}

size_t fr_sweep_value_of(const fr_sweep *sweep, size_t point, int i_key)
{
    return point / fr_sweep_stride(sweep, i_key) % sweep->keys[i_key].n_values;
}

const char *fr_sweep_text_of(const fr_sweep *sweep, size_t point, int i_key)
{
    return sweep->keys[i_key].values[fr_sweep_value_of(sweep, point, i_key)];
}

static bool is_same_answer(const fr_sweep_point *a, const fr_sweep_point *b)
{
    return a->is_feasible == b->is_feasible && a->n_ranks == b->n_ranks &&
           a->global_batch == b->global_batch && a->seq == b->seq &&
           a->step_s == b->step_s && a->step_s_p5 == b->step_s_p5 &&
           a->step_s_p95 == b->step_s_p95 && a->mfu == b->mfu &&
           a->peak_bytes == b->peak_bytes &&
           a->capacity_bytes == b->capacity_bytes &&
           a->usd_per_h == b->usd_per_h &&
           a->kwh_per_1e9_tokens == b->kwh_per_1e9_tokens &&
           a->run.seconds == b->run.seconds && a->all_s == b->all_s &&
           a->goal == b->goal;
}

bool fr_sweep_key_acts(const fr_sweep *sweep, int i_key)
{
    size_t stride = fr_sweep_stride(sweep, i_key), n_compared = 0;
    for (size_t i = 0; i < sweep->n_points; i++) {
        size_t value = fr_sweep_value_of(sweep, i, i_key);
        const fr_sweep_point *base = &sweep->points[i - value * stride];
        if (value == 0)
            continue;
        if (!is_same_answer(&sweep->points[i], base))
            return true;
        n_compared += base->is_feasible;
    }
    return n_compared == 0;
}

/* ---- curves ------------------------------------------------------------- */

static bool is_before(const fr_sweep *sweep, size_t a, size_t b)
{
    int64_t n_a = sweep->points[a].n_ranks, n_b = sweep->points[b].n_ranks;
    return n_a != n_b ? n_a < n_b : a < b;
}

size_t fr_sweep_curve(const fr_sweep *sweep, size_t point, size_t *out)
{
    int k = sweep->i_scale_key;
    size_t n = 0;
    if (k < 0)
        return 0;
    size_t stride = fr_sweep_stride(sweep, k);
    size_t first = point - fr_sweep_value_of(sweep, point, k) * stride;
    for (size_t i = 0; i < sweep->keys[k].n_values; i++) {
        size_t at = first + i * stride, place = n;
        if (!sweep->points[at].is_feasible)
            continue;
        for (; place > 0 && is_before(sweep, at, out[place - 1]); place--)
            out[place] = out[place - 1];
        out[place] = at;
        n++;
    }
    return n;
}

size_t fr_sweep_next_curve(const fr_sweep *sweep, size_t *point, size_t *out)
{
    size_t n = 0;
    for (; n == 0 && *point < sweep->n_points; ++*point)
        if (fr_sweep_value_of(sweep, *point, sweep->i_scale_key) == 0)
            n = fr_sweep_curve(sweep, *point, out);
    return n;
}

static void finish_curve(fr_sweep *sweep, const size_t *curve, size_t n)
{
    bool has_bent = false;
    const fr_sweep_point *base = &sweep->points[curve[0]];
    for (size_t i = 0; i < n; i++) {
        fr_sweep_point *at = &sweep->points[curve[i]];
        at->efficiency =
            at->tokens_per_s_per_rank / base->tokens_per_s_per_rank;
        if (i == 0)
            continue;
        fr_sweep_point *last = &sweep->points[curve[i - 1]];
        int64_t n_more = at->n_ranks - last->n_ranks;
        if (n_more == 0)
            continue;
        at->marginal = (at->tokens_per_s - last->tokens_per_s) /
                       (double)n_more / base->tokens_per_s_per_rank;
        last->is_knee = !has_bent && at->marginal < sweep->knee_frac;
        has_bent |= last->is_knee;
    }
}

static void mark_best(fr_sweep *sweep)
{
    fr_sweep_point *best = NULL;
    for (size_t i = 0; i < sweep->n_points; i++) {
        fr_sweep_point *at = &sweep->points[i];
        if (at->is_feasible && isfinite(at->goal) &&
            (best == NULL || at->goal < best->goal))
            best = at;
    }
    if (best != NULL)
        best->is_best = true;
}

/* The price and the rate of runs, if all points have runs, else of tokens. */
typedef struct offer {
    double usd, per_s; /* runs or tokens */
    size_t point;
} offer;

/* The cheapest first; of equally cheap ones the fastest. */
static int compare_offers(const void *left, const void *right)
{
    const offer *a = left, *b = right;
    if (a->usd != b->usd)
        return a->usd < b->usd ? -1 : 1;
    if (a->per_s != b->per_s)
        return a->per_s > b->per_s ? -1 : 1;
    return (a->point > b->point) - (a->point < b->point);
}

static bool is_priced(const fr_sweep_point *at)
{
    return at->is_feasible && at->usd_per_1e9_tokens > 0;
}

static bool has_runs(const fr_sweep *sweep)
{
    for (size_t i = 0; i < sweep->n_points; i++) {
        const fr_sweep_point *at = &sweep->points[i];
        if (is_priced(at) && !(at->run.seconds > 0 && at->run.usd > 0))
            return false;
    }
    return true;
}

static fr_status mark_pareto(fr_sweep *sweep, fr_err *err)
{
    offer *offers = malloc((sweep->n_points + 1) * sizeof *offers);
    const offer *last = NULL; /* on the front */
    if (offers == NULL)
        return fr_fail_no_memory(err);
    const bool is_of_runs = has_runs(sweep);
    sweep->n_priced = sweep->n_pareto = 0;
    for (size_t i = 0; i < sweep->n_points; i++) {
        const fr_sweep_point *at = &sweep->points[i];
        if (!is_priced(at))
            continue;
        offers[sweep->n_priced++] =
            is_of_runs ? (offer){at->run.usd, 1 / at->run.seconds, i}
                       : (offer){at->usd_per_1e9_tokens, at->tokens_per_s, i};
    }
    qsort(offers, sweep->n_priced, sizeof *offers, compare_offers);
    for (size_t i = 0; i < sweep->n_priced; i++) {
        bool is_equal = last != NULL && offers[i].usd == last->usd &&
                        offers[i].per_s == last->per_s;
        if (last != NULL && !is_equal && offers[i].per_s <= last->per_s)
            continue;
        last = &offers[i];
        sweep->points[offers[i].point].is_pareto = true;
        sweep->n_pareto++;
    }
    free(offers);
    return FR_OK;
}

fr_status fr_sweep_finish(fr_sweep *sweep, fr_err *err)
{
    sweep->n_feasible = sweep->n_too_large = 0;
    for (size_t i = 0; i < sweep->n_points; i++) {
        sweep->n_feasible += sweep->points[i].is_feasible;
        sweep->n_too_large += sweep->points[i].is_too_large;
    }
    if (sweep->goal[0] != '\0')
        mark_best(sweep);
    FR_TRY(mark_pareto(sweep, err));
    if (sweep->i_scale_key < 0)
        return FR_OK;
    size_t *curve =
        malloc(sweep->keys[sweep->i_scale_key].n_values * sizeof *curve);
    if (curve == NULL)
        return fr_fail_no_memory(err);
    for (size_t n, i = 0; (n = fr_sweep_next_curve(sweep, &i, curve)) > 0;)
        finish_curve(sweep, curve, n);
    free(curve);
    return FR_OK;
}
