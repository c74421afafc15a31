/*
 * target_forerun.c: forerun's own runtime.  Its plan files hold every field;
 * what it can run is what fr_plan_check_executable() says.  It is no row of the
 * table: `tune` knows by itself what can be run.
 */
#include "plan/target/target_list.h"
#include "plan/target/target_rows.h"

static FR_TARGET_RULE(is_executable)
{
    fr_err ignored;
    return fr_plan_check_executable(plan, model, job, &ignored) == FR_OK ||
           fr_plan_check_executable_gpu(plan, model, job, &ignored) == FR_OK;
}

static const fr_target_rule rules[] = {
    {.text = "a plan that the runtime can train (forerun run says why)",
     .source = "plan/decide/plan_executable.c",
     .fields = FR_PLAN_BITS_ALL,
     .holds = is_executable},
    {.text = NULL}};

const fr_target fr_target_forerun = {
    .name = "forerun",
    .summary = "a plan of forerun's own runtime",
    .rules = rules,
};
