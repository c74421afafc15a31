/* metrics_microhttpd.c: see metrics_server.h. */
#include "cli/watch/metrics_server.h"

#ifdef FR_HAVE_MICROHTTPD

#include "core/base/units.h"

#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DEFAULT_ADDRESS "127.0.0.1"
#define DEFAULT_PORT "9464" /* OpenTelemetry's for Prometheus */
#define MOST_CLIENTS 16
#define CLIENT_S 5 /* before one that says nothing is sent away */

struct fr_metrics_server {
    struct MHD_Daemon *daemon;
    pthread_mutex_t lock; /* of what follows */
    fr_metrics_state state;
};

static enum MHD_Result send_text(struct MHD_Connection *connection,
                                 unsigned code, const char *type,
                                 const fr_buffer *text)
{
    /* It does not write through the pointer of what it copies. */
    struct MHD_Response *response = MHD_create_response_from_buffer(
        text->n, text->data, MHD_RESPMEM_MUST_COPY);

    if (response == NULL)
        return MHD_NO;
    (void)MHD_add_response_header(response, "Content-Type", type);
    enum MHD_Result result = MHD_queue_response(connection, code, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result answer(void *context, struct MHD_Connection *connection,
                              const char *url, const char *method,
                              const char *version, const char *body,
                              size_t *n_body, void **state)
{
    fr_metrics_server *server = context;
    fr_buffer text;
    bool is_read = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    bool is_there = strcmp(url, "/metrics") == 0 || strcmp(url, "/") == 0;

    (void)version, (void)body, (void)state;
    *n_body = 0;
    fr_buffer_init(&text);
    if (!is_read)
        fr_buffer_puts(&text, "GET /metrics\n");
    else if (!is_there)
        fr_buffer_puts(&text, "the numbers are at /metrics\n");
    else {
        (void)pthread_mutex_lock(&server->lock);
        fr_metrics_state now = server->state;
        (void)pthread_mutex_unlock(&server->lock);
        fr_metrics_text(&now, &text);
    }
    enum MHD_Result result = MHD_NO;
    if (text.data != NULL)
        result = send_text(connection,
                           !is_read    ? MHD_HTTP_METHOD_NOT_ALLOWED
                           : !is_there ? MHD_HTTP_NOT_FOUND
                                       : MHD_HTTP_OK,
                           "text/plain; version=0.0.4; charset=utf-8", &text);
    fr_buffer_release(&text);
    return result;
}

/* Cuts "[::1]:9464" and its kin into two; what is left out is the default. */
static fr_status cut_place(const char *where, char *host, size_t n_host,
                           char *port, size_t n_port, fr_err *err)
{
    const char *colon = strrchr(where, ':');
    const char *number = colon != NULL ? colon + 1 : where;
    size_t n = colon != NULL ? (size_t)(colon - where) : 0;
    int64_t value = 0;

    if (n >= 2 && where[0] == '[' && where[n - 1] == ']') {
        where++;
        n -= 2;
    }
    if (number[0] == '\0' && colon == NULL)
        number = DEFAULT_PORT;
    if (n >= n_host || strlen(number) >= n_port ||
        fr_parse_i64(number, &value, NULL) != FR_OK || value < 1 ||
        value > 65535)
        return fr_fail(err, FR_USAGE,
                       "--prometheus %.80s: write ADDR:PORT, such as "
                       "127.0.0.1:9464",
                       where);
    (void)snprintf(host, n_host, "%.*s", (int)n, where);
    if (n == 0)
        (void)snprintf(host, n_host, "%s", DEFAULT_ADDRESS);
    (void)snprintf(port, n_port, "%s", number);
    return FR_OK;
}

/* A socket that listens there. */
static fr_status listen_at(const char *host, const char *port, int *out,
                           fr_err *err)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    const int on = 1;

    int code = getaddrinfo(host, port, &hints, &found);
    if (code != 0)
        return fr_fail(err, FR_IO, "--prometheus %s:%s: %s", host, port,
                       gai_strerror(code));
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    bool is_open = fd >= 0 &&
                   bind(fd, found->ai_addr, found->ai_addrlen) == 0 &&
                   listen(fd, MOST_CLIENTS) == 0;
    code = errno;
    freeaddrinfo(found);
    if (is_open) {
        *out = fd;
        return FR_OK;
    }
    if (fd >= 0)
        (void)close(fd);
    return fr_fail(err, FR_IO, "--prometheus %s:%s: %s%s", host, port,
                   strerror(code),
                   code == EADDRINUSE ? "; choose another port" : "");
}

fr_status fr_metrics_server_create(const char *where, fr_metrics_server **out,
                                   fr_err *err)
{
    char host[256], port[16];
    fr_metrics_server *server;
    int fd = -1;

    FR_TRY(cut_place(where, host, sizeof host, port, sizeof port, err));
    FR_TRY(listen_at(host, port, &fd, err));
    server = calloc(1, sizeof *server);
    if (server == NULL) {
        (void)close(fd);
        return fr_fail_no_memory(err);
    }
    (void)pthread_mutex_init(&server->lock, NULL);
    server->daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO, 0, NULL, NULL, answer,
        server, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)MOST_CLIENTS, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)CLIENT_S, MHD_OPTION_END);
    if (server->daemon == NULL) {
        (void)close(fd);
        fr_metrics_server_destroy(server);
        return fr_fail(err, FR_FAILURE, "--prometheus: no server can be begun");
    }
    *out = server;
    return FR_OK;
}

void fr_metrics_server_destroy(fr_metrics_server *server)
{
    if (server == NULL)
        return;
    if (server->daemon != NULL)
        MHD_stop_daemon(server->daemon);
    (void)pthread_mutex_destroy(&server->lock);
    free(server);
}

void fr_metrics_server_show(fr_metrics_server *server,
                            const fr_metrics_state *state)
{
    (void)pthread_mutex_lock(&server->lock);
    server->state = *state;
    (void)pthread_mutex_unlock(&server->lock);
}

#else

fr_status fr_metrics_server_create(const char *where, fr_metrics_server **out,
                                   fr_err *err)
{
    (void)where, (void)out;
    return fr_fail(err, FR_FAILURE,
                   "--prometheus: this forerun was built without "
                   "libmicrohttpd; apt-get install libmicrohttpd-dev and "
                   "make again");
}

void fr_metrics_server_destroy(fr_metrics_server *server)
{
    (void)server;
}

void fr_metrics_server_show(fr_metrics_server *server,
                            const fr_metrics_state *state)
{
    (void)server, (void)state;
}

#endif
