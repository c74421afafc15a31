/* replay.c: lanes, the loop of virtual time, set-up. */
#include "sim/replay/replay.h"

#include "sim/engine/virtual_time.h"
#include "sim/replay/replay_state.h"

#include <stdlib.h>
#include <string.h>

/* ---- the end of an activity ---------------------------------------------- */

fr_status replay_wake(replayer *r, int32_t actor, int lane, fr_err *err)
{
    replay_ready ready = {actor, lane};
    FR_TRY_PUSH(&r->ready, ready, err);
    return FR_OK;
}

/* Notes the end of the step: of the records that end last, the one of the
 * lowest rank on its lowest lane, so that it does not depend on their order. */
static void note_end(replayer *r, uint32_t record)
{
    const fr_replay_record *a = record_at(r, record);
    if (r->now_ps == r->out.makespan_ps && r->out.last != FR_REPLAY_NONE) {
        const fr_replay_record *b = record_at(r, r->out.last);
        if (a->rank > b->rank || (a->rank == b->rank && a->lane > b->lane))
            return;
    }
    r->out.makespan_ps = r->now_ps;
    r->out.last = record;
}

static fr_status end_record(replayer *r, uint32_t record, fr_err *err)
{
    fr_replay_record *rec = &r->out.records.items[record];
    int32_t actor = actor_of(r, record);
    replay_lane *lane = lane_of(r, actor, rec->lane);
    const fr_replay_order *order = order_of(r, actor);
    const fr_replay_step *step = &order->steps[lane->next];
    rec->end_ps = r->now_ps;
    lane->last = record;
    lane->record = FR_REPLAY_NONE;
    note_end(r, record);
    uint32_t i_last = step->first_call;
    if (step->n_calls == 0) {
        const fr_call *call = &rank_program_of(r, actor)->calls[i_last];
        uint32_t n = r->program->segments[call->i_segment].n_instrs;
        FR_TRY(replay_issue_end(r, record, lane->i_instr + 1 >= n, err));
        if (++lane->i_instr < n)
            return replay_wake(r, actor, rec->lane, err);
    } else {
        i_last += step->n_calls - 1;
    }
    lane->i_instr = 0;
    lane->next++;
    uint32_t slot = order->slot_of_call[i_last];
    if (r->has_loops)
        return replay_wake(r, actor, replay_loop_end(r, record, slot), err);
    if (slot == FR_REPLAY_NO_SLOT)
        return replay_wake(r, actor, rec->lane, err);
    r->done[actor][slot] = record;
    return replay_wake(r, actor, -1, err);
}

fr_status replay_activity_end(replayer *r, uint32_t activity, fr_err *err)
{
    uint32_t i = r->activities.items[activity].first_record;
    r->activities.items[activity].flow = FR_REPLAY_NONE;
    r->free_activities.items[r->free_activities.n++] = activity;
    while (i != FR_REPLAY_NONE) {
        uint32_t next = record_at(r, i)->next_member;
        FR_TRY(end_record(r, i, err));
        i = next;
    }
    return FR_OK;
}

/* ---- lanes --------------------------------------------------------------- */

/* Can the next step of a lane begin?  *cause is then the record that it waited
 * for longest. */
static bool is_ready(const replayer *r, int32_t actor, int i_lane,
                     const fr_replay_order *order, uint32_t *cause)
{
    const replay_lane *lane = lane_of(r, actor, i_lane);
    const fr_rank_program *rank_program = rank_program_of(r, actor);
    const fr_call *call =
        &rank_program->calls[order->steps[lane->next].first_call];
    *cause = lane->last;
    if (lane->i_instr > 0)
        return true;
    for (uint32_t d = 0; d < call->n_deps; d++) {
        uint32_t waited = rank_program->deps[call->first_dep + d];
        uint32_t dep = r->has_loops
                           ? replay_loop_done(r, actor, i_lane, waited)
                           : r->done[actor][order->slot_of_call[waited]];
        if (dep == FR_REPLAY_NONE)
            return false;
        if (*cause == FR_REPLAY_NONE ||
            record_at(r, dep)->end_ps > record_at(r, *cause)->end_ps)
            *cause = dep;
    }
    return true;
}

static fr_status lane_advance(replayer *r, int32_t actor, int i_lane,
                              fr_err *err)
{
    replay_lane *lane = lane_of(r, actor, i_lane);
    uint32_t cause;
    if (lane->record != FR_REPLAY_NONE || lane->next == lane->end)
        return FR_OK;
    const fr_replay_order *order = order_of(r, actor);
    if ((r->has_loops && !replay_loop_may_begin(r, actor, i_lane)) ||
        !is_ready(r, actor, i_lane, order, &cause))
        return FR_OK;
    bool is_issued;
    FR_TRY(replay_issue(r, actor, i_lane, &is_issued, err));
    if (!is_issued)
        return FR_OK;
    const fr_replay_step *step = &order->steps[lane->next];
    const fr_call *call = &rank_program_of(r, actor)->calls[step->first_call];
    const fr_segment *segment = &r->program->segments[call->i_segment];
    fr_replay_record record = {.ready_ps = r->now_ps,
                               .start_ps = -1,
                               .i_call = step->first_call,
                               .i_instr = segment->first_instr + lane->i_instr,
                               .n_calls = step->n_calls,
                               .round = replay_loop_round(r, actor, i_lane),
                               .rank = r->actors->rank[actor],
                               .cause = cause,
                               .next_member = FR_REPLAY_NONE,
                               .lane = (uint8_t)i_lane};
    uint32_t i_record = (uint32_t)r->out.records.n;
    FR_TRY_PUSH(&r->out.records, record, err);
    if (r->jitter.is_on)
        FR_TRY(fr_jitter_add(&r->jitter, cause, err));
    lane->record = i_record;
    r->out.n_events++;
    return replay_meet(r, i_record, step, err);
}

static fr_status advance_ready(replayer *r, fr_err *err)
{
    for (size_t i = 0; i < r->ready.n; i++) {
        replay_ready at = r->ready.items[i];
        if (at.lane >= 0) {
            FR_TRY(lane_advance(r, at.actor, at.lane, err));
            continue;
        }
        for (int lane = 0; lane < FR_LANE_N; lane++)
            FR_TRY(lane_advance(r, at.actor, lane, err));
    }
    r->ready.n = 0;
    return FR_OK;
}

/* ---- the loop ------------------------------------------------------------ */

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
        if (n > 1)
            qsort(tags, n, sizeof tags[0], compare_u32);
        for (size_t i = 0; i < n; i++)
            FR_TRY(replay_activity_end(r, tags[i], err));
    } while (n == n_max);
    return FR_OK;
}

static fr_status replay_loop(replayer *r, fr_err *err)
{
    enum { INSTANTS_PER_QUESTION = 1024 };
    for (int32_t actor = 0; actor < r->actors->n; actor++)
        FR_TRY(replay_wake(r, actor, -1, err));
    FR_TRY(advance_ready(r, err));
    fr_maxmin_solve(r->links.maxmin, 0);
    for (uint32_t n_instants = 0;; n_instants++) {
        if (n_instants % INSTANTS_PER_QUESTION == 0)
            FR_TRY(fr_log_check(r->context->options.log, err));
        int64_t event_ps = fr_event_queue_next_ps(&r->queue);
        int64_t flow_ps = fr_maxmin_next_ps(r->links.maxmin);
        int64_t next_ps = event_ps < flow_ps ? event_ps : flow_ps;
        if (next_ps == INT64_MAX && fr_maxmin_n_flows(r->links.maxmin) == 0)
            return FR_OK;
        if (next_ps >= FR_PS_END)
            return fr_ps_fail(err);
        r->now_ps = next_ps;
        FR_TRY(end_flows(r, err));
        FR_TRY(advance_ready(r, err));
        while (fr_event_queue_next_ps(&r->queue) == r->now_ps) {
            uint32_t activity;
            fr_event_queue_pop(&r->queue, &activity);
            FR_TRY(replay_activity_flow(r, activity, err));
            FR_TRY(advance_ready(r, err));
        }
        fr_maxmin_solve(r->links.maxmin, r->now_ps);
        if (r->steady != NULL)
            FR_TRY(replay_steady_look(r, err));
        if (r->out.is_unsteady)
            return FR_OK;
    }
}

/* Every lane must be at its end; the first that is not is named. */
static fr_status check_finished(const replayer *r, fr_err *err)
{
    for (int32_t actor = 0; actor < r->actors->n; actor++) {
        for (int i = 0; i < FR_LANE_N; i++) {
            const replay_lane *lane = lane_of(r, actor, i);
            if (lane->next == lane->end)
                continue;
            const fr_rank_program *rank_program = rank_program_of(r, actor);
            uint32_t i_call = order_of(r, actor)->steps[lane->next].first_call;
            const fr_segment *segment =
                &r->program->segments[rank_program->calls[i_call].i_segment];
            return fr_fail(err, FR_CHECK,
                           "the program deadlocks: rank %lld, lane %s, call "
                           "%u %s waits for %s",
                           (long long)fr_rank_layout_number(
                               r->actors->layout, r->actors->rank[actor]),
                           fr_lane_name((fr_lane)i), i_call, segment->name,
                           lane->record == FR_REPLAY_NONE ? "its dependencies"
                                                          : "its peers");
        }
    }
    return FR_OK;
}

/* The skipped rounds belong to the step. */
static fr_status finish(replayer *r, fr_err *err)
{
    const fr_skip *skip = &r->out.skip;
    FR_TRY(check_finished(r, err));
    r->out.n_rounds = r->has_loops ? (uint32_t)r->n_repeats : 0;
    fr_ps_add_times(&r->out.makespan_ps, skip->n,
                    skip->end_ps - skip->begin_ps);
    return r->out.makespan_ps < FR_PS_END ? FR_OK : fr_ps_fail(err);
}

/* ---- set-up -------------------------------------------------------------- */

static void init_lanes(replayer *r)
{
    uint32_t *done = r->done_memory;
    for (int32_t actor = 0; actor < r->actors->n; actor++) {
        const fr_replay_order *order = order_of(r, actor);
        r->done[actor] = done;
        done += order->n_slots * n_rounds_kept(r);
        for (int i = 0; i < FR_LANE_N; i++) {
            replay_lane *lane = lane_of(r, actor, i);
            lane->next = order->first[i];
            lane->end = order->first[i + 1];
            lane->record = lane->last = FR_REPLAY_NONE;
        }
    }
}

/* Makes the meeting places: a table for each axis that a collective is over,
 * and those that runs need. */
static fr_status init_meetings(replayer *r, fr_err *err)
{
    fr_actors *actors = &r->context->actors;
    unsigned axes = 0;
    for (uint32_t c = 0; c < r->program->n_rank_programs; c++)
        axes |= r->context->layout.axes_of_stage[c];
    for (int axis = 0; axis < FR_AXIS_N; axis++) {
        int32_t i_table;
        if (!(axes >> axis & 1u))
            continue;
        FR_TRY(fr_actors_parties(actors, 1u << axis, &i_table, err));
        r->table_of_axis[axis] = (int8_t)i_table;
    }
    for (int32_t i = 0; i < actors->n_tables; i++) {
        size_t n = (size_t)actors->tables[i].n_parties * FR_LANE_N;
        FR_TRY_CALLOC(r->n_arrived[i], n + 1, err);
    }
    return FR_OK;
}

static fr_status replayer_init(replayer *r, fr_err *err)
{
    size_t n = (size_t)r->actors->n, n_slots = 0;
    for (int32_t actor = 0; actor < r->actors->n; actor++)
        n_slots += (size_t)order_of(r, actor)->n_slots * n_rounds_kept(r);
    FR_TRY_CALLOC(r->lanes, n * FR_LANE_N, err);
    FR_TRY_CALLOC(r->done, n, err);
    FR_TRY_CALLOC(r->done_memory, n_slots + 1, err);
    FR_TRY_CALLOC(r->members, n, err);
    FR_TRY_CALLOC(r->states, n, err);
    memset(r->done_memory, 0xff, (n_slots + 1) * sizeof *r->done_memory);
    init_lanes(r);
    FR_TRY(init_meetings(r, err));
    FR_TRY(replay_hosts_init(r, err));
    const fr_cluster *cluster = r->context->layout.cluster;
    fr_jitter_init(cluster->jitter_compute_frac, cluster->jitter_network_frac,
                   r->actors->n_tables, &r->jitter);
    if (r->has_loops)
        FR_TRY(replay_steady_create(r, err));
    return fr_replay_links_init(r->actors, &r->context->fabric,
                                r->program->plan.n_threads, true, &r->links,
                                err);
}

static void replayer_release(replayer *r)
{
    free(r->lanes);
    free(r->done);
    free(r->done_memory);
    for (int i = 0; i < FR_ACTORS_TABLES; i++)
        free(r->n_arrived[i]);
    free(r->members);
    free(r->states);
    fr_jitter_release(&r->jitter);
    replay_steady_destroy(r->steady);
    replay_hosts_release(r);
    fr_vec_release(&r->activities);
    fr_vec_release(&r->free_activities);
    fr_vec_release(&r->ready);
    fr_event_queue_release(&r->queue);
    fr_replay_links_release(&r->links);
}

/* Calls are replayed as a whole only where all ranks are GPUs, for what CPU
 * ranks do was validated instruction by instruction. */
static bool has_runs(const fr_rank_layout *layout, fr_replay_detail detail)
{
    if (detail != FR_REPLAY_AUTO)
        return detail == FR_REPLAY_CALLS;
    for (int32_t g = 0; g < layout->node.n_groups; g++)
        if (fr_cluster_device(layout->cluster, layout->node_of_group[g])
                ->kind != FR_DEVICE_GPU)
            return false;
    return true;
}

static void context_destroy(fr_replay_context *c)
{
    if (c == NULL)
        return;
    uint32_t n_rank_programs =
        c->layout.program != NULL ? c->layout.program->n_rank_programs : 0;
    fr_replay_costs_release(&c->costs);
    for (uint32_t i = 0; c->orders != NULL && i < n_rank_programs; i++)
        fr_replay_order_release(&c->orders[i]);
    free(c->orders);
    fr_actors_release(&c->actors);
    fr_fold_release(&c->fold);
    fr_fabric_uses_release(&c->fabric);
    fr_rank_layout_release(&c->layout);
    free(c);
}

/* Returns whether every rank program of a program that repeats has a loop. */
static bool find_loops(fr_replay_context *c)
{
    const fr_program *program = c->layout.program;
    for (uint32_t i = 0; i < program->n_rank_programs; i++)
        if (program->n_repeats == 0 ||
            !fr_replay_order_find_loop(program, i, &c->orders[i]))
            return false;
    return true;
}

/* Some kinds of ranks for each rank program take what they take, and so do
 * ranks that are replayed one by one because their links ask for it. */
static fr_status check_calls(const fr_replay_context *c,
                             const fr_replay_options *options, fr_err *err)
{
    enum { SOME = 8 };
    const int64_t most = options->is_bounded    ? FR_REPLAY_MOST_CALLS
                         : options->is_unfolded ? INT64_MAX
                                                : 2 * FR_REPLAY_MOST_CALLS;
    const fr_program *program = c->layout.program;
    int64_t n_calls = 0;
    for (int32_t i = 0; i < c->actors.n; i++)
        n_calls +=
            program->rank_programs[c->layout.program_of_rank[c->actors.rank[i]]]
                .n_calls;
    bool is_short = n_calls <= most ||
                    c->actors.n <= SOME * (int64_t)program->n_rank_programs;
    return is_short ? FR_OK : fr_fold_fail(c->actors.n, err);
}

static fr_status context_fill(fr_replay_context *c, const fr_cost_model *model,
                              const fr_replay_options *options, fr_err *err)
{
    const fr_program *program = c->layout.program;
    FR_TRY(fr_fabric_uses_init(&c->layout, &c->fabric, err));
    FR_TRY(fr_fold_init(&c->layout, &c->fabric, options->is_bounded,
                        options->log, &c->fold, err));
    FR_TRY(fr_actors_init(&c->layout, &c->fold, !options->is_unfolded,
                          &c->actors, err));
    FR_TRY(check_calls(c, options, err));
    FR_TRY_CALLOC(c->orders, program->n_rank_programs + 1, err);
    for (uint32_t i = 0; i < program->n_rank_programs; i++)
        FR_TRY(fr_replay_order_init(&c->actors, i,
                                    has_runs(&c->layout, options->detail),
                                    &c->orders[i], err));
    c->has_loops = find_loops(c);
    FR_TRY(fr_replay_costs_init(&c->layout, model, &c->fold, &c->fabric,
                                &c->costs, err));
    c->costs.orders = c->orders;
    return FR_OK;
}

static fr_status replay_once(fr_replay_context *context, bool *is_exceeded,
                             fr_replay *out, fr_err *err)
{
    replayer r = {.program = context->layout.program,
                  .context = context,
                  .actors = &context->actors,
                  .has_loops = context->has_loops,
                  .n_repeats = context->layout.program->n_repeats};
    r.out.last = FR_REPLAY_NONE;
    r.out.n_simulated = context->actors.n;
    fr_event_queue_init(&r.queue);
    fr_status status = replayer_init(&r, err);
    if (status == FR_OK)
        status = replay_loop(&r, err);
    if (status == FR_OK && !r.out.is_unsteady)
        status = finish(&r, err);
    *is_exceeded = r.links.is_exceeded;
    replayer_release(&r);
    if (status != FR_OK) {
        fr_vec_release(&r.out.records);
        return status;
    }
    *out = r.out;
    return FR_OK;
}

fr_status
fr_replay_prepare(const fr_program *program, const fr_cost_model *costs,
                  const fr_cluster *cluster, const int32_t *node_of_rank,
                  const fr_replay_options *options, fr_replay *out, fr_err *err)
{
    fr_replay_context *context;
    FR_TRY_CALLOC(context, 1, err);
    context->options = *options;
    context->model = costs;
    context->node_of_rank = node_of_rank;
    fr_status status = fr_rank_layout_init(
        program, cluster, node_of_rank,
        options->is_whole || options->is_unfolded, &context->layout, err);
    if (status == FR_OK)
        status = context_fill(context, costs, &context->options, err);
    if (status != FR_OK) {
        context_destroy(context);
        return status;
    }
    *out = (fr_replay){.context = context};
    return FR_OK;
}

/* Prepares again with every rank by itself, where too many ranks share one link
 * for a folded replay. */
static fr_status prepare_unfolded(fr_replay *replay, fr_err *err)
{
    fr_replay each;
    const fr_replay_context *c = replay->context;
    fr_replay_options options = c->options;
    options.is_unfolded = true;
    FR_TRY(fr_replay_prepare(c->layout.program, c->model, c->layout.cluster,
                             c->node_of_rank, &options, &each, err));
    fr_replay_release(replay);
    *replay = each;
    return FR_OK;
}

fr_status fr_replay_finish(fr_replay *replay, fr_err *err)
{
    for (;;) {
        bool is_exceeded = false;
        fr_replay_context *context = replay->context;
        if (context->layout.program->n_repeats > 0 && !context->has_loops) {
            replay->is_unsteady = true;
            return FR_OK;
        }
        FR_TRY(replay_once(context, &is_exceeded, replay, err));
        replay->context = context;
        if (!is_exceeded || context->options.is_unfolded)
            return FR_OK;
        FR_TRY(prepare_unfolded(replay, err));
    }
}

void fr_replay_release(fr_replay *replay)
{
    fr_vec_release(&replay->records);
    context_destroy(replay->context);
    replay->context = NULL;
}
