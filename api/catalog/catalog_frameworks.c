/* catalog_frameworks.c: see catalog_frameworks.h. */
#include "api/catalog/catalog_frameworks.h"

#include "frameworks/framework.h"

static bool is_run(const fr_framework *framework)
{
    return framework->facts != NULL;
}

/* A name for several is written as the one that the plan decides. */
static bool is_written(const fr_framework *framework)
{
    return framework->writer != NULL ||
           (framework->choose != NULL && framework->target != NULL);
}

/* Its plans are read as they are where a plan file is what it takes. */
static bool is_read(const fr_framework *framework)
{
    return framework->reader != NULL ||
           (framework->choose == NULL && framework->target != NULL &&
            framework->target->fields == NULL);
}

static bool has_log(const fr_framework *framework)
{
    return framework->logs[0] != NULL;
}

static const struct {
    const char *name;
    bool (*is_so)(const fr_framework *framework);
} abilities[] = {{"run", is_run},
                 {"write", is_written},
                 {"read", is_read},
                 {"log", has_log}};

static void put_data(fr_json_writer *json)
{
    fr_json_open_array(json, "frameworks");
    for (int i = 0; i < fr_n_frameworks; i++) {
        const fr_framework *at = fr_frameworks[i];
        fr_json_begin_object(json);
        fr_json_put_string(json, "name", at->name);
        fr_json_put_string(json, "summary", at->summary);
        fr_json_open_array(json, "aliases");
        for (size_t k = 0; k < FR_LENGTH(at->aliases); k++)
            if (at->aliases[k] != NULL)
                fr_json_string(json, at->aliases[k]);
        fr_json_end_array(json);
        for (size_t k = 0; k < FR_LENGTH(abilities); k++)
            fr_json_put_bool(json, abilities[k].name, abilities[k].is_so(at));
        fr_json_end_object(json);
    }
    fr_json_end_array(json);
}

void fr_catalog_put_frameworks(fr_document *out)
{
    static const char *const headings[] = {"framework", "run",  "write", "read",
                                           "log",       "also", "what",  NULL};
    put_data(&out->data);
    fr_table *table = fr_document_table(out, headings);
    for (int i = 0; i < fr_n_frameworks; i++) {
        const fr_framework *at = fr_frameworks[i];
        fr_table_text(table, at->name);
        for (size_t k = 0; k < FR_LENGTH(abilities); k++)
            fr_table_text(table, abilities[k].is_so(at) ? "yes" : "no");
        fr_table_text(table, at->aliases[0] != NULL ? at->aliases[0] : "");
        fr_table_text(table, at->summary);
    }
}
