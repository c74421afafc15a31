/*
 * weight_uses.h: ZeRO 3 (FSDP): when the weights of a layer, the embedding or
 * the head are gathered, and when they are dropped.
 *
 * Passes use the weights of one set after the other.  While the calls of one
 * use run, those of the n_prefetch uses after it may be gathered, and none
 * before.  What is used again within that reach of the same micro-batch stays;
 * else it is dropped after each use (is_resharded), or after backward (not
 * is_resharded).  Under a pipeline what is not dropped after forward stays for
 * the whole step, as in PyTorch's pipeline stages.
 *
 * A part of the outline: lowering writes the gathers that stand here, the
 * bounds count them.
 */
#ifndef FR_PLAN_OUTLINE_WEIGHT_USES_H
#define FR_PLAN_OUTLINE_WEIGHT_USES_H

#include "core/base/vec.h"
#include "plan/decide/plan.h"
#include "plan/schedule/schedule.h"

typedef struct fr_weight_use {
    int32_t set;  /* a layer, or one of fr_weight_ends */
    int32_t next; /* use of the same set; -1: none */
    bool is_backward;
    bool is_gathered; /* for this use: they are not there */
    bool is_dropped;  /* after this use */
} fr_weight_use;
typedef fr_vec(fr_weight_use) fr_weight_uses;

/* The sets that are no layer.  They are the same where one rank has both ends
 * and these share a matrix, or where it has one of them only. */
typedef struct fr_weight_ends {
    int32_t embed, head;
    int32_t n_sets; /* with all layers */
} fr_weight_ends;

fr_weight_ends fr_weight_ends_of(const fr_model *model);

/* All uses of a pipeline rank, in the order of its calls; the caller releases
 * the list, also after a failure. */
FR_CHECKED fr_status fr_weight_uses_list(const fr_plan *plan,
                                         const fr_model *model, int32_t rank,
                                         const fr_task *tasks, size_t n_tasks,
                                         fr_weight_uses *out, fr_err *err);

/* Before use `now` the gathers are enqueued of all uses before this one. */
static inline size_t fr_weight_uses_reach(const fr_plan *plan,
                                          const fr_weight_uses *uses,
                                          size_t now)
{
    const size_t end = now + 1 + (size_t)plan->n_prefetch;
    return end < uses->n ? end : uses->n;
}

#endif
