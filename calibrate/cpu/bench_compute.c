/* bench_compute.c: see bench_compute.h. */
#include "calibrate/cpu/bench_compute.h"

#include "calibrate/cpu/cache_state.h"
#include "calibrate/cpu/ranks.h"
#include "core/system/clock.h"
#include "kernels/cpu/kernels_cpu.h"
#include "plan/codec/compressor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct bench_point {
    const fr_shape *shape;
    fr_compute_point key;
} bench_point;

struct fr_compute_bench {
    const fr_fingerprint *machine;
    fr_transport *transport;
    bench_point *points;
    size_t n_points;
    fr_cache_state *caches;
    unsigned char *operands; /* in the slab */
    /* Operands of a rank that measures alone: private memory with huge pages,
     * which a slab shared with neighbours does not have. */
    unsigned char *own_operands;
    uint64_t operands_bytes;
    uint64_t n_runs; /* draws other tokens each time */
};

static fr_status list_points(fr_compute_bench *bench, const fr_shapes *shapes,
                             fr_err *err)
{
    /* Shapes whose operands need more are left to the fits. */
    uint64_t limit = bench->machine->memory_bytes / 16;
    int n_local = (int)bench->transport->n_local;

    FR_TRY_CALLOC(bench->points, 2 * shapes->list.n + 1, err);
    for (int together = 0; together < 2; together++) {
        int n_busy = together ? n_local : 1;
        if (together && n_local == 1)
            break;
        for (size_t i = 0; i < shapes->list.n; i++) {
            const fr_shape *shape = &shapes->list.items[i];
            uint64_t n_bytes = fr_shape_bytes(shape);
            bench_point *point = &bench->points[bench->n_points];
            if (n_bytes > limit || (together && shape->key.is_held_out) ||
                shape->key.n_threads * n_busy > bench->machine->n_cores)
                continue;
            if (n_bytes > bench->operands_bytes)
                bench->operands_bytes = n_bytes;
            point->shape = shape;
            point->key = shape->key;
            point->key.n_busy = n_busy;
            bench->n_points++;
        }
    }
    return FR_OK;
}

fr_status fr_compute_bench_create(const fr_shapes *shapes,
                                  const fr_fingerprint *machine,
                                  fr_transport *transport,
                                  fr_compute_bench **out, fr_err *err)
{
    fr_status status;
    fr_compute_bench *bench = calloc(1, sizeof *bench);
    uint64_t pool_bytes;

    if (bench == NULL)
        return fr_fail_no_memory(err);
    bench->machine = machine;
    bench->transport = transport;
    FR_TRY_GOTO(status, list_points(bench, shapes, err), out_bench);
    pool_bytes = fr_cache_pool_bytes(machine);
    FR_TRY_GOTO(
        status,
        fr_ranks_open_slab(transport, pool_bytes + bench->operands_bytes, err),
        out_bench);
    bench->operands = transport->slab[transport->rank] + pool_bytes;
    if (transport->is_slab_shared) {
        bench->own_operands =
            fr_transport_map_private(bench->operands_bytes + 1);
        if (bench->own_operands == NULL) {
            status = fr_fail_no_memory(err);
            goto out_bench;
        }
    }
    FR_TRY_GOTO(status,
                fr_cache_state_create(machine, transport->slab[transport->rank],
                                      &bench->caches, err),
                out_bench);
    *out = bench;
    return FR_OK;
out_bench:
    fr_compute_bench_destroy(bench);
    return status;
}

void fr_compute_bench_destroy(fr_compute_bench *bench)
{
    if (bench == NULL)
        return;
    if (bench->operands != NULL)
        bench->transport->ops->close_slab(bench->transport);
    if (bench->own_operands != NULL)
        (void)munmap(bench->own_operands, bench->operands_bytes + 1);
    fr_cache_state_destroy(bench->caches);
    free(bench->points);
    free(bench);
}

/* ---- one timed execution ------------------------------------------------ */

static int axis_group(const fr_plan *plan, fr_axis axis)
{
    switch (axis) {
    case FR_AXIS_TP:
        return plan->tp;
    case FR_AXIS_DP:
        return plan->dp;
    case FR_AXIS_PP:
        return plan->pp;
    default:
        return 1;
    }
}

/* An execution uses only the rows of its tokens of such a table, so fresh
 * tokens find most rows in the cache that the size of the table implies. */
static bool is_sparse_operand(const fr_instr *instr, int i_ref)
{
    return (instr->op == FR_OP_EMBED_FWD && i_ref == 1) ||
           (instr->op == FR_OP_EMBED_BWD && i_ref == 2);
}

static void place_operands(fr_compute_bench *bench, const fr_shape *shape,
                           fr_kernel_call *call, uint64_t *n_bytes)
{
    const fr_instr *instr = &shape->instr;
    uint64_t offset = 0;
    unsigned char *base = bench->operands;

    /* One thread's shapes are shared with plans of more ranks. */
    if (bench->own_operands != NULL && shape->key.n_threads > 1 &&
        fr_plan_world(&shape->program->plan) == 1)
        base = bench->own_operands;
    for (int i = 0; i < FR_INSTR_REFS; i++) {
        n_bytes[i] = 0;
        call->ptr[i] = NULL;
        if (instr->ref[i].space == FR_SPACE_NONE)
            continue;
        n_bytes[i] = fr_instr_ref_bytes(instr, i, 1);
        call->ptr[i] = base + offset;
        offset += (n_bytes[i] + 4095) / 4096 * 4096 + 4096;
    }
    call->scratch = base + offset;
}

/* A payload of top-k names elements, so it has to be a real one. */
static void make_payload(const fr_kernel_call *call)
{
    fr_kernel_call encode = *call;
    fr_instr instr = *call->instr;
    char *payloads = call->ptr[0];
    size_t n_payload = (size_t)instr.compress.payload_bytes;

    if (!fr_compressor_of(call->plan)->has_indices)
        return;
    instr.op = FR_OP_COMPRESS;
    instr.compress.stage = 0;
    encode.instr = &instr;
    encode.ptr[0] = call->ptr[2];
    encode.ptr[2] = payloads;
    fr_kernels_cpu[FR_OP_COMPRESS](&encode);
    for (int64_t i = 1; i < instr.compress.n_payloads; i++)
        memcpy(payloads + (size_t)i * n_payload, payloads, n_payload);
}

/* Writes the operands that belong to `place` with fresh data. */
static void write_place(fr_compute_bench *bench, const fr_shape *shape,
                        const fr_kernel_call *call, const uint64_t *n_bytes,
                        char place)
{
    for (int i = 0; i < FR_INSTR_REFS && shape->key.where[i] != '\0'; i++) {
        const fr_instr *instr = &shape->instr;
        if (shape->key.where[i] != place ||
            (is_sparse_operand(instr, i) && bench->n_runs > 0 &&
             n_bytes[i] > bench->machine->llc_bytes))
            continue;
        if (instr->ref[i].space == FR_SPACE_TOKENS)
            fr_shape_fill_tokens(shape, bench->n_runs, call->ptr[i],
                                 n_bytes[i]);
        else if (!fr_shape_fill_routes(shape, i, call->ptr[i], n_bytes[i]))
            fr_cache_write(bench->caches, call->ptr[i], n_bytes[i],
                           call->n_threads);
    }
}

static void prepare_caches(fr_compute_bench *bench, const fr_shape *shape,
                           const fr_kernel_call *call, const uint64_t *n_bytes)
{
    uint64_t evicted_bytes = 0, llc_bytes = 0;
    const char *where = shape->key.where;

    write_place(bench, shape, call, n_bytes, FR_PROFILE_MEMORY);
    if (call->instr->op == FR_OP_DECOMPRESS)
        make_payload(call);
    for (int i = 0; i < FR_INSTR_REFS && where[i] != '\0'; i++) {
        if (where[i] == FR_PROFILE_MEMORY &&
            !is_sparse_operand(&shape->instr, i)) {
            fr_cache_evict(call->ptr[i], n_bytes[i], call->n_threads);
            evicted_bytes += n_bytes[i];
        }
        if (where[i] == FR_PROFILE_LLC)
            llc_bytes += n_bytes[i];
    }
    if (evicted_bytes > 0)
        fr_cache_dirty(bench->caches, evicted_bytes, call->n_threads);
    if (llc_bytes > 0) {
        write_place(bench, shape, call, n_bytes, FR_PROFILE_LLC);
        fr_cache_dirty(bench->caches,
                       2 * bench->machine->l2_bytes * (uint64_t)call->n_threads,
                       call->n_threads);
    }
    write_place(bench, shape, call, n_bytes, FR_PROFILE_NEAR);
    if (call->instr->op == FR_OP_DECOMPRESS && where[0] != FR_PROFILE_MEMORY)
        make_payload(call);
}

static fr_status run_point(void *context, size_t i_point, double *out_s,
                           fr_err *err)
{
    fr_compute_bench *bench = context;
    const bench_point *point = &bench->points[i_point];
    const fr_shape *shape = point->shape;
    const fr_rank_program *rank_program =
        &shape->program->rank_programs[shape->i_stage];
    uint64_t n_bytes[FR_INSTR_REFS];
    fr_kernel_call call = {
        .instr = &shape->instr,
        .n_group =
            axis_group(&shape->program->plan, (fr_axis)shape->instr.axis),
        .n_threads = shape->key.n_threads,
        .i_step = 7, /* past the bias correction's first steps */
        .job = &shape->program->job,
        .plan = &shape->program->plan,
        .model = &shape->program->model,
        .share = {.n = shape->program->plan.cp},
        .tensors = rank_program->tensors,
        .n_tensors = rank_program->n_tensors};
    double begin_s;
    long n_before;

    *out_s = 1e-9;
    if (point->key.n_busy == 1 && bench->transport->rank != 0)
        return FR_OK;
    place_operands(bench, shape, &call, n_bytes);
    fr_kernels_cpu_set_threads(call.n_threads);
    n_before = fr_preemptions();
    prepare_caches(bench, shape, &call, n_bytes);
    bench->n_runs++;
    if (point->key.n_busy > 1)
        FR_TRY(fr_ranks_barrier(bench->transport, err));
    begin_s = fr_clock_s();
    fr_kernels_cpu_run(&call);
    *out_s = fmax(fr_clock_s() - begin_s, 1e-9);
    if (fr_preemptions() != n_before)
        *out_s = -*out_s;
    return FR_OK;
}

static fr_status keep(void *context, size_t i_point, const fr_sample *sample,
                      fr_profile *profile, fr_err *err)
{
    fr_compute_point point = ((fr_compute_bench *)context)->points[i_point].key;

    point.sample = *sample;
    return fr_profile_add_compute(profile, &point, err);
}

fr_bench fr_compute_bench_table(fr_compute_bench *bench)
{
    return (fr_bench){.name = "compute",
                      .context = bench,
                      .n_points = bench->n_points,
                      .run = run_point,
                      .keep = keep};
}
