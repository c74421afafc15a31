/* shell_expand.c: the words that a script's word expands to (POSIX.1-2017, 2.6
 * Word Expansions, and braces). */
#include "core/shell/shell_expand.h"

#include "core/base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum expand_mode {
    EXPAND_WORDS,
    EXPAND_TEXT,
    EXPAND_PATTERN,
    EXPAND_DOCUMENT
} expand_mode;

/* A text that is read, and the words that are made of it. */
typedef struct expander {
    fr_sh *sh;
    fr_sh_reader in;
    expand_mode mode;
    fr_shell_words *out;
    fr_buffer word;
    bool has_word;  /* "" is one too */
    bool has_empty; /* "$@" without arguments is none */
    int line;       /* of the word */
} expander;

static fr_status expand_part(expander *x, const char *end, bool is_quoted);

/* ---- words --------------------------------------------------------------- */

static fr_status end_word(expander *x)
{
    if (!x->has_word)
        return FR_OK;
    FR_TRY(fr_buffer_check(&x->word, x->sh->err));
    fr_shell_word word = {
        .text = fr_sh_copy(x->sh, fr_buffer_text(&x->word), x->word.n),
        .line = x->line};
    if (word.text == NULL)
        return fr_sh_full(x->sh);
    FR_TRY_PUSH(x->out, word, x->sh->err);
    x->word.n = 0;
    x->has_word = false;
    return FR_OK;
}

static void put(expander *x, char c, bool is_quoted)
{
    if (x->mode == EXPAND_PATTERN && is_quoted &&
        strchr("*?[]\\@+!(|)", c) != NULL)
        fr_buffer_putc(&x->word, '\\');
    fr_buffer_putc(&x->word, c);
    x->has_word = true;
}

static bool is_separator(const expander *x, char c)
{
    const fr_sh_variable *ifs = fr_sh_find(x->sh, "IFS", 3);
    if (ifs != NULL && ifs->value.kind == FR_SH_TEXT)
        return c != '\0' && strchr(ifs->value.items[0].word.text, c) != NULL;
    return c == ' ' || c == '\t' || c == '\n';
}

/* A text that an expansion gives: cut at blanks unless it is quoted. */
static fr_status put_text(expander *x, const char *text, bool is_quoted)
{
    const bool splits = x->mode == EXPAND_WORDS && !is_quoted;
    if (x->word.n + strlen(text) > FR_SH_WORD_BYTES_MAX)
        return fr_sh_refuse(x->sh, "a longer word than a launch script has; "
                                   "give its arguments alone");
    x->has_word |= is_quoted;
    for (; *text != '\0'; text++) {
        if (splits && is_separator(x, *text))
            FR_TRY(end_word(x));
        else
            put(x, *text, is_quoted);
    }
    return FR_OK;
}

static fr_status put_parameter(expander *x, const fr_sh_parameter *parameter,
                               bool is_quoted)
{
    const bool is_split = parameter->is_list && x->mode == EXPAND_WORDS;
    x->has_empty |= parameter->n == 0 && is_quoted && parameter->is_list;
    for (size_t i = 0; i < parameter->n; i++) {
        const fr_shell_word *word = &parameter->words[i];
        if (i > 0 && (is_split || (x->mode == EXPAND_WORDS && !is_quoted)))
            FR_TRY(end_word(x));
        else if (i > 0)
            put(x, ' ', is_quoted);
        if (is_split)
            x->line = word->line;
        FR_TRY(put_text(x, word->text, is_quoted));
    }
    return FR_OK;
}

/* ---- after a dollar ------------------------------------------------------ */

/* $'...': from the text to its closing quote. */
static void put_escaped(expander *x, const char *p, const char *end)
{
    static const char letters[] = "nrtabefv\\'\"?";
    static const char values[] = "\n\r\t\a\b\033\f\v\\'\"?";
    x->has_word = true;
    for (; p < end; p++) {
        const char *letter =
            *p == '\\' && p + 1 < end ? strchr(letters, p[1]) : NULL;
        put(x, letter != NULL ? values[letter - letters] : *p, true);
        p += letter != NULL;
    }
}

static fr_status put_sum(expander *x, const char *from, const char *to,
                         bool is_quoted)
{
    char number[32];
    const char *text;
    int64_t value;
    size_t unknown;
    const fr_sh_slice slice = {
        .at = from, .n = (size_t)(to - from), .line = x->in.line};
    FR_TRY(fr_sh_expand_document(x->sh, slice, &text));
    FR_TRY(fr_sh_sum(x->sh, text, &value, &unknown));
    if (unknown > 0) {
        x->has_word = true;
        fr_sh_put_unknown(&x->word, unknown - 1);
        return FR_OK;
    }
    snprintf(number, sizeof number, "%lld", (long long)value);
    return put_text(x, number, is_quoted);
}

static fr_status put_captured(expander *x, fr_sh_slice command, bool is_quoted)
{
    fr_buffer text;
    fr_buffer_init(&text);
    fr_status status = x->sh->capture(x->sh, command, &text);
    if (status == FR_OK)
        status = put_text(x, fr_buffer_text(&text), is_quoted);
    fr_buffer_release(&text);
    return status;
}

static fr_status put_named(expander *x, const char *from, size_t n,
                           bool has_braces, bool is_quoted)
{
    fr_sh_parameter parameter;
    FR_TRY(fr_sh_parameter_read(x->sh, from, n, has_braces, is_quoted,
                                &parameter));
    return put_parameter(x, &parameter, is_quoted);
}

static fr_status expand_dollar(expander *x, bool is_quoted)
{
    const char *from = x->in.p + 1, *end = x->in.end;
    const int line = x->in.line;
    bool is_sum;
    if (from < end && *from == '(') {
        x->in.p++;
        FR_TRY(fr_sh_pass_brackets(&x->in, &is_sum));
        if (is_sum)
            return put_sum(x, from + 2, x->in.p - 2, is_quoted);
        const fr_sh_slice command = {
            .at = from + 1, .n = (size_t)(x->in.p - from) - 2, .line = line};
        return put_captured(x, command, is_quoted);
    }
    if (from < end && *from == '\'' && is_quoted) {
        x->in.p++;
        put(x, '$', true);
        return FR_OK;
    }
    FR_TRY(fr_sh_pass_dollar(&x->in));
    if (from < end && *from == '{')
        return put_named(x, from + 1, (size_t)(x->in.p - from) - 2, true,
                         is_quoted);
    if (from < end && *from == '\'') {
        put_escaped(x, from + 1, x->in.p - 1);
        return FR_OK;
    }
    const char *to = from;
    if (to < end && fr_sh_is_name_start(*to))
        while (to < end && fr_sh_is_name(*to))
            to++;
    else if (to < end && strchr("@*#?$!0123456789-", *to) != NULL)
        to++;
    x->in.p = to;
    if (to > from)
        return put_named(x, from, (size_t)(to - from), false, is_quoted);
    put(x, '$', is_quoted);
    return FR_OK;
}

/* `command`, from the first backtick: \` \$ \\ lose their backslash. */
static fr_status expand_backticks(expander *x, bool is_quoted)
{
    const char *from = x->in.p + 1;
    const int line = x->in.line;
    FR_TRY(fr_sh_pass_quoted(&x->in));
    const size_t n = (size_t)(x->in.p - from) - 1;
    char *text = fr_sh_copy(x->sh, from, n), *to = text;
    if (text == NULL)
        return fr_sh_full(x->sh);
    for (const char *p = from; p < from + n; p++) {
        p += *p == '\\' && p + 1 < from + n && strchr("`$\\", p[1]) != NULL;
        *to++ = *p;
    }
    const fr_sh_slice command = {
        .at = text, .n = (size_t)(to - text), .line = line};
    return put_captured(x, command, is_quoted);
}

/* ---- the text ------------------------------------------------------------ */

static fr_status expand_quoted(expander *x)
{
    const char *from = x->in.p + 1;
    const bool is_double = *x->in.p == '"';
    const bool had_word = x->has_word;
    const size_t n_word = x->word.n, n_words = x->out->n;
    fr_sh_reader after = x->in;
    x->has_word = true;
    x->has_empty = false;
    FR_TRY(fr_sh_pass_quoted(&after));
    if (is_double) {
        x->in.p++;
        FR_TRY(expand_part(x, after.p - 1, true));
    } else {
        for (const char *p = from; p < after.p - 1; p++)
            put(x, *p, true);
    }
    if (x->has_empty && x->word.n == n_word && x->out->n == n_words)
        x->has_word = had_word;
    x->in.p = after.p;
    x->in.line = after.line;
    return FR_OK;
}

/* A backslash: outside of quotes it takes any meaning from the next. */
static void expand_backslash(expander *x, const char *end, bool is_quoted)
{
    x->in.p++;
    if (x->in.p >= end) {
        put(x, '\\', true);
        return;
    }
    const char c = *x->in.p++;
    if (c == '\n') {
        x->in.line++;
        return;
    }
    if (c == '\r' && x->in.p < end && *x->in.p == '\n') {
        x->in.p++;
        x->in.line++;
        return;
    }
    if (is_quoted && strchr("\"\\$`", c) == NULL)
        put(x, '\\', true);
    put(x, c, true);
}

/* `is_quoted`: within "...", or in a here-document. */
static fr_status expand_part(expander *x, const char *end, bool is_quoted)
{
    const bool is_document = x->mode == EXPAND_DOCUMENT;
    const char *whole_end = x->in.end;
    x->in.end = end;
    while (x->in.p < end) {
        const char c = *x->in.p;
        if (c == '$') {
            FR_TRY(expand_dollar(x, is_quoted));
        } else if (c == '`') {
            FR_TRY(expand_backticks(x, is_quoted));
        } else if (c == '\\') {
            expand_backslash(x, end, is_quoted);
        } else if ((c == '"' || c == '\'') && !is_quoted && !is_document) {
            FR_TRY(expand_quoted(x));
        } else {
            x->in.line += c == '\n';
            x->in.p++;
            put(x, c, is_quoted);
        }
    }
    x->in.end = whole_end;
    return FR_OK;
}

static fr_status expand(fr_sh *sh, fr_sh_slice slice, expand_mode mode,
                        fr_shell_words *out)
{
    expander x = {.sh = sh,
                  .mode = mode,
                  .out = out,
                  .line = slice.line,
                  .in = {.arena = &sh->out->arena,
                         .path = sh->path,
                         .begin = slice.at,
                         .p = slice.at,
                         .end = slice.at + slice.n,
                         .line = slice.line,
                         .depth = sh->depth,
                         .n_nodes = &sh->n_nodes,
                         .err = sh->err}};
    FR_TRY(fr_sh_step(sh));
    fr_buffer_init(&x.word);
    fr_status status = FR_OK;
    const bool is_process = slice.n > 1 &&
                            (*slice.at == '<' || *slice.at == '>') &&
                            slice.at[1] == '(' && mode == EXPAND_WORDS;
    size_t unknown;
    if (is_process) {
        status = fr_sh_unknown(sh, NULL, "<(...)", &unknown);
        if (status == FR_OK)
            fr_sh_put_unknown(&x.word, unknown);
        x.has_word = true;
    } else {
        status = expand_part(&x, x.in.end, mode == EXPAND_DOCUMENT);
    }
    x.has_word |= mode != EXPAND_WORDS;
    if (status == FR_OK)
        status = end_word(&x);
    fr_buffer_release(&x.word);
    return status;
}

static fr_status expand_one(fr_sh *sh, fr_sh_slice slice, expand_mode mode,
                            const char **out)
{
    fr_shell_words words = {0};
    fr_status status = expand(sh, slice, mode, &words);
    if (status == FR_OK)
        *out = words.items[0].text;
    fr_vec_release(&words);
    return status;
}

fr_status fr_sh_expand_text(fr_sh *sh, fr_sh_slice slice, const char **out)
{
    return expand_one(sh, slice, EXPAND_TEXT, out);
}

fr_status fr_sh_expand_pattern(fr_sh *sh, fr_sh_slice slice, const char **out)
{
    return expand_one(sh, slice, EXPAND_PATTERN, out);
}

fr_status fr_sh_expand_document(fr_sh *sh, fr_sh_slice slice, const char **out)
{
    return expand_one(sh, slice, EXPAND_DOCUMENT, out);
}

/* ---- braces -------------------------------------------------------------- */

/* Moves past a character, or a quoted or expanded part as a whole. */
static fr_status pass_one(fr_sh_reader *in)
{
    if (*in->p == '"' || *in->p == '\'' || *in->p == '`')
        return fr_sh_pass_quoted(in);
    if (*in->p == '$')
        return fr_sh_pass_dollar(in);
    in->p += *in->p == '\\' && in->p + 1 < in->end ? 2 : 1;
    return FR_OK;
}

/* The first "{a,b}" or "{1..8}" of a slice: its brackets; NULL: none. */
static fr_status find_braces(fr_sh *sh, fr_sh_slice slice, const char **open,
                             const char **close)
{
    fr_err unused;
    fr_sh_reader in = {.arena = &sh->out->arena,
                       .path = sh->path,
                       .begin = slice.at,
                       .p = slice.at,
                       .end = slice.at + slice.n,
                       .n_nodes = &sh->n_nodes,
                       .err = &unused};
    int depth = 0;
    bool is_list = false;
    *open = NULL;
    while (in.p < in.end) {
        if (*in.p == '{' && depth++ == 0)
            *open = in.p;
        if (depth == 1 && (*in.p == ',' || (*in.p == '.' && in.p[1] == '.')))
            is_list = true;
        if (*in.p == '}' && depth > 0 && --depth == 0) {
            *close = in.p;
            if (is_list)
                return FR_OK;
            *open = NULL;
        }
        FR_TRY(pass_one(&in));
    }
    *open = NULL;
    return FR_OK;
}

/* One alternative in its place. */
static fr_status expand_choice(fr_sh *sh, fr_sh_slice slice, const char *open,
                               const char *close, fr_sh_slice choice,
                               fr_shell_words *out)
{
    const size_t n_before = (size_t)(open - slice.at);
    const size_t n_after = (size_t)(slice.at + slice.n - close) - 1;
    char *text = fr_sh_alloc(sh, n_before + choice.n + n_after + 1, 1);
    if (text == NULL)
        return fr_sh_full(sh);
    memcpy(text, slice.at, n_before);
    memcpy(text + n_before, choice.at, choice.n);
    memcpy(text + n_before + choice.n, close + 1, n_after);
    slice.at = text;
    slice.n = n_before + choice.n + n_after;
    return fr_sh_expand_words(sh, slice, out);
}

/* {1..8}; false: it is none of numbers. */
static fr_status expand_range(fr_sh *sh, fr_sh_slice slice, const char *open,
                              const char *close, bool *is_range,
                              fr_shell_words *out)
{
    char text[64] = "", number[32], *end;
    const size_t n = (size_t)(close - open) - 1;
    long long to = 0, by = 1;
    if (n < sizeof text)
        memcpy(text, open + 1, n);
    long long from = strtoll(text, &end, 10);
    bool is_numbers = end > text && fr_text_starts(end, "..");
    if (is_numbers) {
        const char *second = end + 2;
        to = strtoll(second, &end, 10);
        is_numbers = end > second;
    }
    if (is_numbers && fr_text_starts(end, ".."))
        by = strtoll(end + 2, &end, 10);
    const bool is_letters = n == 4 && memcmp(text + 1, "..", 2) == 0 &&
                            fr_sh_is_name_start(text[0]) &&
                            fr_sh_is_name_start(text[3]);
    *is_range = is_letters || (is_numbers && *end == '\0');
    if (!*is_range || by == 0)
        return FR_OK;
    if (is_letters) {
        from = text[0];
        to = text[3];
    }
    by = (by < 0) != (from > to) ? -by : by;
    for (long long i = from; by > 0 ? i <= to : i >= to; i += by) {
        const int length = is_letters
                               ? snprintf(number, sizeof number, "%c", (int)i)
                               : snprintf(number, sizeof number, "%lld", i);
        const fr_sh_slice choice = {.at = number, .n = (size_t)length};
        FR_TRY(fr_sh_step(sh));
        FR_TRY(expand_choice(sh, slice, open, close, choice, out));
    }
    return FR_OK;
}

fr_status fr_sh_expand_words(fr_sh *sh, fr_sh_slice slice, fr_shell_words *out)
{
    const char *open = NULL, *close;
    bool is_range = false;
    if (memchr(slice.at, '{', slice.n) != NULL)
        FR_TRY(find_braces(sh, slice, &open, &close));
    if (open == NULL)
        return expand(sh, slice, EXPAND_WORDS, out);
    FR_TRY(expand_range(sh, slice, open, close, &is_range, out));
    if (is_range)
        return FR_OK;
    int depth = 0;
    bool is_list = false;
    fr_sh_slice choice = {.at = open + 1};
    for (const char *p = open + 1; p <= close; p++) {
        depth += (*p == '{') - (*p == '}' && p < close);
        is_list |= *p == ',' && depth == 0;
        if (p < close && (*p != ',' || depth > 0))
            continue;
        if (!is_list)
            return expand(sh, slice, EXPAND_WORDS, out);
        choice.n = (size_t)(p - choice.at);
        FR_TRY(fr_sh_step(sh));
        FR_TRY(expand_choice(sh, slice, open, close, choice, out));
        choice.at = p + 1;
    }
    return FR_OK;
}
