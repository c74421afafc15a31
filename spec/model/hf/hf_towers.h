/*
 * hf_towers.h: the towers of images that wrappers of language models hold,
 * with what leads from them to the text: exact counts for the classes of
 * transformers that are known.
 */
#ifndef FR_SPEC_MODEL_HF_HF_TOWERS_H
#define FR_SPEC_MODEL_HF_HF_TOWERS_H

#include "core/document/json.h"

/* Parameters of the tower `vision` of the wrapper `object`, whose text has
 * `hidden` columns, and of its projector.  0: the class is not known, or its
 * file lacks a size. */
uint64_t fr_hf_tower_parameters(const fr_json_value *object,
                                const fr_json_value *vision, int64_t hidden);

#endif
