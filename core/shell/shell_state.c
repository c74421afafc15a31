/* shell_state.c: variables, unknown values and budgets of an evaluation. */
#include "core/shell/shell_state.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- budgets ------------------------------------------------------------- */

fr_status fr_sh_refuse(fr_sh *sh, const char *why)
{
    return fr_fail(sh->err, FR_INPUT, "%s:%d: %s", sh->path, sh->line, why);
}

fr_status fr_sh_step(fr_sh *sh)
{
    if (++sh->n_steps <= FR_SH_STEPS_MAX)
        return FR_OK;
    return fr_sh_refuse(sh, "the script takes more steps than a launch script "
                            "does; give its arguments alone");
}

void *fr_sh_alloc(fr_sh *sh, size_t n, size_t item_bytes)
{
    fr_arena *arena = &sh->out->arena;
    if (arena->total_bytes > FR_SH_BYTES_MAX || n > FR_SH_BYTES_MAX)
        return NULL;
    return fr_arena_array(arena, n, item_bytes);
}

char *fr_sh_copy(fr_sh *sh, const char *text, size_t n)
{
    char *copy = fr_sh_alloc(sh, n + 1, 1);
    if (copy != NULL && n > 0)
        memcpy(copy, text, n);
    return copy;
}

void fr_sh_clean(char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text[i] == FR_SH_UNKNOWN || text[i] == FR_SH_UNKNOWN_END)
            text[i] = '?';
}

fr_status fr_sh_full(fr_sh *sh)
{
    return sh->out->arena.total_bytes > FR_SH_BYTES_MAX
               ? fr_sh_refuse(sh, "the script makes more text than a launch "
                                  "script does; give its arguments alone")
               : fr_fail_no_memory(sh->err);
}

/* ---- unknown values ------------------------------------------------------ */

fr_status fr_sh_unknown(fr_sh *sh, const char *name, const char *text,
                        size_t *out)
{
    fr_shell *shell = sh->out;
    for (size_t i = 0; i < shell->unknown.n; i++)
        if (strcmp(shell->unknown.items[i].text, text) == 0) {
            *out = i;
            return FR_OK;
        }
    fr_shell_unknown unknown = {.line = sh->line};
    unknown.text = fr_sh_copy(sh, text, strlen(text));
    if (name != NULL)
        unknown.name = fr_sh_copy(sh, name, strlen(name));
    if (unknown.text == NULL || (name != NULL && unknown.name == NULL))
        return fr_sh_full(sh);
    *out = shell->unknown.n;
    FR_TRY_PUSH(&shell->unknown, unknown, sh->err);
    return FR_OK;
}

void fr_sh_put_unknown(fr_buffer *buffer, size_t number)
{
    fr_buffer_printf(buffer, "%c%zu%c", FR_SH_UNKNOWN, number,
                     FR_SH_UNKNOWN_END);
}

size_t fr_sh_unknown_in(const char *text)
{
    const char *mark = strchr(text, FR_SH_UNKNOWN);
    return mark != NULL ? (size_t)strtoull(mark + 1, NULL, 10) + 1 : 0;
}

fr_status fr_sh_decide(fr_sh *sh, const fr_sh_node *node, fr_sh_status status,
                       bool *out)
{
    fr_shell *shell = sh->out;
    const size_t i = shell->branches.n;
    fr_shell_branch branch = {.site = node->site,
                              .line = node->line,
                              .i_unknown = status.unknown - 1,
                              .example = status.example,
                              .is_taken = status.is_program};
    if (i < sh->request->n_decisions)
        branch.is_taken = sh->request->decisions[i];
    FR_TRY_PUSH(&shell->branches, branch, sh->err);
    *out = branch.is_taken;
    return FR_OK;
}

const fr_shell_unknown *fr_shell_unknown_in(const fr_shell *shell,
                                            const char *text)
{
    const size_t number = fr_sh_unknown_in(text);
    return number > 0 && number <= shell->unknown.n
               ? &shell->unknown.items[number - 1]
               : NULL;
}

bool fr_shell_is_unknown(const char *text)
{
    const char *end = strchr(text, FR_SH_UNKNOWN_END);
    return *text == FR_SH_UNKNOWN && end != NULL && end[1] == '\0';
}

const char *fr_shell_show(const fr_shell *shell, const char *text, char *buf,
                          size_t n_buf)
{
    size_t n = 0;
    buf[0] = '\0';
    while (*text != '\0' && n + 1 < n_buf) {
        if (*text != FR_SH_UNKNOWN) {
            buf[n++] = *text++;
            buf[n] = '\0';
            continue;
        }
        const fr_shell_unknown *unknown = fr_shell_unknown_in(shell, text);
        snprintf(buf + n, n_buf - n, "%s",
                 unknown != NULL ? unknown->text : "?");
        n += strlen(buf + n);
        text += strcspn(text, "\002");
        text += *text != '\0';
    }
    return buf;
}

const char *fr_shell_mend(const fr_shell_unknown *unknown, const char *example,
                          char *buf, size_t n_buf)
{
    const char *name = unknown->name;
    const bool is_argument =
        name != NULL && isdigit((unsigned char)name[0]) != 0;
    if (name == NULL)
        snprintf(buf, n_buf,
                 "which only the machine knows: write its value in the script");
    else if (unknown->text[1] == '(')
        snprintf(buf, n_buf, "which only the machine knows: give --set %s=%s",
                 name, example);
    else if (is_argument)
        snprintf(buf, n_buf, "%s of the script: give --set %s=%s",
                 unknown->text[1] == '#' ? "the number of arguments"
                                         : "an argument",
                 name, example);
    else
        snprintf(buf, n_buf, "which the script does not set: give --set %s=%s",
                 name, example);
    return buf;
}

bool fr_sh_is_argument(const fr_sh *sh, size_t unknown)
{
    const char *text = sh->out->unknown.items[unknown - 1].text;
    return text[0] == '$' && strchr("#@*0123456789", text[1]) != NULL;
}

fr_status fr_sh_succeeds(fr_sh *sh, const fr_sh_node *node, fr_sh_status status,
                         bool *out)
{
    bool is_true;
    *out = status.code == 0;
    if (status.unknown == 0)
        return FR_OK;
    FR_TRY(fr_sh_decide(sh, node, status, &is_true));
    *out = is_true != status.is_negated;
    return FR_OK;
}

/* ---- variables ----------------------------------------------------------- */

static size_t bucket_of(const char *name, size_t n)
{
    size_t hash = 5381;
    for (size_t i = 0; i < n; i++)
        hash = hash * 33 ^ (unsigned char)name[i];
    return hash % FR_SH_BUCKETS;
}

fr_sh_variable *fr_sh_find(const fr_sh *sh, const char *name, size_t n)
{
    fr_sh_variable *v = sh->buckets[bucket_of(name, n)];
    while (v != NULL && (strncmp(v->name, name, n) != 0 || v->name[n] != '\0'))
        v = v->next;
    return v;
}

fr_status fr_sh_declare(fr_sh *sh, const char *name, size_t n, bool is_local,
                        fr_sh_variable **out)
{
    fr_sh_variable **bucket = &sh->buckets[bucket_of(name, n)];
    const int scope = is_local ? sh->scope : 0;
    fr_sh_variable *v = fr_sh_find(sh, name, n);
    if (v != NULL && (!is_local || v->scope == scope || v->is_fixed)) {
        *out = v;
        return FR_OK;
    }
    v = fr_sh_alloc(sh, 1, sizeof *v);
    char *copy = fr_sh_copy(sh, name, n);
    if (v == NULL || copy == NULL)
        return fr_sh_full(sh);
    v->name = copy;
    v->scope = scope;
    v->is_known = is_local;
    v->next = *bucket;
    *bucket = v;
    *out = v;
    return FR_OK;
}

void fr_sh_leave_scope(fr_sh *sh)
{
    for (size_t i = 0; i < FR_SH_BUCKETS; i++) {
        fr_sh_variable **v = &sh->buckets[i];
        while (*v != NULL) {
            if ((*v)->scope == sh->scope)
                *v = (*v)->next;
            else
                v = &(*v)->next;
        }
    }
    sh->scope--;
}

size_t fr_sh_enter_subshell(fr_sh *sh)
{
    sh->n_subshells++;
    return sh->undo.n;
}

void fr_sh_leave_subshell(fr_sh *sh, size_t mark)
{
    sh->n_subshells--;
    while (sh->undo.n > mark) {
        const fr_sh_undo *undo = &sh->undo.items[--sh->undo.n];
        undo->variable->value = undo->value;
        undo->variable->is_known = undo->is_known;
    }
}

fr_status fr_sh_set(fr_sh *sh, fr_sh_variable *variable, fr_sh_value value)
{
    if (variable->is_fixed)
        return FR_OK;
    const fr_sh_undo undo = {.variable = variable,
                             .value = variable->value,
                             .is_known = variable->is_known};
    if (sh->n_subshells > 0)
        FR_TRY_PUSH(&sh->undo, undo, sh->err);
    variable->value = value;
    variable->is_known = true;
    return FR_OK;
}

/* The unknown value of a command takes the name of the variable that has it:
 * --set gives it. */
static void name_unknown(fr_sh *sh, const fr_sh_variable *variable,
                         const char *text)
{
    const size_t number = fr_sh_unknown_in(text);
    if (number > 0 && number <= sh->out->unknown.n &&
        sh->out->unknown.items[number - 1].name == NULL)
        sh->out->unknown.items[number - 1].name = variable->name;
}

fr_status fr_sh_set_text(fr_sh *sh, fr_sh_variable *variable,
                         fr_shell_word word)
{
    fr_sh_item *item = fr_sh_alloc(sh, 1, sizeof *item);
    if (item == NULL)
        return fr_sh_full(sh);
    item->word = word;
    name_unknown(sh, variable, word.text);
    return fr_sh_set(sh, variable,
                     (fr_sh_value){.kind = FR_SH_TEXT, .items = item, .n = 1});
}

fr_status fr_sh_set_items(fr_sh *sh, fr_sh_variable *variable,
                          fr_sh_value_kind kind, const fr_sh_item *items,
                          size_t n)
{
    fr_sh_item *copy = fr_sh_alloc(sh, n, sizeof *copy);
    if (copy == NULL)
        return fr_sh_full(sh);
    if (n > 0)
        memcpy(copy, items, n * sizeof *copy);
    return fr_sh_set(sh, variable,
                     (fr_sh_value){.kind = kind, .items = copy, .n = n});
}

fr_status fr_sh_set_item(fr_sh *sh, fr_sh_variable *variable, fr_sh_item item)
{
    const fr_sh_value *old = &variable->value;
    const bool is_map = old->kind == FR_SH_MAP;
    size_t at = 0, n_old = old->kind == FR_SH_UNSET ? 0 : old->n;
    while (at < n_old && (is_map ? strcmp(old->items[at].key, item.key) != 0
                                 : old->items[at].index < item.index))
        at++;
    const bool is_same =
        at < n_old && (is_map || old->items[at].index == item.index);
    fr_sh_item *items = fr_sh_alloc(sh, n_old + 1, sizeof *items);
    if (items == NULL)
        return fr_sh_full(sh);
    if (at > 0)
        memcpy(items, old->items, at * sizeof *items);
    items[at] = item;
    if (n_old > at + is_same)
        memcpy(items + at + 1, old->items + at + is_same,
               (n_old - at - is_same) * sizeof *items);
    name_unknown(sh, variable, item.word.text);
    return fr_sh_set(sh, variable,
                     (fr_sh_value){.kind = is_map ? FR_SH_MAP : FR_SH_ARRAY,
                                   .items = items,
                                   .n = n_old + !is_same});
}
