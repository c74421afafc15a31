/* export.c: the list of exporters, and the check before each. */
#include "interop/export/export.h"

#include "interop/export/export_list.h"

#include <string.h>

static const fr_exporter *const exporters[] = {
#define FR_EXPORTER_ROW(entry) &fr_exporter_##entry,
    FR_EXPORTERS(FR_EXPORTER_ROW)
#undef FR_EXPORTER_ROW
};

const fr_exporter *fr_exporter_at(int i)
{
    return i >= 0 && i < (int)FR_LENGTH(exporters) ? exporters[i] : NULL;
}

const char *fr_exporter_name(int i)
{
    const fr_exporter *exporter = fr_exporter_at(i);
    return exporter != NULL ? fr_exporter_name_of(exporter) : NULL;
}

const fr_exporter *fr_exporter_of(const fr_framework *framework)
{
    for (size_t i = 0; i < FR_LENGTH(exporters); i++)
        if (exporters[i]->framework == framework)
            return exporters[i];
    return framework == fr_exporter_forerun.framework ? &fr_exporter_forerun
                                                      : NULL;
}

/* ---- names of --to ------------------------------------------------------- */

/* Behind the exporters: those frameworks whose name stands for several. */
static int index_of(const char *alias)
{
    const fr_framework *framework = fr_framework_named(alias);
    for (int i = 0; framework != NULL && i < (int)FR_LENGTH(exporters); i++)
        if (exporters[i]->framework == framework)
            return i;
    for (int i = 0; framework != NULL && i < fr_n_frameworks; i++)
        if (fr_frameworks[i] == framework && framework->choose != NULL)
            return (int)FR_LENGTH(exporters) + i;
    return -1;
}

const fr_names fr_exporter_names = {.at = fr_exporter_name,
                                    .of_alias = index_of};

const fr_exporter *fr_exporter_chosen(int i, const fr_plan *plan)
{
    const int alias = i - (int)FR_LENGTH(exporters);
    return alias < 0 ? fr_exporter_at(i)
                     : fr_exporter_of(
                           fr_framework_chosen(fr_frameworks[alias], plan));
}

const fr_exporter *fr_exporter_find(const char *name, const fr_plan *plan)
{
    const int i = fr_name_find(&fr_exporter_names, name);
    const fr_framework *framework = fr_framework_named(name);
    return i >= 0              ? fr_exporter_chosen(i, plan)
           : framework != NULL ? fr_exporter_of(framework)
                               : NULL;
}

/* ---- checks -------------------------------------------------------------- */

/* Refuses what the target cannot execute, with the nearest plan that it can. */
static fr_status check_target(const fr_target *target,
                              const fr_export_request *request, fr_err *err)
{
    const fr_plan_file *file = request->file;
    fr_plan nearest;
    fr_err why;
    char name[512], verdict[128] = "";
    fr_status status =
        fr_target_check(target, request->version, FR_PLAN_BITS_ALL, 0,
                        &file->plan, &file->model, &file->job, &why);
    if (status != FR_INPUT)
        return status;
    if (!fr_target_nearest(target, request->version, &file->plan, &file->model,
                           &file->job, &nearest))
        return fr_fail(err, FR_INFEASIBLE, "%.600s", why.text);
    if (request->judge != NULL)
        request->judge(request, &nearest, verdict, sizeof verdict);
    return fr_fail(err, FR_INFEASIBLE, "%.600s; nearest plan: %s%s%s", why.text,
                   fr_plan_describe(&nearest, name, sizeof name),
                   verdict[0] != '\0' ? ", which " : "", verdict);
}

fr_status fr_export(const fr_exporter *exporter,
                    const fr_export_request *request, fr_export_files *out,
                    fr_err *err)
{
    fr_export_request of = *request;
    const fr_target *target = fr_exporter_target(exporter);
    if (target != NULL) {
        if (request->cluster != NULL)
            FR_TRY(fr_target_check_device(
                target, fr_cluster_device(request->cluster, 0), err));
        FR_TRY(check_target(target, request, err));
        of.writer = exporter;
        return exporter->write(&of, out, err);
    }
    of.program = NULL;
    FR_TRY(fr_export(request->program, &of, out, err));
    of.program = request->program;
    of.writer = exporter;
    return exporter->write(&of, out, err);
}

void fr_export_files_release(fr_export_files *files)
{
    for (size_t i = 0; i < files->n; i++)
        fr_buffer_release(&files->items[i].text);
    fr_vec_release(files);
}
