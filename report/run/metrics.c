/* metrics.c: see metrics.h. */
#include "report/run/metrics.h"

#include "core/document/json.h"

#include <math.h>

static double tokens_per_s(const fr_metrics_scale *scale,
                           const fr_step_record *record)
{
    return record->step_s > 0 ? scale->tokens_per_step / record->step_s : NAN;
}

static double mfu(const fr_metrics_scale *scale, const fr_step_record *record)
{
    return record->step_s > 0 && scale->ideal_step_s > 0
               ? scale->ideal_step_s / record->step_s
               : NAN;
}

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

static void put_bytes(fr_json_writer *json, const char *key, uint64_t n_bytes,
                      bool is_known)
{
    if (is_known)
        fr_json_put_u64(json, key, n_bytes);
    else
        fr_json_put_null(json, key);
}

void fr_metrics_line(const fr_metrics_scale *scale,
                     const fr_step_record *record, double unix_s,
                     fr_buffer *out)
{
    fr_json_writer json;

    fr_json_writer_init_line(&json, out);
    fr_json_begin_object(&json);
    fr_json_put_string(&json, "schema", "forerun.metrics/1");
    fr_json_put_double(&json, "time_s", round(1000 * unix_s) / 1000);
    fr_json_put_i64(&json, "step", record->step);
    fr_json_put_double(&json, "loss", record->loss);
    fr_json_put_double(&json, "grad_norm", record->grad_norm);
    fr_json_put_double(&json, "step_s", record->step_s);
    fr_json_put_double(&json, "tokens_per_s", tokens_per_s(scale, record));
    fr_json_put_double(&json, "mfu", mfu(scale, record));
    put_parts(record, &json);
    put_slowest(record, &json);
    put_bytes(&json, "memory_bytes", record->memory_bytes,
              record->memory_bytes > 0);
    put_bytes(&json, "received_bytes", record->received_bytes,
              record->has_parts);
    fr_json_end_object(&json);
}
