/* stages.c: see stages.h. */
#include "plan/outline/stages.h"

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

fr_stage_span fr_stage_span_of(const fr_plan *plan, const fr_model *model,
                               int32_t stage)
{
    return fr_stage_span_from(plan, model, stage,
                              fr_stage_first(plan, model, stage));
}

fr_stage_span fr_stage_span_held(const fr_plan *plan, const fr_model *model,
                                 int32_t rank, int32_t chunk)
{
    const int32_t stage =
        fr_schedule_stage(fr_schedules[plan->schedule], rank, chunk, plan->pp);
    return fr_stage_span_of(plan, model, stage);
}
