/*
 * estimate_work.c: what no pipeline can avoid: the compute lanes of a model's
 * p pipeline ranks have all layers of all m micro-batches to do, so the
 * busiest of them has no less than the mean,
 *
 *   m / p (sum over layers of (forward + backward + weights) + embedding +
 *          head)
 *
 * with layers as est_layers has them at least.  What is recomputed is not
 * counted: a pipeline decides for how many layers that is.  Where ranks of a
 * pipeline stand on unlike places nothing is said.
 */
#include "plan/decide/plan_shares.h"
#include "sim/bound/estimate_state.h"

static bool is_one_place(const est_layout *layout, int32_t n_stages)
{
    for (int32_t s = 1; s < n_stages; s++)
        if (layout->places[s].layers_id != layout->places[0].layers_id)
            return false;
    return true;
}

int64_t est_work_of(const est_layers *layers, est_kind kind, int32_t n)
{
    const est_times *t = &layers->times[kind];
    return t->forward_ps[n] + t->backward_ps[n] + t->weights_ps[n] +
           t->embed_ps + t->embed_back_ps + t->head_ps;
}

fr_status fr_estimate_least_work(fr_estimator *e, const fr_plan *plan,
                                 fr_least_work *out, fr_err *err)
{
    const est_layout *layout;
    const est_layers *layers;
    *out = (fr_least_work){0};
    FR_TRY(est_layout_find(e, plan, &layout, err));
    FR_TRY(est_layers_find(e, plan, &layout->places[0], &layers, err));
    const double share =
        (double)fr_plan_share(plan, e->job, layout->dp) / (double)plan->pp;
    if (is_one_place(layout, plan->pp))
        out->lane_s =
            1e-12 * (double)est_work_of(layers, EST_BOUND, e->n_layers) * share;
    /* Like devices compute as fast wherever they stand.  Elsewhere place and
     * share are those of the ranks with the most to do. */
    if (!fr_cluster_is_unlike(e->cluster) && plan->n_shares == 0)
        out->compute_s = 1e-12 *
                         (double)est_work_of(layers, EST_COMPUTE, e->n_layers) *
                         share;
    return FR_OK;
}
