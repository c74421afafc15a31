/* tuning_report.c: best, runners-up with their reason, layouts, certificate. */
#include "report/tuning_report.h"

#include <stdio.h>

#include "core/units.h"
#include "report/prediction_report.h"
#include "report/table.h"

typedef struct plan_writer {
    fr_put_plan_fn put;
    void *context;
    fr_json_writer *json;
} plan_writer;

static void put_tuned(const plan_writer *w, const fr_tuned *tuned, bool is_best)
{
    fr_json_begin_object(w->json);
    fr_json_put_string(w->json, "name", tuned->name);
    fr_json_key(w->json, "plan");
    w->put(w->context, tuned->plan, w->json);
    fr_json_key(w->json, "prediction");
    fr_json_begin_object(w->json);
    fr_report_prediction_json(&tuned->prediction, w->json);
    fr_json_end_object(w->json);
    if (!is_best) {
        fr_json_put_string(w->json, "why", tuned->why);
        fr_json_put_bool(w->json, "is_tie", tuned->is_tie);
    }
    fr_json_end_object(w->json);
}

static void put_list(const plan_writer *w, const char *key,
                     const fr_tuned_list *list)
{
    fr_json_key(w->json, key);
    fr_json_begin_array(w->json);
    for (size_t i = 0; i < list->n; i++)
        put_tuned(w, &list->at[i], false);
    fr_json_end_array(w->json);
}

static void put_space(const fr_tuning *t, fr_json_writer *json)
{
    fr_json_key(json, "space");
    fr_json_begin_object(json);
    fr_json_put_u64(json, "plans", t->space.plans);
    fr_json_put_u64(json, "infeasible_memory", t->space.infeasible_memory);
    fr_json_put_u64(json, "pruned_by_bound", t->space.pruned_by_bound);
    fr_json_put_u64(json, "simulated", t->space.simulated);
    fr_json_put_u64(json, "illegal", t->space.illegal);
    fr_json_key(json, "left_out");
    fr_json_begin_array(json);
    for (size_t i = 0; i < t->n_reasons; i++) {
        fr_json_begin_object(json);
        fr_json_put_string(json, "why", t->reasons[i].text);
        fr_json_put_u64(json, "n", t->reasons[i].n);
        fr_json_end_object(json);
    }
    fr_json_end_array(json);
    fr_json_end_object(json);
}

void fr_report_tuning_json(const fr_tuning *t, fr_put_plan_fn put_plan,
                           void *context, fr_json_writer *json)
{
    plan_writer w = {put_plan, context, json};
    fr_json_key(json, "best");
    if (t->best.plan != NULL)
        put_tuned(&w, &t->best, true);
    else
        fr_json_null(json);
    put_list(&w, "alternatives", &t->alternatives);
    put_list(&w, "layouts", &t->layouts);
    fr_json_key(json, "baseline");
    if (t->baseline.plan != NULL)
        put_tuned(&w, &t->baseline, false);
    else
        fr_json_null(json);
    put_list(&w, "pareto", &t->pareto);
    if (t->nearest.plan != NULL) {
        fr_json_key(json, "nearest");
        fr_json_begin_object(json);
        fr_json_put_string(json, "name", t->nearest.name);
        fr_json_key(json, "plan");
        put_plan(context, t->nearest.plan, json);
        fr_json_put_u64(json, "short_by_bytes", t->short_by_bytes);
        fr_json_end_object(json);
    }
    put_space(t, json);
    fr_json_key(json, "certificate");
    fr_json_begin_object(json);
    fr_json_put_bool(json, "optimal_in_space", t->certificate.optimal_in_space);
    fr_json_put_double(json, "bound_s", t->certificate.bound_s);
    fr_json_put_double(json, "gap", t->certificate.gap);
    fr_json_end_object(json);
    fr_json_put_double(json, "wall_s", t->wall_s);
}

static void add_row(fr_table *table, const char *label, const fr_tuned *tuned,
                    const fr_tuned *best)
{
    char step[FR_FORMAT_MAX], bytes[FR_FORMAT_MAX];
    const fr_prediction *p = &tuned->prediction;
    fr_table_cell(table, "%s", label);
    fr_table_cell(table, "%s", tuned->name);
    fr_table_cell(table, "%s", fr_format_s(step, sizeof step, p->step_s));
    if (tuned == best || best->prediction.step_s <= 0)
        fr_table_cell(table, "%s", "");
    else
        fr_table_cell(table, "%+.1f %%",
                      100 * (p->step_s / best->prediction.step_s - 1));
    fr_table_cell(
        table, "%s",
        fr_format_bytes(bytes, sizeof bytes, (double)p->memory.peak_bytes));
    if (tuned == best)
        fr_table_cell(table, "%s", "");
    else
        fr_table_cell(table, "%s%s%s", tuned->is_tie ? "tie" : "",
                      tuned->is_tie && tuned->why[0] != '\0' ? ": " : "",
                      tuned->why);
}

static fr_status print_losers(const fr_tuning *t, fr_buffer *out, fr_err *err)
{
    static const char *const headings[] = {
        "", "plan", ">step", "", ">memory", "why it loses", NULL};
    fr_table table;
    char label[24];
    fr_table_init(&table, headings);
    add_row(&table, "best", &t->best, &t->best);
    for (size_t i = 0; i < t->alternatives.n; i++) {
        snprintf(label, sizeof label, "%zu", i + 2);
        add_row(&table, label, &t->alternatives.at[i], &t->best);
    }
    if (t->baseline.plan != NULL)
        add_row(&table, "1 process", &t->baseline, &t->best);
    fr_status status = fr_table_print(&table, 0, out, err);
    fr_table_release(&table);
    return status;
}

static fr_status print_layouts(const fr_tuning *t, fr_buffer *out, fr_err *err)
{
    static const char *const headings[] = {
        "",        "best of each layout", ">step", "",
        ">memory", "why it loses",        NULL};
    fr_table table;
    fr_table_init(&table, headings);
    for (size_t i = 1; i < t->layouts.n; i++)
        add_row(&table, "", &t->layouts.at[i], &t->best);
    fr_buffer_putc(out, '\n');
    fr_status status = fr_table_print(&table, 0, out, err);
    fr_table_release(&table);
    return status;
}

static void print_space(const fr_tuning *t, fr_buffer *out)
{
    char time[FR_FORMAT_MAX];
    fr_buffer_printf(out,
                     "%llu plans: %llu simulated, %llu do not fit in "
                     "memory, %llu pruned; %s\n",
                     (unsigned long long)t->space.plans,
                     (unsigned long long)t->space.simulated,
                     (unsigned long long)t->space.infeasible_memory,
                     (unsigned long long)t->space.pruned_by_bound,
                     fr_format_s(time, sizeof time, t->wall_s));
    if (t->certificate.optimal_in_space)
        fr_buffer_puts(out, "no plan of this space is predicted to be "
                            "faster than the best\n");
    else if (t->best.plan != NULL)
        fr_buffer_printf(
            out,
            "no plan of this space is predicted to be faster than %s: the "
            "best is within %.1f %% of it (--exact goes on)\n",
            fr_format_s(time, sizeof time, t->certificate.bound_s),
            100 * t->certificate.gap);
    for (size_t i = 0; i < t->n_reasons; i++)
        fr_buffer_printf(out, "left out %llu: %s\n",
                         (unsigned long long)t->reasons[i].n,
                         t->reasons[i].text);
}

fr_status fr_report_tuning_text(const fr_tuning *t, fr_buffer *out, fr_err *err)
{
    if (t->best.plan == NULL) {
        char bytes[FR_FORMAT_MAX];
        if (t->nearest.plan != NULL)
            fr_buffer_printf(out, "nothing fits; nearest: %s, %s too large\n",
                             t->nearest.name,
                             fr_format_bytes(bytes, sizeof bytes,
                                             (double)t->short_by_bytes));
        print_space(t, out);
        return fr_buffer_check(out, err);
    }
    FR_TRY(print_losers(t, out, err));
    if (t->layouts.n > 1)
        FR_TRY(print_layouts(t, out, err));
    fr_buffer_puts(
        out, "\ntie: slower by less than 5 % and than the model's error\n");
    print_space(t, out);
    return fr_buffer_check(out, err);
}
