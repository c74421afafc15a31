/*
 * Sends and receives among ranks that see each other's slabs: a rank that waits
 * for the next send of another does not take what is for a third.
 */
#include "core/system/clock.h"
#include "runtime/comm/collective_engine.h"
#include "tests/check.h"

#include <pthread.h>
#include <sched.h>

enum { N_RANKS = 3, N_TURNS = 20000, LIMIT_S = 20 };
enum { TO_FIRST, TO_LAST, AT_FIRST, AT_LAST, N_TRANSFERS };

/* Rank 1 sends to 0 and to 2 in turn. */
typedef struct turns {
    fr_instr instrs[N_TRANSFERS];
    fr_segment segments[N_TRANSFERS];
    fr_call calls[N_TRANSFERS];
    fr_rank_program rank_program;
    fr_program program;
    fr_loopback *hub;
    _Atomic int n_bad;
} turns;

typedef struct actor {
    turns *t;
    int64_t rank;
} actor;

/* False where it failed, here or on another rank, or takes too long. */
static bool transfer(turns *t, fr_engine *engine, int which, double *value)
{
    const fr_lane lane = (fr_lane)t->segments[which].lane;
    const double begin_s = fr_clock_s();
    bool is_done = false, has_moved = false;
    fr_err err = {0};

    fr_engine_start(engine, (uint32_t)which, value, value);
    while (!is_done && t->n_bad == 0) {
        if (fr_engine_progress(engine, lane, &is_done, &has_moved, &err) !=
                FR_OK ||
            fr_clock_s() - begin_s > LIMIT_S)
            t->n_bad++;
        if (!has_moved)
            (void)sched_yield();
    }
    return is_done;
}

static void take_turns(turns *t, fr_transport *transport, fr_engine *engine)
{
    double *value = (double *)(void *)transport->slab[transport->rank];
    const int received = transport->rank == 0 ? AT_FIRST : AT_LAST;

    for (int i = 0; i < N_TURNS; i++) {
        if (transport->rank != 1) {
            if (!transfer(t, engine, received, value))
                return;
            t->n_bad += *value != (transport->rank == 0 ? i : -i);
            continue;
        }
        *value = i;
        if (!transfer(t, engine, TO_FIRST, value))
            return;
        *value = -i;
        if (!transfer(t, engine, TO_LAST, value))
            return;
    }
}

static void *act(void *context)
{
    const actor *a = context;
    fr_transport *transport = NULL;
    fr_engine *engine = NULL;
    fr_err err = {0};

    if (fr_transport_loopback_create(a->t->hub, a->rank, LIMIT_S, &transport,
                                     &err) != FR_OK ||
        transport->ops->open_slab(transport, sizeof(double), &err) != FR_OK ||
        fr_engine_create(&a->t->program, transport, &engine, &err) != FR_OK)
        a->t->n_bad++;
    else
        take_turns(a->t, transport, engine);
    fr_engine_destroy(engine);
    fr_transport_destroy(transport);
    return NULL;
}

static void add_transfer(turns *t, int which, fr_op op, int peer, uint32_t tag)
{
    t->instrs[which] = (fr_instr){.op = (uint8_t)op,
                                  .dtype = FR_DTYPE_F64,
                                  .axis = FR_AXIS_DP,
                                  .peer = (int16_t)peer,
                                  .tag = tag,
                                  .dim = {1}};
    t->segments[which] = (fr_segment){
        .first_instr = (uint32_t)which,
        .n_instrs = 1,
        .lane = op == FR_OP_SEND ? FR_LANE_PP_SEND : FR_LANE_PP_RECV};
    t->calls[which].i_segment = (uint32_t)which;
}

static void test_turns(void)
{
    turns t = {.n_bad = 0};
    pthread_t threads[N_RANKS];
    actor actors[N_RANKS];
    fr_err err = {0};

    add_transfer(&t, TO_FIRST, FR_OP_SEND, 0, 8);
    add_transfer(&t, TO_LAST, FR_OP_SEND, 2, 16);
    add_transfer(&t, AT_FIRST, FR_OP_RECV, 1, 8);
    add_transfer(&t, AT_LAST, FR_OP_RECV, 1, 16);
    t.rank_program =
        (fr_rank_program){.n_calls = N_TRANSFERS, .calls = t.calls};
    t.program = (fr_program){.n_instrs = N_TRANSFERS,
                             .instrs = t.instrs,
                             .n_segments = N_TRANSFERS,
                             .segments = t.segments,
                             .n_rank_programs = 1,
                             .rank_programs = &t.rank_program};
    fr_plan_init(&t.program.plan);
    t.program.plan.dp = N_RANKS;
    if (!CHECK_OK(fr_loopback_create(N_RANKS, NULL, &t.hub, &err), &err))
        return;
    for (int i = 0; i < N_RANKS; i++) {
        actors[i] = (actor){&t, i};
        pthread_create(&threads[i], NULL, act, &actors[i]);
    }
    for (int i = 0; i < N_RANKS; i++)
        pthread_join(threads[i], NULL);
    fr_loopback_destroy(t.hub);
    CHECK_INT(t.n_bad, 0);
}

CHECK_MAIN({"turns", test_turns})
