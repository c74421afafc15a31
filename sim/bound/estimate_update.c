/*
 * estimate_update.c: gradients and parameters of a stage, bucket by bucket.
 */
#include "plan/codec/compressor.h"
#include "plan/decide/grid.h"
#include "plan/outline/bucket_cut.h"
#include "sim/bound/estimate_state.h"
#include "sim/engine/virtual_time.h"

#include <stddef.h>
#include <string.h>

/* Neighbouring buckets of the same size. */
typedef struct est_bucket {
    uint64_t n;
    bool is_expert;
    int64_t count;
} est_bucket;

typedef struct est_list {
    est_bucket *at;
    size_t n;
    fr_bucket_cut cut;
    bool is_open; /* a bucket that is not in the list yet: cut.n elements */
} est_list;

est_bucket *est_buckets_new(int32_t n_layers)
{
    return calloc(2 * (size_t)n_layers + 3, sizeof(est_bucket));
}

static void close_bucket(est_list *list)
{
    if (!list->is_open)
        return;
    const fr_bucket_cut *cut = &list->cut;
    est_bucket *last = list->n > 0 ? &list->at[list->n - 1] : NULL;
    if (last != NULL && last->n == cut->n && last->is_expert == cut->is_expert)
        last->count++;
    else
        list->at[list->n++] = (est_bucket){cut->n, cut->is_expert, 1};
    list->is_open = false;
}

static void add_unit(est_list *list, uint64_t n, bool is_expert, bool is_alone)
{
    const fr_bucket_cut before = list->cut;
    if (n == 0)
        return;
    if (fr_bucket_cut_next(&list->cut, n, is_expert, is_alone)) {
        const fr_bucket_cut after = list->cut;
        list->cut = before;
        close_bucket(list);
        list->cut = after;
    }
    list->is_open = true;
}

/* A tied matrix of two stages is no unit of the embedding: not counted where
 * the time is a bound. */
static void list_buckets(est_plan *x, const est_stage *stage, est_list *list)
{
    const fr_plan *plan = x->plan;
    const est_layers *l = stage->layers;
    bool is_apart = fr_stages_are_tied_apart(x->plan, x->e->model);
    *list = (est_list){.at = x->e->buckets, .cut = fr_bucket_cut_of(plan)};
    if (stage->has_head)
        add_unit(list, l->n_final, false, false);
    for (int32_t chunk = x->vpp; chunk-- > 0;) {
        const fr_stage_span span =
            fr_stage_span_held(plan, x->e->model, stage->rank, chunk);
        for (int32_t k = span.end; k > span.first; k--) {
            add_unit(list, l->n_expert[k] - l->n_expert[k - 1], true, false);
            add_unit(list, l->n_dense[k] - l->n_dense[k - 1], false, false);
        }
    }
    if (stage->has_embed && !(is_apart && !x->is_estimate))
        add_unit(list, l->n_embed, false, is_apart);
    close_bucket(list);
}

typedef fr_status (*price_fn)(fr_estimator *e, const fr_plan *plan,
                              const est_place *place, const fr_move *move,
                              int64_t *out_ps, fr_err *err);

/* The moves that sum a bucket, compressed ones by all their payload's bytes. */
static int reduce_moves(const est_plan *x, const est_bucket *bucket,
                        fr_move moves[2])
{
    const fr_plan *plan = x->plan;
    const fr_compressor *compressor = fr_compressor_of(plan);
    if (plan->compressor == FR_COMPRESSOR_NONE)
        return fr_sharding_reduce(&x->sharding, bucket->is_expert, bucket->n,
                                  moves);
    const fr_axis axis =
        fr_sharding_coded_axis(&x->sharding, compressor, bucket->is_expert);
    const fr_bucket all = {.n =
                               fr_sharding_coded(&x->sharding, compressor,
                                                 bucket->is_expert, bucket->n)};
    return fr_sharding_exchange(&x->sharding, compressor, bucket->is_expert,
                                bucket->n,
                                fr_compressor_payload_bytes(plan, &all),
                                fr_plan_group_size(plan, axis), moves);
}

/* By the clock (est_collective) or by the wire (est_wire). */
static fr_status reduce(est_plan *x, const est_stage *stage,
                        const est_bucket *bucket, price_fn price,
                        int64_t *out_ps, fr_err *err)
{
    const fr_plan *plan = x->plan;
    fr_move moves[2];
    *out_ps = 0;
    /* A bound of what is compressed: nothing. */
    if (plan->compressor != FR_COMPRESSOR_NONE && !x->is_estimate)
        return FR_OK;
    const int n = reduce_moves(x, bucket, moves);
    for (int i = 0; i < n; i++) {
        int64_t ps;
        FR_TRY(price(x->e, plan, stage->place, &moves[i], &ps, err));
        *out_ps = fr_ps_add(*out_ps, ps);
    }
    return FR_OK;
}

static fr_status gather(est_plan *x, const est_stage *stage, fr_lane lane,
                        const est_bucket *bucket, price_fn price,
                        int64_t *out_ps, fr_err *err)
{
    fr_move move =
        fr_sharding_gather(&x->sharding, bucket->is_expert, bucket->n);
    move.lane = lane;
    return price(x->e, x->plan, stage->place, &move, out_ps, err);
}

/* The optimizer on the own part of a bucket, and the squares of its
 * gradients. */
static fr_status step(est_plan *x, const est_stage *stage,
                      const est_bucket *bucket, est_update *out, fr_err *err)
{
    const est_layers *l = stage->layers;
    uint64_t n = fr_sharding_part(&x->sharding, bucket->is_expert, bucket->n);
    int64_t ps;
    /* The host has its own time, which is not counted. */
    if (x->plan->is_optimizer_offloaded)
        return FR_OK;
    if (x->e->job->clip_norm > 0) {
        FR_TRY(est_over_range(x->e, x->plan, stage->place, &l->sqsum, n, &ps,
                              err));
        fr_ps_add_times(&out->norm_ps, bucket->count, ps);
        out->last_norm_ps = ps;
    }
    FR_TRY(
        est_over_range(x->e, x->plan, stage->place, &l->opt_step, n, &ps, err));
    fr_ps_add_times(&out->step_ps, bucket->count, ps);
    if (!l->has_norms)
        return FR_OK;
    FR_TRY(est_over_range(x->e, x->plan, stage->place, &l->opt_norms, n, &ps,
                          err));
    fr_ps_add_times(&out->step_ps, bucket->count, ps);
    return FR_OK;
}

static fr_status gathers(est_plan *x, const est_stage *stage,
                         const est_bucket *bucket, est_update *out, fr_err *err)
{
    const fr_sharding *sharding = &x->sharding;
    int64_t ps;
    if (!sharding->is_scattered)
        return FR_OK;
    FR_TRY(gather(x, stage, FR_LANE_GATHER, bucket, est_wire, &ps, err));
    fr_ps_add_times(&out->wire_gather_ps, bucket->count, ps);
    out->wire_long_gather_ps = est_most(out->wire_long_gather_ps, ps);
    FR_TRY(gather(x, stage, FR_LANE_GATHER, bucket, est_core, &ps, err));
    if (sharding->gather_lane == FR_LANE_GATHER)
        fr_ps_add_times(&out->core_gather_ps, bucket->count, ps);
    out->core_long_gather_ps = est_most(out->core_long_gather_ps, ps);
    FR_TRY(gather(x, stage, sharding->gather_lane, bucket, est_collective, &ps,
                  err));
    if (sharding->gather_lane == FR_LANE_GATHER) {
        fr_ps_add_times(&out->gather_ps, bucket->count, ps);
        out->long_gather_ps = est_most(out->long_gather_ps, ps);
    } else if (sharding->gather_lane == FR_LANE_COMPUTE) {
        fr_ps_add_times(&out->step_ps, bucket->count, ps);
    }
    return FR_OK;
}

fr_status est_set_zero(est_plan *x, const est_stage *stage, int64_t *out_ps,
                       fr_err *err)
{
    uint64_t n = stage->n_dense + stage->n_expert;
    *out_ps = 0;
    if (x->sharding.is_by_unit || !stage->layers->has_zero)
        return FR_OK;
    return est_over_range(x->e, x->plan, stage->place, &stage->layers->zero,
                          n * fr_dtype_bytes(x->plan->grad_dtype), out_ps, err);
}

/*
 * ZeRO 1 and 2 with early gathers: the last bucket comes first, and nobody
 * begins before it is there; chunk 0 is not over before all its own are.
 */
static fr_status start_gathers(est_plan *x, const est_stage *stage,
                               const est_list *list, est_update *out,
                               fr_err *err)
{
    const est_layers *l = stage->layers;
    const int32_t first = stage->first_layer, end = stage->end_layer;
    bool is_apart = fr_stages_are_tied_apart(x->plan, x->e->model);
    uint64_t n = l->n_dense[end] - l->n_dense[first] + l->n_expert[end] -
                 l->n_expert[first];
    if (!x->sharding.is_gathered_early)
        return FR_OK;
    if (stage->has_embed && !(is_apart && !x->is_estimate))
        n += l->n_embed;
    for (size_t i = list->n; i-- > 0 && n > 0;) {
        const est_bucket *bucket = &list->at[i];
        int64_t ps;
        FR_TRY(
            gather(x, stage, FR_LANE_GATHER, bucket, est_collective, &ps, err));
        if (i + 1 == list->n)
            out->first_gather_ps = ps;
        int64_t count = (int64_t)((n + bucket->n - 1) / bucket->n);
        count = est_least(count, bucket->count);
        fr_ps_add_times(&out->start_gather_ps, count, ps);
        n -= (uint64_t)count * bucket->n < n ? (uint64_t)count * bucket->n : n;
    }
    return FR_OK;
}

/* ZeRO 2 and 3: what each use of a layer's weights and gradients adds. */
static fr_status add_layer(est_plan *x, const est_stage *stage,
                           const est_list *list, est_update *out, fr_err *err)
{
    const est_layers *l = stage->layers;
    const fr_plan *plan = x->plan;
    const est_bucket one = {.n = l->n_dense[2] - l->n_dense[1]};
    if (!x->sharding.is_by_unit || !l->is_uniform || stage->n_expert > 0)
        return FR_OK;
    if (l->has_zero)
        FR_TRY(est_over_range(x->e, plan, stage->place, &l->zero,
                              one.n * fr_dtype_bytes(plan->grad_dtype),
                              &out->layer_zero_ps, err));
    if (plan->zero_stage != 3)
        return FR_OK;
    const fr_instr copy = {
        .op = FR_OP_COPY,
        .ref = {{.space = FR_SPACE_IN}, {.space = FR_SPACE_OUT}}};
    FR_TRY(est_over_range(x->e, plan, stage->place, &copy,
                          one.n * fr_dtype_bytes(x->sharding.weight_dtype),
                          &out->layer_copy_ps, err));
    FR_TRY(gather(x, stage, FR_LANE_GATHER, &one, est_collective,
                  &out->layer_gather_ps, err));
    FR_TRY(gather(x, stage, FR_LANE_GATHER, &one, est_wire, &out->layer_wire_ps,
                  err));
    FR_TRY(gather(x, stage, FR_LANE_GATHER, &one, est_core, &out->layer_core_ps,
                  err));
    FR_TRY(reduce(x, stage, &one, est_collective, &out->layer_reduce_ps, err));
    /* The embedding's come before those of the first layer. */
    const est_bucket *last = list->n > 0 ? &list->at[list->n - 1] : NULL;
    if (last != NULL && stage->has_embed && last->n == l->n_embed)
        FR_TRY(gather(x, stage, FR_LANE_GATHER, last, est_collective,
                      &out->first_gather_ps, err));
    out->start_gather_ps = out->first_gather_ps + out->layer_gather_ps;
    return FR_OK;
}

static fr_status make(est_plan *x, const est_stage *stage, est_update *out,
                      fr_err *err)
{
    est_list list;
    list_buckets(x, stage, &list);
    *out = (est_update){.step_ps = stage->layers->clip_ps,
                        .n_first = list.n > 0 ? list.at[0].n : 0};
    for (size_t i = 0; i < list.n; i++) {
        const est_bucket *bucket = &list.at[i];
        int64_t wire_ps, core_ps;
        FR_TRY(reduce(x, stage, bucket, est_collective, &out->last_reduce_ps,
                      err));
        FR_TRY(reduce(x, stage, bucket, est_wire, &wire_ps, err));
        out->wire_reduce_ps += bucket->count * wire_ps;
        FR_TRY(reduce(x, stage, bucket, est_core, &core_ps, err));
        if (x->plan->is_overlap)
            out->core_reduce_ps += bucket->count * core_ps;
        out->reduce_ps += bucket->count * out->last_reduce_ps;
        FR_TRY(gathers(x, stage, bucket, out, err));
        FR_TRY(step(x, stage, bucket, out, err));
    }
    FR_TRY(add_layer(x, stage, &list, out, err));
    return start_gathers(x, stage, &list, out, err);
}

/*
 * An update depends on what a stage holds and on what the plan does with its
 * gradients.  Searches ask for every pair of the two, so each has a number, and
 * the pair is a short key.  No padding in any of them.
 */

/* Layers that are all alike count; others have numbers, which are those of the
 * chunks. */
typedef struct stage_key {
    uint32_t place, parameters;
    int32_t n_layers, n_first_layers; /* of the rank, of chunk 0 */
    bool has_embed, has_head, unused[6];
    uint64_t spans[FR_PLAN_MAX_STAGES];
} stage_key;
_Static_assert(offsetof(stage_key, spans) == 4 * 4 + 8, "no padding");

typedef struct plan_key {
    uint64_t bucket_bytes;
    int64_t compressor_rank; /* 0 where nothing is compressed */
    double compressor_density;
    uint32_t variants; /* number of a list of them, plus one; 0: this one */
    int32_t n_channels;
    uint8_t weight_dtype, grad_dtype, zero_stage;
    uint8_t collective, protocol, compressor;
    bool has_master, is_overlap, is_gathered_early, is_executable;
    bool is_state_on_host, unused[5];
} plan_key;
_Static_assert(sizeof(plan_key) == 3 * 8 + 2 * 4 + 16, "no padding");

/* The number of what the stage holds, with the layers of its first chunk or
 * without. */
static fr_status number_stage(est_plan *x, const est_stage *stage,
                              bool is_first_read, uint32_t *out, fr_err *err)
{
    stage_key key;
    size_t n = 0;
    memset(&key, 0, offsetof(stage_key, spans));
    key.place = stage->place->id;
    key.parameters = stage->layers->parameters_id;
    key.n_layers = stage->n_layers;
    if (is_first_read)
        key.n_first_layers = stage->end_layer - stage->first_layer;
    key.has_embed = stage->has_embed;
    key.has_head = stage->has_head;
    for (int32_t c = 0; !stage->layers->is_uniform && c < x->vpp; c++) {
        const fr_stage_span span =
            fr_stage_span_held(x->plan, x->e->model, stage->rank, c);
        key.spans[n++] = (uint64_t)span.first << 32 | (uint64_t)span.end;
    }
    return fr_memo_number(&x->e->update_stages, &key,
                          offsetof(stage_key, spans) + n * sizeof key.spans[0],
                          out, err);
}

static fr_status number_plan(const est_plan *x, uint32_t variants,
                             uint32_t *out, fr_err *err)
{
    const fr_plan *plan = x->plan;
    const fr_sharding *sharding = &x->sharding;
    plan_key key = {.bucket_bytes = plan->bucket_bytes,
                    .variants = variants,
                    .n_channels = plan->n_channels,
                    .weight_dtype = (uint8_t)sharding->weight_dtype,
                    .grad_dtype = (uint8_t)sharding->grad_dtype,
                    .zero_stage = (uint8_t)plan->zero_stage,
                    .collective = (uint8_t)plan->collective,
                    .protocol = (uint8_t)plan->protocol,
                    .has_master = sharding->has_master,
                    .is_overlap = plan->is_overlap,
                    .is_gathered_early = sharding->is_gathered_early,
                    .is_executable = x->is_executable,
                    .is_state_on_host = sharding->is_state_on_host};
    if (plan->compressor != FR_COMPRESSOR_NONE) {
        key.compressor = (uint8_t)plan->compressor;
        key.compressor_rank = plan->compressor_rank;
        key.compressor_density = plan->compressor_density;
    }
    return fr_memo_number(&x->e->update_plans, &key, sizeof key, out, err);
}

/* Sets the numbers of the pair, which are asked for once for each pipeline and
 * plan: a row of what is known, of its own where the estimate is not what is
 * at least, and where in it. */
static fr_status number_pair(est_plan *x, est_stage *stage, uint32_t variants,
                             size_t *row, fr_err *err)
{
    const fr_sharding *sharding = &x->sharding;
    const bool is_first_read =
        x->vpp > 1 && sharding->is_scattered && !sharding->is_gathered;
    uint32_t *id = &stage->update_id[is_first_read];
    if (*id == 0) {
        FR_TRY(number_stage(x, stage, is_first_read, id, err));
        ++*id;
    }
    if (x->update_of != 1 + variants) {
        FR_TRY(number_plan(x, variants, &x->update_id, err));
        x->update_of = 1 + variants;
    }
    const bool is_apart = x->is_estimate && est_update_differs(x, stage);
    *row = 2 * (size_t)(*id - 1) + is_apart;
    return FR_OK;
}

static const est_update *known_update(const est_plan *x, size_t row)
{
    const fr_estimator *e = x->e;
    if (row >= e->update_rows.n || x->update_id >= e->update_rows.items[row].n)
        return NULL;
    return e->update_rows.items[row].items[x->update_id];
}

static fr_status keep_update(const est_plan *x, size_t row,
                             const est_update *update, est_stage *stage,
                             fr_err *err)
{
    fr_estimator *e = x->e;
    est_update *kept = fr_arena_alloc(&e->updates, sizeof *kept);
    if (kept == NULL)
        return fr_fail_no_memory(err);
    *kept = *update;
    while (e->update_rows.n <= row)
        FR_TRY_PUSH(&e->update_rows, (est_update_row){0}, err);
    est_update_row *all = &e->update_rows.items[row];
    while (all->n <= x->update_id)
        FR_TRY_PUSH(all, NULL, err);
    all->items[x->update_id] = stage->update = kept;
    return FR_OK;
}

fr_status est_update_find(est_plan *x, est_stage *stage, fr_err *err)
{
    size_t row;
    est_update fresh;
    FR_TRY(number_pair(x, stage, 0, &row, err));
    stage->update = known_update(x, row);
    if (stage->update != NULL)
        return FR_OK;
    FR_TRY(make(x, stage, &fresh, err));
    return keep_update(x, row, &fresh, stage, err);
}

/* ---- the least of several ------------------------------------------------ */

enum { EST_PARTS = 21 };

/* All of an est_update but n_first. */
static void parts_of(est_update *u, int64_t *parts[EST_PARTS])
{
    int64_t *const all[EST_PARTS] = {&u->reduce_ps,
                                     &u->last_reduce_ps,
                                     &u->gather_ps,
                                     &u->long_gather_ps,
                                     &u->norm_ps,
                                     &u->last_norm_ps,
                                     &u->step_ps,
                                     &u->wire_reduce_ps,
                                     &u->wire_gather_ps,
                                     &u->wire_long_gather_ps,
                                     &u->core_reduce_ps,
                                     &u->core_gather_ps,
                                     &u->core_long_gather_ps,
                                     &u->layer_gather_ps,
                                     &u->layer_wire_ps,
                                     &u->layer_core_ps,
                                     &u->layer_reduce_ps,
                                     &u->layer_copy_ps,
                                     &u->layer_zero_ps,
                                     &u->start_gather_ps,
                                     &u->first_gather_ps};
    memcpy(parts, all, sizeof all);
}

static void take_less(est_update *a, est_update *out)
{
    int64_t *from[EST_PARTS], *to[EST_PARTS];
    parts_of(a, from);
    parts_of(out, to);
    for (size_t i = 0; i < EST_PARTS; i++)
        *to[i] = est_least(*from[i], *to[i]);
    out->n_first = a->n_first < out->n_first ? a->n_first : out->n_first;
}

static fr_status find_least(est_plan *x, const fr_estimate_variants *variants,
                            est_stage *stage, est_update *out, fr_err *err)
{
    const fr_plan *plan = x->plan;
    fr_plan other = *plan;
    fr_status status = FR_OK;
    x->plan = &other;
    for (size_t i = 0; i < variants->n && status == FR_OK; i++) {
        const fr_estimate_variant *v = &variants->at[i];
        other.is_overlap = v->is_overlap;
        other.is_gather_overlap = v->is_gather_overlap;
        other.bucket_bytes = v->bucket_bytes;
        est_sharding_set(x);
        status = est_update_find(x, stage, err);
        if (status != FR_OK)
            break;
        est_update one = *stage->update;
        if (i == 0)
            *out = one;
        else
            take_less(&one, out);
    }
    x->plan = plan;
    est_sharding_set(x);
    return status;
}

/* The number of a list of variants; searches ask for the last one again. */
static fr_status number_variants(fr_estimator *e,
                                 const fr_estimate_variants *variants,
                                 fr_err *err)
{
    const size_t n = variants->n, n_bytes = n * sizeof *variants->at;
    if (n == e->last_variants.n &&
        memcmp(variants->at, e->last_variants.items, n_bytes) == 0)
        return FR_OK;
    e->last_variants.n = 0;
    FR_TRY(fr_memo_number(&e->variants, variants->at, n_bytes, &e->i_variants,
                          err));
    if (fr_vec_reserve(&e->last_variants, n) != FR_OK)
        return fr_fail_no_memory(err);
    memcpy(e->last_variants.items, variants->at, n_bytes);
    e->last_variants.n = n;
    return FR_OK;
}

fr_status est_update_least(est_plan *x, const fr_estimate_variants *variants,
                           est_stage *stage, fr_err *err)
{
    est_update least = {0};
    size_t row;
    FR_TRY(number_variants(x->e, variants, err));
    const uint32_t of = 1 + x->e->i_variants;
    FR_TRY(number_pair(x, stage, of, &row, err));
    stage->update = known_update(x, row);
    if (stage->update != NULL)
        return FR_OK;
    FR_TRY(find_least(x, variants, stage, &least, err));
    FR_TRY(number_pair(x, stage, of, &row, err)); /* that of the last of them */
    return keep_update(x, row, &least, stage, err);
}
