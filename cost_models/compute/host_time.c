/*
 * host_time.c: published times of frameworks' host code.
 *
 *   module    nn.Linear forward 13.48 us on a DGX H100 (Xeon 8480C):
 *             TransformerEngine issue 2053, 2025-08, which has others too:
 *             host_speed_frac
 *   operator  2 * x: 6.8 us with autograd's node, 5 us without, which is
 *             what the engine runs backward: pytorch issue 41383, 2020-07
 *   compiled  a Triton kernel in Inductor's wrapper 6.5 us:
 *             meta-pytorch/tritonbench pull request 1016, 2026-04
 *   fused     Megatron-Core's TEColumnParallelLinear, BF16, 115 us forward:
 *             TransformerEngine pull request 1191, 2024-09 (140 us before
 *             it, 74 us without Transformer Engine)
 *             a block of two grouped products over 64 experts 1.2 ms forward
 *             and 2.1 ms backward on a GB200's host: TransformerEngine issue
 *             2897, 2026-04
 */
#include "cost_models/compute/host_time.h"

#include "plan/decide/grid.h"

#include <math.h>

static const double module_s = 13.48e-6;
static const double operator_s = 6.8e-6, backward_operator_s = 5e-6;
static const double compiled_kernel_s = 6.5e-6;
static const double fused_module_s = 115e-6;
/* Backward against forward: 2.1 ms / 1.2 ms. */
static const double fused_backward = 1.75;
/* The time of one product for one expert is 0.6 ms over 2.6 (GB200's
 * host_speed_frac) without the module's own time, shared by 64. */
static const double fused_expert_s = 1.8e-6;

/* The default bandwidth of a socket is that of four channels of DDR4-2133, the
 * slowest of servers with GPUs (Intel, Xeon E5-2600 v3 and v4: 68.3 and 76.8
 * GB/s). */
static const double socket_memory_Bps = 68.3e9;
/* That long arrays are taken to reach of it. */
static const double memory_share = 0.75;

double fr_host_memory_Bps(const fr_node_type *node)
{
    double Bps = node->host_memory_Bps;
    if (Bps <= 0.0)
        Bps = socket_memory_Bps * fmax(1.0, (double)node->n_sockets);
    return memory_share * Bps;
}

typedef enum host_kind {
    HOST_OPERATOR,
    HOST_PRODUCT,
    HOST_GROUPED,
    HOST_ATTENTION,
    HOST_ROUTED, /* work that depends on the router's choices */
    HOST_COMMUNICATION,
    HOST_UPDATE,
    HOST_NOTHING
} host_kind;

static host_kind kind_of(const fr_instr *instr)
{
    switch ((fr_op)instr->op) {
    case FR_OP_LINEAR_FWD:
    case FR_OP_LINEAR_DGRAD:
    case FR_OP_LINEAR_WGRAD:
        return HOST_PRODUCT;
    case FR_OP_GROUPED_FWD:
    case FR_OP_GROUPED_DGRAD:
    case FR_OP_GROUPED_WGRAD:
        return HOST_GROUPED;
    case FR_OP_ATTN_FWD:
    case FR_OP_ATTN_BWD:
        return HOST_ATTENTION;
    case FR_OP_PERMUTE:
    case FR_OP_UNPERMUTE:
        return HOST_ROUTED;
    case FR_OP_OPT_NORMS:
    case FR_OP_OPT_STEP:
    case FR_OP_GRAD_SQSUM:
    case FR_OP_CLIP:
        return HOST_UPDATE;
    default:
        break;
    }
    switch (fr_op_class_of((fr_op)instr->op)) {
    case FR_OP_CLASS_COLLECTIVE:
        return instr->axis == FR_AXIS_EP ? HOST_ROUTED : HOST_COMMUNICATION;
    case FR_OP_CLASS_P2P:
        return HOST_COMMUNICATION;
    case FR_OP_CLASS_IO:
        return HOST_NOTHING;
    case FR_OP_CLASS_COMPUTE:
        break;
    }
    return HOST_OPERATOR;
}

static bool is_backward(const fr_instr *instr)
{
    switch ((fr_op)instr->op) {
    case FR_OP_EMBED_BWD:
    case FR_OP_NORM_BWD:
    case FR_OP_HEAD_NORM_BWD:
    case FR_OP_LINEAR_DGRAD:
    case FR_OP_LINEAR_WGRAD:
    case FR_OP_GROUPED_DGRAD:
    case FR_OP_GROUPED_WGRAD:
    case FR_OP_BIAS_GRAD:
    case FR_OP_ROPE_BWD:
    case FR_OP_ATTN_BWD:
    case FR_OP_GELU_BWD:
    case FR_OP_SWIGLU_BWD:
    case FR_OP_ROUTER_BWD:
    case FR_OP_LAYER_BWD:
    case FR_OP_DROPOUT_BWD:
        return true;
    default:
        return false;
    }
}

/* A graph replays what it holds; one of a layer ends where the routing
 * decides on shapes. */
static bool is_in_graph(const fr_plan *plan, host_kind kind)
{
    /* forerun's own runtime launches a step as one graph. */
    if (plan->execution.kernels == FR_KERNELS_OWN)
        return true;
    if (plan->execution.cuda_graphs == FR_CUDA_GRAPHS_LAYER)
        return kind != HOST_GROUPED && kind != HOST_ROUTED &&
               kind != HOST_UPDATE;
    return plan->execution.cuda_graphs == FR_CUDA_GRAPHS_FULL;
}

/* One module of Transformer Engine; backward a product is half of one. */
static double fused_s(const fr_instr *instr, host_kind kind)
{
    double n_experts =
        (double)(instr->linear.n_groups > 0 ? instr->linear.n_groups : 1);
    double seconds = fused_module_s;
    if (kind == HOST_GROUPED)
        seconds += n_experts * fused_expert_s;
    if (!is_backward(instr))
        return seconds;
    return seconds * fused_backward * (kind == HOST_ATTENTION ? 1.0 : 0.5);
}

/* For each member, one operator after the other: where parameters are gathered
 * a view of its part, where gradients are scattered a view of the whole and one
 * of its part (DeepSpeed 0.3.13's _allgather_param, _reduce_scatter_gradient in
 * runtime/zero/partition_parameters.py); then, in ProcessGroupNCCL's
 * collectives of lists, its row of a flat tensor and a copy from or to that. */
static double list_s(const fr_plan *plan, const fr_instr *instr)
{
    int64_t n = fr_plan_group_size(plan, (fr_axis)instr->axis);
    double n_operators = instr->op == FR_OP_REDUCE_SCATTER ? 4.0 : 3.0;
    return module_s + n_operators * (double)n * backward_operator_s;
}

double fr_host_issue_s(const fr_plan *plan, const fr_instr *instr,
                       int n_kernels)
{
    host_kind kind = kind_of(instr);
    bool is_module =
        kind == HOST_PRODUCT || kind == HOST_GROUPED || kind == HOST_ATTENTION;

    if (kind == HOST_NOTHING || n_kernels == 0 || is_in_graph(plan, kind))
        return 0.0;
    if (is_module && plan->execution.kernels == FR_KERNELS_FUSED)
        return fused_s(instr, kind);
    if ((instr->flags & FR_INSTR_LISTED) != 0)
        return list_s(plan, instr);
    if (kind == HOST_COMMUNICATION)
        return module_s;
    if (plan->execution.kernels == FR_KERNELS_COMPILED)
        return n_kernels * compiled_kernel_s;
    if (is_backward(instr))
        return n_kernels * backward_operator_s;
    return (is_module ? module_s - operator_s : 0.0) + n_kernels * operator_s;
}

bool fr_host_is_held(const fr_plan *plan, const fr_instr *instr)
{
    /* The host waits for the number of tokens of each expert: Megatron-Core's
     * token_dispatcher.py copies tokens_per_expert to the host, as do others
     * that drop no token. */
    if (plan->execution.cuda_graphs == FR_CUDA_GRAPHS_FULL)
        return false;
    if (instr->op == FR_OP_ROUTER_FWD || (instr->flags & FR_INSTR_HELD) != 0)
        return true;
    /* The norm: total_norm.item() (Megatron-Core's clip_grads.py). */
    return instr->op == FR_OP_CLIP &&
           plan->execution.kernels == FR_KERNELS_FUSED;
}
