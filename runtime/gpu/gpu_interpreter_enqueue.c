/*
 * gpu_interpreter_enqueue.c: puts a step on the lanes' streams, in program
 * order.  That order is one in which every dependency comes first, so that an
 * event is recorded before somebody waits for it.
 */
#include "runtime/gpu/gpu_interpreter_state.h"

#include <stdlib.h>
#include <string.h>

static void resolve(const fr_gpu_interpreter *it, uint32_t i_call,
                    const fr_instr *instr, void *ptr[FR_INSTR_REFS])
{
    const unsigned char *slab_end = (const unsigned char *)it->place.slab +
                                    it->rank.rank_program->slab_bytes;

    fr_call_operands(it->rank.rank_program,
                     &it->rank.rank_program->calls[i_call], instr,
                     it->rank.coordinate, it->place.slab, ptr);
    for (int i = 0; i < FR_INSTR_REFS; i++)
        if (instr->ref[i].space == FR_SPACE_HOST)
            ptr[i] = it->host + ((unsigned char *)ptr[i] - slab_end);
}

static float widen(uint16_t bf16)
{
    uint32_t bits = (uint32_t)bf16 << 16;
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static fr_status wait_lane(fr_gpu_interpreter *it, const fr_gpu_lane *lane,
                           fr_err *err)
{
    FR_TRY(it->driver->event_record(it->gpu, lane->end, lane->stream, err));
    return fr_gpu_wait_event(it, lane->end, err);
}

/* Shows the gradients of an OPT_STEP as they are when it begins. */
static fr_status note_gradients(fr_gpu_interpreter *it, const fr_gpu_lane *lane,
                                uint32_t i_call, const fr_instr *instr,
                                void *const *ptr, fr_err *err)
{
    uint64_t n = (uint64_t)instr->range.n;
    bool is_narrow = instr->grad_dtype == FR_DTYPE_BF16;
    float *wide = (float *)(void *)it->gradients;
    void *shown[FR_INSTR_REFS] = {it->gradients};

    if (!is_narrow && instr->grad_dtype != FR_DTYPE_F32)
        return fr_fail(err, FR_CHECK, "gradients in %s cannot be written",
                       fr_dtype_name((fr_dtype)instr->grad_dtype));
    FR_TRY(it->driver->copy(it->gpu, lane->stream, it->gradients, ptr[0],
                            n * (is_narrow ? 2 : sizeof(float)), err));
    FR_TRY(wait_lane(it, lane, err));
    for (uint64_t i = is_narrow ? n : 0; i-- > 0;) {
        uint16_t bits;
        memcpy(&bits, it->gradients + 2 * i, sizeof bits);
        wide[i] = widen(bits);
    }
    fr_instr_view view = {instr, &it->rank.rank_program->calls[i_call], shown};
    it->options.watch.on_gradients(it->options.watch.context, &view);
    return FR_OK;
}

static fr_cuda_launch make_launch(const fr_gpu_interpreter *it, fr_lane lane,
                                  uint32_t i_call, const fr_instr *instr,
                                  void *const *ptr)
{
    fr_cuda_launch launch = {
        .call = fr_rank_kernel_call(&it->rank,
                                    &it->rank.rank_program->calls[i_call],
                                    instr, it->rank.program->plan.n_threads, 0),
        .step = it->device_step,
        .stream = it->lanes[lane].stream,
        .kernels = it->lanes[lane].kernels};

    memcpy(launch.call.ptr, ptr, sizeof launch.call.ptr);
    return launch;
}

static fr_status launch_kernel(fr_gpu_interpreter *it, fr_lane lane,
                               uint32_t i_call, const fr_instr *instr,
                               void *const *ptr, fr_err *err)
{
    fr_cuda_launch launch = make_launch(it, lane, i_call, instr, ptr);
    fr_status status = it->place.system->kernels[instr->op](&launch, err);

    if (status != FR_OK)
        fr_err_prefix(err, "rank %lld: step %lld, %s",
                      (long long)it->place.transport->rank,
                      (long long)it->i_step, fr_op_name((fr_op)instr->op));
    return status;
}

/* Indices of zero point at what is there; but were all copies of rows given to
 * one expert, its capacity would not hold them. */
static fr_status clear_operands(fr_gpu_interpreter *it, fr_gpu_stream stream,
                                const fr_instr *instr, void *const *ptr,
                                fr_err *err)
{
    enum { DROPPED = 0xff };

    for (int i = 0; i < FR_INSTR_REFS; i++) {
        uint64_t n_bytes =
            ptr[i] != NULL
                ? fr_instr_ref_bytes(instr, i, it->rank.n_group[instr->axis])
                : 0;
        if (n_bytes > 0)
            FR_TRY(it->driver->fill(
                it->gpu, stream, ptr[i],
                fr_instr_ref_is_choices(instr, i) ? DROPPED : 0, n_bytes, err));
    }
    return FR_OK;
}

static fr_status try_instr(fr_gpu_interpreter *it, fr_lane lane,
                           uint32_t i_call, const fr_instr *instr, fr_err *err)
{
    const fr_gpu_system *system = it->place.system;
    void *ptr[FR_INSTR_REFS];

    resolve(it, i_call, instr, ptr);
    fr_cuda_launch launch = make_launch(it, lane, i_call, instr, ptr);
    if (system->kernels_tune != NULL)
        FR_TRY(system->kernels_tune(&launch, err));
    FR_TRY(clear_operands(it, it->lanes[lane].stream, instr, ptr, err));
    return launch_kernel(it, lane, i_call, instr, ptr, err);
}

/* Other lanes are idle then: what they share is not written by two. */
static fr_status try_call(fr_gpu_interpreter *it, uint32_t i_call,
                          bool *is_known, fr_err *err)
{
    const fr_segment *segment = fr_rank_segment(&it->rank, i_call);
    const fr_gpu_lane *lane = &it->lanes[segment->lane];
    bool has_new = false;

    for (uint32_t i = 0; i < segment->n_instrs; i++) {
        uint32_t i_instr = segment->first_instr + i;
        const fr_instr *instr = &it->rank.program->instrs[i_instr];
        if (is_known[i_instr] || fr_gpu_is_on_host(instr) ||
            fr_op_class_of((fr_op)instr->op) != FR_OP_CLASS_COMPUTE)
            continue;
        if (!has_new)
            FR_TRY(it->driver->mark(it->gpu, lane->stream,
                                    &it->pinned->marks[segment->lane].call,
                                    i_call + 1, err));
        is_known[i_instr] = has_new = true;
        FR_TRY(try_instr(it, (fr_lane)segment->lane, i_call, instr, err));
    }
    return has_new ? wait_lane(it, lane, err) : FR_OK;
}

fr_status fr_gpu_interpreter_tune(fr_gpu_interpreter *it, fr_err *err)
{
    const fr_gpu_lane *main = &it->lanes[FR_LANE_COMPUTE];
    bool *is_known;

    FR_TRY_CALLOC(is_known, it->rank.program->n_instrs + 1, err);
    fr_status status = it->driver->fill(it->gpu, main->stream, it->device_step,
                                        0, sizeof *it->device_step, err);
    if (status == FR_OK)
        status = wait_lane(it, main, err);
    for (uint32_t i = 0; status == FR_OK && i < it->rank.rank_program->n_calls;
         i++)
        status = try_call(it, i, is_known, err);
    free(is_known);
    if (status != FR_OK)
        fr_gpu_abandon(it);
    return status;
}

/* A group of one: at most a copy. */
static fr_status copy_alone(fr_gpu_interpreter *it, fr_gpu_stream stream,
                            const fr_instr *instr, void *const *ptr,
                            fr_err *err)
{
    uint64_t n_bytes = fr_instr_payload_bytes(instr);

    if (ptr[0] == NULL || ptr[1] == NULL || ptr[0] == ptr[1] || n_bytes == 0)
        return FR_OK;
    return it->driver->copy(it->gpu, stream, ptr[1], ptr[0], n_bytes, err);
}

static fr_status communicate(fr_gpu_interpreter *it, fr_lane lane,
                             uint32_t i_instr, void *const *ptr, fr_err *err)
{
    const fr_instr *instr = &it->rank.program->instrs[i_instr];
    fr_gpu_lane *own = &it->lanes[lane];
    const fr_gpu_driver *driver = it->driver;
    uint32_t *word = &it->pinned->marks[lane].word;
    void *src = ptr[0], *dst = ptr[1] != NULL ? ptr[1] : ptr[0];

    if (it->links == NULL || it->links->groups.routes[i_instr].i_split < 0)
        return copy_alone(it, own->stream, instr, ptr, err);
    if (instr->op == FR_OP_SEND)
        dst = NULL;
    else if (instr->op == FR_OP_RECV)
        src = NULL;
    uint32_t mark = 2 * own->i_comm++ + 1;
    FR_TRY(driver->mark(it->gpu, own->stream, word, mark, err));
    FR_TRY(it->links->ops->enqueue(it->links, i_instr, lane, src, dst,
                                   own->stream, err));
    return driver->mark(it->gpu, own->stream, word, mark + 1, err);
}

static fr_status input_output(fr_gpu_interpreter *it, fr_gpu_stream stream,
                              const fr_instr *instr, void *const *ptr,
                              uint64_t *input_bytes, fr_err *err)
{
    uint64_t n_bytes = (uint64_t)instr->copy.n_bytes;
    const void *from;

    if (instr->op == FR_OP_HOST_COPY) {
        bool is_out = instr->copy.is_to_host != 0;
        return it->driver->copy(
            it->gpu, stream,
            ptr[is_out ? FR_HOST_COPY_HOST : FR_HOST_COPY_BUFFER],
            ptr[is_out ? FR_HOST_COPY_BUFFER : FR_HOST_COPY_HOST], n_bytes,
            err);
    }
    n_bytes = fr_rank_input_bytes(&it->rank, instr);
    from = it->input + *input_bytes;
    *input_bytes += fr_gpu_input_room(it, instr);
    return it->driver->copy(it->gpu, stream, ptr[0], from, n_bytes, err);
}

static fr_status enqueue_instr(fr_gpu_interpreter *it, fr_lane lane,
                               uint32_t i_call, uint32_t i_instr,
                               uint64_t *input_bytes, fr_err *err)
{
    const fr_instr *instr = &it->rank.program->instrs[i_instr];
    fr_gpu_stream stream = it->lanes[lane].stream;
    void *ptr[FR_INSTR_REFS];

    resolve(it, i_call, instr, ptr);
    if (fr_instr_communicates(instr))
        return communicate(it, lane, i_instr, ptr, err);
    if (fr_op_class_of((fr_op)instr->op) == FR_OP_CLASS_IO ||
        fr_rank_input_bytes(&it->rank, instr) > 0)
        return input_output(it, stream, instr, ptr, input_bytes, err);
    if (it->is_noted && instr->op == FR_OP_OPT_STEP)
        FR_TRY(note_gradients(it, &it->lanes[lane], i_call, instr, ptr, err));
    if (fr_gpu_is_on_host(instr))
        return fr_gpu_enqueue_host_step(it, lane, i_call, instr, ptr, err);
    return launch_kernel(it, lane, i_call, instr, ptr, err);
}

/*
 * A stream takes about a thousand operations that have not begun; then a launch
 * waits for it, while nobody looks what goes wrong, and holds up the thread
 * that copies for ranks that share the device (gpu_links_host.c).  So the host
 * stays no more than two windows of a lane's instructions, of a few operations
 * each, ahead of it, and watches when it has to wait.
 */
static fr_status keep_pace(fr_gpu_interpreter *it, fr_gpu_lane *own,
                           fr_err *err)
{
    enum { WINDOW = 64 };
    uint32_t n = own->n_enqueued++;

    if (it->is_captured || n == 0 || n % WINDOW != 0)
        return FR_OK;
    if (n > WINDOW)
        FR_TRY(fr_gpu_wait_event(it, own->paced, err));
    return it->driver->event_record(it->gpu, own->paced, own->stream, err);
}

static fr_status enqueue_call(fr_gpu_interpreter *it, uint32_t i_call,
                              fr_err *err)
{
    const fr_segment *segment = fr_rank_segment(&it->rank, i_call);
    const fr_gpu_call *call = &it->calls[i_call];
    const fr_gpu_driver *driver = it->driver;
    fr_lane lane = (fr_lane)segment->lane;
    fr_gpu_stream stream = it->lanes[lane].stream;
    uint64_t input_bytes = call->input_bytes;

    /* The mark stands before the wait, so that of two lanes that hang the
     * earlier call is named. */
    if (it->lanes[lane].has_kernels)
        FR_TRY(driver->mark(it->gpu, stream, &it->pinned->marks[lane].call,
                            i_call + 1, err));
    for (uint32_t i = 0; i < call->n_waits; i++)
        FR_TRY(driver->stream_wait(
            it->gpu, stream, it->calls[it->waits[call->first_wait + i]].done,
            err));
    for (uint32_t i = 0; i < segment->n_instrs; i++) {
        fr_gpu_event **trace =
            it->is_traced ? it->trace + 2 * (call->first_instr + i) : NULL;
        FR_TRY(keep_pace(it, &it->lanes[lane], err));
        if (trace != NULL)
            FR_TRY(driver->event_record(it->gpu, trace[0], stream, err));
        FR_TRY(enqueue_instr(it, lane, i_call, segment->first_instr + i,
                             &input_bytes, err));
        if (trace != NULL)
            FR_TRY(driver->event_record(it->gpu, trace[1], stream, err));
    }
    if (call->done != NULL)
        FR_TRY(driver->event_record(it->gpu, call->done, stream, err));
    return FR_OK;
}

/* The other lanes begin when the step's values are there. */
static fr_status fork_lanes(fr_gpu_interpreter *it, fr_err *err)
{
    const fr_gpu_driver *driver = it->driver;
    fr_gpu_stream main = it->lanes[FR_LANE_COMPUTE].stream;

    FR_TRY(driver->copy(it->gpu, main, it->device_step, &it->pinned->step,
                        sizeof it->pinned->step, err));
    FR_TRY(driver->event_record(it->gpu, it->begin, main, err));
    for (int lane = 0; lane < FR_LANE_N; lane++) {
        it->lanes[lane].i_comm = it->lanes[lane].n_enqueued = 0;
        if (lane != FR_LANE_COMPUTE && it->lanes[lane].stream != NULL)
            FR_TRY(driver->stream_wait(it->gpu, it->lanes[lane].stream,
                                       it->begin, err));
    }
    return FR_OK;
}

static fr_status join_lanes(fr_gpu_interpreter *it, fr_err *err)
{
    const fr_gpu_driver *driver = it->driver;
    const fr_gpu_lane *main = &it->lanes[FR_LANE_COMPUTE];

    for (int lane = 0; lane < FR_LANE_N; lane++) {
        const fr_gpu_lane *other = &it->lanes[lane];
        if (other->has_kernels)
            FR_TRY(driver->mark(it->gpu, other->stream,
                                &it->pinned->marks[lane].call,
                                FR_GPU_LANE_ENDED, err));
        if (lane == FR_LANE_COMPUTE || other->stream == NULL)
            continue;
        FR_TRY(driver->event_record(it->gpu, other->end, other->stream, err));
        FR_TRY(driver->stream_wait(it->gpu, main->stream, other->end, err));
    }
    return FR_OK;
}

static fr_status copy_scalars(fr_gpu_interpreter *it, fr_err *err)
{
    return it->driver->copy(
        it->gpu, it->lanes[FR_LANE_COMPUTE].stream, &it->pinned->scalars,
        it->place.slab + it->rank.rank_program->step_offset_bytes,
        sizeof it->pinned->scalars, err);
}

/* If ranks share a device, this copy must not wait in a stream for data of
 * another rank: it could delay the copy that sends these data
 * (gpu_links_host.c). */
static bool is_copied_late(const fr_gpu_interpreter *it)
{
    return it->links != NULL && !it->links->ops->is_capturable;
}

fr_status fr_gpu_enqueue_step(fr_gpu_interpreter *it, fr_err *err)
{
    FR_TRY(fork_lanes(it, err));
    for (uint32_t i = 0; i < it->rank.rank_program->n_calls; i++)
        FR_TRY(enqueue_call(it, i, err));
    FR_TRY(join_lanes(it, err));
    return is_copied_late(it) ? FR_OK : copy_scalars(it, err);
}

fr_status fr_gpu_finish_step(fr_gpu_interpreter *it, fr_err *err)
{
    if (!is_copied_late(it))
        return FR_OK;
    FR_TRY(copy_scalars(it, err));
    return wait_lane(it, &it->lanes[FR_LANE_COMPUTE], err);
}
