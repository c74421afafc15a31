/* test_config_nemo.c: YAML of NeMo 1, NeMo 2 and Megatron-Bridge.  The texts
 * are of our own; their keys are those of the files that
 * frameworks/nemo/config_*.c name. */
#include "tests/unit/interop/config_text.h"

static fr_err err;

#define TRAINER                                                                \
    "trainer:\n  num_nodes: 6\n  devices: 8\n  precision: bf16\n"              \
    "  max_steps: 2385\n  gradient_clip_val: 0.75\n"                           \
    "exp_manager:\n  name: ours\n"
#define MODEL                                                                  \
    "model:\n  micro_batch_size: 2\n  global_batch_size: 96\n"                 \
    "  tensor_model_parallel_size: 4\n  pipeline_model_parallel_size: 3\n"     \
    "  virtual_pipeline_model_parallel_size: 2\n  sequence_parallel: true\n"   \
    "  encoder_seq_length: 1536\n"                                             \
    "  max_position_embeddings: ${.encoder_seq_length}\n"                      \
    "  num_layers: 18\n  hidden_size: 768\n"                                   \
    "  ffn_hidden_size: ${multiply:4, ${.hidden_size}}\n"                      \
    "  num_attention_heads: 12\n  normalization: rmsnorm\n  bias: false\n"     \
    "  activation: fast-swiglu\n  position_embedding_type: rope\n"             \
    "  share_embeddings_and_output_weights: false\n  megatron_amp_O2: true\n"  \
    "  transformer_engine: true\n"                                             \
    "  gradient_accumulation_fusion: true\n"                                   \
    "  tokenizer:\n    type: GPT2BPETokenizer\n"
#define OPTIM                                                                  \
    "  optim:\n    name: distributed_fused_adam\n    lr: 3e-4\n"               \
    "    betas: [0.9, 0.96]\n    overlap_grad_sync: true\n"                    \
    "    sched:\n      name: CosineAnnealing\n      warmup_steps: 77\n"        \
    "      min_lr: 3e-5\n"

static void test_nemo_1(void)
{
    fr_config c;
    if (!config_text_read(TRAINER MODEL OPTIM, "nemo", 0, &c, &err))
        return;
    const fr_plan *plan = &c.file.plan;
    const fr_model *model = &c.file.model;
    const fr_job *job = &c.file.job;
    CHECK_INT(plan->tp, 4);
    CHECK_INT(plan->pp, 3);
    CHECK_INT(plan->vpp, 2);
    CHECK_INT(plan->dp, 4); /* 48 ranks of tp 4 x pp 3 */
    CHECK_INT(plan->zero_stage, 1);
    CHECK_INT(plan->precision, FR_DTYPE_BF16);
    CHECK_INT(plan->grad_dtype, FR_DTYPE_F32);
    CHECK(plan->is_sequence_parallel && plan->is_overlap);
    CHECK(!plan->is_gather_overlap);
    CHECK_INT(plan->recompute, FR_RECOMPUTE_NONE);
    CHECK_INT(plan->micro_batch, 2);
    CHECK_INT(job->global_batch, 96);
    CHECK_INT(job->seq, 1536);
    CHECK_INT(job->n_steps, 2385);
    CHECK_INT(job->warmup_steps, 77);
    CHECK_NEAR(job->beta2, 0.96, 1e-12);
    CHECK_NEAR(job->clip_norm, 0.75, 1e-12);
    CHECK_NEAR(job->lr_min_frac, 0.1, 1e-12);
    CHECK_INT(model->n_layers, 18);
    CHECK_INT(model->ffn_hidden, 3072);
    CHECK_INT(model->max_seq, 1536);
    CHECK_INT(model->vocab, 50257);
    CHECK(model->is_gated_mlp && model->is_rms_norm && model->is_rope);
    CHECK(!model->is_tied && !model->has_mlp_bias);
    fr_config_release(&c);
}

/* Keys that come to something else than an argument of their name. */
static void test_nemo_1_parts(void)
{
    fr_config c;
    if (config_text_read(TRAINER MODEL
                         "  activations_checkpoint_granularity: selective\n"
                         "  fp8: true\n  fp8_hybrid: true\n"
                         "  ub_tp_comm_overlap: true\n" OPTIM
                         "    grad_sync_dtype: bf16\n",
                         "nemo", 96, &c, &err)) {
        CHECK_INT(c.file.plan.dp, 8); /* --ranks goes before the trainer's */
        CHECK_INT(c.file.plan.recompute, FR_RECOMPUTE_SELECTIVE);
        CHECK_INT(c.file.plan.precision, FR_DTYPE_FP8);
        CHECK_INT(c.file.plan.grad_dtype, FR_DTYPE_BF16);
        CHECK(c.file.plan.is_tp_overlap);
        fr_config_release(&c);
    }
    if (config_text_read(TRAINER MODEL
                         "  fsdp: true\n  fsdp_sharding_strategy: full\n"
                         "  odd_key: 7\n"
                         "  optim:\n    name: fused_adam\n    lr: 3e-4\n",
                         "nemo", 0, &c, &err)) {
        CHECK_INT(c.file.plan.zero_stage, 3);
        CHECK_HAS(fr_buffer_text(&c.notes), "line 34: model.odd_key is not "
                                            "read");
        CHECK_HAS(fr_buffer_text(&c.notes), "exp_manager.name");
        fr_config_release(&c);
    }
}

static void test_nemo_1_refused(void)
{
    config_text_refused(TRAINER "model:\n  encoder:\n    num_layers: 12\n",
                        "nemo",
                        "c.yaml:11: model.encoder.num_layers 12: "
                        "models of encoder and decoder");
    config_text_refused(TRAINER "model:\n  sample_rate: 16000\n", "nemo",
                        "no model.micro_batch_size");
    config_text_refused(TRAINER MODEL "  num_query_groups: ${nothing}\n",
                        "nemo",
                        "c.yaml:32: model.num_query_groups is "
                        "${nothing}, which the file does not say");
    config_text_refused(TRAINER MODEL "  fsdp: true\n"
                                      "  fsdp_sharding_strategy: hybrid\n",
                        "nemo", "c.yaml:33: model.fsdp_sharding_strategy");
}

static void test_nemo_2(void)
{
    static const char text[] =
        "_target_: nemo.collections.llm.api.pretrain\n"
        "data:\n  micro_batch_size: 1\n  global_batch_size: 64\n"
        "  seq_length: 4096\n"
        "model:\n  config:\n"
        "    _target_: nemo.collections.llm.gpt.model.llama.Llama3Config8B\n"
        "optim:\n  config:\n    lr: 0.0003\n    adam_beta2: 0.95\n"
        "    use_distributed_optimizer: true\n"
        "  lr_scheduler:\n    warmup_steps: 23\n"
        "trainer:\n  devices: 8\n  num_nodes: 2\n  max_steps: 385\n"
        "  callbacks:\n"
        "  - _target_: nemo.lightning.MegatronCommOverlapCallback\n"
        "    tp_comm_overlap: true\n"
        "  plugins:\n    precision: bf16-mixed\n    fp8: hybrid\n"
        "    fp8_recipe: tensorwise\n    grad_reduce_in_fp32: false\n"
        "  strategy:\n    tensor_model_parallel_size: 2\n"
        "    context_parallel_size: 2\n    sequence_parallel: true\n"
        "    ddp:\n      overlap_grad_reduce: true\n"
        "      grad_reduce_in_fp32: true\n";
    fr_config c;
    if (!config_text_read(text, "nemo", 0, &c, &err))
        return;
    const fr_plan *plan = &c.file.plan;
    CHECK_INT(plan->tp, 2);
    CHECK_INT(plan->cp, 2);
    CHECK_INT(plan->dp, 4);
    CHECK_INT(plan->zero_stage, 1);
    CHECK_INT(plan->precision, FR_DTYPE_FP8);
    CHECK_INT(plan->execution.scaling, FR_SCALING_CURRENT);
    CHECK_INT(plan->grad_dtype, FR_DTYPE_BF16);
    CHECK(plan->is_tp_overlap && plan->is_overlap);
    CHECK_INT(c.file.model.n_layers, 32);
    CHECK_INT(c.file.model.vocab, 128256);
    CHECK_INT(c.file.job.seq, 4096);
    CHECK_INT(c.file.job.n_steps, 385);
    CHECK_HAS(fr_buffer_text(&c.notes), "'Llama3Config8B' is llama-3-8b");
    fr_config_release(&c);
    config_text_refused("_target_: nemo.collections.llm.api.finetune\n"
                        "data:\n  micro_batch_size: 1\n"
                        "peft:\n  _target_: nemo.collections.llm.peft.LoRA\n",
                        "nemo", "c.yaml:5: peft._target_");
}

/* A run_config.yaml: the data's sequence is shorter than the model's. */
static void test_bridge(void)
{
    static const char text[] =
        "_target_: megatron.bridge.training.config.ConfigContainer\n"
        "dataset:\n  sequence_length: 1024\n"
        "ddp:\n  use_distributed_optimizer: true\n"
        "  grad_reduce_in_fp32: true\n  overlap_grad_reduce: true\n"
        "  overlap_param_gather: true\n  bucket_size: 40000000\n"
        "mixed_precision:\n  bf16: true\n  fp8: null\n"
        "  fp8_recipe: tensorwise\n  grad_reduce_in_fp32: true\n"
        "model:\n"
        "  _target_: megatron.bridge.models.llama.LlamaModelProvider\n"
        "  activation_func:\n    _call_: false\n"
        "    _target_: torch.nn.functional.silu\n"
        "  gated_linear_unit: true\n  add_bias_linear: false\n"
        "  attention_backend:\n    _args_:\n    - 1\n    _call_: true\n"
        "  num_layers: 16\n  hidden_size: 2048\n  ffn_hidden_size: 8192\n"
        "  num_attention_heads: 32\n  num_query_groups: 8\n"
        "  normalization: RMSNorm\n  position_embedding_type: rope\n"
        "  share_embeddings_and_output_weights: true\n"
        "  recompute_granularity: selective\n"
        "  recompute_modules:\n  - core_attn\n  - mlp\n"
        "  gradient_accumulation_fusion: true\n"
        "  seq_length: 131072\n  vocab_size: 128256\n"
        "  tensor_model_parallel_size: 2\n"
        "  pipeline_model_parallel_size: 2\n  sequence_parallel: true\n"
        "  hidden_dropout: 0.0\n  attention_dropout: 0.0\n"
        "optimizer:\n  lr: 0.0003\n  min_lr: 3.0e-05\n  bf16: true\n"
        "train:\n  global_batch_size: 512\n  micro_batch_size: 4\n"
        "  train_iters: 10\n";
    fr_config c;
    if (!config_text_read(text, "megatron-bridge", 32, &c, &err))
        return;
    const fr_plan *plan = &c.file.plan;
    CHECK_INT(plan->tp, 2);
    CHECK_INT(plan->pp, 2);
    CHECK_INT(plan->dp, 8);
    CHECK_INT(plan->zero_stage, 1);
    CHECK_INT(plan->precision, FR_DTYPE_BF16);
    CHECK_INT(plan->grad_dtype, FR_DTYPE_F32);
    CHECK_INT(plan->execution.flash_kind, FR_FLASH_2);
    CHECK_INT(plan->recompute, FR_RECOMPUTE_SELECTIVE);
    CHECK_INT(plan->recompute_parts,
              FR_RECOMPUTE_PART_ATTENTION | FR_RECOMPUTE_PART_MLP);
    CHECK_INT(c.file.job.seq, 1024);
    CHECK_INT(c.file.job.global_batch, 512);
    CHECK_INT(c.file.model.max_seq, 131072);
    CHECK_INT(c.file.model.n_kv_heads, 8);
    /* Llama 3.2 1B, as its card has it. */
    CHECK_INT(fr_model_parameters(&c.file.model), 1235814400);
    CHECK(strstr(fr_buffer_text(&c.notes), "changes a recipe") == NULL);
    fr_config_release(&c);
}

static void test_bridge_overrides(void)
{
    static const char text[] =
        "model:\n  num_layers: 8\n  hidden_size: 512\n"
        "  num_attention_heads: 8\n  vocab_size: 32000\n  seq_length: 2048\n"
        "train:\n  micro_batch_size: 1\n  global_batch_size: 16\n"
        "mixed_precision: bf16_with_fp8_current_scaling\n"
        "dist:\n  use_megatron_fsdp: true\n"
        "ddp:\n  data_parallel_sharding_strategy: optim_grads_params\n"
        "rng:\n  seed: 42\n";
    fr_config c;
    if (!config_text_read(text, "megatron-bridge", 16, &c, &err))
        return;
    CHECK_INT(c.file.plan.zero_stage, 3);
    CHECK_INT(c.file.plan.precision, FR_DTYPE_FP8);
    CHECK_INT(c.file.plan.execution.scaling, FR_SCALING_CURRENT);
    CHECK_INT(c.file.job.seed, 42);
    CHECK_HAS(fr_buffer_text(&c.notes), "changes a recipe");
    fr_config_release(&c);
    config_text_refused("model:\n  seq_length: 4096\n"
                        "train:\n  micro_batch_size: 1\n"
                        "peft:\n  dim: 8\n",
                        "megatron-bridge",
                        "c.yaml:6: peft.dim 8: training of adapters");
    config_text_refused("model:\n  seq_length: 4096\n"
                        "train:\n  micro_batch_size: 1\n",
                        "megatron-bridge", "give --model");
}

CHECK_MAIN({"nemo_1", test_nemo_1}, {"nemo_1_parts", test_nemo_1_parts},
           {"nemo_1_refused", test_nemo_1_refused}, {"nemo_2", test_nemo_2},
           {"bridge", test_bridge}, {"bridge_overrides", test_bridge_overrides})
