/*
 * Collectives and transfers over the loopback transport: every operation,
 * algorithm, element type and placement, for groups of 1 to 5 ranks, against
 * sums made here.
 */
#include "core/numbers/rng.h"
#include "core/system/clock.h"
#include "runtime/comm/collective_engine.h"
#include "tests/check.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#define MAX_RANKS 5
#define SLAB_BYTES ((uint64_t)4 << 20)
#define DST_OFFSET ((uint64_t)2 << 20)

typedef struct scene {
    fr_op op;
    fr_dtype dtype;
    fr_collective_kind algorithm;
    fr_lane lane;
    int64_t n_ranks;
    uint64_t n; /* elements */
    bool is_in_place, is_max;
    fr_server_place place; /* of parameter servers */
    int64_t n_servers;
    const int32_t *node_of_rank;
    /* made by build() */
    fr_program program;
    fr_instr instr;
    fr_segment segment;
    fr_rank_program rank_program;
    fr_call call;
    fr_loopback *hub;
    _Atomic int n_bad;
} scene;

typedef struct actor {
    scene *s;
    int64_t rank;
} actor;

/* Small whole numbers: sums are exact in every element type, in any order. */
static int value_of(const scene *s, int64_t rank, uint64_t i)
{
    return (int)(fr_hash_u64(77, (uint64_t)rank, i, (uint64_t)s->op) % 23);
}

static void put(void *base, fr_dtype dtype, uint64_t i, int value)
{
    float f = (float)value;
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    switch (dtype) {
    case FR_DTYPE_F64:
        ((double *)base)[i] = value;
        break;
    case FR_DTYPE_BF16:
        ((uint16_t *)base)[i] = (uint16_t)(bits >> 16);
        break;
    case FR_DTYPE_I32:
        ((int32_t *)base)[i] = value;
        break;
    case FR_DTYPE_U8:
        ((uint8_t *)base)[i] = (uint8_t)value;
        break;
    default:
        ((float *)base)[i] = f;
        break;
    }
}

static int get(const void *base, fr_dtype dtype, uint64_t i)
{
    uint32_t bits;
    float f;

    switch (dtype) {
    case FR_DTYPE_F64:
        return (int)((const double *)base)[i];
    case FR_DTYPE_BF16:
        bits = (uint32_t)((const uint16_t *)base)[i] << 16;
        memcpy(&f, &bits, sizeof f);
        return (int)f;
    case FR_DTYPE_I32:
        return ((const int32_t *)base)[i];
    case FR_DTYPE_U8:
        return ((const uint8_t *)base)[i];
    default:
        return (int)((const float *)base)[i];
    }
}

static int combined(const scene *s, uint64_t i)
{
    int result = 0;

    for (int64_t rank = 0; rank < s->n_ranks; rank++) {
        int value = value_of(s, rank, i);
        if (s->is_max)
            result = value > result ? value : result;
        else
            result += value;
    }
    return result;
}

/* Offsets of operands in a slab, and their numbers of elements. */
static void operands(const scene *s, int64_t rank, uint64_t *src,
                     uint64_t *n_src, uint64_t *dst, uint64_t *n_dst)
{
    uint64_t part = s->n / (uint64_t)s->n_ranks;
    uint64_t part_bytes = part * fr_dtype_bytes(s->dtype);
    /* Slabs of different ranks are laid out differently. */
    uint64_t base = 64 * (uint64_t)rank;

    *n_src = *n_dst = s->n;
    *src = base;
    *dst = s->is_in_place ? base : DST_OFFSET + base;
    if (s->op == FR_OP_ALL_GATHER) {
        *n_src = part;
        if (s->is_in_place)
            *src = *dst + (uint64_t)rank * part_bytes;
    }
    if (s->op == FR_OP_REDUCE_SCATTER) {
        *n_dst = part;
        if (s->is_in_place)
            *dst = *src + (uint64_t)rank * part_bytes;
    }
}

static int expected(const scene *s, int64_t rank, uint64_t i)
{
    uint64_t g = (uint64_t)s->n_ranks, part = s->n / g;

    switch (s->op) {
    case FR_OP_REDUCE_SCATTER:
        return combined(s, (uint64_t)rank * part + i);
    case FR_OP_ALL_GATHER:
        return value_of(s, (int64_t)(i / part), i % part);
    case FR_OP_ALL_TO_ALL:
        return value_of(s, (int64_t)(i / part),
                        (uint64_t)rank * part + i % part);
    case FR_OP_BROADCAST:
        return value_of(s, s->instr.dim[1], i);
    default:
        return combined(s, i);
    }
}

static void drive(scene *s, fr_engine *engine, unsigned char *src,
                  unsigned char *dst)
{
    bool is_done = false, has_moved = false;
    fr_err err = {0};
    double begin_s = fr_clock_s();

    fr_engine_start(engine, 0, src, dst);
    while (!is_done) {
        if (fr_engine_progress(engine, s->lane, &is_done, &has_moved, &err) !=
                FR_OK ||
            fr_clock_s() - begin_s > 20) {
            s->n_bad += 1000000;
            return;
        }
        if (!has_moved)
            (void)sched_yield();
    }
}

static void play(scene *s, fr_transport *transport)
{
    uint64_t src, n_src, dst, n_dst;
    fr_engine *engine = NULL;
    fr_err err = {0};
    unsigned char *slab = transport->slab[transport->rank];

    if (!CHECK_OK(fr_engine_create(&s->program, transport, &engine, &err),
                  &err)) {
        s->n_bad++;
        return;
    }
    operands(s, transport->rank, &src, &n_src, &dst, &n_dst);
    /* Twice: sequence counters must go on from where they were. */
    for (int round = 0; round < 2; round++) {
        for (uint64_t i = 0; i < n_src; i++)
            put(slab + src, s->dtype, i, value_of(s, transport->rank, i));
        drive(s, engine, slab + src, slab + dst);
        for (uint64_t i = 0; i < n_dst; i++)
            s->n_bad +=
                get(slab + dst, s->dtype, i) != expected(s, transport->rank, i);
    }
    fr_engine_destroy(engine);
}

static void *act(void *context)
{
    actor *a = context;
    scene *s = a->s;
    fr_transport *transport = NULL;
    fr_err err = {0};

    if (fr_transport_loopback_create(s->hub, a->rank, 20, &transport, &err) !=
            FR_OK ||
        transport->ops->open_slab(transport, SLAB_BYTES, &err) != FR_OK) {
        s->n_bad++;
        return NULL;
    }
    play(s, transport);
    fr_transport_destroy(transport);
    return NULL;
}

static void build(scene *s)
{
    s->instr = (fr_instr){.op = (uint8_t)s->op,
                          .dtype = (uint8_t)s->dtype,
                          .axis = FR_AXIS_DP,
                          .algorithm = (uint8_t)s->algorithm,
                          .flags = s->is_max ? FR_INSTR_MAX : 0,
                          .dim = {(int64_t)s->n}};
    if (s->op == FR_OP_BROADCAST)
        s->instr.dim[1] = s->n_ranks - 1;
    if (fr_collective_is_by_servers(s->algorithm)) {
        s->instr.comm.n_servers = s->n_servers;
        s->instr.comm.server_place = s->place;
    }
    s->segment = (fr_segment){.n_instrs = 1, .lane = (uint8_t)s->lane};
    s->rank_program = (fr_rank_program){.n_calls = 1, .calls = &s->call};
    s->program = (fr_program){.n_instrs = 1,
                              .instrs = &s->instr,
                              .n_segments = 1,
                              .segments = &s->segment,
                              .n_rank_programs = 1,
                              .rank_programs = &s->rank_program};
    fr_plan_init(&s->program.plan);
    s->program.plan.dp = (int32_t)s->n_ranks;
}

static void perform(scene *s)
{
    pthread_t threads[MAX_RANKS];
    actor actors[MAX_RANKS];
    fr_err err = {0};

    build(s);
    if (!CHECK_OK(
            fr_loopback_create(s->n_ranks, s->node_of_rank, &s->hub, &err),
            &err))
        return;
    for (int64_t i = 0; i < s->n_ranks; i++) {
        actors[i] = (actor){s, i};
        pthread_create(&threads[i], NULL, act, &actors[i]);
    }
    for (int64_t i = 0; i < s->n_ranks; i++)
        pthread_join(threads[i], NULL);
    fr_loopback_destroy(s->hub);
    check_that(s->n_bad == 0, __FILE__, __LINE__,
               "%s %s by %s: %d ranks, n %d, in place %d: %d wrong",
               fr_op_name(s->op), fr_dtype_name(s->dtype),
               fr_name_of(&fr_collective_names, s->algorithm), (int)s->n_ranks,
               (int)s->n, s->is_in_place, (int)s->n_bad);
}

static const int32_t apart[MAX_RANKS] = {0, 1, 2, 3, 4};
static const int32_t mixed[MAX_RANKS] = {0, 0, 1, 1, 0};

static void over_groups(fr_op op, fr_dtype dtype, fr_collective_kind algorithm,
                        uint64_t n, const int32_t *nodes)
{
    for (int64_t g = 1; g <= MAX_RANKS; g++) {
        bool must_divide = op != FR_OP_ALL_REDUCE && op != FR_OP_BROADCAST;
        bool has_table = op == FR_OP_ALL_REDUCE || op == FR_OP_ALL_GATHER ||
                         op == FR_OP_REDUCE_SCATTER;
        uint64_t n_fit = must_divide ? (n / 60 + 1) * (uint64_t)g * 60 : n;
        if (g > 1 && has_table && algorithm != FR_COLLECTIVE_AUTO &&
            (fr_collectives[algorithm]->not_executable != NULL ||
             !fr_collectives[algorithm]->fits(op, g)))
            continue;
        for (int in_place = 0; in_place < 2; in_place++) {
            if (op == FR_OP_ALL_TO_ALL && in_place)
                continue;
            scene s = {.op = op,
                       .dtype = dtype,
                       .algorithm = algorithm,
                       .lane = in_place ? FR_LANE_DP : FR_LANE_COMPUTE,
                       .n_ranks = g,
                       .n = n_fit,
                       .is_in_place = in_place,
                       .node_of_rank = nodes};
            perform(&s);
        }
    }
}

static void test_all_reduce(void)
{
    static const uint64_t sizes[] = {1, 3, 7, 61, 1009, 70001};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        over_groups(FR_OP_ALL_REDUCE, FR_DTYPE_F32, FR_COLLECTIVE_DIRECT,
                    sizes[i], NULL);
        for (int kind = FR_COLLECTIVE_RING; kind < fr_n_collectives; kind++)
            over_groups(FR_OP_ALL_REDUCE, FR_DTYPE_F32,
                        (fr_collective_kind)kind, sizes[i],
                        i % 2 ? apart : mixed);
    }
}

/* Servers everywhere, by slabs and by messages, over nodes of unlike size. */
static void test_servers(void)
{
    static const int32_t *const nodes[] = {NULL, apart, mixed};
    static const int n_nodes[] = {1, MAX_RANKS, 2};

    for (int place = 0; place < FR_SERVER_N; place++)
        for (int k = 0; k < 3; k++)
            for (int64_t n = 0; n <= 3; n++) {
                if (place != FR_SERVER_DEVICE && n > n_nodes[k])
                    continue;
                scene s = {.op = FR_OP_ALL_REDUCE,
                           .dtype = FR_DTYPE_F32,
                           .algorithm = FR_COLLECTIVE_PARAMETER_SERVER,
                           .lane = FR_LANE_DP,
                           .n_ranks = MAX_RANKS,
                           .n = n == 2 ? 2 : 70001,
                           .is_in_place = n % 2,
                           .place = (fr_server_place)place,
                           .n_servers = n,
                           .node_of_rank = nodes[k]};
                perform(&s);
            }
}

static void test_gather_and_scatter(void)
{
    static const uint64_t sizes[] = {1, 1009, 70001};
    static const fr_op ops[] = {FR_OP_ALL_GATHER, FR_OP_REDUCE_SCATTER};

    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 2; k++) {
            over_groups(ops[k], FR_DTYPE_F32, FR_COLLECTIVE_DIRECT, sizes[i],
                        NULL);
            for (int kind = FR_COLLECTIVE_RING; kind < fr_n_collectives; kind++)
                over_groups(ops[k], FR_DTYPE_F32, (fr_collective_kind)kind,
                            sizes[i], i % 2 ? mixed : apart);
        }
}

static void test_other_collectives(void)
{
    static const fr_op ops[] = {FR_OP_ALL_TO_ALL, FR_OP_BROADCAST};

    for (size_t k = 0; k < 2; k++) {
        over_groups(ops[k], FR_DTYPE_F32, FR_COLLECTIVE_AUTO, 1009, NULL);
        over_groups(ops[k], FR_DTYPE_U8, FR_COLLECTIVE_AUTO, 300007, apart);
        over_groups(ops[k], FR_DTYPE_I32, FR_COLLECTIVE_AUTO, 1009, mixed);
    }
}

static void test_element_types(void)
{
    static const fr_dtype dtypes[] = {FR_DTYPE_F32, FR_DTYPE_F64, FR_DTYPE_BF16,
                                      FR_DTYPE_I32, FR_DTYPE_U8};

    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        for (int is_max = dtypes[i] == FR_DTYPE_U8; is_max < 2; is_max++)
            for (int is_apart = 0; is_apart < 2; is_apart++) {
                scene s = {.op = FR_OP_ALL_REDUCE,
                           .dtype = dtypes[i],
                           .algorithm = is_apart ? FR_COLLECTIVE_RING
                                                 : FR_COLLECTIVE_DIRECT,
                           .lane = FR_LANE_DP,
                           .n_ranks = 3,
                           .n = 4099,
                           .is_in_place = true,
                           .is_max = is_max,
                           .node_of_rank = is_apart ? apart : NULL};
                perform(&s);
            }
}

static void test_barrier(void)
{
    for (int64_t g = 1; g <= MAX_RANKS; g++)
        for (int is_apart = 0; is_apart < 2; is_apart++) {
            scene s = {.op = FR_OP_BARRIER,
                       .n_ranks = g,
                       .lane = FR_LANE_COMPUTE,
                       .node_of_rank = is_apart ? apart : NULL};
            perform(&s);
        }
}

/* Sums in fp32 must have the same bits on every member. */
static void test_reduce_order(void)
{
    enum { N = 5003, SOURCES = 4 };
    static float source[SOURCES][N], sum[N];
    const void *pointers[SOURCES];
    double worst = 0;

    for (int j = 0; j < SOURCES; j++) {
        pointers[j] = source[j];
        for (int i = 0; i < N; i++)
            source[j][i] =
                (float)fr_hash_normal(5, (uint64_t)j, (uint64_t)i, 0);
    }
    fr_reduce(sum, pointers, SOURCES, N, FR_DTYPE_F32, false);
    int n_different = 0;
    for (int i = 0; i < N; i++) {
        volatile float expect = source[0][i] + source[1][i];
        expect += source[2][i];
        expect += source[3][i];
        n_different += expect != sum[i];
        double exact =
            (double)source[0][i] + source[1][i] + source[2][i] + source[3][i];
        worst = fmax(worst, fabs(exact - sum[i]));
    }
    CHECK_INT(n_different, 0);
    CHECK(worst < 2e-6);
    /* In place on the last and on a middle one. */
    float *last = source[3];
    fr_reduce(last, pointers, SOURCES, N, FR_DTYPE_F32, false);
    CHECK(memcmp(last, sum, sizeof sum) == 0);
}

CHECK_MAIN({"all_reduce", test_all_reduce}, {"servers", test_servers},
           {"gather_and_scatter", test_gather_and_scatter},
           {"other_collectives", test_other_collectives},
           {"element_types", test_element_types}, {"barrier", test_barrier},
           {"reduce_order", test_reduce_order})
