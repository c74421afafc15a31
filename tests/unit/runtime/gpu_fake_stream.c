/* gpu_fake_stream.c: streams, events, copies and graphs of fake devices. */
#include "core/system/clock.h"
#include "kernels/cpu/kernels_cpu.h"
#include "tests/unit/runtime/gpu_fake.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fr_gpu_event {
    fr_gpu *gpu;
    uint64_t n_recorded, n_reached;
    int64_t reached_ns;
    double at_s;                  /* on the made-up clock of its stream */
    fr_gpu_graph *capture;        /* recorded within it ... */
    gpu_fake_stream *captured_on; /* ... on this stream */
};

struct fr_gpu_graph {
    gpu_fake_task *first, *last;
    gpu_fake_stream *origin, *joined[16];
    int n_joined;
    bool is_broken;
};

/* ---- streams ------------------------------------------------------------- */

static void run_await(gpu_fake_task *task);

/* It was carried out, or will not be. */
static void end_task(fr_gpu *gpu, gpu_fake_task *task)
{
    if (task->run == run_await)
        atomic_fetch_sub(&gpu->n_awaits, 1);
    free(task);
}

static void *serve(void *context)
{
    gpu_fake_stream *stream = context;
    fr_gpu *gpu = stream->gpu;

    fr_kernels_cpu_set_threads(1);
    pthread_mutex_lock(&gpu->mutex);
    for (;;) {
        while (stream->first == NULL && !stream->should_stop)
            pthread_cond_wait(&stream->has_task, &gpu->mutex);
        if (stream->first == NULL || stream->should_stop)
            break;
        gpu_fake_task *task = stream->first;
        stream->first = task->next;
        stream->n_pending--;
        stream->is_busy = true;
        pthread_mutex_unlock(&gpu->mutex);
        if (!atomic_load(&gpu->has_failed))
            task->run(task);
        end_task(gpu, task);
        pthread_mutex_lock(&gpu->mutex);
        stream->is_busy = false;
    }
    pthread_mutex_unlock(&gpu->mutex);
    return NULL;
}

static void append(gpu_fake_task **first, gpu_fake_task **last,
                   gpu_fake_task *task)
{
    if (*first != NULL)
        (*last)->next = task;
    else
        *first = task;
    *last = task;
}

static void run_record(gpu_fake_task *task);
static void run_wait(gpu_fake_task *task);

/* gpu->mutex is held. */
static void push_now(gpu_fake_task *task)
{
    fr_gpu_event *event = task->a;

    if (task->run == run_record)
        task->number = ++event->n_recorded;
    if (task->run == run_wait)
        task->number = event->n_recorded;
    task->after_s = task->stream->gpu->seen_s;
    append(&task->stream->first, &task->stream->last, task);
    int64_t n_pending = ++task->stream->n_pending;
    gpu_fake *fake = task->stream->gpu->fake;
    if (n_pending > atomic_load(&fake->most_pending))
        atomic_store(&fake->most_pending, n_pending);
    if (task->stream->first == task)
        pthread_cond_signal(&task->stream->has_task);
}

fr_status gpu_fake_push(const gpu_fake_task *task, fr_err *err)
{
    gpu_fake_task *copy = malloc(sizeof *copy);
    fr_gpu *gpu = task->stream->gpu;

    if (copy == NULL)
        return fr_fail_no_memory(err);
    *copy = *task;
    copy->next = NULL;
    pthread_mutex_lock(&gpu->mutex);
    fr_gpu_graph *graph = gpu->capture;
    if (graph == NULL) {
        push_now(copy);
    } else {
        graph->is_broken |= task->stream->joined != graph;
        task->stream->is_open = true;
        append(&graph->first, &graph->last, copy);
    }
    pthread_mutex_unlock(&gpu->mutex);
    return FR_OK;
}

static fr_status create_stream(fr_gpu *gpu, bool is_urgent, fr_gpu_stream *out,
                               fr_err *err)
{
    gpu_fake_stream *stream = calloc(1, sizeof *stream);

    (void)is_urgent;
    if (stream == NULL)
        return fr_fail_no_memory(err);
    stream->gpu = gpu;
    pthread_cond_init(&stream->has_task, NULL);
    if (pthread_create(&stream->thread, NULL, serve, stream) != 0) {
        pthread_cond_destroy(&stream->has_task);
        free(stream);
        return fr_fail(err, FR_FAILURE, "no thread for a stream");
    }
    *out = stream;
    return FR_OK;
}

static void destroy_stream(fr_gpu *gpu, fr_gpu_stream handle)
{
    gpu_fake_stream *stream = handle;

    if (stream == NULL)
        return;
    pthread_mutex_lock(&gpu->mutex);
    stream->should_stop = true;
    pthread_cond_signal(&stream->has_task);
    pthread_cond_broadcast(&gpu->changed);
    pthread_mutex_unlock(&gpu->mutex);
    pthread_join(stream->thread, NULL);
    while (stream->first != NULL) {
        gpu_fake_task *task = stream->first;
        stream->first = task->next;
        end_task(gpu, task);
    }
    pthread_cond_destroy(&stream->has_task);
    free(stream);
}

void gpu_fake_drain(gpu_fake_stream *stream)
{
    bool is_idle = false;

    while (!is_idle) {
        pthread_mutex_lock(&stream->gpu->mutex);
        is_idle = stream->first == NULL && !stream->is_busy;
        pthread_mutex_unlock(&stream->gpu->mutex);
        if (!is_idle)
            fr_sleep_s(1e-5);
    }
}

void gpu_fake_hang(gpu_fake_stream *stream)
{
    fr_gpu *gpu = stream->gpu;

    pthread_mutex_lock(&gpu->mutex);
    while (!stream->should_stop)
        pthread_cond_wait(&gpu->changed, &gpu->mutex);
    pthread_mutex_unlock(&gpu->mutex);
}

void gpu_fake_fail(fr_gpu *gpu, const char *text)
{
    pthread_mutex_lock(&gpu->mutex);
    if (!atomic_load(&gpu->has_failed))
        (void)snprintf(gpu->failure, sizeof gpu->failure, "%s", text);
    atomic_store(&gpu->has_failed, true);
    pthread_cond_broadcast(&gpu->changed);
    pthread_mutex_unlock(&gpu->mutex);
}

/* ---- events -------------------------------------------------------------- */

static void run_record(gpu_fake_task *task)
{
    fr_gpu_event *event = task->a;

    pthread_mutex_lock(&event->gpu->mutex);
    event->n_reached = task->number;
    event->reached_ns = fr_clock_ns();
    task->stream->now_s = fmax(task->stream->now_s, task->after_s);
    if (event->gpu->fake->law != NULL)
        task->stream->now_s += event->gpu->fake->law->event_s;
    event->at_s = task->stream->now_s;
    pthread_cond_broadcast(&event->gpu->changed);
    pthread_mutex_unlock(&event->gpu->mutex);
}

static void run_wait(gpu_fake_task *task)
{
    const fr_gpu_event *event = task->a;
    fr_gpu *gpu = event->gpu;

    pthread_mutex_lock(&gpu->mutex);
    while (event->n_reached < task->number && !task->stream->should_stop &&
           !atomic_load(&gpu->has_failed))
        pthread_cond_wait(&gpu->changed, &gpu->mutex);
    if (task->stream->now_s < event->at_s)
        task->stream->now_s = event->at_s;
    pthread_mutex_unlock(&gpu->mutex);
}

static fr_status create_event(fr_gpu *gpu, bool is_timed, fr_gpu_event **out,
                              fr_err *err)
{
    fr_gpu_event *event = calloc(1, sizeof *event);

    (void)is_timed;
    if (event == NULL)
        return fr_fail_no_memory(err);
    event->gpu = gpu;
    *out = event;
    return FR_OK;
}

static void destroy_event(fr_gpu *gpu, fr_gpu_event *event)
{
    (void)gpu;
    free(event);
}

static fr_status record_event(fr_gpu *gpu, fr_gpu_event *event,
                              fr_gpu_stream stream, fr_err *err)
{
    gpu_fake_task task = {.stream = stream, .run = run_record, .a = event};

    event->capture = gpu->capture;
    event->captured_on = stream;
    return gpu_fake_push(&task, err);
}

static void join_capture(fr_gpu_graph *graph, gpu_fake_stream *stream,
                         const fr_gpu_event *event)
{
    if (event->capture != graph) {
        graph->is_broken = true;
        return;
    }
    event->captured_on->is_open = false;
    if (stream->joined == graph)
        return;
    stream->joined = graph;
    graph->joined[graph->n_joined++] = stream;
}

static fr_status stream_wait(fr_gpu *gpu, fr_gpu_stream stream,
                             fr_gpu_event *event, fr_err *err)
{
    gpu_fake_task task = {.stream = stream, .run = run_wait, .a = event};

    if (gpu->capture != NULL)
        join_capture(gpu->capture, stream, event);
    return gpu_fake_push(&task, err);
}

static fr_status query_event(fr_gpu *gpu, fr_gpu_event *event, bool *is_done,
                             fr_err *err)
{
    pthread_mutex_lock(&gpu->mutex);
    bool has_failed = atomic_load(&gpu->has_failed);
    *is_done = event->n_reached == event->n_recorded;
    if (*is_done)
        gpu->seen_s = fmax(gpu->seen_s, event->at_s);
    pthread_mutex_unlock(&gpu->mutex);
    if (*is_done)
        atomic_store(&gpu->is_exchanging, false);
    return has_failed ? fr_fail(err, FR_FAILURE, "%s", gpu->failure) : FR_OK;
}

static fr_status elapsed(fr_gpu *gpu, fr_gpu_event *from, fr_gpu_event *to,
                         double *elapsed_s, fr_err *err)
{
    if (from->n_reached < from->n_recorded || to->n_reached < to->n_recorded)
        return fr_fail(err, FR_FAILURE, "events are not ready");
    if (gpu->fake->law != NULL)
        *elapsed_s = to->at_s - from->at_s;
    else
        *elapsed_s = (double)(to->reached_ns - from->reached_ns) * 1e-9;
    return FR_OK;
}

/* ---- copies and words ---------------------------------------------------- */

/* Work that the host gives a stream begins after the event that made the host
 * do so. */
static void begin_when_seen(const gpu_fake_task *task)
{
    fr_gpu *gpu = task->stream->gpu;

    pthread_mutex_lock(&gpu->mutex);
    task->stream->now_s = fmax(task->stream->now_s, gpu->seen_s);
    pthread_mutex_unlock(&gpu->mutex);
}

/* Under a law large ones carry nothing. */
static bool is_made_up(const gpu_fake_task *task)
{
    const uint64_t small_bytes = 4096;

    if (task->stream->gpu->fake->law == NULL)
        return false;
    gpu_fake_spend_copy(task);
    return task->n > small_bytes;
}

static void run_copy(gpu_fake_task *task)
{
    begin_when_seen(task);
    if (is_made_up(task))
        return;
    memmove(gpu_fake_real(task->a), gpu_fake_real(task->b), task->n);
}

static fr_status copy(fr_gpu *gpu, fr_gpu_stream stream, void *dst,
                      const void *src, uint64_t n_bytes, fr_err *err)
{
    gpu_fake_task task = {
        .stream = stream, .run = run_copy, .a = dst, .b = src, .n = n_bytes};

    FR_TRY(gpu_fake_push(&task, err));
    /* The host waits for copies of memory that is not page-locked. */
    if (gpu->fake->law != NULL && gpu_fake_is_pageable(gpu, dst, src))
        gpu_fake_drain(stream);
    return FR_OK;
}

static void run_fill(gpu_fake_task *task)
{
    if (is_made_up(task))
        return;
    memset(gpu_fake_real(task->a), (int)task->number, task->n);
}

static fr_status fill(fr_gpu *gpu, fr_gpu_stream stream, void *dst,
                      uint8_t byte, uint64_t n_bytes, fr_err *err)
{
    gpu_fake_task task = {.stream = stream,
                          .run = run_fill,
                          .a = dst,
                          .n = n_bytes,
                          .number = byte};

    (void)gpu;
    return gpu_fake_push(&task, err);
}

static void run_mark(gpu_fake_task *task)
{
    fr_gpu *gpu = task->stream->gpu;

    pthread_mutex_lock(&gpu->mutex);
    gpu->seen_s = fmax(gpu->seen_s, task->stream->now_s);
    pthread_mutex_unlock(&gpu->mutex);
    __atomic_store_n((uint32_t *)task->a, (uint32_t)task->n, __ATOMIC_RELEASE);
}

static fr_status mark(fr_gpu *gpu, fr_gpu_stream stream, uint32_t *word,
                      uint32_t value, fr_err *err)
{
    gpu_fake_task task = {
        .stream = stream, .run = run_mark, .a = word, .n = value};

    (void)gpu;
    return gpu_fake_push(&task, err);
}

static void run_await(gpu_fake_task *task)
{
    const uint32_t *word = task->a;
    const volatile bool *should_stop = &task->stream->should_stop;

    while ((int32_t)(__atomic_load_n(word, __ATOMIC_ACQUIRE) -
                     (uint32_t)task->n) < 0 &&
           !*should_stop)
        fr_sleep_s(2e-5);
    begin_when_seen(task);
}

static fr_status await(fr_gpu *gpu, fr_gpu_stream stream, uint32_t *word,
                       uint32_t value, fr_err *err)
{
    gpu_fake_task task = {
        .stream = stream, .run = run_await, .a = word, .n = value};

    if (gpu->capture != NULL)
        return fr_fail(err, FR_FAILURE, "a wait for a word in a capture");
    atomic_fetch_add(&gpu->n_awaits, 1);
    return gpu_fake_push(&task, err);
}

static void run_host(gpu_fake_task *task)
{
    task->host(task->a);
}

static fr_status call_host(fr_gpu *gpu, fr_gpu_stream stream,
                           void (*fn)(void *context), void *context,
                           fr_err *err)
{
    gpu_fake_task task = {
        .stream = stream, .run = run_host, .a = context, .host = fn};

    (void)gpu;
    return gpu_fake_push(&task, err);
}

/* ---- graphs -------------------------------------------------------------- */

static void destroy_graph(fr_gpu *gpu, fr_gpu_graph *graph)
{
    (void)gpu;
    while (graph != NULL && graph->first != NULL) {
        gpu_fake_task *task = graph->first;
        graph->first = task->next;
        free(task);
    }
    free(graph);
}

static fr_status begin_capture(fr_gpu *gpu, fr_gpu_stream stream, fr_err *err)
{
    fr_gpu_graph *graph = calloc(1, sizeof *graph);
    gpu_fake_stream *origin = stream;

    if (graph == NULL)
        return fr_fail_no_memory(err);
    graph->origin = origin;
    origin->joined = graph;
    gpu->capture = graph;
    return FR_OK;
}

static fr_status end_capture(fr_gpu *gpu, fr_gpu_stream stream,
                             fr_gpu_graph **out, fr_err *err)
{
    fr_gpu_graph *graph = gpu->capture;
    bool is_broken = graph->is_broken || graph->origin != stream;

    gpu->capture = NULL;
    for (int i = 0; i < graph->n_joined; i++)
        is_broken |= graph->joined[i]->is_open;
    if (is_broken) {
        destroy_graph(gpu, graph);
        return fr_fail(err, FR_FAILURE,
                       "a stream was not forked or joined in the capture");
    }
    atomic_fetch_add(&gpu->fake->n_graphs, 1);
    *out = graph;
    return FR_OK;
}

static fr_status launch_graph(fr_gpu *gpu, fr_gpu_graph *graph,
                              fr_gpu_stream stream, fr_err *err)
{
    if (stream != graph->origin)
        return fr_fail(err, FR_FAILURE, "a graph on another stream");
    for (const gpu_fake_task *task = graph->first; task != NULL;
         task = task->next)
        FR_TRY(gpu_fake_push(task, err));
    atomic_fetch_add(&gpu->fake->n_graph_launches, 1);
    return FR_OK;
}

const fr_gpu_driver gpu_fake_streams = {
    .stream_create = create_stream,
    .stream_destroy = destroy_stream,
    .stream_wait = stream_wait,
    .event_create = create_event,
    .event_destroy = destroy_event,
    .event_record = record_event,
    .event_query = query_event,
    .event_elapsed = elapsed,
    .copy = copy,
    .fill = fill,
    .mark = mark,
    .await = await,
    .call_host = call_host,
    .capture_begin = begin_capture,
    .capture_end = end_capture,
    .graph_launch = launch_graph,
    .graph_destroy = destroy_graph,
};
