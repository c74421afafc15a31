/* prefetch.c: see prefetch.h. */
#include "runtime/data/prefetch.h"

#include "core/base/vec.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

typedef enum slot_state {
    SLOT_IDLE,
    SLOT_WANTED,
    SLOT_LOADING,
    SLOT_READY
} slot_state;

/* One request of a step, for whichever step comes next. */
typedef struct slot {
    fr_batch_request request;
    slot_state state;
    uint64_t ticket; /* of SLOT_WANTED: the lowest is next */
    int32_t *values;
    fr_status status; /* of SLOT_READY */
    fr_err err;
} slot;

struct fr_prefetch {
    fr_batch_load_fn load;
    void *context;
    pthread_t thread;
    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t changed;
    fr_vec(slot *) slots;
    uint64_t n_tickets;
    _Atomic bool is_over;
};

static slot *next_wanted(const fr_prefetch *p)
{
    slot *next = NULL;

    for (size_t i = 0; i < p->slots.n; i++) {
        slot *at = p->slots.items[i];
        if (at->state == SLOT_WANTED &&
            (next == NULL || at->ticket < next->ticket))
            next = at;
    }
    return next;
}

static void *work(void *context)
{
    fr_prefetch *p = context;

    (void)pthread_mutex_lock(&p->lock);
    while (!p->is_over) {
        slot *next = next_wanted(p);
        if (next == NULL) {
            (void)pthread_cond_wait(&p->changed, &p->lock);
            continue;
        }
        next->state = SLOT_LOADING;
        (void)pthread_mutex_unlock(&p->lock);
        next->status =
            p->load(p->context, true, &next->request, next->values, &next->err);
        (void)pthread_mutex_lock(&p->lock);
        next->state = SLOT_READY;
        (void)pthread_cond_broadcast(&p->changed);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

fr_status fr_prefetch_create(fr_batch_load_fn load, void *context,
                             fr_prefetch **out, fr_err *err)
{
    fr_prefetch *p = calloc(1, sizeof *p);

    if (p == NULL)
        return fr_fail_no_memory(err);
    p->load = load;
    p->context = context;
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->changed, NULL);
    if (pthread_create(&p->thread, NULL, work, p) != 0) {
        (void)pthread_cond_destroy(&p->changed);
        (void)pthread_mutex_destroy(&p->lock);
        free(p);
        return fr_fail(err, FR_FAILURE, "cannot start the thread that reads");
    }
    *out = p;
    return FR_OK;
}

bool fr_prefetch_is_over(const fr_prefetch *p)
{
    return p->is_over;
}

void fr_prefetch_destroy(fr_prefetch *p)
{
    if (p == NULL)
        return;
    (void)pthread_mutex_lock(&p->lock);
    p->is_over = true;
    (void)pthread_cond_broadcast(&p->changed);
    (void)pthread_mutex_unlock(&p->lock);
    (void)pthread_join(p->thread, NULL);
    for (size_t i = 0; i < p->slots.n; i++) {
        free(p->slots.items[i]->values);
        free(p->slots.items[i]);
    }
    fr_vec_release(&p->slots);
    (void)pthread_cond_destroy(&p->changed);
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
}

/* The slot of a request but for its step; made where there is none. */
static fr_status find_slot(fr_prefetch *p, const fr_batch_request *request,
                           slot **out, fr_err *err)
{
    for (size_t i = 0; i < p->slots.n; i++) {
        const fr_batch_request *at = &p->slots.items[i]->request;
        if (at->first == request->first && at->n == request->n &&
            at->share.i == request->share.i &&
            at->share.n == request->share.n) {
            *out = p->slots.items[i];
            return FR_OK;
        }
    }
    slot *made = calloc(1, sizeof *made);
    if (made != NULL)
        made->values = malloc(request->n_values * sizeof *made->values + 1);
    if (made == NULL || made->values == NULL ||
        fr_vec_push(&p->slots, made) != FR_OK) {
        if (made != NULL)
            free(made->values);
        free(made);
        return fr_fail_no_memory(err);
    }
    made->request = *request;
    made->request.i_step--; /* it holds nothing of this step */
    *out = made;
    return FR_OK;
}

fr_status fr_prefetch_get(fr_prefetch *p, const fr_batch_request *request,
                          int32_t *out, fr_err *err)
{
    slot *at = NULL;

    (void)pthread_mutex_lock(&p->lock);
    fr_status status = find_slot(p, request, &at, err);
    if (status != FR_OK) {
        (void)pthread_mutex_unlock(&p->lock);
        return status;
    }
    const bool is_ahead = at->request.i_step == request->i_step;
    while (at->state == SLOT_LOADING || (is_ahead && at->state == SLOT_WANTED))
        (void)pthread_cond_wait(&p->changed, &p->lock);
    if (is_ahead && at->state == SLOT_READY) {
        status = at->status;
        if (status == FR_OK)
            memcpy(out, at->values, request->n_values * sizeof *out);
        else if (err != NULL)
            *err = at->err;
    } else {
        at->state = SLOT_IDLE;
        (void)pthread_mutex_unlock(&p->lock);
        status = p->load(p->context, false, request, out, err);
        (void)pthread_mutex_lock(&p->lock);
    }
    at->request.i_step = request->i_step + 1;
    at->state = SLOT_WANTED;
    at->ticket = p->n_tickets++;
    (void)pthread_cond_broadcast(&p->changed);
    (void)pthread_mutex_unlock(&p->lock);
    return status;
}
