/* inputs.c: loading, and one plan's way from options to a prediction. */
#include "api/inputs.h"

#include "api/power_cap.h"
#include "core/base/units.h"
#include "core/system/fileio.h"
#include "cost_models/gpu/gpu_memory.h"
#include "cost_models/gpu/gpu_price.h"
#include "program/ir/reuse.h"
#include "program/lower/step/lower.h"
#include "report/timeline/trace_json.h"
#include "sim/predict/simulate.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

fr_status fr_as_input(fr_status status, fr_err *err)
{
    if (status != FR_IO)
        return status;
    err->status = FR_INPUT;
    return FR_INPUT;
}

fr_status fr_inputs_load_model(const fr_request *request, const char *name,
                               fr_model *out, fr_err *err)
{
    FR_TRY(fr_as_input(
        fr_model_load(fr_request_configs(request), name, out, err), err));
    if (out->left_out[0] != '\0')
        fr_request_note(request, "model %s: %s", out->name, out->left_out);
    return FR_OK;
}

fr_status fr_inputs_load_plan(const fr_request *request, const char *path,
                              const char *cluster, fr_plan_file *out,
                              fr_err *err)
{
    fr_model model;
    fr_err unused;
    const fr_status status =
        fr_as_input(fr_plan_file_load(path, out, err), err);
    if (status == FR_OK || fr_model_load(fr_request_configs(request), path,
                                         &model, &unused) != FR_OK)
        return status;
    fr_model_release(&model);
    return fr_fail(err, FR_INPUT,
                   "%.200s is a model, and a plan is needed here; 'forerun "
                   "tune %.200s %s -o plan.json' makes one",
                   path, path, cluster);
}

static void warn_if_stale(const fr_request *request, const fr_inputs *inputs)
{
    fr_fingerprint now;
    char difference[512];
    const fr_session *session = request->session;
    if (!inputs->cluster.is_this_machine || session == NULL ||
        session->describe_machine == NULL)
        return;
    session->describe_machine(&now);
    /* Hosts cannot be counted from here, and need not be. */
    now.n_nodes = inputs->profile.fingerprint.n_nodes;
    fr_fingerprint_difference(&inputs->profile.fingerprint, &now, difference,
                              sizeof difference);
    if (difference[0] != '\0')
        fr_request_note(request, "warning: stale profile: %s", difference);
}

/* Notes on values of the cluster file that this answer does not depend on. */
static void note_unused(const fr_request *request, const fr_cluster *cluster)
{
    if (fr_command_takes(request->command, FR_OPT_FOR_DAYS))
        return; /* it tells of runs */
    if (!fr_request_counts_interruptions(request, NULL) &&
        (cluster->device_mtbf_s > 0 || cluster->node_mtbf_s > 0 ||
         cluster->restart_s > 0 || cluster->spot_interruption_per_h > 0))
        fr_request_note(request,
                        "the cluster's failures (mtbf, restart, "
                        "spot interruptions) are not in this answer, which is "
                        "of a step: forerun goodput has them");
    if (cluster->carbon_g_per_kwh > 0)
        fr_request_note(request, "the cluster's carbon-g-per-kwh is not in "
                                 "this answer: forerun goodput has it");
}

/* Energy of a run without what its hosts draw would be taken for all of it. */
static void note_power(const fr_request *request, const fr_cluster *cluster)
{
    bool is_asked = fr_request_has(request, FR_OPT_TOKENS) ||
                    fr_request_has(request, FR_OPT_MAX_ENERGY);
    for (size_t i = 0; is_asked && i < cluster->n_node_types; i++) {
        const fr_node_type *type = &cluster->node_types[i];
        if (type->power_w <= 0 &&
            cluster->devices[type->i_device].kind == FR_DEVICE_GPU)
            fr_request_note(
                request,
                "energy counts the GPUs of node-type '%s' "
                "alone: what the rest of it draws is not known; say it "
                "in a cluster file, power=\"2kW\"",
                type->id);
    }
}

fr_status fr_inputs_load(const fr_request *request, const char *cluster,
                         fr_inputs *out, fr_err *err)
{
    const char *path = fr_request_text(request, FR_OPT_PROFILE);
    fr_power_caps caps;
    memset(out, 0, sizeof *out);
    out->ranks_per_node = request->option[FR_OPT_RANKS_PER_NODE].count;
    out->log = request->session != NULL ? request->session->log : NULL;
    FR_TRY(fr_as_input(fr_cluster_load(fr_request_configs(request), cluster,
                                       &out->cluster, err),
                       err));
    out->has_cluster = true;
    out->cluster_word = cluster;
    FR_TRY(fr_power_caps_parse(request, &caps, err));
    if (caps.n == 1) /* of several one is chosen */
        FR_TRY(fr_power_cap_apply(request, caps.at_w[0], &out->cluster, err));
    note_unused(request, &out->cluster);
    note_power(request, &out->cluster);
    if (path != NULL) {
        FR_TRY(fr_as_input(fr_profile_load(path, &out->profile, err), err));
        out->has_profile = true;
        warn_if_stale(request, out);
    } else {
        fr_request_note(
            request, "no --profile: costs are %s",
            fr_cluster_device(&out->cluster, 0)->kind == FR_DEVICE_GPU
                ? "modelled from the GPUs' datasheets and published kernels"
                : "those of the datasheet");
    }
    FR_TRY(fr_cost_model_create(out->has_profile ? &out->profile : NULL,
                                &out->cluster, &out->costs, err));
    if (out->has_profile && fr_profile_is_gpu(&out->profile) &&
        !fr_gpu_prices_has_measured(fr_cost_gpu_prices(out->costs)))
        fr_request_note(request,
                        "warning: the profile is of %s (compute "
                        "capability %s); no device of %s is: its kernels are "
                        "modelled",
                        out->profile.fingerprint.gpu.name,
                        out->profile.fingerprint.gpu.capability,
                        out->cluster.name);
    return FR_OK;
}

void fr_inputs_release(fr_inputs *inputs)
{
    fr_cost_model_destroy(inputs->costs);
    if (inputs->has_profile)
        fr_profile_release(&inputs->profile);
    if (inputs->has_cluster)
        fr_cluster_release(&inputs->cluster);
    memset(inputs, 0, sizeof *inputs);
}

/* Writes node_of_rank[world] and all of the placement. */
static fr_status place(const fr_inputs *inputs, const fr_plan *plan,
                       int32_t *node_of_rank, fr_placement *out, fr_err *err)
{
    int64_t n_ranks = fr_plan_world(plan);
    FR_TRY(fr_cluster_place(&inputs->cluster, n_ranks, plan->n_threads,
                            inputs->ranks_per_node, node_of_rank, err));
    const fr_device_type *device =
        fr_cluster_device(&inputs->cluster, node_of_rank[0]);
    *out = (fr_placement){.n_ranks = n_ranks,
                          .node_of_rank = node_of_rank,
                          .by_framework = fr_gpu_is_by_framework(plan, device)};
    return FR_OK;
}

static fr_status simulate_placed(const fr_inputs *inputs, const fr_model *model,
                                 const fr_job *job, const fr_plan *plan,
                                 bool has_timeline, fr_forecast *out,
                                 fr_err *err)
{
    fr_placement placement;
    fr_simulate_options options = {
        .timeline = has_timeline ? &out->timeline : NULL, .log = inputs->log};
    int32_t *node_of_rank;
    fr_status status;
    FR_TRY_CALLOC(node_of_rank, (size_t)fr_plan_world(plan), err);
    FR_TRY_GOTO(status, place(inputs, plan, node_of_rank, &placement, err),
                out_nodes);
    placement.is_whole = has_timeline;
    FR_TRY_GOTO(status,
                fr_lower(model, job, plan, &placement, &out->program, err),
                out_nodes);
    /* Reuse of a cache matters on CPUs alone. */
    if (fr_cluster_device(&inputs->cluster, node_of_rank[0])->kind ==
        FR_DEVICE_CPU)
        FR_TRY_GOTO(status, fr_program_mark_reuse(out->program, err),
                    out_nodes);
    status = fr_simulate(out->program, inputs->costs, &inputs->cluster,
                         &placement, &options, &out->prediction, err);
out_nodes:
    free(node_of_rank);
    return status;
}

fr_status fr_forecast_make(const fr_inputs *inputs, const fr_model *model,
                           const fr_job *job, const fr_plan *plan,
                           fr_forecast *out, fr_err *err)
{
    memset(out, 0, sizeof *out);
    fr_timeline_init(&out->timeline);
    FR_TRY(fr_plan_check(plan, model, job, err));
    return simulate_placed(inputs, model, job, plan, true, out, err);
}

fr_status fr_forecast_predict(const fr_inputs *inputs, const fr_model *model,
                              const fr_job *job, const fr_plan *plan,
                              fr_prediction *out, fr_err *err)
{
    fr_forecast forecast = {0};
    FR_TRY(fr_plan_check(plan, model, job, err));
    fr_status status =
        simulate_placed(inputs, model, job, plan, false, &forecast, err);
    if (status == FR_OK)
        *out = forecast.prediction;
    fr_program_destroy(forecast.program);
    return status;
}

/* Placed on this very cluster, maybe more densely than its cores. */
static void note_density(fr_inputs *inputs, const fr_plan_file *file)
{
    if (inputs->ranks_per_node == 0 && file->node_of_rank != NULL &&
        file->cluster_hash == fr_cluster_hash(&inputs->cluster)) {
        int64_t n_ranks = fr_plan_world(&file->plan), n_here = 0;
        for (int64_t r = 0; r < n_ranks; r++) {
            bool is_same =
                r > 0 && file->node_of_rank[r] == file->node_of_rank[r - 1];
            n_here = is_same ? n_here + 1 : 1;
            if (n_here > inputs->ranks_per_node)
                inputs->ranks_per_node = n_here;
        }
    }
}

fr_status fr_inputs_lower_file(fr_inputs *inputs, const fr_plan_file *file,
                               int32_t *node_of_rank, fr_program **out,
                               fr_err *err)
{
    fr_placement placement;
    note_density(inputs, file);
    FR_TRY(place(inputs, &file->plan, node_of_rank, &placement, err));
    return fr_lower(&file->model, &file->job, &file->plan, &placement, out,
                    err);
}

/* "this is a plan for dgx-h100:2, not for 4 nodes of 'racks'"; false: it is
 * for this cluster, or nobody knows. */
static bool say_home(const fr_inputs *inputs, const char *cluster,
                     uint64_t hash, char *buf, size_t n_buf)
{
    const int64_t n_nodes = fr_cluster_n_nodes(&inputs->cluster);
    if (cluster[0] == '\0' || hash == fr_cluster_hash(&inputs->cluster))
        return false;
    snprintf(buf, n_buf, "this is a plan for %s, not for %lld node%s of '%s'",
             cluster, (long long)n_nodes, n_nodes == 1 ? "" : "s",
             inputs->cluster.name);
    return true;
}

void fr_inputs_prefix_wrong_cluster(const fr_inputs *inputs,
                                    const char *cluster, uint64_t hash,
                                    fr_err *err)
{
    char text[700];
    if (say_home(inputs, cluster, hash, text, sizeof text))
        fr_err_prefix(err, "%s", text);
}

void fr_inputs_note_wrong_cluster(const fr_request *request,
                                  const fr_inputs *inputs, const char *cluster,
                                  uint64_t hash)
{
    char text[700];
    if (say_home(inputs, cluster, hash, text, sizeof text))
        fr_request_note(request, "%s: it is predicted anew", text);
}

fr_status fr_forecast_make_file(fr_inputs *inputs, const fr_plan_file *file,
                                bool has_timeline, fr_forecast *out,
                                fr_err *err)
{
    note_density(inputs, file);
    fr_status status =
        has_timeline ? fr_forecast_make(inputs, &file->model, &file->job,
                                        &file->plan, out, err)
                     : fr_forecast_predict(inputs, &file->model, &file->job,
                                           &file->plan, &out->prediction, err);
    if (status != FR_OK)
        fr_inputs_prefix_wrong_cluster(inputs, file->cluster,
                                       file->cluster_hash, err);
    return status;
}

void fr_forecast_release(fr_forecast *forecast)
{
    fr_program_destroy(forecast->program);
    fr_timeline_release(&forecast->timeline);
    memset(forecast, 0, sizeof *forecast);
}

fr_status fr_forecast_write_trace(const fr_forecast *forecast, const char *path,
                                  fr_err *err)
{
    fr_trace_part part = {&forecast->timeline, "predicted", 0};
    fr_buffer text;
    fr_buffer_init(&text);
    fr_status status = fr_trace_json(forecast->program, &part, 1, &text, err);
    if (status == FR_OK)
        status = fr_file_write(path, text.data, text.n, err);
    fr_buffer_release(&text);
    return status;
}
