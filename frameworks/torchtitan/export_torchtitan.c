/*
 * export_torchtitan.c: a TOML file for torchtitan 0.2 (config/job_config.py),
 * or a Python recipe for its main (config/configs.py, trainer.py).
 */
#include "frameworks/framework_list.h"
#include "frameworks/torchtitan/torchtitan_keys.h"
#include "frameworks/torchtitan/torchtitan_parts.h"
#include "frameworks/write/export_job.h"
#include "plan/schedule/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number of checkpoints kept; torchtitan refuses to keep one alone
 * (components/checkpoint.py). */
enum { N_KEPT = 2 };

/* Lists the values that neither version has a key for. */
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

/* Stands where a user enters a flavor with the sizes that put_model() names. */
static const char no_flavor[] = "CHOOSE-A-FLAVOR";

/* Describes a model that the registry does not have. */
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

/* A table with the keys that this version has. */
static void put_table(const fr_export_request *request, const char *name,
                      fr_buffer *out)
{
    fr_buffer_printf(out, "\n[%s]\n", name);
    fr_framework_keys_put(fr_torchtitan_keys, name, request->version,
                          &fr_key_style_toml, request->file, out);
}

static void put_toml_model(const fr_plan_file *file,
                           const fr_torchtitan_words *model, fr_buffer *out)
{
    const fr_torchtitan_layout it = fr_torchtitan_layout_of(file);
    fr_buffer_printf(
        out, "\n[model]\nname = \"%s\"\nflavor = \"%s\"\n%s", model->name,
        model->flavor != NULL ? model->flavor : no_flavor,
        it.is_mx ? "converters = [\"quantize.linear.mx\"]\n"
        : file->plan.execution.scaling == FR_SCALING_ROW && it.is_fp8
            ? "converters = [\"quantize.linear.float8\"]\n"
              "\n[quantize.linear.float8]\n"
              "recipe_name = \"rowwise\"\n"
        : it.is_fp8 ? "converters = [\"quantize.linear.float8\"]\n"
                    : "");
}

/* Its folder is one of [job] dump_folder (config/job_config.py). */
static void put_toml_checkpoints(const fr_export_request *request,
                                 fr_buffer *out)
{
    if (request->checkpoint_dir == NULL)
        return;
    fr_buffer_puts(out, "dump_folder = \".\"\n\n[checkpoint]\nenable = true\n"
                        "folder = ");
    fr_framework_put_string(request->checkpoint_dir, out);
    fr_buffer_printf(out, "\ninterval = %lld\nkeep_latest_k = %d\n",
                     (long long)request->checkpoint_every, N_KEPT);
}

static void put_toml(const fr_export_request *request, fr_buffer *out)
{
    static const char *const tables[] = {
        "optimizer",   "lr_scheduler",          "training", "debug",
        "parallelism", "activation_checkpoint", "compile"};
    const fr_plan_file *file = request->file;
    const fr_torchtitan_words model =
        fr_torchtitan_words_of(&file->model, false);
    fr_export_put_header(request, &fr_target_torchtitan, "# ", out);
    put_left(file, out);
    put_model(&file->model, &model, out);
    fr_buffer_puts(out, "\n[job]\ndescription = \"written by forerun\"\n");
    put_toml_checkpoints(request, out);
    put_toml_model(file, &model, out);
    for (size_t i = 0; i < FR_LENGTH(tables); i++)
        if (request->version > FR_TORCHTITAN_0_2_0 ||
            strcmp(tables[i], "debug") != 0) /* it came with 0.2.1 */
            put_table(request, tables[i], out);
}

/* ---- the recipe of main -------------------------------------------------- */

/* A member of the configuration: a call with the keys of a table. */
static void put_call(const fr_plan_file *file, const char *table,
                     const char *called, fr_buffer *out)
{
    fr_buffer_printf(out, "    config.%s = %s(\n", table, called);
    fr_framework_keys_put(fr_torchtitan_keys, table, FR_TORCHTITAN_MAIN,
                          &fr_key_style_python, file, out);
    fr_buffer_puts(out, "    )\n");
}

static void put_python_checkpoints(const fr_export_request *request,
                                   fr_buffer *out)
{
    if (request->checkpoint_dir == NULL)
        return;
    fr_buffer_puts(out, "    config.dump_folder = \".\"\n"
                        "    config.checkpoint.enable = True\n"
                        "    config.checkpoint.folder = ");
    fr_framework_put_string(request->checkpoint_dir, out);
    fr_buffer_printf(out,
                     "\n    config.checkpoint.interval = %lld\n"
                     "    config.checkpoint.keep_latest_k = %d\n",
                     (long long)request->checkpoint_every, N_KEPT);
}

static const char *converter_of(const fr_torchtitan_layout *it)
{
    return it->is_mx ? "MXFP8LinearConverter" : "Float8LinearConverter";
}

static void put_python(const fr_export_request *request, fr_buffer *out)
{
    const fr_plan_file *file = request->file;
    const fr_plan *plan = &file->plan;
    const fr_torchtitan_layout it = fr_torchtitan_layout_of(file);
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
        fr_torchtitan_has_schedule_file(file) ? "from pathlib import Path\n\n"
                                              : "",
        is_converted ? "from torchtitan.components.quantization import " : "",
        is_converted ? converter_of(&it) : "", is_converted ? "\n" : "",
        model.name, model.recipe);
    char backend[64] = "";
    if (file->model.n_experts > 0)
        snprintf(backend, sizeof backend, ", moe_comm_backend=\"%s\"",
                 fr_torchtitan_expert_backend(plan));
    /* A recipe may have a model in fp8 of its own (llama3_405b). */
    fr_buffer_printf(out, "    config.model_spec = model_registry(\"%s\"%s",
                     model.flavor != NULL ? model.flavor : no_flavor, backend);
    if (is_converted)
        fr_buffer_printf(out,
                         ", converters=[\n        %s.Config("
                         "model_compile_enabled=%s),\n    ]",
                         converter_of(&it), it.is_compiled ? "True" : "False");
    fr_buffer_puts(out, ")\n");
    put_call(file, "training", "TrainingConfig", out);
    put_call(file, "optimizer", "default_adamw", out);
    fr_buffer_printf(out, "    config.debug.seed = %llu\n",
                     (unsigned long long)file->job.seed);
    put_call(file, "lr_scheduler", "LRSchedulersContainer.Config", out);
    put_python_checkpoints(request, out);
    put_call(file, "parallelism", "ParallelismConfig", out);
    fr_buffer_printf(out, "    config.activation_checkpoint = %s\n",
                     plan->recompute == FR_RECOMPUTE_FULL ? "FullAC.Config()"
                     : plan->recompute == FR_RECOMPUTE_SELECTIVE
                         ? "SelectiveAC.Config()"
                         : "None");
    put_call(file, "compile", "CompileConfig", out);
    fr_buffer_puts(out, "    return config\n");
}

/* ---- the exporter -------------------------------------------------------- */

static bool is_toml(const fr_export_request *request)
{
    return request->version < FR_TORCHTITAN_MAIN;
}

/* Writes what PyTorch's _PipelineScheduleRuntime reads (schedules.py,
 * _load_csv): a line of each rank, 2I5 for the gradients of inputs of stage 2,
 * micro-batch 5. */
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
    return fr_torchtitan_has_schedule_file(request->file)
               ? write_schedule(request->file, out, err)
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
    .target = &fr_target_torchtitan,
    .summary = "TOML of torchtitan 0.2, a recipe for its main",
    .write = write_config,
    .start = FR_START_TORCHRUN,
    .put_command = put_command,
    .n_kept = N_KEPT,
};
