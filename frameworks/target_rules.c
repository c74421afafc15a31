/* target_rules.c: rules that several targets have. */
#include "frameworks/target_rows.h"

FR_TARGET_RULE(fr_has_even_stages)
{
    (void)job;
    return plan->n_split > 0 ||
           model->n_layers % ((int64_t)plan->pp * plan->vpp) == 0;
}

FR_TARGET_RULE(fr_shards_without_pipeline)
{
    (void)model;
    (void)job;
    return plan->zero_stage < 2 || plan->pp == 1;
}

FR_TARGET_RULE(fr_gathers_with_reduction)
{
    (void)model;
    (void)job;
    bool is_sharded = plan->zero_stage == 1 || plan->zero_stage == 2;
    return !is_sharded || !plan->is_gather_overlap || plan->is_overlap;
}
