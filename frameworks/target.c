/* target.c: what a target says of a plan. */
#include "frameworks/target.h"

#include "frameworks/framework_list.h"
#include "plan/decide/plan_refusals.h"
#include "spec/catalog/catalog.h"

#include <string.h>

int fr_target_newest(const fr_target *target)
{
    int n = 0;
    while (target->versions != NULL && target->versions[n] != NULL)
        n++;
    return n > 0 ? n - 1 : 0;
}

fr_status fr_target_version(const fr_target *target, const char *version,
                            int *out, fr_err *err)
{
    const char *const *all = target->versions;
    fr_buffer names;
    if (version == NULL) {
        *out = fr_target_newest(target);
        return FR_OK;
    }
    for (int i = 0; all != NULL && all[i] != NULL; i++)
        if (strcmp(all[i], version) == 0) {
            *out = i;
            return FR_OK;
        }
    if (all == NULL)
        return fr_fail(err, FR_USAGE,
                       "%s has no versions here; leave out "
                       "--version",
                       target->name);
    fr_buffer_init(&names);
    for (int i = 0; all[i] != NULL; i++)
        fr_buffer_printf(&names, "%s%s", i > 0 ? ", " : "", all[i]);
    fr_status status = fr_fail(err, FR_USAGE,
                               "--version %.40s of %s is not known; give one "
                               "of %s",
                               version, target->name, fr_buffer_text(&names));
    fr_buffer_release(&names);
    return status;
}

/* ---- checks -------------------------------------------------------------- */

static bool has_value(const fr_target_field *row, const fr_field *field,
                      const fr_plan *plan)
{
    if (field->kind == FR_FIELD_LIST)
        return row->fate != FR_FATE_REFUSED || fr_field_count(field, plan) == 0;
    double value = fr_field_get(field, plan);
    if (row->values == 0)
        return row->fate != FR_FATE_REFUSED || value == field->initial;
    if (value != (double)(int64_t)value)
        return false;
    unsigned bit = value < 0 ? 0 : value > 63 ? 63 : (unsigned)value;
    return (row->values >> bit & 1) != 0;
}

fr_target_field fr_target_item(const fr_target *target, int item)
{
    if (item < FR_PLAN_FIELDS_N)
        return target->fields[item];
    const int fact = item - FR_PLAN_FIELDS_N;
    if (target->facts != NULL && target->facts[fact].fate != FR_FATE_UNSAID)
        return target->facts[fact];
    return (fr_target_field){.fate = FR_FATE_PREDICTED,
                             .how = fr_execution_fields[fact].origin};
}

bool fr_target_has(const fr_target *target, int item, const fr_plan *plan)
{
    const fr_target_field row = fr_target_item(target, item);
    return !fr_plan_field_is_used(plan, item) ||
           has_value(&row, &fr_plan_item_row(item)->field, plan);
}

static fr_status fail_item(const fr_target *target, int item,
                           const fr_plan *plan, fr_err *err)
{
    const fr_target_field row = fr_target_item(target, item);
    const fr_field *field = &fr_plan_item_row(item)->field;
    fr_buffer value;
    fr_buffer_init(&value);
    fr_plan_put_value(field, plan, &value);
    fr_status status = fr_fail(err, FR_INPUT, "%s cannot have %s %s: %s",
                               target->name, field->key, fr_buffer_text(&value),
                               row.why != NULL ? row.why : row.how);
    fr_buffer_release(&value);
    return status;
}

/* Facts are asked for where all is that looks at no field. */
static bool is_asked(int item, uint64_t asked)
{
    return item < FR_PLAN_FIELDS_N ? (asked >> item & 1) != 0
                                   : fr_plan_fields_are_due(0, asked, 0);
}

bool fr_target_rule_is_of(const fr_target_rule *rule, int version)
{
    if (rule->until == FR_TARGET_FIRST_ALONE)
        return version == 0;
    return version >= rule->since &&
           (rule->until == 0 || version <= rule->until);
}

const fr_target *fr_target_backend(const fr_target *target, const fr_plan *plan)
{
    return target->backend_of != NULL ? target->backend_of(plan) : target;
}

/* The rules of the target and of what it runs on. */
static fr_status check_rules(const fr_target *target, int version,
                             uint64_t asked, uint64_t known,
                             const fr_plan *plan, const fr_model *model,
                             const fr_job *job, fr_err *err)
{
    for (const fr_target *of = target; of != NULL; of = of->base) {
        int at = of == target ? version : fr_target_newest(of);
        for (const fr_target_rule *r = of->rules; r->text != NULL; r++) {
            if (fr_plan_fields_are_due(r->fields, asked, known) &&
                fr_target_rule_is_of(r, at) && !r->holds(plan, model, job))
                return fr_fail(err, FR_INPUT, "%s needs %s", target->name,
                               r->text);
        }
    }
    return FR_OK;
}

fr_status fr_target_check(const fr_target *target, int version, uint64_t asked,
                          uint64_t known, const fr_plan *plan,
                          const fr_model *model, const fr_job *job, fr_err *err)
{
    for (int i = 0; target->fields != NULL && i < FR_PLAN_ITEMS_N; i++)
        if (is_asked(fr_plan_items[i], asked) &&
            !fr_target_has(target, fr_plan_items[i], plan))
            return fail_item(target, fr_plan_items[i], plan, err);
    FR_TRY(fr_plan_check_refusals(target->runtime, asked, known, plan, model,
                                  job, err));
    FR_TRY(check_rules(target, version, asked, known, plan, model, job, err));
    /* All that is known is asked of the backend, where it has just been
     * decided which one it is. */
    const fr_target *backend = fr_target_backend(target, plan);
    if (backend == target || (target->backend_fields & ~(asked | known)) != 0)
        return FR_OK;
    if ((target->backend_fields & asked) != 0)
        asked |= known;
    return fr_target_check(backend, version, asked, known, plan, model, job,
                           err);
}

fr_status fr_target_check_device(const fr_target *target,
                                 const fr_device_type *device, fr_err *err)
{
    if ((target->fields == NULL && target->backends == NULL) ||
        target->has_tpus || fr_catalog_vendor(device) != FR_VENDOR_GOOGLE)
        return FR_OK;
    return fr_fail(err, FR_INFEASIBLE,
                   "%s does not run on TPUs ('%s'); choose %s", target->name,
                   device->id, fr_target_jax.name);
}

void fr_target_put_notes(const fr_target *target, const fr_plan *plan,
                         const char *prefix, fr_buffer *out)
{
    fr_plan plain;
    target = fr_target_backend(target, plan);
    fr_plan_init(&plain);
    for (int i = 0; target->fields != NULL && i < FR_PLAN_ITEMS_N; i++) {
        const int item = fr_plan_items[i];
        const fr_target_field row = fr_target_item(target, item);
        const fr_field *field = &fr_plan_item_row(item)->field;
        /* Facts of execution that no key changes are the target's own. */
        const bool is_own = item >= FR_PLAN_FIELDS_N;
        if ((row.fate != FR_FATE_IMPLIED &&
             (row.fate != FR_FATE_PREDICTED || is_own)) ||
            !fr_plan_field_is_used(plan, item) ||
            fr_field_is_same(field, plan, &plain))
            continue;
        fr_buffer_printf(out, "%s%s ", prefix, field->key);
        fr_plan_put_value(field, plan, out);
        fr_buffer_printf(out, ": %s\n", row.how);
    }
}
