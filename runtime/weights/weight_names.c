/*
 * weight_names.c: the tables are from the modelling files of transformers 4.57
 * (src/transformers/models/TYPE/modeling_TYPE.py): what the modules of each
 * class are called.
 */
#include "runtime/weights/weight_names.h"

#include "core/base/text.h"
#include "plan/op/tensor_role.h"
#include "spec/model/model_json.h"

#include <stdio.h>
#include <string.h>

#define PLAIN(role, name)                                                      \
    {                                                                          \
        FR_TENSOR_##role, FR_WEIGHT_PLAIN, name                                \
    }
#define CONV1D(role, name)                                                     \
    {                                                                          \
        FR_TENSOR_##role, FR_WEIGHT_CONV1D, name                               \
    }
#define BIAS(role, name)                                                       \
    {                                                                          \
        FR_TENSOR_##role + 1, FR_WEIGHT_PLAIN, name ".bias"                    \
    }
#define WITH_BIAS(role, name) PLAIN(role, name ".weight"), BIAS(role, name)
#define CONV1D_BIAS(role, name) CONV1D(role, name ".weight"), BIAS(role, name)

static const fr_weight_name gpt2_names[] = {
    PLAIN(EMBED, "transformer.wte.weight"),
    PLAIN(POSITIONS, "transformer.wpe.weight"),
    WITH_BIAS(NORM1, "transformer.h.#.ln_1"),
    CONV1D_BIAS(QKV, "transformer.h.#.attn.c_attn"),
    CONV1D_BIAS(OUT, "transformer.h.#.attn.c_proj"),
    WITH_BIAS(NORM2, "transformer.h.#.ln_2"),
    CONV1D_BIAS(FC1, "transformer.h.#.mlp.c_fc"),
    CONV1D_BIAS(FC2, "transformer.h.#.mlp.c_proj"),
    WITH_BIAS(LAST_NORM, "transformer.ln_f"),
    PLAIN(HEAD, "lm_head.weight"),
    {0}};

static const fr_weight_name neox_names[] = {
    PLAIN(EMBED, "gpt_neox.embed_in.weight"),
    WITH_BIAS(NORM1, "gpt_neox.layers.#.input_layernorm"),
    WITH_BIAS(NORM2, "gpt_neox.layers.#.post_attention_layernorm"),
    {FR_TENSOR_QKV, FR_WEIGHT_PER_HEAD,
     "gpt_neox.layers.#.attention.query_key_value.weight"},
    {FR_TENSOR_QKV + 1, FR_WEIGHT_PER_HEAD,
     "gpt_neox.layers.#.attention.query_key_value.bias"},
    WITH_BIAS(OUT, "gpt_neox.layers.#.attention.dense"),
    WITH_BIAS(FC1, "gpt_neox.layers.#.mlp.dense_h_to_4h"),
    WITH_BIAS(FC2, "gpt_neox.layers.#.mlp.dense_4h_to_h"),
    WITH_BIAS(LAST_NORM, "gpt_neox.final_layer_norm"),
    PLAIN(HEAD, "embed_out.weight"),
    {0}};

#define BERT_LAYER "bert.encoder.layer.#."
static const fr_weight_name bert_names[] = {
    PLAIN(EMBED, "bert.embeddings.word_embeddings.weight"),
    PLAIN(POSITIONS, "bert.embeddings.position_embeddings.weight"),
    PLAIN(TYPES, "bert.embeddings.token_type_embeddings.weight"),
    WITH_BIAS(EMBED_NORM, "bert.embeddings.LayerNorm"),
    PLAIN(QKV, BERT_LAYER "attention.self.query.weight"),
    PLAIN(QKV, BERT_LAYER "attention.self.key.weight"),
    PLAIN(QKV, BERT_LAYER "attention.self.value.weight"),
    BIAS(QKV, BERT_LAYER "attention.self.query"),
    BIAS(QKV, BERT_LAYER "attention.self.key"),
    BIAS(QKV, BERT_LAYER "attention.self.value"),
    WITH_BIAS(OUT, BERT_LAYER "attention.output.dense"),
    WITH_BIAS(NORM1, BERT_LAYER "attention.output.LayerNorm"),
    WITH_BIAS(FC1, BERT_LAYER "intermediate.dense"),
    WITH_BIAS(FC2, BERT_LAYER "output.dense"),
    WITH_BIAS(NORM2, BERT_LAYER "output.LayerNorm"),
    WITH_BIAS(DENSE, "cls.predictions.transform.dense"),
    WITH_BIAS(DENSE_NORM, "cls.predictions.transform.LayerNorm"),
    PLAIN(HEAD, "cls.predictions.decoder.weight"),
    PLAIN(VOCAB_BIAS, "cls.predictions.bias"),
    PLAIN(POOLER, "bert.pooler.dense.weight"),
    PLAIN(POOLER_BIAS, "bert.pooler.dense.bias"),
    PLAIN(PAIR, "cls.seq_relationship.weight"),
    PLAIN(PAIR_BIAS, "cls.seq_relationship.bias"),
    {0}};

#define VIT_LAYER "vit.encoder.layer.#."
static const fr_weight_name vit_names[] = {
    {FR_TENSOR_POSITIONS, FR_WEIGHT_OF_ONE,
     "vit.embeddings.position_embeddings"},
    {FR_TENSOR_FIRST_TOKEN, FR_WEIGHT_OF_ONE, "vit.embeddings.cls_token"},
    {FR_TENSOR_PATCH, FR_WEIGHT_CONV2D,
     "vit.embeddings.patch_embeddings.projection.weight"},
    PLAIN(PATCH_BIAS, "vit.embeddings.patch_embeddings.projection.bias"),
    WITH_BIAS(NORM1, VIT_LAYER "layernorm_before"),
    PLAIN(QKV, VIT_LAYER "attention.attention.query.weight"),
    PLAIN(QKV, VIT_LAYER "attention.attention.key.weight"),
    PLAIN(QKV, VIT_LAYER "attention.attention.value.weight"),
    BIAS(QKV, VIT_LAYER "attention.attention.query"),
    BIAS(QKV, VIT_LAYER "attention.attention.key"),
    BIAS(QKV, VIT_LAYER "attention.attention.value"),
    WITH_BIAS(OUT, VIT_LAYER "attention.output.dense"),
    WITH_BIAS(NORM2, VIT_LAYER "layernorm_after"),
    WITH_BIAS(FC1, VIT_LAYER "intermediate.dense"),
    WITH_BIAS(FC2, VIT_LAYER "output.dense"),
    WITH_BIAS(LAST_NORM, "vit.layernorm"),
    PLAIN(LABELS, "classifier.weight"),
    PLAIN(LABELS_BIAS, "classifier.bias"),
    {0}};

/* Llama, Mistral, Qwen 2 and 3, Gemma; what a model has not has no tensor. */
static const fr_weight_name llama_names[] = {
    PLAIN(EMBED, "model.embed_tokens.weight"),
    PLAIN(NORM1, "model.layers.#.input_layernorm.weight"),
    PLAIN(QKV, "model.layers.#.self_attn.q_proj.weight"),
    PLAIN(QKV, "model.layers.#.self_attn.k_proj.weight"),
    PLAIN(QKV, "model.layers.#.self_attn.v_proj.weight"),
    BIAS(QKV, "model.layers.#.self_attn.q_proj"),
    BIAS(QKV, "model.layers.#.self_attn.k_proj"),
    BIAS(QKV, "model.layers.#.self_attn.v_proj"),
    PLAIN(Q_NORM, "model.layers.#.self_attn.q_norm.weight"),
    PLAIN(K_NORM, "model.layers.#.self_attn.k_norm.weight"),
    WITH_BIAS(OUT, "model.layers.#.self_attn.o_proj"),
    PLAIN(NORM2, "model.layers.#.post_attention_layernorm.weight"),
    PLAIN(FC1, "model.layers.#.mlp.gate_proj.weight"),
    PLAIN(FC1, "model.layers.#.mlp.up_proj.weight"),
    BIAS(FC1, "model.layers.#.mlp.gate_proj"),
    BIAS(FC1, "model.layers.#.mlp.up_proj"),
    WITH_BIAS(FC2, "model.layers.#.mlp.down_proj"),
    PLAIN(LAST_NORM, "model.norm.weight"),
    PLAIN(HEAD, "lm_head.weight"),
    {0}};

static const fr_weight_name mixtral_experts[] = {
    PLAIN(ROUTER, "model.layers.#.block_sparse_moe.gate.weight"),
    PLAIN(EXPERT_FC1, "model.layers.#.block_sparse_moe.experts.@.w1.weight"),
    PLAIN(EXPERT_FC1, "model.layers.#.block_sparse_moe.experts.@.w3.weight"),
    PLAIN(EXPERT_FC2, "model.layers.#.block_sparse_moe.experts.@.w2.weight"),
    {0}};

static const fr_weight_name qwen_experts[] = {
    PLAIN(ROUTER, "model.layers.#.mlp.gate.weight"),
    PLAIN(EXPERT_FC1, "model.layers.#.mlp.experts.@.gate_proj.weight"),
    PLAIN(EXPERT_FC1, "model.layers.#.mlp.experts.@.up_proj.weight"),
    PLAIN(EXPERT_FC2, "model.layers.#.mlp.experts.@.down_proj.weight"),
    {FR_TENSOR_SHARED_GATE, FR_WEIGHT_ONE_ROW,
     "model.layers.#.mlp.shared_expert_gate.weight"},
    PLAIN(SHARED_FC1, "model.layers.#.mlp.shared_expert.gate_proj.weight"),
    PLAIN(SHARED_FC1, "model.layers.#.mlp.shared_expert.up_proj.weight"),
    PLAIN(SHARED_FC2, "model.layers.#.mlp.shared_expert.down_proj.weight"),
    {0}};

#define DEEPSEEK_ATTENTION "model.layers.#.self_attn."
#define DEEPSEEK_NAMES                                                         \
    PLAIN(KV_DOWN, DEEPSEEK_ATTENTION "kv_a_proj_with_mqa.weight"),            \
        PLAIN(K_NORM, DEEPSEEK_ATTENTION "kv_a_layernorm.weight"),             \
        PLAIN(KV_UP, DEEPSEEK_ATTENTION "kv_b_proj.weight"),                   \
        PLAIN(ROUTER, "model.layers.#.mlp.gate.weight"),                       \
        PLAIN(ROUTER_BIAS, "model.layers.#.mlp.gate.e_score_correction_bias"), \
        PLAIN(EXPERT_FC1, "model.layers.#.mlp.experts.@.gate_proj.weight"),    \
        PLAIN(EXPERT_FC1, "model.layers.#.mlp.experts.@.up_proj.weight"),      \
        PLAIN(EXPERT_FC2, "model.layers.#.mlp.experts.@.down_proj.weight"),    \
        PLAIN(SHARED_FC1,                                                      \
              "model.layers.#.mlp.shared_experts.gate_proj.weight"),           \
        PLAIN(SHARED_FC1, "model.layers.#.mlp.shared_experts.up_proj.weight"), \
        PLAIN(SHARED_FC2,                                                      \
              "model.layers.#.mlp.shared_experts.down_proj.weight"),           \
        PLAIN(LATER_HIDDEN_NORM, "model.layers.#.hnorm.weight"),               \
        PLAIN(LATER_EMBED_NORM, "model.layers.#.enorm.weight"),                \
        PLAIN(LATER_NORM, "model.layers.#.shared_head.norm.weight"),           \
        PLAIN(LATER_JOIN, "model.layers.#.eh_proj.weight")

static const fr_weight_name deepseek_names[] = {
    DEEPSEEK_NAMES,
    PLAIN(Q_DOWN, DEEPSEEK_ATTENTION "q_a_proj.weight"),
    PLAIN(Q_NORM, DEEPSEEK_ATTENTION "q_a_layernorm.weight"),
    PLAIN(Q_UP, DEEPSEEK_ATTENTION "q_b_proj.weight"),
    {0}};

/* Names for models whose queries have no latents. */
static const fr_weight_name deepseek_whole_names[] = {
    DEEPSEEK_NAMES, PLAIN(Q_UP, DEEPSEEK_ATTENTION "q_proj.weight"), {0}};

static const fr_weight_name no_names[] = {{0}};

/* Causal masks and rotary frequencies, which old files hold. */
static const char *const attention_buffers[] = {
    ".attn.bias",           ".attn.masked_bias",      ".attention.bias",
    ".rotary_emb.inv_freq", ".attention.masked_bias", NULL};

/* A later token's layer has copies of the embedding and of the head. */
static const char *const deepseek_buffers[] = {
    ".rotary_emb.inv_freq", ".embed_tokens.weight", ".shared_head.head.weight",
    NULL};

static const char *const no_buffers[] = {NULL};

/* Files of the whole of BERT have heads that masked tokens do not need. */
static const char *const bert_buffers[] = {".position_ids",
                                           "cls.predictions.decoder.bias",
                                           ".pooler.dense.weight",
                                           ".pooler.dense.bias",
                                           "cls.seq_relationship.weight",
                                           "cls.seq_relationship.bias",
                                           NULL};

#define DENSE_LLAMA                                                            \
    {                                                                          \
        "model.", 0, llama_names, no_names, attention_buffers                  \
    }
static const fr_weight_family families[FR_MODEL_HF_N] = {
    [FR_MODEL_HF_GPT2] = {"transformer.", 0, gpt2_names, no_names,
                          attention_buffers},
    [FR_MODEL_HF_GPT_NEOX] = {"gpt_neox.", 0, neox_names, no_names,
                              attention_buffers},
    [FR_MODEL_HF_LLAMA] = DENSE_LLAMA,
    [FR_MODEL_HF_MISTRAL] = DENSE_LLAMA,
    [FR_MODEL_HF_QWEN2] = DENSE_LLAMA,
    [FR_MODEL_HF_QWEN3] = DENSE_LLAMA,
    /* Its norms scale by one more than their weight. */
    [FR_MODEL_HF_GEMMA] = {"model.", 1, llama_names, no_names,
                           attention_buffers},
    [FR_MODEL_HF_MIXTRAL] = {"model.", 0, llama_names, mixtral_experts,
                             attention_buffers},
    [FR_MODEL_HF_QWEN2_MOE] = {"model.", 0, llama_names, qwen_experts,
                               attention_buffers},
    [FR_MODEL_HF_BERT] = {"bert.", 0, bert_names, no_names, bert_buffers},
    [FR_MODEL_HF_QWEN3_MOE] = {"model.", 0, llama_names, qwen_experts,
                               attention_buffers},
    [FR_MODEL_HF_VIT] = {"vit.", 0, vit_names, no_names, no_buffers},
    [FR_MODEL_HF_DEEPSEEK_V3] = {"model.", 0, llama_names, deepseek_names,
                                 deepseek_buffers},
};
static const fr_weight_family deepseek_whole = {
    "model.", 0, llama_names, deepseek_whole_names, deepseek_buffers};

const fr_weight_family *fr_weight_family_of(const fr_model *model)
{
    const fr_weight_family *family = &families[fr_model_hf_type(model)];
    if (model->kv_lora_rank > 0 && model->q_lora_rank == 0 &&
        family->names != NULL)
        return &deepseek_whole;
    return family->names != NULL ? family : NULL;
}

static const fr_weight_name *find(const fr_weight_name *names, int role, int *n)
{
    const fr_weight_name *first = NULL;
    *n = 0;
    for (; names->name != NULL; names++)
        if (names->role == role && (*n)++ == 0)
            first = names;
    return first;
}

const fr_weight_name *fr_weight_names_find(const fr_weight_family *family,
                                           int role, int *n)
{
    const fr_weight_name *first = find(family->more_names, role, n);
    return first != NULL ? first : find(family->names, role, n);
}

void fr_weight_name_format(const char *name, int64_t layer, int64_t expert,
                           char *out, size_t n)
{
    size_t at = 0;
    for (; *name != '\0' && at + 24 < n; name++)
        if (*name == '#' || *name == '@')
            at += (size_t)snprintf(out + at, n - at, "%lld",
                                   (long long)(*name == '#' ? layer : expert));
        else
            out[at++] = *name;
    out[at] = '\0';
}

bool fr_weight_is_buffer(const fr_weight_family *family, const char *name)
{
    for (const char *const *end = family->buffers; *end != NULL; end++)
        if (fr_text_ends(name, *end))
            return true;
    return false;
}
