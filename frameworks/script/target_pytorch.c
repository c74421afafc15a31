/*
 * target_pytorch.c: "pytorch", where nobody has said which wrapper: the script
 * of fully_shard with ZeRO 3, otherwise that of DDP.
 */
#include "frameworks/framework_list.h"

static const fr_target *backend_of(const fr_plan *plan)
{
    return fr_framework_pytorch.choose(plan)->target;
}

static const fr_target *const backends[] = {&fr_target_ddp, &fr_target_fsdp2,
                                            NULL};

static const fr_target_rule no_rules[] = {{.text = NULL}};

const fr_target fr_target_pytorch = {
    .name = "pytorch",
    .summary = "a training script for PyTorch DDP, or FSDP2 with ZeRO 3",
    .rules = no_rules,
    .backends = backends,
    .backend_of = backend_of,
    .backend_fields = FR_PLAN_BIT(ZERO),
};
