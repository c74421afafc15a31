/* cmd_checkpoint.c: what checkpoints hold; whether they are whole; another
 * layout's. */
#include "api/inputs.h"
#include "cli/answer.h"
#include "cli/cli.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "core/system/fileio.h"
#include "plan/decide/plan_json.h"
#include "program/lower/step/lower.h"
#include "runtime/checkpoint/checkpoint_convert.h"
#include "runtime/checkpoint/checkpoint_dir.h"

#include <stdio.h>
#include <string.h>

/* One checkpoint, and the directory that it is in. */
typedef struct place {
    char dir[FR_CHECKPOINT_PATH];
    int64_t step; /* 0: the user named none of them */
} place;

static fr_status find_place(const char *path, place *out, fr_err *err)
{
    char own[FR_CHECKPOINT_PATH];

    if (!fr_text_copy(own, sizeof own, path))
        return fr_fail(err, FR_USAGE, "%.80s...: the path is too long", path);
    for (size_t n = strlen(own); n > 1 && own[n - 1] == '/'; n--)
        own[n - 1] = '\0';
    if (!fr_dir_exists(own))
        return fr_fail(err, FR_INPUT, "%s: no such directory", own);
    out->step = fr_checkpoint_step(fr_path_name(own));
    if (out->step > 0)
        return fr_path_dir(own, out->dir, sizeof out->dir, err);
    memcpy(out->dir, own, sizeof own);
    if (fr_checkpoint_older(own, INT64_MAX) == 0)
        return fr_fail(err, FR_INPUT, "%s: no checkpoint (step-N) is in it",
                       own);
    return FR_OK;
}

/* The one that was named, or the newest that is whole; the notes say which are
 * not.  The caller closes it. */
static fr_status open_place(const fr_cli *cli, const char *path, place *out,
                            fr_shard_reader **reader, fr_err *err)
{
    FR_TRY(find_place(path, out, err));
    if (out->step > 0) {
        FR_TRY(fr_as_input(
            fr_shard_reader_open(out->dir, out->step, reader, err), err));
        return FR_OK;
    }
    for (int64_t step = INT64_MAX;
         (step = fr_checkpoint_older(out->dir, step)) > 0;) {
        fr_err why = {0};
        fr_shard_reader *found = NULL;
        fr_status status = fr_shard_reader_open(out->dir, step, &found, &why);
        if (status == FR_OK)
            status = fr_checkpoint_verify(found, &why);
        if (status == FR_OK) {
            out->step = step;
            *reader = found;
            return FR_OK;
        }
        fr_shard_reader_close(found);
        fr_cli_note(cli, "forerun: step-%lld is passed over: %s",
                    (long long)step, why.text);
    }
    return fr_fail(err, FR_INPUT, "%s: no checkpoint in it is whole", out->dir);
}

static uint64_t all_bytes(const fr_manifest *manifest)
{
    uint64_t n = 0;

    for (int64_t i = 0; i < manifest->n_files; i++)
        n += manifest->files[i].n_bytes;
    return n;
}

/* ---- inspect ------------------------------------------------------------ */

static void put_manifest(const fr_manifest *m, const place *at,
                         fr_json_writer *json)
{
    char name[512];

    fr_json_put_string(json, "directory", at->dir);
    fr_json_put_i64(json, "step", m->n_steps_done);
    fr_json_put_string(json, "model", m->model.name);
    fr_json_put_string(json, "plan",
                       fr_plan_describe(&m->plan, name, sizeof name));
    fr_json_put_i64(json, "world_size", fr_plan_world(&m->plan));
    fr_json_put_i64(json, "global_batch", m->job.global_batch);
    fr_json_put_i64(json, "seq", m->job.seq);
    fr_json_put_u64(json, "seed", m->job.seed);
    fr_json_put_string(json, "data", m->job.data);
    fr_json_put_bool(json, "has_losses", m->n_losses > 0);
    fr_json_put_u64(json, "n_bytes", all_bytes(m));
}

static void put_files(const fr_shard_reader *reader, fr_document *out)
{
    static const fr_column columns[] = {{"file", NULL},
                                        {NULL, "rank"},
                                        {">size", "n_bytes"},
                                        {">slices", "slices"},
                                        {">of the layout alone", "own_bytes"}};
    const fr_manifest *m = fr_shard_reader_manifest(reader);
    fr_table *table =
        fr_document_records(out, "files", columns, FR_LENGTH(columns));

    table->is_main = true;
    for (int64_t i = 0; i < m->n_files; i++) {
        const fr_shard_index *index = fr_shard_reader_index(reader, i);
        fr_table_cell(table, "rank-%lld", (long long)i);
        fr_table_count(table, i);
        fr_table_bytes(table, (double)m->files[i].n_bytes);
        fr_table_count(table, (int64_t)index->slices.n);
        fr_table_bytes(table, (double)index->own_bytes);
    }
}

static void print_head(const fr_manifest *m, const place *at, fr_document *out)
{
    char name[512], size[FR_FORMAT_MAX];

    fr_document_printf(
        out, "%s/step-%lld: %s after %lld steps, %s\n", at->dir,
        (long long)m->n_steps_done, m->model.name, (long long)m->n_steps_done,
        fr_format_bytes(size, sizeof size, (double)all_bytes(m)));
    fr_document_printf(out, "written by %lld rank%s: %s\n",
                       (long long)m->n_files, m->n_files == 1 ? "" : "s",
                       fr_plan_describe(&m->plan, name, sizeof name));
    fr_document_printf(out,
                       "data %s, seed %llu, batches of %lld x %lld: the next "
                       "is that of step %lld\n\n",
                       m->job.data[0] != '\0' ? m->job.data : "made up",
                       (unsigned long long)m->job.seed,
                       (long long)m->job.global_batch, (long long)m->job.seq,
                       (long long)m->n_steps_done);
}

static fr_status print_reader(const fr_cli *cli, const fr_shard_reader *reader,
                              const place *at, fr_err *err)
{
    const fr_manifest *m = fr_shard_reader_manifest(reader);
    fr_document answer;

    fr_document_init(&answer, "forerun.checkpoint-content/1");
    put_manifest(m, at, &answer.data);
    print_head(m, at, &answer);
    put_files(reader, &answer);
    return fr_answer_deliver(FR_OK, &answer, cli, err);
}

static fr_status inspect(const fr_cli *cli, fr_err *err)
{
    fr_shard_reader *reader = NULL;
    place at;

    FR_TRY(open_place(cli, cli->request.positional[1], &at, &reader, err));
    fr_status status = print_reader(cli, reader, &at, err);
    fr_shard_reader_close(reader);
    return status;
}

/* ---- verify ------------------------------------------------------------- */

/* The status of one checkpoint, with the reason. */
static fr_status verify_step(const char *dir, int64_t step, uint64_t *n_bytes,
                             fr_err *why)
{
    fr_shard_reader *reader = NULL;
    double *loss = NULL;

    *n_bytes = 0;
    FR_TRY(fr_shard_reader_open(dir, step, &reader, why));
    *n_bytes = all_bytes(fr_shard_reader_manifest(reader));
    fr_status status = fr_checkpoint_verify(reader, why);
    if (status == FR_OK)
        status =
            fr_losses_read(dir, fr_shard_reader_manifest(reader), &loss, why);
    free(loss);
    fr_shard_reader_close(reader);
    return status;
}

typedef struct verdicts {
    fr_table *table;
    int n_damaged;
    char first[256]; /* the first that is damaged */
} verdicts;

static void add_verdict(verdicts *v, int64_t step, uint64_t n_bytes,
                        const fr_err *why)
{
    const bool is_whole = why->text[0] == '\0';

    if (!is_whole && v->n_damaged++ == 0)
        fr_text_copy_cut(v->first, sizeof v->first, why->text);
    fr_table_cell(v->table, "step-%lld", (long long)step);
    fr_table_count(v->table, step);
    fr_table_bytes(v->table, (double)n_bytes);
    fr_table_bool(v->table, is_whole);
    if (is_whole)
        fr_table_blank(v->table, 1);
    else
        fr_table_text(v->table, why->text);
    fr_table_text(v->table, is_whole ? "whole" : why->text);
}

/* A checkpoint that a run was killed in the middle of, or is writing, is not
 * damaged: resuming never takes it.  Named, it is reported with what is
 * missing.
 */
static void verify_all(const fr_cli *cli, const place *at, verdicts *v)
{
    for (int64_t step = at->step > 0 ? at->step + 1 : INT64_MAX;
         (step = fr_checkpoint_older(at->dir, step)) > 0;) {
        uint64_t n_bytes = 0;
        fr_err why = {0};
        if (at->step == 0 && !fr_checkpoint_was_finished(at->dir, step)) {
            fr_cli_note(cli, "forerun: step-%lld was never finished",
                        (long long)step);
            continue;
        }
        if (verify_step(at->dir, step, &n_bytes, &why) == FR_OK)
            why.text[0] = '\0';
        add_verdict(v, step, n_bytes, &why);
        if (at->step > 0)
            return;
    }
}

static fr_status verify(const fr_cli *cli, fr_err *err)
{
    static const fr_column columns[] = {
        {"checkpoint", NULL}, {NULL, "step"}, {">size", "n_bytes"},
        {NULL, "is_whole"},   {NULL, "why"},  {"is", NULL}};
    verdicts v = {.n_damaged = 0};
    fr_document answer;
    place at;

    FR_TRY(find_place(cli->request.positional[1], &at, err));
    fr_document_init(&answer, "forerun.checkpoint-verify/1");
    fr_json_put_string(&answer.data, "directory", at.dir);
    v.table = fr_document_records(&answer, "checkpoints", columns,
                                  FR_LENGTH(columns));
    v.table->is_main = true;
    verify_all(cli, &at, &v);
    FR_TRY(fr_answer_deliver(FR_OK, &answer, cli, err));
    if (v.n_damaged > 0)
        return fr_fail(err, FR_CHECK, "%d damaged: %s", v.n_damaged, v.first);
    return FR_OK;
}

/* ---- convert ------------------------------------------------------------ */

/* The plan is the file's, model and job are the checkpoint's. */
static fr_status lower_for(const fr_manifest *manifest, const char *path,
                           fr_program **out, fr_err *err)
{
    fr_plan_file file;

    FR_TRY(fr_as_input(fr_plan_file_load(path, &file, err), err));
    const fr_placement placement = {.n_ranks = fr_plan_world(&file.plan)};
    fr_status status = fr_lower(&manifest->model, &manifest->job, &file.plan,
                                &placement, out, err);
    fr_plan_file_release(&file);
    return status;
}

static fr_status convert(const fr_cli *cli, fr_err *err)
{
    const char *output = fr_cli_text(cli, FR_OPT_OUTPUT);
    fr_shard_reader *reader = NULL, *after = NULL;
    fr_program *program = NULL;
    place at;

    if (cli->request.n_positional < 3 || output == NULL)
        return fr_fail(err, FR_USAGE,
                       "missing argument; usage: forerun checkpoint convert "
                       "DIR PLAN -o DIR");
    FR_TRY(open_place(cli, cli->request.positional[1], &at, &reader, err));
    place to = {.step = at.step};
    fr_text_copy_cut(to.dir, sizeof to.dir, output);
    fr_status status;
    FR_TRY_GOTO(status, fr_checkpoint_verify(reader, err), out_reader);
    FR_TRY_GOTO(status,
                lower_for(fr_shard_reader_manifest(reader),
                          cli->request.positional[2], &program, err),
                out_reader);
    FR_TRY_GOTO(status,
                fr_checkpoint_convert(reader, at.dir, program, output, err),
                out_reader);
    FR_TRY_GOTO(status, fr_shard_reader_open(output, at.step, &after, err),
                out_reader);
    status = print_reader(cli, after, &to, err);
out_reader:
    fr_shard_reader_close(after);
    fr_program_destroy(program);
    fr_shard_reader_close(reader);
    return status;
}

FR_COMMAND_FUNCTION(checkpoint)
{
    const char *what = cli->request.positional[0];

    if (strcmp(what, "convert") == 0)
        return convert(cli, err);
    if (cli->request.n_positional > 2)
        return fr_fail(err, FR_USAGE, "unexpected argument '%.200s'",
                       cli->request.positional[2]);
    if (strcmp(what, "inspect") == 0)
        return inspect(cli, err);
    if (strcmp(what, "verify") == 0)
        return verify(cli, err);
    return fr_fail(err, FR_USAGE,
                   "checkpoint '%.80s': give inspect, verify or convert", what);
}
