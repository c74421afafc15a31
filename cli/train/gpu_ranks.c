/* gpu_ranks.c: who started the ranks, and have they all a GPU? */
#include "cli/train/gpu_ranks.h"

#include "cli/train/supervise.h"
#include "core/system/fileio.h"
#include "runtime/backend/gpu_driver.h"
#include "runtime/launch/rendezvous.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool fr_request_is_on_gpu(const fr_request *request)
{
    return fr_request_has(request, FR_OPT_BACKEND) &&
           strcmp(fr_name_of(&fr_backend_names,
                             request->option[FR_OPT_BACKEND].count),
                  "cuda") == 0;
}

/* Said before anything is started; hosts of a hostfile look for themselves. */
static fr_status check_gpus(const fr_request *request, int64_t world,
                            fr_err *err)
{
    const fr_gpu_system *system = NULL;
    int n = 0;

    FR_TRY(fr_gpu_system_cuda(&system, err));
    if (fr_request_text(request, FR_OPT_HOSTFILE) != NULL)
        return FR_OK;
    FR_TRY(system->driver->count(system->context, &n, err));
    if (n >= world || fr_request_on(request, FR_OPT_SHARE_GPU))
        return FR_OK;
    return fr_fail(err, FR_INFEASIBLE,
                   "%lld ranks are wanted, this machine has %d GPU%s; choose "
                   "fewer, start them on more hosts (--hostfile, srun, "
                   "torchrun), or give --share-gpu to test",
                   (long long)world, n, n == 1 ? "" : "s");
}

/* "rank 3: ...": of all that end with this error, who says it? */
static bool is_speaker(const fr_rendezvous *place, const fr_err *err)
{
    char own[32];
    (void)snprintf(own, sizeof own, "rank %lld:", (long long)place->rank);
    if (strncmp(err->text, "rank ", 5) == 0)
        return strncmp(err->text, own, strlen(own)) == 0;
    return place->rank == 0;
}

static const char topology_env[] = "NCCL_TOPO_DUMP_FILE";

fr_status fr_nccl_topology_ask(const char *output, fr_err *err)
{
    char dir[1024], path[1100];
    FR_TRY(fr_path_dir(output, dir, sizeof dir, err));
    (void)snprintf(path, sizeof path, "%s/nccl-topology.xml", dir);
    (void)setenv(topology_env, path, 0);
    return FR_OK;
}

const char *fr_nccl_topology(void)
{
    const char *path = getenv(topology_env);
    return path != NULL && fr_file_exists(path) ? path : NULL;
}

fr_status fr_supervised_gpus(const fr_cli *cli, int64_t world, int n_threads,
                             fr_status (*work)(const fr_cli *cli,
                                               int64_t n_ranks, fr_err *err),
                             fr_err *err)
{
    fr_rendezvous place;
    FR_TRY(fr_rendezvous_find(&place, err));
    if (place.by == FR_BOOTSTRAP_ALONE)
        FR_TRY(check_gpus(&cli->request, world, err));
    if (place.by == FR_BOOTSTRAP_ALONE || place.by == FR_BOOTSTRAP_MPI)
        return fr_supervised(cli, world, n_threads, work, err);
    fr_status status = fr_rendezvous_check(&place, world, err);
    if (status == FR_OK)
        status = work(cli, world, err);
    if (status != FR_OK && !is_speaker(&place, err))
        err->text[0] = '\0';
    return status;
}
