/*
 * target_horovod.c: Horovod 0.28 with PyTorch, in the script of
 * frameworks/script/template/train_horovod.py.  Sources: horovod/torch/
 * {optimizer,compression}.py, horovod/runner/common/util/config_parser.py.
 */
#include "frameworks/framework_list.h"
#include "frameworks/script/target_script.h"

static const fr_target_rule rules[] = {
    FR_SCRIPT_RULES_OF_MODEL("torch_model.py"), {.text = NULL}};

static const fr_target_field fields[FR_PLAN_FIELDS_N] = {
    FR_SCRIPT_FIELDS_OF_TORCH,
    FR_SCRIPT_FIELDS_OF_ONE_AXIS,
    FR_SCRIPT_FIELDS_OF_WHOLE_PARAMETERS,
    FR_SCRIPT_FIELDS_OF_PLAIN_GRADIENTS,
    FR_SCRIPT_FIELD_OF_NO_SCALER("torch.autocast"),
    [FR_PLAN_GRAD_DTYPE] = FR_IMPLIED_ONLY(
        FR_IS(FR_DTYPE_F32),
        "gradients have the parameters' dtype, float32 under autocast",
        "gradients have the parameters' dtype, float32 under autocast"),
    [FR_PLAN_COLLECTIVE] = FR_WRITTEN_ONLY(
        FR_IS(FR_COLLECTIVE_AUTO) | FR_IS(FR_COLLECTIVE_RING) |
            FR_IS(FR_COLLECTIVE_DOUBLE_TREE) | FR_IS(FR_COLLECTIVE_NVLS) |
            FR_IS(FR_COLLECTIVE_HIERARCHICAL),
        "NCCL_ALGO, HOROVOD_HIERARCHICAL_ALLREDUCE",
        "it has NCCL's ring, double-tree and nvls, and hierarchical"),
    [FR_PLAN_NCCL_PROTOCOL] = FR_WRITTEN("NCCL_PROTO"),
    [FR_PLAN_NCCL_CHANNELS] = FR_WRITTEN("NCCL_MIN_CTAS, NCCL_MAX_CTAS"),
    [FR_PLAN_SERVER_PLACE] = FR_REFUSED("it has no parameter servers"),
    [FR_PLAN_SERVERS] = FR_REFUSED("it has no parameter servers"),
    [FR_PLAN_ZERO] = FR_REFUSED("Horovod shards nothing"),
    [FR_PLAN_ZERO_GROUP] = FR_REFUSED("Horovod shards nothing"),
    [FR_PLAN_GATHER_OVERLAP] = FR_REFUSED("Horovod shards nothing"),
    [FR_PLAN_OVERLAP] =
        FR_IMPLIED_ONLY(FR_IS(true), "gradients are sent as they come",
                        "DistributedOptimizer sends gradients as they come"),
    [FR_PLAN_BUCKET] = FR_WRITTEN("HOROVOD_FUSION_THRESHOLD"),
    [FR_PLAN_OFFLOAD_OPTIMIZER] =
        FR_REFUSED("the optimizer steps where the parameters are"),
};

static const fr_target_field facts[FR_EXECUTION_FIELDS_N] = {
    FR_SCRIPT_FACTS_OF_TORCH,
    FR_SCRIPT_FACTS_OF_WHOLE_PARAMETERS,
    FR_SCRIPT_FACTS_OF_PLAIN_GRADIENTS,
};

const fr_target fr_target_horovod = {
    .name = "horovod",
    .summary = "a training script for Horovod",
    .fields = fields,
    .facts = facts,
    .rules = rules,
};
