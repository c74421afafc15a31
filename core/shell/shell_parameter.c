/* shell_parameter.c: $NAME and ${...} (POSIX.1-2017, 2.6.2, and bash). */
#include "core/shell/shell_expand.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { PATTERN_TEXT_MAX = 2048 }; /* patterns are tried at each character */

/* The parts of ${NAME[subscript]operator}. */
typedef struct parts {
    fr_sh *sh;
    const char *name;
    size_t n_name;
    const char *subscript; /* NULL: none */
    size_t n_subscript;
    const char *rest; /* from the operator on */
    size_t n_rest;
    char number[32]; /* of an argument after shift */
    bool is_quoted;
    bool is_outside; /* of the script's environment: it does not set it */
} parts;

/* ---- values -------------------------------------------------------------- */

static fr_status give_words(fr_sh *sh, size_t n, fr_sh_parameter *out)
{
    out->n = n;
    out->words = fr_sh_alloc(sh, n, sizeof *out->words);
    return out->words != NULL ? FR_OK : fr_sh_full(sh);
}

static fr_status give_text(fr_sh *sh, const char *text, size_t n,
                           fr_sh_parameter *out)
{
    FR_TRY(give_words(sh, 1, out));
    const char *copy = fr_sh_copy(sh, text, n);
    if (copy == NULL)
        return fr_sh_full(sh);
    out->words[0] = (fr_shell_word){.text = copy, .line = sh->line};
    out->is_set = true;
    return FR_OK;
}

static fr_status give_number(fr_sh *sh, long long value, fr_sh_parameter *out)
{
    char text[32];
    const int n = snprintf(text, sizeof text, "%lld", value);
    return give_text(sh, text, (size_t)n, out);
}

/* "$NAME", unknown. */
static fr_status give_unknown(fr_sh *sh, const char *name, size_t n,
                              fr_sh_parameter *out)
{
    char text[96], mark[32];
    size_t number;
    snprintf(text, sizeof text, "$%.*s", (int)(n < 80 ? n : 80), name);
    const char *settable = *name == '#' ? "1" : text + 1;
    const bool is_named = fr_sh_is_name(*name) || *name == '#';
    FR_TRY(fr_sh_unknown(sh, is_named ? settable : NULL, text, &number));
    const int n_mark = snprintf(mark, sizeof mark, "%c%zu%c", FR_SH_UNKNOWN,
                                number, FR_SH_UNKNOWN_END);
    return give_text(sh, mark, (size_t)n_mark, out);
}

static fr_status read_arguments(fr_sh *sh, char c, fr_sh_parameter *out)
{
    out->is_list = c == '@';
    FR_TRY(give_words(sh, sh->arguments.n, out));
    if (sh->arguments.n > 0)
        memcpy(out->words, sh->arguments.words,
               sh->arguments.n * sizeof *out->words);
    out->is_set = sh->arguments.n > 0;
    return FR_OK;
}

static fr_status read_special(parts *x, fr_sh_parameter *out)
{
    fr_sh *sh = x->sh;
    const char c = *x->name;
    if (c == '@' || c == '*')
        return read_arguments(sh, c, out);
    if (c == '#')
        return sh->arguments.is_known
                   ? give_number(sh, (long long)sh->arguments.n, out)
                   : give_unknown(sh, x->name, 1, out);
    if (c == '?' && sh->last.unknown == 0)
        return give_number(sh, sh->last.code, out);
    if (c == '-')
        return give_text(sh, "hB", 2, out);
    if (isdigit((unsigned char)c) == 0)
        return give_unknown(sh, x->name, 1, out);
    const long long i = strtoll(x->name, NULL, 10);
    if (i == 0)
        return give_text(sh, sh->request->path, strlen(sh->request->path), out);
    if (i > 0 && (size_t)i <= sh->arguments.n) {
        const char *text = sh->arguments.words[i - 1].text;
        return give_text(sh, text, strlen(text), out);
    }
    if (!sh->arguments.is_open)
        return FR_OK;
    if (sh->arguments.n_shifted > 0 && i > 0) {
        const int n = snprintf(x->number, sizeof x->number, "%lld",
                               i + (long long)sh->arguments.n_shifted);
        x->name = x->number;
        x->n_name = (size_t)n;
    }
    x->is_outside = true;
    return FR_OK;
}

/* All items, or one by its subscript. */
static fr_status read_items(parts *x, const fr_sh_value *value,
                            fr_sh_parameter *out)
{
    fr_sh *sh = x->sh;
    const char *sub = x->subscript;
    const bool is_all =
        sub != NULL && x->n_subscript == 1 && (*sub == '@' || *sub == '*');
    if (is_all) {
        out->is_list = *sub == '@';
        out->is_set = value->n > 0;
        FR_TRY(give_words(sh, value->n, out));
        for (size_t i = 0; i < value->n; i++)
            out->words[i] = value->items[i].word;
        return FR_OK;
    }
    const char *key = "0";
    int64_t index = 0;
    size_t unknown = 0;
    const fr_sh_slice slice = {
        .at = sub, .n = x->n_subscript, .line = sh->line};
    if (sub != NULL)
        FR_TRY(fr_sh_expand_text(sh, slice, &key));
    if (value->kind != FR_SH_MAP && sub != NULL)
        FR_TRY(fr_sh_sum(sh, key, &index, &unknown));
    else
        unknown = fr_sh_unknown_in(key);
    if (unknown > 0) {
        const char *text = sh->out->unknown.items[unknown - 1].text;
        return give_unknown(sh, text + 1, strlen(text) - 1, out);
    }
    if (index < 0 && value->n > 0)
        index += value->items[value->n - 1].index + 1;
    for (size_t i = 0; i < value->n; i++)
        if (value->kind == FR_SH_MAP ? strcmp(value->items[i].key, key) == 0
                                     : value->items[i].index == index) {
            const fr_shell_word word = value->items[i].word;
            FR_TRY(give_text(sh, word.text, strlen(word.text), out));
            out->words[0].line = word.line;
            return FR_OK;
        }
    return FR_OK;
}

static bool is_name_of(const parts *x, const char *name)
{
    return strlen(name) == x->n_name && memcmp(x->name, name, x->n_name) == 0;
}

static fr_status read_value(parts *x, fr_sh_parameter *out)
{
    fr_sh *sh = x->sh;
    if (!fr_sh_is_name_start(*x->name))
        return read_special(x, out);
    const fr_sh_variable *v = fr_sh_find(sh, x->name, x->n_name);
    if (v != NULL && (v->is_known || v->is_fixed))
        return v->value.kind == FR_SH_UNSET ? FR_OK
                                            : read_items(x, &v->value, out);
    if (is_name_of(x, "PWD") && sh->folder != NULL)
        return give_text(sh, sh->folder, strlen(sh->folder), out);
    if (is_name_of(x, "BASH_SOURCE"))
        return give_text(sh, sh->path, strlen(sh->path), out);
    x->is_outside = true;
    return FR_OK;
}

/* ---- operators ----------------------------------------------------------- */

/* The word after an operator as it stands, split unless it is quoted. */
static fr_status read_word(parts *x, size_t skip, fr_sh_parameter *out)
{
    fr_sh *sh = x->sh;
    const fr_sh_slice slice = {
        .at = x->rest + skip, .n = x->n_rest - skip, .line = sh->line};
    const char *text;
    *out = (fr_sh_parameter){.is_set = true};
    if (x->is_quoted) {
        FR_TRY(fr_sh_expand_text(sh, slice, &text));
        return give_text(sh, text, strlen(text), out);
    }
    fr_shell_words words = {0};
    fr_status status = fr_sh_expand_words(sh, slice, &words);
    if (status == FR_OK)
        status = give_words(sh, words.n, out);
    if (status == FR_OK && words.n > 0)
        memcpy(out->words, words.items, words.n * sizeof *words.items);
    out->is_list = words.n > 1;
    fr_vec_release(&words);
    return status;
}

static fr_status assign_default(parts *x, const fr_sh_parameter *value)
{
    fr_sh_variable *variable;
    const fr_shell_word word = {
        .text = value->n > 0 ? value->words[0].text : "", .line = x->sh->line};
    if (!fr_sh_is_name_start(*x->name))
        return FR_OK;
    FR_TRY(fr_sh_declare(x->sh, x->name, x->n_name, false, &variable));
    return fr_sh_set_text(x->sh, variable, word);
}

/* A value that is nothing but one of the environment, or an argument. */
static bool is_outside_value(const fr_sh *sh, const fr_sh_parameter *value)
{
    if (value->n != 1 || !fr_shell_is_unknown(value->words[0].text))
        return false;
    const size_t number = fr_sh_unknown_in(value->words[0].text);
    return sh->out->unknown.items[number - 1].text[1] != '(';
}

/* - = + ? and the same after ":"; false: another operator. */
static fr_status use_default(parts *x, fr_sh_parameter *out, bool *is_done)
{
    const bool has_colon = x->n_rest > 1 && x->rest[0] == ':';
    const char c = x->n_rest > has_colon ? x->rest[has_colon] : '\0';
    *is_done = c != '\0' && strchr("-=+?", c) != NULL;
    if (!*is_done)
        return FR_OK;
    const bool is_empty = out->n == 0 || (out->n == 1 && !out->is_list &&
                                          *out->words[0].text == '\0');
    const bool is_absent = x->is_outside || !out->is_set ||
                           (has_colon && is_empty) ||
                           is_outside_value(x->sh, out);
    if (c == '+') {
        if (!is_absent)
            return read_word(x, 1 + (size_t)has_colon, out);
        *out = (fr_sh_parameter){0};
        return FR_OK;
    }
    if (c == '?' && x->is_outside)
        return give_unknown(x->sh, x->name, x->n_name, out);
    if (!is_absent || c == '?')
        return FR_OK;
    FR_TRY(read_word(x, 1 + (size_t)has_colon, out));
    return c == '=' ? assign_default(x, out) : FR_OK;
}

/* The pattern of an operator, unknown or not. */
static fr_status read_pattern(parts *x, const char *from, size_t n,
                              const char **out)
{
    const fr_sh_slice slice = {.at = from, .n = n, .line = x->sh->line};
    return fr_sh_expand_pattern(x->sh, slice, out);
}

static bool is_plain(const char *pattern)
{
    return strpbrk(pattern, "*?[\\") == NULL;
}

/* ${X#a} ${X##a} ${X%a} ${X%%a} */
static fr_status cut_word(parts *x, fr_shell_word *word)
{
    const char c = x->rest[0];
    const bool is_longest = x->n_rest > 1 && x->rest[1] == c;
    const char *pattern, *text = word->text;
    FR_TRY(read_pattern(x, x->rest + 1 + is_longest, x->n_rest - 1 - is_longest,
                        &pattern));
    size_t n = strlen(text);
    if (n > PATTERN_TEXT_MAX)
        return fr_sh_refuse(x->sh, "a pattern for so long a text is not tried");
    fr_sh_cut(pattern, c == '%', is_longest, &text, &n);
    word->text = fr_sh_copy(x->sh, text, n);
    return word->text != NULL ? FR_OK : fr_sh_full(x->sh);
}

/* ${X/a/b} ${X//a/b} ${X/#a/b} ${X/%a/b} */
static fr_status replace_in_word(parts *x, fr_shell_word *word)
{
    const char *from = x->rest + 1, *end = x->rest + x->n_rest;
    const char how = from < end && strchr("/#%", *from) != NULL ? *from : '\0';
    const char *pattern, *with, *text = word->text, *at;
    fr_buffer to;
    from += how != '\0';
    const char *slash = from;
    while (slash < end && *slash != '/')
        slash += *slash == '\\' && slash + 1 < end ? 2 : 1;
    FR_TRY(read_pattern(x, from, (size_t)(slash - from), &pattern));
    const fr_sh_slice rest = {.at = slash < end ? slash + 1 : end,
                              .n = slash < end ? (size_t)(end - slash) - 1 : 0,
                              .line = x->sh->line};
    FR_TRY(fr_sh_expand_text(x->sh, rest, &with));
    size_t n = strlen(text);
    if (n > PATTERN_TEXT_MAX && !is_plain(pattern))
        return fr_sh_refuse(x->sh, "a pattern for so long a text is not tried");
    fr_buffer_init(&to);
    if (how == '#' || how == '%') {
        size_t n_rest = n;
        at = text;
        fr_sh_cut(pattern, how == '%', true, &at, &n_rest);
        const bool is_match = n_rest < n || *pattern == '\0';
        fr_buffer_puts(&to, how == '#' && is_match ? with : "");
        fr_buffer_append(&to, at, n_rest);
        fr_buffer_puts(&to, how == '%' && is_match ? with : "");
        text += n;
    }
    while (*pattern != '\0' && *text != '\0' && to.n < FR_SH_WORD_BYTES_MAX) {
        n = strlen(pattern);
        at = is_plain(pattern) ? strstr(text, pattern)
                               : fr_sh_find_match(pattern, text, &n);
        if (at == NULL)
            break;
        fr_buffer_append(&to, text, (size_t)(at - text));
        fr_buffer_puts(&to, with);
        text = at + n;
        if (how != '/')
            break;
    }
    fr_buffer_puts(&to, text);
    fr_status status = fr_buffer_check(&to, x->sh->err);
    if (status == FR_OK) {
        word->text = fr_sh_copy(x->sh, fr_buffer_text(&to), to.n);
        status = word->text != NULL ? FR_OK : fr_sh_full(x->sh);
    }
    fr_buffer_release(&to);
    return status;
}

/* ${X:2:3} of a text or of a list. */
static fr_status take_range(parts *x, fr_sh_parameter *out)
{
    const char *from = x->rest + 1, *text;
    const size_t n_all = x->n_rest - 1;
    const char *colon = memchr(from, ':', n_all);
    const size_t n_first = colon != NULL ? (size_t)(colon - from) : n_all;
    const fr_sh_slice first = {.at = from, .n = n_first, .line = x->sh->line};
    int64_t begin, length = INT32_MAX, n;
    size_t unknown;
    const bool is_arguments = *x->name == '@' || *x->name == '*';
    FR_TRY(fr_sh_expand_document(x->sh, first, &text));
    FR_TRY(fr_sh_sum(x->sh, text, &begin, &unknown));
    if (colon != NULL && unknown == 0) {
        const fr_sh_slice second = {
            .at = colon + 1, .n = n_all - n_first - 1, .line = x->sh->line};
        FR_TRY(fr_sh_expand_document(x->sh, second, &text));
        FR_TRY(fr_sh_sum(x->sh, text, &length, &unknown));
    }
    if (unknown > 0)
        return give_unknown(x->sh, x->name, x->n_name, out);
    if (out->n == 0)
        return FR_OK;
    n = out->is_list ? (int64_t)out->n : (int64_t)strlen(out->words[0].text);
    begin -= is_arguments && begin > 0;
    begin = begin < 0 ? begin + n : begin;
    begin = begin < 0 || begin > n ? n : begin;
    length = length < 0 ? n - begin + length : length;
    length = length < 0 ? 0 : length > n - begin ? n - begin : length;
    if (!out->is_list)
        return give_text(x->sh, out->words[0].text + begin, (size_t)length,
                         out);
    out->words += begin;
    out->n = (size_t)length;
    return FR_OK;
}

/* ${X^^} ${X,,} ${X^} ${X,} */
static fr_status change_case(parts *x, fr_shell_word *word)
{
    const bool is_all = x->n_rest > 1 && x->rest[1] == x->rest[0];
    char *text = fr_sh_copy(x->sh, word->text, strlen(word->text));
    if (text == NULL)
        return fr_sh_full(x->sh);
    for (char *p = text; *p != '\0' && (is_all || p == text); p++)
        *p = (char)(x->rest[0] == '^' ? toupper((unsigned char)*p)
                                      : tolower((unsigned char)*p));
    word->text = text;
    return FR_OK;
}

/* An operator that makes each value another. */
static fr_status change_words(parts *x, fr_sh_parameter *out)
{
    for (size_t i = 0; i < out->n; i++) {
        fr_shell_word *word = &out->words[i];
        FR_TRY(fr_sh_step(x->sh));
        if (fr_sh_unknown_in(word->text) > 0)
            continue; /* stays as unknown as it is */
        switch (x->rest[0]) {
        case '#':
        case '%':
            FR_TRY(cut_word(x, word));
            break;
        case '/':
            FR_TRY(replace_in_word(x, word));
            break;
        case '^':
        case ',':
            FR_TRY(change_case(x, word));
            break;
        default:
            break;
        }
    }
    return FR_OK;
}

/* ---- ${...} -------------------------------------------------------------- */

static fr_status read_length(parts *x, fr_sh_parameter *out)
{
    fr_sh_parameter value = {0};
    FR_TRY(read_value(x, &value));
    const bool is_all = x->n_subscript == 1 && strchr("@*", *x->subscript);
    if (is_all || *x->name == '@' || *x->name == '*')
        return give_number(x->sh, (long long)value.n, out);
    if (value.n > 0 && fr_sh_unknown_in(value.words[0].text) > 0) {
        *out = value;
        return FR_OK;
    }
    if (x->is_outside)
        return give_unknown(x->sh, x->name, x->n_name, out);
    return give_number(
        x->sh, value.n > 0 ? (long long)strlen(value.words[0].text) : 0, out);
}

/* ${!A[@]}: the subscripts. */
static fr_status read_keys(parts *x, fr_sh_parameter *out)
{
    const fr_sh_variable *v = fr_sh_find(x->sh, x->name, x->n_name);
    const size_t n = v != NULL ? v->value.n : 0;
    FR_TRY(give_words(x->sh, n, out));
    out->is_list = true;
    out->is_set = n > 0;
    for (size_t i = 0; i < n; i++) {
        fr_sh_parameter key = {0};
        const fr_sh_item *item = &v->value.items[i];
        if (v->value.kind == FR_SH_MAP)
            FR_TRY(give_text(x->sh, item->key, strlen(item->key), &key));
        else
            FR_TRY(give_number(x->sh, item->index, &key));
        out->words[i] = key.words[0];
    }
    return FR_OK;
}

static void cut_parts(const char *at, size_t n, parts *x)
{
    size_t i = 0;
    if (n > 0 && fr_sh_is_name_start(at[0]))
        while (i < n && fr_sh_is_name(at[i]))
            i++;
    else if (n > 0 && isdigit((unsigned char)at[0]) != 0)
        while (i < n && isdigit((unsigned char)at[i]) != 0)
            i++;
    else
        i = n > 0;
    x->name = at;
    x->n_name = i;
    if (i < n && at[i] == '[') {
        int depth = 0;
        size_t k = i;
        for (; k < n; k++) {
            depth += (at[k] == '[') - (at[k] == ']');
            if (depth == 0)
                break;
        }
        x->subscript = at + i + 1;
        x->n_subscript = k > i ? k - i - 1 : 0;
        i = k < n ? k + 1 : n;
    }
    x->rest = at + i;
    x->n_rest = n - i;
}

/* ${!X}: the variable that X names. */
static fr_status read_named(parts *x, fr_sh_parameter *out)
{
    fr_sh_parameter name = {0};
    FR_TRY(read_value(x, &name));
    if (x->is_outside ||
        (name.n > 0 && fr_sh_unknown_in(name.words[0].text) > 0))
        return give_unknown(x->sh, x->name, x->n_name, out);
    if (name.n == 0 || *name.words[0].text == '\0')
        return FR_OK;
    const char *rest = x->rest;
    const size_t n_rest = x->n_rest;
    cut_parts(name.words[0].text, strlen(name.words[0].text), x);
    x->rest = rest;
    x->n_rest = n_rest;
    return read_value(x, out);
}

fr_status fr_sh_parameter_read(fr_sh *sh, const char *at, size_t n,
                               bool has_braces, bool is_quoted,
                               fr_sh_parameter *out)
{
    parts x = {.sh = sh, .is_quoted = is_quoted};
    bool is_done = false;
    *out = (fr_sh_parameter){0};
    FR_TRY(fr_sh_step(sh));
    if (has_braces && n > 1 && at[0] == '#' &&
        (fr_sh_is_name(at[1]) || at[1] == '@' || at[1] == '*')) {
        cut_parts(at + 1, n - 1, &x);
        return read_length(&x, out);
    }
    const bool is_indirect =
        has_braces && n > 1 && at[0] == '!' && fr_sh_is_name(at[1]);
    cut_parts(at + is_indirect, n - is_indirect, &x);
    if (x.n_name == 0)
        return fr_sh_refuse(sh, "${} without a name");
    if (is_indirect && x.subscript != NULL)
        return read_keys(&x, out);
    FR_TRY(is_indirect ? read_named(&x, out) : read_value(&x, out));
    if (x.n_rest > 0)
        FR_TRY(use_default(&x, out, &is_done));
    if (is_done)
        return FR_OK;
    if (x.is_outside)
        return give_unknown(sh, x.name, x.n_name, out);
    if (x.n_rest > 0 && x.rest[0] == ':')
        return take_range(&x, out);
    return x.n_rest > 0 ? change_words(&x, out) : FR_OK;
}
