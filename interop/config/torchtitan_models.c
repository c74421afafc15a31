/* torchtitan_models.c: see torchtitan_parts.h. */
#include "core/base/text.h"
#include "interop/config/torchtitan_parts.h"

#include <string.h>

static const fr_torchtitan_model models[] = {
    {"llama-3-8b", "llama3", "8B"},
    {"llama-3-70b", "llama3", "70B"},
    {"llama-3-405b", "llama3", "405B"},
    {"deepseek-v3", "deepseek_v3", "671B"},
};

const fr_torchtitan_model *fr_torchtitan_model_find(const char *model)
{
    for (size_t i = 0; i < FR_LENGTH(models); i++)
        if (strcmp(model, models[i].model) == 0)
            return &models[i];
    return NULL;
}

const char *fr_torchtitan_model_of(const char *name, const char *flavor)
{
    for (size_t i = 0; i < FR_LENGTH(models); i++)
        if (strcmp(name, models[i].name) == 0 &&
            strcmp(flavor, models[i].flavor) == 0)
            return models[i].model;
    return NULL;
}
