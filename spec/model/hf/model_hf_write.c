/*
 * model_hf_write.c: a model as Hugging Face's config.json, from which
 * transformers builds the class that its weights belong to.
 */
#include "spec/model/hf/model_hf_rope.h"
#include "spec/model/model_json.h"

/* The names of a class of transformers and of its language model. */
static const struct {
    const char *type, *class_name;
} classes[FR_MODEL_HF_N] = {
    [FR_MODEL_HF_GPT2] = {"gpt2", "GPT2LMHeadModel"},
    [FR_MODEL_HF_GPT_NEOX] = {"gpt_neox", "GPTNeoXForCausalLM"},
    [FR_MODEL_HF_LLAMA] = {"llama", "LlamaForCausalLM"},
    [FR_MODEL_HF_MISTRAL] = {"mistral", "MistralForCausalLM"},
    [FR_MODEL_HF_QWEN2] = {"qwen2", "Qwen2ForCausalLM"},
    [FR_MODEL_HF_QWEN3] = {"qwen3", "Qwen3ForCausalLM"},
    [FR_MODEL_HF_GEMMA] = {"gemma", "GemmaForCausalLM"},
    [FR_MODEL_HF_MIXTRAL] = {"mixtral", "MixtralForCausalLM"},
    [FR_MODEL_HF_QWEN2_MOE] = {"qwen2_moe", "Qwen2MoeForCausalLM"},
    [FR_MODEL_HF_QWEN3_MOE] = {"qwen3_moe", "Qwen3MoeForCausalLM"},
    [FR_MODEL_HF_DEEPSEEK_V3] = {"deepseek_v3", "DeepseekV3ForCausalLM"},
    [FR_MODEL_HF_VIT] = {"vit", "ViTForImageClassification"},
    [FR_MODEL_HF_BERT] = {"bert", "BertForMaskedLM"},
};

fr_model_hf fr_model_hf_type(const fr_model *model)
{
    if (model->kind == FR_MODEL_ENCODER && model->has_mlm_head)
        return FR_MODEL_HF_BERT;
    if (model->kind == FR_MODEL_ENCODER && model->n_channels > 0 &&
        model->n_labels > 0)
        return FR_MODEL_HF_VIT;
    if (model->kind != FR_MODEL_DECODER || model->traits != 0 ||
        !fr_model_is_unmarked(model) ||
        (model->n_mtp_layers > 0 && model->kv_lora_rank == 0))
        return FR_MODEL_HF_NONE;
    if (model->kv_lora_rank > 0)
        return FR_MODEL_HF_DEEPSEEK_V3;
    if (!model->is_rms_norm)
        return model->is_rope ? FR_MODEL_HF_GPT_NEOX : FR_MODEL_HF_GPT2;
    if (model->n_experts > 0 && model->has_qk_norm)
        return FR_MODEL_HF_QWEN3_MOE;
    if (model->n_experts > 0)
        return model->has_softmax_over_all ||
                       model->shared_expert_ffn_hidden > 0
                   ? FR_MODEL_HF_QWEN2_MOE
                   : FR_MODEL_HF_MIXTRAL;
    if (model->has_scaled_embedding)
        return FR_MODEL_HF_GEMMA;
    if (model->has_qk_norm)
        return FR_MODEL_HF_QWEN3;
    if (model->has_qkv_bias && !model->has_out_bias)
        return FR_MODEL_HF_QWEN2;
    return model->sliding_window > 0 ? FR_MODEL_HF_MISTRAL : FR_MODEL_HF_LLAMA;
}

static void put_gpt2(const fr_model *m, fr_json_writer *json)
{
    fr_json_put_i64(json, "n_layer", m->n_layers);
    fr_json_put_i64(json, "n_embd", m->hidden);
    fr_json_put_i64(json, "n_head", m->n_heads);
    fr_json_put_i64(json, "n_inner", m->ffn_hidden);
    fr_json_put_i64(json, "n_positions", m->max_seq);
    fr_json_put_double(json, "layer_norm_epsilon", m->norm_eps);
    fr_json_put_string(json, "activation_function", fr_model_hf_activation(m));
}

/* BERT and ViT. */
static void put_encoder(const fr_model *m, fr_json_writer *json)
{
    fr_json_put_i64(json, "num_hidden_layers", m->n_layers);
    fr_json_put_i64(json, "hidden_size", m->hidden);
    fr_json_put_i64(json, "num_attention_heads", m->n_heads);
    fr_json_put_i64(json, "intermediate_size", m->ffn_hidden);
    fr_json_put_double(json, "layer_norm_eps", m->norm_eps);
    fr_json_put_string(json, "hidden_act", fr_model_hf_activation(m));
    if (m->n_channels == 0) {
        fr_json_put_i64(json, "max_position_embeddings", m->max_seq);
        fr_json_put_i64(json, "type_vocab_size", m->n_token_types);
        return;
    }
    fr_json_put_i64(json, "image_size", m->image_size);
    fr_json_put_i64(json, "patch_size", m->patch_size);
    fr_json_put_i64(json, "num_channels", m->n_channels);
    fr_json_put_i64(json, "num_labels", m->n_labels);
    fr_json_put_bool(json, "qkv_bias", m->has_qkv_bias);
}

static void put_qwen_experts(const fr_model *m, fr_json_writer *json)
{
    fr_json_put_i64(json, "num_experts", m->n_experts);
    fr_json_put_i64(json, "moe_intermediate_size", m->expert_ffn_hidden);
    fr_json_put_bool(json, "norm_topk_prob", !m->has_softmax_over_all);
    fr_json_put_i64(json, "decoder_sparse_step", m->moe_every);
    fr_json_key(json, "mlp_only_layers");
    fr_json_begin_row(json);
    for (int64_t i = 0; i < m->first_dense_layers; i++)
        fr_json_i64(json, i);
    fr_json_end_array(json);
    if (!m->has_qk_norm)
        fr_json_put_i64(json, "shared_expert_intermediate_size",
                        m->shared_expert_ffn_hidden);
}

static void put_deepseek(const fr_model *m, fr_json_writer *json)
{
    if (m->q_lora_rank > 0)
        fr_json_put_i64(json, "q_lora_rank", m->q_lora_rank);
    else
        fr_json_put_null(json, "q_lora_rank");
    fr_json_put_i64(json, "kv_lora_rank", m->kv_lora_rank);
    fr_json_put_i64(json, "qk_nope_head_dim", m->qk_nope_head_dim);
    fr_json_put_i64(json, "qk_rope_head_dim", m->qk_rope_head_dim);
    fr_json_put_i64(json, "v_head_dim", m->v_head_dim);
    fr_json_put_i64(json, "n_routed_experts", m->n_experts);
    fr_json_put_i64(json, "moe_intermediate_size", m->expert_ffn_hidden);
    fr_json_put_i64(json, "n_shared_experts",
                    m->shared_expert_ffn_hidden / m->expert_ffn_hidden);
    fr_json_put_i64(json, "first_k_dense_replace", m->first_dense_layers);
    fr_json_put_i64(json, "num_nextn_predict_layers", m->n_mtp_layers);
    fr_json_put_i64(json, "n_group", m->n_expert_groups);
    fr_json_put_i64(json, "topk_group", m->n_chosen_groups);
    fr_json_put_bool(json, "norm_topk_prob", !m->has_softmax_over_all);
    fr_json_put_double(json, "routed_scaling_factor", m->routed_scale);
    fr_json_put_string(json, "scoring_func",
                       m->has_sigmoid_router ? "sigmoid" : "softmax");
    if (m->has_router_bias)
        fr_json_put_string(json, "topk_method", "noaux_tc");
    if (m->router_aux_coef > 0) {
        fr_json_put_double(json, "aux_loss_alpha", m->router_aux_coef);
        fr_json_put_bool(json, "seq_aux", m->is_aux_by_sequence);
    }
}

/* transformers' own loss, which DeepSeek's class has not: see read_aux_loss()
 * of model_hf.c. */
static void put_aux_loss(const fr_model *m, fr_json_writer *json)
{
    if (!(m->router_aux_coef > 0) || m->kv_lora_rank > 0)
        return;
    fr_json_put_bool(json, "output_router_logits", true);
    fr_json_put_double(json, "router_aux_loss_coef",
                       m->router_aux_coef * (double)fr_model_moe_layers(m) /
                           (double)m->n_experts_per_token);
}

static void put_experts(const fr_model *m, fr_json_writer *json)
{
    if (m->n_experts == 0)
        return;
    fr_json_put_i64(json, "num_experts_per_tok", m->n_experts_per_token);
    put_aux_loss(m, json);
    if (fr_model_hf_type(m) == FR_MODEL_HF_MIXTRAL)
        fr_json_put_i64(json, "num_local_experts", m->n_experts);
    else if (fr_model_hf_type(m) == FR_MODEL_HF_DEEPSEEK_V3)
        put_deepseek(m, json);
    else
        put_qwen_experts(m, json);
}

/* Writes the sizes that have the same names in all models except GPT-2. */
static void put_sizes(const fr_model *m, fr_json_writer *json)
{
    const bool has_own_width = m->n_heads * m->head_dim != m->hidden;
    fr_json_put_i64(json, "num_hidden_layers", m->n_layers);
    fr_json_put_i64(json, "hidden_size", m->hidden);
    fr_json_put_i64(json, "num_attention_heads", m->n_heads);
    fr_json_put_i64(json, "intermediate_size", m->ffn_hidden);
    fr_json_put_i64(json, "max_position_embeddings", m->max_seq);
    /* The classes' own defaults differ; DeepSeek's is what is rotated. */
    if (m->kv_lora_rank == 0 && (m->is_rms_norm || has_own_width))
        fr_json_put_i64(json, "head_dim", m->head_dim);
    fr_model_hf_put_rope(m, json);
}

static void put_neox(const fr_model *m, fr_json_writer *json)
{
    put_sizes(m, json);
    fr_json_put_double(json, "layer_norm_eps", m->norm_eps);
    fr_json_put_string(json, "hidden_act", fr_model_hf_activation(m));
    fr_json_put_bool(json, "use_parallel_residual", m->is_parallel_block);
    fr_json_put_bool(json, "attention_bias", m->has_qkv_bias);
    fr_json_put_double(json, "rotary_emb_base", m->rope_theta);
    fr_json_put_double(json, "rotary_pct", m->rope_frac);
}

static void put_llama(const fr_model *m, fr_json_writer *json)
{
    const bool is_gemma = m->has_scaled_embedding;
    put_sizes(m, json);
    fr_json_put_i64(json, "num_key_value_heads", m->n_kv_heads);
    fr_json_put_double(json, "rms_norm_eps", m->norm_eps);
    fr_json_put_string(json, is_gemma ? "hidden_activation" : "hidden_act",
                       fr_model_hf_activation(m));
    fr_json_put_bool(json, "attention_bias", m->has_out_bias);
    fr_json_put_bool(json, "mlp_bias", m->has_mlp_bias);
    if (m->sliding_window > 0)
        fr_json_put_i64(json, "sliding_window", m->sliding_window);
    put_experts(m, json);
}

void fr_model_to_hugging_face(const fr_model *m, fr_json_writer *json)
{
    const fr_model_hf type = fr_model_hf_type(m);
    fr_json_begin_object(json);
    fr_json_open_array(json, "architectures");
    fr_json_string(json, m->has_pooler ? "BertForPreTraining"
                                       : classes[type].class_name);
    fr_json_end_array(json);
    fr_json_put_string(json, "model_type", classes[type].type);
    fr_json_put_i64(json, "vocab_size", m->vocab);
    fr_json_put_bool(json, "tie_word_embeddings", m->is_tied);
    if (type == FR_MODEL_HF_GPT2)
        put_gpt2(m, json);
    else if (type == FR_MODEL_HF_BERT || type == FR_MODEL_HF_VIT)
        put_encoder(m, json);
    else if (type == FR_MODEL_HF_GPT_NEOX)
        put_neox(m, json);
    else
        put_llama(m, json);
    fr_json_end_object(json);
}
