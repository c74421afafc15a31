/* executors.c: see executors.h. */
#include "api/request/executors.h"

#include "frameworks/framework_list.h"

/* Values: two words, the targets, and behind all of them the list of frameworks
 * for names that lists do not show. */
enum { FOR_FORERUN, FOR_ANY, FOR_TARGETS, FOR_FRAMEWORKS = 1 << 16 };

static const char *executor_name(int i)
{
    return i == FOR_FORERUN ? fr_target_runtime(false)->name
           : i == FOR_ANY   ? "any"
                            : fr_target_name(i - FOR_TARGETS);
}

static int executor_index(const char *alias)
{
    const fr_framework *framework = fr_framework_named(alias);
    for (int i = 0; framework != NULL && i < fr_n_frameworks; i++)
        if (fr_frameworks[i] == framework && framework->target != NULL)
            return FOR_FRAMEWORKS + i;
    return -1;
}

const fr_names fr_executor_names = {.at = executor_name,
                                    .of_alias = executor_index};

const fr_framework *fr_executor_framework(int i)
{
    return i == FOR_FORERUN      ? &fr_framework_forerun
           : i == FOR_ANY        ? NULL
           : i >= FOR_FRAMEWORKS ? fr_frameworks[i - FOR_FRAMEWORKS]
                                 : fr_framework_with_target(i - FOR_TARGETS);
}

const fr_target *fr_executor_at(int i, bool is_gpu)
{
    const fr_framework *framework = fr_executor_framework(i);
    return i == FOR_FORERUN    ? fr_target_runtime(is_gpu)
           : framework != NULL ? framework->target
                               : NULL;
}
