/* test_config_gpt_neox.c: YAML of GPT-NeoX (EleutherAI/gpt-neox at ea7aefd8,
 * megatron/neox_arguments).  The texts are of our own. */
#include "spec/model/model_traits.h"
#include "tests/unit/interop/config_text.h"

#include <stdio.h>

static fr_err err;

/* The dimensions and parallelism of GPT-NeoX-20B, as its file has them: JSON
 * with Python's commas. */
#define LARGE                                                                  \
    "{\n  \"pipe_parallel_size\": 4,\n  \"model_parallel_size\": 2,\n"         \
    "  \"num_layers\": 44, \"hidden_size\": 6144,\n"                           \
    "  \"num_attention_heads\": 64, \"seq_length\": 2048,\n"                   \
    "  \"max_position_embeddings\": 2048, \"pos_emb\": \"rotary\",\n"          \
    "  \"rotary_pct\": 0.25, \"no_weight_tying\": true,\n"                     \
    "  \"gpt_j_residual\": true, \"bias_gelu_fusion\": true,\n"                \
    "  \"optimizer\": {\"type\": \"Adam\", \"params\": {\"lr\": 0.97e-4,\n"    \
    "    \"betas\": [0.9, 0.95], \"eps\": 1.0e-8,}},\n"                        \
    "  \"min_lr\": 0.97e-5,\n"                                                 \
    "  \"zero_optimization\": {\"stage\": 1, \"overlap_comm\": True,\n"        \
    "    \"reduce_bucket_size\": 1260000000},\n"                               \
    "  \"train_micro_batch_size_per_gpu\": 4,\n"                               \
    "  \"gradient_accumulation_steps\": 32,\n"                                 \
    "  \"checkpoint_activations\": true, \"gradient_clipping\": 1.5,\n"        \
    "  \"weight_decay\": 0.02, \"hidden_dropout\": 0,\n"                       \
    "  \"train_iters\": 150000, \"warmup\": 0.01,\n"                           \
    "  \"lr_decay_style\": \"cosine\",\n"

static void test_large(void)
{
    fr_config c;
    if (!config_text_read(LARGE "  \"padded_vocab_size\": 50432,\n"
                                "  \"fp16\": {\"enabled\": true},\n"
                                "}\n",
                          "gpt-neox", 96, &c, &err))
        return;
    const fr_plan *plan = &c.file.plan;
    const fr_job *job = &c.file.job;
    CHECK_INT(plan->tp, 2);
    CHECK_INT(plan->pp, 4);
    CHECK_INT(plan->dp, 12);
    CHECK_INT(plan->zero_stage, 1);
    CHECK_INT(plan->precision, FR_DTYPE_F16);
    CHECK_INT(plan->grad_dtype, FR_DTYPE_F16);
    CHECK_INT(plan->bucket_bytes, 2520000000); /* elements of 2 bytes */
    CHECK_INT(plan->recompute, FR_RECOMPUTE_FULL);
    CHECK(plan->is_overlap && !plan->is_flash);
    CHECK_INT(plan->micro_batch, 4);
    CHECK_INT(job->global_batch, 1536);
    CHECK_INT(job->warmup_steps, 1500);
    CHECK_INT(job->lr_schedule, FR_LR_COSINE);
    CHECK_NEAR(job->lr, 0.97e-4, 1e-12);
    CHECK_NEAR(job->lr_min_frac, 0.1, 1e-12);
    CHECK_NEAR(job->weight_decay, 0.02, 1e-12);
    CHECK_NEAR(job->clip_norm, 1.5, 1e-12);
    /* As transformers counts EleutherAI/gpt-neox-20b. */
    CHECK_INT(fr_model_parameters(&c.file.model), 20554567680);
    fr_config_release(&c);
}

/* Names with hyphens, bf16, flash attention, a gated MLP. */
static void test_small(void)
{
    static const char text[] =
        "pipe-parallel-size: 0\nmodel-parallel-size: 1\nnum-layers: 32\n"
        "hidden-size: 4096\nintermediate-size: 32768\n"
        "num-attention-heads: 32\nnum-kv-heads: 8\nseq-length: 4096\n"
        "max-position-embeddings: 8192\npos-emb: rotary\nnorm: rmsnorm\n"
        "activation: swiglu\nmlp-multiple-of: 256\n"
        "use-bias-in-attn-linear: false\nuse-bias-in-mlp: false\n"
        "no-weight-tying: true\nattention-config: [[[\"flash\"], 32]]\n"
        "precision: bfloat16\ndata_types:\n  grad_accum_dtype: fp32\n"
        "train_batch_size: 256\ngradient_accumulation_steps: 2\n"
        "zero_optimization:\n  stage: 2\n  offload_optimizer:\n"
        "    device: cpu\npartition-activations: true\n";
    fr_config c;
    if (!config_text_read(text, "gpt-neox", 16, &c, &err))
        return;
    const fr_plan *plan = &c.file.plan;
    const fr_model *model = &c.file.model;
    CHECK_INT(plan->pp, 1);
    CHECK_INT(plan->dp, 16);
    CHECK_INT(plan->zero_stage, 2);
    CHECK_INT(plan->precision, FR_DTYPE_BF16);
    CHECK_INT(plan->grad_dtype, FR_DTYPE_F32);
    CHECK(plan->is_flash && plan->is_optimizer_offloaded);
    CHECK_INT(plan->execution.flash_kind, FR_FLASH_2);
    CHECK_INT(plan->micro_batch, 8); /* 256 / 16 / 2 */
    CHECK_INT(model->ffn_hidden, 11008);
    CHECK_INT(model->n_kv_heads, 8);
    CHECK_INT(model->vocab, 50257); /* that of the default tokenizer */
    CHECK(model->is_rms_norm && !model->has_mlp_bias && !model->is_tied);
    CHECK_HAS(fr_buffer_text(&c.notes),
              "line 27: partition_activations is not read");
    fr_config_release(&c);
}

static void test_traits(void)
{
    fr_config c;
    if (!config_text_read("pipe_parallel_size: 1\nnum_layers: 4\n"
                          "hidden_size: 256\nnum_attention_heads: 4\n"
                          "max_position_embeddings: 512\nseq_length: 256\n"
                          "pos_emb: alibi\ngpt_j_residual: true\n"
                          "gpt_j_tied: true\nuse_bias_in_norms: false\n"
                          "train_micro_batch_size_per_gpu: 3\n",
                          "gpt-neox", 2, &c, &err))
        return;
    const fr_model *model = &c.file.model;
    CHECK(fr_model_has(model, FR_TRAIT_ALIBI));
    CHECK(fr_model_has(model, FR_TRAIT_ONE_BLOCK_NORM));
    CHECK(fr_model_has(model, FR_TRAIT_NO_NORM_BIAS));
    CHECK(model->is_parallel_block && model->is_tied && !model->is_rope);
    CHECK_INT(model->ffn_hidden, 1024);
    CHECK_INT(c.file.plan.precision, FR_DTYPE_F32);
    CHECK_INT(c.file.job.global_batch, 6);
    fr_config_release(&c);
}

static void test_refused(void)
{
    static const char *const rows[][2] = {
        {"attention_config: [[[\"mamba\"], 24]]\n",
         "c.yaml:2: attention_config 'mamba'"},
        {"moe_num_experts: 8\n", "c.yaml:2: moe_num_experts 8"},
        {"train_impl: dpo\n", "c.yaml:2: train_impl dpo"},
        {"num_layers: 12\n", "join the files that GPT-NeoX is started with"},
        {"train_batch_size: 32\n", "no num_layers"},
    };
    for (size_t i = 0; i < FR_LENGTH(rows); i++) {
        char text[256];
        snprintf(text, sizeof text, "pipe_parallel_size: 1\n%s", rows[i][0]);
        config_text_refused(text, "gpt-neox", rows[i][1]);
    }
    config_text_refused(LARGE "  \"tokenizer_type\": \"HFTokenizer\"}\n",
                        "gpt-neox", "add padded_vocab_size: N");
}

CHECK_MAIN({"large", test_large}, {"small", test_small},
           {"traits", test_traits}, {"refused", test_refused})
