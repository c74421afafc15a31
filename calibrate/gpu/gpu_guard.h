/*
 * gpu_guard.h: holds a stream while work for it is enqueued, and never for
 * ever.
 *
 * A held stream waits for a word of page-locked memory.  Where launches wait
 * for the device (CUDA_LAUNCH_BLOCKING, a sanitizer or profiler that runs
 * kernels one by one, a queue that is full) the host would never come to write
 * it: a thread writes it after a second.  A device that never answers is given
 * up, and remembered.  The thread that created the guard makes all calls.
 */
#ifndef FR_CALIBRATE_GPU_GPU_GUARD_H
#define FR_CALIBRATE_GPU_GPU_GUARD_H

#include "runtime/backend/gpu_driver.h"

typedef struct fr_gpu_guard fr_gpu_guard;

/* Borrows both. */
FR_CHECKED fr_status fr_gpu_guard_create(const fr_gpu_driver *driver,
                                         fr_gpu *gpu, fr_gpu_guard **out,
                                         fr_err *err);
/* Takes NULL; open, and after the streams that it has held. */
void fr_gpu_guard_destroy(fr_gpu_guard *guard);

/* Stops the stream until open().  Does nothing once the thread has had to open
 * a few: here all launches wait. */
FR_CHECKED fr_status fr_gpu_guard_hold(fr_gpu_guard *guard,
                                       fr_gpu_stream stream, fr_err *err);
void fr_gpu_guard_open(fr_gpu_guard *guard);
/* Had the thread to open what was held last?  Then it ran while the host was
 * still enqueuing. */
bool fr_gpu_guard_was_forced(fr_gpu_guard *guard);

/* The device may never answer again: what would wait for it does nothing from
 * now on (fr_gpu_driver.abandon). */
void fr_gpu_guard_give_up(fr_gpu_guard *guard);
bool fr_gpu_guard_has_given_up(const fr_gpu_guard *guard);

#endif
