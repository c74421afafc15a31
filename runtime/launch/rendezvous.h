/*
 * rendezvous.h: how the ranks of a GPU run find each other: what the launcher
 * left in the environment, and the transport that follows from it.
 *
 *   torchrun   RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT     sockets
 *   mpirun     OMPI_COMM_WORLD_*, PMI_*                       MPI; sockets
 *                                                             without it
 *   srun       SLURM_PROCID, SLURM_STEP_NUM_TASKS and a       sockets
 *              node list, whose first host is rank 0's
 *
 * FORERUN_BOOTSTRAP=mpi or tcp chooses, MASTER_ADDR and MASTER_PORT are
 * honoured everywhere.  Unlike the CPU's runs (launch.h), every process of
 * torchrun is a rank.
 */
#ifndef FR_RUNTIME_LAUNCH_RENDEZVOUS_H
#define FR_RUNTIME_LAUNCH_RENDEZVOUS_H

#include "runtime/comm/transport.h"

typedef enum fr_bootstrap {
    FR_BOOTSTRAP_ALONE, /* nobody launched this process */
    FR_BOOTSTRAP_MPI,
    FR_BOOTSTRAP_TCP
} fr_bootstrap;

typedef struct fr_rendezvous {
    fr_bootstrap by;
    const char *launcher; /* "torchrun", "mpirun", "srun", "none" */
    int64_t rank, world;  /* 0 of 1 when alone */
    char address[256];    /* of rank 0; sockets only */
    int port;
} fr_rendezvous;

/* FR_INPUT: the environment names no place to meet, or contradicts itself. */
FR_CHECKED fr_status fr_rendezvous_find(fr_rendezvous *out, fr_err *err);

/* Were as many ranks launched as the plan has?  Else FR_INPUT. */
FR_CHECKED fr_status fr_rendezvous_check(const fr_rendezvous *place,
                                         int64_t world, fr_err *err);

/* Joins `world` ranks, which must be as many as were launched. */
FR_CHECKED fr_status fr_rendezvous_join(const fr_rendezvous *place,
                                        int64_t world, double timeout_s,
                                        fr_transport **out, fr_err *err);

/* The first host of a list as Slurm writes it: "gpu[07-09,12],login" is
 * "gpu07".  false: it does not fit, or there is none. */
bool fr_rendezvous_first_host(const char *list, char *out, size_t n);

#endif
