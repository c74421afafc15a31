/* learn_runs.c: see learn_runs.h. */
#include "api/answer/learn_runs.h"

#include "api/inputs.h"
#include "cost_models/stack/stack.h"
#include "cost_models/stack/stack_features.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_OUTPUT "stack.json"

fr_status fr_predict_case(const fr_profile *profile, const fr_case_setup *setup,
                          const fr_log *log, fr_prediction *out, fr_err *err)
{
    fr_inputs inputs = {.cluster = setup->cluster, .log = log};
    FR_TRY(fr_log_check(log, err));
    FR_TRY(fr_cost_model_create(profile, &inputs.cluster, &inputs.costs, err));
    fr_status status = fr_forecast_predict(&inputs, &setup->model, &setup->job,
                                           &setup->plan, out, err);
    fr_cost_model_destroy(inputs.costs);
    return status;
}

/* ---- from rows to runs --------------------------------------------------- */

fr_status fr_profile_put_run(fr_profile *profile, const fr_run_point *run,
                             fr_err *err)
{
    for (size_t i = 0; i < profile->n_run; i++)
        if (strcmp(profile->run[i].name, run->name) == 0) {
            profile->run[i] = *run;
            return FR_OK;
        }
    return fr_profile_add_run(profile, run, err);
}

/* Predicted by what the profile says of kernels and links, not of runs. */
static fr_status run_of(const fr_request *request, const fr_case *row,
                        const fr_profile *profile, fr_run_point *out,
                        fr_err *err)
{
    fr_profile kernels = *profile;
    fr_case_setup setup;
    fr_prediction prediction;
    kernels.n_run = 0;
    FR_TRY(fr_case_read(fr_request_configs(request), row, &setup, err));
    fr_status status = FR_OK;
    if (setup.why_unscored_step[0] != '\0')
        status = fr_fail(err, FR_INPUT, "%s", setup.why_unscored_step);
    if (status == FR_OK)
        status = fr_predict_case(&kernels, &setup, fr_request_log(request),
                                 &prediction, err);
    if (status == FR_OK) {
        fr_stack_run_of(&setup.model, &setup.job, &setup.plan,
                        fr_cluster_device(&setup.cluster, 0), &prediction,
                        setup.measured_s, out);
        fr_case_name(row, out->name, sizeof out->name);
    }
    fr_case_setup_release(&setup);
    return status;
}

static fr_status read_runs(const fr_request *request, fr_profile *profile,
                           fr_err *err)
{
    const char *path = fr_request_text(request, FR_OPT_RUNS_FILE);
    fr_cases cases;
    size_t n = 0;
    fr_status status = FR_OK;
    FR_TRY(fr_as_input(fr_cases_load(path, &cases, err), err));
    for (size_t i = 0; i < cases.n && status == FR_OK; i++) {
        fr_err why;
        fr_run_point run;
        char name[160];
        status = run_of(request, &cases.at[i], profile, &run, &why);
        if (status == FR_OK) {
            status = fr_profile_put_run(profile, &run, err);
            n++;
        } else if (fr_status_ends_all(status)) {
            *err = why;
        } else {
            fr_request_note(request, "nothing is learned from '%s': %s",
                            fr_case_name(&cases.at[i], name, sizeof name),
                            why.text);
            status = FR_OK;
        }
    }
    fr_cases_release(&cases);
    if (status == FR_OK && n == 0)
        status = fr_fail(err, FR_INPUT, "%s: no row to learn from", path);
    return status;
}

/* ---- the answer ---------------------------------------------------------- */

static double error_of(const fr_run_point *run, double factor)
{
    return run->predicted_s * factor / run->measured_s - 1;
}

static void put_runs(const fr_profile *profile, const fr_stack *stack,
                     fr_document *out)
{
    static const fr_column columns[] = {{"run", "name"},
                                        {"plan", "plan"},
                                        {">measured", "measured_s"},
                                        {">predicted", "predicted_s"},
                                        {">error", NULL},
                                        {NULL, "by_the_others_s"},
                                        {">by the others", NULL},
                                        {NULL, "is_outlier"},
                                        {"", NULL}};
    fr_table *table =
        fr_document_records(out, "runs", columns, FR_LENGTH(columns));
    table->is_main = true;
    for (size_t i = 0; i < profile->n_run; i++) {
        const fr_run_point *run = &profile->run[i];
        const bool is_outlier = fr_stack_is_outlier(stack, i);
        const double factor = exp(fr_stack_without(stack, i).mean);
        fr_table_number(table, FR_CELL_TEXT, 0, "%.56s", run->name);
        fr_table_number(table, FR_CELL_TEXT, 0, "%.40s", run->plan);
        fr_table_s(table, run->measured_s);
        fr_table_s(table, run->predicted_s);
        fr_table_change(table, error_of(run, 1));
        fr_table_s(table, run->predicted_s * factor);
        fr_table_change(table, error_of(run, factor));
        fr_table_bool(table, is_outlier);
        fr_table_text(table, is_outlier ? "outlier: not learned from" : "");
    }
}

static void build(const fr_profile *profile, const fr_stack *stack,
                  const char *path, fr_document *out)
{
    const size_t n = fr_stack_n(stack), n_used = fr_stack_n_used(stack);
    fr_document_init(out, "forerun.calibration/1");
    fr_json_put_string(&out->data, "profile", path);
    fr_json_put_u64(&out->data, "learned_from", n_used);
    put_runs(profile, stack, out);
    fr_document_printf(out, "%s: learned from %zu measured step%s", path,
                       n_used, n_used == 1 ? "" : "s");
    if (n > n_used)
        fr_document_printf(out, "; %zu that the others contradict %s left out",
                           n - n_used, n - n_used == 1 ? "is" : "are");
    fr_document_puts(out, "\n");
}

static fr_status learn(const fr_request *request, fr_profile *profile,
                       fr_document *out, fr_err *err)
{
    const char *path = fr_request_has(request, FR_OPT_OUTPUT)
                           ? fr_request_text(request, FR_OPT_OUTPUT)
                           : DEFAULT_OUTPUT;
    fr_stack *stack;
    FR_TRY(read_runs(request, profile, err));
    FR_TRY(fr_stack_create(fr_stack_prior_without(""), profile->run,
                           profile->n_run, &stack, err));
    fr_status status = fr_profile_save(profile, path, err);
    if (status == FR_OK)
        build(profile, stack, path, out);
    fr_stack_destroy(stack);
    return status;
}

static fr_status learn_run(const fr_request *request, const fr_plan_file *file,
                           double measured_s, fr_profile *profile, fr_err *err)
{
    fr_profile kernels = *profile;
    const bool is_said = file->cluster[0] != '\0';
    fr_inputs inputs = {.costs = NULL};
    fr_prediction prediction;
    fr_run_point run;
    kernels.n_run = 0;
    const char *name = is_said ? file->cluster : "this-machine";
    FR_TRY(fr_as_input(fr_cluster_load(fr_request_configs(request), name,
                                       &inputs.cluster, err),
                       err));
    fr_status status =
        fr_cost_model_create(&kernels, &inputs.cluster, &inputs.costs, err);
    if (status == FR_OK)
        status = fr_forecast_predict(&inputs, &file->model, &file->job,
                                     &file->plan, &prediction, err);
    if (status == FR_OK) {
        fr_stack_run_of(&file->model, &file->job, &file->plan,
                        fr_cluster_device(&inputs.cluster, 0), &prediction,
                        measured_s, &run);
        snprintf(run.name, sizeof run.name, "%.60s: %.90s", file->model.name,
                 run.plan);
        status = fr_profile_put_run(profile, &run, err);
    }
    fr_cost_model_destroy(inputs.costs);
    fr_cluster_release(&inputs.cluster);
    if (status == FR_OK)
        status = fr_profile_save(profile,
                                 fr_request_text(request, FR_OPT_PROFILE), err);
    return status;
}

fr_status fr_learn_run(const fr_request *request, const fr_plan_file *file,
                       double measured_s, fr_err *err)
{
    const char *path = fr_request_text(request, FR_OPT_PROFILE);
    fr_profile profile;
    FR_TRY(fr_as_input(fr_profile_load(path, &profile, err), err));
    fr_status status = learn_run(request, file, measured_s, &profile, err);
    if (status == FR_OK)
        fr_request_note(request, "wrote %s: %zu measured step%s", path,
                        profile.n_run, profile.n_run == 1 ? "" : "s");
    fr_profile_release(&profile);
    return status;
}

fr_status fr_learn_runs(const fr_request *request, fr_document *out,
                        fr_err *err)
{
    fr_profile profile;
    const char *path = fr_request_text(request, FR_OPT_PROFILE);
    if (request->n_positional > 0)
        return fr_fail(err, FR_USAGE,
                       "--runs says what was trained: leave out MODEL");
    if (path != NULL) {
        FR_TRY(fr_as_input(fr_profile_load(path, &profile, err), err));
    } else {
        fr_profile_init(&profile);
        if (request->session != NULL &&
            request->session->describe_machine != NULL)
            request->session->describe_machine(&profile.fingerprint);
    }
    fr_status status = learn(request, &profile, out, err);
    fr_profile_release(&profile);
    return status;
}
