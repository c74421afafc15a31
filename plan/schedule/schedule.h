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

typedef struct fr_schedule {
    const char *name;
    const char *summary;
    bool is_split; /* WEIGHTS are tasks of their own */
    bool is_v;     /* of two chunks, the second goes back up the ranks */
    bool (*fits)(int64_t n_stages, int64_t n_micro, int64_t vpp);
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
} fr_schedule;

/* Indexed by fr_schedule_kind, fr_n_schedules of them. */
extern const fr_schedule *const fr_schedules[];

/* Tasks of one rank. */
int64_t fr_schedule_n_tasks(const fr_schedule *schedule, int64_t n_micro,
                            int64_t vpp);

/* The virtual stage (in model order) that chunk `chunk` of a rank holds, and
 * the rank that holds a stage. */
int32_t fr_schedule_stage(const fr_schedule *schedule, int32_t rank,
                          int32_t chunk, int32_t n_stages);
int32_t fr_schedule_rank(const fr_schedule *schedule, int32_t stage,
                         int32_t n_stages);

/* Idle share of a rank's time where each kind of pass takes as long. */
double fr_schedule_bubble_frac(const fr_schedule *schedule, int64_t n_stages,
                               int64_t n_micro, int64_t vpp);

/* The entries, one file each. */
#define FR_SCHEDULE_ENTRY(name, entry)                                         \
    extern const fr_schedule fr_schedule_##entry;
FR_SCHEDULES(FR_SCHEDULE_ENTRY)
#undef FR_SCHEDULE_ENTRY

#endif
