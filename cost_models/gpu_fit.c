/*
 * gpu_fit.c: see gpu_fit.h.  All unknowns are positive: their logarithms are
 * what moves.
 */
#include "cost_models/gpu_fit.h"

#include "core/fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Residuals beyond this (of the logarithm) count linearly. */
static const double huber = 0.15;
/* Pull of the prior: one residual of x / prior_spread, x the logarithm of
 * constant over prior.  Weak: an error of 10 % in one row weighs as much as a
 * constant four times its prior.  Rows of few cards tell power from the
 * cooling, software and age of the cards: there physics has a say. */
static const double prior_spread = 14.0;
static const double power_spread = 0.5;

/* Where the constants start: what documents and first principles say. */
static fr_gpu_constants prior_constants(void)
{
    fr_gpu_constants c = {
        .power_exponent = 1.0 / 3.0, /* power ~ f V^2 with V ~ f gives 1/3 */
        .tile_traffic = 0.2, /* caches have some 2.5 times the bandwidth,
                                half of it hidden */
        .tile_s = 1e-6,
        .kernel_s = 3e-6,
        .stream_frac = 0.85,
        .rows_frac = 0.7,
        /* 16 exponentials a clock at 1.5 GHz are 42 ps, and half as
         * long again for maxima, sums, conversions; polynomials less. */
        .attention_core_s = {60e-12, 60e-12, 30e-12},
        .attention_bwd_core_ratio = 2.0,
        .attention_rate = {{1.0, 0.9, 0.9}, {0.8, 0.8, 0.8}},
        .attention_tile_s = {2e-6, 4e-6}};

    return c;
}

/* ---- unknowns ------------------------------------------------------------ */

enum { MOST_UNKNOWNS = FR_GPU_GENERATION_N * FR_GPU_MATH_N + 24 };

/* Addresses of what is fitted in a set of constants. */
typedef struct unknowns {
    double *at[MOST_UNKNOWNS];
    size_t n;
} unknowns;

static void add(unknowns *u, double *at)
{
    u->at[u->n++] = at;
}

/* Shares count as unknown where `shares` says so. */
static unknowns unknowns_of(fr_gpu_constants *c,
                            bool shares[FR_GPU_GENERATION_N][FR_GPU_MATH_N])
{
    unknowns u = {.n = 0};

    for (int g = 0; g < FR_GPU_GENERATION_N; g++)
        for (int m = 0; m < FR_GPU_MATH_N; m++)
            if (shares[g][m])
                add(&u, &c->achievable[g][m]);
    add(&u, &c->power_exponent);
    add(&u, &c->tile_traffic);
    add(&u, &c->tile_s);
    add(&u, &c->kernel_s);
    add(&u, &c->stream_frac);
    add(&u, &c->rows_frac);
    for (int i = 0; i < FR_GPU_ATTENTION_N; i++) {
        add(&u, &c->attention_core_s[i]);
        add(&u, &c->attention_rate[0][i]);
        add(&u, &c->attention_rate[1][i]);
    }
    add(&u, &c->attention_bwd_core_ratio);
    add(&u, &c->attention_tile_s[0]);
    add(&u, &c->attention_tile_s[1]);
    return u;
}

size_t fr_gpu_constants_list(const fr_gpu_constants *constants, double *out,
                             size_t n_max)
{
    bool shares[FR_GPU_GENERATION_N][FR_GPU_MATH_N];
    fr_gpu_constants c = *constants;
    unknowns u;
    size_t n = 0;

    memset(shares, true, sizeof shares);
    u = unknowns_of(&c, shares);
    for (size_t i = 0; i < u.n; i++, n++)
        if (n < n_max)
            out[n] = *u.at[i];
    for (int i = 0; i < FR_GPU_FAMILY_N; i++, n++)
        if (n < n_max)
            out[n] = c.rel_err[i];
    if (n < n_max)
        out[n] = c.guess_err;
    return n + 1;
}

/* ---- rows ---------------------------------------------------------------- */

fr_gpu_family fr_gpu_row_family(const fr_gpu_row *row)
{
    static const fr_gpu_family families[FR_GPU_ROW_N] = {
        FR_GPU_PRODUCT,       FR_GPU_GROUPED, FR_GPU_ATTENTION_FWD,
        FR_GPU_ATTENTION_BWD, FR_GPU_STREAM,  FR_GPU_ROWS};

    return families[row->op];
}

static double stored_bytes(fr_dtype dtype)
{
    double bytes = (double)fr_dtype_bytes(dtype);
    return bytes < 2.0 ? 2.0 : bytes;
}

static double product_s(const fr_gpu_model *model, const fr_gpu_row *row,
                        fr_gpu_math math)
{
    int64_t groups = row->op == FR_GPU_ROW_GROUPED ? row->dim[3] : 1;
    fr_gpu_product p = {.m = row->dim[0] / groups,
                        .n = row->dim[1],
                        .k = row->dim[2],
                        .groups = groups,
                        .math = math,
                        .in_bytes = row->dtype == FR_DTYPE_FP4
                                        ? 0.5625
                                        : (double)fr_dtype_bytes(row->dtype),
                        .out_bytes = stored_bytes(row->dtype)};

    return fr_gpu_product_s(model, &p);
}

static double attention_s(const fr_gpu_model *model, const fr_gpu_row *row,
                          fr_gpu_math math)
{
    fr_gpu_attention a = {.batch = row->dim[0],
                          .heads = row->dim[2],
                          .kv_heads = row->dim[2],
                          .queries = row->dim[1],
                          .keys = row->dim[1],
                          .qk_dim = row->dim[3],
                          .v_dim = row->dim[3],
                          .math = math,
                          .bytes = stored_bytes(row->dtype),
                          .is_causal = row->is_causal,
                          .is_backward = row->op == FR_GPU_ROW_ATTN_BWD};

    return row->is_apart ? fr_gpu_attention_apart_s(model, &a)
                         : fr_gpu_attention_fused_s(model, &a);
}

static double row_on_model_s(const fr_gpu_model *model, const fr_gpu_row *row)
{
    fr_gpu_math math;

    if (row->op == FR_GPU_ROW_STREAM || row->op == FR_GPU_ROW_ROWS)
        return fr_gpu_memory_s(model, (double)row->dim[0],
                               fr_gpu_row_family(row));
    math = fr_gpu_math_of(model, row->dtype);
    if (math == FR_GPU_MATH_N)
        return 0.0;
    if (row->op == FR_GPU_ROW_GEMM || row->op == FR_GPU_ROW_GROUPED)
        return product_s(model, row, math);
    return attention_s(model, row, math);
}

double fr_gpu_row_s(const fr_gpu_constants *constants, const fr_gpu_row *row)
{
    fr_gpu_model model;

    if (row->device == NULL)
        return 0.0;
    fr_gpu_model_init_with(row->device, constants, &model);
    return row_on_model_s(&model, row);
}

/* ---- the fit ------------------------------------------------------------- */

typedef struct fitting {
    const fr_gpu_rows *rows;
    fr_gpu_constants constants; /* what the unknowns point into */
    unknowns unknowns;
    double prior[MOST_UNKNOWNS], spread[MOST_UNKNOWNS];
} fitting;

/* Its square is Huber's loss. */
static double damped(double residual)
{
    double size = fabs(residual);

    if (size <= huber)
        return residual;
    return copysign(sqrt(2.0 * huber * size - huber * huber), residual);
}

static void residuals(const double *x, double *out, void *context)
{
    fitting *fit = context;
    size_t n = 0;

    for (size_t i = 0; i < fit->unknowns.n; i++)
        *fit->unknowns.at[i] = exp(x[i]);
    for (size_t i = 0; i < fit->rows->n; i++) {
        const fr_gpu_row *row = &fit->rows->items[i];
        if (row->weight <= 0.0)
            continue;
        out[n++] =
            sqrt(row->weight) *
            damped(log(fr_gpu_row_s(&fit->constants, row) / row->seconds));
    }
    for (size_t i = 0; i < fit->unknowns.n; i++)
        out[n++] = (x[i] - fit->prior[i]) / fit->spread[i];
}

/* Which shares have rows of their own; returns the rows that are fitted. */
static size_t find_shares(const fr_gpu_rows *rows, fr_gpu_constants *c,
                          bool shares[FR_GPU_GENERATION_N][FR_GPU_MATH_N])
{
    size_t n = 0;

    memset(shares, 0, sizeof(bool) * FR_GPU_GENERATION_N * FR_GPU_MATH_N);
    for (size_t i = 0; i < rows->n; i++) {
        const fr_gpu_row *row = &rows->items[i];
        fr_gpu_model model;
        fr_gpu_math math;
        if (row->weight <= 0.0)
            continue;
        n++;
        fr_gpu_model_init_with(row->device, c, &model);
        c->n_rows[model.generation][fr_gpu_row_family(row)]++;
        math = fr_gpu_math_of(&model, row->dtype);
        if (math != FR_GPU_MATH_N &&
            (row->op == FR_GPU_ROW_GEMM || row->op == FR_GPU_ROW_GROUPED))
            shares[model.generation][math] = true;
    }
    return n;
}

/* Root mean square of the residuals by family, every row alike: what one
 * kernel may be off. */
static void measure_errors(const fr_gpu_rows *rows, fr_gpu_constants *c)
{
    double sum[FR_GPU_FAMILY_N] = {0}, n[FR_GPU_FAMILY_N] = {0};
    double mean = 0.0, squares = 0.0, n_shares = 0.0;

    for (size_t i = 0; i < rows->n; i++) {
        const fr_gpu_row *row = &rows->items[i];
        double residual;
        if (row->weight <= 0.0)
            continue;
        residual = log(fr_gpu_row_s(c, row) / row->seconds);
        sum[fr_gpu_row_family(row)] += residual * residual;
        n[fr_gpu_row_family(row)] += 1.0;
    }
    for (int i = 0; i < FR_GPU_FAMILY_N; i++)
        c->rel_err[i] = n[i] > 0.0 ? sqrt(sum[i] / n[i]) : 0.3;
    for (int g = 0; g < FR_GPU_GENERATION_N; g++)
        for (int m = 0; m < FR_GPU_MATH_N; m++)
            if (c->achievable[g][m] > 0.0) {
                double share = log(c->achievable[g][m]);
                mean += share;
                squares += share * share;
                n_shares += 1.0;
            }
    if (n_shares > 1.0) {
        mean /= n_shares;
        c->guess_err = sqrt(fmax(0.0, squares / n_shares - mean * mean));
    }
}

fr_status fr_gpu_fit(const fr_gpu_rows *rows, fr_gpu_constants *out,
                     fr_err *err)
{
    bool shares[FR_GPU_GENERATION_N][FR_GPU_MATH_N];
    fitting *fit = calloc(1, sizeof *fit);
    double x[MOST_UNKNOWNS];
    fr_status status;
    size_t n;

    if (fit == NULL)
        return fr_fail_no_memory(err);
    fit->rows = rows;
    fit->constants = prior_constants();
    n = find_shares(rows, &fit->constants, shares);
    fit->unknowns = unknowns_of(&fit->constants, shares);
    for (int g = 0; g < FR_GPU_GENERATION_N; g++)
        for (int m = 0; m < FR_GPU_MATH_N; m++)
            if (shares[g][m])
                fit->constants.achievable[g][m] = 0.75;
    for (size_t i = 0; i < fit->unknowns.n; i++) {
        x[i] = fit->prior[i] = log(*fit->unknowns.at[i]);
        fit->spread[i] = fit->unknowns.at[i] == &fit->constants.power_exponent
                             ? power_spread
                             : prior_spread;
    }
    status = fr_fit_nonlinear(residuals, fit, n + fit->unknowns.n, x,
                              fit->unknowns.n, err);
    if (status == FR_OK) {
        for (size_t i = 0; i < fit->unknowns.n; i++)
            *fit->unknowns.at[i] = exp(x[i]);
        measure_errors(rows, &fit->constants);
        *out = fit->constants;
    }
    free(fit);
    return status;
}
