/*
 * plan_space_lists.h: the axes of each level, for the table in
 * plan_space_axes.c, and what their lists of values have in common.
 */
#ifndef FR_TUNER_SPACE_PLAN_SPACE_LISTS_H
#define FR_TUNER_SPACE_PLAN_SPACE_LISTS_H

#include "tuner/space/plan_space.h"

typedef void fr_list_values_fn(const fr_plan_space_request *request,
                               const fr_plan *plan,
                               fr_plan_space_values *values);
typedef void fr_set_value_fn(const fr_plan_space_request *request,
                             fr_plan *plan, int64_t value);

fr_list_values_fn fr_list_world;
fr_set_value_fn fr_set_world, fr_set_cp, fr_set_tp, fr_set_pp, fr_set_split;
fr_set_value_fn fr_set_shares;
#define FR_SPACE_AXIS_DECLARE(symbol, name, level, values, set)                \
    fr_list_values_fn fr_list_##name;
FR_SPACE_AXES(FR_SPACE_AXIS_DECLARE)
#undef FR_SPACE_AXIS_DECLARE

/* Decides an axis: sets the field of the plan and what follows from it. */
void fr_set_axis(const fr_plan_space_request *request, fr_plan_space_axis axis,
                 int64_t value, fr_plan *plan);

void fr_push_value(fr_plan_space_values *values, int64_t value);
/* Appends the value unless it is there. */
void fr_push_new(int64_t value, fr_plan_space_values *values);
/* Appends the divisors of n up to `high`, ascending. */
void fr_push_divisors(int64_t n, int64_t high, fr_plan_space_values *values);

bool fr_is_pinned(const fr_plan_space_request *request, fr_plan_field_id field);

bool fr_is_ranged(const fr_plan_space_request *request,
                  fr_plan_space_axis axis);

/* If the user has named values of the axis, appends those (the range, or the
 * pinned value of the base plan) and returns true. */
bool fr_push_given(const fr_plan_space_request *request,
                   fr_plan_space_axis axis, fr_plan_space_values *values);

/* Drops the values that do not divide n. */
void fr_keep_divisors(int64_t n, fr_plan_space_values *values);

/* Lists the codes of splits that take layers from the ends, the even one
 * first; fr_split_moved() writes the layers of one into split[pp * vpp]. */
void fr_list_split_moves(const fr_plan_space_request *request,
                         const fr_plan *plan, fr_plan_space_values *values);
void fr_split_moved(const fr_plan_space_request *request, const fr_plan *plan,
                    int64_t code, int32_t *split);

/* Are shares looked at that are not even? */
bool fr_has_uneven_shares(const fr_plan_space_request *request);
/* The micro-batch of which the shares that the user has given come to the
 * batch. */
int64_t fr_micro_batch_of_shares(const fr_plan_space_request *request);

/* Tokens of a micro-batch on a rank: products of more rows are no faster, so a
 * coarse look at a space leaves larger micro-batches out. */
enum { FR_SPACE_MOST_TOKENS = 32768 };

bool fr_is_gpu_space(const fr_plan_space_request *request);
int64_t fr_space_node_devices(const fr_plan_space_request *request);

#endif
