/*
 * test_cuda_optim.c: gradient norm, clipping and the optimizers on the device
 * against the CPU's; with 16-bit weights against the CPU's on the master copy.
 */
#include "plan/codec/optimizer.h"
#include "tests/gpu/device_fixture.h"

/* Decayed and not, longer and shorter than a block, padding between. */
static const fr_tensor tensors[] = {
    {.first = 0, .n = 5003, .is_decayed = true, .sharded_dim = 1},
    {.first = 5003, .n = 131},
    {.first = 5134, .n = 97, .sharded_dim = 1},
    {.first = 5248, .n = 9001, .is_decayed = true, .sharded_dim = 2},
    {.first = 14249, .n = 63, .is_decayed = true, .is_tied_copy = true},
    {.first = 14312, .n = 401, .is_decayed = true, .sharded_dim = 1}};
enum { N_TENSORS = 6, FIRST = 37, N = 14500 };

static df_case range_case(fr_op op)
{
    return (df_case){.instr = {.op = (uint8_t)op, .dim = {N, FIRST}},
                     .tensors = tensors,
                     .n_tensors = N_TENSORS,
                     .tolerance = 2e-6};
}

static void test_norm(void)
{
    for (int tp = 0; tp < 2; tp++) {
        df_case at = range_case(FR_OP_GRAD_SQSUM);
        at.operand[0] = (df_operand){DF_G, N, 1.3, 'r', 0};
        at.operand[1] = (df_operand){DF_F64, 4, 0.7, 'm', 0};
        at.tp_coordinate = tp;
        df_check_all(at);
        at.instr.ref[0].is_sharded = 1;
        at.instr.dim[0] = 7001;
        at.coordinate = 1;
        df_check_all(at);
    }
}

static void test_clip(void)
{
    static const double max_norm[] = {0.3, 7, 0};
    for (int i = 0; i < 3; i++) {
        df_case at = {.instr = {.op = FR_OP_CLIP, .scalar = max_norm[i]},
                      .operand = {{DF_F64, 4, 0.9, 'm', 0}},
                      .tolerance = 1e-14};
        df_check(at, FR_DTYPE_F32, FR_DTYPE_F32);
    }
}

static fr_job job_of(fr_optimizer_kind kind)
{
    fr_job job;
    fr_job_init(&job);
    job.optimizer = kind;
    job.lr = 0.0131;
    job.trust_coefficient = 0.37;
    job.optimizer_eps = 1e-4;
    return job;
}

/* An instruction of the optimizer; second moments are squares. */
static df_case optimizer_case(fr_op op, const fr_job *job, int n_master)
{
    const fr_optimizer *optimizer = fr_optimizers[job->optimizer];
    df_case at = range_case(op);
    int64_t n_state = (int64_t)(optimizer->n_moments + n_master) * N;
    bool is_norms = op == FR_OP_OPT_NORMS;
    at.job = job;
    at.i_step = 6;
    at.operand[0] = (df_operand){DF_G, N, 1.3, 'r', 0};
    at.operand[1] = (df_operand){DF_T, N, 0.9, is_norms ? 'r' : 'm', 0};
    at.operand[2] = (df_operand){DF_F32, n_state, 0.4, 'm', 0};
    at.operand[3] = (df_operand){DF_F64, 4, 0.9, 'r', 0};
    if (optimizer->has_norms)
        at.operand[4] =
            (df_operand){DF_F64, 2 * N_TENSORS, 1.9, is_norms ? 'm' : 'r', 0};
    return at;
}

static void square_moments(const df_case *at, df_memory *memory)
{
    float *v = (float *)memory[2].host + N;
    if (fr_optimizers[at->job->optimizer]->n_moments < 2)
        return;
    for (int i = 0; i < N; i++)
        v[i] *= v[i];
    df_to_device(at, 2, &memory[2]);
}

/*
 * The oracle works on float32 weights: those of the master copy, which the
 * device has behind the moments.
 */
static void check_optimizer(fr_op op, fr_optimizer_kind kind, fr_dtype dtype,
                            fr_dtype grad_dtype)
{
    const fr_job job = job_of(kind);
    const int n_moments = fr_optimizers[kind]->n_moments;
    df_case at = optimizer_case(op, &job, dtype == FR_DTYPE_BF16);
    df_memory memory[FR_INSTR_REFS];
    at.instr.dtype = (uint8_t)dtype;
    at.instr.grad_dtype = (uint8_t)grad_dtype;
    df_create(&at, memory);
    square_moments(&at, memory);
    float *master = (float *)memory[2].host + (int64_t)n_moments * N;
    fr_kernel_call call = df_call(&at);
    for (int i = 0; i < 5; i++)
        call.ptr[i] = memory[i].device;
    df_launch_twice(&at, memory, call);
    for (int i = 0; i < 5; i++)
        call.ptr[i] = memory[i].host;
    if (dtype == FR_DTYPE_BF16)
        call.ptr[1] = master;
    df_run_host(call);
    for (int i = 0; dtype == FR_DTYPE_BF16 && i < N; i++)
        for (int t = 0; t < N_TENSORS; t++) /* padding stays as it is */
            if (i + FIRST >= (int)tensors[t].first &&
                i + FIRST < (int)(tensors[t].first + tensors[t].n))
                ((float *)memory[1].host)[i] = master[i];
    for (int i = 1; i < 5; i++) {
        if (at.operand[i].access != 'm')
            continue;
        df_fetch(&memory[i]);
        df_compare(&at, i, &memory[i]);
    }
    df_destroy(&at, memory);
}

static void test_optimizers(void)
{
    for (int kind = 0; kind < FR_OPTIMIZER_N; kind++) {
        for (int is_norms = 0; is_norms < 2; is_norms++) {
            fr_op op = is_norms ? FR_OP_OPT_NORMS : FR_OP_OPT_STEP;
            if (is_norms && !fr_optimizers[kind]->has_norms)
                continue;
            check_optimizer(op, (fr_optimizer_kind)kind, FR_DTYPE_F32,
                            FR_DTYPE_F32);
            check_optimizer(op, (fr_optimizer_kind)kind, FR_DTYPE_BF16,
                            FR_DTYPE_F32);
            check_optimizer(op, (fr_optimizer_kind)kind, FR_DTYPE_BF16,
                            FR_DTYPE_BF16);
        }
    }
}

/* More tensors than one launch can name. */
static void test_many_tensors(void)
{
    enum { MANY = 150 };
    static fr_tensor many[MANY];
    const fr_job job = job_of(FR_OPTIMIZER_LAMB);
    for (int i = 0; i < MANY; i++)
        many[i] = (fr_tensor){.first = (uint64_t)(i * 40),
                              .n = (uint64_t)(39 + i % 2),
                              .is_decayed = i % 3 == 0,
                              .sharded_dim = 1};
    df_case at = optimizer_case(FR_OP_OPT_NORMS, &job, 0);
    at.tensors = many;
    at.n_tensors = MANY;
    at.operand[2].scale = 0; /* moments 0 */
    at.operand[4] = (df_operand){DF_F64, 2 * MANY, 0.9, 'm', 0};
    df_check(at, FR_DTYPE_F32, FR_DTYPE_F32);
}

DF_MAIN({"norm", test_norm}, {"clip", test_clip},
        {"optimizers", test_optimizers}, {"many_tensors", test_many_tensors})
