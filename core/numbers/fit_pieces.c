/*
 * fit_pieces.c: several alpha-beta lines over one range (protocol switches,
 * caches); see fit.h.
 */
#include "core/numbers/fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS_PER_PIECE = 3 };

/* Errors below this share are not worth another piece. */
static const double rel_floor = 1e-4;

/* Sums of one run of points, relative errors: rows (1/y, x/y) against 1. */
typedef struct sums {
    double n, u, v, uu, uv, vv;
} sums;

static void sums_add(sums *s, double x, double y)
{
    double u = 1 / y, v = x / y;

    s->n += 1;
    s->u += u;
    s->v += v;
    s->uu += u * u;
    s->uv += u * v;
    s->vv += v * v;
}

/* Squares that the best non-negative line leaves. */
static double sums_rest(const sums *s)
{
    double det = s->uu * s->vv - s->uv * s->uv, a, b, rest;

    if (det > 1e-14 * s->uu * s->vv) {
        a = (s->u * s->vv - s->v * s->uv) / det;
        b = (s->v * s->uu - s->u * s->uv) / det;
    } else {
        a = s->u / s->uu;
        b = 0;
    }
    if (b < 0) {
        b = 0;
        a = s->u / s->uu;
    } else if (a < 0) {
        a = 0;
        b = s->v / s->vv;
    }
    rest = s->n - a * s->u - b * s->v;
    return rest > 0 ? rest : 0;
}

/* The best way to cut points 0..i-1 into k pieces, for all k and i. */
typedef struct table {
    size_t n, n_max;
    double *rest; /* [n_max + 1][n + 1] */
    size_t *from; /* where the last piece begins */
} table;

static size_t at(const table *t, size_t k, size_t i)
{
    return k * (t->n + 1) + i;
}

static fr_status table_init(table *t, size_t n, size_t n_max, fr_err *err)
{
    size_t n_cells = (n_max + 1) * (n + 1);

    t->n = n;
    t->n_max = n_max;
    t->rest = malloc(n_cells * sizeof *t->rest);
    t->from = calloc(n_cells, sizeof *t->from);
    if (!t->rest || !t->from) {
        free(t->rest);
        free(t->from);
        return fr_fail_no_memory(err);
    }
    for (size_t i = 0; i < n_cells; i++)
        t->rest[i] = INFINITY;
    t->rest[at(t, 0, 0)] = 0;
    return FR_OK;
}

/* A piece first..last-1 after the best ways to cut what is before it. */
static void table_offer(table *t, size_t first, size_t last, double rest)
{
    for (size_t k = 1; k <= t->n_max; k++) {
        double sum = t->rest[at(t, k - 1, first)] + rest;
        if (sum < t->rest[at(t, k, last)]) {
            t->rest[at(t, k, last)] = sum;
            t->from[at(t, k, last)] = first;
        }
    }
}

static void table_fill(table *t, const double *x, const double *y)
{
    for (size_t first = 0; first < t->n; first++) {
        sums s = {0}; /* only grow, so that nothing cancels */
        if (first > 0 && x[first] == x[first - 1])
            continue;
        for (size_t last = first + 1; last <= t->n; last++) {
            bool is_cut_inside = last < t->n && x[last] == x[last - 1];
            sums_add(&s, x[last - 1], y[last - 1]);
            if (last - first >= POINTS_PER_PIECE && !is_cut_inside &&
                x[last - 1] > x[first])
                table_offer(t, first, last, sums_rest(&s));
        }
    }
}

/* Bayesian information criterion; a piece has two numbers and a place. */
static size_t choose_n(const table *t)
{
    double best = INFINITY, n = (double)t->n;
    size_t chosen = 0;

    for (size_t k = 1; k <= t->n_max; k++) {
        double rest = t->rest[at(t, k, t->n)] / n + rel_floor * rel_floor;
        double score = n * log(rest) + (3 * (double)k - 1) * log(n);
        if (score < best) {
            best = score;
            chosen = k;
        }
    }
    return chosen;
}

/* Between the last point of one line and the first of the next: where they
 * meet, or the middle of a jump. */
static double find_break(const fr_line *a, const fr_line *b, double low,
                         double high)
{
    double meet = (a->a - b->a) / (b->b - a->b);

    if (meet > low && meet <= high)
        return meet;
    return low > 0 ? sqrt(low * high) : 0.5 * (low + high);
}

static fr_status fit_chosen(const table *t, const double *x, const double *y,
                            size_t n_pieces, fr_pieces *out, fr_err *err)
{
    size_t last = t->n;

    out->n = n_pieces;
    for (size_t k = n_pieces; k > 0; k--) {
        size_t first = t->from[at(t, k, last)];
        FR_TRY(fr_fit_alpha_beta(x + first, y + first, last - first,
                                 &out->line[k - 1], err));
        /* Where the piece begins, once the one before is known. */
        out->first_x[k - 1] = x[first];
        if (k < n_pieces)
            out->first_x[k] = find_break(&out->line[k - 1], &out->line[k],
                                         x[last - 1], out->first_x[k]);
        last = first;
    }
    return FR_OK;
}

static void measure(const double *x, const double *y, size_t n, fr_pieces *out)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        double rel = fabs(fr_pieces_at(out, x[i]) - y[i]) / y[i];
        sum += rel * rel;
        out->max_rel = fmax(out->max_rel, rel);
    }
    out->rms_rel = sqrt(sum / (double)n);
}

static fr_status check(const double *x, const double *y, size_t n, fr_err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i]) || !isfinite(y[i]) || x[i] < 0 || !(y[i] > 0))
            return fr_fail(err, FR_INPUT,
                           "fit: point %zu (%g, %g) is not positive", i, x[i],
                           y[i]);
        if (i && x[i] < x[i - 1])
            return fr_fail(err, FR_INPUT, "fit: point %zu is out of order", i);
    }
    return FR_OK;
}

fr_status fr_fit_pieces(const double *x, const double *y, size_t n,
                        size_t n_max, fr_pieces *out, fr_err *err)
{
    fr_pieces pieces = {0};
    fr_status status;
    size_t n_pieces;
    table t;

    FR_TRY(check(x, y, n, err));
    if (n_max > FR_PIECES_MAX)
        n_max = FR_PIECES_MAX;
    if (n_max < 1)
        n_max = 1;
    FR_TRY(table_init(&t, n, n_max, err));
    table_fill(&t, x, y);
    n_pieces = choose_n(&t);
    if (n_pieces > 0) {
        status = fit_chosen(&t, x, y, n_pieces, &pieces, err);
    } else {
        /* Two points: one line, which the table does not hold. */
        pieces.n = 1;
        pieces.first_x[0] = n ? x[0] : 0;
        status = fr_fit_alpha_beta(x, y, n, &pieces.line[0], err);
    }
    free(t.rest);
    free(t.from);
    if (status != FR_OK)
        return status;
    measure(x, y, n, &pieces);
    *out = pieces;
    return FR_OK;
}

double fr_pieces_at(const fr_pieces *pieces, double x)
{
    size_t i = 0;

    while (i + 1 < pieces->n && x >= pieces->first_x[i + 1])
        i++;
    return pieces->line[i].a + pieces->line[i].b * x;
}
