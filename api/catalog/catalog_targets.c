/* catalog_targets.c: see catalog_targets.h. */
#include "api/catalog/catalog_targets.h"

#include "frameworks/framework.h"
#include "plan/decide/plan_refusals.h"

static const char *const fates[FR_FATE_N] = {[FR_FATE_UNSAID] = "unsaid",
                                             [FR_FATE_WRITTEN] = "written",
                                             [FR_FATE_IMPLIED] = "implied",
                                             [FR_FATE_PREDICTED] = "predicted",
                                             [FR_FATE_REFUSED] = "refused"};

/* ---- data ---------------------------------------------------------------- */

static void put_fields(const fr_target *target, fr_json_writer *json)
{
    fr_json_open_array(json, "fields");
    for (int i = 0; i < FR_PLAN_ITEMS_N; i++) {
        const int item = fr_plan_items[i];
        const fr_target_field row = fr_target_item(target, item);
        fr_json_begin_object(json);
        fr_json_put_string(json, "field", fr_plan_item_row(item)->field.key);
        fr_json_put_string(json, "fate", fates[row.fate]);
        fr_json_put_string(json, "how", row.how);
        if (row.why != NULL)
            fr_json_put_string(json, "limit", row.why);
        fr_json_end_object(json);
    }
    fr_json_end_array(json);
}

/* Rules of the target and of what it runs on. */
static void put_rules_of(const fr_target *target, fr_json_writer *json)
{
    for (const fr_target *of = target; of != NULL; of = of->base)
        for (const fr_target_rule *r = of->rules; r->text != NULL; r++) {
            fr_json_begin_object(json);
            fr_json_put_string(json, "of", of->name);
            fr_json_put_string(json, "asks_for", r->text);
            fr_json_put_string(json, "source", r->source);
            fr_json_end_object(json);
        }
}

static void put_rules(const fr_target *target, fr_json_writer *json)
{
    fr_json_open_array(json, "rules");
    put_rules_of(target, json);
    for (int i = 0; target->backends != NULL && target->backends[i] != NULL;
         i++)
        put_rules_of(target->backends[i], json);
    fr_json_end_array(json);
}

static const char *refused_on(const fr_plan_refusal *row)
{
    return (row->on & FR_RUNTIME_BOTH) == FR_RUNTIME_BOTH ? "both"
           : row->on & FR_RUNTIME_GPU                     ? "GPUs"
                                                          : "CPUs";
}

/* Puts the plans that forerun's own runtime refuses. */
static void put_refusals(fr_json_writer *json)
{
    fr_json_open_array(json, "runtime_refuses");
    for (int i = 0; i < fr_n_plan_refusals; i++) {
        const fr_plan_refusal *row = &fr_plan_refusals[i];
        fr_json_begin_object(json);
        fr_json_put_string(json, "what", row->what);
        fr_json_put_string(json, "choose", row->mend);
        fr_json_put_string(json, "on", refused_on(row));
        fr_json_end_object(json);
    }
    fr_json_end_array(json);
}

static void put_targets(fr_json_writer *json)
{
    const fr_target *target;
    fr_json_open_array(json, "targets");
    for (int t = 0; (target = fr_target_at(t)) != NULL; t++) {
        fr_json_begin_object(json);
        fr_json_put_string(json, "name", target->name);
        fr_json_put_string(json, "summary", target->summary);
        fr_json_open_array(json, "versions");
        for (int i = 0; target->versions != NULL && target->versions[i] != NULL;
             i++)
            fr_json_string(json, target->versions[i]);
        fr_json_end_array(json);
        put_fields(target, json);
        put_rules(target, json);
        fr_json_end_object(json);
    }
    fr_json_end_array(json);
    put_refusals(json);
}

/* ---- tables -------------------------------------------------------------- */

void fr_catalog_put_targets(fr_document *out)
{
    static const fr_column columns[] = {
        {"target", "name"}, {"versions", "versions"}, {"what", "summary"}};
    const fr_target *target;
    fr_table *table =
        fr_document_records(out, NULL, columns, FR_LENGTH(columns));
    table->is_main = true;
    for (int t = 0; (target = fr_target_at(t)) != NULL; t++) {
        int newest = fr_target_newest(target);
        fr_table_text(table, target->name);
        if (target->versions == NULL)
            fr_table_text(table, "");
        else if (newest == 0)
            fr_table_text(table, target->versions[0]);
        else
            fr_table_cell(table, "%s to %s", target->versions[0],
                          target->versions[newest]);
        fr_table_text(table, target->summary);
    }
    put_targets(&out->data);
}

static void print_fields(const fr_target *target, fr_document *out)
{
    static const fr_column columns[] = {
        {"field", "field"}, {"is", "fate"}, {"how", "how"}};
    fr_table *table =
        fr_document_records(out, NULL, columns, FR_LENGTH(columns));
    table->is_main = true;
    for (int i = 0; i < FR_PLAN_ITEMS_N; i++) {
        const int item = fr_plan_items[i];
        const fr_target_field row = fr_target_item(target, item);
        fr_table_text(table, fr_plan_item_row(item)->field.key);
        fr_table_text(table, fates[row.fate]);
        fr_table_cell(table, "%s%s%s%s", row.how, row.why != NULL ? " (" : "",
                      row.why != NULL ? row.why : "",
                      row.why != NULL ? ")" : "");
    }
}

static void print_rules_of(const fr_target *target, fr_document *out)
{
    static const char *const headings[] = {"asks for", "source", NULL};
    fr_table *table = fr_document_table(out, headings);
    for (const fr_target *of = target; of != NULL; of = of->base)
        for (const fr_target_rule *r = of->rules; r->text != NULL; r++) {
            fr_table_text(table, r->text);
            fr_table_text(table, r->source);
        }
}

static void print_rules(const fr_target *target, fr_document *out)
{
    if (target->backends == NULL) {
        print_rules_of(target, out);
        return;
    }
    for (int i = 0; target->backends[i] != NULL; i++) {
        fr_document_printf(out, "%s%s: %s\n", i > 0 ? "\n" : "",
                           target->backends[i]->name,
                           target->backends[i]->summary);
        print_rules_of(target->backends[i], out);
    }
}

static void print_refusals(fr_document *out)
{
    static const char *const headings[] = {"the runtime refuses", "on",
                                           "the mend", NULL};
    fr_table *table = fr_document_table(out, headings);
    for (int i = 0; i < fr_n_plan_refusals; i++) {
        const fr_plan_refusal *row = &fr_plan_refusals[i];
        fr_table_text(table, row->what);
        fr_table_text(table, refused_on(row));
        fr_table_text(table, row->mend);
    }
}

fr_status fr_catalog_put_target(const char *name, fr_document *out, fr_err *err)
{
    const fr_framework *framework = fr_framework_named(name);
    const fr_target *target = framework != NULL ? framework->target : NULL;
    put_targets(&out->data);
    if (target == NULL)
        return fr_fail(err, FR_USAGE,
                       "there is no target '%.80s'; forerun catalog targets "
                       "lists them",
                       name);
    if (target->fields == NULL && target->backends == NULL) {
        print_refusals(out); /* of forerun's own runtime */
        return FR_OK;
    }
    if (target->fields != NULL)
        print_fields(target, out);
    if (target->rules->text == NULL && target->base == NULL &&
        target->backends == NULL)
        return FR_OK;
    if (target->fields != NULL)
        fr_document_puts(out, "\n");
    print_rules(target, out);
    return FR_OK;
}
