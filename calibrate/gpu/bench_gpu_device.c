/* bench_gpu_device.c: see bench_gpu_device.h. */
#include "calibrate/gpu/bench_gpu_device.h"

#include "calibrate/sampler.h"
#include "core/system/clock.h"
#include "plan/codec/compressor.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    N_CHAIN = 256,  /* kernels in a row */
    N_REPEATS = 15, /* of everything here */
};

/* ---- launches ------------------------------------------------------------ */

/* The least that a kernel can do: a few numbers.  Setting or copying memory
 * would be no kernel, and shorter. */
typedef struct least {
    fr_instr instr;
    fr_program program;
    fr_rank_program rank_program;
    fr_gpu_task task;
} least;

static void least_init(const fr_gpu_rig *rig, least *out)
{
    memset(out, 0, sizeof *out);
    out->instr = (fr_instr){.op = FR_OP_CAST,
                            .dtype = FR_DTYPE_BF16,
                            .scalar = sizeof(float),
                            .vector = {.n = 8}};
    out->instr.ref[FR_CAST_SRC].space = FR_SPACE_IN;
    out->instr.ref[FR_CAST_DST].space = FR_SPACE_IN;
    fr_plan_init(&out->program.plan);
    fr_job_init(&out->program.job);
    out->program.rank_programs = &out->rank_program;
    out->task = (fr_gpu_task){.instr = &out->instr, .program = &out->program};
    (void)fr_gpu_rig_place(rig, &out->instr, out->task.ptr);
}

static fr_status launch_chain(const fr_gpu_rig *rig, const least *what, int n,
                              fr_err *err)
{
    for (int i = 0; i < n; i++)
        FR_TRY(fr_gpu_rig_launch(rig, &what->task, err));
    return FR_OK;
}

static fr_status capture_chain(const fr_gpu_rig *rig, const least *what, int n,
                               fr_gpu_graph **out, fr_err *err)
{
    fr_err ignored;
    fr_gpu_graph *broken = NULL;

    FR_TRY(rig->driver->capture_begin(rig->gpu, rig->stream, err));
    fr_status status = launch_chain(rig, what, n, err);
    if (status == FR_OK)
        return rig->driver->capture_end(rig->gpu, rig->stream, out, err);
    if (rig->driver->capture_end(rig->gpu, rig->stream, &broken, &ignored) ==
        FR_OK)
        rig->driver->graph_destroy(rig->gpu, broken);
    return status;
}

/* One launch: seconds of the device, and of the host in the call. */
static fr_status launch_graph(const fr_gpu_rig *rig, fr_gpu_graph *graph,
                              double *device_s, double *host_s, fr_err *err)
{
    FR_TRY(fr_gpu_rig_begin(rig, err));
    double begin_s = fr_clock_s();
    FR_TRY(rig->driver->graph_launch(rig->gpu, graph, rig->stream, err));
    *host_s = fr_clock_s() - begin_s;
    return fr_gpu_rig_end(rig, device_s, err);
}

/* The stream is held meanwhile, or the device's time would be the host's. */
static fr_status launch_graph_held(const fr_gpu_rig *rig, fr_gpu_graph *graph,
                                   double *device_s, double *host_s,
                                   fr_err *err)
{
    fr_status status = fr_gpu_rig_hold(rig, err);

    if (status == FR_OK)
        status = launch_graph(rig, graph, device_s, host_s, err);
    fr_gpu_rig_release(rig);
    return status == FR_OK ? fr_gpu_rig_check_held(rig, err) : status;
}

/* Medians: of the device from the graph's begin to its end, and of the host
 * in the call that launches it. */
static fr_status time_graph(const fr_gpu_rig *rig, const least *what, int n,
                            double *device_s, double *host_s, fr_err *err)
{
    double device[N_REPEATS], host[N_REPEATS];
    fr_gpu_graph *graph = NULL;
    fr_status status = capture_chain(rig, what, n, &graph, err);

    if (status == FR_OK) /* the first one uploads it and does not count */
        status = launch_graph(rig, graph, device_s, host_s, err);
    for (int i = 0; status == FR_OK && i < N_REPEATS; i++)
        status = launch_graph_held(rig, graph, &device[i], &host[i], err);
    rig->driver->graph_destroy(rig->gpu, graph);
    FR_TRY(status);
    *device_s = fr_sample_of(device, N_REPEATS).median_s;
    *host_s = fr_sample_of(host, N_REPEATS).median_s;
    return FR_OK;
}

/*
 * Times one kernel between two events.  As in the chain that it is compared
 * with, nothing is flushed before: the bracket is what events and a launch add.
 * What a kernel's operands and code take from a cold cache is part of its own
 * time, which the points contain, and must not be taken off them.
 */
static fr_status time_single(const fr_gpu_rig *rig, const least *what,
                             double *out_s, fr_err *err)
{
    double seconds[N_REPEATS];

    for (int i = 0; i < N_REPEATS; i++)
        FR_TRY(fr_gpu_rig_time(rig, &what->task, &seconds[i], err));
    *out_s = fr_sample_of(seconds, N_REPEATS).median_s;
    return FR_OK;
}

static fr_status time_host(const fr_gpu_rig *rig, const least *what,
                           double *out_s, fr_err *err)
{
    double seconds[N_REPEATS];

    for (int i = 0; i < N_REPEATS; i++) {
        double begin_s = fr_clock_s();
        FR_TRY(launch_chain(rig, what, N_CHAIN, err));
        seconds[i] = (fr_clock_s() - begin_s) / N_CHAIN;
        FR_TRY(fr_gpu_rig_finish(rig, rig->stream, rig->end, err));
    }
    *out_s = fr_sample_of(seconds, N_REPEATS).median_s;
    return FR_OK;
}

static fr_status time_launches(fr_gpu_rig *rig, fr_gpu_costs *out, fr_err *err)
{
    double one_s, one_host_s, all_s, all_host_s, lone_s;
    least what;

    least_init(rig, &what);
    FR_TRY(launch_chain(rig, &what, 1, err));
    FR_TRY(time_host(rig, &what, &out->launch_s, err));
    FR_TRY(time_single(rig, &what, &lone_s, err));
    FR_TRY(time_graph(rig, &what, 1, &one_s, &one_host_s, err));
    FR_TRY(time_graph(rig, &what, N_CHAIN + 1, &all_s, &all_host_s, err));
    out->kernel_s = fmax(all_s - one_s, 0.0) / N_CHAIN;
    out->bracket_s = fmax(lone_s - out->kernel_s, 0.0);
    out->graph_launch_s = one_host_s;
    out->graph_node_s = fmax(all_host_s - one_host_s, 0.0) / N_CHAIN;
    rig->bracket_s = out->bracket_s;
    return FR_OK;
}

void fr_gpu_bench_launches(fr_gpu_rig *rig, fr_profile *profile)
{
    fr_err why = {0};
    fr_gpu_costs costs = profile->gpu;

    if (rig->transport->rank != 0)
        return;
    if (time_launches(rig, &costs, &why) == FR_OK)
        profile->gpu = costs;
    else
        fr_log_write(rig->log, FR_LOG_WARNING, "launches left out: %s",
                     why.text);
}

/* ---- copies -------------------------------------------------------------- */

typedef struct copy_kind {
    const char *op, *scope;
    void *dst;
    const void *src;
    uint64_t most_bytes;
    bool is_blocking; /* the host waits for the copy, which must not be held */
} copy_kind;

static fr_status copy_once(const fr_gpu_rig *rig, const copy_kind *kind,
                           uint64_t n_bytes, double *out_s, fr_err *err)
{
    FR_TRY(fr_gpu_rig_begin(rig, err));
    FR_TRY(rig->driver->copy(rig->gpu, rig->stream, kind->dst, kind->src,
                             n_bytes, err));
    return fr_gpu_rig_end(rig, out_s, err);
}

static fr_status copy_held(const fr_gpu_rig *rig, const copy_kind *kind,
                           uint64_t n_bytes, double *out_s, fr_err *err)
{
    fr_status status = fr_gpu_rig_hold(rig, err);

    if (status == FR_OK)
        status = copy_once(rig, kind, n_bytes, out_s, err);
    fr_gpu_rig_release(rig);
    return status == FR_OK ? fr_gpu_rig_check_held(rig, err) : status;
}

static fr_status time_copy(const fr_gpu_rig *rig, const copy_kind *kind,
                           uint64_t n_bytes, fr_sample *out, fr_err *err)
{
    double seconds[N_REPEATS];

    /* The first one touches the pages and does not count. */
    FR_TRY(copy_once(rig, kind, n_bytes, &seconds[0], err));
    for (int i = 0; i < N_REPEATS; i++)
        FR_TRY(kind->is_blocking
                   ? copy_once(rig, kind, n_bytes, &seconds[i], err)
                   : copy_held(rig, kind, n_bytes, &seconds[i], err));
    *out = fr_sample_of(seconds, N_REPEATS);
    return FR_OK;
}

/* 4 KiB, then four times as much each; in between some to check the fits. */
static fr_status time_kind(const fr_gpu_rig *rig, const copy_kind *kind,
                           bool is_quick, fr_profile *profile, fr_err *err)
{
    const uint64_t step = is_quick ? 16 : 4;

    for (uint64_t n = 4096; n <= kind->most_bytes; n *= step)
        for (int held_out = 0; held_out < 2; held_out++) {
            fr_comm_point point = {.n_group = 1,
                                   .n_bytes = held_out ? n * 5 / 2 : n,
                                   .is_held_out = held_out != 0};
            (void)snprintf(point.op, sizeof point.op, "%s", kind->op);
            (void)snprintf(point.scope, sizeof point.scope, "%s", kind->scope);
            if (point.n_bytes > kind->most_bytes)
                continue;
            FR_TRY(time_copy(rig, kind, point.n_bytes, &point.sample, err));
            FR_TRY(fr_profile_add_comm(profile, &point, err));
        }
    return FR_OK;
}

/* Running out of memory for the profile is an error; everything else is a line
 * in the log. */
static fr_status try_kind(const fr_gpu_rig *rig, const copy_kind *kind,
                          bool is_quick, fr_profile *profile, fr_err *err)
{
    fr_err why = {0};

    if (time_kind(rig, kind, is_quick, profile, &why) == FR_OK)
        return FR_OK;
    fr_log_write(rig->log, FR_LOG_WARNING, "%s %s left out: %s", kind->op,
                 kind->scope, why.text);
    (void)err;
    return FR_OK;
}

fr_status fr_gpu_bench_copies(const fr_gpu_rig *rig, bool is_quick,
                              fr_profile *profile, fr_err *err)
{
    unsigned char *device = rig->arena + rig->flush_bytes;
    uint64_t device_bytes = rig->arena_bytes - rig->flush_bytes;
    uint64_t most_bytes =
        rig->host_bytes < device_bytes ? rig->host_bytes : device_bytes;
    unsigned char *pageable;
    fr_status status = FR_OK;

    if (rig->transport->rank != 0)
        return FR_OK;
    pageable = calloc(most_bytes + 1, 1);
    if (pageable == NULL)
        return fr_fail_no_memory(err);
    const copy_kind kinds[] = {
        {"copy_h2d", "pinned", device, rig->host, most_bytes, false},
        {"copy_d2h", "pinned", rig->host, device, most_bytes, false},
        {"copy_h2d", "pageable", device, pageable, most_bytes, true},
        {"copy_d2h", "pageable", pageable, device, most_bytes, true},
        {"copy_d2d", "device", device, device + device_bytes / 2,
         device_bytes / 2, false},
    };
    for (size_t i = 0; status == FR_OK && i < sizeof kinds / sizeof kinds[0];
         i++)
        status = try_kind(rig, &kinds[i], is_quick, profile, err);
    free(pageable);
    return status;
}

/*
 * A device belongs to the thread that opened it: one of its own holds the
 * neighbour's memory while this one copies.
 */
typedef struct neighbour {
    const fr_gpu_rig *rig;
    int i_device;
    uint64_t n_bytes;
    void *memory; /* NULL: it has none */
    pthread_barrier_t there, gone;
} neighbour;

static void *hold_memory(void *context)
{
    neighbour *n = context;
    const fr_gpu_system *system = n->rig->system;
    fr_gpu *gpu = NULL;
    fr_err ignored;

    if (system->driver->open(system->context, n->i_device, &gpu, &ignored) !=
            FR_OK ||
        system->driver->alloc(gpu, n->n_bytes, &n->memory, &ignored) != FR_OK)
        n->memory = NULL;
    (void)pthread_barrier_wait(&n->there);
    (void)pthread_barrier_wait(&n->gone);
    if (gpu != NULL)
        system->driver->free(gpu, n->memory);
    system->driver->close(gpu);
    return NULL;
}

static fr_status copy_to(neighbour *n, bool is_quick, fr_profile *profile,
                         fr_err *err)
{
    const fr_gpu_rig *rig = n->rig;
    const copy_kind kind = {"copy_peer", "peer",
                            n->memory,   rig->arena + rig->flush_bytes,
                            n->n_bytes,  false};
    bool is_direct = false;
    fr_err why = {0};

    if (n->memory == NULL ||
        rig->driver->reach(rig->gpu, n->i_device, &is_direct, &why) != FR_OK ||
        !is_direct) {
        fr_log_write(rig->log, FR_LOG_INFO,
                     "copies to another device left out: device %d is not "
                     "reached directly",
                     n->i_device);
        return FR_OK;
    }
    return try_kind(rig, &kind, is_quick, profile, err);
}

fr_status fr_gpu_bench_peer(const fr_gpu_rig *rig, bool is_quick,
                            fr_profile *profile, fr_err *err)
{
    neighbour n = {.rig = rig, .i_device = 1, .n_bytes = rig->host_bytes};
    pthread_t thread;
    int n_devices = 0;
    fr_err ignored;

    if (rig->transport->rank != 0 || rig->driver->reach == NULL ||
        fr_gpu_rig_check(rig, &ignored) != FR_OK ||
        rig->driver->count(rig->system->context, &n_devices, &ignored) !=
            FR_OK ||
        n_devices < 2 || n.n_bytes > rig->arena_bytes - rig->flush_bytes)
        return FR_OK;
    (void)pthread_barrier_init(&n.there, NULL, 2);
    (void)pthread_barrier_init(&n.gone, NULL, 2);
    fr_status status = FR_OK;
    if (pthread_create(&thread, NULL, hold_memory, &n) == 0) {
        (void)pthread_barrier_wait(&n.there);
        status = copy_to(&n, is_quick, profile, err);
        (void)pthread_barrier_wait(&n.gone);
        (void)pthread_join(thread, NULL);
    }
    (void)pthread_barrier_destroy(&n.there);
    (void)pthread_barrier_destroy(&n.gone);
    return status;
}

/* ---- lasting load -------------------------------------------------------- */

static const fr_compute_point *find_largest(const fr_profile *profile,
                                            const char *dtype)
{
    const fr_compute_point *best = NULL;

    for (size_t i = 0; i < profile->n_compute; i++) {
        const fr_compute_point *p = &profile->compute[i];
        if (!p->is_held_out && strcmp(p->op, "linear_fwd") == 0 &&
            strcmp(p->dtype, dtype) == 0 &&
            (best == NULL || p->flop > best->flop))
            best = p;
    }
    return best;
}

/* So many in a row that they take some tens of milliseconds; their mean. */
static fr_status time_row(const fr_gpu_rig *rig, const fr_gpu_task *task,
                          double about_s, double *out_s, fr_err *err)
{
    const double row_s = 0.05;
    int n = (int)fmin(fmax(row_s / about_s, 1.0), 4096.0);
    double elapsed_s;

    FR_TRY(fr_gpu_rig_begin(rig, err));
    for (int i = 0; i < n; i++)
        FR_TRY(fr_gpu_rig_launch(rig, task, err));
    FR_TRY(fr_gpu_rig_end(rig, &elapsed_s, err));
    *out_s = elapsed_s / n;
    return FR_OK;
}

/*
 * Power controllers need some tenths of a second: settled are five rows that
 * agree within half a percent after a second of load.  The limit ends what does
 * not settle, but not before there are five: the first ones are cold.
 */
static fr_status settle(const fr_gpu_rig *rig, const fr_gpu_task *task,
                        double about_s, double limit_s, double *out_s,
                        fr_err *err)
{
    enum { N_ROWS = 5 };
    const double least_s = fmin(1.0, limit_s / 2.0), slack = 0.005;
    double rows[N_ROWS] = {0}, spent_s = 0.0, begin_s = fr_clock_s();

    for (int n = 1;; n++) {
        double low = INFINITY, high = 0.0, row_s;
        FR_TRY(time_row(rig, task, about_s, &row_s, err));
        rows[n % N_ROWS] = row_s;
        spent_s += fmin(fmax(0.05, row_s), 1.0);
        for (int i = 0; i < N_ROWS && n >= N_ROWS; i++) {
            low = fmin(low, rows[i]);
            high = fmax(high, rows[i]);
        }
        bool is_settled =
            n >= N_ROWS && spent_s >= least_s && high <= low * (1.0 + slack);
        *out_s = row_s;
        if (is_settled || (n >= N_ROWS && fr_clock_s() - begin_s >= limit_s))
            return FR_OK;
    }
}

/* Reads the sensors while the device is busy; false: they give nothing. */
static bool read_sensors_loaded(const fr_gpu_rig *rig, const fr_gpu_task *task,
                                double each_s, fr_gpu_readings *out)
{
    const double load_s = 0.3; /* longer than it takes to ask */
    int n = (int)fmin(fmax(load_s / each_s, 1.0), 4096.0);
    fr_err ignored;
    bool is_read;

    if (rig->driver->read_sensors == NULL)
        return false;
    for (int i = 0; i < n; i++)
        if (fr_gpu_rig_launch(rig, task, &ignored) != FR_OK)
            return false;
    is_read = rig->driver->read_sensors(rig->gpu, out);
    return fr_gpu_rig_finish(rig, rig->stream, rig->end, &ignored) == FR_OK &&
           is_read;
}

static fr_status add_rate(fr_profile *profile, const char *prefix,
                          const char *dtype, double rate, double rel_err,
                          fr_err *err)
{
    fr_rate_point point = {
        .n_threads = 1, .n_busy = 1, .rate = rate, .rel_err = rel_err};

    (void)snprintf(point.name, sizeof point.name, "%s%s", prefix, dtype);
    return fr_profile_add_rate(profile, &point, err);
}

static fr_status load_dtype(const fr_gpu_rig *rig, const fr_shapes *shapes,
                            const char *dtype, double limit_s,
                            fr_profile *profile, fr_err *err)
{
    const fr_compute_point *point = find_largest(profile, dtype);
    fr_err why = {0};
    fr_gpu_readings readings;
    double seconds;

    for (size_t i = 0; point != NULL && i < shapes->list.n; i++) {
        const fr_shape *shape = &shapes->list.items[i];
        fr_gpu_task task = {.instr = &shape->instr,
                            .program = shape->program,
                            .i_stage = shape->i_stage};
        if (!fr_compute_key_equal(&shape->key, point) ||
            !fr_gpu_rig_place(rig, task.instr, task.ptr))
            continue;
        if (settle(rig, &task, point->sample.median_s, limit_s, &seconds,
                   &why) != FR_OK) {
            fr_log_write(rig->log, FR_LOG_WARNING,
                         "lasting load in %s left out: %s", dtype, why.text);
            return FR_OK;
        }
        if (profile->gpu.steady_power_w == 0 &&
            read_sensors_loaded(rig, &task, seconds, &readings)) {
            profile->gpu.steady_clock_Hz = readings.clock_Hz;
            profile->gpu.steady_power_w = readings.power_w;
        }
        double flop = (double)point->flop;
        FR_TRY(add_rate(profile, "gemm_", dtype, flop / point->sample.median_s,
                        point->sample.rel_err, err));
        return add_rate(profile, "gemm_steady_", dtype, flop / seconds, 0.005,
                        err);
    }
    return FR_OK;
}

fr_status fr_gpu_bench_steady(const fr_gpu_rig *rig, const fr_shapes *shapes,
                              double limit_s, fr_profile *profile, fr_err *err)
{
    static const fr_dtype dtypes[] = {FR_DTYPE_BF16, FR_DTYPE_TF32,
                                      FR_DTYPE_F32};

    for (int i = 0; rig->transport->rank == 0 && i < 3; i++)
        FR_TRY(load_dtype(rig, shapes, fr_dtype_name(dtypes[i]), limit_s / 3.0,
                          profile, err));
    return FR_OK;
}
