/*
 * export_slurm.c: a batch script for Slurm (man sbatch, man srun) that starts a
 * program on all nodes.
 */
#include "interop/export/export_list.h"

static void put_directives(const fr_export_request *request, fr_buffer *out)
{
    char name[64];
    int64_t minutes = fr_export_minutes(request);
    fr_buffer_printf(out, "#SBATCH --job-name=%s\n",
                     fr_export_job_name(request, name, sizeof name));
    fr_buffer_printf(out,
                     "#SBATCH --nodes=%lld\n#SBATCH --ntasks-per-node=%lld\n",
                     (long long)request->n_nodes,
                     (long long)fr_export_tasks_per_node(request));
    if (request->has_gpus)
        fr_buffer_printf(out, "#SBATCH --gres=gpu:%lld\n",
                         (long long)request->n_ranks_per_node);
    fr_buffer_puts(out, "#SBATCH --exclusive\n"
                        "#SBATCH --output=%x-%j.out\n");
    if (request->program->resume_options != NULL)
        fr_buffer_puts(out, "#SBATCH --requeue\n"
                            "#SBATCH --signal=USR1@300\n"
                            "#SBATCH --open-mode=append\n");
    if (minutes > 0)
        fr_buffer_printf(out, "#SBATCH --time=%lld\n", (long long)minutes);
}

static void put_environment(const fr_export_request *request, fr_buffer *out)
{
    fr_export_put_exports(request, out);
    fr_buffer_puts(out, "MASTER_ADDR=$(scontrol show hostnames "
                        "\"$SLURM_JOB_NODELIST\" | head -n 1)\n"
                        "export MASTER_ADDR\n"
                        "export MASTER_PORT=29500\n");
    if (fr_export_has_hosts(request))
        fr_buffer_puts(out, "hosts=$(scontrol show hostnames "
                            "\"$SLURM_JOB_NODELIST\" | paste -sd , -)\n");
}

/* What saves when it is asked to stop ends with 75, and is started again. */
static void put_end(const fr_exporter *program, fr_buffer *out)
{
    if (program->resume_options == NULL)
        fr_buffer_putc(out, '\n');
    else
        fr_buffer_printf(
            out,
            " %s || code=$?\n"
            "# 75: asked to stop, by Slurm before the time is over "
            "or the node goes, and saved.\n"
            "if [ \"$code\" = 75 ]; then\n"
            "    scontrol requeue \"$SLURM_JOB_ID\"\n"
            "fi\n"
            "exit \"$code\"\n",
            program->resume_options);
}

static fr_status write_script(const fr_export_request *request,
                              fr_export_files *out, fr_err *err)
{
    const fr_exporter *program = request->program;
    FR_TRY(fr_export_check_even(request, "Slurm", err));
    fr_export_file *file = fr_export_add(out, "job.sbatch", true);
    if (file == NULL)
        return fr_fail_no_memory(err);
    fr_buffer *text = &file->text;
    fr_buffer_puts(text, "#!/bin/bash\n");
    put_directives(request, text);
    fr_export_put_header(request, program->target, "# ", text);
    if (fr_export_minutes(request) > 0)
        fr_buffer_puts(text, "# --time: twice what is predicted, and half an "
                             "hour\n");
    fr_buffer_puts(text, "set -euo pipefail\n\n"
                         "cd \"$SLURM_SUBMIT_DIR\"\n");
    put_environment(request, text);
    if (program->resume_options != NULL)
        fr_buffer_puts(text, "code=0\n");
    fr_buffer_printf(text, "srun --kill-on-bad-exit=1 %s",
                     program->start == FR_START_MPI && !request->has_gpus
                         ? "--mpi=pmix "
                         : "");
    FR_TRY(fr_export_put_task(
        request,
        (fr_export_peers){.torchrun = " --rdzv_backend c10d --rdzv_id "
                                      "\"$SLURM_JOB_ID\" --rdzv_endpoint "
                                      "\"$MASTER_ADDR:$MASTER_PORT\"",
                          .program = " --hosts \"$hosts\""},
        text, err));
    put_end(program, text);
    return fr_buffer_check(text, err);
}

const fr_exporter fr_exporter_slurm = {
    .name = "slurm",
    .summary = "a batch script for sbatch",
    .write = write_script,
};

const fr_exporter fr_exporter_forerun_slurm = {
    .name = "forerun-slurm",
    .summary = "the same for forerun's own runtime",
    .program = &fr_exporter_forerun,
    .write = write_script,
};
