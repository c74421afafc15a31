/*
 * estimate_update.c: gradients and parameters of a stage, bucket by bucket.
 */
#include "core/hash.h"
#include "plan/compressor.h"
#include "plan/schedule.h"
#include "sim/estimate_state.h"

/* Neighbouring buckets of the same size. */
typedef struct est_bucket {
    uint64_t n;
    bool is_expert;
    int64_t count;
} est_bucket;

typedef struct est_list {
    est_bucket *at;
    size_t n;
    uint64_t open; /* parameters of the bucket that is not full yet */
    bool is_open, is_expert;
    uint64_t wanted; /* parameters */
    bool is_each;    /* each unit by itself */
} est_list;

est_bucket *est_buckets_new(int32_t n_layers)
{
    return calloc(2 * (size_t)n_layers + 3, sizeof(est_bucket));
}

static void close_bucket(est_list *list)
{
    if (!list->is_open)
        return;
    est_bucket *last = list->n > 0 ? &list->at[list->n - 1] : NULL;
    if (last && last->n == list->open && last->is_expert == list->is_expert)
        last->count++;
    else
        list->at[list->n++] = (est_bucket){list->open, list->is_expert, 1};
    list->open = 0;
    list->is_open = false;
}

/* In the order of lower_layout.c: until a bucket has the bytes wanted; experts
 * and the rest never together. */
static void add_unit(est_list *list, uint64_t n, bool is_expert)
{
    if (n == 0)
        return;
    if (list->is_open && list->is_expert != is_expert)
        close_bucket(list);
    list->is_open = true;
    list->is_expert = is_expert;
    list->open += n;
    if (list->is_each || (list->wanted > 0 && list->open >= list->wanted))
        close_bucket(list);
}

/* A tied matrix of two stages is no unit of the embedding: not counted where
 * the time is a bound. */
static void list_buckets(est_plan *x, const est_stage *stage, est_list *list)
{
    const fr_plan *plan = x->plan;
    const est_layers *l = stage->layers;
    const fr_schedule *schedule = fr_schedules[plan->schedule];
    uint64_t bytes = fr_dtype_bytes(plan->grad_dtype);
    int32_t rank = stage->rank;
    bool is_apart = x->pp > 1 && x->e->model->is_tied;
    *list = (est_list){.at = x->e->buckets,
                       .wanted = (plan->bucket_bytes + bytes - 1) / bytes,
                       .is_each = x->is_by_unit};
    if (stage->has_head)
        add_unit(list, l->n_final, false);
    for (int32_t chunk = x->vpp; chunk-- > 0;) {
        int32_t i = fr_schedule_stage(schedule, rank, chunk, x->pp);
        const int32_t first = est_first_layer(x, i);
        for (int32_t k = est_first_layer(x, i + 1); k > first; k--) {
            add_unit(list, l->n_expert[k] - l->n_expert[k - 1], true);
            add_unit(list, l->n_dense[k] - l->n_dense[k - 1], false);
        }
    }
    if (is_apart)
        close_bucket(list);
    if (stage->has_embed && !(is_apart && !x->is_likely))
        add_unit(list, l->n_embed, false);
    close_bucket(list);
}

static fr_lane reduce_lane(const est_plan *x)
{
    return x->plan->is_overlap ? FR_LANE_DP : FR_LANE_COMPUTE;
}

typedef fr_status (*price_fn)(fr_estimator *e, const fr_plan *plan,
                              const est_place *place, const est_move *move,
                              int64_t *out_ps, fr_err *err);

/* Compressed bytes over plain ones. */
static double sent_frac(const est_plan *x, const est_bucket *bucket)
{
    const fr_bucket all = {.n = bucket->n};
    return (double)fr_compressor_payload_bytes(x->plan, &all) /
           (double)(bucket->n * sizeof(float));
}

/* By the clock (est_collective) or by the wire (est_wire). */
static fr_status reduce(est_plan *x, const est_stage *stage,
                        const est_bucket *bucket, price_fn price,
                        int64_t *out_ps, fr_err *err)
{
    const fr_plan *plan = x->plan;
    bool is_scattered = plan->zero_stage > 0;
    fr_axis axis = bucket->is_expert ? FR_AXIS_EDP
                   : is_scattered    ? x->shard_axis
                                     : FR_AXIS_DP;
    int64_t ps = 0;
    FR_TRY(price(
        x->e, plan, stage->place,
        &(est_move){reduce_lane(x),
                    is_scattered ? FR_OP_REDUCE_SCATTER : FR_OP_ALL_REDUCE,
                    axis, plan->grad_dtype, bucket->n},
        out_ps, err));
    if (is_scattered && !bucket->is_expert)
        FR_TRY(
            price(x->e, plan, stage->place,
                  &(est_move){reduce_lane(x), FR_OP_ALL_REDUCE, FR_AXIS_REPLICA,
                              plan->grad_dtype, bucket->n / x->n_shards},
                  &ps, err));
    *out_ps += ps;
    /* Compressed: at least nothing, about the share of bytes. */
    if (plan->compressor != FR_COMPRESSOR_NONE)
        *out_ps = x->is_likely
                      ? (int64_t)((double)*out_ps * sent_frac(x, bucket))
                      : 0;
    return FR_OK;
}

static fr_status gather(est_plan *x, const est_stage *stage, fr_lane lane,
                        const est_bucket *bucket, price_fn price,
                        int64_t *out_ps, fr_err *err)
{
    return price(x->e, x->plan, stage->place,
                 &(est_move){lane, FR_OP_ALL_GATHER,
                             bucket->is_expert ? FR_AXIS_EDP : x->shard_axis,
                             x->weight_dtype, bucket->n},
                 out_ps, err);
}

/* The optimizer on the own part of a bucket, and the squares of its
 * gradients. */
static fr_status step(est_plan *x, const est_stage *stage,
                      const est_bucket *bucket, est_update *out, fr_err *err)
{
    const est_layers *l = stage->layers;
    uint64_t n =
        bucket->n / (bucket->is_expert ? x->n_expert_shards : x->n_shards);
    int64_t ps;
    /* The host has its own time, which is not counted. */
    if (x->plan->is_optimizer_offloaded)
        return FR_OK;
    if (x->e->job->clip_norm > 0) {
        FR_TRY(est_over_range(x->e, x->plan, stage->place, &l->sqsum, n, &ps,
                              err));
        out->norm_ps += bucket->count * ps;
        out->last_norm_ps = ps;
    }
    FR_TRY(
        est_over_range(x->e, x->plan, stage->place, &l->opt_step, n, &ps, err));
    out->step_ps += bucket->count * ps;
    if (!l->has_norms)
        return FR_OK;
    FR_TRY(est_over_range(x->e, x->plan, stage->place, &l->opt_norms, n, &ps,
                          err));
    out->step_ps += bucket->count * ps;
    return FR_OK;
}

static fr_status gathers(est_plan *x, const est_stage *stage,
                         const est_bucket *bucket, est_update *out, fr_err *err)
{
    int32_t zero = x->plan->zero_stage;
    bool is_beside = x->is_executable && x->plan->is_overlap;
    int64_t ps;
    if (zero == 0)
        return FR_OK;
    FR_TRY(gather(x, stage, FR_LANE_GATHER, bucket, est_wire, &ps, err));
    out->wire_gather_ps += bucket->count * ps;
    out->wire_long_gather_ps = est_most(out->wire_long_gather_ps, ps);
    if (zero == 3 || x->is_gathered_early) {
        FR_TRY(
            gather(x, stage, FR_LANE_GATHER, bucket, est_collective, &ps, err));
        out->gather_ps += bucket->count * ps;
        out->long_gather_ps =
            ps > out->long_gather_ps ? ps : out->long_gather_ps;
        return FR_OK;
    }
    FR_TRY(gather(x, stage, is_beside ? FR_LANE_DP : FR_LANE_COMPUTE, bucket,
                  est_collective, &ps, err));
    if (!is_beside)
        out->step_ps += bucket->count * ps;
    return FR_OK;
}

fr_status est_set_zero(est_plan *x, const est_stage *stage, int64_t *out_ps,
                       fr_err *err)
{
    uint64_t n = stage->n_dense + stage->n_expert;
    *out_ps = 0;
    if (x->is_by_unit || !stage->layers->has_zero)
        return FR_OK;
    return est_over_range(x->e, x->plan, stage->place, &stage->layers->zero,
                          n * fr_dtype_bytes(x->plan->grad_dtype), out_ps, err);
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
        int64_t wire_ps;
        FR_TRY(reduce(x, stage, bucket, est_collective, &out->last_reduce_ps,
                      err));
        FR_TRY(reduce(x, stage, bucket, est_wire, &wire_ps, err));
        out->wire_reduce_ps += bucket->count * wire_ps;
        out->reduce_ps += bucket->count * out->last_reduce_ps;
        FR_TRY(gathers(x, stage, bucket, out, err));
        FR_TRY(step(x, stage, bucket, out, err));
    }
    return FR_OK;
}

/* Layers that are all alike count, others have numbers. */
static uint64_t key_of(const est_plan *x, const est_stage *stage)
{
    const fr_plan *plan = x->plan;
    const fr_schedule *schedule = fr_schedules[plan->schedule];
    bool is_apart = x->pp > 1 && x->e->model->is_tied;
    int32_t rank = stage->rank;
    uint64_t key = fr_hash_mix(
        stage->place->key + stage->layers->parameters_key +
        ((uint64_t)x->weight_dtype << 1 | fr_plan_has_master(plan)));
    key = fr_hash_mix(key + plan->bucket_bytes);
    key = fr_hash_mix(
        key + (uint64_t)stage->n_layers +
        ((uint64_t)plan->zero_stage << 32 | (uint64_t)plan->is_overlap << 34 |
         (uint64_t)x->is_gathered_early << 35 |
         (uint64_t)x->is_executable << 36 | (uint64_t)stage->has_embed << 37 |
         (uint64_t)stage->has_head << 38 |
         (uint64_t)(is_apart && x->is_likely) << 39 |
         (uint64_t)plan->is_optimizer_offloaded << 56 |
         (uint64_t)plan->grad_dtype << 40 | (uint64_t)plan->collective << 48));
    if (plan->compressor != FR_COMPRESSOR_NONE)
        key = fr_hash_mix(key + 2 * (uint64_t)plan->compressor + x->is_likely);
    for (int32_t c = 0; !stage->layers->is_uniform && c < x->vpp; c++) {
        int32_t i = fr_schedule_stage(schedule, rank, c, x->pp);
        key = fr_hash_mix(key + ((uint64_t)est_first_layer(x, i) << 32) +
                          (uint64_t)est_first_layer(x, i + 1));
    }
    return key;
}

fr_status est_update_find(est_plan *x, est_stage *stage, fr_err *err)
{
    fr_estimator *e = x->e;
    uint64_t key = key_of(x, stage);
    const int64_t *known = est_map_find(&e->updates, key);
    if (known != NULL) {
        stage->update = e->all_updates.items[*known];
        return FR_OK;
    }
    FR_TRY(make(x, stage, &stage->update, err));
    if (fr_vec_push(&e->all_updates, stage->update) != FR_OK)
        return fr_fail_no_memory(err);
    return est_map_add(&e->updates, key, (int64_t)e->all_updates.n - 1, err);
}

/* ---- the least of several ------------------------------------------------ */

static void take_less(const est_update *a, est_update *out)
{
    const int64_t from[] = {a->reduce_ps,      a->last_reduce_ps,
                            a->gather_ps,      a->long_gather_ps,
                            a->norm_ps,        a->last_norm_ps,
                            a->step_ps,        a->wire_reduce_ps,
                            a->wire_gather_ps, a->wire_long_gather_ps};
    int64_t *const to[] = {&out->reduce_ps,      &out->last_reduce_ps,
                           &out->gather_ps,      &out->long_gather_ps,
                           &out->norm_ps,        &out->last_norm_ps,
                           &out->step_ps,        &out->wire_reduce_ps,
                           &out->wire_gather_ps, &out->wire_long_gather_ps};
    for (size_t i = 0; i < sizeof to / sizeof to[0]; i++)
        *to[i] = from[i] < *to[i] ? from[i] : *to[i];
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
        x->is_gathered_early = v->is_gather_overlap && !x->is_executable;
        status = est_update_find(x, stage, err);
        if (status == FR_OK && i == 0)
            *out = stage->update;
        else if (status == FR_OK)
            take_less(&stage->update, out);
    }
    x->plan = plan;
    x->is_gathered_early = plan->is_gather_overlap && !x->is_executable;
    return status;
}

fr_status est_update_least(est_plan *x, const fr_estimate_variants *variants,
                           est_stage *stage, fr_err *err)
{
    fr_estimator *e = x->e;
    uint64_t key = fr_hash_mix(key_of(x, stage) + variants->key);
    const int64_t *known = est_map_find(&e->updates, key);
    est_update least = {0};
    if (known != NULL) {
        stage->update = e->all_updates.items[*known];
        return FR_OK;
    }
    FR_TRY(find_least(x, variants, stage, &least, err));
    stage->update = least;
    if (fr_vec_push(&e->all_updates, least) != FR_OK)
        return fr_fail_no_memory(err);
    return est_map_add(&e->updates, key, (int64_t)e->all_updates.n - 1, err);
}
