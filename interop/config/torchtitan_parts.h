/*
 * torchtitan_parts.h: models of the catalog that torchtitan has in a registry
 * of its own (torchtitan/models/X/__init__.py of 0.2 and main), and what it
 * makes again in backward.
 */
#ifndef FR_INTEROP_CONFIG_TORCHTITAN_PARTS_H
#define FR_INTEROP_CONFIG_TORCHTITAN_PARTS_H

#include "interop/config/config_parts.h"

typedef struct fr_torchtitan_model {
    const char *model, *name, *flavor;
} fr_torchtitan_model;

/* NULL: torchtitan has none of that name. */
const fr_torchtitan_model *fr_torchtitan_model_find(const char *model);

/* The catalog's name of a registered model; NULL: it has none. */
const char *fr_torchtitan_model_of(const char *name, const char *flavor);

/* [activation_checkpoint]; NULL: its defaults.  The model, pp and vpp are
 * there. */
FR_CHECKED fr_status fr_torchtitan_read_recompute(const fr_json_value *table,
                                                  fr_config *out, fr_err *err);

#endif
