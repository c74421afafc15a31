/*
 * replay_state.h: what the parts of a replay share: replay.c (lanes, the loop
 * of virtual time) and replay_meet.c (who meets whom, activities).  Nobody
 * else includes it.
 */
#ifndef FR_SIM_REPLAY_REPLAY_STATE_H
#define FR_SIM_REPLAY_REPLAY_STATE_H

#include "sim/engine/event_queue.h"
#include "sim/replay/jitter.h"
#include "sim/replay/replay.h"

typedef struct replay_lane {
    uint32_t next, end; /* steps of the rank program */
    uint32_t i_instr;   /* inside the call */
    uint32_t record;    /* that runs or waits for others; NONE: free */
    uint32_t last;      /* record that ran last */
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
} replay_activity;

typedef struct replay_ready {
    int32_t actor;
    int32_t lane; /* -1: all of them */
} replay_ready;

typedef struct replayer {
    const fr_program *program;
    fr_replay_context *context;
    const fr_actors *actors;
    fr_replay_links links;
    fr_event_queue queue;
    replay_lane *lanes;    /* [n actors][FR_LANE_N] */
    uint32_t **done;       /* [n actors][slots]: last record of the call */
    uint32_t *done_memory; /* what `done` points into */
    int32_t *n_arrived[FR_ACTORS_TABLES]; /* [parties][FR_LANE_N] */
    int8_t table_of_axis[FR_AXIS_N];
    const fr_host_steps **hosts; /* [n actors] */
    int64_t **went_on; /* [n actors][held + 1]: when the host went on */
    int64_t *went_on_memory;
    uint32_t *n_passed; /* [n actors]: how often it was held */
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
    return &r->program->rank_programs[r->context->layout.stage_of_rank[rank]];
}

static inline const fr_replay_order *order_of(const replayer *r, int32_t actor)
{
    int32_t rank = r->actors->rank[actor];
    return &r->context->orders[r->context->layout.stage_of_rank[rank]];
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
/* When the next record of a lane may begin; false: its host is held, the
 * lane is woken when it goes on. */
FR_CHECKED fr_status replay_issue(replayer *r, int32_t actor, int lane,
                                  bool *is_issued, fr_err *err);
/* A record of a run starts, one of an instruction has ended. */
FR_CHECKED fr_status replay_issue_run(replayer *r, uint32_t record,
                                      fr_err *err);
FR_CHECKED fr_status replay_issue_end(replayer *r, uint32_t record,
                                      bool is_last, fr_err *err);

/* After the latency: the flow, or the end where there is no work. */
FR_CHECKED fr_status replay_activity_flow(replayer *r, uint32_t activity,
                                          fr_err *err);
/* replay.c: ends all records of an activity now. */
FR_CHECKED fr_status replay_activity_end(replayer *r, uint32_t activity,
                                         fr_err *err);

#endif
