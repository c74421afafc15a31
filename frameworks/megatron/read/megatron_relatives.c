/* megatron_relatives.c: YAML of frameworks on top of Megatron-LM, or like it,
 * whose names are similar and mean other things. */
#include "frameworks/megatron/read/megatron_flags.h"

#include <ctype.h>
#include <string.h>

/* A file is the framework's if it has both keys; a NULL is there in any case.
 * Keys that end in ':' stand at the begin of a line. */
static const struct {
    const char *framework, *keys[2];
} relatives[] = {
    /* github.com/NVIDIA/NeMo, examples/nlp/language_modeling/conf */
    {"NeMo 1", {"trainer:", "model:"}},
    /* What NeMo 2 and Megatron-Bridge save: the classes to be made. */
    {"NeMo 2 or Megatron-Bridge", {"_target_:", NULL}},
    /* github.com/AMD-AGI/Primus, examples/megatron/configs */
    {"Primus", {"modules:", "pre_trainer"}},
    {"Primus", {"modules:", "post_trainer"}},
    /* github.com/EleutherAI/gpt-neox, configs */
    {"GPT-NeoX", {"pipe_parallel_size", NULL}},
    {"GPT-NeoX", {"pipe-parallel-size", NULL}},
    /* github.com/huggingface/nanotron, examples */
    {"nanotron", {"parallelism:", "tokens:"}},
    /* github.com/mosaicml/llm-foundry, scripts/train/yamls */
    {"llm-foundry", {"device_train_microbatch_size:", NULL}},
    /* github.com/allenai/OLMo-core: the classes of its configurations. */
    {"OLMo-core", {"_CLASS_", NULL}},
};

/* Finds a key in a text that is no comment; the line of it, 0: it is not
 * there. */
static int find_key(const char *text, const char *key)
{
    const size_t n = strlen(key);
    const bool is_top = key[n - 1] == ':' && key[0] != '_';
    int line = 1;
    for (const char *p = text; *p != '\0'; line++) {
        const char *end = p + strcspn(p, "\n");
        const char *word = p;
        while (!is_top &&
               (isspace((unsigned char)*word) != 0 || *word == '"' ||
                *word == '-') &&
               word < end)
            word++;
        if ((size_t)(end - word) >= n && memcmp(word, key, n) == 0)
            return line;
        p = *end == '\0' ? end : end + 1;
    }
    return 0;
}

fr_status fr_megatron_check_relatives(const fr_config_request *request,
                                      fr_err *err)
{
    for (size_t i = 0; i < FR_LENGTH(relatives); i++) {
        const char *const *keys = relatives[i].keys;
        const int line = find_key(request->text, keys[0]);
        if (line == 0 ||
            (keys[1] != NULL && find_key(request->text, keys[1]) == 0))
            continue;
        return fr_fail(err, FR_INPUT,
                       "%s:%d: this is a configuration of %s, which is not "
                       "read: its names mean other things than Megatron-LM's; "
                       "give the arguments that Megatron-LM is started with",
                       request->path, line, relatives[i].framework);
    }
    return FR_OK;
}
