/* stack_features.c: see stack_features.h. */
#include "cost_models/stack/stack_features.h"

#include "core/base/hash.h"

#include <math.h>
#include <string.h>

/* Units of the two fixed times, of the size that eager frameworks have; their
 * spread is the prior's (stack_prior.h). */
static const double launches_unit_s = 100e-6;
static const double step_unit_s = 10e-3;
/* A fixed time that is this many times the step says no more than that. */
static const double most_share = 3;

fr_run_share fr_stack_share_of(fr_part part)
{
    switch (part) {
    case FR_PART_COMPUTE:
        return FR_RUN_COMPUTE;
    case FR_PART_EXPOSED_TP:
    case FR_PART_EXPOSED_CP:
        return FR_RUN_TENSOR;
    case FR_PART_EXPOSED_EP:
        return FR_RUN_EXPERTS;
    case FR_PART_EXPOSED_PP:
    case FR_PART_BUBBLE:
        return FR_RUN_PIPELINE;
    case FR_PART_EXPOSED_DP:
        return FR_RUN_GRADIENTS;
    case FR_PART_STRAGGLERS:
    case FR_PART_HOST:
        return FR_RUN_WAITS;
    default:
        return FR_RUN_OPTIMIZER;
    }
}

static double log_size(double x)
{
    return log2(fmax(x, 1));
}

/* Small enough to be exact wherever it is written. */
static double kind_of(const void *bytes, size_t n)
{
    return (double)(fr_hash_bytes(bytes, n, 0) & 0xffffff);
}

void fr_stack_features(const fr_model *model, const fr_job *job,
                       const fr_plan *plan, const fr_device_type *device,
                       const double breakdown_s[FR_PART_N],
                       fr_run_features *out)
{
    double step_s = 0;
    fr_run_features f;
    memset(&f, 0, sizeof f);
    for (int i = 0; i < FR_PART_N; i++)
        step_s += fmax(breakdown_s[i], 0);
    if (step_s <= 0)
        step_s = 1;
    for (int i = 0; i < FR_PART_N; i++)
        f.share[fr_stack_share_of((fr_part)i)] +=
            fmax(breakdown_s[i], 0) / step_s;
    double passes = (double)fr_plan_micro_batches(plan, job) *
                    (double)model->n_layers / plan->pp;
    f.share[FR_RUN_LAUNCHES] =
        fmin(fmax(passes, 1) * launches_unit_s / step_s, most_share);
    f.share[FR_RUN_STEP] = fmin(step_unit_s / step_s, most_share);
    f.size[FR_RUN_SIZE_HIDDEN] = log_size((double)model->hidden);
    f.size[FR_RUN_SIZE_ROWS] =
        log_size((double)plan->micro_batch * (double)job->seq / plan->cp);
    f.size[FR_RUN_SIZE_SEQ] = log_size((double)job->seq);
    f.size[FR_RUN_SIZE_RANKS] = log_size((double)fr_plan_world(plan));
    f.size[FR_RUN_SIZE_TP] = log_size(plan->tp);
    f.size[FR_RUN_SIZE_CP] = log_size(plan->cp);
    f.size[FR_RUN_SIZE_PP] = log_size(plan->pp);
    const int precision[] = {(int)plan->precision,
                             (int)plan->execution.scaling};
    const int kernels[] = {
        (int)plan->execution.kernels, (int)plan->execution.cuda_graphs,
        (int)plan->recompute,         (int)plan->recompute_parts,
        (int)plan->is_tp_overlap,     (int)plan->expert_dispatch,
        (int)plan->is_ep_overlap,
    };
    /* The kind of the layout is the set of axes in use: each axis runs
     * different code. */
    const int layout[] = {plan->tp > 1, plan->cp > 1, plan->pp > 1,
                          plan->ep > 1, plan->zero_stage == 3};
    f.kind[FR_RUN_KIND_LAYOUT] = kind_of(layout, sizeof layout);
    f.kind[FR_RUN_KIND_DEVICE] = kind_of(device->id, strlen(device->id));
    f.kind[FR_RUN_KIND_PRECISION] = kind_of(precision, sizeof precision);
    f.kind[FR_RUN_KIND_KERNELS] = kind_of(kernels, sizeof kernels);
    f.kind[FR_RUN_KIND_MODEL] = (double)model->n_experts;
    *out = f;
}

void fr_stack_run_of(const fr_model *model, const fr_job *job,
                     const fr_plan *plan, const fr_device_type *device,
                     const fr_prediction *prediction, double measured_s,
                     fr_run_point *out)
{
    fr_run_point run = {.measured_s = measured_s,
                        .predicted_s = prediction->step_s};
    fr_plan_describe(plan, run.plan, sizeof run.plan);
    if (prediction->learned.n_runs > 0) {
        run.predicted_s /= prediction->learned.factor;
        run.features = prediction->learned.features;
    } else {
        fr_stack_features(model, job, plan, device, prediction->breakdown_s,
                          &run.features);
    }
    *out = run;
}
