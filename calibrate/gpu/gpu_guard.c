/* gpu_guard.c: see gpu_guard.h. */
#include "calibrate/gpu/gpu_guard.h"

#include "core/system/clock.h"

#include <pthread.h>

/* Nothing that is held takes the host nearly as long. */
static const int64_t longest_ns = 1000000000;
static const double look_s = 0.02;
enum { MOST_FORCED = 3 };

struct fr_gpu_guard {
    const fr_gpu_driver *driver;
    fr_gpu *gpu;
    pthread_mutex_t mutex;
    pthread_t thread;
    bool has_thread, should_stop;
    /* A held stream waits until n_opened reaches the number that n_closed had
     * when it was held. */
    uint32_t *n_opened; /* page-locked: the device reads it */
    uint32_t n_closed;
    int64_t closed_ns; /* 0: it is open */
    bool is_forced;
    int n_forced;
    bool has_given_up;
};

/* The mutex is locked. */
static void open_now(fr_gpu_guard *guard)
{
    __atomic_store_n(guard->n_opened, guard->n_closed, __ATOMIC_RELEASE);
    guard->closed_ns = 0;
}

/* Asks nothing of the device: the other thread may be blocked in a call to
 * it. */
static void *watch(void *context)
{
    fr_gpu_guard *guard = context;
    bool should_stop = false;

    while (!should_stop) {
        fr_sleep_s(look_s);
        (void)pthread_mutex_lock(&guard->mutex);
        if (guard->closed_ns != 0 &&
            fr_clock_ns() - guard->closed_ns > longest_ns) {
            open_now(guard);
            guard->is_forced = true;
            guard->n_forced++;
        }
        should_stop = guard->should_stop;
        (void)pthread_mutex_unlock(&guard->mutex);
    }
    return NULL;
}

static fr_status prepare(fr_gpu_guard *guard, fr_err *err)
{
    void *memory = NULL;

    FR_TRY(guard->driver->alloc_host(guard->gpu, sizeof *guard->n_opened,
                                     &memory, err));
    guard->n_opened = memory;
    *guard->n_opened = 0;
    if (pthread_create(&guard->thread, NULL, watch, guard) != 0)
        return fr_fail(err, FR_FAILURE, "no thread for what is held");
    guard->has_thread = true;
    return FR_OK;
}

fr_status fr_gpu_guard_create(const fr_gpu_driver *driver, fr_gpu *gpu,
                              fr_gpu_guard **out, fr_err *err)
{
    fr_gpu_guard *guard;

    FR_TRY_CALLOC(guard, 1, err);
    guard->driver = driver;
    guard->gpu = gpu;
    (void)pthread_mutex_init(&guard->mutex, NULL);
    fr_status status = prepare(guard, err);
    if (status != FR_OK) {
        fr_gpu_guard_destroy(guard);
        return status;
    }
    *out = guard;
    return FR_OK;
}

void fr_gpu_guard_destroy(fr_gpu_guard *guard)
{
    if (guard == NULL)
        return;
    (void)pthread_mutex_lock(&guard->mutex);
    guard->should_stop = true;
    (void)pthread_mutex_unlock(&guard->mutex);
    if (guard->has_thread)
        (void)pthread_join(guard->thread, NULL);
    guard->driver->free_host(guard->gpu, guard->n_opened);
    (void)pthread_mutex_destroy(&guard->mutex);
    free(guard);
}

fr_status fr_gpu_guard_hold(fr_gpu_guard *guard, fr_gpu_stream stream,
                            fr_err *err)
{
    (void)pthread_mutex_lock(&guard->mutex);
    bool is_useful = guard->n_forced < MOST_FORCED;
    guard->is_forced = false;
    if (is_useful) {
        guard->n_closed++;
        guard->closed_ns = fr_clock_ns();
    }
    (void)pthread_mutex_unlock(&guard->mutex);
    if (!is_useful)
        return FR_OK;
    fr_status status = guard->driver->await(guard->gpu, stream, guard->n_opened,
                                            guard->n_closed, err);
    if (status != FR_OK)
        fr_gpu_guard_open(guard);
    return status;
}

void fr_gpu_guard_open(fr_gpu_guard *guard)
{
    (void)pthread_mutex_lock(&guard->mutex);
    open_now(guard);
    (void)pthread_mutex_unlock(&guard->mutex);
}

bool fr_gpu_guard_was_forced(fr_gpu_guard *guard)
{
    (void)pthread_mutex_lock(&guard->mutex);
    bool is_forced = guard->is_forced;
    (void)pthread_mutex_unlock(&guard->mutex);
    return is_forced;
}

void fr_gpu_guard_give_up(fr_gpu_guard *guard)
{
    guard->has_given_up = true;
    guard->driver->abandon(guard->gpu);
}

bool fr_gpu_guard_has_given_up(const fr_gpu_guard *guard)
{
    return guard->has_given_up;
}
