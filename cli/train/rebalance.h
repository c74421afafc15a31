/*
 * rebalance.h: run --rebalance: layers of a pipeline, or samples of
 * data-parallel ranks, are moved away from a slow rank, where that is predicted
 * to be faster, and back where it is not measured to be.
 *
 * The supervisor looks at what rank 0 says (slow_news.h), asks the ranks to
 * stop, which saves a checkpoint, and goes on from it under the other plan.
 */
#ifndef FR_CLI_TRAIN_REBALANCE_H
#define FR_CLI_TRAIN_REBALANCE_H

#include "api/request/request.h"
#include "plan/decide/plan_json.h"

typedef enum fr_rebalance_state {
    FR_REBALANCE_WATCHING,
    FR_REBALANCE_ASKED,     /* the ranks stop, and `next` is what follows */
    FR_REBALANCE_MEASURING, /* ... which shows whether it is faster */
    FR_REBALANCE_OVER
} fr_rebalance_state;

typedef struct fr_rebalance {
    const fr_request *request;
    const fr_plan_file *file; /* model, job and cluster, borrowed */
    fr_plan plan;             /* that runs */
    fr_plan next, last;
    fr_rebalance_state state;
    bool is_back;       /* `next` is what was there before */
    double before_s;    /* a measured step of `last` */
    int64_t looked_at;  /* the last news */
    int64_t first_step; /* of `plan` */
} fr_rebalance;

/* FR_USAGE: what it needs is not there. */
FR_CHECKED fr_status fr_rebalance_check(const fr_request *request,
                                        const fr_plan_file *file, fr_err *err);

/* A plan has begun at a step, by whatever led to it. */
void fr_rebalance_begin(fr_rebalance *rebalance, const fr_request *request,
                        const fr_plan_file *file, const fr_plan *plan,
                        int64_t first_step);

/* Should the ranks stop for another plan? */
bool fr_rebalance_look(fr_rebalance *rebalance);
/* They have stopped after `step`: the plan to go on with; NULL: it was not for
 * this. */
const fr_plan *fr_rebalance_take(fr_rebalance *rebalance, int64_t step);

#endif
