/*
 * replay_steady.c: rounds of loops that need not be replayed.
 *
 * Each time the first lane begins a round, all that the replay goes on from is
 * written down, with times since now and rounds since that of the first lane:
 * lanes, ends that others wait for, events, work that flows have left.  Where
 * this is the same after some rounds, the replay does the same again, later by
 * the time between, and so on to the end of the loops: all but a few of those
 * rounds are left out.  Two things go their own way meanwhile.
 *
 *   - Hosts that are not held get ahead of their devices: if no device has
 *     waited for one, none will.
 *   - Jitter: what is left over for groups that meet after the loops grows
 *     with every round.  It is a sum of constants and the larger of two.  If
 *     in two periods everything has grown by the same, and of any two the
 *     larger by no less, that holds for all that follow.
 */
#include "core/base/hash.h"
#include "sim/engine/virtual_time.h"
#include "sim/replay/replay_state.h"

#include <stdlib.h>
#include <string.h>

enum {
    LONGEST = 16, /* period, in rounds */
    KEPT = 2 * LONGEST + 1,
    ROUNDS_LEFT = 4,  /* replayed before loops end */
    MOST_LOOKS = 1024 /* and as many more as eight for each actor */
};

typedef struct snapshot {
    int64_t at_ps;
    uint64_t n_events, hash;
    fr_vec(int64_t) state;
    fr_vec(uint32_t) causes; /* records that may be the cause of others ... */
    fr_vec(fr_ps2) growing;  /* ... and the jitter of each */
    fr_vec(fr_jitter_choice) choices; /* since the one before */
} snapshot;

struct replay_steady {
    int32_t i_lane; /* of actor 0: the first that has a loop */
    bool is_due;    /* it has begun a round in this instant */
    size_t n_looks;
    snapshot kept[KEPT]; /* look i at i % KEPT */
    int64_t *event_ps;   /* [lanes] of what the lane's record or wake waits
                            for; -1: none */
    fr_work *left;       /* [lanes] of flows */
};

fr_status replay_steady_create(replayer *r, fr_err *err)
{
    const size_t n_lanes = (size_t)r->actors->n * FR_LANE_N;
    const fr_replay_loop *loop = &order_of(r, 0)->loop;
    FR_TRY_CALLOC(r->steady, 1, err);
    FR_TRY_CALLOC(r->steady->event_ps, n_lanes, err);
    FR_TRY_CALLOC(r->steady->left, n_lanes, err);
    while (!is_in_loop(loop, r->steady->i_lane))
        r->steady->i_lane++;
    r->jitter.is_noted = r->jitter.is_on;
    return FR_OK;
}

void replay_steady_destroy(replay_steady *steady)
{
    if (steady == NULL)
        return;
    for (int i = 0; i < KEPT; i++) {
        fr_vec_release(&steady->kept[i].state);
        fr_vec_release(&steady->kept[i].causes);
        fr_vec_release(&steady->kept[i].growing);
        fr_vec_release(&steady->kept[i].choices);
    }
    free(steady->event_ps);
    free(steady->left);
    free(steady);
}

void replay_steady_note(replayer *r, int32_t actor, int i_lane)
{
    if (r->steady != NULL && actor == 0 && i_lane == r->steady->i_lane)
        r->steady->is_due = true;
}

static snapshot *look_at(replay_steady *steady, size_t i)
{
    return &steady->kept[i % KEPT];
}

/* ---- writing down -------------------------------------------------------- */

static size_t lane_index(const replayer *r, const replay_activity *a)
{
    if (a->first_record == FR_REPLAY_NONE)
        return (size_t)a->actor * FR_LANE_N + (size_t)a->lane;
    return (size_t)actor_of(r, a->first_record) * FR_LANE_N +
           record_at(r, a->first_record)->lane;
}

/* Events by lane, and the work that flows have left by that of their first
 * member. */
static void list_activities(const replayer *r)
{
    replay_steady *s = r->steady;
    const size_t n_lanes = (size_t)r->actors->n * FR_LANE_N;
    memset(s->event_ps, 0xff, n_lanes * sizeof *s->event_ps);
    memset(s->left, 0, n_lanes * sizeof *s->left);
    for (size_t i = 0; i < r->queue.n; i++) {
        uint32_t activity = (uint32_t)r->queue.keys[i] & FR_EVENT_MAX_PAYLOAD;
        s->event_ps[lane_index(r, &r->activities.items[activity])] =
            (int64_t)(r->queue.keys[i] >> 64) - r->now_ps;
    }
    for (size_t i = 0; i < r->activities.n; i++) {
        const replay_activity *a = &r->activities.items[i];
        if (a->flow != FR_REPLAY_NONE)
            s->left[lane_index(r, a)] =
                fr_maxmin_remaining(r->links.maxmin, a->flow, r->now_ps);
    }
}

/* A list that grows; there may be no memory. */
typedef struct replay_sheet {
    snapshot *to;
    bool is_lost;
} replay_sheet;

static void put(replay_sheet *sheet, int64_t value)
{
    if (fr_vec_push(&sheet->to->state, value) != FR_OK)
        sheet->is_lost = true;
}

static void put_cause(const replayer *r, uint32_t record, replay_sheet *sheet)
{
    if (!r->jitter.is_on || record == FR_REPLAY_NONE)
        return;
    const fr_ps2 *state = fr_jitter_state(&r->jitter, record);
    if (fr_vec_push(&sheet->to->causes, record) != FR_OK)
        sheet->is_lost = true;
    for (int32_t i = 0; i <= r->jitter.n_tables; i++)
        if (fr_vec_push(&sheet->to->growing, state[i]) != FR_OK)
            sheet->is_lost = true;
}

static void put_lane(const replayer *r, int32_t actor, int i, int64_t round,
                     replay_sheet *sheet)
{
    const replay_lane *lane = lane_of(r, actor, i);
    const fr_replay_loop *loop = &order_of(r, actor)->loop;
    const size_t at = (size_t)actor * FR_LANE_N + (size_t)i;
    bool goes_round = is_in_loop(loop, i);
    put(sheet, (int64_t)lane->next << 32 | lane->i_instr);
    put(sheet, goes_round ? (int64_t)lane->round - round : 0);
    put(sheet, lane->is_waiting | lane->has_come << 1 |
                   (lane->record != FR_REPLAY_NONE) << 2);
    put(sheet, r->steady->event_ps[at]);
    put(sheet, (int64_t)(r->steady->left[at] >> 64));
    put(sheet, (int64_t)r->steady->left[at]);
    if (lane->has_come) {
        put(sheet, lane->came_ps - r->now_ps);
        put(sheet, lane->due_ps - r->now_ps);
    }
    if (lane->record != FR_REPLAY_NONE) {
        const fr_replay_record *rec = record_at(r, lane->record);
        put(sheet, rec->ready_ps - r->now_ps);
        put(sheet, rec->start_ps >= 0 ? rec->start_ps - r->now_ps : INT64_MAX);
        put(sheet, lane->came_ps - r->now_ps);
    }
    if (goes_round && lane->last != FR_REPLAY_NONE)
        put(sheet, record_at(r, lane->last)->end_ps - r->now_ps);
    if (r->hosts[actor]->n_held_round > 0 &&
        (lane->has_come || lane->record != FR_REPLAY_NONE))
        put(sheet, lane->host_ps - r->now_ps);
    put_cause(r, lane->record, sheet);
    put_cause(r, lane->last, sheet);
}

/* The ends that calls of the loop wait for. */
static void put_done(const replayer *r, int32_t actor, int64_t round,
                     replay_sheet *sheet)
{
    const fr_replay_order *order = order_of(r, actor);
    const uint32_t first = order->loop.first_call;
    for (uint32_t i = first; i < first + order->loop.n_calls; i++) {
        uint32_t slot = order->slot_of_call[i];
        for (int k = 0; slot != FR_REPLAY_NO_SLOT && k < REPLAY_ROUNDS; k++) {
            uint32_t record =
                r->done[actor][slot * REPLAY_ROUNDS +
                               (uint32_t)((round + k) % REPLAY_ROUNDS)];
            const fr_replay_record *rec =
                record != FR_REPLAY_NONE ? record_at(r, record) : NULL;
            put(sheet, rec != NULL ? (int64_t)rec->round - round : INT64_MAX);
            put(sheet, rec != NULL ? rec->end_ps - r->now_ps : 0);
            put_cause(r, record, sheet);
        }
    }
}

static void put_host(const replayer *r, int32_t actor, int64_t round,
                     replay_sheet *sheet)
{
    const fr_host_steps *hosts = r->hosts[actor];
    put(sheet, r->n_passed[actor] - round * hosts->n_held_round);
    if (hosts->n_held_round > 0)
        put(sheet, *replay_went_on(r, actor, r->n_passed[actor]) - r->now_ps);
}

static fr_status write_down(replayer *r, snapshot *out, fr_err *err)
{
    const int64_t round = lane_of(r, 0, r->steady->i_lane)->round;
    replay_sheet sheet = {.to = out};
    out->at_ps = r->now_ps;
    out->n_events = r->out.n_events;
    out->state.n = out->causes.n = out->growing.n = 0;
    list_activities(r);
    for (int32_t actor = 0; actor < r->actors->n; actor++) {
        for (int i = 0; i < FR_LANE_N; i++)
            put_lane(r, actor, i, round, &sheet);
        put_done(r, actor, round, &sheet);
        put_host(r, actor, round, &sheet);
    }
    if (sheet.is_lost)
        return fr_fail_no_memory(err);
    out->hash = 0;
    for (size_t i = 0; i < out->state.n; i++)
        out->hash = fr_hash_mix(out->hash + (uint64_t)out->state.items[i]);
    /* Choices of jitter are those since the look before. */
    fr_vec_release(&out->choices);
    memcpy(&out->choices, &r->jitter.choices, sizeof out->choices);
    memset(&r->jitter.choices, 0, sizeof r->jitter.choices);
    return FR_OK;
}

/* ---- comparing ----------------------------------------------------------- */

static bool is_same_state(const snapshot *a, const snapshot *b)
{
    return a->hash == b->hash && a->state.n == b->state.n &&
           a->growing.n == b->growing.n &&
           memcmp(a->state.items, b->state.items,
                  a->state.n * sizeof *a->state.items) == 0;
}

static bool has_grown_alike(const snapshot *a, const snapshot *b,
                            const snapshot *c)
{
    for (size_t i = 0; i < a->growing.n; i++)
        if (b->growing.items[i] - a->growing.items[i] !=
            c->growing.items[i] - b->growing.items[i])
            return false;
    return true;
}

/* Is a choice, made again a period later, the same from then on? */
static bool is_settled(const fr_jitter_choice *before,
                       const fr_jitter_choice *now)
{
    const fr_ps2 a = now->a - before->a, b = now->b - before->b;
    if (now->is_fixed)
        return before->is_fixed && a == 0;
    if (now->a == now->b)
        return a == b;
    return now->a > now->b ? a >= b : b >= a;
}

static bool are_choices_settled(replay_steady *s, size_t look, size_t period)
{
    for (size_t i = look - period + 1; i <= look; i++) {
        const snapshot *before = look_at(s, i - period), *now = look_at(s, i);
        if (before->choices.n != now->choices.n)
            return false;
        for (size_t k = 0; k < now->choices.n; k++)
            if (!is_settled(&before->choices.items[k], &now->choices.items[k]))
                return false;
    }
    return true;
}

/* A host that is never held must be no slower than its device, and where it is
 * faster nobody may have waited for it since. */
static bool are_hosts_settled(const replayer *r, int64_t since_ps,
                              int64_t length_ps, size_t period)
{
    for (int32_t actor = 0; actor < r->actors->n; actor++) {
        const fr_host_steps *hosts = r->hosts[actor];
        int64_t host_ps = 0;
        if (hosts->n_held_round > 0)
            continue;
        fr_ps_add_times(&host_ps, (int64_t)period, hosts->round_ps);
        if (host_ps > length_ps ||
            (host_ps < length_ps && r->bound_ps[actor] >= since_ps))
            return false;
    }
    return true;
}

static bool is_steady(const replayer *r, size_t look, size_t period)
{
    replay_steady *s = r->steady;
    const snapshot *c = look_at(s, look), *b = look_at(s, look - period),
                   *a = look_at(s, look - 2 * period);
    const int64_t length_ps = c->at_ps - b->at_ps;
    return is_same_state(b, c) && is_same_state(a, b) &&
           b->at_ps - a->at_ps == length_ps && !r->jitter.has_lost &&
           has_grown_alike(a, b, c) && are_choices_settled(s, look, period) &&
           are_hosts_settled(r, a->at_ps, length_ps, period);
}

/* ---- skipping ------------------------------------------------------------ */

/* Each cause has grown n times more. */
static fr_status grow_jitter(replayer *r, size_t look, size_t period, int64_t n,
                             fr_err *err)
{
    const snapshot *now = look_at(r->steady, look);
    const snapshot *before = look_at(r->steady, look - period);
    const size_t n_parts = (size_t)r->jitter.n_tables + 1;
    bool *is_done;
    FR_TRY_CALLOC(is_done, r->out.records.n + 1, err);
    for (size_t i = 0; i < now->causes.n; i++) {
        const uint32_t record = now->causes.items[i];
        fr_ps2 *state = fr_jitter_state(&r->jitter, record);
        for (size_t k = i * n_parts; !is_done[record] && k < (i + 1) * n_parts;
             k++)
            *state++ += n * (now->growing.items[k] - before->growing.items[k]);
        is_done[record] = true;
    }
    free(is_done);
    return FR_OK;
}

/* Hosts that are not held are ahead by so much more. */
static void move_hosts(replayer *r, size_t period, int64_t n, int64_t length_ps)
{
    for (int32_t actor = 0; actor < r->actors->n; actor++) {
        const fr_host_steps *hosts = r->hosts[actor];
        int64_t host_ps = 0, ahead_ps = 0;
        if (hosts->n_held_round > 0)
            continue;
        fr_ps_add_times(&host_ps, (int64_t)period, hosts->round_ps);
        fr_ps_add_times(&ahead_ps, n, length_ps - host_ps);
        *replay_went_on(r, actor, r->n_passed[actor]) -= ahead_ps;
        for (int i = 0; i < FR_LANE_N; i++)
            lane_of(r, actor, i)->host_ps -= ahead_ps;
    }
}

static int64_t furthest_round(const replayer *r)
{
    int64_t most = 0;
    for (int32_t actor = 0; actor < r->actors->n; actor++)
        for (int i = 0; i < FR_LANE_N; i++)
            if (lane_of(r, actor, i)->round > most)
                most = lane_of(r, actor, i)->round;
    return most;
}

static fr_status skip(replayer *r, size_t look, size_t period, fr_err *err)
{
    const snapshot *now = look_at(r->steady, look);
    const snapshot *before = look_at(r->steady, look - period);
    const int64_t n =
        (r->n_repeats - furthest_round(r) - ROUNDS_LEFT) / (int64_t)period;
    if (n <= 0)
        return FR_OK;
    r->out.skip = (fr_skip){before->at_ps, now->at_ps, n};
    r->out.n_events += (uint64_t)n * (now->n_events - before->n_events);
    r->n_repeats -= n * (int64_t)period;
    move_hosts(r, period, n, now->at_ps - before->at_ps);
    return r->jitter.is_on ? grow_jitter(r, look, period, n, err) : FR_OK;
}

static void look_no_more(replayer *r)
{
    replay_steady_destroy(r->steady);
    r->steady = NULL;
    r->jitter.is_noted = false;
}

fr_status replay_steady_look(replayer *r, fr_err *err)
{
    replay_steady *s = r->steady;
    if (!s->is_due)
        return FR_OK;
    s->is_due = false;
    const size_t look = s->n_looks++;
    if (look > MOST_LOOKS + 8 * (size_t)r->actors->n) {
        r->out.is_unsteady = true;
        return FR_OK;
    }
    FR_TRY(write_down(r, look_at(s, look), err));
    for (size_t period = 1; period <= LONGEST && 2 * period <= look; period++) {
        if (!is_steady(r, look, period))
            continue;
        FR_TRY(skip(r, look, period, err));
        look_no_more(r);
        return FR_OK;
    }
    return FR_OK;
}
