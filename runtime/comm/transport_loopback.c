/*
 * transport_loopback.c: a world of threads in one process.  A message is
 * matched when both sides are posted and copied by whoever tests it.
 */
#include "runtime/comm/transport.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* One side of a message; lives until its owner has tested it as done. */
typedef struct posting {
    struct posting *next;
    int64_t src, dst;
    int tag;
    bool is_send, is_done;
    const unsigned char *from;
    unsigned char *to;
    uint64_t n_bytes;
} posting;

struct fr_loopback {
    pthread_mutex_t mutex;
    pthread_cond_t slabs_open;
    int64_t world, n_open;
    int32_t *node_of_rank;
    unsigned char **window; /* control block, then slab */
    posting *first;         /* unmatched, in order of posting */
};

typedef struct loopback_transport {
    fr_transport base;
    fr_loopback *hub;
    bool is_hub_own; /* nobody else has it */
} loopback_transport;

fr_status fr_loopback_create(int64_t world, const int32_t *node_of_rank,
                             fr_loopback **out, fr_err *err)
{
    fr_loopback *hub;

    FR_TRY_CALLOC(hub, 1, err);
    hub->world = world;
    hub->node_of_rank = calloc((size_t)world, sizeof *hub->node_of_rank);
    hub->window = calloc((size_t)world, sizeof *hub->window);
    if (hub->node_of_rank == NULL || hub->window == NULL) {
        free(hub->node_of_rank);
        free(hub->window);
        free(hub);
        return fr_fail_no_memory(err);
    }
    if (node_of_rank != NULL)
        memcpy(hub->node_of_rank, node_of_rank,
               (size_t)world * sizeof *node_of_rank);
    pthread_mutex_init(&hub->mutex, NULL);
    pthread_cond_init(&hub->slabs_open, NULL);
    *out = hub;
    return FR_OK;
}

void fr_loopback_destroy(fr_loopback *hub)
{
    if (hub == NULL)
        return;
    while (hub->first != NULL) {
        posting *next = hub->first->next;
        free(hub->first);
        hub->first = next;
    }
    pthread_mutex_destroy(&hub->mutex);
    pthread_cond_destroy(&hub->slabs_open);
    free(hub->node_of_rank);
    free(hub->window);
    free(hub);
}

static void loopback_close_slab(fr_transport *transport)
{
    loopback_transport *self = (loopback_transport *)transport;
    fr_loopback *hub = self->hub;

    if (!transport->private_bytes)
        return;
    /* Everybody must be past the last look at a neighbour's window. */
    pthread_mutex_lock(&hub->mutex);
    hub->n_open--;
    pthread_cond_broadcast(&hub->slabs_open);
    while (hub->n_open > 0)
        pthread_cond_wait(&hub->slabs_open, &hub->mutex);
    pthread_mutex_unlock(&hub->mutex);
    fr_transport_close_slabs(transport);
}

static void loopback_destroy(fr_transport *transport)
{
    loopback_transport *self = (loopback_transport *)transport;

    loopback_close_slab(transport);
    if (self->is_hub_own)
        fr_loopback_destroy(self->hub);
    fr_transport_release(transport);
    free(self);
}

static fr_status loopback_open_slab(fr_transport *transport, uint64_t n_bytes,
                                    fr_err *err)
{
    fr_loopback *hub = ((loopback_transport *)transport)->hub;

    FR_TRY(fr_transport_open_private(transport, n_bytes, err));
    pthread_mutex_lock(&hub->mutex);
    hub->window[transport->rank] =
        (unsigned char *)transport->control[transport->rank];
    hub->n_open++;
    pthread_cond_broadcast(&hub->slabs_open);
    while (hub->n_open < hub->world)
        pthread_cond_wait(&hub->slabs_open, &hub->mutex);
    pthread_mutex_unlock(&hub->mutex);
    for (int64_t rank = 0; rank < transport->world; rank++) {
        if (hub->node_of_rank[rank] != hub->node_of_rank[transport->rank])
            continue;
        transport->control[rank] = (fr_shm_control *)(void *)hub->window[rank];
        transport->slab[rank] = hub->window[rank] + fr_shm_control_bytes();
    }
    return FR_OK;
}

/* Under the mutex: pairs `mine` with the oldest fitting posting, or queues. */
static void post(fr_loopback *hub, posting *mine)
{
    posting **link = &hub->first;

    for (; *link != NULL; link = &(*link)->next) {
        posting *other = *link;
        if (other->is_send == mine->is_send || other->src != mine->src ||
            other->dst != mine->dst || other->tag != mine->tag)
            continue;
        const posting *send = mine->is_send ? mine : other;
        const posting *recv = mine->is_send ? other : mine;
        memcpy(recv->to, send->from,
               send->n_bytes < recv->n_bytes ? send->n_bytes : recv->n_bytes);
        *link = other->next;
        mine->is_done = other->is_done = true;
        return;
    }
    mine->next = NULL;
    *link = mine;
}

static fr_status loopback_post(fr_transport *transport, const posting *parts,
                               fr_message *request, fr_err *err)
{
    fr_loopback *hub = ((loopback_transport *)transport)->hub;
    posting *mine = malloc(sizeof *mine);

    if (mine == NULL)
        return fr_fail_no_memory(err);
    *mine = *parts;
    pthread_mutex_lock(&hub->mutex);
    post(hub, mine);
    pthread_mutex_unlock(&hub->mutex);
    request->handle = mine;
    return FR_OK;
}

static fr_status loopback_isend(fr_transport *transport, int64_t peer, int tag,
                                const void *bytes, uint64_t n_bytes,
                                fr_message *request, fr_err *err)
{
    posting parts = {.src = transport->rank,
                     .dst = peer,
                     .tag = tag,
                     .is_send = true,
                     .from = bytes,
                     .n_bytes = n_bytes};

    return loopback_post(transport, &parts, request, err);
}

static fr_status loopback_irecv(fr_transport *transport, int64_t peer, int tag,
                                void *bytes, uint64_t n_bytes,
                                fr_message *request, fr_err *err)
{
    posting parts = {.src = peer,
                     .dst = transport->rank,
                     .tag = tag,
                     .is_send = false,
                     .to = bytes,
                     .n_bytes = n_bytes};

    return loopback_post(transport, &parts, request, err);
}

static fr_status loopback_test(fr_transport *transport, fr_message *request,
                               bool *is_done, fr_err *err)
{
    fr_loopback *hub = ((loopback_transport *)transport)->hub;
    posting *mine = request->handle;

    (void)err;
    *is_done = true;
    if (mine == NULL)
        return FR_OK;
    pthread_mutex_lock(&hub->mutex);
    *is_done = mine->is_done;
    pthread_mutex_unlock(&hub->mutex);
    if (*is_done) {
        free(mine);
        request->handle = NULL;
    }
    return FR_OK;
}

static fr_status loopback_probe(fr_transport *transport, int64_t peer, int tag,
                                bool *is_there, fr_err *err)
{
    fr_loopback *hub = ((loopback_transport *)transport)->hub;

    (void)err;
    *is_there = false;
    pthread_mutex_lock(&hub->mutex);
    for (const posting *p = hub->first; p != NULL && !*is_there; p = p->next)
        *is_there = p->is_send && p->src == peer && p->dst == transport->rank &&
                    p->tag == tag;
    pthread_mutex_unlock(&hub->mutex);
    return FR_OK;
}

static const fr_transport_ops loopback_ops = {
    .name = "loopback",
    .destroy = loopback_destroy,
    .open_slab = loopback_open_slab,
    .close_slab = loopback_close_slab,
    .isend = loopback_isend,
    .irecv = loopback_irecv,
    .test = loopback_test,
    .probe = loopback_probe,
};

fr_status fr_transport_loopback_create(fr_loopback *hub, int64_t rank,
                                       double timeout_s, fr_transport **out,
                                       fr_err *err)
{
    loopback_transport *self;

    FR_TRY_CALLOC(self, 1, err);
    self->base.ops = &loopback_ops;
    self->base.timeout_s = timeout_s;
    self->hub = hub;
    fr_status status = fr_transport_init(&self->base, rank, hub->world, err);
    if (status != FR_OK) {
        free(self);
        return status;
    }
    memcpy(self->base.node_of_rank, hub->node_of_rank,
           (size_t)hub->world * sizeof *hub->node_of_rank);
    self->base.n_local = hub->world;
    self->base.i_local = rank;
    *out = &self->base;
    return FR_OK;
}

fr_status fr_transport_alone_create(double timeout_s, fr_transport **out,
                                    fr_err *err)
{
    fr_loopback *hub = NULL;

    FR_TRY(fr_loopback_create(1, NULL, &hub, err));
    fr_status status =
        fr_transport_loopback_create(hub, 0, timeout_s, out, err);
    if (status == FR_OK)
        ((loopback_transport *)*out)->is_hub_own = true;
    else
        fr_loopback_destroy(hub);
    return status;
}
