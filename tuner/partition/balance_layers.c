/* balance_layers.c: problems made of plans, and what was found for each. */
#include "tuner/partition/balance_layers.h"

#include "core/base/hash.h"
#include "core/base/memo.h"
#include "plan/decide/grid.h"
#include "plan/outline/sharding.h"
#include "plan/outline/stages.h"
#include "plan/schedule/schedule.h"
#include "sim/bound/estimate_stages.h"
#include "tuner/partition/partition_layers.h"
#include "tuner/space/plan_space_lists.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#else
#define omp_get_thread_num() 0
#endif

/* The fields of a plan that balanced splits depend on. */
static const fr_plan_field_id of_splits[] = {
    FR_PLAN_TP,          FR_PLAN_PP,         FR_PLAN_DP,
    FR_PLAN_CP,          FR_PLAN_EP,         FR_PLAN_ETP,
    FR_PLAN_MICRO_BATCH, FR_PLAN_THREADS,    FR_PLAN_VPP,
    FR_PLAN_RANK_ORDER,  FR_PLAN_CP_KIND,    FR_PLAN_SEQUENCE_PARALLEL,
    FR_PLAN_TP_OVERLAP,  FR_PLAN_EP_OVERLAP, FR_PLAN_RECOMPUTE,
    FR_PLAN_PRECISION,   FR_PLAN_SCHEDULE};

typedef struct splits_key {
    int64_t fields[FR_LENGTH(of_splits)], global_batch;
} splits_key;

/* One thread's. */
typedef struct keeper {
    fr_estimator *estimator; /* NULL: not asked for yet */
    const fr_job *job;       /* of the estimator */
    fr_estimator *lent;      /* asked instead, if there is one */
    fr_memo known;           /* splits_key -> fr_balanced * */
    fr_err err;              /* the first that was met */
} keeper;

struct fr_balance {
    const fr_cost_model *costs;
    keeper *keepers; /* [n_keepers] */
    int n_keepers;
};

/* ---- from a plan to a problem -------------------------------------------- */

/* Sums over the layers of one kind of device. */
typedef struct device_sums {
    const void *id;
    int64_t *pass_ps;
    uint64_t *state_bytes;
} device_sums;

typedef struct problem {
    const fr_model *model;
    const fr_job *job;
    const fr_plan *plan;
    fr_stage_layers *layers;    /* [pp] */
    fr_partition_stage *stages; /* [pp * vpp] */
    device_sums *sums;          /* [n_sums] */
    int32_t n_sums;
    fr_partition_problem of;
} problem;

static void release_problem(problem *p)
{
    for (int32_t i = 0; i < p->n_sums; i++) {
        free(p->sums[i].pass_ps);
        free(p->sums[i].state_bytes);
    }
    free(p->sums);
    free(p->stages);
    free(p->layers);
}

/* Bytes of the state of parameters, cut as the plan's ZeRO stage does. */
static uint64_t state_of(const problem *p, uint64_t n_dense, uint64_t n_expert)
{
    const fr_sharding sharding = fr_sharding_of(p->plan, false);
    const fr_state_bytes bytes =
        fr_sharding_state(&sharding, p->job->optimizer, n_dense + n_expert,
                          fr_sharding_own(&sharding, n_dense, n_expert));
    return fr_sharding_resident(&sharding, &bytes);
}

static void set_states(const problem *p, const fr_stage_layers *l,
                       device_sums *sums)
{
    for (int32_t i = 0; i <= p->of.n_layers; i++)
        sums->state_bytes[i] = state_of(p, l->n_dense[i], l->n_expert[i]);
}

static fr_status add_sums(problem *p, const fr_stage_layers *l, fr_err *err)
{
    device_sums *sums = &p->sums[p->n_sums++];
    size_t n = (size_t)p->of.n_layers + 1;
    *sums = (device_sums){.id = l->id,
                          .pass_ps = malloc(n * sizeof *sums->pass_ps),
                          .state_bytes = malloc(n * sizeof *sums->state_bytes)};
    if (sums->pass_ps == NULL || sums->state_bytes == NULL)
        return fr_fail_no_memory(err);
    for (size_t i = 0; i < n; i++)
        sums->pass_ps[i] = l->forward_ps[i] + l->backward_ps[i] +
                           l->weights_ps[i] + l->recompute_ps[i];
    set_states(p, l, sums);
    return FR_OK;
}

/* Sets the memory of the device that the stages of a rank share, and the ends
 * of the model that they hold. */
static void set_stage(const problem *p, int32_t i, const device_sums *sums)
{
    const fr_plan *plan = p->plan;
    const fr_schedule *schedule = fr_schedules[plan->schedule];
    const fr_stage_span span = fr_stage_span_of(plan, p->model, i);
    const int32_t rank = fr_stage_holder(plan, i);
    const fr_stage_layers *l = &p->layers[rank];
    fr_partition_stage *stage = &p->stages[i];
    *stage = (fr_partition_stage){
        .pass_ps = sums->pass_ps,
        .state_bytes = sums->state_bytes,
        .kept_bytes = l->kept_bytes,
        .n_live = (uint64_t)schedule->peak_live_micro(
            rank, plan->pp, fr_plan_micro_batches(plan, p->job), plan->vpp),
        .end_bytes = l->scratch_bytes / (uint64_t)plan->vpp,
        .headroom_bytes = l->headroom_bytes,
        .n_least = 1,
        .rank = rank};
    if (span.has_embed) {
        stage->end_ps += l->embed_ps;
        stage->end_bytes += state_of(p, l->n_embed, 0);
    }
    if (span.has_head) {
        stage->end_ps += l->head_ps;
        stage->end_bytes += state_of(p, l->n_final, 0);
    }
}

/* The same with state cut in another way. */
static void set_all(problem *p, const fr_plan *plan)
{
    p->plan = plan;
    for (int32_t k = 0; k < p->n_sums; k++)
        for (int32_t s = 0; s < plan->pp; s++)
            if (p->layers[s].id == p->sums[k].id) {
                set_states(p, &p->layers[s], &p->sums[k]);
                break;
            }
    for (int32_t i = 0; i < p->of.n_stages; i++) {
        const int32_t rank = fr_stage_holder(plan, i);
        int32_t k = 0;
        while (p->sums[k].id != p->layers[rank].id)
            k++;
        set_stage(p, i, &p->sums[k]);
    }
}

static fr_status init_problem(fr_estimator *e, const fr_model *model,
                              const fr_job *job, const fr_plan *plan,
                              problem *out, fr_err *err)
{
    const int32_t n_stages = plan->pp * plan->vpp;
    problem p = {.model = model, .job = job, .plan = plan};
    p.layers = calloc((size_t)plan->pp, sizeof *p.layers);
    p.sums = calloc((size_t)plan->pp, sizeof *p.sums);
    p.stages = calloc((size_t)n_stages, sizeof *p.stages);
    p.of = (fr_partition_problem){.stages = p.stages,
                                  .n_layers = (int32_t)model->n_layers,
                                  .n_stages = n_stages,
                                  .n_ranks = plan->pp};
    fr_status status = FR_OK;
    if (p.layers == NULL || p.sums == NULL || p.stages == NULL)
        status = fr_fail_no_memory(err);
    if (status == FR_OK)
        status = fr_estimate_stages(e, plan, p.layers, err);
    for (int32_t s = 0; status == FR_OK && s < plan->pp; s++) {
        int32_t k = 0;
        while (k < p.n_sums && p.sums[k].id != p.layers[s].id)
            k++;
        if (k == p.n_sums)
            status = add_sums(&p, &p.layers[s], err);
    }
    if (status != FR_OK) {
        release_problem(&p);
        return status;
    }
    set_all(&p, plan);
    *out = p;
    return FR_OK;
}

/* ---- what the space is given --------------------------------------------- */

/* The fastest of those that the space lists by hand; 0: none fits. */
static int64_t fastest_listed(const fr_plan_space_request *request,
                              const problem *p)
{
    fr_plan_space_values codes = {0};
    int64_t fastest_ps = 0;
    fr_list_split_moves(request, p->plan, &codes);
    for (int i = 0; i < codes.n; i++) {
        int32_t split[FR_PLAN_MAX_STAGES];
        fr_partition measure;
        fr_split_moved(request, p->plan, codes.at[i], split);
        fr_partition_measure(&p->of, split, &measure);
        if (measure.fits &&
            (fastest_ps == 0 || measure.slowest_ps < fastest_ps))
            fastest_ps = measure.slowest_ps;
    }
    return fastest_ps;
}

static bool is_known(const fr_balanced *found, const int32_t *split, size_t n)
{
    for (int i = 0; i < found->n; i++)
        if (memcmp(found->at[i], split, n * sizeof *split) == 0)
            return true;
    return false;
}

static fr_status add_split(const fr_plan_space_request *request,
                           const problem *p, fr_balanced *found, fr_err *err)
{
    int32_t split[FR_PLAN_MAX_STAGES];
    const size_t n = (size_t)p->of.n_stages;
    fr_partition best;
    int64_t listed_ps = fastest_listed(request, p);
    /* Chunks spread what is kept over the ranks as they are. */
    if (listed_ps == 0 && p->plan->vpp > 1)
        return FR_OK;
    if (listed_ps > 0 && !fr_partition_may_beat(&p->of, listed_ps))
        return FR_OK;
    FR_TRY(fr_partition_layers(&p->of, split, &best, err));
    if (!best.fits || (listed_ps > 0 && best.slowest_ps >= listed_ps) ||
        is_known(found, split, n))
        return FR_OK;
    int32_t *kept = malloc(n * sizeof *kept);
    if (kept == NULL)
        return fr_fail_no_memory(err);
    memcpy(kept, split, n * sizeof *kept);
    found->at[found->n++] = kept;
    return FR_OK;
}

/* ZeRO stages; 2 holds no more than 1 and no less than 3. */
static const int state_cuts[] = {0, 1, 3};

static fr_status find_splits(keeper *k, const fr_plan_space_request *request,
                             const fr_plan *asked, fr_balanced *out,
                             fr_err *err)
{
    fr_plan plan = *asked;
    fr_err why;
    problem p;
    plan.n_split = 0;
    plan.n_shares = 0;
    plan.zero_stage = 0;
    plan.zero_group = 0;
    plan.recompute_layers = 0;
    plan.compressor = FR_COMPRESSOR_NONE;
    plan.is_optimizer_offloaded = false;
    fr_status status =
        fr_plan_check_lowerable(&plan, request->model, request->job, &why);
    if (status == FR_OK)
        status = init_problem(k->lent != NULL ? k->lent : k->estimator,
                              request->model, request->job, &plan, &p, &why);
    if (status == FR_NO_MEMORY)
        return fr_fail_no_memory(err);
    if (status != FR_OK)
        return FR_OK; /* nobody will run it */
    for (size_t i = 0; i < sizeof state_cuts / sizeof state_cuts[0]; i++) {
        plan.zero_stage = state_cuts[i];
        set_all(&p, &plan);
        status = add_split(request, &p, out, err);
        if (status != FR_OK || fr_plan_group_size(&plan, FR_AXIS_DP) == 1)
            break; /* there is nobody to share with */
    }
    release_problem(&p);
    return status;
}

/* ---- what was found ------------------------------------------------------ */

static splits_key key_of(const fr_job *job, const fr_plan *plan)
{
    splits_key key = {.global_batch = job->global_batch};
    for (size_t i = 0; i < FR_LENGTH(of_splits); i++)
        key.fields[i] =
            fr_field_get_i64(&fr_plan_fields[of_splits[i]].field, plan);
    return key;
}

/* Returns the entry of a key; n of a new entry is -1.  NULL: out of memory. */
static fr_balanced *find_known(keeper *k, const splits_key *key, fr_err *err)
{
    fr_balanced **known = fr_memo_find(&k->known, key, sizeof *key);
    if (known != NULL)
        return *known;
    fr_balanced *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL ||
        fr_memo_add(&k->known, key, sizeof *key, &fresh) == NULL) {
        free(fresh);
        (void)fr_fail_no_memory(err);
        return NULL;
    }
    fresh->n = -1;
    return fresh;
}

/* An estimator of the request's job. */
static fr_status find_estimator(const fr_balance *balance, keeper *k,
                                const fr_plan_space_request *request,
                                fr_err *err)
{
    if (k->lent != NULL || (k->estimator != NULL && k->job == request->job))
        return FR_OK;
    fr_estimator_destroy(k->estimator);
    k->estimator = NULL;
    k->job = request->job;
    return fr_estimator_create_stages(request->model, request->job,
                                      request->cluster, balance->costs,
                                      &k->estimator, err);
}

bool fr_balance_is_wanted(const fr_plan_space_request *request)
{
    const fr_model *model = request->model;
    if (model->kind == FR_MODEL_LAYERS || !fr_model_is_unmarked(model) ||
        fr_cluster_is_unlike(request->cluster))
        return true;
    for (int64_t i = 1; i < model->n_layers; i++)
        if (fr_model_layer_is_moe(model, i) != fr_model_layer_is_moe(model, 0))
            return true;
    return false;
}

fr_estimator *fr_balance_estimator(const fr_plan_space_request *request)
{
    fr_balance *balance = request->balance;
    fr_err err;
    if (balance == NULL)
        return NULL;
    assert(omp_get_thread_num() < balance->n_keepers);
    keeper *k = &balance->keepers[omp_get_thread_num()];
    if (find_estimator(balance, k, request, &err) == FR_OK)
        return k->lent != NULL ? k->lent : k->estimator;
    if (k->err.status == FR_OK)
        k->err = err;
    return NULL;
}

const fr_balanced *fr_balance_find(const fr_plan_space_request *request,
                                   const fr_plan *plan)
{
    static const fr_balanced none = {0};
    fr_balance *balance = request->balance;
    if (balance == NULL || plan->pp == 1 ||
        request->model->n_layers < (int64_t)plan->pp * plan->vpp)
        return &none;
    assert(omp_get_thread_num() < balance->n_keepers);
    keeper *k = &balance->keepers[omp_get_thread_num()];
    fr_err err;
    fr_status status = FR_OK;
    const splits_key key = key_of(request->job, plan);
    fr_balanced *known = find_known(k, &key, &err);
    if (known != NULL && known->n < 0) {
        known->n = 0;
        status = find_estimator(balance, k, request, &err);
        if (status == FR_OK)
            status = find_splits(k, request, plan, known, &err);
    }
    if (known != NULL && status == FR_OK)
        return known;
    if (k->err.status == FR_OK)
        k->err = err;
    return &none;
}

uint64_t fr_balance_signature(const fr_plan_space_request *request,
                              const fr_plan *plan)
{
    uint64_t key = 0;
    fr_plan_space_values vpps = {0}, schedules;
    if (request->balance == NULL || plan->pp == 1 ||
        fr_is_pinned(request, FR_PLAN_LAYER_SPLIT))
        return key;
    fr_plan at = *plan;
    fr_list_vpp(request, &at, &vpps);
    for (int v = 0; v < vpps.n; v++) {
        at.vpp = (int32_t)vpps.at[v];
        schedules.n = 0;
        fr_list_schedule(request, &at, &schedules);
        for (int s = 0; s < schedules.n; s++) {
            at.schedule = (fr_schedule_kind)schedules.at[s];
            const fr_balanced *found = fr_balance_find(request, &at);
            if (found->n > 0)
                key = fr_hash_mix(key + (uint64_t)(16 * v + s));
            for (int i = 0; i < found->n; i++)
                key = fr_hash_bytes(
                    found->at[i],
                    (size_t)(at.pp * at.vpp) * sizeof *found->at[i], key);
        }
    }
    return key;
}

/* ---- life ---------------------------------------------------------------- */

fr_status fr_balance_status(const fr_balance *balance, fr_err *err)
{
    for (int i = 0; balance != NULL && i < balance->n_keepers; i++)
        if (balance->keepers[i].err.status != FR_OK)
            return fr_fail(err, balance->keepers[i].err.status, "%s",
                           balance->keepers[i].err.text);
    return FR_OK;
}

fr_status fr_balance_create(const fr_cost_model *costs, int n_threads,
                            fr_balance **out, fr_err *err)
{
    fr_balance *balance = calloc(1, sizeof *balance);
    if (balance == NULL)
        return fr_fail_no_memory(err);
    balance->costs = costs;
    balance->n_keepers = n_threads;
    balance->keepers = calloc((size_t)n_threads, sizeof *balance->keepers);
    if (balance->keepers == NULL) {
        free(balance);
        return fr_fail_no_memory(err);
    }
    for (int i = 0; i < n_threads; i++)
        balance->keepers[i].known.value_bytes = sizeof(fr_balanced *);
    *out = balance;
    return FR_OK;
}

static void destroy_known(fr_memo *known)
{
    fr_balanced **found = NULL;
    while ((found = fr_memo_next(known, found)) != NULL) {
        for (int i = 0; i < (*found)->n; i++)
            free((*found)->at[i]);
        free(*found);
    }
    fr_memo_release(known);
}

void fr_balance_lend(fr_balance *balance, int i_thread, fr_estimator *estimator)
{
    if (balance != NULL)
        balance->keepers[i_thread].lent = estimator;
}

void fr_balance_destroy(fr_balance *balance)
{
    if (balance == NULL)
        return;
    for (int i = 0; i < balance->n_keepers; i++) {
        destroy_known(&balance->keepers[i].known);
        fr_estimator_destroy(balance->keepers[i].estimator);
    }
    free(balance->keepers);
    free(balance);
}

/* ---- one plan ------------------------------------------------------------ */

fr_status fr_balance_plan(const fr_model *model, const fr_job *job,
                          const fr_cluster *cluster, const fr_cost_model *costs,
                          fr_plan *plan, fr_err *err)
{
    fr_estimator *e = NULL;
    problem p;
    fr_partition even, best;
    int32_t split[FR_PLAN_MAX_STAGES];
    fr_plan at = *plan;
    at.n_split = 0;
    plan->n_split = 0;
    FR_TRY(fr_plan_check_lowerable(&at, model, job, err));
    if (at.pp == 1)
        return FR_OK;
    FR_TRY(fr_estimator_create_stages(model, job, cluster, costs, &e, err));
    fr_status status = init_problem(e, model, job, &at, &p, err);
    if (status != FR_OK)
        goto out_estimator;
    const int32_t n = at.pp * at.vpp;
    for (int32_t i = 0; i < n; i++)
        split[i] = fr_plan_stage_layers(&at, model, i);
    fr_partition_measure(&p.of, split, &even);
    status = fr_partition_layers(&p.of, split, &best, err);
    if (status == FR_OK && !best.fits)
        status = fr_fail(err, FR_INFEASIBLE,
                         "no split of the layers over %d stages fits; choose "
                         "more stages, or a split by hand",
                         (int)n);
    if (status == FR_OK && !(even.fits && even.slowest_ps <= best.slowest_ps)) {
        plan->n_split = n;
        memcpy(plan->layer_split, split, (size_t)n * sizeof *split);
    }
    release_problem(&p);
out_estimator:
    fr_estimator_destroy(e);
    return status;
}
