/* answer_explain.c: a plan in words, where its time and memory go, what binds
 * it and what would change that. */
#include "api/answer/answers.h"
#include "api/fit/fit_answer.h"
#include "api/goodput/run_length.h"
#include "api/inputs.h"
#include "api/resolve/goal_options.h"
#include "api/resolve/no_effect.h"
#include "api/subject/plan_subject.h"
#include "plan/decide/plan_json.h"
#include "report/explanation_report.h"
#include "report/fit_report.h"
#include "report/plan_report.h"
#include "report/prediction_report.h"
#include "report/setup_report.h"
#include "report/timeline/gantt.h"
#include "tuner/study/explain_plan.h"

#include <stdlib.h>

/* The plan that is explained, and all results about it. */
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

static void add_prediction(const fr_request *request, const subject *s,
                           const fr_prediction *prediction, fr_document *out)
{
    const fr_report_setup setup = setup_of(s);
    fr_json_open_object(&out->data, "prediction");
    fr_report_prediction(&s->file.model, prediction, out);
    fr_json_end_object(&out->data);
    if (s->has_forecast)
        fr_request_run_length(request, &setup, prediction, out);
    if (s->has_fit)
        fr_report_fit(&s->fit, out);
}

static void add_explanation(const fr_request *request, const fr_explanation *e,
                            fr_document *out)
{
    const int n_changes = fr_request_has(request, FR_OPT_TOP)
                              ? (int)request->option[FR_OPT_TOP].count
                              : 10;
    fr_document_puts(out, "\n");
    fr_report_explanation(e, n_changes, out);
    if (fr_request_on(request, FR_OPT_NEXT_MEASUREMENT))
        fr_report_measurement(&e->next_measurement, out);
}

static fr_status build(const fr_request *request, const subject *s,
                       fr_document *out, fr_err *err)
{
    char name[256];
    const fr_prediction *prediction = prediction_of(s);
    const fr_report_setup setup = setup_of(s);
    if (prediction != NULL)
        fr_report_verdict(prediction, out);
    fr_json_put_string(&out->data, "name",
                       fr_plan_describe(&s->file.plan, name, sizeof name));
    fr_json_put_string(&out->data, "model", s->file.model.name);
    fr_plan_json_put(&s->file.plan, &out->data);
    fr_report_plan(&s->file.model, &s->file.job, &s->file.plan, out);
    fr_document_puts(out, "\n");
    if (s->inputs.has_cluster)
        fr_report_put_setup(&setup, out);
    if (prediction == NULL) {
        fr_json_put_null(&out->data, "prediction");
        fr_document_puts(out, "no prediction in the plan; give a cluster\n");
        return FR_OK;
    }
    add_prediction(request, s, prediction, out);
    if (s->explanation != NULL)
        add_explanation(request, s->explanation, out);
    if (!fr_request_on(request, FR_OPT_GANTT))
        return FR_OK;
    fr_document_puts(out, "\n");
    return fr_report_gantt(s->forecast.program, &s->forecast.timeline, 0, out,
                           err);
}

/* Without a cluster the plan is shown as it is. */
static fr_status check_options(const fr_request *request, fr_err *err)
{
    FR_TRY(fr_plan_subject_check(request, err));
    for (int i = 0; i < FR_OPT_N && fr_plan_subject_cluster(request) == NULL;
         i++) {
        if (request->option[i].source != FR_SOURCE_FLAG ||
            i == FR_OPT_COLUMNS ||
            fr_option_get((fr_option)i).group == FR_GROUP_COMMON)
            continue;
        return fr_fail(err, FR_USAGE,
                       "--%s needs a CLUSTER: forerun explain PLAN CLUSTER",
                       fr_option_get((fr_option)i).name);
    }
    return FR_OK;
}

static fr_status analyse(const fr_request *request, subject *s, fr_err *err)
{
    const char *trace = fr_request_text(request, FR_OPT_TRACE);
    bool has_timeline = trace != NULL || fr_request_on(request, FR_OPT_GANTT);
    FR_TRY(fr_forecast_make_file(&s->inputs, &s->file, has_timeline,
                                 &s->forecast, err));
    s->has_forecast = true;
    fr_inputs_note_wrong_cluster(request, &s->inputs, s->file.cluster,
                                 s->file.cluster_hash);
    fr_note_idle_options(request, &s->inputs, &s->file.model, &s->file.job,
                         &s->file.plan, &s->forecast.prediction);
    if (trace != NULL)
        FR_TRY(fr_forecast_write_trace(&s->forecast, trace, err));
    const fr_explain_request question = {
        .model = &s->file.model,
        .job = &s->file.job,
        .cluster = &s->inputs.cluster,
        .profile = s->inputs.has_profile ? &s->inputs.profile : NULL,
        .costs = s->inputs.costs,
        .plan = &s->file.plan,
        .prediction = &s->forecast.prediction,
        .allow_lossy = fr_request_has(request, FR_OPT_ALLOW),
        .fit_confidence = fr_request_fit_confidence(request),
        .n_threads = fr_request_threads(request),
        .log = fr_request_log(request),
    };
    if (!s->forecast.prediction.memory.fits) {
        FR_TRY(fr_fit_answer_find(request, &s->inputs, &s->file,
                                  &s->forecast.prediction, &s->fit, err));
        s->has_fit = true;
    }
    s->explanation = malloc(sizeof *s->explanation);
    if (s->explanation == NULL)
        return fr_fail_no_memory(err);
    fr_status status = fr_explain_plan(&question, s->explanation, err);
    if (status == FR_OK)
        return FR_OK;
    free(s->explanation);
    s->explanation = NULL;
    return status;
}

fr_status fr_api_explain(const fr_request *request, fr_document *out,
                         fr_err *err)
{
    subject s = {0};
    fr_status status;
    FR_TRY(check_options(request, err));
    FR_TRY(fr_request_check_run_length(request, err));
    const char *cluster = fr_plan_subject_cluster(request);
    const bool has_cluster = cluster != NULL;
    fr_plan_file_init(&s.file);
    if (has_cluster)
        FR_TRY_GOTO(status, fr_inputs_load(request, cluster, &s.inputs, err),
                    out_subject);
    status = fr_plan_subject_load(request, &s.inputs, &s.file, err);
    if (status == FR_OK && has_cluster)
        status = analyse(request, &s, err);
    if (status == FR_OK) {
        fr_document_init(out, "forerun.explanation/1");
        status = build(request, &s, out, err);
    }
out_subject:
    free(s.explanation);
    fr_forecast_release(&s.forecast);
    fr_plan_file_release(&s.file);
    fr_inputs_release(&s.inputs);
    return status;
}
