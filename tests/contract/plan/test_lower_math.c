/*
 * Every layout computes the same training step: programs of many plans are
 * run rank by rank in this process, and losses and weights after three steps
 * are compared with those of one rank.
 */
#include "plan/decide/grid.h"
#include "tests/contract/plan/layer_models.h"
#include "tests/contract/plan/program_runner.h"

enum { N_STEPS = 3, MAX_IDS = 16 + 16 * 8 };

typedef struct outcome {
    double loss[N_STEPS];
    double *weights[MAX_IDS]; /* global tensors; NaN: nobody holds it */
    double *initial[MAX_IDS];
    int64_t n[MAX_IDS];
} outcome;

static fr_model tiny_model(bool is_llama)
{
    fr_model model = is_llama ? layer_model_llama() : layer_model_gpt();
    model.n_layers = 4;
    model.hidden = 24;
    model.n_heads = 4;
    model.n_kv_heads = is_llama ? 2 : 4;
    model.head_dim = 6;
    model.ffn_hidden = is_llama ? 44 : 96;
    model.vocab = 71;
    model.max_seq = 20;
    return model;
}

static fr_job tiny_job(fr_optimizer_kind optimizer)
{
    fr_job job;
    fr_job_init(&job);
    job.global_batch = 8;
    job.seq = 12;
    job.n_steps = N_STEPS;
    job.seed = 7321;
    job.optimizer = optimizer;
    job.lr = optimizer == FR_OPTIMIZER_SGD ? 0.237 : 0.0173;
    job.beta1 = 0.87;
    job.beta2 = 0.93;
    /* Large enough that rounding does not turn the sign of a step. */
    job.optimizer_eps = 1e-3;
    job.weight_decay = 0.0371;
    job.trust_coefficient = 0.0213;
    job.clip_norm = 0.613;
    job.lr_schedule = FR_LR_CONSTANT;
    job.warmup_steps = 0;
    return job;
}

/* Global place of a local element, by the words of program.h. */
static int64_t global_index(const fr_tensor *t, int64_t row, int64_t col,
                            int64_t tp, int64_t n_tp)
{
    bool is_vector = t->rows == 1 && t->sharded_dim == 2;
    int64_t i = t->sharded_dim == 1 || is_vector ? (is_vector ? col : row) : 0;
    int64_t first = 0;
    if (t->sharded_dim == 1 || is_vector) {
        int64_t local = is_vector ? t->cols : t->rows;
        for (int p = 0; p < t->n_parts; p++) {
            int64_t part = t->n_parts == 1 ? local : t->part_rows[p];
            if (i < part) {
                i = first + tp * part + i;
                break;
            }
            i -= part;
            first += part * n_tp;
        }
        if (is_vector)
            return i;
        return i < t->global_rows ? i * t->global_cols + col : -1;
    }
    if (t->sharded_dim == 2)
        col += tp * t->cols;
    return row < t->global_rows ? row * t->global_cols + col : -1;
}

/* Gathers the parameters of all ranks; holders must agree to the bit. */
static void gather(program_runner *run, double *out[MAX_IDS],
                   int64_t n_out[MAX_IDS])
{
    const fr_plan *plan = &run->program->plan;
    for (int64_t r = 0; r < run->world; r++) {
        const fr_rank_program *rank_program = run->ranks[r].rank_program;
        const void *flat =
            run->ranks[r].slab + rank_program->weight_offset_bytes;
        const float *weights = flat;
        for (uint32_t i = 0; i < rank_program->n_tensors; i++) {
            const fr_tensor *t = &rank_program->tensors[i];
            int64_t n = t->global_rows * t->global_cols;
            if (!CHECK(t->id < MAX_IDS))
                return;
            if (!out[t->id]) {
                out[t->id] = malloc((size_t)n * sizeof(double));
                for (int64_t k = 0; k < n; k++)
                    out[t->id][k] = (double)NAN;
                n_out[t->id] = n;
            }
            int n_wrong = 0;
            for (int64_t k = 0; k < (int64_t)t->n; k++) {
                int64_t at = global_index(t, k / t->cols, k % t->cols,
                                          fr_plan_coord(plan, r).tp, plan->tp);
                double value = (double)weights[t->first + (uint64_t)k];
                if (at < 0) {
                    n_wrong += value != 0; /* padding of the vocabulary */
                    continue;
                }
                double *to = &out[t->id][at];
                n_wrong += !isnan(*to) && *to != value;
                *to = value;
            }
            if (n_wrong)
                CHECK_INT(n_wrong, 0);
        }
    }
}

static bool train(const fr_model *model, const fr_job *job, const fr_plan *plan,
                  outcome *out)
{
    fr_program *program = NULL;
    program_runner run;
    fr_err err = {0};
    memset(out, 0, sizeof *out);
    if (!CHECK_OK(fr_lower(model, job, plan, NULL, &program, &err), &err))
        return false;
    CHECK_OK(fr_program_check(program, NULL, &err), &err);
    pr_open(&run, program, 91);
    gather(&run, out->initial, out->n);
    for (int i = 0; i < N_STEPS; i++)
        out->loss[i] = pr_step(&run);
    gather(&run, out->weights, out->n);
    pr_close(&run);
    fr_program_destroy(program);
    return true;
}

static void release(outcome *out)
{
    for (int i = 0; i < MAX_IDS; i++) {
        free(out->weights[i]);
        free(out->initial[i]);
    }
}

/* Weights may differ by `tolerance` of the tensor's largest change. */
static void compare(const outcome *a, const outcome *b, double tolerance,
                    const char *name)
{
    for (int i = 0; i < N_STEPS; i++)
        if (!check_near(a->loss[i], b->loss[i], 3e-6, __FILE__, __LINE__,
                        "loss"))
            printf("    step %d of %s\n", i, name);
    for (int id = 0; id < MAX_IDS; id++) {
        double most = 0, off = 0;
        if (!CHECK_INT(a->n[id], b->n[id]))
            printf("    tensor %d of %s\n", id, name);
        for (int64_t k = 0; k < a->n[id] && k < b->n[id]; k++) {
            double moved = fabs(a->weights[id][k] - a->initial[id][k]);
            double differs = fabs(a->weights[id][k] - b->weights[id][k]);
            most = moved > most ? moved : most;
            off = !(differs <= off) ? differs : off; /* NaN sticks */
            if (a->initial[id][k] != b->initial[id][k])
                off = (double)INFINITY;
        }
        if (!check_that(off <= tolerance * most + 1e-9, __FILE__, __LINE__,
                        "%s: tensor %d is off by %g, moved %g", name, id, off,
                        most))
            return;
    }
}

typedef struct layout {
    int dp, tp, pp, vpp, micro_batch, zero, recompute, schedule;
    bool is_sp, is_serial;
    uint64_t bucket_bytes;
} layout;

static fr_plan plan_of(const layout *l)
{
    fr_plan plan;
    fr_plan_init(&plan);
    plan.dp = l->dp;
    plan.tp = l->tp;
    plan.pp = l->pp;
    plan.vpp = l->vpp ? l->vpp : 1;
    plan.micro_batch = l->micro_batch;
    plan.zero_stage = l->zero;
    plan.recompute = (fr_recompute)l->recompute;
    plan.schedule = (fr_schedule_kind)l->schedule;
    plan.is_sequence_parallel = l->is_sp;
    plan.is_overlap = !l->is_serial;
    plan.bucket_bytes = l->bucket_bytes;
    plan.n_threads = 1;
    return plan;
}

static const layout layouts[] = {
    {1, 1, 1, 1, 2, 0, 0, 1, false, false, 0},
    {1, 1, 1, 1, 1, 0, 1, 1, false, false, 9000},
    {1, 1, 1, 1, 4, 0, 2, 1, false, false, 0},
    {2, 1, 1, 1, 2, 0, 0, 1, false, false, 20000},
    {2, 1, 1, 1, 1, 0, 0, 1, false, true, 20000},
    {2, 1, 1, 1, 2, 1, 0, 1, false, false, 20000},
    {4, 1, 1, 1, 2, 1, 2, 1, false, true, 0},
    {4, 1, 1, 1, 1, 0, 1, 1, false, false, 1},
    {1, 2, 1, 1, 4, 0, 0, 1, false, false, 0},
    {1, 2, 1, 1, 2, 0, 0, 1, true, false, 0},
    {1, 2, 1, 1, 8, 0, 2, 1, true, false, 0},
    {2, 2, 1, 1, 2, 1, 1, 1, true, false, 30000},
    {2, 2, 1, 1, 2, 0, 2, 1, false, false, 30000},
    {1, 1, 2, 1, 1, 0, 0, 0, false, false, 0},
    {1, 1, 2, 1, 1, 0, 0, 1, false, false, 0},
    {1, 1, 4, 1, 1, 0, 2, 1, false, false, 0},
    {1, 1, 4, 1, 2, 0, 1, 0, false, false, 0},
    {1, 1, 2, 2, 1, 0, 0, 2, false, false, 0},
    {1, 1, 2, 2, 2, 0, 2, 2, false, false, 0},
    {2, 1, 2, 1, 1, 1, 0, 1, false, false, 20000},
    {2, 1, 2, 2, 1, 1, 0, 2, false, true, 20000},
    {1, 2, 2, 1, 1, 0, 0, 1, true, false, 0},
    {1, 2, 2, 2, 1, 0, 2, 2, true, false, 0},
    {2, 2, 2, 1, 1, 1, 0, 1, true, false, 15000},
    {2, 2, 2, 2, 1, 0, 1, 2, false, false, 15000},
};

static void check_layouts(bool is_llama, bool is_tied,
                          fr_optimizer_kind optimizer, double tolerance)
{
    fr_model model = tiny_model(is_llama);
    fr_job job = tiny_job(optimizer);
    const layout alone = {1, 1, 1, 1, 8, 0, 0, 1, false, false, 0};
    fr_plan plan = plan_of(&alone);
    outcome reference;
    model.is_tied = is_tied;
    if (!train(&model, &job, &plan, &reference))
        return;
    CHECK(reference.loss[0] > 4.0 && reference.loss[0] < 4.6); /* ln 71 */
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        outcome got;
        char name[160];
        plan = plan_of(&layouts[i]);
        fr_plan_describe(&plan, name, sizeof name);
        if (train(&model, &job, &plan, &got))
            compare(&reference, &got, tolerance, name);
        release(&got);
    }
    release(&reference);
}

static void test_gpt2_sgd(void)
{
    check_layouts(false, true, FR_OPTIMIZER_SGD, 1e-4);
}

static void test_gpt2_untied_adamw(void)
{
    check_layouts(false, false, FR_OPTIMIZER_ADAMW, 1e-3);
}

static void test_llama_adamw(void)
{
    check_layouts(true, false, FR_OPTIMIZER_ADAMW, 1e-3);
}

static void test_llama_tied_lamb(void)
{
    check_layouts(true, true, FR_OPTIMIZER_LAMB, 1e-3);
}

static void test_gpt2_lars(void)
{
    check_layouts(false, true, FR_OPTIMIZER_LARS, 1e-3);
}

/* With every element kept, or a full rank, a compressor changes nothing. */
static void test_compressors(void)
{
    fr_model model = tiny_model(false);
    fr_job job = tiny_job(FR_OPTIMIZER_SGD);
    const layout alone = {1, 1, 1, 1, 8, 0, 0, 1, false, false, 0};
    static const layout several[] = {
        {2, 1, 1, 1, 2, 0, 0, 1, false, false, 20000},
        {2, 1, 2, 1, 1, 0, 0, 1, false, true, 20000},
        {2, 2, 1, 1, 2, 0, 0, 1, true, false, 1},
    };
    static const double tolerance[FR_COMPRESSOR_N] = {
        [FR_COMPRESSOR_BF16] = 3e-2,
        [FR_COMPRESSOR_INT8] = 1e-1,
        [FR_COMPRESSOR_TOPK] = 1e-4,
        [FR_COMPRESSOR_RANDOMK] = 1e-4,
    };
    fr_plan plan = plan_of(&alone);
    outcome reference;
    if (!train(&model, &job, &plan, &reference))
        return;
    for (size_t i = 0; i < sizeof several / sizeof several[0]; i++) {
        static const fr_compressor_kind kinds[] = {
            FR_COMPRESSOR_BF16, FR_COMPRESSOR_INT8, FR_COMPRESSOR_TOPK,
            FR_COMPRESSOR_RANDOMK};
        for (size_t k = 0; k < FR_LENGTH(kinds); k++) {
            const fr_compressor_kind c = kinds[k];
            outcome got;
            char name[160];
            plan = plan_of(&several[i]);
            plan.compressor = c;
            plan.compressor_density = 1.0;
            plan.has_error_feedback = true;
            fr_plan_describe(&plan, name, sizeof name);
            if (train(&model, &job, &plan, &got)) {
                for (int s = 0; s < N_STEPS; s++)
                    CHECK_NEAR(got.loss[s], reference.loss[s], 2e-3);
                if (c == FR_COMPRESSOR_TOPK || c == FR_COMPRESSOR_RANDOMK)
                    compare(&reference, &got, tolerance[c], name);
            }
            release(&got);
        }
    }
    release(&reference);
}

/* The compressed sum is the same on all ranks and the loss still falls. */
static void test_powersgd(void)
{
    fr_model model = tiny_model(true);
    fr_job job = tiny_job(FR_OPTIMIZER_SGD);
    const layout l = {2, 1, 2, 1, 2, 0, 0, 1, false, false, 9000};
    fr_plan plan = plan_of(&l);
    outcome got;
    plan.compressor = FR_COMPRESSOR_POWERSGD;
    plan.compressor_rank = 3;
    plan.has_error_feedback = true;
    if (train(&model, &job, &plan, &got))
        for (int s = 0; s < N_STEPS; s++)
            CHECK(got.loss[s] > 4.0 && got.loss[s] < 4.6);
    release(&got);
}

CHECK_MAIN({"gpt2_sgd", test_gpt2_sgd},
           {"gpt2_untied_adamw", test_gpt2_untied_adamw},
           {"llama_adamw", test_llama_adamw},
           {"llama_tied_lamb", test_llama_tied_lamb},
           {"gpt2_lars", test_gpt2_lars}, {"compressors", test_compressors},
           {"powersgd", test_powersgd})
