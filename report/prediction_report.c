/* prediction_report.c: step time by part and memory by component. */
#include "report/prediction_report.h"

#include "core/base/units.h"
#include "core/document/fields.h"
#include "report/document/bar.h"
#include "report/document/table.h"
#include "spec/result/prediction_fields.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- JSON ---------------------------------------------------------------- */

void fr_report_breakdown_json(const char *key,
                              const double breakdown_s[FR_PART_N],
                              fr_json_writer *json)
{
    fr_json_open_object(json, key);
    for (int i = 0; i < FR_PART_N; i++)
        fr_json_put_double(json, fr_part_name((fr_part)i), breakdown_s[i]);
    fr_json_end_object(json);
}

static const fr_field stage_fields[] = {
    FR_FIELD(fr_stage_memory, parameters_bytes),
    FR_FIELD(fr_stage_memory, gradients_bytes),
    FR_FIELD(fr_stage_memory, optimizer_bytes),
    FR_FIELD(fr_stage_memory, activations_bytes),
    FR_FIELD(fr_stage_memory, buffers_bytes),
    FR_FIELD(fr_stage_memory, workspaces_bytes),
    FR_FIELD(fr_stage_memory, alignment_bytes),
    FR_FIELD(fr_stage_memory, allocated_bytes),
    FR_FIELD(fr_stage_memory, reserved_bytes),
    FR_FIELD(fr_stage_memory, device_bytes),
};

static const fr_field sim_fields[] = {
    {"events", FR_MEMBER(fr_prediction, sim.events)},
    {"wall_s", FR_MEMBER(fr_prediction, sim.wall_s)},
    {"ranks_simulated", FR_MEMBER(fr_prediction, sim.ranks_simulated)},
    {"ranks_total", FR_MEMBER(fr_prediction, sim.ranks_total)},
};

static const fr_field learned_fields[] = {
    {"n_runs", FR_MEMBER(fr_prediction, learned.n_runs)},
    {"factor", FR_MEMBER(fr_prediction, learned.factor)},
    {"half_width", FR_MEMBER(fr_prediction, learned.half_width)},
    {"half_width_prior", FR_MEMBER(fr_prediction, learned.half_width_prior)},
    {"left", FR_MEMBER(fr_prediction, learned.left)},
    {"left_frac", FR_MEMBER(fr_prediction, learned.left_frac)},
};

static const fr_field learned_group[] = {
    FR_GROUP("learned", learned_fields),
};

static const fr_field effort_fields[] = {
    FR_GROUP("sim", sim_fields),
};

void fr_report_memory_parts_json(const fr_prediction *p, fr_json_writer *json)
{
    fr_fields_put(&fr_prediction_memory[FR_PREDICTION_FIRST_PART],
                  FR_PREDICTION_PARTS_N, p, json);
}

static void put_memory(const fr_prediction *p, fr_json_writer *json)
{
    fr_json_open_object(json, "memory");
    fr_fields_put(FR_FIELDS(fr_prediction_memory), p, json);
    if (p->memory.host_bytes > 0) {
        fr_json_put_u64(json, "host_bytes", p->memory.host_bytes);
        fr_json_put_u64(json, "host_capacity_bytes",
                        p->memory.host_capacity_bytes);
    }
    if (p->memory.n_stages > 0) {
        fr_json_put_u64(json, "allocated_bytes", p->memory.allocated_bytes);
        fr_json_open_array(json, "stages");
        for (int32_t i = 0; i < p->memory.n_stages; i++) {
            fr_json_begin_object(json);
            fr_json_put_i64(json, "stage", i);
            fr_fields_put(FR_FIELDS(stage_fields), &p->memory.stages[i], json);
            fr_json_end_object(json);
        }
        fr_json_end_array(json);
    }
    fr_json_end_object(json);
}

/* A price or a power of 0 is one that nobody said: null. */
static fr_prediction without_unknown_costs(const fr_prediction *p)
{
    fr_prediction known = *p;
    if (!(p->cost.usd_per_hour > 0))
        known.cost.usd_per_hour = known.cost.usd_total = NAN;
    if (!(p->cost.kwh > 0))
        known.cost.kwh = NAN;
    return known;
}

void fr_report_prediction_json(const fr_prediction *p, fr_json_writer *json)
{
    fr_fields_put(fr_prediction_fields, FR_PREDICTION_TIMES_N, p, json);
    put_memory(p, json);
    const fr_prediction known = without_unknown_costs(p);
    fr_fields_put(&fr_prediction_fields[FR_PREDICTION_AFTER_MEMORY],
                  FR_PREDICTION_FIELDS_N - FR_PREDICTION_AFTER_MEMORY, &known,
                  json);
    if (p->learned.n_runs > 0)
        fr_fields_put(FR_FIELDS(learned_group), p, json);
    fr_json_put_double(json, "unexplained_s", p->expected_step_s - p->step_s);
    fr_fields_put(FR_FIELDS(effort_fields), p, json);
}

/* ---- text ---------------------------------------------------------------- */

char *fr_report_part_title(fr_part part, char *buf, size_t n_buf)
{
    snprintf(buf, n_buf, "%s", fr_part_name(part));
    for (char *c = buf; *c != '\0'; c++)
        if (*c == '_')
            *c = ' ';
    return buf;
}

static void put_part(const char *name, double part_s, const fr_prediction *p,
                     fr_table *table)
{
    if (part_s == 0)
        return;
    const double frac =
        p->expected_step_s > 0 ? part_s / p->expected_step_s : 0;
    fr_table_text(table, name);
    fr_table_s(table, part_s);
    fr_table_share(table, frac);
    fr_table_bar(table, frac, FR_BAR_CELLS);
}

static void print_parts(const fr_prediction *p, fr_document *out)
{
    static const char *const headings[] = {"part", ">time", ">share", "", NULL};
    char title[32];
    fr_table *table = fr_document_table(out, headings);
    for (int i = 0; i < FR_PART_N; i++)
        put_part(fr_report_part_title((fr_part)i, title, sizeof title),
                 p->breakdown_s[i], p, table);
    put_part("typical, not explained", p->expected_step_s - p->step_s, p,
             table);
}

static void print_memory(const fr_prediction *p, fr_document *out)
{
    static const char *const headings[] = {"memory of the peak rank", ">bytes",
                                           NULL};
    const uint64_t cache_bytes =
        p->memory.n_stages > 0
            ? p->memory.reserved_bytes - p->memory.allocated_bytes
            : 0;
    const struct {
        const char *name;
        uint64_t n_bytes;
    } rows[] = {
        {"parameters", p->memory.parameters_bytes},
        {"gradients", p->memory.gradients_bytes},
        {"optimizer state", p->memory.optimizer_bytes},
        {"activations", p->memory.activations_bytes},
        {"buffers", p->memory.buffers_bytes},
        {"workspaces of libraries", p->memory.workspaces_bytes},
        {"alignment", p->memory.alignment_bytes},
        {"cache of the allocator", cache_bytes},
        {p->memory.n_stages > 0 ? "context, NCCL" : "overhead",
         p->memory.overhead_bytes - p->memory.workspaces_bytes -
             p->memory.alignment_bytes - cache_bytes},
        {"peak", p->memory.peak_bytes},
        {"capacity", p->memory.capacity_bytes},
        {"offloaded to a node's hosts", p->memory.host_bytes},
        {"memory of the hosts", p->memory.host_capacity_bytes},
    };
    fr_table *table = fr_document_table(out, headings);
    for (size_t i = 0; i < FR_LENGTH(rows); i++) {
        if (rows[i].n_bytes == 0)
            continue;
        fr_table_text(table, rows[i].name);
        fr_table_bytes(table, (double)rows[i].n_bytes);
    }
    if (p->memory.n_stages > 0 && p->memory.fits)
        fr_document_printf(out, "fits with probability %.2f\n",
                           p->memory.p_fits);
}

/* Stages of a pipeline differ: the first holds most activations, the last the
 * logits. */
static void print_stages(const fr_prediction *p, fr_document *out)
{
    static const char *const headings[] = {
        ">stage",   ">parameters", ">gradients", ">optimizer", ">activations",
        ">buffers", ">other",      ">allocated", ">device",    NULL};
    fr_document_puts(out, "\nother: workspaces of libraries, alignment\n");
    fr_table *table = fr_document_table(out, headings);
    for (int32_t i = 0; i < p->memory.n_stages; i++) {
        const fr_stage_memory *stage = &p->memory.stages[i];
        const uint64_t columns[] = {
            stage->parameters_bytes,
            stage->gradients_bytes,
            stage->optimizer_bytes,
            stage->activations_bytes,
            stage->buffers_bytes,
            stage->workspaces_bytes + stage->alignment_bytes,
            stage->allocated_bytes,
            stage->device_bytes};
        fr_table_count(table, i);
        for (size_t k = 0; k < FR_LENGTH(columns); k++)
            fr_table_bytes(table, (double)columns[k]);
    }
}

void fr_report_rate(const fr_model *model, double tokens_per_s,
                    double samples_per_s, fr_document *out)
{
    enum { FEW = 10 }; /* below it a whole number says too little */
    const char *counted = fr_model_counted(model);
    const double rate =
        strcmp(counted, "tokens") == 0 ? tokens_per_s : samples_per_s;
    fr_document_printf(out, rate < FEW ? "%.3g %s/s" : "%.0f %s/s", rate,
                       counted);
}

/* Returns the meaning of the source of a cost if its name does not say it. */
static const char *source_meaning(const char *source)
{
    if (strcmp(source, "extrapolated") == 0)
        return " (some kernel or link like it was never measured)";
    if (strcmp(source, "datasheet") == 0)
        return " (from peak rates, not from measurements)";
    return "";
}

static void print_head(const fr_model *model, const fr_prediction *p,
                       fr_document *out)
{
    char step[FR_FORMAT_MAX], low[FR_FORMAT_MAX], high[FR_FORMAT_MAX];
    fr_document_printf(out, "step %s",
                       fr_format_s(step, sizeof step, p->expected_step_s));
    if (p->step_s_p95 > p->step_s_p5)
        fr_document_printf(out, " (90 %% between %s and %s)",
                           fr_format_s(low, sizeof low, p->step_s_p5),
                           fr_format_s(high, sizeof high, p->step_s_p95));
    fr_document_puts(out, ", ");
    fr_report_rate(model, p->tokens_per_s, p->samples_per_s, out);
    if (p->cost.usd_per_hour > 0)
        fr_document_printf(out, ", %.2f USD/h", p->cost.usd_per_hour);
    if (p->mfu > 0)
        fr_document_printf(out, "\nMFU %.1f %%", 100 * p->mfu);
    if (p->mfu > 0 && p->mfu_causal > 0 && p->mfu_causal != p->mfu)
        fr_document_printf(out,
                           " with attention counted in full, %.1f %% with its "
                           "causal half",
                           100 * p->mfu_causal);
    if (p->hfu > 0 && p->hfu != p->mfu)
        fr_document_printf(out, "; HFU %.1f %%", 100 * p->hfu);
    if (p->learned.n_runs > 0)
        fr_document_printf(
            out,
            "\nlearned from %lld measured step%s: x %.3f, 90 %% within %.1f %% "
            "(%.0f %% without);\nmost of what is left: %s",
            (long long)p->learned.n_runs, p->learned.n_runs == 1 ? "" : "s",
            p->learned.factor, 100 * p->learned.half_width,
            100 * p->learned.half_width_prior, p->learned.left);
    if (p->expected_step_s > p->step_s)
        fr_document_printf(
            out,
            "\nAt best %s, the sum of the modelled parts; published runs "
            "typically take %.1f %% more. To calibrate with your own runs: "
            "forerun calibrate --runs",
            fr_format_s(step, sizeof step, p->step_s),
            100 * (p->expected_step_s / p->step_s - 1));
    if (p->source != NULL)
        fr_document_printf(out, "\nLeast certain input: %s%s", p->source,
                           source_meaning(p->source));
    fr_document_puts(out, "\n\n");
}

void fr_report_prediction(const fr_model *model,
                          const fr_prediction *prediction, fr_document *out)
{
    fr_report_prediction_json(prediction, &out->data);
    print_head(model, prediction, out);
    print_parts(prediction, out);
    fr_document_puts(out, "\n");
    print_memory(prediction, out);
    if (prediction->memory.n_stages > 1)
        print_stages(prediction, out);
}
