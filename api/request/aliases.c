/* aliases.c: see aliases.h. */
#include "api/request/aliases.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Options of Megatron-LM, DeepSpeed, Hugging Face and torchtitan. */
static const fr_alias aliases[] = {
    {"mbs", FR_OPT_MICRO_BATCH, NULL},
    {"micro-batch-size", FR_OPT_MICRO_BATCH, NULL},
    {"per-device-train-batch-size", FR_OPT_MICRO_BATCH, NULL},
    {"gbs", FR_OPT_GLOBAL_BATCH, NULL},
    {"batch", FR_OPT_GLOBAL_BATCH, NULL},
    {"batch-size", FR_OPT_GLOBAL_BATCH, NULL},
    {"global-batch-size", FR_OPT_GLOBAL_BATCH, NULL},
    {"train-batch-size", FR_OPT_GLOBAL_BATCH, NULL},
    {"seq-len", FR_OPT_SEQ, NULL},
    {"seq-length", FR_OPT_SEQ, NULL},
    {"sequence", FR_OPT_SEQ, NULL},
    {"sequence-length", FR_OPT_SEQ, NULL},
    {"context-length", FR_OPT_SEQ, NULL},
    {"dtype", FR_OPT_PRECISION, NULL},
    {"bf16", FR_OPT_PRECISION, "bf16"},
    {"fp16", FR_OPT_PRECISION, "f16"},
    {"fp8", FR_OPT_PRECISION, "fp8"},
    {"data-parallel", FR_OPT_DP, NULL},
    {"data-parallel-size", FR_OPT_DP, NULL},
    {"tensor-parallel", FR_OPT_TP, NULL},
    {"tensor-parallel-size", FR_OPT_TP, NULL},
    {"tensor-model-parallel-size", FR_OPT_TP, NULL},
    {"pipeline-parallel", FR_OPT_PP, NULL},
    {"pipeline-parallel-size", FR_OPT_PP, NULL},
    {"pipeline-model-parallel-size", FR_OPT_PP, NULL},
    {"context-parallel", FR_OPT_CP, NULL},
    {"context-parallel-size", FR_OPT_CP, NULL},
    {"expert-parallel", FR_OPT_EP, NULL},
    {"expert-parallel-size", FR_OPT_EP, NULL},
    {"expert-model-parallel-size", FR_OPT_EP, NULL},
    {"fsdp", FR_OPT_ZERO, "3"},
    {"zero-stage", FR_OPT_ZERO, NULL},
    {"use-distributed-optimizer", FR_OPT_ZERO, "1"},
    {"gradient-checkpointing", FR_OPT_RECOMPUTE, "full"},
    {"activation-checkpointing", FR_OPT_RECOMPUTE, "full"},
    {"recompute-granularity", FR_OPT_RECOMPUTE, NULL},
    {"sp", FR_OPT_SEQUENCE_PARALLEL, "1"},
    {"flash", FR_OPT_FLASH_ATTENTION, "1"},
    {"flash-attn", FR_OPT_FLASH_ATTENTION, "1"},
    {"use-flash-attn", FR_OPT_FLASH_ATTENTION, "1"},
    {"cpu-offload", FR_OPT_OFFLOAD_OPTIMIZER, "1"},
    {"optimizer-cpu-offload", FR_OPT_OFFLOAD_OPTIMIZER, "1"},
    {"num-layers-per-virtual-pipeline-stage", FR_OPT_N,
     "say how many virtual stages a rank has: --vpp"},
    {"gradient-accumulation-steps", FR_OPT_N,
     "it follows from --global-batch: dp x micro-batch x steps"},
    {"grad-accum", FR_OPT_N,
     "it follows from --global-batch: dp x micro-batch x steps"},
    {"learning-rate", FR_OPT_LR, NULL},
    {"train-iters", FR_OPT_STEPS, NULL},
    {"max-steps", FR_OPT_STEPS, NULL},
    {"iterations", FR_OPT_STEPS, NULL},
    {"gpus", FR_OPT_RANKS, NULL},
    {"num-gpus", FR_OPT_RANKS, NULL},
    {"world-size", FR_OPT_RANKS, NULL},
    {"nproc-per-node", FR_OPT_RANKS_PER_NODE, NULL},
};

static const char *const values[][2] = {
    {"bfloat16", "bf16"}, {"float16", "f16"}, {"fp16", "f16"},
    {"half", "f16"},      {"float32", "f32"}, {"fp32", "f32"},
    {"float", "f32"},     {"float8", "fp8"},
};

const fr_alias *fr_alias_find(const char *name, size_t n)
{
    for (size_t i = 0; i < FR_LENGTH(aliases); i++)
        if (strlen(aliases[i].name) == n &&
            strncmp(aliases[i].name, name, n) == 0)
            return &aliases[i];
    return NULL;
}

const char *fr_alias_value(const char *text)
{
    for (size_t i = 0; i < FR_LENGTH(values); i++)
        if (strcmp(text, values[i][0]) == 0)
            return values[i][1];
    return text;
}
