/*
 * cmd_catalog.c: what has a name: models and clusters under configs/, nodes,
 * devices and targets that are built in.
 */
#include "cli/answer.h"
#include "cli/catalog/catalog_rows.h"
#include "cli/catalog/catalog_targets.h"
#include "cli/cli.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "core/base/vec.h"
#include "core/system/fileio.h"
#include "report/document/table.h"
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
static fr_status list_names(const char *kind, const char *extension,
                            name_list *names, fr_err *err)
{
    char path[FR_CONFIG_PATH];
    FR_TRY(fr_config_dir(kind, path, err));
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

static void put_model(const char *name, const fr_model *model,
                      fr_json_writer *json, fr_table *table)
{
    char count[FR_FORMAT_MAX];
    uint64_t n_parameters = fr_model_parameters(model);
    if (json != NULL) {
        fr_json_begin_object(json);
        fr_json_put_string(json, "name", name);
        fr_json_put_string(json, "kind", fr_model_kind_name(model->kind));
        fr_json_put_u64(json, "parameters", n_parameters);
        fr_json_put_u64(json, "active_parameters",
                        fr_model_active_parameters(model));
        fr_json_put_i64(json, "layers", model->n_layers);
        fr_json_put_i64(json, "hidden", model->hidden);
        fr_json_end_object(json);
        return;
    }
    fr_table_text(table, name);
    fr_table_text(table, fr_model_kind_name(model->kind));
    fr_table_text(table, fr_format_u64(count, sizeof count, n_parameters));
    fr_table_cell(table, "%lld", (long long)model->n_layers);
    fr_table_cell(table, "%lld", (long long)model->hidden);
}

static void put_cluster(const char *name, const fr_cluster *cluster,
                        fr_json_writer *json, fr_table *table)
{
    const char *device = fr_cluster_device(cluster, 0)->id;
    const char *fabric = fr_fabric_kind_name(cluster->fabric.kind);
    if (json != NULL) {
        fr_json_begin_object(json);
        fr_json_put_string(json, "name", name);
        fr_json_put_i64(json, "nodes", fr_cluster_n_nodes(cluster));
        fr_json_put_i64(json, "slots", fr_cluster_slots(cluster));
        fr_json_put_string(json, "device", device);
        fr_json_put_string(json, "fabric", fabric);
        fr_json_end_object(json);
        return;
    }
    fr_table_text(table, name);
    fr_table_cell(table, "%lld", (long long)fr_cluster_n_nodes(cluster));
    fr_table_cell(table, "%lld", (long long)fr_cluster_slots(cluster));
    fr_table_text(table, device);
    fr_table_text(table, fabric);
}

/* Exactly one of json and table is given. */
static fr_status put_entries(const name_list *names, bool is_models,
                             fr_json_writer *json, fr_table *table, fr_err *err)
{
    for (size_t i = 0; i < names->n; i++) {
        fr_model model;
        fr_cluster cluster;
        if (is_models) {
            FR_TRY(fr_model_load(names->items[i], &model, err));
            put_model(names->items[i], &model, json, table);
            fr_model_release(&model);
        } else {
            FR_TRY(fr_cluster_load(names->items[i], &cluster, err));
            put_cluster(names->items[i], &cluster, json, table);
            fr_cluster_release(&cluster);
        }
    }
    return FR_OK;
}

static fr_status put_kind(bool is_models, fr_json_writer *json, fr_buffer *text,
                          fr_err *err)
{
    static const char *const model_headings[] = {
        "model", "kind", ">parameters", ">layers", ">hidden", NULL};
    static const char *const cluster_headings[] = {
        "cluster", ">nodes", ">slots", "device", "network", NULL};
    name_list names = {0};
    fr_table table;
    fr_table_init(&table, is_models ? model_headings : cluster_headings);
    fr_status status = list_names(is_models ? "models" : "clusters",
                                  is_models ? ".json" : ".xml", &names, err);
    if (status == FR_OK && json != NULL) {
        fr_json_open_array(json, is_models ? "models" : "clusters");
        status = put_entries(&names, is_models, json, NULL, err);
        fr_json_end_array(json);
    } else if (status == FR_OK) {
        status = put_entries(&names, is_models, NULL, &table, err);
    }
    if (status == FR_OK && json == NULL)
        status = fr_table_finish(&table, text, err);
    fr_table_release(&table);
    release_names(&names);
    return status;
}

/* The parts in the order they are printed; `word` names one. */
typedef struct part {
    const char *word;
    void (*put)(fr_json_writer *json);
    fr_status (*print)(fr_buffer *out, fr_err *err);
} part;

static const part parts[] = {
    {"models", NULL, NULL},
    {"clusters", NULL, NULL},
    {"nodes", fr_catalog_put_nodes, fr_catalog_print_nodes},
    {"devices", fr_catalog_put_devices, fr_catalog_print_devices},
    {"targets", fr_catalog_put_targets, fr_catalog_print_targets},
    {"sources", fr_catalog_put_sources, fr_catalog_print_sources},
};
enum { N_PARTS = FR_LENGTH(parts) };

static fr_status put_part(const part *at, fr_json_writer *json, fr_buffer *text,
                          fr_err *err)
{
    if (at->put == NULL)
        return put_kind(at == &parts[0], json, text, err);
    if (json == NULL)
        return at->print(text, err);
    at->put(json);
    return FR_OK;
}

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
static fr_status load_template(const char *name, char **text, size_t *n,
                               fr_err *err)
{
    enum { MOST_BYTES = 1 << 20 };
    char dir[FR_CONFIG_PATH], path[FR_CONFIG_PATH + 80];
    name_list known = {0};
    fr_status status = list_names("templates", ".xml", &known, err);
    if (status == FR_OK &&
        fr_text_find(name, (const char *const *)known.items, known.n) < 0)
        status = fail_template(name, &known, err);
    release_names(&known);
    if (status != FR_OK)
        return status;
    FR_TRY(fr_config_dir("templates", dir, err));
    snprintf(path, sizeof path, "%s/%s.xml", dir, name);
    return fr_file_read(path, MOST_BYTES, text, n, err);
}

static fr_status print_template(const fr_cli *cli, const char *name,
                                fr_err *err)
{
    fr_answer answer;
    fr_buffer out;
    char *text;
    size_t n;
    FR_TRY(load_template(name, &text, &n, err));
    if (fr_cli_on(cli, FR_OPT_JSON)) {
        fr_json_writer *json = fr_answer_begin(&answer, "forerun.template/1");
        fr_json_put_string(json, "name", name);
        fr_json_put_string(json, "xml", text);
        free(text);
        return fr_answer_print(&answer, cli, err);
    }
    fr_buffer_init(&out);
    fr_buffer_append(&out, text, n);
    free(text);
    return fr_answer_text(FR_OK, &out, cli, err);
}

/* One target with all that it says. */
static fr_status print_one(const fr_cli *cli, fr_buffer *text, fr_err *err)
{
    if (strcmp(cli->request.positional[0], "targets") != 0)
        return fr_fail(err, FR_USAGE,
                       "'%.80s' is one word too many; catalog targets NAME "
                       "takes two",
                       cli->request.positional[1]);
    return fr_catalog_print_target(cli->request.positional[1], text, err);
}

FR_COMMAND_FUNCTION(catalog)
{
    const char *word =
        cli->request.n_positional > 0 ? cli->request.positional[0] : NULL;
    const char *template = fr_cli_text(cli, FR_OPT_TEMPLATE);
    bool is_json = fr_cli_on(cli, FR_OPT_JSON), is_known = word == NULL;
    if (template != NULL)
        return print_template(cli, template, err);
    for (size_t i = 0; i < N_PARTS; i++)
        is_known = is_known || strcmp(parts[i].word, word) == 0;
    if (!is_known)
        return fr_fail(err, FR_USAGE,
                       "catalog of '%.80s'? give models, clusters, nodes, "
                       "devices, targets or sources",
                       word);
    fr_answer answer;
    fr_buffer text;
    fr_json_writer *json = fr_answer_begin(&answer, "forerun.catalog/1");
    fr_answer_open(cli, &text);
    fr_status status = FR_OK;
    if (cli->request.n_positional > 1 && !is_json) {
        fr_buffer_release(&answer.buffer);
        return fr_answer_text(print_one(cli, &text, err), &text, cli, err);
    }
    for (size_t i = 0; i < N_PARTS && status == FR_OK; i++) {
        if (word != NULL && strcmp(parts[i].word, word) != 0)
            continue;
        if (word == NULL && i > 0)
            fr_buffer_putc(&text, '\n');
        status = put_part(&parts[i], is_json ? json : NULL, &text, err);
    }
    if (status == FR_OK && is_json) {
        fr_buffer_release(&text);
        return fr_answer_print(&answer, cli, err);
    }
    fr_buffer_release(&answer.buffer);
    return fr_answer_text(status, &text, cli, err);
}
