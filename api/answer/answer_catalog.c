/*
 * answer_catalog.c: what has a name: models and clusters under configs/, nodes,
 * devices and targets that are built in.
 */
#include "api/answer/answers.h"
#include "api/catalog/catalog_frameworks.h"
#include "api/catalog/catalog_rows.h"
#include "api/catalog/catalog_targets.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "core/base/vec.h"
#include "core/system/fileio.h"
#include "spec/catalog/config_path.h"
#include "spec/cluster/cluster.h"
#include "spec/model/model.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef fr_vec(char *) name_list;

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void release_names(name_list *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->items[i]);
    fr_vec_release(names);
}

/* Names without their extension, sorted. */
static fr_status list_names(const char *configs, const char *kind,
                            const char *extension, name_list *names,
                            fr_err *err)
{
    char path[FR_CONFIG_PATH];
    FR_TRY(fr_config_dir(configs, kind, path, err));
    DIR *dir = opendir(path);
    if (dir == NULL)
        return fr_fail(err, FR_IO, "%s: cannot be read", path);
    fr_status status = FR_OK;
    const struct dirent *entry;
    while (status == FR_OK && (entry = readdir(dir)) != NULL) {
        if (!fr_text_ends(entry->d_name, extension))
            continue;
        char *name =
            strndup(entry->d_name, strlen(entry->d_name) - strlen(extension));
        if (name == NULL || fr_vec_push(names, name) != FR_OK) {
            free(name);
            status = fr_fail_no_memory(err);
        }
    }
    closedir(dir);
    if (status == FR_OK && names->n > 0)
        qsort(names->items, names->n, sizeof *names->items, compare_names);
    return status;
}

static void put_model(const char *name, const fr_model *model, fr_table *table)
{
    char count[FR_FORMAT_MAX];
    const uint64_t n_parameters = fr_model_parameters(model);
    fr_table_text(table, name);
    fr_table_text(table, fr_model_kind_name(model->kind));
    fr_table_number(table, FR_CELL_COUNT, (double)n_parameters, "%s",
                    fr_format_u64(count, sizeof count, n_parameters));
    fr_table_count(table, (int64_t)fr_model_active_parameters(model));
    fr_table_count(table, model->n_layers);
    fr_table_count(table, model->hidden);
}

static void put_cluster(const char *name, const fr_cluster *cluster,
                        fr_table *table)
{
    fr_table_text(table, name);
    fr_table_count(table, fr_cluster_n_nodes(cluster));
    fr_table_count(table, fr_cluster_slots(cluster));
    fr_table_text(table, fr_cluster_device(cluster, 0)->id);
    fr_table_text(table, fr_fabric_kind_name(cluster->fabric.kind));
}

static fr_status put_models(const char *configs, fr_document *out, fr_err *err)
{
    static const fr_column columns[] = {{"model", "name"},
                                        {"kind", "kind"},
                                        {">parameters", "parameters"},
                                        {NULL, "active_parameters"},
                                        {">layers", "layers"},
                                        {">hidden", "hidden"}};
    name_list names = {0};
    fr_status status = list_names(configs, "models", ".json", &names, err);
    fr_table *table =
        fr_document_records(out, "models", columns, FR_LENGTH(columns));
    table->is_main = true;
    for (size_t i = 0; i < names.n && status == FR_OK; i++) {
        fr_model model;
        status = fr_model_load(configs, names.items[i], &model, err);
        if (status != FR_OK)
            break;
        put_model(names.items[i], &model, table);
        fr_model_release(&model);
    }
    release_names(&names);
    return status;
}

static fr_status put_clusters(const char *configs, fr_document *out,
                              fr_err *err)
{
    static const fr_column columns[] = {{"cluster", "name"},
                                        {">nodes", "nodes"},
                                        {">slots", "slots"},
                                        {"device", "device"},
                                        {"network", "fabric"}};
    name_list names = {0};
    fr_status status = list_names(configs, "clusters", ".xml", &names, err);
    fr_table *table =
        fr_document_records(out, "clusters", columns, FR_LENGTH(columns));
    table->is_main = true;
    for (size_t i = 0; i < names.n && status == FR_OK; i++) {
        fr_cluster cluster;
        status = fr_cluster_load(configs, names.items[i], &cluster, err);
        if (status != FR_OK)
            break;
        put_cluster(names.items[i], &cluster, table);
        fr_cluster_release(&cluster);
    }
    release_names(&names);
    return status;
}

/* The parts in the order they are printed; `word` names one.  Those under
 * configs/ may fail. */
typedef struct part {
    const char *word;
    void (*put)(fr_document *out);
    fr_status (*load)(const char *configs, fr_document *out, fr_err *err);
} part;

static const part parts[] = {
    {"models", NULL, put_models},
    {"clusters", NULL, put_clusters},
    {"nodes", fr_catalog_put_nodes, NULL},
    {"devices", fr_catalog_put_devices, NULL},
    {"targets", fr_catalog_put_targets, NULL},
    {"frameworks", fr_catalog_put_frameworks, NULL},
    {"sources", fr_catalog_put_sources, NULL},
};
enum { N_PARTS = FR_LENGTH(parts) };

/* ---- templates ---------------------------------------------------------- */

static fr_status fail_template(const char *name, const name_list *known,
                               fr_err *err)
{
    char all[160] = "", hint[FR_HINT_MAX];
    size_t used = 0;
    const char *nearest =
        fr_text_nearest(name, (const char *const *)known->items, known->n);
    for (size_t i = 0; i < known->n && used < sizeof all; i++)
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s",
                                 i > 0 ? ", " : "", known->items[i]);
    return fr_fail(err, FR_USAGE, "there is no template '%.80s'%s%s%s", name,
                   fr_text_hint(nearest, hint),
                   nearest != NULL ? " There are " : "; there are ", all);
}

/* The file as it stands, which is a cluster file. */
static fr_status load_template(const char *configs, const char *name,
                               char **text, size_t *n, fr_err *err)
{
    enum { MOST_BYTES = 1 << 20 };
    char dir[FR_CONFIG_PATH], path[FR_CONFIG_PATH + 80];
    name_list known = {0};
    fr_status status = list_names(configs, "templates", ".xml", &known, err);
    if (status == FR_OK &&
        fr_text_find(name, (const char *const *)known.items, known.n) < 0)
        status = fail_template(name, &known, err);
    release_names(&known);
    if (status != FR_OK)
        return status;
    FR_TRY(fr_config_dir(configs, "templates", dir, err));
    snprintf(path, sizeof path, "%s/%s.xml", dir, name);
    return fr_file_read(path, MOST_BYTES, text, n, err);
}

static fr_status put_template(const char *configs, const char *name,
                              fr_document *out, fr_err *err)
{
    char *text;
    size_t n;
    FR_TRY(load_template(configs, name, &text, &n, err));
    fr_document_init(out, "forerun.template/1");
    fr_json_put_string(&out->data, "name", name);
    fr_json_put_string(&out->data, "xml", text);
    fr_document_verbatim(out, text);
    free(text);
    return FR_OK;
}

/* One target with all that it says. */
static fr_status put_one(const fr_request *request, fr_document *out,
                         fr_err *err)
{
    if (strcmp(request->positional[0], "targets") != 0)
        return fr_fail(err, FR_USAGE,
                       "'%.80s' is one word too many; catalog targets NAME "
                       "takes two",
                       request->positional[1]);
    return fr_catalog_put_target(request->positional[1], out, err);
}

/* The part that the word names, or all of them, with blank lines between. */
static fr_status put_parts(const char *configs, const char *word,
                           fr_document *out, fr_err *err)
{
    for (size_t i = 0; i < N_PARTS; i++) {
        if (word != NULL && strcmp(parts[i].word, word) != 0)
            continue;
        if (word == NULL && i > 0)
            fr_document_puts(out, "\n");
        if (parts[i].put != NULL)
            parts[i].put(out);
        else
            FR_TRY(parts[i].load(configs, out, err));
    }
    return FR_OK;
}

fr_status fr_api_catalog(const fr_request *request, fr_document *out,
                         fr_err *err)
{
    const char *word =
        request->n_positional > 0 ? request->positional[0] : NULL;
    const char *configs = fr_request_configs(request);
    const char *template = fr_request_text(request, FR_OPT_TEMPLATE);
    bool is_known = word == NULL;
    if (template != NULL)
        return put_template(configs, template, out, err);
    for (size_t i = 0; i < N_PARTS; i++)
        is_known = is_known || strcmp(parts[i].word, word) == 0;
    if (!is_known)
        return fr_fail(err, FR_USAGE,
                       "catalog of '%.80s'? give models, clusters, nodes, "
                       "devices, targets, frameworks or sources",
                       word);
    fr_document_init(out, "forerun.catalog/1");
    return request->n_positional > 1 ? put_one(request, out, err)
                                     : put_parts(configs, word, out, err);
}
