/* next_measurement.c: see next_measurement.h. */
#include "tuner/study/next_measurement.h"

#include "core/base/text.h"
#include "cost_models/stack/stack.h"
#include "cost_models/stack/stack_features.h"

#include <math.h>
#include <stdio.h>

static const double nominal = 0.9;

/* Chooses, among the plan and its changes that fit, the one whose measurement
 * narrows the comparison most. */
static void choose(const fr_stack *stack, const fr_run_features *own,
                   const char *own_plan, fr_explanation *out)
{
    fr_measurement *next = &out->next_measurement;
    const fr_plan_change *rival = out->n_fitting > 0 ? &out->changes[0] : NULL;
    const fr_run_features *other = rival != NULL ? &rival->features : NULL;
    fr_student told = fr_stack_difference(stack, own, other);
    next->half_width = sinh(fr_student_half_width(&told, nominal));
    next->narrows = fr_stack_gain(stack, own, other, own);
    snprintf(next->what, sizeof next->what, "this plan");
    fr_text_copy_cut(next->plan, sizeof next->plan, own_plan);
    if (rival != NULL)
        fr_text_copy_cut(next->rival, sizeof next->rival, rival->what);
    for (int i = 0; i < out->n_fitting; i++) {
        const fr_plan_change *change = &out->changes[i];
        double gain = fr_stack_gain(stack, own, other, &change->features);
        if (gain <= next->narrows)
            continue;
        next->narrows = gain;
        fr_text_copy_cut(next->what, sizeof next->what, change->what);
        fr_text_copy_cut(next->plan, sizeof next->plan, change->plan);
    }
}

fr_status fr_next_measurement(const fr_explain_request *request,
                              fr_explanation *out, fr_err *err)
{
    const fr_stack *stack = fr_cost_stack(request->costs);
    fr_stack *field = NULL;
    fr_run_point own;
    if (stack == NULL) {
        FR_TRY(
            fr_stack_create(fr_stack_prior_without(""), NULL, 0, &field, err));
        stack = field;
    }
    fr_stack_run_of(request->model, request->job, request->plan,
                    fr_cluster_device(request->cluster, 0), request->prediction,
                    request->prediction->expected_step_s, &own);
    choose(stack, &own.features, own.plan, out);
    fr_stack_destroy(field);
    return FR_OK;
}
