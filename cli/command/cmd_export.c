/* cmd_export.c: what a plan chooses, in the formats of other programs. */
#include "cli/answer.h"
#include "cli/command.h"
#include "cli/nccl_rows.h"
#include "cli/option/plan_options.h"
#include "core/base/fileio.h"

#include <string.h>

static fr_status print_json(const fr_cli *cli, const fr_nccl_rows *rows,
                            fr_err *err)
{
    fr_answer answer;
    fr_json_writer *json = fr_answer_begin(&answer, "forerun.export/1");
    fr_json_put_string(json, "format", "nccl-csv");
    fr_json_open_array(json, "rows");
    for (size_t i = 0; i < rows->rows.n; i++) {
        const fr_nccl_rule *row = &rows->rows.items[i];
        fr_json_begin_object(json);
        fr_json_put_string(json, "op", fr_op_name(row->op));
        fr_json_put_u64(json, "min_bytes", row->min_bytes);
        fr_json_put_u64(json, "max_bytes", row->max_bytes);
        fr_json_put_string(json, "algorithm", row->algorithm);
        fr_json_put_string(json, "protocol",
                           fr_name_of(&fr_protocol_names, row->protocol));
        fr_json_put_i64(json, "channels", row->n_channels);
        fr_json_put_i64(json, "nodes", row->n_nodes);
        fr_json_put_i64(json, "ranks", row->n_ranks);
        fr_json_end_object(json);
    }
    fr_json_end_array(json);
    return fr_answer_print(&answer, cli, err);
}

/* The file is the answer, or goes where -o says. */
static fr_status print(const fr_cli *cli, const fr_nccl_rows *rows,
                       const fr_plan *plan, const char *cluster, fr_err *err)
{
    const char *output = fr_cli_text(cli, FR_OPT_OUTPUT);
    char name[256];
    fr_buffer text;
    fr_buffer_init(&text);
    fr_status status = fr_nccl_csv_format(
        rows->rows.items, rows->rows.n,
        fr_plan_describe(plan, name, sizeof name), cluster, &text, err);
    if (status == FR_OK && output != NULL)
        status = fr_file_write(output, text.data, text.n, err);
    if (status == FR_OK)
        fr_cli_note_lines(cli, NULL, fr_buffer_text(&rows->also));
    if (status == FR_OK && fr_cli_on(cli, FR_OPT_JSON))
        status = print_json(cli, rows, err);
    else if (status == FR_OK && output == NULL)
        return fr_answer_text(FR_OK, &text, cli, err);
    fr_buffer_release(&text);
    return status;
}

FR_COMMAND_FUNCTION(export)
{
    fr_plan_file file;
    fr_inputs inputs = {0};
    fr_nccl_rows rows = {0};
    fr_status status;
    if (!fr_cli_has(cli, FR_OPT_TO))
        return fr_fail(err, FR_USAGE, "export to what? give --to nccl-csv");
    FR_TRY(fr_as_input(fr_plan_file_load(cli->positional[0], &file, err), err));
    const char *cluster =
        cli->n_positional > 1 ? cli->positional[1] : file.cluster;
    if (cluster[0] == '\0') {
        status = fr_fail(err, FR_INPUT, "%s names no cluster; give one",
                         cli->positional[0]);
        goto out_file;
    }
    FR_TRY_GOTO(status, fr_cli_apply_plan(cli, &file.plan, NULL, err),
                out_file);
    FR_TRY_GOTO(status, fr_inputs_load(cli, cluster, &inputs, err), out_file);
    FR_TRY_GOTO(status, fr_nccl_rows_make(&inputs, &file, &rows, err),
                out_file);
    status = print(cli, &rows, &file.plan, cluster, err);
out_file:
    fr_nccl_rows_release(&rows);
    fr_inputs_release(&inputs);
    fr_plan_file_release(&file);
    return status;
}
