/*
 * config_torchtitan.c: a TOML file of torchtitan 0.2
 * (torchtitan/config/job_config.py), or a Python recipe of its main
 * (torchtitan_recipe.c).
 */
#include "core/document/toml.h"
#include "frameworks/framework_list.h"
#include "frameworks/read/config_parts.h"
#include "frameworks/torchtitan/torchtitan_keys.h"
#include "frameworks/torchtitan/torchtitan_parts.h"
#include "frameworks/torchtitan/torchtitan_recipe.h"

#include <stdio.h>
#include <string.h>

#define NO_PLACE "the plan has no place for it"
#define NOT_TIMED "no prediction depends on it"
#define IT_PRINTS "it only prints and measures"

static bool looks_like(const char *text, size_t n)
{
    static const char *const marks[] = {"[parallelism]", "[training]",
                                        "[activation_checkpoint]"};
    int n_found = fr_torchtitan_is_recipe(text, n) ? 2 : 0;
    for (size_t i = 0; i < FR_LENGTH(marks); i++)
        n_found += memmem(text, n, marks[i], strlen(marks[i])) != NULL;
    return n_found >= 2;
}

static const fr_config_key root_keys[] = {
    {"model", NULL},
    {"optimizer", NULL},
    {"lr_scheduler", NULL},
    {"training", NULL},
    {"parallelism", NULL},
    {"activation_checkpoint", NULL},
    {"compile", NULL},
    {"debug", NULL},
    {"job", IT_PRINTS},
    {"profiling", IT_PRINTS},
    {"metrics", IT_PRINTS},
    {"checkpoint", "checkpoints are no part of a step"},
    {"quantize", "model.converters says whether it is used"},
    {"float8", "model.converters says whether it is used"},
    {"mx", "model.converters says whether it is used"},
    {"comm", NOT_TIMED},
    {"memory_estimation", IT_PRINTS},
    {"fault_tolerance", NO_PLACE},
    {"experimental", NO_PLACE},
    {"validation", "validation is no part of a step"},
};

static const fr_config_key model_keys[] = {
    {"name", NULL},
    {"flavor", NULL},
    {"converters", NULL},
    {"hf_assets_path", NOT_TIMED},
    {"tokenizer_path", NOT_TIMED},
    {"print_after_conversion", IT_PRINTS},
    {"norm_type", "the model says it"},
};

typedef struct reader {
    const fr_config_request *request;
    const fr_json_value *root;
    fr_config *out;
    fr_err *err;
} reader;

/* ---- values -------------------------------------------------------------- */

/* The table `name`, of which the members that its keys stand for are read;
 * NULL in *out: absent. */
static fr_status read_table(reader *r, const char *name,
                            const fr_json_value **out)
{
    enum { MANY = 64 };
    const fr_framework_keys all = fr_torchtitan_keys;
    fr_config_key keys[MANY];
    char where[64];
    size_t n = 0;
    for (size_t i = 0; i < all.n && n < MANY; i++)
        if (all.rows[i].since <= FR_TORCHTITAN_0_2 &&
            strcmp(all.rows[i].table, name) == 0)
            keys[n++] = (fr_config_key){all.rows[i].name, all.rows[i].why};
    *out = fr_json_find(r->root, name);
    snprintf(where, sizeof where, "%s.", name);
    FR_TRY(fr_config_check_keys(*out, where, keys, n, &r->out->notes, r->err));
    return fr_framework_keys_read(all, name, FR_TORCHTITAN_0_2, *out,
                                  &r->out->file, r->err);
}

static fr_status read_count(reader *r, const fr_json_value *table,
                            const char *key, int64_t low, int64_t *out)
{
    const fr_json_value *value = fr_json_find(table, key);
    if (value == NULL)
        return FR_OK;
    FR_TRY(fr_json_as_i64(value, out, r->err));
    if (*out < low || *out > INT32_MAX)
        return fr_json_fail(value, r->err,
                            "%s is %lld; give a number of %lld to %d", key,
                            (long long)*out, (long long)low, INT32_MAX);
    return FR_OK;
}

/* ---- what is parallel ---------------------------------------------------- */

static fr_status read_data_parallel(reader *r, const fr_json_value *table)
{
    fr_plan *plan = &r->out->file.plan;
    int64_t n_replicas = 1, n_shards = -1, world = 0;
    FR_TRY(
        read_count(r, table, "data_parallel_replicate_degree", 1, &n_replicas));
    FR_TRY(read_count(r, table, "data_parallel_shard_degree", -1, &n_shards));
    if (n_shards == 0)
        return fr_json_fail(fr_json_blamed(table, "data_parallel_shard_degree"),
                            r->err,
                            "data_parallel_shard_degree is 0; give "
                            "-1, or a number from 1");
    if (n_shards > 0 && n_shards * n_replicas < 1 << 24)
        world = n_shards * n_replicas * fr_config_other_ranks(plan);
    if (n_shards > 0 && r->request->world > 0 && world != r->request->world)
        return fr_fail(r->err, FR_INPUT,
                       "%s:1: its degrees are those of %lld ranks, not of %lld",
                       r->request->path, (long long)world,
                       (long long)r->request->world);
    FR_TRY(fr_config_take_dp(r->request, world, r->out, r->err));
    if (plan->dp % n_replicas != 0)
        return fr_fail(r->err, FR_INPUT,
                       "%s:1: %d data-parallel ranks do not divide by "
                       "data_parallel_replicate_degree %lld",
                       r->request->path, plan->dp, (long long)n_replicas);
    const int64_t group = plan->dp / n_replicas * plan->cp;
    plan->zero_stage = group > 1 ? 3 : 0;
    plan->zero_group = group > 1 && n_replicas > 1 ? (int32_t)group : 0;
    /* distributed/fsdp.py: default keeps them with a pipeline. */
    const fr_json_value *policy =
        fr_json_find(table, "fsdp_reshard_after_forward");
    const char *word = "default";
    if (policy != NULL)
        FR_TRY(fr_json_as_string(policy, &word, r->err));
    if (strcmp(word, "default") == 0)
        plan->is_resharded = plan->pp == 1;
    return FR_OK;
}

/* Layers of each stage, from the names of the modules that each has. */
static fr_status read_split(reader *r, const fr_json_value *parts)
{
    fr_plan *plan = &r->out->file.plan;
    const size_t n = fr_json_n(parts);
    if (fr_json_kind_of(parts) != FR_JSON_ARRAY || n == 0 ||
        n > FR_PLAN_MAX_STAGES || n % (size_t)plan->pp != 0)
        return fr_json_fail(parts, r->err,
                            "module_fqns_per_model_part must have a list for "
                            "each stage, a multiple of pp %d",
                            plan->pp);
    plan->vpp = (int32_t)(n / (size_t)plan->pp);
    plan->n_split = (int32_t)n;
    for (size_t i = 0; i < n; i++) {
        const fr_json_value *part = fr_json_at(parts, i);
        plan->layer_split[i] = 0;
        for (size_t k = 0; k < fr_json_n(part); k++) {
            const char *module;
            FR_TRY(fr_json_as_string(fr_json_at(part, k), &module, r->err));
            plan->layer_split[i] += strncmp(module, "layers.", 7) == 0;
        }
    }
    return FR_OK;
}

static fr_status read_pipeline(reader *r, const fr_json_value *table)
{
    fr_plan *plan = &r->out->file.plan;
    int64_t per_stage = 0, first_less = 1, last_less = 1;
    if (plan->pp == 1) {
        plan->schedule = FR_SCHEDULE_1F1B; /* it says nothing */
        return FR_OK;
    }
    if (plan->schedule == FR_SCHEDULE_ZB_H1)
        fr_buffer_puts(&r->out->notes, "pipeline_parallel_schedule_csv is not "
                                       "read: taken for zb-h1\n");
    FR_TRY(read_count(r, table, "pipeline_parallel_layers_per_stage", 1,
                      &per_stage));
    FR_TRY(read_count(r, table, "pipeline_parallel_first_stage_less_layers", 0,
                      &first_less));
    FR_TRY(read_count(r, table, "pipeline_parallel_last_stage_less_layers", 0,
                      &last_less));
    const fr_json_value *parts =
        fr_json_find(table, "module_fqns_per_model_part");
    if (parts != NULL)
        return read_split(r, parts);
    bool is_looped = plan->schedule == FR_SCHEDULE_INTERLEAVED ||
                     plan->schedule == FR_SCHEDULE_ZB_V;
    plan->vpp = is_looped ? 2 : 1;
    if (per_stage == 0)
        return FR_OK;
    /* distributed/pipeline_parallel.py: embedding and head weigh as layers. */
    int64_t n_layers = r->out->file.model.n_layers + first_less + last_less;
    int64_t n_stages = (n_layers + per_stage - 1) / per_stage;
    plan->vpp = n_stages / plan->pp < FR_PLAN_MAX_STAGES
                    ? (int32_t)(n_stages / plan->pp)
                    : FR_PLAN_MAX_STAGES;
    if (plan->vpp < 1 || n_stages % plan->pp != 0)
        return fr_json_fail(table, r->err,
                            "%lld layers on each stage are %lld stages, which "
                            "pp %d does not divide",
                            (long long)per_stage, (long long)n_stages,
                            plan->pp);
    return FR_OK;
}

static fr_status read_parallel(reader *r)
{
    fr_plan *plan = &r->out->file.plan;
    const fr_json_value *table;
    int64_t etp = 1;
    plan->cp_kind = FR_CP_ALL_GATHER;
    FR_TRY(read_table(r, "parallelism", &table));
    if (plan->ep > 1) {
        FR_TRY(read_count(r, table, "expert_tensor_parallel_degree", 1, &etp));
        plan->etp = (int32_t)etp;
    }
    plan->is_sequence_parallel = plan->tp > 1;
    FR_TRY(read_data_parallel(r, table));
    return read_pipeline(r, table);
}

/* ---- training ------------------------------------------------------------ */

static fr_status read_batch(reader *r, const fr_json_value *table)
{
    fr_plan *plan = &r->out->file.plan;
    const int64_t micro = plan->micro_batch; /* of a pipeline */
    int64_t local = 8, whole = r->out->file.job.global_batch;
    FR_TRY(read_count(r, table, "batch_size", 1, &local));
    FR_TRY(read_count(r, table, "local_batch_size", 1, &local));
    if (whole <= 0)
        whole = local * plan->dp;
    plan->micro_batch = plan->pp > 1 ? micro : local;
    r->out->file.job.global_batch = whole;
    if (whole % (local * plan->dp) != 0 || local % plan->micro_batch != 0)
        return fr_json_fail(table, r->err,
                            "a global batch of %lld is not local batches of "
                            "%lld on %d data-parallel ranks, in micro-batches "
                            "of %lld",
                            (long long)whole, (long long)local, plan->dp,
                            (long long)plan->micro_batch);
    if (plan->pp > 1 && whole != local * plan->dp)
        fr_buffer_printf(&r->out->notes,
                         "the pipeline is filled once a step: the file fills "
                         "it %lld times\n",
                         (long long)(whole / (local * plan->dp)));
    return FR_OK;
}

static fr_status read_training(reader *r)
{
    fr_job *job = &r->out->file.job;
    const fr_json_value *table;
    job->global_batch = -1;
    job->seq = 2048;
    job->n_steps = 10000;
    r->out->file.plan.precision = FR_DTYPE_BF16;
    r->out->file.plan.grad_dtype = FR_DTYPE_F32;
    FR_TRY(read_table(r, "training", &table));
    return read_batch(r, table);
}

static fr_status read_optimizer(reader *r)
{
    fr_job *job = &r->out->file.job;
    const fr_json_value *table, *share;
    double ratio = 1;
    job->lr = 8e-4;
    job->warmup_steps = 200;
    job->lr_schedule = FR_LR_LINEAR;
    FR_TRY(read_table(r, "optimizer", &table));
    FR_TRY(read_table(r, "lr_scheduler", &table));
    share = fr_json_find(table, "decay_ratio");
    if (share != NULL)
        FR_TRY(fr_json_as_double(share, &ratio, r->err));
    if (ratio == 0)
        job->lr_schedule = FR_LR_CONSTANT;
    return FR_OK;
}

static fr_status read_recompute(reader *r)
{
    const fr_json_value *table;
    /* config/job_config.py, ActivationCheckpoint */
    r->out->file.plan.recompute = FR_RECOMPUTE_SELECTIVE;
    FR_TRY(read_table(r, "activation_checkpoint", &table));
    return fr_torchtitan_read_recompute(table, r->out, r->err);
}

/* ---- the file ------------------------------------------------------------ */

/* [quantize.linear.float8]: recipe_name = "rowwise". */
static bool has_row_recipe(const reader *r)
{
    static const char *const path[] = {"quantize", "linear", "float8",
                                       "recipe_name"};
    const fr_json_value *at = r->root;
    const char *recipe;
    fr_err err;
    for (size_t i = 0; i < FR_LENGTH(path) && at != NULL; i++)
        at = fr_json_find(at, path[i]);
    return at != NULL && fr_json_as_string(at, &recipe, &err) == FR_OK &&
           strcmp(recipe, "rowwise") == 0;
}

/* Reads whether products are in fp8, with scales of the tensor itself, of its
 * rows, or of blocks. */
static fr_status read_converters(reader *r, const fr_json_value *converters)
{
    static const char *const names[] = {"quantize.linear.float8",
                                        "quantize.linear.mx", "float8", "mx"};
    const size_t n = converters != NULL ? fr_json_n(converters) : 0;
    for (size_t i = 0; i < n; i++) {
        const char *name;
        size_t which = 0;
        FR_TRY(fr_json_as_string(fr_json_at(converters, i), &name, r->err));
        while (which < FR_LENGTH(names) && strcmp(names[which], name) != 0)
            which++;
        if (which == FR_LENGTH(names)) {
            fr_buffer_printf(
                &r->out->notes,
                "line %d: of model.converters, %.60s is not read\n",
                fr_json_line(converters), name);
            continue;
        }
        r->out->file.plan.precision = FR_DTYPE_FP8;
        r->out->file.plan.execution.scaling = which % 2 == 1 ? FR_SCALING_BLOCK
                                              : has_row_recipe(r)
                                                  ? FR_SCALING_ROW
                                                  : FR_SCALING_CURRENT;
    }
    return FR_OK;
}

static fr_status read_model(reader *r)
{
    const fr_json_value *table;
    const char *name = NULL, *flavor = NULL;
    char said[128];
    table = fr_json_find(r->root, "model");
    FR_TRY(fr_config_check_keys(table, "model.", model_keys,
                                FR_LENGTH(model_keys), &r->out->notes, r->err));
    if (table != NULL) {
        FR_TRY(fr_json_get_string_or(table, "name", NULL, &name, r->err));
        FR_TRY(fr_json_get_string_or(table, "flavor", NULL, &flavor, r->err));
    }
    if (name == NULL)
        name = "llama3";
    if (flavor == NULL)
        flavor = "debugmodel";
    snprintf(said, sizeof said, "%.60s %.60s", name, flavor);
    return fr_config_take_model(
        r->request, said, fr_torchtitan_model_of(name, flavor), r->out, r->err);
}

static fr_status read_compile(reader *r)
{
    const fr_json_value *table;
    bool is_on = false;
    fr_config_take_kernels(r->out->framework, r->out);
    FR_TRY(read_table(r, "compile", &table));
    FR_TRY(fr_config_read_bool(table, "enable", &is_on, r->err));
    if (is_on)
        r->out->file.plan.execution.kernels = FR_KERNELS_COMPILED;
    return read_table(r, "debug", &table);
}

/* Keys that torchtitan had before 0.2 (its job_config.py of 2024 and of early
 * 2025), where parallelism was part of other tables. */
static fr_status refuse_old_keys(reader *r)
{
    static const char *const old[][2] = {
        {"training", "data_parallel_degree"},
        {"training", "data_parallel_replicate_degree"},
        {"training", "data_parallel_shard_degree"},
        {"training", "tensor_parallel_degree"},
        {"training", "enable_fp8_linear"},
        {"training", "compile"},
        {"experimental", "pipeline_parallel_degree"},
        {"experimental", "context_parallel_degree"},
        {"experimental", "enable_async_tensor_parallel"}};
    for (size_t i = 0; i < FR_LENGTH(old); i++) {
        const fr_json_value *table = fr_json_find(r->root, old[i][0]);
        const fr_json_value *value =
            table != NULL && fr_json_kind_of(table) == FR_JSON_OBJECT
                ? fr_json_find(table, old[i][1])
                : NULL;
        if (value != NULL)
            return fr_json_fail(value, r->err,
                                "%s.%s is a key of torchtitan before 0.2, "
                                "which is not read; write it as 0.2 has it, in "
                                "[parallelism] or [compile]",
                                old[i][0], old[i][1]);
    }
    return FR_OK;
}

static fr_status read_root(reader *r)
{
    FR_TRY(refuse_old_keys(r));
    FR_TRY(fr_config_check_keys(r->root, "", root_keys, FR_LENGTH(root_keys),
                                &r->out->notes, r->err));
    FR_TRY(read_model(r));
    FR_TRY(read_parallel(r));
    FR_TRY(read_training(r));
    FR_TRY(read_converters(
        r, fr_json_find(fr_json_find(r->root, "model"), "converters")));
    FR_TRY(read_optimizer(r));
    FR_TRY(read_recompute(r));
    return read_compile(r);
}

static fr_status parse_recipe(const fr_config_request *request, fr_json **out,
                              fr_err *err)
{
    fr_buffer json;
    fr_buffer_init(&json);
    fr_status status = fr_torchtitan_recipe_json(request->path, request->text,
                                                 request->n_text, &json, err);
    if (status == FR_OK)
        status = fr_json_parse(request->path, json.data, json.n, out, err);
    fr_buffer_release(&json);
    return status;
}

static fr_status read_config(const fr_config_request *request, fr_config *out,
                             fr_err *err)
{
    fr_json *json;
    FR_TRY(fr_torchtitan_is_recipe(request->text, request->n_text)
               ? parse_recipe(request, &json, err)
               : fr_toml_parse(request->path, request->text, request->n_text,
                               &json, err));
    reader r = {request, fr_json_root(json), out, err};
    fr_status status = read_root(&r);
    fr_json_destroy(json);
    return status;
}

const fr_config_format fr_config_torchtitan = {
    .summary = "a TOML file of torchtitan 0.2, or a recipe of its main",
    .looks_like = looks_like,
    .read = read_config,
};
