/*
 * recipe_settings.h: the settings of a Python recipe of torchtitan, as they
 * stand in its file: between its reader and the tables of 0.2.
 */
#ifndef FR_FRAMEWORKS_TORCHTITAN_RECIPE_SETTINGS_H
#define FR_FRAMEWORKS_TORCHTITAN_RECIPE_SETTINGS_H

#include "core/base/err.h"

#include <stddef.h>

enum { MOST_SETTINGS = 128, NAME_MAX_BYTES = 64, VALUE_MAX_BYTES = 4096 };

/* table.key = value of the recipe. */
typedef struct fr_recipe_setting {
    char table[NAME_MAX_BYTES], key[NAME_MAX_BYTES];
    char value[VALUE_MAX_BYTES]; /* as it stands in the file */
    int line;
} fr_recipe_setting;

typedef struct fr_recipe {
    const char *path, *at, *end;
    int line;
    char family[NAME_MAX_BYTES]; /* of `from torchtitan.models.FAMILY import` */
    fr_recipe_setting settings[MOST_SETTINGS];
    size_t n;
    fr_err *err;
} fr_recipe;

/* FR_INPUT with "path:line: what value". */
FR_CHECKED fr_status fr_recipe_fail(fr_recipe *r, int line, const char *what,
                                    const char *value);
/* Fills the settings from the text between `at` and `end`. */
FR_CHECKED fr_status fr_recipe_read(fr_recipe *r);

#endif
