/*
 * gpu_interpreter_host.c: steps of the optimizer on the host.  The stream
 * copies the step's scalars, then calls the CPU's kernel; parameters,
 * gradients and state lie in page-locked memory, which copies of the lane have
 * filled and will read.  So the step, like everything else, is enqueued once
 * and captured with the rest.
 */
#include "core/system/clock.h"
#include "runtime/gpu/gpu_interpreter_state.h"

#include <string.h>

static void step_on_host(void *context)
{
    fr_gpu_host_step *step = context;
    fr_gpu_pinned *pinned = step->pinned;

    (void)atomic_fetch_add(&pinned->n_on_host, 1);
    if (!atomic_load(&pinned->has_stopped)) {
        step->call.i_step = pinned->step.i_step;
        fr_kernels_cpu_run(&step->call);
    }
    (void)atomic_fetch_sub(&pinned->n_on_host, 1);
}

void fr_gpu_stop_host_steps(fr_gpu_interpreter *it)
{
    const double nap_s = 1e-4;

    atomic_store(&it->pinned->has_stopped, true);
    while (atomic_load(&it->pinned->n_on_host) > 0)
        fr_sleep_s(nap_s);
}

fr_status fr_gpu_enqueue_host_step(fr_gpu_interpreter *it, fr_lane lane,
                                   uint32_t i_call, const fr_instr *instr,
                                   void *const *ptr, fr_err *err)
{
    fr_gpu_stream stream = it->lanes[lane].stream;
    fr_gpu_host_step *step = &it->host_steps[it->calls[i_call].i_host];

    step->pinned = it->pinned;
    step->call =
        fr_rank_kernel_call(&it->rank, &it->rank.rank_program->calls[i_call],
                            instr, it->rank.program->plan.n_threads, 0);
    memcpy(step->call.ptr, ptr, sizeof step->call.ptr);
    step->call.ptr[FR_OPT_STEP_STEP] = &step->scalars;
    FR_TRY(it->driver->copy(it->gpu, stream, &step->scalars,
                            ptr[FR_OPT_STEP_STEP], sizeof step->scalars, err));
    return it->driver->call_host(it->gpu, stream, step_on_host, step, err);
}

unsigned char *fr_gpu_interpreter_host(const fr_gpu_interpreter *it)
{
    return it->host;
}
