/* test_config_nanotron.c: YAML of nanotron (huggingface/nanotron at 2411b022,
 * src/nanotron/config).  The texts are of our own. */
#include "tests/unit/interop/config_text.h"

#include <stdio.h>

static fr_err err;

#define MODEL                                                                  \
    "general:\n  project: ours\n  seed: 6\n"                                   \
    "model:\n  dtype: bfloat16\n  ddp_bucket_cap_mb: 13\n"                     \
    "  make_vocab_size_divisible_by: 1\n  model_config:\n"                     \
    "    hidden_act: silu\n    hidden_size: 576\n"                             \
    "    intermediate_size: 1536\n    is_llama_config: true\n"                 \
    "    max_position_embeddings: 2048\n    num_attention_heads: 9\n"          \
    "    num_hidden_layers: 30\n    num_key_value_heads: 3\n"                  \
    "    rms_norm_eps: 1.0e-05\n    rope_scaling: null\n"                      \
    "    tie_word_embeddings: true\n    vocab_size: 49152\n"
#define OPTIMIZER                                                              \
    "optimizer:\n  accumulate_grad_in_fp32: true\n  clip_grad: 1.25\n"         \
    "  learning_rate_scheduler:\n    learning_rate: 0.003\n"                   \
    "    lr_decay_style: linear\n    lr_warmup_steps: 250\n"                   \
    "    min_decay_lr: 0.0006\n"                                               \
    "  optimizer_factory:\n    adam_beta2: 0.96\n    name: adamW\n"            \
    "  weight_decay: 0.02\n  zero_stage: 1\n"
#define PARALLELISM                                                            \
    "parallelism:\n  context_parallel_size: 2\n  dp: 6\n  pp: 3\n"             \
    "  pp_engine: afab\n  recompute_layer: true\n  tp: 3\n"                    \
    "  tp_linear_async_communication: true\n  tp_mode: REDUCE_SCATTER\n"
#define TOKENS                                                                 \
    "tokens:\n  batch_accumulation_per_replica: 5\n  micro_batch_size: 4\n"    \
    "  sequence_length: 1536\n  train_steps: 600\n"

static void test_llama(void)
{
    fr_config c;
    if (!config_text_read(MODEL OPTIMIZER PARALLELISM TOKENS, "nanotron", 0, &c,
                          &err))
        return;
    const fr_plan *plan = &c.file.plan;
    const fr_job *job = &c.file.job;
    CHECK_INT(plan->tp, 3);
    CHECK_INT(plan->pp, 3);
    CHECK_INT(plan->cp, 2);
    CHECK_INT(plan->dp, 6); /* of the file */
    CHECK_INT(plan->schedule, FR_SCHEDULE_GPIPE);
    CHECK_INT(plan->zero_stage, 1);
    CHECK_INT(plan->precision, FR_DTYPE_BF16);
    CHECK_INT(plan->grad_dtype, FR_DTYPE_F32);
    CHECK_INT(plan->bucket_bytes, 13 << 20);
    CHECK_INT(plan->recompute, FR_RECOMPUTE_FULL);
    CHECK(plan->is_sequence_parallel && plan->is_overlap);
    CHECK(!plan->is_gather_overlap && plan->is_flash);
    CHECK_INT(plan->execution.flash_kind, FR_FLASH_2);
    CHECK(plan->execution.is_p2p_sync); /* of the framework's row */
    CHECK_INT(plan->micro_batch, 4);
    CHECK_INT(job->global_batch, 120);
    CHECK_INT(job->seq, 1536);
    CHECK_INT(job->n_steps, 600);
    CHECK_INT(job->seed, 6);
    CHECK_INT(job->lr_schedule, FR_LR_LINEAR);
    CHECK_NEAR(job->lr_min_frac, 0.2, 1e-12);
    CHECK_NEAR(job->clip_norm, 1.25, 1e-12);
    CHECK_NEAR(job->beta2, 0.96, 1e-12);
    /* As the card of SmolLM-135M's config.json counts. */
    CHECK_INT(fr_model_parameters(&c.file.model), 134515008);
    CHECK_HAS(fr_buffer_text(&c.notes),
              "parallelism.tp_linear_async_communication is not read");
    fr_config_release(&c);
}

/* qwen2 with experts, all-reduce, another attention; --ranks. */
static void test_experts(void)
{
    fr_config c;
    if (!config_text_read(
            MODEL "    _attn_implementation: sdpa\n    attention_bias: true\n"
                  "    moe_config:\n      num_experts: 16\n      top_k: 3\n"
                  "      moe_intermediate_size: 384\n"
                  "      shared_expert_intermediate_size: 768\n"
                  "      enable_shared_expert: true\n      layers: [-1]\n"
                  "parallelism:\n  dp: 2\n  tp: 3\n  pp: 1\n"
                  "  expert_parallel_size: 4\n" TOKENS,
            "nanotron", 24, &c, &err))
        return;
    const fr_plan *plan = &c.file.plan;
    const fr_model *model = &c.file.model;
    CHECK_INT(plan->dp, 8);
    CHECK_INT(plan->ep, 4);
    CHECK_INT(plan->zero_stage, 0);
    CHECK(!plan->is_sequence_parallel && plan->is_flash);
    CHECK_INT(plan->execution.flash_kind, FR_FLASH_NATIVE);
    CHECK_INT(plan->recompute, FR_RECOMPUTE_NONE);
    CHECK_INT(model->n_experts, 16);
    CHECK_INT(model->n_experts_per_token, 3);
    CHECK_INT(model->expert_ffn_hidden, 384);
    CHECK_INT(model->shared_expert_ffn_hidden, 768);
    CHECK(model->has_qkv_bias && !model->has_out_bias);
    CHECK_INT(c.file.job.global_batch, 160);
    fr_config_release(&c);
}

static void test_refused(void)
{
    static const char *const rows[][2] = {
        {MODEL "    is_mamba_config: true\n",
         "c.yaml:21: model.model_config.is_mamba_config"},
        {"doremi:\n  domain_names: A, B\n", "c.yaml:2: doremi.domain_names"},
        {MODEL "optimizer:\n  zero_stage: 3\n"
               "parallelism:\n  tp: 1\n" TOKENS,
         "c.yaml:22: optimizer.zero_stage 3: nanotron has 0 and 1"},
        {MODEL "parallelism:\n  tp: 1\ntokens:\n  train_steps: 3\n",
         "no tokens.micro_batch_size"},
        {"model:\n  dtype: bfloat16\n", "give --model"},
    };
    for (size_t i = 0; i < FR_LENGTH(rows); i++)
        config_text_refused(rows[i][0], "nanotron", rows[i][1]);
}

CHECK_MAIN({"llama", test_llama}, {"experts", test_experts},
           {"refused", test_refused})
