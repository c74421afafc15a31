/*
 * target_nearest.c: the nearest plan that a target can have.
 *
 * The first thing that is refused names the fields that it looks at; one of
 * them has to change.  A search by deepening, so that the first plan found has
 * the fewest changes; where more than four are needed, one after the other.
 */
#include "plan/target/target.h"

enum { MOST_CHANGES = 4, MOST_VALUES = 24 };

typedef struct nearest {
    const fr_target *target;
    int version;
    const fr_model *model;
    const fr_job *job;
    int64_t world;
    fr_plan best;
} nearest;

/* What stands in the way: a field by itself, or the fields of a rule; 0: the
 * target has nothing against the plan. */
static uint64_t find_broken_of(const nearest *n, const fr_target *target,
                               const fr_plan *plan)
{
    fr_err ignored;
    for (int i = 0; i < FR_PLAN_FIELDS_N; i++) {
        uint64_t bit = UINT64_C(1) << i;
        if (fr_target_check(target, n->version, bit, 0, plan, n->model, n->job,
                            &ignored) != FR_OK)
            return bit;
    }
    for (const fr_target *of = target; of != NULL; of = of->base) {
        int at = of == target ? n->version : fr_target_newest(of);
        for (const fr_target_rule *r = of->rules; r->text != NULL; r++)
            if (r->fields != 0 && fr_target_rule_is_of(r, at) &&
                !r->holds(plan, n->model, n->job))
                return r->fields;
    }
    return 0;
}

/* The same of the target and of its backend, which may be another one. */
static uint64_t find_broken(const nearest *n, const fr_plan *plan)
{
    const fr_target *target = n->target;
    uint64_t broken = find_broken_of(n, target, plan);
    if (broken != 0 || target->backend_of == NULL)
        return broken;
    broken = find_broken_of(n, target->backend_of(plan), plan);
    return broken != 0 ? broken | target->backend_fields : 0;
}

/* Values that are tried for a field: where it starts, its neighbours in a short
 * list, and the numbers that divide ranks and layers. */
static int list_values(const fr_plan_field *row, const fr_plan *plan,
                       double values[MOST_VALUES])
{
    const fr_field *field = &row->field;
    double now = fr_field_get(field, plan);
    int n = 0;
    values[n++] = field->initial;
    if (field->kind == FR_FIELD_BOOL) {
        values[n++] = field->initial == 0;
    } else if (field->names != NULL) {
        for (int i = 0; n < MOST_VALUES && fr_name_at(field->names, i) != NULL;
             i++)
            if (i != (int)field->initial)
                values[n++] = i;
    } else if (field->kind == FR_FIELD_I32 || field->kind == FR_FIELD_I64) {
        for (int64_t i = 0; n < MOST_VALUES && i <= 4; i++)
            values[n++] = (double)i;
        for (int64_t i = 2; n < MOST_VALUES && i <= 512; i *= 2) {
            values[n++] = now / (double)i;
            if (n < MOST_VALUES)
                values[n++] = now * (double)i;
        }
    }
    return n;
}

/* Changes the field; what other degrees leave of the ranks goes to dp. */
static bool change(const nearest *n, fr_plan_field_id id, double value,
                   fr_plan *plan)
{
    const fr_field *field = &fr_plan_fields[id].field;
    fr_err ignored;
    if (field->kind == FR_FIELD_LIST) {
        fr_field_set(field, 0, plan); /* the usual list is empty */
        return true;
    }
    if (value != (double)(int64_t)value && field->kind != FR_FIELD_DOUBLE)
        return false;
    fr_field_set(field, value, plan);
    if (fr_field_check(field, plan, &ignored) != FR_OK)
        return false;
    int64_t model_ranks = (int64_t)plan->tp * plan->pp * plan->cp;
    if (id == FR_PLAN_DP || n->world % model_ranks != 0)
        return false;
    plan->dp = (int32_t)(n->world / model_ranks);
    return true;
}

static bool is_possible(const nearest *n, const fr_plan *plan)
{
    fr_err ignored;
    return fr_plan_check_lowerable(plan, n->model, n->job, &ignored) == FR_OK &&
           fr_target_check(n->target, n->version, FR_PLAN_BITS_ALL, 0, plan,
                           n->model, n->job, &ignored) == FR_OK;
}

static bool deepen(nearest *n, const fr_plan *plan, uint64_t changed,
                   int n_changes)
{
    uint64_t broken = find_broken(n, plan);
    if (is_possible(n, plan)) {
        n->best = *plan;
        return true;
    }
    if (n_changes == 0)
        return false;
    /* The target agrees, and the plan itself is illegal: any degree, or a
     * schedule that is left over from a pipeline. */
    if (broken == 0)
        broken = FR_PLAN_BIT(TP) | FR_PLAN_BIT(PP) | FR_PLAN_BIT(VPP) |
                 FR_PLAN_BIT(CP) | FR_PLAN_BIT(EP) | FR_PLAN_BIT(MICRO_BATCH) |
                 FR_PLAN_BIT(SCHEDULE) | FR_PLAN_BIT(LAYER_SPLIT);
    for (int i = 0; i < FR_PLAN_FIELDS_N; i++) {
        double values[MOST_VALUES];
        uint64_t bit = UINT64_C(1) << i;
        if ((broken & bit) == 0 || (changed & bit) != 0)
            continue;
        int n_values = list_values(&fr_plan_fields[i], plan, values);
        for (int v = 0; v < n_values; v++) {
            fr_plan next = *plan;
            if (change(n, (fr_plan_field_id)i, values[v], &next) &&
                !fr_field_is_same(&fr_plan_fields[i].field, &next, plan) &&
                deepen(n, &next, changed | bit, n_changes - 1))
                return true;
        }
    }
    return false;
}

/* Changes one field of `bits` so that something else, or nothing, stands in the
 * way; false: none of its values does. */
static bool mend_one(const nearest *n, uint64_t bits, fr_plan *plan)
{
    for (int i = 0; i < FR_PLAN_FIELDS_N; i++) {
        double values[MOST_VALUES];
        if ((bits >> i & 1) == 0)
            continue;
        int n_values = list_values(&fr_plan_fields[i], plan, values);
        for (int v = 0; v < n_values; v++) {
            fr_plan next = *plan;
            if (change(n, (fr_plan_field_id)i, values[v], &next) &&
                find_broken(n, &next) != bits) {
                *plan = next;
                return true;
            }
        }
    }
    return false;
}

/* A plan with more changes than can be searched: one thing after the other that
 * stands in the way takes the first value that the target has, and what is then
 * illegal is searched for. */
static bool mend_all(nearest *n, const fr_plan *plan)
{
    fr_plan next = *plan;
    for (int i = 0; i < FR_PLAN_FIELDS_N; i++) {
        uint64_t broken = find_broken(n, &next);
        if (broken == 0)
            break;
        if (!mend_one(n, broken, &next))
            return false;
    }
    /* What was part of a decision that is no longer taken. */
    for (int i = 0; i < FR_PLAN_FIELDS_N; i++) {
        const fr_field *field = &fr_plan_fields[i].field;
        if (fr_plan_field_is_used(&next, (fr_plan_field_id)i))
            continue;
        if (field->kind != FR_FIELD_LIST)
            fr_field_set(field, field->initial, &next);
    }
    for (int most = 0; most <= 2; most++)
        if (deepen(n, &next, 0, most))
            return true;
    return false;
}

bool fr_target_nearest(const fr_target *target, int version,
                       const fr_plan *plan, const fr_model *model,
                       const fr_job *job, fr_plan *out)
{
    nearest n = {.target = target,
                 .version = version,
                 .model = model,
                 .job = job,
                 .world = fr_plan_world(plan)};
    for (int most = 0; most <= MOST_CHANGES; most++)
        if (deepen(&n, plan, 0, most)) {
            *out = n.best;
            return true;
        }
    bool is_found = mend_all(&n, plan);
    if (is_found)
        *out = n.best;
    return is_found;
}
