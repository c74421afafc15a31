/*
 * runlog_words.c: what frameworks call the settings of a run where they print
 * them, as arguments, YAML, JSON or Python.
 */
#include "frameworks/log/runlog_format.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

static const struct word {
    const char *key;
    fr_runlog_fact fact;
    const char *beside; /* has to stand in the line too; NULL: nothing */
} words[] = {
    /* DeepSpeed's own world has neither tensor nor pipeline parallelism. */
    {"world_size", FR_RUNLOG_DP, "[config.py"},
    /* Megatron's arguments. */
    {"world_size", FR_RUNLOG_WORLD, NULL},
    {"data_parallel_size", FR_RUNLOG_DP, NULL},
    {"tensor_model_parallel_size", FR_RUNLOG_TP, NULL},
    {"pipeline_model_parallel_size", FR_RUNLOG_PP, NULL},
    {"virtual_pipeline_model_parallel_size", FR_RUNLOG_VPP, NULL},
    {"num_virtual_stages_per_pipeline_rank", FR_RUNLOG_VPP, NULL},
    {"num_layers_per_virtual_pipeline_stage", FR_RUNLOG_VSTAGE_LAYERS, NULL},
    {"context_parallel_size", FR_RUNLOG_CP, NULL},
    {"expert_model_parallel_size", FR_RUNLOG_EP, NULL},
    {"expert_tensor_parallel_size", FR_RUNLOG_ETP, NULL},
    {"sequence_parallel", FR_RUNLOG_SP, NULL},
    {"use_distributed_optimizer", FR_RUNLOG_DISTRIBUTED_OPTIMIZER, NULL},
    {"use_torch_fsdp2", FR_RUNLOG_FSDP, NULL},
    {"use_megatron_fsdp", FR_RUNLOG_FSDP, NULL},
    {"zero_stage", FR_RUNLOG_ZERO, NULL},
    {"micro_batch_size", FR_RUNLOG_MBS, NULL},
    {"global_batch_size", FR_RUNLOG_GBS, " ...."},
    {"global_batch_size", FR_RUNLOG_GBS, "global_batch_size: "},
    {"seq_length", FR_RUNLOG_SEQ, NULL},
    {"num_layers", FR_RUNLOG_LAYERS, NULL},
    {"hidden_size", FR_RUNLOG_HIDDEN, NULL},
    {"num_attention_heads", FR_RUNLOG_HEADS, NULL},
    {"num_query_groups", FR_RUNLOG_KV_HEADS, NULL},
    {"group_query_attention", FR_RUNLOG_IS_GROUPED, NULL},
    {"ffn_hidden_size", FR_RUNLOG_FFN, NULL},
    {"swiglu", FR_RUNLOG_GATED, NULL},
    {"padded_vocab_size", FR_RUNLOG_PADDED_VOCAB, NULL},
    {"vocab_size", FR_RUNLOG_VOCAB, NULL},
    {"num_experts", FR_RUNLOG_EXPERTS, NULL},
    {"num_moe_experts", FR_RUNLOG_EXPERTS, NULL},
    {"moe_router_topk", FR_RUNLOG_TOPK, NULL},
    {"moe_ffn_hidden_size", FR_RUNLOG_MOE_FFN, NULL},
    {"moe_shared_expert_intermediate_size", FR_RUNLOG_SHARED_FFN, NULL},
    {"multi_latent_attention", FR_RUNLOG_LATENT, NULL},
    {"position_embedding_type", FR_RUNLOG_ROPE, NULL},
    {"untie_embeddings_and_output_weights", FR_RUNLOG_UNTIED, NULL},
    {"add_bias_linear", FR_RUNLOG_BIAS, NULL},
    {"qk_layernorm", FR_RUNLOG_QK_NORM, NULL},
    {"normalization", FR_RUNLOG_NORM, NULL},
    {"recompute_granularity", FR_RUNLOG_RECOMPUTE, NULL},
    {"recompute_method", FR_RUNLOG_RECOMPUTE_METHOD, NULL},
    {"recompute_num_layers", FR_RUNLOG_RECOMPUTE_LAYERS, NULL},
    {"recompute_modules", FR_RUNLOG_RECOMPUTE_MODULES, NULL},
    {"bf16", FR_RUNLOG_BF16, NULL},
    {"fp16", FR_RUNLOG_FP16, NULL},
    {"fp8", FR_RUNLOG_FP8, " ...."},
    {"fp8_format", FR_RUNLOG_FP8, NULL},
    {"fp8_recipe", FR_RUNLOG_FP8_RECIPE, NULL},
    {"overlap_grad_reduce", FR_RUNLOG_OVERLAP_GRAD, NULL},
    {"overlap_param_gather", FR_RUNLOG_OVERLAP_PARAM, NULL},
    {"tp_comm_overlap", FR_RUNLOG_TP_OVERLAP, NULL},
    {"enable_cuda_graph", FR_RUNLOG_CUDA_GRAPHS, NULL},
    {"moe_enable_deepep", FR_RUNLOG_DEEPEP, NULL},
    {"overlap_moe_expert_parallel_comm", FR_RUNLOG_EP_OVERLAP, NULL},
    {"hidden_dropout", FR_RUNLOG_DROPOUT, NULL},
    {"use_flash_attn", FR_RUNLOG_FLASH, NULL},
    {"optimizer_cpu_offload", FR_RUNLOG_OFFLOAD, NULL},
    /* DeepSpeed's configuration. */
    {"train_batch_size", FR_RUNLOG_GBS, NULL},
    {"train_micro_batch_size_per_gpu", FR_RUNLOG_MBS, NULL},
    {"gradient_accumulation_steps", FR_RUNLOG_ACCUM, NULL},
    {"bfloat16_enabled", FR_RUNLOG_BF16, NULL},
    {"fp16_enabled", FR_RUNLOG_FP16, NULL},
    {"float16_enabled", FR_RUNLOG_FP16, NULL},
    /* torchtitan's mesh and models. */
    {"dp_replicate", FR_RUNLOG_REPLICATE, NULL},
    {"dp_shard", FR_RUNLOG_SHARD, NULL},
    {"local_batch_size", FR_RUNLOG_MBS, NULL},
    {"seq_len", FR_RUNLOG_SEQ, NULL},
    {"dim", FR_RUNLOG_HIDDEN, NULL},
    {"n_layers", FR_RUNLOG_LAYERS, NULL},
    {"n_heads", FR_RUNLOG_HEADS, NULL},
    {"n_kv_heads", FR_RUNLOG_KV_HEADS, NULL},
    /* nanotron's parallelism, and names of Hugging Face. */
    {"dp", FR_RUNLOG_DP, NULL},
    {"tp", FR_RUNLOG_TP, NULL},
    {"pp", FR_RUNLOG_PP, NULL},
    {"cp", FR_RUNLOG_CP, NULL},
    {"ep", FR_RUNLOG_EP, NULL},
    {"zero_stage", FR_RUNLOG_ZERO, NULL},
    {"micro_batch_size", FR_RUNLOG_MBS, NULL},
    {"batch_accumulation_per_replica", FR_RUNLOG_ACCUM, NULL},
    {"sequence_length", FR_RUNLOG_SEQ, NULL},
    {"num_hidden_layers", FR_RUNLOG_LAYERS, NULL},
    {"num_key_value_heads", FR_RUNLOG_KV_HEADS, NULL},
    {"intermediate_size", FR_RUNLOG_FFN, NULL},
    {"recompute_layer", FR_RUNLOG_RECOMPUTE, NULL},
    /* LLM Foundry's YAML. */
    {"n_gpus", FR_RUNLOG_WORLD, NULL},
    {"d_model", FR_RUNLOG_HIDDEN, NULL},
    {"kv_n_heads", FR_RUNLOG_KV_HEADS, NULL},
    {"expansion_ratio", FR_RUNLOG_EXPANSION, NULL},
    {"max_seq_len", FR_RUNLOG_SEQ, NULL},
    {"global_train_batch_size", FR_RUNLOG_GBS, NULL},
    {"device_train_microbatch_size", FR_RUNLOG_MBS, NULL},
    {"sharding_strategy", FR_RUNLOG_FSDP, NULL},
    {"mixed_precision", FR_RUNLOG_MIXED, NULL},
    {"activation_checkpointing", FR_RUNLOG_RECOMPUTE, NULL},
    {"precision", FR_RUNLOG_PRECISION, "amp_"},
    {"run_name", FR_RUNLOG_MODEL, NULL},
};

bool fr_runlog_parse_number(const char *text, double *out)
{
    static const char letters[] = "KMBGTPE";
    char digits[48];
    size_t n = 0;
    text += strspn(text, " ");
    for (; n + 1 < sizeof digits && *text != '\0'; text++) {
        bool is_comma = *text == ',' && isdigit((unsigned char)text[1]) != 0 &&
                        isdigit((unsigned char)text[2]) != 0 &&
                        isdigit((unsigned char)text[3]) != 0;
        if (is_comma)
            continue;
        if (strchr("+-.0123456789eE", *text) == NULL ||
            (toupper((unsigned char)*text) == 'E' &&
             strpbrk(text + 1, "+-0123456789") != text + 1))
            break;
        digits[n++] = *text;
    }
    digits[n] = '\0';
    char *end;
    double value = strtod(digits, &end);
    const char *letter = *text != '\0' ? strchr(letters, *text) : NULL;
    bool is_unit = letter != NULL && !isalpha((unsigned char)text[1]);
    if (n == 0 || *end != '\0' || !isfinite(value))
        return false;
    if (is_unit) /* B and G are both 1e9 */
        value *=
            pow(1e3, letter - letters >= 3 ? (double)(letter - letters)
                                           : (double)(letter - letters + 1));
    *out = value;
    return true;
}

static const struct word *find_word(const char *line, const char *key, size_t n)
{
    for (size_t i = 0; i < FR_LENGTH(words); i++)
        if (strncmp(words[i].key, key, n) == 0 && words[i].key[n] == '\0' &&
            (words[i].beside == NULL || strstr(line, words[i].beside) != NULL))
            return &words[i];
    return NULL;
}

void fr_runlog_set(fr_runlog_reader *reader, fr_runlog_fact fact,
                   const char *value, size_t n)
{
    char *to = reader->fact[fact];
    n = n < FR_RUNLOG_FIELD ? n : FR_RUNLOG_FIELD - 1;
    if (*to != '\0' || n == 0)
        return;
    for (size_t i = 0; i < n; i++)
        to[i] = (char)(isprint((unsigned char)value[i]) ? value[i] : '?');
    to[n] = '\0';
    reader->fact_line[fact] = reader->lines.number;
}

const char *fr_runlog_text(const fr_runlog_reader *reader, fr_runlog_fact fact)
{
    const char *text = reader->fact[fact];
    bool is_none = strcmp(text, "None") == 0 || strcmp(text, "null") == 0;
    return is_none ? "" : text;
}

int64_t fr_runlog_count(const fr_runlog_reader *reader, fr_runlog_fact fact)
{
    double value;
    if (!fr_runlog_parse_number(fr_runlog_text(reader, fact), &value))
        return 0;
    return value >= 1 && value < 1e15 ? (int64_t)value : 0;
}

bool fr_runlog_is(const fr_runlog_reader *reader, fr_runlog_fact fact)
{
    const char *text = fr_runlog_text(reader, fact);
    return strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0;
}

static fr_status take(fr_runlog_reader *reader, const struct word *word,
                      const char *value, size_t n, bool is_dotted, fr_err *err)
{
    const char *known = reader->fact[word->fact];
    size_t n_known = strlen(known);
    while (n > 0 && isspace((unsigned char)value[n - 1]))
        n--;
    n = n < FR_RUNLOG_FIELD ? n : FR_RUNLOG_FIELD - 1;
    bool is_other = n != n_known || strncmp(known, value, n) != 0;
    if (is_dotted && n_known > 0 && n > 0 && is_other)
        return fr_fail(err, FR_INPUT,
                       "%s:%llu: %s is %.*s, and was %s in line %llu: two runs "
                       "in one file; give each its own",
                       fr_infile_name(reader->lines.stream),
                       (unsigned long long)reader->lines.number, word->key,
                       (int)n, value, known,
                       (unsigned long long)reader->fact_line[word->fact]);
    fr_runlog_set(reader, word->fact, value, n);
    return FR_OK;
}

/* The word that ends before `end`, its length; 0: none. */
static size_t key_before(const char *line, const char *end, const char **out)
{
    const char *begin = end;
    while (begin > line &&
           (isalnum((unsigned char)begin[-1]) || begin[-1] == '_'))
        begin--;
    *out = begin;
    return (size_t)(end - begin);
}

/* "  hidden_size ........ 4096": a value may have blanks and commas. */
static fr_status read_dotted(fr_runlog_reader *reader, const char *line,
                             const char *dots, fr_err *err)
{
    const char *key, *value = dots + 1;
    size_t n = key_before(line, dots, &key);
    const struct word *word = find_word(line, key, n);
    value += strspn(value, ".");
    value += strspn(value, " ");
    if (word == NULL)
        return FR_OK;
    return take(reader, word, value, strlen(value), true, err);
}

fr_status fr_runlog_read_words(fr_runlog_reader *reader, fr_err *err)
{
    const char *line = reader->lines.text;
    const char *dots = strstr(line, " ...");
    if (dots != NULL)
        return read_dotted(reader, line, dots, err);
    /* DeepSpeed's longest words leave no room for dots. */
    const char *printed = strstr(line, "print]   ");
    dots = printed != NULL ? strstr(printed + 9, "  ") : NULL;
    if (dots != NULL)
        return read_dotted(reader, line, dots, err);
    for (const char *at = strpbrk(line, ":="); at != NULL;
         at = strpbrk(at + 1, ":=")) {
        const char *end = at, *key;
        while (end > line && (end[-1] == '"' || end[-1] == ' '))
            end--;
        size_t n = key_before(line, end, &key);
        const struct word *word = n > 0 ? find_word(line, key, n) : NULL;
        const char *value = at + 1 + strspn(at + 1, " \"'");
        if (word != NULL)
            FR_TRY(take(reader, word, value, strcspn(value, ",|)}\"'"), false,
                        err));
    }
    return FR_OK;
}
