/*
 * collective_engine.c: prepares the communication instructions of a rank and
 * hands each to the way that carries it out.
 */
#include "runtime/comm/collective_engine_state.h"

#include <stdlib.h>
#include <string.h>

static bool is_on_one_node(const fr_transport *transport,
                           const fr_recipe *recipe)
{
    for (int64_t i = 0; i < recipe->n_group; i++)
        if (!transport->slab[recipe->ranks[i]])
            return false;
    return true;
}

static bool is_point_to_point(const fr_recipe *recipe)
{
    return recipe->op == FR_OP_SEND || recipe->op == FR_OP_RECV;
}

/* The transfers of operations that have one obvious way. */
static fr_status emit_simple(const fr_recipe *recipe, fr_transfer_list *list,
                             fr_err *err)
{
    uint64_t g = (uint64_t)recipe->n_group, part = recipe->n / g;
    size_t n_max = (size_t)g * (size_t)g;

    list->at = malloc(n_max * sizeof *list->at);
    if (!list->at)
        return fr_fail_no_memory(err);
    list->cap = n_max;
    list->n_phases = 1;
    for (uint32_t src = 0; src < g; src++) {
        for (uint32_t dst = 0; dst < g; dst++) {
            fr_transfer move = {.src = src,
                                .dst = dst,
                                .n = part,
                                .src_first = dst * part,
                                .dst_first = src * part};
            if (recipe->op == FR_OP_BROADCAST)
                move.n = src == recipe->peer ? recipe->n : 0;
            if (recipe->op == FR_OP_BROADCAST)
                move.src_first = move.dst_first = 0;
            if (src != dst && move.n > 0)
                list->at[list->n++] = move;
        }
    }
    return FR_OK;
}

static fr_status emit(const fr_recipe *recipe, fr_collective_kind kind,
                      fr_transfer_list *list, fr_err *err)
{
    uint64_t g = (uint64_t)recipe->n_group;

    if (recipe->op == FR_OP_BARRIER && recipe->is_shared) {
        list->n_phases = 0; /* the synchronisation alone is one */
        return FR_OK;
    }
    if (recipe->op == FR_OP_ALL_TO_ALL || recipe->op == FR_OP_BROADCAST)
        return emit_simple(recipe, list, err);
    fr_op op =
        recipe->op == FR_OP_BARRIER ? FR_OP_ALL_REDUCE : (fr_op)recipe->op;
    if (op != FR_OP_ALL_REDUCE && recipe->n % g != 0)
        return fr_fail(err, FR_CHECK, "%s of %llu elements over %llu ranks",
                       fr_op_name(op), (unsigned long long)recipe->n,
                       (unsigned long long)g);
    if (kind == FR_COLLECTIVE_AUTO)
        kind = recipe->is_shared ? FR_COLLECTIVE_DIRECT : FR_COLLECTIVE_RING;
    const fr_collective *collective = fr_collectives[kind];
    if (!collective || !collective->is_executable ||
        !collective->fits(op, recipe->n_group))
        return fr_fail(err, FR_CHECK, "%s over %llu ranks cannot be made by %s",
                       fr_op_name(op), (unsigned long long)g,
                       fr_collective_kind_name(kind));
    return collective->emit(op, recipe->n_group, recipe->n, list, err);
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

/* What an own operand needs besides the moves of others: the own part. */
static fr_transfer own_part(const fr_recipe *recipe)
{
    uint64_t part = recipe->n / (uint64_t)recipe->n_group;
    uint64_t first = (uint64_t)recipe->position * part;
    uint32_t position = (uint32_t)recipe->position;
    fr_transfer move = {.src = position,
                        .dst = position,
                        .src_first = first,
                        .dst_first = first};

    if (recipe->op == FR_OP_ALL_GATHER || recipe->op == FR_OP_ALL_TO_ALL ||
        recipe->n_group == 1)
        move.n = part;
    if (recipe->op == FR_OP_BROADCAST && recipe->position == recipe->peer)
        move = (fr_transfer){.src = position, .dst = position, .n = recipe->n};
    return move;
}

/* Keeps the transfers that concern this rank, in the order of phases. */
static fr_status keep_own(fr_recipe *recipe, const fr_transfer_list *list,
                          fr_err *err)
{
    uint32_t me = (uint32_t)recipe->position;
    size_t n = 0;

    recipe->moves = malloc((list->n + 1) * sizeof *recipe->moves);
    if (!recipe->moves)
        return fr_fail_no_memory(err);
    if (recipe->is_shared && recipe->op != FR_OP_BARRIER) {
        fr_transfer own = own_part(recipe);
        if (own.n > 0)
            recipe->moves[n++] = own;
    }
    for (uint32_t phase = 0; phase < list->n_phases; phase++)
        for (size_t i = 0; i < list->n; i++) {
            const fr_transfer *move = &list->at[i];
            if (move->phase == phase &&
                (move->dst == me || (move->src == me && !recipe->is_shared)))
                recipe->moves[n++] = *move;
        }
    recipe->n_moves = (uint32_t)n;
    recipe->n_phases = list->n_phases;
    if (recipe->is_shared)
        qsort(recipe->moves, n, sizeof *recipe->moves, compare_pulls);
    return FR_OK;
}

static fr_status cook_point_to_point(fr_recipe *recipe, const fr_instr *instr,
                                     const fr_transport *transport, fr_err *err)
{
    if (instr->peer < 0 || instr->peer >= recipe->n_group)
        return fr_fail(err, FR_CHECK, "%s: no peer %d on axis %s",
                       fr_op_name((fr_op)recipe->op), instr->peer,
                       fr_axis_name((fr_axis)instr->axis));
    recipe->peer = recipe->ranks[instr->peer];
    recipe->tag = instr->tag;
    recipe->is_shared = transport->slab[recipe->peer] != NULL;
    fr_transfer move = {.n = recipe->n};
    move.src =
        (uint32_t)(recipe->op == FR_OP_SEND ? recipe->position : instr->peer);
    move.dst =
        (uint32_t)(recipe->op == FR_OP_SEND ? instr->peer : recipe->position);
    recipe->moves = malloc(sizeof *recipe->moves);
    if (!recipe->moves)
        return fr_fail_no_memory(err);
    recipe->moves[0] = move;
    recipe->n_moves = recipe->n_phases = 1;
    return FR_OK;
}

static fr_status cook(fr_recipe *recipe, const fr_instr *instr,
                      const fr_plan *plan, const fr_transport *transport,
                      fr_err *err)
{
    fr_transfer_list list = {0};

    recipe->op = instr->op;
    recipe->dtype = instr->dtype;
    recipe->axis = instr->axis;
    recipe->is_max = (instr->flags & FR_INSTR_MAX) != 0;
    recipe->element_bytes = fr_dtype_bytes((fr_dtype)instr->dtype);
    recipe->n = (uint64_t)instr->dim[0];
    if (recipe->op == FR_OP_BARRIER) {
        /* By messages: the maximum of one byte each. */
        recipe->n = 1;
        recipe->element_bytes = 1;
        recipe->dtype = FR_DTYPE_U8;
        recipe->is_max = true;
    }
    recipe->ranks = malloc((size_t)transport->world * sizeof *recipe->ranks);
    if (!recipe->ranks)
        return fr_fail_no_memory(err);
    recipe->n_group = fr_plan_group(plan, transport->rank, (fr_axis)instr->axis,
                                    recipe->ranks, &recipe->position);
    if (is_point_to_point(recipe))
        return cook_point_to_point(recipe, instr, transport, err);
    recipe->peer = recipe->op == FR_OP_BROADCAST ? instr->dim[1] : -1;
    fr_collective_kind kind = (fr_collective_kind)instr->algorithm;
    bool is_direct =
        kind == FR_COLLECTIVE_DIRECT || kind == FR_COLLECTIVE_AUTO ||
        recipe->op == FR_OP_ALL_TO_ALL || recipe->op == FR_OP_BROADCAST ||
        recipe->op == FR_OP_BARRIER;
    recipe->is_shared = recipe->n_group == 1 ||
                        (is_direct && is_on_one_node(transport, recipe));
    fr_status status = FR_OK;
    if (recipe->n_group > 1)
        status = emit(recipe, kind, &list, err);
    else
        list.n_phases = 1; /* a copy at most */
    if (status == FR_OK)
        status = keep_own(recipe, &list, err);
    fr_transfer_list_release(&list);
    return status;
}

static void recipe_destroy(fr_recipe *recipe)
{
    if (!recipe)
        return;
    free(recipe->ranks);
    free(recipe->moves);
    free(recipe);
}

void fr_engine_destroy(fr_engine *engine)
{
    if (!engine)
        return;
    for (uint32_t i = 0; engine->recipes && i < engine->n_instrs; i++)
        recipe_destroy(engine->recipes[i]);
    free((void *)engine->recipes);
    for (int lane = 0; lane < FR_LANE_N; lane++) {
        fr_carrier *carrier = &engine->carriers[lane];
        free(carrier->peer_src);
        free(carrier->peer_dst);
        free((void *)carrier->sources);
        free(carrier->streams);
        free(carrier->staging);
    }
    free(engine);
}

static fr_status cook_segment(fr_engine *engine, const fr_program *program,
                              const fr_segment *segment, fr_err *err)
{
    for (uint32_t i = 0; i < segment->n_instrs; i++) {
        uint32_t i_instr = segment->first_instr + i;
        const fr_instr *instr = &program->instrs[i_instr];
        fr_op_class op_class = fr_op_class_of((fr_op)instr->op);
        if ((op_class != FR_OP_CLASS_COLLECTIVE &&
             op_class != FR_OP_CLASS_P2P) ||
            engine->recipes[i_instr])
            continue;
        fr_recipe *recipe = calloc(1, sizeof *recipe);
        if (!recipe)
            return fr_fail_no_memory(err);
        engine->recipes[i_instr] = recipe;
        recipe->lane = segment->lane;
        FR_TRY(cook(recipe, instr, &program->plan, engine->transport, err));
    }
    return FR_OK;
}

/* Most moves of one phase among a lane's messages: streams at once. */
static uint32_t widest_phase(const fr_recipe *recipe)
{
    uint32_t widest = 0, n = 0;

    for (uint32_t i = 0; i < recipe->n_moves; i++) {
        bool is_same =
            i > 0 && recipe->moves[i].phase == recipe->moves[i - 1].phase;
        n = is_same ? n + 1 : 1;
        widest = n > widest ? n : widest;
    }
    return widest;
}

static bool adds(const fr_recipe *recipe)
{
    for (uint32_t i = 0; i < recipe->n_moves; i++)
        if (recipe->moves[i].is_reduce &&
            recipe->moves[i].dst == (uint32_t)recipe->position)
            return true;
    return false;
}

static fr_status equip(fr_engine *engine, fr_lane lane, fr_err *err)
{
    fr_carrier *carrier = &engine->carriers[lane];
    size_t world = (size_t)engine->transport->world;
    uint32_t n_streams = 0;
    bool has_sums = false;

    for (uint32_t i = 0; i < engine->n_instrs; i++) {
        const fr_recipe *recipe = engine->recipes[i];
        if (!recipe || recipe->lane != lane || recipe->is_shared)
            continue;
        uint32_t n = widest_phase(recipe);
        n_streams = n > n_streams ? n : n_streams;
        has_sums = has_sums || adds(recipe);
    }
    carrier->lane = lane;
    carrier->peer_src = calloc(world, sizeof *carrier->peer_src);
    carrier->peer_dst = calloc(world, sizeof *carrier->peer_dst);
    carrier->sources = calloc(world, sizeof(const void *));
    carrier->streams = calloc(n_streams + 1, sizeof *carrier->streams);
    if (has_sums) {
        size_t n_bytes = FR_ENGINE_WINDOW * FR_ENGINE_PIECE_BYTES;
        carrier->staging = malloc(n_bytes);
        if (carrier->staging) /* touched: it counts as the baseline's */
            memset(carrier->staging, 0xff, n_bytes);
    }
    if (!carrier->peer_src || !carrier->peer_dst || !carrier->sources ||
        !carrier->streams || (has_sums && !carrier->staging))
        return fr_fail_no_memory(err);
    return FR_OK;
}

fr_status fr_engine_create(const fr_program *program, fr_transport *transport,
                           fr_engine **out, fr_err *err)
{
    const fr_rank_program *rank_program =
        fr_program_of_rank(program, transport->rank);
    fr_engine *engine = calloc(1, sizeof *engine);
    fr_status status = FR_OK;

    if (!engine)
        return fr_fail_no_memory(err);
    engine->transport = transport;
    engine->n_instrs = program->n_instrs;
    engine->recipes = calloc(program->n_instrs + 1, sizeof(fr_recipe *));
    if (!engine->recipes)
        status = fr_fail_no_memory(err);
    for (uint32_t i = 0; status == FR_OK && i < rank_program->n_calls; i++)
        status = cook_segment(
            engine, program,
            &program->segments[rank_program->calls[i].i_segment], err);
    for (int lane = 0; status == FR_OK && lane < FR_LANE_N; lane++)
        status = equip(engine, (fr_lane)lane, err);
    if (status != FR_OK) {
        fr_engine_destroy(engine);
        return status;
    }
    *out = engine;
    return FR_OK;
}

const fr_recipe *fr_engine_recipe(const fr_engine *engine, uint32_t i_instr)
{
    return engine->recipes[i_instr];
}

void fr_engine_start(fr_engine *engine, uint32_t i_instr, void *src, void *dst)
{
    const fr_recipe *recipe = engine->recipes[i_instr];
    fr_carrier *carrier = &engine->carriers[recipe->lane];

    carrier->recipe = recipe;
    carrier->src = recipe->op == FR_OP_BARRIER ? carrier->barrier : src;
    carrier->dst = recipe->op == FR_OP_BARRIER ? carrier->barrier : dst;
    carrier->phase = carrier->i_move = 0;
    carrier->moved_bytes = 0;
    if (recipe->is_shared)
        fr_shared_start(engine, carrier);
    else
        fr_message_start(engine, carrier);
}

fr_status fr_engine_progress(fr_engine *engine, fr_lane lane, bool *is_done,
                             bool *has_moved, fr_err *err)
{
    fr_carrier *carrier = &engine->carriers[lane];

    *is_done = *has_moved = false;
    if (carrier->recipe->is_shared)
        fr_shared_progress(engine, carrier, is_done, has_moved);
    else
        FR_TRY(fr_message_progress(engine, carrier, is_done, has_moved, err));
    if (*is_done)
        carrier->recipe = NULL;
    return FR_OK;
}

int64_t fr_engine_waits_for(const fr_engine *engine, fr_lane lane)
{
    const fr_carrier *carrier = &engine->carriers[lane];

    if (!carrier->recipe)
        return -1;
    if (carrier->recipe->is_shared)
        return fr_shared_waits_for(engine, carrier);
    return fr_message_waits_for(carrier);
}

bool fr_engine_has_messages(const fr_engine *engine, fr_lane lane)
{
    const fr_recipe *recipe = engine->carriers[lane].recipe;

    return recipe && !recipe->is_shared;
}

bool fr_engine_awaits_message(const fr_engine *engine, fr_lane lane)
{
    return fr_engine_has_messages(engine, lane) &&
           engine->carriers[lane].is_awaited;
}
