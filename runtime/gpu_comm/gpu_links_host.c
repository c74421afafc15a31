/*
 * gpu_links_host.c: communication staged through the host: for tests in which
 * several ranks share a device, which NCCL refuses.
 *
 * The transport's slab mirrors the device's.  A thread copies an operand to
 * its place there, carries the instruction out on the mirror with the CPU
 * backend's engine, and copies the result back: the stream marks a word when
 * it gets there and waits for another until the result is in its place.
 *
 * Operands are not copied by the streams that wait for other ranks.  Streams of
 * one process share the few queues of the copy engines, so such a copy would
 * hold up the one that the other rank waits for.
 */
#include "core/system/clock.h"
#include "kernels/cpu/kernels_cpu.h"
#include "runtime/comm/collective_engine.h"
#include "runtime/gpu_comm/gpu_links.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Communications of a lane that are enqueued and not done: a ring. */
#define MAX_OPEN 4096

typedef struct host_post {
    uint32_t i_instr;
    void *src, *dst; /* on the device */
} host_post;

/* The stage of a lane's oldest post that is not done. */
typedef enum host_stage {
    HOST_WAITS, /* until the stream is there */
    HOST_COPIES_IN,
    HOST_EXCHANGES,
    HOST_COPIES_OUT
} host_stage;

/* One lane; the words are page-locked, each counts this lane's posts. */
typedef struct host_lane {
    host_post posts[MAX_OPEN];
    _Atomic uint32_t n_posted; /* by the caller */
    uint32_t n_done;           /* by the thread */
    host_stage stage;
    fr_gpu_event *copied;
    uint32_t *ready, *done; /* words */
} host_lane;

typedef struct host_links {
    fr_gpu_links base;
    fr_engine *engine;
    host_lane lanes[FR_LANE_N];
    uint32_t *words;
    fr_gpu_stream stream; /* of the thread's copies */
    bool is_locked;       /* the mirror is page-locked */
    pthread_t thread;
    bool has_thread;
    _Atomic bool should_stop, has_failed;
    fr_err err; /* valid once has_failed */
} host_links;

static uint32_t read_word(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
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

/* Begins the copy of an operand to the mirror, or of the result from it. */
static fr_status copy(host_links *self, host_lane *own, bool is_src,
                      fr_err *err)
{
    const fr_gpu_place *place = &self->base.place;
    const fr_gpu_driver *driver = place->system->driver;
    const host_post *post = &own->posts[own->n_done % MAX_OPEN];
    void *memory = is_src ? post->src : post->dst;
    void *mirror = mirror_of(place, memory);
    uint64_t n_bytes = operand_bytes(&self->base, post->i_instr, is_src);

    if (memory != NULL && n_bytes > 0)
        FR_TRY(driver->copy(place->gpu, self->stream, is_src ? mirror : memory,
                            is_src ? memory : mirror, n_bytes, err));
    return driver->event_record(place->gpu, own->copied, self->stream, err);
}

static fr_status is_copied(host_links *self, host_lane *own, bool *out,
                           fr_err *err)
{
    const fr_gpu_place *place = &self->base.place;

    return place->system->driver->event_query(place->gpu, own->copied, out,
                                              err);
}

static void start(host_links *self, const host_lane *own)
{
    const fr_gpu_place *place = &self->base.place;
    const host_post *post = &own->posts[own->n_done % MAX_OPEN];
    const void *src = post->src != NULL ? post->src : post->dst;
    const void *dst = post->dst != NULL ? post->dst : post->src;

    fr_engine_start(self->engine, post->i_instr, mirror_of(place, src),
                    mirror_of(place, dst));
}

/* One attempt to come a stage further; *has_moved: it did, or something else
 * of it. */
static fr_status progress(host_links *self, fr_lane lane, bool *has_moved,
                          fr_err *err)
{
    host_lane *own = &self->lanes[lane];
    bool is_over = false, has_gone_on = false;

    switch (own->stage) {
    case HOST_WAITS:
        is_over = own->n_done != atomic_load_explicit(&own->n_posted,
                                                      memory_order_acquire) &&
                  (int32_t)(read_word(own->ready) - own->n_done) > 0;
        if (is_over)
            FR_TRY(copy(self, own, true, err));
        break;
    case HOST_COPIES_IN:
        FR_TRY(is_copied(self, own, &is_over, err));
        if (is_over)
            start(self, own);
        break;
    case HOST_EXCHANGES:
        FR_TRY(fr_engine_progress(self->engine, lane, &is_over, &has_gone_on,
                                  err));
        if (is_over)
            FR_TRY(copy(self, own, false, err));
        break;
    case HOST_COPIES_OUT:
        FR_TRY(is_copied(self, own, &is_over, err));
        if (is_over) {
            own->n_done++;
            __atomic_store_n(own->done, own->n_done, __ATOMIC_RELEASE);
        }
    }
    if (is_over)
        own->stage =
            own->stage == HOST_COPIES_OUT ? HOST_WAITS : own->stage + 1;
    *has_moved = *has_moved || is_over || has_gone_on;
    return FR_OK;
}

static fr_status serve(host_links *self, fr_err *err)
{
    fr_transport *transport = self->base.place.transport;
    fr_waiter waiter;

    FR_TRY(self->base.place.system->driver->enter(self->base.place.gpu, err));
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

/* Copies that were under way when the thread stopped use what is freed. */
static void end_copies(host_links *self)
{
    const double longest_s = 5.0;
    const fr_gpu_place *place = &self->base.place;
    fr_waiter waiter;
    fr_err ignored;

    fr_waiter_init(&waiter, &place->transport->idle_bell);
    waiter.sleep_ns = 50000;
    for (int lane = 0; lane < FR_LANE_N; lane++) {
        host_lane *own = &self->lanes[lane];
        bool is_done =
            own->stage != HOST_COPIES_IN && own->stage != HOST_COPIES_OUT;
        while (!is_done && is_copied(self, own, &is_done, &ignored) == FR_OK &&
               !is_done) {
            fr_waiter_pause(&waiter);
            if (fr_waiter_waited_s(&waiter) < longest_s)
                continue;
            place->system->driver->abandon(place->gpu);
            return;
        }
    }
}

static void host_destroy(fr_gpu_links *links)
{
    host_links *self = (host_links *)links;
    const fr_gpu_place *place = &links->place;
    const fr_gpu_driver *driver = place->system->driver;

    stop(self);
    end_copies(self);
    if (self->is_locked)
        driver->unlock_host(place->gpu,
                            place->transport->slab[place->transport->rank]);
    for (int lane = 0; lane < FR_LANE_N; lane++)
        driver->event_destroy(place->gpu, self->lanes[lane].copied);
    driver->stream_destroy(place->gpu, self->stream);
    driver->free_host(place->gpu, self->words);
    fr_engine_destroy(self->engine);
    fr_gpu_groups_release(&links->groups);
    free(self);
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
    own->posts[number % MAX_OPEN] = (host_post){i_instr, src, dst};
    FR_TRY(driver->mark(place->gpu, stream, own->ready, number + 1, err));
    atomic_store_explicit(&own->n_posted, number + 1, memory_order_release);
    return driver->await(place->gpu, stream, own->done, number + 1, err);
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
        FR_TRY(driver->event_create(place->gpu, false,
                                    &self->lanes[lane].copied, err));
    }
    FR_TRY(driver->stream_create(place->gpu, true, &self->stream, err));
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
