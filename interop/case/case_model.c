/*
 * case_model.c: the model of a row.  Sizes come from the row; what its columns
 * have no place for (norms, positions, biases, latent attention) comes from
 * the family that the name belongs to.
 *
 * Sources of the families: config.json and modeling code of the models at
 * huggingface.co, papers; Megatron-LM's training/arguments.py for its GPT.
 */
#include "interop/case/case_internal.h"
#include "interop/case/case_text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NO_SWITCH = 0, LEARNED_POSITIONS = 1, LAYER_NORM = 2, BIASES = 4 };

typedef struct family {
    const char *word; /* in the model's name, see has_word() */
    fr_activation activation;
    unsigned flags;
    bool is_gated, is_tied, has_qkv_bias, has_qk_norm;
    double rope_frac;     /* 0: all */
    int64_t head_dim;     /* 0: hidden / heads */
    int64_t kv_lora_rank; /* > 0: latent attention of DeepSeek V2 and V3 */
    int64_t q_lora_rank;
    int64_t first_dense, n_mtp;
    int64_t vocab;
} family;

#define GATED_SILU .activation = FR_ACTIVATION_SILU, .is_gated = true
#define LATENT .kv_lora_rank = 512, .q_lora_rank = 1536
/* As GPT-2: every weight has a bias, the head is tied. */
#define GPT2_LIKE                                                              \
    .flags = LEARNED_POSITIONS | LAYER_NORM | BIASES, .is_tied = true,         \
    .has_qkv_bias = true
#define LLAMA GATED_SILU, .vocab = 32000
#define NEMOTRON                                                               \
    .word = "nemotron", .activation = FR_ACTIVATION_RELU, .flags = LAYER_NORM, \
    .rope_frac = 0.5, .vocab = 256000
#define GPT                                                                    \
    .word = "gpt", .activation = FR_ACTIVATION_GELU_TANH, GPT2_LIKE,           \
    .vocab = 50257

/* The first whose word stands in the name. */
static const family families[] = {
    {"deepseekv3", GATED_SILU, LATENT, .first_dense = 3, .n_mtp = 1,
     .vocab = 129280},
    {"deepseekv2", GATED_SILU, LATENT, .first_dense = 1, .vocab = 102400},
    {"kimik2", GATED_SILU, LATENT, .first_dense = 1, .vocab = 163840},
    {"gptoss", GATED_SILU, .flags = BIASES, .has_qkv_bias = true,
     .head_dim = 64, .vocab = 201088},
    {"qwen3", GATED_SILU, .has_qk_norm = true, .head_dim = 128,
     .vocab = 151936},
    {"qwen", GATED_SILU, .has_qkv_bias = true, .vocab = 151936},
    {"llama3", GATED_SILU, .vocab = 128256},
    {"llama", LLAMA},
    {"mixtral", LLAMA},
    {"mistral", LLAMA},
    {NEMOTRON},
    {"mpt", FR_ACTIVATION_GELU, .flags = LEARNED_POSITIONS | LAYER_NORM,
     .is_tied = true, .vocab = 50368},
    {"opt", FR_ACTIVATION_RELU, GPT2_LIKE, .vocab = 50272},
    {"bert", FR_ACTIVATION_GELU, GPT2_LIKE, .vocab = 30522},
    {GPT},
};

/* The family of a model without a named one, by the matrices of its MLP. */
static const family llama_like = {"llama", LLAMA}, gpt_like = {GPT};
/* Two matrices and grouped queries: Nemotron-4 (arXiv 2402.16819). */
static const family nemotron_4_like = {NEMOTRON};

/* Not decoders or encoders of equal transformer layers. */
static const struct {
    const char *word, *what;
} refused[] = {
    {"mamba", "layers other than attention"},
    {"hybrid", "layers other than attention"},
    {"nemotron3", "layers other than attention"},
    {"nemotronh", "layers other than attention"},
    {"qwen3next", "layers other than attention"},
    {"t5", "an encoder and a decoder"},
    {"llava", "several modalities"},
    {"multimodal", "several modalities"},
    {"retro", "retrieval"},
    {"flux", "diffusion"},
    {"lora", "adapters"},
    {"peft", "adapters"},
};
static const struct {
    const char *word, *what;
} refused_options[] = {
    {"muon", "the optimizer Muon"},
    {"teacher", "a teacher beside it"},
};

/*
 * Does the name have this word?  Separators are passed over ("GPT OSS" has
 * "gptoss"), it begins where a word begins ("optimizer" is no "opt") and a
 * number in it is whole ("Nemotron-340B" is no "nemotron3").
 */
static bool has_word(const char *name, const char *word)
{
    for (const char *begin = name; *begin != '\0'; begin++) {
        const char *at = begin, *w = word;
        if (begin > name && isalnum((unsigned char)begin[-1]))
            continue;
        while (*w != '\0' && *at != '\0') {
            if (tolower((unsigned char)*at) == *w)
                w++;
            else if (isalnum((unsigned char)*at) || at == begin)
                break;
            at++;
        }
        bool is_number = isdigit((unsigned char)w[-(w > word)]);
        bool is_whole = is_number ? !isdigit((unsigned char)*at)
                                  : !isalpha((unsigned char)*at);
        if (*w == '\0' && is_whole)
            return true;
    }
    return false;
}

static fr_status refuse(const fr_case *row, fr_err *err)
{
    for (size_t i = 0; i < FR_LENGTH(refused); i++)
        if (has_word(row->field[FR_CASE_MODEL], refused[i].word) ||
            has_word(row->field[FR_CASE_ARCH], refused[i].word))
            return fr_fail(err, FR_INPUT,
                           "%s:%d: model '%.60s' has %s, which is not "
                           "simulated",
                           row->file, row->line, row->field[FR_CASE_MODEL],
                           refused[i].what);
    for (size_t i = 0; i < FR_LENGTH(refused_options); i++)
        if (has_word(row->field[FR_CASE_OTHER_OPTS], refused_options[i].word))
            return fr_fail(err, FR_INPUT,
                           "%s:%d: model '%.60s' is trained with %s, which is "
                           "not simulated",
                           row->file, row->line, row->field[FR_CASE_MODEL],
                           refused_options[i].what);
    return FR_OK;
}

static const family *find_family(const char *name, const fr_model *sizes,
                                 int64_t n_matrices)
{
    size_t n = FR_LENGTH(families);
    const family *found = NULL;
    for (size_t i = 0; i < n && found == NULL; i++)
        if (has_word(name, families[i].word))
            found = &families[i];
    bool is_grouped = sizes->n_kv_heads < sizes->n_heads;
    if (found == NULL || strcmp(found->word, "gpt") == 0) {
        if (n_matrices == 2 && is_grouped)
            return &nemotron_4_like;
        if (found == NULL)
            return n_matrices == 2 ? &gpt_like : &llama_like;
    }
    return found;
}

/* Words that test suites and recipes put into names of a GPT. */
static void apply_words(const char *name, fr_model *model)
{
    if (has_word(name, "rope"))
        model->is_rope = true;
    if (has_word(name, "untie"))
        model->is_tied = false;
    if (has_word(name, "disablebias"))
        model->has_qkv_bias = model->has_out_bias = model->has_mlp_bias = false;
    if (has_word(name, "qklayernorm"))
        model->has_qk_norm = true;
}

/* DeepSeek V2 and V3: arXiv 2405.04434, 2412.19437. */
static void apply_latent(int64_t kv_rank, int64_t q_rank, fr_model *model)
{
    if (kv_rank == 0)
        return;
    model->kv_lora_rank = kv_rank;
    model->q_lora_rank = q_rank;
    model->qk_rope_head_dim = 64;
    model->qk_nope_head_dim = 128;
    model->v_head_dim = 128;
    model->head_dim = 192;
    model->n_kv_heads = model->n_heads;
}

/* The number before a word, as in "3 dense first"; `other` without one. */
static int64_t count_of(const char *text, const char *word, int64_t other)
{
    const char *at = strcasestr(text, word);
    if (at == NULL)
        return other;
    while (at > text && at[-1] == ' ')
        at--;
    const char *end = at;
    while (at > text && isdigit((unsigned char)at[-1]))
        at--;
    return at < end ? strtoll(at, NULL, 10) : other;
}

/* Words of the column that say something else than the family; a word that has
 * another in it comes behind that. */
static void apply_arch_words(const char *arch, fr_model *model)
{
    const struct {
        const char *word;
        bool *member, is;
    } words[] = {
        {"rope", &model->is_rope, true},
        {"learnedpositions", &model->is_rope, false},
        {"rmsnorm", &model->is_rms_norm, true},
        {"layernorm", &model->is_rms_norm, false},
        {"tied", &model->is_tied, true},
        {"untied", &model->is_tied, false},
        {"qknorm", &model->has_qk_norm, true},
        {"biases", &model->has_qkv_bias, true},
        {"biases", &model->has_out_bias, true},
        {"biases", &model->has_mlp_bias, true},
        {"nobiases", &model->has_qkv_bias, false},
        {"nobiases", &model->has_out_bias, false},
        {"nobiases", &model->has_mlp_bias, false},
    };
    for (size_t i = 0; i < FR_LENGTH(words); i++)
        if (has_word(arch, words[i].word))
            *words[i].member = words[i].is;
    if (has_word(arch, "squaredrelu") && !model->is_gated_mlp)
        model->activation = FR_ACTIVATION_RELU;
}

/* Reads the parts of a model that its family does not fix: "moe, MLA, 1 dense
 * first, 1 MTP".  Ranks and widths of MLA are DeepSeek V3's unless they are
 * said as Megatron's options: "192 q-rank, 16 v-head-dim". */
static void apply_arch(const char *arch, fr_model *model)
{
    apply_arch_words(arch, model);
    model->head_dim = count_of(arch, "kv-channels", model->head_dim);
    if (has_word(arch, "mla")) {
        apply_latent(count_of(arch, "kv-rank", 512),
                     count_of(arch, "q-rank", 1536), model);
        model->qk_nope_head_dim =
            count_of(arch, "qk-head-dim", model->qk_nope_head_dim);
        model->qk_rope_head_dim =
            count_of(arch, "qk-pos-emb-head-dim", model->qk_rope_head_dim);
        model->v_head_dim = count_of(arch, "v-head-dim", model->v_head_dim);
        model->head_dim = model->qk_nope_head_dim + model->qk_rope_head_dim;
    }
    if (model->n_experts == 0)
        return;
    model->first_dense_layers =
        count_of(arch, "dense first", model->first_dense_layers);
    model->n_mtp_layers = count_of(arch, "mtp", model->n_mtp_layers);
}

static void apply_family(const family *f, const char *name, int64_t n_matrices,
                         int64_t seq, fr_model *model)
{
    bool has_biases = (f->flags & BIASES) != 0;
    model->activation = f->activation;
    model->is_gated_mlp = n_matrices > 0 ? n_matrices == 3 : f->is_gated;
    if (model->is_gated_mlp && !f->is_gated)
        model->activation = FR_ACTIVATION_SILU;
    if (!model->is_gated_mlp && f->is_gated)
        model->activation = FR_ACTIVATION_GELU_TANH;
    model->is_rms_norm = (f->flags & LAYER_NORM) == 0;
    model->is_rope = (f->flags & LEARNED_POSITIONS) == 0;
    model->is_tied = f->is_tied;
    model->has_qkv_bias = f->has_qkv_bias;
    model->has_out_bias = model->has_mlp_bias = has_biases;
    model->has_qk_norm = f->has_qk_norm;
    if (f->rope_frac > 0)
        model->rope_frac = f->rope_frac;
    model->head_dim =
        f->head_dim > 0 ? f->head_dim : model->hidden / model->n_heads;
    apply_latent(f->kv_lora_rank, f->q_lora_rank, model);
    apply_words(name, model);
    if (model->n_experts > 0) {
        model->first_dense_layers =
            f->first_dense < model->n_layers ? f->first_dense : 0;
        model->n_mtp_layers = f->n_mtp;
    }
    if (strcmp(f->word, "bert") == 0) {
        model->kind = FR_MODEL_ENCODER;
        model->n_token_types = 2;
        model->has_pooler = model->has_mlm_head = true;
    }
    model->max_seq = seq;
}

/* A number, or a tokenizer's name. */
static fr_status read_vocab(const fr_case *row, const family *f,
                            fr_case_setup *setup, fr_err *err)
{
    static const struct {
        const char *word;
        int64_t vocab;
    } tokenizers[] = {
        {"llama3", 128256}, {"llama", 32000},     {"gpt2", 50257},
        {"bert", 30522},    {"gptneox", 50257},   {"sentencepiece", 256000},
        {"qwen", 151936},   {"deepseek", 129280},
    };
    const char *text = row->field[FR_CASE_VOCAB];
    char name[64];
    setup->model.vocab = f->vocab;
    if (*text == '\0' || isdigit((unsigned char)*text))
        return fr_case_count(row, FR_CASE_VOCAB, 2, &setup->model.vocab, err);
    fr_case_squeeze(text, name, sizeof name);
    for (size_t i = 0; i < FR_LENGTH(tokenizers); i++)
        if (strstr(name, tokenizers[i].word) != NULL) {
            setup->model.vocab = tokenizers[i].vocab;
            return FR_OK;
        }
    fr_case_guess(setup, FR_CASE_VOCAB);
    return FR_OK;
}

static fr_status read_experts(const fr_case *row, int64_t default_ffn,
                              fr_model *model, fr_err *err)
{
    double n_shared = 0; /* as wide as so many of the others */
    FR_TRY(fr_case_count(row, FR_CASE_EXPERTS, 0, &model->n_experts, err));
    if (model->n_experts == 0)
        return FR_OK;
    /* Megatron: --moe-router-topk 2, --moe-ffn-hidden-size as the MLP's. */
    model->n_experts_per_token = model->n_experts > 1 ? 2 : 1;
    model->expert_ffn_hidden =
        model->ffn_hidden > 0 ? model->ffn_hidden : default_ffn;
    FR_TRY(
        fr_case_count(row, FR_CASE_TOPK, 1, &model->n_experts_per_token, err));
    FR_TRY(
        fr_case_count(row, FR_CASE_MOE_FFN, 1, &model->expert_ffn_hidden, err));
    FR_TRY(fr_case_real(row, FR_CASE_SHARED_EXPERTS, &n_shared, err));
    if (!(n_shared >= 0 && n_shared <= 1024) ||
        model->expert_ffn_hidden > 1 << 28)
        return fr_fail(err, FR_INPUT,
                       "%s:%d: shared_experts or moe_ffn is too "
                       "large",
                       row->file, row->line);
    model->shared_expert_ffn_hidden =
        (int64_t)(n_shared * (double)model->expert_ffn_hidden);
    return FR_OK;
}

/* "LLAMA3-8B" -> "llama-3-8b", the way configs/models spells names. */
static void spell(const char *text, bool is_split, char *out, size_t n)
{
    size_t used = 0;
    bool has_split = false;
    for (; *text != '\0' && used + 2 < n; text++) {
        char c = (char)tolower((unsigned char)*text);
        if (is_split && !has_split && used > 0 && isdigit((unsigned char)c) &&
            isalpha((unsigned char)out[used - 1])) {
            out[used++] = '-';
            has_split = true;
        }
        out[used++] = c == ' ' || c == '_' || c == '/' ? '-' : c;
    }
    out[used] = '\0';
}

/* The row has no sizes: a configuration of that name. */
static fr_status load_named(const char *configs, const fr_case *row,
                            fr_model *out, fr_err *err)
{
    char name[128];
    fr_err why;
    for (int i = 0; i < 2; i++) {
        spell(row->field[FR_CASE_MODEL], i == 1, name, sizeof name);
        if (name[0] != '\0' && fr_model_load(configs, name, out, &why) == FR_OK)
            return FR_OK;
    }
    return fr_fail(err, FR_INPUT,
                   "%s:%d: layers, hidden and heads are empty and model "
                   "'%.60s' is not under configs/models",
                   row->file, row->line, row->field[FR_CASE_MODEL]);
}

static fr_status read_sizes(const fr_case *row, fr_model *model, fr_err *err)
{
    FR_TRY(fr_case_count(row, FR_CASE_LAYERS, 1, &model->n_layers, err));
    FR_TRY(fr_case_count(row, FR_CASE_HIDDEN, 1, &model->hidden, err));
    FR_TRY(fr_case_count(row, FR_CASE_HEADS, 1, &model->n_heads, err));
    FR_TRY(fr_case_count(row, FR_CASE_FFN, 1, &model->ffn_hidden, err));
    model->n_kv_heads = model->n_heads;
    return fr_case_count(row, FR_CASE_KV_HEADS, 1, &model->n_kv_heads, err);
}

fr_status fr_case_read_model(const char *configs, const fr_case *row,
                             fr_case_setup *setup, fr_err *err)
{
    fr_model *model = &setup->model;
    int64_t n_matrices = 0, seq = 0;
    const char *name = row->field[FR_CASE_MODEL];
    FR_TRY(refuse(row, err));
    FR_TRY(fr_case_count(row, FR_CASE_SEQ, 1, &seq, err));
    FR_TRY(fr_case_count(row, FR_CASE_FFN_MATRICES, 2, &n_matrices, err));
    FR_TRY(read_sizes(row, model, err));
    if (model->n_layers == 0 || model->hidden == 0 || model->n_heads == 0) {
        fr_model_release(model);
        fr_model_init(model);
        FR_TRY(load_named(configs, row, model, err));
        if (seq == 0)
            seq = model->max_seq;
        if (!model->is_rope && model->max_seq < seq)
            model->max_seq = seq;
    } else {
        const family *f = find_family(name, model, n_matrices);
        /* 4 h, or 8/3 h where there is a gate. */
        int64_t ffn = f->is_gated ? (model->hidden * 8 / 3 + 255) / 256 * 256
                                  : 4 * model->hidden;
        FR_TRY(read_experts(row, ffn, model, err));
        if (model->ffn_hidden == 0)
            model->ffn_hidden =
                model->n_experts > 0 ? model->expert_ffn_hidden : ffn;
        apply_family(f, name, n_matrices, seq, model);
        apply_arch(row->field[FR_CASE_ARCH], model);
        FR_TRY(read_vocab(row, f, setup, err));
        snprintf(model->name, sizeof model->name, "%.100s",
                 row->field[FR_CASE_MODEL]);
    }
    if (seq == 0)
        return fr_fail(err, FR_INPUT, "%s:%d: seq is empty", row->file,
                       row->line);
    setup->job.seq = seq;
    return FR_OK;
}
