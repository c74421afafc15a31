/*
 * target_forerun.c: forerun's own runtime.  Its plan files hold every field;
 * what it can run is the table of plan_refusals.h.
 */
#include "frameworks/framework_list.h"
#include "frameworks/target_rows.h"
#include "plan/decide/plan_refusals.h"

static FR_TARGET_RULE(is_executable)
{
    fr_err ignored;
    return fr_plan_check_executable(plan, model, job, &ignored) == FR_OK ||
           fr_plan_check_executable_gpu(plan, model, job, &ignored) == FR_OK;
}

static const fr_target_rule rules[] = {
    {.text = "a plan that the runtime can train (forerun run says why)",
     .source = "plan/decide/plan_refusals.c",
     .fields = FR_PLAN_BITS_ALL,
     .facts = FR_EXECUTION_BITS_ALL,
     .holds = is_executable},
    {.text = NULL}};

static const fr_target_rule none[] = {{.text = NULL}};

const fr_target fr_target_forerun = {
    .name = "forerun",
    .summary = "a plan of forerun's own runtime",
    .rules = rules,
};

const fr_target *fr_target_runtime(bool is_gpu)
{
    static const fr_target runtimes[] = {
        {.name = "forerun",
         .summary = "forerun's own runtime, on CPUs",
         .rules = none,
         .runtime = FR_RUNTIME_CPU | FR_RUNTIME_CPU_START},
        {.name = "forerun",
         .summary = "forerun's own runtime, on GPUs",
         .rules = none,
         .runtime = FR_RUNTIME_GPU}};
    return &runtimes[is_gpu];
}
