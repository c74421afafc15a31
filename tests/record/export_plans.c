/* export_plans.c: see export_plans.h. */
#include "tests/record/export_plans.h"

#include "plan/schedule/schedule.h"
#include "tests/record/random_plans.h"

void export_plans_job(fr_rng *rng, const fr_model *model, fr_job *out)
{
    fr_job_init(out);
    out->global_batch = 256 << fr_rng_below(rng, 3);
    out->seq = model->max_seq < 1024 ? model->max_seq : 1024;
    out->n_steps = 100 + (int64_t)fr_rng_below(rng, 1000);
    out->warmup_steps = (int64_t)fr_rng_below(rng, 100);
    out->seed = 1 + fr_rng_below(rng, 100000);
    out->optimizer =
        fr_rng_below(rng, 4) == 0 ? FR_OPTIMIZER_SGD : FR_OPTIMIZER_ADAMW;
    out->lr = 1e-5 * (double)(1 + fr_rng_below(rng, 500));
    out->lr_schedule = (fr_lr_schedule)fr_rng_below(rng, FR_LR_N);
    out->lr_min_frac = 0.125 * (double)fr_rng_below(rng, 3);
    out->weight_decay = 0.0375 * (double)fr_rng_below(rng, 4);
    out->clip_norm = 0.75 * (double)fr_rng_below(rng, 3);
    out->dropout = fr_rng_below(rng, 3) == 0 ? 0.125 : 0;
    out->beta2 = 0.9375;
}

/* The value of a field by itself; rules look at several. */
static bool allows(const fr_target *target, int item, const fr_plan *plan)
{
    const fr_target_field row = fr_target_item(target, item);
    const fr_field *field = &fr_plan_item_row(item)->field;
    if (field->kind == FR_FIELD_LIST)
        return row.fate != FR_FATE_REFUSED;
    double value = fr_field_get(field, plan);
    if (row.values == 0)
        return row.fate != FR_FATE_REFUSED || value == field->initial;
    unsigned bit = value < 0 ? 0 : value > 63 ? 63 : (unsigned)value;
    return (row.values >> bit & 1) != 0;
}

/* Makes legal what a random plan often is not. */
static void mend(const fr_model *model, fr_plan *plan)
{
    if (plan->schedule == FR_SCHEDULE_1F1B && plan->vpp > 1)
        plan->schedule = fr_schedule_usual(plan->vpp);
    if (plan->ep == 1)
        plan->is_ep_overlap = false;
    if (model->n_experts == 0)
        plan->expert_dispatch = FR_DISPATCH_ALL_TO_ALL;
    if (fr_plan_storage_dtype(plan) == FR_DTYPE_F32)
        plan->grad_dtype = FR_DTYPE_F32;
    if (plan->activation_offload_frac > 0)
        plan->activation_offload_frac = 0.5;
}

/* Fields as fr_plan_init() has them where the target has not their value. */
static void narrow(const fr_target *target, fr_plan *plan)
{
    for (int item = 0; item < FR_PLAN_ITEMS_N; item++) {
        const fr_field *field = &fr_plan_item_row(item)->field;
        if (!allows(target, item, plan))
            fr_field_set(field, field->initial, plan);
    }
}

bool export_plans_next(fr_rng *rng, const fr_target *target,
                       const fr_target *backend, const fr_model *model,
                       const fr_job *job, int64_t n_devices, fr_plan *out)
{
    enum { TRIES = 3000 };
    fr_err ignored;
    for (int i = 0; i < TRIES; i++) {
        fr_plan plan;
        random_plans_next(rng, model, n_devices, &plan);
        narrow(target, &plan);
        if (backend != NULL && target->backend_of(&plan) != backend)
            continue;
        if (backend != NULL)
            narrow(backend, &plan);
        mend(model, &plan);
        if ((backend == NULL || target->backend_of(&plan) == backend) &&
            fr_plan_check_lowerable(&plan, model, job, &ignored) == FR_OK) {
            *out = plan;
            return true;
        }
    }
    return false;
}
