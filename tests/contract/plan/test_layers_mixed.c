/*
 * test_layers_mixed.c: models whose layers differ from llama's: norms in other
 * places, windows in turn, gates, state spaces, linear attention, convolutions.
 * Programs are legal under drawn plans and hold the model's parameters;
 * products take six flop per token and element of the matrices.
 */
#include "program/lower/step/lower.h"
#include "spec/model/mixers.h"
#include "spec/model/model_traits.h"
#include "tests/check.h"
#include "tests/contract/plan/layer_models.h"

static void set(fr_model *model, fr_model_trait a, fr_model_trait b,
                fr_model_trait c)
{
    fr_model_set(model, a);
    fr_model_set(model, b);
    fr_model_set(model, c);
}

static void mark(fr_model *model, const char *mixers, const char *mlps)
{
    snprintf(model->mixers, sizeof model->mixers, "%s", mixers);
    snprintf(model->mlps, sizeof model->mlps, "%s", mlps);
    model->mix_heads = 16;
    model->mix_head_dim = 24;
    model->mix_groups = 4;
    model->mix_state = 12;
    model->mix_conv = 4;
    model->mix_chunk = 64;
    model->mix_rank = 20;
    model->has_mix_norm = true;
}

static fr_model olmo2(void)
{
    fr_model m = layer_model_llama();
    m.has_qk_norm = true;
    set(&m, FR_TRAIT_OUTPUT_NORMS, FR_TRAIT_NO_INPUT_NORMS,
        FR_TRAIT_WIDE_QK_NORM);
    return m;
}

static fr_model gemma3(void)
{
    fr_model m = layer_model_llama();
    m.has_qk_norm = m.is_tied = true;
    m.sliding_window = 40;
    fr_model_set(&m, FR_TRAIT_OUTPUT_NORMS);
    mark(&m, "wwaw", "");
    return m;
}

static fr_model cohere2(void)
{
    fr_model m = layer_model_llama();
    m.is_rms_norm = false;
    m.is_parallel_block = m.is_tied = true;
    m.sliding_window = 40;
    set(&m, FR_TRAIT_ONE_BLOCK_NORM, FR_TRAIT_NO_NORM_BIAS,
        FR_TRAIT_SOME_POSITIONS);
    mark(&m, "wawa", "");
    return m;
}

static fr_model bloom(void)
{
    fr_model m = layer_model_gpt();
    m.has_embed_norm = true;
    fr_model_set(&m, FR_TRAIT_ALIBI);
    return m;
}

static fr_model gptj(void)
{
    fr_model m = layer_model_neox();
    m.has_qkv_bias = m.has_out_bias = false;
    set(&m, FR_TRAIT_ONE_BLOCK_NORM, FR_TRAIT_HEAD_BIAS,
        FR_TRAIT_PAIRED_ROTARY);
    return m;
}

static fr_model gpt_oss(void)
{
    fr_model m = layer_model_mixtral();
    m.has_qkv_bias = m.has_out_bias = m.has_mlp_bias = true;
    set(&m, FR_TRAIT_SINKS, FR_TRAIT_ROUTER_OFFSET, FR_TRAIT_CLAMPED_EXPERTS);
    mark(&m, "wawa", "");
    return m;
}

static fr_model llama4(void)
{
    fr_model m = layer_model_mixtral();
    m.has_qk_norm = true;
    m.shared_expert_ffn_hidden = 448;
    m.moe_every = 2;
    m.sliding_window = 32;
    set(&m, FR_TRAIT_UNIT_QK, FR_TRAIT_OTHER_ROUTER, FR_TRAIT_SOME_POSITIONS);
    mark(&m, "ccca", "");
    return m;
}

static fr_model qwen3_next(void)
{
    fr_model m = layer_model_qwen_moe();
    m.sliding_window = 0;
    m.moe_every = 1;
    fr_model_set(&m, FR_TRAIT_OUTPUT_GATE);
    mark(&m, "ddda", "");
    return m;
}

static fr_model mamba2(void)
{
    fr_model m = layer_model_llama();
    fr_model_set(&m, FR_TRAIT_NO_POSITIONS);
    m.is_rope = false;
    mark(&m, "mmmm", "----");
    return m;
}

static fr_model jamba(void)
{
    fr_model m = layer_model_mixtral();
    fr_model_set(&m, FR_TRAIT_NO_POSITIONS);
    m.is_rope = false;
    m.sliding_window = 0;
    mark(&m, "ssas", "meme");
    return m;
}

static fr_model nemotron_h(void)
{
    fr_model m = layer_model_llama();
    fr_model_set(&m, FR_TRAIT_NO_POSITIONS);
    m.is_rope = m.is_gated_mlp = false;
    m.activation = FR_ACTIVATION_RELU_SQUARED;
    mark(&m, "m-a-", "-m-m");
    return m;
}

static fr_model falcon_h1(void)
{
    fr_model m = layer_model_llama();
    mark(&m, "hhhh", "");
    return m;
}

static fr_model lfm2(void)
{
    fr_model m = layer_model_llama();
    m.has_qk_norm = true;
    mark(&m, "kkak", "");
    return m;
}

static fr_model minimax(void)
{
    fr_model m = layer_model_mixtral();
    m.sliding_window = 0;
    fr_model_set(&m, FR_TRAIT_NORMED_STREAM);
    mark(&m, "llla", "");
    return m;
}

static const layer_model mixed_models[] = {
    {"olmo2", olmo2},
    {"gemma3", gemma3},
    {"cohere2", cohere2},
    {"bloom", bloom},
    {"gptj", gptj},
    {"gpt_oss", gpt_oss},
    {"llama4", llama4},
    {"qwen3_next", qwen3_next},
    {"mamba2", mamba2},
    {"jamba", jamba},
    {"nemotron_h", nemotron_h},
    {"falcon_h1", falcon_h1},
    {"lfm2", lfm2},
    {"minimax", minimax},
};

enum { N_MIXED = sizeof mixed_models / sizeof mixed_models[0] };

/* Sums over unique tensors at their global size; `matrices`: of those that a
 * token is multiplied with, the embedding left out unless it is the head. */
static uint64_t count(const fr_program *program, double *matrices)
{
    enum { MOST = 4096 };
    static uint32_t seen[MOST];
    uint64_t sum = 0;
    size_t n_seen = 0;
    *matrices = 0;
    for (uint32_t c = 0; c < program->n_rank_programs; c++) {
        const fr_rank_program *ranks = &program->rank_programs[c];
        for (uint32_t i = 0; i < ranks->n_tensors; i++) {
            const fr_tensor *t = &ranks->tensors[i];
            bool is_new = true;
            for (size_t k = 0; k < n_seen; k++)
                is_new = is_new && seen[k] != t->id;
            if (!is_new || n_seen == MOST)
                continue;
            seen[n_seen++] = t->id;
            const uint64_t n = (uint64_t)(t->global_rows * t->global_cols);
            bool is_embedding = strncmp(t->name, "wte", 3) == 0 ||
                                strncmp(t->name, "embed_tokens", 12) == 0;
            bool is_norm = strstr(t->name, "norm") != NULL;
            bool is_table = strncmp(t->name, "wpe", 3) == 0;
            sum += n;
            if (t->global_rows > 1 && !is_table && !is_norm &&
                (!is_embedding || program->model.is_tied))
                *matrices += (double)n;
        }
    }
    return sum;
}

/* A plan that the model's shapes allow. */
static void draw_plan(const fr_model *model, uint64_t random, fr_plan *plan)
{
    static const fr_dtype dtypes[] = {FR_DTYPE_BF16, FR_DTYPE_FP8,
                                      FR_DTYPE_F32};
    const uint64_t r = random >> 9;
    *plan = layer_bf16_plan();
    plan->precision = dtypes[r % 3];
    plan->recompute = (fr_recompute)(r / 3 % 3);
    plan->recompute_parts = plan->recompute == FR_RECOMPUTE_SELECTIVE
                                ? (uint32_t)(r / 9 % 31 + 1)
                                : plan->recompute_parts;
    plan->tp = r / 279 % 2 ? 2 : 1;
    plan->is_sequence_parallel = plan->tp > 1 && r / 558 % 2;
    plan->is_tp_overlap = plan->is_sequence_parallel && r / 1116 % 2;
    plan->dp = 4;
    plan->ep = model->n_experts > 0 && r / 2232 % 2 ? 4 : 1;
    plan->pp = r / 4464 % 2 ? 2 : 1;
    plan->zero_stage = (int32_t)(r / 8928 % 4);
    plan->is_flash = r / 35712 % 2;
    if (plan->ep > 1 && plan->zero_stage > 1)
        plan->ep = 1;
}

static void test_drawn_plans(void)
{
    uint64_t random = 88172645463325252U;
    int n_legal = 0, n_tried = 0;
    for (int i = 0; i < 40 * N_MIXED; i++) {
        const fr_model model = mixed_models[i % N_MIXED].make();
        fr_job job = layer_small_job();
        fr_plan plan;
        fr_program *program;
        fr_err err = {0};
        char name[200];
        double matrices;
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        job.dropout = (random >> 50) % 3 ? 0.0 : 0.1;
        draw_plan(&model, random, &plan);
        n_tried++;
        if (!CHECK_OK(fr_model_check(&model, &err), &err))
            continue;
        if (fr_lower(&model, &job, &plan, NULL, &program, &err) != FR_OK) {
            printf("# %s: %s\n", mixed_models[i % N_MIXED].name, err.text);
            continue;
        }
        n_legal++;
        if (!CHECK_OK(fr_program_check(program, NULL, &err), &err) ||
            !CHECK_INT(count(program, &matrices), fr_model_parameters(&model)))
            printf("    %s %s\n", mixed_models[i % N_MIXED].name,
                   fr_plan_describe(&plan, name, sizeof name));
        fr_program_destroy(program);
    }
    printf("# %d of %d plans are legal\n", n_legal, n_tried);
    CHECK(n_legal > n_tried / 2);
}

static double product_flop(const fr_program *program)
{
    double sum = 0;
    for (uint32_t c = 0; c < program->n_rank_programs; c++) {
        const fr_rank_program *ranks = &program->rank_programs[c];
        for (uint32_t i = 0; i < ranks->n_calls; i++) {
            const fr_segment *s = &program->segments[ranks->calls[i].i_segment];
            for (uint32_t k = 0; k < s->n_instrs; k++) {
                const fr_instr *instr = &program->instrs[s->first_instr + k];
                if (instr->op >= FR_OP_LINEAR_FWD &&
                    instr->op <= FR_OP_LINEAR_WGRAD)
                    sum += (double)fr_instr_flop(instr);
            }
        }
    }
    return sum;
}

/* Dense models: six flop per token and element of the matrices. */
static void test_products(void)
{
    for (int i = 0; i < N_MIXED; i++) {
        const fr_model model = mixed_models[i].make();
        const fr_job job = layer_small_job();
        const fr_plan plan = layer_bf16_plan();
        double matrices = 0;
        if (model.n_experts > 0)
            continue;
        fr_program *program = layer_lower(&model, &job, &plan);
        if (program == NULL)
            continue;
        (void)count(program, &matrices);
        const double expected =
            6.0 * (double)(job.global_batch * job.seq) * matrices;
        if (!CHECK_NEAR(product_flop(program), expected, 1e-9))
            printf("    %s\n", mixed_models[i].name);
        fr_program_destroy(program);
    }
}

static bool refuses(const fr_model *model, const char *why)
{
    const fr_job job = layer_small_job();
    const fr_plan plan = layer_bf16_plan();
    fr_err err = {0};
    return CHECK_FAILS(fr_plan_check_executable(&plan, model, &job, &err),
                       FR_INPUT, &err) &&
           CHECK_HAS(err.text, why);
}

/* The runtime refuses each of them, by the table. */
static void test_runtime_refusals(void)
{
    for (int i = 0; i < N_MIXED; i++) {
        const fr_model model = mixed_models[i].make();
        if (!refuses(&model, "there are no instructions yet for"))
            printf("    %s\n", mixed_models[i].name);
    }
    static const char *const refusals[FR_TRAIT_N] = {
#define TRAIT(symbol, name, refusal) [FR_TRAIT_##symbol] = refusal,
#include "spec/model/model_traits.inc"
#undef TRAIT
    };
    for (int i = 0; i < FR_TRAIT_N; i++) {
        fr_model model = layer_model_llama();
        fr_model_set(&model, (fr_model_trait)i);
        (void)refuses(&model, refusals[i]);
    }
}

CHECK_MAIN({"drawn_plans", test_drawn_plans}, {"products", test_products},
           {"runtime_refusals", test_runtime_refusals})
