/*
 * estimate_passes.c: when the passes of each pipeline rank begin and end; the
 * equations stand at the head of estimate.c.
 */
#include "plan/collective/collective.h"
#include "plan/schedule/schedule.h"
#include "sim/bound/estimate_state.h"
#include "sim/engine/virtual_time.h"

#include <string.h>

/* ---- passes ------------------------------------------------------------- */

/* Clears the members that are summed over chunks; all others are set later. */
static void clear(const est_plan *x, int32_t s, est_stage *stage)
{
    stage->rank = s;
    stage->n_all = x->e->n_layers;
    stage->times = &stage->layers->times[x->is_estimate];
    stage->forward_ps = stage->backward_ps = stage->weights_ps = 0;
    stage->host_ps = stage->core_ps = stage->path_ps = 0;
    stage->gathers_of = 0;
    stage->update_id[0] = stage->update_id[1] = 0;
    stage->n_dense = stage->n_expert = stage->kept_bytes = 0;
    stage->n_layers = 0;
    stage->chunk_bytes = stage->pending_bytes = UINT64_MAX;
    stage->occupancy = stage->last_occupancy = NULL;
    stage->has_embed = stage->has_head = false;
}

static uint64_t least_bytes(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Returns the least bytes that the forward of a chunk keeps.  In a list of
 * layers it depends on the neighbours which of two layers keeps the tensor
 * between them.  A chunk with both kinds counts as if all were recomputed,
 * which keeps no more, and the output of its last layer counts as sent away. */
static uint64_t chunk_bytes(const est_stage *stage, int32_t first, int32_t end,
                            int32_t cut)
{
    const est_layers *l = stage->layers;
    const uint64_t *plain = stage->plain->kept_bytes;
    const uint64_t recomputed = l->kept_bytes[end] - l->kept_bytes[first];
    const uint64_t sent = end > first ? l->handed_bytes[end] : 0;
    const uint64_t inside = recomputed > sent ? recomputed - sent : 0;
    if (!l->is_uniform && first < cut && cut < end)
        return least_bytes(inside, plain[end] - plain[first]);
    if (first < cut && cut == end)
        return inside;
    return l->kept_bytes[cut] - l->kept_bytes[first] + plain[end] - plain[cut];
}

/* Adds the work of a chunk for hosts and multiprocessors. */
static void add_work(const est_layers *l, int32_t first, int32_t end,
                     int32_t cut, est_stage *stage)
{
    const est_times *host = &l->times[EST_HOST], *core = &l->times[EST_CORES];
    stage->host_ps += host->forward_ps[end] - host->forward_ps[first] +
                      host->backward_ps[end] - host->backward_ps[first] +
                      host->recompute_ps[cut] - host->recompute_ps[first];
    stage->core_ps += core->forward_ps[end] - core->forward_ps[first] +
                      core->backward_ps[end] - core->backward_ps[first] +
                      core->weights_ps[end] - core->weights_ps[first] +
                      core->recompute_ps[cut] - core->recompute_ps[first];
}

/* Adds a chunk, whose layers before `cut` are recomputed. */
static void add_chunk(const fr_plan *plan, const fr_stage_span *span,
                      int32_t chunk, est_stage *stage, est_pass_times *pass)
{
    const int32_t first = span->first, end = span->end;
    const int32_t cut = first + fr_stage_n_recomputed(plan, end - first);
    const est_layers *l = stage->layers;
    const est_times *t = stage->times;
    int64_t forward = t->forward_ps[end] - t->forward_ps[first];
    int64_t backward = t->backward_ps[end] - t->backward_ps[first] +
                       t->recompute_ps[cut] - t->recompute_ps[first];
    *pass = (est_pass_times){
        .forward_ps = forward,
        .backward_ps = backward,
        .weights_ps = t->weights_ps[end] - t->weights_ps[first],
        .early_ps = cut == end && end > first
                        ? t->recompute_ps[end] - t->recompute_ps[end - 1]
                        : 0,
        .n_layers = end - first};
    add_work(l, first, end, cut, stage);
    stage->weights_ps += pass->weights_ps;
    stage->kept_bytes += l->kept_bytes[cut] - l->kept_bytes[first] +
                         l->plain_bytes[end] - l->plain_bytes[cut];
    stage->chunk_bytes =
        least_bytes(stage->chunk_bytes, chunk_bytes(stage, first, end, cut));
    stage->pending_bytes = least_bytes(
        stage->pending_bytes, l->pending_bytes[end] - l->pending_bytes[first]);
    stage->scratch_bytes = cut == end ? l->layer_scratch_bytes[end]
                                      : stage->plain->layer_scratch_bytes[end];
    stage->n_last_layer =
        end > first ? l->n_dense[end] - l->n_dense[end - 1] : 0;
    stage->n_dense += l->n_dense[end] - l->n_dense[first];
    stage->n_expert += l->n_expert[end] - l->n_expert[first];
    stage->n_layers += end - first;
    stage->forward_ps += forward;
    stage->backward_ps += backward;
    stage->last_forward_ps = forward;
    stage->last_backward_ps = backward;
    if (chunk > 0)
        return;
    stage->first_forward_ps = forward;
    stage->first_backward_ps = backward;
    stage->early_ps = pass->early_ps;
    stage->first_layer = first;
    stage->end_layer = end;
}

static void add_ends(est_plan *x)
{
    est_stage *first = &x->stages[0];
    est_stage *end = &x->stages[fr_stage_head_holder(x->plan)];
    const est_times *l = first->times;
    est_pass_times *passes = x->passes;
    first->has_embed = end->has_head = true;
    passes[0].forward_ps += l->embed_ps;
    passes[0].backward_ps += l->embed_back_ps;
    passes[fr_stages_of(x->plan) - 1].backward_ps += end->times->head_ps;
    first->forward_ps += l->embed_ps;
    first->first_forward_ps += l->embed_ps;
    first->backward_ps += l->embed_back_ps;
    first->first_backward_ps += l->embed_back_ps;
    if (x->vpp == 1) {
        first->last_forward_ps += l->embed_ps;
        first->last_backward_ps += l->embed_back_ps;
    }
    const est_times *host = &first->layers->times[EST_HOST];
    const est_times *core = &first->layers->times[EST_CORES];
    first->host_ps += host->embed_ps + host->embed_back_ps;
    first->core_ps += core->embed_ps + core->embed_back_ps;
    end->host_ps += end->layers->times[EST_HOST].head_ps;
    end->core_ps += end->layers->times[EST_CORES].head_ps;
    first->n_dense += first->layers->n_embed;
    end->backward_ps += end->times->head_ps;
    end->last_backward_ps += end->times->head_ps;
    if (x->vpp == 1)
        end->first_backward_ps += end->times->head_ps;
    end->n_dense += end->layers->n_final;
}

/* The price of what rank s sends to the next one. */
static fr_status price_hop(est_plan *x, const est_layout *layout, int32_t s,
                           fr_err *err)
{
    est_stage *stage = &x->stages[s];
    const est_stage *before = s > 0 ? stage - 1 : NULL;
    const fr_comm_scope *hop = &layout->hop[s];
    uint64_t bytes = stage->layers->stream_bytes;
    if (before != NULL && before->layers == stage->layers &&
        memcmp(hop, &layout->hop[s - 1], sizeof *hop) == 0) {
        stage->hop_ps = before->hop_ps;
        return FR_OK;
    }
    if (x->e->model->kind == FR_MODEL_LAYERS) {
        stage->hop_ps = 0; /* each boundary has its own size */
        return FR_OK;
    }
    return est_send(x->e, hop, stage->place, x->sharding.weight_dtype,
                    bytes / fr_dtype_bytes(x->sharding.weight_dtype),
                    &stage->hop_ps, err);
}

/* Its layers keep less under full recompute, also where they are not made
 * again, than without: what they keep at least is their input. */
static bool is_plain_attention(const est_plan *x)
{
    return !x->plan->is_flash && (x->plan->precision == FR_DTYPE_F32 ||
                                  est_is_executable(x->e, x->plan));
}

/* Finds the costs of a rank's layers, with and without recompute. */
static fr_status find_rank(est_plan *x, int32_t s, est_stage *stage,
                           fr_err *err)
{
    stage->place = &x->layout->places[s];
    FR_TRY(est_layers_find(x->e, x->plan, stage->place, &stage->layers, err));
    stage->plain = stage->layers;
    if (x->plan->recompute != FR_RECOMPUTE_FULL ||
        x->plan->recompute_layers == 0 || is_plain_attention(x))
        return FR_OK;
    fr_plan plain = *x->plan;
    plain.recompute = FR_RECOMPUTE_NONE;
    return est_layers_find(x->e, &plain, stage->place, &stage->plain, err);
}

/* Finds for each stage its place and the costs of its layers. */
static fr_status find_layers(est_plan *x, fr_err *err)
{
    FR_TRY(est_layout_find(x->e, x->plan, &x->layout, err));
    for (int32_t s = 0; s < x->pp; s++) {
        est_stage *stage = &x->stages[s];
        const est_place *place = &x->layout->places[s];
        if (s == 0 || place->layers_id != stage[-1].place->layers_id) {
            FR_TRY(find_rank(x, s, stage, err));
            continue;
        }
        stage->place = place;
        stage->layers = stage[-1].layers;
        stage->plain = stage[-1].plain;
    }
    return FR_OK;
}

static bool is_alike(const est_stage *a, const est_stage *b)
{
    return a->place->id == b->place->id && a->layers == b->layers &&
           a->layers->is_uniform && a->n_layers == b->n_layers &&
           a->has_embed == b->has_embed && a->has_head == b->has_head;
}

/* Prices what rank s sends and sets to zero, which is nearly the same in the
 * bound and in the estimate. */
static fr_status price_ends(est_plan *x, int32_t s, fr_err *err)
{
    est_stage *stage = &x->stages[s];
    if (x->pp > 1)
        FR_TRY(price_hop(x, x->layout, s, err));
    if (s == 0 || !is_alike(stage, stage - 1))
        return est_set_zero(x, stage, &stage->zero_ps, err);
    stage->zero_ps = stage[-1].zero_ps;
    return FR_OK;
}

fr_status est_stages_find(est_plan *x, fr_err *err)
{
    const fr_plan *plan = x->plan;
    for (int32_t s = 0; s < x->pp; s++)
        clear(x, s, &x->stages[s]);
    for (int32_t i = 0, first = 0; i < fr_stages_of(plan); i++) {
        const fr_stage_span span =
            fr_stage_span_from(plan, x->e->model, i, first);
        first = span.end;
        add_chunk(plan, &span, i / x->pp, &x->stages[fr_stage_holder(plan, i)],
                  &x->passes[i]);
    }
    add_ends(x);
    for (int32_t s = 0; s < x->pp; s++) {
        est_stage *stage = &x->stages[s];
        if (!x->has_ends)
            FR_TRY(price_ends(x, s, err));
        stage->begin_ps = stage->zero_ps;
        if (s > 0)
            stage->begin_ps =
                est_most(stage->begin_ps, stage[-1].begin_ps +
                                              stage[-1].first_forward_ps +
                                              stage[-1].hop_ps);
    }
    x->has_ends = true;
    return FR_OK;
}

/* ---- the pipeline ------------------------------------------------------- */

/* The longest that a micro-batch takes in the long run, and its round trip from
 * rank 0 to the last and back. */
static int64_t round_trip(est_plan *x, int64_t *period_ps)
{
    const int64_t m = x->n_micro;
    const fr_schedule *schedule = fr_schedules[x->plan->schedule];
    int64_t round_trip_ps = 0, forward_ps = 0, backward_ps = 0;
    *period_ps = 0;
    for (int32_t s = x->pp; s-- > 0;) {
        est_stage *stage = &x->stages[s];
        int64_t k = est_least(x->pp - s, m);
        int64_t pass_ps = stage->forward_ps + stage->backward_ps;
        round_trip_ps += pass_ps;
        if (s < x->pp - 1)
            round_trip_ps += 2 * stage->hop_ps - stage->early_ps;
        forward_ps = est_most(forward_ps, stage->forward_ps);
        backward_ps = est_most(backward_ps, stage->backward_ps);
        if (!schedule->is_1f1b)
            continue;
        stage->back_ps = est_most(
            stage->back_ps, stage->begin_ps + (m + k - 1) / k * round_trip_ps);
        *period_ps = est_most(*period_ps, est_most(pass_ps, round_trip_ps / k));
    }
    if (schedule->is_forward_first)
        *period_ps = forward_ps + backward_ps;
    return round_trip_ps;
}

/*
 * Interleaved: the first micro-batch goes through all chunks before the last
 * rank's first backward; then that rank has everything to do but what it did
 * before, up to the last micro-batch's first backward, which goes back through
 * all chunks.  Of p micro-batches all chunks but the last are forward before,
 * and backward after.  Up to the end of the first rank's last backward, with
 * contention_ps more for each micro-batch that the last rank has to itself.
 */
static int64_t through_all(const est_plan *x, int64_t contention_ps)
{
    const est_stage *last = &x->stages[x->pp - 1];
    const int64_t pass_ps = last->forward_ps + last->backward_ps;
    const int64_t last_ps = last->last_forward_ps + last->last_backward_ps;
    int64_t chain_ps = 0;
    if (!fr_schedules[x->plan->schedule]->is_grouped || x->pp == 1 ||
        x->plan->recompute == FR_RECOMPUTE_FULL)
        return 0;
    for (int32_t s = 0; s < x->pp; s++) {
        const est_stage *stage = &x->stages[s];
        int64_t n_hops = s < x->pp - 1 ? x->vpp : x->vpp - 1;
        chain_ps += stage->forward_ps + stage->backward_ps;
        chain_ps += 2 * n_hops * stage->hop_ps;
    }
    int64_t own_ps =
        x->n_micro * pass_ps - x->pp * (pass_ps - last_ps) - last_ps;
    int64_t n_own = pass_ps > 0 ? own_ps / pass_ps - 1 : 0;
    return x->stages[0].begin_ps + chain_ps + own_ps +
           est_most(0, n_own) * contention_ps;
}

static void find_ends(est_plan *x)
{
    const fr_schedule *schedule = fr_schedules[x->plan->schedule];
    est_stage *first = &x->stages[0];
    const int64_t m = x->n_micro;
    int64_t period_ps, tail_ps = 0, round_trip_ps;
    for (int32_t s = 0; s < x->pp; s++) {
        est_stage *stage = &x->stages[s];
        int64_t backward_ps =
            x->is_v ? stage->first_backward_ps : stage->backward_ps;
        stage->back_ps =
            stage->begin_ps + m * (stage->forward_ps + backward_ps);
        if (schedule->weights_at_end != NULL)
            stage->back_ps +=
                (m - schedule->weights_at_end(s, m)) * stage->weights_ps;
    }
    round_trip_ps = round_trip(x, &period_ps);
    for (int32_t s = x->pp; s-- > 0;) {
        est_stage *stage = &x->stages[s];
        if (s < x->pp - 1)
            stage->back_ps = est_most(
                stage->back_ps, stage[1].back_ps + stage->hop_ps +
                                    stage->first_backward_ps - stage->early_ps);
        int64_t rest_ps =
            schedule->weights_at_end != NULL
                ? schedule->weights_at_end(s, m) * stage->weights_ps
                : 0;
        stage->end_ps = est_most(stage->back_ps + rest_ps,
                                 stage->begin_ps + m * (stage->forward_ps +
                                                        stage->backward_ps +
                                                        stage->weights_ps));
    }
    first->back_ps = est_most(first->back_ps, through_all(x, 0));
    first->end_ps = est_most(first->end_ps, first->back_ps);
    bool is_known = x->is_estimate && period_ps > 0 && !x->is_split;
    for (int32_t s = 0; is_known && s < x->pp; s++) {
        est_stage *stage = &x->stages[s];
        stage->back_ps =
            est_most(stage->back_ps, x->stages[0].begin_ps + round_trip_ps +
                                         (m - 1) * period_ps - tail_ps);
        stage->end_ps = est_most(stage->back_ps, stage->end_ps);
        tail_ps += stage->first_backward_ps + stage->hop_ps;
    }
}

/*
 * The end of the last backward again: where collectives beside the passes want
 * processors, too (of the last pass some may come after its gradient is sent),
 * and where the host has to issue all of them.
 */
static void find_late_ends(est_plan *x)
{
    int64_t last_contention_ps = 0;
    for (int32_t s = x->pp; s-- > 0;) {
        est_stage *stage = &x->stages[s];
        int64_t lane_ps = stage->forward_ps + stage->backward_ps;
        int64_t contention_ps =
            est_most(0, stage->core_ps - lane_ps - stage->weights_ps);
        last_contention_ps =
            s == x->pp - 1 ? contention_ps : last_contention_ps;
        stage->contended_ps = stage->issued_ps = 0;
        if (x->is_v)
            continue;
        stage->issued_ps = x->n_micro * stage->host_ps;
        if (!x->is_split)
            stage->contended_ps = stage->begin_ps + x->n_micro * lane_ps +
                                  (x->n_micro - 1) * contention_ps;
        if (s == x->pp - 1)
            continue;
        int64_t back_ps =
            stage->hop_ps + stage->first_backward_ps - stage->early_ps;
        stage->contended_ps =
            est_most(stage->contended_ps, stage[1].contended_ps + back_ps);
        stage->issued_ps =
            est_most(stage->issued_ps, stage[1].issued_ps + back_ps);
    }
    est_stage *first = &x->stages[0];
    first->contended_ps =
        est_most(first->contended_ps, through_all(x, last_contention_ps));
}

/* Do all micro-batches of a stage take longer than the clock goes? */
static bool is_endless(const est_plan *x, const est_stage *stage)
{
    int64_t pass_ps =
        stage->forward_ps + stage->backward_ps + stage->weights_ps;
    int64_t longest_ps = est_most(est_most(pass_ps, stage->host_ps),
                                  est_most(stage->core_ps, 2 * stage->hop_ps));
    return (double)(x->n_micro + x->pp) * (double)longest_ps >
           (double)FR_PS_END;
}

/* Are the stages about as they are at least? */
static bool is_same_twice(const est_plan *x)
{
    for (int32_t s = 0; s < x->pp; s++)
        if (!x->stages[s].layers->is_exact)
            return false;
    return true;
}

/* ---- pipelines ----------------------------------------------------------
 * What follows from ranks, layers and schedule is kept for the next plan, which
 * in a search differs in what comes after the passes. */

/* Do all passes of two neighbours take the same? */
static bool is_like(const est_stage *a, const est_stage *b)
{
    return is_alike(a, b) && a->forward_ps == b->forward_ps &&
           a->backward_ps == b->backward_ps && a->weights_ps == b->weights_ps &&
           a->last_forward_ps == b->last_forward_ps &&
           a->last_backward_ps == b->last_backward_ps &&
           (a->first_layer == 0) == (b->first_layer == 0) &&
           (a->end_layer == a->n_all) == (b->end_layer == b->n_all);
}

/* Ranks that differ in nothing but when: what is made of begin, back and end
 * grows with each of them by itself, so the latest of each will do. */
static void list_ranks(est_plan *x)
{
    est_ranks *ranks = &x->ranks[x->is_estimate];
    ranks->n = 0;
    for (int32_t s = 0; s < x->pp; s++) {
        const est_stage *stage = &x->stages[s];
        est_stage *last = ranks->n > 0 ? &ranks->at[ranks->n - 1] : NULL;
        if (last == NULL || !is_like(stage, last)) {
            ranks->at[ranks->n++] = *stage;
            continue;
        }
        last->begin_ps = est_most(last->begin_ps, stage->begin_ps);
        last->back_ps = est_most(last->back_ps, stage->back_ps);
        last->end_ps = est_most(last->end_ps, stage->end_ps);
        last->path_ps = est_most(last->path_ps, stage->path_ps);
        last->contended_ps = est_most(last->contended_ps, stage->contended_ps);
        last->issued_ps = est_most(last->issued_ps, stage->issued_ps);
    }
}

/* Finds how many passes' memory each rank holds at once, and the bytes of
 * libraries. */
static fr_status find_occupancy(est_plan *x, est_ranks *ranks, fr_err *err)
{
    for (int32_t i = 0; i < ranks->n; i++) {
        est_stage *stage = &ranks->at[i];
        int32_t end = i + 1 < ranks->n ? ranks->at[i + 1].rank : x->pp;
        stage->occupancy = stage->last_occupancy = NULL;
        if (!x->is_endless) { /* else its tasks are not worth the walk */
            FR_TRY(est_occupancy_find(x, stage->rank, &stage->occupancy, err));
            FR_TRY(est_occupancy_find(x, end - 1, &stage->last_occupancy, err));
        }
        stage->overhead_bytes = est_overhead(
            x, fr_cluster_device(x->e->cluster, stage->place->node));
    }
    return FR_OK;
}

static fr_status pipeline_key(const est_plan *x, est_pipeline_key *out,
                              fr_err *err)
{
    const fr_plan *plan = x->plan;
    *out = (est_pipeline_key){.layers = est_layers_key_of(x->e, plan),
                              .dp = plan->dp,
                              .pp = plan->pp,
                              .vpp = plan->vpp,
                              .zero_group = plan->zero_group,
                              .schedule = (int32_t)plan->schedule,
                              .rank_order = (int32_t)plan->rank_order,
                              .recompute_layers = plan->recompute_layers,
                              .is_by_unit = x->sharding.is_by_unit};
    FR_TRY(est_shares_find(x->e, plan, &out->shares, err));
    return est_split_find(x->e, plan, &out->split, err);
}

fr_status est_pipeline_find(est_plan *x, fr_err *err)
{
    est_pipeline_key key;
    FR_TRY(est_share_find(x, err));
    FR_TRY(pipeline_key(x, &key, err));
    if (x->has_pipeline && memcmp(&key, &x->key, sizeof key) == 0)
        return FR_OK;
    x->has_pipeline = x->has_ends = x->has_paths = x->is_endless = false;
    FR_TRY(find_layers(x, err));
    x->is_known_twice = is_same_twice(x);
    for (int i = 0; i < 2; i++) {
        x->is_estimate = i > 0;
        if (i == 0 || !x->is_known_twice)
            FR_TRY(est_stages_find(x, err));
        for (int32_t s = 0; s < x->pp; s++)
            x->is_endless = x->is_endless || is_endless(x, &x->stages[s]);
        if (!x->is_endless) {
            find_ends(x);
            find_late_ends(x);
        }
        list_ranks(x);
    }
    FR_TRY(find_occupancy(x, &x->ranks[0], err));
    x->key = key;
    x->has_pipeline = true;
    return FR_OK;
}

/* ---- the first rank alone ------------------------------------------------ */

/* Layers of the smallest chunk. */
static int32_t smallest_chunk(const est_plan *x)
{
    const fr_plan *plan = x->plan;
    int32_t n = INT32_MAX;
    if (plan->n_split == 0)
        return (int32_t)(x->e->model->n_layers / (x->pp * x->vpp));
    for (int32_t i = 0; i < plan->n_split; i++)
        n = plan->layer_split[i] < n ? plan->layer_split[i] : n;
    return n;
}

/*
 * The chain of est_pipeline_find() from rank 0 to the last, there all
 * micro-batches, and back, as if each rank had the chunks of the smallest and
 * each layer were the shortest, nothing were recomputed and sends took no
 * time: no later than that of any plan with these layers.
 */
static void set_first_times(const est_plan *x, est_stage *first)
{
    const int64_t m = x->n_micro, n = smallest_chunk(x), p = x->pp;
    int64_t own_ps =
        m * (first->forward_ps + first->backward_ps + first->weights_ps);
    first->begin_ps = 0;
    first->back_ps =
        m * (first->forward_ps +
             (x->is_v ? first->first_backward_ps : first->backward_ps));
    first->end_ps = est_most(own_ps, first->back_ps);
    first->contended_ps = 0;
    first->issued_ps = x->is_v ? 0 : m * first->host_ps;
    if (x->is_v || !first->layers->is_uniform)
        return;
    int64_t pass_ps = n * (first->layers->least_forward_ps +
                           first->layers->least_backward_ps);
    int64_t weights_ps =
        x->is_split ? est_most(0, m - p) * n * first->layers->least_weights_ps
                    : 0;
    int64_t chain_ps = (p - 1 + m * x->vpp) * pass_ps + weights_ps;
    first->back_ps = est_most(first->back_ps, chain_ps);
    first->end_ps = est_most(first->end_ps, chain_ps);
}

fr_status est_first_find(est_plan *x, fr_err *err)
{
    est_stage *first = &x->first;
    est_pipeline_key key;
    FR_TRY(est_share_find(x, err));
    FR_TRY(pipeline_key(x, &key, err));
    key.is_by_unit = false; /* gradients are no matter here */
    if (x->has_first && memcmp(&key, &x->first_key, sizeof key) == 0)
        return FR_OK;
    x->has_first = false;
    x->is_estimate = false;
    FR_TRY(est_layout_find(x->e, x->plan, &x->layout, err));
    FR_TRY(find_rank(x, 0, first, err));
    clear(x, 0, first);
    for (int32_t c = 0; c < x->vpp; c++) {
        const fr_stage_span span =
            fr_stage_span_held(x->plan, x->e->model, 0, c);
        est_pass_times pass;
        add_chunk(x->plan, &span, c, first, &pass);
    }
    first->has_embed = true;
    first->n_dense += first->layers->n_embed;
    first->has_head = fr_stage_head_holder(x->plan) == 0;
    if (first->has_head)
        first->n_dense += first->layers->n_final;
    x->is_first_endless = is_endless(x, first);
    if (!x->is_first_endless)
        set_first_times(x, first);
    first->occupancy = NULL;
    if (!x->is_first_endless)
        FR_TRY(est_occupancy_find(x, 0, &first->occupancy, err));
    first->overhead_bytes =
        est_overhead(x, fr_cluster_device(x->e->cluster, first->place->node));
    x->first_key = key;
    x->has_first = true;
    return FR_OK;
}
