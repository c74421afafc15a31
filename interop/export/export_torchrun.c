/*
 * export_torchrun.c: a shell script for one node, or for each node of several
 * (docs.pytorch.org, "torchrun").
 */
#include "interop/export/export_list.h"

static fr_status write_script(const fr_export_request *request,
                              fr_export_files *out, fr_err *err)
{
    const fr_exporter *program = request->program;
    const size_t n_files = out->n;
    fr_export_file *file = fr_export_add(out, "launch.sh", true);
    if (program->start != FR_START_TORCHRUN)
        return fr_fail(err, FR_INFEASIBLE,
                       "torchrun starts no %s; take slurm or mpirun",
                       fr_exporter_name_of(program));
    if (file == NULL)
        return fr_fail_no_memory(err);
    fr_buffer *text = &file->text;
    fr_buffer_puts(text, "#!/bin/bash\n");
    fr_export_put_header(request, program->target, "# ", text);
    if (request->n_nodes > 1)
        fr_buffer_printf(text,
                         "# Run it on each of %lld nodes: ./launch.sh NODE "
                         "FIRST_HOST [ARGUMENTS], NODE from 0.\n",
                         (long long)request->n_nodes);
    fr_buffer_puts(text, "set -euo pipefail\n\n");
    fr_export_put_settings(program, text);
    fr_export_put_launcher_folder(out, n_files, "launch.sh", text);
    fr_export_put_defaults(program, text);
    if (request->n_nodes > 1)
        fr_buffer_puts(text, "node=${1:?number of this node, from 0}\n"
                             "first_host=${2:?name of the first host}\n"
                             "shift 2\n");
    fr_export_put_exports(request, text);
    FR_TRY(fr_export_put_task(
        request,
        (fr_export_peers){.torchrun = " --node_rank \"$node\" --master_addr "
                                      "\"$first_host\" --master_port 29500"},
        text, err));
    fr_buffer_puts(text, " \"$@\"\n");
    return fr_buffer_check(text, err);
}

const fr_exporter fr_exporter_torchrun = {
    .name = "torchrun",
    .summary = "a shell script around torchrun",
    .write = write_script,
    .left = {[FR_EXPORT_TIME_LIMIT] = "no batch system starts this script"},
};
