/* framework.c: names of the list of frameworks; see framework.h. */
#include "frameworks/framework.h"

#include <string.h>

static bool is_called(const fr_framework *framework, const char *name)
{
    if (strcmp(framework->name, name) == 0)
        return true;
    for (size_t i = 0; i < FR_LENGTH(framework->aliases); i++)
        if (framework->aliases[i] != NULL &&
            strcmp(framework->aliases[i], name) == 0)
            return true;
    return false;
}

const fr_framework *fr_framework_named(const char *name)
{
    for (int i = 0; i < fr_n_frameworks; i++)
        if (is_called(fr_frameworks[i], name))
            return fr_frameworks[i];
    return NULL;
}

const fr_framework *fr_framework_find(const char *name)
{
    const fr_framework *found = fr_framework_named(name);
    return found != NULL && found->facts != NULL ? found : NULL;
}

const fr_framework *fr_framework_chosen(const fr_framework *framework,
                                        const fr_plan *plan)
{
    return framework->choose != NULL ? framework->choose(plan) : framework;
}

const fr_framework *fr_framework_at(int i)
{
    for (int k = 0; k < fr_n_frameworks; k++)
        if (fr_frameworks[k]->facts != NULL && i-- == 0)
            return fr_frameworks[k];
    return NULL;
}

/* ---- names of --framework ------------------------------------------------ */

static const char *name_at(int i)
{
    const fr_framework *framework = fr_framework_at(i);
    return framework != NULL ? framework->name : NULL;
}

static int index_of(const char *alias)
{
    const fr_framework *found = fr_framework_find(alias);
    for (int i = 0; found != NULL && fr_framework_at(i) != NULL; i++)
        if (fr_framework_at(i) == found)
            return i;
    return -1;
}

static const char *choices_of(const char *name)
{
    const fr_framework *found = fr_framework_named(name);
    return found != NULL ? found->choices : NULL;
}

const fr_names fr_framework_names = {
    .at = name_at, .of_alias = index_of, .choices = choices_of};
