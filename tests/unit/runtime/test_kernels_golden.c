/*
 * test_kernels_golden.c: the kernels put together by hand into two tiny
 * models, their losses, gradients and AdamW steps against PyTorch's numbers
 * (tests/oracle).
 */
#include "spec/model/model.h"
#include "tests/oracle/golden_model.h"
#include "tests/unit/runtime/kernel_fixture.h"

enum { MAX_LAYERS = 2, MAX_TENSORS = 32 };

/* Activations of one layer. */
typedef struct layer_state {
    float *in, *n1, *stats1, *qkv, *o, *kept, *mid, *n2, *stats2, *fc, *act;
} layer_state;

typedef struct tiny {
    const golden_model *m;
    int n_threads;
    uint16_t norm_flags, attn_flags;
    int64_t rows, c, q, qkv, fc; /* fc: width before the activation */
    int64_t at[MAX_TENSORS], n_weights;
    float *w, *g, *opt;
    int32_t *tokens;
    layer_state layers[MAX_LAYERS];
    float *out, *last, *stats, *logits, *d, *d2, *d_wide, *d_qkv;
    fr_step_scalars step;
} tiny;

static float *param(const tiny *t, float *base, int layer, const char *gpt2,
                    const char *llama)
{
    char name[64];
    const char *part = t->m->is_llama ? llama : gpt2;
    if (part == NULL)
        return NULL;
    if (layer < 0)
        snprintf(name, sizeof name, "%s", part);
    else
        snprintf(name, sizeof name, "%s.%d.%s", t->m->is_llama ? "layers" : "h",
                 layer, part);
    const golden_tensor *tensor = golden_find(t->m, name);
    CHECK(tensor != NULL);
    return tensor != NULL ? base + t->at[tensor - t->m->tensors] : base;
}

static void run(const tiny *t, fr_instr instr, void *const *ptr, int n_ptr)
{
    fr_kernel_call call = kf_call(&instr, t->n_threads, ptr, n_ptr);
    fr_kernels_cpu[instr.op](&call);
}

#define RUN(t, instr, ...)                                                     \
    run((t), instr, (void *[]){__VA_ARGS__},                                   \
        (int)(sizeof((void *[]){__VA_ARGS__}) / sizeof(void *)))
#define I(...) ((fr_instr){__VA_ARGS__})

static void tiny_create(tiny *t, const golden_model *m, bool is_saved)
{
    int64_t b = m->batch, s = m->seq;
    *t = (tiny){.m = m, .n_threads = 2};
    t->norm_flags = m->is_llama ? FR_INSTR_RMS : 0;
    t->attn_flags = is_saved ? FR_INSTR_SAVE_PROBS : 0;
    t->rows = b * s;
    t->c = m->hidden;
    t->q = m->n_heads * m->head_dim;
    t->qkv = t->q + 2 * m->n_kv_heads * m->head_dim;
    t->fc = m->ffn_hidden * (m->is_llama ? 2 : 1);
    for (int i = 0; i < m->n_tensors; i++) {
        t->at[i] = t->n_weights;
        t->n_weights += m->tensors[i].rows * m->tensors[i].cols;
    }
    t->w = calloc((size_t)t->n_weights, sizeof(float));
    t->g = calloc((size_t)t->n_weights, sizeof(float));
    t->opt = calloc(2 * (size_t)t->n_weights, sizeof(float));
    for (int i = 0; i < m->n_tensors; i++)
        for (int j = 0; j < m->tensors[i].rows * m->tensors[i].cols; j++)
            t->w[t->at[i] + j] = golden_weight(
                &m->tensors[i], j / m->tensors[i].cols, j % m->tensors[i].cols);
    t->tokens = calloc(2 * (size_t)t->rows, sizeof *t->tokens);
    for (int64_t i = 0; i < t->rows; i++) {
        int64_t at = i / s * (s + 1) + i % s;
        t->tokens[i] = golden_token(m, at);
        t->tokens[t->rows + i] = golden_token(m, at + 1);
    }
    for (int i = 0; i < m->n_layers; i++) {
        layer_state *l = &t->layers[i];
        float **lists[] = {&l->in,     &l->n1,   &l->stats1, &l->qkv,
                           &l->o,      &l->kept, &l->mid,    &l->n2,
                           &l->stats2, &l->fc,   &l->act};
        int64_t widths[] = {
            t->c,   t->c,         2,
            t->qkv, t->q,         m->n_heads * (is_saved ? s : 1),
            t->c,   t->c,         2,
            t->fc,  m->ffn_hidden};
        for (int j = 0; j < 11; j++)
            *lists[j] = calloc((size_t)(t->rows * widths[j]), sizeof(float));
    }
    float **lists[] = {&t->out, &t->last, &t->stats,  &t->logits,
                       &t->d,   &t->d2,   &t->d_wide, &t->d_qkv};
    int64_t widths[] = {t->c, t->c,        2,         m->vocab,
                        t->c, t->q + t->c, t->fc * 2, t->qkv};
    for (int j = 0; j < 8; j++)
        *lists[j] = calloc((size_t)(t->rows * widths[j]), sizeof(float));
}

static void tiny_destroy(tiny *t)
{
    for (int i = 0; i < t->m->n_layers; i++) {
        layer_state *l = &t->layers[i];
        float *lists[] = {l->in,  l->n1, l->stats1, l->qkv, l->o,  l->kept,
                          l->mid, l->n2, l->stats2, l->fc,  l->act};
        for (int j = 0; j < 11; j++)
            free(lists[j]);
    }
    float *lists[] = {t->out,    t->last,  t->stats, t->logits, t->d,  t->d2,
                      t->d_wide, t->d_qkv, t->w,     t->g,      t->opt};
    for (int j = 0; j < 11; j++)
        free(lists[j]);
    free(t->tokens);
}

static void layer_forward(tiny *t, int i, float *out)
{
    const golden_model *m = t->m;
    layer_state *l = &t->layers[i];
    int64_t r = t->rows, c = t->c, f = m->ffn_hidden;
#define W(gpt2, llama) param(t, t->w, i, gpt2, llama)
    RUN(t,
        I(.op = FR_OP_NORM_FWD, .dim = {r, c}, .scalar = m->norm_eps,
          .flags = t->norm_flags),
        l->in, W("ln_1.weight", "input_layernorm.weight"), W("ln_1.bias", NULL),
        l->n1, l->stats1);
    RUN(t, I(.op = FR_OP_LINEAR_FWD, .dim = {r, t->qkv, c}), l->n1,
        W("attn.c_attn.weight", "self_attn.qkv_proj.weight"),
        W("attn.c_attn.bias", NULL), l->qkv);
    if (m->is_llama)
        RUN(t,
            I(.op = FR_OP_ROPE_FWD, .scalar = m->rope_theta,
              .dim = {r, m->seq, m->n_heads, m->n_kv_heads, m->head_dim}),
            l->qkv);
    RUN(t,
        I(.op = FR_OP_ATTN_FWD, .flags = t->attn_flags,
          .dim = {m->batch, m->seq, m->n_heads, m->n_kv_heads, m->head_dim}),
        l->qkv, l->o, l->kept);
    RUN(t, I(.op = FR_OP_LINEAR_FWD, .dim = {r, c, t->q}), l->o,
        W("attn.c_proj.weight", "self_attn.o_proj.weight"),
        W("attn.c_proj.bias", NULL), l->mid);
    RUN(t, I(.op = FR_OP_RESIDUAL_ADD, .dim = {r, c}), l->in, l->mid, NULL,
        l->mid);
    RUN(t,
        I(.op = FR_OP_NORM_FWD, .dim = {r, c}, .scalar = m->norm_eps,
          .flags = t->norm_flags),
        l->mid, W("ln_2.weight", "post_attention_layernorm.weight"),
        W("ln_2.bias", NULL), l->n2, l->stats2);
    RUN(t, I(.op = FR_OP_LINEAR_FWD, .dim = {r, t->fc, c}), l->n2,
        W("mlp.c_fc.weight", "mlp.gate_up_proj.weight"),
        W("mlp.c_fc.bias", NULL), l->fc);
    if (m->is_llama)
        RUN(t,
            I(.op = FR_OP_SWIGLU_FWD, .activation = FR_ACTIVATION_SILU,
              .dim = {r, f}),
            l->fc, l->act);
    else
        RUN(t, I(.op = FR_OP_GELU_FWD, .dim = {r * f}), l->fc, l->act);
    RUN(t, I(.op = FR_OP_LINEAR_FWD, .dim = {r, c, f}), l->act,
        W("mlp.c_proj.weight", "mlp.down_proj.weight"), NULL, out);
    /* the bias of the last product in the residual sum, as after TP */
    RUN(t, I(.op = FR_OP_RESIDUAL_ADD, .dim = {r, c}), l->mid, out,
        W("mlp.c_proj.bias", NULL), out);
}

static void linear_backward(tiny *t, const int64_t mnk[3], float *dy, float *x,
                            float *const wgb[3], float *dx)
{
    fr_instr instr = {.op = FR_OP_LINEAR_WGRAD,
                      .dim = {mnk[0], mnk[1], mnk[2]}};
    RUN(t, instr, dy, x, wgb[1], wgb[2]);
    instr.op = FR_OP_LINEAR_DGRAD;
    RUN(t, instr, dy, wgb[0], dx);
}

/* t->d holds the gradient of the output, then that of the input. */
static void layer_backward(tiny *t, int i)
{
#define G(gpt2, llama) param(t, t->g, i, gpt2, llama)
    const golden_model *m = t->m;
    layer_state *l = &t->layers[i];
    int64_t r = t->rows, c = t->c, f = m->ffn_hidden;
    float *d_act = t->d_wide, *d_fc = t->d_wide + r * t->fc;
    fr_instr norm = {.op = FR_OP_NORM_BWD,
                     .dim = {r, c},
                     .flags = (uint16_t)(t->norm_flags | FR_INSTR_ACCUMULATE)};
    linear_backward(t, (int64_t[]){r, c, f}, t->d, l->act,
                    (float *[]){W("mlp.c_proj.weight", "mlp.down_proj.weight"),
                                G("mlp.c_proj.weight", "mlp.down_proj.weight"),
                                NULL},
                    d_act);
    if (!m->is_llama)
        RUN(t, I(.op = FR_OP_BIAS_GRAD, .dim = {r, c}), t->d,
            G("mlp.c_proj.bias", NULL));
    if (m->is_llama)
        RUN(t,
            I(.op = FR_OP_SWIGLU_BWD, .activation = FR_ACTIVATION_SILU,
              .dim = {r, f}),
            d_act, l->fc, d_fc);
    else
        RUN(t, I(.op = FR_OP_GELU_BWD, .dim = {r * f}), d_act, l->fc, d_fc);
    linear_backward(t, (int64_t[]){r, t->fc, c}, d_fc, l->n2,
                    (float *[]){W("mlp.c_fc.weight", "mlp.gate_up_proj.weight"),
                                G("mlp.c_fc.weight", "mlp.gate_up_proj.weight"),
                                G("mlp.c_fc.bias", NULL)},
                    t->d2);
    RUN(t, norm, t->d2, l->mid,
        W("ln_2.weight", "post_attention_layernorm.weight"), l->stats2, t->d,
        G("ln_2.weight", "post_attention_layernorm.weight"),
        G("ln_2.bias", NULL));
    linear_backward(
        t, (int64_t[]){r, c, t->q}, t->d, l->o,
        (float *[]){W("attn.c_proj.weight", "self_attn.o_proj.weight"),
                    G("attn.c_proj.weight", "self_attn.o_proj.weight"),
                    G("attn.c_proj.bias", NULL)},
        t->d2);
    RUN(t,
        I(.op = FR_OP_ATTN_BWD, .flags = t->attn_flags,
          .dim = {m->batch, m->seq, m->n_heads, m->n_kv_heads, m->head_dim}),
        t->d2, l->qkv, l->o, l->kept, t->d_qkv);
    if (m->is_llama)
        RUN(t,
            I(.op = FR_OP_ROPE_BWD, .scalar = m->rope_theta,
              .dim = {r, m->seq, m->n_heads, m->n_kv_heads, m->head_dim}),
            t->d_qkv);
    linear_backward(
        t, (int64_t[]){r, t->qkv, c}, t->d_qkv, l->n1,
        (float *[]){W("attn.c_attn.weight", "self_attn.qkv_proj.weight"),
                    G("attn.c_attn.weight", "self_attn.qkv_proj.weight"),
                    G("attn.c_attn.bias", NULL)},
        t->d2);
    RUN(t, norm, t->d2, l->in, W("ln_1.weight", "input_layernorm.weight"),
        l->stats1, t->d, G("ln_1.weight", "input_layernorm.weight"),
        G("ln_1.bias", NULL));
}

/* Loss into t->step, gradients into t->g. */
static void forward_backward(tiny *t)
{
    const golden_model *m = t->m;
    int64_t r = t->rows, c = t->c, v = m->vocab;
    const int i = -1;
    const char *head = "lm_head.weight";
    t->step = (fr_step_scalars){0};
    memset(t->g, 0, (size_t)t->n_weights * sizeof *t->g);
    fr_instr embed = {.op = FR_OP_EMBED_FWD, .dim = {r, c, v, m->seq, v}};
    RUN(t, embed, t->tokens, W("wte.weight", "embed_tokens.weight"),
        W("wpe.weight", NULL), t->layers[0].in);
    for (int j = 0; j < m->n_layers; j++)
        layer_forward(t, j, j + 1 < m->n_layers ? t->layers[j + 1].in : t->out);
    RUN(t,
        I(.op = FR_OP_NORM_FWD, .dim = {r, c}, .scalar = m->norm_eps,
          .flags = t->norm_flags),
        t->out, W("ln_f.weight", "norm.weight"), W("ln_f.bias", NULL), t->last,
        t->stats);
    RUN(t, I(.op = FR_OP_LINEAR_FWD, .dim = {r, v, c}), t->last,
        W("wte.weight", head), NULL, t->logits);
    RUN(t, I(.op = FR_OP_XENT, .dim = {r, v, v}, .scalar = 1.0 / (double)r),
        t->logits, t->tokens, &t->step);
    linear_backward(
        t, (int64_t[]){r, v, c}, t->logits, t->last,
        (float *[]){W("wte.weight", head), G("wte.weight", head), NULL}, t->d2);
    RUN(t, I(.op = FR_OP_NORM_BWD, .dim = {r, c}, .flags = t->norm_flags),
        t->d2, t->out, W("ln_f.weight", "norm.weight"), t->stats, t->d,
        G("ln_f.weight", "norm.weight"), G("ln_f.bias", NULL));
    for (int j = m->n_layers - 1; j >= 0; j--)
        layer_backward(t, j);
    embed.op = FR_OP_EMBED_BWD;
    RUN(t, embed, t->tokens, t->d, G("wte.weight", "embed_tokens.weight"),
        G("wpe.weight", NULL));
}

/* Tolerances: PyTorch in fp32 is as far (3e-6 of a tensor's norm, 2e-6 of the
 * largest element) from these float64 numbers; AdamW's first steps, which
 * have the sign of a gradient however small, spread that over the losses. */
static void check_gradients(const tiny *t)
{
    const golden_model *m = t->m;
    double total = 0, largest = 0;
    for (int i = 0; i < m->n_tensors; i++)
        largest = fmax(largest, fabs(m->tensors[i].samples[0].gradient));
    for (int i = 0; i < m->n_tensors; i++) {
        const golden_tensor *tensor = &m->tensors[i];
        const float *g = t->g + t->at[i];
        double sum = 0;
        for (int j = 0; j < tensor->rows * tensor->cols; j++)
            sum += (double)g[j] * (double)g[j];
        total += sum;
        CHECK_WITHIN(sqrt(sum), tensor->gradient_norm,
                     5e-6 * tensor->gradient_norm + 1e-6 * m->gradient_norm);
        for (int j = 0; j < GOLDEN_SAMPLES; j++) {
            const golden_sample *s = &tensor->samples[j];
            CHECK_WITHIN(g[s->row * tensor->cols + s->col], s->gradient,
                         5e-6 * largest);
        }
    }
    CHECK_NEAR(sqrt(total), m->gradient_norm, 5e-6);
}

static void optimizer_step(tiny *t, int64_t i_step)
{
    const golden_model *m = t->m;
    fr_tensor tensors[MAX_TENSORS];
    fr_job job;
    fr_job_init(&job);
    job.lr = m->lr;
    job.beta1 = m->beta1;
    job.beta2 = m->beta2;
    job.optimizer_eps = m->optimizer_eps;
    job.weight_decay = m->weight_decay;
    for (int i = 0; i < m->n_tensors; i++) {
        tensors[i] = (fr_tensor){
            .first = (uint64_t)t->at[i],
            .n = (uint64_t)(m->tensors[i].rows * m->tensors[i].cols),
            .is_decayed = m->tensors[i].rows > 1};
    }
    fr_instr instr = {.op = FR_OP_GRAD_SQSUM, .dim = {t->n_weights, 0}};
    fr_kernel_call call = kf_call(&instr, 2, (void *[]){t->g, &t->step}, 2);
    call.job = &job;
    call.i_step = i_step;
    call.tensors = tensors;
    call.n_tensors = (uint32_t)m->n_tensors;
    fr_kernels_cpu[FR_OP_GRAD_SQSUM](&call);
    RUN(t, I(.op = FR_OP_CLIP, .scalar = m->clip_norm), &t->step);
    instr.op = FR_OP_OPT_STEP;
    call.ptr[1] = t->w;
    call.ptr[2] = t->opt;
    call.ptr[3] = &t->step;
    fr_kernels_cpu[FR_OP_OPT_STEP](&call);
}

static void check_model(const golden_model *m, bool is_saved)
{
    tiny t;
    tiny_create(&t, m, is_saved);
    fr_kernels_cpu_set_threads(2);
    for (int i = 0; i < GOLDEN_STEPS; i++) {
        forward_backward(&t);
        CHECK_NEAR(t.step.loss_sum, m->losses[i], i == 0 ? 3e-7 : 5e-5);
        if (i == 0)
            check_gradients(&t);
        optimizer_step(&t, i);
    }
    tiny_destroy(&t);
}

static void test_gpt2(void)
{
    check_model(&golden_gpt2_tiny, true);
}
static void test_gpt2_lse(void)
{
    check_model(&golden_gpt2_tiny, false);
}
static void test_llama(void)
{
    check_model(&golden_llama_tiny, true);
}
static void test_llama_lse(void)
{
    check_model(&golden_llama_tiny, false);
}

static float walk(const golden_weight_path *path, fr_optimizer_kind kind)
{
    float w = (float)path->w0, state[2] = {0};
    fr_tensor tensor = {.n = 1, .is_decayed = true};
    fr_step_scalars step = {.clip_factor = 1};
    fr_job job;
    fr_job_init(&job);
    job.optimizer = kind;
    job.lr = path->lr;
    job.beta1 = path->beta1;
    job.beta2 = path->beta2;
    job.optimizer_eps = path->eps;
    job.weight_decay = path->weight_decay;
    for (int i = 0; i < path->n_steps; i++) {
        float g = (float)path->gradients[i];
        fr_instr instr = {.op = FR_OP_OPT_STEP, .dim = {1, 0}};
        fr_kernel_call call =
            kf_call(&instr, 1, (void *[]){&g, &w, state, &step}, 4);
        call.job = &job;
        call.i_step = i;
        call.tensors = &tensor;
        call.n_tensors = 1;
        fr_kernels_cpu[FR_OP_OPT_STEP](&call);
    }
    return w;
}

static void test_optimizers(void)
{
    for (size_t i = 0; i < sizeof golden_paths / sizeof golden_paths[0]; i++) {
        const golden_weight_path *path = &golden_paths[i];
        double moved =
            fabs(path->w_adamw - path->w0) + fabs(path->w_sgd - path->w0);
        CHECK_WITHIN(walk(path, FR_OPTIMIZER_SGD), path->w_sgd,
                     1e-6 * moved + 3e-7);
        CHECK_WITHIN(walk(path, FR_OPTIMIZER_ADAMW), path->w_adamw,
                     1e-6 * moved + 3e-7);
    }
}

CHECK_MAIN({"gpt2", test_gpt2}, {"gpt2_lse", test_gpt2_lse},
           {"llama", test_llama}, {"llama_lse", test_llama_lse},
           {"optimizers", test_optimizers})
