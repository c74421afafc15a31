/* fit_answer.c: see fit_answer.h. */
#include "api/fit/fit_answer.h"

#include "api/resolve/framework_options.h"
#include "report/document/renderer.h"
#include "report/fit_report.h"
#include "tuner/study/make_fit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

fr_status fr_fit_answer_find(const fr_request *request, const fr_inputs *inputs,
                             const fr_plan_file *file,
                             const fr_prediction *prediction,
                             fr_fit_advice *out, fr_err *err)
{
    const fr_target *target = fr_request_executor(request, &inputs->cluster);
    const fr_explain_request asked = {
        .model = &file->model,
        .job = &file->job,
        .cluster = &inputs->cluster,
        .costs = inputs->costs,
        .plan = &file->plan,
        .prediction = prediction,
        .log = inputs->log,
        .target = target,
        .target_version = target != NULL ? fr_target_newest(target) : 0};
    return fr_make_fit(&asked, out, err);
}

/* ---- refusals ------------------------------------------------------------ */

/* "; it fits with zero 0 -> 1 (forerun explain shows more)". */
static void describe_change(const fr_fit_advice *fit, char *buf, size_t n_buf)
{
    if (fit->n_changes > 0)
        snprintf(buf, n_buf, "it fits with %s (forerun explain shows more)",
                 fit->changes[0].what);
    else if (fit->is_searched)
        snprintf(buf, n_buf,
                 "no set of up to three changes was found that fits (forerun "
                 "tune looks at all plans)");
    else
        snprintf(buf, n_buf, "forerun explain PLAN CLUSTER shows what would");
}

fr_status fr_fit_answer_check(const fr_request *request,
                              const fr_inputs *inputs, const fr_plan_file *file,
                              const fr_prediction *prediction,
                              fr_fit_advice *out, fr_err *err)
{
    char change[256];
    fr_fit_advice fit = {0};
    const bool is_forced = fr_request_on(request, FR_OPT_FORCE);
    if (!prediction->memory.fits && (inputs == NULL || is_forced))
        fr_fit_causes(&file->model, &file->job, &file->plan, prediction, &fit);
    else if (!prediction->memory.fits)
        FR_TRY(
            fr_fit_answer_find(request, inputs, file, prediction, &fit, err));
    if (prediction->memory.fits || is_forced) {
        *out = fit;
        return FR_OK;
    }
    describe_change(&fit, change, sizeof change);
    return fr_fail(err, FR_INFEASIBLE, "%s%s%s; %s; --force continues anyway",
                   fit.verdict, inputs != NULL ? " on " : "",
                   inputs != NULL ? inputs->cluster_word : "", change);
}

/* A device that is larger than that of the cluster may have the room. */
static void correct_capacity(const fr_fit_place *place, fr_prediction *out)
{
    if (out->memory.fits || place->ask_memory_bytes == NULL ||
        fr_prediction_lacks_host(out))
        return;
    const uint64_t memory_bytes = place->ask_memory_bytes();
    if (memory_bytes < out->memory.peak_bytes)
        return;
    out->memory.capacity_bytes = memory_bytes;
    out->memory.fits = true;
}

fr_status fr_fit_answer_predict(const fr_request *request,
                                const fr_plan_file *file,
                                const fr_fit_place *place, fr_inputs *inputs,
                                fr_prediction *out, fr_err *err)
{
    fr_request quiet = *request;
    fr_forecast forecast = {0};
    quiet.option[FR_OPT_QUIET].is_on = true;
    FR_TRY(fr_inputs_load(&quiet, place->cluster, inputs, err));
    inputs->ranks_per_node = place->ranks_per_node;
    fr_status status =
        fr_forecast_make_file(inputs, file, false, &forecast, err);
    if (status == FR_OK) {
        correct_capacity(place, &forecast.prediction);
        *out = forecast.prediction;
    }
    fr_forecast_release(&forecast);
    return status;
}

bool fr_fit_answer_is_carried(const fr_plan_file *file, const fr_inputs *inputs,
                              const fr_prediction *p)
{
    const bool has_costs = file->profile_hash == 0 || inputs->has_profile;
    return file->prediction.memory.peak_bytes == p->memory.peak_bytes &&
           (!has_costs ||
            fabs(file->prediction.step_s - p->step_s) <= 1e-6 * p->step_s);
}

fr_status fr_fit_answer_check_file(const fr_request *request,
                                   const fr_plan_file *file,
                                   const fr_fit_place *place,
                                   fr_fit_advice *out, fr_err *err)
{
    fr_inputs inputs = {0};
    fr_prediction prediction;
    fr_fit_advice fit = {0};
    fr_err unused;
    fr_status status = FR_OK;
    if (place->cluster[0] == '\0') {
        if (file->has_prediction)
            return fr_fit_answer_check(request, NULL, file, &file->prediction,
                                       out, err);
        *out = fit;
        return FR_OK;
    }
    if (fr_fit_answer_predict(request, file, place, &inputs, &prediction,
                              &unused) == FR_OK)
        status =
            fr_fit_answer_check(request, &inputs, file, &prediction, &fit, err);
    if (status == FR_OK)
        *out = fit;
    fr_inputs_release(&inputs);
    return status;
}

/* ---- warnings ------------------------------------------------------------ */

/* The cluster that the file names, without a word; false: it is not there, or
 * has become another. */
static bool load_cluster(const fr_request *request, const fr_plan_file *file,
                         fr_inputs *out)
{
    const char *profile = fr_request_text(request, FR_OPT_PROFILE);
    fr_err unused;
    if (file->cluster[0] == '\0' ||
        fr_cluster_load(fr_request_configs(request), file->cluster,
                        &out->cluster, &unused) != FR_OK)
        return false;
    out->has_cluster = true;
    if (fr_cluster_hash(&out->cluster) != file->cluster_hash)
        return false;
    out->has_profile =
        profile != NULL &&
        fr_profile_load(profile, &out->profile, &unused) == FR_OK;
    return fr_cost_model_create(out->has_profile ? &out->profile : NULL,
                                &out->cluster, &out->costs, &unused) == FR_OK;
}

fr_status fr_fit_answer_warn(const fr_request *request,
                             const fr_plan_file *file, fr_err *err)
{
    fr_inputs inputs = {0};
    fr_fit_advice fit;
    fr_buffer text;
    fr_document causes;
    fr_status status = FR_OK;
    if (!file->has_prediction || file->prediction.memory.fits)
        return FR_OK;
    if (load_cluster(request, file, &inputs))
        status = fr_fit_answer_find(request, &inputs, file, &file->prediction,
                                    &fit, err);
    else
        fr_fit_causes(&file->model, &file->job, &file->plan, &file->prediction,
                      &fit);
    fr_buffer_init(&text);
    fr_document_init(&causes, NULL);
    if (status == FR_OK) {
        fr_report_fit(&fit, &causes);
        status = fr_document_render(&causes, &fr_render_text, NULL, &text, err);
    }
    fr_document_release(&causes);
    if (status == FR_OK) {
        fr_request_note(request, "on %s the plan %s",
                        file->cluster[0] != '\0' ? file->cluster
                                                 : "its cluster",
                        fit.verdict);
        fr_request_note_lines(request, "predicted not to fit",
                              fr_buffer_text(&text));
    }
    fr_buffer_release(&text);
    fr_inputs_release(&inputs);
    return status;
}
