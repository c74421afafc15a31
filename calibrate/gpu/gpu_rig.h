/*
 * gpu_rig.h: one rank's GPU while it is measured: streams, events and memory
 * that all benches of it share.  Everything goes through the tables of
 * gpu_driver.h; the thread that opened it makes all calls.  Once the device has
 * not ended something in time, with nothing under way that others could hold
 * up, it is given up, and every call fails.
 */
#ifndef FR_CALIBRATE_GPU_GPU_RIG_H
#define FR_CALIBRATE_GPU_GPU_RIG_H

#include "calibrate/gpu/gpu_guard.h"
#include "core/base/log.h"
#include "runtime/backend/gpu_driver.h"
#include "runtime/comm/transport.h"
#include "runtime/gpu_comm/gpu_links.h"
#include "spec/profile/profile.h"

typedef struct fr_gpu_rig {
    const fr_gpu_system *system; /* borrowed, like transport and log */
    const fr_gpu_driver *driver;
    fr_transport *transport;
    const fr_log *log;
    fr_gpu *gpu;
    fr_gpu_stream stream;      /* of kernels, like lane COMPUTE */
    fr_gpu_stream comm_stream; /* of communication at the same time */
    fr_gpu_event *begin, *end, *comm_begin, *comm_end; /* timed */
    fr_cuda_kernels *kernels;
    uint64_t kernels_bytes; /* of the device's memory, with a library's own */
    fr_cuda_step *step;     /* in the device's memory: all zero */
    unsigned char *arena;   /* operands, and what flushes the L2 */
    uint64_t arena_bytes;
    uint64_t flush_bytes; /* the first part of the arena: twice the L2 */
    unsigned char *host;  /* page-locked */
    uint64_t host_bytes;
    fr_gpu_guard *guard; /* holds `stream` */
    double bracket_s;    /* see profile.h; taken off by end() */
    double timeout_s;
    fr_gpu_links *links; /* that may fail while the host waits; NULL: none */
} fr_gpu_rig;

/*
 * On a device that is open; takes it (also on failure) and closes it with the
 * rig.  The arena has `wanted_bytes` behind its flush part, or what half of
 * the free memory allows.
 */
FR_CHECKED fr_status fr_gpu_rig_open(fr_gpu_rig *rig, uint64_t wanted_bytes,
                                     fr_err *err);
void fr_gpu_rig_close(fr_gpu_rig *rig);

/* FR_FAILURE: the device was given up. */
FR_CHECKED fr_status fr_gpu_rig_check(const fr_gpu_rig *rig, fr_err *err);

/* Bytes of the device that are in use, by whomever. */
FR_CHECKED fr_status fr_gpu_rig_used(const fr_gpu_rig *rig, uint64_t *out,
                                     fr_err *err);

/* The host waits until the device has passed the event, which was recorded. */
FR_CHECKED fr_status fr_gpu_rig_wait(const fr_gpu_rig *rig, fr_gpu_event *event,
                                     fr_err *err);
/* The same of an event that is recorded now. */
FR_CHECKED fr_status fr_gpu_rig_finish(const fr_gpu_rig *rig,
                                       fr_gpu_stream stream,
                                       fr_gpu_event *event, fr_err *err);

/* begin ... end on `stream`: what lies between the two is timed. */
FR_CHECKED fr_status fr_gpu_rig_begin(const fr_gpu_rig *rig, fr_err *err);
/* Waits; seconds without the bracket, > 0. */
FR_CHECKED fr_status fr_gpu_rig_end(const fr_gpu_rig *rig, double *out_s,
                                    fr_err *err);
/* Before begin(): stops the stream until the host waits for it, so that what is
 * enqueued meanwhile runs without waiting for the host.  release() lets it go
 * where it does not come to that. */
FR_CHECKED fr_status fr_gpu_rig_hold(const fr_gpu_rig *rig, fr_err *err);
void fr_gpu_rig_release(const fr_gpu_rig *rig);
/* After end(); FR_FAILURE: it could not be held until all was enqueued. */
FR_CHECKED fr_status fr_gpu_rig_check_held(const fr_gpu_rig *rig, fr_err *err);

/* Fills all of the arena with fresh numbers. */
FR_CHECKED fr_status fr_gpu_rig_refill(const fr_gpu_rig *rig, fr_err *err);

/* Nothing that was in the L2 is there afterwards. */
FR_CHECKED fr_status fr_gpu_rig_flush(const fr_gpu_rig *rig, fr_err *err);

/* The inputs of a kernel in addition to its instruction and operands. */
typedef struct fr_gpu_task {
    const fr_instr *instr;
    const fr_program *program; /* its plan, job */
    uint32_t i_stage;          /* and tensors */
    void *ptr[FR_INSTR_REFS];
} fr_gpu_task;

/* Enqueues it on the stream of kernels. */
FR_CHECKED fr_status fr_gpu_rig_launch(const fr_gpu_rig *rig,
                                       const fr_gpu_task *task, fr_err *err);
/* Seconds of it alone, > 0.  It and the events around it are enqueued before
 * the first of them begins, so that no wait for the host is counted. */
FR_CHECKED fr_status fr_gpu_rig_time(const fr_gpu_rig *rig,
                                     const fr_gpu_task *task, double *out_s,
                                     fr_err *err);
/* Lets it choose how it works; once for each shape. */
FR_CHECKED fr_status fr_gpu_rig_tune(const fr_gpu_rig *rig,
                                     const fr_gpu_task *task, fr_err *err);

/* Operands one behind the other in the arena, each at a multiple of 4096
 * bytes; false: they do not fit. */
bool fr_gpu_rig_place(const fr_gpu_rig *rig, const fr_instr *instr,
                      void *ptr[FR_INSTR_REFS]);

#endif
