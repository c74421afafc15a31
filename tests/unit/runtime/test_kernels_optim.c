/*
 * test_kernels_optim.c: the optimizers against double references written from
 * the papers, over ranges that cut tensors, with clipping and decay; the
 * gradient norm; LARS and LAMB over tensor-parallel shards.
 */
#include "plan/codec/optimizer.h"
#include "tests/unit/runtime/kernel_fixture.h"

enum { N_TENSORS = 4, N_FLAT = 12000 };

/* A matrix, a vector, a tied copy and a sharded matrix; a gap and padding. */
static const fr_tensor tensors[N_TENSORS] = {
    {.first = 0, .n = 8470, .rows = 110, .cols = 77, .is_decayed = true},
    {.first = 8480, .n = 131, .rows = 1, .cols = 131},
    {.first = 8611,
     .n = 1000,
     .rows = 10,
     .cols = 100,
     .is_decayed = true,
     .is_tied_copy = true,
     .sharded_dim = 1},
    {.first = 9611,
     .n = 2200,
     .rows = 22,
     .cols = 100,
     .is_decayed = true,
     .sharded_dim = 2},
};

static int tensor_of(int i)
{
    for (int j = 0; j < N_TENSORS; j++)
        if (i >= (int)tensors[j].first &&
            i < (int)(tensors[j].first + tensors[j].n))
            return j;
    return -1;
}

static fr_job job_of(fr_optimizer_kind kind)
{
    fr_job job;
    fr_job_init(&job);
    job.optimizer = kind;
    job.lr = 0.0137;
    job.beta1 = 0.87;
    job.beta2 = 0.963;
    job.optimizer_eps = 1.3e-6;
    job.weight_decay = 0.071;
    job.trust_coefficient = 0.0173;
    job.n_steps = 9;
    job.warmup_steps = 2;
    job.lr_schedule = FR_LR_COSINE;
    return job;
}

/* ---- the reference: whole tensors, double ------------------------------- */

typedef struct reference {
    double w[N_FLAT], m[N_FLAT], v[N_FLAT];
} reference;

/* The direction before trust ratio, and what |.| is taken of. */
static double lamb_direction(const reference *ref, const fr_job *job, int i,
                             double decay, double t)
{
    double m = ref->m[i] / (1 - pow(job->beta1, t));
    double v = ref->v[i] / (1 - pow(job->beta2, t));
    return m / (sqrt(v) + job->optimizer_eps) + decay * ref->w[i];
}

static double ratio_of(const reference *ref, const fr_job *job, const double *g,
                       const fr_tensor *tensor, double t)
{
    double w = 0, u = 0;
    if (!tensor->is_decayed)
        return 1;
    for (int i = (int)tensor->first; i < (int)(tensor->first + tensor->n);
         i++) {
        double x = job->optimizer == FR_OPTIMIZER_LARS
                       ? g[i]
                       : lamb_direction(ref, job, i, job->weight_decay, t);
        w += ref->w[i] * ref->w[i];
        u += x * x;
    }
    w = sqrt(w);
    u = sqrt(u);
    return job->optimizer == FR_OPTIMIZER_LARS
               ? job->trust_coefficient * w / (u + job->weight_decay * w)
               : w / u;
}

static void reference_step(reference *ref, const fr_job *job, const double *g,
                           double lr, double t)
{
    for (int j = 0; j < N_TENSORS; j++) {
        int first = (int)tensors[j].first, last = first + (int)tensors[j].n;
        double decay = tensors[j].is_decayed ? job->weight_decay : 0;
        bool is_adam = job->optimizer == FR_OPTIMIZER_ADAMW ||
                       job->optimizer == FR_OPTIMIZER_LAMB;
        for (int i = first; i < last && is_adam; i++) {
            ref->m[i] = job->beta1 * ref->m[i] + (1 - job->beta1) * g[i];
            ref->v[i] = job->beta2 * ref->v[i] + (1 - job->beta2) * g[i] * g[i];
        }
        double ratio = ratio_of(ref, job, g, &tensors[j], t);
        for (int i = first; i < last; i++) {
            double d = g[i] + decay * ref->w[i];
            if (job->optimizer == FR_OPTIMIZER_SGD) {
                ref->m[i] = job->beta1 * ref->m[i] + d;
                ref->w[i] -= lr * ref->m[i];
            } else if (job->optimizer == FR_OPTIMIZER_LARS) {
                ref->m[i] = job->beta1 * ref->m[i] + lr * ratio * d;
                ref->w[i] -= ref->m[i];
            } else if (job->optimizer == FR_OPTIMIZER_ADAMW) {
                ref->w[i] -= lr * lamb_direction(ref, job, i, decay, t);
            } else {
                ref->w[i] -= lr * ratio * lamb_direction(ref, job, i, decay, t);
            }
        }
    }
}

/* ---- the kernels -------------------------------------------------------- */

typedef struct state {
    float *w, *g, *opt; /* opt: of each range in turn */
    double norms[2 * N_TENSORS];
    fr_step_scalars step;
} state;

static void run_op(state *at, const fr_job *job, fr_op op, int64_t first,
                   int64_t n, int64_t i_step, int n_threads)
{
    const fr_optimizer *optimizer = fr_optimizers[job->optimizer];
    fr_instr instr = {.op = (uint8_t)op, .dim = {n, first}};
    fr_kernel_call call = kf_call(&instr, n_threads, NULL, 0);
    call.job = job;
    call.i_step = i_step;
    call.tensors = tensors;
    call.n_tensors = N_TENSORS;
    call.ptr[0] = at->g + first;
    call.ptr[1] = at->w + first;
    call.ptr[2] = at->opt + first * optimizer->n_moments;
    call.ptr[3] = &at->step;
    call.ptr[4] = at->norms;
    fr_kernels_cpu[op](&call);
}

/* One step over ranges that end inside tensors. */
static void run_step(state *at, const fr_job *job, int64_t i_step,
                     int n_threads)
{
    static const int64_t cuts[] = {0, 3001, 8500, 9000, 11000, N_FLAT};
    memset(at->norms, 0, sizeof at->norms);
    for (int i = 0; i < 5 && fr_optimizers[job->optimizer]->has_norms; i++)
        run_op(at, job, FR_OP_OPT_NORMS, cuts[i], cuts[i + 1] - cuts[i], i_step,
               n_threads);
    for (int i = 0; i < 5; i++)
        run_op(at, job, FR_OP_OPT_STEP, cuts[i], cuts[i + 1] - cuts[i], i_step,
               n_threads);
}

static void check_optimizer(fr_optimizer_kind kind)
{
    const double clip = 0.37;
    fr_job job = job_of(kind);
    reference *ref = calloc(1, sizeof *ref);
    double *g = kf_doubles(NULL, N_FLAT);
    state a = {.w = kf_floats(N_FLAT, 1, 0.3), .g = NULL};
    float *start = kf_copy(a.w, N_FLAT);
    state b = {.w = kf_copy(a.w, N_FLAT)};
    a.opt = calloc(2 * N_FLAT, sizeof(float));
    b.opt = calloc(2 * N_FLAT, sizeof(float));
    a.step.clip_factor = b.step.clip_factor = clip;
    for (int i = 0; i < N_FLAT; i++)
        ref->w[i] = (double)a.w[i];
    for (int i_step = 0; i_step < 6; i_step++) {
        a.g = b.g = kf_floats(N_FLAT, 50 + (uint64_t)i_step, 0.8);
        for (int i = 0; i < N_FLAT; i++)
            g[i] = clip * (double)a.g[i];
        run_step(&a, &job, i_step, 2);
        run_step(&b, &job, i_step, 1);
        reference_step(ref, &job, g, fr_job_lr(&job, i_step), i_step + 1);
        free(a.g);
    }
    for (int i = 0; i < N_FLAT; i++)
        if (tensor_of(i) < 0) {
            CHECK(a.w[i] == start[i]);
            ref->w[i] = (double)start[i];
        }
    /* of the distance moved */
    double moved = 0;
    for (int i = 0; i < N_FLAT; i++)
        moved = fmax(moved, fabs(ref->w[i] - (double)start[i]));
    CHECK(moved > 1e-3);
    for (int i = 0; i < N_FLAT; i++)
        CHECK_WITHIN(a.w[i], ref->w[i], 3e-7 + 1e-5 * moved);
    CHECK(kf_same(a.w, b.w, N_FLAT) && kf_same(a.opt, b.opt, 2 * N_FLAT));
    free(ref);
    free(g);
    free(start);
    free(a.w);
    free(b.w);
    free(a.opt);
    free(b.opt);
}

static void test_sgd(void)
{
    check_optimizer(FR_OPTIMIZER_SGD);
}
static void test_adamw(void)
{
    check_optimizer(FR_OPTIMIZER_ADAMW);
}
static void test_lars(void)
{
    check_optimizer(FR_OPTIMIZER_LARS);
}
static void test_lamb(void)
{
    check_optimizer(FR_OPTIMIZER_LAMB);
}

/* Sharded operands: coordinate c works on [first + c n, first + (c+1) n). */
static void test_sharded_range(void)
{
    fr_job job = job_of(FR_OPTIMIZER_ADAMW);
    state a = {.w = kf_floats(N_FLAT, 1, 0.3),
               .g = kf_floats(N_FLAT, 2, 1),
               .opt = calloc(2 * N_FLAT, sizeof(float)),
               .step = {.clip_factor = 1}};
    float *w = kf_copy(a.w, N_FLAT);
    run_step(&a, &job, 3, 1);
    for (int c = 0; c < 3; c++) {
        float *opt = calloc(2 * N_FLAT / 3, sizeof *opt);
        fr_instr instr = {
            .op = FR_OP_OPT_STEP, .axis = FR_AXIS_DP, .dim = {N_FLAT / 3, 0}};
        instr.ref[1].is_sharded = 1;
        instr.flags |= FR_INSTR_SHARD;
        fr_kernel_call call = kf_call(&instr, 2, NULL, 0);
        call.job = &job;
        call.i_step = 3;
        call.coordinate = c;
        call.tensors = tensors;
        call.n_tensors = N_TENSORS;
        call.ptr[0] = a.g + c * N_FLAT / 3;
        call.ptr[1] = w + c * N_FLAT / 3;
        call.ptr[2] = opt;
        call.ptr[3] = &a.step;
        fr_kernels_cpu[FR_OP_OPT_STEP](&call);
        free(opt);
    }
    CHECK(kf_same(w, a.w, N_FLAT));
    free(w);
    free(a.w);
    free(a.g);
    free(a.opt);
}

/* The terms that each rank counts in gradient norm and layer norms. */
static void test_counting(void)
{
    fr_job job = job_of(FR_OPTIMIZER_LARS);
    state at = {.w = kf_floats(N_FLAT, 3, 0.3),
                .g = kf_floats(N_FLAT, 4, 1),
                .opt = calloc(2 * N_FLAT, sizeof(float)),
                .step = {.clip_factor = 0.5}};
    for (int tp = 0; tp < 2; tp++) {
        double sum = 0.25, norms[2 * N_TENSORS] = {0};
        for (int i = 0; i < N_FLAT; i++) {
            int j = tensor_of(i);
            double g = (double)at.g[i], w = (double)at.w[i];
            bool is_here = j >= 0 && (tensors[j].sharded_dim || tp == 0);
            if (is_here && !tensors[j].is_tied_copy)
                sum += g * g;
            if (is_here) {
                norms[2 * j] += w * w;
                norms[2 * j + 1] += 0.25 * g * g;
            }
        }
        fr_instr instr = {.op = FR_OP_GRAD_SQSUM, .dim = {N_FLAT, 0}};
        fr_kernel_call call = kf_call(&instr, 2, (void *[]){at.g, &at.step}, 2);
        call.tensors = tensors;
        call.n_tensors = N_TENSORS;
        call.tp_coordinate = tp;
        at.step.grad_sq_sum = 0.25;
        fr_kernels_cpu[FR_OP_GRAD_SQSUM](&call);
        CHECK_NEAR(at.step.grad_sq_sum, sum, 1e-13);
        double two_threads = at.step.grad_sq_sum;
        at.step.grad_sq_sum = 0.25;
        call.n_threads = 1;
        fr_kernels_cpu[FR_OP_GRAD_SQSUM](&call);
        CHECK(at.step.grad_sq_sum == two_threads);

        instr = (fr_instr){.op = FR_OP_OPT_NORMS, .dim = {N_FLAT, 0}};
        memset(at.norms, 0, sizeof at.norms);
        call.job = &job;
        for (int i = 0; i < 5; i++)
            call.ptr[i] = (void *[]){at.g, at.w, at.opt, &at.step, at.norms}[i];
        fr_kernels_cpu[FR_OP_OPT_NORMS](&call);
        for (int i = 0; i < 2 * N_TENSORS; i++)
            CHECK_NEAR(at.norms[i], norms[i], 1e-13);
    }
    free(at.w);
    free(at.g);
    free(at.opt);
}

static void test_clip(void)
{
    static const double cases[][3] = {/* max_norm, sum of squares, factor */
                                      {1.5, 9.0, 0.5},
                                      {3.5, 9.0, 1.0},
                                      {0.0, 9.0, 1.0},
                                      {-1.0, 16.0, 1.0},
                                      {2.0, 0.0, 1.0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fr_step_scalars step = {.grad_sq_sum = cases[i][1]};
        fr_instr instr = {.op = FR_OP_CLIP, .scalar = cases[i][0]};
        KF_RUN(&instr, 1, &step);
        CHECK_NEAR(step.clip_factor, cases[i][2], 1e-15);
        CHECK_NEAR(step.grad_norm, sqrt(cases[i][1]), 1e-15);
    }
}

CHECK_MAIN({"sgd", test_sgd}, {"adamw", test_adamw}, {"lars", test_lars},
           {"lamb", test_lamb}, {"sharded_range", test_sharded_range},
           {"counting", test_counting}, {"clip", test_clip})
