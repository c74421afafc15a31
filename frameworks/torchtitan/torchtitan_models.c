/*
 * torchtitan_models.c: see torchtitan_parts.h.
 *
 * Flavors: torchtitan/models/{llama3,qwen3,deepseek_v3}/__init__.py of v0.2.0,
 * v0.2.2 and main (b5bcd76, 2026-08-21), which agree in their sizes; recipes:
 * config_registry.py of main.  Hidden sizes of Llama's MLPs follow from
 * compute_ffn_hidden_dim (main, models/common/feed_forward.py): 8/3 of the
 * width, times a factor, rounded up.
 */
#include "core/base/text.h"
#include "frameworks/torchtitan/torchtitan_parts.h"

#include <string.h>

static const char *const families[] = {[FR_TORCHTITAN_LLAMA3] = "llama3",
                                       [FR_TORCHTITAN_QWEN3] = "qwen3",
                                       [FR_TORCHTITAN_DEEPSEEK_V3] =
                                           "deepseek_v3"};

/* The recipe that a model without a flavor begins with. */
static const char *const usual_recipes[] = {
    [FR_TORCHTITAN_LLAMA3] = "llama3_8b",
    [FR_TORCHTITAN_QWEN3] = "qwen3_14b",
    [FR_TORCHTITAN_DEEPSEEK_V3] = "deepseek_v3_671b"};

typedef struct flavor {
    fr_torchtitan_family family;
    const char *name, *recipe;
    const char *model; /* of the catalog; NULL: none */
    bool is_main;      /* 0.2 has it not */
    int64_t n_layers, hidden, n_heads, n_kv_heads, head_dim, ffn_hidden, vocab;
    bool is_tied;
    int64_t n_experts, n_experts_per_token, expert_ffn_hidden;
    int64_t shared_expert_ffn_hidden, first_dense_layers, q_lora_rank;
} flavor;

/* Heads of DeepSeek are those of latent attention, alike in all flavors. */
enum { KV_LORA_RANK = 512, NOPE_DIM = 128, ROPE_DIM = 64, V_DIM = 128 };

#define LLAMA(text, registered, catalog, main_alone, ...)                      \
    {                                                                          \
        FR_TORCHTITAN_LLAMA3, text, registered, catalog, main_alone,           \
            __VA_ARGS__                                                        \
    }
#define QWEN(text, registered, ...)                                            \
    {                                                                          \
        FR_TORCHTITAN_QWEN3, text, registered, NULL, false, __VA_ARGS__        \
    }
#define DEEPSEEK(text, registered, catalog, ...)                               \
    {                                                                          \
        FR_TORCHTITAN_DEEPSEEK_V3, text, registered, catalog, false,           \
            __VA_ARGS__                                                        \
    }

static const flavor flavors[] = {
    LLAMA("1B", "llama3_8b", NULL, true, 16, 2048, 32, 8, 64, 8192, 128256,
          true, 0, 0, 0, 0, 0, 0),
    LLAMA("3B", "llama3_8b", NULL, true, 28, 3072, 24, 8, 128, 8192, 128256,
          true, 0, 0, 0, 0, 0, 0),
    LLAMA("8B", "llama3_8b", "llama-3-8b", false, 32, 4096, 32, 8, 128, 14336,
          128256, false, 0, 0, 0, 0, 0, 0),
    LLAMA("70B", "llama3_70b", "llama-3-70b", false, 80, 8192, 64, 8, 128,
          28672, 128256, false, 0, 0, 0, 0, 0, 0),
    LLAMA("405B", "llama3_405b", "llama-3-405b", false, 126, 16384, 128, 8, 128,
          53248, 128256, false, 0, 0, 0, 0, 0, 0),
    QWEN("0.6B", "qwen3_0_6b", 28, 1024, 16, 8, 128, 3072, 151936, true, 0, 0,
         0, 0, 0, 0),
    QWEN("1.7B", "qwen3_1_7b", 28, 2048, 16, 8, 128, 6144, 151936, true, 0, 0,
         0, 0, 0, 0),
    QWEN("4B", "qwen3_14b", 36, 2560, 32, 8, 128, 9728, 151936, true, 0, 0, 0,
         0, 0, 0),
    QWEN("8B", "qwen3_14b", 36, 4096, 32, 8, 128, 12288, 151936, false, 0, 0, 0,
         0, 0, 0),
    QWEN("14B", "qwen3_14b", 40, 5120, 40, 8, 128, 17408, 151936, false, 0, 0,
         0, 0, 0, 0),
    QWEN("32B", "qwen3_32b", 64, 5120, 64, 8, 128, 25600, 151936, false, 0, 0,
         0, 0, 0, 0),
    QWEN("30B-A3B", "qwen3_30b_a3b", 48, 2048, 32, 4, 128, 6144, 151936, false,
         128, 8, 768, 0, 0, 0),
    QWEN("235B-A22B", "qwen3_30b_a3b", 94, 4096, 64, 4, 128, 12288, 151936,
         false, 128, 8, 1536, 0, 0, 0),
    DEEPSEEK("16B", "deepseek_v3_16b", NULL, 27, 2048, 16, 16, 0, 10944, 102400,
             false, 64, 6, 1408, 2816, 1, 0),
    DEEPSEEK("236B", "deepseek_v3_16b", NULL, 60, 5120, 128, 128, 0, 12288,
             102400, false, 160, 6, 1536, 3072, 1, 1536),
    DEEPSEEK("671B", "deepseek_v3_671b", "deepseek-v3", 61, 7168, 128, 128, 0,
             18432, 129280, false, 256, 8, 2048, 2048, 3, 1536),
};

/* By what only they have: target_torchtitan.c refuses everything else. */
static fr_torchtitan_family family_of(const fr_model *model)
{
    return model->kv_lora_rank > 0 ? FR_TORCHTITAN_DEEPSEEK_V3
           : model->has_qk_norm    ? FR_TORCHTITAN_QWEN3
                                   : FR_TORCHTITAN_LLAMA3;
}

static bool has_dense_layers(const fr_model *model)
{
    return model->n_experts == 0 || model->first_dense_layers > 0;
}

static bool has_heads(const flavor *f, const fr_model *model)
{
    if (f->family == FR_TORCHTITAN_DEEPSEEK_V3)
        return model->kv_lora_rank == KV_LORA_RANK &&
               model->qk_nope_head_dim == NOPE_DIM &&
               model->qk_rope_head_dim == ROPE_DIM &&
               model->v_head_dim == V_DIM &&
               model->q_lora_rank == f->q_lora_rank;
    return model->n_kv_heads == f->n_kv_heads && model->head_dim == f->head_dim;
}

static bool has_experts(const flavor *f, const fr_model *model)
{
    return model->n_experts == f->n_experts &&
           (f->n_experts == 0 ||
            (model->n_experts_per_token == f->n_experts_per_token &&
             model->expert_ffn_hidden == f->expert_ffn_hidden &&
             model->shared_expert_ffn_hidden == f->shared_expert_ffn_hidden &&
             model->first_dense_layers == f->first_dense_layers));
}

static bool has_shape(const flavor *f, const fr_model *model)
{
    return f->family == family_of(model) && model->n_layers == f->n_layers &&
           model->hidden == f->hidden && model->n_heads == f->n_heads &&
           model->vocab == f->vocab && model->is_tied == f->is_tied &&
           (!has_dense_layers(model) || model->ffn_hidden == f->ffn_hidden) &&
           has_heads(f, model) && has_experts(f, model);
}

fr_torchtitan_words fr_torchtitan_words_of(const fr_model *model, bool is_main)
{
    for (size_t i = 0; i < FR_LENGTH(flavors); i++)
        if ((is_main || !flavors[i].is_main) && has_shape(&flavors[i], model))
            return (fr_torchtitan_words){families[flavors[i].family],
                                         flavors[i].name, flavors[i].recipe};
    const fr_torchtitan_family family = family_of(model);
    return (fr_torchtitan_words){families[family], NULL, usual_recipes[family]};
}

const char *fr_torchtitan_model_of(const char *name, const char *registered)
{
    for (size_t i = 0; i < FR_LENGTH(flavors); i++)
        if (strcmp(name, families[flavors[i].family]) == 0 &&
            strcmp(registered, flavors[i].name) == 0)
            return flavors[i].model;
    return NULL;
}

/* ---- what a user has to enter -------------------------------------------- */

static void put_size(const char *prefix, const char *key, int64_t value,
                     fr_buffer *out)
{
    fr_buffer_printf(out, "%s%s = %lld\n", prefix, key, (long long)value);
}

void fr_torchtitan_put_sizes(const fr_model *model, const char *prefix,
                             fr_buffer *out)
{
    put_size(prefix, "n_layers", model->n_layers, out);
    put_size(prefix, "dim", model->hidden, out);
    put_size(prefix, "n_heads", model->n_heads, out);
    if (model->kv_lora_rank > 0) {
        put_size(prefix, "q_lora_rank", model->q_lora_rank, out);
        put_size(prefix, "kv_lora_rank", model->kv_lora_rank, out);
        put_size(prefix, "qk_nope_head_dim", model->qk_nope_head_dim, out);
        put_size(prefix, "qk_rope_head_dim", model->qk_rope_head_dim, out);
        put_size(prefix, "v_head_dim", model->v_head_dim, out);
    } else {
        put_size(prefix, "n_kv_heads", model->n_kv_heads, out);
        put_size(prefix, "head_dim", model->head_dim, out);
    }
    if (has_dense_layers(model))
        put_size(prefix, "hidden_dim of dense MLPs", model->ffn_hidden, out);
    if (model->n_experts > 0) {
        put_size(prefix, "n_dense_layers", model->first_dense_layers, out);
        put_size(prefix, "num_experts", model->n_experts, out);
        put_size(prefix, "top_k", model->n_experts_per_token, out);
        put_size(prefix, "hidden_dim of experts", model->expert_ffn_hidden,
                 out);
    }
    if (model->shared_expert_ffn_hidden > 0)
        put_size(prefix, "num_shared_experts",
                 model->shared_expert_ffn_hidden / model->expert_ffn_hidden,
                 out);
    put_size(prefix, "vocab_size", model->vocab, out);
    fr_buffer_printf(out, "%sweight tying = %s, theta = %.12g\n", prefix,
                     model->is_tied ? "on" : "off", model->rope_theta);
}

/* Llama 3.1's frequencies are those of all flavors of llama3: theta 500000,
 * factor 8, 1 and 4 of 8192 tokens (models/llama3/__init__.py; RoPEScalingArgs
 * of 0.2). */
static bool has_frequencies_of_llama3(const fr_model *model)
{
    return model->rope_theta == 500000 && model->has_rope_scaling &&
           model->rope_kind == FR_ROPE_LLAMA3 && model->rope_factor == 8 &&
           model->rope_low_factor == 1 && model->rope_high_factor == 4 &&
           model->rope_original_seq == 8192;
}

void fr_torchtitan_put_differences(const fr_model *model, const char *prefix,
                                   fr_buffer *out)
{
    const fr_torchtitan_family family = family_of(model);
    if (family == FR_TORCHTITAN_LLAMA3 && !has_frequencies_of_llama3(model))
        fr_buffer_printf(out,
                         "%srotary frequencies: torchtitan's llama3 has those "
                         "of Llama 3.1\n",
                         prefix);
    if (family == FR_TORCHTITAN_DEEPSEEK_V3 && model->n_mtp_layers > 0)
        fr_buffer_printf(out,
                         "%slayers of later tokens: not in this file (main: "
                         "model_registry's num_mtp_layers,\n%sMTPLoss)\n",
                         prefix, prefix);
}
