/*
 * target_script.h: what the training scripts that are exported have alike:
 * rows of fields, rules about the model.  Private to the tables target_*.c.
 */
#ifndef FR_FRAMEWORKS_SCRIPT_TARGET_SCRIPT_H
#define FR_FRAMEWORKS_SCRIPT_TARGET_SCRIPT_H

#include "frameworks/target_rows.h"
#include "plan/schedule/schedule.h"

/* Data parallelism is their only axis. */
#define FR_SCRIPT_FIELDS_OF_ONE_AXIS                                           \
    [FR_PLAN_TP] = FR_REFUSED("the script splits no layer (torchtitan and "    \
                              "megatron do)"),                                 \
    [FR_PLAN_PP] = FR_REFUSED("the script has no pipeline"),                   \
    [FR_PLAN_CP] = FR_REFUSED("the script splits no sequence"),                \
    [FR_PLAN_SEQUENCE_PARALLEL] = FR_REFUSED("of tp alone"),                   \
    [FR_PLAN_TP_OVERLAP] = FR_REFUSED("of tp alone"),                          \
    FR_SCRIPT_FIELDS_OF_OTHERS, FR_SCRIPT_FIELDS_OF_NO_PIPELINE

#define FR_SCRIPT_FIELDS_OF_NO_PIPELINE                                        \
    [FR_PLAN_VPP] = FR_REFUSED("the script has no pipeline"),                  \
    [FR_PLAN_SCHEDULE] = FR_REFUSED("the script has no pipeline"),             \
    [FR_PLAN_LAYER_SPLIT] = FR_IMPLIED("one stage has all layers"),            \
    FR_TARGET_SHARES

#define FR_SCRIPT_FIELDS_OF_OTHERS                                             \
    FR_SCRIPT_FIELDS_OF_EXPERTS,                                               \
        [FR_PLAN_RANK_ORDER] = FR_IMPLIED("dp is the only axis"),              \
        [FR_PLAN_CP_KIND] = FR_REFUSED("the script splits no sequence")

#define FR_SCRIPT_FIELDS_OF_EXPERTS                                            \
    [FR_PLAN_EP] = FR_REFUSED("the script has no experts"),                    \
    [FR_PLAN_EP_OVERLAP] = FR_REFUSED("the script has no experts"),            \
    [FR_PLAN_ETP] = FR_REFUSED("the script has no experts"),                   \
    [FR_PLAN_EXPERT_DISPATCH] = FR_REFUSED("the script has no experts"),       \
    [FR_PLAN_EXPERT_CAPACITY] = FR_REFUSED("the script has no experts"),       \
    [FR_PLAN_EXPERT_PAD] = FR_REFUSED("the script has no experts")

/* Facts of the loss. */
#define FR_SCRIPT_FACTS                                                        \
    [FR_EXECUTION_LOSS_FUSED] =                                                \
        FR_PREDICTED("the loss is float32; a compiler may "                    \
                     "fuse it")

/* Facts of the layers of torch_model.py. */
#define FR_SCRIPT_FACTS_OF_TORCH                                               \
    FR_SCRIPT_FACTS,                                                           \
        [FR_EXECUTION_KERNELS] =                                               \
            FR_WRITTEN("torch.compile where compiled, else "                   \
                       "PyTorch's own, one an operator"),                      \
        [FR_EXECUTION_CUDA_GRAPHS] =                                           \
            FR_REFUSED("the script captures no graphs")

/* Facts of scripts whose parameters are whole on every rank, and whose
 * gradients are sent as they are. */
#define FR_SCRIPT_FACTS_OF_WHOLE_PARAMETERS                                    \
    [FR_EXECUTION_ZERO_UNIT] = FR_REFUSED("of ZeRO 3 alone")
#define FR_SCRIPT_FACTS_OF_PLAIN_GRADIENTS                                     \
    [FR_EXECUTION_COMPRESS_BY] = FR_REFUSED("it sends gradients as they are")

/* Layers of the model of torch_model.py. */
#define FR_SCRIPT_FIELDS_OF_TORCH                                              \
    [FR_PLAN_DP] = FR_WRITTEN("ranks of the launcher"),                        \
    [FR_PLAN_MICRO_BATCH] = FR_WRITTEN("PLAN[\"micro_batch\"]"),               \
    [FR_PLAN_RECOMPUTE] = FR_WRITTEN("torch.utils.checkpoint"),                \
    [FR_PLAN_RECOMPUTE_PARTS] = FR_WRITTEN_ONLY(                               \
        FR_IS(1) | FR_IS(8) | FR_IS(9), "torch.utils.checkpoint of parts",     \
        "checkpoint() makes attention (1) and MLPs (8) again; parts whose"     \
        " result alone is dropped it cannot"),                                 \
    [FR_PLAN_RECOMPUTE_LAYERS] =                                               \
        FR_WRITTEN("torch.utils.checkpoint of the first layers"),              \
    [FR_PLAN_FLASH_ATTENTION] = FR_WRITTEN("F.scaled_dot_product_attention"),  \
    [FR_PLAN_OFFLOAD_ACTIVATIONS] =                                            \
        FR_WRITTEN("torch.autograd.graph.save_on_cpu of the first layers"),    \
    [FR_PLAN_THREADS] = FR_WRITTEN("torch.set_num_threads on CPUs")

#define FR_SCRIPT_FIELDS_OF_AUTOCAST                                           \
    [FR_PLAN_PRECISION] = FR_WRITTEN_ONLY(                                     \
        FR_IS(FR_DTYPE_F32) | FR_IS(FR_DTYPE_TF32) | FR_IS(FR_DTYPE_BF16) |    \
            FR_IS(FR_DTYPE_F16),                                               \
        "torch.autocast", "autocast has no data type below 16 bits"),          \
    [FR_PLAN_GRAD_DTYPE] = FR_IMPLIED_ONLY(                                    \
        FR_IS(FR_DTYPE_F32),                                                   \
        "gradients have the parameters' dtype, "                               \
        "float32 under autocast",                                              \
        "gradients have the parameters' dtype, float32 under autocast")

/* Parameters are whole on every rank. */
#define FR_SCRIPT_FIELDS_OF_WHOLE_PARAMETERS                                   \
    [FR_PLAN_ZERO_RESHARD] = FR_REFUSED("of ZeRO 3 alone"),                    \
    [FR_PLAN_ZERO_PREFETCH] = FR_REFUSED("of ZeRO 3 alone")

/* Gradients are sent as they are. */
#define FR_SCRIPT_FIELDS_OF_PLAIN_GRADIENTS                                    \
    [FR_PLAN_COMPRESS] = FR_REFUSED("it sends gradients as they are"),         \
    [FR_PLAN_COMPRESSOR_RANK] = FR_REFUSED("it has no PowerSGD"),              \
    [FR_PLAN_COMPRESSOR_DENSITY] = FR_REFUSED("it has no top-k"),              \
    [FR_PLAN_ERROR_FEEDBACK] = FR_REFUSED("it keeps no residuals")

/* The fields of DDP and of fully_shard, which Ray runs, too. */
extern const fr_target_field fr_target_ddp_fields[FR_PLAN_FIELDS_N],
    fr_target_fsdp2_fields[FR_PLAN_FIELDS_N];
extern const fr_target_field fr_target_ddp_facts[FR_EXECUTION_FIELDS_N],
    fr_target_fsdp2_facts[FR_EXECUTION_FIELDS_N];

/* Rules on the arithmetic of models that the scripts have. */
FR_TARGET_RULE(fr_script_is_decoder);
FR_TARGET_RULE(fr_script_is_dense);
FR_TARGET_RULE(fr_script_has_plain_attention);
FR_TARGET_RULE(fr_script_has_plain_positions);

FR_TARGET_RULE(fr_script_has_no_dropout);

#define FR_SCRIPT_RULES_OF_ARRAYS                                              \
    {                                                                          \
        .text = "dropout 0: the model of the script has none",                 \
        .source = "frameworks/script/template/array_model.py",                 \
        .holds = fr_script_has_no_dropout                                      \
    }

#define FR_SCRIPT_RULES_OF_MODEL(file)                                         \
    {.text = "a decoder: its script has no encoders and no lists of layers",   \
     .source = "frameworks/script/template/" file,                             \
     .holds = fr_script_is_decoder},                                           \
        {.text = "a dense model: its script has no experts (megatron, "        \
                 "deepspeed and torchtitan have)",                             \
         .source = "frameworks/script/template/" file,                         \
         .holds = fr_script_is_dense},                                         \
        {.text = "plain or grouped-query attention and no layers of later "    \
                 "tokens (megatron has both)",                                 \
         .source = "frameworks/script/template/" file,                         \
         .holds = fr_script_has_plain_attention},                              \
    {                                                                          \
        .text = "rotary frequencies and an embedding that are not scaled",     \
        .source = "frameworks/script/template/" file,                          \
        .holds = fr_script_has_plain_positions                                 \
    }

/* f32, tf32 and bf16 by `how`: losses are not scaled. */
#define FR_SCRIPT_FIELD_OF_NO_SCALER(how)                                      \
    [FR_PLAN_PRECISION] = FR_WRITTEN_ONLY(                                     \
        FR_IS(FR_DTYPE_F32) | FR_IS(FR_DTYPE_TF32) | FR_IS(FR_DTYPE_BF16),     \
        how,                                                                   \
        "the script scales no losses, as f16 needs, and has no dtype below "   \
        "16 bits")

/* The same of programs over arrays, whose weights are float32. */
#define FR_SCRIPT_FIELDS_OF_ARRAYS(products)                                   \
    [FR_PLAN_PRECISION] = FR_WRITTEN_ONLY(                                     \
        FR_IS(FR_DTYPE_F32) | FR_IS(FR_DTYPE_TF32) | FR_IS(FR_DTYPE_BF16),     \
        "dtype of activations, " products,                                     \
        "the script has f32, tf32 and "                                        \
        "bf16"),                                                               \
    [FR_PLAN_GRAD_DTYPE] = FR_IMPLIED_ONLY(                                    \
        FR_IS(FR_DTYPE_F32), "weights are float32, so are their gradients",    \
        "weights are float32, so are their gradients"),                        \
    [FR_PLAN_OFFLOAD_OPTIMIZER] = FR_REFUSED("the state lies on the devices"), \
    [FR_PLAN_OFFLOAD_ACTIVATIONS] = FR_REFUSED("they lie on the devices")

#endif
