/*
 * estimate_layers.c: what each layer takes and keeps, by lowering one
 * micro-batch of the model without a pipeline and pricing its calls.
 */
#include "cost_models/compute/host_time.h"
#include "cost_models/gpu/gpu_memory.h"
#include "plan/codec/optimizer.h"
#include "plan/collective/collective.h"
#include "plan/schedule/schedule.h"
#include "program/lower/step/lower.h"
#include "sim/bound/estimate_state.h"
#include "sim/engine/virtual_time.h"
#include "sim/replay/replay_cost.h"
#include "sim/replay/replay_host.h"

#include <string.h>

/* A program of few micro-batches, and its segments' prices. */
typedef struct est_probe {
    fr_program *program;
    est_cost *segments; /* ps -1: not asked for; what waits for the slowest of
                           a group that meets in it is in its time */
    fr_host_chain *chains;
    bool is_in_order; /* calls beside follow what was enqueued before them, all
                         of one pass */
} est_probe;

/* ---- one small program -------------------------------------------------- */

bool est_is_executable(const fr_estimator *e, const fr_plan *plan)
{
    /* The second look costs more and is seldom needed. */
    bool is_possible = plan->precision == FR_DTYPE_F32 ||
                       plan->execution.kernels == FR_KERNELS_OWN;
    return is_possible && fr_plan_is_executable(plan, e->model, e->job);
}

/* Are the gradients of later micro-batches added by the framework, in kernels
 * of their own where each rank has all of them? */
static bool is_added_by_framework(const fr_plan *plan)
{
    return (plan->execution.kernels == FR_KERNELS_COMPILED ||
            plan->execution.kernels == FR_KERNELS_EAGER) &&
           !plan->is_ep_overlap;
}

static bool has_more(const fr_estimator *e, const fr_plan *plan)
{
    return is_added_by_framework(plan) && plan->zero_stage < 2 &&
           fr_plan_micro_batches(plan, e->job) > 1;
}

/* A split backward is looked at with two micro-batches, whose gradients would
 * be added although those of the plan are scattered: so must the probe's be. */
static bool is_scattered(const fr_plan *plan)
{
    return fr_schedules[plan->schedule]->is_split &&
           is_added_by_framework(plan) && plan->zero_stage >= 2;
}

/* The same layers with as few ranks as there can be. */
static void small_plan(const fr_plan *plan, bool is_split, bool is_executable,
                       fr_plan *out)
{
    *out = *plan;
    out->dp = is_scattered(plan) ? 2 * plan->ep : plan->ep;
    out->pp = is_split ? 2 : 1;
    out->vpp = 1;
    out->schedule = fr_schedule_plain(is_split);
    out->n_split = 0;
    out->n_shares = 0;
    out->zero_stage = is_scattered(plan) ? 2 : 0;
    out->zero_group = 0;
    out->bucket_bytes = 1; /* each unit of parameters by itself */
    out->is_overlap = true;
    /* A program that the CPU runtime can train is lowered in another way, so
     * the same collective is set here.  The algorithm of data-parallel sums
     * does not change layers; ZeRO 2 does not run there anyhow. */
    out->collective = is_executable || is_scattered(plan)
                          ? FR_COLLECTIVE_AUTO
                          : fr_collective_of_simulation();
    out->protocol = FR_PROTOCOL_AUTO;
    out->n_channels = 0;
    out->rank_order = FR_RANK_ORDER_TP_DP_PP;
    out->recompute_layers = 0;
    out->compressor = FR_COMPRESSOR_NONE;
    out->is_optimizer_offloaded = false;
}

static void release_probe(est_probe *probe)
{
    fr_program_destroy(probe->program);
    free(probe->segments);
    free(probe->chains);
}

static fr_status init_probe(fr_estimator *e, const fr_model *model,
                            const fr_plan *plan, const est_place *place,
                            bool is_split, est_probe *out, fr_err *err)
{
    fr_plan small;
    fr_job job = *e->job;
    *out = (est_probe){0};
    bool is_executable = est_is_executable(e, plan);
    small_plan(plan, is_split, is_executable, &small);
    bool is_more = is_split || has_more(e, plan);
    job.global_batch = (is_more ? 2 : 1) * small.micro_batch * small.dp;
    const fr_placement placement = {
        .n_ranks = fr_plan_world(&small),
        .by_framework = fr_gpu_is_by_framework(
            plan, fr_cluster_device(e->cluster, place->node))};
    FR_TRY(fr_lower(model, &job, &small, &placement, &out->program, err));
    out->is_in_order = placement.by_framework && !plan->is_ep_overlap;
    out->segments =
        malloc((out->program->n_segments + 1) * sizeof *out->segments);
    out->chains = malloc((out->program->n_segments + 1) * sizeof *out->chains);
    if (out->segments == NULL || out->chains == NULL) {
        release_probe(out);
        return fr_fail_no_memory(err);
    }
    for (uint32_t i = 0; i < out->program->n_segments; i++)
        out->segments[i].ps = -1;
    return FR_OK;
}

/* Ranks that meet in a segment; 1: nobody, or not all in one stage. */
static int64_t count_met(const est_probe *probe, const est_place *place,
                         const fr_segment *segment)
{
    unsigned met = 0;
    int64_t n = 1;
    if (segment->lane != FR_LANE_COMPUTE)
        return 1;
    for (uint32_t k = 0; k < segment->n_instrs; k++) {
        const fr_instr *instr =
            &probe->program->instrs[segment->first_instr + k];
        if (!fr_instr_communicates(instr) || (met >> instr->axis & 1u))
            continue;
        if (instr->axis == FR_AXIS_WORLD || instr->axis == FR_AXIS_MODEL ||
            instr->axis == FR_AXIS_PP)
            return 1;
        met |= 1u << instr->axis;
        n *= est_most(1, place->scopes[instr->axis].n_group);
    }
    return n;
}

/* Returns the number of a segment's collectives, each an event of a replay. */
static int64_t count_collectives(const fr_program *program,
                                 const fr_segment *segment)
{
    int64_t n = 0;
    for (uint32_t k = 0; k < segment->n_instrs; k++)
        n += fr_instr_communicates(&program->instrs[segment->first_instr + k]);
    return n;
}

static fr_status price_segment(fr_estimator *e, est_probe *probe,
                               const est_place *place, uint32_t i_segment,
                               const est_cost **out, fr_err *err)
{
    const fr_segment *segment = &probe->program->segments[i_segment];
    const fr_plan *plan = &probe->program->plan;
    fr_host_chain *chain = &probe->chains[i_segment];
    est_cost sum = {0}, one;
    double jitter;
    /* Passes over all layers fit the clock, with room for sums: an hour and
     * more for a layer is a bound good enough to leave a plan alone. */
    const int64_t most_ps = FR_PS_END / (8 * ((int64_t)e->n_layers + 8));
    *out = &probe->segments[i_segment];
    if ((*out)->ps >= 0)
        return FR_OK;
    *chain = fr_host_chain_empty();
    for (uint32_t k = 0; k < segment->n_instrs; k++) {
        const fr_instr *instr =
            &probe->program->instrs[segment->first_instr + k];
        FR_TRY(est_price(e, plan, instr, (fr_lane)segment->lane, place, &one,
                         err));
        fr_host_chain_add(chain, one.host_ps, one.ps,
                          fr_host_is_held(plan, instr));
        if (!fr_instr_communicates(instr))
            sum.compute_ps = fr_ps_add(sum.compute_ps, one.ps);
        sum.ps = fr_ps_add(sum.ps, one.ps);
        sum.host_ps = fr_ps_add(sum.host_ps, one.host_ps);
        sum.core_ps = fr_ps_add(sum.core_ps, one.core_ps);
    }
    FR_TRY(est_jitter(e, count_met(probe, place, segment), &jitter, err));
    sum.ps = fr_ps_add(sum.ps, fr_ps_cut(jitter * (double)sum.compute_ps));
    probe->segments[i_segment] =
        (est_cost){.ps = est_least(sum.ps, most_ps),
                   .host_ps = est_least(sum.host_ps, most_ps),
                   .core_ps = est_least(sum.core_ps, most_ps),
                   .compute_ps = est_least(sum.compute_ps, most_ps)};
    return FR_OK;
}

/* Returns the sum to which the time of a call's pass is added. */
static int64_t *sum_of(const fr_segment *segment, int32_t layer, est_times *out)
{
    int64_t *sums[EST_PASSES] = {out->forward_ps, out->backward_ps,
                                 out->weights_ps, out->recompute_ps};
    est_pass pass = est_pass_of(segment);
    if (layer >= 0)
        return &sums[pass][layer + 1];
    if (pass == EST_FORWARD)
        return &out->embed_ps;
    return segment->role == FR_SEGMENT_EMBED_BACKWARD ? &out->embed_back_ps
                                                      : &out->head_ps;
}

/* ---- sums --------------------------------------------------------------- */

/* Lanes at least and about: EST_BOUND, EST_ESTIMATE. */
typedef struct est_lanes {
    int64_t free_ps[FR_LANE_N];
    int64_t all_ps; /* the end of all */
    int64_t begin_ps, begin_all_ps;
} est_lanes;

#define NOBODY UINT32_MAX

/* The calls of one pass over one layer, after those before it: what one lane
 * leaves open may run beside the next pass. */
typedef struct est_walk {
    int64_t *sum[EST_KINDS]; /* NULL: none yet */
    uint32_t first;          /* call */
    est_lanes lanes[2];
    int64_t beside_ps[2]; /* begin and end of the last collective beside */
    double beside_frac;   /* of the processors, that it takes */
    int64_t exchange_ps;  /* of lane EP */
    fr_host_chain chain;  /* of the compute lane */
    int64_t host_ps, core_ps, compute_ps; /* for all lanes */
    uint32_t beside; /* last call beside, on its way; NOBODY: none */
    int64_t met_ps;  /* when nothing else was on its way ... */
    int64_t work_ps; /* ... and what processors had to do since */
} est_walk;

static void finish_walk(est_walk *walk)
{
    for (int k = 0; k < 2; k++) {
        est_lanes *l = &walk->lanes[k];
        int64_t ps = l->free_ps[FR_LANE_COMPUTE] - l->begin_ps;
        if (k == EST_ESTIMATE) {
            ps = l->all_ps - l->begin_all_ps;
            ps = est_most(ps, walk->chain.ss_ps);
            ps = est_most(ps, walk->host_ps);
            ps = est_most(ps, walk->exchange_ps);
        }
        if (walk->sum[k] != NULL)
            *walk->sum[k] += ps;
        l->begin_ps = l->free_ps[FR_LANE_COMPUTE];
        l->begin_all_ps = l->all_ps;
    }
    if (walk->sum[0] != NULL) {
        *walk->sum[EST_HOST] += walk->host_ps;
        *walk->sum[EST_CORES] += walk->core_ps;
        *walk->sum[EST_COMPUTE] += walk->compute_ps;
    }
    walk->host_ps = walk->core_ps = walk->compute_ps = 0;
    walk->work_ps = walk->exchange_ps = 0;
    walk->met_ps = walk->lanes[EST_BOUND].begin_ps;
    walk->beside = NOBODY;
    walk->chain = fr_host_chain_empty();
}

/* About: what a call of the compute lane takes more, because the last
 * collective beside it takes some of its processors. */
static int64_t contention_ps(const est_walk *walk, int64_t start_ps, int64_t ps)
{
    const double rate = 1 - walk->beside_frac;
    int64_t from_ps = est_most(start_ps, walk->beside_ps[0]);
    int64_t work_ps = ps - (from_ps - start_ps), left_ps;
    if (from_ps >= walk->beside_ps[1] || work_ps <= 0 || !(rate > 0))
        return 0;
    left_ps = (int64_t)((double)(walk->beside_ps[1] - from_ps) * rate);
    return (int64_t)((double)est_least(work_ps, left_ps) * (1 / rate - 1));
}

/*
 * At least: a call of the compute lane that waits for the last one beside it
 * begins when all before are over, and where frameworks enqueue in order none
 * after it has begun.  Between two such calls the processors do the work of all
 * in between, on whichever lane.
 */
static int64_t met_at(const fr_rank_program *rank_program, const fr_call *call,
                      const est_cost *cost, int64_t start_ps, est_walk *walk)
{
    bool is_met = walk->beside == NOBODY;
    for (uint32_t d = 0; d < call->n_deps && !is_met; d++)
        is_met = rank_program->deps[call->first_dep + d] == walk->beside;
    if (is_met) {
        start_ps = est_most(start_ps, walk->met_ps + walk->work_ps);
        walk->met_ps = start_ps;
        walk->work_ps = 0;
        walk->beside = NOBODY;
    }
    walk->work_ps += cost->core_ps;
    return start_ps;
}

/* end_ps: two of each call. */
static void walk_on(const fr_rank_program *rank_program, bool is_in_order,
                    uint32_t i_call, int lane, const est_cost *cost,
                    int64_t *end_ps, est_walk *walk)
{
    const fr_call *call = &rank_program->calls[i_call];
    for (int k = 0; k < 2; k++) {
        est_lanes *l = &walk->lanes[k];
        int64_t start_ps = l->free_ps[lane], ps = cost->ps;
        for (uint32_t d = 0; d < call->n_deps; d++) {
            uint32_t dep = rank_program->deps[call->first_dep + d];
            start_ps = est_most(start_ps, end_ps[2 * dep + (uint32_t)k]);
        }
        if (k == EST_BOUND && lane == FR_LANE_COMPUTE && is_in_order)
            start_ps = met_at(rank_program, call, cost, start_ps, walk);
        if (k == EST_ESTIMATE && lane == FR_LANE_COMPUTE)
            ps += contention_ps(walk, start_ps, ps);
        if (k == EST_ESTIMATE && lane != FR_LANE_COMPUTE && ps > 0) {
            walk->beside_ps[0] = start_ps;
            walk->beside_ps[1] = start_ps + ps;
            walk->beside_frac = (double)cost->core_ps / (double)ps;
        }
        end_ps[2 * i_call + (uint32_t)k] = l->free_ps[lane] = start_ps + ps;
        l->all_ps = est_most(l->all_ps, start_ps + ps);
    }
    if (lane == FR_LANE_COMPUTE)
        return;
    walk->beside = i_call;
    walk->work_ps += cost->core_ps;
}

/* The compute lane, and collectives beside it, for micro-batch 0. */
static fr_status walk_rank_program(fr_estimator *e, est_probe *probe,
                                   const est_place *place,
                                   const fr_rank_program *rank_program,
                                   est_layers *out, fr_err *err)
{
    est_walk walk = {.chain = fr_host_chain_empty(), .beside = NOBODY};
    int64_t *end_ps =
        calloc(2 * (size_t)rank_program->n_calls + 2, sizeof *end_ps);
    fr_status status = FR_OK;
    if (end_ps == NULL)
        return fr_fail_no_memory(err);
    for (uint32_t i = 0; status == FR_OK && i < rank_program->n_calls; i++) {
        const fr_call *call = &rank_program->calls[i];
        const fr_segment *segment = &probe->program->segments[call->i_segment];
        const est_cost *cost;
        int lane = segment->lane;
        if ((lane != FR_LANE_COMPUTE && lane != FR_LANE_TP &&
             lane != FR_LANE_EP) ||
            call->micro_batch != 0)
            continue;
        int64_t *sum = sum_of(segment, call->layer, &out->times[0]);
        if (sum != walk.sum[0]) {
            finish_walk(&walk);
            walk.sum[0] = sum;
            for (int k = 1; k < EST_KINDS; k++)
                walk.sum[k] = sum_of(segment, call->layer, &out->times[k]);
            walk.first = i;
        }
        status = price_segment(e, probe, place, call->i_segment, &cost, err);
        if (status != FR_OK)
            break;
        if (call->layer >= 0 && walk.first == i &&
            est_pass_of(segment) == EST_BACKWARD)
            out->n_met =
                est_least(out->n_met, count_met(probe, place, segment));
        /* A call on another lane cuts the run that it stands in. */
        out->n_steps += lane != FR_LANE_COMPUTE
                            ? 2
                            : 2 * count_collectives(probe->program, segment) +
                                  (walk.first == i);
        const fr_host_chain *chain = &probe->chains[call->i_segment];
        walk.host_ps += cost->host_ps;
        if (lane == FR_LANE_EP) { /* beside another micro-batch */
            walk.exchange_ps += cost->ps;
            continue;
        }
        walk_on(rank_program, probe->is_in_order, i, lane, cost, end_ps, &walk);
        walk.core_ps += cost->core_ps;
        walk.compute_ps += cost->compute_ps;
        if (lane == FR_LANE_COMPUTE)
            fr_host_chain_append(&walk.chain, chain);
    }
    finish_walk(&walk);
    free(end_ps);
    return status;
}

static fr_status add_passes(fr_estimator *e, est_probe *probe,
                            const est_place *place, est_layers *out,
                            fr_err *err)
{
    for (uint32_t c = 0; c < probe->program->n_rank_programs; c++)
        FR_TRY(walk_rank_program(e, probe, place,
                                 &probe->program->rank_programs[c], out, err));
    return FR_OK;
}

/* Ranges of parameters come in the order of backward: the last norm and the
 * head, layers from the last (experts before the rest), the embedding. */
static void add_parameters(int32_t n_layers, const fr_program *program,
                           est_layers *out)
{
    int32_t layer = n_layers;
    const fr_rank_program *rank_program = &program->rank_programs[0];
    for (uint32_t i = 0; i < rank_program->n_calls; i++) {
        const fr_segment *segment =
            &program->segments[rank_program->calls[i].i_segment];
        for (uint32_t k = 0; k < segment->n_instrs; k++) {
            const fr_instr *instr = &program->instrs[segment->first_instr + k];
            uint64_t n = (uint64_t)instr->range.n;
            if (instr->op == FR_OP_GRAD_SQSUM)
                out->sqsum = *instr;
            if (segment->role == FR_SEGMENT_ZERO) {
                out->zero = *instr;
                out->has_zero = true;
            }
            if (instr->op == FR_OP_OPT_NORMS) {
                out->opt_norms = *instr;
                out->has_norms = true;
            }
            if (instr->op != FR_OP_OPT_STEP)
                continue;
            out->opt_step = *instr;
            if (instr->axis == FR_AXIS_EDP) {
                out->n_expert[layer] = n;
                continue;
            }
            if (layer == n_layers && out->n_final == 0)
                out->n_final = n;
            else if (layer > 0)
                out->n_dense[layer--] = n;
            else
                out->n_embed = n;
        }
    }
}

static fr_status add_clip(fr_estimator *e, est_probe *probe,
                          const est_place *place, est_layers *out, fr_err *err)
{
    const est_cost *cost;
    for (uint32_t i = 0; i < probe->program->n_segments; i++)
        if (probe->program->segments[i].role == FR_SEGMENT_CLIP) {
            FR_TRY(price_segment(e, probe, place, i, &cost, err));
            out->clip_ps = cost->ps;
            return FR_OK;
        }
    return FR_OK;
}

/* Shortens runs of identical layers, which few stand for: those that stay
 * dense, then the others. */
static est_few shorten(fr_model *model)
{
    const int64_t n = model->n_layers;
    const bool is_moe = fr_model_layer_is_moe(model, n - 1);
    int64_t n_dense = 0;
    while (n_dense < n && is_moe && !fr_model_layer_is_moe(model, n_dense))
        n_dense++;
    bool is_mixed =
        model->kind == FR_MODEL_LAYERS || !fr_model_is_unmarked(model);
    for (int64_t i = n_dense; i < n; i++)
        is_mixed = is_mixed || fr_model_layer_is_moe(model, i) != is_moe;
    const est_few few = est_few_of((int32_t)n_dense, (int32_t)n);
    if (is_mixed || few.n == n)
        return (est_few){0};
    model->n_layers = few.n;
    if (is_moe) {
        model->first_dense_layers = few.n_first;
        model->moe_every = 1; /* from there on */
    }
    return few;
}

static fr_status fill(fr_estimator *e, const fr_plan *plan,
                      const est_place *place, bool is_split, est_layers *out,
                      fr_err *err)
{
    est_probe probe;
    fr_model model = *e->model; /* borrows its lists */
    const est_few few = shorten(&model);
    out->is_uniform =
        few.n > 0 && few.n_first_all == 0 && model.n_mtp_layers == 0;
    out->n_met = INT64_MAX;
    int32_t n = (int32_t)(model.n_layers + model.n_mtp_layers);
    FR_TRY(init_probe(e, &model, plan, place, false, &probe, err));
    add_parameters(n, probe.program, out);
    fr_status status = est_layers_keep(probe.program, out, err);
    if (status == FR_OK && !is_split)
        status = add_passes(e, &probe, place, out, err);
    if (status == FR_OK)
        status = add_clip(e, &probe, place, out, err);
    release_probe(&probe);
    if (status != FR_OK)
        return status;
    if (is_split) {
        FR_TRY(init_probe(e, &model, plan, place, true, &probe, err));
        est_add_pending(probe.program, out);
        status = add_passes(e, &probe, place, out, err);
        release_probe(&probe);
    }
    est_layers_sum(e->n_layers, &few, out);
    return status;
}

/* ---- all of them -------------------------------------------------------- */

_Static_assert(sizeof(est_layers_key) == 3 * 8 + 16 * 4 + 16, "no padding");
_Static_assert(sizeof(est_pipeline_key) == sizeof(est_layers_key) + 10 * 4,
               "no padding");

est_layers_key est_layers_key_of(const fr_estimator *e, const fr_plan *plan)
{
    return (est_layers_key){
        .expert_imbalance = plan->execution.expert_imbalance,
        .expert_capacity = plan->expert_capacity,
        .is_expert_padded = plan->is_expert_padded,
        .micro_batch = plan->micro_batch,
        .tp = plan->tp,
        .cp = plan->cp,
        .ep = plan->ep,
        .etp = plan->etp,
        .n_loss_metrics = plan->execution.n_loss_metrics,
        .n_threads = plan->n_threads,
        .recompute = (int32_t)plan->recompute,
        .recompute_parts = plan->recompute_parts,
        .flash_kind = (int32_t)plan->execution.flash_kind,
        .kernels = (int32_t)plan->execution.kernels,
        .cp_kind = (int32_t)plan->cp_kind,
        .precision = (int32_t)plan->precision,
        .grad_dtype = (int32_t)plan->grad_dtype,
        .scaling = (int32_t)plan->execution.scaling,
        .cuda_graphs = (int32_t)plan->execution.cuda_graphs,
        .is_flash = plan->is_flash,
        .is_split = fr_schedules[plan->schedule]->is_split,
        .is_sequence_parallel = plan->is_sequence_parallel,
        .is_tp_overlap = plan->is_tp_overlap,
        .is_loss_fused = plan->execution.is_loss_fused,
        .is_grad_added_apart = plan->execution.is_grad_added_apart,
        .is_ep_overlap = plan->is_ep_overlap,
        .is_norm_fused = plan->execution.is_norm_fused,
        .is_early_stop = plan->execution.is_early_stop,
        .is_routing_fused = plan->execution.is_routing_fused,
        .has_more = has_more(e, plan),
        .is_scattered = is_scattered(plan),
        .is_executable = est_is_executable(e, plan)};
}

static fr_status make_layers(fr_estimator *e, const fr_plan *plan,
                             const est_place *place, const est_pool_key *key,
                             const est_layers **out, fr_err *err)
{
    bool is_split = fr_schedules[plan->schedule]->is_split;
    est_layers *layers = est_layers_create(e->n_layers);
    if (layers == NULL)
        return fr_fail_no_memory(err);
    fr_status status = fill(e, plan, place, is_split, layers, err);
    if (status != FR_OK) {
        est_layers_destroy(layers);
        return status;
    }
    return est_pool_add(e->pool, key, e->n_layers, layers, out, err);
}

/* Not asked for here before. */
static fr_status get_layers(fr_estimator *e, const fr_plan *plan,
                            const est_place *place, const est_layers_key *key,
                            const est_layers **out, fr_err *err)
{
    est_pool_key shared = {*key, est_place_layers_key(place)};
    shared.layers.place = 0; /* its number here */
    *out = est_pool_find(e->pool, &shared);
    if (*out == NULL)
        FR_TRY(make_layers(e, plan, place, &shared, out, err));
    return fr_memo_add(&e->layers, key, sizeof *key, out) != NULL
               ? FR_OK
               : fr_fail_no_memory(err);
}

fr_status est_layers_find(fr_estimator *e, const fr_plan *plan,
                          const est_place *place, const est_layers **out,
                          fr_err *err)
{
    est_layers_key key = est_layers_key_of(e, plan);
    key.place = place->layers_id;
    if (e->at_layers != NULL &&
        memcmp(&key, &e->last_layers, sizeof key) == 0) {
        *out = e->at_layers;
        return FR_OK;
    }
    const est_layers *const *known = fr_memo_find(&e->layers, &key, sizeof key);
    const est_layers *layers = known != NULL ? *known : NULL;
    if (known == NULL)
        FR_TRY(get_layers(e, plan, place, &key, &layers, err));
    e->last_layers = key;
    *out = e->at_layers = layers;
    return FR_OK;
}
