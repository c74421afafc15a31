/*
 * collective_engine.c: prepares the communication instructions of a rank and
 * hands each to the way that carries it out.
 */
#include "plan/decide/grid.h"
#include "runtime/comm/collective_engine_state.h"

#include <stdlib.h>
#include <string.h>

static bool is_on_one_node(const fr_transport *transport,
                           const fr_engine_route *route)
{
    for (int64_t i = 0; i < route->n_group; i++)
        if (transport->slab[route->ranks[i]] == NULL)
            return false;
    return true;
}

static bool is_point_to_point(const fr_engine_route *route)
{
    return route->op == FR_OP_SEND || route->op == FR_OP_RECV;
}

/* Lists the transfers of operations that need no algorithm: every pair
 * directly. */
static fr_status emit_simple(const fr_engine_route *route,
                             fr_transfer_list *list, fr_err *err)
{
    uint64_t g = (uint64_t)route->n_group, part = route->n / g;
    size_t n_max = (size_t)g * (size_t)g;

    FR_TRY_CALLOC(list->at, n_max, err);
    list->cap = n_max;
    list->n_phases = 1;
    for (uint32_t src = 0; src < g; src++) {
        for (uint32_t dst = 0; dst < g; dst++) {
            fr_transfer move = {.src = src,
                                .dst = dst,
                                .n = part,
                                .src_first = dst * part,
                                .dst_first = src * part};
            if (route->op == FR_OP_BROADCAST)
                move.n = src == route->peer ? route->n : 0;
            if (route->op == FR_OP_BROADCAST)
                move.src_first = move.dst_first = 0;
            if (src != dst && move.n > 0)
                list->at[list->n++] = move;
        }
    }
    return FR_OK;
}

/* The plan's parameter servers, on the nodes that the ranks are on. */
static fr_status emit_servers(const fr_engine_route *route,
                              const fr_instr *instr,
                              const fr_transport *transport,
                              fr_transfer_list *list, fr_err *err)
{
    const int64_t g = route->n_group;
    fr_servers servers = fr_servers_asked(instr, g, 0);
    int32_t *node;

    FR_TRY_CALLOC(node, (size_t)g, err);
    for (int64_t i = 0; i < g; i++) {
        int64_t first = 0;
        node[i] = transport->node_of_rank[route->ranks[i]];
        while (node[first] != node[i])
            first++;
        servers.n_nodes += first == i;
    }
    fr_status status = fr_servers_emit(&servers, node, route->n, list, err);
    free(node);
    return status;
}

static fr_status emit(const fr_engine_route *route, const fr_instr *instr,
                      const fr_transport *transport, fr_transfer_list *list,
                      fr_err *err)
{
    fr_collective_kind kind = (fr_collective_kind)instr->algorithm;

    uint64_t g = (uint64_t)route->n_group;

    if (route->op == FR_OP_BARRIER && route->is_shared) {
        list->n_phases = 0; /* the synchronisation alone is one */
        return FR_OK;
    }
    if (route->op == FR_OP_ALL_TO_ALL || route->op == FR_OP_BROADCAST)
        return emit_simple(route, list, err);
    if (route->op == FR_OP_SHIFT)
        return fr_collectives[FR_COLLECTIVE_SHIFT]->emit(
            FR_OP_SHIFT, route->n_group, route->n, list, err);
    fr_op op = route->op == FR_OP_BARRIER ? FR_OP_ALL_REDUCE : (fr_op)route->op;
    if (op != FR_OP_ALL_REDUCE && route->n % g != 0)
        return fr_fail(err, FR_CHECK, "%s of %llu elements over %llu ranks",
                       fr_op_name(op), (unsigned long long)route->n,
                       (unsigned long long)g);
    if (kind == FR_COLLECTIVE_AUTO)
        kind = route->is_shared ? FR_COLLECTIVE_DIRECT : FR_COLLECTIVE_RING;
    const fr_collective *collective = fr_collectives[kind];
    if (collective != NULL && collective->is_by_servers &&
        op == FR_OP_ALL_REDUCE)
        return emit_servers(route, instr, transport, list, err);
    if (collective == NULL || collective->not_executable != NULL ||
        !collective->fits(op, route->n_group))
        return fr_fail(err, FR_CHECK, "%s over %llu ranks cannot be made by %s",
                       fr_op_name(op), (unsigned long long)g,
                       fr_name_of(&fr_collective_names, kind));
    return collective->emit(op, route->n_group, route->n, list, err);
}

static int compare_pulls(const void *a, const void *b)
{
    const fr_transfer *x = a, *y = b;

    if (x->phase != y->phase)
        return x->phase < y->phase ? -1 : 1;
    if (x->is_reduce != y->is_reduce)
        return x->is_reduce ? -1 : 1;
    if (x->dst_first != y->dst_first)
        return x->dst_first < y->dst_first ? -1 : 1;
    return x->src < y->src ? -1 : x->src > y->src;
}

/* The part of the result that comes from this rank's own operand. */
static fr_transfer own_part(const fr_engine_route *route)
{
    uint64_t part = route->n / (uint64_t)route->n_group;
    uint64_t first = (uint64_t)route->position * part;
    uint32_t position = (uint32_t)route->position;
    fr_transfer move = {.src = position,
                        .dst = position,
                        .src_first = first,
                        .dst_first = first};

    if (route->op == FR_OP_ALL_GATHER || route->op == FR_OP_ALL_TO_ALL ||
        route->n_group == 1)
        move.n = part;
    if (route->op == FR_OP_BROADCAST && route->position == route->peer)
        move = (fr_transfer){.src = position, .dst = position, .n = route->n};
    return move;
}

/* Keeps the transfers that concern this rank, in the order of phases. */
static fr_status keep_own(fr_engine_route *route, const fr_transfer_list *list,
                          fr_err *err)
{
    uint32_t me = (uint32_t)route->position;
    size_t n = 0;

    FR_TRY_CALLOC(route->moves, list->n + 1, err);
    if (route->is_shared && route->op != FR_OP_BARRIER) {
        fr_transfer own = own_part(route);
        if (own.n > 0)
            route->moves[n++] = own;
    }
    for (uint32_t phase = 0; phase < list->n_phases; phase++)
        for (size_t i = 0; i < list->n; i++) {
            const fr_transfer *move = &list->at[i];
            if (move->phase == phase &&
                (move->dst == me || (move->src == me && !route->is_shared)))
                route->moves[n++] = *move;
        }
    route->n_moves = (uint32_t)n;
    route->n_phases = list->n_phases;
    if (route->is_shared)
        qsort(route->moves, n, sizeof *route->moves, compare_pulls);
    return FR_OK;
}

static fr_status prepare_transfer(fr_engine_route *route, const fr_instr *instr,
                                  const fr_transport *transport, fr_err *err)
{
    if (instr->peer < 0 || instr->peer >= route->n_group)
        return fr_fail(err, FR_CHECK, "%s: no peer %d on axis %s",
                       fr_op_name((fr_op)route->op), instr->peer,
                       fr_axis_name((fr_axis)instr->axis));
    route->peer = route->ranks[instr->peer];
    route->tag = instr->tag;
    route->is_shared = transport->slab[route->peer] != NULL;
    fr_transfer move = {.n = route->n};
    move.src =
        (uint32_t)(route->op == FR_OP_SEND ? route->position : instr->peer);
    move.dst =
        (uint32_t)(route->op == FR_OP_SEND ? instr->peer : route->position);
    route->moves = malloc(sizeof *route->moves);
    if (route->moves == NULL)
        return fr_fail_no_memory(err);
    route->moves[0] = move;
    route->n_moves = route->n_phases = 1;
    return FR_OK;
}

static fr_status prepare_route(fr_engine_route *route, const fr_instr *instr,
                               const fr_plan *plan,
                               const fr_transport *transport, fr_err *err)
{
    fr_transfer_list list = {0};

    route->op = instr->op;
    route->dtype = instr->dtype;
    route->axis = instr->axis;
    route->is_max = (instr->flags & FR_INSTR_MAX) != 0;
    route->element_bytes = fr_dtype_bytes((fr_dtype)instr->dtype);
    route->n = (uint64_t)instr->comm.n;
    if (route->op == FR_OP_BARRIER) {
        /* By messages a barrier is the maximum of one byte of each member. */
        route->n = 1;
        route->element_bytes = 1;
        route->dtype = FR_DTYPE_U8;
        route->is_max = true;
    }
    FR_TRY_CALLOC(route->ranks, (size_t)transport->world, err);
    route->n_group = fr_plan_group(plan, transport->rank, (fr_axis)instr->axis,
                                   route->ranks, &route->position);
    if (is_point_to_point(route))
        return prepare_transfer(route, instr, transport, err);
    route->peer = route->op == FR_OP_BROADCAST ? instr->broadcast.root : -1;
    fr_collective_kind kind = (fr_collective_kind)instr->algorithm;
    bool is_direct =
        kind == FR_COLLECTIVE_AUTO || fr_collectives[kind]->is_direct ||
        route->op == FR_OP_ALL_TO_ALL || route->op == FR_OP_SHIFT ||
        route->op == FR_OP_BROADCAST || route->op == FR_OP_BARRIER;
    route->is_shared =
        route->n_group == 1 || (is_direct && is_on_one_node(transport, route));
    fr_status status = FR_OK;
    if (route->n_group > 1)
        status = emit(route, instr, transport, &list, err);
    else
        list.n_phases = 1; /* a copy at most */
    if (status == FR_OK)
        status = keep_own(route, &list, err);
    fr_transfer_list_release(&list);
    return status;
}

static void route_destroy(fr_engine_route *route)
{
    if (route == NULL)
        return;
    free(route->ranks);
    free(route->moves);
    free(route);
}

void fr_engine_destroy(fr_engine *engine)
{
    if (engine == NULL)
        return;
    for (uint32_t i = 0; engine->routes != NULL && i < engine->n_instrs; i++)
        route_destroy(engine->routes[i]);
    free((void *)engine->routes);
    for (int lane = 0; lane < FR_LANE_N; lane++) {
        fr_lane_work *work = &engine->lanes[lane];
        free(work->peer_src);
        free(work->peer_dst);
        free((void *)work->sources);
        free(work->streams);
        free(work->staging);
    }
    free(engine);
}

/* Prepares every communication instruction of the rank once. */
static fr_status prepare_routes(fr_engine *engine, const fr_program *program,
                                fr_err *err)
{
    fr_instr_walk at = {
        .program = program,
        .rank_program = fr_program_of_rank(program, engine->transport->rank)};

    engine->n_instrs = program->n_instrs;
    engine->routes = calloc(program->n_instrs + 1, sizeof(fr_engine_route *));
    if (engine->routes == NULL)
        return fr_fail_no_memory(err);
    while (fr_instr_walk_next(&at)) {
        if (!fr_instr_communicates(at.instr) ||
            engine->routes[at.i_instr] != NULL)
            continue;
        fr_engine_route *route;
        FR_TRY_CALLOC(route, 1, err);
        engine->routes[at.i_instr] = route;
        route->lane = at.segment->lane;
        FR_TRY(prepare_route(route, at.instr, &program->plan, engine->transport,
                             err));
    }
    return FR_OK;
}

/* The largest number of moves in one phase, each of which needs a stream. */
static uint32_t widest_phase(const fr_engine_route *route)
{
    uint32_t widest = 0, n = 0;

    for (uint32_t i = 0; i < route->n_moves; i++) {
        bool is_same =
            i > 0 && route->moves[i].phase == route->moves[i - 1].phase;
        n = is_same ? n + 1 : 1;
        widest = n > widest ? n : widest;
    }
    return widest;
}

static bool adds(const fr_engine_route *route)
{
    for (uint32_t i = 0; i < route->n_moves; i++)
        if (route->moves[i].is_reduce &&
            route->moves[i].dst == (uint32_t)route->position)
            return true;
    return false;
}

static fr_status allocate_lane(fr_engine *engine, fr_lane lane, fr_err *err)
{
    fr_lane_work *work = &engine->lanes[lane];
    size_t world = (size_t)engine->transport->world;
    uint32_t n_streams = 0;
    bool has_sums = false;

    for (uint32_t i = 0; i < engine->n_instrs; i++) {
        const fr_engine_route *route = engine->routes[i];
        if (route == NULL || route->lane != lane || route->is_shared)
            continue;
        uint32_t n = widest_phase(route);
        n_streams = n > n_streams ? n : n_streams;
        has_sums = has_sums || adds(route);
    }
    work->lane = lane;
    work->peer_src = calloc(world, sizeof *work->peer_src);
    work->peer_dst = calloc(world, sizeof *work->peer_dst);
    work->sources = calloc(world, sizeof(const void *));
    work->streams = calloc(n_streams + 1, sizeof *work->streams);
    if (has_sums) {
        size_t n_bytes = FR_ENGINE_WINDOW * FR_ENGINE_PIECE_BYTES;
        work->staging = malloc(n_bytes);
        if (work->staging != NULL) /* touched: it counts as the baseline's */
            memset(work->staging, 0xff, n_bytes);
    }
    if (work->peer_src == NULL || work->peer_dst == NULL ||
        work->sources == NULL || work->streams == NULL ||
        (has_sums && work->staging == NULL))
        return fr_fail_no_memory(err);
    return FR_OK;
}

fr_status fr_engine_create(const fr_program *program, fr_transport *transport,
                           fr_engine **out, fr_err *err)
{
    fr_engine *engine;

    FR_TRY_CALLOC(engine, 1, err);
    engine->transport = transport;
    fr_status status = prepare_routes(engine, program, err);
    for (int lane = 0; status == FR_OK && lane < FR_LANE_N; lane++)
        status = allocate_lane(engine, (fr_lane)lane, err);
    if (status != FR_OK) {
        fr_engine_destroy(engine);
        return status;
    }
    *out = engine;
    return FR_OK;
}

const fr_engine_route *fr_engine_route_of(const fr_engine *engine,
                                          uint32_t i_instr)
{
    return engine->routes[i_instr];
}

void fr_engine_start(fr_engine *engine, uint32_t i_instr, void *src, void *dst)
{
    const fr_engine_route *route = engine->routes[i_instr];
    fr_lane_work *work = &engine->lanes[route->lane];

    work->route = route;
    work->src = route->op == FR_OP_BARRIER ? work->barrier : src;
    work->dst = route->op == FR_OP_BARRIER ? work->barrier : dst;
    work->phase = work->i_move = 0;
    work->moved_bytes = 0;
    if (route->is_shared)
        fr_shared_start(engine, work);
    else
        fr_message_start(engine, work);
}

fr_status fr_engine_progress(fr_engine *engine, fr_lane lane, bool *is_done,
                             bool *has_moved, fr_err *err)
{
    fr_lane_work *work = &engine->lanes[lane];

    *is_done = *has_moved = false;
    if (work->route->is_shared)
        fr_shared_progress(engine, work, is_done, has_moved);
    else
        FR_TRY(fr_message_progress(engine, work, is_done, has_moved, err));
    if (*is_done)
        work->route = NULL;
    return FR_OK;
}

int64_t fr_engine_waits_for(const fr_engine *engine, fr_lane lane)
{
    const fr_lane_work *work = &engine->lanes[lane];

    if (work->route == NULL)
        return -1;
    if (work->route->is_shared)
        return fr_shared_waits_for(engine, work);
    return fr_message_waits_for(work);
}

bool fr_engine_has_messages(const fr_engine *engine, fr_lane lane)
{
    const fr_engine_route *route = engine->lanes[lane].route;

    return route != NULL && !route->is_shared;
}

bool fr_engine_awaits_message(const fr_engine *engine, fr_lane lane)
{
    return fr_engine_has_messages(engine, lane) &&
           engine->lanes[lane].is_awaited;
}

uint64_t fr_engine_received_bytes(const fr_engine *engine)
{
    uint64_t n = 0;

    for (int lane = 0; lane < FR_LANE_N; lane++)
        n += engine->lanes[lane].received_bytes;
    return n;
}
