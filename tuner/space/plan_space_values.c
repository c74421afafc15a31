/* plan_space_values.c: what the lists of values of the axes have in common. */
#include "tuner/space/plan_space_lists.h"

#define FIELD(symbol, name, level, values, set)                                \
    [FR_SPACE_AXIS_##symbol] = FR_PLAN_##symbol,

const fr_plan_field_id fr_space_axis_fields[FR_SPACE_AXIS_N] = {
    [FR_SPACE_AXIS_WORLD] = FR_PLAN_FIELDS_N, FR_SPACE_AXES(FIELD)};

void fr_push_value(fr_plan_space_values *values, int64_t value)
{
    if (values->n < FR_SPACE_VALUES)
        values->at[values->n++] = value;
}

void fr_push_new(int64_t value, fr_plan_space_values *values)
{
    for (int i = 0; i < values->n; i++)
        if (values->at[i] == value)
            return;
    fr_push_value(values, value);
}

void fr_push_divisors(int64_t n, int64_t high, fr_plan_space_values *values)
{
    int64_t d;
    for (d = 1; d * d <= n; d++)
        if (n % d == 0 && d <= high)
            fr_push_value(values, d);
    for (d--; d >= 1; d--)
        if (n % d == 0 && d * d != n && n / d <= high)
            fr_push_value(values, n / d);
}

bool fr_is_pinned(const fr_plan_space_request *request, fr_plan_field_id field)
{
    return (request->pins >> field & 1) != 0;
}

bool fr_is_ranged(const fr_plan_space_request *request, fr_plan_space_axis axis)
{
    return request->ranges != NULL && request->ranges[axis].n > 0;
}

bool fr_push_given(const fr_plan_space_request *request,
                   fr_plan_space_axis axis, fr_plan_space_values *values)
{
    fr_plan_field_id field = fr_space_axis_fields[axis];
    if (fr_is_ranged(request, axis)) {
        for (int i = 0; i < request->ranges[axis].n; i++)
            fr_push_value(values, request->ranges[axis].at[i]);
        return true;
    }
    if (field == FR_PLAN_FIELDS_N || !fr_is_pinned(request, field))
        return false;
    fr_push_value(
        values, fr_field_get_i64(&fr_plan_fields[field].field, &request->base));
    return true;
}

void fr_keep_divisors(int64_t n, fr_plan_space_values *values)
{
    int n_kept = 0;
    for (int i = 0; i < values->n; i++)
        if (values->at[i] > 0 && n % values->at[i] == 0)
            values->at[n_kept++] = values->at[i];
    values->n = n_kept;
}

bool fr_is_gpu_space(const fr_plan_space_request *request)
{
    return fr_cluster_device(request->cluster, 0)->kind == FR_DEVICE_GPU;
}

int64_t fr_space_node_devices(const fr_plan_space_request *request)
{
    return fr_cluster_node_type(request->cluster, 0)->n_devices;
}
