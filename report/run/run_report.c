/* run_report.c: predicted beside measured. */
#include "report/run/run_report.h"

#include "core/base/units.h"
#include "core/document/fields.h"
#include "report/prediction_report.h"
#include "report/run/busy_report.h"
#include "report/run/rank_times_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

double fr_run_report_rel_err(const fr_run_report *r)
{
    if (!r->has_prediction || r->step_s_median <= 0)
        return 0;
    return r->predicted_step_s / r->step_s_median - 1;
}

static const fr_field step_fields[] = {
    {"median", FR_MEMBER(fr_run_report, step_s_median)},
    {"p5", FR_MEMBER(fr_run_report, step_s_p5)},
    {"p95", FR_MEMBER(fr_run_report, step_s_p95)},
};

static const fr_field head_fields[] = {
    FR_FIELD(fr_run_report, plan),
    FR_FIELD(fr_run_report, backend),
    FR_FIELD(fr_run_report, world_size),
    FR_GROUP("step_s", step_fields),
    FR_FIELD(fr_run_report, tokens_per_s),
    FR_FIELD(fr_run_report, samples_per_s),
};

static const fr_field predicted_fields[] = {
    {"step_s", FR_MEMBER(fr_run_report, predicted_step_s)},
    {"peak_bytes", FR_MEMBER(fr_run_report, predicted_peak_bytes)},
    {"baseline_bytes", FR_MEMBER(fr_run_report, predicted_baseline_bytes)},
    {"breakdown_s", FR_MEMBER(fr_run_report, predicted_breakdown_s),
     .names = &fr_part_names},
};

/* Puts the requests to NCCL, their settings, and NCCL's own estimates. */
static void put_nccl(const fr_run_report *r, fr_json_writer *json)
{
    if (r->n_collectives == 0) {
        fr_json_put_null(json, "nccl");
        return;
    }
    fr_json_open_object(json, "nccl");
    fr_json_put_string(json, "topology", r->topology);
    fr_json_open_array(json, "collectives");
    for (size_t i = 0; i < r->n_collectives; i++) {
        const fr_collective_note *at = &r->collectives[i];
        fr_json_begin_object(json);
        fr_json_put_string(json, "op", fr_op_name(at->op));
        fr_json_put_string(json, "axis", fr_axis_name(at->axis));
        fr_json_put_i64(json, "ranks", at->n_group);
        fr_json_put_u64(json, "bytes", at->n_bytes);
        fr_json_put_string(json, "algorithm",
                           fr_name_of(&fr_collective_names, at->algorithm));
        fr_json_put_string(json, "protocol",
                           fr_name_of(&fr_protocol_names, at->protocol));
        fr_json_put_i64(json, "channels", at->n_channels);
        fr_json_put_i64(json, "asked", at->n_asked);
        fr_json_put_i64(json, "granted", at->n_granted);
        fr_json_put_double(json, "nccl_estimate_s",
                           at->estimate_s > 0 ? at->estimate_s : NAN);
        fr_json_end_object(json);
    }
    fr_json_end_array(json);
    fr_json_end_object(json);
}

static void put_evaluations(const fr_run_report *r, fr_json_writer *json)
{
    fr_json_open_array(json, "validation");
    for (size_t i = 0; i < r->n_evaluations; i++) {
        fr_json_begin_object(json);
        fr_json_put_i64(json, "steps_done", r->evaluations[i].n_steps_done);
        fr_json_put_double(json, "loss", r->evaluations[i].loss);
        fr_json_end_object(json);
    }
    fr_json_end_array(json);
}

/* The steps before the last start whose losses are known. */
static int64_t count_before(const fr_run_report *r)
{
    return r->loss_before != NULL ? r->resumed_from_step : 0;
}

/* Puts the loss of every step, whatever interrupted them, if those before are
 * known; an unknown loss is null. */
static void put_losses(const fr_run_report *r, fr_json_writer *json)
{
    const int64_t n_before = count_before(r);
    fr_json_key(json, "loss");
    fr_json_begin_row(json);
    for (int64_t i = 0; i < n_before; i++)
        fr_json_double(json, r->loss_before[i]);
    for (int64_t i = 0; i < r->n_steps; i++)
        fr_json_double(json, r->loss[i]);
    fr_json_end_array(json);
}

/* Puts the mean of one; null if there was none. */
static void put_mean(fr_json_writer *json, const char *key, double sum_s,
                     int64_t n, uint64_t n_bytes)
{
    if (n == 0) {
        fr_json_put_null(json, key);
        return;
    }
    fr_json_open_object(json, key);
    fr_json_put_i64(json, "n", n);
    fr_json_put_double(json, "stall_s", sum_s / (double)n);
    if (n_bytes > 0)
        fr_json_put_u64(json, "bytes_per_rank", n_bytes);
    fr_json_end_object(json);
}

static void put_saving(const fr_run_report *r, fr_json_writer *json)
{
    const fr_saving_cost *s = &r->saving;

    put_mean(json, "checkpoints", s->checkpoint_s, s->n_checkpoints, 0);
    put_mean(json, "replicas", s->replica_s, s->n_replicas, s->replica_bytes);
    if (r->resumed_from_step > 0)
        fr_json_put_string(json, "resumed_from",
                           r->is_from_memory ? "memory" : "storage");
    else
        fr_json_put_null(json, "resumed_from");
}

static void put_data(const fr_run_report *r, fr_json_writer *json)
{
    fr_fields_put(FR_FIELDS(head_fields), r, json);
    put_losses(r, json);
    put_evaluations(r, json);
    fr_json_put_u64(json, "peak_bytes", r->peak_bytes);
    fr_json_put_u64(json, "baseline_bytes", r->baseline_bytes);
    fr_json_key(json, "predicted");
    if (r->has_prediction)
        fr_fields_write(FR_FIELDS(predicted_fields), r, json);
    else
        fr_json_null(json);
    if (r->has_breakdown)
        fr_report_breakdown_json("breakdown_s", r->breakdown_s, json);
    else
        fr_json_put_null(json, "breakdown_s");
    fr_json_put_double(json, "rel_err",
                       r->has_prediction ? fr_run_report_rel_err(r) : NAN);
    fr_report_busy_json(&r->busy, r->has_prediction ? r->predicted_step_s : 0,
                        json);
    fr_report_rank_times_json(r, json);
    if (strcmp(r->backend, "cpu") != 0)
        put_nccl(r, json);
    if (r->resumed_from_step > 0)
        fr_json_put_i64(json, "resumed_from_step", r->resumed_from_step);
    else
        fr_json_put_null(json, "resumed_from_step");
    put_saving(r, json);
}

/* A time or bytes; nothing for an unknown or empty one. */
static void add_amount(fr_table *table, double value, bool is_bytes)
{
    if (value == 0)
        fr_table_blank(table, 1);
    else if (is_bytes)
        fr_table_bytes(table, value);
    else
        fr_table_s(table, value);
}

static void add_row(fr_table *table, const char *name, double predicted,
                    double measured, bool is_bytes)
{
    const double error = predicted / measured - 1;
    fr_table_text(table, name);
    add_amount(table, predicted, is_bytes);
    add_amount(table, measured, is_bytes);
    if (predicted > 0 && measured > 0)
        fr_table_change(table, error);
    else
        fr_table_blank(table, 1);
}

/* A prediction without a profile knows nothing of the process, so nothing of
 * the peak. */
static void add_memory(const fr_run_report *r, fr_table *table)
{
    const double peak = (double)r->predicted_peak_bytes,
                 beside = (double)r->predicted_baseline_bytes;
    const double scale = r->has_prediction ? 1 : 0;
    add_row(table, "plan's memory", scale * (peak - beside),
            (double)r->peak_bytes - (double)r->baseline_bytes, true);
    add_row(table, "process itself", scale * beside, (double)r->baseline_bytes,
            true);
    add_row(table, "peak memory", beside > 0 ? scale * peak : 0,
            (double)r->peak_bytes, true);
}

static void print_table(const fr_run_report *r, fr_document *out)
{
    static const char *const headings[] = {"", ">predicted", ">measured",
                                           ">error", NULL};
    char title[32];
    fr_table *table = fr_document_table(out, headings);
    for (int i = 0; i < FR_PART_N; i++) {
        double predicted_s =
            r->has_prediction ? r->predicted_breakdown_s[i] : 0;
        double measured_s = r->has_breakdown ? r->breakdown_s[i] : 0;
        if (predicted_s == 0 && measured_s == 0)
            continue;
        add_row(table, fr_report_part_title((fr_part)i, title, sizeof title),
                predicted_s, measured_s, false);
    }
    add_row(table, "step", r->has_prediction ? r->predicted_step_s : 0,
            r->step_s_median, false);
    if (r->busy.n_disturbed > 0 && r->busy.undisturbed_step_s > 0)
        add_row(table, "step, undisturbed",
                r->has_prediction ? r->predicted_step_s : 0,
                r->busy.undisturbed_step_s, false);
    add_memory(r, table);
}

/* The loss of a step of the whole run, from 0. */
static double loss_at(const fr_run_report *r, int64_t i)
{
    const int64_t n_before = count_before(r);
    return i < n_before ? r->loss_before[i] : r->loss[i - n_before];
}

/* The loss curve in one line: means of equal stretches, lowest to highest. */
static void print_curve(const fr_run_report *r, fr_document *out)
{
    enum { CELLS = 40 };
    static const char *const heights[] = {"▁", "▂", "▃", "▄",
                                          "▅", "▆", "▇", "█"};
    double means[CELLS], low = HUGE_VAL, high = -HUGE_VAL;
    const int64_t n_all = count_before(r) + r->n_steps;
    int n = n_all < CELLS ? (int)n_all : CELLS;
    for (int i = 0; i < n; i++) {
        int64_t first = n_all * i / n, end = n_all * (i + 1) / n;
        means[i] = 0;
        for (int64_t k = first; k < end; k++)
            means[i] += loss_at(r, k) / (double)(end - first);
        low = fmin(low, means[i]);
        high = fmax(high, means[i]);
    }
    for (int i = 0; i < n; i++) {
        double frac = high > low ? (means[i] - low) / (high - low) : 0;
        fr_document_puts(out,
                         isfinite(frac) ? heights[(int)(7.999 * frac)] : "?");
    }
    fr_document_puts(out, "\n");
}

void fr_report_run(const fr_run_report *r, fr_document *out)
{
    char low[FR_FORMAT_MAX], high[FR_FORMAT_MAX];
    const int64_t n_all = count_before(r) + r->n_steps;
    put_data(r, &out->data);
    fr_document_printf(out, "%s: %lld step%s on %lld rank%s, ", r->plan,
                       (long long)n_all, n_all == 1 ? "" : "s",
                       (long long)r->world_size, r->world_size == 1 ? "" : "s");
    fr_report_rate(r->model, r->tokens_per_s, r->samples_per_s, out);
    fr_document_puts(out, "\n");
    if (n_all > r->n_steps)
        fr_document_printf(out,
                           "%lld of the steps came before the last start; all "
                           "times below are those of the %lld since\n",
                           (long long)(n_all - r->n_steps),
                           (long long)r->n_steps);
    if (n_all > 0) {
        fr_document_printf(out, "loss %.4f -> %.4f  ", loss_at(r, 0),
                           loss_at(r, n_all - 1));
        print_curve(r, out);
    }
    if (r->n_evaluations > 1)
        fr_document_printf(out, "validation loss %.4f -> %.4f\n",
                           r->evaluations[0].loss,
                           r->evaluations[r->n_evaluations - 1].loss);
    else if (r->n_evaluations == 1)
        fr_document_printf(out, "validation loss %.4f\n",
                           r->evaluations[0].loss);
    fr_document_puts(out, "\n");
    print_table(r, out);
    fr_document_printf(out, "\nmeasured steps: 90 %% between %s and %s\n",
                       fr_format_s(low, sizeof low, r->step_s_p5),
                       fr_format_s(high, sizeof high, r->step_s_p95));
    fr_report_busy_text(&r->busy, r->world_size, out);
    fr_report_rank_times_text(r, out);
}
