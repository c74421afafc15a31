/*
 * target_fsdp2.c: PyTorch's fully_shard in the script of
 * frameworks/script/template/train_fsdp2.py.  Sources: torch/distributed/fsdp/
 * _fully_shard/_fully_shard.py and _fsdp_api.py of PyTorch 2.
 */
#include "frameworks/framework_list.h"
#include "frameworks/script/target_script.h"

/* A trust ratio needs the norm of a whole tensor, and each rank has a part. */
static FR_TARGET_RULE(has_elementwise_optimizer)
{
    (void)plan;
    (void)model;
    return job->optimizer == FR_OPTIMIZER_ADAMW ||
           job->optimizer == FR_OPTIMIZER_SGD;
}

static const fr_target_rule rules[] = {
    {.text = "adamw or sgd: norms of lars and lamb are of whole tensors",
     .source = "frameworks/script/template/torch_optimizer.py",
     .holds = has_elementwise_optimizer},
    FR_SCRIPT_RULES_OF_MODEL("torch_model.py"),
    {.text = NULL}};

const fr_target_field fr_target_fsdp2_fields[FR_PLAN_FIELDS_N] = {
    FR_SCRIPT_FIELDS_OF_TORCH,
    FR_SCRIPT_FIELDS_OF_ONE_AXIS,
    FR_TARGET_FIELDS_OF_NCCL,
    FR_SCRIPT_FIELDS_OF_PLAIN_GRADIENTS,
    FR_SCRIPT_FIELD_OF_NO_SCALER("MixedPrecisionPolicy(param_dtype)"),
    [FR_PLAN_GRAD_DTYPE] =
        FR_WRITTEN_ONLY(FR_IS(FR_DTYPE_F32) | FR_IS(FR_DTYPE_BF16),
                        "MixedPrecisionPolicy(reduce_dtype); sums are float32",
                        "gradients are sent as f32 or bf16"),
    [FR_PLAN_ZERO] = FR_WRITTEN_ONLY(
        FR_IS(1) | FR_IS(2) | FR_IS(3),
        "set_reshard_after_backward, set_requires_gradient_sync",
        "the script shards optimizer state at least; ddp has zero 0"),
    [FR_PLAN_ZERO_GROUP] = FR_WRITTEN("the mesh: (replicate, shard)"),
    [FR_PLAN_ZERO_RESHARD] = FR_WRITTEN("reshard_after_forward"),
    [FR_PLAN_ZERO_PREFETCH] = FR_WRITTEN_ONLY(
        ~FR_IS(0), "set_modules_to_forward_prefetch",
        "it gathers the next layer beside the one that runs in any case"),
    [FR_PLAN_GATHER_OVERLAP] =
        FR_IMPLIED_ONLY(FR_IS(true), "layers are gathered beside forward",
                        "fully_shard gathers layers beside forward; ddp with "
                        "zero 1 gathers after its step"),
    [FR_PLAN_OVERLAP] =
        FR_IMPLIED_ONLY(FR_IS(true), "gradients are reduced beside backward",
                        "fully_shard reduces beside backward"),
    [FR_PLAN_BUCKET] = FR_IMPLIED("a layer's gradients are reduced as one"),
    [FR_PLAN_OFFLOAD_OPTIMIZER] =
        FR_WRITTEN("CPUOffloadPolicy, which has the sharded parameters on the "
                   "host, too"),
};

const fr_target_field fr_target_fsdp2_facts[FR_EXECUTION_FIELDS_N] = {
    FR_SCRIPT_FACTS_OF_TORCH,
    FR_SCRIPT_FACTS_OF_PLAIN_GRADIENTS,
    [FR_EXECUTION_ZERO_UNIT] = FR_IMPLIED_ONLY(
        FR_IS(FR_ZERO_UNIT_LAYER), "fully_shard is called for each layer",
        "fully_shard is called for each layer"),
};

const fr_target fr_target_fsdp2 = {
    .name = "fsdp2",
    .summary = "a training script for PyTorch's fully_shard",
    .fields = fr_target_fsdp2_fields,
    .facts = fr_target_fsdp2_facts,
    .rules = rules,
};
