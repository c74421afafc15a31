/*
 * model_hf_experts.h: what Hugging Face's config.json says of experts and of
 * the router that chooses them.
 */
#ifndef FR_SPEC_MODEL_HF_MODEL_HF_EXPERTS_H
#define FR_SPEC_MODEL_HF_MODEL_HF_EXPERTS_H

#include "core/document/json.h"
#include "spec/model/model.h"

/* The auxiliary loss, once it is known which layers have experts; `otherwise`:
 * its coefficient in the class of transformers. */
FR_CHECKED fr_status fr_hf_read_aux_loss(const fr_json_value *config,
                                         double otherwise, fr_model *model,
                                         fr_err *err);

/* Experts of Qwen's classes but for shared ones, and their auxiliary loss. */
FR_CHECKED fr_status fr_hf_read_qwen_experts(const fr_json_value *config,
                                             fr_model *model, fr_err *err);

/* DeepSeek's router, once the numbers of experts are known. */
FR_CHECKED fr_status fr_hf_read_deepseek_router(const fr_json_value *config,
                                                fr_model *model, fr_err *err);

#endif
