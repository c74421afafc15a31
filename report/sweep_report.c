/* sweep_report.c: columns are a table: heading, unit, how it is written. */
#include "report/sweep_report.h"

#include "core/base/units.h"
#include "core/document/fields.h"
#include "report/run_length_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef char *(*format_fn)(char *out, size_t n, double value);

enum {
    IS_COUNT = 1,        /* a whole number */
    IS_UNKNOWN_AT_0 = 2, /* 0 stands for what is not known */
    IS_INPUT = 4,        /* told of points that cannot be, too */
    IS_MEMORY = 8,       /* told of points that do not fit, too */
    IS_GOAL = 16,        /* told where a goal was asked for */
    IS_RATE = 32         /* of tokens, or of samples */
};

typedef struct column {
    const char *heading; /* of the table; NULL: JSON and CSV only */
    const char *key;     /* of JSON and CSV; NULL: the table only */
    fr_field member;     /* of fr_sweep_point; none: the interval's half */
    format_fn format;
    unsigned flags;
} column;

/* NAN: not known. */
static double value_of(const column *c, const fr_sweep_point *p)
{
    if (c->member.n_bytes == 0)
        return (p->step_s_p95 - p->step_s_p5) / 2 / p->step_s;
    double value = fr_field_get(&c->member, p);
    return (c->flags & IS_UNKNOWN_AT_0) && !(value > 0) ? NAN : value;
}

/* ---- formats ------------------------------------------------------------ */

static char *as_whole(char *out, size_t n, double value)
{
    snprintf(out, n, "%.0f", value);
    return out;
}

static char *as_digits(char *out, size_t n, double value)
{
    snprintf(out, n, value < 1000 ? "%.3g" : "%.0f", value);
    return out;
}

static char *as_percent(char *out, size_t n, double value)
{
    snprintf(out, n, "%.1f %%", 100 * value);
    return out;
}

static char *as_gap(char *out, size_t n, double value)
{
    if (value > 0)
        snprintf(out, n, "%.1f %%", 100 * value);
    else
        snprintf(out, n, "proven");
    return out;
}

static char *as_margin(char *out, size_t n, double value)
{
    snprintf(out, n, "%.0f %%", 100 * value);
    return out;
}

static char *as_likely(char *out, size_t n, double value)
{
    if (value > 0.995)
        snprintf(out, n, ">99 %%");
    else
        as_margin(out, n, value);
    return out;
}

static char *as_duration(char *out, size_t n, double seconds)
{
    if (seconds < 86400)
        return fr_format_s(out, n, seconds);
    snprintf(out, n, "%.3g d", seconds / 86400);
    return out;
}

#define AT(name)                                                               \
    {                                                                          \
        FR_MEMBER(fr_sweep_point, name)                                        \
    }

static const column columns[] = {
    {NULL, "nodes", AT(n_nodes), as_whole, IS_COUNT},
    {"ranks", "ranks", AT(n_ranks), as_whole, IS_COUNT | IS_INPUT},
    {NULL, "global_batch", AT(global_batch), as_whole, IS_COUNT | IS_INPUT},
    {NULL, "seq", AT(seq), as_whole, IS_COUNT | IS_INPUT},
    {"step", "step_s", AT(step_s), fr_format_s, 0},
    {"+-", NULL, {0}, as_margin, 0},
    {"gap", "gap", AT(gap), as_gap, 0},
    {NULL, "plans", AT(n_plans), as_whole, IS_COUNT | IS_UNKNOWN_AT_0},
    {NULL, "simulated", AT(n_simulated), as_whole, IS_COUNT | IS_UNKNOWN_AT_0},
    {NULL, "step_s_p5", AT(step_s_p5), fr_format_s, 0},
    {NULL, "step_s_p95", AT(step_s_p95), fr_format_s, 0},
    {"tokens/s", "tokens_per_s", AT(tokens_per_s), as_digits, IS_RATE},
    {"per rank", "tokens_per_s_per_rank", AT(tokens_per_s_per_rank), as_digits,
     0},
    {"MFU", "mfu", AT(mfu), as_percent, IS_UNKNOWN_AT_0},
    {"memory", "peak_bytes", AT(peak_bytes), fr_format_bytes,
     IS_COUNT | IS_MEMORY},
    {NULL, "capacity_bytes", AT(capacity_bytes), fr_format_bytes,
     IS_COUNT | IS_UNKNOWN_AT_0 | IS_MEMORY},
    {"fits", "p_fits", AT(p_fits), as_likely, IS_UNKNOWN_AT_0},
    {NULL, "usd_per_hour", AT(usd_per_h), as_digits, IS_UNKNOWN_AT_0},
    {"cost/1e9", "usd_per_1e9_tokens", AT(usd_per_1e9_tokens), fr_format_usd,
     IS_UNKNOWN_AT_0},
    {"energy/1e9", "kwh_per_1e9_tokens", AT(kwh_per_1e9_tokens), fr_format_kwh,
     IS_UNKNOWN_AT_0},
    {"run", "run_s", AT(run.seconds), as_duration, IS_UNKNOWN_AT_0},
    {NULL, "run_s_p95", AT(run.seconds_p95), as_duration, IS_UNKNOWN_AT_0},
    {"useful", "run_useful", AT(run.useful_frac), as_percent, IS_UNKNOWN_AT_0},
    {NULL, "run_interruptions", AT(run.interruptions), as_digits,
     IS_UNKNOWN_AT_0},
    {"run cost", "run_usd", AT(run.usd), fr_format_usd, IS_UNKNOWN_AT_0},
    {"run energy", "run_kwh", AT(run.kwh), fr_format_kwh, IS_UNKNOWN_AT_0},
    {NULL, "goal", AT(goal), as_digits, IS_UNKNOWN_AT_0 | IS_GOAL},
    {NULL, "n_at_once", AT(n_at_once), as_whole, IS_COUNT | IS_UNKNOWN_AT_0},
    {"rounds", "n_rounds", AT(n_rounds), as_whole, IS_COUNT | IS_UNKNOWN_AT_0},
    {"all done", "all_s", AT(all_s), as_duration, IS_UNKNOWN_AT_0},
    {"all cost", "all_usd", AT(all_usd), fr_format_usd, IS_UNKNOWN_AT_0},
    {"all energy", "all_kwh", AT(all_kwh), fr_format_kwh, IS_UNKNOWN_AT_0},
    {"efficiency", "efficiency", AT(efficiency), as_percent, 0},
    {"added", "marginal", AT(marginal), as_percent, 0},
};
enum { N_COLUMNS = FR_LENGTH(columns) };

/* Columns that rows of impossible points have, too. */
static bool is_told(const fr_sweep *sweep, const column *c,
                    const fr_sweep_point *point)
{
    if ((c->flags & IS_GOAL) && sweep->goal[0] == '\0')
        return false;
    return point->is_feasible || (c->flags & IS_INPUT) ||
           ((c->flags & IS_MEMORY) && point->peak_bytes > 0);
}

/* NAN: not known, or not told. */
static double told_value(const fr_sweep *sweep, const column *c,
                         const fr_sweep_point *point)
{
    return is_told(sweep, c, point) ? value_of(c, point) : NAN;
}

/* ---- JSON --------------------------------------------------------------- */

static void put_keys(const fr_sweep *sweep, fr_json_writer *json)
{
    fr_json_open_array(json, "vary");
    for (int k = 0; k < sweep->n_keys; k++) {
        fr_json_begin_object(json);
        fr_json_put_string(json, "key", sweep->keys[k].name);
        fr_json_put_bool(json, "acts", fr_sweep_key_acts(sweep, k));
        fr_json_open_array(json, "values");
        for (size_t i = 0; i < sweep->keys[k].n_values; i++)
            fr_json_string(json, sweep->keys[k].values[i]);
        fr_json_end_array(json);
        fr_json_end_object(json);
    }
    fr_json_end_array(json);
}

static void put_amount(const fr_sweep *sweep, const column *c,
                       const fr_sweep_point *point, fr_json_writer *json)
{
    double value = told_value(sweep, c, point);
    if ((c->flags & IS_COUNT) && isfinite(value))
        fr_json_put_u64(json, c->key, (uint64_t)value);
    else
        fr_json_put_double(json, c->key, value); /* null where unknown */
}

static void put_point(const fr_sweep *sweep, size_t i, fr_json_writer *json)
{
    const fr_sweep_point *point = &sweep->points[i];
    fr_json_begin_object(json);
    fr_json_open_object(json, "at");
    for (int k = 0; k < sweep->n_keys; k++)
        fr_json_put_string(json, sweep->keys[k].name,
                           fr_sweep_text_of(sweep, i, k));
    fr_json_end_object(json);
    fr_json_put_bool(json, "is_feasible", point->is_feasible);
    fr_json_put_bool(json, "is_too_large", point->is_too_large);
    fr_json_put_string(json, "why", point->is_feasible ? NULL : point->why);
    fr_json_put_string(json, "plan",
                       point->plan[0] != '\0' ? point->plan : NULL);
    for (int c = 0; c < N_COLUMNS; c++)
        if (columns[c].key != NULL)
            put_amount(sweep, &columns[c], point, json);
    fr_json_put_string(json, "source", point->source);
    if (sweep->goal[0] != '\0')
        fr_json_put_string(json, "broken",
                           point->broken[0] != '\0' ? point->broken : NULL);
    fr_json_put_bool(json, "is_knee", point->is_knee);
    fr_json_put_bool(json, "is_best", point->is_best);
    fr_json_put_bool(json, "is_pareto", point->is_pareto);
    fr_json_end_object(json);
}

/* Is a run of some tokens told of a point? */
static bool has_runs(const fr_sweep *sweep)
{
    for (size_t i = 0; i < sweep->n_points; i++)
        if (sweep->points[i].run.seconds > 0)
            return true;
    return false;
}

static const fr_field goal_fields[] = {
    {"name", FR_MEMBER(fr_sweep, goal)},
    {"unit", FR_MEMBER(fr_sweep, goal_unit)},
    {"summary", FR_MEMBER(fr_sweep, goal_summary)},
};

static void put_data(const fr_sweep *sweep, fr_json_writer *json)
{
    put_keys(sweep, json);
    fr_json_put_bool(json, "is_fixed", sweep->is_fixed);
    fr_json_put_bool(json, "is_exact", sweep->is_exact);
    fr_json_put_string(json, "scaling", sweep->is_weak ? "weak" : "strong");
    fr_json_put_string(
        json, "curve",
        sweep->i_scale_key >= 0 ? sweep->keys[sweep->i_scale_key].name : NULL);
    fr_json_put_double(json, "knee_frac", sweep->knee_frac);
    if (sweep->n_trials > 0)
        fr_json_put_i64(json, "jobs", sweep->n_trials);
    fr_json_key(json, "goal");
    if (sweep->goal[0] != '\0')
        fr_fields_write(FR_FIELDS(goal_fields), sweep, json);
    else
        fr_json_null(json);
    fr_json_put_string(json, "lr_rule",
                       sweep->lr_rule[0] != '\0' ? sweep->lr_rule : NULL);
    if (has_runs(sweep))
        fr_run_counts_json(&sweep->counts, json);
    else if (sweep->counts.lacks_switches)
        fr_json_put_string(json, "energy_is_without", FR_RUN_ENERGY_IS_WITHOUT);
    fr_json_put_u64(json, "feasible", sweep->n_feasible);
    fr_json_put_u64(json, "too_large", sweep->n_too_large);
    fr_json_open_array(json, "points");
    for (size_t i = 0; i < sweep->n_points; i++)
        put_point(sweep, i, json);
    fr_json_end_array(json);
    fr_json_put_double(json, "wall_s", sweep->wall_s);
}

/* ---- text --------------------------------------------------------------- */

/* Some row has the column. */
static bool is_used(const fr_sweep *sweep, const column *c)
{
    for (size_t i = 0; i < sweep->n_points; i++)
        if (isfinite(told_value(sweep, c, &sweep->points[i])))
            return c->heading != NULL;
    return false;
}

/* A front that all points are on says nothing. */
static bool has_front(const fr_sweep *sweep)
{
    return sweep->n_pareto < sweep->n_priced && sweep->n_trials == 0;
}

static size_t first_on_front(const fr_sweep *sweep)
{
    size_t i = 0;
    while (i + 1 < sweep->n_points && !sweep->points[i].is_pareto)
        i++;
    return i;
}

static void note_of(const fr_sweep *sweep, const fr_sweep_point *point,
                    char *buf, size_t n_buf)
{
    bool is_front = point->is_pareto && has_front(sweep);
    const char *words[] = {point->is_best ? "best" : "",
                           is_front ? "pareto" : "",
                           point->is_knee ? "knee" : "",
                           point->is_feasible ? point->broken : point->why};
    size_t used = 0;
    buf[0] = '\0';
    for (int i = 0; i < 4; i++)
        if (words[i][0] != '\0' && used < n_buf)
            used += (size_t)snprintf(buf + used, n_buf - used, "%s%s",
                                     used > 0 ? ", " : "", words[i]);
}

static void add_row(const fr_sweep *sweep, size_t i, fr_table *table)
{
    const fr_sweep_point *point = &sweep->points[i];
    char cell[FR_FORMAT_MAX], note[360];
    for (int k = 0; k < sweep->n_keys; k++)
        fr_table_text(table, fr_sweep_text_of(sweep, i, k));
    for (int c = 0; c < N_COLUMNS; c++) {
        const double value = told_value(sweep, &columns[c], point);
        fr_table_number(
            table, columns[c].flags & IS_COUNT ? FR_CELL_COUNT : FR_CELL_NUMBER,
            value, "%s",
            isfinite(value) ? columns[c].format(cell, sizeof cell, value) : "");
    }
    note_of(sweep, point, note, sizeof note);
    fr_table_bool(table, point->is_feasible);
    fr_table_bool(table, point->is_knee);
    fr_table_bool(table, point->is_best);
    fr_table_bool(table, point->is_pareto);
    fr_table_text(table, point->plan);
    fr_table_text(table, point->is_feasible ? point->broken : point->why);
    fr_table_text(table, note);
}

static bool has_gap(const fr_sweep *sweep)
{
    for (size_t i = 0; i < sweep->n_points; i++)
        if (sweep->points[i].is_feasible && sweep->points[i].gap > 0)
            return true;
    return false;
}

static void print_legend(const fr_sweep *sweep, fr_document *out)
{
    const char *what = sweep->counted;
    fr_document_printf(out, "\n%s; %zu of %zu points are possible",
                       sweep->is_fixed
                           ? "the plan is kept"
                           : "each point has the best plan that its search "
                             "or a neighbour's found",
                       sweep->n_feasible, sweep->n_points);
    if (!sweep->has_tokens)
        fr_document_printf(out, "; rates count %s", what);
    fr_document_puts(out, "\n");
    if (has_runs(sweep)) {
        fr_document_puts(out, "run: ");
        fr_run_counts_text(&sweep->counts, out);
        fr_document_puts(out, "\n");
    }
    if (sweep->counts.lacks_switches)
        fr_document_puts(out, "energy: without " FR_RUN_ENERGY_IS_WITHOUT "\n");
    for (int k = 0; k < sweep->n_keys; k++)
        if (!fr_sweep_key_acts(sweep, k))
            fr_document_printf(out,
                               "%s has no effect: all values give one answer\n",
                               sweep->keys[k].name);
    if (has_gap(sweep))
        fr_document_printf(out, "gap: no other plan of %s is faster by more\n",
                           sweep->is_exact
                               ? "the space of tune"
                               : "the space that sweep searches (--exact: "
                                 "of tune)");
    if (sweep->i_scale_key >= 0 && sweep->n_feasible > 0)
        fr_document_printf(
            out,
            "efficiency: %s/s per rank against the fewest ranks of the same "
            "curve (%s\nscaling); added: what the ranks beyond those of the "
            "point before do; knee: the next\nones do less than %.0f %%\n",
            what, sweep->is_weak ? "weak" : "strong", 100 * sweep->knee_frac);
    if (has_front(sweep))
        fr_document_puts(out, sweep->points[first_on_front(sweep)].run.usd > 0
                                  ? "pareto: no run is cheaper without being "
                                    "longer\n"
                                  : "pareto: none is cheaper per token without "
                                    "being slower\n");
    if (sweep->n_trials > 0)
        fr_document_printf(
            out,
            "%lld trials, at-once of them at a time, each on its "
            "part of the cluster; the\ncluster is paid for until "
            "the last has ended\n",
            (long long)sweep->n_trials);
    if (sweep->goal[0] != '\0')
        fr_document_printf(out, "best: least %s\n", sweep->goal_summary);
    if (sweep->lr_rule[0] != '\0')
        fr_document_printf(out,
                           "tokens grow with the batch by 1 + B / B_crit, if "
                           "%s\n",
                           sweep->lr_rule);
}

/* A row per point.  Readers do not see columns that would be empty; CSV has
 * all that have a key. */
static void put_table(const fr_sweep *sweep, fr_document *out)
{
    enum { N_LAST = 7 };
    const fr_column last[N_LAST] = {{NULL, "is_feasible"},
                                    {NULL, "is_knee"},
                                    {NULL, "is_best"},
                                    {NULL, "is_pareto"},
                                    {sweep->is_fixed ? NULL : "plan", "plan"},
                                    {NULL, "why"},
                                    {"", NULL}};
    char titles[FR_SWEEP_KEYS + N_COLUMNS][40], at[FR_SWEEP_KEYS][40];
    fr_column all[FR_SWEEP_KEYS + N_COLUMNS + N_LAST];
    size_t n = 0;
    for (int k = 0; k < sweep->n_keys; k++, n++) {
        snprintf(titles[n], sizeof titles[n], ">%s", sweep->keys[k].name);
        snprintf(at[n], sizeof at[n], "at_%s", sweep->keys[k].name);
        all[n] = (fr_column){titles[n], at[n]};
    }
    for (int c = 0; c < N_COLUMNS; c++, n++) {
        const bool is_samples =
            !sweep->has_tokens && (columns[c].flags & IS_RATE);
        if (columns[c].heading != NULL)
            snprintf(titles[n], sizeof titles[n], ">%s%s",
                     is_samples ? sweep->counted : columns[c].heading,
                     is_samples ? "/s" : "");
        all[n] = (fr_column){is_used(sweep, &columns[c]) ? titles[n] : NULL,
                             columns[c].key};
    }
    memcpy(all + n, last, sizeof last);
    fr_table *table = fr_document_records(out, NULL, all, n + N_LAST);
    table->n_keys = sweep->n_keys;
    table->is_main = true;
    for (size_t i = 0; i < sweep->n_points; i++)
        add_row(sweep, i, table);
}

void fr_report_sweep(const fr_sweep *sweep, fr_document *out)
{
    put_data(sweep, &out->data);
    put_table(sweep, out);
    print_legend(sweep, out);
}
