/* calibrate_gpu.c: see calibrate_gpu.h. */
#include "calibrate/gpu/calibrate_gpu.h"

#include "calibrate/cpu/bench_machine.h"
#include "calibrate/cpu/ranks.h"
#include "calibrate/fingerprint.h"
#include "calibrate/gpu/bench_gpu_comm.h"
#include "calibrate/gpu/bench_gpu_compute.h"
#include "calibrate/gpu/bench_gpu_device.h"
#include "calibrate/gpu/gpu_rig.h"
#include "calibrate/gpu/gpu_shapes.h"
#include "core/base/text.h"
#include "core/system/clock.h"
#include "runtime/gpu/gpu_choice.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The shares of the time for each kind of point. */
static const double compute_frac = 0.55, steady_frac = 0.1, comm_frac = 0.25,
                    storage_frac = 0.05;

typedef struct calibration {
    const fr_calibrate_options *options;
    const fr_gpu_setup *setup;
    fr_gpu_rig rig;
    fr_sampling schedule; /* but for the budget */
    double budget_s;
    fr_shapes shapes;
    fr_profile profile;
} calibration;

/* ---- whose --------------------------------------------------------------- */

static fr_status identify(calibration *c, fr_err *err)
{
    const fr_gpu_system *system = c->setup->system;
    fr_gpu_print *gpu = &c->profile.fingerprint.gpu;
    fr_gpu_properties found;
    fr_gpu_readings readings;

    FR_TRY(system->driver->properties(c->rig.gpu, &found, err));
    fr_text_copy_cut(gpu->name, sizeof gpu->name,
                     found.name[0] != '\0' ? found.name : system->name);
    (void)snprintf(gpu->capability, sizeof gpu->capability, "%d.%d",
                   found.capability[0], found.capability[1]);
    fr_text_copy_cut(gpu->cuda, sizeof gpu->cuda, found.runtime);
    if (system->comm != NULL && system->comm->version != NULL)
        system->comm->version(gpu->nccl, sizeof gpu->nccl);
    gpu->n_processors = found.n_processors;
    gpu->l2_bytes = found.l2_bytes;
    gpu->memory_bytes = found.memory_bytes;
    gpu->clock_Hz = found.clock_Hz;
    gpu->memory_clock_Hz = found.memory_clock_Hz;
    if (system->driver->read_sensors != NULL &&
        system->driver->read_sensors(c->rig.gpu, &readings)) {
        fr_text_copy_cut(gpu->driver, sizeof gpu->driver, readings.driver);
        gpu->power_limit_w = readings.power_limit_w;
    }
    return FR_OK;
}

/* ---- parts --------------------------------------------------------------- */

static fr_status measure_compute(calibration *c, fr_err *err)
{
    fr_sampling schedule = c->schedule;

    schedule.budget_s = compute_frac * c->budget_s;
    schedule.target_rel_err = 0.006;
    schedule.n_max = 41;
    return fr_gpu_bench_compute(&c->rig, &c->shapes, &schedule, &c->profile,
                                err);
}

/*
 * The memory of a rank beyond its slab is measured by two steps of the smallest
 * program on one rank.  This comes first, because libraries keep what they have
 * loaded.
 */
static const fr_program *smallest_program(const calibration *c)
{
    const fr_program *best = NULL;

    for (size_t i = 0; i < c->shapes.programs.n; i++) {
        const fr_program *p = c->shapes.programs.items[i];
        if (fr_plan_world(&p->plan) == 1 &&
            p->plan.precision == FR_DTYPE_BF16 &&
            (best == NULL || p->rank_programs[0].slab_bytes <
                                 best->rank_programs[0].slab_bytes))
            best = p;
    }
    return best;
}

static fr_status run_alone(const calibration *c, const fr_program *program,
                           uint64_t *out_bytes, fr_err *err)
{
    fr_backend backend = fr_gpu_backend(c->setup);
    fr_run_options options;
    fr_run_result result;
    fr_transport *alone = NULL;

    fr_run_options_init(&options);
    options.backend = &backend;
    options.n_steps = 2; /* the second one makes the graph */
    options.trace_steps = 0;
    options.is_unwatched = true;
    options.timeout_s = c->rig.timeout_s;
    FR_TRY(fr_transport_alone_create(c->rig.timeout_s, &alone, err));
    fr_status status =
        fr_run_over(alone, program, &options, NULL, &result, err);
    if (status == FR_OK) {
        *out_bytes = result.peak_bytes - result.slab_bytes;
        fr_run_result_release(&result);
    }
    fr_transport_destroy(alone);
    return status;
}

static void measure_baseline(calibration *c)
{
    const fr_program *program = smallest_program(c);
    fr_err why = {0};

    if (c->rig.transport->rank != 0)
        return;
    if (program == NULL)
        (void)fr_fail(&why, FR_INPUT, "no program for one rank");
    else if (run_alone(c, program, &c->profile.baseline_alone_bytes, &why) ==
             FR_OK)
        return;
    fr_log_write(c->options->log, FR_LOG_WARNING,
                 "memory besides the slab left out: %s", why.text);
}

static fr_status measure_comm(calibration *c, fr_err *err)
{
    fr_gpu_comm_bench bench = {.rig = &c->rig,
                               .is_shared = c->setup->is_shared,
                               .is_quick = c->options->is_quick,
                               .shapes = &c->shapes,
                               .schedule = c->schedule,
                               .profile = &c->profile};

    bench.schedule.budget_s = comm_frac * c->budget_s;
    return fr_gpu_bench_comm(&bench, err);
}

/* Rank 0 has the file; the others run the same rows. */
static fr_status measure_storage(calibration *c, fr_err *err)
{
    fr_transport *transport = c->rig.transport;
    fr_sampling schedule = c->schedule;
    const char *dir;

    FR_TRY(fr_ranks_scratch_dir(transport, c->options->scratch_dir, &dir, err));
    if (dir == NULL)
        return FR_OK;
    schedule.budget_s = storage_frac * c->budget_s;
    schedule.n_min = 3;
    schedule.n_max = 9;
    return fr_bench_storage(transport, dir, &schedule, &c->profile, err);
}

/* Clocks of a device that was idle rise within some tenths of a second.  What
 * fails here fails again where it is measured, and is said there. */
static void wake_up(const calibration *c)
{
    const double end_s = fr_clock_s() + fmin(0.5, c->budget_s / 50);
    fr_err ignored;

    while (fr_gpu_rig_refill(&c->rig, &ignored) == FR_OK &&
           fr_clock_s() < end_s)
        ;
}

/* Once a device was given up there is nothing more to measure. */
static fr_status agree_on_device(calibration *c, fr_err *err)
{
    return fr_transport_agree(c->rig.transport, fr_gpu_rig_check(&c->rig, err),
                              false, err);
}

static fr_status measure_device(calibration *c, fr_err *err)
{
    bool is_quick = c->options->is_quick;

    FR_TRY(measure_compute(c, err));
    FR_TRY(agree_on_device(c, err));
    FR_TRY(fr_gpu_bench_steady(&c->rig, &c->shapes, steady_frac * c->budget_s,
                               &c->profile, err));
    FR_TRY(fr_gpu_bench_copies(&c->rig, is_quick, &c->profile, err));
    return fr_gpu_bench_peer(&c->rig, is_quick, &c->profile, err);
}

static fr_status measure_all(calibration *c, fr_err *err)
{
    FR_TRY(identify(c, err));
    FR_TRY(fr_gpu_shapes_fill(&c->shapes, c->options, &c->profile.fingerprint,
                              err));
    measure_baseline(c);
    fr_status status =
        fr_gpu_rig_open(&c->rig, fr_gpu_bench_compute_bytes(&c->shapes), err);
    FR_TRY(fr_transport_agree(c->rig.transport, status, false, err));
    c->profile.gpu.workspace_bytes = c->rig.kernels_bytes;
    wake_up(c);
    fr_gpu_bench_launches(&c->rig, &c->profile);
    FR_TRY(fr_ranks_share(c->rig.transport, &c->rig.bracket_s,
                          sizeof c->rig.bracket_s, err));
    FR_TRY(measure_device(c, err));
    FR_TRY(agree_on_device(c, err));
    FR_TRY(measure_comm(c, err));
    FR_TRY(measure_storage(c, err));
    if (c->rig.transport->rank != 0)
        return FR_OK;
    if (c->profile.baseline_alone_bytes > 0)
        c->profile.baseline_bytes =
            c->profile.baseline_alone_bytes + c->profile.gpu.comm_world_bytes;
    return fr_calibrate_hold_out(&c->profile, err);
}

static fr_status check(const calibration *c, fr_err *err)
{
    if (c->profile.n_compute > 0 || c->rig.transport->rank != 0)
        return FR_OK;
    return fr_fail(err, FR_FAILURE, "%s: no kernel could be timed",
                   c->profile.fingerprint.gpu.name);
}

fr_status fr_calibrate_gpu(fr_transport *transport, const fr_gpu_setup *setup,
                           const fr_calibrate_options *options, fr_profile *out,
                           fr_err *err)
{
    const double usual_s = options->is_quick ? 30.0 : 120.0;
    /* A rank that fails at once waits for the others to say how it went with
     * them: they have to find out before it gives up. */
    const double timeout_s = transport->timeout_s / 2.0;
    fr_status status;
    double begin_s = fr_clock_s();
    calibration c = {.options = options,
                     .setup = setup,
                     .rig = {.system = setup->system,
                             .driver = setup->system->driver,
                             .transport = transport,
                             .log = options->log,
                             .timeout_s = timeout_s},
                     .budget_s =
                         options->budget_s > 0 ? options->budget_s : usual_s};

    fr_profile_init(&c.profile);
    fr_shapes_init(&c.shapes);
    fr_calibrate_name(options, transport, &c.profile);
    fr_sampling_init(&c.schedule);
    c.schedule.share = fr_ranks_share;
    c.schedule.share_context = transport;
    FR_TRY_GOTO(status,
                fr_gpu_choose(setup->system, transport, setup->is_shared,
                              &c.rig.gpu, err),
                out);
    status = measure_all(&c, err);
    if (status == FR_OK)
        status = check(&c, err);
    fr_gpu_rig_close(&c.rig);
    c.profile.wall_s = fr_clock_s() - begin_s;
out:
    fr_shapes_release(&c.shapes);
    if (status != FR_OK || transport->rank != 0)
        fr_profile_release(&c.profile);
    if (status == FR_OK)
        *out = c.profile;
    return status;
}
