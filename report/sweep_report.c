/* sweep_report.c: columns are a table: heading, unit, how it is written. */
#include "report/sweep_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/units.h"
#include "core/document/fields.h"
#include "report/table.h"

typedef double (*value_fn)(const fr_sweep_point *point);
typedef char *(*format_fn)(char *out, size_t n, double value);

typedef struct column {
    const char *heading; /* of the table; NULL: JSON and CSV only */
    const char *key;     /* of JSON and CSV */
    value_fn value;      /* NAN: not known */
    format_fn format;
    bool is_count;
} column;

/* ---- values ---------------------------------------------------------------
 */

#define VALUE(name, expression)                                                \
    static double name(const fr_sweep_point *p)                                \
    {                                                                          \
        return expression;                                                     \
    }

static double known(double amount)
{
    return amount > 0 ? amount : NAN;
}

VALUE(n_nodes, (double)p->n_nodes)
VALUE(n_ranks, (double)p->n_ranks)
VALUE(global_batch, (double)p->global_batch)
VALUE(seq, (double)p->seq)
VALUE(step_s, p->step_s)
VALUE(step_s_p5, p->step_s_p5)
VALUE(step_s_p95, p->step_s_p95)
VALUE(half_width, (p->step_s_p95 - p->step_s_p5) / 2 / p->step_s)
VALUE(tokens_per_s, p->tokens_per_s)
VALUE(per_rank, p->tokens_per_s_per_rank)
VALUE(mfu, known(p->mfu))
VALUE(peak_bytes, (double)p->peak_bytes)
VALUE(capacity_bytes, known((double)p->capacity_bytes))
VALUE(usd_per_h, known(p->usd_per_h))
VALUE(usd_per_1e9, known(p->usd_per_1e9_tokens))
VALUE(kwh_per_1e9, known(p->kwh_per_1e9_tokens))
VALUE(run_s, known(p->run_s))
VALUE(run_usd, known(p->run_usd))
VALUE(run_kwh, known(p->run_kwh))
VALUE(goal, isfinite(p->goal) && p->goal > 0 ? p->goal : NAN)
VALUE(n_at_once, known((double)p->n_at_once))
VALUE(n_rounds, known((double)p->n_rounds))
VALUE(all_s, known(p->all_s))
VALUE(all_usd, known(p->all_usd))
VALUE(all_kwh, known(p->all_kwh))
VALUE(efficiency, p->efficiency)
VALUE(gap, p->gap)
VALUE(n_plans, known((double)p->n_plans))
VALUE(n_simulated, known((double)p->n_simulated))
VALUE(marginal, p->marginal)

/* ---- formats --------------------------------------------------------------
 */

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

static char *as_duration(char *out, size_t n, double seconds)
{
    if (seconds < 86400)
        return fr_format_s(out, n, seconds);
    snprintf(out, n, "%.3g d", seconds / 86400);
    return out;
}

static const column columns[] = {
    {NULL, "nodes", n_nodes, as_whole, true},
    {"ranks", "ranks", n_ranks, as_whole, true},
    {NULL, "global_batch", global_batch, as_whole, true},
    {NULL, "seq", seq, as_whole, true},
    {"step", "step_s", step_s, fr_format_s, false},
    {"+-", NULL, half_width, as_margin, false},
    {"gap", "gap", gap, as_gap, false},
    {NULL, "plans", n_plans, as_whole, true},
    {NULL, "simulated", n_simulated, as_whole, true},
    {NULL, "step_s_p5", step_s_p5, fr_format_s, false},
    {NULL, "step_s_p95", step_s_p95, fr_format_s, false},
    {"tokens/s", "tokens_per_s", tokens_per_s, as_digits, false},
    {"per rank", "tokens_per_s_per_rank", per_rank, as_digits, false},
    {"MFU", "mfu", mfu, as_percent, false},
    {"memory", "peak_bytes", peak_bytes, fr_format_bytes, true},
    {NULL, "capacity_bytes", capacity_bytes, fr_format_bytes, true},
    {NULL, "usd_per_hour", usd_per_h, as_digits, false},
    {"USD/1e9", "usd_per_1e9_tokens", usd_per_1e9, as_digits, false},
    {"kWh/1e9", "kwh_per_1e9_tokens", kwh_per_1e9, as_digits, false},
    {"run", "run_s", run_s, as_duration, false},
    {"USD", "run_usd", run_usd, as_digits, false},
    {"kWh", "run_kwh", run_kwh, as_digits, false},
    {NULL, "goal", goal, as_digits, false},
    {NULL, "n_at_once", n_at_once, as_whole, true},
    {"rounds", "n_rounds", n_rounds, as_whole, true},
    {"all done", "all_s", all_s, as_duration, false},
    {"all USD", "all_usd", all_usd, as_digits, false},
    {"all kWh", "all_kwh", all_kwh, as_digits, false},
    {"efficiency", "efficiency", efficiency, as_percent, false},
    {"added", "marginal", marginal, as_percent, false},
};
enum { N_COLUMNS = FR_LENGTH(columns) };

/* What is told of rows that cannot be. */
static bool is_told(const fr_sweep *sweep, const column *c,
                    const fr_sweep_point *point)
{
    bool is_input =
        c->value == n_ranks || c->value == global_batch || c->value == seq;
    bool is_memory = c->value == peak_bytes || c->value == capacity_bytes;
    if (c->value == goal && sweep->goal[0] == '\0')
        return false;
    return point->is_feasible || is_input ||
           (is_memory && point->peak_bytes > 0);
}

/* ---- JSON -----------------------------------------------------------------
 */

static void put_keys(const fr_sweep *sweep, fr_json_writer *json)
{
    fr_json_open_array(json, "vary");
    for (int k = 0; k < sweep->n_keys; k++) {
        fr_json_begin_object(json);
        fr_json_put_string(json, "key", sweep->keys[k].name);
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
    double value = is_told(sweep, c, point) ? c->value(point) : NAN;
    if (c->is_count && isfinite(value))
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

static const fr_field goal_fields[] = {
    {"name", FR_MEMBER(fr_sweep, goal)},
    {"unit", FR_MEMBER(fr_sweep, goal_unit)},
    {"summary", FR_MEMBER(fr_sweep, goal_summary)},
};

void fr_report_sweep_json(const fr_sweep *sweep, fr_json_writer *json)
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
    fr_json_put_u64(json, "feasible", sweep->n_feasible);
    fr_json_open_array(json, "points");
    for (size_t i = 0; i < sweep->n_points; i++)
        put_point(sweep, i, json);
    fr_json_end_array(json);
    fr_json_put_double(json, "wall_s", sweep->wall_s);
}

/* ---- text -----------------------------------------------------------------
 */

/* Of all rows some have it. */
static bool is_used(const fr_sweep *sweep, const column *c)
{
    for (size_t i = 0; i < sweep->n_points; i++)
        if (is_told(sweep, c, &sweep->points[i]) &&
            isfinite(c->value(&sweep->points[i])))
            return c->heading != NULL;
    return false;
}

/* A front that all points are on says nothing. */
static bool has_front(const fr_sweep *sweep)
{
    return sweep->n_pareto < sweep->n_priced && sweep->n_trials == 0;
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

static void add_row(const fr_sweep *sweep, size_t i, const bool *has_column,
                    fr_table *table)
{
    const fr_sweep_point *point = &sweep->points[i];
    char cell[FR_FORMAT_MAX], note[360];
    for (int k = 0; k < sweep->n_keys; k++)
        fr_table_text(table, fr_sweep_text_of(sweep, i, k));
    for (int c = 0; c < N_COLUMNS; c++) {
        if (!has_column[c])
            continue;
        double value =
            is_told(sweep, &columns[c], point) ? columns[c].value(point) : NAN;
        fr_table_text(table, isfinite(value)
                                 ? columns[c].format(cell, sizeof cell, value)
                                 : "");
    }
    note_of(sweep, point, note, sizeof note);
    if (!sweep->is_fixed)
        fr_table_text(table, point->plan);
    fr_table_text(table, note);
}

static bool has_gap(const fr_sweep *sweep)
{
    for (size_t i = 0; i < sweep->n_points; i++)
        if (sweep->points[i].is_feasible && sweep->points[i].gap > 0)
            return true;
    return false;
}

static void print_legend(const fr_sweep *sweep, fr_buffer *out)
{
    const char *what = sweep->has_tokens ? "tokens" : "samples";
    fr_buffer_printf(out, "\n%s; %zu of %zu points are possible",
                     sweep->is_fixed ? "the plan is kept"
                                     : "each point has its best plan",
                     sweep->n_feasible, sweep->n_points);
    if (!sweep->has_tokens)
        fr_buffer_printf(out, "; rates count %s", what);
    fr_buffer_putc(out, '\n');
    if (has_gap(sweep))
        fr_buffer_printf(out, "gap: no other plan of %s is faster by more\n",
                         sweep->is_exact
                             ? "the space of tune"
                             : "those that sweep looks at (--exact: "
                               "of tune)");
    if (sweep->i_scale_key >= 0 && sweep->n_feasible > 0)
        fr_buffer_printf(
            out,
            "efficiency: %s/s per rank against the fewest ranks of the same "
            "curve (%s\nscaling); added: what the ranks beyond those of the "
            "point before do; knee: the next\nones do less than %.0f %%\n",
            what, sweep->is_weak ? "weak" : "strong", 100 * sweep->knee_frac);
    if (has_front(sweep))
        fr_buffer_puts(out, "pareto: none is cheaper per token without being "
                            "slower\n");
    if (sweep->n_trials > 0)
        fr_buffer_printf(out,
                         "%lld trials, at-once of them at a time, each on its "
                         "part of the cluster; the\ncluster is paid for until "
                         "the last has ended\n",
                         (long long)sweep->n_trials);
    if (sweep->goal[0] != '\0')
        fr_buffer_printf(out, "best: least %s\n", sweep->goal_summary);
    if (sweep->lr_rule[0] != '\0')
        fr_buffer_printf(out,
                         "tokens grow with the batch by 1 + B / B_crit, if "
                         "%s\n",
                         sweep->lr_rule);
}

fr_status fr_report_sweep_text(const fr_sweep *sweep, fr_buffer *out,
                               fr_err *err)
{
    char titles[FR_SWEEP_KEYS + N_COLUMNS][40];
    const char *headings[FR_SWEEP_KEYS + N_COLUMNS + 3];
    bool has_column[N_COLUMNS];
    int n = 0;
    for (int k = 0; k < sweep->n_keys; k++, n++)
        snprintf(titles[n], sizeof titles[n], ">%s", sweep->keys[k].name);
    for (int c = 0; c < N_COLUMNS; c++) {
        has_column[c] = is_used(sweep, &columns[c]);
        if (!has_column[c])
            continue;
        bool is_samples =
            !sweep->has_tokens && columns[c].value == tokens_per_s;
        snprintf(titles[n], sizeof titles[n], ">%s",
                 is_samples ? "samples/s" : columns[c].heading);
        n++;
    }
    for (int i = 0; i < n; i++)
        headings[i] = titles[i];
    if (!sweep->is_fixed)
        headings[n++] = "plan";
    headings[n++] = "";
    headings[n] = NULL;
    fr_table table;
    fr_table_init(&table, headings);
    for (size_t i = 0; i < sweep->n_points; i++)
        add_row(sweep, i, has_column, &table);
    fr_status status = fr_table_finish(&table, out, err);
    if (status == FR_OK)
        print_legend(sweep, out);
    return status;
}

/* ---- CSV ------------------------------------------------------------------
 */

static void put_field(fr_buffer *out, const char *text)
{
    if (strpbrk(text, ",\"\n") == NULL) {
        fr_buffer_puts(out, text);
        return;
    }
    fr_buffer_putc(out, '"');
    for (; *text != '\0'; text++) {
        if (*text == '"')
            fr_buffer_putc(out, '"');
        fr_buffer_putc(out, *text);
    }
    fr_buffer_putc(out, '"');
}

static void put_line(const fr_sweep *sweep, size_t i, fr_buffer *out)
{
    const fr_sweep_point *point = &sweep->points[i];
    for (int k = 0; k < sweep->n_keys; k++) {
        put_field(out, fr_sweep_text_of(sweep, i, k));
        fr_buffer_putc(out, ',');
    }
    for (int c = 0; c < N_COLUMNS; c++) {
        double value =
            is_told(sweep, &columns[c], point) ? columns[c].value(point) : NAN;
        if (columns[c].key == NULL)
            continue;
        if (isfinite(value))
            fr_buffer_printf(out, columns[c].is_count ? "%.0f" : "%.9g", value);
        fr_buffer_putc(out, ',');
    }
    fr_buffer_printf(out, "%d,%d,%d,%d,", point->is_feasible, point->is_knee,
                     point->is_best, point->is_pareto);
    put_field(out, point->plan);
    fr_buffer_putc(out, ',');
    put_field(out, point->is_feasible ? point->broken : point->why);
    fr_buffer_putc(out, '\n');
}

fr_status fr_report_sweep_csv(const fr_sweep *sweep, fr_buffer *out,
                              fr_err *err)
{
    for (int k = 0; k < sweep->n_keys; k++)
        fr_buffer_printf(out, "at_%s,", sweep->keys[k].name);
    for (int c = 0; c < N_COLUMNS; c++)
        if (columns[c].key != NULL)
            fr_buffer_printf(out, "%s,", columns[c].key);
    fr_buffer_puts(out, "is_feasible,is_knee,is_best,is_pareto,plan,why\n");
    for (size_t i = 0; i < sweep->n_points; i++)
        put_line(sweep, i, out);
    return fr_buffer_check(out, err);
}
