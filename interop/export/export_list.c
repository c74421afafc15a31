/* export_list.c: see export_list.h. */
#include "interop/export/export_list.h"

static const fr_exporter *const launchers[] = {
#define LAUNCHER(entry) &fr_exporter_##entry,
    FR_LAUNCHERS(LAUNCHER)
#undef LAUNCHER
};

/* Does --to name it?  A plan file needs no export. */
static bool is_written(const fr_framework *framework)
{
    return framework->writer != NULL && framework->target->fields != NULL;
}

const fr_exporter *fr_exporter_at(int i)
{
    for (int k = 0; k < fr_n_frameworks; k++)
        if (is_written(fr_frameworks[k]) && i-- == 0)
            return fr_frameworks[k]->writer;
    return i >= 0 && i < (int)FR_LENGTH(launchers) ? launchers[i] : NULL;
}

const char *fr_exporter_name(int i)
{
    const fr_exporter *exporter = fr_exporter_at(i);
    return exporter != NULL ? fr_exporter_name_of(exporter) : NULL;
}

static int count(void)
{
    int n = 0;
    while (fr_exporter_at(n) != NULL)
        n++;
    return n;
}

/* Behind the exporters: those frameworks whose name stands for several. */
static int index_of(const char *alias)
{
    const fr_framework *framework = fr_framework_named(alias);
    const fr_exporter *exporter;
    if (framework == NULL)
        return -1;
    for (int i = 0; (exporter = fr_exporter_at(i)) != NULL; i++)
        if (exporter == framework->writer)
            return i;
    for (int i = 0; i < fr_n_frameworks; i++)
        if (fr_frameworks[i] == framework && framework->choose != NULL)
            return count() + i;
    return -1;
}

const fr_names fr_exporter_names = {.at = fr_exporter_name,
                                    .of_alias = index_of};

const fr_exporter *fr_exporter_chosen(int i, const fr_plan *plan)
{
    const int alias = i - count();
    return alias < 0 ? fr_exporter_at(i)
                     : fr_framework_chosen(fr_frameworks[alias], plan)->writer;
}

const fr_exporter *fr_exporter_find(const char *name, const fr_plan *plan)
{
    const int i = fr_name_find(&fr_exporter_names, name);
    const fr_framework *framework = fr_framework_named(name);
    return i >= 0              ? fr_exporter_chosen(i, plan)
           : framework != NULL ? framework->writer
                               : NULL;
}
