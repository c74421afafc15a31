/* prediction_report.c: step time by part and memory by component. */
#include "report/prediction_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/units.h"
#include "report/table.h"

#define BAR_CELLS 24

void fr_report_breakdown_json(const char *key,
                              const double breakdown_s[FR_PART_N],
                              fr_json_writer *json)
{
    fr_json_key(json, key);
    fr_json_begin_object(json);
    for (int i = 0; i < FR_PART_N; i++)
        fr_json_put_double(json, fr_part_name((fr_part)i), breakdown_s[i]);
    fr_json_end_object(json);
}

static void put_stages(const fr_prediction *p, fr_json_writer *json)
{
    fr_json_key(json, "stages");
    fr_json_begin_array(json);
    for (int32_t i = 0; i < p->memory.n_stages; i++) {
        const fr_stage_memory *stage = &p->memory.stages[i];
        fr_json_begin_object(json);
        fr_json_put_i64(json, "stage", i);
        fr_json_put_u64(json, "parameters_bytes", stage->parameters_bytes);
        fr_json_put_u64(json, "gradients_bytes", stage->gradients_bytes);
        fr_json_put_u64(json, "optimizer_bytes", stage->optimizer_bytes);
        fr_json_put_u64(json, "activations_bytes", stage->activations_bytes);
        fr_json_put_u64(json, "buffers_bytes", stage->buffers_bytes);
        fr_json_put_u64(json, "allocated_bytes", stage->allocated_bytes);
        fr_json_put_u64(json, "reserved_bytes", stage->reserved_bytes);
        fr_json_put_u64(json, "device_bytes", stage->device_bytes);
        fr_json_end_object(json);
    }
    fr_json_end_array(json);
}

static void put_memory(const fr_prediction *p, fr_json_writer *json)
{
    fr_json_key(json, "memory");
    fr_json_begin_object(json);
    fr_json_put_bool(json, "fits", p->memory.fits);
    fr_json_put_u64(json, "peak_bytes", p->memory.peak_bytes);
    fr_json_put_u64(json, "capacity_bytes", p->memory.capacity_bytes);
    fr_json_put_u64(json, "parameters_bytes", p->memory.parameters_bytes);
    fr_json_put_u64(json, "gradients_bytes", p->memory.gradients_bytes);
    fr_json_put_u64(json, "optimizer_bytes", p->memory.optimizer_bytes);
    fr_json_put_u64(json, "activations_bytes", p->memory.activations_bytes);
    fr_json_put_u64(json, "buffers_bytes", p->memory.buffers_bytes);
    fr_json_put_u64(json, "overhead_bytes", p->memory.overhead_bytes);
    fr_json_put_u64(json, "reserved_bytes", p->memory.reserved_bytes);
    fr_json_put_u64(json, "device_bytes", p->memory.device_bytes);
    fr_json_put_double(json, "p_fits", p->memory.p_fits);
    if (p->memory.n_stages > 0) {
        fr_json_put_u64(json, "allocated_bytes", p->memory.allocated_bytes);
        put_stages(p, json);
    }
    fr_json_end_object(json);
}

void fr_report_prediction_json(const fr_prediction *p, fr_json_writer *json)
{
    fr_json_put_double(json, "step_s", p->step_s);
    fr_json_put_double(json, "step_s_p5", p->step_s_p5);
    fr_json_put_double(json, "step_s_p95", p->step_s_p95);
    fr_json_put_double(json, "tokens_per_s", p->tokens_per_s);
    fr_json_put_double(json, "samples_per_s", p->samples_per_s);
    fr_json_put_double(json, "mfu", p->mfu);
    fr_json_put_double(json, "hfu", p->hfu);
    fr_report_breakdown_json("breakdown_s", p->breakdown_s, json);
    put_memory(p, json);
    fr_json_key(json, "cost");
    fr_json_begin_object(json);
    fr_json_put_double(json, "usd_per_hour", p->cost.usd_per_hour);
    fr_json_put_double(json, "usd_total", p->cost.usd_total);
    fr_json_put_double(json, "kwh", p->cost.kwh);
    fr_json_end_object(json);
    fr_json_put_string(json, "source", p->source);
    fr_json_key(json, "sim");
    fr_json_begin_object(json);
    fr_json_put_u64(json, "events", p->sim.events);
    fr_json_put_double(json, "wall_s", p->sim.wall_s);
    fr_json_put_i64(json, "ranks_simulated", p->sim.ranks_simulated);
    fr_json_put_i64(json, "ranks_total", p->sim.ranks_total);
    fr_json_end_object(json);
}

char *fr_report_part_title(fr_part part, char *buf, size_t n_buf)
{
    snprintf(buf, n_buf, "%s", fr_part_name(part));
    for (char *c = buf; *c != '\0'; c++)
        if (*c == '_')
            *c = ' ';
    return buf;
}

/* A bar of eighths of a character. */
static const char *bar(double frac, char *buf, size_t n_buf)
{
    static const char *const eighths[] = {"",  "▏", "▎", "▍",
                                          "▌", "▋", "▊", "▉"};
    double clean = isfinite(frac) ? fmin(fmax(frac, 0.0), 1.0) : 0.0;
    int n = (int)lround(clean * BAR_CELLS * 8);
    size_t used = 0;
    buf[0] = '\0';
    for (; n >= 8 && used + 4 < n_buf; n -= 8)
        used += (size_t)snprintf(buf + used, n_buf - used, "█");
    if (n > 0 && n < 8)
        snprintf(buf + used, n_buf - used, "%s", eighths[n]);
    return buf;
}

static fr_status print_parts(const fr_prediction *p, fr_buffer *out,
                             fr_err *err)
{
    static const char *const headings[] = {"part", ">time", ">share", "", NULL};
    char time[FR_FORMAT_MAX], title[32], blocks[4 * BAR_CELLS];
    fr_table table;
    fr_table_init(&table, headings);
    for (int i = 0; i < FR_PART_N; i++) {
        double part_s = p->breakdown_s[i];
        if (part_s == 0)
            continue;
        double frac = p->step_s > 0 ? part_s / p->step_s : 0;
        fr_table_cell(&table, "%s",
                      fr_report_part_title((fr_part)i, title, sizeof title));
        fr_table_cell(&table, "%s", fr_format_s(time, sizeof time, part_s));
        fr_table_cell(&table, "%.1f %%", 100 * frac);
        fr_table_cell(&table, "%s", bar(frac, blocks, sizeof blocks));
    }
    fr_status status = fr_table_print(&table, 0, out, err);
    fr_table_release(&table);
    return status;
}

static fr_status print_memory(const fr_prediction *p, fr_buffer *out,
                              fr_err *err)
{
    static const char *const headings[] = {"memory of the peak rank", ">bytes",
                                           NULL};
    const struct {
        const char *name;
        uint64_t n_bytes;
    } rows[] = {
        {"parameters", p->memory.parameters_bytes},
        {"gradients", p->memory.gradients_bytes},
        {"optimizer state", p->memory.optimizer_bytes},
        {"activations", p->memory.activations_bytes},
        {"buffers", p->memory.buffers_bytes},
        {p->memory.n_stages > 0 ? "context, NCCL, cache" : "overhead",
         p->memory.overhead_bytes},
        {"peak", p->memory.peak_bytes},
        {"capacity", p->memory.capacity_bytes},
    };
    char bytes[FR_FORMAT_MAX];
    fr_table table;
    fr_table_init(&table, headings);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].n_bytes == 0)
            continue;
        fr_table_cell(&table, "%s", rows[i].name);
        fr_table_cell(
            &table, "%s",
            fr_format_bytes(bytes, sizeof bytes, (double)rows[i].n_bytes));
    }
    fr_status status = fr_table_print(&table, 0, out, err);
    fr_table_release(&table);
    if (status == FR_OK && p->memory.n_stages > 0)
        fr_buffer_printf(out, "%s with probability %.2f\n",
                         p->memory.fits ? "fits" : "does not fit",
                         p->memory.fits ? p->memory.p_fits
                                        : 1 - p->memory.p_fits);
    else if (status == FR_OK && !p->memory.fits)
        fr_buffer_puts(out, "does not fit\n");
    return status;
}

/* Stages of a pipeline differ: the first holds most activations, the last the
 * logits. */
static fr_status print_stages(const fr_prediction *p, fr_buffer *out,
                              fr_err *err)
{
    static const char *const headings[] = {
        ">stage",   ">parameters", ">gradients", ">optimizer", ">activations",
        ">buffers", ">allocated",  ">reserved",  ">device",    NULL};
    char bytes[FR_FORMAT_MAX];
    fr_table table;
    fr_table_init(&table, headings);
    for (int32_t i = 0; i < p->memory.n_stages; i++) {
        const fr_stage_memory *stage = &p->memory.stages[i];
        const uint64_t row[] = {
            stage->parameters_bytes, stage->gradients_bytes,
            stage->optimizer_bytes,  stage->activations_bytes,
            stage->buffers_bytes,    stage->allocated_bytes,
            stage->reserved_bytes,   stage->device_bytes,
        };
        fr_table_cell(&table, "%d", (int)i);
        for (size_t k = 0; k < sizeof row / sizeof row[0]; k++)
            fr_table_cell(&table, "%s",
                          fr_format_bytes(bytes, sizeof bytes, (double)row[k]));
    }
    fr_buffer_putc(out, '\n');
    fr_status status = fr_table_print(&table, 0, out, err);
    fr_table_release(&table);
    return status;
}

static void print_head(const fr_prediction *p, fr_buffer *out)
{
    char step[FR_FORMAT_MAX], low[FR_FORMAT_MAX], high[FR_FORMAT_MAX];
    fr_buffer_printf(out, "step %s", fr_format_s(step, sizeof step, p->step_s));
    if (p->step_s_p95 > p->step_s_p5)
        fr_buffer_printf(out, " (90 %% between %s and %s)",
                         fr_format_s(low, sizeof low, p->step_s_p5),
                         fr_format_s(high, sizeof high, p->step_s_p95));
    fr_buffer_printf(out, ", %.0f %s/s", p->tokens_per_s,
                     p->tokens_per_s == p->samples_per_s ? "samples"
                                                         : "tokens");
    if (p->mfu > 0)
        fr_buffer_printf(out, ", MFU %.1f %%", 100 * p->mfu);
    if (p->hfu > 0 && p->hfu != p->mfu)
        fr_buffer_printf(out, ", HFU %.1f %%", 100 * p->hfu);
    if (p->cost.usd_per_hour > 0)
        fr_buffer_printf(out, ", %.2f USD/h", p->cost.usd_per_hour);
    if (p->source != NULL)
        fr_buffer_printf(out, "\nworst source of a cost: %s", p->source);
    fr_buffer_puts(out, "\n\n");
}

fr_status fr_report_prediction_text(const fr_prediction *prediction,
                                    fr_buffer *out, fr_err *err)
{
    print_head(prediction, out);
    FR_TRY(print_parts(prediction, out, err));
    fr_buffer_putc(out, '\n');
    FR_TRY(print_memory(prediction, out, err));
    if (prediction->memory.n_stages > 1)
        FR_TRY(print_stages(prediction, out, err));
    return FR_OK;
}
