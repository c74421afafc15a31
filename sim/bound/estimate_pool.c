/* estimate_pool.c: what layers cost, known to several estimators. */
#include "core/base/memo.h"
#include "sim/bound/estimate_state.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct est_pool {
    pthread_mutex_t lock;
    fr_memo all;        /* est_layers * */
    fr_memo parameters; /* numbers */
    int n_users;
};

est_pool *est_pool_create(void)
{
    est_pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL)
        return NULL;
    if (pthread_mutex_init(&pool->lock, NULL) != 0) {
        free(pool);
        return NULL;
    }
    pool->n_users = 1;
    pool->all.value_bytes = sizeof(est_layers *);
    pool->parameters.value_bytes = sizeof(uint32_t);
    return pool;
}

void est_pool_leave(est_pool *pool)
{
    if (pool == NULL)
        return;
    pthread_mutex_lock(&pool->lock);
    int n_left = --pool->n_users;
    pthread_mutex_unlock(&pool->lock);
    if (n_left > 0)
        return;
    for (est_layers **at = fr_memo_next(&pool->all, NULL); at != NULL;
         at = fr_memo_next(&pool->all, at))
        est_layers_destroy(*at);
    fr_memo_release(&pool->all);
    fr_memo_release(&pool->parameters);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

void fr_estimator_join(fr_estimator *e, fr_estimator *other)
{
    if (e->pool == other->pool)
        return;
    est_pool_leave(e->pool);
    pthread_mutex_lock(&other->pool->lock);
    other->pool->n_users++;
    pthread_mutex_unlock(&other->pool->lock);
    e->pool = other->pool;
}

const est_layers *est_pool_find(est_pool *pool, const est_pool_key *key)
{
    pthread_mutex_lock(&pool->lock);
    est_layers *const *known = fr_memo_find(&pool->all, key, sizeof *key);
    const est_layers *layers = known != NULL ? *known : NULL;
    pthread_mutex_unlock(&pool->lock);
    return layers;
}

/* Sets parameters_id: how many parameters each layer has, and how they are
 * updated. */
static fr_status number_parameters(est_pool *pool, int32_t n_layers,
                                   est_layers *l, fr_err *err)
{
    const size_t n = (size_t)n_layers + 1;
    const uint64_t words[] = {l->n_embed,
                              l->n_final,
                              (uint64_t)l->opt_step.range.norms_bytes,
                              l->opt_step.dtype,
                              l->opt_step.grad_dtype,
                              l->opt_step.flags,
                              (uint64_t)l->clip_ps};
    const size_t n_words = sizeof words / sizeof words[0];
    uint64_t *key = malloc(sizeof words + 2 * n * sizeof *key);
    if (key == NULL)
        return fr_fail_no_memory(err);
    memcpy(key, words, sizeof words);
    memcpy(key + n_words, l->n_dense, n * sizeof *key);
    memcpy(key + n_words + n, l->n_expert, n * sizeof *key);
    fr_status status =
        fr_memo_number(&pool->parameters, key, (n_words + 2 * n) * sizeof *key,
                       &l->parameters_id, err);
    free(key);
    return status;
}

static fr_status add(est_pool *pool, const est_pool_key *key, int32_t n_layers,
                     est_layers *layers, fr_err *err)
{
    FR_TRY(number_parameters(pool, n_layers, layers, err));
    return fr_memo_add(&pool->all, key, sizeof *key, &layers) != NULL
               ? FR_OK
               : fr_fail_no_memory(err);
}

fr_status est_pool_add(est_pool *pool, const est_pool_key *key,
                       int32_t n_layers, est_layers *layers,
                       const est_layers **out, fr_err *err)
{
    fr_status status = FR_OK;
    pthread_mutex_lock(&pool->lock);
    est_layers *const *known = fr_memo_find(&pool->all, key, sizeof *key);
    if (known != NULL) {
        *out = *known;
    } else {
        status = add(pool, key, n_layers, layers, err);
        *out = layers;
    }
    pthread_mutex_unlock(&pool->lock);
    if (known != NULL || status != FR_OK)
        est_layers_destroy(layers);
    return status;
}
