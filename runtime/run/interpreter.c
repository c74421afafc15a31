/* interpreter.c: the compute lane, and what both threads use. */
#include "core/system/clock.h"
#include "kernels/cpu/kernels_cpu.h"
#include "kernels/cpu/narrow/narrow.h"
#include "runtime/run/interpreter_state.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void fr_interpreter_resolve(const fr_interpreter *it, uint32_t i_call,
                            const fr_instr *instr, void *ptr[FR_INSTR_REFS])
{
    fr_call_operands(it->rank.rank_program,
                     &it->rank.rank_program->calls[i_call], instr,
                     it->rank.coordinate, it->slab, ptr);
}

/* To whoever watches, as float32. */
static fr_status show_gradients(const fr_interpreter *it, const fr_call *call,
                                const fr_instr *instr, void *const *ptr,
                                fr_err *err)
{
    const fr_dtype dtype = (fr_dtype)instr->grad_dtype;
    void *shown[FR_INSTR_REFS];
    const fr_instr_view view = {instr, call, shown};
    float *wide = NULL;

    memcpy(shown, ptr, sizeof shown);
    if (dtype != FR_DTYPE_F32) {
        wide = malloc((size_t)instr->range.n * sizeof *wide);
        if (wide == NULL)
            return fr_fail_no_memory(err);
        fr_narrow_load(wide, ptr[FR_OPT_STEP_G], dtype, 0, instr->range.n);
        shown[FR_OPT_STEP_G] = wide;
    }
    it->options.watch.on_gradients(it->options.watch.context, &view);
    free(wide);
    return FR_OK;
}

fr_status fr_interpreter_execute(fr_interpreter *it, uint32_t i_call,
                                 uint32_t i_instr, int n_threads, fr_err *err)
{
    const fr_instr *instr = &it->rank.program->instrs[i_instr];
    const fr_call *call = &it->rank.rank_program->calls[i_call];
    fr_kernel_call kernel =
        fr_rank_kernel_call(&it->rank, call, instr, n_threads, it->i_step);

    kernel.convs = it->convs;
    kernel.is_evaluation = it->is_evaluation;
    if (it->is_evaluation)
        kernel.dropout = 0;
    fr_interpreter_resolve(it, i_call, instr, kernel.ptr);
    if (it->options.watch.on_gradients != NULL && instr->op == FR_OP_OPT_STEP)
        FR_TRY(show_gradients(it, call, instr, kernel.ptr, err));
    if (fr_rank_input_bytes(&it->rank, instr) > 0)
        return fr_rank_load(&it->rank, call, instr, it->i_step, kernel.ptr[0],
                            err);
    if (fr_kernels_cpu[instr->op] == NULL)
        return fr_fail(err, FR_CHECK, "%s has no CPU kernel",
                       fr_op_name((fr_op)instr->op));
    kernel.scratch = it->scratch[fr_rank_segment(&it->rank, i_call)->lane !=
                                 FR_LANE_COMPUTE];
    fr_kernels_cpu_run(&kernel);
    return FR_OK;
}

uint32_t fr_interpreter_n_instrs(const fr_interpreter *it, uint32_t i_call)
{
    const fr_call *call = &it->rank.rank_program->calls[i_call];

    return it->is_evaluation && it->is_evaluated[call->i_segment] == 0
               ? 0
               : fr_rank_segment(&it->rank, i_call)->n_instrs;
}

bool fr_interpreter_is_ready(const fr_interpreter *it, uint32_t i_call)
{
    const fr_call *call = &it->rank.rank_program->calls[i_call];
    const uint32_t *deps = it->rank.rank_program->deps + call->first_dep;

    for (uint32_t i = 0; i < call->n_deps; i++)
        if (atomic_load_explicit(&it->done[deps[i]], memory_order_acquire) !=
            it->step_mark)
            return false;
    return true;
}

void fr_interpreter_record(fr_interpreter *it, fr_lane lane, uint32_t i_call,
                           uint32_t i_instr, int64_t begin_ns, int64_t end_ns)
{
    fr_lane_state *state = &it->lanes[lane];

    if (!it->is_traced || state->n_spans == state->cap_spans)
        return;
    state->spans[state->n_spans++] = (fr_span){
        .rank = (int32_t)it->transport->rank,
        .lane = (uint8_t)lane,
        .op = it->rank.program->instrs[i_instr].op,
        .i_call = i_call,
        .i_instr = i_instr,
        .step = (int32_t)it->i_step,
        .begin_ps = (begin_ns - it->step_begin_ns) * 1000,
        .end_ps = (end_ns - it->step_begin_ns) * 1000,
    };
}

fr_status fr_interpreter_fail_wait(const fr_interpreter *it, uint32_t i_call,
                                   uint32_t i_instr, int64_t peer, fr_err *err)
{
    const fr_instr *instr = &it->rank.program->instrs[i_instr];
    int64_t failed = fr_transport_failed_rank(it->transport);

    if (failed >= 0)
        return fr_fail(err, FR_FAILURE, "%s",
                       it->transport->control[failed]->failure);
    return fr_fail(err, FR_FAILURE,
                   "rank %lld: step %lld, %s over %s (call %u %s): waited "
                   "%.3g s for rank %lld",
                   (long long)it->transport->rank, (long long)it->i_step,
                   fr_op_name((fr_op)instr->op),
                   fr_axis_name((fr_axis)instr->axis), i_call,
                   fr_rank_segment(&it->rank, i_call)->name,
                   it->options.timeout_s, (long long)peer);
}

/* The part of what a call does on its own lane. */
static fr_part part_of_call(const fr_interpreter *it, uint32_t i_call)
{
    const fr_segment *segment = fr_rank_segment(&it->rank, i_call);

    return segment->n_instrs > 0
               ? (fr_part)it->part_of_instr[segment->first_instr]
               : FR_PART_OTHER;
}

static bool is_call_done(const fr_interpreter *it, uint32_t i_call)
{
    return atomic_load_explicit(&it->done[i_call], memory_order_acquire) ==
           it->step_mark;
}

/* Returns the part for which a call that is not ready waits. */
static fr_part part_awaited(const fr_interpreter *it, uint32_t i_call)
{
    const fr_call *call = &it->rank.rank_program->calls[i_call];
    const uint32_t *deps = it->rank.rank_program->deps + call->first_dep;

    for (uint32_t i = 0; i < call->n_deps; i++)
        if (!is_call_done(it, deps[i]))
            return part_of_call(it, deps[i]);
    return FR_PART_OTHER;
}

/* Returns the part for which the end of the step waits: that of the lanes that
 * are still busy. */
static fr_part part_of_end(const fr_interpreter *it)
{
    for (int lane = 1; lane < FR_LANE_N; lane++) {
        const fr_lane_state *state = &it->lanes[lane];
        if (state->n_calls > 0 &&
            !is_call_done(it, state->calls[state->n_calls - 1]))
            return part_of_call(it, state->calls[state->n_calls - 1]);
    }
    return FR_PART_OTHER;
}

void fr_interpreter_part_s(const fr_interpreter *it, double part_s[FR_PART_N])
{
    for (int part = 0; part < FR_PART_N; part++)
        part_s[part] = 1e-9 * (double)it->part_ns[part];
}

uint64_t fr_interpreter_received_bytes(const fr_interpreter *it)
{
    return fr_engine_received_bytes(it->engine);
}

static void init_main_waiter(const fr_interpreter *it, fr_waiter *waiter)
{
    fr_waiter_init(waiter, &it->control->bell[FR_BELL_MAIN]);
    waiter->spin_ns = it->options.is_crowded ? 2000 : 50 * 1000;
    waiter->yield_ns = it->options.is_crowded ? 20 * 1000 : 200 * 1000;
}

/* Looks for reasons to stop waiting, now and then. */
static fr_status check_wait(const fr_interpreter *it, const fr_waiter *waiter,
                            uint32_t i_call, uint32_t i_instr, fr_err *err)
{
    if (atomic_load_explicit(&it->has_failed, memory_order_acquire)) {
        if (err != NULL)
            *err = it->comm_err;
        return it->comm_err.status;
    }
    double waited_s = fr_waiter_waited_s(waiter);
    if (waited_s < 0.01)
        return FR_OK;
    const int64_t peer = fr_engine_waits_for(it->engine, FR_LANE_COMPUTE);
    if (it->options.watch.on_wait != NULL)
        it->options.watch.on_wait(it->options.watch.context, i_call, i_instr,
                                  peer);
    bool is_over = waited_s > it->options.timeout_s;
    if (is_over || fr_transport_failed_rank(it->transport) >= 0)
        return fr_interpreter_fail_wait(it, i_call, i_instr, peer, err);
    return FR_OK;
}

/*
 * Waits for something that the own communication thread will do.  What that
 * thread waits for has its own limit, so here twice as long is never reached
 * but by a program that cannot end.
 */
static fr_status wait_for(fr_interpreter *it, uint32_t i_call,
                          bool (*is_there)(const fr_interpreter *, uint32_t),
                          fr_err *err)
{
    fr_waiter waiter;

    if (is_there(it, i_call))
        return FR_OK;
    init_main_waiter(it, &waiter);
    atomic_store_explicit(&it->is_held, true, memory_order_relaxed);
    do {
        fr_waiter_pause(&waiter);
        if (atomic_load_explicit(&it->has_failed, memory_order_acquire)) {
            fr_waiter_reset(&waiter);
            if (err != NULL)
                *err = it->comm_err;
            return it->comm_err.status;
        }
        if (fr_waiter_waited_s(&waiter) > 2 * it->options.timeout_s + 10) {
            fr_waiter_reset(&waiter);
            return fr_fail(err, FR_FAILURE,
                           "rank %lld: step %lld: call %u waits for its own "
                           "lanes",
                           (long long)it->transport->rank,
                           (long long)it->i_step, i_call);
        }
    } while (!is_there(it, i_call));
    atomic_store_explicit(&it->is_held, false, memory_order_relaxed);
    fr_waiter_reset(&waiter);
    return FR_OK;
}

static bool is_handoff_done(const fr_interpreter *it, uint32_t i_call)
{
    (void)i_call;
    return atomic_load_explicit(&it->handoff, memory_order_acquire) ==
           FR_HANDOFF_DONE;
}

static bool are_lanes_done(const fr_interpreter *it, uint32_t i_call)
{
    (void)i_call;
    return atomic_load_explicit(&it->lanes_mark, memory_order_acquire) ==
           it->step_mark;
}

/* Messages are the communication thread's alone. */
static fr_status hand_over(fr_interpreter *it, uint32_t i_call,
                           uint32_t i_instr, void *const *ptr, fr_err *err)
{
    it->handoff_call = i_call;
    it->handoff_instr = i_instr;
    it->handoff_src = ptr[0];
    it->handoff_dst = ptr[1] != NULL ? ptr[1] : ptr[0];
    atomic_store_explicit(&it->handoff, FR_HANDOFF_POSTED,
                          memory_order_release);
    fr_shm_ring(&it->control->bell[FR_BELL_COMM]);
    FR_TRY(wait_for(it, i_call, is_handoff_done, err));
    atomic_store_explicit(&it->handoff, FR_HANDOFF_NONE, memory_order_relaxed);
    return FR_OK;
}

static fr_status communicate(fr_interpreter *it, uint32_t i_call,
                             uint32_t i_instr, fr_err *err)
{
    const fr_instr *instr = &it->rank.program->instrs[i_instr];
    void *ptr[FR_INSTR_REFS];
    bool is_done = false, has_moved = false;
    fr_waiter waiter;

    fr_interpreter_resolve(it, i_call, instr, ptr);
    if (instr->ref[FR_COMM_SRC].space == FR_SPACE_STEP &&
        instr->ref[FR_COMM_SRC].offset_bytes ==
            offsetof(fr_step_scalars, loss_sum))
        memcpy(&it->own_loss, ptr[FR_COMM_SRC], sizeof it->own_loss);
    if (!fr_engine_route_of(it->engine, i_instr)->is_shared)
        return hand_over(it, i_call, i_instr, ptr, err);
    fr_engine_start(it->engine, i_instr, ptr[0],
                    ptr[1] != NULL ? ptr[1] : ptr[0]);
    init_main_waiter(it, &waiter);
    fr_status status = FR_OK;
    while (status == FR_OK && !is_done) {
        status = fr_engine_progress(it->engine, FR_LANE_COMPUTE, &is_done,
                                    &has_moved, err);
        if (has_moved) {
            fr_waiter_reset(&waiter);
            continue;
        }
        fr_waiter_pause(&waiter);
        if (status == FR_OK)
            status = check_wait(it, &waiter, i_call, i_instr, err);
    }
    fr_waiter_reset(&waiter);
    return status;
}

/* Stands still, as a rank that hangs does, until others have given up. */
static fr_status hang(const fr_interpreter *it, uint32_t i_call,
                      uint32_t i_instr, fr_err *err)
{
    while (fr_transport_failed_rank(it->transport) < 0 &&
           !atomic_load_explicit(&it->has_failed, memory_order_acquire))
        fr_sleep_s(0.01);
    return fr_interpreter_fail_wait(it, i_call, i_instr, -1, err);
}

static fr_status run_instr(fr_interpreter *it, uint32_t i_call,
                           uint32_t i_instr, fr_err *err)
{
    const fr_part part = (fr_part)it->part_of_instr[i_instr];
    const bool is_slowed = it->inject.factor > 1;
    const bool is_timed = it->is_traced || is_slowed || part != FR_PART_COMPUTE;
    const bool communicates =
        fr_instr_communicates(&it->rank.program->instrs[i_instr]);

    if (it->options.watch.on_status != NULL)
        it->options.watch.on_status(it->options.watch.context, it->i_step,
                                    i_call, i_instr);
    if (it->inject.is_hung)
        return hang(it, i_call, i_instr, err);
    (void)fr_inject_holds_back(&it->inject, FR_INJECT_COMPUTE);
    if (communicates)
        fr_inject_settle(&it->inject);
    int64_t begin_ns = is_timed ? fr_clock_ns() : 0;
    if (communicates)
        FR_TRY(communicate(it, i_call, i_instr, err));
    else
        FR_TRY(fr_interpreter_execute(it, i_call, i_instr,
                                      it->rank.program->plan.n_threads, err));
    if (is_slowed && !communicates)
        fr_inject_slow(&it->inject, fr_clock_ns() - begin_ns);
    if (!is_timed)
        return FR_OK;
    int64_t end_ns = fr_clock_ns();
    it->part_ns[part] += end_ns - begin_ns;
    if (it->is_traced)
        fr_interpreter_record(it, FR_LANE_COMPUTE, i_call, i_instr, begin_ns,
                              end_ns);
    return FR_OK;
}

static fr_status run_call(fr_interpreter *it, uint32_t i_call, fr_err *err)
{
    const fr_segment *segment = fr_rank_segment(&it->rank, i_call);

    if (!fr_interpreter_is_ready(it, i_call)) {
        fr_part awaited = part_awaited(it, i_call);
        fr_inject_settle(&it->inject);
        int64_t begin_ns = fr_clock_ns();
        FR_TRY(wait_for(it, i_call, fr_interpreter_is_ready, err));
        it->part_ns[awaited] += fr_clock_ns() - begin_ns;
    }
    const uint32_t n_instrs = fr_interpreter_n_instrs(it, i_call);
    for (uint32_t i = 0; i < n_instrs; i++)
        FR_TRY(run_instr(it, i_call, segment->first_instr + i, err));
    atomic_store_explicit(&it->done[i_call], it->step_mark,
                          memory_order_release);
    fr_shm_ring(&it->control->bell[FR_BELL_COMM]);
    return FR_OK;
}

/* Compute is what nothing else accounts for. */
static void close_parts(fr_interpreter *it, int64_t step_ns)
{
    it->part_ns[FR_PART_COMPUTE] = 0;
    for (int part = 0; part < FR_PART_N; part++)
        if (part != FR_PART_COMPUTE)
            step_ns -= it->part_ns[part];
    it->part_ns[FR_PART_COMPUTE] = step_ns;
}

/* Runs all lanes to their end. */
static fr_status run_lanes(fr_interpreter *it, int64_t i_step, int64_t *end_ns,
                           fr_err *err)
{
    const fr_lane_state *lane = &it->lanes[FR_LANE_COMPUTE];
    fr_status status = FR_OK;

    it->i_step = i_step;
    it->step_mark++;
    it->own_loss = NAN;
    memset(it->part_ns, 0, sizeof it->part_ns);
    it->step_begin_ns = fr_clock_ns();
    atomic_store_explicit(&it->open_mark, it->step_mark, memory_order_release);
    fr_shm_ring(&it->control->bell[FR_BELL_COMM]);
    for (uint32_t i = 0; status == FR_OK && i < lane->n_calls; i++)
        status = run_call(it, lane->calls[i], err);
    fr_inject_settle(&it->inject);
    fr_part awaited = part_of_end(it);
    int64_t wait_ns = fr_clock_ns();
    if (status == FR_OK)
        status =
            wait_for(it, it->rank.rank_program->n_calls, are_lanes_done, err);
    *end_ns = fr_clock_ns();
    it->part_ns[awaited] += *end_ns - wait_ns;
    if (isnan(it->own_loss)) /* nobody added it up */
        it->own_loss = fr_interpreter_scalars(it)->loss_sum;
    return status;
}

fr_status fr_interpreter_step(fr_interpreter *it, int64_t i_step,
                              bool is_traced, double *step_s, fr_err *err)
{
    int64_t end_ns = 0;

    it->is_traced = is_traced;
    fr_inject_begin_step(&it->inject, i_step);
    FR_TRY(run_lanes(it, i_step, &end_ns, err));
    close_parts(it, end_ns - it->step_begin_ns);
    *step_s = (double)(end_ns - it->step_begin_ns) * 1e-9;
    return FR_OK;
}

fr_status fr_interpreter_evaluate(fr_interpreter *it, fr_data *data,
                                  int64_t i_batch, fr_err *err)
{
    fr_data *of_training = it->rank.data;
    int64_t end_ns = 0;

    it->is_traced = false;
    it->is_evaluation = true;
    it->rank.data = data;
    fr_status status = run_lanes(it, i_batch, &end_ns, err);
    it->rank.data = of_training;
    it->is_evaluation = false;
    return status;
}

double fr_interpreter_own_loss(const fr_interpreter *it)
{
    return it->own_loss;
}

const fr_step_scalars *fr_interpreter_scalars(const fr_interpreter *it)
{
    return (const fr_step_scalars *)(const void *)(it->slab +
                                                   it->rank.rank_program
                                                       ->step_offset_bytes);
}

size_t fr_interpreter_copy_spans(const fr_interpreter *it, fr_span *out)
{
    size_t n = 0;

    for (int lane = 0; lane < FR_LANE_N; lane++) {
        const fr_lane_state *state = &it->lanes[lane];
        if (out != NULL && state->n_spans > 0)
            memcpy(out + n, state->spans, state->n_spans * sizeof *out);
        n += state->n_spans;
    }
    return n;
}
