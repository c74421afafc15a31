/* gpu_groups.c: communicators of a program, the same list on every rank. */
#include "runtime/gpu_comm/gpu_groups.h"

#include "core/base/vec.h"
#include "plan/decide/grid.h"
#include "runtime/backend/gpu_driver.h"

#include <stdlib.h>
#include <string.h>

/* All transfers from one stage to another (over one boundary: is_by_tag). */
typedef struct pair {
    int32_t sender, receiver; /* pipeline coordinates */
    uint32_t tag;             /* 0: of all boundaries */
    uint32_t i_split;
    /* Hashes of the sent and of the received messages, in order. */
    uint64_t sent, received;
} pair;

typedef struct finder {
    const fr_program *program;
    const fr_rank_program *rank_program; /* of the rank */
    int64_t rank, world;
    int64_t *ranks; /* room for a group */
    bool is_used[FR_AXIS_N][FR_LANE_N];
    bool is_own[FR_AXIS_N][FR_LANE_N]; /* by the rank's program */
    fr_vec(pair) pairs;
    bool is_by_tag;
    fr_gpu_groups *out;
} finder;

static bool is_transfer(const fr_instr *instr)
{
    return fr_op_class_of((fr_op)instr->op) == FR_OP_CLASS_P2P;
}

static bool is_collective(const fr_instr *instr)
{
    return fr_op_class_of((fr_op)instr->op) == FR_OP_CLASS_COLLECTIVE;
}

static pair *find_pair(finder *f, int32_t sender, int32_t receiver,
                       uint32_t tag)
{
    for (size_t i = 0; i < f->pairs.n; i++) {
        pair *p = &f->pairs.items[i];
        if (p->sender == sender && p->receiver == receiver && p->tag == tag)
            return p;
    }
    return NULL;
}

static pair *get_pair(finder *f, int32_t sender, int32_t receiver, uint32_t tag)
{
    pair *known = find_pair(f, sender, receiver, tag);
    pair fresh = {.sender = sender, .receiver = receiver, .tag = tag};

    if (known != NULL)
        return known;
    return fr_vec_push(&f->pairs, fresh) == FR_OK
               ? &f->pairs.items[f->pairs.n - 1]
               : NULL;
}

static fr_status note_transfer(finder *f, const fr_rank_program *rank_program,
                               const fr_instr *instr, const fr_call *call,
                               fr_err *err)
{
    bool is_send = instr->op == FR_OP_SEND;
    int32_t peer = instr->peer;

    if (instr->axis != FR_AXIS_PP)
        return fr_fail(err, FR_CHECK, "%s over %s: only stages have pairs",
                       fr_op_name((fr_op)instr->op),
                       fr_axis_name((fr_axis)instr->axis));
    pair *p = get_pair(f, is_send ? rank_program->pp : peer,
                       is_send ? peer : rank_program->pp,
                       f->is_by_tag ? instr->tag : 0);
    if (p == NULL)
        return fr_fail_no_memory(err);
    uint64_t *order = is_send ? &p->sent : &p->received;
    uint64_t tag = instr->tag + (uint64_t)call->micro_batch;
    *order = (*order ^ tag) * 0x9e3779b97f4a7c15U + 1;
    return FR_OK;
}

static fr_status
scan_rank_program(finder *f, const fr_rank_program *rank_program, fr_err *err)
{
    fr_instr_walk at = {.program = f->program, .rank_program = rank_program};

    while (fr_instr_walk_next(&at)) {
        if (is_transfer(at.instr))
            FR_TRY(note_transfer(f, rank_program, at.instr, at.call, err));
        if (!is_collective(at.instr))
            continue;
        f->is_used[at.instr->axis][at.segment->lane] = true;
        if (rank_program == f->rank_program)
            f->is_own[at.instr->axis][at.segment->lane] = true;
    }
    return FR_OK;
}

static fr_status scan(finder *f, fr_err *err)
{
    f->pairs.n = 0;
    for (uint32_t c = 0; c < f->program->n_rank_programs; c++)
        FR_TRY(scan_rank_program(f, &f->program->rank_programs[c], err));
    return FR_OK;
}

/* Whether all receivers take transfers in the order in which they are sent. */
static bool is_in_order(const finder *f)
{
    for (size_t i = 0; i < f->pairs.n; i++)
        if (f->pairs.items[i].sent != f->pairs.items[i].received)
            return false;
    return true;
}

/*
 * Pairs that share no stage go into one split: each takes the first split
 * after the groups' in which both of its stages are free.
 */
static fr_status deal_pairs(finder *f, uint32_t n_groups, uint32_t *n_splits,
                            fr_err *err)
{
    size_t n_stages = f->program->n_rank_programs;
    bool *is_taken = calloc(f->pairs.n * n_stages + 1, sizeof *is_taken);
    uint32_t n_rounds = 0;

    if (is_taken == NULL)
        return fr_fail_no_memory(err);
    for (size_t i = 0; i < f->pairs.n; i++) {
        pair *p = &f->pairs.items[i];
        uint32_t round = 0;
        while (is_taken[round * n_stages + (size_t)p->sender] ||
               is_taken[round * n_stages + (size_t)p->receiver])
            round++;
        is_taken[round * n_stages + (size_t)p->sender] = true;
        is_taken[round * n_stages + (size_t)p->receiver] = true;
        p->i_split = n_groups + round;
        n_rounds = round + 1 > n_rounds ? round + 1 : n_rounds;
    }
    free(is_taken);
    *n_splits = n_groups + n_rounds;
    return FR_OK;
}

/* The group's first rank names its colour. */
static void fill_group(finder *f, fr_axis axis, fr_lane lane,
                       fr_gpu_split *split)
{
    int64_t position = 0, least = f->world;
    int64_t n =
        fr_plan_group(&f->program->plan, f->rank, axis, f->ranks, &position);

    for (int64_t i = 0; i < n; i++)
        least = f->ranks[i] < least ? f->ranks[i] : least;
    *split = (fr_gpu_split){.colour = FR_GPU_NO_COLOUR,
                            .axis = (uint8_t)axis,
                            .lane = (uint8_t)lane};
    if (f->is_own[axis][lane] && n > 1) {
        split->colour = (int32_t)least;
        split->key = (int32_t)position;
    }
}

/* f->ranks: the stages' ranks of this rank's pipeline. */
static void fill_pair(finder *f, const pair *p)
{
    fr_gpu_split *split = &f->out->splits[p->i_split];
    int32_t own = f->rank_program->pp;
    int64_t sender = f->ranks[p->sender], receiver = f->ranks[p->receiver];

    if (own != p->sender && own != p->receiver)
        return;
    split->colour = (int32_t)(sender < receiver ? sender : receiver);
    split->key = own == p->receiver;
    split->lane =
        (uint8_t)(own == p->sender ? FR_LANE_PP_SEND : FR_LANE_PP_RECV);
}

static fr_status fill_splits(finder *f, fr_err *err)
{
    uint32_t n_groups = 0, n_splits = 0, at = 0;
    int64_t position = 0;

    for (int axis = 0; axis < FR_AXIS_N; axis++)
        for (int lane = 0; lane < FR_LANE_N; lane++)
            n_groups += f->is_used[axis][lane];
    FR_TRY(deal_pairs(f, n_groups, &n_splits, err));
    FR_TRY_CALLOC(f->out->splits, n_splits + 1, err);
    f->out->n_splits = n_splits;
    for (int axis = 0; axis < FR_AXIS_N; axis++)
        for (int lane = 0; lane < FR_LANE_N; lane++)
            if (f->is_used[axis][lane])
                fill_group(f, (fr_axis)axis, (fr_lane)lane,
                           &f->out->splits[at++]);
    for (; at < n_splits; at++)
        f->out->splits[at] = (fr_gpu_split){
            .colour = FR_GPU_NO_COLOUR, .is_pair = true, .axis = FR_AXIS_PP};
    (void)fr_plan_group(&f->program->plan, f->rank, FR_AXIS_PP, f->ranks,
                        &position);
    for (size_t i = 0; i < f->pairs.n; i++)
        fill_pair(f, &f->pairs.items[i]);
    return FR_OK;
}

static int32_t find_group(const finder *f, uint8_t axis, uint8_t lane)
{
    for (uint32_t i = 0; i < f->out->n_splits; i++) {
        const fr_gpu_split *split = &f->out->splits[i];
        if (!split->is_pair && split->axis == axis && split->lane == lane)
            return split->colour == FR_GPU_NO_COLOUR ? -1 : (int32_t)i;
    }
    return -1;
}

static void fill_route(finder *f, const fr_instr *instr, uint8_t lane,
                       fr_gpu_route *route)
{
    int64_t position = 0;
    int64_t n = fr_plan_group(&f->program->plan, f->rank, (fr_axis)instr->axis,
                              f->ranks, &position);

    *route = (fr_gpu_route){.i_split = -1,
                            .peer = -1,
                            .n_group = (int32_t)n,
                            .position = (int32_t)position,
                            .peer_rank = -1};
    if (is_transfer(instr)) {
        bool is_send = instr->op == FR_OP_SEND;
        int32_t own = f->rank_program->pp, peer = instr->peer;
        const pair *p = find_pair(f, is_send ? own : peer, is_send ? peer : own,
                                  f->is_by_tag ? instr->tag : 0);
        route->i_split = (int32_t)p->i_split;
        route->peer = is_send;
        route->peer_rank = f->ranks[peer];
        return;
    }
    route->i_split = find_group(f, instr->axis, lane);
    if (instr->op == FR_OP_BROADCAST)
        route->peer = (int32_t)instr->broadcast.root;
}

static fr_status fill_routes(finder *f, fr_err *err)
{
    fr_instr_walk at = {.program = f->program, .rank_program = f->rank_program};

    f->out->n_instrs = f->program->n_instrs;
    FR_TRY_CALLOC(f->out->routes, f->out->n_instrs + 1, err);
    while (fr_instr_walk_next(&at)) {
        fr_gpu_route *route = &f->out->routes[at.i_instr];
        if ((is_transfer(at.instr) || is_collective(at.instr)) &&
            route->n_group == 0)
            fill_route(f, at.instr, at.segment->lane, route);
    }
    return FR_OK;
}

fr_status fr_gpu_groups_init(const fr_program *program, int64_t rank,
                             fr_gpu_groups *out, fr_err *err)
{
    fr_gpu_groups groups = {0};
    finder f = {.program = program,
                .rank_program = fr_program_of_rank(program, rank),
                .rank = rank,
                .world = fr_plan_world(&program->plan),
                .out = &groups};

    f.ranks = malloc((size_t)f.world * sizeof *f.ranks);
    fr_status status = f.ranks != NULL ? scan(&f, err) : fr_fail_no_memory(err);
    if (status == FR_OK && !is_in_order(&f)) {
        f.is_by_tag = true;
        status = scan(&f, err);
    }
    if (status == FR_OK && !is_in_order(&f))
        status = fr_fail(err, FR_CHECK,
                         "transfers of one stage boundary are received in "
                         "another order than they are sent");
    if (status == FR_OK)
        status = fill_splits(&f, err);
    if (status == FR_OK)
        status = fill_routes(&f, err);
    free(f.ranks);
    fr_vec_release(&f.pairs);
    if (status != FR_OK) {
        fr_gpu_groups_release(&groups);
        return status;
    }
    *out = groups;
    return FR_OK;
}

void fr_gpu_groups_release(fr_gpu_groups *groups)
{
    free(groups->splits);
    free(groups->routes);
    *groups = (fr_gpu_groups){0};
}
