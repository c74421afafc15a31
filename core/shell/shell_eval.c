/* shell_eval.c: the nodes of a script, one after the other. */
#include "core/shell/shell_eval.h"

#include "core/shell/shell_expand.h"

#include <stdio.h>
#include <string.h>

static fr_status eval(fr_sh *sh, const fr_sh_node *node);
static fr_status eval_kind(fr_sh *sh, const fr_sh_node *node);

/* ---- texts, functions, $(...) -------------------------------------------- */

fr_status fr_sh_eval_text(fr_sh *sh, const char *path, const char *text,
                          size_t n, int line)
{
    const char *old_path = sh->path;
    const int old_line = sh->line;
    fr_sh_node *node;
    fr_sh_reader in = {.arena = &sh->out->arena,
                       .path = path,
                       .begin = text,
                       .p = text,
                       .end = text + n,
                       .line = line,
                       .depth = sh->depth,
                       .n_nodes = &sh->n_nodes,
                       .err = sh->err};
    FR_TRY(fr_sh_parse(&in, '\0', &node));
    if (++sh->depth > FR_SH_DEPTH_MAX)
        return fr_sh_refuse(sh, "scripts within scripts, too deep; give the "
                                "arguments alone");
    sh->path = path;
    FR_TRY(eval(sh, node));
    sh->path = old_path;
    sh->line = old_line;
    sh->depth--;
    return FR_OK;
}

fr_status fr_sh_eval_with(fr_sh *sh, const fr_sh_node *body,
                          const fr_shell_word *arguments, size_t n)
{
    const fr_sh before = *sh;
    if (++sh->depth > FR_SH_DEPTH_MAX)
        return fr_sh_refuse(sh, "functions call each other too deeply");
    sh->scope++;
    sh->arguments =
        (fr_sh_arguments){.words = arguments, .n = n, .is_known = true};
    FR_TRY(eval(sh, body));
    fr_sh_leave_scope(sh);
    sh->arguments = before.arguments;
    sh->depth--;
    if (sh->flow == FR_SH_RETURN)
        sh->flow = FR_SH_GO;
    return FR_OK;
}

/* "$(command)" for messages, on one line. */
static fr_status name_command(fr_sh *sh, fr_sh_slice command, size_t *number)
{
    char text[96];
    size_t n = 2;
    memcpy(text, "$(", 3);
    for (size_t i = 0; i < command.n && n < 80; i++) {
        const unsigned char c = (unsigned char)command.at[i];
        if (c > ' ' && c < 127)
            text[n++] = (char)c;
        else if (text[n - 1] != ' ' && n > 2)
            text[n++] = ' ';
    }
    snprintf(text + n, sizeof text - n, n < 80 ? ")" : "...)");
    return fr_sh_unknown(sh, NULL, text, number);
}

static fr_status capture(fr_sh *sh, fr_sh_slice command, fr_buffer *out)
{
    const fr_sh before = *sh;
    const size_t mark = fr_sh_enter_subshell(sh);
    size_t number;
    sh->output = out;
    sh->n_captures++;
    sh->has_foreign_output = false;
    FR_TRY(fr_sh_eval_text(sh, sh->path, command.at, command.n, command.line));
    fr_sh_leave_subshell(sh, mark);
    if (sh->has_foreign_output) {
        out->n = 0;
        FR_TRY(name_command(sh, command, &number));
        fr_sh_put_unknown(out, number);
    }
    while (out->n > 0 && out->data[out->n - 1] == '\n')
        out->data[--out->n] = '\0';
    sh->output = before.output;
    sh->input = before.input;
    sh->n_captures = before.n_captures;
    sh->has_foreign_output = before.has_foreign_output;
    sh->folder = before.folder;
    sh->flow = FR_SH_GO;
    sh->arguments = before.arguments;
    return fr_buffer_check(out, sh->err);
}

fr_status fr_sh_capture(fr_sh *sh, fr_sh_slice command, fr_buffer *out)
{
    FR_TRY(fr_sh_step(sh));
    return capture(sh, command, out);
}

/* ---- redirections -------------------------------------------------------- */

/* A node that writes a file. */
static fr_status eval_writing(fr_sh *sh, const fr_sh_node *node,
                              const fr_sh_redirect *target)
{
    fr_buffer *old = sh->output, text;
    const char *name;
    FR_TRY(fr_sh_expand_text(sh, target->target, &name));
    fr_buffer_init(&text);
    sh->output = &text;
    fr_status status = eval_kind(sh, node);
    sh->output = old;
    if (status == FR_OK)
        status = fr_buffer_check(&text, sh->err);
    if (status == FR_OK)
        status = fr_sh_write_file(sh, name, fr_buffer_text(&text),
                                  target->kind == FR_SH_APPEND);
    fr_buffer_release(&text);
    return status;
}

static fr_status eval(fr_sh *sh, const fr_sh_node *node)
{
    const char *input = sh->input;
    const fr_sh_redirect *target = NULL;
    FR_TRY(fr_sh_step(sh));
    sh->line = node->line;
    if (node->redirects == NULL)
        return eval_kind(sh, node);
    for (const fr_sh_redirect *r = node->redirects; r != NULL; r = r->next) {
        if (r->kind == FR_SH_WRITE || r->kind == FR_SH_APPEND)
            target = r;
        else if (r->kind != FR_SH_OTHER)
            FR_TRY(fr_sh_read_input(sh, r));
    }
    FR_TRY(target != NULL ? eval_writing(sh, node, target)
                          : eval_kind(sh, node));
    sh->input = input;
    return FR_OK;
}

/* ---- lists --------------------------------------------------------------- */

static fr_status eval_list(fr_sh *sh, const fr_sh_node *node)
{
    for (node = node->first; node != NULL && sh->flow == FR_SH_GO;
         node = node->next)
        FR_TRY(eval(sh, node));
    return FR_OK;
}

static fr_status eval_subshell(fr_sh *sh, const fr_sh_node *node)
{
    const fr_sh before = *sh;
    const size_t mark = fr_sh_enter_subshell(sh);
    FR_TRY(eval(sh, node));
    fr_sh_leave_subshell(sh, mark);
    sh->folder = before.folder;
    sh->arguments = before.arguments;
    sh->flow = FR_SH_GO;
    return FR_OK;
}

static fr_status eval_pipe(fr_sh *sh, const fr_sh_node *node)
{
    const char *input = sh->input;
    fr_buffer *output = sh->output;
    const fr_sh_node *part = node->first;
    for (; part != NULL && part->next != NULL; part = part->next) {
        fr_buffer text;
        fr_buffer_init(&text);
        sh->output = &text;
        fr_status status = eval_subshell(sh, part);
        sh->output = output;
        if (status == FR_OK) {
            sh->input = fr_sh_copy(sh, fr_buffer_text(&text), text.n);
            status = sh->input != NULL ? FR_OK : fr_sh_full(sh);
        }
        fr_buffer_release(&text);
        FR_TRY(status);
    }
    FR_TRY(part == node->first ? eval(sh, part) : eval_subshell(sh, part));
    sh->input = input;
    if (node->is_negated && sh->last.unknown == 0)
        sh->last.code = sh->last.code == 0;
    else if (node->is_negated)
        sh->last.is_negated = !sh->last.is_negated;
    return FR_OK;
}

static fr_status eval_and_or(fr_sh *sh, const fr_sh_node *node)
{
    bool is_true;
    FR_TRY(eval(sh, node->first));
    if (sh->flow != FR_SH_GO)
        return FR_OK;
    FR_TRY(fr_sh_succeeds(sh, node, sh->last, &is_true));
    if (is_true == (node->kind == FR_SH_AND))
        return eval(sh, node->second);
    if (sh->last.unknown > 0)
        sh->last = (fr_sh_status){.code = !is_true};
    return FR_OK;
}

/* ---- if, case, loops ----------------------------------------------------- */

/* Is there an assignment of the variable among the commands? */
static bool assigns(const fr_sh_node *list, const char *name)
{
    const size_t n = strlen(name);
    for (const fr_sh_node *c = list->first; c != NULL; c = c->next)
        for (const fr_sh_word *w = c->words;
             c->kind == FR_SH_SIMPLE && w != NULL; w = w->next)
            if (w->text.n > n && memcmp(w->text.at, name, n) == 0 &&
                w->text.at[n] == '=')
                return true;
    return false;
}

/* if [ -z "$X" ]; then X=default; fi: X is not set, as in ${X:-default}. */
static bool is_default(const fr_sh *sh, const fr_sh_node *node)
{
    const fr_sh_word *words =
        node->first->first != NULL ? node->first->first->words : NULL;
    const fr_shell_unknown *unknown =
        &sh->out->unknown.items[sh->last.unknown - 1];
    bool is_empty_test = false;
    for (; words != NULL; words = words->next)
        is_empty_test |= fr_sh_slice_is(words->text, "-z");
    return is_empty_test && unknown->name != NULL && unknown->text[1] != '(' &&
           node->second != NULL && assigns(node->second, unknown->name);
}

static fr_status eval_if(fr_sh *sh, const fr_sh_node *node)
{
    bool is_true;
    FR_TRY(eval(sh, node->first));
    if (sh->flow != FR_SH_GO)
        return FR_OK;
    if (sh->last.unknown > 0 && !sh->last.is_negated && is_default(sh, node))
        is_true = true;
    else
        FR_TRY(fr_sh_succeeds(sh, node, sh->last, &is_true));
    sh->last = (fr_sh_status){0};
    if (is_true)
        return eval(sh, node->second);
    return node->third != NULL ? eval(sh, node->third) : FR_OK;
}

static fr_status arm_matches(fr_sh *sh, const fr_sh_node *arm,
                             const char *subject, bool *out)
{
    const size_t unknown = fr_sh_unknown_in(subject);
    fr_sh_status open = {0};
    *out = false;
    for (const fr_sh_word *w = arm->words; w != NULL; w = w->next) {
        const char *pattern;
        FR_TRY(fr_sh_expand_pattern(sh, w->text, &pattern));
        const fr_sh_match match =
            fr_sh_match_text(pattern, subject, strlen(subject));
        *out |= match == FR_SH_YES;
        if (match == FR_SH_OPEN)
            open = (fr_sh_status){
                .unknown = unknown > 0 ? unknown : fr_sh_unknown_in(pattern),
                .example = pattern};
    }
    if (*out || open.unknown == 0)
        return FR_OK;
    return fr_sh_decide(sh, arm, open, out);
}

static fr_status eval_case(fr_sh *sh, const fr_sh_node *node)
{
    const char *subject;
    bool is_in = false;
    FR_TRY(fr_sh_expand_text(sh, node->words->text, &subject));
    for (const fr_sh_node *arm = node->first; arm != NULL; arm = arm->next) {
        if (!is_in)
            FR_TRY(arm_matches(sh, arm, subject, &is_in));
        if (!is_in)
            continue;
        FR_TRY(eval(sh, arm->second));
        if (!arm->goes_on || sh->flow != FR_SH_GO)
            return FR_OK;
    }
    return FR_OK;
}

/* After a round: does the loop go on? */
static bool goes_on(fr_sh *sh)
{
    if (sh->flow == FR_SH_BREAK || sh->flow == FR_SH_CONTINUE) {
        const bool is_break = sh->flow == FR_SH_BREAK;
        if (--sh->n_levels > 0)
            return false;
        sh->flow = FR_SH_GO;
        return !is_break;
    }
    return sh->flow == FR_SH_GO;
}

/* A loop that starts programs for ever starts the same ones, and one that waits
 * for something ends. */
static fr_status check_rounds(fr_sh *sh, const fr_sh_node *node, int n_rounds,
                              size_t n_commands, size_t n_branches,
                              bool *is_over)
{
    *is_over = n_rounds >= 100 && (sh->out->commands.n > n_commands ||
                                   sh->out->branches.n > n_branches);
    sh->line = node->line;
    if (n_rounds < FR_SH_ROUNDS_MAX)
        return FR_OK;
    return fr_sh_refuse(sh, "the loop does not end; give its arguments alone");
}

static fr_status eval_while(fr_sh *sh, const fr_sh_node *node)
{
    const size_t n_commands = sh->out->commands.n;
    const size_t n_branches = sh->out->branches.n;
    for (int n_rounds = 1;; n_rounds++) {
        bool is_true, is_over;
        FR_TRY(eval(sh, node->first));
        if (sh->flow != FR_SH_GO)
            return FR_OK;
        const fr_sh_status last = sh->last;
        if (last.unknown > 0 && fr_sh_is_argument(sh, last.unknown)) {
            sh->out->arguments_line = node->line;
            return FR_OK;
        }
        FR_TRY(fr_sh_succeeds(sh, node, last, &is_true));
        if (is_true != (node->kind == FR_SH_WHILE))
            break;
        FR_TRY(eval(sh, node->second));
        FR_TRY(
            check_rounds(sh, node, n_rounds, n_commands, n_branches, &is_over));
        if (!goes_on(sh) || last.unknown > 0 || is_over)
            return FR_OK;
    }
    sh->last = (fr_sh_status){0};
    return FR_OK;
}

static fr_status eval_for_sum(fr_sh *sh, const fr_sh_node *node)
{
    const fr_sh_word *parts[3] = {node->words, node->words->next,
                                  node->words->next->next};
    const char *text;
    int64_t value;
    size_t unknown;
    FR_TRY(fr_sh_expand_document(sh, parts[0]->text, &text));
    FR_TRY(fr_sh_sum(sh, text, &value, &unknown));
    for (int n_rounds = 1;; n_rounds++) {
        bool is_true, is_over;
        FR_TRY(fr_sh_expand_document(sh, parts[1]->text, &text));
        FR_TRY(fr_sh_sum(sh, text, &value, &unknown));
        const bool is_endless = text[strspn(text, " \t\n")] == '\0';
        const fr_sh_status last = {.code = value == 0 && !is_endless,
                                   .unknown = unknown};
        FR_TRY(fr_sh_succeeds(sh, node, last, &is_true));
        if (!is_true)
            return FR_OK;
        FR_TRY(eval(sh, node->second));
        FR_TRY(check_rounds(sh, node, n_rounds, SIZE_MAX, SIZE_MAX, &is_over));
        if (!goes_on(sh) || unknown > 0)
            return FR_OK;
        FR_TRY(fr_sh_expand_document(sh, parts[2]->text, &text));
        FR_TRY(fr_sh_sum(sh, text, &value, &unknown));
    }
}

static fr_status eval_rounds(fr_sh *sh, const fr_sh_node *node,
                             const fr_shell_word *words, size_t n)
{
    fr_sh_variable *variable;
    FR_TRY(fr_sh_declare(sh, node->name.at, node->name.n, false, &variable));
    for (size_t i = 0; i < n; i++) {
        FR_TRY(fr_sh_set_text(sh, variable, words[i]));
        FR_TRY(eval(sh, node->second));
        if (!goes_on(sh))
            break;
    }
    return FR_OK;
}

static fr_status eval_for(fr_sh *sh, const fr_sh_node *node)
{
    fr_shell_words words = {0};
    fr_status status = FR_OK;
    const bool is_arguments =
        !node->has_words || (node->words != NULL && node->words->next == NULL &&
                             (fr_sh_slice_is(node->words->text, "\"$@\"") ||
                              fr_sh_slice_is(node->words->text, "$@") ||
                              fr_sh_slice_is(node->words->text, "$*")));
    if (is_arguments && !sh->arguments.is_known)
        sh->out->arguments_line = node->line;
    if (!node->has_words)
        return eval_rounds(sh, node, sh->arguments.words, sh->arguments.n);
    for (const fr_sh_word *w = node->words; w != NULL && status == FR_OK;
         w = w->next)
        status = fr_sh_expand_words(sh, w->text, &words);
    if (status == FR_OK)
        status = eval_rounds(sh, node, words.items, words.n);
    fr_vec_release(&words);
    return status;
}

/* ---- simple commands ----------------------------------------------------- */

static bool is_declaring(const fr_sh_word *word)
{
    static const char *const names[] = {"declare", "local", "export",
                                        "readonly", "typeset"};
    for (size_t i = 0; word != NULL && i < FR_LENGTH(names); i++)
        if (fr_sh_slice_is(word->text, names[i]))
            return true;
    return false;
}

/* The assignments before a command.  Those before `read` (IFS=,) are of it
 * alone: `old` has room for what they change; those before a program may say
 * what it reads from its environment, and stay. */
static fr_status assign_before(fr_sh *sh, const fr_sh_node *node,
                               fr_sh_undo *old, size_t n_max, size_t *n_old)
{
    *n_old = 0;
    for (const fr_sh_word *w = node->words; w != NULL; w = w->next) {
        const size_t n_name = fr_sh_assignment(w->text.at, w->text.n);
        if (n_name == 0)
            break;
        if (*n_old < n_max) {
            fr_sh_variable *v;
            size_t n = 0;
            while (n < n_name && fr_sh_is_name(w->text.at[n]))
                n++;
            FR_TRY(fr_sh_declare(sh, w->text.at, n, false, &v));
            old[(*n_old)++] = (fr_sh_undo){
                .variable = v, .value = v->value, .is_known = v->is_known};
        }
        FR_TRY(fr_sh_assign(sh, w->text, n_name, false));
    }
    return FR_OK;
}

static fr_status eval_assigned(fr_sh *sh, const fr_sh_node *node,
                               const fr_shell_words *words)
{
    fr_sh_undo old[4];
    size_t n_old;
    const bool is_read =
        words->n > 0 && strcmp(words->items[0].text, "read") == 0;
    FR_TRY(assign_before(sh, node, old, is_read ? FR_LENGTH(old) : 0, &n_old));
    if (words->n == 0)
        return FR_OK;
    FR_TRY(fr_sh_command(sh, node, words->items, words->n));
    while (n_old-- > 0) {
        FR_TRY(fr_sh_set(sh, old[n_old].variable, old[n_old].value));
        old[n_old].variable->is_known = old[n_old].is_known;
    }
    return FR_OK;
}

static fr_status eval_simple(fr_sh *sh, const fr_sh_node *node)
{
    const fr_sh_word *w = node->words;
    fr_shell_words words = {0};
    fr_status status = FR_OK;
    while (w != NULL && fr_sh_assignment(w->text.at, w->text.n) > 0)
        w = w->next;
    if (is_declaring(w))
        return fr_sh_declare_words(sh, w);
    const bool has_assignments = w != node->words;
    for (; w != NULL && status == FR_OK; w = w->next)
        status = fr_sh_expand_words(sh, w->text, &words);
    if (status == FR_OK && has_assignments) {
        if (words.n == 0)
            sh->last = (fr_sh_status){0};
        status = eval_assigned(sh, node, &words);
    } else if (status == FR_OK && words.n > 0) {
        status = fr_sh_command(sh, node, words.items, words.n);
    } else if (status == FR_OK && sh->input != NULL && sh->output != NULL &&
               node->redirects != NULL) {
        fr_buffer_puts(sh->output, sh->input); /* $(<file) */
    }
    fr_vec_release(&words);
    return status;
}

static fr_status add_function(fr_sh *sh, const fr_sh_node *node)
{
    const char *name = fr_sh_copy(sh, node->name.at, node->name.n);
    if (name == NULL)
        return fr_sh_full(sh);
    const fr_sh_function function = {.name = name, .body = node->second};
    FR_TRY_PUSH(&sh->functions, function, sh->err);
    return FR_OK;
}

static fr_status eval_sum(fr_sh *sh, const fr_sh_node *node)
{
    const char *text;
    int64_t value;
    size_t unknown;
    FR_TRY(fr_sh_expand_document(sh, node->name, &text));
    FR_TRY(fr_sh_sum(sh, text, &value, &unknown));
    sh->last = (fr_sh_status){.code = value == 0, .unknown = unknown};
    return FR_OK;
}

static fr_status eval_kind(fr_sh *sh, const fr_sh_node *node)
{
    switch (node->kind) {
    case FR_SH_SIMPLE:
        return eval_simple(sh, node);
    case FR_SH_PIPE:
        return eval_pipe(sh, node);
    case FR_SH_AND:
    case FR_SH_OR:
        return eval_and_or(sh, node);
    case FR_SH_LIST:
        return eval_list(sh, node);
    case FR_SH_IF:
        return eval_if(sh, node);
    case FR_SH_WHILE:
    case FR_SH_UNTIL:
        return eval_while(sh, node);
    case FR_SH_FOR:
        return eval_for(sh, node);
    case FR_SH_FOR_SUM:
        return eval_for_sum(sh, node);
    case FR_SH_CASE:
        return eval_case(sh, node);
    case FR_SH_FUNCTION:
        return add_function(sh, node);
    case FR_SH_SUBSHELL:
        return eval_subshell(sh, node->second);
    case FR_SH_GROUP:
        return eval(sh, node->second);
    case FR_SH_SUM:
        return eval_sum(sh, node);
    case FR_SH_TEST:
        return fr_sh_test_node(sh, node, &sh->last);
    case FR_SH_ARM:
        break;
    }
    return FR_OK;
}
