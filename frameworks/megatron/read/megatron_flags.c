/* megatron_flags.c: see megatron_flags.h. */
#include "frameworks/megatron/read/megatron_flags.h"

#include "core/base/text.h"
#include "frameworks/megatron/megatron_keys.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- which words are the arguments --------------------------------------- */

static bool is_flag(const char *text)
{
    return text[0] == '-' && text[1] == '-' && text[2] != '\0';
}

static fr_status take_words(fr_megatron_flags *out, const fr_shell_word *words,
                            size_t n, fr_err *err)
{
    for (size_t i = 0; i < n && words[i].text != NULL; i++)
        FR_TRY_PUSH(&out->words, words[i], err);
    return FR_OK;
}

/* Options of launchers that say how many ranks there are. */
typedef struct launch {
    int64_t n_nodes, n_per_node, n_ranks; /* 0: not said */
} launch;

static const struct {
    const char *name;
    size_t member;
} launch_options[] = {
    {"--nnodes", offsetof(launch, n_nodes)},
    {"--num_nodes", offsetof(launch, n_nodes)},
    {"--nproc-per-node", offsetof(launch, n_per_node)},
    {"--nproc_per_node", offsetof(launch, n_per_node)},
    {"--num_gpus", offsetof(launch, n_per_node)},
    {"--num_processes", offsetof(launch, n_ranks)},
};

/* The option's number; an unknown one makes the number of ranks that of the
 * command line, which is noted. */
static bool read_launch_option(const fr_megatron_flags *flags,
                               const fr_shell_word *word, const char *value,
                               int64_t *out, fr_buffer *notes)
{
    char shown[64], mend[128];
    const fr_shell_unknown *unknown = fr_shell_unknown_in(&flags->shell, value);
    if (unknown == NULL) {
        *out = strtoll(value, NULL, 10);
        return true;
    }
    fr_shell_show(&flags->shell, value, shown, sizeof shown);
    fr_shell_mend(unknown, "8", mend, sizeof mend);
    fr_buffer_printf(notes,
                     "line %d: the number of ranks is that of --ranks or of "
                     "the cluster: %.*s is %s, %s\n",
                     word->line, (int)strcspn(word->text, "="), word->text,
                     shown, mend);
    return false;
}

/* The ranks that a launcher starts, by its words before the script's name. */
static void read_launcher(fr_megatron_flags *out, const fr_shell_word *words,
                          size_t n, fr_buffer *notes)
{
    launch said = {0};
    bool is_known = true;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < FR_LENGTH(launch_options); k++) {
            const char *text = words[i].text, *name = launch_options[k].name;
            const size_t length = strlen(name);
            if (strncmp(text, name, length) != 0 ||
                (text[length] != '=' && (text[length] != '\0' || i + 1 == n)))
                continue;
            is_known &= read_launch_option(
                out, &words[i],
                text[length] == '=' ? text + length + 1 : words[i + 1].text,
                (int64_t *)(void *)((char *)&said + launch_options[k].member),
                notes);
        }
    out->world = 0;
    if (!is_known)
        return;
    const int64_t n_nodes = said.n_nodes > 0 ? said.n_nodes : 1;
    if (said.n_ranks > 0 && said.n_ranks <= 1 << 20)
        out->world = said.n_ranks;
    else if (said.n_per_node > 0 && said.n_per_node <= 1 << 20 &&
             said.n_nodes >= 0 && n_nodes <= 1 << 20)
        out->world = said.n_per_node * n_nodes;
}

/* A command that trains has one of these. */
static bool has_mark(const fr_shell_word *words, size_t n)
{
    static const char *const marks[] = {"--micro-batch-size", "--num-layers",
                                        "--global-batch-size",
                                        "--tensor-model-parallel-size"};
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < FR_LENGTH(marks); k++) {
            const size_t length = strlen(marks[k]);
            if (strncmp(words[i].text, marks[k], length) == 0 &&
                (words[i].text[length] == '\0' || words[i].text[length] == '='))
                return true;
        }
    return false;
}

/* Words that a variable of the environment gives, which is mostly empty, are
 * noted; the output of a program is some arguments, and refused. */
static fr_status check_unknown_words(const fr_megatron_flags *flags,
                                     fr_buffer *notes, fr_err *err)
{
    for (size_t i = 0; i < flags->words.n; i++) {
        const fr_shell_word *word = &flags->words.items[i];
        const fr_shell_unknown *unknown =
            fr_shell_unknown_in(&flags->shell, word->text);
        const bool is_value = i > 0 &&
                              is_flag(flags->words.items[i - 1].text) &&
                              (i + 1 == flags->words.n ||
                               is_flag(flags->words.items[i + 1].text));
        char mend[160];
        if (unknown == NULL || is_value || !fr_shell_is_unknown(word->text))
            continue;
        if (unknown->name == NULL || unknown->text[1] == '(')
            return fr_fail(err, FR_INPUT,
                           "%s:%d: arguments are the output of %s, %s",
                           flags->path, word->line, unknown->text,
                           fr_shell_mend(unknown, "...", mend, sizeof mend));
        fr_buffer_printf(notes,
                         "line %d: %s is not set in the script: taken as no "
                         "arguments; --set %s=... gives them\n",
                         word->line, unknown->text, unknown->name);
    }
    return FR_OK;
}

static bool is_same_command(const fr_shell_word *a, const fr_shell_word *b)
{
    for (; a->text != NULL && b->text != NULL; a++, b++)
        if (strcmp(a->text, b->text) != 0)
            return false;
    return a->text == b->text;
}

/* The last command that starts a .py with arguments, of those that train if
 * there is one; else commands that begin with "--"; else all arrays of flags.
 */
static fr_status choose_words(fr_megatron_flags *out, fr_script_way *way,
                              fr_buffer *notes, fr_err *err)
{
    const fr_shell_words *all = &out->shell.commands;
    const fr_shell_word *command = NULL;
    size_t begin = 0, n_command = 0, n_launcher = 0, n_trainings = 0;
    bool is_marked = false;
    for (size_t i = 0; i < all->n; i++) {
        if (all->items[i].text != NULL)
            continue;
        const fr_shell_word *words = &all->items[begin];
        size_t n = i - begin, script = 0;
        while (script < n && !fr_text_ends(words[script].text, ".py"))
            script++;
        const bool is_next = has_mark(words, n);
        if (script + 1 < n && is_next >= is_marked) {
            n_trainings +=
                is_next && (!is_marked || !is_same_command(command, words));
            command = words;
            n_command = n;
            n_launcher = script;
            is_marked = is_next;
        } else if (script >= n && n > 0 && is_flag(words[0].text)) {
            FR_TRY(take_words(out, words, n, err));
        }
        begin = i + 1;
    }
    if (command != NULL) {
        out->words.n = 0;
        read_launcher(out, command, n_launcher, notes);
        if (n_trainings > 1)
            fr_buffer_printf(notes,
                             "line %d: the script starts %zu trainings, of "
                             "which this is the last: its plan is read\n",
                             command->line, n_trainings);
        FR_TRY(take_words(out, command + n_launcher + 1,
                          n_command - n_launcher - 1, err));
    }
    way->end = out->words.n > 0 ? FR_SCRIPT_COMMAND : FR_SCRIPT_VARIABLES;
    const bool has_command = out->words.n > 0;
    for (size_t i = 0; i < out->shell.variables.n && !has_command; i++) {
        const fr_shell_variable *v = &out->shell.variables.items[i];
        if (v->is_array && v->words.n > 0 && is_flag(v->words.items[0].text))
            FR_TRY(take_words(out, v->words.items, v->words.n, err));
    }
    if (!has_command && !has_mark(out->words.items, out->words.n))
        out->words.n = 0;
    return check_unknown_words(out, notes, err);
}

static fr_status make_flags(fr_megatron_flags *out, fr_err *err)
{
    const fr_shell_words *words = &out->words;
    for (size_t i = 0; i < words->n; i++) {
        const char *text = words->items[i].text;
        if (!is_flag(text))
            continue;
        fr_megatron_flag flag = {.name = text + 2,
                                 .values = &words->items[i + 1],
                                 .line = words->items[i].line};
        const char *equal = strchr(text, '=');
        if (equal != NULL) {
            fr_shell_word *value =
                fr_arena_alloc(&out->shell.arena, sizeof *value);
            flag.name = fr_arena_strndup(&out->shell.arena, text + 2,
                                         (size_t)(equal - text - 2));
            if (value == NULL || flag.name == NULL)
                return fr_fail_no_memory(err);
            *value = (fr_shell_word){.text = equal + 1, .line = flag.line};
            flag.values = value;
            flag.n_values = 1;
        } else {
            while (i + 1 + flag.n_values < words->n &&
                   !is_flag(flag.values[flag.n_values].text))
                flag.n_values++;
        }
        FR_TRY_PUSH(&out->flags, flag, err);
    }
    return FR_OK;
}

fr_status fr_megatron_flags_parse(const fr_config_request *request,
                                  fr_script_way *way, fr_megatron_flags *out,
                                  fr_buffer *notes, fr_err *err)
{
    *out = (fr_megatron_flags){.path = request->path, .request = request};
    if (fr_megatron_is_yaml(request))
        FR_TRY(fr_megatron_parse_yaml(request, &out->shell, err));
    else
        FR_TRY(fr_config_run_script(request, way, &out->shell, err));
    FR_TRY(choose_words(out, way, notes, err));
    FR_TRY(make_flags(out, err));
    if (out->shell.arguments_line > 0)
        fr_buffer_printf(notes,
                         "line %d: the script has arguments, which are taken "
                         "as none; --set 1=... gives them\n",
                         out->shell.arguments_line);
    if (out->flags.n > 0)
        return FR_OK;
    way->end = FR_SCRIPT_NOTHING;
    if (out->shell.exit_line > 0)
        return fr_fail(err, FR_INPUT,
                       "%s:%d: the script ends here before it starts a "
                       "training; give --set NAME=VALUE so that it goes on",
                       request->path, out->shell.exit_line);
    return fr_fail(err, FR_INPUT,
                   "%s:1: no arguments of Megatron-LM (--num-layers 32 ...); "
                   "give the script that starts pretrain_gpt.py",
                   request->path);
}

void fr_megatron_flags_release(fr_megatron_flags *flags)
{
    fr_vec_release(&flags->flags);
    fr_vec_release(&flags->words);
    fr_shell_release(&flags->shell);
}

/* ---- values -------------------------------------------------------------- */

/* argparse takes "_" only where the flag has it; people mix them up. */
static bool is_same_name(const char *a, const char *b)
{
    for (; *a != '\0' && *b != '\0'; a++, b++)
        if (*a != *b && !(*a == '_' && *b == '-'))
            return false;
    return *a == *b;
}

const fr_megatron_flag *fr_megatron_find(fr_megatron_flags *flags,
                                         const char *name)
{
    const fr_megatron_flag *found = NULL;
    for (size_t i = 0; i < flags->flags.n; i++)
        if (is_same_name(flags->flags.items[i].name, name)) {
            flags->flags.items[i].is_read = true;
            found = &flags->flags.items[i];
        }
    return found;
}

bool fr_megatron_has(fr_megatron_flags *flags, const char *name)
{
    return fr_megatron_find(flags, name) != NULL;
}

fr_status fr_megatron_refuse(const fr_megatron_flags *flags,
                             const fr_megatron_flag *flag, const char *why,
                             fr_err *err)
{
    char shown[101] = "", mend[160];
    if (flag->setting != NULL)
        return fr_setting_refuse_value(flag->setting, why, err);
    for (size_t i = 0; i < flag->n_values; i++) {
        const fr_shell_unknown *unknown =
            fr_shell_unknown_in(&flags->shell, flag->values[i].text);
        if (unknown == NULL)
            continue;
        fr_shell_show(&flags->shell, flag->values[i].text, shown, sizeof shown);
        return fr_fail(err, FR_INPUT, "%s:%d: --%.60s is %s, %s", flags->path,
                       flag->line, flag->name, shown,
                       fr_shell_mend(unknown, "8", mend, sizeof mend));
    }
    return fr_fail(err, FR_INPUT, "%s:%d: --%.60s%s%.60s: %s", flags->path,
                   flag->line, flag->name, flag->n_values > 0 ? " " : "",
                   flag->n_values > 0 ? flag->values[0].text : "", why);
}

fr_status fr_megatron_word(fr_megatron_flags *flags, const char *name,
                           const char *otherwise, const char **out, fr_err *err)
{
    const fr_megatron_flag *flag = fr_megatron_find(flags, name);
    *out = otherwise;
    if (flag == NULL)
        return FR_OK;
    if (flag->n_values == 0)
        return fr_megatron_refuse(flags, flag, "give its value", err);
    if (fr_shell_unknown_in(&flags->shell, flag->values[0].text) != NULL)
        return fr_megatron_refuse(flags, flag, "unknown", err);
    *out = flag->values[0].text;
    return FR_OK;
}

fr_status fr_megatron_i64(fr_megatron_flags *flags, const char *name,
                          int64_t min, int64_t *out, fr_err *err)
{
    const fr_megatron_flag *flag = fr_megatron_find(flags, name);
    const char *word;
    char *end;
    FR_TRY(fr_megatron_word(flags, name, NULL, &word, err));
    if (word == NULL)
        return FR_OK;
    char digits[32]; /* Python's int() takes 300_000_000 */
    size_t n = 0;
    for (const char *p = word; *p != '\0' && n + 1 < sizeof digits; p++)
        if (*p != '_' || p == word || p[1] == '_' || p[1] == '\0')
            digits[n++] = *p;
    digits[n] = '\0';
    errno = 0;
    long long value = strtoll(digits, &end, 10);
    if (end == digits || *end != '\0' || errno != 0 || value < min)
        return fr_megatron_refuse(flags, flag,
                                  min > 0 ? "give a whole number of at least 1"
                                          : "give a whole number from 0",
                                  err);
    *out = value;
    return FR_OK;
}

fr_status fr_megatron_i32(fr_megatron_flags *flags, const char *name,
                          int32_t min, int32_t *out, fr_err *err)
{
    int64_t value = *out;
    FR_TRY(fr_megatron_i64(flags, name, min, &value, err));
    if (value > 1 << 20)
        return fr_megatron_refuse(flags, fr_megatron_find(flags, name),
                                  "give at most 1048576", err);
    *out = (int32_t)value;
    return FR_OK;
}

fr_status fr_megatron_real(fr_megatron_flags *flags, const char *name,
                           double *out, fr_err *err)
{
    const fr_megatron_flag *flag = fr_megatron_find(flags, name);
    const char *word;
    char *end;
    FR_TRY(fr_megatron_word(flags, name, NULL, &word, err));
    if (word == NULL)
        return FR_OK;
    double value = strtod(word, &end);
    if (end == word || *end != '\0' || !(value >= 0 && value < 1e30))
        return fr_megatron_refuse(flags, flag, "give a number from 0", err);
    *out = value;
    return FR_OK;
}

/* ---- rows ---------------------------------------------------------------- */

static fr_status read_words(fr_megatron_flags *flags,
                            const fr_framework_key *key, fr_plan_file *file,
                            fr_err *err)
{
    const fr_megatron_flag *flag = fr_megatron_find(flags, key->name);
    const char *first;
    int64_t value = 0;
    if (flag == NULL)
        return FR_OK;
    if (!key->is_set)
        FR_TRY(fr_megatron_word(flags, key->name, NULL, &first, err));
    for (size_t i = 0; i < flag->n_values && (key->is_set || i == 0); i++) {
        const fr_key_word *known =
            fr_key_word_find(key->words, flag->values[i].text);
        if (known == NULL && key->mend == NULL)
            return FR_OK;
        if (known == NULL)
            return fr_megatron_refuse(flags, flag, key->mend, err);
        value |= known->value;
    }
    fr_field_set_i64(&key->field, value, file);
    return FR_OK;
}

static void read_switch(fr_megatron_flags *flags, const fr_framework_key *key,
                        fr_plan_file *file)
{
    const bool is_there = fr_megatron_has(flags, key->name);
    if (key->field.kind == FR_FIELD_BOOL)
        fr_field_set_i64(&key->field, is_there == (key->on != 0), file);
    else if (is_there)
        fr_field_set_i64(&key->field, key->on, file);
}

static fr_status read_row(fr_megatron_flags *flags, const fr_framework_key *key,
                          fr_plan_file *file, fr_err *err)
{
    double real = fr_field_get(&key->field, file);
    if (key->is_switch) {
        read_switch(flags, key, file);
    } else if (key->words != NULL) {
        return read_words(flags, key, file, err);
    } else if (key->field.kind == FR_FIELD_DOUBLE) {
        FR_TRY(fr_megatron_real(flags, key->name, &real, err));
        fr_field_set(&key->field, real, file);
    } else if (key->field.kind == FR_FIELD_I32) {
        int32_t count = (int32_t)fr_field_get_i64(&key->field, file);
        FR_TRY(fr_megatron_i32(flags, key->name, (int32_t)key->least, &count,
                               err));
        fr_field_set_i64(&key->field, count, file);
    } else {
        int64_t count = fr_field_get_i64(&key->field, file);
        FR_TRY(fr_megatron_i64(flags, key->name, key->least, &count, err));
        fr_field_set_i64(&key->field, count, file);
    }
    return FR_OK;
}

/* Arguments that a note names are not read, rows without a name are comments.
 */
static bool is_of(const fr_framework_key *key, const char *table)
{
    return strcmp(key->table, table) == 0 && key->name != NULL &&
           key->why == NULL;
}

fr_status fr_megatron_read_rows(fr_megatron_flags *flags, const char *table,
                                fr_plan_file *file, fr_err *err)
{
    for (size_t i = 0; i < fr_megatron_keys.n; i++) {
        const fr_framework_key *key = &fr_megatron_keys.rows[i];
        if (!is_of(key, table) || key->has_reader)
            continue;
        if (key->field.n_bytes > 0)
            FR_TRY(read_row(flags, key, file, err));
        else
            (void)fr_megatron_find(flags, key->name);
    }
    return FR_OK;
}

fr_status fr_megatron_read_key(fr_megatron_flags *flags, const char *name,
                               fr_plan_file *file, fr_err *err)
{
    for (size_t i = 0; i < fr_megatron_keys.n; i++) {
        const fr_framework_key *key = &fr_megatron_keys.rows[i];
        if (key->name != NULL && strcmp(key->name, name) == 0 &&
            key->field.n_bytes > 0)
            return read_row(flags, key, file, err);
    }
    assert(false && "a row has the name");
    return FR_OK;
}

void fr_megatron_skip_rows(fr_megatron_flags *flags, const char *table)
{
    for (size_t i = 0; i < fr_megatron_keys.n; i++)
        if (is_of(&fr_megatron_keys.rows[i], table))
            (void)fr_megatron_find(flags, fr_megatron_keys.rows[i].name);
}
