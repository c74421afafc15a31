/* bench_gpu_compute.c: see bench_gpu_compute.h. */
#include "calibrate/gpu/bench_gpu_compute.h"

#include "calibrate/cpu/ranks.h"
#include "core/system/clock.h"
#include "plan/codec/compressor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_LINES = 8 }; /* warnings about shapes that cannot be timed */

typedef struct timed_shape {
    const fr_shape *shape;
    bool is_ready, is_dead;
} timed_shape;

typedef struct gpu_compute {
    const fr_gpu_rig *rig;
    timed_shape *points;
    size_t n_points;
    size_t n_dead, n_runs;
    double begin_s, budget_s;
    int32_t *tokens;
    uint64_t tokens_bytes;
} gpu_compute;

uint64_t fr_gpu_bench_compute_bytes(const fr_shapes *shapes)
{
    const uint64_t most_bytes = (uint64_t)16 << 30;
    uint64_t largest = 0;

    for (size_t i = 0; i < shapes->list.n; i++) {
        uint64_t n_bytes = fr_shape_bytes(&shapes->list.items[i]);
        if (n_bytes > largest)
            largest = n_bytes;
    }
    return largest < most_bytes ? largest : most_bytes;
}

/* ---- operands ------------------------------------------------------------ */

static fr_status write_tokens(gpu_compute *b, const fr_shape *shape,
                              void *const *ptr, fr_err *err)
{
    const fr_instr *instr = &shape->instr;

    for (int i = 0; i < FR_INSTR_REFS; i++) {
        uint64_t n_bytes = ptr[i] != NULL ? fr_instr_ref_bytes(instr, i, 1) : 0;
        if (ptr[i] == NULL || instr->ref[i].space != FR_SPACE_TOKENS)
            continue;
        if (n_bytes > b->tokens_bytes) {
            int32_t *grown = realloc(b->tokens, n_bytes);
            if (grown == NULL)
                return fr_fail_no_memory(err);
            b->tokens = grown;
            b->tokens_bytes = n_bytes;
        }
        fr_shape_fill_tokens(shape, b->n_runs, b->tokens, n_bytes);
        FR_TRY(b->rig->driver->copy(b->rig->gpu, b->rig->stream, ptr[i],
                                    b->tokens, n_bytes, err));
        FR_TRY(fr_gpu_rig_finish(b->rig, b->rig->stream, b->rig->end, err));
    }
    return FR_OK;
}

/* A payload of top-k names elements, so it has to be a real one. */
static fr_status make_payload(const gpu_compute *b, const fr_gpu_task *task,
                              fr_err *err)
{
    fr_instr instr = *task->instr;
    fr_gpu_task encode = *task;
    uint64_t n_bytes = (uint64_t)instr.compress.payload_bytes;
    unsigned char *payloads = task->ptr[0];

    if (instr.op != FR_OP_DECOMPRESS ||
        !fr_compressor_of(&task->program->plan)->has_indices)
        return FR_OK;
    instr.op = FR_OP_COMPRESS;
    instr.compress.stage = 0;
    encode.instr = &instr;
    encode.ptr[0] = task->ptr[2];
    encode.ptr[2] = payloads;
    FR_TRY(fr_gpu_rig_launch(b->rig, &encode, err));
    for (int64_t i = 1; i < instr.compress.n_payloads; i++)
        FR_TRY(b->rig->driver->copy(b->rig->gpu, b->rig->stream,
                                    payloads + (uint64_t)i * n_bytes, payloads,
                                    n_bytes, err));
    return FR_OK;
}

/* Reads bytes in pieces, so that the copy takes little room in the L2. */
static fr_status warm(const fr_gpu_rig *rig, const unsigned char *memory,
                      uint64_t n_bytes, fr_err *err)
{
    uint64_t piece_bytes = rig->flush_bytes / 32;

    for (uint64_t at = 0; at < n_bytes; at += piece_bytes)
        FR_TRY(rig->driver->copy(
            rig->gpu, rig->stream, rig->arena, memory + at,
            n_bytes - at < piece_bytes ? n_bytes - at : piece_bytes, err));
    return FR_OK;
}

/* Flushes the L2, then reads the operands that belong there. */
static fr_status prepare_caches(const gpu_compute *b, const fr_shape *shape,
                                const fr_gpu_task *task, fr_err *err)
{
    FR_TRY(fr_gpu_rig_flush(b->rig, err));
    for (int i = 0; i < FR_INSTR_REFS && shape->key.where[i] != '\0'; i++)
        if (shape->key.where[i] == FR_PROFILE_LLC && task->ptr[i] != NULL)
            FR_TRY(warm(b->rig, task->ptr[i],
                        fr_instr_ref_bytes(task->instr, i, 1), err));
    return FR_OK;
}

/* ---- one timed execution ------------------------------------------------- */

static fr_status try_point(gpu_compute *b, timed_shape *point, double *out_s,
                           fr_err *err)
{
    const fr_shape *shape = point->shape;
    fr_gpu_task task = {.instr = &shape->instr,
                        .program = shape->program,
                        .i_stage = shape->i_stage};

    (void)fr_gpu_rig_place(b->rig, task.instr, task.ptr);
    b->n_runs++;
    FR_TRY(fr_gpu_rig_check(b->rig, err));
    FR_TRY(write_tokens(b, shape, task.ptr, err));
    FR_TRY(make_payload(b, &task, err));
    if (!point->is_ready) { /* the first execution loads and chooses */
        FR_TRY(fr_gpu_rig_tune(b->rig, &task, err));
        FR_TRY(fr_gpu_rig_launch(b->rig, &task, err));
        point->is_ready = true;
    }
    FR_TRY(prepare_caches(b, shape, &task, err));
    return fr_gpu_rig_time(b->rig, &task, out_s, err);
}

static fr_status run_point(void *context, size_t i_point, double *out_s,
                           fr_err *err)
{
    gpu_compute *b = context;
    timed_shape *point = &b->points[i_point];
    fr_err why = {0};

    (void)err;
    *out_s = 1e-9;
    if (b->rig->transport->rank != 0 || point->is_dead)
        return FR_OK;
    if (b->n_runs % 32 == 0)
        fr_log_progress(b->rig->log,
                        fmin((fr_clock_s() - b->begin_s) / b->budget_s, 1.0),
                        "kernels");
    if (try_point(b, point, out_s, &why) == FR_OK)
        return FR_OK;
    point->is_dead = true;
    if (b->n_dead++ < N_LINES)
        fr_log_write(b->rig->log, FR_LOG_WARNING, "%s in %s left out: %s",
                     point->shape->key.op, point->shape->key.dtype, why.text);
    *out_s = 1e-9;
    return FR_OK;
}

static fr_status refill(void *context, fr_err *err)
{
    const gpu_compute *b = context;
    fr_err why = {0};

    (void)err;
    /* A device that failed makes every point say so. */
    if (b->rig->transport->rank == 0 &&
        fr_gpu_rig_refill(b->rig, &why) != FR_OK)
        fr_log_write(b->rig->log, FR_LOG_WARNING, "%s", why.text);
    return FR_OK;
}

/* ---- all of them --------------------------------------------------------- */

static fr_status list_points(gpu_compute *b, const fr_shapes *shapes,
                             fr_err *err)
{
    size_t n_large = 0, n_missing = 0;

    FR_TRY_CALLOC(b->points, shapes->list.n + 1, err);
    for (size_t i = 0; i < shapes->list.n; i++) {
        const fr_shape *shape = &shapes->list.items[i];
        void *ptr[FR_INSTR_REFS];
        if (b->rig->system->kernels[shape->instr.op] == NULL)
            n_missing++;
        else if (!fr_gpu_rig_place(b->rig, &shape->instr, ptr))
            n_large++;
        else
            b->points[b->n_points++].shape = shape;
    }
    if (n_large > 0 && b->rig->transport->rank == 0)
        fr_log_write(b->rig->log, FR_LOG_INFO,
                     "%zu shapes need more than %.3g GiB and are left to the "
                     "fits",
                     n_large, (double)b->rig->arena_bytes / 0x1p30);
    if (n_missing > 0 && b->rig->transport->rank == 0)
        fr_log_write(b->rig->log, FR_LOG_WARNING,
                     "%zu shapes have no kernel on GPUs", n_missing);
    return FR_OK;
}

static fr_status keep(void *context, size_t i_point, const fr_sample *sample,
                      fr_profile *profile, fr_err *err)
{
    const timed_shape *timed = &((const gpu_compute *)context)->points[i_point];
    fr_compute_point point = timed->shape->key;

    if (timed->is_dead)
        return FR_OK;
    point.n_busy = 1;
    point.sample = *sample;
    return fr_profile_add_compute(profile, &point, err);
}

fr_status fr_gpu_bench_compute(const fr_gpu_rig *rig, const fr_shapes *shapes,
                               const fr_sampling *schedule, fr_profile *profile,
                               fr_err *err)
{
    fr_status status;
    gpu_compute b = {
        .rig = rig, .begin_s = fr_clock_s(), .budget_s = schedule->budget_s};

    FR_TRY_GOTO(status, list_points(&b, shapes, err), out_points);
    /* Rank 0 measures, the others run the same rounds. */
    FR_TRY_GOTO(
        status,
        fr_ranks_share(rig->transport, &b.n_points, sizeof b.n_points, err),
        out_points);
    fr_bench table = {.name = "compute",
                      .context = &b,
                      .n_points = b.n_points,
                      .begin_round = refill,
                      .run = run_point,
                      .keep = keep};
    fr_log_write(rig->log, FR_LOG_INFO, "timing %zu kernels and shapes",
                 b.n_points);
    status = fr_bench_profile(&table, schedule, rig->transport->rank == 0,
                              profile, err);
    fr_log_progress_end(rig->log);
    if (b.n_dead > N_LINES && rig->transport->rank == 0)
        fr_log_write(rig->log, FR_LOG_WARNING, "%zu more shapes left out",
                     b.n_dead - N_LINES);
out_points:
    free(b.points);
    free(b.tokens);
    return status;
}
