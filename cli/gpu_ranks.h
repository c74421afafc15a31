/*
 * gpu_ranks.h: commands whose work is done by one rank per GPU, started by us
 * (mpirun), mpirun, srun or torchrun.
 */
#ifndef FR_CLI_GPU_RANKS_H
#define FR_CLI_GPU_RANKS_H

#include "cli/command.h"

/* --backend cuda? */
bool fr_cli_is_on_gpu(const fr_cli *cli);

/*
 * As fr_supervised(): calls `work` in each rank.  FR_FAILURE: there is no GPU;
 * FR_INFEASIBLE: this machine has fewer of them than ranks.
 */
FR_CHECKED fr_status fr_supervised_gpus(
    const fr_cli *cli, int64_t world, int n_threads,
    fr_status (*work)(const fr_cli *cli, int64_t n_ranks, fr_err *err),
    fr_err *err);

#endif
