/*
 * config_gpt_neox_model.c: the model that a configuration of GPT-NeoX says
 * (megatron/neox_arguments/neox_args.py, NeoXArgsModel).
 */
#include "core/base/text.h"
#include "frameworks/gpt_neox/gpt_neox_reader.h"
#include "spec/model/model_traits.h"

#include <stdio.h>
#include <string.h>

#define OF(member) FR_KEY_MEMBER(member)

/* A switch, whose member is false where it is on. */
#define OFF .is_switch = true

static const fr_key_word positions[] = {{true, "rotary"},
                                        {false, "learned"},
                                        {false, "alibi"},
                                        {false, "none"},
                                        {0}};
static const fr_key_word norms[] = {{false, "layernorm"},
                                    {true, "rmsnorm"},
                                    {false, "te_layernorm"},
                                    {true, "te_rmsnorm"},
                                    {0}};

static const fr_framework_key rows[] = {
    {"model", "num_layers", OF(model.n_layers), .least = 1},
    {"model", "hidden_size", OF(model.hidden), .least = 1},
    {"model", "num_attention_heads", OF(model.n_heads), .least = 1},
    {"model", "num_kv_heads", OF(model.n_kv_heads), .least = 1},
    {"model", "max_position_embeddings", OF(model.max_seq), .least = 1},
    {"model", "sliding_window_width", OF(model.sliding_window), .least = 1},
    {"model", "norm", OF(model.is_rms_norm), .words = norms,
     .mend = "such norms are not modelled; take layernorm or rmsnorm"},
    {"model", "pos_emb", OF(model.is_rope), .words = positions,
     .mend = "such positions are not modelled; take rotary, learned, alibi or "
             "none"},
    {"model", "rotary_pct", OF(model.rope_frac)},
    {"model", "rotary_emb_base", OF(model.rope_theta)},
    {"model", "no_weight_tying", OF(model.is_tied), OFF},
    {"model", "gpt_j_residual", OF(model.is_parallel_block)},
    {"model", "use_bias_in_attn_linear", OF(model.has_qkv_bias)},
    {"model", "use_bias_in_mlp", OF(model.has_mlp_bias)},
    {"model", "use_qk_layernorm", OF(model.has_qk_norm)},
    {"model", "padded_vocab_size", OF(model.vocab), .least = 1},
};

static const fr_framework_keys keys = {rows, FR_LENGTH(rows)};

typedef struct activation {
    const char *word;
    fr_activation kind;
    bool is_gated;
} activation;

static fr_status read_activation(fr_gpt_neox_reader *r)
{
    static const activation known[] = {{"gelu", FR_ACTIVATION_GELU, false},
                                       {"geglu", FR_ACTIVATION_GELU, true},
                                       {"relu", FR_ACTIVATION_RELU, false},
                                       {"silu", FR_ACTIVATION_SILU, false},
                                       {"swiglu", FR_ACTIVATION_SILU, true}};
    fr_model *model = &r->out->file.model;
    const char *word = "gelu";
    bool is_fused = false;
    FR_TRY(fr_settings_word(&r->settings, "activation", &word, r->err));
    FR_TRY(
        fr_settings_bool(&r->settings, "bias_gelu_fusion", &is_fused, r->err));
    for (size_t i = 0; i < FR_LENGTH(known); i++)
        if (strcmp(known[i].word, word) == 0) {
            model->activation = known[i].kind;
            model->is_gated_mlp = known[i].is_gated;
            if (is_fused && i == 0) /* its kernel has the tanh form */
                model->activation = FR_ACTIVATION_GELU_TANH;
            return FR_OK;
        }
    return fr_setting_refuse(fr_settings_peek(&r->settings, "activation"),
                             "gelu, geglu, relu, silu and swiglu are read",
                             r->err);
}

static int64_t round_up(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/*
 * The width of the MLP, half of what is said for gated ones, which have a third
 * less, rounded up (megatron/model/transformer.py, ParallelMLP).
 */
static fr_status read_width(fr_gpt_neox_reader *r)
{
    fr_model *model = &r->out->file.model;
    int64_t width = 4 * model->hidden, unit = 1;
    double factor = 0;
    FR_TRY(fr_settings_real(&r->settings, "expansion_factor", &factor, r->err));
    if (factor > 0 && factor < 1e6)
        width = (int64_t)(factor * (double)model->hidden);
    FR_TRY(
        fr_settings_i64(&r->settings, "intermediate_size", 1, &width, r->err));
    FR_TRY(fr_settings_i64(&r->settings, "mlp_multiple_of", 1, &unit, r->err));
    if (width > 1 << 26 || unit > 1 << 20)
        return fr_fail(r->err, FR_INPUT, "%s:1: a model too large to be meant",
                       r->request->path);
    model->ffn_hidden = model->is_gated_mlp ? round_up(width * 2 / 3 / 2, unit)
                                            : round_up(width, 2 * unit);
    return FR_OK;
}

static fr_status read_traits(fr_gpt_neox_reader *r)
{
    fr_model *model = &r->out->file.model;
    const char *word = "learned";
    bool is_tied = false, has_bias = true;
    FR_TRY(fr_settings_word(&r->settings, "pos_emb", &word, r->err));
    if (strcmp(word, "alibi") == 0)
        fr_model_set(model, FR_TRAIT_ALIBI);
    if (strcmp(word, "none") == 0)
        fr_model_set(model, FR_TRAIT_NO_POSITIONS);
    FR_TRY(fr_settings_bool(&r->settings, "gpt_j_tied", &is_tied, r->err));
    if (is_tied && model->is_parallel_block)
        fr_model_set(model, FR_TRAIT_ONE_BLOCK_NORM);
    FR_TRY(
        fr_settings_bool(&r->settings, "use_bias_in_norms", &has_bias, r->err));
    if (!has_bias && !model->is_rms_norm)
        fr_model_set(model, FR_TRAIT_NO_NORM_BIAS);
    FR_TRY(fr_settings_real(&r->settings,
                            model->is_rms_norm ? "rms_norm_epsilon"
                                               : "layernorm_epsilon",
                            &model->norm_eps, r->err));
    (void)fr_settings_find(&r->settings, "layernorm_epsilon");
    return FR_OK;
}

/* megatron/tokenizer/tokenizer.py; a file's name says which it is where it is
 * the one of GPT-NeoX-20B (50,277 entries). */
static fr_status read_vocab(fr_gpt_neox_reader *r)
{
    fr_model *model = &r->out->file.model;
    const char *type = "GPT2BPETokenizer", *path = "";
    FR_TRY(fr_settings_word(&r->settings, "tokenizer_type", &type, r->err));
    const fr_setting *file = fr_settings_find(&r->settings, "vocab_file");
    if (file != NULL && file->text != NULL)
        path = file->text;
    (void)fr_settings_find(&r->settings, "make_vocab_size_divisible_by");
    if (model->vocab > 0)
        return FR_OK;
    if (strcmp(type, "GPT2BPETokenizer") == 0 ||
        strcmp(type, "HFGPT2Tokenizer") == 0)
        model->vocab = 50257;
    else if (strcmp(type, "CharLevelTokenizer") == 0)
        model->vocab = 512;
    else if (fr_text_ends(path, "20B_tokenizer.json"))
        model->vocab = 50277;
    else
        return fr_fail(r->err, FR_INPUT,
                       "%s:1: the size of the vocabulary stands in the "
                       "tokenizer's file; add padded_vocab_size: N, or name "
                       "the model with --model",
                       r->request->path);
    fr_buffer_printf(&r->out->notes,
                     "vocabulary of %lld tokens, that of %s, without what "
                     "GPT-NeoX fills it up with\n",
                     (long long)model->vocab, type);
    return FR_OK;
}

static fr_status check_needed(fr_gpt_neox_reader *r)
{
    static const char *const needed[] = {"num_layers", "hidden_size",
                                         "num_attention_heads",
                                         "max_position_embeddings"};
    for (size_t i = 0; i < FR_LENGTH(needed); i++)
        if (fr_settings_peek(&r->settings, needed[i]) == NULL)
            return fr_fail(r->err, FR_INPUT,
                           "%s:1: no %s, of which the model is made: join the "
                           "files that GPT-NeoX is started with, or name the "
                           "model with --model",
                           r->request->path, needed[i]);
    return FR_OK;
}

fr_status fr_gpt_neox_read_model(fr_gpt_neox_reader *r)
{
    fr_model *model = &r->out->file.model;
    fr_err why;
    if (r->request->model != NULL) {
        for (size_t i = 0; i < FR_LENGTH(rows); i++)
            (void)fr_settings_find(&r->settings, rows[i].name);
        return fr_model_copy(r->request->model, model, r->err);
    }
    FR_TRY(check_needed(r));
    fr_model_init(model);
    snprintf(model->name, sizeof model->name, "gpt-neox");
    model->is_tied = true;
    model->has_qkv_bias = model->has_mlp_bias = true;
    model->norm_eps = 1e-5;
    FR_TRY(fr_settings_read_rows(&r->settings, keys, "model", "", &r->out->file,
                                 &r->out->notes, r->err));
    if (model->n_layers > 1 << 20 || model->hidden > 1 << 24)
        return fr_fail(r->err, FR_INPUT, "%s:1: a model too large to be meant",
                       r->request->path);
    model->has_out_bias = model->has_qkv_bias;
    if (model->n_kv_heads == 0)
        model->n_kv_heads = model->n_heads;
    model->head_dim = model->hidden / model->n_heads;
    FR_TRY(read_activation(r));
    FR_TRY(read_width(r));
    FR_TRY(read_traits(r));
    FR_TRY(read_vocab(r));
    const fr_status status = fr_model_check(model, &why);
    return status == FR_OK ? FR_OK
                           : fr_fail(r->err, status, "%s:1: the model: %.400s",
                                     r->request->path, why.text);
}
