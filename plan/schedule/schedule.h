/*
 * schedule.h: pipeline schedules: in which order a pipeline rank runs the
 * forward and backward passes of its micro-batches and chunks.
 *
 * A schedule only orders; lowering adds sends, receives and everything else.
 * Each entry lives in its own file and is a pure function of its arguments:
 * p = n_stages pipeline ranks, m = n_micro micro-batches, v = vpp chunks per
 * rank.  Schedules that split backward (Qi et al., ICLR 2024, arXiv
 * 2401.10241) run the gradients of inputs, for which the stage before waits,
 * apart from those of weights, for which nobody does.
 */
#ifndef FR_PLAN_SCHEDULE_SCHEDULE_H
#define FR_PLAN_SCHEDULE_SCHEDULE_H

#include "core/base/err.h"
#include "plan/decide/plan.h"

typedef enum fr_task_kind {
    FR_TASK_FORWARD,
    FR_TASK_BACKWARD, /* whole, or of inputs where the schedule splits it */
    FR_TASK_WEIGHTS   /* the rest of a split backward */
} fr_task_kind;

typedef struct fr_task {
    fr_task_kind kind;
    int32_t chunk;
    int64_t micro_batch;
} fr_task;

/* Time of the passes of one micro-batch through all chunks of a rank. */
typedef struct fr_pass_times {
    double forward_s;
    double input_s;   /* backward, gradients of inputs */
    double weights_s; /* backward, gradients of weights */
} fr_pass_times;

/*
 * All that the rest knows of a schedule: legality, lowering, simulation, bounds
 * and search ask these members and never for one schedule by its number.
 */
typedef struct fr_schedule {
    const char *name;
    const char *summary;

    /* The requirements of the schedule: fr_schedule_fits(). */
    bool needs_pipeline; /* more ranks than one */
    int32_t n_chunks;    /* of a rank (vpp); 0: as many as asked for, not one */
    bool is_grouped;     /* micro-batches come in groups of n_stages, each of
                            which goes through all chunks before the next */
    int64_t (*least_micro)(int64_t n_stages); /* NULL: one micro-batch */

    /* The tasks of the schedule. */
    bool is_split; /* WEIGHTS are tasks of their own */
    bool is_v;     /* of two chunks, the second goes back up the ranks */
    /* Writes exactly fr_schedule_n_tasks() tasks.  Each chunk meets its
     * micro-batches in ascending order in every kind of task. */
    void (*emit)(int64_t stage, int64_t n_stages, int64_t n_micro, int64_t vpp,
                 fr_task *tasks);
    /* Most (chunk, micro-batch) pairs that a rank keeps at once, from the
     * begin of their forward to the end of their last task. */
    int64_t (*peak_live_micro)(int64_t stage, int64_t n_stages, int64_t n_micro,
                               int64_t vpp);
    /* Idle time of a rank in one step with equal stages and free links. */
    double (*bubble_s)(int64_t n_stages, int64_t n_micro, int64_t vpp,
                       const fr_pass_times *times);

    /* Facts that tighten lower bounds.  All may be omitted. */
    bool is_1f1b; /* one chunk; rank s alternates once it has run n_stages - s
                     forwards, so that no more wait for their backward */
    bool is_forward_first; /* no backward before the last forward */
    /* Pairs that are forward before a rank's first backward; NULL: as many as
     * peak_live_micro() says. */
    int64_t (*live_at_backward)(int64_t stage, int64_t n_stages,
                                int64_t n_micro);
    /* Returns how many of n_micro WEIGHTS come after the last BACKWARD of a
     * rank with one chunk. */
    int64_t (*weights_at_end)(int64_t stage, int64_t n_micro);
} fr_schedule;

/* Indexed by fr_schedule_kind, fr_n_schedules of them. */
extern const fr_schedule *const fr_schedules[];

/* Does it run n_micro micro-batches on n_stages ranks with vpp chunks each? */
bool fr_schedule_fits(const fr_schedule *schedule, int64_t n_stages,
                      int64_t n_micro, int64_t vpp);

/* Has a rank several chunks? */
bool fr_schedule_has_chunks(const fr_schedule *schedule);

/* The schedule that is meant where a plan names none: 1F1B, with several chunks
 * interleaved 1F1B. */
fr_schedule_kind fr_schedule_usual(int32_t vpp);

/* A schedule of one chunk with or without split backward, for plans of which
 * nothing else of the pipeline matters. */
fr_schedule_kind fr_schedule_plain(bool is_split);

/* Tasks of one rank. */
int64_t fr_schedule_n_tasks(const fr_schedule *schedule, int64_t n_micro,
                            int64_t vpp);

/* The virtual stage (in model order) that chunk `chunk` of a rank holds, and
 * the rank that holds a stage. */
int32_t fr_schedule_stage(const fr_schedule *schedule, int32_t rank,
                          int32_t chunk, int32_t n_stages);
int32_t fr_schedule_rank(const fr_schedule *schedule, int32_t stage,
                         int32_t n_stages);

/* bubble_s of schedules that idle while the pipeline fills and drains alone:
 * the passes of a chunk on each of the other ranks (Narayanan et al., SC 2021,
 * section 2.2). */
double fr_schedule_filling_s(int64_t n_stages, int64_t n_micro, int64_t vpp,
                             const fr_pass_times *times);

/* Idle share of a rank's time where each kind of pass takes as long. */
double fr_schedule_bubble_frac(const fr_schedule *schedule, int64_t n_stages,
                               int64_t n_micro, int64_t vpp);

/* The entries, one file each. */
#define FR_SCHEDULE_ENTRY(name, entry)                                         \
    extern const fr_schedule fr_schedule_##entry;
FR_SCHEDULES(FR_SCHEDULE_ENTRY)
#undef FR_SCHEDULE_ENTRY

#endif
