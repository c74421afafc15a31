/* torchtitan_keys.c: see torchtitan_keys.h. */
#include "frameworks/torchtitan/torchtitan_keys.h"

#include "frameworks/target.h"

/* ---- what several keys are made of --------------------------------------- */

fr_torchtitan_layout fr_torchtitan_layout_of(const fr_plan_file *file)
{
    const fr_plan *plan = &file->plan;
    fr_torchtitan_layout it = {.n_replicas = plan->dp, .n_shards = 1};
    if (plan->zero_stage == 3) {
        it.n_shards = plan->zero_group == 0 ? plan->dp
                      : plan->zero_group > plan->cp
                          ? plan->zero_group / plan->cp
                          : 1;
        it.n_replicas = plan->dp / it.n_shards;
    }
    it.n_micro = fr_plan_micro_batches(plan, &file->job);
    it.local_batch =
        plan->pp > 1 ? plan->micro_batch * it.n_micro : plan->micro_batch;
    it.is_compiled = plan->execution.kernels == FR_KERNELS_COMPILED;
    it.is_mx = plan->precision == FR_DTYPE_FP8 &&
               plan->execution.scaling == FR_SCALING_BLOCK;
    it.is_fp8 = plan->precision == FR_DTYPE_FP8 && !it.is_mx;
    return it;
}

bool fr_torchtitan_has_schedule_file(const fr_plan_file *file)
{
    return file->plan.pp > 1 && file->plan.schedule == FR_SCHEDULE_ZB_H1;
}

static const fr_key_word backends[] = {
    {FR_DISPATCH_ALL_TO_ALL, "standard"}, {FR_DISPATCH_BY_NODE, "deepep"}, {0}};

const char *fr_torchtitan_expert_backend(const fr_plan *plan)
{
    return backends[plan->ep > 1 &&
                    plan->expert_dispatch == FR_DISPATCH_BY_NODE]
        .word;
}

static bool is_staged(const fr_plan_file *file)
{
    return file->plan.pp > 1;
}

static bool is_split(const fr_plan_file *file)
{
    return file->plan.pp > 1 && file->plan.n_split > 0;
}

static bool is_even(const fr_plan_file *file)
{
    return file->plan.pp > 1 && file->plan.n_split == 0;
}

static bool has_experts(const fr_plan_file *file)
{
    return file->model.n_experts > 0;
}

static bool is_selective(const fr_plan_file *file)
{
    return file->plan.recompute == FR_RECOMPUTE_SELECTIVE;
}

static bool is_constant(const fr_plan_file *file)
{
    return file->job.lr_schedule == FR_LR_CONSTANT;
}

static bool is_decayed(const fr_plan_file *file)
{
    return !is_constant(file);
}

static bool has_data(const fr_plan_file *file)
{
    return file->job.data[0] != '\0';
}

/* ---- values that are no member ------------------------------------------- */

#define PUT_COUNT(name, value)                                                 \
    static void name(const fr_plan_file *file, fr_buffer *out)                 \
    {                                                                          \
        fr_buffer_printf(out, "%lld", (long long)(value));                     \
    }
PUT_COUNT(put_replicas, fr_torchtitan_layout_of(file).n_replicas)
PUT_COUNT(put_shards, fr_torchtitan_layout_of(file).n_shards)
PUT_COUNT(put_local_batch, fr_torchtitan_layout_of(file).local_batch)
PUT_COUNT(put_micro_batches, fr_torchtitan_layout_of(file).n_micro)
PUT_COUNT(put_etp, file->plan.etp > 0 ? file->plan.etp : file->plan.tp)
PUT_COUNT(put_micro_tokens, file->plan.micro_batch * file->job.seq)
PUT_COUNT(put_step_tokens, file->job.global_batch * file->job.seq)
PUT_COUNT(put_stage_layers,
          file->model.n_layers / (file->plan.pp * file->plan.vpp))

static void put_peak_lr(const fr_plan_file *file, fr_buffer *out)
{
    fr_buffer_printf(out, "%.12g", fr_job_peak_lr(&file->job));
}

static void put_betas(const fr_plan_file *file, fr_buffer *out)
{
    fr_buffer_printf(out, "(%.12g, %.12g)", file->job.beta1, file->job.beta2);
}

static void put_backend(const fr_plan_file *file, fr_buffer *out)
{
    fr_framework_put_string(fr_torchtitan_expert_backend(&file->plan), out);
}

static void put_compiled(const fr_plan_file *file, fr_buffer *out)
{
    fr_buffer_puts(out, fr_torchtitan_layout_of(file).is_compiled ? "true"
                                                                  : "false");
}

static void put_compiled_python(const fr_plan_file *file, fr_buffer *out)
{
    fr_buffer_puts(out, fr_torchtitan_layout_of(file).is_compiled ? "True"
                                                                  : "False");
}

static void put_async_tp(const fr_plan_file *file, fr_buffer *out)
{
    fr_buffer_puts(
        out, file->plan.tp > 1 && file->plan.is_tp_overlap ? "True" : "False");
}

static void put_no_graphs(const fr_plan_file *file, fr_buffer *out)
{
    fr_buffer_puts(out, file->plan.execution.cuda_graphs == FR_CUDA_GRAPHS_NONE
                            ? "True"
                            : "False");
}

/* The modules of each stage, where the plan splits layers by itself. */
static void put_split(const fr_plan *plan, const char *head, fr_buffer *out)
{
    int32_t i_layer = 0;
    fr_buffer_putc(out, '[');
    for (int32_t i = 0; i < plan->n_split; i++) {
        const char *comma = "";
        fr_buffer_puts(out, i > 0 ? ",\n    [" : "\n    [");
        if (i == 0) {
            fr_buffer_puts(out, "\"tok_embeddings\"");
            comma = ", ";
        }
        for (int32_t k = 0; k < plan->layer_split[i]; k++) {
            fr_buffer_printf(out, "%s\"layers.%d\"", comma, i_layer++);
            comma = ", ";
        }
        if (i + 1 == plan->n_split)
            fr_buffer_printf(out, "%s\"norm\", \"%s\"", comma, head);
        fr_buffer_putc(out, ']');
    }
    fr_buffer_puts(out, "]");
}

static void put_split_toml(const fr_plan_file *file, fr_buffer *out)
{
    put_split(&file->plan, "output", out);
}

static void put_split_python(const fr_plan_file *file, fr_buffer *out)
{
    put_split(&file->plan, "lm_head", out);
}

/* ---- words --------------------------------------------------------------- */

/* "default" is decided by pp, by the reader. */
static const fr_key_word policies[] = {
    {true, "always"}, {false, "never"}, {true, "default"}, {0}};
static const fr_key_word rotations[] = {
    {FR_CP_ALL_GATHER, "allgather"}, {FR_CP_RING, "alltoall"}, {0}};
static const fr_key_word schedules[] = {
    {FR_SCHEDULE_1F1B, "1F1B"},
    {FR_SCHEDULE_GPIPE, "GPipe"},
    {FR_SCHEDULE_INTERLEAVED, "Interleaved1F1B"},
    {FR_SCHEDULE_ZB_H1, "PipelineScheduleSingle"},
    {FR_SCHEDULE_ZB_V, "ZBVZeroBubble"},
    {0}};
static const fr_key_word optimizers[] = {
    {FR_OPTIMIZER_ADAMW, "AdamW"}, {FR_OPTIMIZER_ADAMW, "Adam"}, {0}};
static const fr_key_word curves[] = {{FR_LR_LINEAR, "linear"},
                                     {FR_LR_COSINE, "cosine"},
                                     {FR_LR_LINEAR, "sqrt"},
                                     {0}};
static const fr_key_word dtypes[] = {
    {FR_DTYPE_BF16, "bfloat16"}, {FR_DTYPE_F32, "float32"}, {0}};
static const fr_key_word sums[] = {
    {FR_DTYPE_F32, "float32"}, {FR_DTYPE_BF16, "bfloat16"}, {0}};
static const fr_key_word modes[] = {{FR_RECOMPUTE_NONE, "none"},
                                    {FR_RECOMPUTE_SELECTIVE, "selective"},
                                    {FR_RECOMPUTE_FULL, "full"},
                                    {0}};

/* ---- the keys, in the order in which they are written -------------------- */

#define NO_PLACE "the plan has no place for it"
#define NOT_TIMED "no prediction depends on it"
#define IT_PRINTS "it only prints and measures"

/* Keys of 0.2 and before are read; so are those without a writer. */
#define TOML .until = FR_TORCHTITAN_0_2
#define MAIN .since = FR_TORCHTITAN_MAIN
#define KEY(in, called) .table = (in), .name = (called)
#define UNREAD(in, called, reason)                                             \
    {                                                                          \
        KEY(in, called), .why = (reason)                                       \
    }
#define DEGREE(called, member)                                                 \
    {                                                                          \
        KEY("parallelism", called), FR_KEY_MEMBER(member), .least = 1          \
    }
#define REAL(in, called, member)                                               \
    {                                                                          \
        KEY(in, called), FR_KEY_MEMBER(member)                                 \
    }

static const fr_framework_key rows[] = {
    {KEY("optimizer", "name"), FR_KEY_MEMBER(job.optimizer),
     .words = optimizers, TOML},
    {KEY("optimizer", "lr"), FR_KEY_MEMBER(job.lr), .put = put_peak_lr},
    {KEY("optimizer", "beta1"), FR_KEY_MEMBER(job.beta1), TOML},
    {KEY("optimizer", "beta2"), FR_KEY_MEMBER(job.beta2), TOML},
    {KEY("optimizer", "betas"), .put = put_betas, MAIN},
    REAL("optimizer", "eps", job.optimizer_eps),
    REAL("optimizer", "weight_decay", job.weight_decay),
    UNREAD("optimizer", "implementation", NO_PLACE),
    UNREAD("optimizer", "fused", NO_PLACE),
    UNREAD("optimizer", "early_step_in_backward", NO_PLACE),

    {KEY("lr_scheduler", "warmup_steps"), FR_KEY_MEMBER(job.warmup_steps)},
    {KEY("lr_scheduler", "decay_ratio"), .text = "0.0", .is_used = is_constant},
    {KEY("lr_scheduler", "decay_type"), FR_KEY_MEMBER(job.lr_schedule),
     .words = curves, .is_used = is_decayed},
    {KEY("lr_scheduler", "min_lr_factor"), FR_KEY_MEMBER(job.lr_min_frac),
     .is_used = is_decayed},
    UNREAD("lr_scheduler", "total_steps", NOT_TIMED),

    {KEY("training", "batch_size")}, /* before 0.1 */
    {KEY("training", "local_batch_size"), .put = put_local_batch, TOML},
    {KEY("training", "global_batch_size"), .put = NULL,
     FR_KEY_MEMBER(job.global_batch), .least = -1, TOML},
    {KEY("training", "seq_len"), FR_KEY_MEMBER(job.seq), .least = 1, TOML},
    {KEY("training", "num_tokens_per_microbatch_per_dp_rank"),
     .put = put_micro_tokens, MAIN},
    {KEY("training", "num_tokens_per_train_step"), .put = put_step_tokens,
     MAIN},
    {KEY("training", "max_context_length"), FR_KEY_MEMBER(job.seq), MAIN},
    REAL("training", "max_norm", job.clip_norm),
    {KEY("training", "steps"), FR_KEY_MEMBER(job.n_steps), .least = 1},
    REAL("training", "enable_cpu_offload", plan.is_optimizer_offloaded),
    {KEY("training", "disable_cuda_graphs"), .put = put_no_graphs, MAIN},
    {KEY("training", "mixed_precision_param"), FR_KEY_MEMBER(plan.precision),
     .words = dtypes},
    {KEY("training", "mixed_precision_reduce"), FR_KEY_MEMBER(plan.grad_dtype),
     .words = sums},
    {KEY("training", "dataset"), .text = "\"c4\"", TOML},
    {KEY("training", "dataset_path"), FR_KEY_MEMBER(job.data), .why = NOT_TIMED,
     .is_used = has_data, TOML},
    {KEY("training", "seed"), FR_KEY_MEMBER(job.seed),
     .until = FR_TARGET_FIRST_ALONE},
    UNREAD("training", "dtype", NO_PLACE),
    UNREAD("training", "gc_freq", NOT_TIMED),
    UNREAD("training", "gc_debug", NOT_TIMED),
    UNREAD("training", "deterministic", NOT_TIMED),
    UNREAD("training", "compile", NO_PLACE),
    UNREAD("training", "dataloader", NOT_TIMED),

    {KEY("debug", "seed"), FR_KEY_MEMBER(job.seed), .since = FR_TORCHTITAN_0_2},
    UNREAD("debug", "deterministic", NOT_TIMED),
    UNREAD("debug", "deterministic_warn_only", NOT_TIMED),
    UNREAD("debug", "moe_force_load_balance", NOT_TIMED),

    {KEY("parallelism", "data_parallel_replicate_degree"), .put = put_replicas},
    {KEY("parallelism", "data_parallel_shard_degree"), .put = put_shards},
    {KEY("parallelism", "fsdp_reshard_after_forward"),
     FR_KEY_MEMBER(plan.is_resharded), .words = policies},
    DEGREE("tensor_parallel_degree", plan.tp),
    {KEY("parallelism", "enable_sequence_parallel"),
     FR_KEY_MEMBER(plan.is_sequence_parallel), MAIN},
    {KEY("parallelism", "enable_async_tensor_parallel"),
     FR_KEY_MEMBER(plan.is_tp_overlap), TOML},
    DEGREE("context_parallel_degree", plan.cp),
    {KEY("parallelism", "context_parallel_rotate_method"),
     FR_KEY_MEMBER(plan.cp_kind), .words = rotations, TOML},
    {KEY("parallelism", "expert_parallel_degree"), FR_KEY_MEMBER(plan.ep),
     .least = 1, MAIN},
    DEGREE("pipeline_parallel_degree", plan.pp),
    {KEY("parallelism", "expert_parallel_degree"), FR_KEY_MEMBER(plan.ep),
     .least = 1, .is_used = has_experts, TOML},
    {KEY("parallelism", "expert_tensor_parallel_degree"), .put = put_etp,
     .is_used = has_experts, TOML},
    {KEY("parallelism", "expert_parallel_comm_backend"),
     FR_KEY_MEMBER(plan.expert_dispatch), .words = backends, .put = put_backend,
     .is_used = has_experts, .since = FR_TORCHTITAN_0_2, TOML},
    {KEY("parallelism", "pipeline_parallel_schedule"),
     FR_KEY_MEMBER(plan.schedule), .words = schedules, .is_used = is_staged},
    {KEY("parallelism", "pipeline_parallel_microbatch_size"),
     FR_KEY_MEMBER(plan.micro_batch), .least = 1, .is_used = is_staged, TOML},
    {KEY("parallelism", "num_pp_microbatches"), .put = put_micro_batches,
     .is_used = is_staged, MAIN},
    {KEY("parallelism", "pipeline_parallel_schedule_csv"),
     .text = "\"schedule.csv\"", .is_used = fr_torchtitan_has_schedule_file,
     .comment = "Of the directory that torchrun is called in.", TOML},
    {KEY("parallelism", "pipeline_parallel_schedule_csv"),
     .text = "str(\n            Path(__file__).with_name(\"schedule.csv\"))",
     .is_used = fr_torchtitan_has_schedule_file, MAIN},
    {KEY("parallelism", "module_fqns_per_model_part"), .put = put_split_toml,
     .is_used = is_split, TOML},
    {KEY("parallelism", "module_fqns_per_model_part"), .put = put_split_python,
     .is_used = is_split, MAIN},
    {KEY("parallelism", "pipeline_parallel_layers_per_stage"),
     .put = put_stage_layers, .is_used = is_even},
    {KEY("parallelism", "pipeline_parallel_first_stage_less_layers"),
     .text = "0", .is_used = is_even},
    {KEY("parallelism", "pipeline_parallel_last_stage_less_layers"),
     .text = "0", .is_used = is_even},
    UNREAD("parallelism", "disable_loss_parallel", NO_PLACE),
    UNREAD("parallelism", "pipeline_parallel_split_points", NO_PLACE),
    UNREAD("parallelism", "pipeline_parallel_expert_parallel_overlap",
           NO_PLACE),
    UNREAD("parallelism", "context_parallel_load_balancer", NO_PLACE),

    {KEY("activation_checkpoint", "mode"), FR_KEY_MEMBER(plan.recompute),
     .words = modes, TOML},
    {KEY("activation_checkpoint", "selective_ac_option"), .text = "\"op\"",
     .is_used = is_selective, TOML},
    UNREAD("activation_checkpoint",
           "per_op_sac_force_recompute_mm_shapes_by_fqns", NO_PLACE),
    UNREAD("activation_checkpoint", "early_stop", NOT_TIMED),
    UNREAD("activation_checkpoint", "memory_budget", NO_PLACE),
    UNREAD("activation_checkpoint", "visualize_memory_budget_pareto",
           IT_PRINTS),
    UNREAD("activation_checkpoint", "preserve_rng_state", NOT_TIMED),
    UNREAD("activation_checkpoint", "determinism_check", NOT_TIMED),
    UNREAD("activation_checkpoint", "debug", IT_PRINTS),

    {KEY("compile", "enable"), .put = put_compiled, TOML},
    {KEY("compile", "enable"), .put = put_compiled_python, MAIN},
    {KEY("compile", "components"), .text = "[\"model\", \"loss\"]",
     .why = NO_PLACE, TOML},
    {KEY("compile", "enable_async_tensor_parallel"), .put = put_async_tp, MAIN},
    UNREAD("compile", "backend", NO_PLACE),
};

const fr_framework_keys fr_torchtitan_keys = {rows, FR_LENGTH(rows)};
