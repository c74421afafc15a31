/* cmd_goodput.c: a run of weeks: failures, checkpoints, spot nodes. */
#include "api/fit_answer.h"
#include "api/goodput/goodput_backup.h"
#include "api/goodput/goodput_changes.h"
#include "api/goodput/goodput_inject.h"
#include "api/subject/plan_subject.h"
#include "cli/answer.h"
#include "cli/cli.h"
#include "report/fit_report.h"
#include "report/setup_report.h"

static fr_report_setup setup_of(const fr_inputs *inputs,
                                const fr_plan_file *file)
{
    return (fr_report_setup){&file->model, &file->job, &file->plan,
                             &inputs->cluster, file->framework};
}

/* What is printed of a run. */
typedef struct told {
    fr_goodput goodput;
    fr_goodput_setup setup;
    fr_goodput_change changes[FR_GOODPUT_CHANGES];
    size_t n_changes;
    const fr_prediction *prediction;
    fr_fit_advice fit;
} told;

/* A run that was asked for with --force. */
static void put_fit_json(const fr_fit_advice *fit, fr_json_writer *json)
{
    if (fit->verdict[0] != '\0')
        fr_report_fit_json(fit, json);
}

static fr_status print_text(const fr_cli *cli, const fr_inputs *inputs,
                            const fr_plan_file *file, const told *run,
                            fr_err *err)
{
    char name[256];
    fr_buffer text;
    const fr_report_setup at = setup_of(inputs, file);
    fr_answer_open(cli, &text);
    fr_report_verdict_text(run->prediction, &text);
    fr_buffer_printf(&text, "%s on %s: %s\n", file->model.name,
                     fr_plan_subject_cluster(&cli->request),
                     fr_plan_describe(&file->plan, name, sizeof name));
    fr_report_setup_text(&at, &text);
    fr_status status =
        fr_report_goodput_text(&run->goodput, &run->setup, &text, err);
    if (status == FR_OK && run->n_changes > 0)
        status = fr_report_goodput_changes_text(run->changes, run->n_changes,
                                                &text, err);
    return fr_answer_text(status, &text, cli, err);
}

static fr_status print_json(const fr_cli *cli, const fr_inputs *inputs,
                            const fr_plan_file *file, const told *run,
                            fr_err *err)
{
    char name[256];
    fr_answer answer;
    const fr_report_setup at = setup_of(inputs, file);
    fr_json_writer *json = fr_answer_begin(&answer, "forerun.goodput/1");
    fr_json_put_string(json, "plan",
                       fr_plan_describe(&file->plan, name, sizeof name));
    fr_json_put_string(json, "model", file->model.name);
    put_fit_json(&run->fit, json);
    fr_report_setup_json(&at, json);
    fr_report_goodput_json(&run->goodput, &run->setup, json);
    fr_report_goodput_changes_json(run->changes, run->n_changes, json);
    return fr_answer_print(&answer, cli, err);
}

/* One run with faults on purpose. */
static fr_status answer_injected(const fr_cli *cli, fr_inputs *inputs,
                                 const fr_plan_file *file,
                                 const fr_prediction *prediction, fr_err *err)
{
    char name[256];
    fr_schedule_told walked;
    fr_fit_advice fit;
    FR_TRY(fr_goodput_inject(&cli->request, inputs, file, prediction->step_s,
                             &walked, err));
    FR_TRY(fr_fit_answer_check(&cli->request, inputs, file, prediction, &fit,
                               err));
    (void)fr_plan_describe(&file->plan, name, sizeof name);
    if (fr_cli_on(cli, FR_OPT_JSON)) {
        fr_answer answer;
        fr_json_writer *json = fr_answer_begin(&answer, "forerun.injected/1");
        fr_json_put_string(json, "plan", name);
        fr_json_put_string(json, "model", file->model.name);
        put_fit_json(&fit, json);
        fr_report_schedule_json(&walked, json);
        return fr_answer_print(&answer, cli, err);
    }
    fr_buffer text;
    fr_answer_open(cli, &text);
    fr_report_verdict_text(prediction, &text);
    fr_buffer_printf(&text, "%s on %s: %s\n", file->model.name,
                     fr_plan_subject_cluster(&cli->request), name);
    return fr_answer_text(fr_report_schedule_text(&walked, &text, err), &text,
                          cli, err);
}

static fr_status answer(const fr_cli *cli, const fr_inputs *inputs,
                        const fr_plan_file *file,
                        const fr_prediction *prediction, fr_err *err)
{
    fr_goodput_case run;
    told all = {.prediction = prediction};
    fr_status status;
    FR_TRY_GOTO(status,
                fr_goodput_case_make(&cli->request, inputs, file, prediction,
                                     &run, err),
                out_case);
    FR_TRY_GOTO(status,
                fr_fit_answer_check(&cli->request, inputs, file, prediction,
                                    &all.fit, err),
                out_case);
    FR_TRY_GOTO(
        status,
        fr_run_replicas(&run.conditions, &run.request, &all.goodput, err),
        out_case);
    fr_goodput_case_sum(&inputs->cluster, &all.goodput, &run);
    all.setup = run.setup;
    FR_TRY_GOTO(status,
                fr_goodput_changes(&inputs->cluster, &run, all.changes,
                                   &all.n_changes, err),
                out_case);
    status = fr_cli_on(cli, FR_OPT_JSON)
                 ? print_json(cli, inputs, file, &all, err)
                 : print_text(cli, inputs, file, &all, err);
out_case:
    fr_goodput_case_release(&run);
    return status;
}

FR_COMMAND_FUNCTION(goodput)
{
    fr_inputs inputs = {0};
    fr_plan_file file;
    fr_forecast forecast = {0};
    fr_status status;
    const char *cluster = fr_plan_subject_cluster(&cli->request);
    if (cluster == NULL)
        return fr_fail(err, FR_USAGE,
                       "a CLUSTER is missing: forerun goodput PLAN CLUSTER, or "
                       "MODEL CLUSTER");
    FR_TRY(fr_plan_subject_check(&cli->request, err));
    fr_plan_file_init(&file);
    FR_TRY_GOTO(status, fr_inputs_load(&cli->request, cluster, &inputs, err),
                out_all);
    FR_TRY_GOTO(status,
                fr_plan_subject_load(&cli->request, &inputs, &file, err),
                out_all);
    FR_TRY_GOTO(status,
                fr_forecast_make_file(&inputs, &file, false, &forecast, err),
                out_all);
    FR_TRY_GOTO(status,
                fr_goodput_backups(&cli->request, &inputs, &file,
                                   &forecast.prediction, err),
                out_all);
    fr_inputs_note_wrong_cluster(&cli->request, &inputs, file.cluster,
                                 file.cluster_hash);
    status =
        fr_cli_has(cli, FR_OPT_INJECT)
            ? answer_injected(cli, &inputs, &file, &forecast.prediction, err)
            : answer(cli, &inputs, &file, &forecast.prediction, err);
out_all:
    fr_forecast_release(&forecast);
    fr_plan_file_release(&file);
    fr_inputs_release(&inputs);
    return status;
}
