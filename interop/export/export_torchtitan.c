/*
 * export_torchtitan.c: a TOML file for torchtitan 0.2 (config/job_config.py),
 * or a Python recipe for its main (config/configs.py, trainer.py).
 */
#include "frameworks/framework_list.h"
#include "interop/config/torchtitan_parts.h"
#include "interop/export/export_job.h"
#include "interop/export/export_list.h"
#include "plan/schedule/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number of checkpoints kept; torchtitan refuses to keep one alone
 * (components/checkpoint.py). */
enum { N_KEPT = 2 };

/* What both versions say, each in its own words. */
typedef struct layout {
    int64_t n_replicas, n_shards; /* of data-parallel ranks */
    int64_t n_micro, local_batch;
    bool is_compiled;
    bool is_fp8, is_mx;
    bool is_0_2_0; /* fewer keys than later ones */
} layout;

static layout layout_of(const fr_export_request *request)
{
    const fr_plan_file *file = request->file;
    const fr_plan *plan = &file->plan;
    layout it = {.n_replicas = plan->dp, .n_shards = 1};
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
    /* Async TP is made by the compiler. */
    it.is_compiled = plan->execution.kernels == FR_KERNELS_COMPILED ||
                     (plan->tp > 1 && plan->is_tp_overlap);
    it.is_mx = plan->precision == FR_DTYPE_FP8 &&
               plan->execution.scaling == FR_SCALING_BLOCK;
    it.is_fp8 = plan->precision == FR_DTYPE_FP8 && !it.is_mx;
    it.is_0_2_0 = request->version == 0;
    return it;
}

/* A schedule that torchtitan has no name for is a file, schedule.csv. */
static bool has_schedule_file(const fr_plan *plan)
{
    return plan->pp > 1 && plan->schedule == FR_SCHEDULE_ZB_H1;
}

static const char *schedule_name(fr_schedule_kind schedule)
{
    return schedule == FR_SCHEDULE_GPIPE         ? "GPipe"
           : schedule == FR_SCHEDULE_INTERLEAVED ? "Interleaved1F1B"
           : schedule == FR_SCHEDULE_ZB_V        ? "ZBVZeroBubble"
           : schedule == FR_SCHEDULE_ZB_H1       ? "PipelineScheduleSingle"
                                                 : "1F1B";
}

/* DeepEP is asked for where experts are parallel alone. */
static const char *expert_backend(const fr_plan *plan)
{
    return plan->ep > 1 && plan->expert_dispatch == FR_DISPATCH_BY_NODE
               ? "deepep"
               : "standard";
}

static const char *bool_name(bool is_on, bool is_python)
{
    if (is_python)
        return is_on ? "True" : "False";
    return is_on ? "true" : "false";
}

/* What neither has a key for. */
static void put_left(const fr_plan_file *file, fr_buffer *out)
{
    const fr_job *job = &file->job;
    if (job->optimizer != FR_OPTIMIZER_ADAMW)
        fr_buffer_printf(out,
                         "# optimizer %s: torchtitan builds Adam and AdamW "
                         "alone\n",
                         fr_name_of(&fr_optimizer_names, job->optimizer));
    if (job->lr_schedule == FR_LR_INVERSE_SQRT)
        fr_buffer_puts(out, "# lr_schedule inverse-sqrt: torchtitan has "
                            "linear, cosine and 1 - sqrt\n");
    if (job->dropout > 0)
        fr_buffer_printf(out, "# dropout %g: its models have none\n",
                         job->dropout);
    if (job->data[0] != '\0')
        fr_buffer_puts(out, "# data: a folder in the form of c4; another "
                            "dataset is registered in "
                            "torchtitan/hf_datasets\n");
    fr_buffer_puts(out, "# weight decay: torchtitan decays all parameters, "
                        "forerun matrices only\n");
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

/* Stands where a user enters a flavor with the sizes that put_model() names. */
static const char no_flavor[] = "CHOOSE-A-FLAVOR";

/* What the registry has not. */
static void put_model(const fr_model *model, const fr_torchtitan_words *words,
                      fr_buffer *out)
{
    fr_torchtitan_put_differences(model, "# ", out);
    if (words->flavor != NULL)
        return;
    fr_buffer_printf(out,
                     "#\n# %s: torchtitan/models/%s/__init__.py has no flavor "
                     "with these sizes.  Enter one\n# there, and its name "
                     "below:\n",
                     no_flavor, words->name);
    fr_torchtitan_put_sizes(model, "#     ", out);
}

/* ---- TOML of 0.2 --------------------------------------------------------- */

static void put_toml_parallelism(const fr_plan_file *file, const layout *it,
                                 fr_buffer *out)
{
    const fr_plan *plan = &file->plan;
    fr_buffer_printf(out,
                     "\n[parallelism]\n"
                     "data_parallel_replicate_degree = %lld\n"
                     "data_parallel_shard_degree = %lld\n"
                     "fsdp_reshard_after_forward = \"%s\"\n"
                     "tensor_parallel_degree = %d\n"
                     "enable_async_tensor_parallel = %s\n"
                     "context_parallel_degree = %d\n"
                     "context_parallel_rotate_method = \"%s\"\n"
                     "pipeline_parallel_degree = %d\n",
                     (long long)it->n_replicas, (long long)it->n_shards,
                     plan->is_resharded ? "always" : "never", plan->tp,
                     bool_name(plan->is_tp_overlap, false), plan->cp,
                     plan->cp_kind == FR_CP_RING ? "alltoall" : "allgather",
                     plan->pp);
    if (file->model.n_experts > 0)
        fr_buffer_printf(out,
                         "expert_parallel_degree = %d\n"
                         "expert_tensor_parallel_degree = %d\n",
                         plan->ep, plan->etp > 0 ? plan->etp : plan->tp);
    if (file->model.n_experts > 0 && !it->is_0_2_0)
        fr_buffer_printf(out, "expert_parallel_comm_backend = \"%s\"\n",
                         expert_backend(plan));
    if (plan->pp == 1)
        return;
    fr_buffer_printf(out,
                     "pipeline_parallel_schedule = \"%s\"\n"
                     "pipeline_parallel_microbatch_size = %lld\n",
                     schedule_name(plan->schedule),
                     (long long)plan->micro_batch);
    if (has_schedule_file(plan))
        fr_buffer_puts(out, "# Of the directory that torchrun is called in.\n"
                            "pipeline_parallel_schedule_csv = "
                            "\"schedule.csv\"\n");
    if (plan->n_split > 0) {
        fr_buffer_puts(out, "module_fqns_per_model_part = ");
        put_split(plan, "output", out);
        fr_buffer_putc(out, '\n');
        return;
    }
    fr_buffer_printf(
        out,
        "pipeline_parallel_layers_per_stage = %lld\n"
        "pipeline_parallel_first_stage_less_layers = 0\n"
        "pipeline_parallel_last_stage_less_layers = 0\n",
        (long long)(file->model.n_layers / (plan->pp * plan->vpp)));
}

static void put_toml_job(const fr_plan_file *file, const layout *it,
                         const fr_torchtitan_words *model, fr_buffer *out)
{
    const fr_plan *plan = &file->plan;
    const fr_job *job = &file->job;
    fr_buffer_printf(
        out,
        "\n[model]\nname = \"%s\"\nflavor = \"%s\"\n%s"
        "\n[optimizer]\nname = \"AdamW\"\nlr = %.12g\n"
        "beta1 = %.12g\nbeta2 = %.12g\neps = %.12g\n"
        "weight_decay = %.12g\n",
        model->name, model->flavor != NULL ? model->flavor : no_flavor,
        it->is_mx ? "converters = [\"quantize.linear.mx\"]\n"
        : plan->execution.scaling == FR_SCALING_ROW && it->is_fp8
            ? "converters = [\"quantize.linear.float8\"]\n"
              "\n[quantize.linear.float8]\n"
              "recipe_name = \"rowwise\"\n"
        : it->is_fp8 ? "converters = [\"quantize.linear.float8\"]\n"
                     : "",
        fr_job_peak_lr(job), job->beta1, job->beta2, job->optimizer_eps,
        job->weight_decay);
    fr_buffer_printf(out, "\n[lr_scheduler]\nwarmup_steps = %lld\n",
                     (long long)job->warmup_steps);
    if (job->lr_schedule == FR_LR_CONSTANT)
        fr_buffer_puts(out, "decay_ratio = 0.0\n");
    else
        fr_buffer_printf(out, "decay_type = \"%s\"\nmin_lr_factor = %.12g\n",
                         job->lr_schedule == FR_LR_COSINE ? "cosine" : "linear",
                         job->lr_min_frac);
    fr_buffer_printf(out,
                     "\n[training]\nlocal_batch_size = %lld\n"
                     "global_batch_size = %lld\nseq_len = %lld\n"
                     "max_norm = %.12g\nsteps = %lld\n"
                     "enable_cpu_offload = %s\n"
                     "mixed_precision_param = \"%s\"\n"
                     "mixed_precision_reduce = \"float32\"\n"
                     "dataset = \"c4\"\n",
                     (long long)it->local_batch, (long long)job->global_batch,
                     (long long)job->seq, job->clip_norm,
                     (long long)job->n_steps,
                     bool_name(plan->is_optimizer_offloaded, false),
                     plan->precision == FR_DTYPE_F32 ? "float32" : "bfloat16");
    if (job->data[0] != '\0') {
        fr_buffer_puts(out, "dataset_path = ");
        fr_export_put_string(job->data, out);
        fr_buffer_putc(out, '\n');
    }
    fr_buffer_printf(out, "%sseed = %llu\n", it->is_0_2_0 ? "" : "\n[debug]\n",
                     (unsigned long long)job->seed);
}

/* Its folder is one of [job] dump_folder (config/job_config.py). */
static void put_toml_checkpoints(const fr_export_request *request,
                                 fr_buffer *out)
{
    if (request->checkpoint_dir == NULL)
        return;
    fr_buffer_puts(out, "dump_folder = \".\"\n\n[checkpoint]\nenable = true\n"
                        "folder = ");
    fr_export_put_string(request->checkpoint_dir, out);
    fr_buffer_printf(out, "\ninterval = %lld\nkeep_latest_k = %d\n",
                     (long long)request->checkpoint_every, N_KEPT);
}

static void put_toml(const fr_export_request *request, fr_buffer *out)
{
    const fr_plan_file *file = request->file;
    const fr_plan *plan = &file->plan;
    const layout it = layout_of(request);
    const fr_torchtitan_words model =
        fr_torchtitan_words_of(&file->model, false);
    fr_export_put_header(request, &fr_target_torchtitan, "# ", out);
    put_left(file, out);
    put_model(&file->model, &model, out);
    fr_buffer_puts(out, "\n[job]\ndescription = \"written by forerun\"\n");
    put_toml_checkpoints(request, out);
    put_toml_job(file, &it, &model, out);
    put_toml_parallelism(file, &it, out);
    fr_buffer_printf(out, "\n[activation_checkpoint]\nmode = \"%s\"\n",
                     plan->recompute == FR_RECOMPUTE_FULL        ? "full"
                     : plan->recompute == FR_RECOMPUTE_SELECTIVE ? "selective"
                                                                 : "none");
    if (plan->recompute == FR_RECOMPUTE_SELECTIVE)
        fr_buffer_puts(out, "selective_ac_option = \"op\"\n");
    fr_buffer_printf(out,
                     "\n[compile]\nenable = %s\n"
                     "components = [\"model\", \"loss\"]\n",
                     bool_name(it.is_compiled, false));
}

/* ---- the recipe of main -------------------------------------------------- */

static void put_python_parallelism(const fr_plan_file *file, const layout *it,
                                   fr_buffer *out)
{
    const fr_plan *plan = &file->plan;
    fr_buffer_printf(out,
                     "    config.parallelism = ParallelismConfig(\n"
                     "        data_parallel_replicate_degree=%lld,\n"
                     "        data_parallel_shard_degree=%lld,\n"
                     "        fsdp_reshard_after_forward=\"%s\",\n"
                     "        tensor_parallel_degree=%d,\n"
                     "        enable_sequence_parallel=%s,\n"
                     "        context_parallel_degree=%d,\n"
                     "        expert_parallel_degree=%d,\n"
                     "        pipeline_parallel_degree=%d,\n",
                     (long long)it->n_replicas, (long long)it->n_shards,
                     plan->is_resharded ? "always" : "never", plan->tp,
                     bool_name(plan->is_sequence_parallel, true), plan->cp,
                     plan->ep, plan->pp);
    if (plan->pp > 1) {
        fr_buffer_printf(out,
                         "        pipeline_parallel_schedule=\"%s\",\n"
                         "        num_pp_microbatches=%lld,\n",
                         schedule_name(plan->schedule), (long long)it->n_micro);
        if (has_schedule_file(plan))
            fr_buffer_puts(out, "        pipeline_parallel_schedule_csv=str("
                                "\n            Path(__file__).with_name("
                                "\"schedule.csv\")),\n");
        if (plan->n_split > 0) {
            fr_buffer_puts(out, "        module_fqns_per_model_part=");
            put_split(plan, "lm_head", out);
            fr_buffer_puts(out, ",\n");
        } else {
            fr_buffer_printf(
                out,
                "        pipeline_parallel_layers_per_stage=%lld,\n"
                "        pipeline_parallel_first_stage_less_layers=0,\n"
                "        pipeline_parallel_last_stage_less_layers=0,\n",
                (long long)(file->model.n_layers / (plan->pp * plan->vpp)));
        }
    }
    fr_buffer_puts(out, "    )\n");
}

static void put_python_job(const fr_plan_file *file, fr_buffer *out)
{
    const fr_plan *plan = &file->plan;
    const fr_execution *how = &plan->execution;
    const fr_job *job = &file->job;
    fr_buffer_printf(out,
                     "    config.training = TrainingConfig(\n"
                     "        num_tokens_per_microbatch_per_dp_rank=%lld,\n"
                     "        num_tokens_per_train_step=%lld,\n"
                     "        max_context_length=%lld,\n"
                     "        max_norm=%.12g,\n        steps=%lld,\n"
                     "        enable_cpu_offload=%s,\n"
                     "        disable_cuda_graphs=%s,\n"
                     "        mixed_precision_param=\"%s\",\n"
                     "        mixed_precision_reduce=\"float32\",\n    )\n",
                     (long long)(plan->micro_batch * job->seq),
                     (long long)(job->global_batch * job->seq),
                     (long long)job->seq, job->clip_norm,
                     (long long)job->n_steps,
                     bool_name(plan->is_optimizer_offloaded, true),
                     bool_name(how->cuda_graphs == FR_CUDA_GRAPHS_NONE, true),
                     plan->precision == FR_DTYPE_F32 ? "float32" : "bfloat16");
    fr_buffer_printf(out,
                     "    config.optimizer = default_adamw(\n"
                     "        lr=%.12g,\n        betas=(%.12g, %.12g),\n"
                     "        eps=%.12g,\n        weight_decay=%.12g,\n    )\n"
                     "    config.debug.seed = %llu\n",
                     fr_job_peak_lr(job), job->beta1, job->beta2,
                     job->optimizer_eps, job->weight_decay,
                     (unsigned long long)job->seed);
    fr_buffer_printf(out,
                     "    config.lr_scheduler = LRSchedulersContainer.Config(\n"
                     "        warmup_steps=%lld,\n",
                     (long long)job->warmup_steps);
    if (job->lr_schedule == FR_LR_CONSTANT)
        fr_buffer_puts(out, "        decay_ratio=0.0,\n    )\n");
    else
        fr_buffer_printf(out,
                         "        decay_type=\"%s\",\n"
                         "        min_lr_factor=%.12g,\n    )\n",
                         job->lr_schedule == FR_LR_COSINE ? "cosine" : "linear",
                         job->lr_min_frac);
}

static void put_python_checkpoints(const fr_export_request *request,
                                   fr_buffer *out)
{
    if (request->checkpoint_dir == NULL)
        return;
    fr_buffer_puts(out, "    config.dump_folder = \".\"\n"
                        "    config.checkpoint.enable = True\n"
                        "    config.checkpoint.folder = ");
    fr_export_put_string(request->checkpoint_dir, out);
    fr_buffer_printf(out,
                     "\n    config.checkpoint.interval = %lld\n"
                     "    config.checkpoint.keep_latest_k = %d\n",
                     (long long)request->checkpoint_every, N_KEPT);
}

static const char *converter_of(const layout *it)
{
    return it->is_mx ? "MXFP8LinearConverter" : "Float8LinearConverter";
}

static void put_python(const fr_export_request *request, fr_buffer *out)
{
    const fr_plan_file *file = request->file;
    const fr_plan *plan = &file->plan;
    const layout it = layout_of(request);
    const fr_torchtitan_words model =
        fr_torchtitan_words_of(&file->model, true);
    const bool is_converted = it.is_mx || it.is_fp8;
    fr_export_put_header(request, &fr_target_torchtitan, "# ", out);
    put_left(file, out);
    put_model(&file->model, &model, out);
    fr_buffer_printf(
        out,
        "#\n# Without GPUs: NGPU=%lld COMM_MODE=fake_backend "
        "MODULE=forerun_recipe\n#   CONFIG=forerun_plan ./run_train.sh says "
        "whether torchtitan accepts it.\n"
        "%s"
        "from torchtitan.components.optimizer import (\n"
        "    LRSchedulersContainer,\n    default_adamw,\n)\n"
        "%s%s%s"
        "from torchtitan.config import (\n    CompileConfig,\n"
        "    ParallelismConfig,\n    TrainingConfig,\n)\n"
        "from torchtitan.distributed.activation_checkpoint import (\n"
        "    FullAC,\n    SelectiveAC,\n)\n"
        "from torchtitan.models.%s import config_registry, model_registry\n"
        "from torchtitan.trainer import Trainer\n\n\n"
        "def forerun_plan() -> Trainer.Config:\n"
        "    # A recipe of the registry: data, loss, tokenizer.\n"
        "    config = config_registry.%s()\n",
        (long long)fr_plan_world(plan),
        has_schedule_file(plan) ? "from pathlib import Path\n\n" : "",
        is_converted ? "from torchtitan.components.quantization import " : "",
        is_converted ? converter_of(&it) : "", is_converted ? "\n" : "",
        model.name, model.recipe);
    char backend[64] = "";
    if (file->model.n_experts > 0)
        snprintf(backend, sizeof backend, ", moe_comm_backend=\"%s\"",
                 expert_backend(plan));
    /* A recipe may have a model in fp8 of its own (llama3_405b). */
    fr_buffer_printf(out, "    config.model_spec = model_registry(\"%s\"%s",
                     model.flavor != NULL ? model.flavor : no_flavor, backend);
    if (is_converted)
        fr_buffer_printf(out,
                         ", converters=[\n        %s.Config("
                         "model_compile_enabled=%s),\n    ]",
                         converter_of(&it), bool_name(it.is_compiled, true));
    fr_buffer_puts(out, ")\n");
    put_python_job(file, out);
    put_python_checkpoints(request, out);
    put_python_parallelism(file, &it, out);
    fr_buffer_printf(out, "    config.activation_checkpoint = %s\n",
                     plan->recompute == FR_RECOMPUTE_FULL ? "FullAC.Config()"
                     : plan->recompute == FR_RECOMPUTE_SELECTIVE
                         ? "SelectiveAC.Config()"
                         : "None");
    fr_buffer_printf(out,
                     "    config.compile = CompileConfig(\n        enable=%s,\n"
                     "        enable_async_tensor_parallel=%s,\n    )\n"
                     "    return config\n",
                     bool_name(it.is_compiled, true),
                     bool_name(plan->tp > 1 && plan->is_tp_overlap, true));
}

/* ---- the exporter -------------------------------------------------------- */

static bool is_toml(const fr_export_request *request)
{
    return strncmp(fr_target_torchtitan.versions[request->version], "0.2", 3) ==
           0;
}

/* What PyTorch's _PipelineScheduleRuntime reads (schedules.py, _load_csv): a
 * line of each rank, 2I5 for the gradients of inputs of stage 2, micro-batch
 * 5. */
static fr_status write_schedule(const fr_plan_file *file, fr_export_files *out,
                                fr_err *err)
{
    static const char letters[] = {[FR_TASK_FORWARD] = 'F',
                                   [FR_TASK_BACKWARD] = 'I',
                                   [FR_TASK_WEIGHTS] = 'W'};
    const fr_plan *plan = &file->plan;
    const fr_schedule *schedule = fr_schedules[plan->schedule];
    const int64_t n_micro = fr_plan_micro_batches(plan, &file->job);
    const int64_t n = fr_schedule_n_tasks(schedule, n_micro, plan->vpp);
    fr_export_file *csv = fr_export_add(out, "schedule.csv", false);
    fr_task *tasks = calloc((size_t)n, sizeof *tasks);
    if (csv == NULL || tasks == NULL) {
        free(tasks);
        return fr_fail_no_memory(err);
    }
    for (int32_t rank = 0; rank < plan->pp; rank++) {
        schedule->emit(rank, plan->pp, n_micro, plan->vpp, tasks);
        for (int64_t i = 0; i < n; i++)
            fr_buffer_printf(
                &csv->text, "%s%d%c%lld", i > 0 ? "," : "",
                fr_schedule_stage(schedule, rank, tasks[i].chunk, plan->pp),
                letters[tasks[i].kind], (long long)tasks[i].micro_batch);
        fr_buffer_putc(&csv->text, '\n');
    }
    free(tasks);
    return fr_buffer_check(&csv->text, err);
}

static fr_status write_config(const fr_export_request *request,
                              fr_export_files *out, fr_err *err)
{
    bool is_old = is_toml(request);
    fr_export_file *file = fr_export_add(
        out, is_old ? "torchtitan.toml" : "forerun_recipe.py", false);
    if (file == NULL)
        return fr_fail_no_memory(err);
    if (is_old)
        put_toml(request, &file->text);
    else
        put_python(request, &file->text);
    FR_TRY(fr_buffer_check(&file->text, err));
    const fr_plan *plan = &request->file->plan;
    return has_schedule_file(plan) ? write_schedule(request->file, out, err)
                                   : FR_OK;
}

static fr_status put_command(const fr_export_request *request, fr_buffer *out,
                             fr_err *err)
{
    (void)err;
    fr_buffer_puts(out, is_toml(request)
                            ? "-m torchtitan.train --job.config_file "
                              "\"$folder/torchtitan.toml\""
                            : "-m torchtitan.train --module forerun_recipe "
                              "--config forerun_plan");
    return FR_OK;
}

const fr_exporter fr_exporter_torchtitan = {
    .framework = &fr_framework_torchtitan,
    .summary = "TOML of torchtitan 0.2, a recipe for its main",
    .write = write_config,
    .start = FR_START_TORCHRUN,
    .put_command = put_command,
    .n_kept = N_KEPT,
};
