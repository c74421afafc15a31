/*
 * gpu_interpreter_watch.c: waits for the device without being fooled: a
 * failure of the library, a rank that gave up, a communication or a kernel
 * that does not end.
 */
#include "core/system/clock.h"
#include "runtime/gpu/gpu_interpreter_state.h"

#define LOOK_NS (10 * 1000000) /* between two looks for trouble */

/* The communication that a lane is in, NULL: none. */
static const fr_gpu_lane_comm *current_comm(const fr_gpu_interpreter *it,
                                            int lane)
{
    const fr_gpu_lane *own = &it->lanes[lane];
    uint32_t mark = own->last_mark;

    if (mark % 2 == 0 || mark / 2 >= own->n_comms)
        return NULL;
    return &own->comms[mark / 2];
}

static void name_comm(const fr_gpu_interpreter *it,
                      const fr_gpu_lane_comm *comm, fr_err *err)
{
    const fr_instr *instr = &it->rank.program->instrs[comm->i_instr];

    fr_err_prefix(err, "rank %lld: step %lld, %s over %s (call %u %s)",
                  (long long)it->place.transport->rank, (long long)it->i_step,
                  fr_op_name((fr_op)instr->op),
                  fr_axis_name((fr_axis)instr->axis), comm->i_call,
                  fr_rank_segment(&it->rank, comm->i_call)->name);
}

/* Lets the neighbours see which collectives this lane has begun. */
static void publish(const fr_gpu_interpreter *it, int lane)
{
    const fr_gpu_lane *own = &it->lanes[lane];
    uint64_t n_begun[FR_AXIS_N] = {0};
    bool is_met[FR_AXIS_N] = {false};

    if (it->links == NULL || it->links->ops->publish == NULL)
        return;
    for (uint32_t i = 0; i < own->n_comms; i++) {
        uint8_t axis = it->rank.program->instrs[own->comms[i].i_instr].axis;
        is_met[axis] = true;
        n_begun[axis] += i < (own->last_mark + 1) / 2;
    }
    for (int axis = 0; axis < FR_AXIS_N; axis++)
        if (is_met[axis])
            it->links->ops->publish(it->links, (fr_axis)axis, (fr_lane)lane,
                                    ((uint64_t)it->i_step << 24) +
                                        n_begun[axis]);
}

/* Sees how far the lanes are.  The lane that is in a communication for the
 * longest time, -1: none is. */
static int look_at_lanes(fr_gpu_interpreter *it, int64_t now_ns)
{
    int slowest = -1;

    for (int lane = 0; lane < FR_LANE_N; lane++) {
        fr_gpu_lane *own = &it->lanes[lane];
        uint32_t mark =
            __atomic_load_n(&it->pinned->marks[lane].word, __ATOMIC_ACQUIRE);
        uint32_t call =
            __atomic_load_n(&it->pinned->marks[lane].call, __ATOMIC_ACQUIRE);
        if (mark != own->last_mark || call != own->last_call)
            it->moved_ns = now_ns;
        own->last_call = call;
        if (mark != own->last_mark) {
            own->last_mark = mark;
            own->moved_ns = now_ns;
            publish(it, lane);
        }
        if (current_comm(it, lane) != NULL &&
            (slowest < 0 || own->moved_ns < it->lanes[slowest].moved_ns))
            slowest = lane;
    }
    return slowest;
}

static void show_status(const fr_gpu_interpreter *it, int slowest)
{
    if (it->options.watch.on_status == NULL || slowest < 0)
        return;
    const fr_gpu_lane_comm *comm = current_comm(it, slowest);
    it->options.watch.on_status(it->options.watch.context, it->i_step,
                                comm->i_call, comm->i_instr);
}

static fr_status fail_late(const fr_gpu_interpreter *it, int lane, fr_err *err)
{
    const fr_gpu_lane_comm *comm = current_comm(it, lane);
    int64_t absent =
        it->links->ops->waits_for(it->links, comm->i_instr, (fr_lane)lane);
    fr_status status =
        absent >= 0 ? fr_fail(err, FR_FAILURE, "waited %.3g s for rank %lld",
                              it->place.timeout_s, (long long)absent)
                    : fr_fail(err, FR_FAILURE, "no end after %.3g s",
                              it->place.timeout_s);

    name_comm(it, comm, err);
    return status;
}

/*
 * Returns the call that hangs if nothing progresses and no communication is
 * under way: the earliest call that a lane is in. -1: no call has begun, or all
 * are over.
 */
static int64_t find_stuck_call(const fr_gpu_interpreter *it)
{
    int64_t earliest = -1;

    for (int lane = 0; lane < FR_LANE_N; lane++) {
        uint32_t call = it->lanes[lane].last_call;
        if (call == 0 || call == FR_GPU_LANE_ENDED)
            continue;
        if (earliest < 0 || (int64_t)call - 1 < earliest)
            earliest = (int64_t)call - 1;
    }
    return earliest;
}

static fr_status fail_stuck(const fr_gpu_interpreter *it, fr_err *err)
{
    long long rank = (long long)it->place.transport->rank;
    int64_t i_call = find_stuck_call(it);

    if (i_call < 0)
        return fr_fail(err, FR_FAILURE,
                       "rank %lld: step %lld: the device does nothing for "
                       "%.3g s",
                       rank, (long long)it->i_step, it->place.timeout_s);
    const fr_segment *segment = fr_rank_segment(&it->rank, (uint32_t)i_call);
    const fr_instr *instrs = it->rank.program->instrs + segment->first_instr;
    return fr_fail(err, FR_FAILURE,
                   "rank %lld: step %lld, call %lld %s (%s to %s): a kernel "
                   "has not ended after %.3g s",
                   rank, (long long)it->i_step, (long long)i_call,
                   segment->name, fr_op_name((fr_op)instrs[0].op),
                   fr_op_name((fr_op)instrs[segment->n_instrs - 1].op),
                   it->place.timeout_s);
}

/* Asks the library of communicators for failures. */
static fr_status look_at_links(const fr_gpu_interpreter *it, int slowest,
                               fr_err *err)
{
    fr_status status = it->links->ops->check(it->links, err);

    if (status != FR_OK && slowest >= 0)
        name_comm(it, current_comm(it, slowest), err);
    else if (status != FR_OK)
        fr_err_prefix(err, "rank %lld: step %lld",
                      (long long)it->place.transport->rank,
                      (long long)it->i_step);
    return status;
}

/* Fails if there is a reason to stop waiting. */
static fr_status look(fr_gpu_interpreter *it, int64_t now_ns, fr_err *err)
{
    const fr_transport *transport = it->place.transport;
    int slowest = look_at_lanes(it, now_ns);
    int64_t failed = fr_transport_failed_rank(transport);

    show_status(it, slowest);
    if (failed >= 0)
        return fr_fail(err, FR_FAILURE, "%s",
                       transport->control[failed]->failure);
    if (transport->ops->check != NULL)
        FR_TRY(transport->ops->check(it->place.transport, err));
    if (it->links != NULL)
        FR_TRY(look_at_links(it, slowest, err));
    int64_t moved_ns = slowest < 0 ? it->moved_ns : it->lanes[slowest].moved_ns;
    if ((double)(now_ns - moved_ns) * 1e-9 <= it->place.timeout_s)
        return FR_OK;
    return slowest < 0 ? fail_stuck(it, err) : fail_late(it, slowest, err);
}

fr_status fr_gpu_wait_event(fr_gpu_interpreter *it, fr_gpu_event *event,
                            fr_err *err)
{
    fr_transport *transport = it->place.transport;
    fr_waiter waiter;
    int64_t looked_ns = fr_clock_ns();
    bool is_done = false;

    for (int lane = 0; lane < FR_LANE_N; lane++) {
        it->lanes[lane].last_mark = it->lanes[lane].last_call = 0;
        it->lanes[lane].moved_ns = looked_ns;
    }
    it->moved_ns = looked_ns;
    fr_waiter_init(&waiter, &transport->idle_bell);
    waiter.sleep_ns = 50000;
    for (;;) {
        fr_status status =
            it->driver->event_query(it->gpu, event, &is_done, err);
        if (status != FR_OK)
            fr_err_prefix(err, "rank %lld: step %lld",
                          (long long)transport->rank, (long long)it->i_step);
        if (status != FR_OK || is_done)
            return status;
        fr_waiter_pause(&waiter);
        if (waiter.now_ns - looked_ns < LOOK_NS)
            continue;
        looked_ns = waiter.now_ns;
        FR_TRY(look(it, looked_ns, err));
    }
}

fr_status fr_gpu_watch(fr_gpu_interpreter *it, fr_err *err)
{
    return fr_gpu_wait_event(it, it->lanes[FR_LANE_COMPUTE].end, err);
}
