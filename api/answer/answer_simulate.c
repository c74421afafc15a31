/* answer_simulate.c: one plan's prediction. */
#include "api/answer/answers.h"
#include "api/fit/fit_answer.h"
#include "api/goodput/run_length.h"
#include "api/inputs.h"
#include "api/resolve/no_effect.h"
#include "api/resolve/plan_resolve.h"
#include "api/subject/plan_words.h"
#include "report/fit_report.h"
#include "report/prediction_report.h"
#include "report/setup_report.h"
#include "report/timeline/gantt.h"

static fr_report_setup setup_of(const fr_inputs *inputs,
                                const fr_plan_choice *choice)
{
    return (fr_report_setup){&choice->file.model, &choice->file.job,
                             &choice->file.plan, &inputs->cluster,
                             choice->file.framework};
}

static fr_status build(const fr_request *request, const fr_inputs *inputs,
                       const fr_plan_choice *choice,
                       const fr_forecast *forecast, const fr_fit_advice *fit,
                       fr_document *out, fr_err *err)
{
    char name[256];
    const fr_prediction *prediction = &forecast->prediction;
    const fr_report_setup setup = setup_of(inputs, choice);
    fr_plan_describe(&choice->file.plan, name, sizeof name);
    fr_report_verdict(prediction, out);
    fr_document_heading(out, "%s on %s: %s", choice->file.model.name,
                        inputs->cluster_word, name);
    fr_json_put_string(&out->data, "plan", name);
    fr_report_put_model(&setup, out);
    fr_report_put_setup(&setup, out);
    fr_report_prediction(&choice->file.model, prediction, out);
    fr_request_run_length(request, &setup, prediction, out);
    if (fit != NULL)
        fr_report_fit(fit, out);
    if (!fr_request_on(request, FR_OPT_GANTT))
        return FR_OK;
    fr_document_puts(out, "\n");
    return fr_report_gantt(forecast->program, &forecast->timeline, 0, out, err);
}

static fr_status answer(const fr_request *request, const fr_inputs *inputs,
                        const fr_plan_choice *choice,
                        const fr_forecast *forecast, fr_document *out,
                        fr_err *err)
{
    const char *trace = fr_request_text(request, FR_OPT_TRACE);
    const char *output = fr_request_text(request, FR_OPT_OUTPUT);
    fr_fit_advice fit;
    fr_inputs_note_wrong_cluster(request, inputs, choice->file.cluster,
                                 choice->file.cluster_hash);
    fr_note_idle_options(request, inputs, &choice->file.model,
                         &choice->file.job, &choice->file.plan,
                         &forecast->prediction);
    if (trace != NULL)
        FR_TRY(fr_forecast_write_trace(forecast, trace, err));
    if (output != NULL)
        FR_TRY(fr_plan_choice_save(choice, inputs, &forecast->prediction,
                                   output, err));
    const bool has_fit = !forecast->prediction.memory.fits;
    if (has_fit)
        FR_TRY(fr_fit_answer_find(request, inputs, &choice->file,
                                  &forecast->prediction, &fit, err));
    fr_document_init(out, "forerun.prediction/1");
    return build(request, inputs, choice, forecast, has_fit ? &fit : NULL, out,
                 err);
}

fr_status fr_api_simulate(const fr_request *request, fr_document *out,
                          fr_err *err)
{
    fr_inputs inputs = {0};
    fr_forecast forecast = {0};
    fr_plan_choice choice = {0};
    fr_plan_words words;
    fr_status status;
    FR_TRY(fr_request_check_run_length(request, err));
    FR_TRY(fr_plan_words_of(request, &words, err));
    FR_TRY_GOTO(status, fr_inputs_load(request, words.cluster, &inputs, err),
                out_inputs);
    const fr_plan_question question = {.purpose = FR_PLAN_TO_PREDICT,
                                       .model_word = words.model,
                                       .plan_path = words.plan,
                                       .cluster = &inputs.cluster,
                                       .inputs = &inputs};
    FR_TRY_GOTO(status, fr_plan_resolve(request, &question, &choice, err),
                out_inputs);
    /* A timeline of thousands of ranks takes longer than all the rest. */
    bool has_timeline = fr_request_has(request, FR_OPT_TRACE) ||
                        fr_request_on(request, FR_OPT_GANTT);
    if (has_timeline)
        status = fr_forecast_make(&inputs, &choice.file.model, &choice.file.job,
                                  &choice.file.plan, &forecast, err);
    else
        status =
            fr_forecast_predict(&inputs, &choice.file.model, &choice.file.job,
                                &choice.file.plan, &forecast.prediction, err);
    if (status != FR_OK) {
        fr_inputs_prefix_wrong_cluster(&inputs, choice.file.cluster,
                                       choice.file.cluster_hash, err);
        goto out_inputs;
    }
    status = answer(request, &inputs, &choice, &forecast, out, err);
out_inputs:
    fr_forecast_release(&forecast);
    fr_plan_choice_release(&choice);
    fr_inputs_release(&inputs);
    return status;
}
