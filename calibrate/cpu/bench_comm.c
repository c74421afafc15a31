/* bench_comm.c: see bench_comm.h. */
#include "calibrate/cpu/bench_comm.h"

#include "calibrate/cpu/cache_state.h"
#include "calibrate/cpu/ranks.h"
#include "core/system/clock.h"
#include "cost_models/compute/compute_key.h"
#include "program/ir/micro_program.h"
#include "runtime/rank/measure.h"
#include "runtime/run/interpreter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Writing them takes a core some milliseconds. */
enum { REST_BYTES = 32 << 20 };

/* Writing them N_BUSY times takes a core a tenth of a millisecond, and leaves
 * a payload that is written then in its cache. */
enum { BUSY_BYTES = 512 << 10, N_BUSY = 8 };

struct fr_comm_bench {
    const fr_comm_point *points;
    size_t n_points;
    fr_transport *transport;
    fr_program *program;
    fr_interpreter *interpreter;
    fr_cores cores;
    fr_core_mask previous_cores;
    bool is_slab_open;
    uint32_t *i_instr;  /* [n_points] whose span is the answer */
    uint32_t *i_second; /* transfers: of the way back */
    double *seconds;    /* [n_points] of the last round */
    fr_span *spans;
    double clock_offset_s; /* of rank 0's clock against this one */
    double step_begin_s;   /* on rank 0's clock */
    double *times;         /* [n_points][2] begin and end of the last round */
    double *all_times;     /* [world][n_points][2] */
    int64_t n_steps, n_max;
    double busy_s, cpu_s; /* summed over rounds */
};

/* ---- the micro-program --------------------------------------------------- */

typedef struct layout {
    uint64_t src_bytes, dst_bytes, pool_bytes; /* offsets in the slab */
    uint64_t largest_bytes, pool_size_bytes, slab_bytes;
} layout;

static bool is_shm(const fr_comm_point *point)
{
    return strcmp(point->scope, FR_PROFILE_SCOPE_SHM) == 0;
}

static layout lay_out(const fr_comm_bench *bench, const fr_fingerprint *machine)
{
    layout at = {0};
    bool has_cold = false, is_net = false;

    for (size_t i = 0; i < bench->n_points; i++) {
        if (bench->points[i].n_bytes > at.largest_bytes)
            at.largest_bytes = bench->points[i].n_bytes;
        has_cold = has_cold || bench->points[i].is_cold;
        is_net = is_net || !is_shm(&bench->points[i]);
    }
    at.largest_bytes = (at.largest_bytes / 4096 + 2) * 4096;
    if (has_cold)
        at.pool_size_bytes = fr_cache_pool_bytes(machine);
    else
        at.pool_size_bytes = is_net ? REST_BYTES : BUSY_BYTES;
    at.dst_bytes = at.largest_bytes;
    at.pool_bytes = 2 * at.largest_bytes;
    at.slab_bytes = at.pool_bytes + at.pool_size_bytes;
    return at;
}

static fr_op op_of(const fr_comm_point *point)
{
    return (fr_op)fr_op_find(point->op);
}

/*
 * A network gets a rest first, some milliseconds of other work, as between
 * the collectives of a step: what buffers and shapers have to give, they
 * give then too.  Inside a node the communication thread must have gone to
 * sleep, as it has beside the kernels of a step: a tenth of a millisecond.
 */
static bool has_rest(const fr_comm_point *point)
{
    return point->is_cold || !is_shm(point);
}

static uint32_t n_prelude(const fr_comm_point *point)
{
    if (has_rest(point))
        return 2;
    return point->is_async ? 1 + N_BUSY : 1;
}

/* The writes that come before a point, as one call; returns its number. */
static uint32_t add_prelude(fr_micro *micro, const layout *at,
                            const fr_comm_point *point, uint32_t i_stage,
                            uint32_t dep)
{
    fr_instr instrs[1 + N_BUSY], *payload = instrs;
    uint32_t n = n_prelude(point);

    if (has_rest(point)) {
        instrs[1] = fr_micro_zero(at->pool_bytes, at->pool_size_bytes);
    } else {
        for (uint32_t i = 0; i + 1 < n; i++)
            instrs[i] = fr_micro_zero(at->pool_bytes, BUSY_BYTES);
        payload = &instrs[n - 1]; /* last, so that it is in a cache */
    }
    *payload = fr_micro_zero(at->src_bytes, point->n_bytes + 4);
    return fr_micro_call(
        micro, i_stage,
        fr_micro_segment(micro, FR_LANE_COMPUTE, "prelude", instrs, n), dep);
}

static fr_status build_collectives(fr_comm_bench *bench, const layout *at,
                                   fr_err *err)
{
    fr_plan plan;
    fr_micro *micro;
    uint32_t last = UINT32_MAX, n_instrs = 0;

    fr_plan_init(&plan);
    plan.dp = (int32_t)bench->transport->world;
    FR_TRY(fr_micro_create(&plan, &micro, err));
    for (size_t i = 0; i < bench->n_points; i++) {
        const fr_comm_point *point = &bench->points[i];
        fr_lane lane = point->is_async ? FR_LANE_DP : FR_LANE_COMPUTE;
        fr_collective_kind algorithm = FR_COLLECTIVE_DIRECT;
        fr_instr instrs[2];
        int found = fr_name_find(&fr_collective_names, point->algorithm);
        if (found > 0)
            algorithm = (fr_collective_kind)found;
        instrs[0] = fr_micro_communicate(FR_OP_BARRIER, FR_AXIS_DP,
                                         FR_COLLECTIVE_AUTO, 0, 0, 0);
        instrs[1] = fr_micro_communicate(op_of(point), FR_AXIS_DP, algorithm,
                                         point->n_bytes / 4, at->src_bytes,
                                         at->dst_bytes);
        last = add_prelude(micro, at, point, 0, last);
        n_instrs += n_prelude(point);
        last = fr_micro_call(
            micro, 0, fr_micro_segment(micro, lane, "measured", instrs, 2),
            last);
        bench->i_instr[i] = bench->i_second[i] = n_instrs + 1;
        n_instrs += 2;
    }
    return fr_micro_finish(micro, at->slab_bytes, &bench->program, err);
}

/* The first rank of another host, or rank 1 where there is one host. */
static int64_t find_far_rank(const fr_transport *transport)
{
    for (int64_t rank = 1; rank < transport->world; rank++)
        if (transport->node_of_rank[rank] != transport->node_of_rank[0])
            return rank;
    return 1;
}

/* A payload goes from stage 0 to the far stage and comes back. */
static fr_status build_transfers(fr_comm_bench *bench, const layout *at,
                                 fr_err *err)
{
    fr_plan plan;
    fr_micro *micro;
    uint32_t last[2] = {UINT32_MAX, UINT32_MAX}, n_instrs = 0;
    const uint32_t stage[2] = {0, (uint32_t)find_far_rank(bench->transport)};

    fr_plan_init(&plan);
    plan.pp = (int32_t)bench->transport->world;
    FR_TRY(fr_micro_create(&plan, &micro, err));
    for (size_t i = 0; i < bench->n_points; i++) {
        const fr_comm_point *point = &bench->points[i];
        for (uint32_t side = 0; side < 2; side++) {
            fr_instr send = fr_micro_communicate(
                FR_OP_SEND, FR_AXIS_PP, FR_COLLECTIVE_AUTO, point->n_bytes / 4,
                at->src_bytes, at->dst_bytes);
            fr_instr receive = fr_micro_communicate(
                FR_OP_RECV, FR_AXIS_PP, FR_COLLECTIVE_AUTO, point->n_bytes / 4,
                at->src_bytes, at->dst_bytes);
            uint32_t i_send, i_receive;
            send.peer = receive.peer = (int16_t)stage[1 - side];
            send.tag = (uint32_t)(2 * i) + side;
            receive.tag = (uint32_t)(2 * i) + 1 - side;
            last[side] = add_prelude(micro, at, point, stage[side], last[side]);
            n_instrs += n_prelude(point);
            i_send = fr_micro_segment(micro, FR_LANE_PP_SEND, "send", &send, 1);
            i_receive =
                fr_micro_segment(micro, FR_LANE_PP_RECV, "recv", &receive, 1);
            if (side == 0) {
                bench->i_instr[i] = n_instrs;
                bench->i_second[i] = n_instrs + 1;
            }
            n_instrs += 2;
            last[side] = fr_micro_call(
                micro, stage[side], side == 0 ? i_send : i_receive, last[side]);
            last[side] = fr_micro_call(
                micro, stage[side], side == 0 ? i_receive : i_send, last[side]);
        }
    }
    return fr_micro_finish(micro, at->slab_bytes, &bench->program, err);
}

/* ---- rounds ------------------------------------------------------------- */

static double cpu_clock_s(clockid_t clock)
{
    struct timespec t;

    if (clock_gettime(clock, &t) != 0)
        return 0.0;
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Finds when an instruction ran in the last step, on the common clock. */
static void find_span(const fr_comm_bench *bench, size_t n_spans,
                      uint32_t i_instr, double *begin_s, double *end_s)
{
    int32_t step = (int32_t)bench->n_steps;

    for (size_t i = n_spans; i-- > 0;) {
        const fr_span *span = &bench->spans[i];
        if (span->step != step || span->i_instr != i_instr)
            continue;
        *begin_s = bench->step_begin_s + (double)span->begin_ps * 1e-12;
        *end_s = bench->step_begin_s + (double)span->end_ps * 1e-12;
        return;
    }
}

/* A transfer takes half of the round trip, from the begin of the send to the
 * end of the receive that answers it, so one clock is enough. */
static void read_transfers(fr_comm_bench *bench, size_t n_spans)
{
    for (size_t i = 0; i < bench->n_points; i++) {
        double begin_s = 0.0, end_s = 0.0, ignored_s;
        find_span(bench, n_spans, bench->i_instr[i], &begin_s, &ignored_s);
        find_span(bench, n_spans, bench->i_second[i], &ignored_s, &end_s);
        bench->seconds[i] = 0.5 * (end_s - begin_s);
        bench->busy_s += end_s - begin_s;
    }
}

/*
 * From the begin on the rank that began last to the end on the rank that
 * ended last: whoever came early only waited, and a rank that has sent its
 * part may be through long before the others have it.
 */
static fr_status read_collectives(fr_comm_bench *bench, size_t n_spans,
                                  fr_err *err)
{
    size_t n = bench->n_points, world = (size_t)bench->transport->world;

    for (size_t i = 0; i < n; i++) {
        double *mine = bench->times + 2 * i, barrier_s = 0.0, ignored_s;
        mine[0] = mine[1] = 0.0;
        find_span(bench, n_spans, bench->i_instr[i], &mine[0], &mine[1]);
        find_span(bench, n_spans, bench->i_instr[i] - 1, &barrier_s,
                  &ignored_s);
        bench->busy_s += mine[1] - barrier_s;
    }
    FR_TRY(fr_transport_all_gather(bench->transport, bench->times,
                                   2 * n * sizeof(double), bench->all_times,
                                   err));
    for (size_t i = 0; i < n; i++) {
        double begin_s = -INFINITY, end_s = -INFINITY;
        for (size_t rank = 0; rank < world; rank++) {
            const double *there = bench->all_times + 2 * (rank * n + i);
            begin_s = fmax(begin_s, there[0]);
            end_s = fmax(end_s, there[1]);
        }
        bench->seconds[i] = end_s - begin_s;
    }
    return FR_OK;
}

static fr_status begin_round(void *context, fr_err *err)
{
    fr_comm_bench *bench = context;
    double step_s, process_s, main_s;
    size_t n_spans;

    if (bench->n_steps >= bench->n_max)
        return FR_OK; /* a round after a disturbed one: keep the last */
    FR_TRY(fr_ranks_barrier(bench->transport, err));
    process_s = cpu_clock_s(CLOCK_PROCESS_CPUTIME_ID);
    main_s = cpu_clock_s(CLOCK_THREAD_CPUTIME_ID);
    bench->step_begin_s = fr_clock_s() + bench->clock_offset_s;
    FR_TRY(fr_interpreter_step(bench->interpreter, bench->n_steps, true,
                               &step_s, err));
    /* The CPU time of the process beyond this thread is that of its
     * communication thread; meanwhile this thread waits or computes. */
    bench->cpu_s += cpu_clock_s(CLOCK_PROCESS_CPUTIME_ID) - process_s -
                    (cpu_clock_s(CLOCK_THREAD_CPUTIME_ID) - main_s);
    n_spans = fr_interpreter_copy_spans(bench->interpreter, bench->spans);
    if (op_of(&bench->points[0]) == FR_OP_SEND)
        read_transfers(bench, n_spans);
    else
        FR_TRY(read_collectives(bench, n_spans, err));
    bench->n_steps++;
    return FR_OK;
}

static fr_status run_point(void *context, size_t i_point, double *out_s,
                           fr_err *err)
{
    fr_comm_bench *bench = context;

    (void)err;
    *out_s = bench->seconds[i_point] > 1e-9 ? bench->seconds[i_point] : 1e-9;
    return FR_OK;
}

static double cpu_frac(const fr_comm_bench *bench)
{
    double frac = bench->busy_s > 0.0 ? bench->cpu_s / bench->busy_s : 0.0;

    return fmin(fmax(frac, 0.0), 1.0);
}

static fr_status keep(void *context, size_t i_point, const fr_sample *sample,
                      fr_profile *profile, fr_err *err)
{
    const fr_comm_bench *bench = context;
    fr_comm_point point = bench->points[i_point];

    point.sample = *sample;
    /* A rank that waits on its own lane has nothing else to do. */
    point.cpu_frac = point.is_async ? cpu_frac(bench) : 1.0;
    return fr_profile_add_comm(profile, &point, err);
}

fr_bench fr_comm_bench_table(fr_comm_bench *bench)
{
    return (fr_bench){.name = "communication",
                      .context = bench,
                      .n_points = bench->n_points,
                      .begin_round = begin_round,
                      .run = run_point,
                      .keep = keep};
}

/* ---- set-up ------------------------------------------------------------- */

static fr_status open_interpreter(fr_comm_bench *bench, const layout *at,
                                  fr_err *err)
{
    fr_transport *transport = bench->transport;
    fr_interpreter_options options = {.timeout_s = 60.0};
    size_t n_spans = bench->program->n_instrs * (size_t)bench->n_max * 2;

    fr_cores_assign(transport->n_local, transport->i_local, 1, &bench->cores);
    options.trace_steps = bench->n_max;
    options.is_core_shared = bench->cores.is_core_shared;
    options.is_crowded = bench->cores.is_crowded;
    options.comm_core = bench->cores.comm;
    FR_TRY_CALLOC(bench->spans, n_spans + 1, err);
    FR_TRY(fr_ranks_open_slab(transport, at->slab_bytes, err));
    bench->is_slab_open = true;
    fr_cores_pin(&bench->cores, &bench->previous_cores);
    return fr_interpreter_create(bench->program, transport, NULL, &options,
                                 &bench->interpreter, err);
}

fr_status fr_comm_bench_create(const fr_comm_point *points, size_t n,
                               const fr_fingerprint *machine,
                               fr_transport *transport, int n_max,
                               fr_comm_bench **out, fr_err *err)
{
    fr_status status;
    fr_comm_bench *bench = calloc(1, sizeof *bench);
    layout at;

    if (bench == NULL)
        return fr_fail_no_memory(err);
    bench->points = points;
    bench->n_points = n;
    bench->transport = transport;
    bench->n_max = n_max;
    bench->i_instr = calloc(n + 1, sizeof *bench->i_instr);
    bench->i_second = calloc(n + 1, sizeof *bench->i_second);
    bench->seconds = calloc(n + 1, sizeof *bench->seconds);
    bench->times = calloc(2 * n + 1, sizeof *bench->times);
    bench->all_times =
        calloc(2 * n * (size_t)transport->world + 1, sizeof *bench->all_times);
    if (bench->i_instr == NULL || bench->i_second == NULL ||
        bench->seconds == NULL || bench->times == NULL ||
        bench->all_times == NULL) {
        status = fr_fail_no_memory(err);
        goto out_bench;
    }
    at = lay_out(bench, machine);
    status = op_of(&points[0]) == FR_OP_SEND
                 ? build_transfers(bench, &at, err)
                 : build_collectives(bench, &at, err);
    if (status == FR_OK)
        status = fr_ranks_clock_offset(transport, &bench->clock_offset_s, err);
    if (status == FR_OK)
        status = open_interpreter(bench, &at, err);
    if (status == FR_OK) {
        *out = bench;
        return FR_OK;
    }
out_bench:
    fr_comm_bench_destroy(bench);
    return status;
}

void fr_comm_bench_destroy(fr_comm_bench *bench)
{
    if (bench == NULL)
        return;
    fr_interpreter_destroy(bench->interpreter);
    fr_cores_restore(&bench->previous_cores);
    if (bench->is_slab_open)
        bench->transport->ops->close_slab(bench->transport);
    fr_program_destroy(bench->program);
    free(bench->spans);
    free(bench->all_times);
    free(bench->times);
    free(bench->seconds);
    free(bench->i_second);
    free(bench->i_instr);
    free(bench);
}
