/* cmd_explain.c: a plan in words, where its time and memory go, what binds it
 * and what would change that. */
#include "api/fit_answer.h"
#include "api/goodput/run_length.h"
#include "api/inputs.h"
#include "api/resolve/goal_options.h"
#include "api/resolve/no_effect.h"
#include "api/subject/plan_subject.h"
#include "cli/answer.h"
#include "cli/cli.h"
#include "plan/decide/plan_json.h"
#include "report/explanation_report.h"
#include "report/fit_report.h"
#include "report/plan_report.h"
#include "report/prediction_report.h"
#include "report/setup_report.h"
#include "tuner/study/explain_plan.h"

#include <stdlib.h>

/* What is explained, and what is known of it. */
typedef struct subject {
    fr_plan_file file;
    fr_inputs inputs;
    fr_forecast forecast;
    bool has_forecast;
    fr_fit_advice fit; /* where it does not fit */
    bool has_fit;
    fr_explanation *explanation; /* owned; NULL: without a cluster */
} subject;

static const fr_prediction *prediction_of(const subject *s)
{
    if (s->has_forecast)
        return &s->forecast.prediction;
    return s->file.has_prediction ? &s->file.prediction : NULL;
}

static fr_report_setup setup_of(const subject *s)
{
    return (fr_report_setup){&s->file.model, &s->file.job, &s->file.plan,
                             &s->inputs.cluster, s->file.framework};
}

static fr_status print_text(const fr_cli *cli, const subject *s, fr_err *err)
{
    int n_changes = fr_cli_has(cli, FR_OPT_TOP)
                        ? (int)cli->request.option[FR_OPT_TOP].count
                        : 10;
    const fr_prediction *prediction = prediction_of(s);
    fr_buffer text;
    fr_answer_open(cli, &text);
    if (prediction != NULL)
        fr_report_verdict_text(prediction, &text);
    fr_status status = fr_report_plan_text(&s->file.model, &s->file.job,
                                           &s->file.plan, &text, err);
    fr_report_setup setup = setup_of(s);
    fr_buffer_putc(&text, '\n');
    if (status == FR_OK && s->inputs.has_cluster)
        fr_report_setup_text(&setup, &text);
    if (status == FR_OK && prediction != NULL)
        status = fr_report_prediction_text(prediction, &text, err);
    else if (status == FR_OK)
        fr_buffer_puts(&text, "no prediction in the plan; give a cluster\n");
    if (status == FR_OK && s->has_forecast)
        status = fr_request_run_length_text(&cli->request, &setup, prediction,
                                            &text, err);
    if (status == FR_OK && s->has_fit)
        status = fr_report_fit_text(&s->fit, &text, err);
    if (status == FR_OK && s->explanation != NULL) {
        fr_buffer_putc(&text, '\n');
        status =
            fr_report_explanation_text(s->explanation, n_changes, &text, err);
        if (fr_cli_on(cli, FR_OPT_NEXT_MEASUREMENT))
            fr_report_measurement_text(&s->explanation->next_measurement,
                                       &text);
    }
    if (status == FR_OK && fr_cli_on(cli, FR_OPT_GANTT)) {
        fr_buffer_putc(&text, '\n');
        status = fr_forecast_gantt(&s->forecast, &text, err);
    }
    return fr_answer_text(status, &text, cli, err);
}

static fr_status print_json(const fr_cli *cli, const subject *s, fr_err *err)
{
    char name[256];
    fr_answer answer;
    const fr_prediction *prediction = prediction_of(s);
    fr_json_writer *json = fr_answer_begin(&answer, "forerun.explanation/1");
    fr_json_put_string(json, "name",
                       fr_plan_describe(&s->file.plan, name, sizeof name));
    fr_json_put_string(json, "model", s->file.model.name);
    fr_plan_json_put(&s->file.plan, json);
    fr_report_setup setup = setup_of(s);
    if (s->inputs.has_cluster)
        fr_report_setup_json(&setup, json);
    fr_json_key(json, "prediction");
    if (prediction == NULL) {
        fr_json_null(json);
        return fr_answer_print(&answer, cli, err);
    }
    fr_json_begin_object(json);
    fr_report_prediction_json(prediction, json);
    fr_json_end_object(json);
    if (s->has_forecast)
        fr_request_run_length_json(&cli->request, &setup, prediction, json);
    if (s->has_fit)
        fr_report_fit_json(&s->fit, json);
    if (s->explanation != NULL)
        fr_report_explanation_json(s->explanation, json);
    if (s->explanation != NULL && fr_cli_on(cli, FR_OPT_NEXT_MEASUREMENT))
        fr_report_measurement_json(&s->explanation->next_measurement, json);
    return fr_answer_print(&answer, cli, err);
}

/* Without a cluster the plan is shown as it is. */
static fr_status check_options(const fr_cli *cli, fr_err *err)
{
    FR_TRY(fr_plan_subject_check(&cli->request, err));
    for (int i = 0;
         i < FR_OPT_N && fr_plan_subject_cluster(&cli->request) == NULL; i++) {
        if (cli->request.option[i].source != FR_SOURCE_FLAG ||
            i == FR_OPT_JSON || i == FR_OPT_QUIET || i == FR_OPT_HELP ||
            i == FR_OPT_COLUMNS)
            continue;
        return fr_fail(err, FR_USAGE,
                       "--%s needs a CLUSTER: forerun explain PLAN CLUSTER",
                       fr_option_get((fr_option)i).name);
    }
    return FR_OK;
}

static fr_status analyse(const fr_cli *cli, subject *s, fr_err *err)
{
    fr_log log;
    const char *trace = fr_cli_text(cli, FR_OPT_TRACE);
    bool has_timeline = trace != NULL || fr_cli_on(cli, FR_OPT_GANTT);
    fr_log_init_stream(&log, cli->chatter);
    FR_TRY(fr_forecast_make_file(&s->inputs, &s->file, has_timeline,
                                 &s->forecast, err));
    s->has_forecast = true;
    fr_inputs_note_wrong_cluster(&cli->request, &s->inputs, s->file.cluster,
                                 s->file.cluster_hash);
    fr_note_idle_options(&cli->request, &s->inputs, &s->file.model,
                         &s->file.job, &s->file.plan, &s->forecast.prediction);
    if (trace != NULL)
        FR_TRY(fr_forecast_write_trace(&s->forecast, trace, err));
    fr_explain_request request = {
        .model = &s->file.model,
        .job = &s->file.job,
        .cluster = &s->inputs.cluster,
        .profile = s->inputs.has_profile ? &s->inputs.profile : NULL,
        .costs = s->inputs.costs,
        .plan = &s->file.plan,
        .prediction = &s->forecast.prediction,
        .allow_lossy = fr_cli_has(cli, FR_OPT_ALLOW),
        .fit_confidence = fr_request_fit_confidence(&cli->request),
        .n_threads = (int)cli->request.option[FR_OPT_JOBS].count,
        .log = fr_cli_on(cli, FR_OPT_QUIET) ? NULL : &log,
    };
    if (!s->forecast.prediction.memory.fits) {
        FR_TRY(fr_fit_answer_find(&s->inputs, &s->file.model, &s->file.job,
                                  &s->file.plan, &s->forecast.prediction,
                                  &s->fit, err));
        s->has_fit = true;
    }
    s->explanation = malloc(sizeof *s->explanation);
    if (s->explanation == NULL)
        return fr_fail_no_memory(err);
    fr_status status = fr_explain_plan(&request, s->explanation, err);
    if (status == FR_OK)
        return FR_OK;
    free(s->explanation);
    s->explanation = NULL;
    return status;
}

FR_COMMAND_FUNCTION(explain)
{
    subject s = {0};
    fr_status status;
    FR_TRY(check_options(cli, err));
    FR_TRY(fr_request_check_run_length(&cli->request, err));
    const char *cluster = fr_plan_subject_cluster(&cli->request);
    const bool has_cluster = cluster != NULL;
    fr_plan_file_init(&s.file);
    if (has_cluster)
        FR_TRY_GOTO(status,
                    fr_inputs_load(&cli->request, cluster, &s.inputs, err),
                    out_subject);
    status = fr_plan_subject_load(&cli->request, &s.inputs, &s.file, err);
    if (status == FR_OK && has_cluster)
        status = analyse(cli, &s, err);
    if (status == FR_OK)
        status = fr_cli_on(cli, FR_OPT_JSON) ? print_json(cli, &s, err)
                                             : print_text(cli, &s, err);
out_subject:
    free(s.explanation);
    fr_forecast_release(&s.forecast);
    fr_plan_file_release(&s.file);
    fr_inputs_release(&s.inputs);
    return status;
}
