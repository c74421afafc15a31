/* framework.c: what is found in the list of frameworks; see framework.h. */
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

const fr_names fr_framework_names = {.at = name_at, .of_alias = index_of};

/* ---- targets ------------------------------------------------------------- */

/* Names for several, and plan files themselves, are not among them. */
const fr_framework *fr_framework_with_target(int i)
{
    for (int k = 0; k < fr_n_frameworks; k++) {
        const fr_framework *at = fr_frameworks[k];
        if (at->target != NULL && at->target->fields != NULL && i-- == 0)
            return at;
    }
    return NULL;
}

const fr_target *fr_target_at(int i)
{
    const fr_framework *at = fr_framework_with_target(i);
    return at != NULL ? at->target : NULL;
}

const char *fr_target_name(int i)
{
    const fr_target *target = fr_target_at(i);
    return target != NULL ? target->name : NULL;
}

uint32_t fr_target_executors(bool is_gpu, const fr_plan *plan,
                             const fr_model *model, const fr_job *job)
{
    uint32_t who = 0;
    const fr_target *target = fr_target_runtime(is_gpu);
    for (int i = 0; target != NULL; target = is_gpu ? fr_target_at(i++) : NULL)
        if (fr_target_check(target, fr_target_newest(target), FR_PLAN_BITS_ALL,
                            0, plan, model, job, NULL) == FR_OK)
            who |= UINT32_C(1) << i;
    return who;
}

const char *fr_target_executor_name(int bit)
{
    return bit == 0 ? fr_target_runtime(false)->name : fr_target_name(bit - 1);
}
