/*
 * plan_kinds.h: the choices that a plan has no number for, and their names as
 * files, options and messages spell them.
 */
#ifndef FR_PLAN_DECIDE_PLAN_KINDS_H
#define FR_PLAN_DECIDE_PLAN_KINDS_H

#include "core/document/names.h"
#include "plan/codec/compressor_list.h"
#include "plan/collective/collective_list.h"
#include "plan/schedule/schedule_list.h"

typedef enum fr_recompute {
    FR_RECOMPUTE_NONE,
    FR_RECOMPUTE_SELECTIVE, /* attention probabilities are made again */
    FR_RECOMPUTE_FULL,      /* only each layer's input is kept */
    FR_RECOMPUTE_N
} fr_recompute;

/* The parts that selective recompute computes again; a mask. */
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

/* The fused attention kernel that runs. */
typedef enum fr_flash_kind {
    FR_FLASH_NATIVE, /* written for the device: cuDNN, FlashAttention-3 */
    FR_FLASH_2, /* FlashAttention-2, instructions of Ampere on any device */
    FR_FLASH_1,
    FR_FLASH_N
} fr_flash_kind;

/* The source of the scales of fp8 operands (Transformer Engine's recipes). */
typedef enum fr_scaling {
    FR_SCALING_DELAYED, /* a tensor's maximum of the steps before */
    FR_SCALING_CURRENT, /* its maximum, looked for first */
    FR_SCALING_BLOCK,   /* of each 32 along a product's k: MXFP8 */
    FR_SCALING_ROW,     /* of each row of an operand, which stays in 16 bits
                           until the product: torchao's rowwise */
    FR_SCALING_N
} fr_scaling;

/* The kernels with which a framework runs operations that are no matrix
 * products. */
typedef enum fr_kernel_set {
    FR_KERNELS_FUSED,    /* hand-written fused kernels (Megatron, Apex, TE) */
    FR_KERNELS_COMPILED, /* torch.compile: neighbours element by element fused
                          */
    FR_KERNELS_EAGER,    /* one kernel per operator of the framework */
    FR_KERNELS_OWN,      /* forerun's: what is run; else like FUSED */
    FR_KERNELS_N
} fr_kernel_set;

/*
 * The unit that a framework's compressor of gradients compresses, where it
 * consists of operators of the framework and not of a kernel of its own.
 *   BUCKET  a bucket, as PyTorch's hooks of DistributedDataParallel are; top-k
 *           is selected by many thread blocks (PyTorch since 1.12)
 *   TENSOR  each parameter by itself, as GRACE does over Horovod with
 *           TensorFlow 1.15 and PyTorch 1.7: one thread block selects the top-k
 *           of a tensor, and booleans are sent as they are, in bytes
 */
typedef enum fr_compress_unit {
    FR_COMPRESS_BUCKET,
    FR_COMPRESS_TENSOR,
    FR_COMPRESS_UNIT_N
} fr_compress_unit;

/* The way of tokens to their experts. */
typedef enum fr_dispatch_kind {
    FR_DISPATCH_ALL_TO_ALL, /* a copy for each expert */
    FR_DISPATCH_BY_NODE, /* one copy for each node, which hands it on to each of
                            its ranks once (DeepEP: DeepSeek-V3, arXiv
                            2412.19437, section 3.2.2) */
    FR_DISPATCH_N
} fr_dispatch_kind;

/* The way in which context-parallel ranks get each other's keys and values. */
typedef enum fr_cp_kind {
    FR_CP_RING, /* kv blocks go round beside attention (arXiv 2310.01889) */
    FR_CP_ALL_GATHER, /* kv gathered before attention */
    FR_CP_ALL_TO_ALL, /* heads for sequence (Ulysses, arXiv 2309.14509) */
    FR_CP_N
} fr_cp_kind;

/* The order in which axes change as the rank number grows. */
typedef enum fr_rank_order {
    FR_RANK_ORDER_TP_DP_PP, /* tp fastest, then dp, then pp */
    FR_RANK_ORDER_TP_PP_DP,
    FR_RANK_ORDER_DP_TP_PP,
    FR_RANK_ORDER_DP_PP_TP,
    FR_RANK_ORDER_PP_TP_DP,
    FR_RANK_ORDER_PP_DP_TP,
    FR_RANK_ORDER_N
} fr_rank_order;

/* NCCL's protocols to hand bytes on: with a flag next to every 4, next to every
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

/* Experts that a rank can route to. */
enum { FR_MOST_EXPERTS = 1024 };

/*
 * The place of parameter servers, and the processes that use them.
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
 * The unit that the host issues as one graph: nothing; the parts of a layer
 * whose shapes do not depend on the routing (Transformer Engine's
 * make_graphed_callables); the whole step.  GPUs only.
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

extern const fr_names fr_recompute_names;
extern const fr_names fr_recompute_part_names; /* of bits, not of masks */
extern const fr_names fr_rank_order_names;
extern const fr_names fr_protocol_names;
extern const fr_names fr_server_place_names;
extern const fr_names fr_cp_kind_names;
extern const fr_names fr_dispatch_names;
extern const fr_names fr_flash_kind_names;
extern const fr_names fr_kernel_set_names;
extern const fr_names fr_compress_unit_names;
extern const fr_names fr_scaling_names;
extern const fr_names fr_cuda_graphs_names;
extern const fr_names fr_zero_unit_names;

#endif
