/*
 * replay_state.h: what the parts of a replay share: replay.c (lanes, the loop
 * of virtual time) and replay_meet.c (who meets whom, activities).  Nobody
 * else includes it.
 */
#ifndef FR_SIM_REPLAY_REPLAY_STATE_H
#define FR_SIM_REPLAY_REPLAY_STATE_H

#include "program/lower/step/repeat.h"
#include "sim/engine/event_queue.h"
#include "sim/replay/jitter.h"
#include "sim/replay/replay.h"

typedef struct replay_lane {
    uint32_t next, end; /* steps of the rank program */
    uint32_t i_instr;   /* inside the call */
    uint32_t record;    /* that runs or waits for others; NONE: free */
    uint32_t last;      /* record that ran last */
    uint32_t round;     /* of the loop; 0: before it, too */
    bool is_waiting;    /* for a peer of a transfer */
    bool has_come;      /* to its next record, at came_ps ... */
    int64_t came_ps;
    int64_t due_ps;  /* ... which is issued then */
    int64_t host_ps; /* where its host is: begins the run, or has issued the
                        last instruction of the call */
} replay_lane;

/* One instruction or run in progress: latency, then flow. */
typedef struct replay_activity {
    uint32_t first_record;
    const fr_demand *demand; /* NULL: no work */
    int32_t actor, lane;     /* no record: this lane may go on */
    uint32_t flow;           /* of the solver, once it moves; NONE: not yet */
} replay_activity;

typedef struct replay_ready {
    int32_t actor;
    int32_t lane; /* -1: all of them */
} replay_ready;

/* Rounds of a loop whose ends are kept, and by how many a lane may be ahead of
 * another one of its rank. */
enum {
    REPLAY_ROUNDS = 8,
    REPLAY_MOST_AHEAD = REPLAY_ROUNDS - FR_REPLAY_LOOP_WAITED - 2
};

typedef struct replay_steady replay_steady;

typedef struct replayer {
    const fr_program *program;
    fr_replay_context *context;
    const fr_actors *actors;
    fr_replay_links links;
    fr_event_queue queue;
    replay_lane *lanes; /* [n actors][FR_LANE_N] */
    bool has_loops;
    int64_t n_repeats;     /* rounds of the loops after the first */
    replay_steady *steady; /* NULL: none are skipped any more */
    uint32_t **done;       /* [n actors][slots][rounds that are kept]: last
                              record of the call */
    uint32_t *done_memory; /* `done` points into it */
    int32_t *n_arrived[FR_ACTORS_TABLES]; /* [parties][FR_LANE_N] */
    int8_t table_of_axis[FR_AXIS_N];
    const fr_host_steps **hosts; /* [n actors] */
    int64_t **went_on; /* [n actors][held + 1]: when the host went on */
    int64_t *went_on_memory;
    int64_t *n_passed; /* [n actors]: how often it was held */
    int64_t *bound_ps; /* [n actors]: when its device last waited for it */
    fr_vec(replay_activity) activities;
    fr_vec(uint32_t) free_activities;
    fr_vec(replay_ready) ready; /* lanes that may go on */
    int32_t *members;           /* scratch [n actors] */
    uint32_t *states;           /* scratch [n actors] */
    fr_jitter jitter;           /* its states are those of the records */
    int64_t now_ps;
    fr_replay out;
} replayer;

static inline replay_lane *lane_of(const replayer *r, int32_t actor, int lane)
{
    return &r->lanes[(int64_t)actor * FR_LANE_N + lane];
}

static inline uint32_t n_rounds_kept(const replayer *r)
{
    return r->has_loops ? REPLAY_ROUNDS : 1;
}

static inline const fr_replay_record *record_at(const replayer *r,
                                                uint32_t record)
{
    return &r->out.records.items[record];
}

static inline int32_t actor_of(const replayer *r, uint32_t record)
{
    return fr_actors_of_rank(r->actors, record_at(r, record)->rank);
}

static inline const fr_rank_program *rank_program_of(const replayer *r,
                                                     int32_t actor)
{
    int32_t rank = r->actors->rank[actor];
    return &r->program->rank_programs[r->context->layout.program_of_rank[rank]];
}

static inline const fr_replay_order *order_of(const replayer *r, int32_t actor)
{
    int32_t rank = r->actors->rank[actor];
    return &r->context->orders[r->context->layout.program_of_rank[rank]];
}

/* Returns the round of the loop to which the next step of a lane belongs.
 * Steps after the loop belong to the last round. */
static inline int64_t round_of(const replayer *r, int32_t actor, int i_lane)
{
    const replay_lane *lane = lane_of(r, actor, i_lane);
    const fr_replay_order *order = order_of(r, actor);
    if (!r->has_loops || lane->next == lane->end ||
        lane->next < order->loop.first_step[i_lane])
        return 0;
    return lane->next < order->loop.end_step[i_lane] ? (int64_t)lane->round
                                                     : r->n_repeats;
}

/* Does a lane have steps in the loop of its rank? */
static inline bool is_in_loop(const fr_replay_loop *loop, int lane)
{
    return loop->first_step[lane] < loop->end_step[lane];
}

/* Returns the place of the time at which the host of an actor continued after
 * n_held holds.  In a loop only the times are kept that a lane may still
 * need. */
static inline int64_t *replay_went_on(const replayer *r, int32_t actor,
                                      int64_t n_held)
{
    return &r->went_on[actor][n_held % (r->hosts[actor]->n_held + 1)];
}

/* The record's lane has come to it: it starts, or waits for others. */
FR_CHECKED fr_status replay_meet(replayer *r, uint32_t record,
                                 const fr_replay_step *step, fr_err *err);
/* Wakes a lane at a later time. */
FR_CHECKED fr_status replay_wake_at(replayer *r, int32_t actor, int lane,
                                    int64_t at_ps, fr_err *err);
/* replay.c: all of an actor's lanes (lane -1) or one may go on now. */
FR_CHECKED fr_status replay_wake(replayer *r, int32_t actor, int lane,
                                 fr_err *err);

/* replay_issue.c: what hosts do. */
FR_CHECKED fr_status replay_hosts_init(replayer *r, fr_err *err);
void replay_hosts_release(replayer *r);
/* Issues the next record of a lane.  *is_issued false: its host is held, and
 * the lane is woken when the host continues. */
FR_CHECKED fr_status replay_issue(replayer *r, int32_t actor, int lane,
                                  bool *is_issued, fr_err *err);
/* A record of a run starts, one of an instruction has ended. */
FR_CHECKED fr_status replay_issue_run(replayer *r, uint32_t record,
                                      fr_err *err);
FR_CHECKED fr_status replay_issue_end(replayer *r, uint32_t record,
                                      bool is_last, fr_err *err);

/* replay_rounds.c: lanes that go round a loop; only where r->has_loops. */
/* Returns the round of a new record of the lane, for fr_replay_record.round. */
uint32_t replay_loop_round(const replayer *r, int32_t actor, int i_lane);
/* The record of a call that the lane's next one waits for; NONE: not done. */
uint32_t replay_loop_done(const replayer *r, int32_t actor, int i_lane,
                          uint32_t call);
/* false: the lane is too far ahead of the others of its rank. */
bool replay_loop_may_begin(replayer *r, int32_t actor, int i_lane);
/* A step has ended, whose last call has a slot or none: goes back where the
 * loop is not over.  Returns the lane that may go on, -1: all of the actor. */
int replay_loop_end(replayer *r, uint32_t record, uint32_t slot);

/* replay_steady.c: whether a replay of loops comes to repeat itself. */
FR_CHECKED fr_status replay_steady_create(replayer *r, fr_err *err);
void replay_steady_destroy(replay_steady *steady);
/* A lane begins another round. */
void replay_steady_note(replayer *r, int32_t actor, int i_lane);
/* At the end of an instant in which the first lane began a round: skips rounds
 * where that is possible, once. */
FR_CHECKED fr_status replay_steady_look(replayer *r, fr_err *err);

/* After the latency: the flow, or the end where there is no work. */
FR_CHECKED fr_status replay_activity_flow(replayer *r, uint32_t activity,
                                          fr_err *err);
/* replay.c: ends all records of an activity now. */
FR_CHECKED fr_status replay_activity_end(replayer *r, uint32_t activity,
                                         fr_err *err);

#endif
