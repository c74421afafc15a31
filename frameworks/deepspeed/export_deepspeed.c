/*
 * export_deepspeed.c: ds_config.json of DeepSpeed (deepspeed/runtime/config.py
 * and the models of its parts), and a script that starts it.  JSON has no
 * comments: what the file cannot say stands in the script.
 */
#include "frameworks/deepspeed/export_deepspeed.h"

#include "frameworks/deepspeed/config_deepspeed.h"
#include "frameworks/framework_list.h"

#include <string.h>

static const char *dtype_name(fr_dtype dtype)
{
    return dtype == FR_DTYPE_F32    ? "fp32"
           : dtype == FR_DTYPE_BF16 ? "bf16"
                                    : "fp16";
}

/* ---- ds_config.json ------------------------------------------------------ */

static void put_optimizer(const fr_plan_file *file, fr_json_writer *json)
{
    static const char *const types[FR_OPTIMIZER_N] = {
        [FR_OPTIMIZER_SGD] = "SGD",
        [FR_OPTIMIZER_ADAMW] = "AdamW",
        [FR_OPTIMIZER_LAMB] = "Lamb"};
    const fr_job *job = &file->job;
    if (types[job->optimizer] == NULL)
        return; /* the script makes it */
    fr_json_open_object(json, "optimizer");
    fr_json_put_string(json, "type", types[job->optimizer]);
    fr_json_open_object(json, "params");
    fr_json_put_double(json, "lr", fr_job_peak_lr(job));
    if (job->optimizer == FR_OPTIMIZER_SGD) {
        fr_json_put_double(json, "momentum", job->beta1);
    } else {
        const double betas[] = {job->beta1, job->beta2};
        fr_json_put_doubles(json, "betas", betas, 2);
        fr_json_put_double(json, "eps", job->optimizer_eps);
    }
    fr_json_put_double(json, "weight_decay", job->weight_decay);
    fr_json_end_object(json);
    fr_json_end_object(json);
    /* runtime/zero/utils.py, ZERO_SUPPORTED_OPTIMIZERS: Adam alone. */
    if (file->plan.zero_stage > 0 && job->optimizer != FR_OPTIMIZER_ADAMW)
        fr_json_put_bool(json, "zero_allow_untested_optimizer", true);
}

/* runtime/lr_schedules.py */
static const char *const schedulers[FR_LR_N] = {
    [FR_LR_CONSTANT] = "WarmupLR",
    [FR_LR_LINEAR] = "WarmupDecayLR",
    [FR_LR_COSINE] = "WarmupCosineLR"};

static bool has_scheduler(const fr_job *job)
{
    bool is_flat = job->lr_schedule == FR_LR_CONSTANT && job->warmup_steps == 0;
    return schedulers[job->lr_schedule] != NULL && !is_flat;
}

/* A warm-up of no step is refused there. */
static void put_scheduler(const fr_job *job, fr_json_writer *json)
{
    if (!has_scheduler(job))
        return;
    fr_json_open_object(json, "scheduler");
    fr_json_put_string(json, "type", schedulers[job->lr_schedule]);
    fr_json_open_object(json, "params");
    if (job->lr_schedule != FR_LR_CONSTANT)
        fr_json_put_i64(json, "total_num_steps", job->n_steps);
    fr_json_put_i64(json, "warmup_num_steps",
                    job->warmup_steps > 0 ? job->warmup_steps : 1);
    fr_json_put_string(json, "warmup_type", "linear");
    if (job->lr_schedule == FR_LR_COSINE)
        fr_json_put_double(json, "cos_min_ratio", job->lr_min_frac);
    else
        fr_json_put_double(json, "warmup_max_lr", fr_job_peak_lr(job));
    fr_json_end_object(json);
    fr_json_end_object(json);
}

static void put_precision(const fr_plan *plan, fr_json_writer *json)
{
    fr_json_open_object(json, "bf16");
    fr_json_put_bool(json, "enabled", plan->precision == FR_DTYPE_BF16);
    fr_json_end_object(json);
    fr_json_open_object(json, "fp16");
    fr_json_put_bool(json, "enabled", plan->precision == FR_DTYPE_F16);
    fr_json_end_object(json);
    fr_json_open_object(json, "data_types");
    fr_json_put_string(json, "grad_accum_dtype", dtype_name(plan->grad_dtype));
    fr_json_end_object(json);
    fr_json_put_string(json, "communication_data_type",
                       plan->compressor == FR_COMPRESSOR_BF16
                           ? "bf16"
                           : dtype_name(plan->grad_dtype));
}

static uint64_t bucket_elements(const fr_plan_file *file)
{
    const fr_plan *plan = &file->plan;
    uint64_t n = plan->bucket_bytes / fr_dtype_bytes(plan->grad_dtype);
    if (plan->bucket_bytes == 0)
        return fr_model_parameters(&file->model); /* one of all */
    return n > 0 ? n : 1;
}

static void put_gathers(const fr_plan_file *file, fr_json_writer *json)
{
    const fr_plan *plan = &file->plan;
    const uint64_t all = 2 * fr_model_parameters(&file->model);
    fr_json_put_u64(json, "stage3_prefetch_bucket_size",
                    (uint64_t)plan->n_prefetch *
                        fr_deepspeed_layer_elements(&file->model, plan));
    fr_json_put_u64(json, "stage3_max_reuse_distance",
                    plan->is_resharded ? 0 : all);
    if (!plan->is_resharded)
        fr_json_put_u64(json, "stage3_max_live_parameters", all);
    fr_json_put_bool(json, "stage3_gather_16bit_weights_on_model_save", true);
    if (plan->zero_group > 0)
        fr_json_put_i64(json, "mics_shard_size", plan->zero_group);
}

static void put_zero(const fr_plan_file *file, fr_json_writer *json)
{
    const fr_plan *plan = &file->plan;
    fr_json_open_object(json, "zero_optimization");
    fr_json_put_i64(json, "stage", plan->zero_stage);
    fr_json_put_bool(json, "overlap_comm", plan->is_overlap);
    fr_json_put_bool(json, "contiguous_gradients", true);
    fr_json_put_bool(json, "reduce_scatter", true);
    fr_json_put_u64(json, "reduce_bucket_size", bucket_elements(file));
    if (plan->zero_stage == 3)
        put_gathers(file, json);
    if (plan->is_optimizer_offloaded) {
        fr_json_open_object(json, "offload_optimizer");
        fr_json_put_string(json, "device", "cpu");
        fr_json_put_bool(json, "pin_memory", true);
        fr_json_end_object(json);
    }
    fr_json_end_object(json);
}

static void put_degrees(const fr_plan_file *file, fr_json_writer *json)
{
    const fr_plan *plan = &file->plan;
    if (plan->tp > 1) {
        fr_json_open_object(json, "tensor_parallel");
        fr_json_put_i64(json, "autotp_size", plan->tp);
        fr_json_put_bool(json, "tp_overlap_comm", plan->is_tp_overlap);
        fr_json_end_object(json);
    }
    if (plan->cp > 1)
        fr_json_put_i64(json, "sequence_parallel_size", plan->cp);
    if (file->model.n_experts > 0 && plan->ep > 1) {
        fr_json_open_object(json, "expert_parallel");
        fr_json_put_bool(json, "enabled", true);
        fr_json_put_i64(json, "autoep_size", plan->ep);
        fr_json_put_i64(json, "expert_tensor_parallel_size",
                        plan->etp > 0 ? plan->etp : plan->tp);
        fr_json_end_object(json);
    }
    if (plan->pp > 1) {
        fr_json_open_object(json, "pipeline");
        fr_json_put_i64(json, "stages", plan->pp);
        fr_json_put_string(json, "partition", "uniform");
        fr_json_put_i64(json, "activation_checkpoint_interval",
                        plan->recompute == FR_RECOMPUTE_FULL ? 1 : 0);
        fr_json_end_object(json);
    }
}

static void put_config(const fr_plan_file *file, fr_json_writer *json)
{
    const fr_plan *plan = &file->plan;
    const fr_job *job = &file->job;
    fr_json_begin_object(json);
    fr_json_put_i64(json, "train_batch_size", job->global_batch);
    fr_json_put_i64(json, "train_micro_batch_size_per_gpu", plan->micro_batch);
    fr_json_put_i64(json, "gradient_accumulation_steps",
                    fr_plan_micro_batches(plan, job));
    fr_json_put_double(json, "gradient_clipping", job->clip_norm);
    put_optimizer(file, json);
    put_scheduler(job, json);
    put_precision(plan, json);
    put_zero(file, json);
    put_degrees(file, json);
    if (plan->recompute == FR_RECOMPUTE_FULL) {
        fr_json_open_object(json, "activation_checkpointing");
        fr_json_put_bool(json, "cpu_checkpointing",
                         plan->activation_offload_frac > 0);
        fr_json_end_object(json);
    }
    fr_json_end_object(json);
}

/* ---- the script ---------------------------------------------------------- */

/* Lists the values of the plan that only the training script can apply. */
static void put_code(const fr_plan_file *file, fr_buffer *out)
{
    const fr_plan *plan = &file->plan;
    fr_buffer_puts(out, "# Only the training script can do:\n");
    if (plan->pp > 1)
        fr_buffer_printf(
            out,
            "#   deepspeed.pipe.PipelineModule(layers, topology=\n"
            "#     PipeModelDataParallelTopology(num_pp=%d, num_mp=%d, "
            "num_dp=%d),\n"
            "#     partition_method=\"uniform\", "
            "activation_checkpoint_interval=%d)\n",
            plan->pp, plan->tp, plan->dp,
            plan->recompute == FR_RECOMPUTE_FULL ? 1 : 0);
    else if (plan->recompute == FR_RECOMPUTE_FULL)
        fr_buffer_puts(out, "#   model.gradient_checkpointing_enable(), or "
                            "deepspeed.checkpointing.checkpoint(layer, ...)\n");
    if (plan->cp > 1)
        fr_buffer_printf(out,
                         "#   deepspeed.sequence.layer.DistributedAttention "
                         "around attention, groups of %d\n",
                         plan->cp);
    if (plan->zero_stage == 3 && plan->zero_group > 0)
        fr_buffer_puts(out, "#   with deepspeed.zero.MiCS_Init("
                            "config_dict_or_path=\"ds_config.json\"): "
                            "model = ...\n");
    else if (plan->zero_stage == 3)
        fr_buffer_puts(out, "#   with deepspeed.zero.Init("
                            "config_dict_or_path=\"ds_config.json\"): "
                            "model = ...\n");
    fr_buffer_puts(out, "#   engine, *_ = deepspeed.initialize(model=model, "
                        "config=\"ds_config.json\")\n");
}

/* Lists the values of the job that the file has no key for. */
static void put_job(const fr_job *job, fr_buffer *out)
{
    fr_buffer_printf(out,
                     "#   %lld steps of sequences of %lld tokens, seed %llu, "
                     "dropout %g, data %s\n",
                     (long long)job->n_steps, (long long)job->seq,
                     (unsigned long long)job->seed, job->dropout,
                     job->data[0] != '\0' ? job->data : "of your own");
    fr_buffer_puts(out, "#   weight decay of matrices only, not of norms and "
                        "biases\n");
    if (job->optimizer == FR_OPTIMIZER_LARS)
        fr_buffer_printf(out,
                         "#   the optimizer LARS (lr %g, momentum %g, weight "
                         "decay %g, trust %g): DeepSpeed has none\n",
                         fr_job_peak_lr(job), job->beta1, job->weight_decay,
                         job->trust_coefficient);
    if (job->lr_schedule == FR_LR_INVERSE_SQRT)
        fr_buffer_printf(out,
                         "#   the learning rate falls as 1/sqrt(step) after "
                         "%lld steps: DeepSpeed has no such scheduler\n",
                         (long long)job->warmup_steps);
    if (has_scheduler(job) && job->warmup_steps < 2)
        fr_buffer_printf(out,
                         "#   warm-up of %lld steps: DeepSpeed warms up over 2 "
                         "at least (runtime/lr_schedules.py:719)\n",
                         (long long)job->warmup_steps);
    if (job->lr_min_frac > 0 && job->lr_schedule != FR_LR_COSINE &&
        job->lr_schedule != FR_LR_CONSTANT)
        fr_buffer_printf(out,
                         "#   the learning rate ends at %g of its peak: "
                         "DeepSpeed's decays to 0\n",
                         job->lr_min_frac);
}

void fr_deepspeed_put_rounded(const fr_plan_file *file, fr_buffer *out)
{
    const fr_plan *plan = &file->plan;
    const uint64_t bytes = fr_dtype_bytes(plan->grad_dtype);
    if (plan->bucket_bytes > 0 && plan->bucket_bytes % bytes != 0)
        fr_buffer_printf(out,
                         "# bucket_bytes: %llu is no whole number of "
                         "elements; %llu are written\n",
                         (unsigned long long)plan->bucket_bytes,
                         (unsigned long long)bucket_elements(file));
    if (plan->zero_stage == 0)
        fr_buffer_puts(out, "# bucket_bytes: without ZeRO DeepSpeed reduces "
                            "5e8 elements at a time (runtime/engine.py:160)\n");
}

/* Both kinds of script can read the file: it has no value "auto", which the
 * Trainer alone fills in (transformers, integrations/deepspeed.py). */
static void put_kind(fr_buffer *out)
{
    fr_buffer_puts(
        out, "config=$folder/ds_config.json\n"
             "case $SCRIPT_KIND in\n"
             "trainer) options=(--deepspeed \"$config\") ;;\n"
             "deepspeed) options=(--deepspeed --deepspeed_config \"$config\") "
             ";;\n"
             "*)\n"
             "    echo \"run_deepspeed.sh: SCRIPT_KIND=$SCRIPT_KIND is neither "
             "trainer nor deepspeed\" >&2\n"
             "    exit 2\n"
             "    ;;\n"
             "esac\n");
}

static void put_start(const fr_export_request *request, fr_buffer *out)
{
    fr_buffer_puts(out, "# Under torchrun, each process has its rank in the "
                        "environment.\n"
                        "if [ -n \"${LOCAL_RANK:-}\" ]; then\n"
                        "    exec python3 \"$TRAIN\" \"${options[@]}\" "
                        "\"$@\"\n"
                        "fi\n");
    if (request->n_nodes > 1)
        fr_buffer_puts(out, "hostfile=${HOSTFILE:-$folder/hostfile}\n"
                            "if [ ! -e \"$hostfile\" ]; then\n"
                            "    echo \"run_deepspeed.sh: '$hostfile' does not "
                            "exist; HOSTFILE=FILE names it\" >&2\n"
                            "    exit 2\n"
                            "fi\n");
    fr_buffer_puts(out, "exec deepspeed ");
    if (request->n_nodes > 1)
        fr_buffer_printf(out, "--hostfile \"$hostfile\" --num_nodes %lld ",
                         (long long)request->n_nodes);
    /* If they differ, the slots of the hostfile give them. */
    if (request->n_ranks_per_node > 0)
        fr_buffer_printf(out, "--num_gpus %lld ",
                         (long long)request->n_ranks_per_node);
    fr_buffer_puts(out, "\\\n    \"$TRAIN\" \"${options[@]}\" \"$@\"\n");
}

static void put_script(const fr_export_request *request, fr_buffer *out)
{
    const fr_plan_file *file = request->file;
    fr_buffer_puts(out, "#!/bin/bash\n");
    fr_export_put_header(request, &fr_target_deepspeed, "# ", out);
    fr_deepspeed_put_rounded(file, out);
    put_code(file, out);
    put_job(&file->job, out);
    fr_buffer_puts(out, "set -euo pipefail\n");
    fr_export_put_settings(&fr_exporter_deepspeed, out);
    if (request->n_nodes > 1)
        fr_export_put_callers_path("HOSTFILE", out);
    fr_export_put_folder(out);
    fr_export_put_defaults(&fr_exporter_deepspeed, out);
    fr_export_put_own_script_check("run_deepspeed.sh", out);
    put_kind(out);
    fr_export_put_exports(request, out);
    put_start(request, out);
}

fr_status fr_deepspeed_add_config(const fr_plan_file *plan,
                                  fr_export_files *out, fr_err *err)
{
    fr_json_writer json;
    fr_export_file *file = fr_export_add(out, "ds_config.json", false);
    if (file == NULL)
        return fr_fail_no_memory(err);
    fr_json_writer_init(&json, &file->text);
    put_config(plan, &json);
    return fr_buffer_check(&file->text, err);
}

static fr_status write_config(const fr_export_request *request,
                              fr_export_files *out, fr_err *err)
{
    FR_TRY(fr_deepspeed_add_config(request->file, out, err));
    fr_export_file *file = fr_export_add(out, "run_deepspeed.sh", true);
    if (file == NULL)
        return fr_fail_no_memory(err);
    put_script(request, &file->text);
    return fr_buffer_check(&file->text, err);
}

static fr_status put_command(const fr_export_request *request, fr_buffer *out,
                             fr_err *err)
{
    (void)request;
    (void)err;
    fr_buffer_puts(out, "--no-python \"$folder/run_deepspeed.sh\"");
    return FR_OK;
}

const fr_exporter fr_exporter_deepspeed = {
    .target = &fr_target_deepspeed,
    .summary = "ds_config.json of DeepSpeed",
    .write = write_config,
    .start = FR_START_TORCHRUN,
    .settings = {FR_EXPORT_SETTING_TRAIN,
                 {.name = "SCRIPT_KIND",
                  /* training_args.py of transformers has the first,
                   * deepspeed.add_config_arguments() the other. */
                  .meaning = "trainer (Hugging Face's Trainer: --deepspeed "
                             "FILE) or deepspeed (--deepspeed_config FILE)",
                  .value = "deepspeed"}},
    .put_command = put_command,
    .may_save = true,
    .left = {[FR_EXPORT_CHECKPOINTS] =
                 "ds_config.json has no key for it; the training script calls "
                 "engine.save_checkpoint() and engine.load_checkpoint()"},
};
