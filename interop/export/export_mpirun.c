/*
 * export_mpirun.c: a shell script around Open MPI's mpirun (man mpirun), with
 * the hosts from a hostfile.
 */
#include "interop/export/export_list.h"

/* The hostfile, named as it is seen from where the script was called. */
static void put_hosts(const fr_export_request *request, fr_buffer *out)
{
    fr_buffer_puts(out, "first_host=$(awk '!/^[[:space:]]*(#|$)/ "
                        "{ print $1; exit }' \"$hostfile\")\n");
    if (fr_export_has_hosts(request))
        fr_buffer_printf(out,
                         "hosts=$(awk '!/^[[:space:]]*(#|$)/ && !seen[$1]++ "
                         "&& n++ < %lld {\n"
                         "    names = names comma $1; comma = \",\" }\n"
                         "    END { print names }' \"$hostfile\")\n",
                         (long long)request->n_nodes);
}

/* So many on each node, or as many as the hostfile has slots for. */
static void put_processes(const fr_export_request *request, fr_buffer *out)
{
    int64_t per_node = fr_export_tasks_per_node(request);
    int64_t n = per_node > 0 ? per_node * request->n_nodes
                             : fr_plan_world(&request->file->plan);
    if (per_node == 0)
        fr_buffer_printf(out,
                         "# %lld nodes with %lld to %lld ranks: slots=N of the "
                         "hostfile says how many.\n",
                         (long long)request->n_nodes,
                         (long long)request->least_ranks,
                         (long long)request->most_ranks);
    if (request->n_nodes > 1)
        fr_buffer_puts(out, "# Each node has this folder under the same path; "
                            "--wdir: Open MPI ends where one\n"
                            "# has not (man mpirun, \"Current Working "
                            "Directory\").\n");
    fr_buffer_printf(out, "mpirun -np %lld", (long long)n);
    if (request->n_nodes > 1)
        fr_buffer_printf(out, " --hostfile \"$hostfile\"");
    if (per_node > 0)
        fr_buffer_printf(out, " --map-by ppr:%lld:node --bind-to none",
                         (long long)per_node);
    else
        fr_buffer_puts(out, " --map-by slot --bind-to none");
    fr_buffer_puts(out, " --wdir \"$folder\"");
}

static fr_status write_script(const fr_export_request *request,
                              fr_export_files *out, fr_err *err)
{
    const fr_exporter *program = request->program;
    const size_t n_files = out->n;
    fr_export_variable variables[FR_EXPORT_VARIABLES_MAX];
    int n_variables = fr_export_environment(request, variables);
    /* One process on each node has to find the first. */
    bool has_rendezvous =
        program->start != FR_START_MPI && request->n_nodes > 1;
    fr_export_file *file = fr_export_add(out, "launch.sh", true);
    if (file == NULL)
        return fr_fail_no_memory(err);
    fr_buffer *text = &file->text;
    fr_buffer_puts(text, "#!/bin/bash\n");
    fr_export_put_header(request, program->target, "# ", text);
    fr_buffer_puts(text, "set -euo pipefail\n\n");
    if (request->n_nodes > 1)
        fr_buffer_puts(text, "hostfile=$(realpath -- \"${1:?a hostfile, a line "
                             "for each host}\")\nshift\n");
    fr_export_put_settings(program, text);
    fr_export_put_launcher_folder(out, n_files, "launch.sh", text);
    fr_export_put_defaults(program, text);
    if (has_rendezvous)
        put_hosts(request, text);
    put_processes(request, text);
    for (int i = 0; i < n_variables; i++)
        fr_export_put_variable(&variables[i], " \\\n    -x ", text);
    for (int i = 0; program->settings[i].name != NULL; i++)
        fr_buffer_printf(text, " \\\n    -x %s", program->settings[i].name);
    if (has_rendezvous && program->start == FR_START_NODE)
        fr_buffer_puts(text, " \\\n    -x MASTER_ADDR=\"$first_host\"");
    fr_buffer_puts(text, " \\\n    ");
    FR_TRY(fr_export_put_task(
        request,
        (fr_export_peers){.torchrun = " --rdzv_backend c10d --rdzv_id forerun "
                                      "--rdzv_endpoint \"$first_host:29500\"",
                          .program = " --hosts \"$hosts\""},
        text, err));
    fr_buffer_puts(text, " \"$@\"\n");
    return fr_buffer_check(text, err);
}

const fr_exporter fr_exporter_mpirun = {
    .name = "mpirun",
    .summary = "a shell script around mpirun",
    .write = write_script,
    .left = {[FR_EXPORT_TIME_LIMIT] = "no batch system starts this script"},
};
