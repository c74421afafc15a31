#include "plan/outline/stages.h"

#include "plan/schedule/schedule.h"

int32_t fr_stage_first(const fr_plan *plan, const fr_model *model,
                       int32_t stage)
{
    const int32_t n_stages = fr_stages_of(plan);
    int32_t first = 0;
    if (stage == n_stages)
        return (int32_t)(model->n_layers + model->n_mtp_layers);
    if (plan->n_split == 0) { /* fr_plan_stage_layers(), summed */
        const int32_t rest = (int32_t)(model->n_layers % n_stages);
        const int32_t each = (int32_t)(model->n_layers / n_stages);
        return stage * each + (stage < rest ? stage : rest);
    }
    for (int32_t i = 0; i < stage; i++)
        first += plan->layer_split[i];
    return first;
}

/* The layers before those of the stage are known. */
static fr_stage_span span_from(const fr_plan *plan, const fr_model *model,
                               int32_t stage, int32_t first)
{
    const int32_t last = fr_stages_of(plan) - 1;
    return (fr_stage_span){
        .stage = stage,
        .first = first,
        .end = stage == last ? fr_stage_first(plan, model, last + 1)
                             : first + fr_plan_stage_layers(plan, model, stage),
        .has_embed = stage == 0,
        .has_head = stage == last};
}

fr_stage_span fr_stage_span_of(const fr_plan *plan, const fr_model *model,
                               int32_t stage)
{
    return span_from(plan, model, stage, fr_stage_first(plan, model, stage));
}

fr_stage_span fr_stage_span_after(const fr_plan *plan, const fr_model *model,
                                  const fr_stage_span *before)
{
    return span_from(plan, model, before->stage + 1, before->end);
}

fr_stage_span fr_stage_span_held(const fr_plan *plan, const fr_model *model,
                                 int32_t rank, int32_t chunk)
{
    const int32_t stage =
        fr_schedule_stage(fr_schedules[plan->schedule], rank, chunk, plan->pp);
    return fr_stage_span_of(plan, model, stage);
}

int32_t fr_stage_holder(const fr_plan *plan, int32_t stage)
{
    return fr_schedule_rank(fr_schedules[plan->schedule], stage, plan->pp);
}
