/*
 * target_ddp.c: PyTorch's DistributedDataParallel in the script of
 * frameworks/script/template/train_ddp.py.  Sources: torch/nn/parallel/
 * distributed.py, torch/distributed/optim/zero_redundancy_optimizer.py,
 * torch/distributed/algorithms/ddp_comm_hooks of PyTorch 1.13 and 2.
 */
#include "frameworks/framework_list.h"
#include "frameworks/script/target_script.h"

/* A communication hook is called by DDP's reducer, that is beside backward. */
static FR_TARGET_RULE(has_hook_with_overlap)
{
    (void)model;
    (void)job;
    return plan->is_overlap || plan->compressor != FR_COMPRESSOR_POWERSGD;
}

static const fr_target_rule rules[] = {
    {.text = "overlap with PowerSGD, whose hook DDP calls beside backward",
     .source = "torch/nn/parallel/distributed.py, register_comm_hook",
     .fields = FR_PLAN_BIT(OVERLAP) | FR_PLAN_BIT(COMPRESS),
     .holds = has_hook_with_overlap},
    FR_SCRIPT_RULES_OF_MODEL("torch_model.py"),
    {.text = NULL}};

const fr_target_field fr_target_ddp_fields[FR_PLAN_FIELDS_N] = {
    FR_SCRIPT_FIELDS_OF_TORCH,
    FR_SCRIPT_FIELDS_OF_AUTOCAST,
    FR_SCRIPT_FIELDS_OF_ONE_AXIS,
    FR_SCRIPT_FIELDS_OF_WHOLE_PARAMETERS,
    FR_TARGET_FIELDS_OF_NCCL,
    [FR_PLAN_ZERO] = FR_WRITTEN_ONLY(
        FR_IS(0) | FR_IS(1), "ZeroRedundancyOptimizer",
        "DDP keeps gradients and parameters whole; fsdp2 shards them"),
    [FR_PLAN_ZERO_GROUP] = FR_WRITTEN("ZeroRedundancyOptimizer(process_group)"),
    [FR_PLAN_GATHER_OVERLAP] = FR_IMPLIED_ONLY(
        FR_IS(false), "ZeroRedundancyOptimizer sends parameters after its step",
        "ZeroRedundancyOptimizer sends parameters after its step"),
    [FR_PLAN_OVERLAP] = FR_WRITTEN("DDP, or all_reduce after backward"),
    [FR_PLAN_BUCKET] = FR_WRITTEN("bucket_cap_mb"),
    [FR_PLAN_COMPRESS] =
        FR_WRITTEN_ONLY(FR_IS(FR_COMPRESSOR_NONE) | FR_IS(FR_COMPRESSOR_BF16) |
                            FR_IS(FR_COMPRESSOR_POWERSGD),
                        "bf16_compress_hook, powerSGD_hook",
                        "DDP's communication hooks are bf16 and PowerSGD"),
    [FR_PLAN_COMPRESSOR_RANK] = FR_WRITTEN("matrix_approximation_rank"),
    [FR_PLAN_COMPRESSOR_DENSITY] = FR_REFUSED("DDP has no top-k hook"),
    [FR_PLAN_ERROR_FEEDBACK] = FR_WRITTEN("use_error_feedback"),
    [FR_PLAN_OFFLOAD_OPTIMIZER] =
        FR_REFUSED("the optimizer steps where the parameters are; fsdp2 has "
                   "CPUOffloadPolicy"),
};

const fr_target_field fr_target_ddp_facts[FR_EXECUTION_FIELDS_N] = {
    FR_SCRIPT_FACTS_OF_TORCH,
    FR_SCRIPT_FACTS_OF_WHOLE_PARAMETERS,
    [FR_EXECUTION_COMPRESS_BY] = FR_IMPLIED_ONLY(
        FR_IS(FR_COMPRESS_BUCKET), "hooks are called for buckets",
        "hooks are called for buckets"),
};

const fr_target fr_target_ddp = {
    .name = "ddp",
    .summary = "a training script for PyTorch DDP",
    .fields = fr_target_ddp_fields,
    .facts = fr_target_ddp_facts,
    .rules = rules,
};
