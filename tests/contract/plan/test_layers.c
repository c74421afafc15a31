/*
 * Layers of every kind of model and plan: programs are legal, hold the model's
 * parameters, do the flop and keep the bytes that papers give.
 */
#include "program/lower/step/lower.h"
#include "tests/check.h"
#include "tests/contract/plan/layer_models.h"

/* ---- parameters --------------------------------------------------------- */

/* Unique tensors at their global size; layers after the model's are left out.
 */
static uint64_t count_parameters(const fr_program *program)
{
    enum { MOST = 4096 };
    static uint32_t seen[MOST];
    uint64_t sum = 0;
    size_t n_seen = 0;
    for (uint32_t c = 0; c < program->n_rank_programs; c++) {
        const fr_rank_program *rank_program = &program->rank_programs[c];
        for (uint32_t i = 0; i < rank_program->n_tensors; i++) {
            const fr_tensor *t = &rank_program->tensors[i];
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

/* ---- every plan is legal ------------------------------------------------ */

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
    plan->execution.expert_imbalance = 1.25;
    plan->is_tp_overlap = i % 2 == 0;
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
    plan->execution.kernels = (fr_kernel_set)((i + dtype) % FR_KERNELS_N);
    plan->execution.flash_kind =
        (fr_flash_kind)((i / 3 + recompute) % FR_FLASH_N);
    plan->execution.is_loss_fused = i / 9 % 2;
    plan->execution.is_early_stop = i / 18 % 2;
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
    if (model->kind == FR_MODEL_LAYERS) {
        plan->cp = plan->tp = 1;
        plan->is_sequence_parallel = false;
    }
    if (plan->cp_kind == FR_CP_RING &&
        (model->kind == FR_MODEL_ENCODER || !plan->is_flash || is_core_remade ||
         model->sliding_window > 0 || model->is_parallel_block))
        plan->cp_kind = FR_CP_ALL_GATHER;
}

static void test_matrix(void)
{
    fr_job job = layer_small_job();
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
        fr_model model = layer_models[i % n_layer_models].make();
        if (model.n_experts == 0)
            plan.ep = 1;
        if (model.n_experts == 0 || !plan.is_sequence_parallel)
            plan.etp = 0;
        choose_context(&plan, &model);
        job.dropout = (random >> 50) % 3 ? 0.0 : 0.1;
        fr_program *program = layer_lower(&model, &job, &plan);
        if (!program) {
            printf("    %s %s\n", layer_models[i % n_layer_models].name,
                   fr_plan_describe(&plan, name, sizeof name));
            continue;
        }
        n_legal++;
        if (!CHECK_OK(fr_program_check(program, NULL, &err), &err) ||
            !CHECK_INT(count_parameters(program), fr_model_parameters(&model)))
            printf("    %s %s\n", layer_models[i % n_layer_models].name,
                   fr_plan_describe(&plan, name, sizeof name));
        fr_program_destroy(program);
    }
    printf("# %d plans\n", n_legal);
    CHECK(n_legal > 300);
}

/* ---- flop --------------------------------------------------------------- */

typedef struct amounts {
    double products, attention, recomputed;
} amounts;

static amounts sum_flop(const fr_program *program)
{
    amounts a = {0, 0, 0};
    for (uint32_t c = 0; c < program->n_rank_programs; c++) {
        const fr_rank_program *rank_program = &program->rank_programs[c];
        for (uint32_t i = 0; i < rank_program->n_calls; i++) {
            const fr_segment *s =
                &program->segments[rank_program->calls[i].i_segment];
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
                if (instr->flags & FR_INSTR_RECOMPUTED ||
                    s->role == FR_SEGMENT_RECOMPUTE)
                    a.recomputed += flop;
            }
        }
    }
    return a;
}

/* Products: 6 per token and element of the matrices that it meets. */
static void test_products(void)
{
    fr_job job = layer_small_job();
    for (int i = 0; i < n_layer_models; i++) {
        fr_model model = layer_models[i].make();
        fr_plan plan = layer_bf16_plan();
        if (model.n_mtp_layers > 0 || model.kind == FR_MODEL_LAYERS)
            continue;
        fr_program *program = layer_lower(&model, &job, &plan);
        if (!program)
            continue;
        double tokens = (double)(job.global_batch * job.seq);
        double width = 2.0 * (double)model.head_dim;
        if (model.kv_lora_rank > 0)
            width = 48 + 24;
        double span = model.sliding_window > 0 ? 96.0 : 128.0;
        /* Work on the first token of a sequence alone is not in the model's
         * flop: pooler, next sentence, labels. */
        double first = 6.0 * (double)job.global_batch * 256.0 *
                       (model.has_pooler     ? 256 + 2
                        : model.n_labels > 0 ? 10
                                             : 0);
        /* Images are not differentiated. */
        double patches = model.n_channels > 0 ? 2.0 * 768 * 256 : 0;
        double attention =
            6.0 * (double)model.n_layers * (double)model.n_heads * width * span;
        double expected =
            tokens * (fr_model_flop_per_token(&model, job.seq, false) -
                      attention - patches) +
            first;
        check_that(fabs(sum_flop(program).products / expected - 1) < 1e-9,
                   __FILE__, __LINE__, "%s: %g flop, not %g",
                   layer_models[i].name, sum_flop(program).products, expected);
        fr_program_destroy(program);
    }
}

/* Narayanan et al. 2021, arXiv 2104.04473, equation 3: full recompute. */
static void test_narayanan(void)
{
    fr_model m = layer_model_gpt();
    fr_job job = layer_small_job();
    fr_plan plan = layer_bf16_plan();
    plan.is_flash = false;
    plan.recompute = FR_RECOMPUTE_FULL;
    fr_program *program = layer_lower(&m, &job, &plan);
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
    fr_model m = layer_model_llama();
    fr_job job = layer_small_job();
    fr_plan plan = layer_bf16_plan();
    fr_program *program = layer_lower(&m, &job, &plan);
    double pairs = 16.0 * 8 * 4 * (128.0 * 129 / 2);
    CHECK_NEAR(sum_flop(program).attention, pairs * (4 * 40 + 5 + 10 * 40 + 8),
               1e-12);
    fr_program_destroy(program);
    m.sliding_window = 32;
    program = layer_lower(&m, &job, &plan);
    pairs = 16.0 * 8 * 4 * (32.0 * 33 / 2 + 96 * 32);
    CHECK_NEAR(sum_flop(program).attention, pairs * (4 * 40 + 5 + 10 * 40 + 8),
               1e-12);
    fr_program_destroy(program);
}

/* Tensor parallel ranks share the flop, in pieces or not; experts too. */
static void test_tensor(void)
{
    for (int i = 0; i < n_layer_models; i++) {
        fr_model m = layer_models[i].make();
        fr_job job = layer_small_job();
        fr_plan plan = layer_bf16_plan();
        if (m.kind != FR_MODEL_DECODER || m.kv_lora_rank > 0 || m.n_experts > 0)
            continue;
        fr_program *program = layer_lower(&m, &job, &plan);
        const amounts one = sum_flop(program);
        fr_program_destroy(program);
        plan.tp = 4;
        plan.is_sequence_parallel = true;
        for (int k = 0; k < 2; k++) {
            plan.is_tp_overlap = k == 1;
            program = layer_lower(&m, &job, &plan);
            if (!program)
                continue;
            amounts a = sum_flop(program);
            CHECK_NEAR(4 * a.products, one.products, 1e-12);
            CHECK_NEAR(4 * a.attention, one.attention, 1e-12);
            fr_program_destroy(program);
        }
    }
}

/* Context parallel ranks share the flop, exactly, however they see keys. */
static void test_context(void)
{
    fr_model m = layer_model_llama();
    fr_job job = layer_small_job();
    fr_plan plan = layer_bf16_plan();
    fr_program *program = layer_lower(&m, &job, &plan);
    const amounts one = sum_flop(program);
    fr_program_destroy(program);
    plan.cp = 4;
    for (int kind = 0; kind < FR_CP_N; kind++) {
        plan.cp_kind = (fr_cp_kind)kind;
        program = layer_lower(&m, &job, &plan);
        if (!program)
            continue;
        amounts a = sum_flop(program);
        CHECK_NEAR(4 * a.products, one.products, 1e-12);
        CHECK_NEAR(4 * a.attention, one.attention, 1e-12);
        fr_program_destroy(program);
    }
}

/* TF32 is how float32 products run: all of a model's, at its ends too. */
static void test_tf32(void)
{
    fr_job job = layer_small_job();
    for (int i = 0; i < n_layer_models; i++) {
        fr_model model = layer_models[i].make();
        fr_plan plan = layer_bf16_plan();
        int n_products = 0, n_other = 0;
        plan.precision = FR_DTYPE_TF32;
        if (model.kind == FR_MODEL_LAYERS)
            continue; /* its operations are not known */
        fr_program *program = layer_lower(&model, &job, &plan);
        if (program == NULL)
            continue;
        for (uint32_t k = 0; k < program->n_instrs; k++) {
            const fr_instr *instr = &program->instrs[k];
            bool is_product = instr->op >= FR_OP_LINEAR_FWD &&
                              instr->op <= FR_OP_LINEAR_WGRAD;
            n_products += is_product;
            n_other += is_product && instr->dtype != FR_DTYPE_TF32;
        }
        if (!CHECK(n_products > 0) || !CHECK_INT(n_other, 0))
            printf("    %s\n", layer_models[i].name);
        fr_program_destroy(program);
    }
}

/* Recompute by parts costs what it makes again. */
static void test_remade_flop(void)
{
    fr_model m = layer_model_gpt();
    fr_job job = layer_small_job();
    fr_plan plan = layer_bf16_plan();
    plan.is_flash = false;
    plan.recompute = FR_RECOMPUTE_SELECTIVE;
    fr_program *program = layer_lower(&m, &job, &plan);
    double b = 16, s = 128, h = 256, l = 4, a = 8;
    /* 4 b s^2 h per layer (Korthikanti et al., appendix A), and the softmax. */
    CHECK_NEAR(sum_flop(program).recomputed,
               l * (4 * b * s * s * h + 5 * b * a * s * s), 1e-12);
    fr_program_destroy(program);
    plan.recompute_parts = FR_RECOMPUTE_PART_MLP;
    program = layer_lower(&m, &job, &plan);
    CHECK_NEAR(sum_flop(program).recomputed,
               l * (8 * b * s * h * h + 12 * b * s * 4 * h), 1e-12);
    fr_program_destroy(program);
}

/* Products in the segments that make a layer again. */
static int count_remade(const fr_model *model, const fr_plan *plan)
{
    fr_job job = layer_small_job();
    int n = 0;
    fr_program *program = layer_lower(model, &job, plan);
    for (uint32_t s = 0; program != NULL && s < program->n_segments; s++) {
        const fr_segment *segment = &program->segments[s];
        const fr_instr *at = &program->instrs[segment->first_instr];
        for (uint32_t k = 0; k < segment->n_instrs; k++)
            n += segment->role == FR_SEGMENT_RECOMPUTE &&
                 at[k].op == FR_OP_LINEAR_FWD;
    }
    fr_program_destroy(program);
    return n;
}

/*
 * Full recompute with or without its last product (torch.utils.checkpoint,
 * set_checkpoint_early_stop; what torch.compile drops): of queries, keys and
 * values together, output, two of the MLP.  What reads that product's output
 * keeps it: the next norm of BERT, experts' weights, GPT-NeoX's sum.
 */
static void test_early_stop(void)
{
    fr_plan plan = layer_bf16_plan();
    fr_model gpt = layer_model_gpt(), llama = layer_model_llama();
    fr_model bert = layer_model_bert(), neox = layer_model_neox();
    fr_model mixtral = layer_model_mixtral();
    plan.recompute = FR_RECOMPUTE_FULL;
    plan.execution.kernels = FR_KERNELS_FUSED;
    CHECK_INT(count_remade(&gpt, &plan), 4);
    CHECK_INT(count_remade(&llama, &plan), 4);
    int n_bert = count_remade(&bert, &plan);
    int n_neox = count_remade(&neox, &plan);
    int n_mixtral = count_remade(&mixtral, &plan);
    plan.execution.is_early_stop = true;
    CHECK_INT(count_remade(&gpt, &plan), 3);
    CHECK_INT(count_remade(&llama, &plan), 3);
    CHECK_INT(count_remade(&bert, &plan), n_bert);
    CHECK_INT(count_remade(&neox, &plan), n_neox);
    CHECK_INT(count_remade(&mixtral, &plan), n_mixtral);
    plan.precision = FR_DTYPE_FP8;
    CHECK_INT(count_remade(&llama, &plan), 3);
    plan.precision = FR_DTYPE_BF16;
    plan.tp = 2; /* also where passes are cut */
    plan.is_sequence_parallel = true;
    CHECK_INT(count_remade(&llama, &plan), 3);
    plan.is_tp_overlap = true; /* each in pieces */
    int n_pieces = count_remade(&llama, &plan);
    plan.execution.is_early_stop = false;
    CHECK_INT(3 * count_remade(&llama, &plan), 4 * n_pieces);
    plan = layer_bf16_plan();
    plan.recompute = FR_RECOMPUTE_FULL;
    plan.execution.kernels = FR_KERNELS_EAGER;
    int n_eager = count_remade(&llama, &plan);
    plan.execution.kernels = FR_KERNELS_COMPILED;
    CHECK_INT(count_remade(&llama, &plan), n_eager - 1);
    plan.tp = 2; /* its wait for the last sum stays */
    plan.is_sequence_parallel = true;
    plan.execution.is_early_stop = true;
    CHECK_INT(count_remade(&llama, &plan), n_eager);
}

/* Published sizes: configs, and what lowering makes of them. */
static void test_catalogue(void)
{
    static const struct {
        const char *name;
        uint64_t n_parameters;
    } cases[] = {{"mixtral-8x7b", 46702792704ULL},
                 {"llama-3-8b", 8030261248ULL},
                 {"gpt2-1.5b", 1557611200ULL},
                 {"resnet-50", 25557032ULL},
                 {"bert-large", 336226108ULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fr_model model;
        fr_err err = {0};
        fr_job job = layer_small_job();
        fr_plan plan = layer_bf16_plan();
        if (!CHECK_OK(fr_model_load(NULL, cases[i].name, &model, &err), &err))
            continue;
        plan.dp = 8;
        plan.micro_batch = 1;
        if (model.n_experts > 0)
            plan.ep = 8;
        fr_program *program = layer_lower(&model, &job, &plan);
        if (program)
            CHECK_INT(count_parameters(program), cases[i].n_parameters);
        fr_program_destroy(program);
        fr_model_release(&model);
    }
}

/* DeepSeek-V3 has 671,026,404,352 parameters: its checkpoint less a prediction
 * layer and 58 x 256 routing biases. */
static void test_deepseek_v3(void)
{
    fr_model m = layer_model_deepseek();
    fr_job job = layer_small_job();
    fr_plan plan = layer_bf16_plan();
    m.n_layers = 61;
    m.hidden = 7168;
    m.n_heads = m.n_kv_heads = 128;
    m.head_dim = 192;
    m.ffn_hidden = 18432;
    m.vocab = 129280;
    m.n_experts = 256;
    m.n_experts_per_token = 8;
    m.expert_ffn_hidden = m.shared_expert_ffn_hidden = 2048;
    m.first_dense_layers = 3;
    m.q_lora_rank = 1536;
    m.kv_lora_rank = 512;
    m.qk_rope_head_dim = 64;
    m.qk_nope_head_dim = m.v_head_dim = 128;
    plan.tp = 2;
    plan.is_sequence_parallel = true;
    plan.pp = 16;
    plan.dp = 4;
    plan.ep = 8;
    plan.etp = 1;
    plan.micro_batch = 1;
    fr_program *program = layer_lower(&m, &job, &plan);
    if (program)
        CHECK_INT(count_parameters(program), 671026404352ULL);
    fr_program_destroy(program);
}

CHECK_MAIN({"matrix", test_matrix}, {"products", test_products},
           {"narayanan", test_narayanan},
           {"attention_flop", test_attention_flop}, {"context", test_context},
           {"tensor", test_tensor}, {"tf32", test_tf32},
           {"remade_flop", test_remade_flop}, {"early_stop", test_early_stop},
           {"catalogue", test_catalogue}, {"deepseek_v3", test_deepseek_v3})
