/*
 * The table of operations: operands, amounts, against numbers made by hand.
 */
#include "plan/op/op.h"
#include "tests/check.h"

static fr_instr linear(fr_op op)
{
    fr_instr instr = {.op = (uint8_t)op, .dim = {7, 11, 13}};
    for (int i = 0; i < FR_INSTR_REFS && fr_op_access(op, i); i++)
        instr.ref[i].space = FR_SPACE_TEMP;
    return instr;
}

static void test_access(void)
{
    CHECK_INT(fr_op_access(FR_OP_LINEAR_FWD, 0), 'r');
    CHECK_INT(fr_op_access(FR_OP_LINEAR_FWD, 3), 'w');
    CHECK_INT(fr_op_access(FR_OP_LINEAR_FWD, 4), 0);
    CHECK_INT(fr_op_access(FR_OP_LINEAR_FWD, 7), 0);
    CHECK_INT(fr_op_access(FR_OP_BARRIER, 0), 0);
    CHECK_INT(fr_op_access(FR_OP_NORM_BWD, 6), 'm');
    CHECK_INT(fr_op_class_of(FR_OP_SEND), FR_OP_CLASS_P2P);
    CHECK_INT(fr_op_class_of(FR_OP_LOAD_TOKENS), FR_OP_CLASS_IO);
    for (int op = 0; op < FR_OP_N; op++) {
        CHECK(strlen(fr_op_name((fr_op)op)) > 1);
        for (int other = 0; other < op; other++)
            CHECK(strcmp(fr_op_name((fr_op)op), fr_op_name((fr_op)other)));
    }
}

static void test_linear(void)
{
    fr_instr fwd = linear(FR_OP_LINEAR_FWD), wgrad = linear(FR_OP_LINEAR_WGRAD);
    CHECK_INT(fr_instr_flop(&fwd), 2 * 7 * 11 * 13);
    CHECK_INT(fr_instr_ref_bytes(&fwd, 0, 1), 4 * 7 * 13);
    CHECK_INT(fr_instr_ref_bytes(&fwd, 1, 1), 4 * 11 * 13);
    CHECK_INT(fr_instr_ref_bytes(&fwd, 2, 1), 4 * 11);
    CHECK_INT(fr_instr_ref_bytes(&fwd, 3, 1), 4 * 7 * 11);
    CHECK_INT(fr_instr_moved_bytes(&fwd, 1), 4 * (91 + 143 + 11 + 77));
    fwd.ref[2].space = FR_SPACE_NONE;
    CHECK_INT(fr_instr_ref_bytes(&fwd, 2, 1), 0);
    /* Gradients are read and written. */
    CHECK_INT(fr_instr_moved_bytes(&wgrad, 1),
              4 * (77 + 91 + 2 * 143 + 2 * 11));
    fr_instr dgrad = linear(FR_OP_LINEAR_DGRAD);
    CHECK_INT(fr_instr_moved_bytes(&dgrad, 1), 4 * (77 + 143 + 91));
    dgrad.flags = FR_INSTR_ACCUMULATE;
    CHECK_INT(fr_instr_moved_bytes(&dgrad, 1), 4 * (77 + 143 + 2 * 91));
}

static void test_attention(void)
{
    fr_instr fwd = {.op = FR_OP_ATTN_FWD, .dim = {2, 5, 6, 3, 7}};
    for (int i = 0; i < 3; i++)
        fwd.ref[i].space = FR_SPACE_SAVED;
    CHECK_INT(fr_instr_ref_bytes(&fwd, 0, 1), 4 * 10 * (6 + 6) * 7);
    CHECK_INT(fr_instr_ref_bytes(&fwd, 1, 1), 4 * 10 * 6 * 7);
    CHECK_INT(fr_instr_ref_bytes(&fwd, 2, 1), 4 * 2 * 6 * 5);
    CHECK_INT(fr_instr_ref_bytes(&fwd, 3, 1), 0);
    fwd.flags = FR_INSTR_SAVE_PROBS;
    CHECK_INT(fr_instr_ref_bytes(&fwd, 2, 1), 4 * 2 * 6 * 5 * 5);
    /* 15 causal pairs of 5 tokens, two products of 7 multiply-adds. */
    CHECK_INT(fr_instr_flop(&fwd), 2 * 6 * 15 * (2 * 2 * 7 + 5));
}

/* Operands of a product have its dtype, results its storage dtype, gradients
 * of parameters one of their own. */
static void test_dtypes(void)
{
    fr_instr fwd = linear(FR_OP_LINEAR_FWD), wgrad = linear(FR_OP_LINEAR_WGRAD);
    fwd.dtype = wgrad.dtype = FR_DTYPE_FP8;
    wgrad.grad_dtype = FR_DTYPE_F32;
    CHECK_INT(fr_instr_moved_bytes(&fwd, 1), 91 + 143 + 2 * 11 + 2 * 77);
    CHECK_INT(fr_instr_moved_bytes(&wgrad, 1), 77 + 91 + 8 * 143 + 8 * 11);
    wgrad.dtype = wgrad.grad_dtype = FR_DTYPE_BF16;
    CHECK_INT(fr_instr_moved_bytes(&wgrad, 1), 2 * (77 + 91) + 4 * (143 + 11));
    fr_instr norm = {
        .op = FR_OP_NORM_FWD, .dtype = FR_DTYPE_BF16, .dim = {7, 11}};
    for (int i = 0; i < 5; i++)
        norm.ref[i].space = FR_SPACE_TEMP;
    CHECK_INT(fr_instr_moved_bytes(&norm, 1), 2 * (77 + 11 + 11 + 77) + 56);
    fr_instr cast = {
        .op = FR_OP_CAST, .dtype = FR_DTYPE_FP8, .dim = {1000}, .scalar = 2};
    for (int i = 0; i < 3; i++)
        cast.ref[i].space = FR_SPACE_TEMP;
    CHECK_INT(fr_instr_moved_bytes(&cast, 1), 4000);
    fr_instr grouped = {
        .op = FR_OP_GROUPED_FWD, .dtype = FR_DTYPE_BF16, .dim = {7, 11, 13, 3}};
    grouped.grouped.n_runs = 1;
    grouped.grouped.run_rows = 7;
    for (int i = 0; i < 4; i++)
        grouped.ref[i].space = i == 2 ? FR_SPACE_NONE : FR_SPACE_TEMP;
    CHECK_INT(fr_instr_flop(&grouped), 2 * 7 * 11 * 13);
    CHECK_INT(fr_instr_moved_bytes(&grouped, 1), 2 * (91 + 3 * 143 + 77));
}

/* Latent heads, other ranks' keys, windows. */
static void test_attention_shapes(void)
{
    fr_instr fwd = {.op = FR_OP_ATTN_FWD,
                    .dtype = FR_DTYPE_BF16,
                    .dim = {2, 8, 6, 3, 7, 5, 32, 16}};
    for (int i = 0; i < 3; i++)
        fwd.ref[i].space = FR_SPACE_SAVED;
    CHECK_INT(fr_instr_ref_bytes(&fwd, 0, 1),
              2 * 2 * (8 * 6 * 7 + 32 * 3 * (7 + 5)));
    CHECK_INT(fr_instr_ref_bytes(&fwd, 1, 1), 2 * 2 * 8 * 6 * 5);
    CHECK_INT(fr_instr_ref_bytes(&fwd, 2, 1), 4 * 2 * 8 * 6);
    /* A quarter of 136 + 16 x 16 pairs. */
    CHECK_INT(fr_instr_flop(&fwd), 2 * 6 * 98 * (2 * 7 + 2 * 5 + 5));
    fwd.flags = FR_INSTR_NONCAUSAL;
    fwd.dim[7] = 0;
    CHECK_INT(fr_instr_flop(&fwd), 2 * 6 * 8 * 32 * (2 * 7 + 2 * 5 + 5));
    fwd.flags = FR_INSTR_SAVE_PROBS | FR_INSTR_DROPOUT;
    fwd.ref[FR_ATTN_FWD_TEMP].space = FR_SPACE_TEMP;
    CHECK_INT(fr_instr_ref_bytes(&fwd, 2, 1), 2 * 8 * 6 * 32 * 5);
    fwd.ref[FR_ATTN_FWD_TEMP].space =
        FR_SPACE_NONE; /* the mask is drawn again */
    CHECK_INT(fr_instr_ref_bytes(&fwd, 2, 1), 2 * 8 * 6 * 32 * 2);
}

static void test_embedding(void)
{
    fr_instr fwd = {.op = FR_OP_EMBED_FWD, .dim = {6, 8, 1000, 3, 990}};
    for (int i = 0; i < 4; i++)
        fwd.ref[i].space = FR_SPACE_WEIGHT;
    CHECK_INT(fr_instr_ref_bytes(&fwd, 1, 1), 4 * 1000 * 8);
    CHECK_INT(fr_instr_ref_bytes(&fwd, 2, 1), 4 * 3 * 8);
    /* Only the rows of the tokens move, not the whole table. */
    CHECK_INT(fr_instr_moved_bytes(&fwd, 1), 48 + 4 * (48 + 24 + 48));
}

static void test_communication(void)
{
    fr_instr gather = {.op = FR_OP_ALL_GATHER,
                       .dtype = FR_DTYPE_U8,
                       .axis = FR_AXIS_DP,
                       .dim = {1200}};
    gather.ref[0].space = gather.ref[1].space = FR_SPACE_WIRE;
    CHECK_INT(fr_instr_payload_bytes(&gather), 1200);
    CHECK_INT(fr_instr_ref_bytes(&gather, 0, 4), 300);
    CHECK_INT(fr_instr_ref_bytes(&gather, 1, 4), 1200);
    gather.op = FR_OP_REDUCE_SCATTER;
    gather.dtype = FR_DTYPE_F64;
    CHECK_INT(fr_instr_ref_bytes(&gather, 0, 4), 9600);
    CHECK_INT(fr_instr_ref_bytes(&gather, 1, 4), 2400);
    gather.op = FR_OP_SEND;
    gather.dtype = FR_DTYPE_BF16;
    CHECK_INT(fr_instr_ref_bytes(&gather, 0, 4), 2400);
    CHECK_INT(fr_instr_ref_bytes(&gather, 1, 4), 0);
}

static void test_names(void)
{
    CHECK_STR(fr_dtype_name(FR_DTYPE_BF16), "bf16");
    CHECK_STR(fr_axis_name(FR_AXIS_MODEL), "model");
    CHECK_STR(fr_lane_name(FR_LANE_PP_RECV), "recv");
    CHECK_STR(fr_space_name(FR_SPACE_SAVED), "saved");
    CHECK_STR(fr_op_name(FR_OP_ALL_REDUCE), "all_reduce");
    CHECK_INT(fr_dtype_bytes(FR_DTYPE_TF32), 4);
    for (int i = 0; i < FR_DTYPE_N; i++)
        CHECK(fr_dtype_bytes((fr_dtype)i) > 0);
}

CHECK_MAIN({"access", test_access}, {"linear", test_linear},
           {"attention", test_attention}, {"dtypes", test_dtypes},
           {"attention_shapes", test_attention_shapes},
           {"embedding", test_embedding}, {"communication", test_communication},
           {"names", test_names})
