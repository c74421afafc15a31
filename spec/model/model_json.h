/*
 * model_json.h: a model as forerun's own JSON object (docs/formats.md), in a
 * file of its own or inside a plan.
 */
#ifndef FR_SPEC_MODEL_MODEL_JSON_H
#define FR_SPEC_MODEL_MODEL_JSON_H

#include "core/document/json.h"
#include "spec/model/model.h"

/* Reads an object with "schema": "forerun.model/1"; strict, checked. */
FR_CHECKED fr_status fr_model_from_json(const fr_json_value *object,
                                        fr_model *out, fr_err *err);

/* Reads a Hugging Face config.json; `name` when it has none of its own. */
FR_CHECKED fr_status fr_model_from_hugging_face(const fr_json_value *object,
                                                const char *name, fr_model *out,
                                                fr_err *err);

/* Writes every key in one order: the same model gives the same bytes. */
void fr_model_to_json(const fr_model *model, fr_json_writer *writer);

/* The class of transformers that is this model. */
typedef enum fr_model_hf {
    FR_MODEL_HF_NONE,
    FR_MODEL_HF_GPT2,
    FR_MODEL_HF_GPT_NEOX,
    FR_MODEL_HF_LLAMA,
    FR_MODEL_HF_MISTRAL,
    FR_MODEL_HF_QWEN2,
    FR_MODEL_HF_QWEN3,
    FR_MODEL_HF_GEMMA,
    FR_MODEL_HF_MIXTRAL,
    FR_MODEL_HF_QWEN2_MOE,
    FR_MODEL_HF_QWEN3_MOE,
    FR_MODEL_HF_DEEPSEEK_V3,
    FR_MODEL_HF_VIT,  /* with labels */
    FR_MODEL_HF_BERT, /* with a masked-token head, maybe a pooler */
    FR_MODEL_HF_N
} fr_model_hf;

fr_model_hf fr_model_hf_type(const fr_model *model);

/* Returns the name of the activation in Hugging Face's configuration. */
const char *fr_model_hf_activation(const fr_model *model);

/* Its config.json; the model has a class. */
void fr_model_to_hugging_face(const fr_model *model, fr_json_writer *json);

#endif
