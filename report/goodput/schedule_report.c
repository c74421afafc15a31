/* schedule_report.c: see schedule_report.h. */
#include "report/goodput/schedule_report.h"

#include "core/base/units.h"
#include "report/goodput/goodput_report.h"

static void shares_of(const fr_schedule_result *result,
                      double shares[FR_RUN_PARTS])
{
    for (int part = 0; part < FR_RUN_PARTS; part++)
        shares[part] = result->parts_s[part] / result->wall_s;
}

void fr_report_schedule(const fr_schedule_told *told, fr_document *out)
{
    fr_json_writer *json = &out->data;
    const fr_schedule_result *result = &told->result;
    char step[FR_FORMAT_MAX], blocked[FR_FORMAT_MAX], restart[FR_FORMAT_MAX];
    double shares[FR_RUN_PARTS];

    shares_of(result, shares);
    fr_document_printf(out, "run: %lld steps of %s, started in %s\n",
                       (long long)told->n_steps,
                       fr_format_s(step, sizeof step, told->step_s),
                       fr_format_s(restart, sizeof restart, told->restart_s));
    if (told->every_steps > 0)
        fr_document_printf(
            out, "checkpoints: every %lld steps, block %s\n",
            (long long)told->every_steps,
            fr_format_s(blocked, sizeof blocked, told->blocked_s));
    fr_document_printf(
        out,
        "\ngoodput %.2f %%, %lld restart%s, %lld step%s done once "
        "more\n\n",
        100 * shares[FR_RUN_USEFUL], (long long)result->n_restarts,
        result->n_restarts == 1 ? "" : "s", (long long)result->n_lost_steps,
        result->n_lost_steps == 1 ? "" : "s");
    fr_report_waterfall(shares, result->wall_s, "seconds", out);
    fr_document_printf(out, "\nfinish: after %s\n",
                       fr_format_s(step, sizeof step, result->wall_s));
    fr_json_put_double(json, "goodput", shares[FR_RUN_USEFUL]);
    fr_json_put_double(json, "wall_s", result->wall_s);
    fr_json_put_i64(json, "restarts", result->n_restarts);
    fr_json_put_i64(json, "lost_steps", result->n_lost_steps);
    fr_json_put_double(json, "step_s", told->step_s);
    fr_json_open_object(json, "seconds");
    for (int part = 0; part < FR_RUN_PARTS; part++)
        fr_json_put_double(json, fr_name_at(&fr_run_part_names, part),
                           result->parts_s[part]);
    fr_json_end_object(json);
}
