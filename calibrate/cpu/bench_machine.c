/* bench_machine.c: see bench_machine.h. */
#include "calibrate/cpu/bench_machine.h"

#include "calibrate/cpu/ranks.h"
#include "calibrate/versions.h"
#include "core/system/clock.h"
#include "kernels/cpu/kernels_cpu.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SENTINEL_N = 192, /* 442 kB of operands, 0.15 ms */
    SGEMM_N = 768,
    AXPY_FLOATS = 8 << 20, /* two arrays of 32 MiB */
    FILE_BYTES = 32 << 20,
    N_RATES = 6
};

struct fr_sentinel {
    float a[SENTINEL_N * SENTINEL_N], b[SENTINEL_N * SENTINEL_N],
        c[SENTINEL_N * SENTINEL_N];
};

static void fill(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = 0.001F * (float)(i % 97 + 1);
}

fr_status fr_sentinel_create(fr_sentinel **out, fr_err *err)
{
    fr_sentinel *sentinel;

    FR_TRY_CALLOC(sentinel, 1, err);
    fill(sentinel->a, SENTINEL_N * SENTINEL_N);
    fill(sentinel->b, SENTINEL_N * SENTINEL_N);
    *out = sentinel;
    return FR_OK;
}

void fr_sentinel_destroy(fr_sentinel *sentinel)
{
    free(sentinel);
}

fr_status fr_sentinel_run(void *context, double *out_s, fr_err *err)
{
    fr_sentinel *s = context;
    double begin_s;

    (void)err;
    /* The first product warms the caches up, so that only the core's speed
     * counts in the second. */
    fr_sgemm_square(SENTINEL_N, s->a, s->b, s->c, 1);
    begin_s = fr_clock_s();
    fr_sgemm_square(SENTINEL_N, s->a, s->b, s->c, 1);
    *out_s = fr_clock_s() - begin_s;
    return FR_OK;
}

/* ---- rates -------------------------------------------------------------- */

typedef struct rate_bench rate_bench;

/* One row of the table: what runs, how much it does. */
typedef struct rate_row {
    const char *name;
    fr_status (*run)(rate_bench *bench, int n_threads, double *out_s,
                     fr_err *err);
    double amount; /* flop or bytes of one execution */
    int n_threads, n_busy;
} rate_row;

struct rate_bench {
    fr_transport *transport;
    const char *dir;
    float *x, *y, *z; /* AXPY_FLOATS each, z shares with both */
    rate_row rows[N_RATES];
    size_t n_rows;
};

static fr_status run_sgemm(rate_bench *bench, int n_threads, double *out_s,
                           fr_err *err)
{
    double begin_s;

    (void)err;
    fr_sgemm_square(SGEMM_N, bench->x, bench->y, bench->z, n_threads);
    begin_s = fr_clock_s();
    fr_sgemm_square(SGEMM_N, bench->x, bench->y, bench->z, n_threads);
    *out_s = fr_clock_s() - begin_s;
    return FR_OK;
}

static fr_status run_axpy(rate_bench *bench, int n_threads, double *out_s,
                          fr_err *err)
{
    fr_instr instr = {.op = FR_OP_ADD};
    fr_kernel_call call = {.instr = &instr,
                           .ptr = {bench->x, bench->y},
                           .n_group = 1,
                           .n_threads = n_threads};
    double begin_s = fr_clock_s();

    (void)err;
    instr.vector.n = AXPY_FLOATS;
    fr_kernels_cpu_set_threads(n_threads);
    fr_kernels_cpu[FR_OP_ADD](&call);
    *out_s = fr_clock_s() - begin_s;
    return FR_OK;
}

static fr_status io_failed(const char *path, int file, fr_err *err)
{
    const char *why = strerror(errno);

    if (file >= 0) {
        (void)close(file);
        (void)unlink(path);
    }
    return fr_fail(err, FR_IO, "%s: cannot time storage: %s", path, why);
}

static fr_status time_file(rate_bench *bench, bool is_read, double *out_s,
                           fr_err *err)
{
    char path[512];
    char *bytes = (char *)bench->x;
    double begin_s;
    int file;

    snprintf(path, sizeof path, "%s/forerun-%ld.tmp", bench->dir,
             (long)getpid());
    file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0)
        return io_failed(path, file, err);
    begin_s = fr_clock_s();
    errno = ENOSPC; /* the meaning of a short write */
    if (write(file, bytes, FILE_BYTES) != FILE_BYTES || fdatasync(file) != 0)
        return io_failed(path, file, err);
    if (is_read) {
        (void)posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
        begin_s = fr_clock_s();
        if (pread(file, bytes, FILE_BYTES, 0) != FILE_BYTES)
            return io_failed(path, file, err);
    }
    *out_s = fr_clock_s() - begin_s;
    (void)close(file);
    (void)unlink(path);
    return FR_OK;
}

static fr_status run_write(rate_bench *bench, int n_threads, double *out_s,
                           fr_err *err)
{
    (void)n_threads;
    return time_file(bench, false, out_s, err);
}

static fr_status run_read(rate_bench *bench, int n_threads, double *out_s,
                          fr_err *err)
{
    (void)n_threads;
    return time_file(bench, true, out_s, err);
}

static fr_status run_row(void *context, size_t i_row, double *out_s,
                         fr_err *err)
{
    rate_bench *bench = context;
    const rate_row *row = &bench->rows[i_row];
    long n_before;

    *out_s = 1e-9;
    if (row->n_busy == 1 && bench->transport->rank != 0)
        return FR_OK;
    if (row->n_busy > 1)
        FR_TRY(fr_ranks_barrier(bench->transport, err));
    n_before = fr_preemptions();
    FR_TRY(row->run(bench, row->n_threads, out_s, err));
    if (fr_preemptions() != n_before)
        *out_s = -*out_s;
    return FR_OK;
}

static void add_row(rate_bench *bench, rate_row row)
{
    bench->rows[bench->n_rows++] = row;
}

static void add_storage(rate_bench *bench)
{
    add_row(bench, (rate_row){"write", run_write, FILE_BYTES, 1, 1});
    add_row(bench, (rate_row){"read", run_read, FILE_BYTES, 1, 1});
}

static void fill_rows(rate_bench *bench, int n_cores)
{
    double flop = 2.0 * SGEMM_N * SGEMM_N * SGEMM_N;
    double bytes = 12.0 * AXPY_FLOATS;
    int n_local = (int)bench->transport->n_local;

    add_row(bench, (rate_row){"sgemm", run_sgemm, flop, 1, 1});
    add_row(bench, (rate_row){"axpy", run_axpy, bytes, 1, 1});
    if (n_local > 1) {
        add_row(bench, (rate_row){"sgemm", run_sgemm, flop, 1, n_local});
        add_row(bench, (rate_row){"axpy", run_axpy, bytes, 1, n_local});
    } else if (n_cores > 1) {
        add_row(bench, (rate_row){"sgemm", run_sgemm, flop, n_cores, 1});
        add_row(bench, (rate_row){"axpy", run_axpy, bytes, n_cores, 1});
    }
    if (bench->dir != NULL)
        add_storage(bench);
}

static fr_status keep_row(void *context, size_t i_row, const fr_sample *sample,
                          fr_profile *profile, fr_err *err)
{
    const rate_row *row = &((rate_bench *)context)->rows[i_row];
    fr_rate_point point = {.n_threads = row->n_threads,
                           .n_busy = row->n_busy,
                           .rate = row->amount / sample->median_s,
                           .rel_err = sample->rel_err};

    snprintf(point.name, sizeof point.name, "%s", row->name);
    return fr_profile_add_rate(profile, &point, err);
}

/* Measures the rows on memory of their own. */
static fr_status measure_rows(rate_bench *bench, const fr_sampling *schedule,
                              fr_profile *profile, fr_err *err)
{
    fr_bench table = {.name = "rates",
                      .context = bench,
                      .n_points = bench->n_rows,
                      .run = run_row,
                      .keep = keep_row};
    float *memory = malloc(2 * sizeof(float) * AXPY_FLOATS);

    if (memory == NULL)
        return fr_fail_no_memory(err);
    fill(memory, 2 * AXPY_FLOATS);
    bench->x = memory;
    bench->y = memory + AXPY_FLOATS;
    bench->z = bench->y + SGEMM_N * SGEMM_N;
    fr_status status = fr_bench_profile(&table, schedule, true, profile, err);
    free(memory);
    return status;
}

fr_status fr_bench_rates(fr_transport *transport, const char *dir,
                         const fr_sampling *schedule, fr_profile *profile,
                         fr_err *err)
{
    rate_bench bench = {.transport = transport, .dir = dir};

    fill_rows(&bench, profile->fingerprint.n_cores);
    return measure_rows(&bench, schedule, profile, err);
}

fr_status fr_bench_storage(fr_transport *transport, const char *dir,
                           const fr_sampling *schedule, fr_profile *profile,
                           fr_err *err)
{
    rate_bench bench = {.transport = transport, .dir = dir};

    add_storage(&bench);
    return measure_rows(&bench, schedule, profile, err);
}
