/*
 * torchtitan_recipe.h: a Python recipe of torchtitan's main as the tables of a
 * TOML file of 0.2, which one reader then reads.
 */
#ifndef FR_FRAMEWORKS_TORCHTITAN_TORCHTITAN_RECIPE_H
#define FR_FRAMEWORKS_TORCHTITAN_TORCHTITAN_RECIPE_H

#include "core/base/buffer.h"
#include "core/base/err.h"

bool fr_torchtitan_is_recipe(const char *text, size_t n);

/*
 * Appends JSON whose values stand on the lines that they have in the recipe, so
 * that errors name these.  The recipe is a function that takes another of
 * config_registry and sets members of it to numbers, texts and calls with
 * these; it is never run.  FR_INPUT with the line of the first statement that
 * is something else, or where a table is missing: then its values are those of
 * config_registry, which stand in torchtitan.
 */
FR_CHECKED fr_status fr_torchtitan_recipe_json(const char *path,
                                               const char *text, size_t n,
                                               fr_buffer *out, fr_err *err);

#endif
