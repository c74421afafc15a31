/* shell_assign.c: NAME=word, NAME=(words), declare and its like. */
#include "core/shell/shell_eval.h"
#include "core/shell/shell_expand.h"

#include <string.h>

typedef fr_vec(fr_sh_item) item_list;

/* ---- arrays -------------------------------------------------------------- */

static fr_status add_item(fr_sh *sh, bool is_map, const char *key,
                          fr_shell_word word, item_list *items)
{
    fr_sh_item item = {.key = key, .word = word};
    size_t unknown = 0, at = items->n;
    if (is_map) {
        for (at = 0; at < items->n; at++)
            if (strcmp(items->items[at].key, key) == 0)
                break;
    } else {
        FR_TRY(fr_sh_sum(sh, key, &item.index, &unknown));
        if (unknown > 0)
            return fr_sh_refuse(sh, "a subscript is unknown");
        for (at = items->n; at > 0; at--)
            if (items->items[at - 1].index < item.index)
                break;
        if (at < items->n && items->items[at].index != item.index)
            return fr_sh_refuse(sh, "the subscripts of a list must ascend");
    }
    if (at < items->n)
        items->items[at] = item;
    else
        FR_TRY_PUSH(items, item, sh->err);
    return FR_OK;
}

/* [key]=word of a list; false: it is a word. */
static fr_status read_keyed(fr_sh *sh, fr_sh_slice word, bool is_map,
                            item_list *items, bool *is_keyed)
{
    const char *close =
        word.n > 0 && *word.at == '[' ? memchr(word.at, ']', word.n) : NULL;
    *is_keyed =
        close != NULL && close + 1 < word.at + word.n && close[1] == '=';
    if (!*is_keyed)
        return FR_OK;
    const fr_sh_slice key = {.at = word.at + 1,
                             .n = (size_t)(close - word.at) - 1,
                             .line = word.line};
    const fr_sh_slice value = {.at = close + 2,
                               .n = (size_t)(word.at + word.n - close) - 2,
                               .line = word.line};
    const char *name;
    fr_shell_word item = {.line = word.line};
    FR_TRY(fr_sh_expand_text(sh, key, &name));
    FR_TRY(fr_sh_expand_text(sh, value, &item.text));
    return add_item(sh, is_map, name, item, items);
}

static fr_status read_words(fr_sh *sh, fr_sh_slice word, item_list *items)
{
    fr_shell_words words = {0};
    fr_status status = fr_sh_expand_words(sh, word, &words);
    for (size_t i = 0; i < words.n && status == FR_OK; i++) {
        const fr_sh_item item = {
            .key = words.items[i].text,
            .index = items->n > 0 ? items->items[items->n - 1].index + 1 : 0,
            .word = words.items[i]};
        if (fr_vec_push(items, item) != FR_OK)
            status = fr_fail_no_memory(sh->err);
    }
    fr_vec_release(&words);
    return status;
}

/* (words), with the old items before them in `items`. */
static fr_status read_list(fr_sh *sh, fr_sh_slice value, bool is_map,
                           item_list *items)
{
    fr_sh_reader in = {.arena = &sh->out->arena,
                       .path = sh->path,
                       .begin = value.at,
                       .p = value.at + 1,
                       .end = value.at + value.n,
                       .line = value.line,
                       .n_nodes = &sh->n_nodes,
                       .err = sh->err};
    for (;;) {
        fr_sh_slice word;
        bool is_keyed;
        FR_TRY(fr_sh_skip_blanks(&in, true));
        if (in.p >= in.end || *in.p == ')')
            return FR_OK;
        FR_TRY(fr_sh_take_word(&in, &word));
        if (word.n == 0) {
            in.p++;
            continue;
        }
        FR_TRY(read_keyed(sh, word, is_map, items, &is_keyed));
        if (!is_keyed)
            FR_TRY(read_words(sh, word, items));
    }
}

static fr_status assign_list(fr_sh *sh, fr_sh_variable *variable,
                             fr_sh_slice value, bool is_added)
{
    const fr_sh_value *old = &variable->value;
    const bool is_map = old->kind == FR_SH_MAP;
    item_list items = {0};
    fr_status status = FR_OK;
    for (size_t i = 0; is_added && i < old->n && status == FR_OK; i++)
        if (fr_vec_push(&items, old->items[i]) != FR_OK)
            status = fr_fail_no_memory(sh->err);
    if (status == FR_OK)
        status = read_list(sh, value, is_map, &items);
    if (status == FR_OK)
        status = fr_sh_set_items(sh, variable, is_map ? FR_SH_MAP : FR_SH_ARRAY,
                                 items.items, items.n);
    fr_vec_release(&items);
    return status;
}

/* ---- texts --------------------------------------------------------------- */

static fr_status join_texts(fr_sh *sh, const char *a, const char **b)
{
    const size_t n_a = strlen(a), n_b = strlen(*b);
    char *text = fr_sh_alloc(sh, n_a + n_b + 1, 1);
    if (text == NULL || n_a + n_b > FR_SH_WORD_BYTES_MAX)
        return fr_sh_full(sh);
    memcpy(text, a, n_a);
    memcpy(text + n_a, *b, n_b);
    *b = text;
    return FR_OK;
}

/* The text of an item before NAME[i]+=word. */
static const char *old_text(const fr_sh_value *value, const fr_sh_item *item)
{
    for (size_t i = 0; i < value->n; i++)
        if (value->kind == FR_SH_MAP
                ? strcmp(value->items[i].key, item->key) == 0
                : value->items[i].index == item->index)
            return value->items[i].word.text;
    return "";
}

static fr_status assign_item(fr_sh *sh, fr_sh_variable *variable,
                             fr_sh_slice subscript, fr_shell_word word,
                             bool is_added)
{
    fr_sh_item item = {.key = "0", .word = word};
    size_t unknown = 0;
    if (subscript.n > 0)
        FR_TRY(fr_sh_expand_text(sh, subscript, &item.key));
    if (variable->value.kind == FR_SH_MAP)
        unknown = fr_sh_unknown_in(item.key);
    else
        FR_TRY(fr_sh_sum(sh, item.key, &item.index, &unknown));
    if (unknown > 0)
        return FR_OK; /* some item: those that are known stay */
    if (is_added)
        FR_TRY(
            join_texts(sh, old_text(&variable->value, &item), &item.word.text));
    return fr_sh_set_item(sh, variable, item);
}

fr_status fr_sh_assign(fr_sh *sh, fr_sh_slice slice, size_t n_name,
                       bool is_local)
{
    const bool is_added = slice.at[n_name] == '+';
    const size_t skip = n_name + 1 + is_added;
    const fr_sh_slice value = {
        .at = slice.at + skip, .n = slice.n - skip, .line = slice.line};
    size_t n = 0;
    fr_sh_variable *variable;
    while (n < n_name && fr_sh_is_name(slice.at[n]))
        n++;
    FR_TRY(fr_sh_step(sh));
    FR_TRY(fr_sh_declare(sh, slice.at, n, is_local, &variable));
    if (value.n > 1 && *value.at == '(' && value.at[value.n - 1] == ')' &&
        n == n_name)
        return assign_list(sh, variable, value, is_added);
    fr_shell_word word = {.line = slice.line};
    FR_TRY(fr_sh_expand_text(sh, value, &word.text));
    const fr_sh_slice subscript = {.at = slice.at + n + 1,
                                   .n = n < n_name ? n_name - n - 2 : 0,
                                   .line = slice.line};
    if (n < n_name || variable->value.kind == FR_SH_ARRAY ||
        variable->value.kind == FR_SH_MAP)
        return assign_item(sh, variable, subscript, word, is_added);
    if (is_added && variable->is_known && variable->value.n > 0) {
        FR_TRY(join_texts(sh, variable->value.items[0].word.text, &word.text));
        word.line = variable->value.items[0].word.line;
    } else if (is_added && !variable->is_known) {
        char name[96];
        size_t number;
        fr_buffer text;
        if (n > 80)
            return fr_sh_refuse(sh, "a name is too long");
        name[0] = '$';
        memcpy(name + 1, slice.at, n);
        name[n + 1] = '\0';
        FR_TRY(fr_sh_unknown(sh, name + 1, name, &number));
        fr_buffer_init(&text);
        fr_sh_put_unknown(&text, number);
        fr_status status = join_texts(sh, fr_buffer_text(&text), &word.text);
        fr_buffer_release(&text);
        FR_TRY(status);
    }
    return fr_sh_set_text(sh, variable, word);
}

/* ---- declare ------------------------------------------------------------- */

/* A name or an assignment, expanded: export "A=b", declare $NAME=1. */
static fr_status declare_text(fr_sh *sh, fr_sh_slice word, bool is_map,
                              bool is_local)
{
    const char *text;
    fr_sh_variable *variable;
    FR_TRY(fr_sh_expand_text(sh, word, &text));
    const size_t n = strcspn(text, "=");
    for (size_t i = 0; i < n; i++)
        if (!fr_sh_is_name(text[i]))
            return FR_OK;
    if (n == 0)
        return FR_OK;
    if (text[n] == '=') {
        const fr_shell_word value = {.text = text + n + 1, .line = word.line};
        FR_TRY(fr_sh_declare(sh, text, n, is_local, &variable));
        return fr_sh_set_text(sh, variable, value);
    }
    if (!is_map && !is_local)
        return FR_OK; /* export NAME: it stays what it is */
    FR_TRY(fr_sh_declare(sh, text, n, is_local, &variable));
    return fr_sh_set_items(sh, variable, is_map ? FR_SH_MAP : FR_SH_UNSET, NULL,
                           0);
}

fr_status fr_sh_declare_words(fr_sh *sh, const fr_sh_word *words)
{
    const bool is_of_function = fr_sh_slice_is(words->text, "local") ||
                                fr_sh_slice_is(words->text, "declare") ||
                                fr_sh_slice_is(words->text, "typeset");
    bool is_local = is_of_function && sh->scope > 0, is_map = false;
    for (words = words->next; words != NULL; words = words->next) {
        const fr_sh_slice word = words->text;
        const size_t n_name = fr_sh_assignment(word.at, word.n);
        if (word.n > 1 && (*word.at == '-' || *word.at == '+')) {
            is_map |= memchr(word.at, 'A', word.n) != NULL;
            is_local &= memchr(word.at, 'g', word.n) == NULL;
            if (memchr(word.at, 'f', word.n) != NULL ||
                memchr(word.at, 'p', word.n) != NULL)
                return FR_OK;
            continue;
        }
        if (n_name == 0) {
            FR_TRY(declare_text(sh, word, is_map, is_local));
            continue;
        }
        if (is_map) {
            const fr_sh_slice name = {
                .at = word.at, .n = n_name, .line = word.line};
            FR_TRY(declare_text(sh, name, true, is_local));
        }
        FR_TRY(fr_sh_assign(sh, word, n_name, is_local));
    }
    sh->last = (fr_sh_status){0};
    return FR_OK;
}
