/* gpu_rig.c: see gpu_rig.h. */
#include "calibrate/gpu/gpu_rig.h"

#include "core/numbers/rng.h"
#include "core/system/clock.h"
#include "plan/decide/grid.h"

#include <math.h>
#include <string.h>

enum { HOST_BYTES = 64 << 20, ALIGNED = 4096 };

static uint64_t padded(uint64_t n_bytes)
{
    return (n_bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
}

fr_status fr_gpu_rig_check(const fr_gpu_rig *rig, fr_err *err)
{
    if (rig->guard == NULL || !fr_gpu_guard_has_given_up(rig->guard))
        return FR_OK;
    return fr_fail(err, FR_FAILURE,
                   "rank %lld: the device was given up: it was not done after "
                   "%.3g s",
                   (long long)rig->transport->rank, rig->timeout_s);
}

fr_status fr_gpu_rig_used(const fr_gpu_rig *rig, uint64_t *out, fr_err *err)
{
    uint64_t free_bytes, total_bytes;

    FR_TRY(fr_gpu_rig_check(rig, err));
    FR_TRY(rig->driver->memory(rig->gpu, &free_bytes, &total_bytes, err));
    *out = total_bytes - free_bytes;
    return FR_OK;
}

/* ---- opening ------------------------------------------------------------- */

static fr_status make_events(fr_gpu_rig *rig, fr_err *err)
{
    fr_gpu_event **const all[] = {&rig->begin, &rig->end, &rig->comm_begin,
                                  &rig->comm_end};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        FR_TRY(rig->driver->event_create(rig->gpu, true, all[i], err));
    FR_TRY(rig->driver->stream_create(rig->gpu, false, &rig->stream, err));
    return rig->driver->stream_create(rig->gpu, true, &rig->comm_stream, err);
}

/*
 * Numbers of the size that activations have, as 16 bits and, seen in pairs,
 * as 32: products of zeros would take less power than real ones.
 */
static void fill_host(fr_gpu_rig *rig)
{
    for (uint64_t i = 0; i < rig->host_bytes / 8; i++) {
        uint64_t bits = fr_hash_u64(20, i, 0, 0);
        /* Any sign and mantissa, exponents from 2^-7 to 2^-4. */
        bits = (bits & UINT64_C(0x81ff81ff81ff81ff)) |
               UINT64_C(0x3c003c003c003c00);
        memcpy(rig->host + 8 * i, &bits, sizeof bits);
    }
}

fr_status fr_gpu_rig_refill(const fr_gpu_rig *rig, fr_err *err)
{
    uint64_t first_bytes =
        rig->host_bytes < rig->arena_bytes ? rig->host_bytes : rig->arena_bytes;

    FR_TRY(fr_gpu_rig_check(rig, err));
    FR_TRY(rig->driver->copy(rig->gpu, rig->stream, rig->arena, rig->host,
                             first_bytes, err));
    for (uint64_t at = first_bytes; at < rig->arena_bytes; at += first_bytes) {
        uint64_t n_bytes = rig->arena_bytes - at;
        if (n_bytes > first_bytes)
            n_bytes = first_bytes;
        FR_TRY(rig->driver->copy(rig->gpu, rig->stream, rig->arena + at,
                                 rig->arena, n_bytes, err));
    }
    return fr_gpu_rig_finish(rig, rig->stream, rig->end, err);
}

/* Less where that much is not to be had in one piece. */
static fr_status make_arena(fr_gpu_rig *rig, uint64_t wanted_bytes, fr_err *err)
{
    fr_gpu_properties properties;
    uint64_t free_bytes, total_bytes;
    void *memory = NULL;
    fr_status status;

    FR_TRY(rig->driver->properties(rig->gpu, &properties, err));
    FR_TRY(rig->driver->memory(rig->gpu, &free_bytes, &total_bytes, err));
    rig->flush_bytes = padded(2 * properties.l2_bytes + ALIGNED);
    if (wanted_bytes > free_bytes / 2)
        wanted_bytes = free_bytes / 2;
    for (;;) {
        rig->arena_bytes = rig->flush_bytes + padded(wanted_bytes);
        status = rig->driver->alloc(rig->gpu, rig->arena_bytes, &memory, err);
        if (status != FR_NO_MEMORY || wanted_bytes < ((uint64_t)1 << 24))
            break;
        wanted_bytes /= 2;
    }
    FR_TRY(status);
    rig->arena = memory;
    return FR_OK;
}

static fr_status make_memory(fr_gpu_rig *rig, uint64_t wanted_bytes,
                             fr_err *err)
{
    void *memory = NULL;

    FR_TRY(rig->driver->alloc(rig->gpu, sizeof *rig->step, &memory, err));
    rig->step = memory;
    FR_TRY(rig->driver->fill(rig->gpu, rig->stream, rig->step, 0,
                             sizeof *rig->step, err));
    FR_TRY(fr_gpu_guard_create(rig->driver, rig->gpu, &rig->guard, err));
    FR_TRY(rig->driver->alloc_host(rig->gpu, HOST_BYTES, &memory, err));
    rig->host = memory;
    rig->host_bytes = HOST_BYTES;
    FR_TRY(make_arena(rig, wanted_bytes, err));
    fill_host(rig);
    return fr_gpu_rig_refill(rig, err);
}

static fr_status make_kernels(fr_gpu_rig *rig, fr_err *err)
{
    uint64_t before, after;

    if (rig->system->kernels_create == NULL)
        return FR_OK;
    FR_TRY(fr_gpu_rig_used(rig, &before, err));
    FR_TRY(rig->system->kernels_create(&rig->kernels, err));
    FR_TRY(fr_gpu_rig_used(rig, &after, err));
    rig->kernels_bytes = after > before ? after - before : 0;
    return FR_OK;
}

fr_status fr_gpu_rig_open(fr_gpu_rig *rig, uint64_t wanted_bytes, fr_err *err)
{
    fr_status status = make_events(rig, err);

    if (status == FR_OK)
        status = make_kernels(rig, err);
    if (status == FR_OK)
        status = make_memory(rig, wanted_bytes, err);
    if (status != FR_OK)
        fr_gpu_rig_close(rig);
    return status;
}

void fr_gpu_rig_close(fr_gpu_rig *rig)
{
    const fr_gpu_driver *driver = rig->driver;

    if (rig->gpu == NULL)
        return;
    fr_gpu_rig_release(rig);
    driver->stream_destroy(rig->gpu, rig->stream);
    driver->stream_destroy(rig->gpu, rig->comm_stream);
    driver->event_destroy(rig->gpu, rig->begin);
    driver->event_destroy(rig->gpu, rig->end);
    driver->event_destroy(rig->gpu, rig->comm_begin);
    driver->event_destroy(rig->gpu, rig->comm_end);
    if (rig->kernels != NULL && fr_gpu_rig_check(rig, NULL) == FR_OK)
        rig->system->kernels_destroy(rig->kernels);
    driver->free_host(rig->gpu, rig->host);
    fr_gpu_guard_destroy(rig->guard);
    driver->free(rig->gpu, rig->arena);
    driver->free(rig->gpu, rig->step);
    driver->close(rig->gpu);
    rig->gpu = NULL;
}

/* ---- time ---------------------------------------------------------------- */

/* Communication that hangs is ended by an abort of its links, and does not say
 * that the device hangs. */
static fr_status fail_late(const fr_gpu_rig *rig, fr_err *err)
{
    if (rig->links == NULL && rig->guard != NULL)
        fr_gpu_guard_give_up(rig->guard);
    return fr_fail(err, FR_FAILURE,
                   "rank %lld: the device is not done after %.3g s",
                   (long long)rig->transport->rank, rig->timeout_s);
}

fr_status fr_gpu_rig_wait(const fr_gpu_rig *rig, fr_gpu_event *event,
                          fr_err *err)
{
    const double look_s = 0.01;
    double next_look_s = look_s;
    bool is_done = false;
    fr_waiter waiter;

    FR_TRY(fr_gpu_rig_check(rig, err));
    fr_waiter_init(&waiter, &rig->transport->idle_bell);
    waiter.sleep_ns = 20000;
    for (;;) {
        FR_TRY(rig->driver->event_query(rig->gpu, event, &is_done, err));
        if (is_done)
            return FR_OK;
        fr_waiter_pause(&waiter);
        double waited_s = fr_waiter_waited_s(&waiter);
        if (waited_s > rig->timeout_s)
            return fail_late(rig, err);
        if (rig->links != NULL && waited_s > next_look_s) {
            next_look_s = waited_s + look_s;
            FR_TRY(rig->links->ops->check(rig->links, err));
        }
    }
}

fr_status fr_gpu_rig_finish(const fr_gpu_rig *rig, fr_gpu_stream stream,
                            fr_gpu_event *event, fr_err *err)
{
    FR_TRY(fr_gpu_rig_check(rig, err));
    fr_status status = rig->driver->event_record(rig->gpu, event, stream, err);
    fr_gpu_rig_release(rig);
    return status == FR_OK ? fr_gpu_rig_wait(rig, event, err) : status;
}

fr_status fr_gpu_rig_hold(const fr_gpu_rig *rig, fr_err *err)
{
    FR_TRY(fr_gpu_rig_check(rig, err));
    return fr_gpu_guard_hold(rig->guard, rig->stream, err);
}

void fr_gpu_rig_release(const fr_gpu_rig *rig)
{
    if (rig->guard != NULL)
        fr_gpu_guard_open(rig->guard);
}

fr_status fr_gpu_rig_time(const fr_gpu_rig *rig, const fr_gpu_task *task,
                          double *out_s, fr_err *err)
{
    fr_status status = fr_gpu_rig_hold(rig, err);

    if (status == FR_OK)
        status = fr_gpu_rig_begin(rig, err);
    if (status == FR_OK)
        status = fr_gpu_rig_launch(rig, task, err);
    if (status == FR_OK)
        status = fr_gpu_rig_end(rig, out_s, err);
    fr_gpu_rig_release(rig);
    return status == FR_OK ? fr_gpu_rig_check_held(rig, err) : status;
}

fr_status fr_gpu_rig_begin(const fr_gpu_rig *rig, fr_err *err)
{
    FR_TRY(fr_gpu_rig_check(rig, err));
    return rig->driver->event_record(rig->gpu, rig->begin, rig->stream, err);
}

fr_status fr_gpu_rig_end(const fr_gpu_rig *rig, double *out_s, fr_err *err)
{
    const double least_s = 1e-7; /* the clock of events is no finer */
    double elapsed_s = 0;

    FR_TRY(fr_gpu_rig_finish(rig, rig->stream, rig->end, err));
    FR_TRY(rig->driver->event_elapsed(rig->gpu, rig->begin, rig->end,
                                      &elapsed_s, err));
    *out_s = fmax(elapsed_s - rig->bracket_s, least_s);
    return FR_OK;
}

fr_status fr_gpu_rig_check_held(const fr_gpu_rig *rig, fr_err *err)
{
    if (fr_gpu_guard_was_forced(rig->guard))
        return fr_fail(err, FR_FAILURE,
                       "launches wait for the device (CUDA_LAUNCH_BLOCKING, a "
                       "profiler, or too many at once)");
    return FR_OK;
}

fr_status fr_gpu_rig_flush(const fr_gpu_rig *rig, fr_err *err)
{
    FR_TRY(fr_gpu_rig_check(rig, err));
    return rig->driver->fill(rig->gpu, rig->stream, rig->arena, 0,
                             rig->flush_bytes, err);
}

/* ---- kernels ------------------------------------------------------------- */

static int group_of(const fr_plan *plan, fr_axis axis)
{
    int64_t n = fr_plan_group_size(plan, axis);

    return n > 1 ? (int)n : 1;
}

static fr_cuda_launch launch_of(const fr_gpu_rig *rig, const fr_gpu_task *task)
{
    const fr_rank_program *rank_program =
        &task->program->rank_programs[task->i_stage];
    const fr_plan *plan = &task->program->plan;
    fr_cuda_launch launch = {
        .call = {.instr = task->instr,
                 .n_group = group_of(plan, (fr_axis)task->instr->axis),
                 .n_threads = 1,
                 .job = &task->program->job,
                 .plan = plan,
                 .tensors = rank_program->tensors,
                 .n_tensors = rank_program->n_tensors},
        .step = rig->step,
        .stream = rig->stream,
        .kernels = rig->kernels};

    memcpy(launch.call.ptr, task->ptr, sizeof launch.call.ptr);
    return launch;
}

fr_status fr_gpu_rig_launch(const fr_gpu_rig *rig, const fr_gpu_task *task,
                            fr_err *err)
{
    fr_cuda_launch launch = launch_of(rig, task);

    FR_TRY(fr_gpu_rig_check(rig, err));
    return rig->system->kernels[task->instr->op](&launch, err);
}

fr_status fr_gpu_rig_tune(const fr_gpu_rig *rig, const fr_gpu_task *task,
                          fr_err *err)
{
    fr_cuda_launch launch = launch_of(rig, task);

    FR_TRY(fr_gpu_rig_check(rig, err));
    if (rig->system->kernels_tune == NULL)
        return FR_OK;
    return rig->system->kernels_tune(&launch, err);
}

bool fr_gpu_rig_place(const fr_gpu_rig *rig, const fr_instr *instr,
                      void *ptr[FR_INSTR_REFS])
{
    uint64_t offset = rig->flush_bytes;

    for (int i = 0; i < FR_INSTR_REFS; i++) {
        ptr[i] = NULL;
        if (instr->ref[i].space == FR_SPACE_NONE)
            continue;
        uint64_t n_bytes = fr_instr_ref_bytes(instr, i, 1);
        if (n_bytes > rig->arena_bytes || offset + n_bytes > rig->arena_bytes)
            return false;
        ptr[i] = rig->arena + offset;
        offset += padded(n_bytes);
    }
    return true;
}
