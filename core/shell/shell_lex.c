/* shell_lex.c: where words, quotes and brackets of a shell script end. */
#include "core/shell/shell_syntax.h"

#include <ctype.h>
#include <string.h>

bool fr_sh_is_name_start(char c)
{
    return isalpha((unsigned char)c) != 0 || c == '_';
}

bool fr_sh_is_name(char c)
{
    return isalnum((unsigned char)c) != 0 || c == '_';
}

bool fr_sh_slice_is(fr_sh_slice slice, const char *text)
{
    return slice.n == strlen(text) && memcmp(slice.at, text, slice.n) == 0;
}

size_t fr_sh_assignment(const char *text, size_t n)
{
    size_t i = 0;
    if (n == 0 || !fr_sh_is_name_start(text[0]))
        return 0;
    while (i < n && fr_sh_is_name(text[i]))
        i++;
    if (i < n && text[i] == '[') {
        while (i < n && text[i] != ']')
            i++;
        i += i < n;
    }
    const bool is_added = i + 1 < n && text[i] == '+' && text[i + 1] == '=';
    return is_added || (i < n && text[i] == '=') ? i : 0;
}

fr_status fr_sh_fail(const fr_sh_reader *r, int line, const char *why)
{
    return fr_fail(r->err, FR_INPUT, "%s:%d: %s", r->path, line, why);
}

static bool at_end(const fr_sh_reader *r)
{
    return r->p >= r->end;
}

static char peek(const fr_sh_reader *r, size_t i)
{
    return (size_t)(r->end - r->p) > i ? r->p[i] : '\0';
}

static void advance(fr_sh_reader *r)
{
    r->line += *r->p == '\n';
    r->p++;
}

static fr_status enter(fr_sh_reader *r)
{
    if (++r->depth > FR_SH_DEPTH_MAX)
        return fr_sh_fail(r, r->line,
                          "brackets within brackets, too deep; "
                          "give the arguments alone");
    return FR_OK;
}

/* ---- here-documents ------------------------------------------------------ */

/* Is the line the word that ends a document? */
static bool is_last_line(const fr_sh_redirect *document, const char *line,
                         size_t n)
{
    while (document->strips_tabs && n > 0 && *line == '\t') {
        line++;
        n--;
    }
    if (n > 0 && line[n - 1] == '\r')
        n--;
    return n == document->end.n && memcmp(line, document->end.at, n) == 0;
}

/* After the end of a line: the bodies of the documents that it opened. */
static void read_documents(fr_sh_reader *r)
{
    while (r->open != NULL) {
        fr_sh_redirect *document = r->open;
        document->target = (fr_sh_slice){.at = r->p, .line = r->line};
        r->open = document->next_open;
        while (!at_end(r)) {
            const char *line = r->p;
            const char *stop = memchr(line, '\n', (size_t)(r->end - line));
            stop = stop != NULL ? stop : r->end;
            r->line++;
            r->p = stop < r->end ? stop + 1 : r->end;
            if (is_last_line(document, line, (size_t)(stop - line)))
                break;
            document->target.n = (size_t)(r->p - document->target.at);
        }
    }
}

/* ---- quotes and brackets ------------------------------------------------- */

fr_status fr_sh_skip_blanks(fr_sh_reader *r, bool lines)
{
    while (!at_end(r)) {
        char c = *r->p;
        if (c == '\\' && peek(r, 1) == '\n') {
            advance(r);
            advance(r);
        } else if (c == '\\' && peek(r, 1) == '\r' && peek(r, 2) == '\n') {
            r->p += 2;
            advance(r);
        } else if (c == '#') {
            while (!at_end(r) && *r->p != '\n')
                r->p++;
        } else if (c == '\n' && lines) {
            advance(r);
            read_documents(r);
        } else if (c != '\n' && isspace((unsigned char)c) != 0) {
            r->p++;
        } else {
            break;
        }
    }
    return FR_OK;
}

static fr_status pass_double(fr_sh_reader *r)
{
    const int line = r->line;
    advance(r);
    while (!at_end(r) && *r->p != '"') {
        if (*r->p == '\\' && r->p + 1 < r->end) {
            advance(r);
            advance(r);
        } else if (*r->p == '$') {
            FR_TRY(fr_sh_pass_dollar(r));
        } else if (*r->p == '`') {
            FR_TRY(fr_sh_pass_quoted(r));
        } else {
            advance(r);
        }
    }
    if (at_end(r))
        return fr_sh_fail(r, line, "a quote is left open");
    r->p++;
    return FR_OK;
}

fr_status fr_sh_pass_quoted(fr_sh_reader *r)
{
    const int line = r->line;
    const char quote = *r->p;
    if (quote == '"')
        return pass_double(r);
    advance(r);
    while (!at_end(r) && *r->p != quote) {
        if (quote == '`' && *r->p == '\\' && r->p + 1 < r->end)
            advance(r);
        advance(r);
    }
    if (at_end(r))
        return fr_sh_fail(r, line,
                          quote == '`' ? "a command in backticks is left open"
                                       : "a quote is left open");
    r->p++;
    return FR_OK;
}

/* $'...', from the quote. */
static fr_status pass_escaped(fr_sh_reader *r)
{
    const int line = r->line;
    r->p++;
    while (!at_end(r) && *r->p != '\'') {
        if (*r->p == '\\' && r->p + 1 < r->end)
            advance(r);
        advance(r);
    }
    if (at_end(r))
        return fr_sh_fail(r, line, "a quote is left open");
    r->p++;
    return FR_OK;
}

bool fr_sh_pass_sum(fr_sh_reader *r)
{
    const char *p = r->p;
    int depth = 0, line = r->line;
    for (; p < r->end; p++) {
        line += *p == '\n';
        depth += (*p == '(') - (*p == ')');
        if (depth == 1 && *p == ')') {
            if (p + 1 >= r->end || p[1] != ')')
                return false;
            r->p = p + 2;
            r->line = line;
            return true;
        }
    }
    return false;
}

fr_status fr_sh_pass_brackets(fr_sh_reader *r, bool *is_sum)
{
    const int line = r->line;
    fr_sh_node *unused;
    *is_sum = peek(r, 1) == '(' && fr_sh_pass_sum(r);
    if (*is_sum)
        return FR_OK;
    FR_TRY(enter(r));
    r->p++;
    FR_TRY(fr_sh_parse(r, ')', &unused));
    r->depth--;
    if (at_end(r))
        return fr_sh_fail(r, line, "$( is left open");
    r->p++;
    return FR_OK;
}

/* From "${": past "}". */
static fr_status pass_braces(fr_sh_reader *r)
{
    const int line = r->line;
    FR_TRY(enter(r));
    r->p++;
    while (!at_end(r) && *r->p != '}') {
        if (*r->p == '\\' && r->p + 1 < r->end) {
            advance(r);
            advance(r);
        } else if (*r->p == '"' || *r->p == '\'' || *r->p == '`') {
            FR_TRY(fr_sh_pass_quoted(r));
        } else if (*r->p == '$') {
            FR_TRY(fr_sh_pass_dollar(r));
        } else {
            advance(r);
        }
    }
    r->depth--;
    if (at_end(r))
        return fr_sh_fail(r, line, "${ is left open");
    r->p++;
    return FR_OK;
}

fr_status fr_sh_pass_dollar(fr_sh_reader *r)
{
    bool unused;
    r->p++;
    switch (peek(r, 0)) {
    case '(':
        return fr_sh_pass_brackets(r, &unused);
    case '{':
        return pass_braces(r);
    case '\'':
        return pass_escaped(r);
    default:
        return FR_OK;
    }
}

/* From "(" of NAME=( or of a pattern @(a|b): past ")". */
static fr_status pass_list(fr_sh_reader *r, bool is_pattern)
{
    const int line = r->line;
    fr_sh_slice word;
    FR_TRY(enter(r));
    r->p++;
    while (!at_end(r) && *r->p != ')') {
        FR_TRY(fr_sh_skip_blanks(r, true));
        if (at_end(r) || *r->p == ')')
            break;
        FR_TRY(fr_sh_take_word(r, &word));
        if (word.n == 0 && *r->p == '(' && is_pattern)
            FR_TRY(pass_list(r, true));
        else if (word.n == 0)
            r->p++;
    }
    r->depth--;
    if (at_end(r))
        return fr_sh_fail(r, line, "an array is left open");
    r->p++;
    return FR_OK;
}

/* ---- words --------------------------------------------------------------- */

static bool ends_word(char c)
{
    return isspace((unsigned char)c) != 0 || strchr(";&|()<>", c) != NULL;
}

/* "(" in a word: of an array, or of a pattern; false: it ends the word. */
static fr_status pass_open(fr_sh_reader *r, const char *from, bool *is_in_word)
{
    const size_t n = (size_t)(r->p - from);
    const size_t n_name = fr_sh_assignment(from, n);
    const bool is_array =
        n_name > 0 && n == n_name + 1 + (size_t)(from[n_name] == '+');
    const bool is_pattern = n > 0 && strchr("@?*+!", r->p[-1]) != NULL;
    *is_in_word = is_array || is_pattern;
    return *is_in_word ? pass_list(r, is_pattern) : FR_OK;
}

fr_status fr_sh_take_word(fr_sh_reader *r, fr_sh_slice *out)
{
    const char *from = r->p;
    bool is_in_word = true, is_sum;
    *out = (fr_sh_slice){.at = from, .line = r->line};
    if ((peek(r, 0) == '<' || peek(r, 0) == '>') && peek(r, 1) == '(') {
        r->p++;
        FR_TRY(fr_sh_pass_brackets(r, &is_sum));
    }
    while (!at_end(r) && is_in_word) {
        char c = *r->p;
        if (c == '\'' || c == '"' || c == '`') {
            FR_TRY(fr_sh_pass_quoted(r));
        } else if (c == '$') {
            FR_TRY(fr_sh_pass_dollar(r));
        } else if (c == '\\') {
            const bool is_line = peek(r, 1) == '\n';
            if (is_line && r->p == from)
                break;
            advance(r);
            if (!at_end(r))
                advance(r);
        } else if (c == '(') {
            FR_TRY(pass_open(r, from, &is_in_word));
        } else if (ends_word(c)) {
            break;
        } else {
            r->p++;
        }
    }
    out->n = (size_t)(r->p - from);
    return FR_OK;
}
