/* manifest.c: see manifest.h. */
#include "runtime/checkpoint/manifest.h"

#include "core/base/hash.h"
#include "core/document/json.h"
#include "core/system/fileio.h"
#include "plan/decide/plan_json.h"
#include "spec/model/model_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA "forerun.checkpoint/2"

/* The rule that makes global batches the same on every layout (data.h). */
static const char data_order[] =
    "sample i of step s begins at hash(seed, s, i), whatever the layout";

char *fr_shard_path(const char *dir, int64_t n_steps_done, int64_t i_file,
                    char path[FR_CHECKPOINT_PATH])
{
    (void)snprintf(path, FR_CHECKPOINT_PATH, "%s/step-%lld/rank-%lld", dir,
                   (long long)n_steps_done, (long long)i_file);
    return path;
}

void fr_manifest_release(fr_manifest *manifest)
{
    fr_model_release(&manifest->model);
    free(manifest->files);
    manifest->files = NULL;
}

/* ---- reading ------------------------------------------------------------- */

static fr_status read_hash(const fr_json_value *object, const char *key,
                           uint64_t *out, fr_err *err)
{
    const char *text = NULL;

    FR_TRY(fr_json_get_string(object, key, &text, err));
    return fr_hash_parse(text, out)
               ? FR_OK
               : fr_json_fail(object, err, "'%s' is not a hash", text);
}

/* Checkpoints of before 'files_hash' was known, and of data that is no
 * manifest, have none. */
static fr_status read_data(const fr_json_value *object, fr_data_identity *out,
                           fr_err *err)
{
    FR_TRY(read_hash(object, "hash", &out->hash, err));
    out->files_hash = 0;
    return fr_json_find(object, "files_hash") != NULL
               ? read_hash(object, "files_hash", &out->files_hash, err)
               : FR_OK;
}

static fr_status read_files(const fr_json_value *root, fr_manifest *out,
                            fr_err *err)
{
    const fr_json_value *list = NULL;

    FR_TRY(fr_json_get_array(root, "files", &list, err));
    const int64_t world = fr_plan_world(&out->plan);
    if ((int64_t)fr_json_n(list) != world)
        return fr_json_fail(list, err, "%zu files of %lld ranks",
                            fr_json_n(list), (long long)world);
    FR_TRY_CALLOC(out->files, (size_t)world, err);
    out->n_files = world;
    for (int64_t i = 0; i < world; i++) {
        const fr_json_value *file = fr_json_at(list, (size_t)i);
        FR_TRY(fr_json_get_u64(file, "n_bytes", &out->files[i].n_bytes, err));
        FR_TRY(read_hash(file, "hash", &out->files[i].hash, err));
    }
    return FR_OK;
}

static fr_status read_root(const fr_json_value *root, int64_t n_steps_done,
                           fr_manifest *out, fr_err *err)
{
    const fr_json_value *object = NULL;

    FR_TRY(fr_json_get_i64(root, "n_steps_done", &out->n_steps_done, err));
    if (out->n_steps_done != n_steps_done)
        return fr_json_fail(root, err, "n_steps_done is %lld, not %lld",
                            (long long)out->n_steps_done,
                            (long long)n_steps_done);
    fr_job_init(&out->job);
    fr_plan_init(&out->plan);
    FR_TRY(fr_json_get_object(root, "plan", &object, err));
    /* Older checkpoints have no "execution": see fr_plan_json_read(). */
    FR_TRY(fr_plan_json_read(object, fr_json_find(root, "execution"),
                             &out->plan, err));
    FR_TRY(fr_json_get_object(root, "job", &object, err));
    FR_TRY(fr_job_json_read(object, &out->job, err));
    FR_TRY(fr_json_get_object(root, "data", &object, err));
    FR_TRY(read_data(object, &out->data, err));
    FR_TRY(fr_json_get_i64_or(root, "n_losses", 0, &out->n_losses, err));
    if (out->n_losses != 0 && out->n_losses != n_steps_done)
        return fr_json_fail(root, err, "n_losses is %lld",
                            (long long)out->n_losses);
    if (out->n_losses > 0)
        FR_TRY(read_hash(root, "losses_hash", &out->losses_hash, err));
    FR_TRY(read_files(root, out, err));
    FR_TRY(fr_json_get_object(root, "model", &object, err));
    return fr_model_from_json(object, &out->model, err);
}

fr_status fr_manifest_read(const char *dir, int64_t n_steps_done,
                           fr_manifest *out, fr_err *err)
{
    char path[FR_CHECKPOINT_PATH];
    fr_json *json = NULL;
    const char *schema = NULL;
    fr_err why = {0};
    fr_manifest manifest = {0};

    (void)snprintf(path, sizeof path, "%s/step-%lld/manifest.json", dir,
                   (long long)n_steps_done);
    if (fr_json_load(path, &json, &why) != FR_OK)
        return fr_fail(err, FR_IO, "%s", why.text);
    const fr_json_value *root = fr_json_root(json);
    fr_status status = fr_json_get_string_or(root, "schema", "", &schema, &why);
    const bool is_old =
        status == FR_OK && strcmp(schema, "forerun.checkpoint/1") == 0;
    if (status == FR_OK && strcmp(schema, SCHEMA) != 0)
        status = fr_json_fail(
            root, &why,
            is_old ? "a checkpoint of an older forerun, whose files are of one "
                     "layout alone: resume with that version, or start anew in "
                     "another directory"
                   : "schema is '%.60s', not " SCHEMA,
            schema);
    if (status == FR_OK)
        status = read_root(root, n_steps_done, &manifest, &why);
    fr_json_destroy(json);
    if (status == FR_OK)
        *out = manifest;
    else
        fr_manifest_release(&manifest);
    return status == FR_OK
               ? FR_OK
               : fr_fail(err, is_old ? FR_INPUT : FR_IO, "%s", why.text);
}

/* ---- writing ------------------------------------------------------------- */

static void put_hash(fr_json_writer *w, const char *key, uint64_t hash)
{
    char text[17];

    fr_hash_format(hash, text);
    fr_json_put_string(w, key, text);
}

static void put_data(const fr_job *job, const fr_manifest *manifest,
                     fr_json_writer *w)
{
    fr_json_open_object(w, "data");
    fr_json_put_string(w, "file", job->data);
    put_hash(w, "hash", manifest->data.hash);
    if (manifest->data.files_hash != 0)
        put_hash(w, "files_hash", manifest->data.files_hash);
    fr_json_put_string(w, "order", data_order);
    fr_json_put_u64(w, "seed", job->seed);
    fr_json_put_i64(w, "global_batch", job->global_batch);
    fr_json_put_i64(w, "seq", job->seq);
    fr_json_put_i64(w, "next_step", manifest->n_steps_done);
    fr_json_end_object(w);
}

/* Each once, by its number. */
static void put_tensors(const fr_program *program, fr_json_writer *w)
{
    fr_json_open_array(w, "tensors");
    for (int32_t p = 0; p < program->plan.pp; p++)
        for (uint32_t i = 0; i < program->rank_programs[p].n_tensors; i++) {
            const fr_tensor *t = &program->rank_programs[p].tensors[i];
            if (t->is_tied_copy)
                continue;
            fr_json_begin_object(w);
            fr_json_put_i64(w, "id", t->id);
            fr_json_put_string(w, "name", t->name);
            fr_json_put_i64(w, "rows", t->global_rows);
            fr_json_put_i64(w, "cols", t->global_cols);
            fr_json_end_object(w);
        }
    fr_json_end_array(w);
}

static void put_files(const fr_manifest *manifest, fr_json_writer *w)
{
    char name[32];

    fr_json_open_array(w, "files");
    for (int64_t i = 0; i < manifest->n_files; i++) {
        (void)snprintf(name, sizeof name, "rank-%lld", (long long)i);
        fr_json_begin_object(w);
        fr_json_put_string(w, "name", name);
        fr_json_put_u64(w, "n_bytes", manifest->files[i].n_bytes);
        put_hash(w, "hash", manifest->files[i].hash);
        fr_json_end_object(w);
    }
    fr_json_end_array(w);
}

fr_status fr_manifest_write(const char *dir, const fr_program *program,
                            const fr_manifest *manifest, fr_err *err)
{
    char path[FR_CHECKPOINT_PATH];
    fr_buffer buffer;
    fr_json_writer w;

    fr_buffer_init(&buffer);
    fr_json_writer_init(&w, &buffer);
    fr_json_begin_object(&w);
    fr_json_put_string(&w, "schema", SCHEMA);
    fr_json_put_i64(&w, "n_steps_done", manifest->n_steps_done);
    put_data(&program->job, manifest, &w);
    if (manifest->n_losses > 0) {
        fr_json_put_i64(&w, "n_losses", manifest->n_losses);
        put_hash(&w, "losses_hash", manifest->losses_hash);
    }
    put_files(manifest, &w);
    fr_plan_json_put(&program->plan, &w);
    fr_json_key(&w, "job");
    fr_job_json_write(&program->job, &w);
    fr_json_key(&w, "model");
    fr_model_to_json(&program->model, &w);
    put_tensors(program, &w);
    fr_json_end_object(&w);
    (void)snprintf(path, sizeof path, "%s/step-%lld/manifest.json", dir,
                   (long long)manifest->n_steps_done);
    return fr_file_write_buffer(path, &buffer, err);
}

/* ---- checking ------------------------------------------------------------ */

/* All of the job that training depends on, but for the length of the run and
 * the name of the file, whose contents count. */
static void put_job(const void *job, fr_json_writer *w)
{
    fr_job same = *(const fr_job *)job;

    same.data[0] = '\0';
    same.n_steps = 1;
    same.tokens = 0;
    fr_job_json_write(&same, w);
}

static void put_model(const void *model, fr_json_writer *w)
{
    fr_model_to_json(model, w);
}

static fr_status hash_of(void (*put)(const void *what, fr_json_writer *w),
                         const void *what, uint64_t *out, fr_err *err)
{
    fr_buffer text;
    fr_json_writer w;

    fr_buffer_init(&text);
    fr_json_writer_init(&w, &text);
    put(what, &w);
    fr_status status = fr_buffer_check(&text, err);
    if (status == FR_OK)
        *out = fr_hash_bytes(text.data, text.n, 0);
    fr_buffer_release(&text);
    return status;
}

static fr_status is_same(void (*put)(const void *what, fr_json_writer *w),
                         const void *a, const void *b, bool *out, fr_err *err)
{
    uint64_t left = 0, right = 0;

    FR_TRY(hash_of(put, a, &left, err));
    FR_TRY(hash_of(put, b, &right, err));
    *out = left == right;
    return FR_OK;
}

fr_status fr_manifest_check(const fr_manifest *manifest,
                            const fr_program *program,
                            const fr_data_identity *data, fr_err *err)
{
    const fr_plan *then = &manifest->plan, *now = &program->plan;
    bool is_same_model = false, is_same_job = false;

    FR_TRY(is_same(put_model, &manifest->model, &program->model, &is_same_model,
                   err));
    FR_TRY(is_same(put_job, &manifest->job, &program->job, &is_same_job, err));
    const char *other = !is_same_model ? "another model"
                        : !is_same_job ? "another job"
                        : !fr_data_identity_agrees(&manifest->data, data)
                            ? "other data"
                            : NULL;
    if (other != NULL)
        return fr_fail(err, FR_INPUT,
                       "made with %s; resume with the model, job and "
                       "data of then, or start anew in another directory",
                       other);
    if (then->precision != now->precision ||
        fr_plan_has_master(then) != fr_plan_has_master(now))
        return fr_fail(err, FR_INPUT,
                       "made in %s%s, the plan is in %s%s; resume with a plan "
                       "of that precision",
                       fr_dtype_name(then->precision),
                       fr_plan_has_master(then) ? " with master weights" : "",
                       fr_dtype_name(now->precision),
                       fr_plan_has_master(now) ? " with master weights" : "");
    return FR_OK;
}
