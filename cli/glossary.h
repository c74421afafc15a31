/*
 * glossary.h: the field's terms, each explained on one screen, for
 * `forerun help TERM`.
 */
#ifndef FR_CLI_GLOSSARY_H
#define FR_CLI_GLOSSARY_H

#include <stddef.h>

typedef struct fr_term {
    const char *name;
    const char *also; /* other spellings, separated by commas; may be NULL */
    const char *text; /* lines of 78 characters at most */
    const char *see;  /* options or other terms; may be NULL */
} fr_term;

/* In alphabetical order; NULL name at the end. */
extern const fr_term fr_glossary[];

/* By name or other spelling, case and '-', '_' and blanks ignored; NULL:
 * unknown. */
const fr_term *fr_glossary_find(const char *word);

#endif
