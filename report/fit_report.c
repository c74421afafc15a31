/* fit_report.c: bytes short, the largest parts, sets of changes that fit. */
#include "report/fit_report.h"

#include "core/base/units.h"

static void put_causes(const fr_fit_advice *advice, fr_document *out)
{
    char bytes[FR_FORMAT_MAX];
    fr_json_open_array(&out->data, "causes");
    for (int i = 0; i < advice->n_causes; i++) {
        const fr_fit_cause *at = &advice->causes[i];
        fr_document_printf(
            out, "  %s: %s\n", at->what,
            fr_format_bytes(bytes, sizeof bytes, (double)at->n_bytes));
        fr_json_begin_object(&out->data);
        fr_json_put_string(&out->data, "what", at->what);
        fr_json_put_u64(&out->data, "bytes", at->n_bytes);
        fr_json_end_object(&out->data);
    }
    fr_json_end_array(&out->data);
}

/* The sets of changes that fit; without any, readers are told why. */
static void put_changes(const fr_fit_advice *advice, fr_document *out)
{
    static const fr_column columns[] = {{"it fits with", "what"},
                                        {NULL, "plan"},
                                        {">step", "step_s"},
                                        {">memory", "peak_bytes"},
                                        {">fits", "p_fits"}};
    if (advice->is_searched)
        fr_document_puts(out, "\n");
    fr_table *table =
        fr_document_records(out, "changes", columns, FR_LENGTH(columns));
    for (int i = 0; i < advice->n_changes; i++) {
        const fr_fit_change *at = &advice->changes[i];
        fr_table_text(table, at->what);
        fr_table_text(table, at->plan);
        fr_table_s(table, at->step_s);
        fr_table_bytes(table, (double)at->peak_bytes);
        fr_table_likely(table, at->p_fits);
    }
    if (advice->n_changes > 0 && advice->n_left_out > 0)
        fr_document_printf(
            out,
            "%d further sets of changes were left out, not looked "
            "at or too long to simulate\n",
            advice->n_left_out);
    else if (advice->is_of_search && advice->n_changes == 0)
        fr_document_puts(out, "no set of up to three changes of it was found "
                              "that fits; more nodes need less of each\n");
    else if (advice->is_searched && advice->n_left_out > 0)
        fr_document_printf(
            out,
            "no changes of it are known to fit: %d sets were left "
            "out, not looked at or too long to\nsimulate; forerun "
            "tune looks at all plans, more nodes need less of "
            "each\n",
            advice->n_left_out);
    else if (advice->is_searched && advice->n_changes == 0)
        fr_document_puts(out, "no set of up to three changes was found that "
                              "fits: forerun tune looks at\nall plans, more "
                              "nodes need less of each\n");
}

void fr_report_verdict(const fr_prediction *prediction, fr_document *out)
{
    char verdict[FR_FIT_VERDICT];
    if (!prediction->memory.fits)
        fr_document_printf(out, "%s\n",
                           fr_fit_verdict(prediction, verdict, sizeof verdict));
}

void fr_report_fit(const fr_fit_advice *advice, fr_document *out)
{
    char lack[FR_FORMAT_MAX], bytes[FR_FORMAT_MAX];
    fr_document_printf(
        out, "%s too large for %s; most of it:\n",
        fr_format_bytes(lack, sizeof lack, (double)advice->short_by_bytes),
        fr_format_bytes(bytes, sizeof bytes, (double)advice->capacity_bytes));
    fr_json_open_object(&out->data, "does_not_fit");
    fr_json_put_string(&out->data, "verdict", advice->verdict);
    fr_json_put_u64(&out->data, "short_by_bytes", advice->short_by_bytes);
    put_causes(advice, out);
    put_changes(advice, out);
    fr_json_put_i64(&out->data, "left_out", advice->n_left_out);
    fr_json_end_object(&out->data);
}

void fr_report_fit_data(const fr_fit_advice *advice, fr_document *out)
{
    if (advice->verdict[0] == '\0')
        return;
    out->audience = FR_FOR_DATA;
    fr_report_fit(advice, out);
    out->audience = FR_FOR_ALL;
}
