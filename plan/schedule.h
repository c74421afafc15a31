/*
 * schedule.h: pipeline schedules: in which order a pipeline rank runs the
 * forward and backward passes of its micro-batches and chunks.
 *
 * A schedule only orders; lowering adds sends, receives and everything else.
 * Each entry lives in its own file and is a pure function of its arguments:
 * p = n_stages pipeline ranks, m = n_micro micro-batches, v = vpp chunks per
 * rank (chunk c of rank s is stage c*p + s of the model).
 */
#ifndef FR_PLAN_SCHEDULE_H
#define FR_PLAN_SCHEDULE_H

#include "core/err.h"
#include "plan/plan.h"

typedef struct fr_task {
    bool is_backward;
    int32_t chunk;
    int64_t micro_batch;
} fr_task;

typedef struct fr_schedule {
    fr_schedule_kind kind;
    const char *name;
    const char *summary;
    bool (*fits)(int64_t n_stages, int64_t n_micro, int64_t vpp);
    /* Writes exactly 2 * n_micro * vpp tasks.  Each chunk meets its
     * micro-batches in ascending order, forward and backward. */
    void (*emit)(int64_t stage, int64_t n_stages, int64_t n_micro, int64_t vpp,
                 fr_task *tasks);
    /* Most (chunk, micro-batch) pairs that a rank keeps at once. */
    int64_t (*peak_live_micro)(int64_t stage, int64_t n_stages, int64_t n_micro,
                               int64_t vpp);
    /* Idle share of a rank's time with equal stages and free links (Narayanan
     * et al., SC 2021, section 2.2, who divide by the busy time instead). */
    double (*bubble_frac)(int64_t n_stages, int64_t n_micro, int64_t vpp);
} fr_schedule;

/* Indexed by fr_schedule_kind. */
extern const fr_schedule *const fr_schedules[FR_SCHEDULE_N];

extern const fr_schedule fr_schedule_gpipe;
extern const fr_schedule fr_schedule_1f1b;
extern const fr_schedule fr_schedule_interleaved;

#endif
