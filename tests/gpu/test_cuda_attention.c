/*
 * test_cuda_attention.c: fused attention against the CPU's: by tensor cores
 * (bf16, heads of a multiple of 8) and by fp32 units, grouped heads, lengths
 * below, at and beyond the tiles; without a mask against plain loops.
 *
 * bf16: probabilities and their gradients are rounded to 8 bits of mantissa
 * before they are multiplied, which the oracle's are not.
 */
#include "tests/gpu/device_fixture.h"

/* ---- the oracle: the CPU's kernels, or plain loops where all is seen ---- */

/* One query of one head in double, its output and what it adds to. */
typedef struct query {
    const df_case *at;
    float *const *operand; /* d_o, qkv, o, lse, dqkv; forward: no d_o, dqkv */
    int64_t b, t, h;
} query;

static int64_t place(const query *q, int64_t t, int64_t head)
{
    const int64_t *dim = q->at->instr.dim;
    return ((q->b * dim[1] + t) * (dim[2] + 2 * dim[3]) + head) * dim[4];
}

static double dot(const float *a, const float *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* Probabilities of all keys; returns the log-sum-exp. */
static double see_all(const query *q, double *p)
{
    const int64_t *dim = q->at->instr.dim, hd = dim[4];
    const float *qkv = q->operand[1];
    int64_t kv = dim[2] + q->h / (dim[2] / dim[3]);
    double sum = 0;
    for (int64_t s = 0; s < dim[1]; s++) {
        double score =
            dot(qkv + place(q, q->t, q->h), qkv + place(q, s, kv), hd) /
            sqrt((double)hd);
        p[s] = exp(score);
        sum += p[s];
    }
    for (int64_t s = 0; s < dim[1]; s++)
        p[s] /= sum;
    return log(sum);
}

static void query_forward(const query *q)
{
    const int64_t *dim = q->at->instr.dim, hd = dim[4];
    double p[512];
    int64_t v = dim[2] + dim[3] + q->h / (dim[2] / dim[3]);
    float *o = q->operand[2] + ((q->b * dim[1] + q->t) * dim[2] + q->h) * hd;
    double lse = see_all(q, p);
    q->operand[3][(q->b * dim[2] + q->h) * dim[1] + q->t] = (float)lse;
    for (int64_t i = 0; i < hd; i++) {
        double sum = 0;
        for (int64_t s = 0; s < dim[1]; s++)
            sum += p[s] * (double)q->operand[1][place(q, s, v) + i];
        o[i] = (float)sum;
    }
}

static void query_backward(const query *q)
{
    const int64_t *dim = q->at->instr.dim, hd = dim[4];
    const int64_t at = ((q->b * dim[1] + q->t) * dim[2] + q->h) * hd;
    const float *d_o = q->operand[0] + at, *qkv = q->operand[1];
    float *dqkv = q->operand[4];
    int64_t kv = dim[2] + q->h / (dim[2] / dim[3]);
    int64_t mine = place(q, q->t, q->h);
    double p[512], scale = 1 / sqrt((double)hd);
    double delta = dot(d_o, q->operand[2] + at, hd);
    see_all(q, p);
    for (int64_t s = 0; s < dim[1]; s++) {
        int64_t k = place(q, s, kv), v = place(q, s, kv + dim[3]);
        double ds = p[s] * (dot(d_o, qkv + v, hd) - delta) * scale;
        for (int64_t i = 0; i < hd; i++) {
            dqkv[mine + i] += (float)(ds * (double)qkv[k + i]);
            dqkv[k + i] += (float)(ds * (double)qkv[mine + i]);
            dqkv[v + i] += (float)(p[s] * (double)d_o[i]);
        }
    }
}

/* The case on this side; operands as of ATTN_BWD. */
static void run_oracle(const df_case *at, fr_op op, float *const operand[5])
{
    const int64_t *dim = at->instr.dim;
    fr_instr instr = at->instr;
    fr_kernel_call call = df_call(at);
    instr.op = (uint8_t)op;
    call.instr = &instr;
    const bool is_forward = op == FR_OP_ATTN_FWD;
    for (int i = 0; i < (is_forward ? 3 : 5); i++)
        call.ptr[i] = operand[is_forward ? i + 1 : i];
    if (!(instr.flags & FR_INSTR_NONCAUSAL)) {
        fr_kernels_cpu[op](&call);
        return;
    }
    if (op == FR_OP_ATTN_BWD)
        memset(operand[4], 0, (size_t)at->operand[4].n * sizeof(float));
    for (int64_t i = 0; i < dim[0] * dim[1] * dim[2]; i++) {
        query q = {at, operand, i / dim[2] / dim[1], i / dim[2] % dim[1],
                   i % dim[2]};
        op == FR_OP_ATTN_FWD ? query_forward(&q) : query_backward(&q);
    }
}

static void launch_and_compare(const df_case *at, df_memory *memory,
                               const int *places, int n_places, int n_first)
{
    fr_kernel_call call = df_call(at);
    for (int i = 0; i < n_places; i++)
        call.ptr[i] = memory[places[i]].device;
    df_launch_twice(at, memory, call);
    for (int i = n_first; i < n_places; i++) {
        df_fetch(&memory[places[i]]);
        df_compare(at, places[i], &memory[places[i]]);
    }
}

/* Forward, then backward, which reads what the oracle's forward has left.
 * Queries, keys and values are below `most`. */
static void check_sized(const int64_t s[5], fr_dtype precision, bool is_causal,
                        double most)
{
    const fr_plan plan = {.tp = 1, .precision = precision};
    const bool is_tf32 = precision == FR_DTYPE_TF32;
    const fr_dtype dtype = fr_dtype_storage(precision);
    static const int forward[] = {1, 2, 3}, backward[] = {0, 1, 2, 3, 4};
    int64_t rows = s[0] * s[1], n_o = rows * s[2] * s[4];
    int64_t n_qkv = rows * (s[2] + 2 * s[3]) * s[4];
    df_case at = {.instr = {.op = FR_OP_ATTN_FWD,
                            .dtype = (uint8_t)dtype,
                            .flags = is_causal ? 0 : FR_INSTR_NONCAUSAL,
                            .dim = {s[0], s[1], s[2], s[3], s[4]}},
                  .operand = {{DF_T, n_o, 1.3, 'r', 0},
                              {DF_T, n_qkv, most, 'r', 0},
                              {DF_T, n_o, 1, 'w', 0},
                              {DF_F32, rows * s[2], 1, 'w', 0},
                              {DF_T, n_qkv, 1, 'w', 0}},
                  .plan = &plan,
                  .tolerance = is_tf32 ? 2e-3 : 3e-6,
                  .narrow = 4e-3};
    df_memory memory[FR_INSTR_REFS];
    float *host[5];
    df_create(&at, memory);
    for (int i = 0; i < 5; i++)
        host[i] = memory[i].host;
    run_oracle(&at, FR_OP_ATTN_FWD, host);
    launch_and_compare(&at, memory, forward, 3, 1);
    for (int64_t i = 0; dtype == FR_DTYPE_BF16 && i < n_o; i++)
        host[2][i] = df_wide(df_narrow(host[2][i]));
    df_to_device(&at, 2, &memory[2]);
    df_to_device(&at, 3, &memory[3]);
    at.instr.op = FR_OP_ATTN_BWD;
    at.tolerance = is_tf32 ? 3e-3 : 1e-5;
    at.narrow = 1.2e-2;
    run_oracle(&at, FR_OP_ATTN_BWD, host);
    launch_and_compare(&at, memory, backward, 5, 4);
    df_destroy(&at, memory);
}

static void check(const int64_t s[5], fr_dtype precision, bool is_causal)
{
    check_sized(s, precision, is_causal, 2.3);
}

/* batch, sequence, q heads, kv heads, head size */
static const int64_t shapes[][5] = {{1, 5, 1, 1, 7},     {2, 33, 3, 3, 6},
                                    {1, 70, 4, 2, 16},   {2, 64, 2, 1, 64},
                                    {1, 131, 3, 1, 64},  {1, 97, 2, 2, 80},
                                    {1, 130, 2, 1, 128}, {1, 293, 2, 1, 64},
                                    {1, 261, 1, 1, 128}, {1, 150, 1, 1, 96}};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

static void test_causal(void)
{
    for (int i = 0; i < N_SHAPES; i++) {
        check(shapes[i], FR_DTYPE_F32, true);
        check(shapes[i], FR_DTYPE_TF32, true);
        check(shapes[i], FR_DTYPE_BF16, true);
    }
}

static void test_whole(void)
{
    for (int i = 0; i < N_SHAPES; i += 2) {
        check(shapes[i], FR_DTYPE_F32, false);
        check(shapes[i], FR_DTYPE_TF32, false);
        check(shapes[i], FR_DTYPE_BF16, false);
    }
}

/* Scores whose maximum rises from tile to tile by more than forward puts up
 * with before it scales what it has summed up; not in tf32, which rounds large
 * scores too much. */
static void test_rising(void)
{
    static const int64_t s[5] = {1, 293, 2, 1, 64};
    check_sized(s, FR_DTYPE_BF16, true, 7.3);
}

/* So many blocks that gradients of keys take larger ones; the emulation has
 * time for one tile of queries in each. */
static void test_many(void)
{
#ifdef FR_EMULATED
    static const int64_t s[5] = {66, 17, 16, 16, 64};
#else
    static const int64_t s[5] = {66, 150, 8, 8, 64};
#endif
    check(s, FR_DTYPE_BF16, true);
}

/* Devices whose blocks have less shared memory take other kernels. */
static void test_lean(void)
{
#ifdef FR_EMULATED
    const int most = emulated_shared_bytes;
    emulated_shared_bytes = 99 * 1024;
    for (int i = 4; i < N_SHAPES; i++)
        check(shapes[i], FR_DTYPE_BF16, true);
    emulated_shared_bytes = most;
#else
    SKIP("this device has what it has");
#endif
}

static void test_refused(void)
{
    fr_err err = {0};
    df_case at = {.instr = {.op = FR_OP_ATTN_FWD,
                            .dtype = FR_DTYPE_BF16,
                            .dim = {1, 3, 1, 1, 257}}};
    CHECK_FAILS(df_launch(&at, df_call(&at), &err), FR_INPUT, &err);
    at.instr.dim[4] = 8;
    at.instr.dtype = FR_DTYPE_F16;
    CHECK_FAILS(df_launch(&at, df_call(&at), &err), FR_INPUT, &err);
    at.instr.flags = FR_INSTR_SAVE_PROBS;
    CHECK_FAILS(df_launch(&at, df_call(&at), &err), FR_INPUT, &err);
    at.instr.dtype = FR_DTYPE_F32;
    at.instr.dim[1] = 10 * 1000 * 1000; /* one row has no room */
    CHECK_FAILS(df_launch(&at, df_call(&at), &err), FR_INPUT, &err);
    CHECK_HAS(err.text, "choose flash attention");
}

DF_MAIN({"causal", test_causal}, {"whole", test_whole}, {"rising", test_rising},
        {"many", test_many}, {"lean", test_lean}, {"refused", test_refused})
