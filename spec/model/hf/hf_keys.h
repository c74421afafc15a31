/*
 * hf_keys.h: keys of a Hugging Face config.json that no reader understands: one
 * may change the layers, so a note names it.
 */
#ifndef FR_SPEC_MODEL_HF_HF_KEYS_H
#define FR_SPEC_MODEL_HF_HF_KEYS_H

#include "core/base/buffer.h"
#include "core/document/json.h"

/* Appends "keys that are not understood and not read: a, b" if there are some;
 * switches that are off are not among them. */
void fr_hf_note_keys(const fr_json_value *config, fr_buffer *out);

#endif
