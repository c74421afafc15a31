/* replay_meet.c: who has to be there before something starts, and the start. */
#include "sim/engine/virtual_time.h"
#include "sim/replay/replay_state.h"

static const fr_instr *instr_of(const replayer *r, uint32_t record)
{
    return &r->program->instrs[record_at(r, record)->i_instr];
}

/* ---- activities ---------------------------------------------------------- */

static fr_status activity_add(replayer *r, replay_activity activity,
                              uint32_t *out, fr_err *err)
{
    if (r->free_activities.n > 0) {
        *out = r->free_activities.items[--r->free_activities.n];
        r->activities.items[*out] = activity;
        return FR_OK;
    }
    *out = (uint32_t)r->activities.n;
    FR_TRY_PUSH(&r->activities, activity, err);
    if (fr_vec_reserve(&r->free_activities, r->activities.n) != FR_OK)
        return fr_fail_no_memory(err);
    return FR_OK;
}

static int64_t list_members(replayer *r, uint32_t first_record)
{
    int64_t n = 0;
    for (uint32_t i = first_record; i != FR_REPLAY_NONE;
         i = record_at(r, i)->next_member)
        r->members[n++] = actor_of(r, i);
    return n;
}

/*
 * The one that came last is the reason why the others start now.  Of several
 * the one whose colour has the lowest rank, so that a folded replay finds the
 * same.
 */
static uint32_t find_latest(const replayer *r, uint32_t first_record)
{
    const int32_t *color = r->context->fold.color_of_rank;
    uint32_t latest = first_record;
    for (uint32_t i = record_at(r, first_record)->next_member;
         i != FR_REPLAY_NONE; i = record_at(r, i)->next_member) {
        const fr_replay_record *a = record_at(r, i);
        const fr_replay_record *b = record_at(r, latest);
        if (a->ready_ps > b->ready_ps ||
            (a->ready_ps == b->ready_ps && color[a->rank] < color[b->rank]))
            latest = i;
    }
    return latest;
}

/* The cost of a meeting; for a run, the cost of its slowest member. */
typedef struct replay_price {
    int64_t latency_ps;
    const fr_demand *demand; /* NULL: no work */
    const fr_run_cost *run;
    uint8_t source;
    fr_error_key error_key;
    float rel_err;
    int64_t solo_ps, compute_ps;
    int64_t late_ps; /* jitter's part of the latency */
} replay_price;

static fr_status price_run(replayer *r, uint32_t first_record,
                           const fr_replay_step *step, replay_price *out,
                           fr_err *err)
{
    int32_t last_color = -1;
    for (uint32_t i = first_record; i != FR_REPLAY_NONE;
         i = record_at(r, i)->next_member) {
        const fr_run_cost *run;
        int32_t color = fr_actors_color(r->actors, actor_of(r, i));
        if (color == last_color)
            continue;
        last_color = color;
        FR_TRY(fr_replay_cost_run(&r->context->costs, color, step, &run, err));
        if (out->run == NULL || run->solo_ps > out->run->solo_ps)
            out->run = run;
    }
    out->demand = out->run->solo_ps > 0 ? &out->run->demand : NULL;
    out->source = out->run->source;
    out->solo_ps = out->run->solo_ps;
    out->compute_ps = out->run->compute_ps;
    return FR_OK;
}

static fr_status price_instr(replayer *r, uint32_t first_record,
                             replay_price *out, fr_err *err)
{
    const fr_replay_record *rec = record_at(r, first_record);
    const fr_instr *instr = instr_of(r, first_record);
    const fr_rank_layout *layout = &r->context->layout;
    const fr_instr_cost *cost;
    if (fr_op_class_of((fr_op)instr->op) == FR_OP_CLASS_P2P) {
        int32_t peer =
            fr_rank_layout_peer(layout, rec->rank, instr->axis, instr->peer);
        FR_TRY(fr_replay_cost_transfer(&r->context->costs, rec->i_instr,
                                       rec->lane, rec->rank, peer, &cost, err));
    } else {
        int32_t color = r->context->fold.color_of_rank[rec->rank];
        FR_TRY(fr_replay_cost_instr(&r->context->costs, color, rec->i_instr,
                                    rec->lane, &cost, err));
        out->compute_ps = fr_instr_communicates(instr) ? 0 : cost->solo_ps;
    }
    out->solo_ps = cost->solo_ps;
    out->latency_ps = cost->latency_ps;
    out->demand = cost->has_work ? &cost->demand : NULL;
    out->source = cost->source;
    out->error_key = cost->error_key;
    out->rel_err = cost->rel_err;
    return FR_OK;
}

/* Counts the ranks that meet through groups of these axes. */
static int64_t count_ranks(const replayer *r, int32_t i_table, int32_t rank)
{
    int64_t n = 1;
    for (int axis = 0; axis < FR_AXIS_N; axis++) {
        const fr_rank_groups *p = &r->context->layout.axes[axis];
        if (r->actors->tables[i_table].axes >> axis & 1u)
            n *= p->scopes[p->group_of_rank[rank]].n_group;
    }
    return n;
}

/* Waiting for the slowest of those that meet at table i_table; -1: none. */
static int64_t jitter_delay(replayer *r, uint32_t first_record, int32_t i_table,
                            const replay_price *price)
{
    const fr_replay_record *rec = record_at(r, first_record);
    fr_jitter_work work = {0};
    int64_t n = 0;
    for (uint32_t i = first_record; i != FR_REPLAY_NONE;
         i = record_at(r, i)->next_member)
        r->states[n++] = i;
    if (i_table < 0 && n == 1) {
        fr_jitter_compute(&r->jitter, first_record, price->compute_ps);
        return 0;
    }
    if (i_table < 0) {
        fr_jitter_transfer(&r->jitter, r->states[0], r->states[1],
                           price->solo_ps);
        return 0;
    }
    work.network_ps = (double)(price->solo_ps - price->compute_ps);
    if (price->run != NULL) {
        work.compute_ps = (double)price->compute_ps;
        work.squares = price->run->compute_squares;
    }
    return fr_jitter_meet(&r->jitter, i_table,
                          count_ranks(r, i_table, rec->rank), r->states, n,
                          &work);
}

/* Starts an activity, for everybody who takes part is there. */
static fr_status start(replayer *r, uint32_t first_record, int32_t i_table,
                       const fr_replay_step *step, fr_err *err)
{
    replay_price price = {0};
    if (step->n_calls > 0)
        FR_TRY(price_run(r, first_record, step, &price, err));
    else
        FR_TRY(price_instr(r, first_record, &price, err));
    if (r->jitter.is_on)
        price.late_ps = jitter_delay(r, first_record, i_table, &price);
    price.latency_ps = fr_ps_add(price.latency_ps, price.late_ps);
    uint32_t cause = record_at(r, find_latest(r, first_record))->cause;
    for (uint32_t i = first_record; i != FR_REPLAY_NONE;
         i = record_at(r, i)->next_member) {
        fr_replay_record *rec = &r->out.records.items[i];
        rec->start_ps = r->now_ps;
        rec->late_ps = price.late_ps;
        rec->cause = cause;
        rec->run = price.run;
        rec->source = price.source;
        rec->error_key = price.error_key;
        rec->rel_err = price.rel_err;
        lane_of(r, actor_of(r, i), rec->lane)->is_waiting = false;
    }
    for (uint32_t i = first_record; step->n_calls > 0 && i != FR_REPLAY_NONE;
         i = record_at(r, i)->next_member)
        FR_TRY(replay_issue_run(r, i, err));
    replay_activity started = {.first_record = first_record,
                               .demand = price.demand,
                               .flow = FR_REPLAY_NONE};
    uint32_t activity;
    FR_TRY(activity_add(r, started, &activity, err));
    if (price.latency_ps == 0)
        return replay_activity_flow(r, activity, err);
    return fr_event_queue_push(
        &r->queue, fr_ps_add(r->now_ps, price.latency_ps), activity, err);
}

fr_status replay_activity_flow(replayer *r, uint32_t activity, fr_err *err)
{
    const replay_activity *a = &r->activities.items[activity];
    if (a->first_record == FR_REPLAY_NONE) {
        r->free_activities.items[r->free_activities.n++] = activity;
        return replay_wake(r, a->actor, a->lane, err);
    }
    if (a->demand == NULL)
        return replay_activity_end(r, activity, err);
    int64_t n = list_members(r, a->first_record);
    return fr_replay_links_start(&r->links, a->demand, r->members, n, activity,
                                 &r->activities.items[activity].flow, err);
}

fr_status replay_wake_at(replayer *r, int32_t actor, int lane, int64_t at_ps,
                         fr_err *err)
{
    replay_activity later = {.first_record = FR_REPLAY_NONE,
                             .actor = actor,
                             .lane = lane,
                             .flow = FR_REPLAY_NONE};
    uint32_t activity;
    FR_TRY(activity_add(r, later, &activity, err));
    return fr_event_queue_push(&r->queue, at_ps, activity, err);
}

/* ---- meeting others ------------------------------------------------------ */

/* Waits for the rest of the party; the records are linked in its order. */
static fr_status meet_party(replayer *r, uint32_t record, int32_t i_table,
                            const fr_replay_step *step, fr_err *err)
{
    const fr_parties *table = &r->actors->tables[i_table];
    int lane = record_at(r, record)->lane;
    int32_t party = table->party_of_actor[actor_of(r, record)];
    const int32_t *members = &table->members[table->first[party]];
    int32_t n = table->first[party + 1] - table->first[party];
    int32_t *n_arrived = &r->n_arrived[i_table][party * FR_LANE_N + lane];
    if (++*n_arrived < n)
        return FR_OK;
    *n_arrived = 0;
    uint32_t next = FR_REPLAY_NONE;
    for (int32_t i = n; i-- > 0;) {
        uint32_t at = lane_of(r, members[i], lane)->record;
        r->out.records.items[at].next_member = next;
        next = at;
    }
    return start(r, next, i_table, step, err);
}

static int32_t peer_of(const replayer *r, uint32_t record)
{
    const fr_instr *instr = instr_of(r, record);
    int32_t peer =
        fr_rank_layout_peer(&r->context->layout, record_at(r, record)->rank,
                            instr->axis, instr->peer);
    return fr_actors_of_rank(r->actors, peer);
}

/* The micro-batch that a transfer is of. */
static int64_t micro_batch_of(const replayer *r, uint32_t record)
{
    const fr_replay_record *rec = record_at(r, record);
    const int32_t actor = actor_of(r, record);
    const fr_call *call = &rank_program_of(r, actor)->calls[rec->i_call];
    return call->micro_batch +
           round_of(r, actor, rec->lane) * r->program->repeat_micro;
}

static fr_status meet_peer(replayer *r, uint32_t record,
                           const fr_replay_step *step, fr_err *err)
{
    const fr_instr *instr = instr_of(r, record);
    int32_t actor = actor_of(r, record), peer = peer_of(r, record);
    fr_op wanted = instr->op == FR_OP_SEND ? FR_OP_RECV : FR_OP_SEND;
    for (int lane = 0; lane < FR_LANE_N; lane++) {
        replay_lane *other = lane_of(r, peer, lane);
        if (!other->is_waiting)
            continue;
        const fr_instr *theirs = instr_of(r, other->record);
        if (theirs->op != wanted || theirs->axis != instr->axis ||
            theirs->tag != instr->tag ||
            micro_batch_of(r, other->record) != micro_batch_of(r, record) ||
            peer_of(r, other->record) != actor)
            continue;
        bool is_sender = instr->op == FR_OP_SEND;
        uint32_t first = is_sender ? record : other->record;
        uint32_t second = is_sender ? other->record : record;
        r->out.records.items[first].next_member = second;
        r->out.records.items[second].next_member = FR_REPLAY_NONE;
        return start(r, first, -1, step, err);
    }
    lane_of(r, actor, record_at(r, record)->lane)->is_waiting = true;
    return FR_OK;
}

fr_status replay_meet(replayer *r, uint32_t record, const fr_replay_step *step,
                      fr_err *err)
{
    const fr_instr *instr = instr_of(r, record);
    if (step->n_calls > 0)
        return step->i_table < 0
                   ? start(r, record, -1, step, err)
                   : meet_party(r, record, step->i_table, step, err);
    switch (fr_op_class_of((fr_op)instr->op)) {
    case FR_OP_CLASS_COLLECTIVE:
        return meet_party(r, record, r->table_of_axis[instr->axis], step, err);
    case FR_OP_CLASS_P2P:
        return meet_peer(r, record, step, err);
    case FR_OP_CLASS_COMPUTE:
    case FR_OP_CLASS_IO:
        break;
    }
    return start(r, record, -1, step, err);
}
