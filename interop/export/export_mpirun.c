/*
 * export_mpirun.c: a shell script around Open MPI's mpirun (man mpirun), with
 * the hosts from a hostfile.
 */
#include "interop/export/export_list.h"

static fr_status write_script(const fr_export_request *request,
                              fr_export_files *out, fr_err *err)
{
    const fr_exporter *program = request->program;
    fr_export_variable variables[FR_EXPORT_VARIABLES_MAX];
    int n_variables = fr_export_environment(request, variables);
    int64_t per_node = fr_export_tasks_per_node(request);
    /* One process on each node has to find the first. */
    bool has_rendezvous =
        program->start != FR_START_MPI && request->n_nodes > 1;
    fr_export_file *file = fr_export_add(out, "launch.sh", true);
    if (file == NULL)
        return fr_fail_no_memory(err);
    fr_buffer *text = &file->text;
    fr_buffer_puts(text, "#!/bin/bash\n");
    fr_export_put_header(request, program->target, "# ", text);
    fr_buffer_puts(text, "set -euo pipefail\n\ncd \"$(dirname \"$0\")\"\n");
    if (request->n_nodes > 1)
        fr_buffer_puts(text, "hosts=${1:?a hostfile, a line for each host}\n");
    if (has_rendezvous)
        fr_buffer_puts(text, "first_host=$(awk '!/^[[:space:]]*(#|$)/ "
                             "{ print $1; exit }' \"$hosts\")\n");
    fr_buffer_printf(text, "mpirun -np %lld",
                     (long long)(request->n_nodes * per_node));
    if (request->n_nodes > 1)
        fr_buffer_printf(text, " --hostfile \"$hosts\"");
    fr_buffer_printf(text, " --map-by ppr:%lld:node --bind-to none",
                     (long long)per_node);
    for (int i = 0; i < n_variables; i++)
        fr_export_put_variable(&variables[i], " \\\n    -x ", text);
    if (has_rendezvous && program->start == FR_START_NODE)
        fr_buffer_puts(text, " \\\n    -x MASTER_ADDR=\"$first_host\"");
    fr_buffer_puts(text, " \\\n    ");
    FR_TRY(fr_export_put_task(request,
                              " --rdzv_backend c10d --rdzv_id forerun "
                              "--rdzv_endpoint \"$first_host:29500\"",
                              text, err));
    fr_buffer_putc(text, '\n');
    return fr_buffer_check(text, err);
}

const fr_exporter fr_exporter_mpirun = {
    .name = "mpirun",
    .summary = "a shell script around mpirun",
    .write = write_script,
};
