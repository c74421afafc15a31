/* test_config_primus.c: experiments of Primus over Megatron-LM
 * (AMD-AGI/Primus at fd1eeabb).  The texts are of our own. */
#include "tests/unit/interop/config_text.h"

#include <stdlib.h>

static fr_err err;

#define PRESETS "primus/configs/"

/* A checkout with one model, which extends another, and the module's preset. */
static const char *const files[][2] = {
    {PRESETS "modules/megatron/pre_trainer.yaml",
     "extends:\n  - ../base.yaml\nuse_distributed_optimizer: true\n"
     "overlap_grad_reduce: false\nadam_beta2: 0.999\n"},
    {PRESETS "modules/megatron/../base.yaml",
     "bf16: true\nseed: 77\noverlap_grad_reduce: true\nclip_grad: 0.75\n"},
    {PRESETS "models/megatron/ours.yaml",
     "extends:\n  - base.yaml\nnum_layers: 12\nhidden_size: 768\n"
     "ffn_hidden_size: 2048\nodd_norm: 3\ntokenizer_type: "
     "HuggingFaceTokenizer\n"
     "tokenizer_model: meta-llama/Llama-3.1-8B\n"},
    {PRESETS "models/megatron/base.yaml",
     "num_layers: 99\nnum_attention_heads: 12\ngroup_query_attention: true\n"
     "num_query_groups: 4\nswiglu: true\nadd_bias_linear: false\n"
     "normalization: RMSNorm\nposition_embedding_type: rope\n"
     "untie_embeddings_and_output_weights: true\nsequence_parallel: true\n"
     "gradient_accumulation_fusion: true\nhidden_dropout: 0.0\n"
     "attention_dropout: 0.0\nclone_scatter_output_in_embedding: true\n"},
    {PRESETS "models/megatron/circle.yaml", "extends:\n  - circle.yaml\n"},
};

static fr_status read_preset(const void *context, const char *name, char **text,
                             size_t *n_text, fr_err *out)
{
    (void)context;
    for (size_t i = 0; i < FR_LENGTH(files); i++)
        if (strcmp(files[i][0], name) == 0) {
            *text = strdup(files[i][1]);
            *n_text = strlen(files[i][1]);
            return *text != NULL ? FR_OK : fr_fail_no_memory(out);
        }
    return fr_fail(out, FR_IO, "%s: no such file", name);
}

static fr_status read_text(const char *text, fr_config *out)
{
    const fr_config_request request = {.path = "e.yaml",
                                       .text = text,
                                       .n_text = strlen(text),
                                       .world = 64,
                                       .read_file = read_preset};
    const fr_framework *found = fr_config_guess(text, strlen(text));
    CHECK(found == fr_config_find("primus"));
    return fr_config_read(fr_config_find("primus"), &request, out, &err);
}

#define EXPERIMENT(model)                                                      \
    "work_group: ${TEAM:amd}\nmodules:\n  pre_trainer:\n"                      \
    "    framework: megatron\n    config: pre_trainer.yaml\n"                  \
    "    model: " model "\n    overrides:\n"                                   \
    "      micro_batch_size: 2\n      global_batch_size: 64\n"                 \
    "      seq_length: ${SEQ:4096}\n      max_position_embeddings: 4096\n"     \
    "      tensor_model_parallel_size: ${PRIMUS_TP:4}\n"                       \
    "      pipeline_model_parallel_size: 2\n"                                  \
    "      virtual_pipeline_model_parallel_size: 3\n"                          \
    "      fp8: hybrid\n      train_data_path: ${DATA:null}\n"

/* Overrides go before the model, the model before what it extends. */
static void test_presets(void)
{
    fr_config c;
    if (!CHECK_OK(
            read_text(
                EXPERIMENT(
                    "${MODEL:ours}.yaml") "      overlap_param_gather: true\n"
                                          "      use_turbo_gemm: true\n",
                &c),
            &err))
        return;
    const fr_plan *plan = &c.file.plan;
    const fr_model *model = &c.file.model;
    CHECK_INT(plan->tp, 4);
    CHECK_INT(plan->pp, 2);
    CHECK_INT(plan->vpp, 3);
    CHECK_INT(plan->dp, 8);
    CHECK_INT(plan->zero_stage, 1);
    CHECK_INT(plan->precision, FR_DTYPE_FP8);
    CHECK_INT(plan->grad_dtype, FR_DTYPE_F32);
    CHECK(plan->is_sequence_parallel && plan->is_gather_overlap);
    CHECK(!plan->is_overlap); /* of the module, not of its base */
    CHECK_INT(plan->micro_batch, 2);
    CHECK_INT(c.file.job.global_batch, 64);
    CHECK_INT(c.file.job.seq, 4096);
    CHECK_INT(c.file.job.seed, 77);
    CHECK_NEAR(c.file.job.clip_norm, 0.75, 1e-12);
    CHECK_INT(model->n_layers, 12);
    CHECK_INT(model->n_kv_heads, 4);
    CHECK_INT(model->vocab, 128256); /* of its tokenizer */
    CHECK(model->is_gated_mlp && model->is_rms_norm && !model->is_tied);
    CHECK_HAS(fr_buffer_text(&c.notes), "line 18: use_turbo_gemm is not read");
    CHECK_HAS(fr_buffer_text(&c.notes), "line 6 of primus/configs/models/"
                                        "megatron/ours.yaml: odd_norm is not "
                                        "read");
    CHECK(strstr(fr_buffer_text(&c.notes), "clone_scatter") == NULL);
    fr_config_release(&c);
}

/* Without its presets the model is that of the catalog, by its name. */
static void test_alone(void)
{
    static const char text[] =
        "modules:\n  pre_trainer:\n    framework: megatron\n"
        "    config: pre_trainer.yaml\n    model: llama3.1_8B.yaml\n"
        "    overrides:\n      micro_batch_size: 1\n"
        "      global_batch_size: 32\n      seq_length: 8192\n"
        "      tensor_model_parallel_size: 2\n"
        "      recompute_granularity: full\n      recompute_method: block\n"
        "      recompute_num_layers: 5\n";
    fr_config c;
    if (!config_text_read(text, "primus", 16, &c, &err))
        return;
    CHECK_INT(c.file.plan.dp, 8);
    CHECK_INT(c.file.plan.zero_stage, 1);
    CHECK_INT(c.file.plan.precision, FR_DTYPE_BF16);
    CHECK(c.file.plan.is_sequence_parallel);
    CHECK_INT(c.file.plan.recompute, FR_RECOMPUTE_FULL);
    CHECK_INT(c.file.plan.recompute_layers, 5);
    CHECK_INT(c.file.model.n_layers, 32);
    CHECK_HAS(fr_buffer_text(&c.notes), "'llama3.1_8B.yaml' is llama-3-8b");
    CHECK_HAS(fr_buffer_text(&c.notes), "pre_trainer.yaml is not near");
    fr_config_release(&c);
}

static void check_refused(const char *text, const char *why)
{
    fr_config config;
    CHECK_FAILS(read_text(text, &config), FR_INPUT, &err);
    CHECK_HAS(err.text, why);
}

static void test_refused(void)
{
    check_refused("modules:\n  pre_trainer:\n    framework: torchtitan\n",
                  "e.yaml:3: modules.pre_trainer.framework torchtitan");
    check_refused("modules:\n  post_trainer:\n    framework: megatron\n",
                  "no modules.pre_trainer");
    check_refused(EXPERIMENT("circle.yaml"),
                  "extend each other without an end");
    check_refused(EXPERIMENT("unknown.yaml"), "its model is 'unknown.yaml'");
    check_refused(EXPERIMENT("ours.yaml") "      patch_zero_bubble: true\n",
                  "e.yaml:17: patch_zero_bubble true");
    check_refused(EXPERIMENT("ours.yaml") "      model_type: mamba\n",
                  "e.yaml:17: model_type mamba");
    check_refused(
        EXPERIMENT("ours.yaml") "      expert_model_parallel_size: many\n",
        "e.yaml:17: expert_model_parallel_size many: give a whole");
}

CHECK_MAIN({"presets", test_presets}, {"alone", test_alone},
           {"refused", test_refused})
