/* options.c: the table of options.h and the names that choices accept. */
#include "cli/option/options.h"

#include <ctype.h>
#include <stdio.h>

#include "plan/decide/plan.h"
#include "tuner/answer/goal.h"
#include "tuner/answer/tune.h"

const fr_option_row fr_options[FR_OPT_N] = {
#define FR_OPTION_ROW(symbol, name, letter, kind, metavar, group, choice, low, \
                      high, help)                                              \
    {name, letter, FR_OPTION_##kind, metavar, FR_GROUP_##group, choice, low,   \
     high, help},
    FR_OPTION_LIST(FR_OPTION_ROW)
#undef FR_OPTION_ROW
};

const char *fr_option_group_title(fr_option_group group)
{
    static const char *const titles[FR_GROUP_N] = {
        [FR_GROUP_INPUT] = "Input",   [FR_GROUP_MACHINE] = "Machine",
        [FR_GROUP_SEARCH] = "Search", [FR_GROUP_GOAL] = "Goal",
        [FR_GROUP_PLAN] = "Plan",     [FR_GROUP_JOB] = "Job",
        [FR_GROUP_OUTPUT] = "Output", [FR_GROUP_COMMON] = "Common",
    };
    return titles[group];
}

char *fr_option_env_name(fr_option option, char *buf, int n_buf)
{
    int n = snprintf(buf, (size_t)n_buf, "FORERUN_%s", fr_options[option].name);
    for (int i = 0; i < n && i < n_buf; i++)
        buf[i] = buf[i] == '-' ? '_' : (char)toupper((unsigned char)buf[i]);
    return buf;
}

const char *fr_choice_schedule(int i)
{
    return i < fr_n_schedules ? fr_schedule_kind_name((fr_schedule_kind)i)
                              : NULL;
}

const char *fr_choice_recompute(int i)
{
    return i < FR_RECOMPUTE_N ? fr_recompute_name((fr_recompute)i) : NULL;
}

const char *fr_choice_rank_order(int i)
{
    return i < FR_RANK_ORDER_N ? fr_rank_order_name((fr_rank_order)i) : NULL;
}

const char *fr_choice_collective(int i)
{
    return i < FR_COLLECTIVE_SHIFT
               ? fr_collective_kind_name((fr_collective_kind)i)
               : NULL;
}

const char *fr_choice_protocol(int i)
{
    return i < FR_PROTOCOL_N ? fr_protocol_name((fr_protocol)i) : NULL;
}

const char *fr_choice_server_place(int i)
{
    return i < FR_SERVER_N ? fr_server_place_name((fr_server_place)i) : NULL;
}

const char *fr_choice_optimizer(int i)
{
    return i < FR_OPTIMIZER_N ? fr_optimizer_kind_name((fr_optimizer_kind)i)
                              : NULL;
}

const char *fr_choice_lr_schedule(int i)
{
    return i < FR_LR_N ? fr_lr_schedule_name((fr_lr_schedule)i) : NULL;
}

const char *fr_choice_lr_rule(int i)
{
    return i < FR_LR_RULE_N ? fr_lr_rule_name((fr_lr_rule)i) : NULL;
}

const char *fr_choice_cp_kind(int i)
{
    return i < FR_CP_N ? fr_cp_kind_name((fr_cp_kind)i) : NULL;
}

const char *fr_choice_dispatch(int i)
{
    return i < FR_DISPATCH_N ? fr_dispatch_kind_name((fr_dispatch_kind)i)
                             : NULL;
}

const char *fr_choice_flash_kind(int i)
{
    return i < FR_FLASH_N ? fr_flash_kind_name((fr_flash_kind)i) : NULL;
}

const char *fr_choice_scaling(int i)
{
    return i < FR_SCALING_N ? fr_scaling_name((fr_scaling)i) : NULL;
}

const char *fr_choice_zero_unit(int i)
{
    return i < FR_ZERO_UNIT_N ? fr_zero_unit_name((fr_zero_unit)i) : NULL;
}

const char *fr_choice_cuda_graphs(int i)
{
    return i < FR_CUDA_GRAPHS_N ? fr_cuda_graphs_name((fr_cuda_graphs)i) : NULL;
}

const char *fr_choice_kernels(int i)
{
    return i < FR_KERNELS_N ? fr_kernel_set_name((fr_kernel_set)i) : NULL;
}

/* The floating-point types come first in fr_dtype. */
const char *fr_choice_precision(int i)
{
    return i <= FR_DTYPE_FP4 ? fr_dtype_name((fr_dtype)i) : NULL;
}

const char *fr_choice_allow(int i)
{
    return i == 0 ? "lossy" : NULL;
}

const char *fr_choice_backend(int i)
{
    return i == 0 ? "cpu" : i == 1 ? "cuda" : NULL;
}

const char *fr_choice_search(int i)
{
    return fr_search_name(i);
}

const char *fr_choice_goal(int i)
{
    const fr_goal_row *row = fr_goal_row_of((fr_goal_kind)i);
    return row != NULL ? row->name : NULL;
}

const char *fr_choice_export(int i)
{
    return i == 0 ? "nccl-csv" : NULL;
}

const char *fr_choice_framework(int i)
{
    return fr_framework_rules_name(i);
}
