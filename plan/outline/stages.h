/*
 * stages.h: which layers the virtual stages of a pipeline have, which of them a
 * pipeline rank holds, and which layers are recomputed.
 *
 * A part of the outline: lowering, the bounds and the partition of layers all
 * read it.  The number of layers that a plan gives to a stage stands in
 * fr_plan_stage_layers(); layers that predict later tokens are no part of it
 * and belong to the last stage.
 */
#ifndef FR_PLAN_OUTLINE_STAGES_H
#define FR_PLAN_OUTLINE_STAGES_H

#include "plan/decide/plan.h"
#include "plan/schedule/schedule.h"

/* A virtual stage has the layers [first, end). */
typedef struct fr_stage_span {
    int32_t stage;
    int32_t first, end;
    bool has_embed, has_head;
} fr_stage_span;

static inline int32_t fr_stages_of(const fr_plan *plan)
{
    return plan->pp * plan->vpp;
}

/* The first layer of a virtual stage, or of what would follow the last one:
 * the number of all layers, those that predict later tokens too. */
int32_t fr_stage_first(const fr_plan *plan, const fr_model *model,
                       int32_t stage);

fr_stage_span fr_stage_span_of(const fr_plan *plan, const fr_model *model,
                               int32_t stage);
/* The same where the layers before are known, as in a loop over all stages. */
static inline fr_stage_span fr_stage_span_from(const fr_plan *plan,
                                               const fr_model *model,
                                               int32_t stage, int32_t first)
{
    const bool is_last = stage == fr_stages_of(plan) - 1;
    return (fr_stage_span){
        .stage = stage,
        .first = first,
        .end = is_last ? (int32_t)(model->n_layers + model->n_mtp_layers)
                       : first + fr_plan_stage_layers(plan, model, stage),
        .has_embed = stage == 0,
        .has_head = is_last};
}

/* ... that is chunk `chunk` of a pipeline rank. */
fr_stage_span fr_stage_span_held(const fr_plan *plan, const fr_model *model,
                                 int32_t rank, int32_t chunk);

/* The pipeline rank that holds a virtual stage, and that of the head. */
static inline int32_t fr_stage_holder(const fr_plan *plan, int32_t stage)
{
    return fr_schedule_rank(fr_schedules[plan->schedule], stage, plan->pp);
}

static inline int32_t fr_stage_head_holder(const fr_plan *plan)
{
    return fr_stage_holder(plan, fr_stages_of(plan) - 1);
}

/* Do two ranks hold the matrix that the embedding shares with the head, or with
 * a layer that predicts later tokens? */
static inline bool fr_stages_are_tied_apart(const fr_plan *plan,
                                            const fr_model *model)
{
    return (model->is_tied || model->n_mtp_layers > 0) &&
           fr_stage_head_holder(plan) != 0;
}

/* Returns how many of the n layers of a stage are recomputed as a whole before
 * their backward: the first ones. */
static inline int32_t fr_stage_n_recomputed(const fr_plan *plan, int32_t n)
{
    if (plan->recompute != FR_RECOMPUTE_FULL)
        return 0;
    return plan->recompute_layers == 0 || plan->recompute_layers > n
               ? n
               : plan->recompute_layers;
}

#endif
