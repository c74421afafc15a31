/*
 * estimate_headroom.c: least_bytes of many plans at once: those of the same
 * layers.
 *
 * estimate_memory.c counts what the first rank holds when its first backward
 * begins.  Each of its terms grows with the layers of that rank, with those of
 * a chunk and with the pairs that are live, and with what a layer has: so the
 * least of each will do, over all layers of the model.
 */
#include "plan/decide/plan_shares.h"
#include "plan/schedule/schedule.h"
#include "sim/bound/estimate_state.h"

fr_estimate_share fr_estimate_share_of(const fr_model *model, const fr_job *job,
                                       const fr_plan *plan)
{
    const fr_schedule *schedule = fr_schedules[plan->schedule];
    /* The rank with the fewest micro-batches keeps least. */
    const int64_t n_micro = fr_plan_least_share(plan, job);
    fr_estimate_share share = {
        .n_pairs = (int64_t)est_live_pairs(plan, n_micro, 0),
        .chunk_layers = INT32_MAX,
        .is_all_recomputed =
            plan->recompute == FR_RECOMPUTE_FULL && plan->recompute_layers == 0,
        .is_split = schedule->is_split};
    for (int32_t c = 0; c < plan->vpp; c++) {
        const fr_stage_span span = fr_stage_span_held(plan, model, 0, c);
        const int32_t n = span.end - span.first;
        share.own_layers += n;
        share.chunk_layers = n < share.chunk_layers ? n : share.chunk_layers;
    }
    share.plain_layers =
        share.chunk_layers - fr_stage_n_recomputed(plan, share.chunk_layers);
    return share;
}

fr_status fr_estimate_headroom_of(fr_estimator *e, const fr_plan *plan,
                                  fr_estimate_headroom *out, fr_err *err)
{
    est_plan *x = e->at_plan;
    const est_layers *recomputed, *plain;
    est_plan_set(x, plan);
    FR_TRY(est_layout_find(e, plan, &x->layout, err));
    const est_place *place = &x->layout->places[0];
    const fr_device_type *device = fr_cluster_device(e->cluster, place->node);
    FR_TRY(est_layers_find(e, plan, place, &recomputed, err));
    plain = recomputed;
    if (plan->recompute == FR_RECOMPUTE_FULL) {
        fr_plan without = *plan;
        without.recompute = FR_RECOMPUTE_NONE;
        FR_TRY(est_layers_find(e, &without, place, &plain, err));
    }
    const uint64_t overhead = est_overhead(x, device);
    *out = (fr_estimate_headroom){
        .recomputed_bytes = recomputed->least_kept_bytes,
        .plain_bytes = plain->least_kept_bytes,
        .stream_bytes = recomputed->stream_bytes,
        .recomputed_scratch_bytes = recomputed->least_scratch_bytes,
        .plain_scratch_bytes = plain->least_scratch_bytes};
    if (overhead < device->memory_bytes)
        out->capacity_bytes = device->memory_bytes - overhead;
    return FR_OK;
}

/* Returns the least scratch of the last layer's backward; the layer may be
 * recomputed or not. */
static uint64_t scratch_at_least(const fr_estimate_headroom *headroom,
                                 const fr_estimate_share *share)
{
    const uint64_t recomputed = headroom->recomputed_scratch_bytes;
    const uint64_t plain = headroom->plain_scratch_bytes;
    if (share->is_split)
        return 0;
    return share->is_all_recomputed || recomputed < plain ? recomputed : plain;
}

uint64_t fr_estimate_kept(const fr_estimate_headroom *headroom,
                          const fr_estimate_share *share)
{
    const uint64_t n_plain = (uint64_t)share->plain_layers;
    const uint64_t n_recomputed = (uint64_t)share->chunk_layers - n_plain;
    uint64_t kept = n_recomputed * headroom->recomputed_bytes +
                    n_plain * headroom->plain_bytes;
    kept -= kept < headroom->stream_bytes ? kept : headroom->stream_bytes;
    return kept * (uint64_t)share->n_pairs + scratch_at_least(headroom, share);
}

fr_status fr_estimate_state(fr_estimator *e, const fr_plan *plan,
                            int32_t own_layers, uint64_t *out_bytes,
                            fr_err *err)
{
    est_plan *x = e->at_plan;
    const est_layers *l;
    est_plan_set(x, plan);
    FR_TRY(est_layout_find(e, plan, &x->layout, err));
    FR_TRY(est_layers_find(e, plan, &x->layout->places[0], &l, err));
    const est_stage stage = {
        .n_dense = l->n_embed + l->least_dense * (uint64_t)own_layers,
        .n_expert = l->least_expert * (uint64_t)own_layers,
        .n_layers = e->n_layers, /* the most that rounding down loses */
        .n_last_layer = l->least_dense};
    *out_bytes =
        est_states_at_least(x, &stage) + est_gathered_at_least(x, &stage);
    return FR_OK;
}
