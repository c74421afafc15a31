/* answer_flows.c: when does each flow end? */
#include "api/answer/answers.h"
#include "api/inputs.h"
#include "simgrid/flows.h"

/* Seconds with all digits that matter: the answer may be compared. */
static void build(const fr_flows_result *result, fr_document *out)
{
    static const fr_column columns[] = {{"flow", "id"},
                                        {">finish [s]", "finish_s"}};
    fr_table *table =
        fr_document_records(out, "flows", columns, FR_LENGTH(columns));
    table->is_main = true;
    for (size_t i = 0; i < result->n; i++) {
        const fr_flows_row *row = &result->rows[i];
        fr_table_text(table, row->id);
        fr_table_number(table, FR_CELL_S, row->finish_s, "%.9f", row->finish_s);
    }
    fr_json_put_double(&out->data, "makespan_s", result->makespan_s);
    fr_json_put_u64(&out->data, "events", result->n_events);
    fr_document_printf(out, "makespan %.9f s\n", result->makespan_s);
}

fr_status fr_api_flows(const fr_request *request, fr_document *out, fr_err *err)
{
    fr_flows_result result;
    FR_TRY(fr_as_input(fr_flows_run(request->positional[0],
                                    request->positional[1], &result, err),
                       err));
    fr_document_init(out, "forerun.flows/1");
    build(&result, out);
    fr_flows_result_release(&result);
    return FR_OK;
}
