/*
 * cost.h: what one instruction costs on one machine: seconds when alone, and
 * what it takes of the resources that it may have to share.
 *
 * A measured profile wins over a fit, a fit over extrapolation, that over the
 * datasheet; every cost knows which it is and how far it may be off.
 */
#ifndef FR_COST_MODELS_BASE_COST_H
#define FR_COST_MODELS_BASE_COST_H

#include "core/base/err.h"
#include "plan/decide/plan.h"
#include "plan/op/op.h"
#include "spec/cluster/cluster.h"
#include "spec/profile/profile.h"

typedef enum fr_cost_source {
    FR_COST_MEASURED,     /* this very shape was timed */
    FR_COST_FITTED,       /* inside the range of a fit; GPUs: kernels of this
                             generation and dtype were measured */
    FR_COST_EXTRAPOLATED, /* outside of it */
    FR_COST_DATASHEET,    /* nothing was measured */
    FR_COST_SOURCE_N
} fr_cost_source;

const char *fr_cost_source_name(fr_cost_source source);

/*
 * Simulated as a flow of `work_s` seconds of work whose rate is at most 1 and
 * that, at rate 1, takes `cores` of its rank's cores and `memory_frac` of its
 * node's memory channels; it begins `latency_s` after its start.
 */
typedef struct fr_cost {
    double latency_s; /* fixed, takes no resource */
    double work_s;
    double cores;       /* per member for communication; of a GPU, which is
                           one core: the multiprocessors that NCCL's kernels
                           take from it */
    double memory_frac; /* of the node, 0..1 */
    double link_bytes;  /* communication: through the NIC of each member, each
                           direction, those of one node add up; 0 inside a
                           node */
    double port_bytes;  /* through each member's port into the fabric of its
                           node (NVLink, PCIe), each direction */
    double rel_err;     /* one standard error, relative */
    int n_kernels;      /* of compute on a GPU: that its host launches */
    fr_cost_source source;
} fr_cost;

/* The placement of the members of a group on nodes. */
typedef struct fr_comm_scope {
    int64_t n_group;
    int64_t n_nodes;       /* distinct nodes of the group */
    int64_t ranks_on_node; /* busy ranks of a node: who shares memory */
    uint32_t node_types;   /* of its nodes: bit i for cluster->node_types[i];
                              0: unknown, the slowest of the cluster.  Heard
                              for GPUs only */
} fr_comm_scope;

typedef struct fr_cost_model fr_cost_model;

/*
 * Borrows profile (may be NULL: datasheet of the cluster) and cluster for its
 * life; precomputes the fits.  Destroy takes NULL.
 */
FR_CHECKED fr_status fr_cost_model_create(const fr_profile *profile,
                                          const fr_cluster *cluster,
                                          fr_cost_model **out, fr_err *err);
void fr_cost_model_destroy(fr_cost_model *model);
/* As it was created with; NULL: none. */
const fr_profile *fr_cost_profile(const fr_cost_model *model);

/* Returns the prices of the cluster's GPUs; the model owns them. */
const struct fr_gpu_prices *fr_cost_gpu_prices(const fr_cost_model *model);
/* Returns the model that measured steps of the profile have conditioned
 * (stack/stack.h), NULL: the profile has none.  The cost model owns it. */
const struct fr_stack *fr_cost_stack(const fr_cost_model *model);
/* NCCL's side of a cluster of GPUs (gpu_comm.h), NULL of CPUs; the model's. */
const struct fr_gpu_comm_model *fr_cost_gpu_comm(const fr_cost_model *model);

/*
 * A what-if: factors of the times of the model, each 1 when the model is
 * created.  Index [0] is for transfers inside a node, [1] between nodes;
 * fr_cost says which part of a transfer is latency and which is bytes over a
 * rate.  Rates of GPUs are better changed in the cluster, where algorithms and
 * shared links follow them.
 */
typedef struct fr_cost_scale {
    double compute;
    double latency[2], transfer[2];
} fr_cost_scale;

extern const fr_cost_scale fr_cost_scale_none;
void fr_cost_model_scale(fr_cost_model *model, const fr_cost_scale *scale);

/* Returns the memory of a rank of a world of n_ranks beyond its slab: code,
 * libraries, MPI; 0 without a profile. */
uint64_t fr_cost_baseline_bytes(const fr_cost_model *model, int64_t n_ranks);

/* Flop/s of large matrix products on n_threads threads, as measured (of one
 * rank, else of as many ranks of one thread each); 0 without a profile. */
double fr_cost_measured_flops(const fr_cost_model *model, int n_threads);

/*
 * A compute or I/O instruction on n_threads threads of one rank of a node: the
 * profile's, else of the node's own device: CPUs by their roofline
 * (datasheet.h), GPUs by the model of their kernels (gpu_model.h).
 * FR_INFEASIBLE when the device cannot do it at all.
 */
FR_CHECKED fr_status fr_cost_compute(const fr_cost_model *model,
                                     const fr_instr *instr, int n_threads,
                                     int64_t node, fr_cost *out, fr_err *err);

/*
 * A collective or a point-to-point transfer (n_group = 2).  `is_async`: run
 * by the communication thread beside compute, else by the rank itself.
 * GPUs: a profile wins for the groups (op, members, nodes) that it measured
 * (comm_fit.h), the rest is NCCL's model (nccl_model.h); of an instruction
 * with FR_INSTR_GIVEN the algorithm is taken as it stands, else NCCL chooses.
 * FR_INPUT when GPUs of different nodes have no network, or cannot take that
 * algorithm (gpu_comm.h).
 */
FR_CHECKED fr_status fr_cost_communicate(const fr_cost_model *model,
                                         const fr_instr *instr,
                                         const fr_comm_scope *scope,
                                         bool is_async, fr_cost *out,
                                         fr_err *err);

#endif
