/* estimate_pool.c: what layers cost, known to several estimators. */
#include <pthread.h>
#include <stdlib.h>

#include "sim/bound/estimate_state.h"

struct est_pool {
    pthread_mutex_t lock;
    est_map map; /* to places in `all` */
    fr_vec(est_layers *) all;
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
    for (size_t i = 0; i < pool->all.n; i++)
        est_layers_destroy(pool->all.items[i]);
    fr_vec_release(&pool->all);
    est_map_release(&pool->map);
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

const est_layers *est_pool_find(est_pool *pool, uint64_t key)
{
    pthread_mutex_lock(&pool->lock);
    const int64_t *known = est_map_find(&pool->map, key);
    const est_layers *layers = known != NULL ? pool->all.items[*known] : NULL;
    pthread_mutex_unlock(&pool->lock);
    return layers;
}

static fr_status add(est_pool *pool, uint64_t key, est_layers *layers,
                     fr_err *err)
{
    if (fr_vec_reserve(&pool->all, 1) != FR_OK)
        return fr_fail_no_memory(err);
    FR_TRY(est_map_add(&pool->map, key, (int64_t)pool->all.n, err));
    pool->all.items[pool->all.n++] = layers;
    return FR_OK;
}

fr_status est_pool_add(est_pool *pool, uint64_t key, est_layers *layers,
                       const est_layers **out, fr_err *err)
{
    fr_status status = FR_OK;
    pthread_mutex_lock(&pool->lock);
    const int64_t *known = est_map_find(&pool->map, key);
    if (known != NULL) {
        *out = pool->all.items[*known];
    } else {
        status = add(pool, key, layers, err);
        *out = layers;
    }
    pthread_mutex_unlock(&pool->lock);
    if (known != NULL || status != FR_OK)
        est_layers_destroy(layers);
    return status;
}
