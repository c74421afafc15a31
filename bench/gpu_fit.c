/*
 * gpu_fit.c: see gpu_fit.h.  All unknowns are positive: their logarithms are
 * what moves.
 */
#include "bench/gpu_fit.h"

#include "core/base/vec.h"
#include "core/numbers/fit.h"
#include "core/numbers/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Residuals beyond this (of the logarithm) count linearly. */
static const double huber = 0.15;
/* Pull of the prior: one residual of x / prior_spread, x the logarithm of
 * constant over prior.  Weak: it only says where to stay what no row tells.
 * Few cards of one generation differ in power, and also in cooling, software
 * and age: there physics has a say.  Of few units there is more than a row
 * under a lasting load: what all have in common counts as one more (the errors
 * of sources that are left out are then as small as with four more, and much
 * smaller than with none). */
static const double prior_spread = 40.0;
static const double power_spread = 0.5;
static const double sustained_spread = 1.0;

/* Returns the initial values of the constants, from documents and first
 * principles. */
static fr_gpu_constants prior_constants(void)
{
    fr_gpu_constants c = {
        .power_exponent = 1.0 / 3.0, /* power ~ f V^2 with V ~ f gives 1/3 */
        .sustained_exponent = 0.6,   /* with V at its floor 1; between them */
        .block_rate = 1.0,
        .tile_traffic = 0.2, /* caches have some 2.5 times the bandwidth,
                                half of it hidden */
        .tile_s = 1e-6,
        .kernel_s = 3e-6,
        .stream_frac = 0.85,
        .rows_frac = 0.7,
        .layers_rate = {1.0, 0.6},
        /* 16 exponentials a clock at 1.5 GHz are 42 ps, and half as
         * long again for maxima, sums, conversions; polynomials less. */
        .attention_core_s = {60e-12, 60e-12, 30e-12, 60e-12, 60e-12},
        .attention_bwd_core_ratio = 2.0,
        .attention_rate = {{1.0, 0.9, 0.9, 0.6, 0.6},
                           {0.8, 0.8, 0.8, 0.5, 0.5}},
        .attention_tile_s = {2e-6, 4e-6}};

    for (int g = 0; g < FR_GPU_GENERATION_N; g++)
        for (int m = 0; m < FR_GPU_MATH_FITTED_N; m++)
            c.sustained[g][m] = 0.9;
    return c;
}

/* ---- unknowns ------------------------------------------------------------ */

enum { MOST_UNKNOWNS = FR_GPU_GENERATION_N * FR_GPU_MATH_FITTED_N * 2 + 40 };

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
static unknowns
unknowns_of(fr_gpu_constants *c,
            bool shares[FR_GPU_GENERATION_N][FR_GPU_MATH_FITTED_N])
{
    unknowns u = {.n = 0};

    for (int g = 0; g < FR_GPU_GENERATION_N; g++)
        for (int m = 0; m < FR_GPU_MATH_FITTED_N; m++)
            if (shares[g][m]) {
                add(&u, &c->achievable[g][m]);
                add(&u, &c->sustained[g][m]);
            }
    add(&u, &c->power_exponent);
    add(&u, &c->sustained_exponent);
    add(&u, &c->block_rate);
    add(&u, &c->tile_traffic);
    add(&u, &c->tile_s);
    add(&u, &c->kernel_s);
    add(&u, &c->stream_frac);
    add(&u, &c->rows_frac);
    add(&u, &c->layers_rate[0]);
    add(&u, &c->layers_rate[1]);
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

/* ---- rows ---------------------------------------------------------------- */

fr_gpu_family fr_gpu_row_family(const fr_gpu_row *row)
{
    static const fr_gpu_family families[FR_GPU_ROW_N] = {
        FR_GPU_PRODUCT,       FR_GPU_GROUPED, FR_GPU_ATTENTION_FWD,
        FR_GPU_ATTENTION_BWD, FR_GPU_STREAM,  FR_GPU_ROWS,
        FR_GPU_LAYERS};

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
                        .out_bytes = stored_bytes(row->dtype),
                        .has_block_scales = row->has_block_scales};

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
                          .kind = fr_gpu_attention_kind_of(model, row->flash),
                          .bytes = stored_bytes(row->dtype),
                          .is_causal = row->is_causal,
                          .is_backward = row->op == FR_GPU_ROW_ATTN_BWD};

    return row->is_apart ? fr_gpu_attention_apart_s(model, &a)
                         : fr_gpu_attention_fused_s(model, &a);
}

static double row_on_model_s(const fr_gpu_model *model, const fr_gpu_row *row)
{
    fr_gpu_model fresh = *model;
    fr_gpu_math math;

    if (row->op == FR_GPU_ROW_STREAM || row->op == FR_GPU_ROW_ROWS)
        return fr_gpu_memory_s(model, (double)row->dim[0],
                               fr_gpu_row_family(row));
    math = fr_gpu_math_of(model, row->dtype);
    if (math == FR_GPU_MATH_N)
        return 0.0;
    if (row->op == FR_GPU_ROW_LAYERS)
        return fr_gpu_layers_s(model, math, (double)row->dim[0],
                               (double)row->dim[1], 0.0);
    if (row->op == FR_GPU_ROW_GEMM || row->op == FR_GPU_ROW_GROUPED) {
        if (!row->is_sustained)
            fresh.flops[math] = model->burst_flops[math];
        return product_s(&fresh, row, math);
    }
    if (row->is_burst)
        fresh.flops[math] = model->burst_flops[math];
    return attention_s(&fresh, row, math);
}

/* The device, under the limit that the row was measured under. */
static void init_model(const fr_gpu_constants *constants, const fr_gpu_row *row,
                       fr_gpu_model *out)
{
    fr_device_type device = *row->device;

    if (row->power_w > 0.0)
        device.power_w = row->power_w;
    fr_gpu_model_init_with(&device, constants, out);
}

double fr_gpu_row_s(const fr_gpu_constants *constants, const fr_gpu_row *row)
{
    fr_gpu_model model;

    if (row->device == NULL)
        return 0.0;
    init_model(constants, row, &model);
    return row_on_model_s(&model, row);
}

/* ---- the fit ------------------------------------------------------------- */

typedef struct fitting {
    const fr_gpu_rows *rows;
    const char *left_out;       /* a source, NULL: none */
    fr_gpu_constants constants; /* the unknowns point into it */
    unknowns unknowns;
    double prior[MOST_UNKNOWNS], spread[MOST_UNKNOWNS];
} fitting;

static bool is_used(const fitting *fit, const fr_gpu_row *row)
{
    return row->weight > 0.0 &&
           (fit->left_out == NULL || strcmp(fit->left_out, row->source) != 0);
}

static double residual_of(const fr_gpu_constants *c, const fr_gpu_row *row)
{
    return log(fr_gpu_row_s(c, row) / row->seconds);
}

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
        if (is_used(fit, row))
            out[n++] =
                sqrt(row->weight) * damped(residual_of(&fit->constants, row));
    }
    for (size_t i = 0; i < fit->unknowns.n; i++)
        out[n++] = (x[i] - fit->prior[i]) / fit->spread[i];
}

/* Finds which shares have separate rows; returns the number of fitted rows. */
static size_t
find_shares(fitting *fit,
            bool shares[FR_GPU_GENERATION_N][FR_GPU_MATH_FITTED_N])
{
    fr_gpu_constants *c = &fit->constants;
    size_t n = 0;

    memset(shares, 0,
           sizeof(bool) * FR_GPU_GENERATION_N * FR_GPU_MATH_FITTED_N);
    for (size_t i = 0; i < fit->rows->n; i++) {
        const fr_gpu_row *row = &fit->rows->items[i];
        fr_gpu_model model;
        fr_gpu_math math;
        if (!is_used(fit, row))
            continue;
        n++;
        fr_gpu_model_init_with(row->device, c, &model);
        c->n_rows[model.generation][fr_gpu_row_family(row)]++;
        math = fr_gpu_math_of(&model, row->dtype);
        if (math != FR_GPU_MATH_N &&
            (row->op == FR_GPU_ROW_GEMM || row->op == FR_GPU_ROW_GROUPED))
            shares[model.generation][fr_gpu_math_fitted(math)] = true;
    }
    return n;
}

/* Returns the prior deviation of one unknown. */
static double spread_of(const fr_gpu_constants *c, const double *at)
{
    const double *first = &c->sustained[0][0];
    const double *end = first + FR_GPU_GENERATION_N * FR_GPU_MATH_FITTED_N;
    bool is_sustained = at >= first && at < end;

    if (is_sustained)
        return sustained_spread;
    return at == &c->power_exponent ? power_spread : prior_spread;
}

/* The prior, and where the search starts: from `start`, if there is one. */
static void set_start(fitting *fit,
                      bool shares[FR_GPU_GENERATION_N][FR_GPU_MATH_FITTED_N],
                      const fr_gpu_constants *start, double *x)
{
    unknowns from;
    fr_gpu_constants copy;

    for (int g = 0; g < FR_GPU_GENERATION_N; g++)
        for (int m = 0; m < FR_GPU_MATH_FITTED_N; m++)
            if (shares[g][m])
                fit->constants.achievable[g][m] = 0.75;
    copy = start != NULL ? *start : fit->constants;
    fit->unknowns = unknowns_of(&fit->constants, shares);
    from = unknowns_of(&copy, shares);
    for (size_t i = 0; i < fit->unknowns.n; i++) {
        x[i] = log(*from.at[i]);
        fit->prior[i] = log(*fit->unknowns.at[i]);
        fit->spread[i] = spread_of(&fit->constants, fit->unknowns.at[i]);
    }
}

/* Fits what is not left out; the errors in *out are not set. */
static fr_status fit_once(const fr_gpu_rows *rows, const char *left_out,
                          const fr_gpu_constants *start, fr_gpu_constants *out,
                          fr_err *err)
{
    bool shares[FR_GPU_GENERATION_N][FR_GPU_MATH_FITTED_N];
    fitting *fit = calloc(1, sizeof *fit);
    double x[MOST_UNKNOWNS];
    fr_status status;
    size_t n;

    if (fit == NULL)
        return fr_fail_no_memory(err);
    fit->rows = rows;
    fit->left_out = left_out;
    fit->constants = prior_constants();
    n = find_shares(fit, shares);
    set_start(fit, shares, start, x);
    status = fr_fit_nonlinear(residuals, fit, n + fit->unknowns.n, x,
                              fit->unknowns.n, err);
    if (status == FR_OK) {
        for (size_t i = 0; i < fit->unknowns.n; i++)
            *fit->unknowns.at[i] = exp(x[i]);
        *out = fit->constants;
    }
    free(fit);
    return status;
}

/* ---- its errors ---------------------------------------------------------- */

/* Sizes of residuals; the last list: kernels of which the others had none
 * alike. */
typedef fr_vec(double) sizes;
enum { GUESSES = FR_GPU_FAMILY_N, N_LISTS };

static bool is_known(const fr_gpu_constants *c, const fr_gpu_row *row)
{
    fr_gpu_family family = fr_gpu_row_family(row);
    fr_gpu_model model;

    fr_gpu_model_init_with(row->device, c, &model);
    if (family == FR_GPU_PRODUCT || family == FR_GPU_GROUPED)
        return !model.is_guessed[fr_gpu_math_of(&model, row->dtype)];
    return c->n_rows[model.generation][family] > 0;
}

static bool is_one_table(const fr_gpu_row *a, const fr_gpu_row *b)
{
    return a->weight > 0.0 && b->weight > 0.0 && a->device == b->device &&
           a->op == b->op && a->dtype == b->dtype &&
           strcmp(a->source, b->source) == 0;
}

/* Mean residual of the rows that are one table with row i; false: it is not
 * the first of them. */
static bool table_residual(const fr_gpu_rows *rows, const fr_gpu_constants *c,
                           size_t i, double *out)
{
    double sum = 0.0, n = 0.0;

    for (size_t k = 0; k < rows->n; k++) {
        if (!is_one_table(&rows->items[i], &rows->items[k]))
            continue;
        if (k < i)
            return false;
        sum += residual_of(c, &rows->items[k]);
        n += 1.0;
    }
    if (n > 0.0)
        *out = sum / n;
    return n > 0.0;
}

/* Predicts a source with the fit that leaves it out. */
static fr_status leave_out(const fr_gpu_rows *rows, const char *source,
                           const fr_gpu_constants *all, sizes *lists,
                           fr_err *err)
{
    fr_gpu_constants c;

    FR_TRY(fit_once(rows, source, all, &c, err));
    for (size_t i = 0; i < rows->n; i++) {
        const fr_gpu_row *row = &rows->items[i];
        fr_gpu_family family = fr_gpu_row_family(row);
        double residual = 0.0;
        if (strcmp(row->source, source) != 0 ||
            !table_residual(rows, &c, i, &residual))
            continue;
        if (!is_known(&c, row))
            family = (fr_gpu_family)GUESSES;
        FR_TRY_PUSH(&lists[family], fabs(residual), err);
    }
    return FR_OK;
}

static bool is_first_of_source(const fr_gpu_rows *rows, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (rows->items[k].weight > 0.0 &&
            strcmp(rows->items[k].source, rows->items[i].source) == 0)
            return false;
    return rows->items[i].weight > 0.0;
}

/* Adds the errors of single rows, for kinds that only one source has
 * measured. */
static fr_status add_own(const fr_gpu_rows *rows, const fr_gpu_constants *c,
                         fr_gpu_family family, sizes *list, fr_err *err)
{
    for (size_t i = 0; i < rows->n; i++) {
        const fr_gpu_row *row = &rows->items[i];
        if (row->weight <= 0.0 || fr_gpu_row_family(row) != family)
            continue;
        FR_TRY_PUSH(list, fabs(residual_of(c, row)), err);
    }
    return FR_OK;
}

/* One standard error: two of three are smaller. */
static double standard_error(sizes *list)
{
    return list->n > 0 ? fr_stats_quantile(list->items, list->n, 0.683) : 0.3;
}

static fr_status measure_errors(const fr_gpu_rows *rows, fr_gpu_constants *c,
                                sizes *lists, fr_err *err)
{
    for (size_t i = 0; i < rows->n; i++)
        if (is_first_of_source(rows, i))
            FR_TRY(leave_out(rows, rows->items[i].source, c, lists, err));
    for (int i = 0; i < FR_GPU_FAMILY_N; i++) {
        if (lists[i].n == 0)
            FR_TRY(add_own(rows, c, (fr_gpu_family)i, &lists[i], err));
        c->rel_err[i] = standard_error(&lists[i]);
    }
    c->guess_err = standard_error(&lists[GUESSES]);
    return FR_OK;
}

fr_status fr_gpu_fit(const fr_gpu_rows *rows, fr_gpu_constants *out,
                     fr_err *err)
{
    fr_gpu_constants c;
    sizes lists[N_LISTS] = {{NULL, 0, 0}};
    fr_status status = fit_once(rows, NULL, NULL, &c, err);

    if (status == FR_OK)
        status = measure_errors(rows, &c, lists, err);
    for (int i = 0; i < N_LISTS; i++)
        fr_vec_release(&lists[i]);
    if (status == FR_OK)
        *out = c;
    return status;
}
