/* answer_export.c: a plan as files of other programs. */
#include "api/answer/answers.h"
#include "api/fit/fit_answer.h"
#include "api/nccl_rows.h"
#include "api/resolve/framework_options.h"
#include "api/resolve/plan_options.h"
#include "core/base/text.h"
#include "core/system/fileio.h"
#include "frameworks/framework_plan.h"
#include "frameworks/write/export_job.h"
#include "frameworks/write/export_read_back.h"
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
    /* The framework that executes the files (NULL: none), and the facts in
     * which it differs from the prediction. */
    const fr_framework *runner;
    char execution[256];
    fr_status status; /* not FR_OK: nothing is written */
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
static bool keeps_prediction(const fr_request *request, const fr_inputs *inputs,
                             const fr_prediction *prediction,
                             const fr_plan_file *file)
{
    const bool is_named = request->n_positional > 1;
    if (!file->has_prediction)
        return false;
    if (file->cluster_hash == fr_cluster_hash(&inputs->cluster))
        return fr_fit_answer_is_carried(file, inputs, prediction);
    if (is_named)
        return false;
    fr_request_note(
        request,
        "%s is not as it was when the plan was made (a power "
        "cap, another file): the prediction in the plan stays; forerun "
        "export PLAN CLUSTER predicts it anew",
        file->cluster);
    return true;
}

/* A plan that cannot be predicted on the cluster cannot run there either. */
static fr_status predict(const fr_request *request, const char *cluster,
                         fr_plan_file *file, fit_check *out, fr_err *err)
{
    const fr_fit_place place = {.cluster = cluster};
    fr_inputs inputs = {0};
    fr_prediction prediction;
    out->status = fr_fit_answer_predict(request, file, &place, &inputs,
                                        &prediction, &out->refusal);
    if (out->status == FR_OK) {
        if (keeps_prediction(request, &inputs, &prediction, file)) {
            prediction = file->prediction;
        } else {
            fr_inputs_note_wrong_cluster(request, &inputs, file->cluster,
                                         file->cluster_hash);
            adopt(&inputs, &prediction, file);
        }
        out->status = fr_fit_answer_check(request, &inputs, file, &prediction,
                                          &out->advice, &out->refusal);
    } else if (inputs.costs != NULL && fr_request_on(request, FR_OPT_FORCE)) {
        fr_request_note(request, "%s; exported because of --force",
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

static fr_status check_fit(const fr_request *request, const char *cluster,
                           fr_plan_file *file, fit_check *out, fr_err *err)
{
    if (cluster[0] != '\0')
        FR_TRY(predict(request, cluster, file, out, err));
    else if (file->has_prediction)
        out->status =
            fr_fit_answer_check(request, NULL, file, &file->prediction,
                                &out->advice, &out->refusal);
    if (out->advice.verdict[0] != '\0')
        fr_request_note(request, "%s; exported because of --force",
                        out->advice.verdict);
    return FR_OK;
}

static fr_status refuse(const fit_check *fit, fr_err *err)
{
    return fit->status == FR_OK
               ? FR_OK
               : fr_fail(err, fit->status, "%s", fit->refusal.text);
}

/* ---- the execution ------------------------------------------------------- */

/* Returns the framework that executes the files; NULL: none. */
static const fr_framework *runner_of(const fr_request *request,
                                     const fr_exporter *exporter,
                                     const fr_plan *plan)
{
    const char *name = fr_request_text(request, FR_OPT_PROGRAM);
    const fr_exporter *program = exporter->target != NULL ? exporter
                                 : name == NULL           ? exporter->program
                                                : fr_exporter_find(name, plan);
    for (int i = 0; program != NULL && i < fr_n_frameworks; i++)
        if (fr_frameworks[i]->writer == program)
            return fr_frameworks[i];
    return NULL;
}

/* Appends "key value" of the facts in which two plans differ. */
static void put_differing_facts(const fr_plan *was, const fr_plan *is,
                                fr_buffer *out)
{
    for (int i = 0; i < FR_EXECUTION_FIELDS_N; i++) {
        const fr_field *field = &fr_execution_fields[i].field;
        if (fr_field_is_same(field, was, is) ||
            !fr_plan_field_is_used(is, FR_PLAN_FIELDS_N + i))
            continue;
        fr_buffer_puts(out, out->n > 0 ? ", " : "");
        fr_buffer_printf(out, "%s ", field->key);
        fr_plan_put_value(field, is, out);
    }
}

/* The plan becomes one that the framework executes: its kernels are its own,
 * whichever the plan was predicted with. */
static void take_execution(const fr_request *request, fr_plan_file *file,
                           fit_check *out)
{
    const fr_framework *runner = out->runner;
    const fr_plan was = file->plan;
    fr_execution_bits given;
    fr_buffer facts;
    (void)fr_request_given_fields(request, &given);
    if (runner == NULL || runner->facts == NULL ||
        strcmp(file->backend, "cuda") != 0)
        return;
    fr_framework_run_plan(runner, given, &file->plan);
    fr_buffer_init(&facts);
    put_differing_facts(&was, &file->plan, &facts);
    if (facts.n > 0)
        file->has_prediction = false;
    snprintf(out->execution, sizeof out->execution, "%s",
             fr_buffer_text(&facts));
    fr_buffer_release(&facts);
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
static fr_status print_rows(const fr_request *request, const fr_nccl_rows *rows,
                            const fr_plan *plan, const char *cluster,
                            const fit_check *fit, fr_document *out, fr_err *err)
{
    const char *output = fr_request_text(request, FR_OPT_OUTPUT);
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
        fr_request_note_lines(request, NULL, fr_buffer_text(&rows->also));
    fr_document_init(out, "forerun.export/1");
    fr_json_put_string(&out->data, "format", "nccl-csv");
    fr_report_fit_data(&fit->advice, out);
    put_rows(rows, out);
    if (output == NULL)
        fr_document_verbatim(out, fr_buffer_text(&text));
    fr_buffer_release(&text);
    return status;
}

static fr_status export_rows(const fr_request *request, fr_plan_file *file,
                             const char *cluster, const fit_check *fit,
                             fr_document *out, fr_err *err)
{
    fr_inputs inputs = {0};
    fr_nccl_rows rows = {0};
    if (cluster[0] == '\0')
        return fr_fail(err, FR_INPUT, "%s names no cluster; give one",
                       request->positional[0]);
    fr_status status = fr_inputs_load(request, cluster, &inputs, err);
    if (status == FR_OK)
        status = fr_nccl_rows_make(&inputs, file, &rows, err);
    if (status == FR_OK)
        status = refuse(fit, err);
    if (status == FR_OK)
        status =
            print_rows(request, &rows, &file->plan, cluster, fit, out, err);
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

static fr_status save_all(const fr_request *request,
                          const fr_export_files *files, fr_err *err)
{
    const char *output = fr_request_text(request, FR_OPT_OUTPUT);
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
                      const fr_export_request *wanted,
                      const fr_export_files *files, const fit_check *fit,
                      fr_document *out)
{
    fr_buffer notes;
    const fr_target *target =
        (exporter->target != NULL ? exporter : wanted->program)->target;
    fr_json_writer *json = &out->data;
    fr_json_put_string(json, "format", fr_exporter_name_of(exporter));
    fr_report_fit_data(&fit->advice, out);
    if (wanted->program != NULL)
        fr_json_put_string(json, "program",
                           fr_exporter_name_of(wanted->program));
    if (target->versions != NULL)
        fr_json_put_string(json, "version", target->versions[wanted->version]);
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
    fr_target_put_notes(target, &wanted->file->plan, "", &notes);
    fr_document_put_lines(out, "not_written", fr_buffer_text(&notes));
    fr_buffer_release(&notes);
}

/* One file is the answer where -o does not say where it goes. */
static fr_status print_files(const fr_request *request,
                             const fr_exporter *exporter,
                             const fr_export_request *wanted,
                             const fr_export_files *files, const fit_check *fit,
                             fr_document *out, fr_err *err)
{
    const char *output = fr_request_text(request, FR_OPT_OUTPUT);
    if (output == NULL && !fr_request_on(request, FR_OPT_JSON) && files->n > 1)
        return fr_fail(err, FR_USAGE,
                       "%s is %zu files; give a folder: -o %s-files",
                       fr_exporter_name_of(exporter), files->n,
                       fr_exporter_name_of(exporter));
    if (output != NULL)
        FR_TRY(save_all(request, files, err));
    fr_document_init(out, "forerun.export/1");
    put_files(exporter, wanted, files, fit, out);
    if (output == NULL && files->n == 1)
        fr_document_verbatim(out, fr_buffer_text(&files->items[0].text));
    return FR_OK;
}

static fr_status find_program(const fr_request *request,
                              const fr_exporter *exporter,
                              fr_export_request *wanted, fr_err *err)
{
    const char *name = fr_request_text(request, FR_OPT_PROGRAM);
    bool is_fixed = exporter->target != NULL || exporter->program != NULL;
    if (is_fixed && name != NULL)
        return fr_fail(err, FR_USAGE,
                       "--program is for launchers; --to %s is "
                       "a program itself",
                       fr_exporter_name_of(exporter));
    wanted->program = exporter->program;
    if (is_fixed)
        return FR_OK;
    if (name == NULL)
        return fr_fail(err, FR_USAGE,
                       "what shall %s start? give --program megatron, "
                       "deepspeed, ddp, forerun ...",
                       fr_exporter_name_of(exporter));
    const fr_exporter *other = fr_exporter_find(name, &wanted->file->plan);
    if (other != NULL && other->put_command != NULL)
        wanted->program = other;
    if (wanted->program == NULL && other != NULL && other->target != NULL)
        return fr_fail(err, FR_USAGE,
                       "--program %s: its script starts itself on the cluster; "
                       "give export --to %s",
                       fr_exporter_name_of(other), fr_exporter_name_of(other));
    if (wanted->program == NULL)
        return fr_fail(err, FR_USAGE,
                       "--program %.40s cannot be started; give one of the "
                       "frameworks of --to",
                       name);
    return FR_OK;
}

/* The command line's words on the job; if the cluster is known, also the
 * interval that its failures ask for, as goodput finds it. */
static fr_export_wish wish_of(const fr_request *request,
                              const fr_export_request *wanted)
{
    const fr_option_value *v = request->option;
    const fr_plan_file *file = wanted->file;
    fr_export_wish wish = {.time_limit_s = v[FR_OPT_TIME_LIMIT].real,
                           .checkpoint_dir =
                               fr_request_text(request, FR_OPT_CHECKPOINT),
                           .checkpoint_every = v[FR_OPT_CHECKPOINT_EVERY].count,
                           .is_forced = fr_request_on(request, FR_OPT_FORCE)};
    if (wanted->cluster == NULL || !file->has_prediction)
        return wish;
    fr_goal goal;
    fr_goal_init(&goal);
    goal.is_disturbed = true;
    const fr_job job = fr_goal_job(&file->model, &file->job);
    const fr_goal_subject subject = {&file->model, &job, wanted->cluster};
    const fr_weighed_step step = fr_weighed_step_of(&file->prediction);
    wish.best_every_s = fr_goal_run_of(&goal, &step, &file->plan, &subject)
                            .outlook.checkpoint_every_s;
    return wish;
}

/* Judges the nearest plan that a target can have, on the cluster of the file.
 */
static void judge(const fr_export_request *wanted, const fr_plan *plan,
                  char *buf, size_t n_buf)
{
    const fr_request *request = wanted->judge_context;
    fr_plan_file other = *wanted->file; /* it owns nothing of its own */
    const fr_fit_place place = {.cluster = other.cluster};
    fr_inputs inputs = {0};
    fr_prediction prediction;
    fr_err unused;
    buf[0] = '\0';
    other.plan = *plan;
    other.node_of_rank = NULL;
    if (other.cluster[0] != '\0' &&
        fr_fit_answer_predict(request, &other, &place, &inputs, &prediction,
                              &unused) == FR_OK &&
        !prediction.memory.fits)
        fr_fit_verdict(&prediction, buf, n_buf);
    fr_inputs_release(&inputs);
}

static void warn(const fr_request *request, const fr_export_wish *wish,
                 const fr_export_request *wanted, const fit_check *fit)
{
    fr_buffer text;
    if (fit->execution[0] != '\0')
        fr_request_note(request, "predicted as %s executes the plan: %s",
                        fit->runner->name, fit->execution);
    fr_buffer_init(&text);
    fr_export_put_unknown(wanted, "", &text);
    fr_export_put_warnings(wish, wanted, &text);
    fr_request_note_lines(request, NULL, fr_buffer_text(&text));
    fr_buffer_release(&text);
}

/* Writes the files, reads them as those of a user, and writes them again with
 * the outcome in their heads. */
static fr_status write_files(const fr_request *request,
                             const fr_exporter *exporter,
                             const fr_framework *runner,
                             fr_export_request *wanted, fr_export_files *files,
                             fr_err *err)
{
    fr_read_back outcome = {.is_read = false};
    FR_TRY(fr_export(exporter, wanted, files, err));
    if (runner != NULL)
        FR_TRY(fr_export_read_back(runner, wanted, files, &outcome, err));
    if (!outcome.is_read)
        return FR_OK;
    if (!outcome.is_same)
        fr_request_note(request, "the file, read back, is another plan: %s",
                        outcome.text);
    fr_export_files_release(files);
    *files = (fr_export_files){0};
    wanted->read_back = outcome.text;
    fr_status status = fr_export(exporter, wanted, files, err);
    wanted->read_back = NULL;
    return status;
}

static fr_status export_files(const fr_request *request,
                              const fr_exporter *exporter,
                              const fr_plan_file *file,
                              const char *cluster_name, const fit_check *fit,
                              fr_document *out, fr_err *err)
{
    fr_cluster cluster;
    fr_export_files files = {0};
    fr_export_request wanted = {
        .file = file,
        .writer = exporter,
        .judge = judge,
        .judge_context = request,
        .plan_path = request->positional[0],
        .verdict = fit->advice.verdict[0] != '\0' ? fit->advice.verdict : NULL};
    bool has_cluster = cluster_name[0] != '\0';
    FR_TRY(find_program(request, exporter, &wanted, err));
    FR_TRY(fr_target_version(
        (wanted.program != NULL ? wanted.program : exporter)->target,
        fr_request_text(request, FR_OPT_VERSION), &wanted.version, err));
    if (has_cluster)
        FR_TRY(fr_as_input(fr_cluster_load(fr_request_configs(request),
                                           cluster_name, &cluster, err),
                           err));
    wanted.cluster = has_cluster ? &cluster : NULL;
    fr_status status = fr_export_count_hosts(&wanted, err);
    const fr_export_wish wish = wish_of(request, &wanted);
    if (status == FR_OK)
        status = fr_export_choose_job(&wish, &wanted, err);
    if (status == FR_OK)
        status =
            write_files(request, exporter, fit->runner, &wanted, &files, err);
    if (status == FR_OK)
        status = refuse(fit, err);
    if (status == FR_OK)
        warn(request, &wish, &wanted, fit);
    if (status == FR_OK)
        status = print_files(request, exporter, &wanted, &files, fit, out, err);
    fr_export_files_release(&files);
    if (has_cluster)
        fr_cluster_release(&cluster);
    return status;
}

/* Options that the files of this exporter have no place for. */
static fr_status check_job_options(const fr_request *request,
                                   const fr_exporter *exporter, fr_err *err)
{
    static const fr_option of_jobs[] = {FR_OPT_TIME_LIMIT, FR_OPT_CHECKPOINT,
                                        FR_OPT_CHECKPOINT_EVERY};
    if (exporter->target != NULL &&
        request->option[FR_OPT_TIME_LIMIT].source == FR_SOURCE_FLAG)
        return fr_fail(err, FR_USAGE,
                       "--time-limit is for launchers: --to slurm --program "
                       "%s",
                       fr_exporter_name_of(exporter));
    for (size_t i = 0; exporter->write == NULL && i < FR_LENGTH(of_jobs); i++)
        if (request->option[of_jobs[i]].source == FR_SOURCE_FLAG)
            return fr_fail(err, FR_USAGE,
                           "--%s is for jobs; --to %s starts "
                           "none",
                           fr_option_get(of_jobs[i]).name,
                           fr_exporter_name_of(exporter));
    return FR_OK;
}

/* ---- the command --------------------------------------------------------- */

fr_status fr_api_export(const fr_request *request, fr_document *out,
                        fr_err *err)
{
    fr_plan_file file;
    fit_check fit = {0};
    if (!fr_request_has(request, FR_OPT_TO))
        return fr_fail(err, FR_USAGE,
                       "export to what? give --to megatron, deepspeed, slurm, "
                       "nccl-csv ... (forerun help export)");
    FR_TRY(fr_inputs_load_plan(request, request->positional[0], "CLUSTER",
                               &file, err));
    char home[sizeof file.cluster]; /* check_fit() changes that of `file` */
    memcpy(home, file.cluster, sizeof home);
    const char *cluster =
        request->n_positional > 1 ? request->positional[1] : home;
    const fr_exporter *exporter =
        fr_exporter_chosen((int)request->option[FR_OPT_TO].count, &file.plan);
    fit.runner = runner_of(request, exporter, &file.plan);
    fr_status status = check_job_options(request, exporter, err);
    if (status == FR_OK)
        status = fr_request_apply_plan(request, &file.plan, NULL, err);
    if (status == FR_OK)
        take_execution(request, &file, &fit);
    if (status == FR_OK)
        status = check_fit(request, cluster, &file, &fit, err);
    if (status == FR_OK)
        status = exporter->write == NULL
                     ? export_rows(request, &file, cluster, &fit, out, err)
                     : export_files(request, exporter, &file, cluster, &fit,
                                    out, err);
    fr_plan_file_release(&file);
    return status;
}
