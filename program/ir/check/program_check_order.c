/*
 * program_check_order.c: does every send meet its receive and every
 * collective its members, without deadlock?
 *
 * All lanes of one rank per rank program are run, communication as rendezvous.
 * One is enough: ranks that differ on TP, CP, EP or DP run the same program,
 * but for those of another share of the batch, so "all of them in lockstep" is
 * a possible execution; and since who meets whom never depends on timing, all
 * executions end alike.  Rank programs are numbered by stage, class of shares
 * by class of shares (i_stage); groups along DP are taken to have ranks of all
 * classes.
 */
#include "program/ir/check/program_check_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct lane_state {
    const uint32_t *calls; /* of this lane, in order */
    uint32_t n_calls, i_call, i_instr;
} lane_state;

typedef struct order_run {
    const fr_program *program;
    lane_state *lanes; /* [n_rank_programs][FR_LANE_N] */
    uint32_t **lists;  /* [n_rank_programs] calls sorted by lane */
    uint8_t **is_done; /* [n_rank_programs][n_calls] */
    check_report *report;
} order_run;

static lane_state *state(const order_run *run, uint32_t i_stage, int lane)
{
    return &run->lanes[i_stage * FR_LANE_N + (uint32_t)lane];
}

static const fr_segment *segment_of(const order_run *run, uint32_t i_stage,
                                    uint32_t i_call)
{
    const fr_call *call = &run->program->rank_programs[i_stage].calls[i_call];
    return &run->program->segments[call->i_segment];
}

static bool are_deps_done(const order_run *run, uint32_t i_stage,
                          uint32_t i_call)
{
    const fr_rank_program *rank_program = &run->program->rank_programs[i_stage];
    const fr_call *call = &rank_program->calls[i_call];
    for (uint32_t i = 0; i < call->n_deps; i++)
        if (!run->is_done[i_stage][rank_program->deps[call->first_dep + i]])
            return false;
    return true;
}

/* The instruction that a lane stands before; NULL: ended or must wait. */
static const fr_instr *head_of(const order_run *run, uint32_t i_stage, int lane)
{
    const lane_state *at = state(run, i_stage, lane);
    if (at->i_call == at->n_calls)
        return NULL;
    uint32_t i_call = at->calls[at->i_call];
    const fr_segment *segment = segment_of(run, i_stage, i_call);
    if (at->i_instr >= segment->n_instrs ||
        (at->i_instr == 0 && !are_deps_done(run, i_stage, i_call)))
        return NULL;
    return &run->program->instrs[segment->first_instr + at->i_instr];
}

static const fr_call *call_of(const order_run *run, uint32_t i_stage, int lane)
{
    const lane_state *at = state(run, i_stage, lane);
    return &run->program->rank_programs[i_stage].calls[at->calls[at->i_call]];
}

/* Ends calls that have no instructions left. */
static bool settle(order_run *run, uint32_t i_stage, int lane)
{
    lane_state *at = state(run, i_stage, lane);
    bool has_moved = false;
    while (at->i_call < at->n_calls) {
        uint32_t i_call = at->calls[at->i_call];
        if (at->i_instr < segment_of(run, i_stage, i_call)->n_instrs ||
            (at->i_instr == 0 && !are_deps_done(run, i_stage, i_call)))
            break;
        run->is_done[i_stage][i_call] = 1;
        at->i_call++;
        at->i_instr = 0;
        has_moved = true;
    }
    return has_moved;
}

static void step(order_run *run, uint32_t i_stage, int lane)
{
    state(run, i_stage, lane)->i_instr++;
    (void)settle(run, i_stage, lane);
}

static bool spans_stages(uint8_t axis)
{
    return axis == FR_AXIS_PP || axis == FR_AXIS_MODEL ||
           axis == FR_AXIS_WORLD || axis == FR_AXIS_EMBED;
}

static bool spans_classes(uint8_t axis)
{
    return axis == FR_AXIS_DP || axis == FR_AXIS_SHARD ||
           axis == FR_AXIS_REPLICA || axis == FR_AXIS_EP ||
           axis == FR_AXIS_EDP || axis == FR_AXIS_WORLD;
}

static bool has_end(const fr_plan *plan, uint32_t i_stage)
{
    const uint32_t pp = (uint32_t)plan->pp;
    return i_stage % pp == 0 || i_stage % pp == pp - 1;
}

/* Do ranks of these rank programs meet on an axis? */
static bool is_member(const fr_plan *plan, uint8_t axis, uint32_t i_stage,
                      uint32_t other)
{
    const uint32_t pp = (uint32_t)plan->pp;
    if (i_stage / pp != other / pp && !spans_classes(axis))
        return false;
    if (i_stage % pp == other % pp)
        return true;
    return spans_stages(axis) &&
           (axis != FR_AXIS_EMBED ||
            (has_end(plan, i_stage) && has_end(plan, other)));
}

static bool is_alone(const fr_program *program, uint8_t axis, uint32_t i_stage)
{
    const bool has_classes =
        program->n_rank_programs > (uint32_t)program->plan.pp;
    if (!spans_stages(axis) && !(has_classes && spans_classes(axis)))
        return true;
    for (uint32_t other = 0; other < program->n_rank_programs; other++)
        if (other != i_stage && is_member(&program->plan, axis, i_stage, other))
            return false;
    return true;
}

static bool is_same_collective(const fr_instr *a, const fr_instr *b)
{
    return a->op == b->op && a->dtype == b->dtype && a->flags == b->flags &&
           a->algorithm == b->algorithm && a->comm.n == b->comm.n;
}

/* All members stand before a collective of this axis on this lane? */
static bool meet(order_run *run, uint32_t i_stage, int lane,
                 const fr_instr *instr)
{
    const fr_program *program = run->program;
    for (uint32_t other = 0; other < program->n_rank_programs; other++) {
        if (!is_member(&program->plan, instr->axis, i_stage, other))
            continue;
        const fr_instr *head = head_of(run, other, lane);
        if (head == NULL ||
            fr_op_class_of((fr_op)head->op) != FR_OP_CLASS_COLLECTIVE ||
            head->axis != instr->axis)
            return false;
    }
    for (uint32_t other = 0; other < program->n_rank_programs; other++) {
        if (!is_member(&program->plan, instr->axis, i_stage, other))
            continue;
        if (!is_same_collective(instr, head_of(run, other, lane)))
            check_problem(run->report,
                          "stages %u and %u meet in different collectives of "
                          "axis %s on lane %s: %s and %s",
                          (unsigned)i_stage, (unsigned)other,
                          fr_axis_name((fr_axis)instr->axis),
                          fr_lane_name((fr_lane)lane),
                          fr_op_name((fr_op)instr->op),
                          fr_op_name((fr_op)head_of(run, other, lane)->op));
    }
    for (uint32_t other = 0; other < program->n_rank_programs; other++)
        if (is_member(&program->plan, instr->axis, i_stage, other))
            step(run, other, lane);
    return true;
}

static uint32_t tag_of(const fr_instr *instr, const fr_call *call)
{
    return instr->tag +
           (call->micro_batch >= 0 ? (uint32_t)call->micro_batch : 0);
}

/* The rank program of the same class at a stage of the pipeline. */
static uint32_t at_stage(const order_run *run, uint32_t i_stage, int16_t stage)
{
    const uint32_t pp = (uint32_t)run->program->plan.pp;
    const uint32_t at = (uint32_t)stage;
    return i_stage - i_stage % pp + at;
}

/* Does the peer stand before the other half of this transfer? */
static bool transfer(order_run *run, uint32_t i_stage, int lane,
                     const fr_instr *instr)
{
    uint32_t tag = tag_of(instr, call_of(run, i_stage, lane));
    uint32_t peer = at_stage(run, i_stage, instr->peer);
    fr_op wanted = instr->op == FR_OP_SEND ? FR_OP_RECV : FR_OP_SEND;
    for (int other = 0; other < FR_LANE_N; other++) {
        const fr_instr *head = head_of(run, peer, other);
        if (head == NULL || head->op != wanted ||
            at_stage(run, peer, head->peer) != i_stage ||
            tag_of(head, call_of(run, peer, other)) != tag)
            continue;
        if (head->comm.n != instr->comm.n || head->dtype != instr->dtype)
            check_problem(run->report,
                          "stage %u sends or receives %lld %s, stage %u "
                          "answers with %lld %s, tag %u",
                          (unsigned)i_stage, (long long)instr->comm.n,
                          fr_dtype_name((fr_dtype)instr->dtype), (unsigned)peer,
                          (long long)head->comm.n,
                          fr_dtype_name((fr_dtype)head->dtype), (unsigned)tag);
        step(run, peer, other);
        step(run, i_stage, lane);
        return true;
    }
    return false;
}

static bool advance(order_run *run, uint32_t i_stage, int lane)
{
    bool has_moved = settle(run, i_stage, lane);
    for (;;) {
        const fr_instr *instr = head_of(run, i_stage, lane);
        if (instr == NULL)
            return has_moved;
        fr_op_class op_class = fr_op_class_of((fr_op)instr->op);
        bool can = true;
        if (op_class == FR_OP_CLASS_P2P)
            can = transfer(run, i_stage, lane, instr);
        else if (op_class == FR_OP_CLASS_COLLECTIVE &&
                 !is_alone(run->program, instr->axis, i_stage))
            can = meet(run, i_stage, lane, instr);
        else
            step(run, i_stage, lane);
        if (!can)
            return has_moved;
        has_moved = true;
    }
}

static void report_stuck(const order_run *run)
{
    char place[128];
    for (uint32_t c = 0; c < run->program->n_rank_programs; c++) {
        for (int lane = 0; lane < FR_LANE_N; lane++) {
            const lane_state *at = state(run, c, lane);
            const fr_instr *instr = head_of(run, c, lane);
            if (at->i_call == at->n_calls || instr == NULL)
                continue;
            check_place(run->program, c, at->calls[at->i_call], place,
                        sizeof place);
            if (fr_op_class_of((fr_op)instr->op) == FR_OP_CLASS_P2P)
                check_problem(run->report,
                              "%s: deadlock: %s with stage %d, tag %u, never "
                              "meets its other half",
                              place, fr_op_name((fr_op)instr->op),
                              (int)instr->peer,
                              (unsigned)tag_of(instr, call_of(run, c, lane)));
            else
                check_problem(run->report,
                              "%s: deadlock: %s over %s waits for ever", place,
                              fr_op_name((fr_op)instr->op),
                              fr_axis_name((fr_axis)instr->axis));
        }
    }
}

static void run_all(order_run *run)
{
    bool has_moved = true, is_over = true;
    while (has_moved) {
        has_moved = false;
        for (uint32_t c = 0; c < run->program->n_rank_programs; c++)
            for (int lane = 0; lane < FR_LANE_N; lane++)
                has_moved |= advance(run, c, lane);
    }
    for (uint32_t i = 0; i < run->program->n_rank_programs * FR_LANE_N; i++)
        is_over = is_over && run->lanes[i].i_call == run->lanes[i].n_calls;
    if (!is_over)
        report_stuck(run);
}

typedef struct used_tag {
    int16_t peer;
    uint32_t tag;
} used_tag;

static int compare_tags(const void *va, const void *vb)
{
    const used_tag *a = va, *b = vb;
    if (a->peer != b->peer)
        return a->peer < b->peer ? -1 : 1;
    return a->tag < b->tag ? -1 : a->tag > b->tag;
}

/* Within a step a (receiver, tag) names one message. */
static void check_tags(const order_run *run, uint32_t i_stage)
{
    const fr_rank_program *rank_program = &run->program->rank_programs[i_stage];
    size_t n = 0, n_max = 0;
    for (uint32_t i = 0; i < rank_program->n_calls; i++)
        n_max += segment_of(run, i_stage, i)->n_instrs;
    used_tag *tags = calloc(n_max + 1, sizeof *tags);
    if (tags == NULL) {
        run->report->is_out_of_memory = true;
        return;
    }
    for (uint32_t i = 0; i < rank_program->n_calls; i++) {
        const fr_segment *segment = segment_of(run, i_stage, i);
        for (uint32_t k = 0; k < segment->n_instrs; k++) {
            const fr_instr *instr =
                &run->program->instrs[segment->first_instr + k];
            if (instr->op == FR_OP_SEND)
                tags[n++] = (used_tag){instr->peer,
                                       tag_of(instr, &rank_program->calls[i])};
        }
    }
    qsort(tags, n, sizeof *tags, compare_tags);
    for (size_t i = 1; i < n; i++)
        if (compare_tags(&tags[i - 1], &tags[i]) == 0)
            check_problem(
                run->report, "stage %u sends tag %u to stage %d twice",
                (unsigned)i_stage, (unsigned)tags[i].tag, (int)tags[i].peer);
    free(tags);
}

/* The calls of a rank program, lane by lane. */
static bool sort_by_lane(order_run *run, uint32_t i_stage)
{
    uint32_t n_calls = run->program->rank_programs[i_stage].n_calls, n = 0;
    uint32_t *list = calloc((size_t)n_calls + 1, sizeof *list);
    run->lists[i_stage] = list;
    run->is_done[i_stage] = calloc((size_t)n_calls + 1, 1);
    if (list == NULL || run->is_done[i_stage] == NULL)
        return false;
    for (int lane = 0; lane < FR_LANE_N; lane++) {
        lane_state *at = state(run, i_stage, lane);
        at->calls = list + n;
        for (uint32_t i = 0; i < n_calls; i++)
            if (segment_of(run, i_stage, i)->lane == lane)
                list[n++] = i;
        at->n_calls = (uint32_t)(list + n - at->calls);
    }
    return true;
}

void check_order(const fr_program *program, check_report *report)
{
    size_t n = program->n_rank_programs;
    order_run run = {.program = program, .report = report};
    run.lanes = calloc(n * FR_LANE_N + 1, sizeof *run.lanes);
    run.lists = calloc(n + 1, sizeof *run.lists);
    run.is_done = calloc(n + 1, sizeof *run.is_done);
    bool is_ok = run.lanes != NULL && run.lists != NULL && run.is_done != NULL;
    for (uint32_t c = 0; is_ok && c < n; c++)
        is_ok = sort_by_lane(&run, c);
    if (is_ok) {
        for (uint32_t c = 0; c < n; c++)
            check_tags(&run, c);
        run_all(&run);
    } else {
        report->is_out_of_memory = true;
    }
    for (uint32_t c = 0; run.lists != NULL && run.is_done != NULL && c < n;
         c++) {
        free(run.lists[c]);
        free(run.is_done[c]);
    }
    free(run.lanes);
    free(run.lists);
    free(run.is_done);
}
