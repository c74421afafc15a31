/* shell_builtin.c: commands of the shell itself that change its state. */
#include "core/shell/shell_eval.h"
#include "core/shell/shell_expand.h"

#include <stdlib.h>
#include <string.h>

typedef struct builtin {
    const char *name;
    fr_status (*run)(fr_sh *sh, const fr_shell_word *words, size_t n);
} builtin;

static fr_status succeed(fr_sh *sh, const fr_shell_word *words, size_t n)
{
    (void)words;
    (void)n;
    sh->last = (fr_sh_status){0};
    return FR_OK;
}

static fr_status run_false(fr_sh *sh, const fr_shell_word *words, size_t n)
{
    (void)words;
    (void)n;
    sh->last = (fr_sh_status){.code = 1};
    return FR_OK;
}

static long number_of(const fr_shell_word *words, size_t n, long otherwise)
{
    return n > 1 ? strtol(words[1].text, NULL, 10) : otherwise;
}

static fr_status end_with(fr_sh *sh, fr_sh_flow flow,
                          const fr_shell_word *words, size_t n)
{
    if (n > 1)
        sh->last = (fr_sh_status){.code = (int)number_of(words, n, 0) & 255};
    sh->flow = flow;
    return FR_OK;
}

static fr_status run_exit(fr_sh *sh, const fr_shell_word *words, size_t n)
{
    if (sh->n_subshells == 0)
        sh->out->exit_line = sh->line;
    return end_with(sh, FR_SH_EXIT, words, n);
}

static fr_status run_return(fr_sh *sh, const fr_shell_word *words, size_t n)
{
    return end_with(sh, FR_SH_RETURN, words, n);
}

static fr_status run_break(fr_sh *sh, const fr_shell_word *words, size_t n)
{
    sh->flow = words[0].text[0] == 'b' ? FR_SH_BREAK : FR_SH_CONTINUE;
    sh->n_levels = (int)number_of(words, n, 1);
    return FR_OK;
}

static fr_status run_test(fr_sh *sh, const fr_shell_word *words, size_t n)
{
    const bool is_bracket = words[0].text[0] == '[';
    if (is_bracket && strcmp(words[n - 1].text, "]") != 0) {
        sh->last = (fr_sh_status){.code = 2};
        return FR_OK;
    }
    return fr_sh_test(sh, words + 1, n - 1 - is_bracket, &sh->last);
}

static fr_status run_let(fr_sh *sh, const fr_shell_word *words, size_t n)
{
    int64_t value = 0;
    size_t unknown = 0;
    for (size_t i = 1; i < n; i++)
        FR_TRY(fr_sh_sum(sh, words[i].text, &value, &unknown));
    sh->last = (fr_sh_status){.code = value == 0, .unknown = unknown};
    return FR_OK;
}

static fr_status run_cd(fr_sh *sh, const fr_shell_word *words, size_t n)
{
    sh->folder = NULL;
    if (n > 1 && strcmp(words[n - 1].text, "-") != 0)
        sh->folder = words[n - 1].text;
    return succeed(sh, words, n);
}

/* set -- words; options (set -euo pipefail) mean nothing here. */
static fr_status run_set(fr_sh *sh, const fr_shell_word *words, size_t n)
{
    size_t i = 1;
    bool is_given = n > 1 && words[1].text[0] != '-' && words[1].text[0] != '+';
    for (; i < n && !is_given; i++) {
        is_given = strcmp(words[i].text, "--") == 0;
        if (words[i].text[0] != '-' && words[i].text[0] != '+')
            break;
    }
    if (is_given) {
        fr_shell_word *arguments = fr_sh_alloc(sh, n - i, sizeof *arguments);
        if (arguments == NULL)
            return fr_sh_full(sh);
        if (n > i)
            memcpy(arguments, words + i, (n - i) * sizeof *words);
        sh->arguments =
            (fr_sh_arguments){.words = arguments, .n = n - i, .is_known = true};
    }
    return succeed(sh, words, n);
}

static fr_status run_shift(fr_sh *sh, const fr_shell_word *words, size_t n)
{
    const long by = number_of(words, n, 1);
    fr_sh_arguments *arguments = &sh->arguments;
    if (by < 0 || ((size_t)by > arguments->n && !arguments->is_open))
        return run_false(sh, words, n);
    const size_t n_known =
        (size_t)by < arguments->n ? (size_t)by : arguments->n;
    if (n_known > 0)
        arguments->words += n_known;
    arguments->n -= n_known;
    if (arguments->is_open)
        arguments->n_shifted += (size_t)by;
    return succeed(sh, words, n);
}

static fr_status run_getopts(fr_sh *sh, const fr_shell_word *words, size_t n)
{
    if (sh->arguments.is_known && sh->arguments.n > 0)
        return fr_sh_refuse(sh,
                            "getopts is not evaluated: give --set NAME=VALUE"
                            " for what it sets, not its arguments");
    sh->out->arguments_line = sh->line;
    return run_false(sh, words, n);
}

static fr_status run_unset(fr_sh *sh, const fr_shell_word *words, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        const size_t length = strlen(words[i].text);
        fr_sh_variable *variable;
        if (words[i].text[0] == '-' || length == 0)
            continue;
        FR_TRY(fr_sh_declare(sh, words[i].text, length, false, &variable));
        FR_TRY(fr_sh_set(sh, variable, (fr_sh_value){0}));
    }
    return succeed(sh, words, n);
}

/* ---- read ---------------------------------------------------------------- */

/* The next line of the input, "" where there is none. */
static fr_status take_line(fr_sh *sh, const char **out)
{
    const char *from = sh->input != NULL ? sh->input : "";
    const size_t n = strcspn(from, "\n");
    *out = fr_sh_copy(sh, from, n);
    if (*out == NULL)
        return fr_sh_full(sh);
    if (sh->input != NULL)
        sh->input += n + (from[n] == '\n');
    return FR_OK;
}

static fr_status set_unknown(fr_sh *sh, fr_sh_variable *variable)
{
    char text[96];
    size_t number;
    fr_buffer mark;
    text[0] = '$';
    strncpy(text + 1, variable->name, sizeof text - 2);
    text[sizeof text - 1] = '\0';
    FR_TRY(fr_sh_unknown(sh, variable->name, text, &number));
    fr_buffer_init(&mark);
    fr_sh_put_unknown(&mark, number);
    const fr_shell_word word = {
        .text = fr_sh_copy(sh, fr_buffer_text(&mark), mark.n),
        .line = sh->line};
    fr_buffer_release(&mark);
    return word.text != NULL ? fr_sh_set_text(sh, variable, word)
                             : fr_sh_full(sh);
}

static const char *separators(const fr_sh *sh)
{
    const fr_sh_variable *ifs = fr_sh_find(sh, "IFS", 3);
    return ifs != NULL && ifs->value.kind == FR_SH_TEXT
               ? ifs->value.items[0].word.text
               : " \t\n";
}

/* The next part of a line; the rest of it with `is_last`. */
static fr_status take_part(fr_sh *sh, const char **line, bool is_last,
                           fr_shell_word *out)
{
    const char *ends = separators(sh), *from = *line;
    from += strspn(from, " \t"); /* blanks around it are none of it */
    size_t n = is_last ? strlen(from) : strcspn(from, ends);
    *line = from + n + (from[n] != '\0');
    while (is_last && n > 0 && strchr(" \t", from[n - 1]) != NULL)
        n--;
    *out = (fr_shell_word){.text = fr_sh_copy(sh, from, n), .line = sh->line};
    return out->text != NULL ? FR_OK : fr_sh_full(sh);
}

static fr_status read_list(fr_sh *sh, fr_sh_variable *variable,
                           const char *line)
{
    fr_vec(fr_sh_item) items = {0};
    fr_status status = FR_OK;
    while (*line != '\0' && status == FR_OK) {
        fr_sh_item item = {.index = (int64_t)items.n};
        status = take_part(sh, &line, false, &item.word);
        if (status == FR_OK && fr_vec_push(&items, item) != FR_OK)
            status = fr_fail_no_memory(sh->err);
    }
    if (status == FR_OK)
        status =
            fr_sh_set_items(sh, variable, FR_SH_ARRAY, items.items, items.n);
    fr_vec_release(&items);
    return status;
}

static fr_status run_read(fr_sh *sh, const fr_shell_word *words, size_t n)
{
    const bool is_lines = strcmp(words[0].text, "read") != 0; /* mapfile */
    const bool has_input = sh->input != NULL && !is_lines;
    const bool is_at_end = has_input && *sh->input == '\0';
    bool is_list = false;
    const char *line;
    sh->last = (fr_sh_status){.code = is_at_end};
    FR_TRY(take_line(sh, &line));
    for (size_t i = 1; i < n; i++) {
        const char *name = words[i].text;
        fr_sh_variable *variable;
        fr_shell_word part;
        if (name[0] == '-') {
            is_list |= strchr(name, 'a') != NULL;
            i += strchr("dpntuiN", name[strlen(name) - 1]) != NULL;
            continue;
        }
        if (!fr_sh_is_name_start(name[0]))
            continue;
        FR_TRY(fr_sh_declare(sh, name, strlen(name), false, &variable));
        if (!has_input) { /* a loop over it has one round */
            FR_TRY(set_unknown(sh, variable));
            sh->last = (fr_sh_status){
                .unknown = fr_sh_unknown_in(variable->value.items[0].word.text),
                .is_program = !is_lines};
        } else if (is_list) {
            FR_TRY(read_list(sh, variable, line));
        } else {
            FR_TRY(take_part(sh, &line, i + 1 == n, &part));
            FR_TRY(fr_sh_set_text(sh, variable, part));
        }
    }
    return FR_OK;
}

static const builtin builtins[] = {
    {":", succeed},          {"true", succeed},      {"false", run_false},
    {"exit", run_exit},      {"return", run_return}, {"break", run_break},
    {"continue", run_break}, {"test", run_test},     {"[", run_test},
    {"let", run_let},        {"cd", run_cd},         {"pushd", run_cd},
    {"set", run_set},        {"shift", run_shift},   {"getopts", run_getopts},
    {"unset", run_unset},    {"read", run_read},     {"mapfile", run_read},
    {"readarray", run_read}, {"trap", succeed},      {"ulimit", succeed},
    {"wait", succeed},       {"shopt", succeed},     {"umask", succeed},
    {"alias", succeed},      {"popd", succeed},      {"sleep", succeed},
    {"clear", succeed},      {"exec", succeed},      {"mkdir", succeed}};

fr_status fr_sh_builtin(fr_sh *sh, const fr_shell_word *words, size_t n,
                        bool *is_known)
{
    for (size_t i = 0; i < FR_LENGTH(builtins); i++)
        if (strcmp(builtins[i].name, words[0].text) == 0) {
            *is_known = true;
            return builtins[i].run(sh, words, n);
        }
    return FR_OK;
}
