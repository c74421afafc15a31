/*
 * A large matrix of plans: each is lowered, checked, and its parameters and
 * memory are compared with what they must be.
 */
#include "plan/codec/compressor.h"
#include "plan/codec/optimizer.h"
#include "plan/collective/collective.h"
#include "program/lower/step/lower.h"
#include "tests/check.h"
#include "tests/contract/plan/layer_models.h"

#include <stdlib.h>
#include <time.h>

static fr_model tiny_model(bool is_llama)
{
    fr_model model = is_llama ? layer_model_llama() : layer_model_gpt();
    model.n_layers = 9;
    model.hidden = 96;
    model.n_heads = 8;
    model.n_kv_heads = is_llama ? 4 : 8;
    model.head_dim = 12;
    model.ffn_hidden = is_llama ? 248 : 384;
    model.vocab = 613;
    model.max_seq = 40;
    return model;
}

static fr_job tiny_job(int optimizer)
{
    fr_job job;
    fr_job_init(&job);
    job.global_batch = 32;
    job.seq = 24;
    job.optimizer = (fr_optimizer_kind)optimizer;
    return job;
}

/* Unique tensors over all rank programs, at their global size. */
static uint64_t count_parameters(const fr_program *program)
{
    bool is_seen[16 + 16 * 16] = {false};
    uint64_t sum = 0;
    for (uint32_t c = 0; c < program->n_rank_programs; c++) {
        const fr_rank_program *rank_program = &program->rank_programs[c];
        for (uint32_t i = 0; i < rank_program->n_tensors; i++) {
            const fr_tensor *t = &rank_program->tensors[i];
            CHECK(t->first % 16 == 0);
            CHECK_INT(t->n, t->rows * t->cols);
            if (is_seen[t->id])
                CHECK(t->is_tied_copy);
            else
                sum += (uint64_t)(t->global_rows * t->global_cols);
            is_seen[t->id] = true;
        }
    }
    return sum;
}

static void check_memory_parts(const fr_program *program, const char *name)
{
    const fr_plan *plan = &program->plan;
    fr_err err = {0};
    for (uint32_t c = 0; c < program->n_rank_programs; c++) {
        const fr_rank_program *rank_program = &program->rank_programs[c];
        uint64_t kinds[FR_MEMORY_N], peak, sum = 0;
        uint64_t flat = rank_program->n_parameters * sizeof(float);
        uint64_t state = fr_optimizer_state_bytes(program->job.optimizer,
                                                  rank_program->n_parameters);
        CHECK_OK(fr_rank_program_peak(rank_program, kinds, &peak, &err), &err);
        for (int k = 0; k < FR_MEMORY_N; k++)
            sum += kinds[k];
        CHECK_INT(sum, peak);
        CHECK_INT(kinds[FR_MEMORY_PARAMETERS], flat);
        CHECK_INT(kinds[FR_MEMORY_GRADIENTS], flat);
        if (plan->compressor == FR_COMPRESSOR_NONE)
            CHECK_INT(kinds[FR_MEMORY_OPTIMIZER],
                      plan->zero_stage ? state / (uint64_t)plan->dp : state);
        CHECK(rank_program->weight_offset_bytes % 4096 == 0 &&
              rank_program->grad_offset_bytes % 4096 == 0);
        CHECK(rank_program->slab_bytes >= peak);
        /* Packing loses little: page rounding and at most 3 %. */
        check_that((double)rank_program->slab_bytes <=
                       1.03 * (double)peak + 6.0 * 4096,
                   __FILE__, __LINE__, "%s stage %u: slab %llu, live %llu",
                   name, (unsigned)c,
                   (unsigned long long)rank_program->slab_bytes,
                   (unsigned long long)peak);
    }
}

typedef struct totals {
    int n_legal, n_illegal;
    double slowest_check_s;
} totals;

static void try_plan(const fr_model *model, const fr_job *job,
                     const fr_plan *plan, totals *sums)
{
    fr_program *program = NULL;
    fr_err err = {0};
    char name[160];
    int n_problems = -1;
    if (fr_plan_check_executable(plan, model, job, &err) != FR_OK) {
        sums->n_illegal++;
        return;
    }
    sums->n_legal++;
    fr_plan_describe(plan, name, sizeof name);
    if (!CHECK_OK(fr_lower(model, job, plan, NULL, &program, &err), &err))
        return;
    clock_t begin = clock();
    if (!CHECK_OK(fr_program_check(program, &n_problems, &err), &err))
        printf("    %s\n", name);
    double took_s = (double)(clock() - begin) / CLOCKS_PER_SEC;
    sums->slowest_check_s = fmax(sums->slowest_check_s, took_s);
    CHECK_INT(n_problems, 0);
    CHECK_INT(count_parameters(program), fr_model_parameters(model));
    check_memory_parts(program, name);
    fr_program_destroy(program);
}

/* A mixed-radix counter over all options. */
static void plan_number(int64_t i, fr_plan *plan, int *optimizer)
{
    static const int64_t micros[] = {1, 2, 4};
    static const uint64_t buckets[] = {0, 1, 150000};
    static const int degrees[] = {1, 2, 4};
    fr_plan_init(plan);
    plan->n_threads = 1;
#define PICK(n)                                                                \
    (int)(i % (n));                                                            \
    i /= (n)
    int dp = PICK(3);
    int tp = PICK(3);
    int pp = PICK(3);
    int schedule = PICK(3);
    int micro = PICK(3);
    int zero = PICK(2);
    int recompute = PICK(3);
    int sp = PICK(2);
    int serial = PICK(2);
    int bucket = PICK(3);
    int compressor = PICK(FR_COMPRESSOR_N);
    int vpp = PICK(2);
    int order = PICK(FR_RANK_ORDER_N);
    int rule = PICK(FR_OPTIMIZER_N);
#undef PICK
    plan->dp = degrees[dp];
    plan->tp = degrees[tp];
    plan->pp = degrees[pp];
    plan->schedule = (fr_schedule_kind)schedule;
    plan->vpp = plan->schedule == FR_SCHEDULE_INTERLEAVED && plan->pp < 4
                    ? vpp + 2
                : plan->schedule == FR_SCHEDULE_INTERLEAVED ? 2
                                                            : 1;
    plan->micro_batch = micros[micro];
    plan->zero_stage = plan->dp > 1 ? zero : 0;
    plan->recompute = (fr_recompute)recompute;
    plan->is_sequence_parallel = plan->tp > 1 && sp;
    plan->is_overlap = !serial;
    plan->bucket_bytes = buckets[bucket];
    plan->compressor =
        plan->dp > 1 ? (fr_compressor_kind)compressor : FR_COMPRESSOR_NONE;
    plan->compressor_rank = 3;
    plan->compressor_density = 0.017;
    plan->has_error_feedback = i % 2 == 0;
    plan->rank_order = (fr_rank_order)order;
    *optimizer = rule;
}

static void test_matrix(void)
{
    totals sums = {0};
    uint64_t random = 88172645463325252U;
    for (int i = 0; i < 900; i++) {
        fr_plan plan;
        int optimizer;
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        plan_number((int64_t)(random >> 3), &plan, &optimizer);
        fr_model model = tiny_model(i % 2 == 1);
        model.is_tied = (random >> 40) % 2 == 0;
        fr_job job = tiny_job(optimizer);
        job.clip_norm = (random >> 50) % 3 ? 1.0 : 0.0;
        try_plan(&model, &job, &plan, &sums);
    }
    printf("# %d legal plans lowered and checked, %d illegal, slowest check "
           "%.1f ms\n",
           sums.n_legal, sums.n_illegal, 1e3 * sums.slowest_check_s);
    CHECK(sums.n_legal >= 300);
}

static uint64_t slab_of(const fr_plan *plan, uint32_t i_stage)
{
    fr_model model = tiny_model(false);
    fr_job job = tiny_job(FR_OPTIMIZER_ADAMW);
    fr_program *program = NULL;
    fr_err err = {0};
    if (!CHECK_OK(fr_lower(&model, &job, plan, NULL, &program, &err), &err))
        return 0;
    uint64_t bytes = program->rank_programs[i_stage].slab_bytes;
    fr_program_destroy(program);
    return bytes;
}

/* More memory where more is kept. */
static void test_peak_order(void)
{
    fr_plan plan;
    fr_plan_init(&plan);
    plan.micro_batch = 4;
    uint64_t none = slab_of(&plan, 0);
    plan.recompute = FR_RECOMPUTE_SELECTIVE;
    uint64_t selective = slab_of(&plan, 0);
    plan.recompute = FR_RECOMPUTE_FULL;
    uint64_t full = slab_of(&plan, 0);
    CHECK(none > selective && selective > full);
    /* Selective drops the probabilities of 9 layers: 4 x 8 x 24 x 24 floats
     * each, but keeps one log-sum-exp per row. */
    CHECK_NEAR(none - selective, 9 * 4 * (4 * 8 * 24 * 24 - 4 * 8 * 24), 0.02);

    fr_plan_init(&plan);
    plan.pp = 4;
    plan.micro_batch = 1;
    plan.schedule = FR_SCHEDULE_GPIPE;
    uint64_t gpipe = slab_of(&plan, 0);
    plan.schedule = FR_SCHEDULE_1F1B;
    CHECK(gpipe > 2 * slab_of(&plan, 0));
    CHECK(slab_of(&plan, 1) > slab_of(&plan, 2));

    fr_plan_init(&plan);
    plan.dp = 4;
    plan.micro_batch = 1;
    uint64_t replicated = slab_of(&plan, 0);
    plan.zero_stage = 1;
    uint64_t model_bytes = 4 * 1056 * 1000; /* about a million parameters */
    CHECK(replicated - slab_of(&plan, 0) > model_bytes);
}

/* The size that the design promises: 8 ranks, 8 micro-batches, 12 layers. */
static void test_check_is_quick(void)
{
    fr_model model = tiny_model(false);
    fr_job job = tiny_job(FR_OPTIMIZER_ADAMW);
    fr_plan plan;
    fr_program *program = NULL;
    fr_err err = {0};
    model.n_layers = 12;
    fr_plan_init(&plan);
    plan.dp = 2;
    plan.pp = 2;
    plan.tp = 2;
    plan.micro_batch = 2;
    if (!CHECK_OK(fr_lower(&model, &job, &plan, NULL, &program, &err), &err))
        return;
    CHECK_INT(program->n_micro_batches, 8);
    clock_t begin = clock();
    CHECK_OK(fr_program_check(program, NULL, &err), &err);
    CHECK((double)(clock() - begin) / CLOCKS_PER_SEC < 5.0);
    fr_program_destroy(program);
}

static void test_placement(void)
{
    static const int32_t nodes[4] = {0, 0, 1, 1};
    const fr_placement placement = {.n_ranks = 4, .node_of_rank = nodes};
    fr_model model = tiny_model(false);
    fr_job job = tiny_job(FR_OPTIMIZER_ADAMW);
    fr_plan plan;
    fr_program *program = NULL;
    fr_err err = {0};
    int n_direct = 0, n_other = 0;
    fr_plan_init(&plan);
    plan.tp = 2; /* ranks 0,1 and 2,3: inside the nodes; dp crosses */
    plan.dp = 2;
    if (!CHECK_OK(fr_lower(&model, &job, &plan, &placement, &program, &err),
                  &err))
        return;
    for (uint32_t i = 0; i < program->n_instrs; i++) {
        const fr_instr *instr = &program->instrs[i];
        bool is_direct = instr->algorithm == FR_COLLECTIVE_DIRECT;
        if (fr_op_class_of((fr_op)instr->op) != FR_OP_CLASS_COLLECTIVE)
            continue;
        CHECK_INT(is_direct,
                  instr->axis == FR_AXIS_TP || instr->axis == FR_AXIS_MODEL);
        n_direct += is_direct;
        n_other += !is_direct;
    }
    CHECK(n_direct > 3 && n_other > 0);
    fr_program_destroy(program);
}

static void test_refusals(void)
{
    fr_model model = tiny_model(false);
    fr_job job = tiny_job(FR_OPTIMIZER_ADAMW);
    fr_plan plan;
    fr_program *program = NULL;
    fr_err err = {0};
    fr_plan_init(&plan);
    plan.dp = 2;
    plan.zero_stage = 1;
    plan.collective = FR_COLLECTIVE_TREE;
    CHECK_FAILS(fr_lower(&model, &job, &plan, NULL, &program, &err), FR_INPUT,
                &err);
    CHECK_HAS(err.text, "tree");
    fr_plan_init(&plan);
    plan.tp = 3; /* of 8 heads */
    CHECK_FAILS(fr_lower(&model, &job, &plan, NULL, &program, &err), FR_INPUT,
                &err);
    CHECK(program == NULL);
}

/* ---- what only simulation knows ------------------------------------------ */

/* Plans over the axes of parameters and gradients; world up to 64. */
static void state_plan(uint64_t i, fr_plan *plan)
{
    static const int degrees[] = {2, 4, 8};
#define PICK(n)                                                                \
    (int)(i % (n));                                                            \
    i /= (n)
    fr_plan_init(plan);
    int dp = PICK(3);
    int tp = PICK(2);
    int pp = PICK(3);
    int zero = PICK(4);
    int group = PICK(3);
    int schedule = PICK(5);
    int recompute = PICK(3);
    int layers = PICK(3);
    int bits = PICK(16);
    int prefetch = PICK(4);
    int micro = PICK(2);
    int offload = PICK(3);
    int precision = PICK(6);
    int cp = PICK(3);
#undef PICK
    static const fr_dtype precisions[] = {FR_DTYPE_F32,  FR_DTYPE_BF16,
                                          FR_DTYPE_F16,  FR_DTYPE_TF32,
                                          FR_DTYPE_BF16, FR_DTYPE_F32};
    plan->cp = cp == 2 ? 2 : 1;
    plan->precision = precisions[precision];
    plan->grad_dtype = precision >= 4 ? FR_DTYPE_BF16 : FR_DTYPE_F32;
    plan->dp = degrees[dp];
    plan->tp = 1 + tp;
    plan->pp = 1 << pp;
    plan->zero_stage = zero;
    plan->zero_group = group == 0 ? 0 : plan->dp * plan->cp / group;
    plan->schedule = (fr_schedule_kind)schedule;
    plan->vpp = plan->schedule == FR_SCHEDULE_INTERLEAVED ||
                        plan->schedule == FR_SCHEDULE_ZB_V
                    ? 2
                    : 1;
    plan->recompute = (fr_recompute)recompute;
    plan->recompute_layers = recompute == FR_RECOMPUTE_FULL ? layers : 0;
    plan->is_overlap = bits & 1;
    plan->is_gather_overlap = bits >> 1 & 1;
    plan->is_resharded = bits >> 2 & 1;
    plan->is_sequence_parallel = plan->tp > 1 && bits >> 3 & 1;
    plan->n_prefetch = prefetch;
    plan->micro_batch = 1 + micro;
    plan->is_optimizer_offloaded = offload == 1;
    plan->activation_offload_frac = offload == 2 ? 0.37 : 0.0;
    plan->bucket_bytes = 150000;
}

static void try_states(const fr_model *model, const fr_job *job, fr_plan *plan,
                       totals *sums)
{
    fr_program *program = NULL;
    fr_err err = {0};
    char name[160];
    if (fr_plan_check_lowerable(plan, model, job, &err) != FR_OK)
        plan->cp = 1;
    if (fr_plan_check_lowerable(plan, model, job, &err) != FR_OK) {
        sums->n_illegal++;
        return;
    }
    sums->n_legal++;
    fr_plan_describe(plan, name, sizeof name);
    if (!CHECK_OK(fr_lower(model, job, plan, NULL, &program, &err), &err))
        return;
    if (!CHECK_OK(fr_program_check(program, NULL, &err), &err))
        printf("    %s\n", name);
    if (model->n_experts == 0) /* a rank holds a part of the experts */
        CHECK_INT(count_parameters(program), fr_model_parameters(model));
    fr_program_destroy(program);
}

/* Is there an algorithm for all-to-all yet? */
static bool has_all_to_all(void)
{
    for (int i = 0; i < fr_n_collectives; i++)
        if (fr_collectives[i] && fr_collectives[i]->fits(FR_OP_ALL_TO_ALL, 4))
            return true;
    return false;
}

/* Some layers have none. */
static fr_model expert_model(uint64_t random)
{
    fr_model model = tiny_model(true);
    model.n_experts = 8;
    model.n_experts_per_token = 2;
    model.expert_ffn_hidden = 64;
    model.shared_expert_ffn_hidden = random >> 20 & 1 ? 128 : 0;
    model.first_dense_layers = (int64_t)(random >> 21) % 3;
    model.moe_every = 1 + (int64_t)(random >> 24) % 3;
    return model;
}

/* Experts on grids of their own. */
static void test_experts(void)
{
    totals sums = {0};
    uint64_t random = 88172645463325252U;
    for (int i = 0; i < 900; i++) {
        fr_plan plan;
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        state_plan(random >> 3, &plan);
        fr_model model = expert_model(random);
        plan.ep = has_all_to_all() ? 1 << (random >> 27) % 4 : 1;
        plan.etp = (int32_t)((random >> 33) % 3);
        plan.zero_group = 0;
        fr_job job = tiny_job((int)((random >> 30) % FR_OPTIMIZER_N));
        try_states(&model, &job, &plan, &sums);
    }
    printf("# %d plans of experts lowered and checked, %d illegal\n",
           sums.n_legal, sums.n_illegal);
    CHECK(sums.n_legal >= 200);
}

/* Two micro-batches in turn, with and without a pipeline. */
static void combined_plan(uint64_t random, fr_plan *plan)
{
    state_plan(random >> 3, plan);
    plan->is_ep_overlap = true;
    plan->ep = 2 << (random >> 27) % 3;
    plan->etp = (int32_t)((random >> 33) % 3);
    plan->dp = plan->ep * (1 + (int32_t)(random >> 36 & 1));
    plan->pp = 1 << (random >> 38) % 3;
    plan->vpp = plan->pp > 1 ? 2 : 1;
    plan->schedule = plan->pp > 1 ? FR_SCHEDULE_INTERLEAVED : FR_SCHEDULE_1F1B;
    plan->zero_group = 0;
    plan->zero_stage = (int32_t)(random >> 41) & 1;
    plan->activation_offload_frac = 0;
    plan->micro_batch = 1;
    if (plan->recompute == FR_RECOMPUTE_FULL)
        plan->recompute = FR_RECOMPUTE_NONE;
}

static void test_combined(void)
{
    totals sums = {0};
    uint64_t random = 88172645463325252U;
    for (int i = 0; i < 500; i++) {
        fr_plan plan;
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        combined_plan(random, &plan);
        fr_model model = expert_model(random);
        fr_job job = tiny_job((int)((random >> 30) % FR_OPTIMIZER_N));
        job.global_batch = 8 * plan.dp;
        try_states(&model, &job, &plan, &sums);
    }
    printf("# %d plans with combined 1F1B lowered and checked, %d illegal\n",
           sums.n_legal, sums.n_illegal);
    CHECK(sums.n_legal >= 200);
}

static bool is_wire(const fr_rank_program *rank_program, const fr_block *block)
{
    const fr_call *call = &rank_program->calls[block->first_call];
    return (call->spaces & 1U << FR_SPACE_WIRE) &&
           fr_call_base_bytes(rank_program, call, FR_SPACE_WIRE) ==
               block->offset_bytes;
}

/* Most wires that are alive at once, of one stage; -1: no program. */
static int most_wires(const fr_plan *plan)
{
    fr_model model = tiny_model(true);
    fr_job job = tiny_job(FR_OPTIMIZER_SGD);
    fr_program *program = NULL;
    fr_err err = {0};
    int most = 0;
    if (!CHECK_OK(fr_lower(&model, &job, plan, NULL, &program, &err), &err))
        return -1;
    const fr_rank_program *rank_program = &program->rank_programs[0];
    for (uint32_t c = 0; c < rank_program->n_calls; c++) {
        int n = 0;
        for (uint32_t b = 0; b < rank_program->n_blocks; b++)
            n += rank_program->blocks[b].first_call <= c &&
                 rank_program->blocks[b].last_call >= c &&
                 is_wire(rank_program, &rank_program->blocks[b]);
        most = n > most ? n : most;
    }
    fr_program_destroy(program);
    return most;
}

/* Nine layers, a bucket each: what is compressed is decompressed while the
 * next ones travel, not at the end. */
static void test_wires(void)
{
    for (int kind = FR_COMPRESSOR_BF16; kind < fr_n_compressors; kind++)
        for (int is_overlap = 0; is_overlap < 2; is_overlap++) {
            fr_plan plan;
            fr_plan_init(&plan);
            plan.dp = 2;
            plan.micro_batch = 4;
            plan.bucket_bytes = 1;
            plan.is_overlap = is_overlap;
            plan.compressor = (fr_compressor_kind)kind;
            plan.compressor_rank = 3;
            plan.compressor_density = 0.017;
            int n_wires = most_wires(&plan);
            int n_expected =
                is_overlap ? fr_compressors[kind]->n_stages + 1 : 1;
            check_that(n_wires == n_expected, __FILE__, __LINE__,
                       "%s: %d wires at once", fr_compressors[kind]->name,
                       n_wires);
        }
}

static void test_states(void)
{
    totals sums = {0};
    uint64_t random = 88172645463325252U;
    for (int i = 0; i < 900; i++) {
        fr_plan plan;
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        state_plan(random >> 3, &plan);
        fr_model model = tiny_model(i % 2 == 1);
        model.is_tied = (random >> 40) % 2 == 0;
        fr_job job = tiny_job((int)((random >> 30) % FR_OPTIMIZER_N));
        job.clip_norm = (random >> 50) % 3 ? 1.0 : 0.0;
        try_states(&model, &job, &plan, &sums);
    }
    printf("# %d plans of states lowered and checked, %d illegal\n",
           sums.n_legal, sums.n_illegal);
    CHECK(sums.n_legal >= 300);
}

CHECK_MAIN({"matrix", test_matrix}, {"states", test_states},
           {"experts", test_experts}, {"combined", test_combined},
           {"peak_order", test_peak_order},
           {"check_is_quick", test_check_is_quick},
           {"placement", test_placement}, {"wires", test_wires},
           {"refusals", test_refusals})
