/* model_traits.c: see model_traits.h. */
#include "spec/model/model_traits.h"

static const char *const names[FR_TRAIT_N] = {
#define TRAIT(symbol, name, refusal) [FR_TRAIT_##symbol] = name,
#include "spec/model/model_traits.inc"
#undef TRAIT
};

const fr_names fr_model_trait_names = FR_NAMES(names);

bool fr_model_has(const fr_model *model, fr_model_trait trait)
{
    return (model->traits >> trait & 1) != 0;
}

void fr_model_set(fr_model *model, fr_model_trait trait)
{
    model->traits |= UINT64_C(1) << trait;
}
