/*
 * torchtitan_models.h: models of the catalog that torchtitan has in a registry
 * of its own (torchtitan/models/X/__init__.py of 0.2 and main).
 */
#ifndef FR_INTEROP_CONFIG_TORCHTITAN_MODELS_H
#define FR_INTEROP_CONFIG_TORCHTITAN_MODELS_H

typedef struct fr_torchtitan_model {
    const char *model, *name, *flavor;
} fr_torchtitan_model;

/* NULL: torchtitan has none of that name. */
const fr_torchtitan_model *fr_torchtitan_model_find(const char *model);

/* The catalog's name of a registered model; NULL: it has none. */
const char *fr_torchtitan_model_of(const char *name, const char *flavor);

#endif
