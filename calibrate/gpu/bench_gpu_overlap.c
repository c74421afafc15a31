/*
 * bench_gpu_overlap.c: kernels beside communication, and the memory that
 * communicators take.
 */
#include "calibrate/cpu/ranks.h"
#include "calibrate/gpu/bench_gpu_comm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_REPEATS = 9 };

/* ---- overlap ------------------------------------------------------------ */

typedef struct overlap {
    const fr_gpu_rig *rig;
    const fr_gpu_comm_set *set;
    fr_gpu_links *links;
    uint32_t i_instr; /* the largest all-reduce */
    fr_gpu_task task;
    int n_kernels, n_exchanges; /* so that both take about as long */
} overlap;

static fr_status launch_kernels(const overlap *b, fr_err *err)
{
    for (int i = 0; i < b->n_kernels; i++)
        FR_TRY(fr_gpu_rig_launch(b->rig, &b->task, err));
    return FR_OK;
}

static fr_status launch_exchanges(const overlap *b, fr_err *err)
{
    for (int i = 0; i < b->n_exchanges; i++)
        FR_TRY(fr_gpu_comm_enqueue(b->set, b->rig, b->links, b->i_instr,
                                   b->rig->comm_stream, err));
    return FR_OK;
}

/* Runs either, or both at once, and gives the seconds of each. */
static fr_status time_both(const overlap *b, bool has_kernels,
                           bool has_exchanges, double *kernels_s,
                           double *exchanges_s, fr_err *err)
{
    const fr_gpu_rig *rig = b->rig;
    const fr_gpu_driver *driver = rig->driver;

    FR_TRY(fr_ranks_barrier(rig->transport, err));
    FR_TRY(
        driver->event_record(rig->gpu, rig->comm_begin, rig->comm_stream, err));
    if (has_exchanges)
        FR_TRY(launch_exchanges(b, err));
    FR_TRY(
        driver->event_record(rig->gpu, rig->comm_end, rig->comm_stream, err));
    FR_TRY(fr_gpu_rig_begin(rig, err));
    if (has_kernels)
        FR_TRY(launch_kernels(b, err));
    FR_TRY(fr_gpu_rig_end(rig, kernels_s, err));
    FR_TRY(fr_gpu_rig_wait(rig, rig->comm_end, err));
    return driver->event_elapsed(rig->gpu, rig->comm_begin, rig->comm_end,
                                 exchanges_s, err);
}

static fr_status add_sharing(fr_profile *profile, const char *victim,
                             const char *other, int64_t n_busy,
                             const double *alone, const double *together,
                             fr_err *err)
{
    double first[N_REPEATS], second[N_REPEATS];
    fr_sharing_point point = {.n_busy = (int32_t)n_busy};

    memcpy(first, alone, sizeof first);
    memcpy(second, together, sizeof second);
    fr_sample a = fr_sample_of(first, N_REPEATS);
    fr_sample b = fr_sample_of(second, N_REPEATS);
    point.slowdown = b.median_s / a.median_s;
    point.rel_err = hypot(a.rel_err, b.rel_err);
    (void)snprintf(point.victim, sizeof point.victim, "%s", victim);
    (void)snprintf(point.beside, sizeof point.beside, "%s", other);
    return fr_profile_add_sharing(profile, &point, err);
}

static fr_status share_both(const fr_gpu_comm_bench *bench, overlap *b,
                            fr_err *err)
{
    const double wanted_s = 0.02, longer = 1.5, most_exchanges = 256;
    double times[4][N_REPEATS], ignored_s, both_s[2];
    const char *op = fr_op_name((fr_op)b->task.instr->op);

    b->n_kernels = b->n_exchanges = 1;
    for (int i = 0; i < 2; i++) { /* the first one is not counted */
        FR_TRY(time_both(b, true, false, &both_s[0], &ignored_s, err));
        FR_TRY(time_both(b, false, true, &ignored_s, &both_s[1], err));
    }
    /* All ranks take rank 0's numbers, so that they enqueue the same. */
    FR_TRY(fr_ranks_share(b->rig->transport, both_s, sizeof both_s, err));
    /* A stream takes only so many exchanges behind one that waits.  If
     * exchanges are short, this limits their number, and with it the number of
     * overlapped kernels. */
    const double exchanges_s = most_exchanges * both_s[1];
    b->n_kernels = (int)fmin(
        ceil(fmin(wanted_s, exchanges_s / longer) / both_s[0]), 2000.0);
    b->n_exchanges = (int)fmin(
        ceil(longer * b->n_kernels * both_s[0] / both_s[1]), most_exchanges);
    for (int i = 0; i < N_REPEATS; i++) {
        FR_TRY(time_both(b, true, false, &times[0][i], &ignored_s, err));
        FR_TRY(time_both(b, true, true, &times[1][i], &ignored_s, err));
    }
    /* The other way round: kernels that outlast the exchanges. */
    b->n_exchanges = (b->n_exchanges + 3) / 3;
    for (int i = 0; i < N_REPEATS; i++) {
        FR_TRY(time_both(b, false, true, &ignored_s, &times[2][i], err));
        FR_TRY(time_both(b, true, true, &ignored_s, &times[3][i], err));
    }
    if (b->rig->transport->rank != 0)
        return FR_OK;
    FR_TRY(add_sharing(bench->profile, op, "all_reduce", b->set->n_members,
                       times[0], times[1], err));
    return add_sharing(bench->profile, "all_reduce", op, b->set->n_members,
                       times[2], times[3], err);
}

/* The largest shape of an op that fits; all ranks have the same list. */
static const fr_shape *find_victim(const fr_gpu_comm_bench *bench, fr_op op)
{
    const fr_shape *best = NULL;
    void *ptr[FR_INSTR_REFS];

    for (size_t i = 0; i < bench->shapes->list.n; i++) {
        const fr_shape *shape = &bench->shapes->list.items[i];
        if (shape->instr.op == op && shape->instr.dtype == FR_DTYPE_BF16 &&
            !shape->key.is_held_out &&
            (best == NULL || shape->key.moved_bytes > best->key.moved_bytes) &&
            fr_gpu_rig_place(bench->rig, &shape->instr, ptr))
            best = shape;
    }
    return best;
}

bool fr_gpu_bench_overlap(const fr_gpu_comm_bench *bench,
                          const fr_gpu_comm_set *set, fr_gpu_links *links)
{
    static const fr_op victims[] = {FR_OP_LINEAR_FWD, FR_OP_NORM_FWD};
    overlap b = {.rig = bench->rig, .set = set, .links = links};

    for (size_t i = 0; i < set->n_points; i++)
        if (strcmp(set->points[i].op, fr_op_name(FR_OP_ALL_REDUCE)) == 0)
            b.i_instr = set->i_instr[0][i];
    for (int v = 0; v < 2; v++) {
        const fr_shape *shape = find_victim(bench, victims[v]);
        fr_err why = {0};
        fr_status status = shape != NULL ? FR_OK : FR_INPUT;
        /* If one rank has no such shape, no rank can take part. */
        if (fr_transport_agree(bench->rig->transport, status, false, &why) !=
            FR_OK)
            continue;
        b.task = (fr_gpu_task){.instr = &shape->instr,
                               .program = shape->program,
                               .i_stage = shape->i_stage};
        (void)fr_gpu_rig_place(bench->rig, b.task.instr, b.task.ptr);
        status = share_both(bench, &b, &why);
        if (fr_transport_agree(bench->rig->transport, status, false, &why) !=
            FR_OK) {
            if (bench->rig->transport->rank == 0)
                fr_log_write(bench->rig->log, FR_LOG_WARNING,
                             "%s beside collectives left out: %s",
                             fr_op_name(victims[v]), why.text);
            return false;
        }
    }
    return true;
}

/* ---- memory ------------------------------------------------------------- */

/* Bytes in use while links over n_lanes lanes exist, less those before. */
static fr_status used_by(const fr_gpu_comm_bench *bench, int32_t n_group,
                         int n_lanes, double *out, fr_err *err)
{
    fr_program *program = NULL;
    fr_gpu_links *links = NULL;
    uint64_t before = 0, with = 0;

    FR_TRY(fr_gpu_comm_set_lanes(bench->rig->transport, n_group, n_lanes,
                                 &program, err));
    fr_status status = fr_gpu_rig_used(bench->rig, &before, err);
    status = fr_transport_agree(bench->rig->transport, status, false, err);
    if (status == FR_OK)
        status = fr_gpu_comm_connect(bench, program, false, &links, err);
    if (status == FR_OK)
        status = fr_gpu_rig_used(bench->rig, &with, err);
    if (links != NULL) {
        status = fr_transport_agree(bench->rig->transport, status, false, err);
        fr_gpu_links_destroy(links);
    }
    fr_program_destroy(program);
    FR_TRY(status);
    *out = (double)with - (double)before;
    return FR_OK;
}

/* One communicator, and the world that it is split from. */
static fr_status measure_group(const fr_gpu_comm_bench *bench, int32_t n_group,
                               uint64_t *one_bytes, fr_err *err)
{
    double one, two;

    FR_TRY(used_by(bench, n_group, 1, &one, err));
    FR_TRY(used_by(bench, n_group, 2, &two, err));
    *one_bytes = (uint64_t)fmax(two - one, 0.0);
    bench->profile->gpu.comm_world_bytes = (uint64_t)fmax(2.0 * one - two, 0.0);
    return FR_OK;
}

/* Measures the memory that the library takes for its first communicator and
 * keeps: a run of several ranks has it once, like the communicator of the
 * world. */
static fr_status measure_loading(const fr_gpu_comm_bench *bench, double *out,
                                 fr_err *err)
{
    uint64_t before = 0, after = 0;
    double ignored;

    fr_status status = fr_gpu_rig_used(bench->rig, &before, err);
    FR_TRY(fr_transport_agree(bench->rig->transport, status, false, err));
    FR_TRY(used_by(bench, (int32_t)bench->rig->transport->world, 1, &ignored,
                   err));
    status = fr_gpu_rig_used(bench->rig, &after, err);
    FR_TRY(fr_transport_agree(bench->rig->transport, status, false, err));
    *out = fmax((double)after - (double)before, 0.0);
    return FR_OK;
}

fr_status fr_gpu_bench_comm_memory(const fr_gpu_comm_bench *bench, fr_err *err)
{
    int32_t world = (int32_t)bench->rig->transport->world;
    fr_gpu_costs *gpu = &bench->profile->gpu;
    double loaded_bytes = 0;
    fr_err why = {0};

    (void)err;
    fr_status status = measure_loading(bench, &loaded_bytes, &why);
    if (status == FR_OK && world % 2 == 0)
        status = measure_group(bench, 2, &gpu->comm_pair_bytes, &why);
    if (status == FR_OK && world > 2)
        status = measure_group(bench, world, &gpu->comm_group_bytes, &why);
    if (status == FR_OK)
        gpu->comm_world_bytes += (uint64_t)loaded_bytes;
    if (status == FR_OK && gpu->comm_group_bytes == 0)
        gpu->comm_group_bytes = gpu->comm_pair_bytes;
    if (status == FR_OK && gpu->comm_pair_bytes == 0)
        gpu->comm_pair_bytes = gpu->comm_group_bytes;
    if (status != FR_OK && bench->rig->transport->rank == 0)
        fr_log_write(bench->rig->log, FR_LOG_WARNING,
                     "memory of communicators left out: %s", why.text);
    return FR_OK;
}
