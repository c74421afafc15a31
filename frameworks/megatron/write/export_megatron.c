/*
 * export_megatron.c: a shell script with the arguments of Megatron-LM's
 * pretrain_gpt.py, which starts it too.
 */
#include "frameworks/framework_list.h"
#include "frameworks/megatron/write/megatron_arguments.h"

#include <stdlib.h>
#include <string.h>

typedef void put_fn(const fr_export_request *of, fr_buffer *out);

static void put_array(const char *name, const char *comment, put_fn *put,
                      const fr_export_request *of, fr_buffer *out)
{
    fr_buffer_printf(out, "\n# %s\n%s=(\n", comment, name);
    put(of, out);
    fr_buffer_puts(out, ")\n");
}

/*
 * CUDA_DEVICE_MAX_CONNECTIONS (arguments.py, validate_args): 1 orders
 * communication before computation, which tp and cp ask for before Blackwell;
 * FSDP must have more.
 */
static void put_connections(const fr_plan *plan, fr_buffer *out)
{
    if (plan->zero_stage > 1)
        fr_buffer_puts(out, "# Megatron FSDP asks for more than one\n"
                            "export CUDA_DEVICE_MAX_CONNECTIONS=8\n");
    else if (plan->is_ep_overlap && plan->ep > 1 && plan->tp == 1 &&
             plan->cp == 1)
        fr_buffer_puts(out, "# overlap of experts' exchanges asks for many\n"
                            "export CUDA_DEVICE_MAX_CONNECTIONS=32\n");
    else
        fr_buffer_puts(out, "# asked for with tp and cp before Blackwell\n"
                            "export CUDA_DEVICE_MAX_CONNECTIONS=1\n");
}

/* Puts the variables for values that no argument has. */
static void put_variables(const fr_export_request *request, fr_buffer *out)
{
    const fr_plan *plan = &request->file->plan;
    put_connections(plan, out);
    if (plan->precision == FR_DTYPE_F32)
        fr_buffer_puts(out,
                       "# f32: Transformer Engine multiplies in TF32 unless "
                       "cuBLAS is told not to\n"
                       "export NVIDIA_TF32_OVERRIDE=0\n");
    if (request->version < FR_MEGATRON_0_11) {
        if (!plan->is_flash)
            fr_buffer_puts(out, "export NVTE_FLASH_ATTN=0\n");
        if (!plan->is_flash || plan->execution.flash_kind == FR_FLASH_2)
            fr_buffer_puts(out, "export NVTE_FUSED_ATTN=0\n");
    }
    fr_export_put_exports(request, out);
}

/* "core-0.19" as the tags of releases have it: "core_v0.19.0". */
static void put_tag(const fr_export_request *request, fr_buffer *out)
{
    const char *version = fr_target_megatron.versions[request->version];
    fr_buffer_printf(out, "core_v%s.0", version + strlen("core-"));
}

static void put_start(const fr_export_request *request, fr_buffer *out)
{
    char ranks[24];
    fr_buffer_puts(out, "\n# Under torchrun, each process has its rank in the "
                        "environment.\n"
                        "if [[ -n \"${LOCAL_RANK:-}\" ]]; then\n"
                        "    exec python3 \"$MEGATRON/pretrain_gpt.py\" "
                        "\"${ARGUMENTS[@]}\" \"$@\"\n"
                        "fi\n");
    fr_buffer_printf(out, "exec torchrun --nnodes %lld --nproc_per_node %s",
                     (long long)request->n_nodes,
                     fr_export_ranks_word(request, ranks, sizeof ranks));
    if (request->n_nodes > 1)
        fr_buffer_puts(out,
                       " \\\n    --node_rank \"${NODE_RANK:?0 on the first "
                       "node}\" \\\n    --master_addr \"${MASTER_ADDR:?the "
                       "first node}\" \\\n    --master_port "
                       "\"${MASTER_PORT:-29500}\"");
    fr_buffer_puts(out, " \\\n    \"$MEGATRON/pretrain_gpt.py\" "
                        "\"${ARGUMENTS[@]}\" \"$@\"\n");
}

static void put_top(const fr_export_request *request, fr_buffer *out)
{
    fr_buffer_puts(out, "#!/bin/bash\n");
    fr_export_put_header(request, &fr_target_megatron, "# ", out);
    fr_buffer_puts(out, "# Arguments of pretrain_gpt.py of Megatron-LM, "
                        "tag ");
    put_tag(request, out);
    fr_buffer_printf(out,
                     ".\n# MEGATRON is its folder.  Run it on each of %lld "
                     "nodes, or export for a launcher\n# (--to slurm "
                     "--program megatron); more arguments may follow.\n"
                     "%s"
                     "set -euo pipefail\n\nMEGATRON=${MEGATRON:?the folder of "
                     "Megatron-LM}\n",
                     (long long)request->n_nodes,
                     request->file->job.warmup_steps > 0
                         ? "# Its warm-up begins with a rate of 0, a step "
                           "behind forerun's.\n"
                         : "");
    put_variables(request, out);
}

static fr_status write_script(const fr_export_request *request,
                              fr_export_files *out, fr_err *err)
{
    FR_TRY(fr_export_check_torchrun(request, err));
    fr_export_file *file = fr_export_add(out, "megatron.sh", true);
    if (file == NULL)
        return fr_fail_no_memory(err);
    fr_buffer *text = &file->text;
    put_top(request, text);
    put_array("MODEL", "The model.", fr_megatron_put_model, request, text);
    put_array("TRAINING", "The job.", fr_megatron_put_training, request, text);
    put_array("DATA", "The data.", fr_megatron_put_data, request, text);
    put_array("PARALLEL", "How it is split.", fr_megatron_put_parallel, request,
              text);
    put_array("MEMORY", "Data parallelism, memory and kernels.",
              fr_megatron_put_memory, request, text);
    if (request->checkpoint_dir != NULL) {
        fr_buffer_puts(text, "\n# Checkpoints.\nCHECKPOINTS=(\n");
        fr_megatron_put_checkpoints(request, text);
        fr_buffer_puts(text, ")\n");
    }
    fr_buffer_printf(text,
                     "\nARGUMENTS=(\"${MODEL[@]}\" \"${TRAINING[@]}\" "
                     "\"${DATA[@]}\" \"${PARALLEL[@]}\" "
                     "\"${MEMORY[@]}\"%s)\n",
                     request->checkpoint_dir != NULL ? " \"${CHECKPOINTS[@]}\""
                                                     : "");
    put_start(request, text);
    return fr_buffer_check(text, err);
}

static fr_status put_command(const fr_export_request *request, fr_buffer *out,
                             fr_err *err)
{
    (void)request;
    (void)err;
    fr_buffer_puts(out, "--no-python \"$folder/megatron.sh\"");
    return FR_OK;
}

const fr_exporter fr_exporter_megatron = {
    .target = &fr_target_megatron,
    .summary = "a shell script with the arguments of Megatron-LM",
    .write = write_script,
    .start = FR_START_TORCHRUN,
    .settings = {{.name = "MEGATRON",
                  .meaning = "the folder of Megatron-LM",
                  .is_path = true}},
    .put_command = put_command,
    .left = {[FR_EXPORT_DATA] = FR_MEGATRON_NO_DATA},
    .takes_data = fr_megatron_takes_data,
};
