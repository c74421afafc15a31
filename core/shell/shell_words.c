/* shell_words.c: see shell_words.h; POSIX.1-2017, 2.6 Word Expansions. */
#include "core/shell/shell_words.h"

#include "core/base/buffer.h"
#include "core/base/text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { MOST_WORDS = 50000, MOST_BYTES = 1 << 21, MOST_DEPTH = 8 };

/* A place in a text, and the words that are being made of it. */
typedef struct reader {
    fr_shell *shell;
    const char *path;
    const char *p, *end;
    int line, depth;
    int word_line;         /* where an expansion's word stood first; 0: here */
    fr_shell_words *words; /* where whole words go */
    fr_buffer word;        /* the one that is being read */
    bool has_word;         /* "" is one too */
    fr_err *err;
} reader;

static fr_status read_word(reader *r, bool splits);

static bool is_name_start(char c)
{
    return isalpha((unsigned char)c) != 0 || c == '_';
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) != 0 || c == '_';
}

static bool at_end(const reader *r)
{
    return r->p >= r->end;
}

/* ---- words --------------------------------------------------------------- */

static fr_status count(reader *r, size_t n_bytes)
{
    fr_shell *shell = r->shell;
    shell->n_words++;
    shell->n_bytes += n_bytes + 1;
    if (shell->n_words <= MOST_WORDS && shell->n_bytes <= MOST_BYTES)
        return FR_OK;
    return fr_fail(r->err, FR_INPUT,
                   "%s:%d: more than %d words of arguments: no such script; "
                   "give the arguments alone",
                   r->path, r->line, MOST_WORDS);
}

/* Ends the word that is being read. */
static fr_status end_word(reader *r)
{
    if (!r->has_word)
        return FR_OK;
    FR_TRY(fr_buffer_check(&r->word, r->err));
    FR_TRY(count(r, r->word.n));
    const char *text =
        fr_arena_strndup(&r->shell->arena, fr_buffer_text(&r->word), r->word.n);
    if (text == NULL)
        return fr_fail_no_memory(r->err);
    fr_shell_word word = {.text = text,
                          .line = r->word_line > 0 ? r->word_line : r->line};
    FR_TRY_PUSH(r->words, word, r->err);
    r->word.n = 0;
    r->has_word = false;
    r->word_line = 0;
    return FR_OK;
}

static void put(reader *r, char c)
{
    fr_buffer_putc(&r->word, c);
    r->has_word = true;
}

/* A text that an expansion gives: cut at blanks unless it is quoted. */
static fr_status put_text(reader *r, const char *text, bool splits)
{
    FR_TRY(count(r, strlen(text)));
    for (; *text != '\0'; text++) {
        if (splits && isspace((unsigned char)*text) != 0)
            FR_TRY(end_word(r));
        else
            put(r, *text);
    }
    return FR_OK;
}

/* All words of an array; quoted, each stays one. */
static fr_status put_words(reader *r, const fr_shell_variable *variable,
                           bool splits)
{
    for (size_t i = 0; i < variable->words.n; i++) {
        if (i > 0)
            FR_TRY(end_word(r));
        if (!splits)
            r->has_word = true;
        r->word_line = variable->words.items[i].line;
        FR_TRY(put_text(r, variable->words.items[i].text, splits));
        r->word_line = r->has_word ? variable->words.items[i].line : 0;
    }
    return FR_OK;
}

static fr_status note_unknown(reader *r, const char *name, size_t n)
{
    fr_shell_words *all = &r->shell->unknown;
    for (size_t i = 0; i < all->n; i++)
        if (strlen(all->items[i].text) == n &&
            memcmp(all->items[i].text, name, n) == 0)
            return FR_OK;
    FR_TRY(count(r, n));
    const char *text = fr_arena_strndup(&r->shell->arena, name, n);
    if (text == NULL)
        return fr_fail_no_memory(r->err);
    fr_shell_word word = {.text = text, .line = r->line};
    FR_TRY_PUSH(all, word, r->err);
    return FR_OK;
}

const fr_shell_variable *fr_shell_find_part(const fr_shell *shell,
                                            const char *name, size_t n)
{
    for (size_t i = shell->variables.n; i > 0; i--) {
        const fr_shell_variable *v = &shell->variables.items[i - 1];
        if (strlen(v->name) == n && memcmp(v->name, name, n) == 0)
            return v;
    }
    return NULL;
}

const fr_shell_variable *fr_shell_find(const fr_shell *shell, const char *name)
{
    return fr_shell_find_part(shell, name, strlen(name));
}

/* ---- expansions ---------------------------------------------------------- */

/* A part of the text as the reader's own, in its place. */
static fr_status read_part(reader *r, const char *from, const char *to,
                           bool splits)
{
    const char *p = r->p, *end = r->end;
    if (r->depth >= MOST_DEPTH)
        return fr_fail(r->err, FR_INPUT,
                       "%s:%d: defaults within defaults; write the value",
                       r->path, r->line);
    r->depth++;
    r->p = from;
    r->end = to;
    fr_status status = FR_OK;
    while (status == FR_OK && !at_end(r)) {
        status = read_word(r, splits);
        if (status == FR_OK && !at_end(r)) {
            if (splits)
                status = end_word(r);
            else
                put(r, *r->p);
            r->p++;
        }
    }
    r->depth--;
    r->p = p;
    r->end = end;
    return status;
}

/* The end of a bracket that is open before `p`; NULL: there is none. */
static const char *find_close(const char *p, const char *end, char open,
                              char close)
{
    int depth = 1;
    for (; p < end; p++) {
        if (*p == '\\' && p + 1 < end)
            p++;
        else if (*p == open)
            depth++;
        else if (*p == close && --depth == 0)
            return p;
    }
    return NULL;
}

static fr_status fail_open(const reader *r, const char *what)
{
    return fr_fail(r->err, FR_INPUT, "%s:%d: %s is left open", r->path, r->line,
                   what);
}

/* $( ... ) and $(( ... )), from the second character. */
static fr_status expand_command(reader *r, bool splits)
{
    const char *from = r->p + 1;
    const char *close = find_close(from, r->end, '(', ')');
    if (close == NULL)
        return fail_open(r, "$(");
    r->p = close + 1;
    if (*from == '(' && close > from) {
        char text[32];
        int64_t value;
        if (fr_shell_sum(r->shell, from + 1, close - 1, &value)) {
            snprintf(text, sizeof text, "%lld", (long long)value);
            return put_text(r, text, splits);
        }
    }
    return note_unknown(r, "(...)", strlen("(...)"));
}

/* ${NAME}, ${NAME[@]}, ${NAME:-word}, from the '{'. */
static fr_status expand_braces(reader *r, bool splits)
{
    const char *close = find_close(r->p + 1, r->end, '{', '}');
    if (close == NULL)
        return fail_open(r, "${");
    const char *from = r->p + 1, *to = from;
    while (to < close && (is_name(*to) || *to == '@' || *to == '*'))
        to++;
    r->p = close + 1;
    const fr_shell_variable *v =
        fr_shell_find_part(r->shell, from, (size_t)(to - from));
    bool is_all = close - to >= 3 && to[0] == '[' &&
                  (to[1] == '@' || to[1] == '*') && to[2] == ']';
    size_t n_name = (size_t)(to - from);
    if (is_all)
        to += 3;
    if (v != NULL && (v->words.n > 0 || v->is_array))
        return is_all || !v->is_array
                   ? put_words(r, v, splits)
                   : put_text(r, v->words.n > 0 ? v->words.items[0].text : "",
                              splits);
    if (to < close && *to == ':')
        to++;
    if (to < close && (*to == '-' || *to == '='))
        return read_part(r, to + 1, close, splits);
    /* The script ends without it, or asks whether it is there. */
    if (v != NULL || (to < close && (*to == '?' || *to == '+')))
        return FR_OK;
    return note_unknown(r, from, n_name);
}

/* After a '$'. */
static fr_status expand(reader *r, bool splits)
{
    if (at_end(r)) {
        put(r, '$');
        return FR_OK;
    }
    if (*r->p == '{')
        return expand_braces(r, splits);
    if (*r->p == '(')
        return expand_command(r, splits);
    if (!is_name_start(*r->p)) {
        if (strchr("@*#?$!0123456789-", *r->p) != NULL)
            r->p++; /* arguments of the script */
        else
            put(r, '$');
        return FR_OK;
    }
    const char *from = r->p;
    while (!at_end(r) && is_name(*r->p))
        r->p++;
    size_t n = (size_t)(r->p - from);
    const fr_shell_variable *v = fr_shell_find_part(r->shell, from, n);
    if (v == NULL)
        return note_unknown(r, from, n);
    if (v->words.n == 0)
        return FR_OK;
    return v->is_array ? put_text(r, v->words.items[0].text, splits)
                       : put_words(r, v, splits);
}

/* ---- the text ------------------------------------------------------------ */

static fr_status read_single_quoted(reader *r)
{
    r->has_word = true;
    while (!at_end(r) && *r->p != '\'') {
        if (*r->p == '\n')
            r->line++;
        put(r, *r->p++);
    }
    if (at_end(r))
        return fail_open(r, "a quote");
    r->p++;
    return FR_OK;
}

static fr_status read_double_quoted(reader *r)
{
    r->has_word = true;
    while (!at_end(r) && *r->p != '"') {
        char c = *r->p++;
        if (c == '\n')
            r->line++;
        if (c == '$') {
            FR_TRY(expand(r, false));
        } else if (c == '\\' && !at_end(r) && strchr("\"\\$`\n", *r->p)) {
            if (*r->p == '\n')
                r->line++;
            else
                put(r, *r->p);
            r->p++;
        } else {
            put(r, c);
        }
    }
    if (at_end(r))
        return fail_open(r, "a quote");
    r->p++;
    return FR_OK;
}

static bool ends_word(char c)
{
    return isspace((unsigned char)c) != 0 || strchr(";&|()<>", c) != NULL;
}

/* Up to a blank or an operator; words that expansions give end by themselves.
 */
static fr_status read_word(reader *r, bool splits)
{
    while (!at_end(r) && !ends_word(*r->p)) {
        char c = *r->p++;
        if (c == '\'') {
            FR_TRY(read_single_quoted(r));
        } else if (c == '"') {
            FR_TRY(read_double_quoted(r));
        } else if (c == '$') {
            FR_TRY(expand(r, splits));
        } else if (c == '`') {
            const char *close = memchr(r->p, '`', (size_t)(r->end - r->p));
            if (close == NULL)
                return fail_open(r, "a command in backticks");
            r->p = close + 1;
            FR_TRY(note_unknown(r, "(...)", strlen("(...)")));
        } else if (c == '\\' && !at_end(r)) {
            c = *r->p++;
            if (c == '\n')
                r->line++;
            else if (c != '\r')
                put(r, c);
        } else {
            put(r, c);
        }
    }
    return FR_OK;
}

/* Blanks, continued lines and comments; with `lines`, ends of lines too. */
static void skip_blanks(reader *r, bool lines)
{
    while (!at_end(r)) {
        if (*r->p == '\\' && r->p + 1 < r->end && r->p[1] == '\n') {
            r->line++;
            r->p += 2;
        } else if (*r->p == '#') {
            while (!at_end(r) && *r->p != '\n')
                r->p++;
        } else if (*r->p == '\n' && lines) {
            r->line++;
            r->p++;
        } else if (*r->p != '\n' && isspace((unsigned char)*r->p) != 0) {
            r->p++;
        } else {
            return;
        }
    }
}

/* NAME= or NAME+= here?  Then the end of the name. */
static const char *find_assignment(const reader *r, bool *is_added)
{
    const char *p = r->p;
    if (at_end(r) || !is_name_start(*p))
        return NULL;
    while (p < r->end && is_name(*p))
        p++;
    *is_added = p + 1 < r->end && p[0] == '+' && p[1] == '=';
    return p < r->end && (*p == '=' || *is_added) ? p : NULL;
}

static fr_status read_array(reader *r)
{
    for (;;) {
        skip_blanks(r, true);
        if (at_end(r))
            return fail_open(r, "an array");
        if (*r->p == ')') {
            r->p++;
            return FR_OK;
        }
        if (ends_word(*r->p)) {
            r->p++;
            continue;
        }
        FR_TRY(read_word(r, true));
        FR_TRY(end_word(r));
    }
}

static fr_status read_value(reader *r, fr_shell_variable *variable)
{
    if (!at_end(r) && *r->p == '(') {
        r->p++;
        variable->is_array = true;
        return read_array(r);
    }
    size_t n = variable->words.n;
    if (n > 0 && !variable->is_array)
        FR_TRY(put_text(r, variable->words.items[0].text, false));
    if (!variable->is_array)
        variable->words.n = 0;
    r->has_word = true;
    FR_TRY(read_word(r, false));
    return end_word(r);
}

static fr_status copy_words(reader *r, const fr_shell_variable *from,
                            fr_shell_variable *to)
{
    to->is_array = from->is_array;
    for (size_t i = 0; i < from->words.n; i++) {
        FR_TRY(count(r, 0));
        FR_TRY_PUSH(&to->words, from->words.items[i], r->err);
    }
    return FR_OK;
}

/* NAME=word, NAME=(words), NAME+=...; `to` is the end of the name. */
static fr_status read_assignment(reader *r, const char *to, bool is_added)
{
    fr_shell *shell = r->shell;
    fr_shell_words *words = r->words;
    fr_shell_variable variable = {0};
    size_t n = (size_t)(to - r->p);
    const fr_shell_variable *old = fr_shell_find_part(shell, r->p, n);
    fr_status status = FR_OK;
    variable.name = fr_arena_strndup(&shell->arena, r->p, n);
    if (variable.name == NULL)
        return fr_fail_no_memory(r->err);
    r->p = to + (is_added ? 2 : 1);
    if (is_added && old != NULL)
        status = copy_words(r, old, &variable);
    r->words = &variable.words;
    if (status == FR_OK)
        status = read_value(r, &variable);
    r->words = words;
    if (status == FR_OK && fr_vec_push(&shell->variables, variable) == FR_OK)
        return FR_OK;
    fr_vec_release(&variable.words);
    return status != FR_OK ? status : fr_fail_no_memory(r->err);
}

static bool is_condition(const char *word)
{
    static const char *const words[] = {"if", "for", "while", "case", "until"};
    return fr_text_find(word, words, FR_LENGTH(words)) >= 0;
}

/* Words that may stand before a command or an assignment. */
static bool is_before_command(const char *word)
{
    static const char *const words[] = {
        "export", "declare", "local", "readonly", "then", "else", "do", "exec",
        "time",   "{",       "}",     "fi",       "done", "-x",   "!"};
    return fr_text_find(word, words, FR_LENGTH(words)) >= 0;
}

/* One command up to its end, or the assignments before it. */
static fr_status read_command(reader *r)
{
    fr_shell *shell = r->shell;
    size_t begin = shell->commands.n;
    for (;;) {
        bool is_added;
        skip_blanks(r, false);
        if (at_end(r) || strchr("\n;&|()", *r->p) != NULL)
            break;
        if (*r->p == '<' || *r->p == '>') {
            r->p++;
            continue;
        }
        const char *to =
            shell->commands.n == begin ? find_assignment(r, &is_added) : NULL;
        if (to != NULL) {
            FR_TRY(read_assignment(r, to, is_added));
            continue;
        }
        FR_TRY(read_word(r, true));
        FR_TRY(end_word(r));
        if (shell->commands.n == begin + 1) {
            const char *first = shell->commands.items[begin].text;
            if (is_condition(first) && shell->condition_line == 0)
                shell->condition_line = r->line;
            if (is_before_command(first))
                shell->commands.n = begin;
        }
    }
    if (shell->commands.n == begin)
        return FR_OK;
    fr_shell_word end = {.line = r->line};
    FR_TRY_PUSH(&shell->commands, end, r->err);
    return FR_OK;
}

fr_status fr_shell_parse(const char *path, const char *text, size_t n_text,
                         fr_shell *out, fr_err *err)
{
    reader r = {.shell = out,
                .path = path,
                .p = text,
                .end = text + n_text,
                .line = 1,
                .words = &out->commands,
                .err = err};
    *out = (fr_shell){0};
    fr_arena_init(&out->arena);
    fr_buffer_init(&r.word);
    fr_status status = FR_OK;
    while (status == FR_OK && !at_end(&r)) {
        status = read_command(&r);
        if (status == FR_OK && !at_end(&r)) {
            if (*r.p == '\n')
                r.line++;
            r.p++;
        }
    }
    fr_buffer_release(&r.word);
    return status;
}

void fr_shell_release(fr_shell *shell)
{
    for (size_t i = 0; i < shell->variables.n; i++)
        fr_vec_release(&shell->variables.items[i].words);
    fr_vec_release(&shell->variables);
    fr_vec_release(&shell->commands);
    fr_vec_release(&shell->unknown);
    fr_arena_release(&shell->arena);
}
