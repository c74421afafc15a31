/*
 * model_hf_rope.h: rotary positions in Hugging Face's config.json, which has
 * them in rope_scaling, or (transformers 5) in rope_parameters.
 */
#ifndef FR_SPEC_MODEL_HF_MODEL_HF_ROPE_H
#define FR_SPEC_MODEL_HF_MODEL_HF_ROPE_H

#include "core/document/json.h"
#include "spec/model/model.h"

/* After max_seq, which stands for an original length that is not given. */
FR_CHECKED fr_status fr_model_hf_read_rope(const fr_json_value *config,
                                           fr_model *model, fr_err *err);
void fr_model_hf_put_rope(const fr_model *model, fr_json_writer *json);

#endif
