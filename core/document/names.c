/* names.c: see names.h. */
#include "core/document/names.h"

#include <stddef.h>
#include <string.h>

const char *fr_name_at(const fr_names *names, int i)
{
    if (i < 0)
        return NULL;
    if (names->list == NULL)
        return names->at(i);
    return i < names->n ? names->list[i] : NULL;
}

const char *fr_name_or_unknown(const fr_names *names, int i)
{
    const char *name = fr_name_at(names, i);
    return name != NULL ? name : "unknown";
}

int fr_name_find(const fr_names *names, const char *name)
{
    const char *other;
    for (int i = 0; (other = fr_name_at(names, i)) != NULL; i++)
        if (strcmp(other, name) == 0)
            return i;
    return names->of_alias != NULL ? names->of_alias(name) : -1;
}
