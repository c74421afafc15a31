/* answer_goodput.c: a run of weeks: failures, checkpoints, spot nodes. */
#include "api/answer/answers.h"
#include "api/fit/fit_answer.h"
#include "api/goodput/goodput_backup.h"
#include "api/goodput/goodput_changes.h"
#include "api/goodput/goodput_inject.h"
#include "api/subject/plan_subject.h"
#include "report/fit_report.h"
#include "report/setup_report.h"

static fr_report_setup setup_of(const fr_inputs *inputs,
                                const fr_plan_file *file)
{
    return (fr_report_setup){&file->model, &file->job, &file->plan,
                             &inputs->cluster, file->framework};
}

/* The results of a run that the answer shows. */
typedef struct told {
    fr_goodput goodput;
    fr_goodput_setup setup;
    fr_goodput_change changes[FR_GOODPUT_CHANGES];
    size_t n_changes;
    const fr_prediction *prediction;
    fr_fit_advice fit;
} told;

static void add_head(const fr_request *request, const fr_plan_file *file,
                     const fr_prediction *prediction, const fr_fit_advice *fit,
                     fr_document *out)
{
    char name[256];
    fr_plan_describe(&file->plan, name, sizeof name);
    fr_report_verdict(prediction, out);
    fr_document_heading(out, "%s on %s: %s", file->model.name,
                        fr_plan_subject_cluster(request), name);
    fr_json_put_string(&out->data, "plan", name);
    fr_json_put_string(&out->data, "model", file->model.name);
    fr_report_fit_data(fit, out);
}

static void build(const fr_request *request, const fr_inputs *inputs,
                  const fr_plan_file *file, const told *run, fr_document *out)
{
    const fr_report_setup at = setup_of(inputs, file);
    fr_document_init(out, "forerun.goodput/1");
    add_head(request, file, run->prediction, &run->fit, out);
    fr_report_put_setup(&at, out);
    fr_report_goodput(&run->goodput, &run->setup, out);
    fr_report_goodput_changes(run->changes, run->n_changes, out);
}

/* One run with faults on purpose. */
static fr_status answer_injected(const fr_request *request, fr_inputs *inputs,
                                 const fr_plan_file *file,
                                 const fr_prediction *prediction,
                                 fr_document *out, fr_err *err)
{
    fr_schedule_told walked;
    fr_fit_advice fit;
    FR_TRY(fr_goodput_inject(request, inputs, file, prediction->expected_step_s,
                             &walked, err));
    FR_TRY(fr_fit_answer_check(request, inputs, file, prediction, &fit, err));
    fr_document_init(out, "forerun.injected/1");
    add_head(request, file, prediction, &fit, out);
    fr_report_schedule(&walked, out);
    return FR_OK;
}

static fr_status answer(const fr_request *request, const fr_inputs *inputs,
                        const fr_plan_file *file,
                        const fr_prediction *prediction, fr_document *out,
                        fr_err *err)
{
    fr_goodput_case run;
    told all = {.prediction = prediction};
    fr_status status;
    FR_TRY_GOTO(
        status,
        fr_goodput_case_make(request, inputs, file, prediction, &run, err),
        out_case);
    FR_TRY_GOTO(
        status,
        fr_fit_answer_check(request, inputs, file, prediction, &all.fit, err),
        out_case);
    FR_TRY_GOTO(status, fr_goodput_case_live(&run, &all.goodput, err),
                out_case);
    fr_goodput_case_sum(&inputs->cluster, &all.goodput, &run);
    all.setup = run.setup;
    FR_TRY_GOTO(status,
                fr_goodput_changes(&inputs->cluster, &run, all.changes,
                                   &all.n_changes, err),
                out_case);
    build(request, inputs, file, &all, out);
out_case:
    fr_goodput_case_release(&run);
    return status;
}

fr_status fr_api_goodput(const fr_request *request, fr_document *out,
                         fr_err *err)
{
    fr_inputs inputs = {0};
    fr_plan_file file;
    fr_forecast forecast = {0};
    fr_status status;
    const char *cluster = fr_plan_subject_cluster(request);
    if (cluster == NULL)
        return fr_fail(err, FR_USAGE,
                       "a CLUSTER is missing: forerun goodput PLAN CLUSTER, or "
                       "MODEL CLUSTER");
    FR_TRY(fr_plan_subject_check(request, err));
    fr_plan_file_init(&file);
    FR_TRY_GOTO(status, fr_inputs_load(request, cluster, &inputs, err),
                out_all);
    FR_TRY_GOTO(status, fr_plan_subject_load(request, &inputs, &file, err),
                out_all);
    FR_TRY_GOTO(status,
                fr_forecast_make_file(&inputs, &file, false, &forecast, err),
                out_all);
    FR_TRY_GOTO(
        status,
        fr_goodput_backups(request, &inputs, &file, &forecast.prediction, err),
        out_all);
    fr_inputs_note_wrong_cluster(request, &inputs, file.cluster,
                                 file.cluster_hash);
    status =
        fr_request_has(request, FR_OPT_INJECT)
            ? answer_injected(request, &inputs, &file, &forecast.prediction,
                              out, err)
            : answer(request, &inputs, &file, &forecast.prediction, out, err);
out_all:
    fr_forecast_release(&forecast);
    fr_plan_file_release(&file);
    fr_inputs_release(&inputs);
    return status;
}
