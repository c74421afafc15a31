/*
 * gpu_ranks.h: commands whose work is done by one rank per GPU, started by us
 * (mpirun), mpirun, srun or torchrun.
 */
#ifndef FR_CLI_TRAIN_GPU_RANKS_H
#define FR_CLI_TRAIN_GPU_RANKS_H

#include "cli/cli.h"

/* --backend cuda? */
bool fr_request_is_on_gpu(const fr_request *request);

/*
 * As fr_supervised(): calls `work` in each rank.  FR_FAILURE: there is no GPU;
 * FR_INFEASIBLE: this machine has fewer of them than ranks.
 */
FR_CHECKED fr_status fr_supervised_gpus(
    const fr_cli *cli, int64_t world, int n_threads,
    fr_status (*work)(const fr_cli *cli, int64_t n_ranks, fr_err *err),
    fr_err *err);

/* Before NCCL is started: it leaves the topology that it finds beside
 * `output`, as nccl-topology.xml for `import nccl`, unless the user has set
 * NCCL_TOPO_DUMP_FILE. */
FR_CHECKED fr_status fr_nccl_topology_ask(const char *output, fr_err *err);
/* Returns the file that NCCL left; NULL: none. */
const char *fr_nccl_topology(void);

#endif
