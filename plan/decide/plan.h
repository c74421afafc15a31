/*
 * plan.h: every decision about how a job is laid out over ranks, and nothing
 * that follows from them (that is the program, see lower.h).
 */
#ifndef FR_PLAN_DECIDE_PLAN_H
#define FR_PLAN_DECIDE_PLAN_H

#include "core/base/err.h"
#include "plan/codec/compressor_list.h"
#include "plan/collective/collective_list.h"
#include "plan/decide/axis.h"
#include "plan/decide/dtype.h"
#include "plan/schedule/schedule_list.h"
#include "spec/model/job.h"
#include "spec/model/model.h"

typedef enum fr_recompute {
    FR_RECOMPUTE_NONE,
    FR_RECOMPUTE_SELECTIVE, /* attention probabilities are made again */
    FR_RECOMPUTE_FULL,      /* only each layer's input is kept */
    FR_RECOMPUTE_N
} fr_recompute;

/* What selective recompute makes again; a mask. */
enum {
    FR_RECOMPUTE_PART_ATTENTION = 1 << 0, /* scores and probabilities */
    FR_RECOMPUTE_PART_NORM = 1 << 1,
    FR_RECOMPUTE_PART_ACTIVATION = 1 << 2, /* of MLPs and experts */
    FR_RECOMPUTE_PART_MLP = 1 << 3,        /* all of a dense MLP */
    FR_RECOMPUTE_PART_EXPERTS = 1 << 4,    /* all of a MoE layer */
    FR_RECOMPUTE_PART_PRODUCTS = 1 << 5,   /* every second matrix product, and
                                              all that is no product */
    FR_RECOMPUTE_PART_LATENT = 1 << 6, /* heads of latent attention, from their
                                          latents */
    FR_RECOMPUTE_PARTS_ALL = (1 << 7) - 1
};

/* Which fused attention kernel runs. */
typedef enum fr_flash_kind {
    FR_FLASH_NATIVE, /* written for the device: cuDNN, FlashAttention-3 */
    FR_FLASH_2, /* FlashAttention-2, instructions of Ampere on any device */
    FR_FLASH_1,
    FR_FLASH_N
} fr_flash_kind;

/* Where the scales of fp8 operands come from (Transformer Engine's recipes). */
typedef enum fr_scaling {
    FR_SCALING_DELAYED, /* a tensor's maximum of the steps before */
    FR_SCALING_CURRENT, /* its maximum, looked for first */
    FR_SCALING_BLOCK,   /* of each 32 along a product's k: MXFP8 */
    FR_SCALING_N
} fr_scaling;

/* How a framework runs what is no matrix product. */
typedef enum fr_kernel_set {
    FR_KERNELS_FUSED,    /* hand-written fused kernels (Megatron, Apex, TE) */
    FR_KERNELS_COMPILED, /* torch.compile: neighbours element by element fused
                          */
    FR_KERNELS_EAGER,    /* one kernel per operator of the framework */
    FR_KERNELS_OWN,      /* forerun's: what is run; else like FUSED */
    FR_KERNELS_N
} fr_kernel_set;

/* How tokens get to their experts. */
typedef enum fr_dispatch_kind {
    FR_DISPATCH_ALL_TO_ALL, /* a copy for each expert */
    FR_DISPATCH_BY_NODE, /* one copy for each node, which hands it on (DeepEP:
                            DeepSeek-V3, arXiv 2412.19437, section 3.2.2) */
    FR_DISPATCH_N
} fr_dispatch_kind;

/* How context-parallel ranks see each other's keys and values. */
typedef enum fr_cp_kind {
    FR_CP_RING, /* kv blocks go round beside attention (arXiv 2310.01889) */
    FR_CP_ALL_GATHER, /* kv gathered before attention */
    FR_CP_ALL_TO_ALL, /* heads for sequence (Ulysses, arXiv 2309.14509) */
    FR_CP_N
} fr_cp_kind;

/* Which axis changes fastest as the rank number grows. */
typedef enum fr_rank_order {
    FR_RANK_ORDER_TP_DP_PP, /* tp fastest, then dp, then pp */
    FR_RANK_ORDER_TP_PP_DP,
    FR_RANK_ORDER_DP_TP_PP,
    FR_RANK_ORDER_DP_PP_TP,
    FR_RANK_ORDER_PP_TP_DP,
    FR_RANK_ORDER_PP_DP_TP,
    FR_RANK_ORDER_N
} fr_rank_order;

/* How NCCL's kernels hand bytes on: with a flag beside every 4, beside every
 * 120, or by slices and counters (nccl_model.h).  AUTO: NCCL chooses. */
typedef enum fr_protocol {
    FR_PROTOCOL_AUTO,
    FR_PROTOCOL_LL,
    FR_PROTOCOL_LL128,
    FR_PROTOCOL_SIMPLE,
    FR_PROTOCOL_N
} fr_protocol;

/* NCCL's MAXCHANNELS (src/include/device.h, NCCL 2.28). */
enum { FR_MAX_CHANNELS = 64 };

/*
 * Where parameter servers sit, and who talks to them.
 *   HOST    processes on the nodes' processors.  The members of a node copy
 *           their gradients over PCIe to its memory, where they are added; the
 *           nodes' sums go to the servers, and the result all the way back
 *           (tf_cnn_benchmarks' parameter_server with the CPU as parameter
 *           device on one node, distributed_replicated on several)
 *   WORKER  the same processes, but nobody adds for the node: each member
 *           pushes and pulls all by itself (a worker process per GPU,
 *           TensorFlow's own SyncReplicas)
 *   DEVICE  the members serve each other, each a part of the parameters
 *           (tf_cnn_benchmarks with a GPU as parameter device, and replicated
 *           without NCCL)
 */
typedef enum fr_server_place {
    FR_SERVER_HOST,
    FR_SERVER_WORKER,
    FR_SERVER_DEVICE,
    FR_SERVER_N
} fr_server_place;

/*
 * What the host issues as one: nothing; what a layer's shapes do not depend on
 * the routing for (Transformer Engine's make_graphed_callables); the whole
 * step.  GPUs only.
 */
typedef enum fr_cuda_graphs {
    FR_CUDA_GRAPHS_NONE,
    FR_CUDA_GRAPHS_LAYER,
    FR_CUDA_GRAPHS_FULL,
    FR_CUDA_GRAPHS_N
} fr_cuda_graphs;

/*
 * ZeRO 3: what one gather brings.  A layer as FSDP wraps it, or each parameter
 * by itself as DeepSpeed did until 2022: as a list of tensors, one from each
 * rank, and the host waits before each layer for what it has asked for.
 */
typedef enum fr_zero_unit {
    FR_ZERO_UNIT_LAYER,
    FR_ZERO_UNIT_PARAMETER,
    FR_ZERO_UNIT_N
} fr_zero_unit;

#define FR_PLAN_MAX_STAGES 512 /* pp * vpp */

typedef struct fr_plan {
    int32_t tp, pp, dp, cp, ep;
    int32_t vpp;         /* model chunks per pipeline rank, 1: plain */
    int64_t micro_batch; /* sequences */
    fr_schedule_kind schedule;
    int32_t zero_stage; /* 0 to 3; 2 and 3 reduce by layer, after every
                           micro-batch without a pipeline, once with one */
    int32_t zero_group; /* ranks that share one copy; 0: all of dp x cp */
    bool is_resharded;  /* ZeRO 3: gathered weights are dropped after forward */
    int32_t n_prefetch; /* ZeRO 3: layers gathered ahead of their use */
    fr_zero_unit zero_unit;
    fr_recompute recompute;
    uint32_t recompute_parts; /* of SELECTIVE */
    int32_t recompute_layers; /* FULL: of each chunk, from its first; 0: all */
    bool is_flash;            /* fused attention: no probabilities in memory */
    fr_flash_kind flash_kind;
    fr_kernel_set kernels;
    fr_scaling scaling; /* FUSED and fp8 */
    fr_cuda_graphs cuda_graphs;
    bool is_loss_fused; /* one kernel from logits of 16 bits to the loss, one
                           back; else in float32 as the kernel set does it */
    int32_t n_loss_metrics;   /* cross entropies that are made of the logits for
                                 display, besides the loss; 0 to 64 */
    bool is_grad_added_apart; /* FUSED: products write gradients of weights,
                                 another kernel adds them to what is there */
    bool is_sequence_parallel;
    bool is_overlap;        /* gradient reduction beside backward */
    bool is_gather_overlap; /* ZeRO 1, 2: parameters gathered beside forward,
                               but at the end of the step where the CPU
                               runtime can train it */
    bool is_tp_overlap;     /* TP collectives in pieces beside products */
    bool is_ep_overlap;     /* a backward and the forward after it run layer by
                               layer in turn, so that experts' all-to-all of one
                               goes beside the passes of the other */
    fr_cp_kind cp_kind;
    int32_t etp; /* ranks that split one expert; 0: tp */
    fr_dispatch_kind expert_dispatch;
    double expert_imbalance;     /* busiest rank's tokens over the mean, >= 1 */
    bool is_optimizer_offloaded; /* state and step on the host */
    double activation_offload_frac; /* of what forward keeps, 0..1 */
    uint64_t bucket_bytes; /* of gradients, ZeRO 0 and 1; 0: one bucket */
    fr_compressor_kind compressor;
    int64_t compressor_rank;       /* PowerSGD */
    double compressor_density;     /* top-k: kept share of the elements */
    bool has_error_feedback;       /* INT8, TOPK, POWERSGD; else ignored */
    fr_collective_kind collective; /* of gradient reduction */
    fr_protocol protocol;          /* GPUs: NCCL's, of the same collectives */
    int32_t n_channels;            /* the same; 0: NCCL's choice */
    fr_server_place server_place;  /* PARAMETER_SERVER */
    int32_t n_servers; /* nodes (DEVICE: members) that serve; 0: all */
    fr_rank_order rank_order;
    fr_dtype precision; /* of matrix products; below 16 bits the rest is bf16 */
    fr_dtype grad_dtype; /* in which gradients add up and are reduced */
    int32_t n_threads;   /* compute threads per rank */
    /* Layers per stage (virtual stages in model order); n_split == 0: even,
     * the remainder on the first stages. */
    int32_t n_split;
    int32_t layer_split[FR_PLAN_MAX_STAGES];
} fr_plan;

/* One rank, every axis 1, no recompute, fp32, bucket 25 MB, overlap. */
void fr_plan_init(fr_plan *plan);

int64_t fr_plan_world(const fr_plan *plan); /* tp*pp*dp*cp */
/* dtype of parameters and activations: that of the precision, at least bf16;
 * f32 for tf32. */
fr_dtype fr_plan_storage_dtype(const fr_plan *plan);
/* Is there a float32 master copy beside the parameters? */
bool fr_plan_has_master(const fr_plan *plan);
/* Micro-batches per data-parallel rank and step; 0 if it does not divide. */
int64_t fr_plan_micro_batches(const fr_plan *plan, const fr_job *job);

/*
 * Is this a legal plan for the model and job?  FR_INPUT with the reason and
 * the mend in err ("heads 12 % tp 5 != 0; choose tp from 1,2,3,4,6,12").
 */
FR_CHECKED fr_status fr_plan_check(const fr_plan *plan, const fr_model *model,
                                   const fr_job *job, fr_err *err);

/* Is there a lowering for it?  What simulation can say: FR_INPUT names what it
 * cannot. */
FR_CHECKED fr_status fr_plan_check_lowerable(const fr_plan *plan,
                                             const fr_model *model,
                                             const fr_job *job, fr_err *err);

/* Can the CPU runtime train it?  A plan that only simulation knows (experts,
 * context parallel, ZeRO 2/3, half precision ...) is FR_INPUT. */
FR_CHECKED fr_status fr_plan_check_executable(const fr_plan *plan,
                                              const fr_model *model,
                                              const fr_job *job, fr_err *err);
/* Can the runtime on GPUs?  It knows tf32 and bf16 too, and activations that
 * wait on the host; the table of its kernels has the last word. */
FR_CHECKED fr_status fr_plan_check_executable_gpu(const fr_plan *plan,
                                                  const fr_model *model,
                                                  const fr_job *job,
                                                  fr_err *err);

/* Does lowering make just the runtime's instructions?  Plans for the CPU, and
 * plans for GPUs with FR_KERNELS_OWN. */
bool fr_plan_is_executable(const fr_plan *plan, const fr_model *model,
                           const fr_job *job);

/* Layers of stage i (virtual stages in model order: chunk * pp + pp rank). */
int32_t fr_plan_stage_layers(const fr_plan *plan, const fr_model *model,
                             int32_t i_stage);

/* "dp2 tp1 pp2 mb4 1f1b zero1": stable, unique, short; returns buf. */
char *fr_plan_describe(const fr_plan *plan, char *buf, size_t n_buf);

const char *fr_recompute_name(fr_recompute recompute);
const char *fr_rank_order_name(fr_rank_order order);
const char *fr_protocol_name(fr_protocol protocol);
const char *fr_server_place_name(fr_server_place place);
const char *fr_cp_kind_name(fr_cp_kind kind);
const char *fr_dispatch_kind_name(fr_dispatch_kind kind);
const char *fr_flash_kind_name(fr_flash_kind kind);
const char *fr_kernel_set_name(fr_kernel_set kernels);
const char *fr_scaling_name(fr_scaling scaling);
const char *fr_cuda_graphs_name(fr_cuda_graphs graphs);
const char *fr_zero_unit_name(fr_zero_unit unit);
/* -1 when the name is unknown. */
int fr_recompute_find(const char *name);
int fr_rank_order_find(const char *name);
int fr_protocol_find(const char *name);
int fr_server_place_find(const char *name);
int fr_cp_kind_find(const char *name);
int fr_dispatch_kind_find(const char *name);
int fr_flash_kind_find(const char *name);
int fr_kernel_set_find(const char *name);
int fr_scaling_find(const char *name);
int fr_cuda_graphs_find(const char *name);
int fr_zero_unit_find(const char *name);

/* Coordinates of a rank on TP, CP, DP, PP, and back (grid.c).  cp changes
 * right after tp in every order. */
typedef struct fr_coord {
    int32_t tp, cp, dp, pp;
} fr_coord;

fr_coord fr_plan_coord(const fr_plan *plan, int64_t rank);
int64_t fr_plan_rank(const fr_plan *plan, fr_coord coord);

/* Ranks of a group of the axis; EMBED: of one that has an end. */
int64_t fr_plan_group_size(const fr_plan *plan, fr_axis axis);

/* Does every group of the axis lie on one node?  node_of_rank NULL: yes.
 * O(ranks). */
bool fr_plan_axis_is_local(const fr_plan *plan, fr_axis axis,
                           const int32_t *node_of_rank);

/*
 * The group of `rank` on `axis`, in coordinate order; returns its size and
 * writes the ranks to `ranks` (room for the world) and the position of
 * `rank` in it (may be NULL).  EMBED: first and last stage, size 1 elsewhere.
 * ETP, EP, EDP: see fr_axis.  MODEL: tp fastest.  WORLD: rank order.
 */
int64_t fr_plan_group(const fr_plan *plan, int64_t rank, fr_axis axis,
                      int64_t *ranks, int64_t *position);

#endif
