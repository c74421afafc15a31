/* export_slurm.c: a batch script for Slurm (man sbatch) that starts the
 * program on all nodes. */
#include "interop/export/export_list.h"

static void put_environment(const fr_export_request *request, fr_buffer *out)
{
    fr_export_variable variables[FR_EXPORT_VARIABLES_MAX];
    int n = fr_export_environment(request, variables);
    for (int i = 0; i < n; i++)
        fr_buffer_printf(out, "export %s=%s\n", variables[i].name,
                         variables[i].value);
}

static fr_status write_script(const fr_export_request *request,
                              fr_export_files *out, fr_err *err)
{
    const fr_exporter *program = request->program;
    fr_export_file *file = fr_export_add(out, "job.sbatch", true);
    if (file == NULL)
        return fr_fail_no_memory(err);
    fr_buffer *text = &file->text;
    fr_buffer_printf(text,
                     "#!/bin/bash\n#SBATCH --nodes=%lld\n"
                     "#SBATCH --ntasks-per-node=1\n"
                     "#SBATCH --gres=gpu:%lld\n#SBATCH --exclusive\n",
                     (long long)request->n_nodes,
                     (long long)request->n_devices_per_node);
    fr_export_put_header(request, program->target, "# ", text);
    fr_buffer_puts(text, "set -euo pipefail\n");
    put_environment(request, text);
    fr_buffer_printf(text,
                     "MASTER_ADDR=$(scontrol show hostnames "
                     "\"$SLURM_JOB_NODELIST\" | head -n 1)\n"
                     "export MASTER_ADDR\n"
                     "srun --kill-on-bad-exit=1 torchrun --nnodes %lld "
                     "--nproc-per-node %lld --rdzv-backend c10d "
                     "--rdzv-endpoint \"$MASTER_ADDR:29500\" ",
                     (long long)request->n_nodes,
                     (long long)request->n_devices_per_node);
    FR_TRY(program->put_command(request, text, err));
    fr_buffer_putc(text, '\n');
    return fr_buffer_check(text, err);
}

const fr_exporter fr_exporter_slurm = {
    .name = "slurm",
    .summary = "a batch script for sbatch",
    .write = write_script,
};
