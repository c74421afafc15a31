/*
 * config_torchtitan.c: a TOML file of torchtitan 0.2 and before
 * (torchtitan/config/job_config.py); its main has Python recipes instead.
 */
#include "core/document/toml.h"
#include "frameworks/framework_list.h"
#include "interop/config/config_list.h"
#include "interop/config/config_parts.h"
#include "interop/config/torchtitan_parts.h"

#include <stdio.h>
#include <string.h>

#define NO_PLACE "the plan has no place for it"
#define NOT_TIMED "no prediction depends on it"
#define IT_PRINTS "it only prints and measures"

static bool looks_like(const char *text, size_t n)
{
    static const char *const marks[] = {"[parallelism]", "[training]",
                                        "[activation_checkpoint]"};
    int n_found = 0;
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

static const fr_config_key optimizer_keys[] = {
    {"name", NULL},
    {"lr", NULL},
    {"beta1", NULL},
    {"beta2", NULL},
    {"eps", NULL},
    {"weight_decay", NULL},
    {"implementation", NO_PLACE},
    {"fused", NO_PLACE},
    {"early_step_in_backward", NO_PLACE},
};

static const fr_config_key curve_keys[] = {{"warmup_steps", NULL},
                                           {"decay_type", NULL},
                                           {"decay_ratio", NULL},
                                           {"min_lr_factor", NULL},
                                           {"total_steps", NOT_TIMED}};

static const fr_config_key training_keys[] = {
    {"local_batch_size", NULL},
    {"batch_size", NULL}, /* before 0.1 */
    {"global_batch_size", NULL},
    {"seq_len", NULL},
    {"max_norm", NULL},
    {"steps", NULL},
    {"enable_cpu_offload", NULL},
    {"mixed_precision_param", NULL},
    {"mixed_precision_reduce", NULL},
    {"dataset", NULL},
    {"seed", NULL},
    {"dtype", NO_PLACE},
    {"dataset_path", NOT_TIMED},
    {"gc_freq", NOT_TIMED},
    {"gc_debug", NOT_TIMED},
    {"deterministic", NOT_TIMED},
    {"compile", NO_PLACE},
    {"dataloader", NOT_TIMED},
};

static const fr_config_key parallel_keys[] = {
    {"data_parallel_replicate_degree", NULL},
    {"data_parallel_shard_degree", NULL},
    {"fsdp_reshard_after_forward", NULL},
    {"tensor_parallel_degree", NULL},
    {"enable_async_tensor_parallel", NULL},
    {"pipeline_parallel_degree", NULL},
    {"pipeline_parallel_schedule", NULL},
    {"pipeline_parallel_microbatch_size", NULL},
    {"pipeline_parallel_layers_per_stage", NULL},
    {"module_fqns_per_model_part", NULL},
    {"context_parallel_degree", NULL},
    {"context_parallel_rotate_method", NULL},
    {"expert_parallel_degree", NULL},
    {"expert_tensor_parallel_degree", NULL},
    {"expert_parallel_comm_backend", NULL},
    {"pipeline_parallel_first_stage_less_layers", NULL},
    {"pipeline_parallel_last_stage_less_layers", NULL},
    {"disable_loss_parallel", NO_PLACE},
    {"pipeline_parallel_schedule_csv", NULL},
    {"pipeline_parallel_split_points", NO_PLACE},
    {"pipeline_parallel_expert_parallel_overlap", NO_PLACE},
    {"context_parallel_load_balancer", NO_PLACE},
};

static const fr_config_key checkpointing_keys[] = {
    {"mode", NULL},
    {"selective_ac_option", NULL},
    {"per_op_sac_force_recompute_mm_shapes_by_fqns", NO_PLACE},
    {"early_stop", NOT_TIMED},
    {"memory_budget", NO_PLACE},
    {"visualize_memory_budget_pareto", IT_PRINTS},
    {"preserve_rng_state", NOT_TIMED},
    {"determinism_check", NOT_TIMED},
    {"debug", IT_PRINTS},
};

static const fr_config_key compile_keys[] = {
    {"enable", NULL}, {"components", NO_PLACE}, {"backend", NO_PLACE}};

static const fr_config_key debug_keys[] = {
    {"seed", NULL},
    {"deterministic", NOT_TIMED},
    {"deterministic_warn_only", NOT_TIMED},
    {"moe_force_load_balance", NOT_TIMED}};

typedef struct reader {
    const fr_config_request *request;
    const fr_json_value *root;
    fr_config *out;
    fr_err *err;
} reader;

/* ---- values -------------------------------------------------------------- */

/* The table `name`, its keys known; NULL in *out: absent. */
static fr_status find_table(reader *r, const char *name,
                            const fr_config_key *keys, size_t n,
                            const fr_json_value **out)
{
    char where[64];
    *out = fr_json_find(r->root, name);
    snprintf(where, sizeof where, "%s.", name);
    return fr_config_check_keys(*out, where, keys, n, &r->out->notes, r->err);
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

static fr_status read_degree(reader *r, const fr_json_value *table,
                             const char *key, int32_t *out)
{
    int64_t n = *out;
    FR_TRY(read_count(r, table, key, 1, &n));
    *out = (int32_t)n;
    return FR_OK;
}

static fr_status read_real(reader *r, const fr_json_value *table,
                           const char *key, double *out)
{
    const fr_json_value *value = fr_json_find(table, key);
    return value == NULL ? FR_OK : fr_json_as_double(value, out, r->err);
}

/* One of `words`; *out stays as it is where the key is absent. */
static fr_status read_word(reader *r, const fr_json_value *table,
                           const char *key, const char *const *words, int n,
                           int *out)
{
    const fr_json_value *value = fr_json_find(table, key);
    const char *text;
    if (value == NULL)
        return FR_OK;
    FR_TRY(fr_json_as_string(value, &text, r->err));
    for (int i = 0; i < n; i++)
        if (words[i] != NULL && strcmp(words[i], text) == 0) {
            *out = i;
            return FR_OK;
        }
    return fr_json_fail(value, r->err,
                        "%s '%.40s' is not known here; known "
                        "are %s and its like",
                        key, text, words[0]);
}

/* ---- what is parallel ---------------------------------------------------- */

static fr_status read_data_parallel(reader *r, const fr_json_value *table)
{
    static const char *const policies[] = {"default", "always", "never"};
    fr_plan *plan = &r->out->file.plan;
    int64_t n_replicas = 1, n_shards = -1, world = 0;
    int policy = 0;
    FR_TRY(
        read_count(r, table, "data_parallel_replicate_degree", 1, &n_replicas));
    FR_TRY(read_count(r, table, "data_parallel_shard_degree", -1, &n_shards));
    if (n_shards == 0)
        return fr_json_fail(fr_json_find(table, "data_parallel_shard_degree"),
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
    FR_TRY(read_word(r, table, "fsdp_reshard_after_forward", policies, 3,
                     &policy));
    /* distributed/fsdp.py: default keeps them with a pipeline. */
    plan->is_resharded = policy == 1 || (policy == 0 && plan->pp == 1);
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
    static const char *const schedules[FR_SCHEDULE_N] = {
        [FR_SCHEDULE_1F1B] = "1F1B",
        [FR_SCHEDULE_GPIPE] = "GPipe",
        [FR_SCHEDULE_INTERLEAVED] = "Interleaved1F1B",
        [FR_SCHEDULE_ZB_H1] = "PipelineScheduleSingle",
        [FR_SCHEDULE_ZB_V] = "ZBVZeroBubble"};
    fr_plan *plan = &r->out->file.plan;
    int schedule = FR_SCHEDULE_1F1B;
    int64_t per_stage = 0, first_less = 1, last_less = 1;
    if (plan->pp == 1)
        return FR_OK;
    FR_TRY(read_word(r, table, "pipeline_parallel_schedule", schedules,
                     FR_SCHEDULE_N, &schedule));
    plan->schedule = (fr_schedule_kind)schedule;
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
    static const char *const rotations[] = {"allgather", "alltoall"};
    static const char *const backends[] = {"standard", "deepep"};
    fr_plan *plan = &r->out->file.plan;
    const fr_json_value *table;
    int rotation = 0, backend = 0;
    FR_TRY(find_table(r, "parallelism", parallel_keys, FR_LENGTH(parallel_keys),
                      &table));
    FR_TRY(read_degree(r, table, "tensor_parallel_degree", &plan->tp));
    FR_TRY(read_degree(r, table, "pipeline_parallel_degree", &plan->pp));
    FR_TRY(read_degree(r, table, "context_parallel_degree", &plan->cp));
    FR_TRY(read_degree(r, table, "expert_parallel_degree", &plan->ep));
    if (plan->ep > 1) {
        plan->etp = 1;
        FR_TRY(
            read_degree(r, table, "expert_tensor_parallel_degree", &plan->etp));
    }
    plan->is_sequence_parallel = plan->tp > 1;
    FR_TRY(fr_config_read_bool(table, "enable_async_tensor_parallel",
                               &plan->is_tp_overlap, r->err));
    FR_TRY(read_word(r, table, "context_parallel_rotate_method", rotations, 2,
                     &rotation));
    plan->cp_kind = rotation == 1 ? FR_CP_RING : FR_CP_ALL_GATHER;
    FR_TRY(read_word(r, table, "expert_parallel_comm_backend", backends, 2,
                     &backend));
    plan->expert_dispatch =
        backend == 1 ? FR_DISPATCH_BY_NODE : FR_DISPATCH_ALL_TO_ALL;
    FR_TRY(read_data_parallel(r, table));
    return read_pipeline(r, table);
}

/* ---- training ------------------------------------------------------------ */

static fr_status read_batch(reader *r, const fr_json_value *table)
{
    fr_plan *plan = &r->out->file.plan;
    int64_t local = 8, whole = -1, micro = 1;
    FR_TRY(read_count(r, table, "batch_size", 1, &local));
    FR_TRY(read_count(r, table, "local_batch_size", 1, &local));
    FR_TRY(read_count(r, table, "global_batch_size", -1, &whole));
    if (whole <= 0)
        whole = local * plan->dp;
    FR_TRY(read_count(r, fr_json_find(r->root, "parallelism"),
                      "pipeline_parallel_microbatch_size", 1, &micro));
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
    static const char *const dtypes[] = {"bfloat16", "float32"};
    static const char *const sums[] = {"float32", "bfloat16"};
    fr_plan *plan = &r->out->file.plan;
    fr_job *job = &r->out->file.job;
    const fr_json_value *table;
    int dtype = 0, sum = 0;
    FR_TRY(find_table(r, "training", training_keys, FR_LENGTH(training_keys),
                      &table));
    FR_TRY(read_batch(r, table));
    FR_TRY(read_word(r, table, "mixed_precision_param", dtypes, 2, &dtype));
    FR_TRY(read_word(r, table, "mixed_precision_reduce", sums, 2, &sum));
    if (plan->precision != FR_DTYPE_FP8)
        plan->precision = dtype == 0 ? FR_DTYPE_BF16 : FR_DTYPE_F32;
    plan->grad_dtype = sum == 0 ? FR_DTYPE_F32 : FR_DTYPE_BF16;
    FR_TRY(fr_config_read_bool(table, "enable_cpu_offload",
                               &plan->is_optimizer_offloaded, r->err));
    job->seq = 2048;
    FR_TRY(read_count(r, table, "seq_len", 1, &job->seq));
    job->n_steps = 10000;
    FR_TRY(read_count(r, table, "steps", 1, &job->n_steps));
    return read_real(r, table, "max_norm", &job->clip_norm);
}

static fr_status read_optimizer(reader *r)
{
    static const char *const kinds[] = {"AdamW", "Adam"};
    static const char *const curves[] = {"linear", "sqrt", "cosine"};
    fr_job *job = &r->out->file.job;
    const fr_json_value *table;
    double share = 1;
    int kind = 0, curve = 0;
    FR_TRY(find_table(r, "optimizer", optimizer_keys, FR_LENGTH(optimizer_keys),
                      &table));
    FR_TRY(read_word(r, table, "name", kinds, 2, &kind));
    job->lr = 8e-4;
    FR_TRY(read_real(r, table, "lr", &job->lr));
    FR_TRY(read_real(r, table, "beta1", &job->beta1));
    FR_TRY(read_real(r, table, "beta2", &job->beta2));
    FR_TRY(read_real(r, table, "eps", &job->optimizer_eps));
    FR_TRY(read_real(r, table, "weight_decay", &job->weight_decay));
    FR_TRY(find_table(r, "lr_scheduler", curve_keys, FR_LENGTH(curve_keys),
                      &table));
    job->warmup_steps = 200;
    FR_TRY(read_count(r, table, "warmup_steps", 0, &job->warmup_steps));
    FR_TRY(read_word(r, table, "decay_type", curves, 3, &curve));
    FR_TRY(read_real(r, table, "decay_ratio", &share));
    FR_TRY(read_real(r, table, "min_lr_factor", &job->lr_min_frac));
    job->lr_schedule = share == 0   ? FR_LR_CONSTANT
                       : curve == 2 ? FR_LR_COSINE
                                    : FR_LR_LINEAR;
    return FR_OK;
}

static fr_status read_recompute(reader *r)
{
    const fr_json_value *table;
    FR_TRY(find_table(r, "activation_checkpoint", checkpointing_keys,
                      FR_LENGTH(checkpointing_keys), &table));
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

/* What multiplies in fp8: scales of the tensor itself, of its rows, or of
 * blocks. */
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

/* Whose seed: a table of its own, [training] of 0.2.0. */
static fr_status read_seed(reader *r, const fr_json_value *table)
{
    const fr_json_value *seed = fr_json_find(table, "seed");
    return seed == NULL ? FR_OK
                        : fr_json_as_u64(seed, &r->out->file.job.seed, r->err);
}

static fr_status read_model(reader *r)
{
    const fr_json_value *table;
    const char *name = NULL, *flavor = NULL;
    char said[128];
    FR_TRY(find_table(r, "model", model_keys, FR_LENGTH(model_keys), &table));
    if (table != NULL) {
        FR_TRY(fr_json_get_string_or(table, "name", NULL, &name, r->err));
        FR_TRY(fr_json_get_string_or(table, "flavor", NULL, &flavor, r->err));
    }
    if (name == NULL)
        name = "llama3";
    if (flavor == NULL)
        flavor = "debugmodel";
    snprintf(said, sizeof said, "%.60s %.60s", name, flavor);
    FR_TRY(fr_config_take_model(r->request, said,
                                fr_torchtitan_model_of(name, flavor), r->out,
                                r->err));
    return read_converters(r, fr_json_find(table, "converters"));
}

static fr_status read_compile(reader *r)
{
    const fr_json_value *table;
    bool is_on = false;
    fr_config_take_kernels(&fr_framework_torchtitan, r->out);
    FR_TRY(find_table(r, "compile", compile_keys, FR_LENGTH(compile_keys),
                      &table));
    FR_TRY(fr_config_read_bool(table, "enable", &is_on, r->err));
    if (is_on)
        r->out->file.plan.execution.kernels = FR_KERNELS_COMPILED;
    FR_TRY(find_table(r, "debug", debug_keys, FR_LENGTH(debug_keys), &table));
    FR_TRY(read_seed(r, table));
    return read_seed(r, fr_json_find(r->root, "training"));
}

static fr_status read_root(reader *r)
{
    FR_TRY(fr_config_check_keys(r->root, "", root_keys, FR_LENGTH(root_keys),
                                &r->out->notes, r->err));
    FR_TRY(read_model(r));
    FR_TRY(read_parallel(r));
    FR_TRY(read_training(r));
    FR_TRY(read_optimizer(r));
    FR_TRY(read_recompute(r));
    return read_compile(r);
}

static fr_status read_config(const fr_config_request *request, fr_config *out,
                             fr_err *err)
{
    fr_json *json;
    FR_TRY(fr_toml_parse(request->path, request->text, request->n_text, &json,
                         err));
    reader r = {request, fr_json_root(json), out, err};
    fr_status status = read_root(&r);
    fr_json_destroy(json);
    return status;
}

const fr_config_format fr_config_torchtitan = {
    .framework = &fr_framework_torchtitan,
    .summary = "a TOML file of torchtitan",
    .looks_like = looks_like,
    .read = read_config,
};
