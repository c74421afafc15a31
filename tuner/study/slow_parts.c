/* slow_parts.c: see slow_parts.h. */
#include "tuner/study/slow_parts.h"

#include "core/base/text.h"
#include "spec/cluster/cluster_knobs.h"
#include "tuner/search/evaluate.h"
#include "tuner/study/what_if.h"

#include <stdio.h>
#include <string.h>

/* "rack0-3", "rack0-3 device 5", "link l4". */
static void name_part(const fr_cluster *cluster, const fr_slow *slow, char *buf,
                      size_t n_buf)
{
    char node[FR_CLUSTER_ID + 32];
    if (slow->node < 0) {
        snprintf(buf, n_buf, "link %s", cluster->fabric.links[slow->link].id);
        return;
    }
    fr_cluster_node_name(cluster, slow->node, node, sizeof node);
    if (slow->device < 0)
        snprintf(buf, n_buf, "%s", node);
    else
        snprintf(buf, n_buf, "%s device %d", node, (int)slow->device);
}

/* The step on the cluster where part i (-1: no part) is not slow. */
static fr_status simulate_without(const fr_explain_request *r,
                                  const fr_cluster *unlimited, int64_t i,
                                  double *step_s, fr_err *err)
{
    fr_cluster cluster;
    fr_cost_model *costs = NULL;
    fr_evaluation found;
    FR_TRY(fr_cluster_copy(unlimited, &cluster, err));
    if (i < 0)
        cluster.n_slow = 0;
    else
        cluster.slow[i] = cluster.slow[--cluster.n_slow];
    fr_status status = fr_cost_model_create(r->profile, &cluster, &costs, err);
    fr_plan_space_request request = {.model = r->model,
                                     .job = r->job,
                                     .cluster = &cluster,
                                     .base = *r->plan,
                                     .log = r->log};
    if (status == FR_OK)
        status = fr_evaluate(&request, costs, r->plan, &found, err);
    if (status == FR_OK)
        *step_s = found.prediction.expected_step_s;
    fr_cost_model_destroy(costs);
    fr_cluster_release(&cluster);
    return status;
}

static fr_status find_all(const fr_explain_request *r,
                          const fr_cluster *unlimited, fr_explanation *out,
                          fr_err *err)
{
    const fr_cluster *cluster = r->cluster;
    for (size_t i = 0; i < cluster->n_slow && out->n_slow < FR_SLOW_PARTS;
         i++) {
        const fr_slow *slow = &cluster->slow[i];
        fr_slow_part *at = &out->slow[out->n_slow];
        name_part(cluster, slow, at->name, sizeof at->name);
        at->compute_frac = slow->compute_frac;
        at->network_frac = slow->network_frac;
        FR_TRY(simulate_without(r, unlimited, (int64_t)i, &at->step_s, err));
        out->n_slow++;
    }
    out->n_slow_more = (int64_t)cluster->n_slow - out->n_slow;
    return simulate_without(r, unlimited, -1, &out->normal_s, err);
}

fr_status fr_slow_parts_find(const fr_explain_request *request,
                             fr_explanation *out, fr_err *err)
{
    fr_cluster unlimited = {0};
    if (request->cluster->n_slow == 0)
        return FR_OK;
    fr_status status = fr_what_if_unlimited(request->cluster, &unlimited, err);
    if (status == FR_OK)
        status = find_all(request, &unlimited, out, err);
    fr_cluster_release(&unlimited);
    return status;
}
