/*
 * gpu_links_host.c: communication staged through the host: for tests in which
 * several ranks share a device, which NCCL refuses.
 *
 * The transport's slab mirrors the device's.  An operand is copied to its
 * place there, a thread carries the instruction out on the mirror with the
 * CPU backend's engine, and the result is copied back: the stream marks a
 * word when the operand is there and waits for another until the result is.
 */
#include "core/base/clock.h"
#include "runtime/comm/collective_engine.h"
#include "runtime/gpu_comm/gpu_links.h"
#include "runtime/kernels_cpu/kernels_cpu.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Communications of a lane that are enqueued and not done: a ring. */
#define MAX_OPEN 4096

typedef struct host_post {
    uint32_t i_instr;
    void *src, *dst; /* in the mirror */
} host_post;

/* One lane; the words are page-locked, each counts this lane's posts. */
typedef struct host_lane {
    host_post posts[MAX_OPEN];
    _Atomic uint32_t n_posted; /* by the caller */
    uint32_t n_done;           /* by the thread */
    bool is_started;
    uint32_t *ready, *done; /* words */
} host_lane;

typedef struct host_links {
    fr_gpu_links base;
    fr_engine *engine;
    host_lane lanes[FR_LANE_N];
    uint32_t *words;
    bool is_locked; /* the mirror is page-locked */
    pthread_t thread;
    bool has_thread;
    _Atomic bool should_stop, has_failed;
    fr_err err; /* valid once has_failed */
} host_links;

static uint32_t read_word(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static fr_status progress(host_links *self, fr_lane lane, bool *has_moved,
                          fr_err *err)
{
    host_lane *own = &self->lanes[lane];
    bool is_done = false, has_gone_on = false;

    if (own->n_done ==
            atomic_load_explicit(&own->n_posted, memory_order_acquire) ||
        (int32_t)(read_word(own->ready) - own->n_done) <= 0)
        return FR_OK;
    const host_post *post = &own->posts[own->n_done % MAX_OPEN];
    if (!own->is_started)
        fr_engine_start(self->engine, post->i_instr, post->src, post->dst);
    own->is_started = true;
    FR_TRY(fr_engine_progress(self->engine, lane, &is_done, &has_gone_on, err));
    *has_moved = *has_moved || has_gone_on || is_done;
    if (is_done) {
        own->is_started = false;
        own->n_done++;
        __atomic_store_n(own->done, own->n_done, __ATOMIC_RELEASE);
    }
    return FR_OK;
}

static fr_status serve(host_links *self, fr_err *err)
{
    fr_transport *transport = self->base.place.transport;
    fr_waiter waiter;

    fr_waiter_init(&waiter,
                   &transport->control[transport->rank]->bell[FR_BELL_COMM]);
    waiter.sleep_ns = 50000;
    while (!atomic_load_explicit(&self->should_stop, memory_order_acquire)) {
        bool has_moved = false;
        for (int lane = 0; lane < FR_LANE_N; lane++)
            FR_TRY(progress(self, (fr_lane)lane, &has_moved, err));
        if (has_moved)
            fr_waiter_reset(&waiter);
        else
            fr_waiter_pause(&waiter);
    }
    return FR_OK;
}

static void *host_main(void *context)
{
    host_links *self = context;

    fr_kernels_cpu_set_threads(1);
    if (serve(self, &self->err) != FR_OK)
        atomic_store_explicit(&self->has_failed, true, memory_order_release);
    return NULL;
}

static fr_status host_check(fr_gpu_links *links, fr_err *err)
{
    host_links *self = (host_links *)links;

    if (!atomic_load_explicit(&self->has_failed, memory_order_acquire))
        return FR_OK;
    if (err != NULL)
        *err = self->err;
    return self->err.status;
}

static int64_t host_waits_for(fr_gpu_links *links, uint32_t i_instr,
                              fr_lane lane)
{
    const fr_gpu_route *route = &links->groups.routes[i_instr];

    if (route->peer_rank >= 0)
        return route->peer_rank;
    return fr_engine_waits_for(((host_links *)links)->engine, lane);
}

static void stop(host_links *self)
{
    if (!self->has_thread)
        return;
    atomic_store_explicit(&self->should_stop, true, memory_order_release);
    (void)pthread_join(self->thread, NULL);
    self->has_thread = false;
}

/* Lets the streams go that wait for what will not come. */
static void host_abort(fr_gpu_links *links)
{
    host_links *self = (host_links *)links;

    stop(self);
    for (int lane = 0; lane < FR_LANE_N; lane++)
        __atomic_store_n(self->lanes[lane].done,
                         atomic_load(&self->lanes[lane].n_posted),
                         __ATOMIC_RELEASE);
}

static void host_destroy(fr_gpu_links *links)
{
    host_links *self = (host_links *)links;
    const fr_gpu_place *place = &links->place;
    const fr_gpu_driver *driver = place->system->driver;

    stop(self);
    if (self->is_locked)
        driver->unlock_host(place->gpu,
                            place->transport->slab[place->transport->rank]);
    driver->free_host(place->gpu, self->words);
    fr_engine_destroy(self->engine);
    fr_gpu_groups_release(&links->groups);
    free(self);
}

static void *mirror_of(const fr_gpu_place *place, const void *memory)
{
    unsigned char *mirror = place->transport->slab[place->transport->rank];

    return memory != NULL
               ? mirror + ((const unsigned char *)memory - place->slab)
               : NULL;
}

/* Bytes that an operand spans on this rank. */
static uint64_t operand_bytes(const fr_gpu_links *links, uint32_t i_instr,
                              bool is_src)
{
    const fr_instr *instr = &links->place.program->instrs[i_instr];
    uint64_t n = (uint64_t)instr->comm.n;
    uint64_t g = (uint64_t)links->groups.routes[i_instr].n_group;
    bool is_part =
        instr->op == (is_src ? FR_OP_ALL_GATHER : FR_OP_REDUCE_SCATTER);

    return (is_part ? n / g : n) * fr_dtype_bytes((fr_dtype)instr->dtype);
}

static fr_status copy_in(host_links *self, uint32_t i_instr, void *memory,
                         bool is_src, fr_gpu_stream stream, fr_err *err)
{
    const fr_gpu_place *place = &self->base.place;
    void *mirror = mirror_of(place, memory);
    uint64_t n_bytes = operand_bytes(&self->base, i_instr, is_src);

    if (memory == NULL || n_bytes == 0)
        return FR_OK;
    return place->system->driver->copy(place->gpu, stream,
                                       is_src ? mirror : memory,
                                       is_src ? memory : mirror, n_bytes, err);
}

static fr_status host_enqueue(fr_gpu_links *links, uint32_t i_instr,
                              fr_lane lane, void *src, void *dst,
                              fr_gpu_stream stream, fr_err *err)
{
    host_links *self = (host_links *)links;
    const fr_gpu_place *place = &links->place;
    const fr_gpu_driver *driver = place->system->driver;
    host_lane *own = &self->lanes[lane];
    uint32_t number =
        atomic_load_explicit(&own->n_posted, memory_order_relaxed);

    while (number - read_word(own->done) >= MAX_OPEN) {
        FR_TRY(host_check(links, err));
        fr_sleep_s(1e-4);
    }
    own->posts[number % MAX_OPEN] =
        (host_post){i_instr, mirror_of(place, src != NULL ? src : dst),
                    mirror_of(place, dst != NULL ? dst : src)};
    FR_TRY(copy_in(self, i_instr, src, true, stream, err));
    FR_TRY(driver->mark(place->gpu, stream, own->ready, number + 1, err));
    atomic_store_explicit(&own->n_posted, number + 1, memory_order_release);
    FR_TRY(driver->await(place->gpu, stream, own->done, number + 1, err));
    return copy_in(self, i_instr, dst, false, stream, err);
}

static fr_status prepare(host_links *self, fr_err *err)
{
    const fr_gpu_place *place = &self->base.place;
    const fr_gpu_driver *driver = place->system->driver;
    fr_transport *transport = place->transport;
    enum { WORDS_PER_LINE = 16 };
    size_t n_bytes = (size_t)2 * FR_LANE_N * WORDS_PER_LINE * sizeof(uint32_t);
    void *words = NULL;

    FR_TRY(fr_gpu_groups_init(place->program, transport->rank,
                              &self->base.groups, err));
    FR_TRY(driver->alloc_host(place->gpu, n_bytes, &words, err));
    memset(words, 0, n_bytes);
    self->words = words;
    for (int lane = 0; lane < FR_LANE_N; lane++) {
        self->lanes[lane].ready = self->words + 2 * lane * WORDS_PER_LINE;
        self->lanes[lane].done = self->lanes[lane].ready + WORDS_PER_LINE;
    }
    FR_TRY(driver->lock_host(place->gpu, transport->slab[transport->rank],
                             transport->slab_bytes, err));
    self->is_locked = true;
    FR_TRY(fr_engine_create(place->program, transport, &self->engine, err));
    if (pthread_create(&self->thread, NULL, host_main, self) != 0)
        return fr_fail(err, FR_FAILURE,
                       "cannot start the communication thread");
    self->has_thread = true;
    return FR_OK;
}

static const fr_gpu_links_ops host_ops = {
    .is_capturable = false,
    .destroy = host_destroy,
    .enqueue = host_enqueue,
    .check = host_check,
    .waits_for = host_waits_for,
    .abort = host_abort,
};

fr_status fr_gpu_links_host_create(const fr_gpu_place *place,
                                   fr_gpu_links **out, fr_err *err)
{
    host_links *self;

    FR_TRY_CALLOC(self, 1, err);
    self->base.ops = &host_ops;
    self->base.place = *place;
    fr_status status = prepare(self, err);
    if (status != FR_OK) {
        host_destroy(&self->base);
        return status;
    }
    *out = &self->base;
    return FR_OK;
}
