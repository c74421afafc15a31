/* validation_report.c: errors by source, worst rows, reasons. */
#include "report/validation/validation_report.h"

#include "core/document/fields.h"
#include "report/prediction_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- JSON ---------------------------------------------------------------- */

static const fr_field source_fields[] = {
    {"cases", FR_MEMBER(fr_validation_source, n_rows)},
    {"scored", FR_MEMBER(fr_validation_source, step.n)},
    {"mape", FR_MEMBER(fr_validation_source, step.mape)},
    {"bias", FR_MEMBER(fr_validation_source, step.bias)},
    {"median_ape", FR_MEMBER(fr_validation_source, step.median_ape)},
    {"worst_ape", FR_MEMBER(fr_validation_source, step.worst_ape)},
    {"kendall_tau", FR_MEMBER(fr_validation_source, step.kendall_tau)},
    {"concordance", FR_MEMBER(fr_validation_source, step.concordance)},
    {"coverage_90", FR_MEMBER(fr_validation_source, step.coverage_90)},
    {"interval_scale", FR_MEMBER(fr_validation_source, interval_scale)},
    {"memory_scored", FR_MEMBER(fr_validation_source, memory.n)},
    {"memory_mape", FR_MEMBER(fr_validation_source, memory.mape)},
    {"memory_bias", FR_MEMBER(fr_validation_source, memory.bias)},
};

static const fr_field step_row_fields[] = {
    {"id", FR_MEMBER(fr_validation_row, name)},
    {"source", FR_MEMBER(fr_validation_row, source)},
    {"plan", FR_MEMBER(fr_validation_row, plan)},
    {"num_gpus", FR_MEMBER(fr_validation_row, n_gpus)},
    {"measured_s", FR_MEMBER(fr_validation_row, measured_s)},
    {"predicted_s", FR_MEMBER(fr_validation_row, predicted_s)},
    {"at_best_s", FR_MEMBER(fr_validation_row, prediction.step_s)},
    {"predicted_s_p5", FR_MEMBER(fr_validation_row, p5_s)},
    {"predicted_s_p95", FR_MEMBER(fr_validation_row, p95_s)},
};

static const fr_field memory_row_fields[] = {
    {"id", FR_MEMBER(fr_validation_row, name)},
    {"source", FR_MEMBER(fr_validation_row, source)},
    {"measured_bytes", FR_MEMBER(fr_validation_row, measured_bytes)},
    {"predicted_bytes", FR_MEMBER(fr_validation_row, predicted_bytes)},
};

static const fr_field memory_fields[] = {
    {"scored", FR_MEMBER(fr_validation, memory.n)},
    {"mape", FR_MEMBER(fr_validation, memory.mape)},
    {"median_ape", FR_MEMBER(fr_validation, memory.median_ape)},
    {"worst_ape", FR_MEMBER(fr_validation, memory.worst_ape)},
    {"bias", FR_MEMBER(fr_validation, memory.bias)},
    {"macro_mape", FR_MEMBER(fr_validation, memory_macro_mape)},
    {"concordance", FR_MEMBER(fr_validation, memory.concordance)},
};

static const fr_field fits_fields[] = {
    {"feasible_right", FR_MEMBER(fr_validation, fits_right[FR_FITS_YES])},
    {"feasible_wrong", FR_MEMBER(fr_validation, fits_wrong[FR_FITS_YES])},
    {"infeasible_right", FR_MEMBER(fr_validation, fits_right[FR_FITS_NO])},
    {"infeasible_wrong", FR_MEMBER(fr_validation, fits_wrong[FR_FITS_NO])},
    {"fits_balanced", FR_MEMBER(fr_validation, fits_balanced)},
    {"confident", FR_MEMBER(fr_validation, n_confident)},
    {"confident_ran_out", FR_MEMBER(fr_validation, n_confident_ran_out)},
};

static const fr_field all_fields[] = {
    {"cases", FR_MEMBER(fr_validation, n_rows)},
    {"scored", FR_MEMBER(fr_validation, step.n)},
    {"mape", FR_MEMBER(fr_validation, step.mape)},
    {"macro_mape", FR_MEMBER(fr_validation, macro_mape)},
    FR_FIELD(fr_validation, macro_bias),
    FR_FIELD(fr_validation, macro_coverage_90),
    FR_FIELD(fr_validation, macro_half_width),
    {"flat_mfu_macro_mape", FR_MEMBER(fr_validation, flat_mfu.macro_mape)},
    {"others_mfu_macro_mape", FR_MEMBER(fr_validation, others_mfu.macro_mape)},
    {"experts_scored", FR_MEMBER(fr_validation, experts.n)},
    {"experts_mape", FR_MEMBER(fr_validation, experts.mape)},
    {"large_scored", FR_MEMBER(fr_validation, large.n)},
    {"large_mape", FR_MEMBER(fr_validation, large.mape)},
    {"median_ape", FR_MEMBER(fr_validation, step.median_ape)},
    {"worst_ape", FR_MEMBER(fr_validation, step.worst_ape)},
    {"bias", FR_MEMBER(fr_validation, step.bias)},
    {"concordance", FR_MEMBER(fr_validation, step.concordance)},
    {"pairs", FR_MEMBER(fr_validation, step.n_pairs)},
    {"coverage_90", FR_MEMBER(fr_validation, step.coverage_90)},
    {"half_width_median", FR_MEMBER(fr_validation, step.half_width_median)},
    {"interval_scale", FR_MEMBER(fr_validation, interval_scale)},
    {"coverage_90_scaled", FR_MEMBER(fr_validation, coverage_90_scaled)},
    {"half_width_median_scaled",
     FR_MEMBER(fr_validation, half_width_median_scaled)},
};

static void put_step_row(const fr_validation_row *row, fr_json_writer *json)
{
    fr_json_begin_object(json);
    fr_fields_put(FR_FIELDS(step_row_fields), row, json);
    fr_json_put_string(json, "framework", row->framework);
    fr_json_put_double(json, "rel_err", fr_validation_step_err(row));
    fr_json_put_string(json, "cost_source", row->prediction.source);
    fr_json_open_object(json, "breakdown_s");
    for (int i = 0; i < FR_PART_N; i++)
        if (row->prediction.breakdown_s[i] > 0)
            fr_json_put_double(json, fr_part_name((fr_part)i),
                               row->prediction.breakdown_s[i]);
    fr_json_end_object(json);
    fr_json_key(json, "features");
    fr_fields_write(FR_FIELDS(fr_run_feature_fields), &row->features, json);
    if (!row->is_step_scored)
        fr_json_put_string(json, "why", row->why);
    fr_json_end_object(json);
}

static void put_memory_row(const fr_validation_row *row, fr_json_writer *json)
{
    fr_json_begin_object(json);
    fr_fields_put(FR_FIELDS(memory_row_fields), row, json);
    fr_json_put_double(json, "rel_err", fr_validation_memory_err(row));
    fr_report_memory_parts_json(&row->prediction, json);
    if (row->fits != FR_FITS_UNKNOWN)
        fr_json_put_bool(json, "fits", row->fits == FR_FITS_YES);
    fr_json_put_bool(json, "predicted_fits",
                     row->predicted_fits == FR_FITS_YES);
    fr_json_put_double(json, "p_fits", row->p_fits);
    fr_json_end_object(json);
}

static void put_memory(const fr_validation *v, fr_json_writer *json)
{
    fr_json_open_object(json, "memory");
    fr_fields_put(FR_FIELDS(memory_fields), v, json);
    fr_json_put_u64(json, "fits_right", v->fits_right[0] + v->fits_right[1]);
    fr_json_put_u64(json, "fits_wrong", v->fits_wrong[0] + v->fits_wrong[1]);
    fr_fields_put(FR_FIELDS(fits_fields), v, json);
    fr_json_open_array(json, "rows");
    for (size_t i = 0; i < v->n_rows; i++)
        if (v->rows[i].is_memory_scored)
            put_memory_row(&v->rows[i], json);
    fr_json_end_array(json);
    fr_json_end_object(json);
}

static void put_skipped(const fr_validation *v, fr_json_writer *json)
{
    fr_json_open_array(json, "skipped");
    for (size_t i = 0; i < v->n_rows; i++) {
        if (v->rows[i].has_run)
            continue;
        fr_json_begin_object(json);
        fr_json_put_string(json, "id", v->rows[i].name);
        fr_json_put_string(json, "why", v->rows[i].why);
        fr_json_end_object(json);
    }
    fr_json_end_array(json);
}

/* Rows that ran with a time to compare, those that count or the others. */
static void put_rows(const fr_validation *v, bool is_scored,
                     fr_json_writer *json)
{
    fr_json_open_array(json, is_scored ? "rows" : "unscored");
    for (size_t i = 0; i < v->n_rows; i++) {
        const fr_validation_row *row = &v->rows[i];
        if (row->has_run && row->measured_s > 0 &&
            row->is_step_scored == is_scored)
            put_step_row(row, json);
    }
    fr_json_end_array(json);
}

static void put_data(const fr_validation *v, fr_json_writer *json)
{
    fr_fields_put(FR_FIELDS(all_fields), v, json);
    fr_json_open_object(json, "by_source");
    for (size_t i = 0; i < v->n_sources; i++) {
        const fr_validation_source *at = &v->sources[i];
        fr_json_key(json, at->name[0] != '\0' ? at->name : "?");
        fr_fields_write(FR_FIELDS(source_fields), at, json);
    }
    fr_json_end_object(json);
    put_memory(v, json);
    put_skipped(v, json);
    put_rows(v, true, json);
    put_rows(v, false, json);
}

/* ---- text ---------------------------------------------------------------- */

/* "12.3 %", "-" for NaN. */
static const char *percent(double frac, char buf[16])
{
    if (isnan(frac))
        return "-";
    snprintf(buf, 16, "%.1f %%", 100 * frac);
    return buf;
}

/* "-" for NaN. */
static void add_percent(fr_table *table, double frac)
{
    char text[16];
    fr_table_number(table, FR_CELL_SHARE, frac, "%s", percent(frac, text));
}

static void add_score(fr_table *table, const char *name, size_t n_rows,
                      const fr_validation_score *s)
{
    fr_table_cell(table, "%.44s", name);
    fr_table_count(table, (int64_t)n_rows);
    fr_table_count(table, (int64_t)s->n);
    add_percent(table, s->mape);
    add_percent(table, s->median_ape);
    add_percent(table, s->worst_ape);
    add_percent(table, s->bias);
    if (isnan(s->kendall_tau))
        fr_table_number(table, FR_CELL_NUMBER, s->kendall_tau, "-");
    else
        fr_table_number(table, FR_CELL_NUMBER, s->kendall_tau, "%.2f",
                        s->kendall_tau);
    add_percent(table, s->concordance);
    add_percent(table, s->coverage_90);
}

static void print_sources(const fr_validation *v, bool is_time,
                          fr_document *out)
{
    const char *const headings[] = {is_time ? "step time" : "peak memory",
                                    ">rows",
                                    ">scored",
                                    ">MAPE",
                                    ">median",
                                    ">worst",
                                    ">bias",
                                    ">tau",
                                    ">pairs right",
                                    ">in interval",
                                    NULL};
    fr_table *table = fr_document_table(out, headings);
    for (size_t i = 0; i < v->n_sources; i++) {
        const fr_validation_source *s = &v->sources[i];
        const fr_validation_score *score = is_time ? &s->step : &s->memory;
        if (score->n > 0)
            add_score(table, s->name[0] != '\0' ? s->name : "(no source)",
                      s->n_rows, score);
    }
    add_score(table, "all", v->n_rows, is_time ? &v->step : &v->memory);
}

static void print_summary(const fr_validation *v, fr_document *out)
{
    char a[16], b[16], c[16];
    size_t right = v->fits_right[0] + v->fits_right[1];
    size_t wrong = v->fits_wrong[0] + v->fits_wrong[1];
    fr_document_printf(out, "mean over sources: step time %s, memory %s\n",
                       percent(v->macro_mape, a),
                       percent(v->memory_macro_mape, b));
    fr_document_printf(out,
                       "  baselines, the same mean: 40 %% of the peak %s, what "
                       "the other sources reach of it %s\n",
                       percent(v->flat_mfu.macro_mape, a),
                       percent(v->others_mfu.macro_mape, b));
    if (v->experts.n + v->large.n > 0)
        fr_document_printf(out,
                           "  mixtures of experts (%zu rows): %s; 512 GPUs and "
                           "more (%zu): %s\n",
                           v->experts.n, percent(v->experts.mape, a),
                           v->large.n, percent(v->large.mape, b));
    fr_document_printf(out,
                       "intervals of 90 %%, means over sources: %s inside, "
                       "half-width %s\n",
                       percent(v->macro_coverage_90, a),
                       percent(v->macro_half_width, b));
    fr_document_printf(out,
                       "intervals of 90 %%: %s of the rows inside, median "
                       "half-width %s\n",
                       percent(v->step.coverage_90, a),
                       percent(v->step.half_width_median, b));
    if (!isnan(v->coverage_90_scaled))
        fr_document_printf(out,
                           "  scaled by what the other sources need (%.2f from "
                           "all): %s inside, half-width %s\n",
                           v->interval_scale, percent(v->coverage_90_scaled, a),
                           percent(v->half_width_median_scaled, b));
    if (right + wrong > 0)
        fr_document_printf(
            out, "fits or not: %zu right, %zu wrong; mean of both kinds: %s\n",
            right, wrong, percent(v->fits_balanced, c));
    if (v->n_confident > 0)
        fr_document_printf(out,
                           "said to fit with a probability of 90 %%: %zu, of "
                           "which ran out: %zu\n",
                           v->n_confident, v->n_confident_ran_out);
    fr_document_printf(out, "%zu rows, %zu run, %zu not\n", v->n_rows,
                       v->n_rows - v->n_skipped, v->n_skipped);
}

static const fr_validation_row **list_rows(const fr_validation *v,
                                           bool is_scored_only, size_t *n)
{
    const fr_validation_row **rows = malloc((v->n_rows + 1) * sizeof *rows);
    *n = 0;
    for (size_t i = 0; rows != NULL && i < v->n_rows; i++) {
        const fr_validation_row *row = &v->rows[i];
        bool is_shown = is_scored_only
                            ? row->is_step_scored || row->is_memory_scored
                            : row->has_run;
        if (is_shown)
            rows[(*n)++] = row;
    }
    return rows;
}

static double worst_of(const fr_validation_row *row)
{
    double step = row->is_step_scored ? fabs(fr_validation_step_err(row)) : 0;
    double memory =
        row->is_memory_scored ? fabs(fr_validation_memory_err(row)) : 0;
    return step > memory ? step : memory;
}

static int by_error(const void *a, const void *b)
{
    const fr_validation_row *x = *(const fr_validation_row *const *)a;
    const fr_validation_row *y = *(const fr_validation_row *const *)b;
    double left = worst_of(x), right = worst_of(y);
    if (left != right)
        return left < right ? 1 : -1;
    return x < y ? -1 : x > y;
}

/* An error with '*' where it does not count. */
static void add_error(fr_table *table, double error, bool is_known,
                      bool is_scored)
{
    char text[16];
    fr_table_number(table, FR_CELL_SHARE, is_known ? error : NAN, "%s%s",
                    is_known ? percent(error, text) : "-",
                    is_known && !is_scored ? "*" : "");
}

static void add_row(fr_table *table, const fr_validation_row *row)
{
    const bool has_time = row->measured_s > 0,
               has_memory = row->measured_bytes > 0;
    fr_table_cell(table, "%.56s", row->name);
    fr_table_text(table, row->framework != NULL ? row->framework : "");
    fr_table_cell(table, "%.40s", row->plan);
    fr_table_s(table, has_time ? row->measured_s : NAN);
    fr_table_s(table, row->predicted_s);
    add_error(table, fr_validation_step_err(row), has_time,
              row->is_step_scored);
    fr_table_bytes(table, has_memory ? row->measured_bytes : NAN);
    add_error(table, fr_validation_memory_err(row), has_memory,
              row->is_memory_scored);
}

static void print_rows(const fr_validation *v, size_t n_worst,
                       bool is_every_row, fr_document *out)
{
    static const fr_column columns[] = {{"row", "id"},
                                        {"framework", "framework"},
                                        {"plan", "plan"},
                                        {">measured", "measured_s"},
                                        {">predicted", "predicted_s"},
                                        {">error", "rel_err"},
                                        {">memory", "measured_bytes"},
                                        {">error", "memory_rel_err"}};
    size_t n;
    const fr_validation_row **rows = list_rows(v, !is_every_row, &n);
    if (rows == NULL) {
        out->has_failed = true;
        return;
    }
    if (!is_every_row) {
        qsort(rows, n, sizeof *rows, by_error);
        n = n < n_worst ? n : n_worst;
    }
    if (n > 0) {
        fr_document_printf(out, "\n%s\n",
                           is_every_row ? "all rows that ran (*: not scored)"
                                        : "furthest off");
        fr_table *table =
            fr_document_records(out, NULL, columns, FR_LENGTH(columns));
        table->is_main = is_every_row;
        for (size_t i = 0; i < n; i++)
            add_row(table, rows[i]);
    }
    free(rows);
}

/* The reason without what stands before it in a message and without numbers:
 * rows with one reason are counted together. */
static const char *reason_of(const fr_validation_row *row)
{
    const char *at = row->why;
    const char *line = strstr(at, ".csv:");
    if (line != NULL && strchr(line + 5, ' ') != NULL)
        at = strchr(line + 5, ' ') + 1;
    return at;
}

static bool is_same_reason(const char *a, const char *b)
{
    size_t n = strcspn(a, "0123456789'");
    return n == strcspn(b, "0123456789'") && memcmp(a, b, n) == 0;
}

static void print_skipped(const fr_validation *v, fr_document *out)
{
    if (v->n_skipped > 0)
        fr_document_puts(out, "\nnot run\n");
    for (size_t i = 0; i < v->n_rows; i++) {
        size_t n = 0;
        bool is_first = !v->rows[i].has_run;
        for (size_t j = 0; j < v->n_rows && is_first; j++) {
            if (v->rows[j].has_run ||
                !is_same_reason(reason_of(&v->rows[i]), reason_of(&v->rows[j])))
                continue;
            is_first = j >= i;
            n++;
        }
        if (is_first)
            fr_document_printf(out, "%5zu  %s (%s)\n", n,
                               reason_of(&v->rows[i]), v->rows[i].name);
    }
}

void fr_report_validation(const fr_validation *v, size_t n_worst,
                          bool is_every_row, fr_document *out)
{
    put_data(v, &out->data);
    print_sources(v, true, out);
    if (v->memory.n > 0) {
        fr_document_puts(out, "\n");
        print_sources(v, false, out);
    }
    fr_document_puts(out, "\n");
    print_summary(v, out);
    print_rows(v, n_worst, is_every_row, out);
    print_skipped(v, out);
}
