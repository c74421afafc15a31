/*
 * megatron_yaml.c: arguments of Megatron-LM as "name: value", and YAML of
 * frameworks on top of Megatron-LM, or like it, whose names are similar and
 * mean other things.
 */
#include "core/base/text.h"
#include "frameworks/megatron/read/megatron_flags.h"
#include "frameworks/read/yaml_marks.h"

#include <ctype.h>
#include <string.h>

/* A line of YAML that names something: `  - --num-layers: 12`, `bf16: true`. */
typedef struct entry {
    const char *name, *value;
    size_t n_name, n_value;
} entry;

static bool is_name(char c)
{
    return isalnum((unsigned char)c) != 0 || c == '_' || c == '-';
}

static const char *skip(const char *p, const char *end)
{
    while (p < end && isspace((unsigned char)*p) != 0)
        p++;
    return p;
}

static bool read_entry(const char *p, const char *end, entry *out)
{
    p = skip(p, end);
    if (end - p > 2 && p[0] == '-' && p[1] == ' ')
        p = skip(p + 1, end);
    out->name = p;
    while (p < end && is_name(*p))
        p++;
    out->n_name = (size_t)(p - out->name);
    if (out->n_name == 0 || p == end || *p != ':' ||
        (p + 1 < end && isspace((unsigned char)p[1]) == 0))
        return false;
    p = skip(p + 1, end);
    const char *comment = p;
    while (comment < end &&
           !(*comment == '#' && (comment == p || comment[-1] == ' ')))
        comment++;
    while (comment > p && isspace((unsigned char)comment[-1]) != 0)
        comment--;
    out->value = p;
    out->n_value = (size_t)(comment - p);
    return true;
}

/* The first line that says something is such an entry. */
static bool is_yaml(const char *text, size_t n)
{
    const char *end = text + n;
    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        stop = stop != NULL ? stop : end;
        const char *p = skip(text, stop);
        entry ignored;
        bool is_marker = stop - p >= 3 && memcmp(p, "---", 3) == 0 &&
                         skip(p + 3, stop) == stop;
        if (p < stop && *p != '#' && !is_marker)
            return read_entry(p, stop, &ignored);
        text = stop + 1;
    }
    return false;
}

static bool is_word(const entry *e, const char *word)
{
    return e->n_value == strlen(word) &&
           memcmp(e->value, word, e->n_value) == 0;
}

bool fr_megatron_is_yaml(const fr_config_request *request)
{
    return is_yaml(request->text, request->n_text);
}

/* ---- other frameworks --------------------------------------------------- */

/* A file is the framework's if it has both marks (fr_yaml_find_mark); a NULL
 * is there in any case. */
static const struct {
    const char *framework;
    const char *name; /* of its reader; NULL: there is none */
    const char *marks[2];
} relatives[] = {
    /* Trainers by reinforcement and of adapters name Megatron's degrees, too:
     * github.com/volcengine/verl, verl/trainer/config; NVIDIA-NeMo/RL,
     * examples/configs; hiyouga/LLaMA-Factory, examples. */
    {"verl", NULL, {"actor_rollout_ref:", NULL}},
    {"NeMo-RL", NULL, {"policy:", NULL}},
    {"LLaMA-Factory", NULL, {"model_name_or_path:", "stage:"}},
    /* github.com/NVIDIA/NeMo, examples/nlp/language_modeling/conf */
    {"NeMo 1", "nemo", {"trainer:", "model:"}},
    {"NeMo 1", "nemo", {"trainer:", " tensor_model_parallel_size"}},
    /* NeMo 2 and Megatron-Bridge save the classes of their objects. */
    {"NeMo 2", "nemo", {"_target_: nemo.", NULL}},
    {"Megatron-Bridge", "megatron-bridge", {"_target_: megatron.", NULL}},
    {"Megatron-Bridge", "megatron-bridge", {"train:", "model:"}},
    {"a library of classes", NULL, {"_target_:", NULL}},
    {"Megatron-Bridge's checks", NULL, {"verification_index:", NULL}},
    /* github.com/AMD-AGI/Primus, examples/megatron/configs */
    {"Primus", "primus", {"modules:", " pre_trainer"}},
    {"Primus", "primus", {"modules:", " post_trainer"}},
    /* github.com/EleutherAI/gpt-neox, configs */
    {"GPT-NeoX", "gpt-neox", {"pipe_parallel_size", NULL}},
    {"GPT-NeoX", "gpt-neox", {"pipe-parallel-size", NULL}},
    /* github.com/huggingface/nanotron, examples */
    {"nanotron", "nanotron", {"parallelism:", "tokens:"}},
    /* github.com/mosaicml/llm-foundry, scripts/train/yamls */
    {"llm-foundry", "llm-foundry", {" device_train_microbatch_size:", NULL}},
    /* github.com/allenai/OLMo-core: the classes of its configurations. */
    {"OLMo-core", "olmo-core", {"_CLASS_", NULL}},
};

/* The row that a text is of, -1: none; *line of its first mark. */
static int find_relative(const char *text, int *line)
{
    for (size_t i = 0; i < FR_LENGTH(relatives); i++) {
        const char *const *marks = relatives[i].marks;
        *line = fr_yaml_find_mark(text, marks[0]);
        if (*line > 0 &&
            (marks[1] == NULL || fr_yaml_find_mark(text, marks[1]) > 0))
            return (int)i;
    }
    return -1;
}

bool fr_megatron_is_relative(const char *text)
{
    int line;
    const int i = is_yaml(text, strlen(text)) ? find_relative(text, &line) : -1;
    return i >= 0 && relatives[i].name != NULL;
}

static fr_status check_relatives(const fr_config_request *request, fr_err *err)
{
    int line;
    const int i = find_relative(request->text, &line);
    if (i < 0)
        return FR_OK;
    const char *name = relatives[i].name;
    return fr_fail(err, FR_INPUT,
                   "%s:%d: this is a configuration of %s%s: its names mean "
                   "other things than Megatron-LM's; %s%s",
                   request->path, line, relatives[i].framework,
                   name != NULL ? "" : ", which is not read",
                   name != NULL ? "import it as "
                                : "give the arguments that Megatron-LM is "
                                  "started with",
                   name != NULL ? name : "");
}

/* ---- entries to words ---------------------------------------------------- */

/* NAME: value, an environment variable. */
static fr_status put_variable(const entry *e, int line, fr_shell *shell,
                              fr_err *err)
{
    fr_shell_variable variable = {0};
    fr_shell_word word = {.line = line};
    variable.name = fr_arena_strndup(&shell->arena, e->name, e->n_name);
    word.text = fr_arena_strndup(&shell->arena, e->value, e->n_value);
    if (variable.name == NULL || word.text == NULL ||
        fr_vec_push(&variable.words, word) != FR_OK)
        return fr_fail_no_memory(err);
    if (fr_vec_push(&shell->variables, variable) == FR_OK)
        return FR_OK;
    fr_vec_release(&variable.words);
    return fr_fail_no_memory(err);
}

/* The entries as words "--name", "value" ...: a list as several, true as none,
 * false and null not at all. */
static fr_status put_entry(const entry *e, int line, fr_shell *shell,
                           fr_err *err)
{
    size_t n = e->n_name;
    const char *name = e->name;
    if (n > 2 && name[0] == '-' && name[1] == '-') {
        name += 2;
        n -= 2;
    }
    if (e->n_value == 0 || is_word(e, "false") || is_word(e, "False") ||
        is_word(e, "null") || is_word(e, "None") || is_word(e, "~"))
        return FR_OK;
    if (isupper((unsigned char)name[0]) != 0)
        return put_variable(e, line, shell, err);
    char *flag = fr_arena_printf(&shell->arena, "--%.*s", (int)n, name);
    if (flag == NULL)
        return fr_fail_no_memory(err);
    for (char *c = flag; *c != '\0'; c++)
        if (*c == '_')
            *c = '-';
    fr_shell_word word = {.text = flag, .line = line};
    FR_TRY_PUSH(&shell->commands, word, err);
    if (is_word(e, "true") || is_word(e, "True"))
        return FR_OK;
    char first = e->value[0], last = e->value[e->n_value - 1];
    bool is_quoted =
        (first == '"' || first == '\'') && first == last && e->n_value > 1;
    bool is_list =
        first == '[' && last == ']' && /* not "[0]*3+[1]" */
        memchr(e->value, ']', e->n_value) == e->value + e->n_value - 1;
    char *value = fr_arena_strndup(&shell->arena, e->value + is_quoted,
                                   e->n_value - 2 * (size_t)is_quoted);
    if (value == NULL)
        return fr_fail_no_memory(err);
    const char *ends = is_quoted ? "" : is_list ? " ,[]'\"" : " ";
    for (char *c = value, *next; c != NULL; c = next) {
        next = c + strcspn(c, ends);
        char end = *next;
        *next = '\0';
        next = end != '\0' ? next + 1 : NULL;
        word.text = c;
        if (*c != '\0')
            FR_TRY_PUSH(&shell->commands, word, err);
    }
    return FR_OK;
}

fr_status fr_megatron_parse_yaml(const fr_config_request *request,
                                 fr_shell *out, fr_err *err)
{
    const char *p = request->text, *end = p + request->n_text;
    *out = (fr_shell){0};
    fr_arena_init(&out->arena);
    FR_TRY(check_relatives(request, err));
    for (int line = 1; p < end; line++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        stop = stop != NULL ? stop : end;
        entry e;
        if (read_entry(p, stop, &e))
            FR_TRY(put_entry(&e, line, out, err));
        p = stop + 1;
    }
    fr_shell_word none = {0};
    FR_TRY_PUSH(&out->commands, none, err);
    return FR_OK;
}
