/* plan_space_axes.c: the table of axes. */
#include "tuner/space/plan_space_lists.h"

_Static_assert(FR_PLAN_FIELDS_N < 64, "a pin is a bit");

enum { SINGLE, LISTED };
#define ROW(symbol, name, level, values, set)                                  \
    [FR_SPACE_AXIS_##                                                          \
        symbol] = {FR_DECISION_##level, values, fr_list_##name, set},

const fr_plan_space_axis_row fr_plan_space_axes[FR_SPACE_AXIS_N] = {
    [FR_SPACE_AXIS_WORLD] = {FR_DECISION_LAYERS, LISTED, fr_list_world,
                             fr_set_world},
    FR_SPACE_AXES(ROW)};

void fr_set_axis(const fr_plan_space_request *request, fr_plan_space_axis axis,
                 int64_t value, fr_plan *plan)
{
    const fr_plan_space_axis_row *row = &fr_plan_space_axes[axis];
    if (row->set != NULL)
        row->set(request, plan, value);
    else
        fr_field_set_i64(&fr_plan_fields[fr_space_axis_fields[axis]].field,
                         value, plan);
}
