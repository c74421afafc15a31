/*
 * target_difference.c: a plan that was read from a target's files, against the
 * plan that they were written from.
 */
#include "frameworks/target.h"

#include <string.h>

bool fr_target_is_elsewhere(const fr_target *target, int item)
{
    const fr_target_field row = fr_target_item(target, item);
    if (item >= FR_PLAN_FIELDS_N)
        return false;
    return row.fate == FR_FATE_PREDICTED || row.is_in_code ||
           strncmp(row.how, "--", 2) == 0 || item == FR_PLAN_COLLECTIVE ||
           item == FR_PLAN_NCCL_PROTOCOL || item == FR_PLAN_NCCL_CHANNELS;
}

/* 0 ranks that share a copy are all of them. */
static int64_t zero_group_of(const fr_plan *plan)
{
    return plan->zero_group > 0 ? plan->zero_group
                                : (int64_t)plan->dp * plan->cp;
}

/* 0 ranks that split an expert are those that split the rest. */
static int32_t etp_of(const fr_plan *plan)
{
    return plan->etp > 0 ? plan->etp : plan->tp;
}

static bool is_same(int item, const fr_plan *was, const fr_plan *is)
{
    if (item == FR_PLAN_ZERO_GROUP)
        return zero_group_of(was) == zero_group_of(is);
    if (item == FR_PLAN_ETP)
        return etp_of(was) == etp_of(is);
    return fr_field_is_same(&fr_plan_item_row(item)->field, was, is);
}

/* Has nothing of the model or the precision the value? */
static bool is_idle(int item, const fr_plan_file *file)
{
    if (item == FR_PLAN_EXPERT_DISPATCH && file->plan.ep == 1)
        return true;
    if (item == FR_PLAN_ETP || item == FR_PLAN_EXPERT_DISPATCH ||
        item == FR_PLAN_EXPERT_CAPACITY || item == FR_PLAN_EXPERT_PAD)
        return file->model.n_experts == 0;
    return item == FR_FACT(SCALING) && file->plan.precision != FR_DTYPE_FP8;
}

int fr_target_difference(const fr_target *target, const fr_plan_file *was,
                         const fr_plan *is)
{
    for (int i = 0; i < FR_PLAN_ITEMS_N; i++) {
        const int item = fr_plan_items[i];
        if (!is_idle(item, was) && !fr_target_is_elsewhere(target, item) &&
            fr_plan_field_is_used(&was->plan, item) &&
            !is_same(item, &was->plan, is))
            return item;
    }
    return -1;
}
