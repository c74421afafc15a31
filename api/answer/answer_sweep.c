/* answer_sweep.c: what-if: many points, one table. */
#include "api/answer/answers.h"
#include "api/goodput/run_length.h"
#include "api/inputs.h"
#include "api/resolve/framework_options.h"
#include "api/resolve/goal_options.h"
#include "api/resolve/no_effect.h"
#include "api/sweep/sweep_points.h"
#include "api/sweep/sweep_trials.h"
#include "core/base/text.h"
#include "report/setup_report.h"
#include "report/sweep_report.h"
#include "spec/result/fit_advice.h"

#include <stdlib.h>
#include <string.h>

/* "llama-3-8b on dgx-h100:2, framework nemo"; what is varied stands in the
 * table. */
/* Prints the batch, the sequence and the machine as far as they do not vary. */
static void add_setup(const fr_sweep_case *first, const fr_sweep *sweep,
                      fr_document *out)
{
    static const char *const of_machine[] = {"cluster", "gpu", "precision",
                                             "kernels", "framework"};
    const fr_report_setup setup = {first->model, &first->job, &first->plan,
                                   first->cluster, ""};
    for (size_t i = 0; i < FR_LENGTH(of_machine); i++)
        if (fr_sweep_find_key(sweep, of_machine[i]) >= 0)
            return;
    fr_report_put_common_setup(&setup,
                               fr_sweep_find_key(sweep, "global-batch") < 0 &&
                                   !sweep->is_weak && sweep->n_trials == 0,
                               fr_sweep_find_key(sweep, "seq") < 0 &&
                                   fr_sweep_find_key(sweep, "model") < 0,
                               out);
}

static void add_head(const fr_request *request, const fr_framework *framework,
                     const fr_sweep_points *points, fr_document *out)
{
    const fr_sweep *sweep = &points->sweep;
    const bool has_models = fr_sweep_find_key(sweep, "model") >= 0;
    const bool has_clusters = fr_sweep_find_key(sweep, "cluster") >= 0;
    const bool has_framework =
        framework != NULL && fr_sweep_find_key(sweep, "framework") < 0;
    char count[FR_FIT_VERDICT];
    if (sweep->n_too_large > 0) {
        fr_fit_count(sweep->n_too_large, sweep->n_points, count, sizeof count);
        fr_document_printf(out, "%s\n", count);
        if (fr_request_on(request, FR_OPT_CSV))
            fr_request_note(request, "%s", count);
    }
    fr_document_heading(out, "%s on %s%s%s",
                        has_models ? "several models" : request->positional[0],
                        has_clusters ? "several clusters"
                                     : request->positional[1],
                        has_framework ? ", framework " : "",
                        has_framework ? framework->name : "");
    add_setup(&points->cases[0], sweep, out);
    fr_document_puts(out, "\n");
    fr_json_put_string(&out->data, "model", request->positional[0]);
    fr_json_put_string(&out->data, "cluster", request->positional[1]);
    fr_json_put_string(&out->data, "framework",
                       framework != NULL ? framework->name : NULL);
}

static fr_status build(const fr_request *request, const fr_framework *framework,
                       const fr_sweep_points *points, fr_document *out,
                       fr_err *err)
{
    const fr_sweep *sweep = &points->sweep;
    fr_status status = FR_OK;
    fr_document_init(out, "forerun.sweep/1");
    out->ignores_columns = sweep->n_feasible == 0;
    add_head(request, framework, points, out);
    fr_report_sweep(sweep, out);
    if (fr_request_on(request, FR_OPT_PLOT))
        status = fr_report_sweep_plot(sweep, out, err);
    out->has_answer = status == FR_OK;
    return status;
}

/* FORERUN_JOBS counts threads of other commands: with --vary it says nothing.
 */
static bool has_trials(const fr_request *request)
{
    fr_option_source source = request->option[FR_OPT_TRIALS].source;
    return source == FR_SOURCE_FLAG ||
           (source == FR_SOURCE_ENV && request->n_repeats == 0);
}

static fr_status check_options(const fr_request *request, fr_err *err)
{
    if (has_trials(request) &&
        (request->n_repeats > 0 || fr_request_on(request, FR_OPT_WEAK) ||
         fr_request_has(request, FR_OPT_RANKS)))
        return fr_fail(err, FR_USAGE,
                       "--jobs divides the cluster itself: without --vary, "
                       "--weak, --ranks");
    if (request->n_repeats == 0 && !has_trials(request))
        return fr_fail(err, FR_USAGE,
                       "what is to vary?  Such as --vary nodes=8..64*2; keys: "
                       "nodes, gpu, nic, nvlink, price, and all options of "
                       "the plan and the job");
    if (fr_request_on(request, FR_OPT_FIXED) &&
        fr_request_on(request, FR_OPT_EXACT))
        return fr_fail(err, FR_USAGE,
                       "--fixed keeps the plan: --exact has nothing to prove");
    if (fr_request_on(request, FR_OPT_CSV) &&
        fr_request_on(request, FR_OPT_PLOT))
        return fr_fail(err, FR_USAGE, "--csv or --plot, not both");
    return FR_OK;
}

static void name_goal(const fr_request *request, const fr_goal *goal,
                      fr_sweep *sweep)
{
    const fr_goal_row *row = fr_goal_row_of(goal->kind);
    if (!fr_request_has(request, FR_OPT_GOAL))
        return;
    fr_text_copy_cut(sweep->goal, sizeof sweep->goal, row->name);
    fr_text_copy_cut(sweep->goal_unit, sizeof sweep->goal_unit, row->unit);
    fr_text_copy_cut(sweep->goal_summary, sizeof sweep->goal_summary,
                     row->summary);
}

/* Returns the quantities that the run of any point includes, or lacks. */
static fr_run_counts counts_of(const fr_sweep_points *points)
{
    fr_run_counts all = {0};
    for (size_t i = 0; i < points->sweep.n_points; i++) {
        const fr_sweep_point *point = &points->sweep.points[i];
        const fr_run_counts one = fr_run_counts_of(
            &points->cases[i].goal, points->cases[i].cluster,
            point->kwh_per_1e9_tokens > 0 ? point->n_nodes : 0);
        all.has_failures |= one.has_failures;
        all.is_mtbf_assumed |= one.is_mtbf_assumed;
        all.lacks_spot_rate |= one.lacks_spot_rate;
        all.lacks_switches |= one.lacks_switches;
    }
    return all;
}

static fr_status run_points(const fr_request *request, const fr_goal *goal,
                            fr_sweep_points *points, fr_err *err)
{
    fr_sweep_options options = {
        .is_fixed = fr_request_on(request, FR_OPT_FIXED),
        .is_exact = fr_request_on(request, FR_OPT_EXACT),
        .is_weak = fr_request_on(request, FR_OPT_WEAK),
        .has_goal = true,
        .n_threads = fr_request_threads(request),
        .log = fr_request_log(request),
    };
    name_goal(request, goal, &points->sweep);
    if (goal->critical_batch > 0)
        fr_goal_lr_rule(&points->cases[0].job, points->sweep.lr_rule,
                        sizeof points->sweep.lr_rule);
    if (fr_request_has(request, FR_OPT_KNEE))
        points->sweep.knee_frac = request->option[FR_OPT_KNEE].real;
    return fr_sweep_run(points->cases, &options, &points->sweep, err);
}

fr_status fr_api_sweep(const fr_request *request, fr_document *out, fr_err *err)
{
    fr_inputs inputs = {0};
    fr_sweep_points points = {0};
    fr_goal goal;
    fr_status status;
    FR_TRY(check_options(request, err));
    FR_TRY(fr_request_make_goal(request, &goal, err));
    FR_TRY_GOTO(status,
                fr_inputs_load(request, request->positional[1], &inputs, err),
                out_inputs);
    bool is_trials = has_trials(request);
    status = is_trials ? fr_sweep_trials_make(request, &inputs, &points, err)
                       : fr_sweep_points_make(request, &inputs, &points, err);
    if (status != FR_OK)
        goto out_inputs;
    fr_note_no_effect(request, &points.cases[0].job, &points.models[0],
                      &inputs.cluster);
    FR_TRY_GOTO(status, run_points(request, &goal, &points, err), out_inputs);
    if (points.sweep.is_fixed)
        fr_note_idle_in_sweep(request, &inputs, points.cases,
                              points.sweep.n_points);
    points.sweep.counts = counts_of(&points);
    if (is_trials)
        fr_sweep_trials_finish(&inputs.cluster, &goal, &points);
    FR_TRY_GOTO(status,
                build(request, fr_request_framework(request, &inputs.cluster),
                      &points, out, err),
                out_inputs);
    if (points.sweep.n_feasible == 0)
        status = fr_fail(err, FR_INFEASIBLE, "no point is possible: %s",
                         points.sweep.points[0].why);
out_inputs:
    fr_sweep_points_release(&points);
    fr_inputs_release(&inputs);
    return status;
}
