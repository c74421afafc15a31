/* fit_answer.c: see fit_answer.h. */
#include "cli/fit_answer.h"

#include "report/fit_report.h"
#include "tuner/study/make_fit.h"

fr_status fr_fit_answer_find(const fr_inputs *inputs, const fr_model *model,
                             const fr_job *job, const fr_plan *plan,
                             const fr_prediction *prediction,
                             fr_fit_advice *out, fr_err *err)
{
    const fr_explain_request request = {.model = model,
                                        .job = job,
                                        .cluster = &inputs->cluster,
                                        .costs = inputs->costs,
                                        .plan = plan,
                                        .prediction = prediction};
    return fr_make_fit(&request, out, err);
}

/* The cluster that the file names, without a word; false: it is not there, or
 * has become another. */
static bool load_cluster(const fr_cli *cli, const fr_plan_file *file,
                         fr_inputs *out)
{
    const char *profile = fr_cli_text(cli, FR_OPT_PROFILE);
    fr_err unused;
    if (file->cluster[0] == '\0' ||
        fr_cluster_load(file->cluster, &out->cluster, &unused) != FR_OK)
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

fr_status fr_fit_answer_warn(const fr_cli *cli, const fr_plan_file *file,
                             fr_err *err)
{
    fr_inputs inputs = {0};
    fr_fit_advice fit;
    fr_buffer text;
    fr_status status = FR_OK;
    if (!file->has_prediction || file->prediction.memory.fits)
        return FR_OK;
    if (load_cluster(cli, file, &inputs))
        status = fr_fit_answer_find(&inputs, &file->model, &file->job,
                                    &file->plan, &file->prediction, &fit, err);
    else
        fr_fit_causes(&file->model, &file->job, &file->plan, &file->prediction,
                      &fit);
    fr_buffer_init(&text);
    if (status == FR_OK)
        status = fr_report_fit_text(&fit, &text, err);
    if (status == FR_OK)
        fr_cli_note_lines(cli, "predicted not to fit", fr_buffer_text(&text));
    fr_buffer_release(&text);
    fr_inputs_release(&inputs);
    return status;
}
