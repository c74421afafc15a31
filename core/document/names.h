/*
 * names.h: the names of an enum, one way to look them up.  They stand in a list
 * of their own, or come from a table whose rows have more to say.
 */
#ifndef FR_CORE_DOCUMENT_NAMES_H
#define FR_CORE_DOCUMENT_NAMES_H

typedef struct fr_names {
    const char *const *list; /* [n], indexed by the enum; NULL: ask `at` */
    int n;
    const char *(*at)(int i); /* NULL past the last */
    const int *n_rows;        /* of `at`: how many it has; NULL: ask it */
    /* The index of another name of the same thing, -1: it is none.  NULL: they
     * have no other names. */
    int (*of_alias)(const char *name);
} fr_names;

/* Names that stand in an array. */
#define FR_NAMES(array)                                                        \
    {                                                                          \
        .list = (array), .n = (int)(sizeof(array) / sizeof(array)[0])          \
    }

/* Name i, NULL past the last. */
const char *fr_name_at(const fr_names *names, int i);
/* The same of an enum, for messages: "unknown" where there is none. */
#define fr_name_of(names, i) fr_name_or_unknown((names), (int)(i))
const char *fr_name_or_unknown(const fr_names *names, int i);
/* The index of a name or an alias, -1 when it is none of them. */
int fr_name_find(const fr_names *names, const char *name);

#endif
