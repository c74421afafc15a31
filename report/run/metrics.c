/* metrics.c: see metrics.h. */
#include "report/run/metrics.h"

#include "core/document/json.h"

#include <math.h>

static double tokens_per_s(const fr_metrics_state *state)
{
    return state->last.step_s > 0 ? state->tokens_per_step / state->last.step_s
                                  : NAN;
}

/* NaN: not known. */
static double mfu(const fr_metrics_state *state)
{
    return state->last.step_s > 0 && state->ideal_step_s > 0
               ? state->ideal_step_s / state->last.step_s
               : NAN;
}

void fr_metrics_add(fr_metrics_state *state, const fr_step_record *record,
                    double unix_s)
{
    state->last = *record;
    state->unix_s = unix_s;
    state->n_done++;
    state->received_bytes += record->received_bytes;
    state->saving_s += record->saving_s;
}

/* ---- JSON --------------------------------------------------------------- */

static void put_parts(const fr_step_record *record, fr_json_writer *json)
{
    if (!record->has_parts) {
        fr_json_put_null(json, "parts_s");
        return;
    }
    fr_json_open_object(json, "parts_s");
    for (int part = 0; part < FR_PART_N; part++)
        if (record->part_s[part] > 0)
            fr_json_put_double(json, fr_part_name((fr_part)part),
                               record->part_s[part]);
    fr_json_end_object(json);
}

static void put_slowest(const fr_step_record *record, fr_json_writer *json)
{
    if (!record->has_parts) {
        fr_json_put_null(json, "slowest");
        return;
    }
    fr_json_open_object(json, "slowest");
    fr_json_put_i64(json, "rank", record->slowest_rank);
    fr_json_put_double(json, "compute_s", record->slowest_compute_s);
    fr_json_put_double(json, "median_compute_s", record->median_compute_s);
    fr_json_end_object(json);
}

static void put_stragglers(const fr_step_record *record, fr_json_writer *json)
{
    fr_json_open_array(json, "stragglers");
    for (int i = 0; i < record->n_stragglers; i++) {
        const fr_straggler *at = &record->stragglers[i];
        fr_json_begin_object(json);
        fr_json_put_string(json, "kind", fr_name_of(&fr_slow_names, at->kind));
        fr_json_put_i64(json, "index", at->index);
        fr_json_put_double(json, "factor", at->factor);
        fr_json_put_i64(json, "since_step", at->first_step);
        fr_json_end_object(json);
    }
    fr_json_end_array(json);
}

static void put_bytes(fr_json_writer *json, const char *key, uint64_t n_bytes,
                      bool is_known)
{
    if (is_known)
        fr_json_put_u64(json, key, n_bytes);
    else
        fr_json_put_null(json, key);
}

void fr_metrics_line(const fr_metrics_state *state, fr_buffer *out)
{
    const fr_step_record *record = &state->last;
    fr_json_writer json;

    fr_json_writer_init_line(&json, out);
    fr_json_begin_object(&json);
    fr_json_put_string(&json, "schema", "forerun.metrics/1");
    fr_json_put_double(&json, "time_s", round(1000 * state->unix_s) / 1000);
    fr_json_put_i64(&json, "step", record->step);
    fr_json_put_double(&json, "loss", record->loss);
    fr_json_put_double(&json, "grad_norm", record->grad_norm);
    fr_json_put_double(&json, "step_s", record->step_s);
    fr_json_put_double(&json, "saving_s", record->saving_s);
    fr_json_put_double(&json, "tokens_per_s", tokens_per_s(state));
    fr_json_put_double(&json, "mfu", mfu(state));
    put_parts(record, &json);
    put_slowest(record, &json);
    put_bytes(&json, "memory_bytes", record->memory_bytes,
              record->memory_bytes > 0);
    put_bytes(&json, "received_bytes", record->received_bytes,
              record->has_parts);
    put_stragglers(record, &json);
    fr_json_end_object(&json);
}

/* ---- Prometheus --------------------------------------------------------- */

typedef struct metric {
    const char *name, *type, *help;
    double value;
    bool is_known;
} metric;

/* As the text format wants it, where NaN and Inf have names. */
static void put_value(double value, fr_buffer *out)
{
    if (isnan(value))
        fr_buffer_puts(out, "NaN");
    else if (isinf(value))
        fr_buffer_puts(out, value > 0 ? "+Inf" : "-Inf");
    else
        fr_buffer_printf(out, "%.17g", value);
    fr_buffer_putc(out, '\n');
}

static void put_head(const char *name, const char *type, const char *help,
                     fr_buffer *out)
{
    fr_buffer_printf(out, "# HELP forerun_%s %s\n# TYPE forerun_%s %s\n", name,
                     help, name, type);
}

static void put_part_seconds(const fr_step_record *record, fr_buffer *out)
{
    put_head("part_seconds", "gauge",
             "Durations of the parts of the last step, mean over the ranks.",
             out);
    for (int part = 0; part < FR_PART_N; part++) {
        fr_buffer_printf(out, "forerun_part_seconds{part=\"%s\"} ",
                         fr_part_name((fr_part)part));
        put_value(record->part_s[part], out);
    }
}

static void put_slow(const fr_step_record *record, fr_buffer *out)
{
    put_head("straggler_factor", "gauge",
             "Slow ranks, stages and links: time over the expected time.", out);
    for (int i = 0; i < record->n_stragglers; i++) {
        const fr_straggler *at = &record->stragglers[i];
        fr_buffer_printf(
            out, "forerun_straggler_factor{kind=\"%s\",index=\"%lld\"} ",
            fr_name_of(&fr_slow_names, at->kind), (long long)at->index);
        put_value(at->factor, out);
    }
}

void fr_metrics_text(const fr_metrics_state *state, fr_buffer *out)
{
    const fr_step_record *last = &state->last;
    const bool has_step = state->n_done > 0;
    const bool has_parts = has_step && last->has_parts;
    const metric metrics[] = {
        {"steps_total", "counter", "Steps of this process that are over.",
         (double)state->n_done, true},
        {"step", "gauge", "Number of the last step, from 0.",
         (double)last->step, has_step},
        {"last_step", "gauge", "Number of the step that ends the run.",
         (double)last->n_steps - 1, has_step},
        {"step_end_timestamp_seconds", "gauge",
         "Unix time of the last step's end.", state->unix_s, has_step},
        {"loss", "gauge", "Loss of the last step.", last->loss, has_step},
        {"grad_norm", "gauge", "Norm of the gradients before clipping.",
         last->grad_norm, has_step && !isnan(last->grad_norm)},
        {"step_duration_seconds", "gauge",
         "Duration of the last step, slowest rank.", last->step_s, has_step},
        {"saving_seconds_total", "counter",
         "Time that training stood still for checkpoints and copies.",
         state->saving_s, true},
        {"tokens_per_second", "gauge",
         "Tokens (samples of a list of layers) of the global batch over that.",
         tokens_per_s(state), has_step},
        {"tokens_total", "counter",
         "Tokens (samples of a list of layers) of this process's steps.",
         state->tokens_per_step * (double)state->n_done, true},
        {"mfu_ratio", "gauge", "Model flop utilization of the last step.",
         mfu(state), has_step && state->ideal_step_s > 0},
        {"memory_bytes", "gauge", "Resident, of the rank that has most.",
         (double)last->memory_bytes, has_step && last->memory_bytes > 0},
        {"received_bytes_total", "counter",
         "Bytes that ranks got from each other.", (double)state->received_bytes,
         has_parts},
        {"slowest_rank", "gauge", "The rank that computed longest.",
         (double)last->slowest_rank, has_parts},
        {"slowest_compute_seconds", "gauge",
         "Its compute time in the last step.", last->slowest_compute_s,
         has_parts},
        {"median_compute_seconds", "gauge", "Compute time of the median rank.",
         last->median_compute_s, has_parts},
    };

    for (size_t i = 0; i < FR_LENGTH(metrics); i++) {
        const metric *m = &metrics[i];
        if (!m->is_known)
            continue;
        put_head(m->name, m->type, m->help, out);
        fr_buffer_printf(out, "forerun_%s ", m->name);
        put_value(m->value, out);
    }
    if (!has_parts)
        return;
    put_part_seconds(last, out);
    put_slow(last, out);
}
