/*
 * target_nearest.c: the nearest plan that a target can have.
 *
 * The first thing that is refused names the fields that it looks at; one of
 * them has to change.  A search by deepening, so that the first plan found has
 * the fewest changes; where more than four are needed, one after the other.
 */
#include "frameworks/target.h"

enum { MOST_CHANGES = 4, MOST_VALUES = 24 };

typedef struct nearest {
    const fr_target *target;
    int version;
    const fr_model *model;
    const fr_job *job;
    int64_t world;
    fr_plan best;
} nearest;

/* Fields of a plan, and facts of its execution. */
typedef struct item_set {
    uint64_t fields;
    fr_execution_bits facts;
} item_set;

static bool has_item(const item_set *set, int item)
{
    return item < FR_PLAN_FIELDS_N
               ? (set->fields >> item & 1) != 0
               : (set->facts >> (item - FR_PLAN_FIELDS_N) & 1) != 0;
}

static void add_item(int item, item_set *set)
{
    if (item < FR_PLAN_FIELDS_N)
        set->fields |= UINT64_C(1) << item;
    else
        set->facts |= UINT32_C(1) << (item - FR_PLAN_FIELDS_N);
}

static bool is_empty(const item_set *set)
{
    return set->fields == 0 && set->facts == 0;
}

/* Has the target nothing against the item alone? */
static bool is_possible_alone(const nearest *n, const fr_target *target,
                              int item, const fr_plan *plan)
{
    fr_err ignored;
    if (item >= FR_PLAN_FIELDS_N)
        return target->fields == NULL || fr_target_has(target, item, plan);
    return fr_target_check(target, n->version, UINT64_C(1) << item, 0, plan,
                           n->model, n->job, &ignored) == FR_OK;
}

/* Finds the obstacle: an item by itself, or the items of a rule; empty: the
 * target accepts the plan. */
static item_set find_broken_of(const nearest *n, const fr_target *target,
                               const fr_plan *plan)
{
    item_set broken = {0};
    for (int i = 0; i < FR_PLAN_ITEMS_N; i++)
        if (!is_possible_alone(n, target, fr_plan_items[i], plan)) {
            add_item(fr_plan_items[i], &broken);
            return broken;
        }
    for (const fr_target *of = target; of != NULL; of = of->base) {
        int at = of == target ? n->version : fr_target_newest(of);
        for (const fr_target_rule *r = of->rules; r->text != NULL; r++)
            if ((r->fields != 0 || r->facts != 0) &&
                fr_target_rule_is_of(r, at) &&
                !r->holds(plan, n->model, n->job))
                return (item_set){r->fields, r->facts};
    }
    return broken;
}

/* The same of the target and of its backend, which may be another one. */
static item_set find_broken(const nearest *n, const fr_plan *plan)
{
    const fr_target *target = n->target;
    item_set broken = find_broken_of(n, target, plan);
    if (!is_empty(&broken) || target->backend_of == NULL)
        return broken;
    broken = find_broken_of(n, target->backend_of(plan), plan);
    if (!is_empty(&broken))
        broken.fields |= target->backend_fields;
    return broken;
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
static bool change(const nearest *n, int item, double value, fr_plan *plan)
{
    const fr_field *field = &fr_plan_item_row(item)->field;
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
    if (item == FR_PLAN_DP || n->world % model_ranks != 0)
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

static bool deepen(nearest *n, const fr_plan *plan, const item_set *changed,
                   int n_changes)
{
    item_set broken = find_broken(n, plan);
    if (is_possible(n, plan)) {
        n->best = *plan;
        return true;
    }
    if (n_changes == 0)
        return false;
    /* The target agrees, and the plan itself is illegal: any degree, or a
     * schedule that is left over from a pipeline. */
    if (is_empty(&broken))
        broken.fields = FR_PLAN_BIT(TP) | FR_PLAN_BIT(PP) | FR_PLAN_BIT(VPP) |
                        FR_PLAN_BIT(CP) | FR_PLAN_BIT(EP) |
                        FR_PLAN_BIT(MICRO_BATCH) | FR_PLAN_BIT(SCHEDULE) |
                        FR_PLAN_BIT(LAYER_SPLIT);
    for (int i = 0; i < FR_PLAN_ITEMS_N; i++) {
        const int item = fr_plan_items[i];
        const fr_plan_field *row = fr_plan_item_row(item);
        double values[MOST_VALUES];
        item_set now_changed = *changed;
        if (!has_item(&broken, item) || has_item(changed, item))
            continue;
        add_item(item, &now_changed);
        int n_values = list_values(row, plan, values);
        for (int v = 0; v < n_values; v++) {
            fr_plan next = *plan;
            if (change(n, item, values[v], &next) &&
                !fr_field_is_same(&row->field, &next, plan) &&
                deepen(n, &next, &now_changed, n_changes - 1))
                return true;
        }
    }
    return false;
}

/* Changes one item of those so that something else, or nothing, stands in the
 * way; false: none of its values does. */
static bool mend_one(const nearest *n, const item_set *items, fr_plan *plan)
{
    for (int i = 0; i < FR_PLAN_ITEMS_N; i++) {
        const int item = fr_plan_items[i];
        double values[MOST_VALUES];
        if (!has_item(items, item))
            continue;
        int n_values = list_values(fr_plan_item_row(item), plan, values);
        for (int v = 0; v < n_values; v++) {
            fr_plan next = *plan;
            if (!change(n, item, values[v], &next))
                continue;
            const item_set left = find_broken(n, &next);
            if (left.fields != items->fields || left.facts != items->facts) {
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
    const item_set none = {0};
    fr_plan next = *plan;
    for (int i = 0; i < FR_PLAN_ITEMS_N; i++) {
        const item_set broken = find_broken(n, &next);
        if (is_empty(&broken))
            break;
        if (!mend_one(n, &broken, &next))
            return false;
    }
    /* Items that were part of a decision which is no longer taken. */
    for (int i = 0; i < FR_PLAN_ITEMS_N; i++) {
        const fr_field *field = &fr_plan_item_row(fr_plan_items[i])->field;
        if (fr_plan_field_is_used(&next, fr_plan_items[i]))
            continue;
        if (field->kind != FR_FIELD_LIST)
            fr_field_set(field, field->initial, &next);
    }
    for (int most = 0; most <= 2; most++)
        if (deepen(n, &next, &none, most))
            return true;
    return false;
}

/* Does a rule refuse the model or the job with any plan? */
static bool is_hopeless_for(const nearest *n, const fr_target *target,
                            const fr_plan *plan)
{
    for (const fr_target *of = target; of != NULL; of = of->base) {
        int at = of == target ? n->version : fr_target_newest(of);
        for (const fr_target_rule *r = of->rules; r->text != NULL; r++)
            if (r->fields == 0 && r->facts == 0 &&
                fr_target_rule_is_of(r, at) &&
                !r->holds(plan, n->model, n->job))
                return true;
    }
    return false;
}

/* The same of the target and of all its backends: no change of the plan helps,
 * and thousands of plans would be asked for nothing. */
static bool is_hopeless(const nearest *n, const fr_plan *plan)
{
    const fr_target *const *backends = n->target->backends;
    if (is_hopeless_for(n, n->target, plan))
        return true;
    for (int i = 0; backends != NULL && backends[i] != NULL; i++)
        if (!is_hopeless_for(n, backends[i], plan))
            return false;
    return backends != NULL;
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
    const item_set none = {0};
    if (is_hopeless(&n, plan))
        return false;
    for (int most = 0; most <= MOST_CHANGES; most++)
        if (deepen(&n, plan, &none, most)) {
            *out = n.best;
            return true;
        }
    bool is_found = mend_all(&n, plan);
    if (is_found)
        *out = n.best;
    return is_found;
}
