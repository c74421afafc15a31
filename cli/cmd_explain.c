/* cmd_explain.c: a plan in words, and where its time and memory go. */
#include "cli/answer.h"
#include "cli/command.h"
#include "cli/inputs.h"
#include "plan/plan_json.h"
#include "report/plan_report.h"
#include "report/prediction_report.h"

static fr_status print_text(const fr_cli *cli, const fr_plan_file *file,
                            const fr_forecast *forecast, fr_err *err)
{
    const fr_prediction *prediction = forecast ? &forecast->prediction
                                      : file->has_prediction ? &file->prediction
                                                             : NULL;
    fr_buffer text;
    fr_buffer_init(&text);
    fr_status status =
        fr_report_plan_text(&file->model, &file->job, &file->plan, &text, err);
    fr_buffer_putc(&text, '\n');
    if (status == FR_OK && prediction != NULL)
        status = fr_report_prediction_text(prediction, &text, err);
    else if (status == FR_OK)
        fr_buffer_puts(&text, "no prediction in the plan; give a cluster\n");
    if (status == FR_OK && forecast != NULL && fr_cli_on(cli, FR_OPT_GANTT)) {
        fr_buffer_putc(&text, '\n');
        status = fr_forecast_gantt(forecast, &text, err);
    }
    if (status == FR_OK)
        return fr_answer_text(&text, cli, err);
    fr_buffer_release(&text);
    return status;
}

static fr_status print_json(const fr_cli *cli, const fr_plan_file *file,
                            const fr_forecast *forecast, fr_err *err)
{
    char name[256];
    fr_answer answer;
    fr_json_writer *json = fr_answer_begin(&answer, "forerun.explanation/1");
    fr_json_put_string(json, "name",
                       fr_plan_describe(&file->plan, name, sizeof name));
    fr_json_put_string(json, "model", file->model.name);
    fr_json_key(json, "plan");
    fr_plan_json_write(&file->plan, json);
    fr_json_key(json, "prediction");
    if (forecast == NULL && !file->has_prediction) {
        fr_json_null(json);
        return fr_answer_print(&answer, cli, err);
    }
    fr_json_begin_object(json);
    fr_report_prediction_json(
        forecast != NULL ? &forecast->prediction : &file->prediction, json);
    fr_json_end_object(json);
    return fr_answer_print(&answer, cli, err);
}

static fr_status check_options(const fr_cli *cli, fr_err *err)
{
    static const fr_option need_cluster[] = {FR_OPT_GANTT, FR_OPT_TRACE,
                                             FR_OPT_PROFILE};
    for (int i = 0; i < 3 && cli->n_positional < 2; i++)
        if (cli->option[need_cluster[i]].source == FR_SOURCE_FLAG)
            return fr_fail(err, FR_USAGE,
                           "--%s needs a CLUSTER: forerun explain PLAN "
                           "CLUSTER",
                           fr_options[need_cluster[i]].name);
    return FR_OK;
}

FR_COMMAND_FUNCTION(explain)
{
    fr_plan_file file;
    fr_inputs inputs = {0};
    fr_forecast forecast = {0};
    bool is_simulated = cli->n_positional > 1;
    FR_TRY(check_options(cli, err));
    FR_TRY(fr_as_input(fr_plan_file_load(cli->positional[0], &file, err), err));
    fr_status status = FR_OK;
    if (is_simulated) {
        FR_TRY_GOTO(status,
                    fr_inputs_load(cli, cli->positional[1], &inputs, err),
                    out_file);
        FR_TRY_GOTO(status,
                    fr_forecast_make_file(&inputs, &file, &forecast, err),
                    out_file);
    }
    const char *trace = fr_cli_text(cli, FR_OPT_TRACE);
    if (is_simulated && trace != NULL)
        FR_TRY_GOTO(status, fr_forecast_write_trace(&forecast, trace, err),
                    out_file);
    const fr_forecast *shown = is_simulated ? &forecast : NULL;
    status = fr_cli_on(cli, FR_OPT_JSON) ? print_json(cli, &file, shown, err)
                                         : print_text(cli, &file, shown, err);
out_file:
    fr_forecast_release(&forecast);
    fr_inputs_release(&inputs);
    fr_plan_file_release(&file);
    return status;
}
