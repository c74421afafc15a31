/* config.c: readers by their framework, and the check of what they read. */
#include "frameworks/read/config.h"

#include "frameworks/framework_plan.h"
#include "plan/decide/plan_fields.h"

#include <string.h>

const char *fr_config_name(int i)
{
    for (int k = 0; k < fr_n_frameworks; k++)
        if (fr_frameworks[k]->reader != NULL && i-- == 0)
            return fr_frameworks[k]->name;
    return NULL;
}

const fr_framework *fr_config_find(const char *name)
{
    const fr_framework *framework = fr_framework_named(name);
    return framework != NULL && framework->reader != NULL ? framework : NULL;
}

const fr_framework *fr_config_guess(const char *text, size_t n)
{
    for (int k = 0; k < fr_n_frameworks; k++)
        if (fr_frameworks[k]->reader != NULL &&
            fr_frameworks[k]->reader->looks_like(text, n))
            return fr_frameworks[k];
    return NULL;
}

/* A reader says where it stands what is wrong with a key; what only shows when
 * all is put together is of the whole file. */
static fr_status check(const fr_config_request *request,
                       const fr_config *config, fr_err *err)
{
    const fr_plan_file *file = &config->file;
    fr_err why = {0};
    fr_status status = fr_buffer_check(&config->notes, err);
    if (status != FR_OK)
        return status;
    status = fr_plan_check_ranges(&file->plan, &why);
    if (status == FR_OK)
        status = fr_job_check(&file->job, &why);
    if (status == FR_OK)
        status = fr_plan_check(&file->plan, &file->model, &file->job, &why);
    if (status == FR_OK)
        return FR_OK;
    return fr_fail(err, status, "%s:1: %s", request->path, why.text);
}

fr_status fr_config_read(const fr_framework *framework,
                         const fr_config_request *request, fr_config *out,
                         fr_err *err)
{
    fr_config config = {.framework = framework};
    fr_plan_file_init(&config.file);
    fr_buffer_init(&config.notes);
    fr_status status = FR_OK;
    if (memchr(request->text, '\0', request->n_text) != NULL)
        status = fr_fail(err, FR_INPUT, "%s:1: a NUL byte: not a text",
                         request->path);
    if (status == FR_OK)
        status = framework->reader->read(request, &config, err);
    if (status == FR_OK)
        fr_framework_run_plan(framework, config.said, &config.file.plan);
    if (status == FR_OK)
        status = check(request, &config, err);
    if (status != FR_OK) {
        fr_config_release(&config);
        return status;
    }
    *out = config;
    return FR_OK;
}
