/* replay_issue.c: hosts that issue what their devices run. */
#include "cost_models/compute/host_time.h"
#include "sim/engine/virtual_time.h"
#include "sim/replay/replay_state.h"

#include <stdlib.h>

fr_status replay_hosts_init(replayer *r, fr_err *err)
{
    size_t n = (size_t)r->actors->n, n_held = 0;
    FR_TRY_CALLOC(r->hosts, n + 1, err);
    FR_TRY_CALLOC(r->went_on, n + 1, err);
    FR_TRY_CALLOC(r->n_passed, n + 1, err);
    FR_TRY_CALLOC(r->bound_ps, n + 1, err);
    for (int32_t i = 0; i < r->actors->n; i++) {
        FR_TRY(fr_host_steps_find(&r->context->costs,
                                  fr_actors_color(r->actors, i), &r->hosts[i],
                                  err));
        n_held += r->hosts[i]->n_held + 1;
    }
    int64_t *memory;
    FR_TRY_CALLOC(memory, n_held, err);
    r->went_on_memory = memory;
    for (int32_t i = 0; i < r->actors->n; i++) {
        r->went_on[i] = memory;
        memory += r->hosts[i]->n_held + 1;
    }
    return FR_OK;
}

void replay_hosts_release(replayer *r)
{
    free(r->hosts);
    free(r->went_on);
    free(r->went_on_memory);
    free(r->n_passed);
    free(r->bound_ps);
}

static const fr_host_step *host_step_of(const replayer *r, int32_t actor,
                                        const replay_lane *lane)
{
    return &r->hosts[actor]->steps[lane->next];
}

/* Holds before what the lane comes to next, and the host's time since then. */
static int64_t held_before(const replayer *r, int32_t actor, int i_lane,
                           int64_t *since_ps)
{
    const fr_host_steps *steps = r->hosts[actor];
    const fr_host_step *host = &steps->steps[lane_of(r, actor, i_lane)->next];
    *since_ps = host->since_ps;
    if (!r->has_loops)
        return host->n_held;
    const int64_t round = round_of(r, actor, i_lane);
    if (steps->n_held_round == 0 && host->n_held == steps->n_held_before)
        fr_ps_add_times(since_ps, round, steps->round_ps);
    return host->n_held + round * steps->n_held_round;
}

/* The device has waited for its host. */
static void note_bound(replayer *r, int32_t actor, bool is_bound)
{
    if (is_bound)
        r->bound_ps[actor] = r->now_ps;
}

/* Finds when the host issues what the lane comes to next; moves host_ps on. */
static fr_status find_due(replayer *r, int32_t actor, int i_lane,
                          replay_lane *lane, fr_err *err)
{
    fr_replay_costs *costs = &r->context->costs;
    int32_t color = fr_actors_color(r->actors, actor);
    const fr_replay_step *step = &order_of(r, actor)->steps[lane->next];
    if (lane->i_instr == 0) {
        int64_t since_ps;
        int64_t n_held = held_before(r, actor, i_lane, &since_ps);
        lane->host_ps = fr_ps_add(*replay_went_on(r, actor, n_held), since_ps);
    }
    if (step->n_calls > 0) {
        const fr_run_cost *run;
        FR_TRY(fr_replay_cost_run(costs, color, step, &run, err));
        lane->due_ps =
            fr_host_chain_device(&run->chain, lane->came_ps, lane->host_ps) -
            run->solo_ps;
        note_bound(r, actor,
                   fr_ps_add(lane->host_ps, run->chain.sh_ps) >
                       fr_ps_add(lane->came_ps, run->chain.ss_ps));
        return FR_OK;
    }
    const fr_call *call = &rank_program_of(r, actor)->calls[step->first_call];
    const fr_segment *segment = &r->program->segments[call->i_segment];
    int64_t host_ps;
    bool is_held;
    FR_TRY(fr_replay_cost_host(costs, color,
                               segment->first_instr + lane->i_instr, i_lane,
                               &host_ps, &is_held, err));
    lane->host_ps = fr_ps_add(lane->host_ps, host_ps);
    lane->due_ps = lane->host_ps;
    note_bound(r, actor, lane->due_ps > lane->came_ps);
    return FR_OK;
}

fr_status replay_issue(replayer *r, int32_t actor, int i_lane, bool *is_issued,
                       fr_err *err)
{
    replay_lane *lane = lane_of(r, actor, i_lane);
    int64_t since_ps;
    *is_issued = false;
    if (lane->has_come) {
        *is_issued = lane->due_ps <= r->now_ps;
    } else if (held_before(r, actor, i_lane, &since_ps) <= r->n_passed[actor]) {
        lane->has_come = true;
        lane->came_ps = r->now_ps;
        FR_TRY(find_due(r, actor, i_lane, lane, err));
        *is_issued = lane->due_ps <= r->now_ps;
        if (!*is_issued)
            FR_TRY(replay_wake_at(r, actor, i_lane, lane->due_ps, err));
    }
    if (*is_issued)
        lane->has_come = false;
    return FR_OK;
}

static fr_status go_on(replayer *r, int32_t actor, int64_t host_ps, fr_err *err)
{
    *replay_went_on(r, actor, ++r->n_passed[actor]) = host_ps;
    return replay_wake(r, actor, -1, err);
}

fr_status replay_issue_run(replayer *r, uint32_t record, fr_err *err)
{
    const fr_replay_record *rec = record_at(r, record);
    int32_t actor = actor_of(r, record);
    const replay_lane *lane = lane_of(r, actor, rec->lane);
    const fr_run_cost *run;
    if (!host_step_of(r, actor, lane)->is_held)
        return FR_OK;
    FR_TRY(fr_replay_cost_run(
        &r->context->costs, fr_actors_color(r->actors, actor),
        &order_of(r, actor)->steps[lane->next], &run, err));
    int64_t waited_ps = rec->start_ps - rec->ready_ps;
    return go_on(r, actor,
                 fr_host_chain_host(&run->chain, lane->came_ps + waited_ps,
                                    lane->host_ps),
                 err);
}

fr_status replay_issue_end(replayer *r, uint32_t record, bool is_last,
                           fr_err *err)
{
    const fr_replay_record *rec = record_at(r, record);
    int32_t actor = actor_of(r, record);
    replay_lane *lane = lane_of(r, actor, rec->lane);
    if (!host_step_of(r, actor, lane)->is_held)
        return FR_OK;
    if (fr_host_is_held(&r->program->plan, &r->program->instrs[rec->i_instr]))
        lane->host_ps =
            lane->host_ps > rec->end_ps ? lane->host_ps : rec->end_ps;
    return is_last ? go_on(r, actor, lane->host_ps, err) : FR_OK;
}
