/* plan_subject.c: see plan_subject.h. */
#include "api/subject/plan_subject.h"

#include "api/resolve/plan_resolve.h"
#include "api/subject/plan_words.h"

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

static bool is_plan(const fr_request *request)
{
    return fr_plan_subject_cluster(request) == NULL ||
           (!fr_request_has(request, FR_OPT_FROM) &&
            fr_plan_words_is_plan(request->positional[0]));
}

fr_status fr_plan_subject_load(const fr_request *request,
                               const fr_inputs *inputs, fr_plan_file *out,
                               fr_err *err)
{
    const bool has_plan = is_plan(request);
    const bool is_from = fr_request_has(request, FR_OPT_FROM);
    const char *word = request->positional[0];
    fr_plan_choice choice;
    if (fr_plan_subject_cluster(request) == NULL)
        return fr_inputs_load_plan(request, word, "CLUSTER", out, err);
    const fr_plan_question question = {.purpose = FR_PLAN_TO_PREDICT,
                                       .model_word =
                                           has_plan || is_from ? NULL : word,
                                       .plan_path = has_plan ? word : NULL,
                                       .cluster = &inputs->cluster,
                                       .inputs = inputs};
    fr_status status = fr_plan_resolve(request, &question, &choice, err);
    if (status == FR_OK)
        *out = choice.file; /* handed over */
    else
        fr_plan_choice_release(&choice);
    return status;
}
