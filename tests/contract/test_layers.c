/*
 * Layers of every kind of model and plan: programs are legal, hold the model's
 * parameters, do the flop and keep the bytes that papers give.
 */
#include "plan/lower.h"
#include "tests/check.h"

static fr_model gpt(void)
{
    fr_model m;
    fr_model_init(&m);
    m.n_layers = 4;
    m.hidden = 256;
    m.n_heads = m.n_kv_heads = 8;
    m.head_dim = 32;
    m.ffn_hidden = 1024;
    m.vocab = 1024;
    m.max_seq = 512;
    m.has_qkv_bias = m.has_out_bias = m.has_mlp_bias = true;
    m.is_tied = true;
    return m;
}

static fr_model llama(void)
{
    fr_model m;
    fr_model_init(&m);
    m.n_layers = 4;
    m.hidden = 256;
    m.n_heads = 8;
    m.n_kv_heads = 4;
    m.head_dim = 40;
    m.ffn_hidden = 704;
    m.vocab = 1280;
    m.is_gated_mlp = m.is_rms_norm = m.is_rope = true;
    m.activation = FR_ACTIVATION_SILU;
    return m;
}

static fr_model mixtral(void)
{
    fr_model m = llama();
    m.n_experts = 8;
    m.n_experts_per_token = 2;
    m.expert_ffn_hidden = 448;
    m.sliding_window = 96;
    return m;
}

static fr_model qwen_moe(void)
{
    fr_model m = mixtral();
    m.has_qk_norm = true;
    m.has_qkv_bias = true;
    m.shared_expert_ffn_hidden = 832;
    m.has_shared_expert_gate = true;
    m.moe_every = 2;
    return m;
}

static fr_model deepseek(void)
{
    fr_model m = mixtral();
    m.sliding_window = 0;
    m.n_kv_heads = m.n_heads;
    m.first_dense_layers = 1;
    m.shared_expert_ffn_hidden = 448;
    m.q_lora_rank = 96;
    m.kv_lora_rank = 64;
    m.qk_rope_head_dim = 16;
    m.qk_nope_head_dim = 32;
    m.v_head_dim = 24;
    m.head_dim = 48;
    return m;
}

static fr_model deepseek_mtp(void)
{
    fr_model m = deepseek();
    m.q_lora_rank = 0;
    m.n_mtp_layers = 1;
    return m;
}

static fr_model neox(void)
{
    fr_model m = gpt();
    m.is_tied = false;
    m.is_rope = true;
    m.rope_frac = 0.25;
    m.is_parallel_block = true;
    m.activation = FR_ACTIVATION_GELU;
    return m;
}

static const struct {
    const char *name;
    fr_model (*make)(void);
} models[] = {
    {"gpt", gpt},           {"llama", llama},
    {"mixtral", mixtral},   {"qwen_moe", qwen_moe},
    {"deepseek", deepseek}, {"deepseek_mtp", deepseek_mtp},
    {"neox", neox},
};

enum { N_MODELS = sizeof models / sizeof models[0] };

static fr_job small_job(void)
{
    fr_job job;
    fr_job_init(&job);
    job.global_batch = 16;
    job.seq = 128;
    return job;
}

static fr_plan bf16_plan(void)
{
    fr_plan plan;
    fr_plan_init(&plan);
    plan.precision = FR_DTYPE_BF16;
    plan.is_flash = true;
    plan.micro_batch = 2;
    return plan;
}

static fr_program *lower(const fr_model *model, const fr_job *job,
                         const fr_plan *plan)
{
    fr_program *program = NULL;
    fr_err err = {0};
    CHECK_OK(fr_lower(model, job, plan, NULL, &program, &err), &err);
    return program;
}

/* ---- parameters -------------------------------------------------------------
 */

/* Unique tensors at their global size; layers after the model's are left out.
 */
static uint64_t count_parameters(const fr_program *program)
{
    enum { MOST = 4096 };
    static uint32_t seen[MOST];
    uint64_t sum = 0;
    size_t n_seen = 0;
    for (uint32_t c = 0; c < program->n_classes; c++) {
        const fr_class *klass = &program->classes[c];
        for (uint32_t i = 0; i < klass->n_tensors; i++) {
            const fr_tensor *t = &klass->tensors[i];
            int layer = -1;
            bool is_new = true;
            for (size_t k = 0; k < n_seen; k++)
                is_new = is_new && seen[k] != t->id;
            CHECK_INT(t->n, t->rows * t->cols);
            CHECK(n_seen < MOST);
            if (!is_new || n_seen == MOST)
                continue;
            seen[n_seen++] = t->id;
            if (sscanf(t->name, "layers.%d.", &layer) == 1 &&
                layer >= program->model.n_layers)
                continue;
            sum += (uint64_t)(t->global_rows * t->global_cols);
        }
    }
    return sum;
}

/* ---- every plan is legal
 * ----------------------------------------------------- */

static void set_plan(fr_plan *plan, unsigned i)
{
    static const fr_dtype dtypes[] = {FR_DTYPE_BF16, FR_DTYPE_FP8,
                                      FR_DTYPE_F32,  FR_DTYPE_F16,
                                      FR_DTYPE_TF32, FR_DTYPE_FP4};
#define PICK(n)                                                                \
    (i % (n));                                                                 \
    i /= (n)
    unsigned dtype = PICK(6);
    unsigned recompute = PICK(5);
    unsigned tp = PICK(2);
    unsigned ep = PICK(3);
    unsigned zero = PICK(4);
    unsigned pp = PICK(2);
    unsigned flash = PICK(2);
    unsigned etp = PICK(2);
    unsigned grad = PICK(2);
    unsigned cp = PICK(3);
    unsigned cp_kind = PICK(FR_CP_N);
#undef PICK
    fr_plan_init(plan);
    plan->precision = dtypes[dtype];
    plan->tp = tp ? 2 : 1;
    plan->is_sequence_parallel = tp;
    plan->dp = 4;
    plan->ep = 1 << ep;
    plan->etp = tp && etp ? 2 : 1;
    plan->pp = pp ? 2 : 1;
    plan->micro_batch = 2;
    plan->zero_stage = (int32_t)zero;
    plan->is_flash = flash;
    plan->grad_dtype = grad ? FR_DTYPE_BF16 : FR_DTYPE_F32;
    plan->expert_imbalance = 1.25;
    plan->cp = 1 << cp;
    plan->cp_kind = (fr_cp_kind)cp_kind;
    if (recompute == 1)
        plan->recompute = FR_RECOMPUTE_FULL;
    if (recompute == 2) {
        plan->recompute = FR_RECOMPUTE_FULL;
        plan->recompute_layers = 1;
    }
    if (recompute > 2)
        plan->recompute = FR_RECOMPUTE_SELECTIVE;
    if (recompute == 4)
        plan->recompute_parts = (i * 7 + dtype) % (FR_RECOMPUTE_PARTS_ALL + 1);
}

/* A way to see each other's keys that the plan can have. */
static void choose_context(fr_plan *plan, const fr_model *model)
{
    bool is_core_remade = plan->recompute == FR_RECOMPUTE_SELECTIVE &&
                          plan->recompute_parts & FR_RECOMPUTE_PART_ATTENTION;
    int64_t heads =
        model->kv_lora_rank > 0 ? model->n_heads : model->n_kv_heads;
    if (plan->cp_kind == FR_CP_ALL_TO_ALL && heads % (plan->tp * plan->cp) != 0)
        plan->cp_kind = FR_CP_RING;
    if (plan->cp_kind == FR_CP_RING &&
        (!plan->is_flash || is_core_remade || model->sliding_window > 0 ||
         model->is_parallel_block))
        plan->cp_kind = FR_CP_ALL_GATHER;
}

static void test_matrix(void)
{
    fr_job job = small_job();
    uint64_t random = 88172645463325252U;
    int n_legal = 0;
    for (int i = 0; i < 400; i++) {
        fr_plan plan;
        fr_err err = {0};
        char name[200];
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        set_plan(&plan, (unsigned)(random >> 9));
        fr_model model = models[i % N_MODELS].make();
        if (model.n_experts == 0)
            plan.ep = 1;
        if (model.n_experts == 0 || !plan.is_sequence_parallel)
            plan.etp = 0;
        choose_context(&plan, &model);
        job.dropout = (random >> 50) % 3 ? 0.0 : 0.1;
        fr_program *program = lower(&model, &job, &plan);
        if (!program) {
            printf("    %s %s\n", models[i % N_MODELS].name,
                   fr_plan_describe(&plan, name, sizeof name));
            continue;
        }
        n_legal++;
        if (!CHECK_OK(fr_program_check(program, NULL, &err), &err) ||
            !CHECK_INT(count_parameters(program), fr_model_parameters(&model)))
            printf("    %s %s\n", models[i % N_MODELS].name,
                   fr_plan_describe(&plan, name, sizeof name));
        fr_program_destroy(program);
    }
    printf("# %d plans\n", n_legal);
    CHECK(n_legal > 300);
}

/* ---- flop
 * -------------------------------------------------------------------- */

typedef struct amounts {
    double products, attention, remade;
} amounts;

static amounts sum_flop(const fr_program *program)
{
    amounts a = {0, 0, 0};
    for (uint32_t c = 0; c < program->n_classes; c++) {
        const fr_class *klass = &program->classes[c];
        for (uint32_t i = 0; i < klass->n_calls; i++) {
            const fr_segment *s = &program->segments[klass->calls[i].i_segment];
            for (uint32_t k = 0; k < s->n_instrs; k++) {
                const fr_instr *instr = &program->instrs[s->first_instr + k];
                double flop = (double)fr_instr_flop(instr);
                bool is_product = (instr->op >= FR_OP_LINEAR_FWD &&
                                   instr->op <= FR_OP_LINEAR_WGRAD) ||
                                  (instr->op >= FR_OP_GROUPED_FWD &&
                                   instr->op <= FR_OP_GROUPED_WGRAD);
                bool is_attention =
                    instr->op == FR_OP_ATTN_FWD || instr->op == FR_OP_ATTN_BWD;
                a.products += is_product ? flop : 0;
                a.attention += is_attention ? flop : 0;
                if (instr->flags & FR_INSTR_REMADE || s->is_recompute)
                    a.remade += flop;
            }
        }
    }
    return a;
}

/* Products: 6 per token and element of the matrices that it meets. */
static void test_products(void)
{
    fr_job job = small_job();
    for (int i = 0; i < N_MODELS; i++) {
        fr_model model = models[i].make();
        fr_plan plan = bf16_plan();
        if (model.n_mtp_layers > 0)
            continue;
        fr_program *program = lower(&model, &job, &plan);
        if (!program)
            continue;
        double tokens = (double)(job.global_batch * job.seq);
        double width = 2.0 * (double)model.head_dim;
        if (model.kv_lora_rank > 0)
            width = 48 + 24;
        double span = model.sliding_window > 0 ? 96.0 : 128.0;
        double attention =
            6.0 * (double)model.n_layers * (double)model.n_heads * width * span;
        double expected =
            tokens *
            (fr_model_flop_per_token(&model, job.seq, false) - attention);
        check_that(fabs(sum_flop(program).products / expected - 1) < 1e-9,
                   __FILE__, __LINE__, "%s: %g flop, not %g", models[i].name,
                   sum_flop(program).products, expected);
        fr_program_destroy(program);
    }
}

/* Narayanan et al. 2021, arXiv 2104.04473, equation 3: full recompute. */
static void test_narayanan(void)
{
    fr_model m = gpt();
    fr_job job = small_job();
    fr_plan plan = bf16_plan();
    plan.is_flash = false;
    plan.recompute = FR_RECOMPUTE_FULL;
    fr_program *program = lower(&m, &job, &plan);
    if (!program)
        return;
    double b = (double)job.global_batch, s = (double)job.seq, h = 256, l = 4,
           v = 1024;
    amounts a = sum_flop(program);
    CHECK_NEAR(a.products + a.attention,
               96 * b * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h)),
               0.02); /* and the softmax */
    CHECK_NEAR(a.products, 96 * b * s * l * h * h * (1 + v / (16 * l * h)),
               1e-12);
    fr_program_destroy(program);
}

/* Causal pairs: half; flash makes the scores again in backward. */
static void test_attention_flop(void)
{
    fr_model m = llama();
    fr_job job = small_job();
    fr_plan plan = bf16_plan();
    fr_program *program = lower(&m, &job, &plan);
    double pairs = 16.0 * 8 * 4 * (128.0 * 129 / 2);
    CHECK_NEAR(sum_flop(program).attention, pairs * (4 * 40 + 5 + 10 * 40 + 8),
               1e-12);
    fr_program_destroy(program);
    m.sliding_window = 32;
    program = lower(&m, &job, &plan);
    pairs = 16.0 * 8 * 4 * (32.0 * 33 / 2 + 96 * 32);
    CHECK_NEAR(sum_flop(program).attention, pairs * (4 * 40 + 5 + 10 * 40 + 8),
               1e-12);
    fr_program_destroy(program);
}

/* Context parallel ranks share the flop, exactly, however they see keys. */
static void test_context(void)
{
    fr_model m = llama();
    fr_job job = small_job();
    fr_plan plan = bf16_plan();
    fr_program *program = lower(&m, &job, &plan);
    const amounts one = sum_flop(program);
    fr_program_destroy(program);
    plan.cp = 4;
    for (int kind = 0; kind < FR_CP_N; kind++) {
        plan.cp_kind = (fr_cp_kind)kind;
        program = lower(&m, &job, &plan);
        if (!program)
            continue;
        amounts a = sum_flop(program);
        CHECK_NEAR(4 * a.products, one.products, 1e-12);
        CHECK_NEAR(4 * a.attention, one.attention, 1e-12);
        fr_program_destroy(program);
    }
}

/* ---- memory
 * ------------------------------------------------------------------ */

/* Bytes that one more layer adds to the activations at the peak. */
static double layer_bytes(fr_model model, const fr_plan *plan, double dropout)
{
    double bytes[2] = {0, 0};
    fr_job job = small_job();
    job.dropout = dropout;
    for (int i = 0; i < 2; i++) {
        fr_err err = {0};
        uint64_t kinds[FR_MEMORY_N], peak;
        model.n_layers = 6 + i;
        fr_program *program = lower(&model, &job, plan);
        if (!program)
            return 0;
        CHECK_OK(fr_class_peak(&program->classes[0], kinds, &peak, &err), &err);
        bytes[i] = (double)kinds[FR_MEMORY_ACTIVATIONS];
        fr_program_destroy(program);
    }
    return bytes[1] - bytes[0];
}

/* Korthikanti et al. 2022, arXiv 2205.05198, table 2. */
static void test_korthikanti(void)
{
    const double s = 128, b = 2, h = 256, a = 8, sbh = s * b * h;
    /* Statistics of two norms, and of attention where it is fused. */
    const double stats = 16 * s * b, lse = 4 * a * s * b;
    fr_model m = gpt();
    fr_plan plan = bf16_plan();
    plan.is_flash = false;
    CHECK_NEAR(layer_bytes(m, &plan, 0.1), sbh * (34 + 5 * a * s / h) + stats,
               1e-9);
    /* Without dropout: neither its masks nor what is left of probabilities. */
    CHECK_NEAR(layer_bytes(m, &plan, 0), sbh * (32 + 2 * a * s / h) + stats,
               1e-9);
    plan.recompute = FR_RECOMPUTE_SELECTIVE;
    CHECK_NEAR(layer_bytes(m, &plan, 0.1), sbh * 34 + stats, 1e-9);
    plan.recompute = FR_RECOMPUTE_FULL;
    CHECK_NEAR(layer_bytes(m, &plan, 0.1), sbh * 2, 1e-9);
    plan.recompute = FR_RECOMPUTE_NONE;
    plan.is_flash = true;
    CHECK_NEAR(layer_bytes(m, &plan, 0.1), sbh * 34 + stats + lse, 1e-9);

    const double t = 4;
    plan = bf16_plan();
    plan.is_flash = false;
    plan.tp = 4;
    CHECK_NEAR(layer_bytes(m, &plan, 0.1),
               sbh * (10 + 24 / t + 5 * a * s / (h * t)) + stats, 1e-9);
    plan.is_sequence_parallel = true;
    CHECK_NEAR(layer_bytes(m, &plan, 0.1),
               sbh * (34 + 5 * a * s / h) / t + stats / t, 1e-9);
    plan.recompute = FR_RECOMPUTE_SELECTIVE;
    CHECK_NEAR(layer_bytes(m, &plan, 0.1), sbh * 34 / t + stats / t, 1e-9);
}

/* What each part of selective recompute saves. */
static void test_parts(void)
{
    const double rows = 256;
    fr_model m = llama();
    fr_plan plan = bf16_plan();
    double all = layer_bytes(m, &plan, 0);
    plan.recompute = FR_RECOMPUTE_SELECTIVE;
    plan.recompute_parts = FR_RECOMPUTE_PART_NORM;
    CHECK_NEAR(all - layer_bytes(m, &plan, 0), 2 * 2 * rows * 256, 1e-9);
    plan.recompute_parts = FR_RECOMPUTE_PART_ACTIVATION;
    CHECK_NEAR(all - layer_bytes(m, &plan, 0), 2 * rows * 704, 1e-9);
    plan.recompute_parts = FR_RECOMPUTE_PART_MLP;
    CHECK_NEAR(all - layer_bytes(m, &plan, 0), 2 * rows * 704 * 3, 1e-9);
    m = mixtral();
    plan.recompute_parts = 0;
    all = layer_bytes(m, &plan, 0);
    plan.recompute_parts = FR_RECOMPUTE_PART_EXPERTS;
    /* Two copies of each token: hidden, both halves and their product; the
     * router's scores, weights and numbers. */
    CHECK_NEAR(all - layer_bytes(m, &plan, 0),
               rows * 2 * 2 * (256 + 3 * 448) + rows * (2 * 8 + 8 * 2), 1e-9);
    /* 8 bits: operands of products shrink, attention's output is there twice,
     * what goes into the activation stays. */
    m = llama();
    plan = bf16_plan();
    all = layer_bytes(m, &plan, 0);
    plan.precision = FR_DTYPE_FP8;
    CHECK_NEAR(all - layer_bytes(m, &plan, 0),
               rows * (256 + 256 + 704) - rows * 320, 1e-9);
}

/* Recompute by parts costs what it makes again. */
static void test_remade_flop(void)
{
    fr_model m = gpt();
    fr_job job = small_job();
    fr_plan plan = bf16_plan();
    plan.is_flash = false;
    plan.recompute = FR_RECOMPUTE_SELECTIVE;
    fr_program *program = lower(&m, &job, &plan);
    double b = 16, s = 128, h = 256, l = 4, a = 8;
    /* 4 b s^2 h per layer (Korthikanti et al., appendix A), and the softmax. */
    CHECK_NEAR(sum_flop(program).remade,
               l * (4 * b * s * s * h + 5 * b * a * s * s), 1e-12);
    fr_program_destroy(program);
    plan.recompute_parts = FR_RECOMPUTE_PART_MLP;
    program = lower(&m, &job, &plan);
    CHECK_NEAR(sum_flop(program).remade,
               l * (8 * b * s * h * h + 12 * b * s * 4 * h), 1e-12);
    fr_program_destroy(program);
}

/* Published sizes: configs, and what lowering makes of them. */
static void test_catalogue(void)
{
    static const struct {
        const char *name;
        uint64_t n_parameters;
    } cases[] = {{"mixtral-8x7b", 46702792704ULL},
                 {"llama-3-8b", 8030261248ULL},
                 {"gpt2-1.5b", 1557611200ULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fr_model model;
        fr_err err = {0};
        fr_job job = small_job();
        fr_plan plan = bf16_plan();
        if (!CHECK_OK(fr_model_load(cases[i].name, &model, &err), &err))
            continue;
        plan.dp = 8;
        plan.micro_batch = 1;
        if (model.n_experts > 0)
            plan.ep = 8;
        fr_program *program = lower(&model, &job, &plan);
        if (program)
            CHECK_INT(count_parameters(program), cases[i].n_parameters);
        fr_program_destroy(program);
        fr_model_release(&model);
    }
}

CHECK_MAIN({"matrix", test_matrix}, {"products", test_products},
           {"narayanan", test_narayanan},
           {"attention_flop", test_attention_flop}, {"context", test_context},
           {"korthikanti", test_korthikanti}, {"parts", test_parts},
           {"remade_flop", test_remade_flop}, {"catalogue", test_catalogue})
