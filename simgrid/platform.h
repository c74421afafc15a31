/*
 * platform.h: a network of hosts and links as SimGrid writes it (platform XML,
 * version 4 and 4.1), with the routes that SimGrid 3.32 would take.
 *
 * Read: zone with routing Full, Floyd, Dijkstra, DijkstraCache, None, Cluster
 * (host_link, backbone); nested zones with zoneRoute; host, router, link
 * (SHARED, FATPIPE, SPLITDUPLEX), route, cluster (FLAT, TORUS, FAT_TREE,
 * DRAGONFLY, loopback, limiter, backbone).  Traces, bypasses, wireless and
 * coordinates are refused: "path:line: ...".  Units follow SimGrid's grammar;
 * a number without a unit is bytes per second, seconds or flop/s.
 */
#ifndef FR_SIMGRID_PLATFORM_H
#define FR_SIMGRID_PLATFORM_H

#include "core/base/vec.h"

typedef struct fr_platform fr_platform;

typedef struct fr_platform_link {
    const char *id; /* a SPLITDUPLEX one is two: id_UP and id_DOWN */
    double bandwidth_Bps;
    double latency_s;
    bool is_fatpipe; /* caps each flow by itself, is not shared */
} fr_platform_link;

/* The links from one host to another in order, one may stand twice. */
typedef struct fr_platform_path {
    fr_vec(uint32_t) links;
    double latency_s; /* of all links together */
} fr_platform_path;

/* FR_IO, FR_INPUT "path:line: what; the mend", FR_NO_MEMORY. */
FR_CHECKED fr_status fr_platform_load(const char *path, fr_platform **out,
                                      fr_err *err);
/* The same from text; `name` stands in messages. */
FR_CHECKED fr_status fr_platform_parse(const char *name, const char *text,
                                       size_t n_text, fr_platform **out,
                                       fr_err *err);
void fr_platform_destroy(fr_platform *platform); /* takes NULL */

size_t fr_platform_n_links(const fr_platform *platform);
const fr_platform_link *fr_platform_link_at(const fr_platform *platform,
                                            uint32_t i_link);

/* Hosts in file order: index in [0, n) to what fr_platform_route takes. */
size_t fr_platform_n_hosts(const fr_platform *platform);
int64_t fr_platform_host_at(const fr_platform *platform, size_t i);
const char *fr_platform_host_id(const fr_platform *platform, int64_t host);

/* -1 when there is no such host; the nearest name, NULL if none is near. */
int64_t fr_platform_host_find(const fr_platform *platform, const char *id);
const char *fr_platform_host_nearest(const fr_platform *platform,
                                     const char *id);

/*
 * The route between two hosts; path->links keep their memory from call to
 * call, the caller releases them.
 * FR_INPUT "no route from 'a' to 'b'".  Keeps tables of shortest paths: not
 * for several threads at once.
 */
FR_CHECKED fr_status fr_platform_route(fr_platform *platform, int64_t src,
                                       int64_t dst, fr_platform_path *path,
                                       fr_err *err);

#endif
