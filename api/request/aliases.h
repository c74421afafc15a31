/*
 * aliases.h: other names that people type for options and their values, as
 * other frameworks call them, and environment variables that nothing reads.
 */
#ifndef FR_CLI_OPTION_ALIASES_H
#define FR_CLI_OPTION_ALIASES_H

#include "cli/command.h"

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

/* One note for each FORERUN_ variable that forerun does not know. */
void fr_alias_check_environment(const fr_cli *cli);

#endif
