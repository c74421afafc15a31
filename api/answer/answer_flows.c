/* cmd_flows.c: when does each flow end? */
#include "api/inputs.h"
#include "cli/answer.h"
#include "api/inputs.h"
#include "cli/cli.h"
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

FR_COMMAND_FUNCTION(flows)
{
    fr_flows_result result;
    FR_TRY(fr_as_input(
        fr_flows_run(cli->request.positional[0], cli->request.positional[1], &result, err),
        err));
    fr_document answer;
    fr_document_init(&answer, "forerun.flows/1");
    build(&result, &answer);
    fr_flows_result_release(&result);
    return fr_answer_deliver(FR_OK, &answer, cli, err);
}
