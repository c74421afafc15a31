/* sweep_trials.c: parts of a cluster, and rounds of trials on them. */
#include "api/sweep/sweep_trials.h"

#include "api/resolve/goal_options.h"
#include "api/resolve/plan_resolve.h"
#include "core/base/text.h"
#include "spec/cluster/cluster_knobs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int64_t devices_of_node(const fr_cluster *cluster)
{
    const fr_device_type *device = fr_cluster_device(cluster, 0);
    return device->kind == FR_DEVICE_GPU ? fr_cluster_node_slots(cluster, 0, 1)
                                         : 1;
}

static fr_status add_parts(int64_t n_parts, fr_sweep *sweep, fr_err *err)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)n_parts);
    return fr_sweep_add_value(sweep, text, err);
}

/* In growing order: groups of nodes, nodes, shares of nodes. */
static fr_status list_parts(const fr_cluster *cluster, int64_t n_trials,
                            fr_sweep *sweep, fr_err *err)
{
    int64_t n_nodes = fr_cluster_n_nodes(cluster);
    int64_t n_each = devices_of_node(cluster);
    bool is_enough = false; /* all run at once */
    for (int64_t k = 1; k <= n_nodes && k <= n_trials; k++)
        if (n_nodes % k == 0 || k == n_trials)
            FR_TRY(add_parts(k, sweep, err));
    is_enough = n_trials <= n_nodes;
    for (int64_t j = 2; j <= n_each && !is_enough; j++) {
        if (n_each % j != 0)
            continue;
        FR_TRY(add_parts(n_nodes * j, sweep, err));
        is_enough = n_nodes * j >= n_trials;
    }
    if (sweep->keys[0].n_values < 2 && n_trials > 1)
        return fr_fail(err, FR_INPUT,
                       "cluster '%s' cannot be divided: one node, and not of "
                       "several GPUs",
                       cluster->name);
    return FR_OK;
}

/* The cluster of one part. */
static fr_status make_part(const fr_inputs *inputs, int64_t n_parts,
                           fr_sweep_variant *out, fr_err *err)
{
    const fr_cluster_knob *nodes =
        fr_cluster_knob_at(fr_cluster_knob_find("nodes"));
    int64_t n_nodes = fr_cluster_n_nodes(&inputs->cluster) / n_parts;
    char text[24];
    fr_err why;
    snprintf(text, sizeof text, "%lld", (long long)(n_nodes > 0 ? n_nodes : 1));
    FR_TRY(fr_cluster_copy(&inputs->cluster, &out->cluster, err));
    if (n_parts > 1 &&
        fr_cluster_knob_turn(NULL, nodes, &out->cluster, text, &why) != FR_OK) {
        fr_text_copy_cut(out->why, sizeof out->why, why.text);
        return FR_OK;
    }
    return fr_cost_model_create(inputs->has_profile ? &inputs->profile : NULL,
                                &out->cluster, &out->costs, err);
}

static fr_status make_case(const fr_request *request, const fr_inputs *inputs,
                           size_t i, fr_sweep_points *points, fr_err *err)
{
    fr_plan_choice choice;
    const fr_plan_question question = {.purpose = FR_PLAN_TO_SEARCH,
                                       .model = &points->models[0],
                                       .cluster = &inputs->cluster,
                                       .n_ranks_max =
                                           fr_cluster_slots(&inputs->cluster),
                                       .is_quiet = true};
    fr_sweep_variant *part = &points->variants[i];
    fr_sweep_case *out = &points->cases[i];
    int64_t n_parts = strtoll(points->sweep.keys[0].values[i], NULL, 10);
    int64_t n_nodes = fr_cluster_n_nodes(&inputs->cluster);
    FR_TRY(fr_request_make_goal(request, &out->goal, err));
    FR_TRY(make_part(inputs, n_parts, part, err));
    out->cluster = &part->cluster;
    out->costs = part->costs;
    fr_status status = fr_plan_resolve(request, &question, &choice, err);
    if (status == FR_OK)
        fr_sweep_fill_case(request, &choice, points, i);
    fr_plan_choice_release(&choice);
    FR_TRY(status);
    out->why = part->costs == NULL ? part->why : NULL;
    if (n_parts > n_nodes)
        out->n_ranks = devices_of_node(&inputs->cluster) * n_nodes / n_parts;
    return FR_OK;
}

fr_status fr_sweep_trials_make(const fr_request *request,
                               const fr_inputs *inputs, fr_sweep_points *out,
                               fr_err *err)
{
    fr_sweep_init(&out->sweep);
    out->sweep.n_trials = request->option[FR_OPT_TRIALS].count;
    FR_TRY(fr_sweep_add_key(&out->sweep, "at-once", err));
    FR_TRY(list_parts(&inputs->cluster, out->sweep.n_trials, &out->sweep, err));
    FR_TRY(fr_sweep_make_points(&out->sweep, SIZE_MAX, err));
    FR_TRY(fr_sweep_load_model(request, request->positional[0], out, err));
    out->n_variants = out->sweep.n_points;
    out->variants = calloc(out->n_variants, sizeof *out->variants);
    if (out->variants == NULL) {
        out->n_variants = 0;
        return fr_fail_no_memory(err);
    }
    FR_TRY(fr_sweep_make_cases(out, err));
    for (size_t i = 0; i < out->sweep.n_points; i++)
        FR_TRY(make_case(request, inputs, i, out, err));
    return FR_OK;
}

/* The amount that is compared: dollars, energy, else time. */
static double value_of(const fr_goal *goal, const fr_sweep_point *point)
{
    const unsigned needs = fr_goal_rows[goal->kind]->needs;
    double value = point->all_s;
    if ((needs & FR_GOAL_NEEDS_PRICE) != 0)
        value = point->all_usd;
    if ((needs & FR_GOAL_NEEDS_POWER) != 0)
        value = point->all_kwh;
    return value > 0 ? value : HUGE_VAL;
}

void fr_sweep_trials_finish(const fr_cluster *cluster, const fr_goal *goal,
                            fr_sweep_points *points)
{
    fr_sweep_point *best = NULL;
    int64_t n_trials = points->sweep.n_trials;
    int64_t n_nodes = fr_cluster_n_nodes(cluster);
    double usd_per_h = fr_cluster_usd_per_h(cluster, n_nodes, goal->is_spot);
    for (size_t i = 0; i < points->sweep.n_points; i++) {
        fr_sweep_point *point = &points->sweep.points[i];
        const fr_sweep_case *at = &points->cases[i];
        int64_t n_parts = strtoll(points->sweep.keys[0].values[i], NULL, 10);
        point->n_at_once = n_parts < n_trials ? n_parts : n_trials;
        point->n_rounds = (n_trials + n_parts - 1) / n_parts;
        point->is_best = false;
        if (!point->is_feasible)
            continue;
        const fr_goal_subject subject = {at->model, &at->job, at->cluster};
        const fr_weighed_step step = {
            .seconds = point->step_s,
            .busy_s = point->step_s * point->busy_frac,
            .p95_factor = point->step_s_p95 / point->step_s,
            .useful_frac = 1};
        const fr_run_outlook run =
            fr_goal_run_of(&at->goal, &step, &at->plan, &subject).outlook;
        double s_per_1e9 = 1e9 / point->tokens_per_s;
        point->usd_per_h = usd_per_h / (double)n_parts;
        point->usd_per_1e9_tokens = point->usd_per_h / 3600 * s_per_1e9;
        point->kwh_per_1e9_tokens =
            fr_cluster_power_w(cluster, n_nodes, point->busy_frac) /
            (double)n_parts / 3.6e6 * s_per_1e9;
        point->run = run;
        /* Parts of nodes are paid for together, below. */
        point->run.usd = point->run.kwh = 0;
        point->all_s = run.seconds * (double)point->n_rounds;
        point->all_usd = usd_per_h * point->all_s / 3600;
        /* Parts that are idle in the last round draw next to nothing. */
        point->all_kwh =
            fr_cluster_power_w(cluster, n_nodes, point->busy_frac) /
            (double)n_parts * (double)n_trials * run.seconds / 3.6e6;
        point->goal = value_of(goal, point);
        if (isfinite(point->goal) && (best == NULL || point->goal < best->goal))
            best = point;
    }
    if (best != NULL)
        best->is_best = true;
}
