/* layer_models.c: small models of every kind, for tests of their layers. */
#include "tests/contract/plan/layer_models.h"

#include "program/lower/step/lower.h"
#include "tests/check.h"

fr_model layer_model_gpt(void)
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

fr_model layer_model_llama(void)
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

fr_model layer_model_mixtral(void)
{
    fr_model m = layer_model_llama();
    m.n_experts = 8;
    m.n_experts_per_token = 2;
    m.expert_ffn_hidden = 448;
    m.sliding_window = 96;
    return m;
}

fr_model layer_model_qwen_moe(void)
{
    fr_model m = layer_model_mixtral();
    m.has_qk_norm = true;
    m.has_qkv_bias = true;
    m.shared_expert_ffn_hidden = 832;
    m.has_shared_expert_gate = true;
    m.moe_every = 2;
    return m;
}

fr_model layer_model_deepseek(void)
{
    fr_model m = layer_model_mixtral();
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

fr_model layer_model_deepseek_mtp(void)
{
    fr_model m = layer_model_deepseek();
    m.q_lora_rank = 0;
    m.n_mtp_layers = 1;
    return m;
}

fr_model layer_model_neox(void)
{
    fr_model m = layer_model_gpt();
    m.is_tied = false;
    m.is_rope = true;
    m.rope_frac = 0.25;
    m.is_parallel_block = true;
    m.activation = FR_ACTIVATION_GELU;
    return m;
}

fr_model layer_model_bert(void)
{
    fr_model m = layer_model_gpt();
    m.kind = FR_MODEL_ENCODER;
    m.activation = FR_ACTIVATION_GELU;
    m.has_final_norm = false;
    m.has_embed_norm = m.has_pooler = m.has_mlm_head = true;
    m.n_token_types = 2;
    return m;
}

fr_model layer_model_vit(void)
{
    fr_model m = layer_model_gpt();
    m.kind = FR_MODEL_ENCODER;
    m.activation = FR_ACTIVATION_GELU;
    m.is_tied = false;
    m.vocab = 0;
    m.image_size = 224;
    m.patch_size = 16;
    m.n_channels = 3;
    m.n_labels = 10;
    m.max_seq = 197;
    return m;
}

fr_model layer_model_list(void)
{
    static fr_model_layer entries[3] = {
        {"stem", 236027904.0, 9536, 7024640, 802816, 3, 1, 0, 0, 0, 0},
        {"body", 462422016.0, 75008, 11239424, 3211264, 12, 4, 0, 0, 0, 0},
        {"end", 4096000.0, 2049000, 8192, 4000, 2, 1, 0, 0, 0, 0}};
    fr_model m;
    fr_model_init(&m);
    m.kind = FR_MODEL_LAYERS;
    m.layers = entries;
    m.n_layer_entries = 3;
    m.n_layers = 6;
    return m;
}

const layer_model layer_models[] = {
    {"gpt", layer_model_gpt},
    {"llama", layer_model_llama},
    {"mixtral", layer_model_mixtral},
    {"qwen_moe", layer_model_qwen_moe},
    {"deepseek", layer_model_deepseek},
    {"deepseek_mtp", layer_model_deepseek_mtp},
    {"neox", layer_model_neox},
    {"bert", layer_model_bert},
    {"vit", layer_model_vit},
    {"list", layer_model_list},
};

const int n_layer_models = sizeof layer_models / sizeof layer_models[0];

fr_job layer_small_job(void)
{
    fr_job job;
    fr_job_init(&job);
    job.global_batch = 16;
    job.seq = 128;
    return job;
}

fr_plan layer_bf16_plan(void)
{
    fr_plan plan;
    fr_plan_init(&plan);
    plan.precision = FR_DTYPE_BF16;
    plan.is_flash = true;
    plan.micro_batch = 2;
    return plan;
}

fr_program *layer_lower(const fr_model *model, const fr_job *job,
                        const fr_plan *plan)
{
    fr_program *program = NULL;
    fr_err err = {0};
    CHECK_OK(fr_lower(model, job, plan, NULL, &program, &err), &err);
    return program;
}
