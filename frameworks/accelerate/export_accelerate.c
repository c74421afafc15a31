/*
 * export_accelerate.c: the YAML of `accelerate config` (Accelerate's
 * commands/config/config_args.py; keys of its parts are arguments of
 * commands/launch.py), a ds_config.json where DeepSpeed runs the plan, and a
 * script with `accelerate launch` and what the training script is told.
 */
#include "frameworks/accelerate/target_accelerate.h"
#include "frameworks/deepspeed/export_deepspeed.h"
#include "frameworks/framework_list.h"
#include "frameworks/write/export_job.h"

enum { PORT = 29500 };

typedef struct layout {
    const fr_export_request *request;
    const fr_plan_file *file;
    const fr_plan *plan;
    const fr_target *backend;
    int64_t n_micro; /* micro-batches of a step */
    fr_buffer *out;
} layout;

static layout layout_of(const fr_export_request *request, fr_buffer *out)
{
    const fr_plan_file *file = request->file;
    return (layout){.request = request,
                    .file = file,
                    .plan = &file->plan,
                    .backend = fr_accelerate_backend(&file->plan),
                    .n_micro = fr_plan_micro_batches(&file->plan, &file->job),
                    .out = out};
}

/* ---- accelerate.yaml ----------------------------------------------------- */

static void put(const layout *it, const char *key, const char *value)
{
    fr_buffer_printf(it->out, "%s: %s\n", key, value);
}

static void open_part(const layout *it, const char *key)
{
    fr_buffer_printf(it->out, "%s:\n", key);
}

static void put_number(const layout *it, const char *key, int64_t value)
{
    fr_buffer_printf(it->out, "%s: %lld\n", key, (long long)value);
}

static void put_bool(const layout *it, const char *key, bool is_on)
{
    put(it, key, is_on ? "true" : "false");
}

static bool has_kernels_of_dynamo(const layout *it)
{
    return it->backend != &fr_accelerate_megatron &&
           it->plan->execution.kernels == FR_KERNELS_COMPILED;
}

static void put_deepspeed(const layout *it)
{
    open_part(it, "deepspeed_config");
    put(it, "  deepspeed_config_file", "ds_config.json");
    put(it, "  deepspeed_multinode_launcher", "standard");
    put_bool(it, "  zero3_init_flag", it->plan->zero_stage == 3);
}

static void put_fsdp(const layout *it)
{
    const fr_plan *plan = it->plan;
    const bool is_first = it->request->version < FR_ACCELERATE_1_6;
    open_part(it, "fsdp_config");
    if (plan->recompute == FR_RECOMPUTE_FULL && !is_first)
        fr_buffer_puts(it->out, "  # Each part of a layer keeps its input "
                                "(utils/fsdp_utils.py, fsdp2_apply_ac).\n");
    put_bool(it, "  fsdp_activation_checkpointing",
             plan->recompute == FR_RECOMPUTE_FULL);
    put(it, "  fsdp_auto_wrap_policy", "TRANSFORMER_BASED_WRAP");
    if (is_first)
        put(it, "  fsdp_backward_prefetch", "BACKWARD_PRE");
    put_bool(it, "  fsdp_cpu_ram_efficient_loading", true);
    put_bool(it, "  fsdp_offload_params", plan->is_optimizer_offloaded);
    if (!is_first)
        put_bool(it, "  fsdp_reshard_after_forward", plan->is_resharded);
    else
        put(it, "  fsdp_sharding_strategy",
            plan->is_resharded ? "FULL_SHARD" : "SHARD_GRAD_OP");
    put(it, "  fsdp_state_dict_type", "SHARDED_STATE_DICT");
    if (is_first) {
        put_bool(it, "  fsdp_sync_module_states", true);
        put_bool(it, "  fsdp_use_orig_params", true);
    } else {
        put_number(it, "  fsdp_version", 2);
    }
}

/* Before 1.13 these are all the keys there are.  What the plugin takes where
 * nothing is said is said: two context-parallel ranks, rotary positions. */
static void put_megatron(const layout *it)
{
    const fr_plan *plan = it->plan;
    const fr_job *job = &it->file->job;
    const bool is_later = it->request->version >= FR_ACCELERATE_1_13;
    open_part(it, "megatron_lm_config");
    if (is_later) {
        fr_buffer_printf(it->out,
                         "  megatron_lm_attention_dropout: %.12g\n"
                         "  megatron_lm_context_parallel_size: 1\n"
                         "  megatron_lm_hidden_dropout: %.12g\n",
                         job->dropout, job->dropout);
    }
    fr_buffer_printf(it->out, "  megatron_lm_gradient_clipping: %.12g\n",
                     job->clip_norm);
    put_number(it, "  megatron_lm_num_micro_batches", it->n_micro);
    if (is_later)
        put_bool(it, "  megatron_lm_optimizer_cpu_offload",
                 plan->is_optimizer_offloaded);
    put_number(it, "  megatron_lm_pp_degree", plan->pp);
    if (is_later) {
        put(it, "  megatron_lm_recompute_granularity", "full");
        put(it, "  megatron_lm_recompute_method", "uniform");
        put_number(it, "  megatron_lm_recompute_num_layers", 1);
    } else {
        put_bool(it, "  megatron_lm_recompute_activations",
                 plan->recompute == FR_RECOMPUTE_SELECTIVE);
    }
    put_bool(it, "  megatron_lm_sequence_parallelism",
             plan->tp > 1 && plan->is_sequence_parallel);
    put_number(it, "  megatron_lm_tp_degree", plan->tp);
    put_bool(it, "  megatron_lm_use_distributed_optimizer",
             plan->zero_stage == 1);
    if (is_later) {
        put_bool(it, "  megatron_lm_use_precision_aware_optimizer",
                 plan->is_optimizer_offloaded);
        put_bool(it, "  megatron_lm_use_rotary_position_embeddings",
                 it->file->model.is_rope);
    }
}

static void put_mesh(const layout *it)
{
    const fr_plan *plan = it->plan;
    const int64_t n_copies = fr_accelerate_copies(plan);
    if (plan->tp == 1 && plan->cp == 1 && n_copies == 1)
        return;
    open_part(it, "parallelism_config");
    if (plan->cp > 1)
        put(it, "  parallelism_config_cp_comm_strategy",
            plan->cp_kind == FR_CP_RING ? "alltoall" : "allgather");
    put_number(it, "  parallelism_config_cp_size", plan->cp);
    put_number(it, "  parallelism_config_dp_replicate_size", n_copies);
    put_number(it, "  parallelism_config_dp_shard_size", plan->dp / n_copies);
    put_number(it, "  parallelism_config_tp_size", plan->tp);
}

/* Ulysses; tensor parallelism and copies are DeepSpeed's own affair. */
static void put_ulysses(const layout *it)
{
    const fr_plan *plan = it->plan;
    if (plan->cp == 1)
        return;
    open_part(it, "parallelism_config");
    put_number(it, "  parallelism_config_dp_shard_size", plan->dp);
    put(it, "  parallelism_config_sp_attn_implementation",
        plan->is_flash ? "flash_attention_2" : "sdpa");
    put(it, "  parallelism_config_sp_backend", "deepspeed");
    put_number(it, "  parallelism_config_sp_seq_length", it->file->job.seq);
    put_bool(it, "  parallelism_config_sp_seq_length_is_variable", false);
    put_number(it, "  parallelism_config_sp_size", plan->cp);
}

static const char *distributed_type(const layout *it)
{
    if (it->backend == &fr_accelerate_fsdp)
        return "FSDP";
    if (it->backend == &fr_accelerate_deepspeed)
        return "DEEPSPEED";
    if (it->backend == &fr_accelerate_megatron)
        return "MEGATRON_LM";
    if (fr_plan_world(it->plan) == 1)
        return "'NO'";
    return it->request->has_gpus ? "MULTI_GPU" : "MULTI_CPU";
}

static const char *mixed_precision(const fr_plan *plan)
{
    return plan->precision == FR_DTYPE_BF16  ? "bf16"
           : plan->precision == FR_DTYPE_F16 ? "fp16"
                                             : "'no'";
}

/* The keys in the order that `accelerate config` writes them in. */
static void put_keys(const layout *it)
{
    const fr_export_request *request = it->request;
    put(it, "compute_environment", "LOCAL_MACHINE");
    put_bool(it, "debug", false);
    if (it->backend == &fr_accelerate_deepspeed)
        put_deepspeed(it);
    put(it, "distributed_type", distributed_type(it));
    put(it, "downcast_bf16", "'no'");
    if (has_kernels_of_dynamo(it)) {
        open_part(it, "dynamo_config");
        put(it, "  dynamo_backend", "INDUCTOR");
    }
    put_bool(it, "enable_cpu_affinity", false);
    if (it->backend == &fr_accelerate_fsdp)
        put_fsdp(it);
    put_number(it, "machine_rank", 0);
    if (request->n_nodes > 1)
        put_number(it, "main_process_port", PORT);
    put(it, "main_training_function", "main");
    if (it->backend == &fr_accelerate_megatron)
        put_megatron(it);
    /* ds_config.json says it, and launch refuses both. */
    if (it->backend != &fr_accelerate_deepspeed)
        put(it, "mixed_precision", mixed_precision(it->plan));
    if (!request->has_gpus && fr_plan_world(it->plan) > 1) {
        open_part(it, "mpirun_config");
        put(it, "  mpirun_hostfile", "hostfile");
    }
    put_number(it, "num_machines", request->n_nodes);
    put_number(it, "num_processes", fr_plan_world(it->plan));
    if (it->backend == &fr_accelerate_fsdp)
        put_mesh(it);
    if (it->backend == &fr_accelerate_deepspeed)
        put_ulysses(it);
    put(it, "rdzv_backend", "static");
    put_bool(it, "same_network", true);
    put_bool(it, "use_cpu", !request->has_gpus);
}

static void put_yaml(const layout *it)
{
    fr_export_put_header(it->request, &fr_target_accelerate, "# ", it->out);
    fr_buffer_printf(it->out,
                     "# Run by %s.  In run_accelerate.sh: micro-batch %lld, "
                     "global batch %lld, the optimizer, seed, steps%s.\n",
                     it->backend->name, (long long)it->plan->micro_batch,
                     (long long)it->file->job.global_batch,
                     it->backend == &fr_accelerate_ddp ? "; recompute, buckets"
                                                       : "");
    put_keys(it);
}

/* ---- what the training script is told ------------------------------------ */

static void put_schedule(const layout *it)
{
    const fr_job *job = &it->file->job;
    const char *name =
        job->lr_schedule == FR_LR_LINEAR         ? "linear"
        : job->lr_schedule == FR_LR_INVERSE_SQRT ? "inverse_sqrt"
        : job->lr_schedule == FR_LR_CONSTANT
            ? job->warmup_steps > 0 ? "constant_with_warmup" : "constant"
        : job->lr_min_frac > 0 ? "cosine_with_min_lr"
                               : "cosine";
    fr_buffer_printf(it->out,
                     "    --learning_rate %.12g --lr_scheduler_type %s "
                     "--warmup_steps %lld\n",
                     fr_job_peak_lr(job), name, (long long)job->warmup_steps);
    if (job->lr_schedule == FR_LR_COSINE && job->lr_min_frac > 0)
        fr_buffer_printf(it->out,
                         "    --lr_scheduler_kwargs '{\"min_lr_rate\": "
                         "%.12g}'\n",
                         job->lr_min_frac);
}

static void put_optimizer(const layout *it)
{
    const fr_job *job = &it->file->job;
    if (job->optimizer == FR_OPTIMIZER_ADAMW)
        fr_buffer_printf(it->out,
                         "    --optim adamw_torch --adam_beta1 %.12g "
                         "--adam_beta2 %.12g --adam_epsilon %.12g\n",
                         job->beta1, job->beta2, job->optimizer_eps);
    if (job->optimizer == FR_OPTIMIZER_SGD)
        fr_buffer_printf(it->out,
                         "    --optim sgd --optim_args momentum=%.12g\n",
                         job->beta1);
    fr_buffer_printf(it->out,
                     "    --weight_decay %.12g --max_grad_norm %.12g\n",
                     job->weight_decay, job->clip_norm);
}

/* Returns the size of a bucket in whole MiB, as DDP counts; 0: one bucket of
 * all gradients. */
static int64_t bucket_mib(const layout *it)
{
    const uint64_t mib = UINT64_C(1) << 20;
    uint64_t bytes = it->plan->bucket_bytes;
    if (bytes == 0)
        bytes = fr_model_parameters(&it->file->model) *
                fr_dtype_bytes(it->plan->grad_dtype);
    return (int64_t)(bytes / mib + (bytes % mib >= mib / 2 || bytes < mib));
}

/* DDP and Megatron-LM reduce once a step, DeepSpeed as its configuration has
 * it; FSDP only where it is told to after every micro-batch. */
static void put_accumulation(const layout *it)
{
    if (it->backend == &fr_accelerate_megatron)
        return; /* megatron_lm_num_micro_batches */
    fr_buffer_printf(it->out, "    --gradient_accumulation_steps %lld\n",
                     (long long)it->n_micro);
    if (it->backend == &fr_accelerate_fsdp && it->n_micro > 1)
        fr_buffer_puts(it->out, "    --accelerator_config "
                                "'{\"gradient_accumulation_kwargs\": "
                                "{\"sync_each_batch\": true}}'\n");
}

enum { N_KEPT = 2 };

/* The option that is written: the newest whole checkpoint, where there is one.
 * A script continues from it alone (transformers 4.57,
 * examples/pytorch/language-modeling/run_clm.py, and training_args.py,
 * resume_from_checkpoint); earlier examples found it by themselves.  A Trainer
 * writes trainer_state.json last (trainer.py, _save_checkpoint). */
static void put_resume(const layout *it)
{
    if (it->request->checkpoint_dir == NULL)
        return;
    fr_buffer_puts(it->out, "newest=$(ls -d ");
    fr_export_put_word(it->request->checkpoint_dir, it->out);
    fr_buffer_puts(it->out, "/checkpoint-*/trainer_state.json 2>/dev/null |\n"
                            "    sort -V | tail -n 1) || newest=\"\"\n"
                            "if [ -n \"$newest\" ]; then\n"
                            "    arguments+=(--resume_from_checkpoint "
                            "\"${newest%/*}\")\n"
                            "fi\n");
}

static void put_checkpoints(const layout *it)
{
    const fr_export_request *request = it->request;
    if (request->checkpoint_dir == NULL) {
        fr_buffer_puts(it->out, "    --save_strategy no\n");
        return;
    }
    fr_buffer_puts(it->out, "    --output_dir ");
    fr_export_put_word(request->checkpoint_dir, it->out);
    fr_buffer_printf(it->out,
                     " --save_strategy steps --save_steps %lld "
                     "--save_total_limit %d\n",
                     (long long)request->checkpoint_every, N_KEPT);
}

static void put_arguments(const layout *it)
{
    const fr_plan *plan = it->plan;
    const fr_job *job = &it->file->job;
    fr_buffer_printf(it->out,
                     "arguments=(\n    --per_device_train_batch_size %lld\n",
                     (long long)plan->micro_batch);
    put_accumulation(it);
    if (plan->precision == FR_DTYPE_BF16 || plan->precision == FR_DTYPE_F16)
        fr_buffer_printf(it->out, "    --%s true\n", mixed_precision(plan));
    fr_buffer_printf(it->out, "    --max_steps %lld --seed %llu\n",
                     (long long)job->n_steps, (unsigned long long)job->seed);
    put_checkpoints(it);
    put_schedule(it);
    put_optimizer(it);
    if (plan->recompute == FR_RECOMPUTE_FULL &&
        (it->backend == &fr_accelerate_ddp ||
         it->backend == &fr_accelerate_deepspeed))
        fr_buffer_puts(it->out, "    --gradient_checkpointing true\n");
    if (it->backend == &fr_accelerate_ddp)
        fr_buffer_printf(it->out, "    --ddp_bucket_cap_mb %lld\n",
                         (long long)bucket_mib(it));
    if (has_kernels_of_dynamo(it))
        fr_buffer_puts(it->out, "    --torch_compile true\n");
    fr_buffer_puts(it->out, ")\n");
}

/* Lists the values that no argument has. */
static void put_left(const layout *it)
{
    const fr_plan *plan = it->plan;
    const fr_job *job = &it->file->job;
    fr_buffer_printf(it->out,
                     "# Only the training script can have: sequences of %lld "
                     "tokens, dropout %g, data %s\n",
                     (long long)job->seq, job->dropout,
                     job->data[0] != '\0' ? job->data : "of its own");
    fr_buffer_puts(it->out, "#   weight decay of matrices only, not of norms "
                            "and biases\n");
    if (job->optimizer == FR_OPTIMIZER_LARS ||
        job->optimizer == FR_OPTIMIZER_LAMB)
        fr_buffer_printf(it->out,
                         "#   the optimizer %s (betas %g, %g, eps %g, trust "
                         "%g)\n",
                         job->optimizer == FR_OPTIMIZER_LARS ? "LARS" : "LAMB",
                         job->beta1, job->beta2, job->optimizer_eps,
                         job->trust_coefficient);
    if (job->lr_min_frac > 0 && job->lr_schedule != FR_LR_COSINE &&
        job->lr_schedule != FR_LR_CONSTANT)
        fr_buffer_printf(it->out,
                         "#   a learning rate that ends at %g of its peak\n",
                         job->lr_min_frac);
    if (it->backend == &fr_accelerate_fsdp && plan->tp > 1)
        fr_buffer_printf(it->out,
                         "#   from_pretrained(..., tp_plan=\"auto\", "
                         "tp_size=%d, device_mesh=accelerator.torch_device_"
                         "mesh)\n",
                         plan->tp);
    if (it->backend == &fr_accelerate_fsdp && plan->cp > 1)
        fr_buffer_puts(it->out, "#   with accelerator.maybe_context_parallel("
                                "buffers=..., buffer_seq_dims=...): a step\n");
    if (it->backend == &fr_accelerate_deepspeed)
        fr_buffer_puts(it->out, "#   accelerate.utils.DummyOptim, and "
                                "DummyScheduler: ds_config.json has them "
                                "(a Trainer does so)\n");
    if (it->backend == &fr_accelerate_deepspeed && plan->zero_group > 0)
        fr_buffer_puts(it->out, "#   with deepspeed.zero.MiCS_Init("
                                "config_dict_or_path=\"ds_config.json\"): "
                                "model = ...\n");
    if (it->backend == &fr_accelerate_megatron)
        fr_buffer_puts(it->out, "#   accelerate.utils."
                                "MegatronLMDummyScheduler, and a GPT-2 or "
                                "Llama of transformers\n");
    if (it->backend == &fr_accelerate_ddp &&
        plan->bucket_bytes % (UINT64_C(1) << 20) != 0)
        fr_buffer_printf(it->out,
                         "# bucket_bytes: %llu is no whole number of MiB; "
                         "%lld are written\n",
                         (unsigned long long)plan->bucket_bytes,
                         (long long)bucket_mib(it));
}

/* ---- run_accelerate.sh --------------------------------------------------- */

/* Puts the number of this node, as the launchers of forerun give it: mpirun
 * starts one process on each. */
static void put_node(const layout *it)
{
    if (it->request->n_nodes == 1 || !it->request->has_gpus)
        return;
    fr_buffer_puts(
        it->out,
        "node=${NODE_RANK:-${SLURM_NODEID:-${SKYPILOT_NODE_RANK:-"
        "${JOB_COMPLETION_INDEX:-\\\n"
        "${OMPI_COMM_WORLD_RANK:?NODE_RANK is the number of this node, from 0}"
        "}}}}\n"
        "first_host=${MASTER_ADDR:?name of the first host}\n");
}

static void put_script(const layout *it)
{
    const fr_export_request *request = it->request;
    const bool is_on_cpus = !request->has_gpus && fr_plan_world(it->plan) > 1;
    fr_buffer_puts(it->out, "#!/bin/bash\n");
    fr_export_put_header(request, &fr_target_accelerate, "# ", it->out);
    if (it->backend == &fr_accelerate_deepspeed)
        fr_deepspeed_put_rounded(it->file, it->out);
    put_left(it);
    if (request->n_nodes > 1 && request->has_gpus)
        fr_buffer_printf(it->out,
                         "# Run it on each of %lld nodes, with NODE_RANK and "
                         "MASTER_ADDR in the environment.\n",
                         (long long)request->n_nodes);
    if (is_on_cpus)
        fr_buffer_puts(it->out, "# Run it on the first node: Accelerate starts "
                                "all ranks with mpirun, by hostfile.\n");
    fr_buffer_puts(it->out, "set -euo pipefail\n");
    fr_export_put_settings(&fr_exporter_accelerate, it->out);
    fr_export_put_folder(it->out);
    fr_export_put_defaults(&fr_exporter_accelerate, it->out);
    fr_export_put_own_script_check("run_accelerate.sh", it->out);
    fr_export_put_exports(request, it->out);
    put_node(it);
    if (is_on_cpus && request->n_nodes == 1)
        fr_buffer_printf(it->out,
                         "[ -e hostfile ] || echo \"localhost slots=%lld\" "
                         ">hostfile\n",
                         (long long)request->n_ranks_per_node);
    fr_buffer_puts(it->out, "# As Hugging Face's Trainer has them; a script of "
                            "another kind reads what it wants of them.\n");
    put_arguments(it);
    put_resume(it);
    fr_buffer_puts(it->out,
                   "exec accelerate launch --config_file accelerate.yaml \\\n");
    if (request->n_nodes > 1 && request->has_gpus)
        fr_buffer_puts(it->out, "    --machine_rank \"$node\" "
                                "--main_process_ip \"$first_host\" \\\n");
    fr_buffer_puts(it->out, "    \"$TRAIN\" \"${arguments[@]}\" \"$@\"\n");
}

static fr_status write_files(const fr_export_request *request,
                             fr_export_files *out, fr_err *err)
{
    layout it = layout_of(request, NULL);
    FR_TRY(fr_export_check_even(request, "accelerate launch", err));
    if (!request->has_gpus && it.backend != &fr_accelerate_ddp)
        return fr_fail(err, FR_INFEASIBLE,
                       "%s wants GPUs; on CPUs it has DDP alone: zero 0, tp 1, "
                       "pp 1, cp 1",
                       it.backend->name);
    fr_export_file *file = fr_export_add(out, "accelerate.yaml", false);
    if (file == NULL)
        return fr_fail_no_memory(err);
    it.out = &file->text;
    put_yaml(&it);
    FR_TRY(fr_buffer_check(&file->text, err));
    file = fr_export_add(out, "run_accelerate.sh", true);
    if (file == NULL)
        return fr_fail_no_memory(err);
    it.out = &file->text;
    put_script(&it);
    FR_TRY(fr_buffer_check(&file->text, err));
    return it.backend == &fr_accelerate_deepspeed
               ? fr_deepspeed_add_config(request->file, out, err)
               : FR_OK;
}

static fr_status put_command(const fr_export_request *request, fr_buffer *out,
                             fr_err *err)
{
    if (!request->has_gpus && request->n_nodes > 1)
        return fr_fail(err, FR_INFEASIBLE,
                       "on CPUs accelerate starts the ranks of all nodes by "
                       "itself, with mpirun; export --to accelerate, and run "
                       "run_accelerate.sh on the first node");
    fr_buffer_puts(out, "bash \"$folder/run_accelerate.sh\"");
    return FR_OK;
}

const fr_exporter fr_exporter_accelerate = {
    .target = &fr_target_accelerate,
    .summary = "the YAML of Hugging Face's Accelerate, and its launch",
    .write = write_files,
    .start = FR_START_NODE,
    .settings = {FR_EXPORT_SETTING_TRAIN},
    .put_command = put_command,
    .n_kept = N_KEPT,
};
