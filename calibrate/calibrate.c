/* calibrate.c: see calibrate.h. */
#include "calibrate/calibrate.h"

#include "calibrate/cpu/bench_comm.h"
#include "calibrate/cpu/bench_compute.h"
#include "calibrate/cpu/bench_machine.h"
#include "calibrate/cpu/payloads.h"
#include "calibrate/cpu/ranks.h"
#include "calibrate/cpu/shapes.h"
#include "calibrate/disturbance.h"
#include "calibrate/fingerprint.h"
#include "core/numbers/stats.h"
#include "core/system/clock.h"
#include "kernels/cpu/kernels_cpu.h"
#include "runtime/rank/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The shares of the time for each kind of point. */
static const double rates_frac = 0.05;
static const double compute_frac = 0.65;
static const double comm_frac = 0.25;

typedef struct calibration {
    const fr_calibrate_options *options;
    fr_transport *transport;
    fr_sentinel *sentinel;
    fr_disturbance *watch;
    fr_sampling schedule; /* but for the budget */
    double budget_s;
    bool is_net; /* between hosts */
    fr_shapes shapes;
    fr_profile profile;
} calibration;

/* The job, and the same tokens in sequences of twice the length: attention
 * is the one cost that knows how tokens are cut. */
static fr_status add_case(calibration *c, const fr_calibrate_case *one,
                          fr_err *err)
{
    fr_job job = *one->job;
    fr_candidates candidates = {.model = one->model,
                                .job = &job,
                                .n_ranks = c->transport->world,
                                .n_cores = c->profile.fingerprint.n_cores,
                                .is_quick = c->options->is_quick};

    FR_TRY(fr_shapes_add_candidates(&c->shapes, &candidates,
                                    &c->profile.fingerprint, err));
    job.seq *= 2;
    job.global_batch /= 2;
    if (c->options->is_quick || job.global_batch < 1 ||
        (one->model->max_seq > 0 && job.seq > one->model->max_seq))
        return FR_OK;
    return fr_shapes_add_candidates(&c->shapes, &candidates,
                                    &c->profile.fingerprint, err);
}

static fr_status add_cases(calibration *c, fr_err *err)
{
    for (size_t i = 0; i < c->options->n_cases; i++)
        FR_TRY(add_case(c, &c->options->cases[i], err));
    fr_shapes_thin(&c->shapes, 2);
    return fr_shapes_add_held_out(&c->shapes, c->options->is_quick ? 1 : 2,
                                  &c->profile.fingerprint, err);
}

/* ---- compute ------------------------------------------------------------ */

static fr_status measure_compute(calibration *c, fr_err *err)
{
    fr_sampling schedule = c->schedule;
    fr_compute_bench *bench;
    fr_bench table;

    if (c->shapes.list.n == 0)
        return FR_OK;
    FR_TRY(fr_compute_bench_create(&c->shapes, &c->profile.fingerprint,
                                   c->transport, &bench, err));
    table = fr_compute_bench_table(bench);
    fr_log_write(c->options->log, FR_LOG_INFO, "timing %zu kernels and shapes",
                 table.n_points);
    schedule.budget_s = compute_frac * c->budget_s;
    schedule.target_rel_err = 0.006;
    schedule.n_max = 41;
    fr_status status = fr_bench_profile(
        &table, &schedule, c->transport->rank == 0, &c->profile, err);
    fr_compute_bench_destroy(bench);
    return status;
}

/* ---- communication ------------------------------------------------------ */

static fr_status measure_tier(calibration *c, const fr_comm_point *points,
                              size_t n, double budget_s, fr_err *err)
{
    enum { N_MAX = 41, N_SPARE = 24 };
    fr_sampling schedule = c->schedule;
    fr_comm_bench *bench;
    fr_bench table;

    FR_TRY(fr_comm_bench_create(points, n, &c->profile.fingerprint,
                                c->transport, N_MAX + N_SPARE, &bench, err));
    table = fr_comm_bench_table(bench);
    schedule.budget_s = budget_s;
    schedule.target_rel_err = 0.02;
    schedule.n_min = 3;
    schedule.n_max = N_MAX;
    schedule.repeat_s = budget_s;
    fr_disturbance_attach(c->watch, &schedule);
    fr_status status = fr_bench_profile(
        &table, &schedule, c->transport->rank == 0, &c->profile, err);
    fr_comm_bench_destroy(bench);
    return status;
}

/* Points of one tier that share a program: transfers, sync, async. */
static int kind_of(const fr_comm_point *point)
{
    if (strcmp(point->op, "send") == 0)
        return 0;
    return point->is_async ? 2 : 1;
}

static fr_status measure_sizes(calibration *c, const fr_comm_wanted *wanted,
                               double budget_s, fr_err *err)
{
    fr_status status;
    fr_comm_list list = {0};
    fr_comm_point *chosen = NULL;

    FR_TRY_GOTO(status, fr_comm_list_fill(&list, wanted, err), out_list);
    chosen = calloc(list.n + 1, sizeof *chosen);
    if (chosen == NULL) {
        status = fr_fail_no_memory(err);
        goto out_list;
    }
    for (int kind = 0; kind < 3; kind++) {
        size_t n = 0;
        for (size_t i = 0; i < list.n; i++)
            if (kind_of(&list.items[i]) == kind)
                chosen[n++] = list.items[i];
        if (n > 0)
            FR_TRY_GOTO(status, measure_tier(c, chosen, n, budget_s / 3.0, err),
                        out_list);
    }
out_list:
    free(chosen);
    fr_vec_release(&list);
    return status;
}

/* Gives all ranks the seconds per byte of the largest transfer so far. */
static fr_status link_s_per_byte(const calibration *c, double *out, fr_err *err)
{
    const fr_profile *profile = &c->profile;
    uint64_t largest = 0;

    *out = 0.0;
    for (size_t i = 0; i < profile->n_comm; i++) {
        const fr_comm_point *point = &profile->comm[i];
        if (strcmp(point->op, "send") != 0 || point->n_bytes < largest)
            continue;
        largest = point->n_bytes;
        *out = point->sample.median_s / (double)largest;
    }
    return fr_ranks_share(c->transport, out, sizeof *out, err);
}

/*
 * Sizes grow from tier to tier, so that a slow link is known before it is asked
 * for sizes that would take seconds.
 */
static fr_status measure_comm(calibration *c, fr_err *err)
{
    static const uint64_t tiers[] = {0, 1 << 16, 1 << 20, 1 << 23, 1 << 26};
    enum { N_TIERS = sizeof tiers / sizeof tiers[0] - 1 };
    /* A bucket of gradients (16 MiB of them) over 1 Gbit/s. */
    static const double slowest_s = 0.2;
    fr_status status = FR_OK;
    fr_payloads payloads = {0};

    if (c->transport->world < 2)
        return FR_OK;
    FR_TRY(fr_payloads_collect(&c->shapes, &payloads, err));
    for (int i = 0; i < N_TIERS; i++) {
        fr_comm_wanted wanted = {.n_group = c->transport->world,
                                 .is_net = c->is_net,
                                 .is_quick = c->options->is_quick,
                                 .min_bytes = tiers[i],
                                 .max_bytes = tiers[i + 1],
                                 .sizes = payloads.n_bytes,
                                 .n_sizes = payloads.n};
        double s_per_byte;
        FR_TRY_GOTO(status, link_s_per_byte(c, &s_per_byte, err), out_payloads);
        if (s_per_byte * (double)wanted.max_bytes > slowest_s)
            wanted.max_bytes = (uint64_t)(slowest_s / s_per_byte);
        if (wanted.max_bytes <= wanted.min_bytes)
            break;
        fr_log_write(c->options->log, FR_LOG_INFO,
                     "timing collectives up to %llu bytes",
                     (unsigned long long)wanted.max_bytes);
        FR_TRY_GOTO(
            status,
            measure_sizes(c, &wanted, comm_frac * c->budget_s / N_TIERS, err),
            out_payloads);
    }
out_payloads:
    fr_payloads_release(&payloads);
    return status;
}

/* ---- all of it ---------------------------------------------------------- */

/* Rank 0 has the file; the others run the same rows. */
static fr_status measure_rates(calibration *c, fr_err *err)
{
    fr_sampling schedule = c->schedule;
    const char *dir;

    FR_TRY(
        fr_ranks_scratch_dir(c->transport, c->options->scratch_dir, &dir, err));
    schedule.budget_s = rates_frac * c->budget_s;
    schedule.n_min = 3;
    schedule.n_max = 15;
    return fr_bench_rates(c->transport, dir, &schedule, &c->profile, err);
}

static void note_sharing(fr_profile *profile, const char *name, fr_err *err)
{
    const fr_rate_point *alone = fr_profile_find_rate(profile, name, 1, 1);

    for (size_t i = 0; i < profile->n_rate && alone != NULL; i++) {
        const fr_rate_point *rate = &profile->rate[i];
        fr_sharing_point point = {.n_busy = rate->n_busy,
                                  .slowdown = alone->rate / rate->rate,
                                  .rel_err =
                                      hypot(alone->rel_err, rate->rel_err)};
        if (strcmp(rate->name, name) != 0 || rate->n_busy < 2)
            continue;
        snprintf(point.victim, sizeof point.victim, "%s", name);
        snprintf(point.beside, sizeof point.beside, "same");
        if (fr_profile_add_sharing(profile, &point, err) != FR_OK)
            return;
    }
}

/* Spread of a fixed piece of work, p5 to p95: how calm the machine is. */
static fr_status measure_jitter(calibration *c, fr_err *err)
{
    enum { N = 101 };
    double seconds[N];

    for (int i = 0; i < N; i++)
        FR_TRY(fr_sentinel_run(c->sentinel, &seconds[i], err));
    fr_stats_sort(seconds, N);
    const double spread_s = fr_stats_quantile_sorted(seconds, N, 0.95) -
                            fr_stats_quantile_sorted(seconds, N, 0.05);
    c->profile.jitter_frac =
        fmin(spread_s / fr_stats_quantile_sorted(seconds, N, 0.5),
             FR_MOST_JITTER_FRAC);
    return FR_OK;
}

/*
 * Makes this thread's OpenMP team while it may run everywhere: helpers keep
 * the cores that their maker had, and a team on one core crawls.
 */
static void start_team(int n_threads)
{
    volatile int n = 0;

#pragma omp parallel for num_threads(n_threads) schedule(static, 1)
    for (int i = 0; i < n_threads; i++) {
#pragma omp atomic
        n += 1;
    }
    (void)n;
}

/* Ends a phase: the time that others had in it. */
static fr_status end_phase(calibration *c, const char *phase, fr_err *err)
{
    return fr_disturbance_end(c->watch, phase, &c->profile, err);
}

/* The part that runs on this rank's own core. */
static fr_status measure_pinned(calibration *c, fr_err *err)
{
    FR_TRY(measure_jitter(c, err));
    FR_TRY(measure_rates(c, err));
    FR_TRY(end_phase(c, "rates", err));
    FR_TRY(measure_compute(c, err));
    return end_phase(c, "kernels", err);
}

static fr_status measure_all(calibration *c, fr_err *err)
{
    fr_cores cores;
    fr_core_mask previous;

    FR_TRY(fr_disturbance_rest(c->watch, "before", &c->profile, err));
    FR_TRY(fr_bench_baseline(c->transport, &c->profile.baseline_bytes, err));
    FR_TRY(fr_bench_overheads(c->transport, &c->profile, err));
    FR_TRY(add_cases(c, err));
    FR_TRY(end_phase(c, "overheads", err));
    start_team(c->profile.fingerprint.n_cores);
    fr_cores_assign(c->transport->n_local, c->transport->i_local, 1, &cores);
    fr_cores_pin(&cores, &previous);
    const fr_status status = measure_pinned(c, err);
    fr_cores_restore(&previous);
    FR_TRY(status);
    FR_TRY(measure_comm(c, err));
    FR_TRY(end_phase(c, "collectives", err));
    FR_TRY(fr_disturbance_rest(c->watch, "after", &c->profile, err));
    note_sharing(&c->profile, "sgemm", err);
    note_sharing(&c->profile, "axpy", err);
    if (c->transport->rank != 0)
        return FR_OK;
    return fr_calibrate_hold_out(&c->profile, err);
}

void fr_calibrate_name(const fr_calibrate_options *options,
                       const fr_transport *transport, fr_profile *profile)
{
    char *out = profile->model;
    size_t n = 0, n_out = sizeof profile->model;

    fr_fingerprint_detect(&profile->fingerprint);
    for (int64_t i = 0; i < transport->world; i++)
        if (transport->node_of_rank[i] >= profile->fingerprint.n_nodes)
            profile->fingerprint.n_nodes = transport->node_of_rank[i] + 1;
    for (size_t i = 0; i < options->n_cases; i++) {
        const char *name = options->cases[i].model->name;
        if (strstr(out, name) == NULL && n + strlen(name) + 2 <= n_out)
            n += (size_t)snprintf(out + n, n_out - n, "%s%s", n > 0 ? " " : "",
                                  name);
    }
}

fr_status fr_calibrate_over(fr_transport *transport,
                            const fr_calibrate_options *options,
                            fr_profile *out, fr_err *err)
{
    fr_status status;
    calibration c = {.options = options, .transport = transport};
    double begin_s = fr_clock_s();

    fr_profile_init(&c.profile);
    fr_shapes_init(&c.shapes);
    fr_calibrate_name(options, transport, &c.profile);
    c.is_net = c.profile.fingerprint.n_nodes > 1;
    c.budget_s = options->budget_s > 0.0 ? options->budget_s
                 : options->is_quick     ? 15.0
                                         : 45.0;
    FR_TRY_GOTO(status, fr_sentinel_create(&c.sentinel, err), out_profile);
    fr_sampling_init(&c.schedule);
    c.schedule.sentinel = fr_sentinel_run;
    c.schedule.sentinel_context = c.sentinel;
    c.schedule.share = fr_ranks_share;
    c.schedule.share_context = transport;
    status = fr_disturbance_create(transport, &c.watch, err);
    if (status == FR_OK)
        status = measure_all(&c, err);
    c.profile.wall_s = fr_clock_s() - begin_s;
out_profile:
    fr_disturbance_destroy(c.watch);
    fr_sentinel_destroy(c.sentinel);
    fr_shapes_release(&c.shapes);
    if (status != FR_OK || transport->rank != 0)
        fr_profile_release(&c.profile);
    if (status == FR_OK)
        *out = c.profile;
    return status;
}

/* The memory of a run without MPI: before MPI is there. */
static fr_status measure_alone(uint64_t *baseline_bytes, fr_err *err)
{
    fr_transport *alone;

    FR_TRY(fr_transport_alone_create(60.0, &alone, err));
    fr_status status = fr_bench_baseline(alone, baseline_bytes, err);
    fr_transport_destroy(alone);
    return status;
}

fr_status fr_calibrate(const fr_calibrate_options *options, int64_t n_ranks,
                       fr_profile *out, bool *is_first, fr_err *err)
{
    fr_transport *transport = NULL;
    double timeout_s = options->timeout_s > 0.0 ? options->timeout_s : 60.0;
    uint64_t alone_bytes = 0;
    fr_profile profile;
    fr_status status;
    bool first = true;

    FR_TRY(measure_alone(&alone_bytes, err));
    fr_profile_init(&profile);
    if (n_ranks <= 1)
        FR_TRY(fr_transport_alone_create(60.0, &transport, err));
    else
        FR_TRY(fr_transport_mpi_create(n_ranks, timeout_s, &transport, err));
    if (transport == NULL) { /* a process too many */
        *is_first = false;
        return FR_OK;
    }
    first = transport->rank == 0;
    status = fr_calibrate_over(transport, options, &profile, err);
    fr_transport_destroy(transport);
    FR_TRY(status);
    if (n_ranks <= 1)
        profile.baseline_bytes = 0;
    profile.baseline_alone_bytes = alone_bytes;
    *out = profile;
    *is_first = first;
    return FR_OK;
}
