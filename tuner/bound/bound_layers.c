/* bound_layers.c: see bound_layers.h. */
#include "tuner/bound/bound_layers.h"

#include "plan/schedule/schedule.h"

fr_status fr_bound_layers_work(fr_estimator *estimator, const fr_plan *plan,
                               bool is_split, fr_least_work *out, fr_err *err)
{
    fr_plan like = *plan;
    like.schedule = fr_schedule_plain(is_split);
    return fr_estimate_least_work(estimator, &like, out, err);
}

fr_status fr_bound_layers_find(fr_estimator *estimator,
                               const fr_plan_space_request *request,
                               const fr_plan *plan,
                               const fr_decision_list *pipelines,
                               const fr_decision_list *gradients,
                               fr_bound_layers *out, fr_err *err)
{
    fr_plan like = *plan;
    like.schedule = fr_schedule_plain(!pipelines->has_split[0]);
    FR_TRY(fr_estimate_headroom_of(estimator, &like, &out->headroom, err));
    out->state_bytes.n = 0;
    out->least_state_bytes = UINT64_MAX;
    for (size_t g = 0; g < gradients->groups.n; g++) {
        uint64_t bytes;
        const size_t i_free = gradients->groups.items[g].i_free;
        fr_plan_space_set(request, FR_DECISION_GRADIENTS,
                          &gradients->choices.items[i_free], &like);
        FR_TRY(fr_estimate_state(estimator, &like, pipelines->own_layers,
                                 &bytes, err));
        if (fr_vec_push(&out->state_bytes, bytes) != FR_OK)
            return fr_fail_no_memory(err);
        if (bytes < out->least_state_bytes)
            out->least_state_bytes = bytes;
    }
    return FR_OK;
}

void fr_bound_layers_release(fr_bound_layers *layers)
{
    fr_vec_release(&layers->state_bytes);
}
