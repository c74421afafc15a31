/*
 * export_kubernetes.c: manifests for Kubernetes, each with the program's files
 * in a ConfigMap: a JobSet (jobset.x-k8s.io/v1alpha2, of
 * kubernetes-sigs/jobset) and, of what torchrun starts, a PyTorchJob
 * (kubeflow.org/v1, of Kubeflow's training operator).
 */
#include "frameworks/write/export_job.h"
#include "interop/export/export_list.h"
#include "spec/catalog/catalog.h"

#include <stdio.h>
#include <string.h>

enum { PORT = 29500 };

/* The names of devices by the device plugin of each vendor: NVIDIA's
 * k8s-device-plugin, ROCm's, and that of GKE ("TPUs in GKE"). */
static const char *const resources[] = {
    [FR_VENDOR_NVIDIA] = "nvidia.com/gpu",
    [FR_VENDOR_AMD] = "amd.com/gpu",
    [FR_VENDOR_GOOGLE] = "google.com/tpu",
};

static fr_vendor vendor_of(const fr_export_request *request)
{
    return request->cluster != NULL
               ? fr_catalog_vendor(fr_cluster_device(request->cluster, 0))
               : FR_VENDOR_NVIDIA;
}

/* Says how a run that is longer than the deadline continues. */
static void put_limit(const fr_export_request *request, fr_buffer *out)
{
    const int64_t n = fr_export_submissions(request);
    if (n > 1)
        fr_buffer_printf(out,
                         "# The run takes about %lld deadlines: create it "
                         "again after each, over a persistent folder.\n",
                         (long long)n);
    if (fr_export_has_checkpoints(request))
        fr_buffer_puts(out, "# Mount a persistent volume where the "
                            "checkpoints go.\n");
}

/* Lists the values that the user fills in. */
static void put_open_ends(const fr_export_request *request, fr_buffer *out)
{
    const fr_exporter *program = request->program;
    fr_buffer_puts(out, "# Set IMAGE first: an image with the program in its "
                        "working folder,\n# which the files here are copied "
                        "to.\n");
    for (int i = 0; program->settings[i].name != NULL; i++)
        fr_buffer_printf(out, "# Set the value of %s: %s.\n",
                         program->settings[i].name,
                         program->settings[i].meaning);
    if (request->has_gpus && vendor_of(request) == FR_VENDOR_GOOGLE)
        fr_buffer_puts(out, "# Add the nodeSelector of the slice: "
                            "cloud.google.com/gke-tpu-accelerator,\n"
                            "# cloud.google.com/gke-tpu-topology.\n");
}

/* The files of the program, and what stands in comments. */
static void begin(const fr_export_request *request,
                  const fr_export_files *program_files, const char *name,
                  fr_buffer *out)
{
    fr_export_put_header(request, request->program->target, "# ", out);
    put_open_ends(request, out);
    put_limit(request, out);
    fr_buffer_printf(out,
                     "apiVersion: v1\nkind: ConfigMap\nmetadata:\n"
                     "  name: %s-files\ndata:\n",
                     name);
    for (size_t i = 0; i < program_files->n; i++) {
        const fr_export_file *file = &program_files->items[i];
        fr_buffer_printf(out, "  %s: |\n", file->name);
        fr_export_put_indented(fr_buffer_text(&file->text), 4, out);
    }
    fr_buffer_puts(out, "---\n");
}

static void put_environment(const fr_export_request *request, fr_buffer *out)
{
    fr_export_variable variables[FR_EXPORT_VARIABLES_MAX];
    int n_variables = fr_export_environment(request, variables);
    const fr_export_setting *settings = request->program->settings;
    if (n_variables > 0 || settings[0].name != NULL)
        fr_buffer_puts(out, "  env:\n");
    for (int i = 0; settings[i].name != NULL; i++)
        fr_buffer_printf(out, "  - name: %s\n    value: \"%s\"%s\n",
                         settings[i].name,
                         settings[i].value != NULL ? settings[i].value : "",
                         settings[i].value != NULL ? "" : " # to be set");
    for (int i = 0; i < n_variables; i++)
        fr_buffer_printf(out, "  - name: %s\n    value: \"%s\"\n",
                         variables[i].name, variables[i].value);
}

/* One container of a pod, with shared memory for the processes of a node. */
static fr_status put_pod(const fr_export_request *request, const char *name,
                         fr_export_peers peers, const char *before,
                         int n_indent, fr_buffer *out, fr_err *err)
{
    fr_buffer pod;
    fr_buffer_init(&pod);
    fr_buffer_puts(&pod, "containers:\n"
                         "- name: pytorch\n"
                         "  image: IMAGE\n"
                         "  command:\n"
                         "  - bash\n"
                         "  - -c\n"
                         "  - |\n"
                         "    set -euo pipefail\n"
                         "    cp /forerun/* .\n"
                         "    folder=$PWD\n");
    fr_buffer_puts(&pod, before);
    fr_buffer_puts(&pod, "    ");
    fr_status status = fr_export_put_task(request, peers, &pod, err);
    fr_buffer_puts(&pod, "\n");
    put_environment(request, &pod);
    fr_buffer_printf(&pod, "  ports:\n  - containerPort: %d\n", PORT);
    if (request->has_gpus)
        fr_buffer_printf(&pod,
                         "  resources:\n    limits:\n"
                         "      %s: %lld\n",
                         resources[vendor_of(request)],
                         (long long)request->n_ranks_per_node);
    fr_buffer_printf(&pod,
                     "  volumeMounts:\n"
                     "  - name: files\n    mountPath: /forerun\n"
                     "  - name: shared-memory\n    mountPath: /dev/shm\n"
                     "volumes:\n"
                     "- name: files\n  configMap:\n    name: %s-files\n"
                     "    defaultMode: 0755\n"
                     "- name: shared-memory\n  emptyDir:\n"
                     "    medium: Memory\n",
                     name);
    if (status == FR_OK)
        status = fr_buffer_check(&pod, err);
    if (status == FR_OK)
        fr_export_put_indented(fr_buffer_text(&pod), n_indent, out);
    fr_buffer_release(&pod);
    return status;
}

/* As a batch system's limit. */
static void put_deadline(const fr_export_request *request, int n_indent,
                         fr_buffer *out)
{
    const int64_t minutes = fr_export_minutes(request);
    if (minutes == 0)
        return;
    fr_buffer_fill(out, ' ', (size_t)n_indent);
    fr_buffer_printf(out, "activeDeadlineSeconds: %lld\n",
                     60 * (long long)minutes);
}

static fr_status write_jobset(const fr_export_request *request,
                              const fr_export_files *program_files,
                              const char *name, fr_buffer *out, fr_err *err)
{
    char before[512];
    int n_before = 0;
    begin(request, program_files, name, out);
    fr_buffer_printf(out,
                     "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n"
                     "metadata:\n  name: %s\nspec:\n"
                     "  replicatedJobs:\n  - name: workers\n    replicas: 1\n"
                     "    template:\n      spec:\n"
                     "        parallelism: %lld\n        completions: %lld\n"
                     "        completionMode: Indexed\n"
                     "        backoffLimit: 0\n",
                     name, (long long)request->n_nodes,
                     (long long)request->n_nodes);
    put_deadline(request, 8, out);
    fr_buffer_puts(out, "        template:\n          spec:\n"
                        "            restartPolicy: Never\n");
    n_before =
        snprintf(before, sizeof before,
                 "    export MASTER_ADDR=%s-workers-0-0.%s MASTER_PORT=%d\n",
                 name, name, PORT);
    if (fr_export_has_hosts(request))
        snprintf(before + n_before, sizeof before - (size_t)n_before,
                 "    hosts=$(seq -s , -f '%s-workers-0-%%.0f.%s' 0 %lld)\n",
                 name, name, (long long)request->n_nodes - 1);
    return put_pod(
        request, name,
        (fr_export_peers){
            .torchrun = " --node_rank \"$JOB_COMPLETION_INDEX\" --master_addr "
                        "\"$MASTER_ADDR\" --master_port \"$MASTER_PORT\"",
            .program = " --hosts \"$hosts\" --node \"$JOB_COMPLETION_INDEX\""},
        before, 12, out, err);
}

static fr_status put_replicas(const fr_export_request *request,
                              const char *name, const char *role,
                              int64_t n_replicas, fr_buffer *out, fr_err *err)
{
    fr_buffer_printf(out,
                     "    %s:\n      replicas: %lld\n"
                     "      restartPolicy: Never\n      template:\n"
                     "        spec:\n",
                     role, (long long)n_replicas);
    return put_pod(
        request, name,
        (fr_export_peers){.torchrun =
                              " --node_rank \"$PET_NODE_RANK\" --master_addr "
                              "\"$PET_MASTER_ADDR\" --master_port "
                              "\"$PET_MASTER_PORT\""},
        "", 10, out, err);
}

static fr_status write_pytorchjob(const fr_export_request *request,
                                  const fr_export_files *program_files,
                                  const char *name, fr_buffer *out, fr_err *err)
{
    begin(request, program_files, name, out);
    fr_buffer_printf(out,
                     "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\n"
                     "metadata:\n  name: %s\nspec:\n"
                     "  nprocPerNode: \"%lld\"\n",
                     name, (long long)request->n_ranks_per_node);
    if (fr_export_minutes(request) > 0)
        fr_buffer_puts(out, "  runPolicy:\n");
    put_deadline(request, 4, out);
    fr_buffer_puts(out, "  pytorchReplicaSpecs:\n");
    FR_TRY(put_replicas(request, name, "Master", 1, out, err));
    if (request->n_nodes == 1)
        return FR_OK;
    return put_replicas(request, name, "Worker", request->n_nodes - 1, out,
                        err);
}

static fr_status write_manifests(const fr_export_request *request,
                                 fr_export_files *out, fr_err *err)
{
    const fr_exporter *program = request->program;
    const fr_export_files program_files = *out;
    char name[64];
    fr_export_file jobset = {.name = "jobset.yaml"};
    fr_export_file pytorchjob = {.name = "pytorchjob.yaml"};
    if (program->start == FR_START_MPI)
        return fr_fail(err, FR_INFEASIBLE,
                       "a JobSet starts one process on each node, %s wants one "
                       "for each rank; take slurm or mpirun",
                       fr_exporter_name_of(program));
    FR_TRY(fr_export_check_even(request, "a JobSet", err));
    fr_export_job_name(request, name, sizeof name);
    fr_buffer_init(&jobset.text);
    fr_buffer_init(&pytorchjob.text);
    fr_status status =
        write_jobset(request, &program_files, name, &jobset.text, err);
    if (status == FR_OK && program->start == FR_START_TORCHRUN)
        status = write_pytorchjob(request, &program_files, name,
                                  &pytorchjob.text, err);
    if (status == FR_OK)
        status = fr_export_take(out, &jobset, err);
    if (status == FR_OK && pytorchjob.text.n > 0)
        status = fr_export_take(out, &pytorchjob, err);
    fr_buffer_release(&jobset.text);
    fr_buffer_release(&pytorchjob.text);
    return status;
}

const fr_exporter fr_exporter_kubernetes = {
    .name = "kubernetes",
    .summary = "a JobSet and a PyTorchJob",
    .limit_word = "activeDeadlineSeconds",
    .devices_word = "resources",
    .write = write_manifests,
};
