/* learned_step.c: see learned_step.h. */
#include "sim/predict/learned_step.h"

#include "cost_models/stack/stack_features.h"

#include <math.h>

static const double nominal = 0.9;

/* Each part by the factor of its share, all so that they add up to step_s. */
static void scale_parts(const fr_stack *stack, fr_prediction *out)
{
    double share[FR_RUN_SHARE_N], rest, sum = 0;
    fr_stack_factors(stack, &out->learned.features, share, &rest);
    for (int i = 0; i < FR_PART_N; i++) {
        out->breakdown_s[i] *= share[fr_stack_share_of((fr_part)i)];
        sum += out->breakdown_s[i];
    }
    for (int i = 0; i < FR_PART_N && sum > 0; i++)
        out->breakdown_s[i] *= out->step_s / sum;
}

static bool has_learned(const fr_stack *stack)
{
    return stack != NULL && fr_stack_n_used(stack) > 0;
}

double fr_expected_step_factor(const fr_cost_model *costs,
                               const fr_cluster *cluster, fr_kernel_set kernels)
{
    return kernels == FR_KERNELS_OWN || has_learned(fr_cost_stack(costs)) ||
                   fr_cluster_device(cluster, 0)->kind != FR_DEVICE_GPU
               ? 1
               : exp(fr_stack_prior_without("")->mean);
}

void fr_learned_step_apply(const fr_stack *stack, const fr_program *program,
                           const fr_device_type *device, fr_prediction *out)
{
    if (out->step_s <= 0 || !has_learned(stack))
        return;
    fr_run_features *features = &out->learned.features;
    fr_stack_features(&program->model, &program->job, &program->plan, device,
                      out->breakdown_s, features);
    fr_student told = fr_stack_at(stack, features);
    fr_student before = fr_stack_before(stack, features);
    double half = fr_student_half_width(&told, nominal);
    out->learned.n_runs = (int64_t)fr_stack_n_used(stack);
    out->learned.factor = exp(told.mean);
    out->learned.half_width = sinh(half);
    out->learned.half_width_prior =
        sinh(fr_student_half_width(&before, nominal));
    out->learned.left = fr_stack_left(stack, features, &out->learned.left_frac);
    out->step_s *= out->learned.factor;
    out->step_s_p5 = out->step_s * exp(-half);
    out->step_s_p95 = out->step_s * exp(half);
    scale_parts(stack, out);
}
