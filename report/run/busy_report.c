/* busy_report.c: see busy_report.h. */
#include "report/run/busy_report.h"

#include "core/base/units.h"

#include <math.h>

void fr_report_busy_json(const fr_busy_steps *busy, double predicted_step_s,
                         fr_json_writer *json)
{
    const double undisturbed_s = busy->undisturbed_step_s;

    if (busy->n_known == 0) {
        fr_json_put_null(json, "others");
        return;
    }
    fr_json_open_object(json, "others");
    fr_json_put_double(json, "processors", busy->others);
    fr_json_put_double(json, "stolen", busy->stolen);
    fr_json_put_i64(json, "of_processors", busy->n_processors);
    fr_json_put_i64(json, "runnable", busy->n_runnable);
    fr_json_put_i64(json, "rank", busy->rank);
    fr_json_put_i64(json, "steps", busy->n_steps);
    fr_json_put_i64(json, "known_steps", busy->n_known);
    fr_json_put_i64(json, "disturbed_steps", busy->n_disturbed);
    fr_json_put_double(json, "undisturbed_step_s",
                       undisturbed_s > 0 ? undisturbed_s : NAN);
    fr_json_put_double(json, "undisturbed_rel_err",
                       undisturbed_s > 0 && predicted_step_s > 0
                           ? predicted_step_s / undisturbed_s - 1
                           : NAN);
    fr_json_end_object(json);
}

void fr_report_busy_text(const fr_busy_steps *busy, int64_t world,
                         fr_document *out)
{
    char text[FR_FORMAT_MAX];

    if (busy->n_disturbed == 0)
        return;
    fr_document_printf(out, "others used %.1f of %d processor%s", busy->others,
                       busy->n_processors, busy->n_processors == 1 ? "" : "s");
    if (world > 1 && busy->rank > 0)
        fr_document_printf(out, " on the machine of rank %lld",
                           (long long)busy->rank);
    if (busy->stolen >= 0.05)
        fr_document_printf(out, " (%.1f of them other virtual machines)",
                           busy->stolen);
    if (busy->n_disturbed == busy->n_steps)
        fr_document_printf(out, " during all %lld steps",
                           (long long)busy->n_steps);
    else
        fr_document_printf(out, " during %lld of %lld steps",
                           (long long)busy->n_disturbed,
                           (long long)busy->n_steps);
    if (busy->undisturbed_step_s > 0)
        fr_document_printf(
            out, "; the undisturbed steps: %s\n",
            fr_format_s(text, sizeof text, busy->undisturbed_step_s));
    else
        fr_document_puts(out, "; no undisturbed step was measured\n");
}
