/*
 * gpu_links.h: how the communication instructions of a rank reach the others:
 * through communicators of the system's library (gpu_links_comm.c), or, where
 * several ranks share a device, staged through the host and this rank's
 * transport (gpu_links_host.c).
 *
 * Whatever the way: enqueue() is asynchronous and in the order of its stream,
 * and what goes wrong later is found by check().
 */
#ifndef FR_RUNTIME_GPU_COMM_GPU_LINKS_H
#define FR_RUNTIME_GPU_COMM_GPU_LINKS_H

#include "runtime/backend/gpu_driver.h"
#include "runtime/comm/transport.h"
#include "runtime/gpu_comm/gpu_groups.h"
#include "runtime/run/run.h"

/* The data that both kinds of links use; all are borrowed. */
typedef struct fr_gpu_place {
    const fr_gpu_system *system;
    fr_gpu *gpu;
    fr_transport *transport;
    const fr_program *program;
    unsigned char *slab; /* the rank's, in the memory of the device */
    bool is_estimated;   /* ask the library what it expects of collectives */
    double timeout_s;
} fr_gpu_place;

typedef struct fr_gpu_links fr_gpu_links;

typedef struct fr_gpu_links_ops {
    bool is_capturable; /* enqueued work may become part of a graph */
    void (*destroy)(fr_gpu_links *links);
    /* Operands in the slab; dst of SEND and src of RECV are NULL. */
    fr_status (*enqueue)(fr_gpu_links *links, uint32_t i_instr, fr_lane lane,
                         void *src, void *dst, fr_gpu_stream stream,
                         fr_err *err);
    fr_status (*check)(fr_gpu_links *links, fr_err *err);
    /* Tells neighbours how many collectives of (axis, lane) this rank has
     * begun since the run's begin; may be NULL. */
    void (*publish)(fr_gpu_links *links, fr_axis axis, fr_lane lane,
                    uint64_t n_begun);
    /* The rank that an instruction under way waits for, -1: not known. */
    int64_t (*waits_for)(fr_gpu_links *links, uint32_t i_instr, fr_lane lane);
    /* The collectives of a step: how many there are; out may be NULL.  NULL:
     * there is no library to ask. */
    size_t (*describe)(fr_gpu_links *links, fr_collective_note *out);
    /* Ends all that is under way; only destroy() may follow. */
    void (*abort)(fr_gpu_links *links);
} fr_gpu_links_ops;

struct fr_gpu_links {
    const fr_gpu_links_ops *ops;
    fr_gpu_place place;
    fr_gpu_groups groups;
};

/* Collective over all ranks; connections are made, and have carried
 * something, when they return. */
FR_CHECKED fr_status fr_gpu_links_comm_create(const fr_gpu_place *place,
                                              fr_gpu_links **out, fr_err *err);
/* The transport's slab is open and as large as the device's: its mirror. */
FR_CHECKED fr_status fr_gpu_links_host_create(const fr_gpu_place *place,
                                              fr_gpu_links **out, fr_err *err);
void fr_gpu_links_destroy(fr_gpu_links *links); /* takes NULL */

#endif
