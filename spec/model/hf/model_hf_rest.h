/*
 * model_hf_rest.h: what a Hugging Face config.json has beside the transformer:
 * towers of a wrapper (vision, audio) and heads other than that of language.
 */
#ifndef FR_SPEC_MODEL_HF_MODEL_HF_REST_H
#define FR_SPEC_MODEL_HF_MODEL_HF_REST_H

#include "core/document/json.h"
#include "spec/model/model.h"

/* model_type of `config`, which is `object` or its text_config; wrappers of
 * LLaVA's family may leave llama out. */
FR_CHECKED fr_status fr_model_hf_get_type(const fr_json_value *object,
                                          const fr_json_value *config,
                                          const char **out, fr_err *err);

/* Does a class of that name label each token (tagging, question answering)?
 * Encoders of such classes have no pooler. */
bool fr_model_hf_labels_tokens(const char *class_name);

/* Takes the output matrix from a decoder whose class has none, and fills
 * model->left_out. */
FR_CHECKED fr_status fr_model_hf_read_rest(const fr_json_value *object,
                                           const fr_json_value *config,
                                           fr_model *model, fr_err *err);

#endif
