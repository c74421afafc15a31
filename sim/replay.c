/* replay.c: lanes, rendezvous, and the loop of virtual time. */
#include "sim/replay.h"

#include "sim/event_queue.h"
#include "sim/maxmin.h"
#include "sim/replay_links.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct replay_lane {
    const uint32_t *calls; /* of the rank's class and this lane */
    uint32_t n_calls, next;
    uint32_t i_instr; /* inside the call */
    uint32_t record;  /* that runs or waits for others; NONE: free */
    uint32_t last;    /* record that ran last */
    bool is_waiting;  /* for a peer of a transfer */
} replay_lane;

/* Calls of a class by lane. */
typedef struct replay_order {
    uint32_t *calls; /* [n_calls], lane by lane */
    uint32_t first[FR_LANE_N + 1];
} replay_order;

/* A collective that some members have come to. */
typedef struct replay_meeting {
    uint32_t first_record;
    int64_t n_arrived;
} replay_meeting;

/* One instruction in progress: latency, then flow. */
typedef struct replay_activity {
    uint32_t first_record;
    bool is_flowing;
    fr_cost cost;
} replay_activity;

/* Cost of an instruction in the scope it was asked for last. */
typedef struct replay_cost {
    fr_cost cost;
    fr_comm_scope scope;
    bool is_known;
} replay_cost;

typedef struct replayer {
    const fr_program *program;
    const fr_cost_model *costs;
    const fr_cluster *cluster;
    const int32_t *node_of_rank;
    int64_t n_ranks;
    fr_replay_links links;
    fr_event_queue queue;
    replay_order *orders;     /* [n_classes] */
    replay_lane *lanes;       /* [n_ranks][FR_LANE_N] */
    uint32_t **done;          /* [n_ranks][n_calls]: last record of the call */
    uint32_t *done_records;   /* what `done` points into */
    replay_meeting *meetings; /* [n_ranks][FR_LANE_N][FR_AXIS_N], at the
                                 group's first rank */
    replay_cost *known;       /* [n_instrs] */
    fr_vec(replay_activity) activities;
    fr_vec(uint32_t) free_activities;
    fr_vec(int32_t) ready; /* ranks whose lanes may go on */
    int64_t *group;        /* scratch [n_ranks] */
    int32_t *members;      /* scratch [n_ranks] */
    int64_t now_ps;
    fr_replay out;
} replayer;

static replay_lane *lane_of(const replayer *r, int64_t rank, int lane)
{
    return &r->lanes[rank * FR_LANE_N + lane];
}

static const fr_instr *instr_of(const replayer *r, uint32_t record)
{
    return &r->program->instrs[r->out.records.items[record].i_instr];
}

static const fr_call *call_of(const replayer *r, uint32_t record)
{
    const fr_replay_record *rec = &r->out.records.items[record];
    return &fr_program_class(r->program, rec->rank)->calls[rec->i_call];
}

static bool is_communication(const fr_instr *instr)
{
    fr_op_class op_class = fr_op_class_of((fr_op)instr->op);
    return op_class == FR_OP_CLASS_COLLECTIVE || op_class == FR_OP_CLASS_P2P;
}

/* ---- costs --------------------------------------------------------------- */

static fr_comm_scope scope_of(const replayer *r, const int32_t *members,
                              int64_t n)
{
    fr_comm_scope scope = {.n_group = n, .n_nodes = 1};
    int64_t on_first = 0;
    for (int64_t i = 0; i < n; i++) {
        int32_t node = r->node_of_rank[members[i]];
        on_first += node == r->node_of_rank[members[0]];
        /* Groups list their ranks node by node. */
        scope.n_nodes += i > 0 && node != r->node_of_rank[members[i - 1]];
    }
    scope.ranks_on_node = on_first;
    return scope;
}

static bool is_same_scope(const fr_comm_scope *a, const fr_comm_scope *b)
{
    return a->n_group == b->n_group && a->n_nodes == b->n_nodes &&
           a->ranks_on_node == b->ranks_on_node;
}

static fr_status cost_of(replayer *r, uint32_t record, const int32_t *members,
                         int64_t n, fr_cost *out, fr_err *err)
{
    const fr_replay_record *rec = &r->out.records.items[record];
    const fr_instr *instr = &r->program->instrs[rec->i_instr];
    replay_cost *known = &r->known[rec->i_instr];
    bool is_comm = is_communication(instr);
    fr_comm_scope scope = {0};
    if (is_comm)
        scope = scope_of(r, members, n);
    if (!known->is_known || !is_same_scope(&known->scope, &scope)) {
        if (is_comm)
            FR_TRY(fr_cost_communicate(r->costs, instr, &scope,
                                       rec->lane != FR_LANE_COMPUTE,
                                       &known->cost, err));
        else
            FR_TRY(fr_cost_compute(
                r->costs, instr,
                rec->lane == FR_LANE_COMPUTE ? r->links.n_threads : 1,
                &known->cost, err));
        known->scope = scope;
        known->is_known = true;
    }
    *out = known->cost;
    if (!is_comm) {
        int32_t node = r->node_of_rank[rec->rank];
        out->work_s /= fr_cluster_compute_frac(r->cluster, node, -1);
    }
    return FR_OK;
}

/* ---- activities ---------------------------------------------------------- */

static fr_status activity_add(replayer *r, uint32_t first_record,
                              const fr_cost *cost, uint32_t *out, fr_err *err)
{
    replay_activity activity = {.first_record = first_record, .cost = *cost};
    if (r->free_activities.n > 0) {
        *out = r->free_activities.items[--r->free_activities.n];
        r->activities.items[*out] = activity;
        return FR_OK;
    }
    *out = (uint32_t)r->activities.n;
    if (fr_vec_push(&r->activities, activity) != FR_OK ||
        fr_vec_reserve(&r->free_activities, r->activities.n) != FR_OK)
        return fr_fail_no_memory(err);
    return FR_OK;
}

static int64_t list_members(replayer *r, uint32_t first_record)
{
    int64_t n = 0;
    for (uint32_t i = first_record; i != FR_REPLAY_NONE;
         i = r->out.records.items[i].next_member)
        r->members[n++] = r->out.records.items[i].rank;
    return n;
}

/* Up to 50 days, far beyond any step; the clock itself ends at 106. */
static int64_t ps_of(double seconds)
{
    return (int64_t)(fmin(seconds, 50 * 86400.0) * 1e12 + 0.5);
}

/* Everybody is there: the instruction starts now. */
static fr_status activity_start(replayer *r, uint32_t first_record, fr_err *err)
{
    int64_t n = list_members(r, first_record);
    fr_cost cost;
    FR_TRY(cost_of(r, first_record, r->members, n, &cost, err));
    /* The one that came last is the reason why the others start now. */
    uint32_t latest = first_record;
    for (uint32_t i = first_record; i != FR_REPLAY_NONE;
         i = r->out.records.items[i].next_member)
        if (r->out.records.items[i].ready_ps >
            r->out.records.items[latest].ready_ps)
            latest = i;
    uint32_t cause = r->out.records.items[latest].cause;
    for (uint32_t i = first_record; i != FR_REPLAY_NONE;
         i = r->out.records.items[i].next_member) {
        fr_replay_record *rec = &r->out.records.items[i];
        rec->start_ps = r->now_ps;
        rec->cause = cause;
        rec->source = (uint8_t)cost.source;
        rec->rel_err = (float)cost.rel_err;
        lane_of(r, rec->rank, rec->lane)->is_waiting = false;
    }
    uint32_t activity;
    FR_TRY(activity_add(r, first_record, &cost, &activity, err));
    return fr_event_queue_push(&r->queue, r->now_ps + ps_of(cost.latency_s),
                               activity, err);
}

static fr_status rank_wake(replayer *r, int32_t rank, fr_err *err)
{
    return fr_vec_push(&r->ready, rank) == FR_OK ? FR_OK
                                                 : fr_fail_no_memory(err);
}

static fr_status activity_end(replayer *r, uint32_t activity, fr_err *err)
{
    uint32_t i = r->activities.items[activity].first_record;
    r->free_activities.items[r->free_activities.n++] = activity;
    while (i != FR_REPLAY_NONE) {
        fr_replay_record *rec = &r->out.records.items[i];
        replay_lane *lane = lane_of(r, rec->rank, rec->lane);
        const fr_call *call = call_of(r, i);
        const fr_segment *segment = &r->program->segments[call->i_segment];
        rec->end_ps = r->now_ps;
        lane->last = i;
        lane->record = FR_REPLAY_NONE;
        if (++lane->i_instr == segment->n_instrs) {
            r->done[rec->rank][rec->i_call] = i;
            lane->i_instr = 0;
            lane->next++;
        }
        if (r->now_ps > r->out.makespan_ps || r->out.last == FR_REPLAY_NONE) {
            r->out.makespan_ps = r->now_ps;
            r->out.last = i;
        }
        FR_TRY(rank_wake(r, rec->rank, err));
        i = rec->next_member;
    }
    return FR_OK;
}

/* After the latency: the flow, or the end where there is no work. */
static fr_status activity_flow(replayer *r, uint32_t activity, fr_err *err)
{
    replay_activity *a = &r->activities.items[activity];
    if (ps_of(a->cost.work_s) <= 0)
        return activity_end(r, activity, err);
    bool is_comm_thread =
        is_communication(instr_of(r, a->first_record)) ||
        r->out.records.items[a->first_record].lane != FR_LANE_COMPUTE;
    int64_t n = list_members(r, a->first_record);
    a->is_flowing = true;
    return fr_replay_links_start(&r->links, &a->cost, is_comm_thread,
                                 r->members, n, activity, err);
}

/* ---- meeting others ------------------------------------------------------ */

static fr_status meet_group(replayer *r, uint32_t record, fr_err *err)
{
    fr_replay_record *rec = &r->out.records.items[record];
    const fr_instr *instr = instr_of(r, record);
    int64_t position;
    int64_t n = fr_plan_group(&r->program->plan, rec->rank,
                              (fr_axis)instr->axis, r->group, &position);
    replay_meeting *meeting =
        &r->meetings[(r->group[0] * FR_LANE_N + rec->lane) * FR_AXIS_N +
                     instr->axis];
    if (meeting->n_arrived == 0)
        meeting->first_record = FR_REPLAY_NONE;
    /* Kept in the order of ranks, so that nothing depends on who came when. */
    uint32_t *link = &meeting->first_record;
    while (*link != FR_REPLAY_NONE &&
           r->out.records.items[*link].rank < rec->rank)
        link = &r->out.records.items[*link].next_member;
    rec->next_member = *link;
    *link = record;
    if (++meeting->n_arrived < n)
        return FR_OK;
    meeting->n_arrived = 0;
    return activity_start(r, meeting->first_record, err);
}

static int64_t peer_of(const replayer *r, uint32_t record)
{
    const fr_instr *instr = instr_of(r, record);
    int64_t position;
    int64_t rank = r->out.records.items[record].rank;
    fr_plan_group(&r->program->plan, rank, (fr_axis)instr->axis, r->group,
                  &position);
    return r->group[instr->peer];
}

static uint32_t tag_of(const replayer *r, uint32_t record)
{
    return instr_of(r, record)->tag + (uint32_t)call_of(r, record)->micro_batch;
}

static fr_status meet_peer(replayer *r, uint32_t record, fr_err *err)
{
    fr_replay_record *rec = &r->out.records.items[record];
    const fr_instr *instr = instr_of(r, record);
    int64_t peer = peer_of(r, record);
    fr_op wanted = instr->op == FR_OP_SEND ? FR_OP_RECV : FR_OP_SEND;
    for (int lane = 0; lane < FR_LANE_N; lane++) {
        replay_lane *other = lane_of(r, peer, lane);
        if (!other->is_waiting)
            continue;
        const fr_instr *theirs = instr_of(r, other->record);
        if (theirs->op != wanted || theirs->axis != instr->axis ||
            tag_of(r, other->record) != tag_of(r, record) ||
            peer_of(r, other->record) != rec->rank)
            continue;
        bool is_sender = instr->op == FR_OP_SEND;
        uint32_t first = is_sender ? record : other->record;
        uint32_t second = is_sender ? other->record : record;
        r->out.records.items[first].next_member = second;
        r->out.records.items[second].next_member = FR_REPLAY_NONE;
        return activity_start(r, first, err);
    }
    lane_of(r, rec->rank, rec->lane)->is_waiting = true;
    return FR_OK;
}

/* ---- lanes ----------------------------------------------------------------
 */

/* The latest of what the next instruction of a lane waited for. */
static bool is_ready(const replayer *r, int32_t rank, const replay_lane *lane,
                     uint32_t *cause)
{
    const fr_class *klass = fr_program_class(r->program, rank);
    const fr_call *call = &klass->calls[lane->calls[lane->next]];
    *cause = lane->last;
    if (lane->i_instr > 0)
        return true;
    for (uint32_t d = 0; d < call->n_deps; d++) {
        uint32_t dep = r->done[rank][klass->deps[call->first_dep + d]];
        if (dep == FR_REPLAY_NONE)
            return false;
        if (*cause == FR_REPLAY_NONE || r->out.records.items[dep].end_ps >
                                            r->out.records.items[*cause].end_ps)
            *cause = dep;
    }
    return true;
}

static fr_status lane_advance(replayer *r, int32_t rank, int i_lane,
                              fr_err *err)
{
    replay_lane *lane = lane_of(r, rank, i_lane);
    uint32_t cause;
    if (lane->record != FR_REPLAY_NONE || lane->next == lane->n_calls ||
        !is_ready(r, rank, lane, &cause))
        return FR_OK;
    const fr_class *klass = fr_program_class(r->program, rank);
    uint32_t i_call = lane->calls[lane->next];
    const fr_segment *segment =
        &r->program->segments[klass->calls[i_call].i_segment];
    fr_replay_record record = {.ready_ps = r->now_ps,
                               .start_ps = -1,
                               .i_call = i_call,
                               .i_instr = segment->first_instr + lane->i_instr,
                               .rank = rank,
                               .cause = cause,
                               .next_member = FR_REPLAY_NONE,
                               .lane = (uint8_t)i_lane};
    uint32_t i_record = (uint32_t)r->out.records.n;
    if (fr_vec_push(&r->out.records, record) != FR_OK)
        return fr_fail_no_memory(err);
    lane->record = i_record;
    r->out.n_events++;
    switch (fr_op_class_of((fr_op)instr_of(r, i_record)->op)) {
    case FR_OP_CLASS_COLLECTIVE:
        return meet_group(r, i_record, err);
    case FR_OP_CLASS_P2P:
        return meet_peer(r, i_record, err);
    case FR_OP_CLASS_COMPUTE:
    case FR_OP_CLASS_IO:
        break;
    }
    return activity_start(r, i_record, err);
}

static fr_status advance_ready(replayer *r, fr_err *err)
{
    for (size_t i = 0; i < r->ready.n; i++)
        for (int lane = 0; lane < FR_LANE_N; lane++)
            FR_TRY(lane_advance(r, r->ready.items[i], lane, err));
    r->ready.n = 0;
    return FR_OK;
}

/* ---- the loop --------------------------------------------------------------
 */

static int compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Ends all flows of this instant, lowest activity first. */
static fr_status end_flows(replayer *r, fr_err *err)
{
    enum { n_max = 256 };
    uint32_t tags[n_max];
    size_t n;
    do {
        n = fr_maxmin_take_finished(r->links.maxmin, r->now_ps, tags, n_max);
        qsort(tags, n, sizeof tags[0], compare_u32);
        for (size_t i = 0; i < n; i++)
            FR_TRY(activity_end(r, tags[i], err));
    } while (n == n_max);
    return FR_OK;
}

static fr_status replay_loop(replayer *r, fr_err *err)
{
    for (int64_t rank = 0; rank < r->n_ranks; rank++)
        FR_TRY(rank_wake(r, (int32_t)rank, err));
    FR_TRY(advance_ready(r, err));
    for (;;) {
        int64_t event_ps = fr_event_queue_next_ps(&r->queue);
        int64_t flow_ps = fr_maxmin_next_ps(r->links.maxmin);
        int64_t next_ps = event_ps < flow_ps ? event_ps : flow_ps;
        if (next_ps == INT64_MAX)
            return FR_OK;
        r->now_ps = next_ps;
        FR_TRY(end_flows(r, err));
        FR_TRY(advance_ready(r, err));
        while (fr_event_queue_next_ps(&r->queue) == r->now_ps) {
            uint32_t activity;
            fr_event_queue_pop(&r->queue, &activity);
            FR_TRY(activity_flow(r, activity, err));
            FR_TRY(advance_ready(r, err));
        }
        fr_maxmin_solve(r->links.maxmin, r->now_ps);
    }
}

/* Every lane must be at its end: else name the first that is not. */
static fr_status check_finished(const replayer *r, fr_err *err)
{
    for (int64_t rank = 0; rank < r->n_ranks; rank++) {
        for (int i = 0; i < FR_LANE_N; i++) {
            const replay_lane *lane = lane_of(r, rank, i);
            if (lane->next == lane->n_calls)
                continue;
            const fr_class *klass = fr_program_class(r->program, rank);
            uint32_t i_call = lane->calls[lane->next];
            const fr_segment *segment =
                &r->program->segments[klass->calls[i_call].i_segment];
            return fr_fail(err, FR_CHECK,
                           "the program deadlocks: rank %lld, lane %s, call "
                           "%u %s waits for %s",
                           (long long)rank, fr_lane_name((fr_lane)i), i_call,
                           segment->name,
                           lane->record == FR_REPLAY_NONE ? "its dependencies"
                                                          : "its peers");
        }
    }
    return FR_OK;
}

/* ---- set-up ----------------------------------------------------------------
 */

static fr_status order_class(const fr_program *program, const fr_class *klass,
                             replay_order *out, fr_err *err)
{
    out->calls = malloc((klass->n_calls + 1) * sizeof *out->calls);
    if (out->calls == NULL)
        return fr_fail_no_memory(err);
    uint32_t n = 0;
    for (int lane = 0; lane < FR_LANE_N; lane++) {
        out->first[lane] = n;
        for (uint32_t i = 0; i < klass->n_calls; i++)
            if (program->segments[klass->calls[i].i_segment].lane == lane)
                out->calls[n++] = i;
    }
    out->first[FR_LANE_N] = n;
    return FR_OK;
}

static void init_lanes(replayer *r)
{
    uint32_t *done = r->done_records;
    for (int64_t rank = 0; rank < r->n_ranks; rank++) {
        const fr_class *klass = fr_program_class(r->program, rank);
        const replay_order *order = &r->orders[klass - r->program->classes];
        r->done[rank] = done;
        done += klass->n_calls;
        for (int i = 0; i < FR_LANE_N; i++) {
            replay_lane *lane = lane_of(r, rank, i);
            lane->calls = order->calls + order->first[i];
            lane->n_calls = order->first[i + 1] - order->first[i];
            lane->record = lane->last = FR_REPLAY_NONE;
        }
    }
}

static fr_status replayer_init(replayer *r, fr_err *err)
{
    const fr_program *program = r->program;
    size_t n_ranks = (size_t)r->n_ranks, n_calls = 0;
    for (int64_t rank = 0; rank < r->n_ranks; rank++)
        n_calls += fr_program_class(program, rank)->n_calls;
    r->orders = calloc(program->n_classes, sizeof *r->orders);
    r->lanes = calloc(n_ranks * FR_LANE_N, sizeof *r->lanes);
    r->done = calloc(n_ranks, sizeof *r->done);
    r->done_records = malloc((n_calls + 1) * sizeof *r->done_records);
    r->meetings = calloc(n_ranks * FR_LANE_N * FR_AXIS_N, sizeof *r->meetings);
    r->known = calloc(program->n_instrs + 1, sizeof *r->known);
    r->group = malloc(n_ranks * sizeof *r->group);
    r->members = malloc(n_ranks * sizeof *r->members);
    if (!r->orders || !r->lanes || !r->done || !r->done_records ||
        !r->meetings || !r->known || !r->group || !r->members)
        return fr_fail_no_memory(err);
    memset(r->done_records, 0xff, (n_calls + 1) * sizeof *r->done_records);
    for (uint32_t i = 0; i < program->n_classes; i++)
        FR_TRY(order_class(program, &program->classes[i], &r->orders[i], err));
    init_lanes(r);
    return fr_replay_links_init(r->cluster, r->node_of_rank, r->n_ranks,
                                program->plan.n_threads, &r->links, err);
}

static void replayer_release(replayer *r)
{
    if (r->orders != NULL)
        for (uint32_t i = 0; i < r->program->n_classes; i++)
            free(r->orders[i].calls);
    free(r->orders);
    free(r->lanes);
    free(r->done);
    free(r->done_records);
    free(r->meetings);
    free(r->known);
    free(r->group);
    free(r->members);
    fr_vec_release(&r->activities);
    fr_vec_release(&r->free_activities);
    fr_vec_release(&r->ready);
    fr_event_queue_release(&r->queue);
    fr_replay_links_release(&r->links);
}

fr_status fr_replay_run(const fr_program *program, const fr_cost_model *costs,
                        const fr_cluster *cluster, const int32_t *node_of_rank,
                        fr_replay *out, fr_err *err)
{
    replayer r = {.program = program,
                  .costs = costs,
                  .cluster = cluster,
                  .node_of_rank = node_of_rank,
                  .n_ranks = fr_plan_world(&program->plan)};
    r.out.last = FR_REPLAY_NONE;
    fr_event_queue_init(&r.queue);
    fr_status status = replayer_init(&r, err);
    if (status == FR_OK)
        status = replay_loop(&r, err);
    if (status == FR_OK)
        status = check_finished(&r, err);
    replayer_release(&r);
    if (status != FR_OK) {
        fr_replay_release(&r.out);
        return status;
    }
    *out = r.out;
    return FR_OK;
}

void fr_replay_release(fr_replay *replay)
{
    fr_vec_release(&replay->records);
}
