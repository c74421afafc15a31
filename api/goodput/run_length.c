/* run_length.c: see run_length.h. */
#include "api/goodput/run_length.h"

#include "api/resolve/goal_options.h"

fr_run_counts fr_run_counts_of(const fr_goal *goal, const fr_cluster *cluster,
                               int64_t n_powered_nodes)
{
    fr_run_hazards hazards = goal->hazards;
    hazards.is_spot = goal->is_spot;
    const fr_run_met met = fr_run_meet(&hazards, cluster, 1, 1, 0);
    return (fr_run_counts){
        .has_failures = met.conditions.failures_per_s > 0 ||
                        met.conditions.interruptions_per_s > 0,
        .is_mtbf_assumed = met.is_mtbf_assumed,
        .lacks_spot_rate = met.lacks_spot_rate,
        .lacks_switches =
            n_powered_nodes > 1 &&
            fr_fabric_power_w(&cluster->fabric, n_powered_nodes, 1) <= 0};
}

fr_status fr_request_check_run_length(const fr_request *request, fr_err *err)
{
    fr_goal goal;
    return fr_request_make_goal(request, &goal, err);
}

bool fr_request_has_length(const fr_request *request, const fr_job *job)
{
    return job->tokens > 0 || fr_request_has(request, FR_OPT_STEPS);
}

/* False: none was asked for. */
static bool find_run(const fr_request *request, const fr_report_setup *setup,
                     const fr_prediction *prediction, fr_run_length *out)
{
    fr_goal goal;
    fr_err checked;
    const fr_job job = fr_goal_job(setup->model, setup->job);
    if (!fr_request_has_length(request, &job))
        return false;
    if (fr_request_make_goal(request, &goal, &checked) != FR_OK)
        return false;
    const fr_goal_subject subject = {setup->model, &job, setup->cluster};
    const fr_weighed_step step = fr_weighed_step_of(prediction);
    const fr_goal_run run = fr_goal_run_of(&goal, &step, setup->plan, &subject);
    *out = (fr_run_length){
        .n_steps = run.n_steps,
        .n_tokens = run.tokens,
        .outlook = run.outlook,
        .n_nodes = run.n_nodes,
        .n_devices = run.n_devices,
        .has_tokens = setup->model->kind != FR_MODEL_LAYERS,
        .counts = fr_run_counts_of(&goal, setup->cluster,
                                   run.outlook.kwh > 0 ? run.n_nodes : 0)};
    return true;
}

void fr_request_run_length(const fr_request *request,
                           const fr_report_setup *setup,
                           const fr_prediction *prediction, fr_document *out)
{
    fr_run_length run;
    if (find_run(request, setup, prediction, &run))
        fr_report_run_length(&run, out);
}
