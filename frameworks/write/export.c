/* export.c: the check before each exporter. */
#include "frameworks/write/export.h"

#include <string.h>

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
    const fr_target *target = exporter->target;
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
