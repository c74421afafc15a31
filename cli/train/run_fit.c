/* run_fit.c: see run_fit.h. */
#include "cli/train/run_fit.h"

#include "cli/train/gpu_ranks.h"
#include "runtime/backend/gpu_driver.h"
#include "runtime/launch/launch.h"

bool fr_run_is_for_other_devices(const fr_request *request,
                                 const fr_plan_file *file)
{
    fr_cluster cluster;
    fr_err unused;
    if (file->cluster[0] == '\0' ||
        fr_cluster_load(fr_request_configs(request), file->cluster, &cluster,
                        &unused) != FR_OK)
        return false;
    bool is_gpu = fr_cluster_is_all_gpu(&cluster);
    fr_cluster_release(&cluster);
    return is_gpu != fr_request_is_on_gpu(request);
}

/* Are all ranks of the run on this machine?  Ranks of our own supervisor answer
 * as it does. */
static bool is_local(const fr_request *request, const fr_launch *launch,
                     int64_t world)
{
    int64_t n_local = 0;
    if (launch->role == FR_LAUNCH_RANK && !fr_launch_is_supervised())
        return launch->world == 1 ||
               (fr_launch_number("OMPI_COMM_WORLD_LOCAL_SIZE", 1, INT32_MAX,
                                 &n_local) &&
                n_local == launch->world);
    return world == 1 || !fr_request_has(request, FR_OPT_HOSTFILE);
}

/* 0: there is no GPU to ask. */
static uint64_t gpu_memory_bytes(void)
{
    const fr_gpu_system *system = NULL;
    fr_gpu_properties properties = {0};
    fr_gpu *gpu = NULL;
    fr_err unused;
    if (fr_gpu_system_cuda(&system, &unused) != FR_OK ||
        system->driver->open(system->context, 0, &gpu, &unused) != FR_OK)
        return 0;
    if (system->driver->properties(gpu, &properties, &unused) != FR_OK)
        properties.memory_bytes = 0;
    system->driver->close(gpu);
    return properties.memory_bytes;
}

fr_status fr_run_fit_check(const fr_request *request, const fr_plan_file *file,
                           fr_fit_advice *out, fr_err *err)
{
    fr_launch launch;
    const int64_t world = fr_plan_world(&file->plan);
    fr_fit_place place = {.cluster = file->cluster};
    fr_launch_detect(&launch);
    const bool is_here = is_local(request, &launch, world);
    if (is_here && fr_request_is_on_gpu(request)) {
        place.ask_memory_bytes = gpu_memory_bytes;
    } else if (is_here) {
        place.cluster = "this-machine";
        place.ranks_per_node = world;
    }
    if (place.cluster == file->cluster &&
        fr_run_is_for_other_devices(request, file)) {
        *out = (fr_fit_advice){0};
        return FR_OK; /* it is predicted for none of these devices */
    }
    return fr_fit_answer_check_file(request, file, &place, out, err);
}

fr_status fr_run_fit_begin(const fr_request *request, const fr_plan_file *file,
                           fr_err *err)
{
    fr_launch launch;
    fr_fit_advice fit;
    fr_launch_detect(&launch);
    if (fr_launch_is_supervised() ||
        (launch.role == FR_LAUNCH_BYSTANDER && !fr_request_is_on_gpu(request)))
        return FR_OK;
    const bool is_first = launch.role == FR_LAUNCH_STANDALONE ||
                          (launch.role == FR_LAUNCH_RANK && launch.rank == 0);
    const fr_status status = fr_run_fit_check(request, file, &fit, err);
    if (!is_first) {
        if (status != FR_OK && err != NULL)
            err->text[0] = '\0';
        return status;
    }
    if (status != FR_OK)
        return status;
    if (fit.verdict[0] != '\0')
        fr_request_note(request, "%s; started because of --force", fit.verdict);
    else if (!fr_run_is_for_other_devices(request, file))
        return fr_fit_answer_warn(request, file, err);
    return FR_OK;
}
