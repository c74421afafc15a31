/* compute_fit.c: see compute_fit.h. */
#include "cost_models/compute/compute_fit.h"

#include "core/numbers/fit.h"
#include "cost_models/compute/compute_key.h"
#include "plan/op/op.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * Amounts that a time is a sum of.  The order is that in which they matter
 * when there are fewer points than amounts.
 */
enum {
    AMOUNT_WORK,   /* flop, or bytes where an op has no flop */
    AMOUNT_ONE,    /* launch */
    AMOUNT_MEMORY, /* bytes from DRAM */
    AMOUNT_LLC,
    AMOUNT_NEAR,
    AMOUNT_OP /* the first of up to three of the op's own */
};

typedef struct fitted_point {
    double log_dim[FR_PROFILE_DIMS];
    double memory_frac;  /* share of the bytes that come from memory */
    double log_residual; /* log(measured / fit) */
} fitted_point;

struct fr_compute_fit {
    double coef[FR_COMPUTE_AMOUNTS];
    double low[FR_COMPUTE_AMOUNTS], high[FR_COMPUTE_AMOUNTS];
    double rms_rel;
    size_t n;
    fitted_point *at;
};

/* Width of the smoother in natural logarithms of a dimension. */
static const double smoother_width = 0.35;
/* Work outside the measured range by up to this factor counts as inside. */
static const double range_slack = 1.25;

static void add_places(const fr_compute_point *key, const fr_instr *instr,
                       double *amount)
{
    for (int i = 0; i < FR_PROFILE_REFS && key->where[i] != '\0'; i++) {
        double n_bytes = (double)fr_instr_ref_bytes(instr, i, 1);
        /* Only the rows of the tokens are touched in an embedding table, so the
         * bytes are limited to these rows. */
        if (instr->op == FR_OP_EMBED_FWD || instr->op == FR_OP_EMBED_BWD)
            n_bytes = fmin(n_bytes, 4.0 * (double)instr->embed.rows *
                                        (double)instr->embed.cols);
        if (fr_op_access((fr_op)instr->op, i) == 'm')
            n_bytes *= 2.0;
        if (key->where[i] == FR_PROFILE_MEMORY)
            amount[AMOUNT_MEMORY] += n_bytes;
        else if (key->where[i] == FR_PROFILE_LLC)
            amount[AMOUNT_LLC] += n_bytes;
        else if (key->where[i] == FR_PROFILE_NEAR)
            amount[AMOUNT_NEAR] += n_bytes;
    }
}

/*
 * A matrix product packs both inputs and writes the output tile by tile: cost
 * per element of each, whatever the third dimension is (Goto and van de
 * Geijn, ACM TOMS 34(3), 2008).  Attention besides its products makes a
 * softmax over every score and moves rows per head.
 */
static void op_amounts(const fr_instr *instr, double *amount)
{
    const fr_linear_dims *linear = &instr->linear;
    const fr_attention_dims *a = &instr->attention;

    switch ((fr_op)instr->op) {
    case FR_OP_LINEAR_FWD:
    case FR_OP_LINEAR_DGRAD:
    case FR_OP_LINEAR_WGRAD:
        amount[AMOUNT_OP] = (double)linear->n * (double)linear->k;
        amount[AMOUNT_OP + 1] = (double)linear->m * (double)linear->n;
        amount[AMOUNT_OP + 2] = (double)linear->m * (double)linear->k;
        break;
    case FR_OP_ATTN_FWD:
    case FR_OP_ATTN_BWD:
        amount[AMOUNT_OP] = (double)a->batch * (double)a->q_heads *
                            (double)a->seq * (double)a->seq;
        amount[AMOUNT_OP + 1] = (double)a->batch * (double)a->q_heads *
                                (double)a->seq * (double)a->head_dim;
        break;
    case FR_OP_COMPRESS:
    case FR_OP_DECOMPRESS:
        amount[AMOUNT_OP] = (double)instr->compress.n;
        amount[AMOUNT_OP + 1] = (double)instr->compress.payload_bytes;
        break;
    default:
        break;
    }
}

static bool amounts_of(const fr_compute_point *key, double *amount)
{
    fr_instr instr;

    memset(amount, 0, FR_COMPUTE_AMOUNTS * sizeof *amount);
    if (!fr_compute_key_instr(key, &instr))
        return false;
    amount[AMOUNT_ONE] = 1.0;
    add_places(key, &instr, amount);
    amount[AMOUNT_WORK] =
        key->flop > 0
            ? (double)key->flop
            : amount[AMOUNT_MEMORY] + amount[AMOUNT_LLC] + amount[AMOUNT_NEAR];
    op_amounts(&instr, amount);
    return true;
}

double fr_compute_key_memory_bytes(const fr_compute_point *key)
{
    double amount[FR_COMPUTE_AMOUNTS];

    return amounts_of(key, amount) ? amount[AMOUNT_MEMORY] : 0.0;
}

static void place_point(const fr_compute_point *key, const double *amount,
                        fitted_point *out)
{
    double n_bytes =
        amount[AMOUNT_MEMORY] + amount[AMOUNT_LLC] + amount[AMOUNT_NEAR];

    for (int i = 0; i < FR_PROFILE_DIMS; i++)
        out->log_dim[i] = log1p((double)key->dim[i]);
    out->memory_frac = n_bytes > 0.0 ? amount[AMOUNT_MEMORY] / n_bytes : 0.0;
}

static double sum_amounts(const fr_compute_fit *fit, const double *amount)
{
    double sum = 0.0;

    for (int i = 0; i < FR_COMPUTE_AMOUNTS; i++)
        sum += fit->coef[i] * amount[i];
    return sum;
}

/*
 * Least squares with coefficients >= 0 over the columns that are not all
 * zero, scaled so that each column's largest entry is 1.  Fewer points than
 * columns: the first n columns.
 */
static fr_status solve(const double *amounts, const double *seconds, size_t n,
                       double *coef, fr_err *err)
{
    fr_status status;
    int column[FR_COMPUTE_AMOUNTS];
    double scale[FR_COMPUTE_AMOUNTS], found[FR_COMPUTE_AMOUNTS];
    size_t n_columns = 0;
    double *design = malloc(n * FR_COMPUTE_AMOUNTS * sizeof *design);
    double *ones = malloc(n * sizeof *ones);

    if (design == NULL || ones == NULL) {
        status = fr_fail_no_memory(err);
        goto out_design;
    }
    for (int c = 0; c < FR_COMPUTE_AMOUNTS && n_columns < n; c++) {
        double largest = 0.0;
        for (size_t i = 0; i < n; i++)
            largest =
                fmax(largest, amounts[i * FR_COMPUTE_AMOUNTS + (size_t)c]);
        if (largest > 0.0) {
            scale[n_columns] = largest;
            column[n_columns++] = c;
        }
    }
    for (size_t i = 0; i < n; i++) {
        ones[i] = 1.0;
        for (size_t c = 0; c < n_columns; c++)
            design[i * n_columns + c] =
                amounts[i * FR_COMPUTE_AMOUNTS + (size_t)column[c]] / scale[c] /
                seconds[i];
    }
    status = fr_fit_nonnegative(design, ones, NULL, n, n_columns, found, err);
    if (status != FR_OK)
        goto out_design;
    memset(coef, 0, FR_COMPUTE_AMOUNTS * sizeof *coef);
    for (size_t c = 0; c < n_columns; c++)
        coef[column[c]] = found[c] / scale[c];
out_design:
    free(ones);
    free(design);
    return status;
}

/* The work amount alone, through the geometric mean of the rates. */
static void solve_one(const double *amounts, const double *seconds, size_t n,
                      double *coef)
{
    double log_sum = 0.0;
    int c = amounts[AMOUNT_WORK] > 0.0 ? AMOUNT_WORK : AMOUNT_ONE;

    for (size_t i = 0; i < n; i++) {
        double amount = amounts[i * FR_COMPUTE_AMOUNTS + (size_t)c];
        log_sum += log(seconds[i] / fmax(amount, 1.0));
    }
    memset(coef, 0, FR_COMPUTE_AMOUNTS * sizeof *coef);
    coef[c] = exp(log_sum / (double)n);
}

static void finish(fr_compute_fit *fit, const double *amounts,
                   const double *seconds)
{
    double sum_sq = 0.0;

    for (int c = 0; c < FR_COMPUTE_AMOUNTS; c++) {
        fit->low[c] = INFINITY;
        fit->high[c] = 0.0;
    }
    for (size_t i = 0; i < fit->n; i++) {
        const double *amount = amounts + i * FR_COMPUTE_AMOUNTS;
        double sum = sum_amounts(fit, amount);
        double log_residual = sum > 0.0 ? log(seconds[i] / sum) : 0.0;
        fit->at[i].log_residual = log_residual;
        sum_sq += log_residual * log_residual;
        for (int c = 0; c < FR_COMPUTE_AMOUNTS; c++) {
            fit->low[c] = fmin(fit->low[c], amount[c]);
            fit->high[c] = fmax(fit->high[c], amount[c]);
        }
    }
    fit->rms_rel = sqrt(sum_sq / (double)fit->n);
    /* One or two points say nothing about other shapes. */
    if (fit->n < 3)
        fit->rms_rel = fmax(fit->rms_rel, 0.3);
}

fr_status fr_compute_fit_create(const fr_compute_point *const *points, size_t n,
                                fr_compute_fit **out, fr_err *err)
{
    fr_status status = FR_OK;
    fr_compute_fit *fit = calloc(1, sizeof *fit);
    double *amounts = calloc(n + 1, FR_COMPUTE_AMOUNTS * sizeof *amounts);
    double *seconds = calloc(n + 1, sizeof *seconds);

    if (fit != NULL)
        fit->at = calloc(n + 1, sizeof *fit->at);
    if (fit == NULL || fit->at == NULL || amounts == NULL || seconds == NULL) {
        status = fr_fail_no_memory(err);
        goto out_arrays;
    }
    for (size_t i = 0; i < n; i++) {
        double *amount = amounts + fit->n * FR_COMPUTE_AMOUNTS;
        if (points[i]->is_held_out || !amounts_of(points[i], amount))
            continue;
        place_point(points[i], amount, &fit->at[fit->n]);
        seconds[fit->n++] = points[i]->sample.median_s;
    }
    if (fit->n == 0) {
        status = fr_fail(err, FR_INPUT, "no point to fit");
        goto out_arrays;
    }
    if (fit->n < 2 || solve(amounts, seconds, fit->n, fit->coef, NULL) != FR_OK)
        solve_one(amounts, seconds, fit->n, fit->coef);
    finish(fit, amounts, seconds);
    *out = fit;
    fit = NULL;
out_arrays:
    free(seconds);
    free(amounts);
    fr_compute_fit_destroy(fit);
    return status;
}

void fr_compute_fit_destroy(fr_compute_fit *fit)
{
    if (fit != NULL)
        free(fit->at);
    free(fit);
}

/* Weighted mean of what the fit missed nearby, drawn to 0 far from all. */
static double smooth_residual(const fr_compute_fit *fit,
                              const fitted_point *here, double *nearness)
{
    double sum = 0.0, weights = 0.0;

    for (size_t i = 0; i < fit->n; i++) {
        const fitted_point *there = &fit->at[i];
        double d = here->memory_frac - there->memory_frac;
        double distance = d * d;
        for (int k = 0; k < FR_PROFILE_DIMS; k++) {
            d = (here->log_dim[k] - there->log_dim[k]) / smoother_width;
            distance += d * d;
        }
        double weight = exp(-0.5 * distance);
        sum += weight * there->log_residual;
        weights += weight;
    }
    *nearness = weights / (weights + 0.1);
    return sum / (weights + 0.1);
}

double fr_compute_fit_at(const fr_compute_fit *fit, const fr_compute_point *key,
                         bool *is_inside, double *rel_err)
{
    double amount[FR_COMPUTE_AMOUNTS], nearness, sum, residual;
    fitted_point here = {0};
    bool inside = fit->n >= 3;

    if (!amounts_of(key, amount))
        amount[AMOUNT_ONE] = 1.0;
    place_point(key, amount, &here);
    sum = sum_amounts(fit, amount);
    residual = smooth_residual(fit, &here, &nearness);
    if (amount[AMOUNT_WORK] > fit->high[AMOUNT_WORK] * range_slack ||
        amount[AMOUNT_WORK] * range_slack < fit->low[AMOUNT_WORK])
        inside = false;
    if (is_inside != NULL)
        *is_inside = inside;
    if (rel_err != NULL)
        *rel_err = fmax(fit->rms_rel * (1.0 - 0.7 * nearness), 0.01) *
                   (inside ? 1.0 : 2.0);
    return fmax(sum * exp(residual), 1e-9);
}
