/* shell_command.c: simple commands: functions, scripts that are there, and
 * programs, which are only written down. */
#include "core/base/text.h"
#include "core/shell/shell_eval.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static bool is_shell(const char *word)
{
    static const char *const names[] = {"bash", "sh", "zsh", "dash"};
    return fr_text_find(base_name(word), names, FR_LENGTH(names)) >= 0;
}

static const fr_sh_function *find_function(const fr_sh *sh, const char *name)
{
    for (size_t i = sh->functions.n; i > 0; i--)
        if (strcmp(sh->functions.items[i - 1].name, name) == 0)
            return &sh->functions.items[i - 1];
    return NULL;
}

static fr_status copy_words(fr_sh *sh, const fr_shell_word *words, size_t n,
                            fr_shell_word **out)
{
    *out = fr_sh_alloc(sh, n, sizeof **out);
    if (*out == NULL)
        return fr_sh_full(sh);
    if (n > 0)
        memcpy(*out, words, n * sizeof *words);
    return FR_OK;
}

/* A script with arguments of its own, in a shell of its own. */
static fr_status run_script(fr_sh *sh, const char *path, const char *text,
                            int line, const fr_shell_word *words, size_t n)
{
    const fr_sh before = *sh;
    const size_t mark = fr_sh_enter_subshell(sh);
    fr_shell_word *arguments;
    FR_TRY(copy_words(sh, words, n, &arguments));
    sh->arguments =
        (fr_sh_arguments){.words = arguments, .n = n, .is_known = true};
    FR_TRY(fr_sh_eval_text(sh, path, text, strlen(text), line));
    fr_sh_leave_subshell(sh, mark);
    sh->arguments = before.arguments;
    sh->folder = before.folder;
    sh->flow = FR_SH_GO;
    return FR_OK;
}

/* bash -c TEXT, bash FILE and FILE.sh, after srun, nohup and the like too;
 * false: the words start none that is there. */
static fr_status run_nested(fr_sh *sh, const fr_shell_word *words, size_t n,
                            bool *is_done)
{
    const char *text = NULL;
    size_t i = 0;
    *is_done = false;
    while (i < n && !is_shell(words[i].text) &&
           !fr_text_ends(words[i].text, ".sh") &&
           !fr_text_ends(words[i].text, ".py"))
        i++;
    if (i == n || fr_text_ends(words[i].text, ".py"))
        return FR_OK;
    if (is_shell(words[i].text)) {
        for (i++; i < n && words[i].text[0] == '-'; i++) {
            if (strchr(words[i].text, 'c') == NULL || i + 1 >= n)
                continue;
            const size_t n_skipped = n > i + 2 ? i + 3 : n; /* its $0 */
            *is_done = true;
            return run_script(sh, sh->path, words[i + 1].text,
                              words[i + 1].line, words + n_skipped,
                              n - n_skipped);
        }
    }
    if (i < n)
        FR_TRY(fr_sh_read_file(sh, words[i].text, &text));
    *is_done = text != NULL;
    return *is_done ? run_script(sh, words[i].text, text, 1, words + i + 1,
                                 n - i - 1)
                    : FR_OK;
}

/* A program: its words are kept, and whether it succeeds is unknown. */
static fr_status start_program(fr_sh *sh, const fr_shell_word *words, size_t n)
{
    char text[96], shown[64];
    size_t number;
    if (sh->n_captures == 0) {
        if (sh->out->commands.n + n > FR_SH_NODES_MAX)
            return fr_sh_refuse(sh, "more words than a launch script has; give "
                                    "the arguments alone");
        for (size_t i = 0; i < n; i++)
            FR_TRY_PUSH(&sh->out->commands, words[i], sh->err);
        const fr_shell_word end = {.line = sh->line};
        FR_TRY_PUSH(&sh->out->commands, end, sh->err);
    }
    fr_shell_show(sh->out, base_name(words[0].text), shown, sizeof shown);
    snprintf(text, sizeof text, "the result of '%s'", shown);
    FR_TRY(fr_sh_unknown(sh, NULL, text, &number));
    sh->last = (fr_sh_status){.unknown = number + 1, .is_program = true};
    if (sh->output != NULL)
        fr_sh_put_unknown(sh->output, number);
    sh->has_foreign_output = true;
    return FR_OK;
}

static fr_status source_file(fr_sh *sh, const fr_shell_word *words, size_t n)
{
    const char *text = NULL;
    const fr_sh before = *sh;
    fr_shell_word *arguments;
    sh->last = (fr_sh_status){0};
    if (n > 1)
        FR_TRY(fr_sh_read_file(sh, words[1].text, &text));
    if (text == NULL)
        return start_program(sh, words, n);
    if (n > 2) {
        FR_TRY(copy_words(sh, words + 2, n - 2, &arguments));
        sh->arguments =
            (fr_sh_arguments){.words = arguments, .n = n - 2, .is_known = true};
    }
    const char *path = fr_sh_copy(sh, words[1].text, strlen(words[1].text));
    if (path == NULL)
        return fr_sh_full(sh);
    FR_TRY(fr_sh_eval_text(sh, path, text, strlen(text), 1));
    if (n > 2) {
        sh->arguments = before.arguments;
    }
    if (sh->flow == FR_SH_RETURN)
        sh->flow = FR_SH_GO;
    return FR_OK;
}

/* eval a "b c": its words as one text. */
static fr_status eval_words(fr_sh *sh, const fr_shell_word *words, size_t n)
{
    fr_buffer text;
    fr_buffer_init(&text);
    for (size_t i = 1; i < n; i++)
        fr_buffer_printf(&text, "%s%s", i > 1 ? " " : "", words[i].text);
    fr_status status = fr_buffer_check(&text, sh->err);
    const char *copy = fr_sh_copy(sh, fr_buffer_text(&text), text.n);
    const size_t length = text.n;
    fr_buffer_release(&text);
    FR_TRY(status);
    if (copy == NULL)
        return fr_sh_full(sh);
    sh->last = (fr_sh_status){0};
    return fr_sh_eval_text(sh, sh->path, copy, length, sh->line);
}

static fr_status call_function(fr_sh *sh, const fr_sh_function *function,
                               const fr_shell_word *words, size_t n)
{
    fr_shell_word *arguments;
    FR_TRY(copy_words(sh, words + 1, n - 1, &arguments));
    sh->last = (fr_sh_status){0};
    return fr_sh_eval_with(sh, function->body, arguments, n - 1);
}

fr_status fr_sh_command(fr_sh *sh, const fr_sh_node *node,
                        const fr_shell_word *words, size_t n)
{
    const fr_sh_function *function = find_function(sh, words[0].text);
    const char *name = words[0].text;
    bool is_known = false;
    FR_TRY(fr_sh_step(sh));
    sh->line = node->line;
    if (function != NULL)
        return call_function(sh, function, words, n);
    if (strcmp(name, "eval") == 0)
        return eval_words(sh, words, n);
    if (strcmp(name, "source") == 0 || strcmp(name, ".") == 0)
        return source_file(sh, words, n);
    if ((strcmp(name, "command") == 0 || strcmp(name, "builtin") == 0 ||
         strcmp(name, "exec") == 0) &&
        n > 1 && words[1].text[0] != '-') {
        FR_TRY(fr_sh_command(sh, node, words + 1, n - 1));
        if (*name == 'e')
            sh->flow = FR_SH_EXIT;
        return FR_OK;
    }
    FR_TRY(fr_sh_builtin(sh, words, n, &is_known));
    if (!is_known)
        FR_TRY(fr_sh_print(sh, words, n, &is_known));
    if (!is_known)
        FR_TRY(run_nested(sh, words, n, &is_known));
    return is_known ? FR_OK : start_program(sh, words, n);
}
