/* plan_choice.c: defaults < plan file < environment < flags. */
#include "cli/plan_choice.h"

#include <string.h>

#include "cli/plan_options.h"
#include "plan/plan_json.h"

/* The file's plan and job; its model gives way to the named one. */
static fr_status take_file(const char *path, fr_plan_choice *out, fr_err *err)
{
    fr_plan_file file;
    FR_TRY(fr_plan_file_load(path, &file, err));
    out->plan = file.plan;
    out->job = file.job;
    fr_plan_file_release(&file);
    return FR_OK;
}

fr_status fr_plan_choice_load(const fr_cli *cli, const char *model,
                              const char *plan_path, const fr_inputs *inputs,
                              fr_plan_choice *out, fr_err *err)
{
    memset(out, 0, sizeof *out);
    FR_TRY(fr_model_load(model, &out->model, err));
    out->has_model = true;
    fr_job_init(&out->job);
    fr_plan_init(&out->plan);
    if (plan_path != NULL)
        FR_TRY(take_file(plan_path, out, err));
    FR_TRY(fr_cli_apply_plan(cli, &out->plan, &out->pins, err));
    FR_TRY(fr_cli_apply_job(cli, &out->job, err));
    if (plan_path == NULL && !fr_cli_has(cli, FR_OPT_THREADS))
        out->plan.n_threads = fr_cli_default_threads(
            &inputs->cluster, fr_plan_world(&out->plan));
    return FR_OK;
}

void fr_plan_choice_release(fr_plan_choice *choice)
{
    if (choice->has_model)
        fr_model_release(&choice->model);
    memset(choice, 0, sizeof *choice);
}
