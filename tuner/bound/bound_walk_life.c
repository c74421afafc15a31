/* bound_walk_life.c: creates and destroys a walk, and tells what it lists. */
#include "cost_models/gpu/gpu_memory.h"
#include "sim/predict/predict_memory.h"
#include "tuner/bound/bound_walk_state.h"
#include "tuner/partition/balance_layers.h"

#include <stdlib.h>

static void count_illegal(void *context, const char *reason)
{
    fr_bound_walk *walk = context;
    walk->n_illegal++;
    if (walk->in.on_illegal != NULL)
        walk->in.on_illegal(walk->in.context, reason);
}

static fr_status create_worker(const fr_bound_walk *walk, int i_thread,
                               fr_walk_worker *out, fr_err *err)
{
    const fr_search_input *in = &walk->in;
    const fr_plan_space_request *request = in->request;
    FR_TRY(fr_estimator_create(request->model, request->job, request->cluster,
                               in->costs, &out->estimator, err));
    fr_balance_lend(request->balance, i_thread, out->estimator);
    FR_TRY(fr_decision_lists_create(&walk->plain, &out->plain_lists, err));
    return fr_decision_lists_create(request, &out->lists, err);
}

fr_status fr_bound_walk_create(const fr_search_input *in, fr_bound_walk **out,
                               fr_err *err)
{
    fr_status status = FR_OK;
    const fr_plan_space_request *of = in->request;
    fr_bound_walk *walk = calloc(1, sizeof *walk);
    if (walk == NULL)
        return fr_fail_no_memory(err);
    walk->in = *in;
    walk->plain = *of;
    walk->plain.balance = NULL;
    if (in->goal != NULL) /* else the step */
        walk->goal = *in->goal;
    /* forerun's own runtime has less to be unsure of. */
    if (fr_gpu_is_by_framework(&of->base, fr_cluster_device(of->cluster, 0)))
        walk->free_frac =
            fr_memory_rel_err() * fr_memory_errors_of(of->fit_confidence);
    walk->job = fr_goal_job(of->model, of->job);
    walk->subject = (fr_goal_subject){of->model, &walk->job, of->cluster};
    walk->workers = calloc((size_t)in->n_threads, sizeof *walk->workers);
    if (walk->workers == NULL)
        status = fr_fail_no_memory(err);
    else
        walk->n_workers = in->n_threads;
    for (int i = 0; i < walk->n_workers && status == FR_OK; i++)
        status = create_worker(walk, i, &walk->workers[i], err);
    /* The first worker that needs a cost of a layer computes it for all. */
    for (int i = 1; i < walk->n_workers && status == FR_OK; i++)
        fr_estimator_join(walk->workers[i].estimator,
                          walk->workers[0].estimator);
    if (status == FR_OK)
        status =
            fr_plan_space_list_until(of, in->list_until_s, count_illegal, walk,
                                     &walk->layers, &walk->is_cut, err);
    walk->least = calloc(walk->layers.n + 1, sizeof *walk->least);
    if (status == FR_OK && walk->least == NULL)
        status = fr_fail_no_memory(err);
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
        fr_walk_worker *w = &walk->workers[i];
        fr_balance_lend(walk->in.request->balance, i, NULL);
        fr_estimator_destroy(w->estimator);
        fr_decision_lists_destroy(w->lists);
        fr_decision_lists_destroy(w->plain_lists);
        fr_goal_scale_release(&w->scale);
        fr_bound_layers_release(&w->needs);
        fr_bound_keep_release(&w->by_bound);
        fr_bound_keep_release(&w->by_estimate);
        fr_bound_keep_release(&w->nearest);
    }
    free(walk->workers);
    free(walk->least);
    fr_vec_release(&walk->layers);
    free(walk);
}

const fr_plan_space_choices *fr_bound_walk_layers(const fr_bound_walk *walk)
{
    return &walk->layers;
}

uint64_t fr_bound_walk_n_illegal(const fr_bound_walk *walk)
{
    return walk->n_illegal;
}
