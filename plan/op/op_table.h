/*
 * op_table.h: the rows of op_list.inc as data, for the files that derive an
 * operation's amounts from its row.
 */
#ifndef FR_PLAN_OP_OP_TABLE_H
#define FR_PLAN_OP_OP_TABLE_H

#include "plan/op/op.h"

/* A number of elements or operations: a factor times dimensions. */
typedef struct op_product {
    uint8_t factor;
    uint8_t dim[3]; /* index in fr_instr.dim, plus 1; 0: none */
} op_product;

/* The type of one element of an operand: see the list. */
typedef enum op_element {
    OP_ELEMENT_PRODUCT,
    OP_ELEMENT_STORED,
    OP_ELEMENT_GRAD,
    OP_ELEMENT_F32,
    OP_ELEMENT_I32,
    OP_ELEMENT_BYTE,
    OP_ELEMENT_CHOICE,
    OP_ELEMENT_SCALARS,
    OP_ELEMENT_PART,
    OP_ELEMENT_SPECIAL
} op_element;

typedef struct op_operand {
    char access; /* 'r', 'w', 'm', 's': scratch; 0: none */
    bool is_optional;
    uint8_t element; /* op_element */
    op_product count;
} op_operand;

/* Functions for amounts that are no products of dimensions; NULL: the row has
 * the amount. */
typedef struct op_special {
    uint64_t (*flop)(const fr_instr *instr);
    /* Bytes and type of operands whose element is SPECIAL; type NULL: as
     * stored. */
    uint64_t (*ref_bytes)(const fr_instr *instr, int i_ref);
    fr_dtype (*ref_dtype)(const fr_instr *instr, int i_ref);
    /* Bytes of an operand that are touched, where those are not all. */
    uint64_t (*touched_bytes)(const fr_instr *instr, int i_ref, uint64_t bytes);
    /* Bytes that the whole instruction moves. */
    uint64_t (*moved_bytes)(const fr_instr *instr);
} op_special;

typedef struct op_row {
    const char *name;
    uint8_t op_class; /* fr_op_class */
    uint8_t pass;     /* fr_op_pass */
    uint8_t n_dims;
    op_product flop;
    op_operand operands[FR_INSTR_REFS + 1]; /* ended by access 0 */
    const op_special *special;
} op_row;

extern const op_row op_rows[FR_OP_N];

extern const op_special op_special_plain, op_special_embed, op_special_rope,
    op_special_head_norm, op_special_latent, op_special_grouped,
    op_special_attention, op_special_cast, op_special_permute,
    op_special_unpermute, op_special_layer, op_special_elementwise,
    op_special_conv, op_special_pool;

/* Bytes of one element of the instruction. */
uint64_t op_element_bytes(const fr_instr *instr, op_element element);

#endif
