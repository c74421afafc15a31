/*
 * aliases.h: other names that people type for options and their values, as
 * other frameworks call them.
 */
#ifndef FR_API_REQUEST_ALIASES_H
#define FR_API_REQUEST_ALIASES_H

#include "api/request/options.h"

typedef struct fr_alias {
    const char *name; /* without dashes */
    fr_option option;
    const char *value; /* what it stands for; NULL: it takes one; where there
                          is no such option (FR_OPT_N): what to say instead */
} fr_alias;

/* The alias of that name (n characters), NULL: there is none. */
const fr_alias *fr_alias_find(const char *name, size_t n);

/* "bf16" for "bfloat16"; the text itself where it is no alias. */
const char *fr_alias_value(const char *text);

#endif
