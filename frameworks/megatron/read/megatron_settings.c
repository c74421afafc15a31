/* megatron_settings.c: see megatron_settings.h. */
#include "frameworks/megatron/read/megatron_settings.h"

#include "core/base/text.h"
#include "frameworks/framework_plan.h"
#include "frameworks/read/config_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- settings to arguments ----------------------------------------------- */

static const fr_megatron_alias *find_alias(const fr_megatron_alias *aliases,
                                           size_t n, const char *path)
{
    const char *last = strrchr(path, '.');
    const size_t n_before = last != NULL ? (size_t)(last + 1 - path) : 0;
    for (size_t i = 0; i < n; i++) {
        const char *own = aliases[i].path;
        const size_t length = strlen(own);
        const bool is_below = length == 0 || own[length - 1] == '.';
        if (is_below ? length == n_before && strncmp(own, path, n_before) == 0
                     : strcmp(own, path) == 0)
            return &aliases[i];
    }
    return NULL;
}

static bool is_word(const char *text, const char *lower, const char *upper)
{
    return strcmp(text, lower) == 0 || strcmp(text, upper) == 0;
}

/* "model.num_layers" is --num-layers. */
static char *flag_name(fr_arena *arena, const char *path)
{
    const char *last = strrchr(path, '.');
    char *name = fr_arena_strdup(arena, last != NULL ? last + 1 : path);
    for (char *c = name; c != NULL && *c != '\0'; c++)
        if (*c == '_')
            *c = '-';
    return name;
}

static fr_status push_flag(fr_megatron_flags *flags, const fr_setting *setting,
                           const char *name, const fr_shell_word *values,
                           size_t n_values, fr_err *err)
{
    const fr_megatron_flag flag = {.name = name,
                                   .values = values,
                                   .n_values = n_values,
                                   .line = fr_json_line(setting->value),
                                   .setting = setting};
    FR_TRY_PUSH(&flags->flags, flag, err);
    return FR_OK;
}

fr_status fr_megatron_put_flag(fr_megatron_flags *flags,
                               const fr_setting *setting, const char *name,
                               const char *value, fr_err *err)
{
    fr_shell_word *word = NULL;
    if (value != NULL) {
        word = fr_arena_alloc(&flags->shell.arena, sizeof *word);
        if (word == NULL)
            return fr_fail_no_memory(err);
        word->text = fr_arena_strdup(&flags->shell.arena, value);
        word->line = fr_json_line(setting->value);
        if (word->text == NULL)
            return fr_fail_no_memory(err);
    }
    return push_flag(flags, setting, name, word, word != NULL, err);
}

/* A list of scalars as the words of an argument. */
static fr_status put_list(fr_megatron_flags *flags, const fr_setting *setting,
                          const char *name, fr_err *err)
{
    fr_arena *arena = &flags->shell.arena;
    const size_t n = fr_json_n(setting->list);
    fr_shell_word *words = fr_arena_array(arena, n, sizeof *words);
    if (words == NULL)
        return fr_fail_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        const fr_json_value *item = fr_json_at(setting->list, i);
        const char *text;
        double number;
        switch (fr_json_kind_of(item)) {
        case FR_JSON_STRING:
            FR_TRY(fr_json_as_string(item, &text, err));
            words[i].text = fr_arena_strdup(arena, text);
            break;
        case FR_JSON_NUMBER:
            FR_TRY(fr_json_as_double(item, &number, err));
            words[i].text = fr_arena_printf(arena, "%.15g", number);
            break;
        default:
            return fr_setting_refuse(setting, "give words or numbers", err);
        }
        words[i].line = fr_json_line(item);
        if (words[i].text == NULL)
            return fr_fail_no_memory(err);
    }
    return n > 0 ? push_flag(flags, setting, name, words, n, err) : FR_OK;
}

static fr_status take_setting(fr_megatron_flags *flags,
                              const fr_setting *setting,
                              const fr_megatron_alias *alias, fr_err *err)
{
    const char *name = alias->flag != NULL
                           ? alias->flag
                           : flag_name(&flags->shell.arena, setting->path);
    const char *text = setting->text;
    if (name == NULL)
        return fr_fail_no_memory(err);
    if (setting->list != NULL)
        return put_list(flags, setting, name, err);
    if (text == NULL || *text == '\0')
        return FR_OK;
    for (const fr_megatron_alias_word *at = alias->words;
         at != NULL && at->word != NULL; at++)
        if (strcmp(at->word, text) == 0) {
            if (at->flag == NULL)
                return FR_OK;
            text = at->flag;
            break;
        }
    const bool is_on = is_word(text, "true", "True");
    const bool is_off = is_word(text, "false", "False");
    if (alias->is_inverted ? is_on : is_off || is_word(text, "none", "None"))
        return FR_OK;
    return fr_megatron_put_flag(flags, setting, name,
                                is_on || is_off ? NULL : text, err);
}

fr_status fr_megatron_take_settings(const fr_config_request *request,
                                    fr_settings *settings,
                                    const fr_megatron_alias *aliases, size_t n,
                                    fr_megatron_flags *out, fr_err *err)
{
    *out = (fr_megatron_flags){.path = request->path, .request = request};
    fr_arena_init(&out->shell.arena);
    for (size_t i = 0; i < settings->items.n; i++) {
        const fr_setting *setting = &settings->items.items[i];
        const fr_megatron_alias *alias = find_alias(aliases, n, setting->path);
        if (alias == NULL || alias->is_own) {
            settings->items.items[i].is_read |= alias != NULL;
            continue;
        }
        const size_t n_before = out->flags.n;
        FR_TRY(take_setting(out, setting, alias, err));
        /* It says what holds without an argument. */
        settings->items.items[i].is_read |=
            alias->is_inverted && out->flags.n == n_before;
    }
    /* A number of groups alone turns them on. */
    const fr_megatron_flag *groups = fr_megatron_find(out, "num-query-groups");
    return groups != NULL
               ? fr_megatron_put_flag(out, groups->setting,
                                      "group-query-attention", NULL, err)
               : FR_OK;
}

/* ---- the model ----------------------------------------------------------- */

/* Tokenizers by the beginning of their last name, and their number of entries
 * (vocab_size of the config.json beside them; NeMo-Framework-Launcher,
 * conf/training, has the two files by these names). */
int64_t fr_megatron_tokenizer_vocab(const char *name)
{
    static const struct {
        const char *part;
        int64_t n;
    } known[] = {
        {"Llama-2-", 32000},
        {"Llama-3", 128256},
        {"Meta-Llama-3", 128256},
        {"Llama-4-", 202048},
        {"Mixtral-8x7B", 32000},
        {"Mixtral-8x22B", 32768},
        {"Mistral-7B-v0.1", 32000},
        {"DeepSeek-V2", 102400},
        {"DeepSeek-V3", 129280},
        {"Qwen2.5-", 151936},
        {"Qwen3-", 151936},
        {"gpt-oss-", 201088},
        {"grok-1", 131072},
        {"falcon-7b", 65024},
        {"starcoder2-", 49152},
        {"Mistral-Nemo-", 131072},
        {"chatglm2-6b", 65024},
        {"chatglm3-6b", 65024},
        {"llama_tokenizer.model", 32000},
        {"nemotron_2_256k.model", 256000},
    };
    const char *slash = strrchr(name, '/');
    const char *last = slash != NULL ? slash + 1 : name;
    for (size_t i = 0; i < FR_LENGTH(known); i++)
        if (strncasecmp(last, known[i].part, strlen(known[i].part)) == 0)
            return known[i].n;
    return strcmp(name, "gpt2") == 0 ? 50257 : 0;
}

/* Positions are as many as tokens, and the vocabulary is the tokenizer's. */
static fr_status complete_model(fr_megatron_flags *flags,
                                const fr_megatron_source *source,
                                fr_buffer *notes, fr_err *err)
{
    const char *tokenizer;
    char text[32];
    const fr_megatron_flag *seq = fr_megatron_find(flags, "seq-length");
    if (!fr_megatron_has(flags, "max-position-embeddings") && seq != NULL &&
        seq->n_values > 0)
        FR_TRY(fr_megatron_put_flag(flags, seq->setting,
                                    "max-position-embeddings",
                                    seq->values[0].text, err));
    FR_TRY(fr_megatron_word(flags, "tokenizer-type", "", &tokenizer, err));
    if (fr_megatron_has(flags, "vocab-size") ||
        fr_megatron_has(flags, "padded-vocab-size") ||
        strcmp(tokenizer, "GPT2BPETokenizer") == 0)
        return FR_OK;
    if (source->n_vocab == 0)
        return fr_fail(err, FR_INPUT,
                       "%s:1: the size of the vocabulary stands in the "
                       "tokenizer's files; add %s: N, or name the model with "
                       "--model",
                       flags->path, source->vocab);
    snprintf(text, sizeof text, "%lld", (long long)source->n_vocab);
    fr_buffer_printf(notes, "vocabulary of %s tokens: that of its tokenizer\n",
                     text);
    const fr_megatron_flag *layers = fr_megatron_find(flags, "num-layers");
    return fr_megatron_put_flag(flags, layers->setting, "vocab-size", text,
                                err);
}

/* The arguments hold the model; else it is that of the request or the catalog.
 */
static fr_status read_with_model(fr_megatron_flags *flags,
                                 const fr_megatron_source *source,
                                 fr_config *out, fr_err *err)
{
    const fr_config_request *given = flags->request;
    fr_config_request request = *given;
    fr_config taken = *out;
    flags->world = source->world;
    if (given->model == NULL && fr_megatron_has(flags, "num-layers")) {
        FR_TRY(complete_model(flags, source, &out->notes, err));
        FR_TRY(fr_megatron_read_flags(flags, given, out, err));
        snprintf(out->file.model.name, sizeof out->file.model.name, "%s",
                 out->framework->name);
        if (source->has_activation)
            out->file.model.activation = source->activation;
        return FR_OK;
    }
    if (given->model != NULL)
        return fr_megatron_read_flags(flags, given, out, err);
    fr_plan_file_init(&taken.file);
    FR_TRY(
        fr_config_take_model(given, source->said, source->known, &taken, err));
    out->notes = taken.notes;
    request.model = &taken.file.model;
    const fr_status status = fr_megatron_read_flags(flags, &request, out, err);
    fr_plan_file_release(&taken.file);
    return status;
}

/* Does the file have the key, be it off, or the key of an object? */
static bool is_said(const fr_settings *settings, const char *key)
{
    const size_t n = strlen(key);
    for (size_t i = 0; i < settings->items.n; i++) {
        const char *path = settings->items.items[i].path;
        const char *at = strstr(path, key);
        if (at != NULL && (at == path || at[-1] == '.') &&
            (at[n] == '\0' || at[n] == '.'))
            return true;
    }
    return false;
}

/* Facts of execution that the file does not say are the framework's. */
static void take_facts(const fr_settings *settings, fr_config *out)
{
    static const struct {
        const char *name;
        fr_execution_bits fact;
    } keys[] = {
        {"fp8_recipe", FR_EXECUTION_BIT(SCALING)},
        {"cross_entropy_loss_fusion", FR_EXECUTION_BIT(LOSS_FUSED)},
        {"attention_backend", FR_EXECUTION_BIT(FLASH_KIND)},
        {"gradient_accumulation_fusion", FR_EXECUTION_BIT(GRAD_ADDED_APART)},
        {"moe_router_fusion", FR_EXECUTION_BIT(ROUTING_FUSED)},
        {"moe_permute_fusion", FR_EXECUTION_BIT(ROUTING_FUSED)},
    };
    const fr_framework facts_alone = {.facts = out->framework->facts};
    fr_execution_bits said = 0;
    for (size_t i = 0; i < FR_LENGTH(keys); i++)
        if (is_said(settings, keys[i].name))
            said |= keys[i].fact;
    fr_framework_run_plan(&facts_alone, said, &out->file.plan);
    out->said = FR_EXECUTION_BITS_ALL;
}

bool fr_megatron_is_plain_setting(const char *path)
{
    char name[96];
    const char *last = strrchr(path, '.');
    size_t n = 0;
    for (last = last != NULL ? last + 1 : path;
         last[n] != '\0' && n + 1 < sizeof name; n++)
        name[n] = last[n] == '_' ? '-' : last[n];
    name[n] = '\0';
    return fr_megatron_is_plain(name);
}

/* A model without experts has no router. */
static void skip_experts(fr_settings *settings)
{
    for (size_t i = 0; i < settings->items.n; i++) {
        fr_setting *item = &settings->items.items[i];
        const char *last = strrchr(item->path, '.');
        item->is_read |=
            fr_text_starts(last != NULL ? last + 1 : item->path, "moe_");
    }
}

fr_status fr_megatron_read_settings(fr_megatron_flags *flags,
                                    const fr_megatron_source *source,
                                    fr_settings *settings,
                                    fr_setting_test *is_plain, fr_config *out,
                                    fr_err *err)
{
    FR_TRY(read_with_model(flags, source, out, err));
    take_facts(settings, out);
    for (size_t i = 0; i < flags->flags.n; i++)
        if (flags->flags.items[i].is_read)
            (void)fr_settings_find(settings,
                                   flags->flags.items[i].setting->path);
    if (out->file.model.n_experts == 0)
        skip_experts(settings);
    fr_settings_note_rest(settings, is_plain, &out->notes);
    return FR_OK;
}
