/*
 * metrics_server.h: the numbers of the last step for Prometheus, over HTTP
 * (libmicrohttpd, in a thread of its own).
 */
#ifndef FR_CLI_WATCH_METRICS_SERVER_H
#define FR_CLI_WATCH_METRICS_SERVER_H

#include "report/run/metrics.h"

typedef struct fr_metrics_server fr_metrics_server;

/* "ADDR:PORT", ":PORT", "PORT" or "" (127.0.0.1:9464; an address in brackets is
 * one of IPv6).  FR_USAGE: it is none of these; FR_IO: the port is taken;
 * FR_FAILURE: this build has no libmicrohttpd.  The server begins with no
 * step. */
FR_CHECKED fr_status fr_metrics_server_create(const char *where,
                                              fr_metrics_server **out,
                                              fr_err *err);
void fr_metrics_server_destroy(fr_metrics_server *server); /* takes NULL */
/* From now on these are the numbers. */
void fr_metrics_server_show(fr_metrics_server *server,
                            const fr_metrics_state *state);

#endif
