/*
 * target_tensorflow.c: TensorFlow 2 in the script of
 * frameworks/script/template/ train_tensorflow.py.  Source:
 * tensorflow/python/distribute/
 * {mirrored_strategy,collective_all_reduce_strategy,
 * parameter_server_strategy_v2,collective_util}.py.
 */
#include "frameworks/framework_list.h"
#include "frameworks/script/target_script.h"

static const fr_target_rule rules[] = {
    FR_SCRIPT_RULES_OF_ARRAYS,
    FR_SCRIPT_RULES_OF_MODEL("array_model.py"),
    {.text = NULL}};

static const fr_target_field fields[FR_PLAN_FIELDS_N] = {
    FR_SCRIPT_FIELDS_OF_ONE_AXIS,
    FR_SCRIPT_FIELDS_OF_WHOLE_PARAMETERS,
    FR_SCRIPT_FIELDS_OF_PLAIN_GRADIENTS,
    [FR_PLAN_DP] = FR_WRITTEN("replicas of the strategy"),
    [FR_PLAN_MICRO_BATCH] = FR_WRITTEN("PLAN[\"micro_batch\"]"),
    [FR_PLAN_COLLECTIVE] = FR_WRITTEN_ONLY(
        FR_IS(FR_COLLECTIVE_AUTO) | FR_IS(FR_COLLECTIVE_RING) |
            FR_IS(FR_COLLECTIVE_DOUBLE_TREE) | FR_IS(FR_COLLECTIVE_NVLS) |
            FR_IS(FR_COLLECTIVE_PARAMETER_SERVER),
        "the strategy, CommunicationImplementation, NCCL_ALGO",
        "it has NCCL, its own ring, and parameter servers"),
    [FR_PLAN_NCCL_PROTOCOL] = FR_WRITTEN("NCCL_PROTO"),
    [FR_PLAN_NCCL_CHANNELS] = FR_WRITTEN("NCCL_MIN_CTAS, NCCL_MAX_CTAS"),
    [FR_PLAN_SERVER_PLACE] =
        FR_IMPLIED_ONLY(FR_IS(FR_SERVER_WORKER), "each worker pushes by itself",
                        "a worker of ParameterServerStrategy pushes by itself: "
                        "server_place worker"),
    [FR_PLAN_SERVERS] = FR_WRITTEN("tasks ps of TF_CONFIG"),
    [FR_PLAN_ZERO] = FR_REFUSED("its strategies mirror all parameters"),
    [FR_PLAN_ZERO_GROUP] = FR_REFUSED("its strategies mirror all parameters"),
    [FR_PLAN_GATHER_OVERLAP] = FR_REFUSED("of ZeRO 1 and 2 alone"),
    [FR_PLAN_OVERLAP] = FR_IMPLIED_ONLY(
        FR_IS(false), "gradients of a step are reduced once all are there",
        "the script reduces all gradients once they are there"),
    [FR_PLAN_BUCKET] = FR_WRITTEN("bytes_per_pack, num_packs"),
    [FR_PLAN_RECOMPUTE] = FR_WRITTEN_ONLY(
        FR_IS(FR_RECOMPUTE_NONE) | FR_IS(FR_RECOMPUTE_FULL),
        "tf.recompute_grad of layers", "tf.recompute_grad is for whole layers"),
    [FR_PLAN_RECOMPUTE_PARTS] = FR_REFUSED("of selective alone"),
    [FR_PLAN_RECOMPUTE_LAYERS] =
        FR_WRITTEN("tf.recompute_grad of the first layers"),
    [FR_PLAN_FLASH_ATTENTION] = FR_IMPLIED_ONLY(
        FR_IS(false), "attention is products and a softmax",
        "TensorFlow has no fused attention; --no-flash-attention"),
    FR_SCRIPT_FIELDS_OF_ARRAYS("enable_tensor_float_32_execution"),
    [FR_PLAN_THREADS] = FR_PREDICTED("TensorFlow has a pool of its own"),
};

static const fr_target_field facts[FR_EXECUTION_FIELDS_N] = {
    FR_SCRIPT_FACTS,
    FR_SCRIPT_FACTS_OF_WHOLE_PARAMETERS,
    FR_SCRIPT_FACTS_OF_PLAIN_GRADIENTS,
    [FR_EXECUTION_KERNELS] = FR_PREDICTED("kernels are TensorFlow's own"),
    [FR_EXECUTION_CUDA_GRAPHS] = FR_REFUSED("the script captures no graphs"),
};

const fr_target fr_target_tensorflow = {
    .name = "tensorflow",
    .summary = "a training script for TensorFlow's strategies",
    .fields = fields,
    .facts = facts,
    .rules = rules,
};
