/* test_config_llm_foundry.c: YAML of LLM Foundry (mosaicml/llm-foundry at
 * 8c8dd48f, scripts/train/yamls).  The texts are of our own. */
#include "spec/model/model_traits.h"
#include "tests/unit/interop/config_text.h"

static fr_err err;

#define MODEL                                                                  \
    "variables:\n  max_seq_len: 2048\n  global_seed: 23\n"                     \
    "max_seq_len: ${variables.max_seq_len}\n"                                  \
    "model:\n  name: mpt_causal_lm\n  init_device: meta\n  d_model: 4096\n"    \
    "  n_heads: 32\n  n_layers: 32\n  expansion_ratio: 4\n"                    \
    "  max_seq_len: ${variables.max_seq_len}\n  vocab_size: 50432\n"           \
    "  no_bias: true\n  attn_config:\n    alibi: true\n    attn_impl: flash\n" \
    "  learned_pos_emb: false\n"
#define TRAINING                                                               \
    "scheduler:\n  name: cosine_with_warmup\n  t_warmup: 100ba\n"              \
    "  alpha_f: 0.1\n"                                                         \
    "optimizer:\n  name: decoupled_adamw\n  lr: 1.2e-4\n"                      \
    "  betas:\n  - 0.9\n  - 0.96\n  eps: 1.0e-08\n  weight_decay: 0.0\n"       \
    "algorithms:\n  gradient_clipping:\n    clipping_type: norm\n"             \
    "    clipping_threshold: 1.25\n"                                           \
    "max_duration: 63900ba\nglobal_train_batch_size: 1760\n"                   \
    "seed: ${variables.global_seed}\ndevice_train_microbatch_size: 2\n"        \
    "precision: amp_bf16\n"
#define SHARDING                                                               \
    "fsdp_config:\n  sharding_strategy: FULL_SHARD\n"                          \
    "  mixed_precision: PURE\n  activation_checkpointing: true\n"              \
    "  activation_cpu_offload: false\n"

static void test_mpt(void)
{
    fr_config c;
    if (!config_text_read(MODEL TRAINING SHARDING, "llm-foundry", 440, &c,
                          &err))
        return;
    const fr_plan *plan = &c.file.plan;
    const fr_job *job = &c.file.job;
    CHECK_INT(plan->dp, 440);
    CHECK_INT(plan->zero_stage, 3);
    CHECK_INT(plan->precision, FR_DTYPE_BF16);
    CHECK_INT(plan->grad_dtype, FR_DTYPE_BF16);
    CHECK_INT(plan->recompute, FR_RECOMPUTE_FULL);
    CHECK(plan->is_flash);
    CHECK_INT(plan->execution.n_loss_metrics, 2); /* of the row */
    CHECK_INT(plan->micro_batch, 2);
    CHECK_INT(job->global_batch, 1760);
    CHECK_INT(job->seq, 2048);
    CHECK_INT(job->seed, 23);
    CHECK_INT(job->n_steps, 63900);
    CHECK_INT(job->warmup_steps, 100);
    CHECK_NEAR(job->beta2, 0.96, 1e-12);
    CHECK_NEAR(job->clip_norm, 1.25, 1e-12);
    CHECK_NEAR(job->lr_min_frac, 0.1, 1e-12);
    CHECK(fr_model_has(&c.file.model, FR_TRAIT_ALIBI));
    /* mosaicml/mpt-7b, as transformers counts it. */
    CHECK_INT(fr_model_parameters(&c.file.model), 6649286656);
    fr_config_release(&c);
}

/* DDP without a block for FSDP; a micro-batch that Composer chooses; a model by
 * its name. */
static void test_named(void)
{
    static const char text[] =
        "parameters:\n  max_seq_len: 4096\n"
        "  model:\n    name: hf_causal_lm\n"
        "    pretrained_model_name_or_path: meta-llama/Meta-Llama-3.1-8B\n"
        "    config_overrides:\n      max_position_embeddings: 16384\n"
        "      attn_pdrop: 0.1\n"
        "  optimizer:\n    name: adamw\n    lr: 1.0e-5\n"
        "  max_duration: 26214400tok\n  global_train_batch_size: 64\n"
        "  device_train_microbatch_size: auto\n  precision: fp32\n";
    fr_config c;
    if (!config_text_read(text, "llm-foundry", 32, &c, &err))
        return;
    CHECK_INT(c.file.plan.zero_stage, 0);
    CHECK_INT(c.file.plan.precision, FR_DTYPE_F32);
    CHECK_INT(c.file.plan.micro_batch, 1);
    CHECK_INT(c.file.plan.recompute, FR_RECOMPUTE_NONE);
    CHECK_INT(c.file.model.n_layers, 32);
    CHECK_INT(c.file.model.max_seq, 16384);
    CHECK_INT(c.file.job.n_steps, 100);
    CHECK_NEAR(c.file.job.clip_norm, 0, 1e-12);
    CHECK_HAS(fr_buffer_text(&c.notes), "give --micro-batch");
    CHECK_HAS(fr_buffer_text(&c.notes),
              "line 8: model.config_overrides.attn_pdrop is not read");
    fr_config_release(&c);
}

/* Experts of MegaBlocks, and a sharding that keeps the parameters. */
static void test_experts(void)
{
    fr_config c;
    if (!config_text_read(MODEL "  ffn_config:\n    ffn_type: mb_dmoe\n"
                                "    moe_num_experts: 8\n    moe_top_k: 2\n"
                                "    moe_world_size: 4\n" TRAINING
                                "fsdp_config:\n"
                                "  sharding_strategy: SHARD_GRAD_OP\n"
                                "  mixed_precision: DEFAULT\n",
                          "llm-foundry", 16, &c, &err))
        return;
    CHECK_INT(c.file.plan.zero_stage, 2);
    CHECK_INT(c.file.plan.ep, 4);
    CHECK_INT(c.file.plan.grad_dtype, FR_DTYPE_F32);
    CHECK_INT(c.file.model.n_experts, 8);
    CHECK_INT(c.file.model.expert_ffn_hidden, 16384);
    fr_config_release(&c);
}

static void test_refused(void)
{
    static const char *const rows[][2] = {
        {MODEL TRAINING "fsdp_config:\n  sharding_strategy: HYBRID_SHARD\n",
         "c.yaml:41: fsdp_config.sharding_strategy HYBRID_SHARD"},
        {"model:\n  peft_config:\n    r: 64\n",
         "c.yaml:3: model.peft_config.r 64: training of adapters"},
        {"model:\n  name: hf_t5\n", "c.yaml:2: model.name hf_t5"},
        {"model:\n  name: hf_causal_lm\n"
         "  pretrained_model_name_or_path: databricks/dbrx-instruct\n",
         "its model is 'databricks/dbrx-instruct'; name the one"},
        {MODEL "global_train_batch_size: 6\n",
         "global_train_batch_size 6: it does not divide by the ranks"},
        {MODEL "global_train_batch_size: 64\noptimizer:\n"
               "  name: decoupled_lionw\n",
         "optimizer.name decoupled_lionw"},
    };
    for (size_t i = 0; i < FR_LENGTH(rows); i++)
        config_text_refused(rows[i][0], "llm-foundry", rows[i][1]);
}

CHECK_MAIN({"mpt", test_mpt}, {"named", test_named}, {"experts", test_experts},
           {"refused", test_refused})
