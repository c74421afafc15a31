/* answer_import.c: descriptions of other tools as cluster files and profiles,
 * configurations of frameworks as plan files. */
#include "api/answer/answers.h"
#include "api/import/measured.h"
#include "api/inputs.h"
#include "api/resolve/config_choice.h"
#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/system/fileio.h"
#include "interop/import/import.h"
#include "spec/cluster/cluster_write.h"

#include <stdlib.h>
#include <string.h>

/* A file, of what kind, and what came out of it. */
typedef struct source {
    const char *word; /* KIND, NULL: to be guessed */
    const char *path;
    char *text; /* owned */
    size_t n_text;
    const fr_framework *config; /* of a framework; NULL: it is of `kind` */
    int kind;
    fr_import import;
    bool is_read;
} source;

/* Descriptions of machines, configurations, and what runs left, by their
 * tables.
 */
const char *fr_import_word(int i)
{
    static const char *(*const lists[])(int) = {
        fr_import_kind_name, fr_config_name, fr_measured_name};
    for (size_t k = 0; k < FR_LENGTH(lists); k++) {
        int n = 0;
        while (lists[k](n) != NULL)
            n++;
        if (i < n)
            return lists[k](i);
        i -= n;
    }
    return NULL;
}

static fr_status fail_kind(const source *from, fr_err *err)
{
    enum { MANY = 64 };
    const char *words[MANY];
    size_t n = 0;
    char hint[FR_HINT_MAX];
    fr_buffer names;
    fr_buffer_init(&names);
    for (; n < MANY && fr_import_word((int)n) != NULL; n++) {
        words[n] = fr_import_word((int)n);
        fr_buffer_printf(&names, "%s%s", n > 0 ? ", " : "", words[n]);
    }
    const char *near =
        from->word != NULL ? fr_text_nearest(from->word, words, n) : NULL;
    fr_status status =
        from->word != NULL
            ? fr_fail(err, FR_USAGE, "import of '%.40s'%s give %s", from->word,
                      near != NULL ? fr_text_hint(near, hint) : "?",
                      fr_buffer_text(&names))
            : fr_fail(err, FR_INPUT,
                      "%.400s:1: none of the formats that are known; name it: "
                      "%s",
                      from->path, fr_buffer_text(&names));
    fr_buffer_release(&names);
    return status;
}

static fr_status load_source(source *from, fr_err *err)
{
    FR_TRY(fr_as_input(fr_file_read(from->path, FR_FILE_BYTES_MAX, &from->text,
                                    &from->n_text, err),
                       err));
    from->kind = from->word != NULL ? fr_import_kind_find(from->word)
                                    : fr_import_guess(from->text, from->n_text);
    if (from->kind < 0)
        from->config = from->word != NULL
                           ? fr_config_find(from->word)
                           : fr_config_guess(from->text, from->n_text);
    return from->kind >= 0 || from->config != NULL ? FR_OK
                                                   : fail_kind(from, err);
}

static fr_status read_source(source *from, const fr_import_options *options,
                             fr_err *err)
{
    FR_TRY(fr_import_parse(from->kind, from->path, from->text, from->n_text,
                           options, &from->import, err));
    from->is_read = true;
    return FR_OK;
}

/* Two files: which one says how nodes are joined, the other what a node is. */
static fr_status order_sources(source sources[2], fr_err *err)
{
    for (int i = 0; i < 2; i++)
        if (sources[i].config != NULL)
            return fr_fail(err, FR_USAGE,
                           "%.200s is a configuration of %s: it is read by "
                           "itself",
                           sources[i].path, sources[i].config->name);
    fr_import_subject first = fr_import_kind_subject(sources[0].kind);
    fr_import_subject second = fr_import_kind_subject(sources[1].kind);
    if (first == FR_IMPORT_OF_NODE && second == FR_IMPORT_OF_TOPOLOGY) {
        source topology = sources[1];
        sources[1] = sources[0];
        sources[0] = topology;
        return FR_OK;
    }
    if (first == FR_IMPORT_OF_TOPOLOGY && second == FR_IMPORT_OF_NODE)
        return FR_OK;
    return fr_fail(err, FR_USAGE,
                   "%.200s (%s) and %.200s (%s) cannot be joined; of two files "
                   "one says how nodes are joined (slurm), the other what a "
                   "node is (nccl, nccl-graph, hwloc, topo-m)",
                   sources[0].path, fr_import_kind_name(sources[0].kind),
                   sources[1].path, fr_import_kind_name(sources[1].kind));
}

/* sources[0] becomes the answer, sources[1] is the node of it. */
static fr_status read_sources(source sources[2], size_t n,
                              fr_import_options options, fr_err *err)
{
    if (n > 1) {
        fr_import_options of_node = options;
        of_node.n_nodes = 0;
        FR_TRY(order_sources(sources, err));
        FR_TRY(read_source(&sources[1], &of_node, err));
        options.node = &sources[1].import.cluster;
    }
    return read_source(&sources[0], &options, err);
}

/*
 * The words of the command line: [KIND] FILE [[KIND] FILE].  A word before
 * another one is a kind unless it is a file.
 */
static fr_status find_sources(const fr_request *request, source sources[2],
                              size_t *out, fr_err *err)
{
    size_t n = 0;
    for (int i = 0; i < request->n_positional; i++) {
        const char *word = request->positional[i];
        if (n == 2)
            return fr_fail(err, FR_USAGE, "'%.200s' is one file too many",
                           word);
        bool is_last = i + 1 == request->n_positional;
        bool is_kind =
            !is_last && (fr_import_kind_find(word) >= 0 ||
                         fr_config_find(word) != NULL || !fr_file_exists(word));
        sources[n++] = (source){.word = is_kind ? word : NULL,
                                .path = request->positional[i += is_kind]};
    }
    *out = n;
    return FR_OK;
}

/* Appends the file, with its sources and assumptions. */
static void describe(const source sources[2], size_t n, fr_buffer *out)
{
    fr_buffer_printf(out, "Imported (%s) from %s",
                     fr_import_kind_name(sources[0].kind),
                     fr_path_name(sources[0].path));
    if (n > 1)
        fr_buffer_printf(out, ", a node of it (%s) from %s",
                         fr_import_kind_name(sources[1].kind),
                         fr_path_name(sources[1].path));
    fr_buffer_puts(out, ".\n");
    for (size_t i = n; i-- > 0;)
        fr_buffer_puts(out, fr_buffer_text(&sources[i].import.notes));
    while (out->n > 0 && out->data[out->n - 1] == '\n')
        out->data[--out->n] = '\0';
}

/* The file that was made: XML of a cluster, JSON of a profile. */
static fr_status format(const source sources[2], size_t n, fr_buffer *out,
                        fr_err *err)
{
    const fr_import *import = &sources[0].import;
    fr_buffer comment;
    if (import->is_profile) {
        FR_TRY(fr_profile_format(&import->profile, out, err));
        fr_buffer_putc(out, '\n');
        return fr_buffer_check(out, err);
    }
    fr_buffer_init(&comment);
    describe(sources, n, &comment);
    fr_status status = fr_buffer_check(&comment, err);
    if (status == FR_OK)
        status = fr_cluster_format(&import->cluster, comment.data, out, err);
    fr_buffer_release(&comment);
    return status;
}

static void put_data(const fr_request *request, const source sources[2],
                     size_t n, fr_document *out)
{
    fr_json_writer *json = &out->data;
    char hash[17];
    const fr_import *import = &sources[0].import;
    const fr_cluster *cluster = &import->cluster;
    fr_json_put_string(json, "kind", fr_import_kind_name(sources[0].kind));
    if (n > 1)
        fr_json_put_string(json, "node_kind",
                           fr_import_kind_name(sources[1].kind));
    if (import->is_profile) {
        fr_hash_format(fr_profile_hash(&import->profile), hash);
        fr_json_put_string(json, "profile_hash", hash);
        fr_json_put_u64(json, "comm_points", import->profile.n_comm);
    } else {
        fr_hash_format(fr_cluster_hash(cluster), hash);
        fr_json_put_string(json, "cluster_hash", hash);
        fr_json_put_string(json, "name", cluster->name);
        fr_json_put_i64(json, "nodes", fr_cluster_n_nodes(cluster));
        fr_json_put_i64(json, "slots", fr_cluster_slots(cluster));
        fr_json_put_string(json, "device", cluster->devices[0].id);
        fr_json_put_string(json, "fabric",
                           fr_fabric_kind_name(cluster->fabric.kind));
    }
    if (fr_request_text(request, FR_OPT_OUTPUT) != NULL)
        fr_json_put_string(json, "output",
                           fr_request_text(request, FR_OPT_OUTPUT));
    fr_json_open_array(json, "assumed");
    for (size_t i = n; i-- > 0;)
        fr_document_add_lines(out, fr_buffer_text(&sources[i].import.notes));
    fr_json_end_array(json);
}

/* Assumptions are chatter; the file is the answer, or goes where -o says. */
static fr_status print(const fr_request *request, const source sources[2],
                       size_t n, fr_document *out, fr_err *err)
{
    const char *output = fr_request_text(request, FR_OPT_OUTPUT);
    fr_buffer text;
    fr_buffer_init(&text);
    fr_status status = format(sources, n, &text, err);
    if (status == FR_OK && output != NULL)
        status = fr_file_write(output, text.data, text.n, err);
    for (size_t i = n; status == FR_OK && i-- > 0;)
        fr_request_note_lines(request, fr_import_kind_name(sources[i].kind),
                              fr_buffer_text(&sources[i].import.notes));
    fr_document_init(out, "forerun.import/1");
    if (status == FR_OK)
        put_data(request, sources, n, out);
    if (output == NULL)
        fr_document_verbatim(out, fr_buffer_text(&text));
    fr_buffer_release(&text);
    return status;
}

/* The two kinds of files take different options. */
static fr_status check_options(const fr_request *request, bool is_config,
                               fr_err *err)
{
    static const fr_option of_config[] = {FR_OPT_MODEL, FR_OPT_RANKS,
                                          FR_OPT_SEQ, FR_OPT_N};
    static const fr_option of_cluster[] = {FR_OPT_GPU, FR_OPT_NODE_TYPE,
                                           FR_OPT_NODES, FR_OPT_TEST, FR_OPT_N};
    const fr_option *others = is_config ? of_cluster : of_config;
    for (int i = 0; others[i] != FR_OPT_N; i++)
        if (request->option[others[i]].source == FR_SOURCE_FLAG)
            return fr_fail(err, FR_USAGE, "--%s is for %s",
                           fr_option_get(others[i]).name,
                           is_config ? "descriptions of machines"
                                     : "configurations of frameworks");
    return FR_OK;
}

static fr_status import_config(const fr_request *request, const source *from,
                               fr_document *out, fr_err *err)
{
    const fr_config_source config = {.framework = from->config,
                                     .path = from->path,
                                     .text = from->text,
                                     .n_text = from->n_text};
    FR_TRY(check_options(request, true, err));
    return fr_import_config(request, &config, out, err);
}

static fr_status import_machine(const fr_request *request, source sources[2],
                                size_t n, fr_document *out, fr_err *err)
{
    const fr_import_options options = {
        .gpu = fr_request_text(request, FR_OPT_GPU),
        .node_type = fr_request_text(request, FR_OPT_NODE_TYPE),
        .test = fr_request_text(request, FR_OPT_TEST),
        .n_nodes = request->option[FR_OPT_NODES].count,
    };
    FR_TRY(check_options(request, false, err));
    FR_TRY(read_sources(sources, n, options, err));
    return print(request, sources, n, out, err);
}

fr_status fr_api_import(const fr_request *request, fr_document *out,
                        fr_err *err)
{
    const fr_measured_kind *measured = fr_measured_find(request->positional[0]);
    if (measured != NULL && request->n_positional > 1)
        return measured->import(request, out, err);
    source sources[2] = {{0}, {0}};
    size_t n = 0;
    fr_status status = FR_OK;
    for (int i = 0; request->n_positional == 1 && fr_import_word(i) != NULL;
         i++)
        if (strcmp(fr_import_word(i), request->positional[0]) == 0 &&
            !fr_file_exists(request->positional[0]))
            return fr_fail(err, FR_USAGE, "import %s: of which file?",
                           request->positional[0]);
    FR_TRY(find_sources(request, sources, &n, err));
    for (size_t i = 0; status == FR_OK && i < n; i++)
        status = load_source(&sources[i], err);
    if (status == FR_OK)
        status = n == 1 && sources[0].config != NULL
                     ? import_config(request, &sources[0], out, err)
                     : import_machine(request, sources, n, out, err);
    for (size_t i = 0; i < n; i++) {
        free(sources[i].text);
        if (sources[i].is_read)
            fr_import_release(&sources[i].import);
    }
    return status;
}
