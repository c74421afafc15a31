/* plan_file.c: whole plan files: what a run needs, in one document. */
#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/document/fields.h"
#include "core/system/fileio.h"
#include "plan/decide/plan_json.h"
#include "spec/model/model_json.h"
#include "spec/result/prediction_fields.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void fr_plan_file_init(fr_plan_file *file)
{
    memset(file, 0, sizeof *file);
    fr_plan_init(&file->plan);
    fr_job_init(&file->job);
    fr_model_init(&file->model);
    fr_text_copy(file->backend, sizeof file->backend, "cpu");
}

void fr_plan_file_release(fr_plan_file *file)
{
    if (file == NULL)
        return;
    fr_model_release(&file->model);
    free(file->node_of_rank);
    file->node_of_rank = NULL;
}

/* ---- the prediction ----------------------------------------------------- */

static fr_status need_object(const fr_json_value *value, const char *key,
                             fr_err *err)
{
    if (fr_json_kind_of(value) == FR_JSON_OBJECT)
        return FR_OK;
    return fr_json_fail(value, err, "%s must be an object, not %s", key,
                        fr_json_kind_name(fr_json_kind_of(value)));
}

static fr_status read_prediction(const fr_json_value *object,
                                 fr_prediction *out, fr_err *err)
{
    const fr_json_value *memory;
    FR_TRY(need_object(object, "prediction", err));
    FR_TRY(fr_json_get_double(object, "step_s", &out->step_s, err));
    if (!(out->step_s > 0.0))
        return fr_json_fail(fr_json_blamed(object, "step_s"), err,
                            "step_s is %g; a step takes time", out->step_s);
    FR_TRY(fr_json_get_object(object, "memory", &memory, err));
    out->memory.fits = true;
    out->memory.p_fits = 1;
    out->expected_step_s = out->step_s; /* files before 2026-11-29 */
    return fr_fields_read(object, FR_FIELDS(fr_prediction_fields), out, err);
}

/* ---- the file ----------------------------------------------------------- */

static fr_status read_hash(const fr_json_value *root, const char *key,
                           uint64_t *out, fr_err *err)
{
    const fr_json_value *value = fr_json_find(root, key);
    const char *text;
    if (value == NULL)
        return FR_OK;
    FR_TRY(fr_json_as_string(value, &text, err));
    if (!fr_hash_parse(text, out))
        return fr_json_fail(value, err, "%s '%s' is not 16 hexadecimal digits",
                            key, text);
    return FR_OK;
}

static fr_status copy_text(const fr_json_value *root, const char *key,
                           char *out, size_t n, fr_err *err)
{
    const char *text;
    FR_TRY(fr_json_get_string_or(root, key, out, &text, err));
    if (text != out && !fr_text_copy(out, n, text))
        return fr_json_fail(fr_json_blamed(root, key), err,
                            "%s is longer than %zu bytes", key, n - 1);
    return FR_OK;
}

static fr_status read_backend(const fr_json_value *root, fr_plan_file *file,
                              fr_err *err)
{
    FR_TRY(
        copy_text(root, "backend", file->backend, sizeof file->backend, err));
    if (strcmp(file->backend, "cpu") != 0 && strcmp(file->backend, "cuda") != 0)
        return fr_json_fail(fr_json_blamed(root, "backend"), err,
                            "unknown backend '%s'; choose cpu or cuda",
                            file->backend);
    return FR_OK;
}

static fr_status read_rank_map(const fr_json_value *root, fr_plan_file *file,
                               fr_err *err)
{
    const fr_json_value *map = fr_json_find(root, "node_of_rank");
    int64_t world = fr_plan_world(&file->plan);
    if (map == NULL)
        return FR_OK;
    if (fr_json_kind_of(map) != FR_JSON_ARRAY ||
        (int64_t)fr_json_n(map) != world)
        return fr_json_fail(map, err,
                            "node_of_rank must list one node for each of the "
                            "%lld ranks",
                            (long long)world);
    file->node_of_rank = calloc((size_t)world, sizeof *file->node_of_rank);
    if (file->node_of_rank == NULL)
        return fr_fail_no_memory(err);
    for (size_t i = 0; i < (size_t)world; i++) {
        int64_t node;
        FR_TRY(fr_json_as_i64(fr_json_at(map, i), &node, err));
        if (node < 0 || node > INT32_MAX)
            return fr_json_fail(fr_json_at(map, i), err,
                                "node_of_rank: rank %zu is on node %lld; give "
                                "0 or more",
                                i, (long long)node);
        file->node_of_rank[i] = (int32_t)node;
    }
    return FR_OK;
}

/* Steps follow from tokens; a file that says both has to say the same. */
static fr_status follow_tokens(const fr_json_value *object,
                               const fr_model *model, fr_job *job, fr_err *err)
{
    const fr_json_value *steps = fr_json_find(object, "steps");
    const fr_json_value *tokens = fr_json_find(object, "tokens");
    const int64_t n_said = job->n_steps;
    /* 0 is a job without tokens: they are left out. */
    if (tokens != NULL && job->tokens < 1)
        return fr_json_fail(tokens, err,
                            "tokens is %lld; give at least 1, or leave it out",
                            (long long)job->tokens);
    if (job->n_steps < 1)
        return fr_json_fail(steps, err, "steps is %lld; give at least 1",
                            (long long)job->n_steps);
    fr_job_count_steps(job, model);
    if (steps == NULL || job->n_steps == n_said)
        return FR_OK;
    return fr_json_fail(
        steps, err,
        "steps is %lld, but %lld token%s take%s %lld step%s of %lld x %lld; "
        "leave steps or tokens out",
        (long long)n_said, (long long)job->tokens, job->tokens == 1 ? "" : "s",
        job->tokens == 1 ? "s" : "", (long long)job->n_steps,
        job->n_steps == 1 ? "" : "s", (long long)job->global_batch,
        (long long)fr_model_sample_tokens(model, job->seq));
}

static fr_status read_plan(const fr_json_value *root, bool is_first,
                           fr_plan_file *file, fr_err *err)
{
    const fr_json_value *plan, *model, *job, *execution = NULL;
    int64_t world;
    fr_err broken = {0};
    FR_TRY(fr_json_get_object(root, "model", &model, err));
    FR_TRY(fr_json_get_object(root, "job", &job, err));
    FR_TRY(fr_json_get_object(root, "plan", &plan, err));
    if (!is_first)
        FR_TRY(fr_json_get_object(root, "execution", &execution, err));
    FR_TRY(fr_model_from_json(model, &file->model, err));
    FR_TRY(fr_job_json_read(job, &file->job, err));
    FR_TRY(follow_tokens(job, &file->model, &file->job, err));
    FR_TRY(fr_plan_json_read(plan, execution, &file->plan, err));
    if (fr_plan_check(&file->plan, &file->model, &file->job, &broken) != FR_OK)
        return fr_json_fail(plan, err, "%s", broken.text);
    FR_TRY(fr_json_get_i64(root, "world", &world, err));
    if (world != fr_plan_world(&file->plan))
        return fr_json_fail(
            fr_json_find(root, "world"), err,
            "tp %d x pp %d x dp %d x cp %d = %lld ranks, but "
            "world is %lld; make them equal",
            file->plan.tp, file->plan.pp, file->plan.dp, file->plan.cp,
            (long long)fr_plan_world(&file->plan), (long long)world);
    return FR_OK;
}

/* Today's name of a framework: in version 1, "megatron" was Megatron-LM of
 * 2021, and "deepspeed" Megatron-DeepSpeed. */
static const char *framework_name(const char *schema, const char *name)
{
    static const char *const renamed[][2] = {
        {"megatron", "megatron-2021"},
        {"megatron-core", "megatron"},
        {"deepspeed", "megatron-deepspeed-2021"},
        {"foundry", "llm-foundry"},
        {"grace-dl", "grace"}};
    if (strcmp(schema, FR_PLAN_SCHEMA) == 0)
        return name;
    for (size_t i = 0; i < FR_LENGTH(renamed); i++)
        if (strcmp(name, renamed[i][0]) == 0)
            return renamed[i][1];
    return name;
}

static fr_status read_framework(const fr_json_value *root, const char *schema,
                                fr_plan_file *file, fr_err *err)
{
    char name[FR_FRAMEWORK_NAME] = "";
    FR_TRY(copy_text(root, "framework", name, sizeof name, err));
    fr_text_copy_cut(file->framework, sizeof file->framework,
                     framework_name(schema, name));
    return FR_OK;
}

static fr_status read_file(const fr_json_value *root, fr_plan_file *file,
                           fr_err *err)
{
    static const char *const known[] = {
        /* Since version 2. */
        "execution",    "schema",       "world",    "backend", "cluster",
        "cluster_hash", "profile_hash", "plan",     "job",     "model",
        "node_of_rank", "prediction",   "framework"};
    const char *schema;
    FR_TRY(need_object(root, "a plan file", err));
    FR_TRY(fr_json_get_string(root, "schema", &schema, err));
    const bool is_first = strcmp(schema, FR_PLAN_SCHEMA_1) == 0;
    if (!is_first && strcmp(schema, FR_PLAN_SCHEMA) != 0)
        return fr_json_fail(fr_json_blamed(root, "schema"), err,
                            "schema is '%s'; expected '" FR_PLAN_SCHEMA "'",
                            schema);
    FR_TRY(fr_json_check_keys(root, known + is_first,
                              FR_LENGTH(known) - is_first, err));
    FR_TRY(read_plan(root, is_first, file, err));
    FR_TRY(read_backend(root, file, err));
    FR_TRY(
        copy_text(root, "cluster", file->cluster, sizeof file->cluster, err));
    FR_TRY(read_framework(root, schema, file, err));
    FR_TRY(read_hash(root, "cluster_hash", &file->cluster_hash, err));
    FR_TRY(read_hash(root, "profile_hash", &file->profile_hash, err));
    FR_TRY(read_rank_map(root, file, err));
    const fr_json_value *prediction = fr_json_find(root, "prediction");
    if (prediction == NULL)
        return FR_OK;
    file->has_prediction = true;
    return read_prediction(prediction, &file->prediction, err);
}

static fr_status read_json(fr_json *json, fr_plan_file *out, fr_err *err)
{
    fr_plan_file file;
    fr_plan_file_init(&file);
    fr_status status = read_file(fr_json_root(json), &file, err);
    fr_json_destroy(json);
    if (status != FR_OK) {
        fr_plan_file_release(&file);
        return status;
    }
    *out = file;
    return FR_OK;
}

fr_status fr_plan_file_load(const char *path, fr_plan_file *out, fr_err *err)
{
    fr_json *json;
    FR_TRY(fr_json_load(path, &json, err));
    return read_json(json, out, err);
}

fr_status fr_plan_file_parse(const char *name, const char *text, size_t n_text,
                             fr_plan_file *out, fr_err *err)
{
    fr_json *json;
    FR_TRY(fr_json_parse(name, text, n_text, &json, err));
    return read_json(json, out, err);
}

/* A hash of 0 means that it is unknown. */
static void put_hash(fr_json_writer *json, const char *key, uint64_t hash)
{
    char text[17];
    fr_hash_format(hash, text);
    fr_json_put_string(json, key, hash ? text : NULL);
}

void fr_plan_file_write(const fr_plan_file *file, fr_json_writer *json)
{
    int64_t world = fr_plan_world(&file->plan);
    fr_json_begin_object(json);
    fr_json_put_string(json, "schema", FR_PLAN_SCHEMA);
    fr_json_put_i64(json, "world", world);
    fr_json_put_string(json, "backend", file->backend);
    fr_json_put_string(json, "cluster",
                       file->cluster[0] ? file->cluster : NULL);
    if (file->framework[0] != '\0')
        fr_json_put_string(json, "framework", file->framework);
    put_hash(json, "cluster_hash", file->cluster_hash);
    put_hash(json, "profile_hash", file->profile_hash);
    fr_plan_json_put(&file->plan, json);
    fr_json_key(json, "job");
    fr_job_json_write(&file->job, json);
    fr_json_key(json, "model");
    fr_model_to_json(&file->model, json);
    if (file->node_of_rank != NULL) {
        fr_json_key(json, "node_of_rank");
        fr_json_begin_row(json);
        for (int64_t i = 0; i < world; i++)
            fr_json_i64(json, file->node_of_rank[i]);
        fr_json_end_array(json);
    }
    if (file->has_prediction) {
        fr_json_key(json, "prediction");
        fr_fields_write(FR_FIELDS(fr_prediction_fields), &file->prediction,
                        json);
    }
    fr_json_end_object(json);
}

fr_status fr_plan_file_save(const fr_plan_file *file, const char *path,
                            fr_err *err)
{
    fr_json_writer json;
    fr_buffer buffer;
    fr_buffer_init(&buffer);
    fr_json_writer_init(&json, &buffer);
    fr_plan_file_write(file, &json);
    fr_buffer_putc(&buffer, '\n');
    return fr_file_write_buffer(path, &buffer, err);
}
