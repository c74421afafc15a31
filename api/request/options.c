/* options.c: the rows of options.h, and of the fields of a plan and a job. */
#include "api/request/options.h"

#include "api/request/executors.h"
#include "cost_models/storage/checkpoint_cost.h"
#include "interop/export/export_list.h"
#include "report/document/renderer.h"
#include "tuner/answer/tune.h"
#include "tuner/goal/goal.h"

#include <ctype.h>
#include <stdio.h>

static const char *const allowed[] = {"lossy"};
static const fr_names allow_names = FR_NAMES(allowed);

static const char *const backends[] = {"cpu", "cuda"};
const fr_names fr_backend_names = FR_NAMES(backends);

static const fr_names search_names = {.at = fr_search_name};

static const char *goal_at(int i)
{
    const fr_goal_row *row = fr_goal_row_of((fr_goal_kind)i);
    return row != NULL ? row->name : NULL;
}
static const fr_names goal_names = {.at = goal_at};

static const fr_option_row own_rows[FR_OPT_N] = {
#define FR_OPTION_ROW(symbol, name, letter, kind, metavar, group, names, low,  \
                      high, help)                                              \
    [FR_OPT_##symbol] = {name,                                                 \
                         letter,                                               \
                         FR_OPTION_##kind,                                     \
                         metavar,                                              \
                         FR_GROUP_##group,                                     \
                         names,                                                \
                         low,                                                  \
                         high,                                                 \
                         help,                                                 \
                         NULL},
    FR_OPTIONS_BEFORE_PLAN(FR_OPTION_ROW) FR_OPTIONS_AFTER_JOB(FR_OPTION_ROW)
#undef FR_OPTION_ROW
};

static fr_option_kind kind_of(const fr_field *field)
{
    if (field->metavar != NULL)
        return FR_OPTION_TEXT;
    if (field->names != NULL)
        return FR_OPTION_CHOICE;
    if (field->is_bytes)
        return FR_OPTION_BYTES;
    switch (field->kind) {
    case FR_FIELD_BOOL:
        return FR_OPTION_FLAG;
    case FR_FIELD_DOUBLE:
        return field->min == 0 && field->max == 1 ? FR_OPTION_SHARE
                                                  : FR_OPTION_REAL;
    case FR_FIELD_TEXT:
        return FR_OPTION_PATH;
    default:
        return FR_OPTION_COUNT;
    }
}

static fr_option_row row_of(const fr_field *field, fr_option_group group)
{
    static const char *const metavars[] = {
        [FR_OPTION_COUNT] = "N",     [FR_OPTION_REAL] = "X",
        [FR_OPTION_SHARE] = "SHARE", [FR_OPTION_PATH] = "FILE",
        [FR_OPTION_BYTES] = "BYTES", [FR_OPTION_CHOICE] = "NAME"};
    fr_option_kind kind = kind_of(field);
    return (fr_option_row){
        .name = field->option,
        .kind = kind,
        .metavar = field->metavar != NULL ? field->metavar : metavars[kind],
        .group = group,
        .names = kind == FR_OPTION_CHOICE ? field->names : NULL,
        .min = field->min,
        .max = field->max,
        .is_offered = field->is_offered,
        .help = field->help};
}

fr_option_row fr_option_get(fr_option option)
{
    int of_plan = (int)option - (int)FR_OPT_OF_PLAN(0);
    int of_job = (int)option - (int)FR_OPT_OF_JOB(0);
    if (of_plan >= 0 && of_plan < FR_PLAN_OPTIONS_N)
        return row_of(&fr_plan_item_row(fr_plan_items[of_plan])->field,
                      FR_GROUP_PLAN);
    if (of_job >= 0 && of_job < FR_JOB_OPTIONS_N)
        return row_of(&fr_job_fields[of_job], FR_GROUP_JOB);
    return own_rows[option];
}

int fr_option_item(fr_option option)
{
    const int place = (int)option - (int)FR_OPT_OF_PLAN(0);
    return place >= 0 && place < FR_PLAN_OPTIONS_N ? fr_plan_items[place] : -1;
}

fr_option fr_option_of_item(int item)
{
    int place = 0;
    while (place < FR_PLAN_OPTIONS_N && fr_plan_items[place] != item)
        place++;
    return place < FR_PLAN_OPTIONS_N ? FR_OPT_OF_PLAN(place) : FR_OPT_N;
}

const char *fr_option_choice(const fr_option_row *row, int i)
{
    const char *name;
    for (int at = 0; (name = fr_name_at(row->names, at)) != NULL; at++)
        if ((row->is_offered == NULL || row->is_offered(at)) && i-- == 0)
            return name;
    return NULL;
}

const char *fr_option_group_title(fr_option_group group)
{
    static const char *const titles[FR_GROUP_N] = {
        [FR_GROUP_INPUT] = "Input",   [FR_GROUP_MACHINE] = "Machine",
        [FR_GROUP_SEARCH] = "Search", [FR_GROUP_GOAL] = "Goal",
        [FR_GROUP_RUN] = "Run",       [FR_GROUP_PLAN] = "Plan",
        [FR_GROUP_JOB] = "Job",       [FR_GROUP_OUTPUT] = "Output",
        [FR_GROUP_COMMON] = "Common",
    };
    return titles[group];
}

char *fr_option_env_name(fr_option option, char *buf, int n_buf)
{
    int n =
        snprintf(buf, (size_t)n_buf, "FORERUN_%s", fr_option_get(option).name);
    for (int i = 0; i < n && i < n_buf; i++)
        buf[i] = buf[i] == '-' ? '_' : (char)toupper((unsigned char)buf[i]);
    return buf;
}
