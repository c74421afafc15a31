/* layout_models.c: the tiny models that layouts are tried with. */
#include "tests/contract/runtime/layouts/layout_rows.h"

#include <string.h>

const char layout_gpt2[] =
    "{\"model_type\": \"gpt2\", \"n_layer\": 4, \"n_embd\": 48, "
    "\"n_head\": 4, \"n_inner\": 176, \"n_positions\": 40, "
    "\"vocab_size\": 259, \"layer_norm_epsilon\": 1e-5, "
    "\"activation_function\": \"gelu_new\"}";

const char layout_llama[] =
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 4, "
    "\"hidden_size\": 48, \"num_attention_heads\": 8, "
    "\"num_key_value_heads\": 4, \"intermediate_size\": 176, "
    "\"vocab_size\": 259, \"max_position_embeddings\": 40, "
    "\"rms_norm_eps\": 1e-5, \"rope_theta\": 10000.0, "
    "\"hidden_act\": \"silu\", \"tie_word_embeddings\": false}";

/* The names of sizes in all files of Hugging Face but GPT-2's. */
#define SIZES(heads, kv_heads)                                                 \
    "\"num_hidden_layers\": 4, \"hidden_size\": 48, "                          \
    "\"num_attention_heads\": " heads ", \"num_key_value_heads\": " kv_heads   \
    ", \"intermediate_size\": 176, \"vocab_size\": 259, "                      \
    "\"max_position_embeddings\": 40, \"rms_norm_eps\": 1e-5, "

#define LATENT                                                                 \
    "\"kv_lora_rank\": 16, \"qk_nope_head_dim\": 10, "                         \
    "\"qk_rope_head_dim\": 6, \"v_head_dim\": 12, "                            \
    "\"n_routed_experts\": 8, \"num_experts_per_tok\": 3, "                    \
    "\"moe_intermediate_size\": 40, \"n_shared_experts\": 1, "                 \
    "\"first_k_dense_replace\": 1, "

static const char *const families[LAYOUT_FAMILIES] = {
    [LAYOUT_GPT2] = layout_gpt2,
    [LAYOUT_LLAMA] = layout_llama,
    [LAYOUT_QWEN2] = "{\"model_type\": \"qwen2\", " SIZES(
        "8", "4") "\"tie_word_embeddings\": true}",
    [LAYOUT_QWEN3] = "{\"model_type\": \"qwen3\", " SIZES(
        "4", "4") "\"head_dim\": 16, \"rope_theta\": 1e6}",
    [LAYOUT_NEOX] = "{\"model_type\": \"gpt_neox\", " SIZES(
        "4", "4") "\"layer_norm_eps\": 1e-5, \"rotary_pct\": 0.5}",
    [LAYOUT_GEMMA] =
        "{\"model_type\": \"gemma\", " SIZES("4", "4") "\"head_dim\": 16}",
    [LAYOUT_MISTRAL] = "{\"model_type\": \"mistral\", " SIZES(
        "8", "4") "\"sliding_window\": 11}",
    [LAYOUT_MIXTRAL] = "{\"model_type\": \"mixtral\", " SIZES(
        "8", "4") "\"num_local_experts\": 6, \"num_experts_per_tok\": 2}",
    [LAYOUT_DEEPSEEK] = "{\"model_type\": \"deepseek_v3\", " SIZES("4", "4")
        LATENT "\"q_lora_rank\": 24, \"n_group\": 4, "
               "\"topk_group\": 2, \"topk_method\": \"noaux_tc\"}",
    [LAYOUT_DEEPSEEK2] = "{\"model_type\": \"deepseek_v3\", " SIZES("4", "4")
        LATENT "\"norm_topk_prob\": false, \"n_group\": 1, "
               "\"topk_group\": 1, \"routed_scaling_factor\": 1.3, "
               "\"scoring_func\": \"softmax\"}",
    [LAYOUT_BERT] = "{\"model_type\": \"bert\", " SIZES(
        "4", "4") "\"architectures\": [\"BertForMaskedLM\"]}",
    [LAYOUT_BERT_ORDER] = "{\"model_type\": \"bert\", " SIZES(
        "4", "4") "\"architectures\": [\"BertForPreTraining\"]}",
    [LAYOUT_VIT] = "{\"model_type\": \"vit\", " SIZES(
        "4", "4") "\"image_size\": 24, \"patch_size\": 4, "
                  "\"num_channels\": 3, \"num_labels\": 5}",
    [LAYOUT_AUX] = "{\"model_type\": \"mixtral\", " SIZES(
        "8", "4") "\"num_local_experts\": 6, \"num_experts_per_tok\": 2, "
                  "\"output_router_logits\": true, "
                  "\"router_aux_loss_coef\": 0.3}",
    [LAYOUT_AUX_BY_SEQUENCE] =
        "{\"model_type\": \"deepseek_v3\", " SIZES("4", "4") LATENT
    "\"q_lora_rank\": 24, \"n_group\": 1, "
    "\"topk_group\": 1, \"aux_loss_alpha\": 0.2}",
    [LAYOUT_LATER] = "{\"model_type\": \"deepseek_v3\", " SIZES("4", "4") LATENT
    "\"q_lora_rank\": 24, \"n_group\": 4, "
    "\"topk_group\": 2, \"num_nextn_predict_layers\": 1}",
    [LAYOUT_CAPPED] = "{\"model_type\": \"mixtral\", " SIZES(
        "8", "4") "\"num_local_experts\": 6, \"num_experts_per_tok\": 2}",
    [LAYOUT_YARN] = "{\"model_type\": \"qwen2\", " SIZES(
        "4", "4") "\"rope_theta\": 100.0, \"rope_scaling\": {"
                  "\"rope_type\": \"yarn\", \"factor\": 4.0, "
                  "\"beta_fast\": 2.0, \"beta_slow\": 0.1, "
                  "\"original_max_position_embeddings\": 16}}",
    [LAYOUT_DYNAMIC] = "{\"model_type\": \"llama\", " SIZES(
        "8", "4") "\"rope_scaling\": {\"rope_type\": \"dynamic\", "
                  "\"factor\": 3.0, "
                  "\"original_max_position_embeddings\": 16}}",
    [LAYOUT_LATENT_YARN] = "{\"model_type\": \"deepseek_v3\", " SIZES("4", "4")
        LATENT "\"q_lora_rank\": 24, \"n_group\": 4, \"topk_group\": 2, "
               "\"rope_theta\": 100.0, \"rope_scaling\": {"
               "\"type\": \"yarn\", \"factor\": 5.0, \"beta_fast\": 2, "
               "\"beta_slow\": 0.1, \"mscale\": 0.8, \"mscale_all_dim\": 1.3, "
               "\"original_max_position_embeddings\": 16}}",
    [LAYOUT_QWEN_MOE] = "{\"model_type\": \"qwen2_moe\", " SIZES(
        "8", "4") "\"num_experts\": 8, \"num_experts_per_tok\": 3, "
                  "\"moe_intermediate_size\": 40, "
                  "\"shared_expert_intermediate_size\": 56, "
                  "\"decoder_sparse_step\": 2}",
};

layout_family layout_family_of(const layout_row *row)
{
    return row->is_llama ? LAYOUT_LLAMA : row->family;
}

const char *layout_model_text(const layout_row *row)
{
    return families[layout_family_of(row)];
}

fr_status layout_model(const layout_row *row, fr_model *out, fr_err *err)
{
    const char *text = layout_model_text(row);

    return fr_model_parse("tiny", text, strlen(text), out, err);
}
