/* bound_walk.c: workers, each with an estimator and what it found. */
#include "tuner/bound_walk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/estimate.h"
#include "tuner/bound_keep.h"
#include "tuner/storey_lists.h"

#ifdef _OPENMP
#include <omp.h>
#else
#define omp_get_thread_num() 0
#endif

/* One thread's. */
typedef struct worker {
    fr_estimator *estimator;
    fr_storey_lists *lists;
    fr_bound_keep by_bound, by_estimate, nearest;
    uint64_t n_plans, n_too_large, n_pruned;
    size_t i_failed; /* LAYERS at which it failed; SIZE_MAX: none */
    fr_err err;
} worker;

struct fr_bound_walk {
    fr_search_input in;
    fr_plan_space_choices layers;
    uint64_t n_illegal;
    worker *workers; /* [n_workers] */
    int n_workers;
};

/* What a run asks for. */
typedef struct run {
    const fr_bound_walk *walk;
    double limit_s;
    const fr_bounded *after;
} run;

static bool is_before(const fr_bounded *a, const fr_bounded *b,
                      double key_a, double key_b)
{
    if (key_a != key_b)
        return key_a < key_b;
    return fr_candidate_compare(&a->candidate, &b->candidate) < 0;
}

static bool is_lower_bound(const fr_bounded *a, const fr_bounded *b)
{
    return is_before(a, b, a->bound_s, b->bound_s);
}

static bool is_lower_estimate(const fr_bounded *a, const fr_bounded *b)
{
    return is_before(a, b, a->estimate_s, b->estimate_s);
}

static bool is_nearer(const fr_bounded *a, const fr_bounded *b)
{
    return is_before(a, b, (double)a->short_by_bytes,
                     (double)b->short_by_bytes);
}

int fr_bounded_compare(const fr_bounded *a, const fr_bounded *b)
{
    return is_lower_bound(a, b) ? -1 : is_lower_bound(b, a);
}

/* ---- one plan ------------------------------------------------------------ */

static fr_status bound_plan(worker *w, const fr_plan *plan, fr_bounded *out,
                            fr_err *err)
{
    fr_estimate estimate;
    out->bound_s = out->estimate_s = 0;
    out->short_by_bytes = 0;
    if (!fr_estimate_knows(plan))
        return FR_OK; /* 0 s is a bound of anything */
    FR_TRY(fr_estimate_legal_plan(w->estimator, plan, &estimate, err));
    out->bound_s = estimate.lower_bound_s;
    out->estimate_s = estimate.estimate_s;
    if (estimate.least_bytes > estimate.capacity_bytes)
        out->short_by_bytes = estimate.least_bytes - estimate.capacity_bytes;
    return FR_OK;
}

static void keep(const run *r, worker *w, const fr_bounded *found)
{
    if (found->short_by_bytes > 0) {
        w->n_too_large++;
        fr_bound_keep_offer(&w->nearest, found);
        return;
    }
    if (!(found->bound_s < r->limit_s)) {
        w->n_pruned++;
        return;
    }
    if (r->after == NULL || is_lower_bound(r->after, found))
        fr_bound_keep_offer(&w->by_bound, found);
    fr_bound_keep_offer(&w->by_estimate, found);
}

/* ---- all plans of the same layers ---------------------------------------- */

static fr_status walk_layers(const run *r, worker *w,
                             const fr_plan_space_choice *layers, fr_err *err)
{
    const fr_plan_space_request *request = r->walk->in.request;
    const fr_plan_space_choices *pipelines, *gradients;
    fr_plan plan = request->base;
    fr_bounded found;
    fr_plan_space_set(request, FR_STOREY_LAYERS, layers, &plan);
    FR_TRY(fr_storey_lists_find(w->lists, FR_STOREY_PIPELINE, &plan,
                                &pipelines, err));
    FR_TRY(fr_storey_lists_find(w->lists, FR_STOREY_GRADIENTS, &plan,
                                &gradients, err));
    w->n_plans += pipelines->n * gradients->n;
    found.work = (double)request->model->n_layers *
                 (double)fr_plan_micro_batches(&plan, request->job);
    for (size_t p = 0; p < pipelines->n; p++) {
        const fr_plan_space_choice *pipeline = &pipelines->items[p];
        fr_plan_space_set(request, FR_STOREY_PIPELINE, pipeline, &plan);
        for (size_t g = 0; g < gradients->n; g++) {
            const fr_plan_space_choice *gradient = &gradients->items[g];
            fr_plan_space_set(request, FR_STOREY_GRADIENTS, gradient, &plan);
            FR_TRY(bound_plan(w, &plan, &found, err));
            fr_candidate_join(&layers->candidate, &pipeline->candidate,
                              &gradient->candidate, &found.candidate);
            keep(r, w, &found);
        }
    }
    return FR_OK;
}

/* ---- all layers ---------------------------------------------------------- */

static fr_status reset(fr_bound_walk *walk, fr_err *err)
{
    for (int i = 0; i < walk->n_workers; i++) {
        worker *w = &walk->workers[i];
        w->n_plans = w->n_too_large = w->n_pruned = 0;
        w->i_failed = SIZE_MAX;
        FR_TRY(fr_bound_keep_init(&w->by_bound, FR_WALK_KEPT, is_lower_bound,
                                  err));
        FR_TRY(fr_bound_keep_init(&w->by_estimate, FR_WALK_SEEDS,
                                  is_lower_estimate, err));
        FR_TRY(fr_bound_keep_init(&w->nearest, FR_WALK_SEEDS, is_nearer, err));
    }
    return FR_OK;
}

/* The error of the first layers that failed, whoever met them. */
static fr_status first_error(const fr_bound_walk *walk, fr_err *err)
{
    const worker *first = NULL;
    for (int i = 0; i < walk->n_workers; i++) {
        const worker *w = &walk->workers[i];
        if (w->i_failed != SIZE_MAX &&
            (first == NULL || w->i_failed < first->i_failed))
            first = w;
    }
    if (first == NULL)
        return FR_OK;
    return fr_fail(err, first->err.status, "%s", first->err.text);
}

static void walk_all(const run *r)
{
    const fr_bound_walk *walk = r->walk;
    const size_t n = walk->layers.n;
#pragma omp parallel for schedule(dynamic, 8) num_threads(walk->n_workers)
    for (size_t i = 0; i < n; i++) {
        worker *w = &walk->workers[omp_get_thread_num()];
        fr_err err;
        if (w->i_failed != SIZE_MAX ||
            walk_layers(r, w, &walk->layers.items[i], &err) == FR_OK)
            continue;
        w->i_failed = i;
        w->err = err;
    }
}

static fr_status collect(fr_bound_walk *walk, fr_walk_result *out, fr_err *err)
{
    fr_bound_keep *first = &walk->workers[0].by_bound;
    for (int i = 0; i < walk->n_workers; i++) {
        worker *w = &walk->workers[i];
        out->n_plans += w->n_plans;
        out->n_too_large += w->n_too_large;
        out->n_pruned += w->n_pruned;
        if (i == 0)
            continue;
        fr_bound_keep_merge(first, &w->by_bound);
        fr_bound_keep_merge(&walk->workers[0].by_estimate, &w->by_estimate);
        fr_bound_keep_merge(&walk->workers[0].nearest, &w->nearest);
    }
    out->is_all = !first->has_dropped;
    FR_TRY(fr_bound_keep_take(first, &out->by_bound, err));
    FR_TRY(fr_bound_keep_take(&walk->workers[0].by_estimate, &out->by_estimate,
                              err));
    return fr_bound_keep_take(&walk->workers[0].nearest, &out->nearest, err);
}

fr_status fr_bound_walk_run(fr_bound_walk *walk, double limit_s,
                            const fr_bounded *after, fr_walk_result *out,
                            fr_err *err)
{
    run r = {walk, limit_s, after};
    fr_walk_result result = {0};
    FR_TRY(reset(walk, err));
    walk_all(&r);
    FR_TRY(first_error(walk, err));
    fr_status status = collect(walk, &result, err);
    if (status != FR_OK) {
        fr_walk_result_release(&result);
        return status;
    }
    *out = result;
    return FR_OK;
}

void fr_walk_result_release(fr_walk_result *result)
{
    fr_vec_release(&result->by_bound);
    fr_vec_release(&result->by_estimate);
    fr_vec_release(&result->nearest);
}

/* ---- life ---------------------------------------------------------------- */

static void count_illegal(void *context, const char *reason)
{
    fr_bound_walk *walk = context;
    walk->n_illegal++;
    if (walk->in.on_illegal != NULL)
        walk->in.on_illegal(walk->in.context, reason);
}

static fr_status create_worker(const fr_search_input *in, worker *out,
                               fr_err *err)
{
    const fr_plan_space_request *request = in->request;
    FR_TRY(fr_estimator_create(request->model, request->job, request->cluster,
                               in->costs, &out->estimator, err));
    return fr_storey_lists_create(request, &out->lists, err);
}

fr_status fr_bound_walk_create(const fr_search_input *in, fr_bound_walk **out,
                               fr_err *err)
{
    fr_status status = FR_OK;
    fr_bound_walk *walk = calloc(1, sizeof *walk);
    if (walk == NULL)
        return fr_fail_no_memory(err);
    walk->in = *in;
    walk->workers = calloc((size_t)in->n_threads, sizeof *walk->workers);
    if (walk->workers == NULL) {
        free(walk);
        return fr_fail_no_memory(err);
    }
    walk->n_workers = in->n_threads;
    for (int i = 0; i < walk->n_workers && status == FR_OK; i++)
        status = create_worker(in, &walk->workers[i], err);
    if (status == FR_OK)
        status = fr_plan_space_list(in->request, FR_STOREY_LAYERS,
                                    &in->request->base, count_illegal, walk,
                                    &walk->layers, err);
    if (status != FR_OK) {
        fr_bound_walk_destroy(walk);
        return status;
    }
    *out = walk;
    return FR_OK;
}

void fr_bound_walk_destroy(fr_bound_walk *walk)
{
    if (walk == NULL)
        return;
    for (int i = 0; i < walk->n_workers; i++) {
        worker *w = &walk->workers[i];
        fr_estimator_destroy(w->estimator);
        fr_storey_lists_destroy(w->lists);
        fr_bound_keep_release(&w->by_bound);
        fr_bound_keep_release(&w->by_estimate);
        fr_bound_keep_release(&w->nearest);
    }
    free(walk->workers);
    fr_vec_release(&walk->layers);
    free(walk);
}

uint64_t fr_bound_walk_n_illegal(const fr_bound_walk *walk)
{
    return walk->n_illegal;
}
