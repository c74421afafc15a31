/*
 * op.h: the vocabulary of a program: operations and instructions.
 *
 * An operation is a row of op_list.inc: its class, dimensions, operands, flop.
 * The runtime has a kernel for each, calibration times those kernels, the cost
 * models look them up by (op, dtype, flags, dim) and the simulator replays
 * them.
 */
#ifndef FR_PLAN_OP_OP_H
#define FR_PLAN_OP_OP_H

#include "plan/op/axis.h"
#include "plan/op/dtype.h"
#include "plan/op/lane.h"
#include "plan/op/op_dims.h"
#include "plan/op/operand.h"

#include <stdbool.h>

/* FR_OP_<SYMBOL>, numbered in the order of the list. */
typedef enum fr_op {
#define OP(symbol, ...) FR_OP_##symbol,
#include "plan/op/op_list.inc"
#undef OP
    FR_OP_N
} fr_op;

/*
 * FR_OP_EACH(f, c, (flop), a, b ...) is f(c, a) f(c, b) ... over the at most
 * seven operands that end a row; the flop before them are passed over.
 */
#define FR_OP_EACH_0(f, c, flop)
#define FR_OP_EACH_1(f, c, flop, a) f(c, a)
#define FR_OP_EACH_2(f, c, flop, a, ...)                                       \
    f(c, a) FR_OP_EACH_1(f, c, flop, __VA_ARGS__)
#define FR_OP_EACH_3(f, c, flop, a, ...)                                       \
    f(c, a) FR_OP_EACH_2(f, c, flop, __VA_ARGS__)
#define FR_OP_EACH_4(f, c, flop, a, ...)                                       \
    f(c, a) FR_OP_EACH_3(f, c, flop, __VA_ARGS__)
#define FR_OP_EACH_5(f, c, flop, a, ...)                                       \
    f(c, a) FR_OP_EACH_4(f, c, flop, __VA_ARGS__)
#define FR_OP_EACH_6(f, c, flop, a, ...)                                       \
    f(c, a) FR_OP_EACH_5(f, c, flop, __VA_ARGS__)
#define FR_OP_EACH_7(f, c, flop, a, ...)                                       \
    f(c, a) FR_OP_EACH_6(f, c, flop, __VA_ARGS__)
#define FR_OP_EACH_8(f, c, flop, a, ...)                                       \
    f(c, a) FR_OP_EACH_7(f, c, flop, __VA_ARGS__)
#define FR_OP_EACH_PICK(flop, a, b, c, d, e, f, g, h, macro, ...) macro
#define FR_OP_EACH(f, c, ...)                                                  \
    FR_OP_EACH_PICK(__VA_ARGS__, FR_OP_EACH_8, FR_OP_EACH_7, FR_OP_EACH_6,     \
                    FR_OP_EACH_5, FR_OP_EACH_4, FR_OP_EACH_3, FR_OP_EACH_2,    \
                    FR_OP_EACH_1, FR_OP_EACH_0, )                              \
    (f, c, __VA_ARGS__)

/* FR_<SYMBOL>_<OPERAND>: the operand's index in fr_instr.ref. */
#define FR_OP_REF_NAME(symbol, name, ...) FR_##symbol##_##name,
#define FR_OP_REF_SPREAD(...) FR_OP_REF_NAME(__VA_ARGS__)
#define FR_OP_REF_STRIP(...) __VA_ARGS__
#define FR_OP_REF(symbol, operand)                                             \
    FR_OP_REF_SPREAD(symbol, FR_OP_REF_STRIP operand)
#define OP(symbol, name, op_class, where, dims, special, ...)                  \
    enum { FR_OP_EACH(FR_OP_REF, symbol, __VA_ARGS__) FR_##symbol##_N_REFS };
#include "plan/op/op_list.inc"
#undef OP

/* The operands of every collective. */
enum { FR_COMM_SRC = FR_ALL_REDUCE_SRC, FR_COMM_DST = FR_ALL_REDUCE_DST };

typedef enum fr_op_class {
    FR_OP_CLASS_COMPUTE,
    FR_OP_CLASS_COLLECTIVE,
    FR_OP_CLASS_P2P,
    FR_OP_CLASS_IO,
    /* Words of the list that are of the class COMPUTE. */
    FR_OP_CLASS_FORWARD = FR_OP_CLASS_COMPUTE,
    FR_OP_CLASS_BACKWARD = FR_OP_CLASS_COMPUTE
} fr_op_class;

/* The pass that an operation is of, whatever the segment it stands in. */
typedef enum fr_op_pass {
    FR_OP_PASS_ANY,
    FR_OP_PASS_FORWARD,
    FR_OP_PASS_BACKWARD
} fr_op_pass;

enum {
    FR_INSTR_HOST = 1 << 15, /* on the host's processor, with what lies in the
                                host's memory: OPT_STEP of a copy of the
                                parameters, which HOST_COPY then takes back */
    FR_INSTR_RMS = 1 << 0,
    FR_INSTR_ACCUMULATE = 1 << 1, /* the written operand is added to */
    FR_INSTR_SAVE_PROBS = 1 << 2,
    FR_INSTR_MAX = 1 << 3,    /* reduce with max instead of sum */
    FR_INSTR_CAPPED = 1 << 3, /* ROUTER_FWD: experts have a capacity */
    FR_INSTR_LAST_STAGE = 1 << 4,
    FR_INSTR_NONCAUSAL = 1 << 5, /* attention: every query sees every key */
    FR_INSTR_TRANSPOSE = 1 << 6,
    FR_INSTR_DROPOUT = 1 << 7,    /* draws or reads a mask, a byte an element */
    FR_INSTR_RECOMPUTED = 1 << 8, /* makes again what forward made: its flop
                                 count for the hardware, not for the model */
    FR_INSTR_GIVEN = 1 << 9,   /* collectives: the plan names the algorithm */
    FR_INSTR_HELD = 1 << 10,   /* GPUs: the host waits for its end */
    FR_INSTR_LISTED = 1 << 11, /* collectives on GPUs: a tensor for each member,
                                 made and copied one by one by the host */
    FR_INSTR_APART = 1 << 12,  /* COMPRESS, DECOMPRESS: FR_COMPRESS_TENSOR;
                                  ROUTER_*: softmax over all experts */
    FR_INSTR_UNTOLD = 1 << 12, /* XENT*: its loss is not added to loss_sum */
    FR_INSTR_FIRST_ROW = 1 << 12,  /* EMBED: the first row, for all tokens */
    FR_INSTR_KEYS_APART = 1 << 12, /* ROPE, ATTN: the queries of all rows, then
                                      the keys and values of all rows */
    FR_INSTR_RELU = 1 << 12,       /* BATCH_NORM: and what is negative is 0 */
    FR_INSTR_SHARD = 1 << 13       /* of a range: fr_instr_range_first() */
};

#define FR_INSTR_REFS 8
#define FR_INSTR_DIMS 8

typedef struct fr_instr {
    uint8_t op;    /* fr_op */
    uint8_t dtype; /* fr_dtype of the payload */
    uint8_t axis;  /* fr_axis */
    union {
        uint8_t algorithm;  /* collectives: fr_collective_kind */
        uint8_t optimizer;  /* OPT_NORMS, OPT_STEP: fr_optimizer_kind */
        uint8_t compressor; /* COMPRESS, DECOMPRESS: fr_compressor_kind */
        uint8_t flash_kind; /* ATTN_*: fr_flash_kind */
        uint8_t scaling;    /* products of fp8: fr_scaling */
        uint8_t activation; /* GELU_*, SWIGLU_*: fr_activation */
        uint8_t place;      /* DROPOUT_ADD: of the layer */
        uint8_t variant;    /* any of them */
    };
    uint8_t grad_dtype; /* fr_dtype of the gradients of parameters */
    uint8_t protocol;   /* collectives on GPUs: fr_protocol */
    uint8_t n_channels; /* the same; 0: NCCL's choice */
    uint8_t shard_axis; /* fr_axis whose coordinate places sharded operands;
                           NONE: `axis` */
    uint16_t flags;
    int16_t peer; /* SEND, RECV: coordinate on `axis`; ATTN_*: see the list */
    uint32_t tag; /* SEND, RECV: matches sender and receiver */
    union {
        int64_t dim[FR_INSTR_DIMS];
        fr_embed_dims embed;
        fr_matrix_dims matrix;
        fr_linear_dims linear;
        fr_rope_dims rope;
        fr_head_norm_dims head_norm;
        fr_attention_dims attention;
        fr_merge_dims merge;
        fr_heads_dims heads;
        fr_latent_dims latent;
        fr_first_rows_dims first_rows;
        fr_labels_dims labels;
        fr_vector_dims vector;
        fr_loss_dims loss;
        fr_copy_dims copy;
        fr_tokens_dims tokens;
        fr_range_dims range;
        fr_compress_dims compress;
        fr_comm_dims comm;
        fr_broadcast_dims broadcast;
        fr_grouped_dims grouped; /* begins as fr_linear_dims */
        fr_router_dims router;
        fr_permute_dims permute;
        fr_layer_dims layer;
        fr_elementwise_dims elementwise;
        fr_conv_dims conv;
        fr_batch_norm_dims batch_norm;
        fr_pool_dims pool;
        fr_images_dims images;
    };
    double scalar;        /* eps, theta, scale, max_norm: see the list */
    uint64_t shard_bytes; /* stride of sharded operands */
    fr_ref ref[FR_INSTR_REFS];
} fr_instr;

const char *fr_op_name(fr_op op);
fr_op_class fr_op_class_of(fr_op op);
fr_op_pass fr_op_pass_of(fr_op op);

/* 'r', 'w', 'm', or 0 past the last operand. */
char fr_op_access(fr_op op, int i_ref);

/* May the operand be absent? */
bool fr_op_is_optional(fr_op op, int i_ref);

/* Dimensions of the operation: those of fr_instr.dim beyond are 0. */
int fr_op_n_dims(fr_op op);

/* Floating-point operations of one execution (multiply-add counts two). */
uint64_t fr_instr_flop(const fr_instr *instr);

/* Bytes that operand i_ref spans (0 if absent); group = ranks on its axis. */
uint64_t fr_instr_ref_bytes(const fr_instr *instr, int i_ref, int n_group);

/* The type of the operand's elements in memory. */
fr_dtype fr_instr_ref_dtype(const fr_instr *instr, int i_ref);

/* Does the operand hold choices of experts?  Bytes of 0xff are choices that
 * were dropped. */
bool fr_instr_ref_is_choices(const fr_instr *instr, int i_ref);

/* Bytes read plus written once each: the memory floor of the kernel. */
uint64_t fr_instr_moved_bytes(const fr_instr *instr, int n_group);

/* Bytes that a collective or a transfer carries (its n in bytes). */
uint64_t fr_instr_payload_bytes(const fr_instr *instr);

/*
 * Returns the begin of the range of an optimizer's instruction in the flat
 * list, for the rank at `position` on the instruction's axis: ZeRO's shards of
 * n elements follow each other.
 */
static inline int64_t fr_instr_range_first(const fr_instr *instr,
                                           int64_t position)
{
    bool is_shard = (instr->flags & FR_INSTR_SHARD) != 0;
    return instr->range.first + (is_shard ? position * instr->range.n : 0);
}

#endif
