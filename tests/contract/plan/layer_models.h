/*
 * layer_models.h: small models of every kind, and a job and a plan for them.
 */
#ifndef FR_TESTS_CONTRACT_PLAN_LAYER_MODELS_H
#define FR_TESTS_CONTRACT_PLAN_LAYER_MODELS_H

#include "program/ir/program.h"

typedef struct layer_model {
    const char *name;
    fr_model (*make)(void);
} layer_model;

extern const layer_model layer_models[];
extern const int n_layer_models;

fr_model layer_model_gpt(void);
fr_model layer_model_llama(void);
fr_model layer_model_mixtral(void);
fr_model layer_model_qwen_moe(void);
fr_model layer_model_deepseek(void);
fr_model layer_model_deepseek_mtp(void);
fr_model layer_model_neox(void);
fr_model layer_model_bert(void);
fr_model layer_model_vit(void);
fr_model layer_model_list(void);

/* 16 sequences of 128 tokens. */
fr_job layer_small_job(void);
/* bf16, fused attention, micro-batches of 2, one rank. */
fr_plan layer_bf16_plan(void);
/* NULL (and a failed check) if it cannot be lowered. */
fr_program *layer_lower(const fr_model *model, const fr_job *job,
                        const fr_plan *plan);

#endif
