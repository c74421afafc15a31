/*
 * gpu_comm.h: what communication costs on a cluster of GPUs: measured groups
 * of a profile first, else NCCL's model over the fabric of the nodes.
 */
#ifndef FR_COST_MODELS_LINK_GPU_COMM_H
#define FR_COST_MODELS_LINK_GPU_COMM_H

#include "cost_models/base/cost.h"
#include "cost_models/link/comm_fit.h"
#include "cost_models/link/nccl_model.h"

typedef struct fr_gpu_comm_model fr_gpu_comm_model;

/* Borrows the cluster and the fits (may be NULL); destroy takes NULL. */
FR_CHECKED fr_status fr_gpu_comm_create(const fr_cluster *cluster,
                                        const fr_comm_fits *fits,
                                        fr_gpu_comm_model **out, fr_err *err);
void fr_gpu_comm_destroy(fr_gpu_comm_model *comm);

/* Sets the share of the GPUs' multiprocessors that communication was measured
 * to take, in (0, 1); 0: the share of NCCL's model. */
void fr_gpu_comm_set_cores(fr_gpu_comm_model *comm, double cores);

/* Finds the choice of NCCL's model for a collective or a transfer and its
 * expected time, regardless of measurements; FR_INPUT as fr_cost_communicate()
 * and fr_gpu_comm_check(). */
FR_CHECKED fr_status fr_gpu_comm_choice(const fr_gpu_comm_model *comm,
                                        const fr_instr *instr,
                                        const fr_comm_scope *scope,
                                        fr_nccl_time *out, fr_err *err);

/*
 * Whether GPUs can be told to take an algorithm at all: NCCL has it, and their
 * switches add where it is NVLS.  FR_INPUT with those that they can take.
 * (Where NCCL has an algorithm, but not for a group of this shape, it takes
 * another, and so does its model.)
 */
FR_CHECKED fr_status fr_gpu_comm_check(const fr_gpu_comm_model *comm,
                                       fr_collective_kind kind, fr_err *err);

/* As fr_cost_communicate(), for groups of 2 and more. */
FR_CHECKED fr_status fr_gpu_comm_cost(const fr_gpu_comm_model *comm,
                                      const fr_instr *instr,
                                      const fr_comm_scope *scope, fr_cost *out,
                                      fr_err *err);

#endif
