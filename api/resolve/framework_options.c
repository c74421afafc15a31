/* framework_options.c: see framework_options.h. */
#include "cli/option/framework_options.h"

#include "cli/option/plan_options.h"
#include "program/lower/framework/framework_plan.h"

#include <string.h>

const fr_framework *fr_cli_framework(const fr_cli *cli,
                                     const fr_cluster *cluster)
{
    const bool is_gpu = fr_cluster_device(cluster, 0)->kind == FR_DEVICE_GPU;
    return is_gpu && fr_cli_has(cli, FR_OPT_FRAMEWORK)
               ? &fr_frameworks[cli->option[FR_OPT_FRAMEWORK].count]
               : NULL;
}

const fr_target *fr_cli_framework_target(const fr_framework *framework)
{
    const char *name;
    if (framework == NULL || framework->target == NULL)
        return NULL;
    for (int i = 0; (name = fr_target_name(i)) != NULL; i++)
        if (strcmp(name, framework->target) == 0)
            return fr_target_at(i);
    return NULL;
}

enum { FOR_FORERUN, FOR_ANY, FOR_TARGETS };

const char *fr_cli_executor_name(int i)
{
    return i == FOR_FORERUN ? fr_target_runtime(false)->name
           : i == FOR_ANY   ? "any"
                            : fr_target_name(i - FOR_TARGETS);
}

const fr_target *fr_cli_executor(const fr_cli *cli, const fr_cluster *cluster)
{
    const fr_framework *framework = fr_cli_framework(cli, cluster);
    const bool is_gpu = fr_cluster_device(cluster, 0)->kind == FR_DEVICE_GPU;
    int i =
        cluster->is_this_machine && framework == NULL ? FOR_FORERUN : FOR_ANY;
    if (fr_cli_has(cli, FR_OPT_FOR))
        i = (int)cli->option[FR_OPT_FOR].count;
    else if (framework != NULL)
        return fr_cli_framework_target(framework);
    return i == FOR_FORERUN ? fr_target_runtime(is_gpu)
           : i == FOR_ANY   ? NULL
                            : fr_target_at(i - FOR_TARGETS);
}

uint64_t fr_cli_given(const fr_cli *cli, fr_execution_bits *facts)
{
    uint64_t given = 0;
    *facts = 0;
    for (int i = 0; i < FR_PLAN_OPTIONS_N; i++) {
        const int item = fr_plan_items[i];
        if (!fr_cli_has(cli, FR_OPT_OF_PLAN(i)))
            continue;
        if (item < FR_PLAN_FIELDS_N)
            given |= UINT64_C(1) << item;
        else
            *facts |= UINT32_C(1) << (item - FR_PLAN_FIELDS_N);
    }
    return given;
}

void fr_cli_apply_framework(const fr_cli *cli, const fr_cluster *cluster,
                            fr_plan *plan, fr_job *job, fr_model *model)
{
    const fr_framework *framework = fr_cli_framework(cli, cluster);
    fr_execution_bits facts;
    const uint64_t given = fr_cli_given(cli, &facts);
    if (framework == NULL)
        return;
    /* Fused attention came with the A100 (arXiv 2205.14135), and bf16. */
    if (!(given & FR_GIVEN(FLASH_ATTENTION)))
        plan->is_flash =
            fr_usual_precision(cluster, INT64_MAX) == FR_DTYPE_BF16;
    fr_framework_set_plan(framework, given, facts, plan);
    model->vocab = fr_framework_vocab(framework, plan, model);
    if (!fr_cli_has(cli, FR_OPT_DROPOUT))
        job->dropout = fr_framework_dropout(framework, model->name);
}
