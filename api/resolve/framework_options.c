/* framework_options.c: see framework_options.h. */
#include "api/resolve/framework_options.h"

#include "api/request/executors.h"
#include "api/resolve/plan_options.h"
#include "core/base/text.h"
#include "frameworks/framework_plan.h"

const fr_framework *fr_request_framework(const fr_request *request,
                                         const fr_cluster *cluster)
{
    const fr_option_value *v = request->option;
    const fr_framework *framework = NULL;
    if (fr_cluster_device(cluster, 0)->kind != FR_DEVICE_GPU)
        return NULL;
    if (fr_request_has(request, FR_OPT_FRAMEWORK))
        framework = fr_framework_at((int)v[FR_OPT_FRAMEWORK].count);
    else if (fr_request_has(request, FR_OPT_FOR))
        framework = fr_executor_framework((int)v[FR_OPT_FOR].count);
    return framework != NULL && framework->facts != NULL ? framework : NULL;
}

const fr_target *fr_request_executor(const fr_request *request,
                                     const fr_cluster *cluster)
{
    const fr_framework *framework = fr_request_framework(request, cluster);
    const bool is_gpu = fr_cluster_device(cluster, 0)->kind == FR_DEVICE_GPU;
    if (fr_request_has(request, FR_OPT_FOR))
        return fr_executor_at((int)request->option[FR_OPT_FOR].count, is_gpu);
    if (framework != NULL)
        return framework->checks;
    return cluster->is_this_machine ? fr_target_runtime(is_gpu) : NULL;
}

uint64_t fr_request_given_fields(const fr_request *request,
                                 fr_execution_bits *facts)
{
    uint64_t given = 0;
    *facts = 0;
    for (int i = 0; i < FR_PLAN_OPTIONS_N; i++) {
        const int item = fr_plan_items[i];
        if (!fr_request_has(request, FR_OPT_OF_PLAN(i)))
            continue;
        if (item < FR_PLAN_FIELDS_N)
            given |= UINT64_C(1) << item;
        else
            *facts |= UINT32_C(1) << (item - FR_PLAN_FIELDS_N);
    }
    return given;
}

/* Under --for the plan begins with facts that a file of the framework can have,
 * and the job is the user's: its dropout is no recipe's. */
static void lay_facts(const fr_request *request, const fr_framework *framework,
                      const fr_cluster *cluster, fr_plan_file *file)
{
    fr_execution_bits facts;
    const uint64_t given = fr_request_given_fields(request, &facts);
    const bool is_default = fr_request_has(request, FR_OPT_FRAMEWORK);
    if (!is_default)
        facts |= fr_framework_said_facts(framework, &file->plan);
    fr_text_copy_cut(file->framework, sizeof file->framework, framework->name);
    /* Fused attention came with the A100 (arXiv 2205.14135), and bf16. */
    if (!(given & FR_GIVEN(FLASH_ATTENTION)))
        file->plan.is_flash =
            fr_default_precision(cluster, INT64_MAX) == FR_DTYPE_BF16;
    fr_framework_set_plan(framework, given, facts, &file->plan);
    if (is_default && !fr_request_has(request, FR_OPT_DROPOUT))
        file->job.dropout = fr_framework_dropout(framework, file->model.name);
}

void fr_request_apply_framework(const fr_request *request,
                                const fr_cluster *cluster, bool is_given,
                                fr_plan_file *file)
{
    const fr_framework *framework = fr_request_framework(request, cluster);
    fr_execution_bits facts;
    (void)fr_request_given_fields(request, &facts);
    if (framework != NULL &&
        (!is_given || fr_request_has(request, FR_OPT_FRAMEWORK)))
        lay_facts(request, framework, cluster, file);
    else if (framework != NULL)
        fr_framework_run_plan(framework, facts, &file->plan);
    else /* a plan file has them already, but for the model's vocabulary */
        framework = fr_framework_find(file->framework);
    if (framework != NULL)
        file->model.vocab =
            fr_framework_vocab(framework, &file->plan, &file->model);
}
