/*
 * op.h: the vocabulary of a program: operations, instructions, operands.
 *
 * An operation is described once, here and in the table of op.c; the runtime
 * has a kernel for each, calibration times those kernels, the cost models look
 * them up by (op, dtype, flags, dim) and the simulator replays them.  All
 * tensors are dense and row-major; `rows` are tokens of one micro-batch on
 * this rank, in [sequence][position] order.
 */
#ifndef FR_PLAN_IR_OP_H
#define FR_PLAN_IR_OP_H

#include <stdbool.h>
#include <stdint.h>

typedef enum fr_dtype {
    FR_DTYPE_F32,
    FR_DTYPE_BF16,
    FR_DTYPE_F16,
    FR_DTYPE_TF32,
    FR_DTYPE_FP8,
    FR_DTYPE_FP4, /* two elements in a byte, block scales apart */
    FR_DTYPE_F64,
    FR_DTYPE_I32,
    FR_DTYPE_U8,
    FR_DTYPE_N
} fr_dtype;

/* Bytes of one element in memory (TF32 is stored as four bytes, FP4 counts
 * as one: only operands that are packed for one product have it). */
uint64_t fr_dtype_bytes(fr_dtype dtype);
/* In what the result of a product of this dtype is stored: BF16 below 16
 * bits, F32 for TF32, else the dtype itself. */
fr_dtype fr_dtype_storage(fr_dtype dtype);
const char *fr_dtype_name(fr_dtype dtype);

/*
 * Axes of the process grid.  The group of a rank on an axis is the ordered
 * list of ranks that differ from it in that coordinate only; MODEL varies tp
 * and pp (all ranks that hold one replica), WORLD is everyone, EMBED is the
 * first and the last pipeline stage (tied embedding).
 *
 * DP holds all ranks with the same dense parameters: dp and cp vary, cp
 * fastest.  ZeRO may share a copy among fewer: DP is then cut into blocks of
 * zero_group neighbours (SHARD), REPLICA joins the same place of all blocks.
 * Experts lie on a grid of their own over the ranks of a stage in the order
 * tp, cp, dp: etp ranks split an expert (ETP), ep ranks share the experts
 * (EP), the rest hold the same experts (EDP).
 */
typedef enum fr_axis {
    FR_AXIS_NONE,
    FR_AXIS_TP,
    FR_AXIS_CP,
    FR_AXIS_EP,
    FR_AXIS_DP,
    FR_AXIS_PP,
    FR_AXIS_EMBED,
    FR_AXIS_MODEL,
    FR_AXIS_WORLD,
    FR_AXIS_SHARD,
    FR_AXIS_REPLICA,
    FR_AXIS_ETP,
    FR_AXIS_EDP,
    FR_AXIS_N
} fr_axis;

const char *fr_axis_name(fr_axis axis);

/*
 * Lanes of a rank: each executes its calls in program order; different lanes
 * overlap.  COMPUTE is the rank's main thread (or main stream), the others
 * are driven by its communication thread (or streams of their own).
 */
typedef enum fr_lane {
    FR_LANE_COMPUTE,
    FR_LANE_DP,      /* gradient reduction, parameter gather */
    FR_LANE_PP_SEND, /* activations and gradients to the neighbour stages */
    FR_LANE_PP_RECV,
    FR_LANE_IO,     /* data loading, checkpoints, offload */
    FR_LANE_GATHER, /* parameters gathered ahead of their use */
    FR_LANE_TP,     /* collectives of a layer that run beside its products */
    FR_LANE_EP,     /* tokens to experts and back, beside another micro-batch */
    FR_LANE_N
} fr_lane;

const char *fr_lane_name(fr_lane lane);

/*
 * Base registers: an operand is its call's base of that space plus an offset.
 * So one segment serves every layer and micro-batch.
 */
typedef enum fr_space {
    FR_SPACE_NONE,      /* no operand */
    FR_SPACE_WEIGHT,    /* parameters of the layer */
    FR_SPACE_GRAD,      /* their gradients, same layout */
    FR_SPACE_OPT,       /* optimizer state */
    FR_SPACE_IN,        /* activation that comes in, or what is sent; backward:
                           the gradient, which a layer updates in place */
    FR_SPACE_OUT,       /* activation that goes out, or what is received; head:
                           the gradient that it makes */
    FR_SPACE_INPUT,     /* backward only: the saved activation that came in */
    FR_SPACE_SAVED,     /* what forward keeps for backward */
    FR_SPACE_TEMP,      /* scratch, dead after the call */
    FR_SPACE_TOKENS,    /* int32 tokens[rows], then int32 targets[rows] */
    FR_SPACE_STEP,      /* fr_step_scalars of the rank */
    FR_SPACE_WIRE,      /* compressed gradients: own and gathered payloads;
                           from one part of a backward in two to the other */
    FR_SPACE_ERROR,     /* error feedback and other compressor state */
    FR_SPACE_LOW,       /* a layer's weights in the dtype of its products */
    FR_SPACE_PIECE_IN,  /* a piece of an activation that is sent on ... */
    FR_SPACE_PIECE_OUT, /* ... and one that arrives */
    FR_SPACE_CARRY,     /* what the calls of one layer hand to each other: parts
                           of a ring; forward to the second part of backward */
    FR_SPACE_N
} fr_space;

const char *fr_space_name(fr_space space);

typedef struct fr_ref {
    uint8_t space;      /* fr_space; NONE: the operand is absent */
    uint8_t is_sharded; /* 1: add coordinate(instr.axis) * instr.shard_bytes;
                           k: that divided by 2^(k-1) */
    uint8_t reuse_log2; /* log2 of the bytes that its rank touches between
                           the operand's previous use and this one: what a
                           cache must hold to still have it; 0: unknown
                           (fr_program_mark_reuse) */
    uint64_t offset_bytes;
} fr_ref;

/*
 * Scalars of one rank and step, at the start of space STEP.  Everything is
 * double so that sums over ranks keep their digits.
 */
typedef struct fr_step_scalars {
    double loss_sum;    /* mean-scaled loss of this rank's tokens */
    double grad_sq_sum; /* squared gradient norm */
    double clip_factor; /* min(1, max_norm / norm) */
    double grad_norm;
} fr_step_scalars;

/*
 * The list: symbol, name, class, operand access ("r" read, "w" written, "m"
 * read and written; position = fr_instr.ref index).  Dimensions and operands
 * of each are given here once, everything else refers to this table.
 *
 * R = rows.  [..] shapes; ? = may be NONE.  Elements have the instruction's
 * dtype, except: statistics, lse, sums and rowmax are F32, tokens I32, masks
 * U8; gradients of parameters (those added to in space GRAD, and what the
 * optimizer reads) have instr.grad_dtype; LINEAR_* and GROUPED_* multiply
 * operands of `dtype`, their results and biases have its storage dtype.
 *
 * EMBED_FWD    dim R,C,V_local,T,V      axis TP: vocab shard = coordinate
 *              ref tokens, wte[V_local,C], wpe?[T..,C], out[R,C]
 *              out = wte[token] (0 when not in this shard) + wpe[pos] (added
 *              on coordinate 0 only, so that the sum over TP has it once)
 * EMBED_BWD    same dims; ref tokens, dout[R,C], dwte[V_local,C](+=),
 *              dwpe?(+=, every coordinate the same)
 * NORM_FWD     dim R,C; scalar eps; flag RMS
 *              ref x[R,C], w[C], b?[C], y[R,C], stats[2,R] (mean, rstd)
 * NORM_BWD     dim R,C; flags RMS, ACCUMULATE (dx += instead of =)
 *              ref dy, x, w, stats, dx, dw(+=), db?(+=)
 * LINEAR_FWD   dim M,N,K: y[M,N] = x[M,K] * w[N,K]^T (+ bias[N])
 *              ref x, w, bias?, y
 * LINEAR_DGRAD dim M,N,K: dx[M,K] (+)= dy[M,N] * w[N,K]; flag ACCUMULATE
 *              ref dy, w, dx
 * LINEAR_WGRAD dim M,N,K: dw[N,K] += dy[M,N]^T * x[M,K]; dbias[N] += colsum
 *              ref dy, x, dw, dbias?
 * BIAS_GRAD    dim R,C: db[C] += colsum(dy)      ref dy, db
 * ROPE_FWD     dim R,T,n_q,n_kv,head_dim; scalar theta; in place on the q and
 *              k parts of qkv[R,(n_q+2 n_kv)*head_dim]; position = row % T;
 *              pairs (i, i+head_dim/2) as in Hugging Face    ref qkv
 * ROPE_BWD     the inverse rotation                          ref dqkv
 * ATTN_FWD     causal; dim B,T,n_q,n_kv,head_dim; qkv row = q heads, then k
 *              heads, then v heads.  flag SAVE_PROBS: probs[B,n_q,T,T] kept
 *              for backward, else only lse[B,n_q,T]
 *              ref qkv, o[R,n_q*head_dim], probs_or_lse, temp (NONE: the
 *              CPU kernels work in tiles on the stack)
 * ATTN_BWD     ref do, qkv, o, probs_or_lse, dqkv, temp (NONE)
 * GELU_FWD     dim n (tanh form)    ref x, y
 * GELU_BWD     ref dy, x, dx
 * SWIGLU_FWD   dim R,F: y[R,F] = silu(h[:, :F]) * h[:, F:]     ref h[R,2F], y
 * SWIGLU_BWD   ref dy[R,F], h, dh[R,2F]
 * RESIDUAL_ADD dim R,C: out = a + b (+ bias[C])      ref a, b, bias?, out
 * XENT         fused softmax cross entropy: dim R,V_local,V; scalar 1/global
 *              tokens; logits become their gradients; loss_sum += scaled loss
 *              ref logits, tokens, step
 * XENT_MAX     axis TP; dim R,V_local,V; ref logits(r), tokens, rowmax[R](w)
 * XENT_SUM     ref logits(r), tokens, rowmax[R], sums[2,R](w): sum of
 *              exp(l-max), and l[target] if the target is in this shard
 * XENT_GRAD    ref logits(m), tokens, rowmax, sums, step; loss_sum is
 *              added on coordinate 0 only
 * ZERO         dim n_bytes                          ref dst
 * COPY         dim n_bytes                          ref src, dst
 * ADD          dim n: dst += src                    ref src, dst
 * LOAD_TOKENS  dim B,T: fills TOKENS with micro-batch call.micro_batch of
 *              this step                            ref tokens
 * GRAD_SQSUM   dim n, first: grad_sq_sum += squares of g[n], element `first`
 *              of the rank's parameter list onward (tensor table); scalar:
 *              weight of the sum (0: 1), where ranks hold copies; tensors
 *              replicated over TP count on coordinate 0 only, tied copies
 *              once                                 ref g, step
 * CLIP         scalar max_norm (<= 0: factor 1); grad_norm, clip_factor from
 *              grad_sq_sum                          ref step
 * OPT_NORMS    LARS/LAMB: dim n, first: partial ||w||^2 and ||update||^2 per
 *              tensor that meets [first, first+n) into norms[2*n_tensors]
 *              (F64, +=); also advances the moments
 *              ref g, w, opt, step, norms
 * OPT_STEP     dim n, first: update of the range by job's optimizer
 *              ref g, w, opt, step, norms?
 * COMPRESS     dim n, payload bytes, stage, first, state bytes, n_payloads;
 * DECOMPRESS   compressor of the plan, see compressor.h
 *              ref g, state?, payload    and   ref payloads, state?, g
 *
 * Collectives (class COLLECTIVE), over the group of `axis`, `algorithm` an
 * index of the table in collective.h, flag MAX: maximum instead of sum:
 * ALL_REDUCE     dim n                    ref src, dst (same ref: in place)
 *                (parameter servers: dim n, servers, place)
 * REDUCE_SCATTER dim n (total)            ref src[n], dst[n/group]
 * ALL_GATHER     dim n (total)            ref src[n/group], dst[n]
 * ALL_TO_ALL     dim n (total); scalar: share of what goes to other nodes
 *                that is sent, 0: all of it            ref src[n], dst[n]
 * BROADCAST      dim n, root              ref src, dst
 * BARRIER
 * In place scatter and gather: src (dst) sharded inside the other one.
 *
 * Point to point (class P2P); peer = coordinate on `axis`, tag must match:
 * SEND           dim n                    ref src
 * RECV           dim n                    ref dst
 * The tag of an execution is instr.tag + call.micro_batch: unique per (stage
 * boundary, direction, micro-batch) of a step.
 *
 * Simulated only (no CPU kernel yet; FR_OP_PLANNED_LIST):
 * CAST           dim n; dtype: that of dst, scalar bytes of a src element;
 *                flag TRANSPOSE: the transpose too (fp8 operands of the three
 *                products)                            ref src, dst, dst_t?
 * ROUTER_FWD     dim R,E,k: softmax over R x E, the k best, their weights
 *                ref logits, chosen[R,k] (weight F32, expert I32)
 * ROUTER_BWD     ref dchosen, dlogits
 * PERMUTE        dim R_in,R_out,C: rows to the order of their experts
 * UNPERMUTE      dim R_in,R_out,C: back, weighted sums of the copies
 *                ref src, dst
 * GROUPED_FWD, GROUPED_DGRAD, GROUPED_WGRAD
 *                dim M,N,K,G: as LINEAR_*, M rows over G experts of N x K
 *                ref as LINEAR_*
 * LAYER_FWD      an entry of a list of layers: dim bytes moved, bytes kept,
 * LAYER_BWD      bytes of ref 0, bytes of ref 2; scalar flop
 *                ref in, kept, out; dout, kept, din
 * HOST_COPY      dim n_bytes, 1: to the host, 0: back (lane IO)  ref buffer
 * DROPOUT_ADD    dim R,C: out = a (+ bias[C]) with elements dropped, + b
 *                ref a, b?, bias?, out, mask
 * DROPOUT_BWD    dim R,C                              ref dy, mask, dx
 * ATTN_MERGE     dim R,n_q,head_dim of v: o and lse of some keys into those
 *                of others (context parallel)          ref o, lse, acc, acc_lse
 * ELEMENTWISE    kernels of a framework that fuses less than the operations
 *                above do, beside them: dim bytes moved, kernels, bytes of
 *                ref 0, bytes of ref 1; no kernels: ref 1 is ref 0 in a
 *                framework                             ref x?, scratch?
 * SHIFT          collective: every member sends n elements to the next
 *                coordinate and has those of the one before; dim n
 *                ref src, dst
 *
 * Attention besides: dim[5] head_dim of v (0: head_dim), dim[6] rows of k and
 * v per sequence (0: T), dim[7] window (0: none); flag NONCAUSAL.  Causal with
 * dim[6] > T: T of the dim[6] rows, spread so that each rank has its share of
 * the pairs.  Without SAVE_PROBS it is one fused kernel, with it products and
 * softmax apart; they then compute all pairs and say NONCAUSAL (the CPU's own,
 * in F32, does not).  With SAVE_PROBS and DROPOUT the kept operand holds
 * probabilities, a mask and the dropped probabilities; the temp, if there,
 * the scores [B,n_q,T,T].
 *
 * Operands may be the same memory where a kernel goes element by element:
 * RESIDUAL_ADD out = a or b, GELU_BWD dx = dy.  Optimizer ranges: dim n,
 * first, opt bytes, norms bytes; `first` counts from coordinate 0, a sharded g
 * begins coordinate * shard_bytes / 4 elements later (opt is never sharded).
 */
#define FR_OP_LIST(X)                                                          \
    X(EMBED_FWD, "embed_fwd", COMPUTE, "rrrw")                                 \
    X(EMBED_BWD, "embed_bwd", COMPUTE, "rrmm")                                 \
    X(NORM_FWD, "norm_fwd", COMPUTE, "rrrww")                                  \
    X(NORM_BWD, "norm_bwd", COMPUTE, "rrrrwmm")                                \
    X(LINEAR_FWD, "linear_fwd", COMPUTE, "rrrw")                               \
    X(LINEAR_DGRAD, "linear_dgrad", COMPUTE, "rrw")                            \
    X(LINEAR_WGRAD, "linear_wgrad", COMPUTE, "rrmm")                           \
    X(BIAS_GRAD, "bias_grad", COMPUTE, "rm")                                   \
    X(ROPE_FWD, "rope_fwd", COMPUTE, "m")                                      \
    X(ROPE_BWD, "rope_bwd", COMPUTE, "m")                                      \
    X(ATTN_FWD, "attn_fwd", COMPUTE, "rwww")                                   \
    X(ATTN_BWD, "attn_bwd", COMPUTE, "rrrrww")                                 \
    X(GELU_FWD, "gelu_fwd", COMPUTE, "rw")                                     \
    X(GELU_BWD, "gelu_bwd", COMPUTE, "rrw")                                    \
    X(SWIGLU_FWD, "swiglu_fwd", COMPUTE, "rw")                                 \
    X(SWIGLU_BWD, "swiglu_bwd", COMPUTE, "rrw")                                \
    X(RESIDUAL_ADD, "residual_add", COMPUTE, "rrrw")                           \
    X(XENT, "xent", COMPUTE, "mrm")                                            \
    X(XENT_MAX, "xent_max", COMPUTE, "rrw")                                    \
    X(XENT_SUM, "xent_sum", COMPUTE, "rrrw")                                   \
    X(XENT_GRAD, "xent_grad", COMPUTE, "mrrrm")                                \
    X(ZERO, "zero", COMPUTE, "w")                                              \
    X(COPY, "copy", COMPUTE, "rw")                                             \
    X(ADD, "add", COMPUTE, "rm")                                               \
    X(LOAD_TOKENS, "load_tokens", IO, "w")                                     \
    X(GRAD_SQSUM, "grad_sqsum", COMPUTE, "rm")                                 \
    X(CLIP, "clip", COMPUTE, "m")                                              \
    X(OPT_NORMS, "opt_norms", COMPUTE, "rrmrm")                                \
    X(OPT_STEP, "opt_step", COMPUTE, "rmmrr")                                  \
    X(COMPRESS, "compress", COMPUTE, "rmw")                                    \
    X(DECOMPRESS, "decompress", COMPUTE, "rmw")                                \
    X(ALL_REDUCE, "all_reduce", COLLECTIVE, "rw")                              \
    X(REDUCE_SCATTER, "reduce_scatter", COLLECTIVE, "rw")                      \
    X(ALL_GATHER, "all_gather", COLLECTIVE, "rw")                              \
    X(ALL_TO_ALL, "all_to_all", COLLECTIVE, "rw")                              \
    X(BROADCAST, "broadcast", COLLECTIVE, "rw")                                \
    X(BARRIER, "barrier", COLLECTIVE, "")                                      \
    X(SEND, "send", P2P, "r")                                                  \
    X(RECV, "recv", P2P, "w")

#define FR_OP_PLANNED_LIST(X)                                                  \
    X(CAST, "cast", COMPUTE, "rww")                                            \
    X(ROUTER_FWD, "router_fwd", COMPUTE, "rw")                                 \
    X(ROUTER_BWD, "router_bwd", COMPUTE, "rw")                                 \
    X(PERMUTE, "permute", COMPUTE, "rw")                                       \
    X(UNPERMUTE, "unpermute", COMPUTE, "rw")                                   \
    X(GROUPED_FWD, "grouped_fwd", COMPUTE, "rrrw")                             \
    X(GROUPED_DGRAD, "grouped_dgrad", COMPUTE, "rrw")                          \
    X(GROUPED_WGRAD, "grouped_wgrad", COMPUTE, "rrmm")                         \
    X(LAYER_FWD, "layer_fwd", COMPUTE, "rww")                                  \
    X(LAYER_BWD, "layer_bwd", COMPUTE, "rrw")                                  \
    X(HOST_COPY, "host_copy", IO, "m")                                         \
    X(DROPOUT_ADD, "dropout_add", COMPUTE, "rrrww")                            \
    X(DROPOUT_BWD, "dropout_bwd", COMPUTE, "rrw")                              \
    X(ATTN_MERGE, "attn_merge", COMPUTE, "rrmm")                               \
    X(ELEMENTWISE, "elementwise", COMPUTE, "rw")                               \
    X(SHIFT, "shift", COLLECTIVE, "rw")

typedef enum fr_op {
#define FR_OP_ENUM(symbol, name, op_class, access) FR_OP_##symbol,
    FR_OP_LIST(FR_OP_ENUM) FR_OP_PLANNED_LIST(FR_OP_ENUM)
#undef FR_OP_ENUM
        FR_OP_N
} fr_op;

/* dim of an ALL_REDUCE by parameter servers (fr_plan's n_servers and
 * server_place). */
enum { FR_SERVER_DIM_N = 1, FR_SERVER_DIM_PLACE = 2 };

typedef enum fr_op_class {
    FR_OP_CLASS_COMPUTE,
    FR_OP_CLASS_COLLECTIVE,
    FR_OP_CLASS_P2P,
    FR_OP_CLASS_IO
} fr_op_class;

enum {
    FR_INSTR_HOST = 1 << 15, /* on the host's processor, with what lies in the
                                host's memory: OPT_STEP without its state */
    FR_INSTR_RMS = 1 << 0,
    FR_INSTR_ACCUMULATE = 1 << 1, /* the written operand is added to */
    FR_INSTR_SAVE_PROBS = 1 << 2,
    FR_INSTR_MAX = 1 << 3, /* reduce with max instead of sum */
    FR_INSTR_LAST_STAGE = 1 << 4,
    FR_INSTR_NONCAUSAL = 1 << 5, /* attention: every query sees every key */
    FR_INSTR_TRANSPOSE = 1 << 6,
    FR_INSTR_DROPOUT = 1 << 7, /* draws or reads a mask, a byte an element */
    FR_INSTR_REMADE = 1 << 8,  /* makes again what forward made: its flop count
                                  for the hardware, not for the model */
    FR_INSTR_GIVEN = 1 << 9,   /* collectives: the plan names the algorithm */
    FR_INSTR_HELD = 1 << 10,   /* GPUs: the host waits for its end */
    FR_INSTR_LISTED = 1 << 11  /* collectives on GPUs: a tensor for each member,
                                  made and copied one by one by the host */
};

#define FR_INSTR_REFS 8
#define FR_INSTR_DIMS 8

typedef struct fr_instr {
    uint8_t op;         /* fr_op */
    uint8_t dtype;      /* fr_dtype of the payload */
    uint8_t axis;       /* fr_axis */
    uint8_t algorithm;  /* collectives: index in collective.h; OPT_NORMS,
                           OPT_STEP: fr_optimizer_kind; COMPRESS, DECOMPRESS:
                           fr_compressor_kind; ATTN_*: fr_flash_kind; products
                           of fp8: fr_scaling */
    uint8_t grad_dtype; /* fr_dtype of the gradients of parameters */
    uint8_t protocol;   /* collectives on GPUs: fr_protocol */
    uint8_t n_channels; /* the same; 0: NCCL's choice */
    uint16_t flags;
    int16_t peer; /* SEND, RECV: coordinate on `axis` */
    uint32_t tag; /* SEND, RECV; else the fr_axis whose coordinate places
                     sharded operands, if that is not `axis` */
    int64_t dim[FR_INSTR_DIMS];
    double scalar;        /* eps, theta, scale, max_norm: see the list above */
    uint64_t shard_bytes; /* stride of sharded operands */
    fr_ref ref[FR_INSTR_REFS];
} fr_instr;

const char *fr_op_name(fr_op op);
fr_op_class fr_op_class_of(fr_op op);

/* 'r', 'w', 'm', or 0 past the last operand. */
char fr_op_access(fr_op op, int i_ref);

/* Floating-point operations of one execution (multiply-add counts two). */
uint64_t fr_instr_flop(const fr_instr *instr);

/* Bytes that operand i_ref spans (0 if absent); group = ranks on its axis. */
uint64_t fr_instr_ref_bytes(const fr_instr *instr, int i_ref, int n_group);

/* Bytes read plus written once each: the memory floor of the kernel. */
uint64_t fr_instr_moved_bytes(const fr_instr *instr, int n_group);

/* Bytes that a collective or a transfer carries (its dim n in bytes). */
uint64_t fr_instr_payload_bytes(const fr_instr *instr);

#endif
