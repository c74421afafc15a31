/*
 * replay_rounds.c: where a rank program that repeats may go back, and lanes
 * that go round.
 *
 * In round v of its loop a call stands for the one v periods later in the
 * program that has all micro-batches, and so does what it waits for.  What
 * follows the loop is of the last round.
 */
#include "sim/replay/replay_state.h"

#include <stdlib.h>

/* ---- the loop ------------------------------------------------------------ */

/* Periods before and after the loop: what its calls wait for lies within. */
enum { PERIODS_AROUND = FR_REPLAY_LOOP_WAITED + 1 };

/* Does every call of the period from `first` on wait for calls of this one and
 * a few before only? */
static bool is_within(const fr_rank_program *p, uint32_t first)
{
    const uint32_t period = p->repeat.period;
    for (uint32_t i = first; i < first + period; i++)
        for (uint32_t d = 0; d < p->calls[i].n_deps; d++)
            if (p->deps[p->calls[i].first_dep + d] +
                    FR_REPLAY_LOOP_WAITED * period <
                first)
                return false;
    return true;
}

/* Notes where steps begin. */
static bool *list_begins(const fr_rank_program *p, const fr_replay_order *order)
{
    bool *begins = calloc((size_t)p->n_calls + 1, sizeof *begins);
    for (uint32_t s = 0; begins != NULL && s < order->first[FR_LANE_N]; s++)
        begins[order->steps[s].first_call] = true;
    return begins;
}

/* No run goes on over a call that is on its lane and begins no step. */
static bool is_begin(const fr_program *program, const fr_rank_program *p,
                     const bool *begins, uint32_t call)
{
    while (program->segments[p->calls[call].i_segment].lane != FR_LANE_COMPUTE)
        call++;
    return begins[call];
}

static void set_steps(fr_replay_order *order)
{
    fr_replay_loop *loop = &order->loop;
    const uint32_t end_call = loop->first_call + loop->n_calls;
    for (int lane = 0; lane < FR_LANE_N; lane++) {
        uint32_t s = order->first[lane], end = order->first[lane + 1];
        while (s < end && order->steps[s].first_call < loop->first_call)
            s++;
        loop->first_step[lane] = s;
        while (s < end && order->steps[s].first_call < end_call)
            s++;
        loop->end_step[lane] = s;
    }
}

bool fr_replay_order_find_loop(const fr_program *program, uint32_t i_stage,
                               fr_replay_order *order)
{
    const fr_rank_program *p = &program->rank_programs[i_stage];
    const fr_repeat *repeat = &p->repeat;
    const uint32_t period = repeat->period;
    if (period == 0 || repeat->n_calls / period < 2 * PERIODS_AROUND + 2)
        return false;
    bool *begins = list_begins(p, order);
    uint32_t first = repeat->first_call + PERIODS_AROUND * period;
    const uint32_t end = first + period;
    if (begins == NULL)
        return false;
    while (first < end && !(is_begin(program, p, begins, first) &&
                            is_begin(program, p, begins, first + period)))
        first++;
    free(begins);
    if (first == end || !is_within(p, first))
        return false;
    order->loop.first_call = first;
    order->loop.n_calls = period;
    set_steps(order);
    return true;
}

/* ---- rounds -------------------------------------------------------------- */

uint32_t replay_loop_round(const replayer *r, int32_t actor, int i_lane)
{
    const replay_lane *lane = lane_of(r, actor, i_lane);
    if (!r->has_loops)
        return 0;
    return lane->next < order_of(r, actor)->loop.end_step[i_lane]
               ? lane->round
               : FR_REPLAY_LAST_ROUND;
}

uint32_t replay_loop_done(const replayer *r, int32_t actor, int i_lane,
                          uint32_t call)
{
    const fr_replay_order *order = order_of(r, actor);
    const fr_replay_loop *loop = &order->loop;
    const int64_t round = round_of(r, actor, i_lane);
    int64_t of_call = 0;
    if (round > 0 && call < loop->first_call + loop->n_calls) {
        int64_t at = (int64_t)fr_repeat_dep(&rank_program_of(r, actor)->repeat,
                                            call, (uint64_t)round) -
                     loop->first_call;
        if (at >= 0) {
            of_call = at / loop->n_calls;
            call = loop->first_call + (uint32_t)(at % loop->n_calls);
        } else {
            call = (uint32_t)(at + loop->first_call);
        }
    }
    uint32_t slot = order->slot_of_call[call];
    if (slot == FR_REPLAY_NO_SLOT)
        return FR_REPLAY_NONE;
    return r->done[actor][slot * REPLAY_ROUNDS + of_call % REPLAY_ROUNDS];
}

/* The round of the lane of an actor that is behind all others. */
static int64_t least_round(const replayer *r, int32_t actor)
{
    const fr_replay_loop *loop = &order_of(r, actor)->loop;
    int64_t least = INT64_MAX;
    for (int i = 0; i < FR_LANE_N; i++) {
        const replay_lane *lane = lane_of(r, actor, i);
        if (is_in_loop(loop, i) && lane->next < loop->end_step[i] &&
            lane->round < least)
            least = lane->round;
    }
    return least;
}

/*
 * Nobody waits for a lane that loads: where it is ahead it makes no difference
 * by how much.  Any other that gets away from its rank's others does so for the
 * whole step, which has no steady state then.
 */
bool replay_loop_may_begin(replayer *r, int32_t actor, int i_lane)
{
    const fr_replay_loop *loop = &order_of(r, actor)->loop;
    const replay_lane *lane = lane_of(r, actor, i_lane);
    if (lane->i_instr > 0 || lane->next < loop->first_step[i_lane] ||
        lane->next >= loop->end_step[i_lane] ||
        lane->round <= least_round(r, actor) + REPLAY_MOST_AHEAD)
        return true;
    r->out.is_unsteady = r->out.is_unsteady || i_lane != FR_LANE_IO;
    return false;
}

int replay_loop_end(replayer *r, uint32_t record, uint32_t slot)
{
    const int i_lane = record_at(r, record)->lane;
    const int32_t actor = actor_of(r, record);
    const fr_replay_loop *loop = &order_of(r, actor)->loop;
    replay_lane *lane = lane_of(r, actor, i_lane);
    const uint32_t step = lane->next - 1;
    bool is_inside =
        step >= loop->first_step[i_lane] && step < loop->end_step[i_lane];
    bool is_over = is_inside && lane->next == loop->end_step[i_lane];
    if (slot != FR_REPLAY_NO_SLOT) {
        uint32_t *done = &r->done[actor][slot * REPLAY_ROUNDS];
        uint32_t round = is_inside ? lane->round : 0;
        done[round % REPLAY_ROUNDS] = record;
        if (is_inside)
            done[(round + 1) % REPLAY_ROUNDS] = FR_REPLAY_NONE;
    }
    if (is_over && lane->round < r->n_repeats) {
        lane->round++;
        lane->next = loop->first_step[i_lane];
        replay_steady_note(r, actor, i_lane);
    }
    return slot != FR_REPLAY_NO_SLOT || is_over ? -1 : i_lane;
}
