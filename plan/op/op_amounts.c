/*
 * op_amounts.c: flop and bytes of an instruction, from the row of its
 * operation.
 */
#include "plan/op/op_table.h"

static uint64_t product_of(const fr_instr *instr, const op_product *product)
{
    uint64_t n = product->factor;
    for (int i = 0; i < 3 && product->dim[i] > 0; i++)
        n *= (uint64_t)instr->dim[product->dim[i] - 1];
    return n;
}

static fr_dtype element_dtype(const fr_instr *instr, op_element element)
{
    const fr_dtype dtype = (fr_dtype)instr->dtype;
    switch (element) {
    case OP_ELEMENT_PRODUCT:
    case OP_ELEMENT_PART:
        return dtype;
    case OP_ELEMENT_STORED:
    case OP_ELEMENT_SPECIAL:
        return fr_dtype_storage(dtype);
    case OP_ELEMENT_GRAD:
        return (fr_dtype)instr->grad_dtype;
    case OP_ELEMENT_I32:
        return FR_DTYPE_I32;
    case OP_ELEMENT_BYTE:
    case OP_ELEMENT_SCALARS:
        return FR_DTYPE_U8;
    default:
        return FR_DTYPE_F32;
    }
}

uint64_t op_element_bytes(const fr_instr *instr, op_element element)
{
    if (element == OP_ELEMENT_SCALARS)
        return sizeof(fr_step_scalars);
    if (element == OP_ELEMENT_CHOICE)
        return fr_dtype_bytes(FR_DTYPE_F32) + fr_dtype_bytes(FR_DTYPE_I32);
    return element == OP_ELEMENT_SPECIAL
               ? 0
               : fr_dtype_bytes(element_dtype(instr, element));
}

fr_dtype fr_instr_ref_dtype(const fr_instr *instr, int i_ref)
{
    const op_row *row = &op_rows[instr->op];
    const op_element element = (op_element)row->operands[i_ref].element;
    if (element == OP_ELEMENT_SPECIAL && row->special->ref_dtype != NULL)
        return row->special->ref_dtype(instr, i_ref);
    const fr_dtype dtype = element_dtype(instr, element);
    return dtype == FR_DTYPE_TF32 ? FR_DTYPE_F32 : dtype;
}

bool fr_instr_ref_is_choices(const fr_instr *instr, int i_ref)
{
    return op_rows[instr->op].operands[i_ref].element == OP_ELEMENT_CHOICE;
}

uint64_t fr_instr_flop(const fr_instr *instr)
{
    const op_row *row = &op_rows[instr->op];
    return row->special->flop != NULL ? row->special->flop(instr)
                                      : product_of(instr, &row->flop);
}

uint64_t fr_instr_ref_bytes(const fr_instr *instr, int i_ref, int n_group)
{
    if (i_ref < 0 || i_ref >= FR_INSTR_REFS || instr->op >= FR_OP_N ||
        instr->ref[i_ref].space == FR_SPACE_NONE)
        return 0;
    const op_row *row = &op_rows[instr->op];
    const op_operand *operand = &row->operands[i_ref];
    if (operand->access == 0)
        return 0;
    if (operand->element == OP_ELEMENT_SPECIAL)
        return row->special->ref_bytes(instr, i_ref);
    uint64_t bytes = product_of(instr, &operand->count) *
                     op_element_bytes(instr, (op_element)operand->element);
    return operand->element == OP_ELEMENT_PART && n_group > 0
               ? bytes / (uint64_t)n_group
               : bytes;
}

uint64_t fr_instr_moved_bytes(const fr_instr *instr, int n_group)
{
    const op_row *row = &op_rows[instr->op];
    uint64_t sum = 0;
    if (row->special->moved_bytes != NULL)
        return row->special->moved_bytes(instr);
    for (int i = 0; i < FR_INSTR_REFS && row->operands[i].access; i++) {
        uint64_t bytes = fr_instr_ref_bytes(instr, i, n_group);
        char access = row->operands[i].access;
        if (row->special->touched_bytes != NULL)
            bytes = row->special->touched_bytes(instr, i, bytes);
        bool is_added = access == 'w' && instr->flags & FR_INSTR_ACCUMULATE;
        sum += access == 'm' || access == 's' || is_added ? 2 * bytes : bytes;
    }
    return sum;
}

uint64_t fr_instr_payload_bytes(const fr_instr *instr)
{
    return (uint64_t)instr->comm.n * fr_dtype_bytes((fr_dtype)instr->dtype);
}
