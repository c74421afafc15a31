/*
 * config_deepspeed.c: ds_config.json of DeepSpeed (deepspeed/runtime/config.py,
 * zero/config.py; 0.19).  "auto" is Hugging Face's: its Trainer fills it in
 * (transformers, integrations/deepspeed.py); what it would be is taken, and
 * said.
 */
#include "frameworks/deepspeed/config_deepspeed.h"

#include "core/document/hjson.h"
#include "frameworks/framework_list.h"
#include "frameworks/read/config_parts.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool looks_like(const char *text, size_t n)
{
    static const char *const marks[] = {
        "train_batch_size", "train_micro_batch_size_per_gpu",
        "zero_optimization", "gradient_accumulation_steps"};
    const size_t first = fr_hjson_skip(text, n, 0);
    if (first == n || text[first] != '{')
        return false;
    for (size_t mark = 0; mark < FR_LENGTH(marks); mark++)
        if (memmem(text, n, marks[mark], strlen(marks[mark])) != NULL)
            return true;
    return false;
}

#define IT_PRINTS "it only prints and measures"
#define NOT_TIMED "no prediction depends on it"
#define NO_PLACE "the plan has no place for it"

static const fr_config_key root_keys[] = {
    {"train_batch_size", NULL},
    {"train_micro_batch_size_per_gpu", NULL},
    {"gradient_accumulation_steps", NULL},
    {"optimizer", NULL},
    {"scheduler", NULL},
    {"gradient_clipping", NULL},
    {"bf16", NULL},
    {"bfloat16", NULL},
    {"fp16", NULL},
    {"data_types", NULL},
    {"communication_data_type", NULL},
    {"zero_optimization", NULL},
    {"activation_checkpointing", NULL},
    {"tensor_parallel", NULL},
    {"expert_parallel", NULL},
    {"sequence_parallel_size", NULL},
    {"pipeline", NULL},
    {"seq_parallel_communication_data_type", NO_PLACE},
    {"managed_gradient_accumulation", NO_PLACE},
    {"prescale_gradients", NOT_TIMED},
    {"gradient_predivide_factor", NOT_TIMED},
    {"gradient_allreduce_op", NOT_TIMED},
    {"sparse_gradients", NO_PLACE},
    {"amp", NO_PLACE},
    {"torch_autocast", NO_PLACE},
    {"compile", NO_PLACE},
    {"torch_compile", NO_PLACE},
    {"elasticity", "the batch of this number of ranks is taken"},
    {"compression_training", NO_PLACE},
    {"sparse_attention", NO_PLACE},
    {"progressive_layer_drop", NO_PLACE},
    {"curriculum_learning", NO_PLACE},
    {"data_efficiency", NO_PLACE},
    {"weight_quantization", NO_PLACE},
    {"quantize_training", NO_PLACE},
    {"hybrid_engine", NO_PLACE},
    {"eigenvalue", NO_PLACE},
    {"use_data_before_expert_parallelism", NO_PLACE},
    {"disable_allgather", NO_PLACE},
    {"graph_harvesting", NO_PLACE},
    {"aio", "of offloading to NVMe, which no plan has"},
    {"checkpoint", "checkpoints are no part of a step"},
    {"nebula", "checkpoints are no part of a step"},
    {"datastates", "checkpoints are no part of a step"},
    {"autotuning", "forerun tune is meant for that"},
    {"vocabulary_size", "the model says it"},
    {"dataloader_drop_last", NOT_TIMED},
    {"zero_allow_untested_optimizer", NOT_TIMED},
    {"zero_force_ds_cpu_optimizer", NOT_TIMED},
    {"steps_per_print", IT_PRINTS},
    {"wall_clock_breakdown", IT_PRINTS},
    {"memory_breakdown", IT_PRINTS},
    {"dump_state", IT_PRINTS},
    {"flops_profiler", IT_PRINTS},
    {"comms_logger", IT_PRINTS},
    {"tensorboard", IT_PRINTS},
    {"wandb", IT_PRINTS},
    {"comet", IT_PRINTS},
    {"csv_monitor", IT_PRINTS},
    {"monitor_config", IT_PRINTS},
    {"timers", IT_PRINTS},
    {"log_level", IT_PRINTS},
};

static const fr_config_key precision_keys[] = {
    {"enabled", NULL},
    {"auto_cast", NOT_TIMED},
    {"loss_scale", NOT_TIMED},
    {"initial_scale_power", NOT_TIMED},
    {"loss_scale_window", NOT_TIMED},
    {"hysteresis", NOT_TIMED},
    {"consecutive_hysteresis", NOT_TIMED},
    {"min_loss_scale", NOT_TIMED},
    {"immediate_grad_update", NO_PLACE},
    {"check_grad_overflow", NOT_TIMED},
    {"fp16_master_weights_and_grads", NO_PLACE},
    {"bf16_master_weights_and_grads", NO_PLACE},
    {"bf16_optimizer_states", NO_PLACE},
    {"opt_level", NO_PLACE},
};

static const fr_config_key data_types_keys[] = {
    {"grad_accum_dtype", NULL},
    {"param_dtype", "bf16.enabled and fp16.enabled say it"},
    {"buffer_dtype", NOT_TIMED},
};

static const fr_config_key pipeline_keys[] = {
    {"stages", NULL},
    {"partition", "layers are split evenly"},
    {"seed_layers", NOT_TIMED},
    {"activation_checkpoint_interval", NULL},
    {"pipe_partitioned", NO_PLACE},
    {"grad_partitioned", NO_PLACE},
};

static const fr_config_key checkpointing_keys[] = {
    {"partition_activations", NO_PLACE},
    {"number_checkpoints", NOT_TIMED},
    {"contiguous_memory_optimization", NO_PLACE},
    {"synchronize_checkpoint_boundary", NO_PLACE},
    {"profile", IT_PRINTS},
    {"cpu_checkpointing", NULL},
};

static const fr_config_key tensor_keys[] = {
    {"autotp_size", NULL},
    {"tp_overlap_comm", NULL},
    {"tp", NULL},
    {"tensor_parallel", NULL},
    {"dtype", NO_PLACE},
    {"preset_model", "the model says it"},
    {"partition_config", "the model says it"},
    {"injection_policy_tuple", "the model says it"},
    {"keep_module_on_host", NOT_TIMED},
    {"replace_with_kernel_inject", NO_PLACE},
    {"kernel_inject", NO_PLACE},
};

static const fr_config_key tp_keys[] = {
    {"tp_size", NULL},
    {"tp_grain_size", NOT_TIMED},
};

/* ---- values -------------------------------------------------------------- */

bool fr_deepspeed_is_auto(const fr_json_value *value)
{
    const char *text;
    fr_err unused;
    return value != NULL && fr_json_kind_of(value) == FR_JSON_STRING &&
           fr_json_as_string(value, &text, &unused) == FR_OK &&
           strcmp(text, "auto") == 0;
}

static void note_auto(const fr_json_value *value, const char *key,
                      const char *taken, fr_buffer *notes)
{
    fr_buffer_printf(notes, "line %d: %s is auto: %s\n", fr_json_line(value),
                     key, taken);
}

const fr_json_value *fr_deepspeed_find(const fr_json_value *object,
                                       const char *key, const char *taken,
                                       fr_buffer *notes)
{
    const fr_json_value *value = fr_json_find(object, key);
    if (value == NULL && strncmp(key, "stage3_", 7) == 0)
        value = fr_json_find(object, key + 7); /* the field's name */
    if (!fr_deepspeed_is_auto(value))
        return value;
    note_auto(value, key, taken, notes);
    return NULL;
}

fr_status fr_deepspeed_read_count(const fr_json_value *value, const char *key,
                                  int64_t low, int64_t high, int64_t *out,
                                  fr_err *err)
{
    double number;
    FR_TRY(fr_json_as_double(value, &number, err));
    if (!(number >= (double)low && number <= (double)high) ||
        number != (double)(int64_t)number)
        return fr_json_fail(value, err,
                            "%s is %.12g; give a whole number of %lld to %lld",
                            key, number, (long long)low, (long long)high);
    *out = (int64_t)number;
    return FR_OK;
}

static fr_status read_degree(const fr_json_value *object, const char *key,
                             int32_t *out, fr_err *err)
{
    const fr_json_value *value = fr_json_find(object, key);
    int64_t n;
    if (value == NULL)
        return FR_OK;
    FR_TRY(fr_deepspeed_read_count(value, key, 0, 1 << 20, &n, err));
    *out = n > 0 ? (int32_t)n : 1; /* 0: it is off */
    return FR_OK;
}

/* ---- batch --------------------------------------------------------------- */

typedef struct batch {
    int64_t whole, micro, accumulated; /* 0: the file does not say */
} batch;

static fr_status read_batch(const fr_json_value *root, batch *out,
                            fr_buffer *notes, fr_err *err)
{
    static const struct {
        const char *key, *taken;
    } rows[] = {
        {"train_batch_size", "micro-batch x accumulation x ranks"},
        {"train_micro_batch_size_per_gpu",
         "the Trainer's per_device_train_batch_size"},
        {"gradient_accumulation_steps",
         "the Trainer's gradient_accumulation_steps"},
    };
    int64_t *const members[] = {&out->whole, &out->micro, &out->accumulated};
    for (size_t i = 0; i < FR_LENGTH(rows); i++) {
        const fr_json_value *value =
            fr_deepspeed_find(root, rows[i].key, rows[i].taken, notes);
        *members[i] = 0;
        if (value != NULL)
            FR_TRY(fr_deepspeed_read_count(value, rows[i].key, 1,
                                           INT64_C(1) << 40, members[i], err));
    }
    return FR_OK;
}

/* runtime/config.py, _set_batch_related_parameters(): any two give the third,
 * one alone is not accumulated. */
static fr_status take_batch(const fr_config_request *request, batch of,
                            fr_config *out, fr_err *err)
{
    fr_plan *plan = &out->file.plan;
    if (of.whole == 0 && of.micro == 0) {
        of.micro = 8; /* transformers, TrainingArguments */
        fr_buffer_puts(&out->notes, "micro-batch 8, as Hugging Face's Trainer "
                                    "has it: the file does not say\n");
    }
    if (of.whole == 0 && of.accumulated == 0)
        of.accumulated = 1;
    if (of.whole == 0)
        of.whole = of.micro * of.accumulated * plan->dp;
    if (of.micro == 0 && of.accumulated == 0)
        of.accumulated = 1;
    if (of.micro == 0)
        of.micro = of.whole / plan->dp / of.accumulated;
    if (of.accumulated == 0)
        of.accumulated = of.whole / plan->dp / of.micro;
    if (of.whole < plan->dp)
        return fr_fail(err, FR_INPUT,
                       "%s:1: train_batch_size %lld is less than one sequence "
                       "of each of %d data-parallel ranks; give the --ranks "
                       "that it is for",
                       request->path, (long long)of.whole, plan->dp);
    if (of.micro * of.accumulated * plan->dp != of.whole || of.micro == 0)
        return fr_fail(err, FR_INPUT,
                       "%s:1: train_batch_size %lld is not micro-batch %lld x "
                       "accumulation %lld x %d data-parallel ranks",
                       request->path, (long long)of.whole, (long long)of.micro,
                       (long long)of.accumulated, plan->dp);
    plan->micro_batch = of.micro;
    out->file.job.global_batch = of.whole;
    return FR_OK;
}

/* ---- precision ----------------------------------------------------------- */

static fr_status read_dtype(const fr_json_value *value, const char *key,
                            fr_dtype *out, fr_err *err)
{
    static const struct {
        const char *name;
        fr_dtype dtype;
    } rows[] = {{"fp32", FR_DTYPE_F32},
                {"float32", FR_DTYPE_F32},
                {"float", FR_DTYPE_F32},
                {"torch.float32", FR_DTYPE_F32},
                {"bf16", FR_DTYPE_BF16},
                {"bfloat16", FR_DTYPE_BF16},
                {"torch.bfloat16", FR_DTYPE_BF16},
                {"fp16", FR_DTYPE_F16},
                {"float16", FR_DTYPE_F16},
                {"half", FR_DTYPE_F16},
                {"torch.float16", FR_DTYPE_F16}};
    const char *text;
    FR_TRY(fr_json_as_string(value, &text, err));
    for (size_t i = 0; i < FR_LENGTH(rows); i++)
        if (strcasecmp(rows[i].name, text) == 0) {
            *out = rows[i].dtype;
            return FR_OK;
        }
    return fr_json_fail(value, err, "%s '%.40s'; give fp32, bf16 or fp16", key,
                        text);
}

static fr_status read_enabled(const fr_json_value *root, const char *key,
                              const char *taken, bool *out, fr_buffer *notes,
                              fr_err *err)
{
    const fr_json_value *object = fr_json_find(root, key);
    char where[32];
    if (object == NULL)
        return FR_OK;
    snprintf(where, sizeof where, "%s.", key);
    FR_TRY(fr_config_check_keys(object, where, precision_keys,
                                FR_LENGTH(precision_keys), notes, err));
    const fr_json_value *value = fr_json_find(object, "enabled");
    if (value == NULL)
        return FR_OK;
    if (fr_deepspeed_is_auto(value)) {
        note_auto(value, where, taken, notes);
        *out = taken[0] == 'b';
        return FR_OK;
    }
    return fr_json_as_bool(value, out, err);
}

/* The type that gradients are reduced in (runtime/zero/stage_1_and_2.py,
 * gradient_reduction_w_predivide(): those of another type are converted,
 * reduced and converted back). */
static void take_wire(fr_dtype wire, fr_config *out)
{
    fr_plan *plan = &out->file.plan;
    plan->compressor = FR_COMPRESSOR_NONE;
    if (fr_dtype_bytes(wire) == fr_dtype_bytes(plan->grad_dtype))
        return;
    if (wire == FR_DTYPE_BF16) {
        plan->compressor = FR_COMPRESSOR_BF16;
    } else if (wire == FR_DTYPE_F16) {
        plan->compressor = FR_COMPRESSOR_BF16;
        fr_buffer_puts(&out->notes, "gradients are sent as bf16: no plan adds "
                                    "them up in f32 and sends fp16, which are "
                                    "as many bytes\n");
    } else {
        plan->grad_dtype = FR_DTYPE_F32;
        fr_buffer_puts(&out->notes,
                       "gradients f32, as communication_data_type sends them: "
                       "a plan has one type, and the file keeps them in 16 "
                       "bits\n");
    }
}

static fr_status read_precision(const fr_json_value *root, fr_config *out,
                                fr_err *err)
{
    fr_plan *plan = &out->file.plan;
    const fr_json_value *types = fr_json_find(root, "data_types"), *value;
    bool is_bf16 = false, is_f16 = false;
    FR_TRY(read_enabled(root, "bfloat16", "bf16 is taken", &is_bf16,
                        &out->notes, err));
    FR_TRY(read_enabled(root, "bf16", "bf16 is taken", &is_bf16, &out->notes,
                        err));
    FR_TRY(
        read_enabled(root, "fp16", "off is taken", &is_f16, &out->notes, err));
    if (is_bf16 && is_f16)
        return fr_json_fail(root, err, "bf16 and fp16 cannot both be enabled");
    plan->precision = is_bf16  ? FR_DTYPE_BF16
                      : is_f16 ? FR_DTYPE_F16
                               : FR_DTYPE_F32;
    plan->grad_dtype = plan->precision;
    FR_TRY(fr_config_check_known_keys(types, "data_types.", data_types_keys,
                                      FR_LENGTH(data_types_keys), &out->notes,
                                      err));
    value = fr_deepspeed_find(types, "grad_accum_dtype", "that of the weights",
                              &out->notes);
    if (value != NULL)
        FR_TRY(read_dtype(value, "grad_accum_dtype", &plan->grad_dtype, err));
    value = fr_deepspeed_find(root, "communication_data_type",
                              "that of the weights", &out->notes);
    fr_dtype wire = plan->precision;
    if (value != NULL)
        FR_TRY(read_dtype(value, "communication_data_type", &wire, err));
    take_wire(wire, out);
    return FR_OK;
}

/* ---- degrees ------------------------------------------------------------- */

static fr_status read_degrees(const fr_json_value *root, fr_config *out,
                              fr_err *err)
{
    fr_plan *plan = &out->file.plan;
    const fr_json_value *tensor = fr_json_find(root, "tensor_parallel");
    const fr_json_value *pipeline = fr_json_find(root, "pipeline");
    const fr_json_value *old = fr_json_find(tensor, "tp");
    if (old == NULL)
        old = fr_json_find(tensor, "tensor_parallel"); /* the field's name */
    FR_TRY(fr_config_check_keys(tensor, "tensor_parallel.", tensor_keys,
                                FR_LENGTH(tensor_keys), &out->notes, err));
    FR_TRY(fr_config_check_keys(old, "tensor_parallel.tp.", tp_keys,
                                FR_LENGTH(tp_keys), &out->notes, err));
    FR_TRY(read_degree(old, "tp_size", &plan->tp, err));
    FR_TRY(read_degree(tensor, "autotp_size", &plan->tp, err));
    FR_TRY(fr_config_read_bool(tensor, "tp_overlap_comm", &plan->is_tp_overlap,
                               err));
    FR_TRY(fr_config_check_known_keys(pipeline, "pipeline.", pipeline_keys,
                                      FR_LENGTH(pipeline_keys), &out->notes,
                                      err));
    if (fr_deepspeed_is_auto(fr_json_find(pipeline, "stages")))
        note_auto(fr_json_find(pipeline, "stages"), "pipeline.stages",
                  "1 is taken: the script says it", &out->notes);
    else
        FR_TRY(read_degree(pipeline, "stages", &plan->pp, err));
    FR_TRY(read_degree(root, "sequence_parallel_size", &plan->cp, err));
    if (plan->cp > 1)
        plan->cp_kind = FR_CP_ALL_TO_ALL;
    return FR_OK;
}

/* Only PipelineModule checkpoints layers because the file says so.  The block
 * activation_checkpointing configures deepspeed.checkpointing.checkpoint()
 * (runtime/activation_checkpointing/checkpointing.py, configure()), which the
 * model's code calls or not. */
static fr_status read_recompute(const fr_json_value *root, fr_config *out,
                                fr_err *err)
{
    fr_plan *plan = &out->file.plan;
    const fr_json_value *object =
        fr_json_find(root, "activation_checkpointing");
    const fr_json_value *pipeline = fr_json_find(root, "pipeline");
    const fr_json_value *every =
        fr_json_find(pipeline, "activation_checkpoint_interval");
    int64_t interval = 0;
    bool is_offloaded = false;
    FR_TRY(fr_config_check_known_keys(
        object, "activation_checkpointing.", checkpointing_keys,
        FR_LENGTH(checkpointing_keys), &out->notes, err));
    FR_TRY(
        fr_config_read_bool(object, "cpu_checkpointing", &is_offloaded, err));
    if (every != NULL)
        FR_TRY(fr_json_as_i64(every, &interval, err));
    if (interval <= 0) {
        fr_buffer_printf(
            &out->notes,
            "no recompute: the model's code decides it%s; give --recompute "
            "full if it does\n",
            object == NULL ? ""
                           : ", activation_checkpointing only configures it");
        return FR_OK;
    }
    plan->recompute = FR_RECOMPUTE_FULL;
    plan->activation_offload_frac = is_offloaded ? 1 : 0;
    return FR_OK;
}

/* ---- the file ------------------------------------------------------------ */

static fr_status read_root(const fr_config_request *request,
                           const fr_json_value *root, fr_config *out,
                           fr_err *err)
{
    fr_plan *plan = &out->file.plan;
    batch of;
    FR_TRY(fr_config_check_known_keys(root, "", root_keys, FR_LENGTH(root_keys),
                                      &out->notes, err));
    FR_TRY(fr_config_take_model(request, NULL, NULL, out, err));
    fr_config_take_seq(request, out);
    fr_config_take_kernels(out->framework, out);
    FR_TRY(read_batch(root, &of, &out->notes, err));
    FR_TRY(read_precision(root, out, err));
    FR_TRY(read_degrees(root, out, err));
    FR_TRY(fr_deepspeed_read_experts(root, out, err));
    int64_t world = 0;
    if (request->world == 0 && of.whole > 0 && of.micro > 0 &&
        of.accumulated > 0 && of.whole / of.micro % of.accumulated == 0)
        world =
            of.whole / of.micro / of.accumulated * fr_config_other_ranks(plan);
    FR_TRY(fr_config_take_dp(request, world, out, err));
    FR_TRY(take_batch(request, of, out, err));
    FR_TRY(read_recompute(root, out, err));
    FR_TRY(fr_deepspeed_read_zero(root, out, err));
    return fr_deepspeed_read_job(root, out, err);
}

/* DeepSpeed reads its file with hjson.load() (runtime/config.py).  A text that
 * is neither JSON nor Hjson is refused as JSON. */
static fr_status parse(const fr_config_request *request, fr_json **out,
                       fr_err *err)
{
    fr_buffer text;
    fr_err unused;
    fr_status status =
        fr_json_parse(request->path, request->text, request->n_text, out, err);
    if (status != FR_INPUT)
        return status;
    fr_buffer_init(&text);
    if (fr_hjson_to_json(request->path, request->text, request->n_text, &text,
                         &unused) == FR_OK &&
        fr_json_parse(request->path, fr_buffer_text(&text), text.n, out,
                      &unused) == FR_OK)
        status = FR_OK;
    fr_buffer_release(&text);
    return status;
}

static fr_status read_config(const fr_config_request *request, fr_config *out,
                             fr_err *err)
{
    fr_json *json;
    FR_TRY(parse(request, &json, err));
    fr_status status = read_root(request, fr_json_root(json), out, err);
    fr_json_destroy(json);
    return status;
}

const fr_config_format fr_config_deepspeed = {
    .summary = "ds_config.json of DeepSpeed",
    .looks_like = looks_like,
    .read = read_config,
};
