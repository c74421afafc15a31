/*
 * comm_thread.c: the communication thread.  It goes round the heads of the
 * asynchronous lanes, gives each a slice of work, and sleeps when none of
 * them can go on.
 */
#include "core/system/clock.h"
#include "kernels/cpu/kernels_cpu.h"
#include "runtime/run/interpreter_state.h"

#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define POLL_NS 50000   /* while messages are under way */
#define SLICE_NS 100000 /* the shortest that Linux grants */
#define WAIT_PER_NAP 8
#define NAP_MAX_NS 500000
#define BEAT_NS (100 * 1000000) /* else: one look now and then */

/* Starts or goes on with the engine's instruction of an asynchronous lane. */
static fr_status go_on(fr_interpreter *it, fr_lane lane, uint32_t i_call,
                       uint32_t i_instr, bool *is_done, bool *has_moved,
                       fr_err *err)
{
    fr_lane_state *state = &it->lanes[lane];
    void *ptr[FR_INSTR_REFS];

    if (!state->is_started) {
        const fr_instr *instr = &it->rank.program->instrs[i_instr];
        fr_interpreter_resolve(it, i_call, instr, ptr);
        fr_engine_start(it->engine, i_instr, ptr[0],
                        ptr[1] != NULL ? ptr[1] : ptr[0]);
        state->is_started = true;
        *has_moved = true;
    }
    bool has_gone_on = false;
    FR_TRY(fr_engine_progress(it->engine, lane, is_done, &has_gone_on, err));
    *has_moved = *has_moved || has_gone_on;
    return FR_OK;
}

static void finish_call(fr_interpreter *it, fr_lane_state *state,
                        uint32_t i_call)
{
    atomic_store_explicit(&it->done[i_call], it->step_mark,
                          memory_order_release);
    fr_shm_ring(&it->control->bell[FR_BELL_MAIN]);
    state->i_call++;
    state->i_instr = 0;
    state->is_open = false;
}

static fr_status progress_lane(fr_interpreter *it, fr_lane lane,
                               bool *has_moved, fr_err *err)
{
    fr_lane_state *state = &it->lanes[lane];
    bool is_done = false, has_gone_on = false;

    if (state->i_call >= state->n_calls)
        return FR_OK;
    uint32_t i_call = state->calls[state->i_call];
    const fr_segment *segment = fr_rank_segment(&it->rank, i_call);
    const uint32_t n_instrs = fr_interpreter_n_instrs(it, i_call);
    if (!state->is_open && !fr_interpreter_is_ready(it, i_call))
        return FR_OK;
    if (!state->is_started &&
        fr_inject_holds_back(&it->inject, FR_INJECT_COMM)) {
        *has_moved = true;
        return FR_OK;
    }
    state->is_open = true;
    if (state->i_instr < n_instrs) {
        uint32_t i_instr = segment->first_instr + state->i_instr;
        if (!state->is_started)
            state->begin_ns = state->moved_ns = fr_clock_ns();
        if (fr_instr_communicates(&it->rank.program->instrs[i_instr])) {
            FR_TRY(
                go_on(it, lane, i_call, i_instr, &is_done, &has_gone_on, err));
        } else {
            FR_TRY(fr_interpreter_execute(it, i_call, i_instr, 1, err));
            is_done = has_gone_on = true;
        }
        if (has_gone_on && !is_done)
            state->moved_ns = fr_clock_ns();
        *has_moved = *has_moved || has_gone_on;
        if (!is_done)
            return FR_OK;
        fr_interpreter_record(it, lane, i_call, i_instr, state->begin_ns,
                              it->is_traced ? fr_clock_ns() : 0);
        state->is_started = false;
        state->i_instr++;
    }
    *has_moved = true;
    if (state->i_instr >= n_instrs)
        finish_call(it, state, i_call);
    return FR_OK;
}

/* The compute lane's collective, if it has handed one over. */
static fr_status progress_handoff(fr_interpreter *it, bool *has_moved,
                                  fr_err *err)
{
    fr_lane_state *state = &it->lanes[FR_LANE_COMPUTE];
    bool is_done = false, has_gone_on = false;

    if (atomic_load_explicit(&it->handoff, memory_order_acquire) !=
        FR_HANDOFF_POSTED)
        return FR_OK;
    if (!state->is_started) {
        fr_engine_start(it->engine, it->handoff_instr, it->handoff_src,
                        it->handoff_dst);
        state->is_started = true;
        it->handoff_moved_ns = fr_clock_ns();
    }
    FR_TRY(fr_engine_progress(it->engine, FR_LANE_COMPUTE, &is_done,
                              &has_gone_on, err));
    if (has_gone_on)
        it->handoff_moved_ns = fr_clock_ns();
    if (is_done) {
        state->is_started = false;
        atomic_store_explicit(&it->handoff, FR_HANDOFF_DONE,
                              memory_order_release);
        fr_shm_ring(&it->control->bell[FR_BELL_MAIN]);
    }
    *has_moved = *has_moved || has_gone_on || is_done;
    return FR_OK;
}

/* Opens the next step for the lanes, or closes the one they have finished. */
static void turn_step(fr_interpreter *it, bool *has_moved)
{
    uint32_t open = atomic_load_explicit(&it->open_mark, memory_order_acquire);

    for (int lane = 1; lane < FR_LANE_N; lane++)
        if (it->lanes[lane].i_call < it->lanes[lane].n_calls)
            return;
    uint32_t finished =
        atomic_load_explicit(&it->lanes_mark, memory_order_relaxed);
    if (finished == open)
        return;
    if (it->comm_mark != open) {
        it->comm_mark = open;
        for (int lane = 1; lane < FR_LANE_N; lane++)
            it->lanes[lane].i_call = 0;
    } else {
        atomic_store_explicit(&it->lanes_mark, open, memory_order_release);
        fr_shm_ring(&it->control->bell[FR_BELL_MAIN]);
    }
    *has_moved = true;
}

/* Tells what holds the compute lane up where it waits for other lanes. */
static void note_wait(const fr_interpreter *it, int64_t now_ns)
{
    const int64_t least_ns = 100 * 1000000;
    const fr_step_watch *watch = &it->options.watch;

    if (watch->on_wait == NULL ||
        !atomic_load_explicit(&it->is_held, memory_order_relaxed))
        return;
    if (it->lanes[FR_LANE_COMPUTE].is_started) {
        if (now_ns - it->handoff_moved_ns > least_ns)
            watch->on_wait(watch->context, it->handoff_call, it->handoff_instr,
                           fr_engine_waits_for(it->engine, FR_LANE_COMPUTE));
        return;
    }
    for (int lane = 1; lane < FR_LANE_N; lane++) {
        const fr_lane_state *state = &it->lanes[lane];
        if (!state->is_started || now_ns - state->moved_ns < least_ns)
            continue;
        const uint32_t i_call = state->calls[state->i_call];
        watch->on_wait(watch->context, i_call,
                       fr_rank_segment(&it->rank, i_call)->first_instr +
                           state->i_instr,
                       fr_engine_waits_for(it->engine, (fr_lane)lane));
    }
}

static fr_status check_limits(fr_interpreter *it, int64_t now_ns, fr_err *err)
{
    int64_t limit_ns = (int64_t)(it->options.timeout_s * 1e9);
    bool has_dead_peer = fr_transport_failed_rank(it->transport) >= 0;

    note_wait(it, now_ns);

    for (int lane = 1; lane < FR_LANE_N; lane++) {
        const fr_lane_state *state = &it->lanes[lane];
        if (!state->is_started ||
            (!has_dead_peer && now_ns - state->moved_ns < limit_ns))
            continue;
        uint32_t i_call = state->calls[state->i_call];
        return fr_interpreter_fail_wait(
            it, i_call,
            fr_rank_segment(&it->rank, i_call)->first_instr + state->i_instr,
            fr_engine_waits_for(it->engine, (fr_lane)lane), err);
    }
    if (it->lanes[FR_LANE_COMPUTE].is_started &&
        (has_dead_peer || now_ns - it->handoff_moved_ns >= limit_ns))
        return fr_interpreter_fail_wait(
            it, it->handoff_call, it->handoff_instr,
            fr_engine_waits_for(it->engine, FR_LANE_COMPUTE), err);
    return FR_OK;
}

/*
 * Messages ring no bell: they are looked for again and again, which costs the
 * compute thread beside this one its core.  While bytes move, naps are short.
 * A message that nobody has begun to send may be found a little later when it
 * has not come for long: naps are a share of the wait so far.
 */
static int64_t nap_ns(const fr_interpreter *it, const fr_waiter *waiter)
{
    int64_t nap = BEAT_NS;

    for (int lane = 0; lane < FR_LANE_N; lane++) {
        if (!it->lanes[lane].is_started ||
            !fr_engine_has_messages(it->engine, (fr_lane)lane))
            continue;
        if (!fr_engine_awaits_message(it->engine, (fr_lane)lane))
            return POLL_NS;
        nap = (int64_t)(fr_waiter_waited_s(waiter) * 1e9) / WAIT_PER_NAP;
        nap = nap < POLL_NS ? POLL_NS : nap > NAP_MAX_NS ? NAP_MAX_NS : nap;
    }
    return nap;
}

static fr_status serve(fr_interpreter *it, fr_err *err)
{
    fr_waiter waiter;

    fr_waiter_init(&waiter, &it->control->bell[FR_BELL_COMM]);
    if (it->options.is_core_shared) {
        waiter.spin_ns = 500;
        waiter.yield_ns = 5000;
    }
    while (!atomic_load_explicit(&it->should_stop, memory_order_acquire)) {
        bool has_moved = false;
        turn_step(it, &has_moved);
        for (int lane = 1; lane < FR_LANE_N; lane++)
            FR_TRY(progress_lane(it, (fr_lane)lane, &has_moved, err));
        FR_TRY(progress_handoff(it, &has_moved, err));
        if (has_moved) {
            fr_waiter_reset(&waiter);
            continue;
        }
        waiter.sleep_ns = nap_ns(it, &waiter);
        fr_waiter_pause(&waiter);
        if (it->options.beat_ns != NULL)
            atomic_store_explicit(it->options.beat_ns, waiter.now_ns,
                                  memory_order_relaxed);
        if (fr_waiter_waited_s(&waiter) > 0.01)
            FR_TRY(check_limits(it, waiter.now_ns, err));
    }
    return FR_OK;
}

/* sched_setattr(2), which the C library does not wrap. */
typedef struct sched_attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t slice_ns, deadline_ns, period_ns;
} sched_attributes;

/*
 * Works in short bursts beside a compute thread: a kernel that knows slices
 * (Linux 6.12) then lets it in at once when it wakes, where it would wait for
 * the end of the other's slice of milliseconds.  Other kernels ignore it.
 */
static void ask_for_short_slices(void)
{
    sched_attributes attributes = {.size = sizeof attributes};

    if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0 ||
        attributes.policy != SCHED_OTHER)
        return;
    attributes.slice_ns = SLICE_NS;
    (void)syscall(SYS_sched_setattr, 0, &attributes, 0);
}

static void *comm_main(void *context)
{
    fr_interpreter *it = context;
    fr_err err = {0};

    ask_for_short_slices();
    (void)prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
    if (it->options.comm_core >= 0) {
        cpu_set_t cores;
        CPU_ZERO(&cores);
        CPU_SET((size_t)it->options.comm_core, &cores);
        (void)sched_setaffinity(0, sizeof cores, &cores);
    }
    fr_kernels_cpu_set_threads(1);
    if (serve(it, &err) != FR_OK) {
        it->comm_err = err;
        atomic_store_explicit(&it->has_failed, true, memory_order_release);
        fr_shm_ring(&it->control->bell[FR_BELL_MAIN]);
    }
    return NULL;
}

fr_status fr_comm_start(fr_interpreter *it, fr_err *err)
{
    if (pthread_create(&it->thread, NULL, comm_main, it) != 0)
        return fr_fail(err, FR_FAILURE,
                       "cannot start the communication thread");
    it->has_thread = true;
    return FR_OK;
}

void fr_comm_stop(fr_interpreter *it)
{
    if (!it->has_thread)
        return;
    atomic_store_explicit(&it->should_stop, true, memory_order_release);
    fr_shm_ring(&it->control->bell[FR_BELL_COMM]);
    (void)pthread_join(it->thread, NULL);
    it->has_thread = false;
}
