/*
 * test_public_files.c: facts of public configurations (public_files.tsv), each
 * written in the words of its framework, come back from the reader of it.
 */
#include "core/base/text.h"
#include "core/system/fileio.h"
#include "tests/unit/interop/config_text.h"

#include <stdio.h>
#include <stdlib.h>

static fr_err err;

enum {
    FRAMEWORK,
    REPOSITORY,
    PATH,
    VERSION,
    RANKS,
    TP,
    PP,
    CP,
    EP,
    VPP,
    DP,
    ZERO,
    PRECISION,
    GRAD,
    MICRO,
    GLOBAL,
    SEQ,
    RECOMPUTE,
    LAYERS,
    HIDDEN,
    HEADS,
    KV_HEADS,
    EXPERTS,
    COLUMNS_N
};

typedef struct row {
    char *fields[COLUMNS_N];
} row;

static int64_t number(const row *r, int column)
{
    return strtoll(r->fields[column], NULL, 10);
}

static bool is(const row *r, int column, const char *word)
{
    return strcmp(r->fields[column], word) == 0;
}

/* ---- a file of each framework -------------------------------------------- */

/* Settings of Megatron Core, by the names that NeMo has too. */
static void put_core(const row *r, const char *indent, fr_buffer *out)
{
    static const struct {
        const char *name;
        int column;
    } keys[] = {
        {"micro_batch_size", MICRO},
        {"global_batch_size", GLOBAL},
        {"tensor_model_parallel_size", TP},
        {"pipeline_model_parallel_size", PP},
        {"context_parallel_size", CP},
        {"num_layers", LAYERS},
        {"hidden_size", HIDDEN},
        {"num_attention_heads", HEADS},
        {"num_query_groups", KV_HEADS},
    };
    for (size_t i = 0; i < FR_LENGTH(keys); i++)
        fr_buffer_printf(out, "%s%s: %s\n", indent, keys[i].name,
                         r->fields[keys[i].column]);
    if (number(r, VPP) > 1)
        fr_buffer_printf(out, "%svirtual_pipeline_model_parallel_size: %s\n",
                         indent, r->fields[VPP]);
    if (number(r, EP) > 1)
        fr_buffer_printf(out, "%sexpert_model_parallel_size: %s\n", indent,
                         r->fields[EP]);
}

static void put_nemo(const row *r, fr_buffer *out)
{
    const bool is_fp8 = is(r, PRECISION, "fp8");
    fr_buffer_printf(
        out, "trainer:\n  devices: %s\n  num_nodes: 1\n  precision: %s\n",
        r->fields[RANKS],
        is(r, PRECISION, "f16")    ? "16"
        : is(r, PRECISION, "tf32") ? "32"
                                   : "bf16");
    fr_buffer_puts(out, "exp_manager: {}\nmodel:\n  megatron_amp_O2: true\n");
    put_core(r, "  ", out);
    if (number(r, EXPERTS) > 0)
        fr_buffer_printf(out, "  num_moe_experts: %s\n", r->fields[EXPERTS]);
    if (!is(r, RECOMPUTE, "none"))
        fr_buffer_printf(out, "  activations_checkpoint_granularity: %s\n",
                         r->fields[RECOMPUTE]);
    fr_buffer_printf(out,
                     "  encoder_seq_length: %s\n  override_vocab_size: 32000\n"
                     "  fp8: %s\n  fp8_hybrid: true\n"
                     "  optim:\n    name: %s\n    grad_sync_dtype: %s\n",
                     r->fields[SEQ], is_fp8 ? "true" : "false",
                     number(r, ZERO) > 0 ? "mcore_distributed_optim"
                                         : "fused_adam",
                     is(r, GRAD, "bf16") ? "bf16" : "fp32");
}

static void put_bridge(const row *r, fr_buffer *out)
{
    fr_buffer_printf(out,
                     "dataset:\n  seq_length: %s\n"
                     "train:\n  micro_batch_size: %s\n"
                     "  global_batch_size: %s\nrng:\n  seed: 1\n"
                     "model:\n  vocab_size: 32000\n",
                     r->fields[SEQ], r->fields[MICRO], r->fields[GLOBAL]);
    put_core(r, "  ", out);
}

static void put_primus(const row *r, fr_buffer *out)
{
    fr_buffer_puts(out, "modules:\n  pre_trainer:\n    framework: megatron\n"
                        "    overrides:\n");
    put_core(r, "      ", out);
    fr_buffer_printf(out,
                     "      seq_length: %s\n      vocab_size: 32000\n"
                     "      use_distributed_optimizer: %s\n"
                     "      use_torch_fsdp2: %s\n      fp8: %s\n",
                     r->fields[SEQ], number(r, ZERO) == 1 ? "true" : "false",
                     number(r, ZERO) == 3 ? "true" : "false",
                     is(r, PRECISION, "fp8") ? "hybrid" : "null");
    if (number(r, EXPERTS) > 0)
        fr_buffer_printf(out, "      num_experts: %s\n", r->fields[EXPERTS]);
    if (!is(r, RECOMPUTE, "none"))
        fr_buffer_printf(out, "      recompute_granularity: %s\n",
                         r->fields[RECOMPUTE]);
}

static void put_neox(const row *r, fr_buffer *out)
{
    const int64_t n = number(r, GLOBAL) / number(r, MICRO) / number(r, DP);
    fr_buffer_printf(out,
                     "pipe_parallel_size: %s\nmodel_parallel_size: %s\n"
                     "num_layers: %s\nhidden_size: %s\n"
                     "num_attention_heads: %s\nnum_kv_heads: %s\n"
                     "seq_length: %s\nmax_position_embeddings: %s\n"
                     "train_micro_batch_size_per_gpu: %s\n"
                     "gradient_accumulation_steps: %lld\n"
                     "checkpoint_activations: %s\n"
                     "zero_optimization:\n  stage: %s\n"
                     "%s:\n  enabled: true\n"
                     "data_types:\n  grad_accum_dtype: %s\n",
                     r->fields[PP], r->fields[TP], r->fields[LAYERS],
                     r->fields[HIDDEN], r->fields[HEADS], r->fields[KV_HEADS],
                     r->fields[SEQ], r->fields[SEQ], r->fields[MICRO],
                     (long long)n, is(r, RECOMPUTE, "full") ? "true" : "false",
                     r->fields[ZERO], is(r, PRECISION, "f16") ? "fp16" : "bf16",
                     is(r, GRAD, "f32") ? "fp32" : "null");
}

static void put_nanotron(const row *r, fr_buffer *out)
{
    const int64_t n = number(r, GLOBAL) / number(r, MICRO) / number(r, DP);
    fr_buffer_printf(out,
                     "model:\n  dtype: bfloat16\n  model_config:\n"
                     "    num_hidden_layers: %s\n    hidden_size: %s\n"
                     "    intermediate_size: 64\n"
                     "    num_attention_heads: %s\n"
                     "    num_key_value_heads: %s\n"
                     "    max_position_embeddings: %s\n    vocab_size: 32000\n",
                     r->fields[LAYERS], r->fields[HIDDEN], r->fields[HEADS],
                     r->fields[KV_HEADS], r->fields[SEQ]);
    fr_buffer_printf(out,
                     "parallelism:\n  dp: %s\n  tp: %s\n  pp: %s\n"
                     "  context_parallel_size: %s\n  pp_engine: 1f1b\n"
                     "  expert_parallel_size: %s\n  recompute_layer: %s\n"
                     "tokens:\n  micro_batch_size: %s\n"
                     "  batch_accumulation_per_replica: %lld\n"
                     "  sequence_length: %s\n"
                     "optimizer:\n  zero_stage: %s\n"
                     "  accumulate_grad_in_fp32: %s\n",
                     r->fields[DP], r->fields[TP], r->fields[PP], r->fields[CP],
                     r->fields[EP], is(r, RECOMPUTE, "full") ? "true" : "false",
                     r->fields[MICRO], (long long)n, r->fields[SEQ],
                     r->fields[ZERO], is(r, GRAD, "f32") ? "true" : "false");
}

static void put_foundry(const row *r, fr_buffer *out)
{
    static const char *const strategies[] = {"NO_SHARD", "NO_SHARD",
                                             "SHARD_GRAD_OP", "FULL_SHARD"};
    fr_buffer_printf(out,
                     "model:\n  name: mpt_causal_lm\n  n_layers: %s\n"
                     "  d_model: %s\n  n_heads: %s\n  max_seq_len: %s\n"
                     "  attn_config:\n    kv_n_heads: %s\n",
                     r->fields[LAYERS], r->fields[HIDDEN], r->fields[HEADS],
                     r->fields[SEQ], r->fields[KV_HEADS]);
    if (number(r, EXPERTS) > 0)
        fr_buffer_printf(out, "  ffn_config:\n    moe_num_experts: %s\n",
                         r->fields[EXPERTS]);
    fr_buffer_printf(out,
                     "max_seq_len: %s\nglobal_train_batch_size: %s\n"
                     "device_train_microbatch_size: %s\nprecision: %s\n"
                     "fsdp_config:\n  sharding_strategy: %s\n"
                     "  mixed_precision: %s\n"
                     "  activation_checkpointing: %s\n",
                     r->fields[SEQ], r->fields[GLOBAL], r->fields[MICRO],
                     is(r, PRECISION, "f32") ? "fp32" : "amp_bf16",
                     strategies[number(r, ZERO) & 3],
                     is(r, GRAD, "f32") ? "DEFAULT" : "PURE",
                     is(r, RECOMPUTE, "full") ? "true" : "false");
}

static const struct {
    const char *framework;
    void (*put)(const row *r, fr_buffer *out);
} writers[] = {
    {"nemo", put_nemo},         {"megatron-bridge", put_bridge},
    {"primus", put_primus},     {"gpt-neox", put_neox},
    {"nanotron", put_nanotron}, {"llm-foundry", put_foundry},
};

/* ---- the rows ------------------------------------------------------------ */

static void check_facts(const row *r, const fr_config *c)
{
    const fr_plan *plan = &c->file.plan;
    const struct {
        int column;
        int64_t value;
    } counts[] = {
        {TP, plan->tp},
        {PP, plan->pp},
        {CP, plan->cp},
        {EP, plan->ep},
        {VPP, plan->vpp},
        {DP, plan->dp},
        {ZERO, plan->zero_stage},
        {MICRO, plan->micro_batch},
        {GLOBAL, c->file.job.global_batch},
        {SEQ, c->file.job.seq},
        {LAYERS, c->file.model.n_layers},
        {HIDDEN, c->file.model.hidden},
        {HEADS, c->file.model.n_heads},
        {KV_HEADS, c->file.model.n_kv_heads},
        {EXPERTS, c->file.model.n_experts},
    };
    bool is_right = true;
    for (size_t i = 0; i < FR_LENGTH(counts); i++)
        is_right &= CHECK_INT(counts[i].value, number(r, counts[i].column));
    is_right &=
        CHECK(is(r, PRECISION, fr_name_of(&fr_dtype_names, plan->precision)));
    is_right &=
        CHECK(is(r, GRAD, fr_name_of(&fr_dtype_names, plan->grad_dtype)));
    is_right &=
        CHECK(is(r, RECOMPUTE,
                 plan->recompute == FR_RECOMPUTE_FULL        ? "full"
                 : plan->recompute == FR_RECOMPUTE_SELECTIVE ? "selective"
                                                             : "none"));
    if (!is_right)
        printf("# %s %s\n", r->fields[REPOSITORY], r->fields[PATH]);
}

static void check_row(const row *r)
{
    fr_buffer text;
    fr_config c;
    fr_buffer_init(&text);
    for (size_t i = 0; i < FR_LENGTH(writers); i++)
        if (is(r, FRAMEWORK, writers[i].framework))
            writers[i].put(r, &text);
    CHECK(text.n > 0);
    if (config_text_read(fr_buffer_text(&text), r->fields[FRAMEWORK],
                         number(r, RANKS), &c, &err)) {
        check_facts(r, &c);
        fr_config_release(&c);
    } else {
        printf("# %s %s\n", r->fields[REPOSITORY], r->fields[PATH]);
    }
    fr_buffer_release(&text);
}

static void test_rows(void)
{
    char *text, *line;
    int n = 0;
    if (!CHECK_OK(fr_file_read("tests/unit/interop/public_files.tsv", 0, &text,
                               NULL, &err),
                  &err))
        return;
    for (char *next = text; (line = strsep(&next, "\n")) != NULL;) {
        row r;
        if (*line == '#' || *line == '\0' ||
            fr_text_starts(line, "framework\t"))
            continue;
        if (!CHECK(fr_text_split(line, '\t', r.fields, COLUMNS_N) == COLUMNS_N))
            break;
        check_row(&r);
        n++;
    }
    CHECK(n >= 160);
    printf("# facts of %d public files come back\n", n);
    free(text);
}

CHECK_MAIN({"rows", test_rows})
