/* cmd_import.c: descriptions of other tools as cluster files and profiles. */
#include "cli/answer.h"
#include "cli/command.h"
#include "cli/inputs.h"
#include "core/base/fileio.h"
#include "core/base/hash.h"
#include "interop/import/import.h"
#include "spec/cluster/cluster_write.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_FILE_BYTES = 64 << 20 };

/* KIND FILE, or FILE alone. */
static fr_status find_kind(const fr_cli *cli, const char *text, size_t n,
                           int *kind, fr_err *err)
{
    if (cli->n_positional > 1) {
        *kind = fr_import_kind_find(cli->positional[0]);
        if (*kind >= 0)
            return FR_OK;
    } else {
        *kind = fr_import_guess(text, n);
        if (*kind >= 0)
            return FR_OK;
    }
    fr_buffer names;
    fr_buffer_init(&names);
    for (int i = 0; fr_import_kind_name(i) != NULL; i++)
        fr_buffer_printf(&names, "%s%s", i > 0 ? ", " : "",
                         fr_import_kind_name(i));
    fr_status status =
        cli->n_positional > 1
            ? fr_fail(err, FR_USAGE, "import of '%.40s'? give %s",
                      cli->positional[0], fr_buffer_text(&names))
            : fr_fail(err, FR_INPUT,
                      "%.400s:1: none of the formats that are known; name it: "
                      "%s",
                      cli->positional[0], fr_buffer_text(&names));
    fr_buffer_release(&names);
    return status;
}

/* The file that was made: XML of a cluster, JSON of a profile. */
static fr_status format(const fr_import *import, const char *kind,
                        const char *path, fr_buffer *out, fr_err *err)
{
    fr_buffer comment;
    if (import->is_profile) {
        FR_TRY(fr_profile_format(&import->profile, out, err));
        fr_buffer_putc(out, '\n');
        return fr_buffer_check(out, err);
    }
    fr_buffer_init(&comment);
    fr_buffer_printf(&comment, "Imported (%s) from %s.\n%s", kind,
                     fr_path_name(path), fr_buffer_text(&import->notes));
    while (comment.n > 0 && comment.data[comment.n - 1] == '\n')
        comment.data[--comment.n] = '\0';
    fr_status status = fr_buffer_check(&comment, err);
    if (status == FR_OK)
        status = fr_cluster_format(&import->cluster, comment.data, out, err);
    fr_buffer_release(&comment);
    return status;
}

static void put_notes(fr_json_writer *json, const char *notes)
{
    fr_json_open_array(json, "assumed");
    for (const char *at = notes; *at;) {
        size_t n = strcspn(at, "\n");
        char *line = strndup(at, n);
        if (line != NULL)
            fr_json_string(json, line);
        free(line);
        at += n + (at[n] != '\0');
    }
    fr_json_end_array(json);
}

static fr_status print_json(const fr_cli *cli, const fr_import *import,
                            const char *kind, fr_err *err)
{
    char hash[17];
    fr_answer answer;
    const fr_cluster *cluster = &import->cluster;
    fr_json_writer *json = fr_answer_begin(&answer, "forerun.import/1");
    fr_json_put_string(json, "kind", kind);
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
    if (fr_cli_text(cli, FR_OPT_OUTPUT) != NULL)
        fr_json_put_string(json, "output", fr_cli_text(cli, FR_OPT_OUTPUT));
    put_notes(json, fr_buffer_text(&import->notes));
    return fr_answer_print(&answer, cli, err);
}

/* Assumptions are chatter; the file is the answer, or goes where -o says. */
static fr_status print(const fr_cli *cli, const fr_import *import,
                       const char *kind, const char *path, fr_err *err)
{
    const char *output = fr_cli_text(cli, FR_OPT_OUTPUT);
    fr_buffer text;
    fr_buffer_init(&text);
    fr_status status = format(import, kind, path, &text, err);
    if (status == FR_OK && output != NULL)
        status = fr_file_write(output, text.data, text.n, err);
    if (status == FR_OK)
        fr_cli_note_lines(cli, kind, fr_buffer_text(&import->notes));
    if (status == FR_OK && fr_cli_on(cli, FR_OPT_JSON))
        status = print_json(cli, import, kind, err);
    else if (status == FR_OK && output == NULL)
        return fr_answer_text(FR_OK, &text, cli, err);
    fr_buffer_release(&text);
    return status;
}

FR_COMMAND_FUNCTION(import)
{
    const char *path = cli->positional[cli->n_positional - 1];
    fr_import_options options = {
        .gpu = fr_cli_text(cli, FR_OPT_GPU),
        .node_type = fr_cli_text(cli, FR_OPT_NODE_TYPE),
        .n_nodes = cli->option[FR_OPT_NODES].count,
    };
    fr_import import;
    char *text;
    size_t n;
    int kind = 0;
    FR_TRY(
        fr_as_input(fr_file_read(path, MAX_FILE_BYTES, &text, &n, err), err));
    fr_status status = find_kind(cli, text, n, &kind, err);
    if (status == FR_OK)
        status = fr_import_parse(kind, path, text, n, &options, &import, err);
    free(text);
    if (status != FR_OK)
        return status;
    status = print(cli, &import, fr_import_kind_name(kind), path, err);
    fr_import_release(&import);
    return status;
}
