/* run_answer.c: the prediction found again, laid over what was measured. */
#include "cli/train/run_answer.h"

#include "api/inputs.h"
#include "cli/answer.h"
#include "cli/train/gpu_ranks.h"
#include "cli/train/restart_log.h"
#include "cli/train/run_fit.h"
#include "core/system/fileio.h"
#include "program/ir/step_breakdown.h"
#include "report/fit_report.h"
#include "report/run/run_report.h"
#include "report/timeline/gantt.h"
#include "report/timeline/trace_json.h"

#include <string.h>

typedef struct answer_parts {
    const fr_cli *cli;
    const fr_plan_file *file;
    const fr_program *program;
    const fr_timeline *measured;
    const fr_run_result *result;
    fr_forecast forecast; /* program NULL: nothing was simulated */
    fr_fit_advice fit;    /* of a run with --force; verdict "": it fits */
} answer_parts;

/* Simulates the plan again on the cluster that it names, with --profile. */
static fr_status predict(answer_parts *parts, fr_err *err)
{
    const fr_plan_file *file = parts->file;
    const fr_cli *cli = parts->cli;
    fr_inputs inputs = {0};
    if (fr_cli_text(cli, FR_OPT_PROFILE) == NULL)
        return FR_OK;
    if (file->cluster[0] == '\0')
        return fr_fail(err, FR_INPUT, "%s names no cluster to simulate",
                       cli->request.positional[0]);
    fr_status status =
        fr_inputs_load(&cli->request, file->cluster, &inputs, err);
    if (status == FR_OK)
        status =
            fr_forecast_make_file(&inputs, file, true, &parts->forecast, err);
    fr_inputs_release(&inputs);
    return status;
}

static fr_status fill_prediction(const answer_parts *parts,
                                 fr_run_report *report, fr_err *err)
{
    const fr_prediction *prediction = NULL;
    if (parts->forecast.program != NULL)
        prediction = &parts->forecast.prediction;
    else if (parts->file->has_prediction)
        prediction = &parts->file->prediction;
    if (prediction == NULL)
        return FR_OK;
    report->has_prediction = true;
    report->predicted_step_s = prediction->expected_step_s;
    report->predicted_peak_bytes = prediction->memory.peak_bytes;
    report->predicted_baseline_bytes =
        prediction->memory.peak_bytes - prediction->memory.reserved_bytes;
    memcpy(report->predicted_breakdown_s, prediction->breakdown_s,
           sizeof report->predicted_breakdown_s);
    /* By the code that the measured parts come from, where there is a
     * timeline to apply it to. */
    if (parts->forecast.timeline.n == 0)
        return FR_OK;
    return fr_step_breakdown_mean(parts->forecast.program,
                                  &parts->forecast.timeline, prediction->step_s,
                                  report->predicted_breakdown_s, err);
}

static fr_status fill_report(const answer_parts *parts, char *name,
                             size_t n_name, fr_run_report *out, fr_err *err)
{
    const fr_run_result *result = parts->result;
    const fr_job *job = &parts->file->job;
    fr_run_report report = {
        .plan = fr_plan_describe(&parts->file->plan, name, n_name),
        .backend = result->backend,
        .world_size = result->world_size,
        .n_steps = result->n_steps,
        .loss = result->loss,
        .evaluations = result->evaluations,
        .n_evaluations = result->n_evaluations,
        .loss_before =
            fr_cli_has(parts->cli, FR_OPT_ELASTIC) ? result->loss_before : NULL,
        .step_s_median = result->step_s_median,
        .step_s_p5 = result->step_s_p5,
        .step_s_p95 = result->step_s_p95,
        .peak_bytes = result->peak_bytes,
        .baseline_bytes = result->baseline_bytes,
        .resumed_from_step = result->resumed_from_step,
        .is_from_memory = result->is_from_memory,
        .saving = result->saving,
        .busy = result->busy,
        .collectives = result->collectives,
        .n_collectives = result->n_collectives,
        .stragglers = result->stragglers,
        .n_stragglers = result->n_stragglers,
        .monitoring_s = result->monitoring_s,
        .compute_s = result->compute_s,
        .wait_s = result->wait_s,
        .grid = &parts->file->plan,
        .model = &parts->file->model,
    };
    if (result->n_collectives > 0)
        report.topology = fr_nccl_topology();
    if (result->step_s_median > 0) {
        report.samples_per_s =
            (double)job->global_batch / result->step_s_median;
        report.tokens_per_s =
            report.samples_per_s *
            (double)fr_model_sample_tokens(&parts->file->model, job->seq);
    }
    if (parts->measured->n > 0) {
        FR_TRY(fr_step_breakdown_mean(parts->program, parts->measured,
                                      result->step_s_median, report.breakdown_s,
                                      err));
        report.has_breakdown = true;
    }
    FR_TRY(fill_prediction(parts, &report, err));
    *out = report;
    return FR_OK;
}

/* The measured step that is nearest to the median, over the simulated one. */
static fr_status write_trace(const answer_parts *parts, const char *path,
                             fr_err *err)
{
    fr_trace_part traced[2];
    int n = 0;
    fr_buffer text;
    if (parts->forecast.timeline.n > 0)
        traced[n++] =
            (fr_trace_part){&parts->forecast.timeline, "predicted", 0};
    if (parts->measured->n > 0)
        traced[n++] = (fr_trace_part){parts->measured, "measured",
                                      fr_step_median(parts->measured)};
    if (n == 0)
        return fr_fail(err, FR_FAILURE, "no step was recorded");
    fr_buffer_init(&text);
    fr_status status = fr_trace_json(parts->program, traced, n, &text, err);
    if (status == FR_OK)
        status = fr_file_write(path, text.data, text.n, err);
    fr_buffer_release(&text);
    return status;
}

/* The measured step that is nearest to the median. */
static fr_status add_gantt(const answer_parts *parts, fr_document *out,
                           fr_err *err)
{
    if (parts->measured->n == 0)
        return fr_fail(err, FR_FAILURE, "no step was recorded");
    fr_document_puts(out, "\n");
    return fr_report_gantt(parts->program, parts->measured,
                           fr_step_median(parts->measured), out, err);
}

/* Returns the time of all steps that count, including those before the last
 * restart. */
static double useful_s(const fr_run_report *report)
{
    return (double)(report->resumed_from_step + report->n_steps) *
           report->step_s_median;
}

static fr_status print_report(const answer_parts *parts,
                              const fr_run_report *report, fr_err *err)
{
    const fr_cli *cli = parts->cli;
    fr_document answer;
    fr_status status = FR_OK;
    fr_document_init(&answer, "forerun.run/1");
    if (parts->fit.verdict[0] != '\0')
        fr_document_printf(&answer, "%s\n", parts->fit.verdict);
    fr_report_fit_data(&parts->fit, &answer);
    fr_report_run(report, &answer);
    fr_restart_log_put(&cli->request, useful_s(report), &answer);
    if (fr_cli_on(cli, FR_OPT_GANTT))
        status = add_gantt(parts, &answer, err);
    return fr_answer_deliver(status, &answer, cli, err);
}

const char *fr_run_trace_path(const fr_request *request)
{
    const char *path = fr_request_text(request, FR_OPT_TRACE);
    return path != NULL ? path : fr_request_text(request, FR_OPT_OUTPUT);
}

fr_status fr_run_answer(const fr_cli *cli, const fr_plan_file *file,
                        const fr_program *program, const fr_timeline *timeline,
                        const fr_run_result *result, fr_err *err)
{
    char name[256];
    fr_run_report report;
    const char *trace = fr_run_trace_path(&cli->request);
    answer_parts parts = {.cli = cli,
                          .file = file,
                          .program = program,
                          .measured = timeline,
                          .result = result};
    fr_status status;
    FR_TRY_GOTO(status, predict(&parts, err), out_forecast);
    if (fr_cli_on(cli, FR_OPT_FORCE))
        FR_TRY_GOTO(status,
                    fr_run_fit_check(&cli->request, file, &parts.fit, err),
                    out_forecast);
    FR_TRY_GOTO(status, fill_report(&parts, name, sizeof name, &report, err),
                out_forecast);
    FR_TRY_GOTO(status, print_report(&parts, &report, err), out_forecast);
    if (trace != NULL) /* last: a full disk does not take the answer along */
        status = write_trace(&parts, trace, err);
out_forecast:
    fr_forecast_release(&parts.forecast);
    return status;
}
