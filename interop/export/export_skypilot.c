/*
 * export_skypilot.c: a task of SkyPilot (docs.skypilot.co, "Task YAML").
 */
#include "interop/export/export_list.h"

#include <string.h>

/* SkyPilot's names of GPUs (sky show-gpus), by those of the catalogue. */
static const struct accelerator {
    const char *device, *name;
} accelerators[] = {
    {"k80", "K80"},
    {"p100-pcie-16g", "P100"},
    {"p100-sxm2-16g", "P100"},
    {"v100-sxm2-16g", "V100"},
    {"v100-pcie-32g", "V100-32GB"},
    {"v100-sxm2-32g", "V100-32GB"},
    {"a100-pcie-40g", "A100"},
    {"a100-sxm-40g", "A100"},
    {"a100-pcie-80g", "A100-80GB"},
    {"a100-sxm-80g", "A100-80GB"},
    {"a10g", "A10G"},
    {"l40s", "L40S"},
    {"rtx-4090", "RTX4090"},
    {"h100-sxm", "H100"},
    {"h100-pcie", "H100"},
    {"h200-sxm", "H200"},
    {"b200-sxm", "B200"},
    /* Kubernetes has it by the labels of nodes: NVIDIA-GB200
     * (sky/provision/kubernetes/utils.py, GFDLabelFormatter). */
    {"gb200", "GB200"},
    {"gb300", "GB300"},
    {"mi300x", "MI300X"},
};

static const char *find_accelerator(const fr_cluster *cluster)
{
    const fr_node_type *node = fr_cluster_node_type(cluster, 0);
    const char *device = cluster->devices[node->i_device].id;
    for (size_t i = 0; i < FR_LENGTH(accelerators); i++)
        if (strcmp(accelerators[i].device, device) == 0)
            return accelerators[i].name;
    return NULL;
}

static void put_environment(const fr_export_request *request, fr_buffer *out)
{
    fr_export_variable variables[FR_EXPORT_VARIABLES_MAX];
    int n = fr_export_environment(request, variables);
    const fr_export_setting *settings = request->program->settings;
    if (n > 0 || settings[0].name != NULL)
        fr_buffer_puts(out, "envs:\n");
    /* SkyPilot refuses a null that the command line does not replace. */
    for (int i = 0; settings[i].name != NULL; i++)
        fr_buffer_printf(
            out, "  # --env %s=...: %s\n  %s: %s\n", settings[i].name,
            settings[i].meaning, settings[i].name,
            settings[i].value != NULL ? settings[i].value : "null");
    for (int i = 0; i < n; i++)
        fr_buffer_printf(out, "  %s: \"%s\"\n", variables[i].name,
                         variables[i].value);
}

/*
 * The files of the program stand in the task: a relative `workdir` would be
 * relative to where `sky` is called (docs.skypilot.co, "Task YAML"), whatever
 * lies there.  On the nodes, `run` begins in ~/sky_workdir.
 */
static void put_files(const fr_export_files *files, size_t n_files,
                      fr_buffer *out)
{
    for (size_t i = 0; i < n_files; i++) {
        const fr_export_file *file = &files->items[i];
        fr_buffer_printf(out, "  cat >%s <<'END_OF_FILE'\n", file->name);
        fr_export_put_indented(fr_buffer_text(&file->text), 2, out);
        fr_buffer_puts(out, "  END_OF_FILE\n");
        if (file->is_executable)
            fr_buffer_printf(out, "  chmod +x %s\n", file->name);
    }
    fr_buffer_puts(out, "  folder=$PWD\n");
}

static fr_status write_task(const fr_export_request *request,
                            fr_export_files *out, fr_err *err)
{
    const fr_exporter *program = request->program;
    const char *accelerator =
        request->cluster != NULL ? find_accelerator(request->cluster) : NULL;
    const size_t n_files = out->n;
    char name[64];
    FR_TRY(fr_export_check_even(request, "SkyPilot", err));
    fr_export_file *file = fr_export_add(out, "task.yaml", false);
    if (file == NULL)
        return fr_fail_no_memory(err);
    if (program->start == FR_START_MPI)
        return fr_fail(err, FR_INFEASIBLE,
                       "skypilot starts one process on each node, %s wants one "
                       "for each rank; take slurm or mpirun",
                       fr_exporter_name_of(program));
    if (accelerator == NULL)
        return fr_fail(err, FR_INFEASIBLE,
                       "skypilot has no name for the devices; give a cluster "
                       "of GPUs that it rents (sky show-gpus)");
    if (!request->is_one_device)
        return fr_fail(err, FR_INFEASIBLE,
                       "the nodes of a task of skypilot are all alike, those "
                       "of %.60s have several devices; take so many ranks as "
                       "fit those of one kind, or another launcher",
                       request->cluster->name);
    fr_buffer *text = &file->text;
    fr_export_put_header(request, program->target, "# ", text);
    fr_buffer_puts(text, "# It runs in ~/sky_workdir; sky launch --workdir "
                         "FOLDER brings your own files there.\n");
    fr_buffer_printf(text, "name: %s\nnum_nodes: %lld\n",
                     fr_export_job_name(request, name, sizeof name),
                     (long long)request->n_nodes);
    fr_buffer_printf(text, "resources:\n  accelerators: %s:%lld\n", accelerator,
                     (long long)request->n_ranks_per_node);
    put_environment(request, text);
    fr_buffer_puts(text, "run: |\n");
    put_files(out, n_files, text);
    fr_buffer_puts(text, "  export MASTER_PORT=29500\n"
                         "  MASTER_ADDR=$(echo \"$SKYPILOT_NODE_IPS\" | head "
                         "-n 1)\n  export MASTER_ADDR\n");
    if (fr_export_has_hosts(request))
        fr_buffer_puts(
            text, "  hosts=$(echo \"$SKYPILOT_NODE_IPS\" | paste -sd , -)\n");
    fr_buffer_puts(text, "  ");
    FR_TRY(fr_export_put_task(
        request,
        (fr_export_peers){
            .torchrun = " --node_rank \"$SKYPILOT_NODE_RANK\" "
                        "--master_addr \"$MASTER_ADDR\" --master_port "
                        "\"$MASTER_PORT\"",
            .program = " --hosts \"$hosts\" --node \"$SKYPILOT_NODE_RANK\""},
        text, err));
    fr_buffer_putc(text, '\n');
    return fr_buffer_check(text, err);
}

const fr_exporter fr_exporter_skypilot = {
    .name = "skypilot",
    .summary = "a task of SkyPilot",
    .write = write_task,
    .left = {[FR_EXPORT_TIME_LIMIT] = "a task of SkyPilot has none"},
};
