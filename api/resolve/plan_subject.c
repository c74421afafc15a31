/* plan_subject.c: see plan_subject.h. */
#include "api/resolve/plan_subject.h"

#include "api/resolve/config_choice.h"
#include "api/resolve/default_job.h"
#include "api/resolve/framework_options.h"
#include "api/resolve/no_effect.h"
#include "api/resolve/plan_choice.h"
#include "api/resolve/plan_options.h"
#include "api/resolve/plan_words.h"
#include "core/base/text.h"
#include "plan/decide/plan_json.h"

#include <stdlib.h>
#include <string.h>

fr_status fr_plan_subject_check(const fr_request *request, fr_err *err)
{
    if (fr_request_has(request, FR_OPT_FROM) && request->n_positional > 1)
        return fr_fail(err, FR_USAGE,
                       "--from takes a CLUSTER alone: forerun %s --from FILE "
                       "CLUSTER --model NAME",
                       request->command->name);
    if (request->option[FR_OPT_MODEL].source == FR_SOURCE_FLAG &&
        !fr_request_has(request, FR_OPT_FROM))
        return fr_fail(err, FR_USAGE, "--model goes with --from alone");
    return FR_OK;
}

const char *fr_plan_subject_cluster(const fr_request *request)
{
    if (fr_request_has(request, FR_OPT_FROM))
        return request->positional[0];
    return request->n_positional > 1 ? request->positional[1] : NULL;
}

/* A plan file, or what a framework runs today. */
static fr_status load_file(const fr_request *request, const fr_inputs *inputs,
                           fr_plan_file *out, fr_err *err)
{
    fr_config config;
    if (!fr_request_has(request, FR_OPT_FROM))
        return fr_as_input(fr_plan_file_load(request->positional[0], out, err),
                           err);
    FR_TRY(fr_config_choice_from(
        request, NULL, fr_cluster_slots(&inputs->cluster), &config, err));
    fr_buffer_release(&config.notes);
    *out = config.file; /* handed over */
    return FR_OK;
}

/* Options over what the file says. */
static fr_status load_plan(const fr_request *request, const fr_inputs *inputs,
                           fr_plan_file *out, fr_err *err)
{
    const fr_cluster *cluster = &inputs->cluster;
    FR_TRY(load_file(request, inputs, out, err));
    if (fr_plan_subject_cluster(request) == NULL)
        return FR_OK;
    int64_t n_ranks = fr_plan_world(&out->plan);
    FR_TRY(fr_request_apply_job(request, &out->model, &out->job, err));
    FR_TRY(fr_request_apply_plan(request, &out->plan, NULL, err));
    fr_request_apply_framework(request, cluster, &out->plan, &out->job,
                               &out->model);
    if (fr_request_framework(request, cluster) != NULL)
        fr_text_copy_cut(out->framework, sizeof out->framework,
                         fr_request_framework(request, cluster)->name);
    FR_TRY(fr_plan_choice_balance(request, inputs, &out->model, &out->job,
                                  &out->plan, err));
    fr_plan_choice_note(request, cluster, &out->plan);
    fr_note_no_effect(request, &out->job, &out->model, cluster);
    if (fr_plan_world(&out->plan) != n_ranks) {
        free(out->node_of_rank); /* they stood elsewhere */
        out->node_of_rank = NULL;
    }
    return fr_default_ranks(request, inputs, true, &out->plan, err);
}

static fr_status load_model(const fr_request *request, const fr_inputs *inputs,
                            fr_plan_file *out, fr_err *err)
{
    fr_plan_choice choice = {0};
    fr_status status = fr_plan_choice_load(request, request->positional[0],
                                           NULL, inputs, &choice, err);
    if (status == FR_OK)
        fr_default_plan(request, inputs, &choice);
    if (status == FR_OK)
        status = fr_default_ranks(request, inputs, false, &choice.plan, err);
    if (status == FR_OK)
        status = fr_plan_choice_balance(request, inputs, &choice.model,
                                        &choice.job, &choice.plan, err);
    if (status != FR_OK) {
        fr_plan_choice_release(&choice);
        return status;
    }
    out->model = choice.model; /* handed over */
    out->job = choice.job;
    memcpy(out->framework, choice.framework, sizeof out->framework);
    out->plan = choice.plan;
    return FR_OK;
}

fr_status fr_plan_subject_load(const fr_request *request,
                               const fr_inputs *inputs, fr_plan_file *out,
                               fr_err *err)
{
    const bool is_plan = fr_plan_subject_cluster(request) == NULL ||
                         fr_request_has(request, FR_OPT_FROM) ||
                         fr_plan_words_is_plan(request->positional[0]);
    return is_plan ? load_plan(request, inputs, out, err)
                   : load_model(request, inputs, out, err);
}
