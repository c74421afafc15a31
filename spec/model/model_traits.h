/*
 * model_traits.h: the traits of a model, bits of fr_model.traits, from the
 * table of model_traits.inc.
 */
#ifndef FR_SPEC_MODEL_MODEL_TRAITS_H
#define FR_SPEC_MODEL_MODEL_TRAITS_H

#include "spec/model/model.h"

typedef enum fr_model_trait {
#define TRAIT(symbol, name, refusal) FR_TRAIT_##symbol,
#include "spec/model/model_traits.inc"
#undef TRAIT
    FR_TRAIT_N
} fr_model_trait;

extern const fr_names fr_model_trait_names;

bool fr_model_has(const fr_model *model, fr_model_trait trait);
void fr_model_set(fr_model *model, fr_model_trait trait);

#endif
