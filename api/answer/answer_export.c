/* cmd_export.c: a plan as files of other programs. */
#include "api/fit_answer.h"
#include "api/nccl_rows.h"
#include "api/resolve/plan_options.h"
#include "cli/answer.h"
#include "cli/cli.h"
#include "core/base/text.h"
#include "core/system/fileio.h"
#include "interop/export/export_job.h"
#include "interop/export/export_list.h"
#include "report/fit_report.h"
#include "tuner/goal/goal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Does the plan fit?  A field that the target lacks is reported before, since
 * no --force helps against that. */
typedef struct fit_check {
    fr_fit_advice advice; /* with --force */
    fr_status status;     /* not FR_OK: nothing is written */
    fr_err refusal;
} fit_check;

/* The file becomes one of this cluster, as it is predicted there. */
static void adopt(const fr_inputs *inputs, const fr_prediction *prediction,
                  fr_plan_file *file)
{
    const uint64_t hash = fr_cluster_hash(&inputs->cluster);
    file->has_prediction = true;
    file->prediction = *prediction;
    file->profile_hash = 0;
    if (file->cluster_hash == hash)
        return;
    fr_text_copy_cut(file->cluster, sizeof file->cluster, inputs->cluster_word);
    file->cluster_hash = hash;
    free(file->node_of_rank);
    file->node_of_rank = NULL;
}

/* Does the prediction of the file stay?  On its own cluster it does, unless the
 * plan is another one now: costs that a profile measured are better than those
 * of a datasheet.  Where the cluster of that name has changed (a power cap of
 * the plan, another file), it stays until the user names the cluster. */
static bool keeps_prediction(const fr_cli *cli, const fr_inputs *inputs,
                             const fr_prediction *prediction,
                             const fr_plan_file *file)
{
    const bool is_named = cli->request.n_positional > 1;
    if (!file->has_prediction)
        return false;
    if (file->cluster_hash == fr_cluster_hash(&inputs->cluster))
        return fr_fit_answer_is_carried(file, inputs, prediction);
    if (is_named)
        return false;
    fr_cli_note(cli,
                "forerun: %s is not as it was when the plan was made (a power "
                "cap, another file): the prediction in the plan stays; forerun "
                "export PLAN CLUSTER predicts it anew",
                file->cluster);
    return true;
}

/* A plan that cannot be predicted on the cluster cannot run there either. */
static fr_status predict(const fr_cli *cli, const char *cluster,
                         fr_plan_file *file, fit_check *out, fr_err *err)
{
    const fr_fit_place place = {.cluster = cluster};
    fr_inputs inputs = {0};
    fr_prediction prediction;
    out->status = fr_fit_answer_predict(&cli->request, file, &place, &inputs,
                                        &prediction, &out->refusal);
    if (out->status == FR_OK) {
        if (keeps_prediction(cli, &inputs, &prediction, file)) {
            prediction = file->prediction;
        } else {
            fr_inputs_note_wrong_cluster(&cli->request, &inputs, file->cluster,
                                         file->cluster_hash);
            adopt(&inputs, &prediction, file);
        }
        out->status =
            fr_fit_answer_check(&cli->request, &inputs, file, &prediction,
                                &out->advice, &out->refusal);
    } else if (inputs.costs != NULL && fr_cli_on(cli, FR_OPT_FORCE)) {
        fr_cli_note(cli, "forerun: %s; exported because of --force",
                    out->refusal.text);
        out->status = FR_OK;
        file->has_prediction = false;
    }
    fr_status status = FR_OK;
    if (inputs.costs == NULL)
        status = fr_fail(err, out->status, "%s", out->refusal.text);
    fr_inputs_release(&inputs);
    return status;
}

static fr_status check_fit(const fr_cli *cli, const char *cluster,
                           fr_plan_file *file, fit_check *out, fr_err *err)
{
    if (cluster[0] != '\0')
        FR_TRY(predict(cli, cluster, file, out, err));
    else if (file->has_prediction)
        out->status =
            fr_fit_answer_check(&cli->request, NULL, file, &file->prediction,
                                &out->advice, &out->refusal);
    if (out->advice.verdict[0] != '\0')
        fr_cli_note(cli, "forerun: %s; exported because of --force",
                    out->advice.verdict);
    return FR_OK;
}

static fr_status refuse(const fit_check *fit, fr_err *err)
{
    return fit->status == FR_OK
               ? FR_OK
               : fr_fail(err, fit->status, "%s", fit->refusal.text);
}

static void put_fit(const fit_check *fit, fr_document *out)
{
    if (fit->advice.verdict[0] == '\0')
        return;
    out->audience = FR_FOR_DATA;
    fr_report_fit(&fit->advice, out);
    out->audience = FR_FOR_ALL;
}

/* ---- the table of NCCL's tuner plugin ------------------------------------ */

static void put_rows(const fr_nccl_rows *rows, fr_document *out)
{
    static const fr_column columns[] = {
        {NULL, "op"},        {NULL, "min_bytes"}, {NULL, "max_bytes"},
        {NULL, "algorithm"}, {NULL, "protocol"},  {NULL, "channels"},
        {NULL, "nodes"},     {NULL, "ranks"}};
    fr_table *table =
        fr_document_records(out, "rows", columns, FR_LENGTH(columns));
    table->is_main = true;
    for (size_t i = 0; i < rows->rows.n; i++) {
        const fr_nccl_rule *row = &rows->rows.items[i];
        fr_table_text(table, fr_op_name(row->op));
        fr_table_bytes(table, (double)row->min_bytes);
        fr_table_bytes(table, (double)row->max_bytes);
        fr_table_text(table, row->algorithm);
        fr_table_text(table, fr_name_of(&fr_protocol_names, row->protocol));
        fr_table_count(table, row->n_channels);
        fr_table_count(table, row->n_nodes);
        fr_table_count(table, row->n_ranks);
    }
}

/* The file is the answer, or goes where -o says. */
static fr_status print_rows(const fr_cli *cli, const fr_nccl_rows *rows,
                            const fr_plan *plan, const char *cluster,
                            const fit_check *fit, fr_err *err)
{
    const char *output = fr_cli_text(cli, FR_OPT_OUTPUT);
    char name[256];
    fr_buffer text;
    fr_buffer_init(&text);
    if (fit->advice.verdict[0] != '\0')
        fr_buffer_printf(&text, "# %s\n", fit->advice.verdict);
    fr_status status = fr_nccl_csv_format(
        rows->rows.items, rows->rows.n,
        fr_plan_describe(plan, name, sizeof name), cluster, &text, err);
    if (status == FR_OK && output != NULL)
        status = fr_file_write(output, text.data, text.n, err);
    if (status == FR_OK)
        fr_request_note_lines(&cli->request, NULL, fr_buffer_text(&rows->also));
    fr_document answer;
    fr_document_init(&answer, "forerun.export/1");
    fr_json_put_string(&answer.data, "format", "nccl-csv");
    put_fit(fit, &answer);
    put_rows(rows, &answer);
    if (output == NULL)
        fr_document_verbatim(&answer, fr_buffer_text(&text));
    fr_buffer_release(&text);
    return fr_answer_deliver(status, &answer, cli, err);
}

static fr_status export_rows(const fr_cli *cli, fr_plan_file *file,
                             const char *cluster, const fit_check *fit,
                             fr_err *err)
{
    fr_inputs inputs = {0};
    fr_nccl_rows rows = {0};
    if (cluster[0] == '\0')
        return fr_fail(err, FR_INPUT, "%s names no cluster; give one",
                       cli->request.positional[0]);
    fr_status status = fr_inputs_load(&cli->request, cluster, &inputs, err);
    if (status == FR_OK)
        status = fr_nccl_rows_make(&inputs, file, &rows, err);
    if (status == FR_OK)
        status = refuse(fit, err);
    if (status == FR_OK)
        status = print_rows(cli, &rows, &file->plan, cluster, fit, err);
    fr_nccl_rows_release(&rows);
    fr_inputs_release(&inputs);
    return status;
}

/* ---- files of a framework or a launcher ---------------------------------- */

/* Several files go into a folder, one where -o says. */
static fr_status save_file(const fr_export_file *file, const char *path,
                           fr_err *err)
{
    FR_TRY(fr_file_write(path, file->text.data, file->text.n, err));
    if (file->is_executable && chmod(path, 0755) != 0)
        return fr_fail(err, FR_IO, "%s cannot be made executable", path);
    return FR_OK;
}

static fr_status save_all(const fr_cli *cli, const fr_export_files *files,
                          fr_err *err)
{
    const char *output = fr_cli_text(cli, FR_OPT_OUTPUT);
    char path[4096];
    size_t n = strlen(output);
    bool is_folder = files->n > 1 || fr_dir_exists(output) ||
                     (n > 0 && output[n - 1] == '/');
    if (!is_folder)
        return save_file(&files->items[0], output, err);
    if (!fr_dir_exists(output))
        FR_TRY(fr_dir_create(output, err));
    for (size_t i = 0; i < files->n; i++) {
        if ((size_t)snprintf(path, sizeof path, "%s/%s", output,
                             files->items[i].name) >= sizeof path)
            return fr_fail(err, FR_INPUT, "the path %.200s is too long",
                           output);
        FR_TRY(save_file(&files->items[i], path, err));
    }
    return FR_OK;
}

static void put_files(const fr_exporter *exporter,
                      const fr_export_request *request,
                      const fr_export_files *files, const fit_check *fit,
                      fr_document *out)
{
    fr_buffer notes;
    const fr_target *target = fr_exporter_target(
        fr_exporter_target(exporter) != NULL ? exporter : request->program);
    fr_json_writer *json = &out->data;
    fr_json_put_string(json, "format", fr_exporter_name_of(exporter));
    put_fit(fit, out);
    if (request->program != NULL)
        fr_json_put_string(json, "program",
                           fr_exporter_name_of(request->program));
    if (target->versions != NULL)
        fr_json_put_string(json, "version", target->versions[request->version]);
    fr_json_open_array(json, "files");
    for (size_t i = 0; i < files->n; i++) {
        fr_json_begin_object(json);
        fr_json_put_string(json, "name", files->items[i].name);
        fr_json_put_bool(json, "executable", files->items[i].is_executable);
        fr_json_put_string(json, "text", fr_buffer_text(&files->items[i].text));
        fr_json_end_object(json);
    }
    fr_json_end_array(json);
    fr_buffer_init(&notes);
    fr_target_put_notes(target, &request->file->plan, "", &notes);
    fr_answer_put_lines(json, "not_written", fr_buffer_text(&notes));
    fr_buffer_release(&notes);
}

/* One file is the answer where -o does not say where it goes. */
static fr_status print_files(const fr_cli *cli, const fr_exporter *exporter,
                             const fr_export_request *request,
                             const fr_export_files *files, const fit_check *fit,
                             fr_err *err)
{
    const char *output = fr_cli_text(cli, FR_OPT_OUTPUT);
    fr_document answer;
    if (output == NULL && !fr_cli_on(cli, FR_OPT_JSON) && files->n > 1)
        return fr_fail(err, FR_USAGE,
                       "%s is %zu files; give a folder: -o %s-files",
                       fr_exporter_name_of(exporter), files->n,
                       fr_exporter_name_of(exporter));
    if (output != NULL)
        FR_TRY(save_all(cli, files, err));
    fr_document_init(&answer, "forerun.export/1");
    put_files(exporter, request, files, fit, &answer);
    if (output == NULL && files->n == 1)
        fr_document_verbatim(&answer, fr_buffer_text(&files->items[0].text));
    return fr_answer_deliver(FR_OK, &answer, cli, err);
}

static fr_status find_program(const fr_cli *cli, const fr_exporter *exporter,
                              fr_export_request *request, fr_err *err)
{
    const char *name = fr_cli_text(cli, FR_OPT_PROGRAM);
    bool is_fixed =
        fr_exporter_target(exporter) != NULL || exporter->program != NULL;
    if (is_fixed && name != NULL)
        return fr_fail(err, FR_USAGE,
                       "--program is for launchers; --to %s is "
                       "a program itself",
                       fr_exporter_name_of(exporter));
    request->program = exporter->program;
    if (is_fixed)
        return FR_OK;
    if (name == NULL)
        return fr_fail(err, FR_USAGE,
                       "what shall %s start? give --program megatron, "
                       "deepspeed, ddp, forerun ...",
                       fr_exporter_name_of(exporter));
    const fr_exporter *other = fr_exporter_find(name, &request->file->plan);
    if (other != NULL && other->put_command != NULL)
        request->program = other;
    if (request->program == NULL && other != NULL &&
        fr_exporter_target(other) != NULL)
        return fr_fail(err, FR_USAGE,
                       "--program %s: its script starts itself on the cluster; "
                       "give export --to %s",
                       fr_exporter_name_of(other), fr_exporter_name_of(other));
    if (request->program == NULL)
        return fr_fail(err, FR_USAGE,
                       "--program %.40s cannot be started; give one of the "
                       "frameworks of --to",
                       name);
    return FR_OK;
}

/* The command line's words on the job; if the cluster is known, also the
 * interval that its failures ask for, as goodput finds it. */
static fr_export_wish wish_of(const fr_cli *cli,
                              const fr_export_request *request)
{
    const fr_option_value *v = cli->request.option;
    const fr_plan_file *file = request->file;
    fr_export_wish wish = {.time_limit_s = v[FR_OPT_TIME_LIMIT].real,
                           .checkpoint_dir =
                               fr_cli_text(cli, FR_OPT_CHECKPOINT),
                           .checkpoint_every = v[FR_OPT_CHECKPOINT_EVERY].count,
                           .is_forced = fr_cli_on(cli, FR_OPT_FORCE)};
    if (request->cluster == NULL || !file->has_prediction)
        return wish;
    fr_goal goal;
    fr_goal_init(&goal);
    goal.is_disturbed = true;
    const fr_job job = fr_goal_job(&file->model, &file->job);
    const fr_goal_subject subject = {&file->model, &job, request->cluster};
    wish.best_every_s =
        fr_goal_run_of(&goal, file->prediction.step_s, &file->plan, &subject)
            .outlook.checkpoint_every_s;
    return wish;
}

/* Of the nearest plan that a target can have, on the cluster of the file. */
static void judge(const fr_export_request *request, const fr_plan *plan,
                  char *buf, size_t n_buf)
{
    const fr_cli *cli = request->judge_context;
    fr_plan_file other = *request->file; /* it owns nothing of its own */
    const fr_fit_place place = {.cluster = other.cluster};
    fr_inputs inputs = {0};
    fr_prediction prediction;
    fr_err unused;
    buf[0] = '\0';
    other.plan = *plan;
    other.node_of_rank = NULL;
    if (other.cluster[0] != '\0' &&
        fr_fit_answer_predict(&cli->request, &other, &place, &inputs,
                              &prediction, &unused) == FR_OK &&
        !prediction.memory.fits)
        fr_fit_verdict(&prediction, buf, n_buf);
    fr_inputs_release(&inputs);
}

static void warn(const fr_cli *cli, const fr_export_wish *wish,
                 const fr_export_request *request)
{
    fr_buffer text;
    fr_buffer_init(&text);
    fr_export_put_unknown(request, "", &text);
    fr_export_put_warnings(wish, request, &text);
    fr_request_note_lines(&cli->request, NULL, fr_buffer_text(&text));
    fr_buffer_release(&text);
}

static fr_status export_files(const fr_cli *cli, const fr_exporter *exporter,
                              const fr_plan_file *file,
                              const char *cluster_name, const fit_check *fit,
                              fr_err *err)
{
    fr_cluster cluster;
    fr_export_files files = {0};
    fr_export_request request = {
        .file = file,
        .writer = exporter,
        .judge = judge,
        .judge_context = cli,
        .plan_path = cli->request.positional[0],
        .verdict = fit->advice.verdict[0] != '\0' ? fit->advice.verdict : NULL};
    bool has_cluster = cluster_name[0] != '\0';
    FR_TRY(find_program(cli, exporter, &request, err));
    FR_TRY(fr_target_version(
        fr_exporter_target(request.program != NULL ? request.program
                                                   : exporter),
        fr_cli_text(cli, FR_OPT_VERSION), &request.version, err));
    if (has_cluster)
        FR_TRY(fr_as_input(fr_cluster_load(cluster_name, &cluster, err), err));
    request.cluster = has_cluster ? &cluster : NULL;
    fr_status status = fr_export_count_hosts(&request, err);
    const fr_export_wish wish = wish_of(cli, &request);
    if (status == FR_OK)
        status = fr_export_choose_job(&wish, &request, err);
    if (status == FR_OK)
        status = fr_export(exporter, &request, &files, err);
    if (status == FR_OK)
        status = refuse(fit, err);
    if (status == FR_OK)
        warn(cli, &wish, &request);
    if (status == FR_OK)
        status = print_files(cli, exporter, &request, &files, fit, err);
    fr_export_files_release(&files);
    if (has_cluster)
        fr_cluster_release(&cluster);
    return status;
}

/* Options that the files of this exporter have no place for. */
static fr_status check_job_options(const fr_cli *cli,
                                   const fr_exporter *exporter, fr_err *err)
{
    static const fr_option of_jobs[] = {FR_OPT_TIME_LIMIT, FR_OPT_CHECKPOINT,
                                        FR_OPT_CHECKPOINT_EVERY};
    if (fr_exporter_target(exporter) != NULL &&
        cli->request.option[FR_OPT_TIME_LIMIT].source == FR_SOURCE_FLAG)
        return fr_fail(err, FR_USAGE,
                       "--time-limit is for launchers: --to slurm --program "
                       "%s",
                       fr_exporter_name_of(exporter));
    for (size_t i = 0; exporter->write == NULL && i < FR_LENGTH(of_jobs); i++)
        if (cli->request.option[of_jobs[i]].source == FR_SOURCE_FLAG)
            return fr_fail(err, FR_USAGE,
                           "--%s is for jobs; --to %s starts "
                           "none",
                           fr_option_get(of_jobs[i]).name,
                           fr_exporter_name_of(exporter));
    return FR_OK;
}

/* ---- the command --------------------------------------------------------- */

FR_COMMAND_FUNCTION(export)
{
    fr_plan_file file;
    fit_check fit = {0};
    if (!fr_cli_has(cli, FR_OPT_TO))
        return fr_fail(err, FR_USAGE,
                       "export to what? give --to megatron, deepspeed, slurm, "
                       "nccl-csv ... (forerun help export)");
    FR_TRY(fr_as_input(
        fr_plan_file_load(cli->request.positional[0], &file, err), err));
    char home[sizeof file.cluster]; /* check_fit() changes that of `file` */
    memcpy(home, file.cluster, sizeof home);
    const char *cluster =
        cli->request.n_positional > 1 ? cli->request.positional[1] : home;
    const fr_exporter *exporter =
        fr_exporter_chosen((int)cli->request.option[FR_OPT_TO].count,
                           &file.plan);
    fr_status status = check_job_options(cli, exporter, err);
    if (status == FR_OK)
        status = fr_request_apply_plan(&cli->request, &file.plan, NULL, err);
    if (status == FR_OK)
        status = check_fit(cli, cluster, &file, &fit, err);
    if (status == FR_OK)
        status = exporter->write == NULL
                     ? export_rows(cli, &file, cluster, &fit, err)
                     : export_files(cli, exporter, &file, cluster, &fit, err);
    fr_plan_file_release(&file);
    return status;
}
