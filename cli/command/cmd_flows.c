/* cmd_flows.c: when does each flow end? */
#include "api/inputs.h"
#include "cli/answer.h"
#include "api/inputs.h"
#include "cli/cli.h"
#include "report/document/table.h"
#include "simgrid/flows.h"

static fr_status print_json(const fr_cli *cli, const fr_flows_result *result,
                            fr_err *err)
{
    fr_answer answer;
    fr_json_writer *json = fr_answer_begin(&answer, "forerun.flows/1");
    fr_json_open_array(json, "flows");
    for (size_t i = 0; i < result->n; i++) {
        fr_json_begin_object(json);
        fr_json_put_string(json, "id", result->rows[i].id);
        fr_json_put_double(json, "finish_s", result->rows[i].finish_s);
        fr_json_end_object(json);
    }
    fr_json_end_array(json);
    fr_json_put_double(json, "makespan_s", result->makespan_s);
    fr_json_put_u64(json, "events", result->n_events);
    return fr_answer_print(&answer, cli, err);
}

/* Seconds with all digits that matter: the answer may be compared. */
static fr_status print_text(const fr_cli *cli, const fr_flows_result *result,
                            fr_err *err)
{
    static const char *const headings[] = {"flow", ">finish [s]", NULL};
    fr_buffer text;
    fr_table table;
    fr_answer_open(cli, &text);
    fr_table_init(&table, headings);
    for (size_t i = 0; i < result->n; i++) {
        fr_table_text(&table, result->rows[i].id);
        fr_table_cell(&table, "%.9f", result->rows[i].finish_s);
    }
    fr_status status = fr_table_finish(&table, &text, err);
    fr_buffer_printf(&text, "makespan %.9f s\n", result->makespan_s);
    return fr_answer_text(status, &text, cli, err);
}

FR_COMMAND_FUNCTION(flows)
{
    fr_flows_result result;
    FR_TRY(fr_as_input(fr_flows_run(cli->request.positional[0],
                                    cli->request.positional[1], &result, err),
                       err));
    fr_status status = fr_cli_on(cli, FR_OPT_JSON)
                           ? print_json(cli, &result, err)
                           : print_text(cli, &result, err);
    fr_flows_result_release(&result);
    return status;
}
