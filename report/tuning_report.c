/* tuning_report.c: best, runners-up with their reason, layouts, certificate. */
#include "report/tuning_report.h"

#include "core/base/units.h"
#include "frameworks/framework.h"
#include "report/run_length_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

double fr_tuning_shown_value(const fr_tuning_goal *goal, double value)
{
    return goal->is_whole ? floor(value) : value;
}

/* ---- text ---------------------------------------------------------------- */

typedef struct goal_unit {
    const char *unit, *heading;
    char *(*format)(char *out, size_t n, double value);
    fr_cell_kind kind;
} goal_unit;

/* Returns the heading and the format of the goal's amounts; NULL: the unit
 * alone.
 */
static const goal_unit *goal_unit_of(const fr_tuning *t)
{
    static const goal_unit units[] = {
        {"s", "run", fr_format_s, FR_CELL_S},
        {"USD", "cost", fr_format_usd, FR_CELL_USD},
        {"kWh", "energy", fr_format_kwh, FR_CELL_KWH}};
    for (size_t i = 0; i < FR_LENGTH(units); i++)
        if (strcmp(t->goal.unit, units[i].unit) == 0)
            return &units[i];
    return NULL;
}

static char *format_goal(const fr_tuning *t, double value, char *out, size_t n)
{
    const goal_unit *unit = goal_unit_of(t);
    if (unit != NULL)
        return unit->format(out, n, value);
    if (t->goal.is_whole)
        snprintf(out, n, "%.0f", fr_tuning_shown_value(&t->goal, value));
    else
        snprintf(out, n, "%.4g %s", value, t->goal.unit);
    return out;
}

static void value_cell(const fr_tuning *t, double value, fr_table *table)
{
    char text[FR_FORMAT_MAX];
    const goal_unit *unit = goal_unit_of(t);
    fr_table_number(
        table, unit != NULL ? unit->kind : FR_CELL_NUMBER, value, "%s",
        isfinite(value) ? format_goal(t, value, text, sizeof text) : "-");
}

/* Adds the difference of the value from the best: "+3.1 %". */
static void more_cell(const fr_tuning *t, const fr_tuned *tuned,
                      fr_table *table)
{
    const double best = fr_tuning_shown_value(&t->goal, t->best.value);
    const double more =
        fr_tuning_shown_value(&t->goal, tuned->value) / best - 1;
    if (tuned == &t->best || !(best > 0) || !isfinite(tuned->value))
        fr_table_blank(table, 1);
    else
        fr_table_change(table, more);
}

/* The plan, and where the question does not say who can execute it, the first
 * who can and how many more. */
static void plan_cell(const fr_tuning *t, const fr_tuned *tuned,
                      fr_table *table)
{
    enum { SHOWN = 2 };
    char who[96] = "nobody", more[16] = "";
    int n = 0;
    size_t used = 0;
    if (!t->is_for_any) {
        fr_table_text(table, tuned->name);
        return;
    }
    for (int i = 0; fr_target_executor_name(i) != NULL; i++)
        if ((tuned->run_by >> i & 1) != 0 && n++ < SHOWN)
            used +=
                (size_t)snprintf(who + used, sizeof who - used, "%s%s",
                                 n > 1 ? ", " : "", fr_target_executor_name(i));
    if (n > SHOWN)
        snprintf(more, sizeof more, " +%d", n - SHOWN);
    fr_table_cell(table, "%s [%s%s]", tuned->name, who, more);
}

static void add_row(const fr_tuning *t, const char *label,
                    const fr_tuned *tuned, const char *why, fr_table *table)
{
    const fr_prediction *p = &tuned->prediction;
    bool has_both = tuned->is_tie && why[0] != '\0';
    fr_table_text(table, label);
    plan_cell(t, tuned, table);
    if (t->goal.lr_rule[0] != '\0')
        fr_table_count(table, tuned->global_batch);
    if (!t->goal.is_step)
        value_cell(t, tuned->value, table);
    else
        fr_table_s(table, p->expected_step_s);
    more_cell(t, tuned, table);
    if (!t->goal.is_step)
        fr_table_s(table, p->expected_step_s);
    fr_table_bytes(table, (double)p->memory.peak_bytes);
    fr_table_likely(table, p->memory.p_fits);
    fr_table_cell(table, "%s%s%s", tuned->is_tie ? "tie" : "",
                  has_both ? ": " : "", why);
}

static void empty_row(const fr_tuning *t, const char *label, const char *why,
                      fr_table *table)
{
    int n_between =
        5 + (t->goal.is_step ? 0 : 1) + (t->goal.lr_rule[0] != '\0' ? 1 : 0);
    fr_table_text(table, label);
    fr_table_blank(table, n_between);
    fr_table_text(table, why);
}

/* "", plan, batch where it is chosen, the value, against the best, the step
 * where it is not the value, memory, why. */
static fr_table *begin_table(const fr_tuning *t, const char *what,
                             fr_document *out)
{
    char value[24];
    fr_column columns[9];
    size_t n = 0;
    const goal_unit *unit = goal_unit_of(t);
    snprintf(value, sizeof value, ">%s",
             unit != NULL ? unit->heading : t->goal.unit);
    columns[n++] = (fr_column){"", "which"};
    columns[n++] = (fr_column){what, "plan"};
    if (t->goal.lr_rule[0] != '\0')
        columns[n++] = (fr_column){">batch", "global_batch"};
    if (!t->goal.is_step)
        columns[n++] = (fr_column){value, "value"};
    else
        columns[n++] = (fr_column){">step", "step_s"};
    columns[n++] = (fr_column){"", "more"};
    if (!t->goal.is_step)
        columns[n++] = (fr_column){">step", "step_s"};
    columns[n++] = (fr_column){">memory", "peak_bytes"};
    columns[n++] = (fr_column){">fits", "p_fits"};
    columns[n++] = (fr_column){"why it loses", "why"};
    return fr_document_records(out, NULL, columns, n);
}

static void add_baselines(const fr_tuning *t, fr_table *table)
{
    for (int i = 0; i < FR_BASELINE_N; i++) {
        const fr_tuning_baseline *b = &t->baselines[i];
        const char *label = fr_baseline_name((fr_baseline)i);
        const char *why = b->why_not[0] != '\0' ? b->why_not : b->tuned.why;
        if (b->tuned.plan != NULL)
            add_row(t, label, &b->tuned, why, table);
        else if (b->why_not[0] != '\0')
            empty_row(t, label, why, table);
    }
}

static void print_losers(const fr_tuning *t, fr_document *out)
{
    char label[24];
    fr_table *table = begin_table(t, "plan", out);
    table->is_main = true;
    add_row(t, "best", &t->best, "", table);
    for (size_t i = 0; i < t->alternatives.n; i++) {
        const fr_tuned *other = &t->alternatives.at[i];
        snprintf(label, sizeof label, "%zu", i + 2);
        add_row(t, label, other, other->why, table);
    }
    add_baselines(t, table);
}

static fr_run_length run_of(const fr_tuning *t, const fr_tuned *tuned)
{
    return (fr_run_length){.outlook = tuned->run,
                           .n_nodes = tuned->n_nodes,
                           .n_devices = tuned->n_ranks,
                           .counts = t->counts};
}

static void run_row(const fr_tuning *t, const char *label,
                    const fr_tuned *tuned, fr_table *table)
{
    const fr_run_length run = run_of(t, tuned);
    fr_run_length_row(label, &run, table);
}

/* Shows the whole runs, in the order of the first table. */
static void print_runs(const fr_tuning *t, fr_document *out)
{
    char label[24];
    if (!(t->best.run.seconds > 0))
        return;
    fr_document_puts(out, "\n");
    fr_table *table = fr_run_length_begin(&t->counts, out);
    run_row(t, "best", &t->best, table);
    for (size_t i = 0; i < t->alternatives.n; i++) {
        snprintf(label, sizeof label, "%zu", i + 2);
        run_row(t, label, &t->alternatives.at[i], table);
    }
    for (int i = 0; i < FR_BASELINE_N; i++)
        if (t->baselines[i].tuned.plan != NULL)
            run_row(t, fr_baseline_name((fr_baseline)i), &t->baselines[i].tuned,
                    table);
    const fr_run_length best = run_of(t, &t->best);
    fr_run_way_text("best", &best, out);
    fr_run_most_text("best", &best, out);
    fr_run_length_legend(&t->counts, out);
}

static void print_layouts(const fr_tuning *t, fr_document *out)
{
    if (t->layouts.n <= 1)
        return;
    fr_document_puts(out, "\n");
    fr_table *table = begin_table(t, "best of each layout", out);
    for (size_t i = 1; i < t->layouts.n; i++)
        add_row(t, "", &t->layouts.at[i], t->layouts.at[i].why, table);
}

static void print_certificate(const fr_tuning *t, fr_document *out)
{
    char text[FR_FORMAT_MAX];
    const char *better = t->goal.is_step ? "faster" : "better";
    const double bound = t->certificate.bound;
    if (t->best.plan == NULL)
        return;
    if (t->certificate.optimal_in_space) {
        fr_document_printf(
            out, "Proven: none of the %s plans is predicted to be %s.\n",
            fr_format_u64(text, sizeof text, t->space.plans), better);
        return;
    }
    if (bound == 0) {
        fr_document_printf(
            out,
            "Not proven: a plan that was not simulated may be %s "
            "(--exact continues).\n",
            better);
        return;
    }
    format_goal(t, bound, text, sizeof text);
    fr_document_printf(
        out,
        "Proven: no plan is predicted to be %s than %s; the best is "
        "within %.1f %% of that (--exact continues).\n",
        better, text, 100 * t->certificate.gap);
}

static void measured_row(const fr_tuning_measured *m, fr_table *table)
{
    char text[FR_FORMAT_MAX], other[FR_FORMAT_MAX];
    fr_table_text(table, m->is_chosen ? "best" : "");
    fr_table_text(table, m->name);
    fr_table_s(table, m->predicted_s);
    if (m->why_not[0] != '\0') {
        fr_table_blank(table, 3);
        fr_table_text(table, m->why_not);
        return;
    }
    fr_table_s(table, m->median_s);
    fr_table_cell(table, "%s to %s", fr_format_s(text, sizeof text, m->p5_s),
                  fr_format_s(other, sizeof other, m->p95_s));
    fr_table_change(table, m->predicted_s / m->median_s - 1);
    fr_table_blank(table, 1);
}

static void print_measured(const fr_tuning *t, fr_document *out)
{
    static const char *const headings[] = {
        "",           "measured", ">predicted", ">median",
        ">5 to 95 %", ">error",   "",           NULL};
    if (t->n_measured == 0)
        return;
    fr_document_puts(out, "\n");
    fr_table *table = fr_document_table(out, headings);
    for (size_t i = 0; i < t->n_measured; i++)
        measured_row(&t->measured[i], table);
}

/* The answer in a few lines under its tables. */
static void print_conclusions(const fr_tuning *t, fr_document *out)
{
    if (!t->goal.is_step)
        fr_document_printf(out, "goal: %s (%s)\n", t->goal.name,
                           t->goal.summary);
    if (t->goal.lr_rule[0] != '\0')
        fr_document_printf(out, "learning rate: %s\n", t->goal.lr_rule);
    if (t->advice[0] != '\0')
        fr_document_printf(out, "%s\n", t->advice);
    if (t->robust.plan != NULL)
        fr_document_printf(out, "more robust, a tie (%+.1f %%; %s): %s\n",
                           100 * (t->robust.value / t->best.value - 1),
                           t->robust.why, t->robust.name);
    if (t->correction.n > 0)
        fr_document_printf(out,
                           "steps of this model measured here: %zu, %.2f times "
                           "the predicted (%.2f to %.2f)\n",
                           t->correction.n, t->correction.median,
                           t->correction.least, t->correction.most);
}

static void print_space(const fr_tuning *t, fr_document *out)
{
    char time[FR_FORMAT_MAX];
    char plans[FR_FORMAT_MAX], large[FR_FORMAT_MAX], rest[FR_FORMAT_MAX];
    fr_document_printf(
        out, "%s plans: %llu simulated, %s do not fit in memory, %s %s; %s\n",
        fr_format_u64(plans, sizeof plans, t->space.plans),
        (unsigned long long)t->space.simulated,
        fr_format_u64(large, sizeof large, t->space.infeasible_memory),
        fr_format_u64(rest, sizeof rest, t->space.pruned_by_bound),
        t->certificate.bound > 0 ? "ruled out by bounds" : "not looked at",
        fr_format_s(time, sizeof time, t->wall_s));
    print_certificate(t, out);
    const fr_prediction *best = &t->best.prediction;
    if (best->expected_step_s > best->step_s)
        fr_document_printf(
            out,
            "Steps and bounds include the %.1f %% that published "
            "runs typically take beyond the modelled parts.\n",
            100 * (best->expected_step_s / best->step_s - 1));
    for (size_t i = 0; i < t->n_reasons; i++)
        fr_document_printf(out, "left out %s plan%s: %s\n",
                           fr_format_u64(time, sizeof time, t->reasons[i].n),
                           t->reasons[i].n == 1 ? "" : "s", t->reasons[i].text);
}

/* " with 90 %", or nothing; returns buf. */
static char *with_confidence(const fr_tuning *t, char *buf, size_t n_buf)
{
    buf[0] = '\0';
    if (t->fit_confidence > 0)
        snprintf(buf, n_buf, " with %.4g %%", 100 * t->fit_confidence);
    return buf;
}

static void print_nothing(const fr_tuning *t, fr_document *out)
{
    char bytes[FR_FORMAT_MAX], confidence[24];
    const char *which =
        isinf(t->certificate.bound) ? "" : " that was looked at";
    if (t->broken[0] != '\0')
        fr_document_printf(out, "no plan%s keeps the limits; nearest: %s: %s\n",
                           which, t->nearest.name, t->broken);
    else if (t->nearest.plan != NULL)
        fr_document_printf(
            out, "nothing%s fits%s; nearest: %s, %s too large\n", which,
            with_confidence(t, confidence, sizeof confidence), t->nearest.name,
            fr_format_bytes(bytes, sizeof bytes, (double)t->short_by_bytes));
}

void fr_report_tuning(const fr_tuning *t, fr_document *out)
{
    fr_report_tuning_json(t, &out->data);
    if (t->best.plan == NULL) {
        print_nothing(t, out);
        print_space(t, out);
        return;
    }
    print_losers(t, out);
    print_runs(t, out);
    print_layouts(t, out);
    print_measured(t, out);
    fr_document_puts(
        out, "\ntie: worse by less than the model's error and 5 % of a step; "
             "the more robust first\n");
    if (t->is_for_any)
        fr_document_puts(out, "[...]: these can execute the plan (--for NAME "
                              "restricts the search to one)\n");
    print_conclusions(t, out);
    print_space(t, out);
}
