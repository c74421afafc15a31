/* estimate_stages.c: a view into what the estimator keeps. */
#include "sim/bound/estimate_stages.h"

#include "cost_models/gpu/gpu_memory.h"
#include "plan/decide/grid.h"
#include "sim/bound/estimate_state.h"

static uint64_t headroom_of(const fr_estimator *e, const fr_plan *plan,
                            const est_place *place)
{
    const fr_device_type *device = fr_cluster_device(e->cluster, place->node);
    uint64_t bytes = 0;
    if (device->kind != FR_DEVICE_GPU)
        return fr_cluster_rank_memory_bytes(e->cluster, place->node,
                                            place->n_beside);
    fr_gpu_memory memory = fr_gpu_memory_least(plan, device);
    fr_gpu_workspaces spaces = fr_gpu_workspaces_of(plan, e->model, device);
    bytes = memory.context_bytes + memory.nccl_bytes;
    for (int i = 0; i < spaces.n; i++)
        bytes += spaces.n_bytes[i];
    return device->memory_bytes > bytes ? device->memory_bytes - bytes : 0;
}

/* Layers beyond those of the model are the last stage's. */
static int64_t later_ps(const fr_estimator *e, const est_times *t)
{
    const int64_t n = e->model->n_layers, all = e->n_layers;
    return t->forward_ps[all] - t->forward_ps[n] + t->backward_ps[all] -
           t->backward_ps[n] + t->weights_ps[all] - t->weights_ps[n];
}

fr_status fr_estimate_stages(fr_estimator *e, const fr_plan *plan,
                             fr_stage_layers *out, fr_err *err)
{
    const est_layout *layout;
    FR_TRY(est_layout_find(e, plan, &layout, err));
    for (int32_t s = 0; s < plan->pp; s++) {
        const est_place *place = &layout->places[s];
        const est_layers *l;
        FR_TRY(est_layers_find(e, plan, place, &l, err));
        const est_times *t = &l->times[EST_ESTIMATE];
        const int64_t n = e->model->n_layers, all = e->n_layers;
        out[s] = (fr_stage_layers){
            .forward_ps = t->forward_ps,
            .backward_ps = t->backward_ps,
            .weights_ps = t->weights_ps,
            .recompute_ps = t->recompute_ps,
            .n_dense = l->n_dense,
            .n_expert = l->n_expert,
            .kept_bytes = l->kept_bytes,
            .embed_ps = t->embed_ps + t->embed_back_ps,
            .head_ps = t->head_ps + later_ps(e, t),
            .n_embed = l->n_embed,
            .n_final = l->n_final + l->n_dense[all] - l->n_dense[n] +
                       l->n_expert[all] - l->n_expert[n],
            .scratch_bytes = l->scratch_bytes,
            .headroom_bytes = headroom_of(e, plan, place),
            .id = l};
    }
    return FR_OK;
}

/* ---- replicas ------------------------------------------------------------ */

/* Devices that are alike, and what one takes for a micro-batch. */
typedef struct device_kind {
    int type, slowness; /* of the node; its share of its speed, in 32nds */
    double frac, pass_s;
} device_kind;

typedef fr_vec(device_kind) device_kinds;

static fr_status price_kind(fr_estimator *e, const fr_plan *plan, int64_t rank,
                            device_kind *kind, fr_err *err)
{
    est_place place = {0};
    const est_layers *layers;
    FR_TRY(est_place_find(e, plan, rank, &place, err));
    FR_TRY(est_layers_find(e, plan, &place, &layers, err));
    kind->pass_s =
        1e-12 * (double)est_work_of(layers, EST_ESTIMATE, e->n_layers);
    return FR_OK;
}

/* Sets *out_s to the approximate time of a micro-batch of the whole model on a
 * rank. */
static fr_status pass_of(fr_estimator *e, const fr_plan *plan, int64_t rank,
                         device_kinds *kinds, double *out_s, fr_err *err)
{
    const int64_t node = e->node_of_rank[rank];
    const double frac = est_compute_frac(e, rank);
    device_kind kind = {.type =
                            fr_cluster_group_of(e->cluster, node)->i_node_type,
                        .slowness = (int)(32 * frac + 0.5),
                        .frac = frac};
    size_t i = 0;
    while (i < kinds->n && (kinds->items[i].type != kind.type ||
                            kinds->items[i].slowness != kind.slowness))
        i++;
    if (i == kinds->n) {
        FR_TRY(price_kind(e, plan, rank, &kind, err));
        FR_TRY_PUSH(kinds, kind, err);
    }
    *out_s = kinds->items[i].pass_s * kinds->items[i].frac / frac;
    return FR_OK;
}

fr_status fr_estimate_replicas(fr_estimator *e, const fr_plan *plan,
                               double *out_s, fr_err *err)
{
    const int64_t n_ranks = fr_plan_world(plan);
    device_kinds kinds = {0};
    fr_status status = est_ranks_place(e, plan, err);
    for (int32_t i = 0; i < plan->dp; i++)
        out_s[i] = 0;
    for (int64_t r = 0; status == FR_OK && r < n_ranks; r++) {
        double *slowest_s = &out_s[fr_plan_coord(plan, r).dp];
        double pass_s = 0;
        status = pass_of(e, plan, r, &kinds, &pass_s, err);
        *slowest_s = pass_s > *slowest_s ? pass_s : *slowest_s;
    }
    for (int32_t i = 0; i < plan->dp; i++)
        out_s[i] /= plan->pp;
    fr_vec_release(&kinds);
    return status;
}
