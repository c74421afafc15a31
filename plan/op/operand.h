/*
 * operand.h: where the operands of an instruction lie.
 *
 * Spaces are base registers: an operand is its call's base of that space plus
 * an offset.  So one segment serves every layer and micro-batch.
 */
#ifndef FR_PLAN_OP_OPERAND_H
#define FR_PLAN_OP_OPERAND_H

#include <stdint.h>

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
    FR_SPACE_SAVED,     /* activations that forward keeps for backward */
    FR_SPACE_TEMP,      /* scratch, dead after the call */
    FR_SPACE_TOKENS,    /* int32 tokens[rows], then int32 targets[rows], and
                           those one token further on where a layer asks */
    FR_SPACE_STEP,      /* fr_step_scalars of the rank */
    FR_SPACE_WIRE,      /* compressed gradients: own and gathered payloads;
                           from one part of a backward in two to the other */
    FR_SPACE_ERROR,     /* error feedback and other compressor state */
    FR_SPACE_LOW,       /* a layer's weights in the dtype of its products */
    FR_SPACE_PIECE_IN,  /* a piece of an activation that is sent on ... */
    FR_SPACE_PIECE_OUT, /* ... and one that arrives */
    FR_SPACE_CARRY,     /* data between the calls of one layer: parts of a ring;
                           forward to the second part of backward */
    FR_SPACE_HOST,      /* the host's memory, behind the slab: what waits there
                           or, of the optimizer, stays there */
    FR_SPACE_N
} fr_space;

const char *fr_space_name(fr_space space);

/* An operand of an instruction. */
typedef struct fr_ref {
    uint8_t space;         /* fr_space; NONE: the operand is absent */
    uint8_t is_sharded;    /* 1: add coordinate(instr.axis) * instr.shard_bytes;
                              k: that divided by 2^(k-1) */
    uint8_t turn, n_turns; /* n_turns > 0: the coordinate is counted round them
                            from `turn` on: (coordinate - turn) mod n_turns */
    uint8_t reuse_log2;    /* log2 of the bytes that its rank touches between
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

#endif
