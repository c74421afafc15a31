/* cmd_report.c: timelines as files. */
#include "api/inputs.h"
#include "cli/answer.h"
#include "cli/cli.h"
#include "plan/decide/plan_json.h"
#include "report/timeline/trace_json.h"
#include "spec/result/fit_advice.h"

#include <string.h>

static fr_status write_trace(const fr_cli *cli, const fr_forecast *forecast,
                             fr_err *err)
{
    const char *output = fr_cli_text(cli, FR_OPT_OUTPUT);
    char verdict[FR_FIT_VERDICT];
    if (!forecast->prediction.memory.fits)
        fr_cli_note(
            cli, "forerun: %s",
            fr_fit_verdict(&forecast->prediction, verdict, sizeof verdict));
    if (output != NULL) {
        FR_TRY(fr_forecast_write_trace(forecast, output, err));
        fr_cli_note(cli, "forerun: wrote %s", output);
        return FR_OK;
    }
    fr_trace_part part = {&forecast->timeline, "predicted", 0};
    fr_buffer text;
    fr_buffer_init(&text);
    fr_status status = fr_trace_json(forecast->program, &part, 1, &text, err);
    return fr_answer_file(status, &text, cli, err);
}

static fr_status report_trace(const fr_cli *cli, fr_err *err)
{
    fr_plan_file file;
    fr_inputs inputs = {0};
    fr_forecast forecast = {0};
    if (cli->request.n_positional < 3)
        return fr_fail(err, FR_USAGE,
                       "missing argument; usage: forerun report trace PLAN "
                       "CLUSTER");
    FR_TRY(fr_inputs_load_plan(&cli->request, cli->request.positional[1],
                               "CLUSTER", &file, err));
    fr_status status;
    FR_TRY_GOTO(
        status,
        fr_inputs_load(&cli->request, cli->request.positional[2], &inputs, err),
        out_file);
    FR_TRY_GOTO(status,
                fr_forecast_make_file(&inputs, &file, true, &forecast, err),
                out_file);
    status = write_trace(cli, &forecast, err);
out_file:
    fr_forecast_release(&forecast);
    fr_inputs_release(&inputs);
    fr_plan_file_release(&file);
    return status;
}

static fr_status report_check_trace(const fr_cli *cli, fr_err *err)
{
    size_t n_events;
    if (cli->request.n_positional > 2)
        return fr_fail(err, FR_USAGE, "unexpected argument '%.200s'",
                       cli->request.positional[2]);
    FR_TRY(fr_as_input(
        fr_trace_check(cli->request.positional[1], &n_events, err), err));
    fr_document answer;
    fr_document_init(&answer, "forerun.trace-check/1");
    fr_json_put_u64(&answer.data, "events", n_events);
    fr_json_put_bool(&answer.data, "is_nested", true);
    fr_document_printf(&answer, "%zu events, every track is nested\n",
                       n_events);
    return fr_answer_deliver(FR_OK, &answer, cli, err);
}

FR_COMMAND_FUNCTION(report)
{
    const char *what = cli->request.positional[0];
    if (strcmp(what, "trace") == 0)
        return report_trace(cli, err);
    if (strcmp(what, "check-trace") == 0)
        return report_check_trace(cli, err);
    return fr_fail(err, FR_USAGE, "report '%.80s': give trace or check-trace",
                   what);
}
