/* target_script.c: rules of the training scripts that are exported. */
#include "frameworks/script/target_script.h"

FR_TARGET_RULE(fr_script_is_decoder)
{
    (void)plan;
    (void)job;
    return model->kind == FR_MODEL_DECODER && model->traits == 0 &&
           fr_model_is_unmarked(model);
}

FR_TARGET_RULE(fr_script_is_dense)
{
    (void)plan;
    (void)job;
    return model->n_experts == 0;
}

FR_TARGET_RULE(fr_script_has_plain_attention)
{
    (void)plan;
    (void)job;
    return model->kv_lora_rank == 0 && model->n_mtp_layers == 0;
}

FR_TARGET_RULE(fr_script_has_plain_positions)
{
    (void)plan;
    (void)job;
    return !model->has_rope_scaling && !model->has_scaled_embedding;
}

FR_TARGET_RULE(fr_script_has_no_dropout)
{
    (void)plan;
    (void)model;
    return job->dropout == 0;
}
