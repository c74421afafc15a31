/*
 * transport_tcp_hub.c: the thread of rank 0 that hands messages on.  It never
 * blocks on one rank: what cannot be written yet waits in a list.
 */
#include "core/system/clock.h"
#include "runtime/comm/transport_tcp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define POLL_MS 100
#define MAX_FRAME_BYTES ((uint64_t)1 << 31)

/* A frame on its way out. */
typedef struct tcp_frame {
    struct tcp_frame *next;
    uint64_t n_bytes, n_written; /* head included */
    unsigned char bytes[];
} tcp_frame;

typedef struct connection {
    int fd;       /* -1: closed */
    int64_t rank; /* -1: has not said yet */
    bool has_left;
    fr_tcp_head head; /* of the frame that comes in ... */
    uint64_t n_read;  /* ... head included */
    tcp_frame *frame;
    tcp_frame *first, *last; /* going out */
} connection;

struct fr_tcp_hub {
    int64_t world, n_joined;
    int listener; /* -1: everybody is there */
    double timeout_s, until_s;
    connection *connections; /* [world]: own first, then as they come */
    int64_t n_connections;
    connection **connection_of_rank;
    struct pollfd *polled; /* [world + 1] */
    pthread_t thread;
    _Atomic int64_t stop_ns; /* rank 0 has left; 0: it is there */
};

static void close_connection(fr_tcp_hub *hub, connection *from);

static void send_frame(connection *to, const fr_tcp_head *head,
                       const void *bytes)
{
    tcp_frame *p =
        to->fd >= 0 ? malloc(sizeof *p + sizeof *head + head->n_bytes) : NULL;

    if (p == NULL)
        return; /* it will miss the message and say so */
    *p = (tcp_frame){.n_bytes = sizeof *head + head->n_bytes};
    memcpy(p->bytes, head, sizeof *head);
    if (bytes != NULL)
        memcpy(p->bytes + sizeof *head, bytes, head->n_bytes);
    if (to->first != NULL)
        to->last->next = p;
    else
        to->first = p;
    to->last = p;
}

static void tell_all(fr_tcp_hub *hub, const fr_tcp_head *head,
                     const void *bytes)
{
    for (int64_t i = 0; i < hub->n_connections; i++)
        if (hub->connections[i].rank != head->src)
            send_frame(&hub->connections[i], head, bytes);
}

static void drop_parcels(connection *of)
{
    while (of->first != NULL) {
        tcp_frame *p = of->first;
        of->first = p->next;
        free(p);
    }
    free(of->frame);
    of->frame = NULL;
}

static void close_connection(fr_tcp_hub *hub, connection *from)
{
    bool is_death = from->rank >= 0 && !from->has_left;

    (void)close(from->fd);
    from->fd = -1;
    drop_parcels(from);
    if (is_death) {
        fr_tcp_head head = {.kind = FR_TCP_DEATH, .src = (int32_t)from->rank};
        tell_all(hub, &head, NULL);
    }
}

/* Is it one of ours, and new? */
static bool join_rank(fr_tcp_hub *hub, connection *from)
{
    int64_t rank = from->head.src;

    if (from->head.kind != FR_TCP_HELLO || rank < 0 || rank >= hub->world ||
        from->head.n_bytes != 0 || from->head.tag != (int32_t)hub->world ||
        hub->connection_of_rank[rank] != NULL)
        return false;
    from->rank = rank;
    hub->connection_of_rank[rank] = from;
    if (++hub->n_joined < hub->world)
        return true;
    (void)close(hub->listener);
    hub->listener = -1;
    fr_tcp_head welcome = {.kind = FR_TCP_HELLO, .src = -1};
    tell_all(hub, &welcome, NULL);
    return true;
}

/* A frame is whole. */
static void handle(fr_tcp_hub *hub, connection *from)
{
    const fr_tcp_head *head = &from->head;
    const unsigned char *bytes =
        from->frame != NULL ? from->frame->bytes : NULL;

    if (from->rank < 0) {
        if (!join_rank(hub, from))
            close_connection(hub, from);
        return;
    }
    if (head->kind == FR_TCP_LEAVE) {
        from->has_left = true;
    } else if (head->kind == FR_TCP_DEATH) {
        from->has_left = true; /* it has said why */
        tell_all(hub, head, bytes);
    } else if (head->dst >= 0 && head->dst < hub->world &&
               hub->connection_of_rank[head->dst] != NULL) {
        send_frame(hub->connection_of_rank[head->dst], head, bytes);
    }
    free(from->frame);
    from->frame = NULL;
}

/* Reads what is there; false: the connection is over. */
static bool read_some(fr_tcp_hub *hub, connection *from)
{
    const uint64_t n_head = sizeof from->head;
    unsigned char *into = (unsigned char *)&from->head + from->n_read;
    uint64_t n_wanted = n_head - from->n_read;

    if (from->n_read >= n_head) {
        into = from->frame->bytes + (from->n_read - n_head);
        n_wanted = n_head + from->head.n_bytes - from->n_read;
    }
    ssize_t n = recv(from->fd, into, n_wanted, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n <= 0)
        return false;
    from->n_read += (uint64_t)n;
    if (from->n_read == n_head && from->head.n_bytes > 0) {
        if (from->rank < 0 || from->head.n_bytes > MAX_FRAME_BYTES)
            return false;
        from->frame = malloc(sizeof *from->frame + from->head.n_bytes);
        return from->frame != NULL;
    }
    if (from->n_read >= n_head && from->n_read == n_head + from->head.n_bytes) {
        from->n_read = 0;
        handle(hub, from);
    }
    return true;
}

static bool write_some(connection *to)
{
    while (to->first != NULL) {
        tcp_frame *p = to->first;
        ssize_t n =
            send(to->fd, p->bytes + p->n_written, p->n_bytes - p->n_written,
                 MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        p->n_written += (uint64_t)n;
        if (p->n_written < p->n_bytes)
            return true;
        to->first = p->next;
        free(p);
    }
    return true;
}

static void accept_one(fr_tcp_hub *hub)
{
    int fd = accept(hub->listener, NULL, NULL);
    int is_on = 1;

    if (fd < 0)
        return;
    connection *slot = NULL;
    for (int64_t i = 0; i < hub->n_connections && slot == NULL; i++)
        if (hub->connections[i].fd < 0 && hub->connections[i].rank < 0)
            slot = &hub->connections[i]; /* of a stranger who left */
    if (slot == NULL && hub->n_connections < hub->world)
        slot = &hub->connections[hub->n_connections++];
    if (slot == NULL) {
        (void)close(fd);
        return;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &is_on, sizeof is_on);
    *slot = (connection){.fd = fd, .rank = -1};
}

static nfds_t list_polled(fr_tcp_hub *hub)
{
    nfds_t n = 0;

    for (int64_t i = 0; i < hub->n_connections; i++) {
        short events =
            hub->connections[i].first != NULL ? POLLIN | POLLOUT : POLLIN;
        hub->polled[n++] =
            (struct pollfd){.fd = hub->connections[i].fd, .events = events};
    }
    if (hub->listener >= 0)
        hub->polled[n++] =
            (struct pollfd){.fd = hub->listener, .events = POLLIN};
    return n;
}

/* Everybody came and went, or the time to come is over. */
static bool is_over(const fr_tcp_hub *hub)
{
    int64_t stop_ns = atomic_load(&hub->stop_ns);

    if (hub->n_joined < hub->world)
        return stop_ns > 0 || fr_clock_s() > hub->until_s;
    if (stop_ns > 0 &&
        (double)(fr_clock_ns() - stop_ns) * 1e-9 > hub->timeout_s)
        return true; /* a rank that has not left by now hangs */
    for (int64_t i = 0; i < hub->n_connections; i++)
        if (hub->connections[i].fd >= 0)
            return false;
    return true;
}

static void *serve(void *context)
{
    fr_tcp_hub *hub = context;

    while (!is_over(hub)) {
        nfds_t n = list_polled(hub);
        int64_t n_connections = hub->n_connections;
        bool is_listening = hub->listener >= 0;
        if (poll(hub->polled, n, POLL_MS) <= 0)
            continue;
        for (int64_t i = 0; i < n_connections; i++) {
            connection *at = &hub->connections[i];
            short seen = hub->polled[i].revents;
            bool is_well = at->fd >= 0;
            if (is_well && seen & POLLOUT)
                is_well = write_some(at);
            if (is_well && seen & (POLLIN | POLLHUP | POLLERR))
                is_well = read_some(hub, at);
            if (!is_well && at->fd >= 0)
                close_connection(hub, at);
        }
        if (is_listening && hub->listener >= 0 &&
            hub->polled[n - 1].revents & POLLIN)
            accept_one(hub);
    }
    return NULL;
}

static fr_status listen_on(fr_tcp_hub *hub, int port, fr_err *err)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6,
                                   .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in old = {.sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port)};
    int is_on = 1, is_off = 0;

    /* One socket accepts IPv4 and IPv6 where the kernel has IPv6. */
    hub->listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_new = hub->listener >= 0;
    if (!is_new)
        hub->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(hub->listener, SOL_SOCKET, SO_REUSEADDR, &is_on,
                     sizeof is_on);
    if (is_new)
        (void)setsockopt(hub->listener, IPPROTO_IPV6, IPV6_V6ONLY, &is_off,
                         sizeof is_off);
    const struct sockaddr *at = is_new
                                    ? (const struct sockaddr *)(void *)&address
                                    : (const struct sockaddr *)(void *)&old;
    if (hub->listener < 0 ||
        bind(hub->listener, at, is_new ? sizeof address : sizeof old) != 0 ||
        listen(hub->listener, 1024) != 0)
        return fr_fail(err, FR_FAILURE,
                       "rank 0 cannot listen on port %d: %s; set MASTER_PORT "
                       "to a free one",
                       port, strerror(errno));
    return FR_OK;
}

static void release(fr_tcp_hub *hub)
{
    for (int64_t i = 0; hub->connections != NULL && i < hub->n_connections;
         i++) {
        drop_parcels(&hub->connections[i]);
        if (hub->connections[i].fd >= 0)
            (void)close(hub->connections[i].fd);
    }
    if (hub->listener >= 0)
        (void)close(hub->listener);
    free(hub->connections);
    free((void *)hub->connection_of_rank);
    free(hub->polled);
    free(hub);
}

fr_status fr_tcp_hub_create(int port, int64_t world, int own_fd,
                            double timeout_s, fr_tcp_hub **out, fr_err *err)
{
    fr_tcp_hub *hub = calloc(1, sizeof *hub);
    size_t n = (size_t)world;

    if (hub == NULL)
        return fr_fail_no_memory(err);
    hub->world = world;
    hub->listener = -1;
    hub->timeout_s = timeout_s;
    hub->until_s = fr_clock_s() + timeout_s;
    hub->connections = calloc(n, sizeof *hub->connections);
    hub->connection_of_rank = calloc(n, sizeof(connection *));
    hub->polled = calloc(n + 1, sizeof *hub->polled);
    fr_status status = hub->connections != NULL &&
                               hub->connection_of_rank != NULL &&
                               hub->polled != NULL
                           ? listen_on(hub, port, err)
                           : fr_fail_no_memory(err);
    if (status == FR_OK) {
        hub->connections[hub->n_connections++] =
            (connection){.fd = own_fd, .rank = -1};
        if (pthread_create(&hub->thread, NULL, serve, hub) != 0) {
            hub->n_connections = 0;
            status = fr_fail(err, FR_FAILURE, "no thread for the ranks' hub");
        }
    }
    if (status != FR_OK) {
        release(hub);
        return status;
    }
    *out = hub;
    return FR_OK;
}

void fr_tcp_hub_destroy(fr_tcp_hub *hub)
{
    if (hub == NULL)
        return;
    atomic_store(&hub->stop_ns, fr_clock_ns());
    (void)pthread_join(hub->thread, NULL);
    release(hub);
}
