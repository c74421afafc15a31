/*
 * bench_overhead.c: what the runtime itself costs: an instruction, a call, a
 * hand-over between lanes, and memory beyond the slab.
 */
#include "calibrate/cpu/bench_machine.h"
#include "calibrate/cpu/ranks.h"
#include "core/numbers/stats.h"
#include "core/system/clock.h"
#include "kernels/cpu/kernels_cpu.h"
#include "program/ir/micro_program.h"
#include "runtime/rank/measure.h"
#include "runtime/run/interpreter.h"
#include "runtime/run/run.h"

#include <math.h>
#include <string.h>

enum { N_INSTRS = 256, N_HANDS = 64, N_STEPS = 31, SLAB_BYTES = 65536 };

typedef enum overhead_shape {
    OVERHEAD_ONE_CALL,   /* all instructions in one call */
    OVERHEAD_MANY_CALLS, /* a call for each */
    OVERHEAD_TWO_LANES   /* calls that wait for each other's lane in turn */
} overhead_shape;

static fr_status build(overhead_shape shape, int32_t world, fr_program **out,
                       fr_err *err)
{
    fr_instr instrs[N_INSTRS];
    fr_plan plan;
    fr_micro *micro;
    uint32_t one, here, there, last = UINT32_MAX;

    for (uint64_t i = 0; i < N_INSTRS; i++)
        instrs[i] = fr_micro_zero(64 * i, 4);
    fr_plan_init(&plan);
    plan.dp = world;
    FR_TRY(fr_micro_create(&plan, &micro, err));
    one = fr_micro_segment(micro, FR_LANE_COMPUTE, "all", instrs, N_INSTRS);
    here = fr_micro_segment(micro, FR_LANE_COMPUTE, "here", instrs, 1);
    there = fr_micro_segment(micro, FR_LANE_DP, "there", instrs, 1);
    if (shape == OVERHEAD_ONE_CALL)
        (void)fr_micro_call(micro, 0, one, last);
    for (int i = 0; shape == OVERHEAD_MANY_CALLS && i < N_INSTRS; i++)
        (void)fr_micro_call(micro, 0, here, last);
    for (int i = 0; shape == OVERHEAD_TWO_LANES && i < N_HANDS; i++) {
        last = fr_micro_call(micro, 0, here, last);
        last = fr_micro_call(micro, 0, there, last);
    }
    return fr_micro_finish(micro, SLAB_BYTES, out, err);
}

static fr_status time_shape(overhead_shape shape, fr_transport *transport,
                            double *median_s, fr_err *err)
{
    fr_status status;
    fr_program *program;
    fr_interpreter *interpreter = NULL;
    fr_interpreter_options options = {.timeout_s = 60.0};
    fr_cores cores;
    double seconds[N_STEPS];

    FR_TRY(build(shape, (int32_t)transport->world, &program, err));
    fr_cores_assign(transport->n_local, transport->i_local, 1, &cores);
    options.is_core_shared = cores.is_core_shared;
    options.is_crowded = cores.is_crowded;
    options.comm_core = cores.comm;
    FR_TRY_GOTO(status,
                fr_interpreter_create(program, transport, NULL, &options,
                                      &interpreter, err),
                out_program);
    for (int64_t i = 0; i < N_STEPS; i++)
        FR_TRY_GOTO(
            status,
            fr_interpreter_step(interpreter, i, false, &seconds[i], err),
            out_program);
    *median_s = fr_stats_median(seconds, N_STEPS);
out_program:
    fr_interpreter_destroy(interpreter);
    fr_program_destroy(program);
    return status;
}

/* The kernels of OVERHEAD_ONE_CALL without the runtime around them. */
static double time_kernels(void *slab)
{
    unsigned char *bytes = slab;
    double seconds[N_STEPS];

    for (int k = 0; k < N_STEPS; k++) {
        double begin_s = fr_clock_s();
        for (uint64_t i = 0; i < N_INSTRS; i++) {
            fr_instr instr = fr_micro_zero(64 * i, 4);
            fr_kernel_call call = {.instr = &instr,
                                   .ptr = {bytes + 64 * i},
                                   .n_group = 1,
                                   .n_threads = 1};
            fr_kernels_cpu[FR_OP_ZERO](&call);
        }
        seconds[k] = fr_clock_s() - begin_s;
    }
    return fr_stats_median(seconds, N_STEPS);
}

static fr_status time_all(fr_transport *transport, fr_profile *profile,
                          fr_err *err)
{
    double bare_s = time_kernels(transport->slab[transport->rank]);
    double one_s, many_s, lanes_s;

    FR_TRY(time_shape(OVERHEAD_ONE_CALL, transport, &one_s, err));
    FR_TRY(time_shape(OVERHEAD_MANY_CALLS, transport, &many_s, err));
    FR_TRY(time_shape(OVERHEAD_TWO_LANES, transport, &lanes_s, err));
    profile->instr_overhead_s = fmax(0.0, (one_s - bare_s) / N_INSTRS);
    profile->call_overhead_s = fmax(0.0, (many_s - one_s) / N_INSTRS);
    profile->wake_s = fmax(0.0, lanes_s / (2 * N_HANDS) - many_s / N_INSTRS);
    return FR_OK;
}

fr_status fr_bench_overheads(fr_transport *transport, fr_profile *profile,
                             fr_err *err)
{
    fr_status status;
    fr_cores cores;
    fr_core_mask previous;

    FR_TRY(fr_ranks_open_slab(transport, SLAB_BYTES, err));
    fr_cores_assign(transport->n_local, transport->i_local, 1, &cores);
    fr_cores_pin(&cores, &previous);
    status = time_all(transport, profile, err);
    fr_cores_restore(&previous);
    transport->ops->close_slab(transport);
    return status;
}

fr_status fr_bench_baseline(fr_transport *transport, uint64_t *out_bytes,
                            fr_err *err)
{
    fr_status status;
    fr_program *program;
    fr_run_options options;
    fr_run_result result = {0};

    FR_TRY(build(OVERHEAD_TWO_LANES, (int32_t)transport->world, &program, err));
    fr_run_options_init(&options);
    options.n_steps = 3;
    options.is_checked = false;
    options.is_unwatched = true; /* calibration goes on after it */
    status = fr_ranks_barrier(transport, err);
    if (status == FR_OK)
        status = fr_run_over(transport, program, &options, NULL, &result, err);
    if (status == FR_OK && transport->rank == 0)
        *out_bytes =
            result.peak_bytes > SLAB_BYTES ? result.peak_bytes - SLAB_BYTES : 0;
    fr_run_result_release(&result);
    fr_program_destroy(program);
    return status;
}
