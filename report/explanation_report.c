/* explanation_report.c: sensitivities and single changes. */
#include "report/explanation_report.h"

#include "core/base/units.h"
#include "core/document/fields.h"
#include "report/compression_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- JSON --------------------------------------------------------------- */

static void put_sensitivities(const fr_explanation *e, fr_json_writer *json)
{
    fr_json_open_object(json, "sensitivities");
    for (int i = 0; i < FR_RESOURCE_N; i++) {
        const fr_sensitivity *of = &e->of[i];
        fr_json_key(json, fr_resource_name((fr_resource)i));
        if (!of->is_known) {
            fr_json_null(json);
            continue;
        }
        fr_json_begin_object(json);
        fr_json_put_double(json, "elasticity", of->elasticity);
        fr_json_put_double(json, "share", e->share[i]);
        fr_json_put_double(json, "step_s_less", of->less_s);
        fr_json_put_double(json, "step_s_more", of->more_s);
        fr_json_end_object(json);
    }
    fr_json_end_object(json);
}

static const fr_field change_fields[] = {
    {"change", FR_MEMBER(fr_plan_change, what)},
    FR_FIELD(fr_plan_change, plan),
    FR_FIELD(fr_plan_change, fits),
};

static const fr_field change_time_fields[] = {
    FR_FIELD(fr_plan_change, step_s),
    FR_FIELD(fr_plan_change, diff),
};

static const fr_field change_memory_fields[] = {
    FR_FIELD(fr_plan_change, peak_bytes),
    FR_FIELD(fr_plan_change, short_by_bytes),
    FR_FIELD(fr_plan_change, p_fits),
    FR_FIELD(fr_plan_change, why),
};

/* As a value; null where there is none. */
static void put_change(const fr_plan_change *change, fr_json_writer *json)
{
    if (change == NULL) {
        fr_json_null(json);
        return;
    }
    fr_json_begin_object(json);
    fr_fields_put(FR_FIELDS(change_fields), change, json);
    if (change->step_s > 0)
        fr_fields_put(FR_FIELDS(change_time_fields), change, json);
    fr_fields_put(FR_FIELDS(change_memory_fields), change, json);
    fr_json_end_object(json);
}

static const fr_field slow_fields[] = {
    FR_FIELD(fr_slow_part, name),
    FR_FIELD(fr_slow_part, compute_frac),
    FR_FIELD(fr_slow_part, network_frac),
    {"step_s_without", FR_MEMBER(fr_slow_part, step_s)},
};

/* A gain of less is of the size that jitter drawn otherwise makes. */
#define LEAST_GAIN 0.005

/* The fastest that fits as likely as was asked for, if it is shorter by that;
 * of a plan that does not fit itself in any case. */
static const fr_plan_change *next_of(const fr_explanation *e)
{
    const fr_plan_change *best = NULL;
    for (int i = 0; i < e->n_fitting && best == NULL; i++)
        if (e->changes[i].p_fits >= e->fit_confidence)
            best = &e->changes[i];
    if (best == NULL)
        return NULL;
    return best->diff <= -LEAST_GAIN || !e->prediction.memory.fits ? best
                                                                   : NULL;
}

static void put_data(const fr_explanation *e, fr_json_writer *json)
{
    fr_json_put_string(json, "bound_by", e->bound_by);
    fr_json_put_double(json, "changed_by", e->changed_by);
    put_sensitivities(e, json);
    fr_json_put_double(json, "bubble_share", e->bubble_share);
    fr_json_put_double(json, "fixed_share", e->fixed_share);
    if (e->n_slow > 0) {
        fr_fields_put_array("slow", slow_fields, e->slow, (size_t)e->n_slow,
                            json);
        fr_json_put_double(json, "step_s_without_slow", e->normal_s);
    }
    fr_json_key(json, "next_change");
    put_change(next_of(e), json);
    fr_json_key(json, "with_more_memory");
    put_change(e->i_more_memory >= 0 ? &e->changes[e->i_more_memory] : NULL,
               json);
    fr_json_open_array(json, "changes");
    for (int i = 0; i < e->n_changes; i++)
        put_change(&e->changes[i], json);
    fr_json_end_array(json);
    fr_json_put_i64(json, "illegal_changes", e->n_illegal);
}

/* ---- text --------------------------------------------------------------- */

static void add_share(fr_table *table, const char *title, double share,
                      bool has_elasticity, double elasticity)
{
    fr_table_text(table, title);
    fr_table_share(table, share);
    if (has_elasticity)
        fr_table_number(table, FR_CELL_NUMBER, elasticity, "%+.3f %%",
                        elasticity);
    else
        fr_table_blank(table, 1);
}

/* Kernels of CPUs are measured whole. */
static const char *title_of(const fr_explanation *e, int resource)
{
    bool is_whole = resource == FR_RESOURCE_FLOPS &&
                    !e->of[FR_RESOURCE_MEMORY_RATE].is_known;
    return is_whole ? "speed of kernels"
                    : fr_resource_title((fr_resource)resource);
}

static const char fixed_title[] = "fixed times, such as launches";

/* Resources that no part of the step depends on are not shown. */
static void print_shares(const fr_explanation *e, fr_document *out)
{
    static const char *const headings[] = {"the step follows", ">share",
                                           ">1 % more of it", NULL};
    fr_table *table = fr_document_table(out, headings);
    for (int i = 0; i < FR_RESOURCE_N; i++)
        if (e->of[i].is_known && fabs(e->of[i].elasticity) >= 5e-4)
            add_share(table, title_of(e, i), e->share[i], true,
                      e->of[i].elasticity);
    if (e->bubble_share >= 5e-4)
        add_share(table, "waiting in the pipeline", e->bubble_share, false, 0);
    if (e->fixed_share >= 5e-4)
        add_share(table, fixed_title, e->fixed_share, false, 0);
}

static void print_binding(const fr_explanation *e, fr_document *out)
{
    char used[FR_FORMAT_MAX], all[FR_FORMAT_MAX], title[64];
    const fr_prediction *p = &e->prediction;
    snprintf(title, sizeof title, "%s", e->bound_by);
    for (int i = 0; i < FR_RESOURCE_N; i++)
        if (strcmp(e->bound_by, fr_resource_name((fr_resource)i)) == 0)
            snprintf(title, sizeof title, "%s", title_of(e, i));
    if (strcmp(e->bound_by, "bubble") == 0)
        snprintf(title, sizeof title, "waiting in the pipeline");
    if (strcmp(e->bound_by, "fixed") == 0)
        snprintf(title, sizeof title, "%s", fixed_title);
    fr_document_printf(
        out, "bound by: %s%s: %s of %s\n", title,
        strcmp(title, "memory") == 0 ? "" : "; memory",
        fr_format_bytes(used, sizeof used, (double)p->memory.peak_bytes),
        fr_format_bytes(all, sizeof all, (double)p->memory.capacity_bytes));
}

/* "64.6 ms of every step (14.0 %), 53.86 USD/h" */
static void print_cost_of(const fr_explanation *e, double without_s,
                          fr_document *out)
{
    char lost[FR_FORMAT_MAX];
    double step_s = e->prediction.expected_step_s,
           share = 1 - without_s / step_s;
    if (share < 5e-4) {
        fr_document_puts(out, "costs this plan nothing\n");
        return;
    }
    fr_document_printf(out, "costs %s of every step (%.1f %%)",
                       fr_format_s(lost, sizeof lost, step_s - without_s),
                       100 * share);
    if (e->prediction.cost.usd_per_hour > 0)
        fr_document_printf(out, ", %.2f USD/h",
                           share * e->prediction.cost.usd_per_hour);
    fr_document_puts(out, "\n");
}

/* Shows what the cluster file calls slow, by name, and its cost. */
static void print_slow(const fr_explanation *e, fr_document *out)
{
    for (int i = 0; i < e->n_slow; i++) {
        const fr_slow_part *at = &e->slow[i];
        fr_document_printf(out, "slow: %s", at->name);
        if (at->compute_frac < 1)
            fr_document_printf(out, ", computes at %.3g %%",
                               100 * at->compute_frac);
        if (at->network_frac < 1)
            fr_document_printf(out, ", network at %.3g %%",
                               100 * at->network_frac);
        fr_document_puts(out, ": ");
        print_cost_of(e, at->step_s, out);
    }
    if (e->n_slow_more > 0)
        fr_document_printf(out, "slow: %lld more\n", (long long)e->n_slow_more);
    if (e->n_slow > 1) {
        fr_document_puts(out, "slow: all of that together ");
        print_cost_of(e, e->normal_s, out);
    }
}

static void add_change(fr_table *table, const fr_plan_change *change)
{
    char bytes[FR_FORMAT_MAX];
    fr_table_text(table, change->what);
    fr_table_s(table, change->step_s);
    fr_table_change(table, change->diff);
    fr_table_bytes(table, (double)change->peak_bytes);
    fr_table_likely(table, change->p_fits);
    if (change->fits)
        fr_table_text(table, change->why);
    else
        fr_table_cell(table, "%s too large: %s",
                      fr_format_bytes(bytes, sizeof bytes,
                                      (double)change->short_by_bytes),
                      change->why);
}

/* Makes no difference, in time or memory. */
static bool is_idle(const fr_explanation *e, const fr_plan_change *change)
{
    return fabs(change->diff) < 5e-4 &&
           change->peak_bytes == e->prediction.memory.peak_bytes;
}

static void print_changes(const fr_explanation *e, int n_changes,
                          fr_document *out)
{
    static const char *const headings[] = {
        "one change", ">step", "", ">memory", ">fits", "", NULL};
    if (e->n_changes == 0) {
        fr_document_puts(out, "no single change is legal\n");
        return;
    }
    fr_table *table = fr_document_table(out, headings);
    for (int i = 0; i < e->n_fitting && n_changes > 0; i++) {
        if (is_idle(e, &e->changes[i]))
            continue;
        add_change(table, &e->changes[i]);
        n_changes--;
    }
    if (e->i_more_memory >= 0)
        add_change(table, &e->changes[e->i_more_memory]);
}

static void print_next(const fr_explanation *e, fr_document *out)
{
    const fr_plan_change *next = next_of(e);
    char step[FR_FORMAT_MAX], bytes[FR_FORMAT_MAX];
    if (next != NULL)
        fr_document_printf(out, "next best change: %s: %s (%+.1f %%): %s\n",
                           next->what,
                           fr_format_s(step, sizeof step, next->step_s),
                           100 * next->diff, next->plan);
    else
        fr_document_printf(
            out,
            "no single change that fits with %.4g %% is faster by "
            "%g %%\n",
            100 * e->fit_confidence, 100 * LEAST_GAIN);
    if (e->i_more_memory < 0)
        return;
    const fr_plan_change *large = &e->changes[e->i_more_memory];
    fr_document_printf(
        out,
        "memory holds it back: with %s more, %s would give %s (%+.1f %%)\n",
        fr_format_bytes(bytes, sizeof bytes, (double)large->short_by_bytes),
        large->what, fr_format_s(step, sizeof step, large->step_s),
        100 * large->diff);
}

void fr_report_explanation(const fr_explanation *e, int n_changes,
                           fr_document *out)
{
    put_data(e, &out->data);
    print_shares(e, out);
    print_binding(e, out);
    print_slow(e, out);
    fr_document_puts(out, "\n");
    print_changes(e, n_changes, out);
    print_next(e, out);
    if (e->compression.n > 0)
        fr_document_puts(out, "\n");
    fr_report_compression(&e->compression, out);
}

static const fr_field measurement_fields[] = {
    FR_FIELD(fr_measurement, what),    FR_FIELD(fr_measurement, plan),
    FR_FIELD(fr_measurement, rival),   FR_FIELD(fr_measurement, half_width),
    FR_FIELD(fr_measurement, narrows),
};

void fr_report_measurement(const fr_measurement *next, fr_document *out)
{
    fr_json_key(&out->data, "next_measurement");
    fr_fields_write(FR_FIELDS(measurement_fields), next, &out->data);
    if (next->rival[0] != '\0')
        fr_document_printf(out,
                           "\nhow its step compares with that of '%s' is known "
                           "within %.1f %% (90 %%);\n",
                           next->rival, 100 * next->half_width);
    else
        fr_document_printf(out, "\nits step is known within %.1f %% (90 %%);\n",
                           100 * next->half_width);
    fr_document_printf(out, "one run of %s narrows that by %.0f %%: %s\n",
                       next->what, 100 * next->narrows, next->plan);
}
