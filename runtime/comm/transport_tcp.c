/*
 * transport_tcp.c: one rank's end of the connection to the hub: messages that
 * have come wait in a list until somebody asks for them.
 */
#include "runtime/comm/transport_tcp.h"

#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/system/clock.h"
#include "runtime/rank/measure.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* A message that has come, or one that is waited for. */
typedef struct tcp_message {
    struct tcp_message *next;
    int64_t src;
    int tag;
    uint64_t n_bytes;
    unsigned char *bytes; /* come: owned; waited for: the caller's */
    bool is_done;
} tcp_message;

typedef struct tcp_transport {
    fr_transport base;
    pthread_mutex_t mutex; /* the watcher of a run looks in besides */
    int fd;
    fr_tcp_hub *hub; /* rank 0's */
    fr_tcp_head head;
    uint64_t n_read;
    unsigned char *payload;
    tcp_message *arrived, *awaited; /* oldest first */
    bool has_joined;
    int64_t dead_rank; /* -1: nobody is */
    char reason[512];
} tcp_transport;

static void free_messages(tcp_message *first, bool is_owner)
{
    while (first != NULL) {
        tcp_message *l = first;
        first = l->next;
        if (is_owner)
            free(l->bytes);
        free(l);
    }
}

/* Nobody waits any more: this rank ends, and buffers may be gone. */
static void forget_awaited(tcp_transport *self)
{
    free_messages(self->awaited, false);
    self->awaited = NULL;
}

static fr_status fail_dead(const tcp_transport *self, fr_err *err)
{
    if (self->reason[0])
        return fr_fail(err, FR_FAILURE, "%s", self->reason);
    return fr_fail(err, FR_FAILURE, "rank %lld: lost rank %lld",
                   (long long)self->base.rank, (long long)self->dead_rank);
}

static void append(tcp_message **list, tcp_message *l)
{
    while (*list != NULL)
        list = &(*list)->next;
    l->next = NULL;
    *list = l;
}

/* Takes the oldest message of a source and tag out of a list; NULL: there is
 * none. */
static tcp_message *take(tcp_message **list, int64_t src, int tag)
{
    while (*list != NULL && ((*list)->src != src || (*list)->tag != tag))
        list = &(*list)->next;
    tcp_message *l = *list;
    if (l != NULL)
        *list = l->next;
    return l;
}

static void deliver(tcp_message *to, tcp_message *from)
{
    uint64_t n = to->n_bytes < from->n_bytes ? to->n_bytes : from->n_bytes;

    if (n > 0)
        memcpy(to->bytes, from->bytes, n);
    to->is_done = true;
    free(from->bytes);
    free(from);
}

static fr_status take_frame(tcp_transport *self, fr_err *err)
{
    const fr_tcp_head *head = &self->head;

    if (head->kind == FR_TCP_HELLO) {
        self->has_joined = true;
    } else if (head->kind == FR_TCP_DEATH && self->dead_rank < 0) {
        size_t n = head->n_bytes < sizeof self->reason - 1
                       ? head->n_bytes
                       : sizeof self->reason - 1;
        self->dead_rank = head->src;
        if (n > 0)
            memcpy(self->reason, self->payload, n);
    } else if (head->kind == FR_TCP_MESSAGE) {
        tcp_message *l;
        FR_TRY_CALLOC(l, 1, err);
        *l = (tcp_message){.src = head->src,
                           .tag = head->tag,
                           .n_bytes = head->n_bytes,
                           .bytes = self->payload};
        self->payload = NULL;
        tcp_message *to = take(&self->awaited, l->src, l->tag);
        if (to != NULL)
            deliver(to, l);
        else
            append(&self->arrived, l);
    }
    free(self->payload);
    self->payload = NULL;
    self->n_read = 0;
    return FR_OK;
}

/* Reads all that is there, without waiting. */
static fr_status drain(tcp_transport *self, fr_err *err)
{
    const uint64_t n_head = sizeof self->head;

    for (;;) {
        unsigned char *into = (unsigned char *)&self->head + self->n_read;
        uint64_t n_wanted = n_head - self->n_read;
        if (self->n_read >= n_head) {
            into = self->payload + (self->n_read - n_head);
            n_wanted = n_head + self->head.n_bytes - self->n_read;
        }
        ssize_t n = recv(self->fd, into, n_wanted, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return FR_OK;
        if (n <= 0) {
            self->dead_rank = self->dead_rank < 0 ? 0 : self->dead_rank;
            return fail_dead(self, err);
        }
        self->n_read += (uint64_t)n;
        if (self->n_read == n_head && self->head.n_bytes > 0) {
            self->payload = malloc(self->head.n_bytes);
            if (self->payload == NULL)
                return fr_fail_no_memory(err);
        }
        if (self->n_read >= n_head &&
            self->n_read == n_head + self->head.n_bytes)
            FR_TRY(take_frame(self, err));
    }
}

static fr_status put(tcp_transport *self, const void *bytes, uint64_t n_bytes,
                     fr_err *err)
{
    const unsigned char *at = bytes;
    double until_s = fr_clock_s() + self->base.timeout_s;

    while (n_bytes > 0) {
        ssize_t n = send(self->fd, at, n_bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n >= 0) {
            at += n;
            n_bytes -= (uint64_t)n;
            continue;
        }
        if (errno != EAGAIN && errno != EINTR) {
            self->dead_rank = self->dead_rank < 0 ? 0 : self->dead_rank;
            return fail_dead(self, err);
        }
        struct pollfd polled = {.fd = self->fd, .events = POLLOUT};
        (void)poll(&polled, 1, 10);
        FR_TRY(drain(self, err));
        if (fr_clock_s() > until_s)
            return fr_fail(err, FR_FAILURE,
                           "rank %lld: rank 0 takes no messages",
                           (long long)self->base.rank);
    }
    return FR_OK;
}

static fr_status put_frame(tcp_transport *self, fr_tcp_head head,
                           const void *bytes, fr_err *err)
{
    head.src = (int32_t)self->base.rank;
    FR_TRY(put(self, &head, sizeof head, err));
    return put(self, bytes, head.n_bytes, err);
}

static fr_status tcp_isend(fr_transport *transport, int64_t peer, int tag,
                           const void *bytes, uint64_t n_bytes,
                           fr_message *request, fr_err *err)
{
    tcp_transport *self = (tcp_transport *)transport;
    fr_tcp_head head = {.kind = FR_TCP_MESSAGE,
                        .dst = (int32_t)peer,
                        .tag = tag,
                        .n_bytes = n_bytes};

    pthread_mutex_lock(&self->mutex);
    fr_status status = put_frame(self, head, bytes, err);
    pthread_mutex_unlock(&self->mutex);
    if (status == FR_OK)
        request->handle = self; /* done: there is nothing to wait for */
    return status;
}

static fr_status tcp_irecv(fr_transport *transport, int64_t peer, int tag,
                           void *bytes, uint64_t n_bytes, fr_message *request,
                           fr_err *err)
{
    tcp_transport *self = (tcp_transport *)transport;
    tcp_message *l;

    FR_TRY_CALLOC(l, 1, err);
    *l = (tcp_message){
        .src = peer, .tag = tag, .n_bytes = n_bytes, .bytes = bytes};
    pthread_mutex_lock(&self->mutex);
    tcp_message *from = take(&self->arrived, peer, tag);
    if (from != NULL)
        deliver(l, from);
    else
        append(&self->awaited, l);
    pthread_mutex_unlock(&self->mutex);
    request->handle = l;
    return FR_OK;
}

static fr_status tcp_check(fr_transport *transport, fr_err *err)
{
    tcp_transport *self = (tcp_transport *)transport;

    pthread_mutex_lock(&self->mutex);
    fr_status status = drain(self, err);
    if (status == FR_OK && self->dead_rank >= 0)
        status = fail_dead(self, err);
    pthread_mutex_unlock(&self->mutex);
    return status;
}

/* Frees a message that was waited for, whether it has come or not. */
static void remove_message(tcp_transport *self, tcp_message *l)
{
    tcp_message **at = &self->awaited;

    while (*at != NULL && *at != l)
        at = &(*at)->next;
    if (*at != NULL)
        *at = l->next;
    free(l);
}

static fr_status tcp_test(fr_transport *transport, fr_message *request,
                          bool *is_done, fr_err *err)
{
    tcp_transport *self = (tcp_transport *)transport;
    tcp_message *l = request->handle;

    *is_done = true;
    if (l == NULL || request->handle == self) {
        request->handle = NULL;
        return FR_OK;
    }
    pthread_mutex_lock(&self->mutex);
    fr_status status = l->is_done ? FR_OK : drain(self, err);
    *is_done = l->is_done;
    if (status == FR_OK && !l->is_done && self->dead_rank >= 0)
        status = fail_dead(self, err);
    if (status != FR_OK || *is_done) {
        remove_message(self, l);
        request->handle = NULL;
    }
    pthread_mutex_unlock(&self->mutex);
    return status;
}

static fr_status tcp_probe(fr_transport *transport, int64_t peer, int tag,
                           bool *is_there, fr_err *err)
{
    tcp_transport *self = (tcp_transport *)transport;

    *is_there = false;
    pthread_mutex_lock(&self->mutex);
    fr_status status = drain(self, err);
    for (const tcp_message *l = self->arrived; l != NULL; l = l->next)
        *is_there = *is_there || (l->src == peer && l->tag == tag);
    pthread_mutex_unlock(&self->mutex);
    return status;
}

static void tcp_announce(fr_transport *transport, const char *text)
{
    tcp_transport *self = (tcp_transport *)transport;
    fr_tcp_head head = {.kind = FR_TCP_DEATH, .n_bytes = strlen(text)};
    fr_err ignored;

    pthread_mutex_lock(&self->mutex);
    forget_awaited(self);
    if (put_frame(self, head, text, &ignored) != FR_OK)
        self->dead_rank = 0;
    pthread_mutex_unlock(&self->mutex);
}

void fr_transport_tcp_drop(fr_transport *transport)
{
    tcp_transport *self = (tcp_transport *)transport;

    fr_transport_close_slabs(transport);
    forget_awaited(self);
    if (self->fd >= 0)
        (void)close(self->fd);
    fr_tcp_hub_destroy(self->hub);
    free_messages(self->arrived, true);
    free(self->payload);
    pthread_mutex_destroy(&self->mutex);
    fr_transport_release(transport);
    free(self);
}

static void tcp_destroy(fr_transport *transport)
{
    tcp_transport *self = (tcp_transport *)transport;
    fr_tcp_head leave = {.kind = FR_TCP_LEAVE};
    fr_err ignored;

    if (self->fd >= 0 && self->has_joined &&
        put_frame(self, leave, NULL, &ignored) != FR_OK)
        self->dead_rank = 0;
    fr_transport_tcp_drop(transport);
}

static const fr_transport_ops tcp_ops = {
    .name = "tcp",
    .destroy = tcp_destroy,
    .open_slab = fr_transport_open_private,
    .close_slab = fr_transport_close_slabs,
    .isend = tcp_isend,
    .irecv = tcp_irecv,
    .test = tcp_test,
    .probe = tcp_probe,
    .check = tcp_check,
    .announce = tcp_announce,
};

/* Tries every address once; -1: nobody listens there yet. */
static int dial(const struct addrinfo *list)
{
    for (const struct addrinfo *at = list; at != NULL; at = at->ai_next) {
        int is_on = 1;
        int fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC,
                        at->ai_protocol);
        if (fd < 0)
            continue;
        if (connect(fd, at->ai_addr, at->ai_addrlen) == 0) {
            (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &is_on,
                             sizeof is_on);
            return fd;
        }
        (void)close(fd);
    }
    return -1;
}

static fr_status call_hub(tcp_transport *self, const char *address, int port,
                          fr_err *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    double until_s = fr_clock_s() + self->base.timeout_s;
    char service[16];

    (void)snprintf(service, sizeof service, "%d", port);
    int code = getaddrinfo(address, service, &hints, &list);
    if (code != 0)
        return fr_fail(err, FR_FAILURE, "rank %lld: master address %s: %s",
                       (long long)self->base.rank, address, gai_strerror(code));
    while ((self->fd = dial(list)) < 0 && fr_clock_s() < until_s)
        fr_sleep_s(0.05);
    freeaddrinfo(list);
    if (self->fd < 0)
        return fr_fail(err, FR_FAILURE,
                       "rank %lld: nobody answers at %s:%d after %.3g s; is "
                       "rank 0 running?",
                       (long long)self->base.rank, address, port,
                       self->base.timeout_s);
    return FR_OK;
}

static fr_status open_hub(tcp_transport *self, int port, fr_err *err)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return fr_fail(err, FR_FAILURE, "no pair of sockets: %s",
                       strerror(errno));
    self->fd = pair[0];
    fr_status status = fr_tcp_hub_create(port, self->base.world, pair[1],
                                         self->base.timeout_s, &self->hub, err);
    if (status != FR_OK)
        (void)close(pair[1]);
    return status;
}

/* Waits until all ranks have joined. */
static fr_status wait_joined(tcp_transport *self, fr_err *err)
{
    fr_tcp_head hello = {.kind = FR_TCP_HELLO,
                         .tag = (int32_t)self->base.world};
    double until_s = fr_clock_s() + self->base.timeout_s;

    FR_TRY(put_frame(self, hello, NULL, err));
    for (;;) {
        struct pollfd polled = {.fd = self->fd, .events = POLLIN};
        FR_TRY(drain(self, err));
        if (self->has_joined)
            return FR_OK;
        if (fr_clock_s() > until_s)
            return fr_fail(err, FR_FAILURE,
                           "rank %lld: not all of %lld ranks have come after "
                           "%.3g s",
                           (long long)self->base.rank,
                           (long long)self->base.world, self->base.timeout_s);
        (void)poll(&polled, 1, 100);
    }
}

/* Nodes are machines, cut further by FORERUN_NODE_ID as MPI's are. */
static fr_status find_nodes(fr_transport *transport, fr_err *err)
{
    const char *id = getenv("FORERUN_NODE_ID");
    uint64_t node =
        fr_hash_text(id != NULL ? id : "", fr_measure_machine(NULL));

    return fr_transport_find_nodes(transport, node, err);
}

fr_status fr_transport_tcp_create(const char *address, int port, int64_t rank,
                                  int64_t world, double timeout_s,
                                  fr_transport **out, fr_err *err)
{
    tcp_transport *self;

    FR_TRY_CALLOC(self, 1, err);
    self->base.ops = &tcp_ops;
    self->base.timeout_s = timeout_s;
    self->fd = -1;
    self->dead_rank = -1;
    pthread_mutex_init(&self->mutex, NULL);
    fr_status status = fr_transport_init(&self->base, rank, world, err);
    if (status == FR_OK)
        status = rank == 0 ? open_hub(self, port, err)
                           : call_hub(self, address, port, err);
    if (status == FR_OK)
        status = wait_joined(self, err);
    if (status == FR_OK)
        status = find_nodes(&self->base, err);
    if (status != FR_OK) {
        tcp_destroy(&self->base);
        return status;
    }
    *out = &self->base;
    return FR_OK;
}
