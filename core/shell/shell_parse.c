/* shell_parse.c: the grammar of a shell script (POSIX.1-2017, 2.10, with the
 * arrays, tests and sums of bash). */
#include "core/shell/shell_syntax.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static fr_status parse_list(fr_sh_reader *r, char stop, fr_sh_node **out);
static fr_status parse_command(fr_sh_reader *r, fr_sh_node **out);

static bool at_end(const fr_sh_reader *r)
{
    return r->p >= r->end;
}

static bool starts(const fr_sh_reader *r, const char *text)
{
    const size_t n = strlen(text);
    return (size_t)(r->end - r->p) >= n && memcmp(r->p, text, n) == 0;
}

/* A reserved word stands here by itself. */
static bool at_word(const fr_sh_reader *r, const char *word)
{
    const char *next = r->p + strlen(word);
    return starts(r, word) &&
           (next >= r->end || isspace((unsigned char)*next) != 0 ||
            strchr(";&|()<>", *next) != NULL);
}

static bool take_word(fr_sh_reader *r, const char *word)
{
    if (!at_word(r, word))
        return false;
    r->p += strlen(word);
    return true;
}

static fr_status make_node(fr_sh_reader *r, fr_sh_kind kind, fr_sh_node **out)
{
    if (++*r->n_nodes > FR_SH_NODES_MAX)
        return fr_sh_fail(r, r->line,
                          "more commands than a launch script has; "
                          "give the arguments alone");
    *out = fr_arena_alloc(r->arena, sizeof **out);
    if (*out == NULL)
        return fr_fail_no_memory(r->err);
    (*out)->kind = kind;
    (*out)->line = r->line;
    (*out)->site = (uint64_t)r->line << 32 | (uint32_t)(r->p - r->begin);
    return FR_OK;
}

static fr_status add_word(fr_sh_reader *r, fr_sh_slice text, fr_sh_word ***last)
{
    fr_sh_word *word = fr_arena_alloc(r->arena, sizeof *word);
    if (word == NULL)
        return fr_fail_no_memory(r->err);
    if (++*r->n_nodes > FR_SH_NODES_MAX)
        return fr_sh_fail(r, r->line,
                          "more words than a launch script has; "
                          "give the arguments alone");
    word->text = text;
    **last = word;
    *last = &word->next;
    return FR_OK;
}

static fr_status need_word(fr_sh_reader *r, const char *word, int line)
{
    char why[96];
    FR_TRY(fr_sh_skip_blanks(r, true));
    if (take_word(r, word))
        return FR_OK;
    snprintf(why, sizeof why, "'%s' is missing for the command of line %d",
             word, line);
    return fr_sh_fail(r, r->line, why);
}

/* ---- redirections -------------------------------------------------------- */

/* The end of a document without its quotes. */
static fr_status read_end(fr_sh_reader *r, fr_sh_redirect *document)
{
    fr_sh_slice word = document->target;
    char *text = fr_arena_strndup(r->arena, word.at, word.n), *to = text;
    if (text == NULL)
        return fr_fail_no_memory(r->err);
    for (const char *p = text; *p != '\0'; p++) {
        if (strchr("'\"\\", *p) != NULL)
            document->is_literal = true;
        else
            *to++ = *p;
    }
    document->end = (fr_sh_slice){.at = text, .n = (size_t)(to - text)};
    document->target = (fr_sh_slice){.at = r->end, .line = r->line};
    fr_sh_redirect **last = &r->open;
    while (*last != NULL)
        last = &(*last)->next_open;
    *last = document;
    return FR_OK;
}

/* From < or >, after the descriptor. */
static fr_status parse_redirect(fr_sh_reader *r, bool is_other,
                                fr_sh_node *node)
{
    fr_sh_redirect *redirect = fr_arena_alloc(r->arena, sizeof *redirect);
    if (redirect == NULL)
        return fr_fail_no_memory(r->err);
    static const struct {
        const char *text;
        fr_sh_redirect_kind kind;
    } rows[] = {{"<<<", FR_SH_HERE_WORD}, {"<<-", FR_SH_DOCUMENT},
                {"<<", FR_SH_DOCUMENT},   {"<&", FR_SH_OTHER},
                {"<>", FR_SH_OTHER},      {"<", FR_SH_READ},
                {">>", FR_SH_APPEND},     {">&", FR_SH_OTHER},
                {">|", FR_SH_WRITE},      {">", FR_SH_WRITE}};
    for (size_t i = 0; i < FR_LENGTH(rows); i++)
        if (starts(r, rows[i].text)) {
            r->p += strlen(rows[i].text);
            redirect->kind = is_other ? FR_SH_OTHER : rows[i].kind;
            redirect->strips_tabs =
                rows[i].text[2 - (rows[i].text[1] == '\0')] == '-';
            break;
        }
    FR_TRY(fr_sh_skip_blanks(r, false));
    FR_TRY(fr_sh_take_word(r, &redirect->target));
    if (redirect->kind == FR_SH_DOCUMENT)
        FR_TRY(read_end(r, redirect));
    fr_sh_redirect **last = &node->redirects;
    while (*last != NULL)
        last = &(*last)->next;
    *last = redirect;
    return FR_OK;
}

/* 2>, &>, >, <<EOF: false where none begins here. */
static bool at_redirect(fr_sh_reader *r, bool *is_other)
{
    const char *p = r->p;
    *is_other = false;
    while (p < r->end && isdigit((unsigned char)*p) != 0)
        p++;
    if (p == r->p && p < r->end && *p == '&' && p + 1 < r->end && p[1] == '>') {
        r->p = p + 1;
        return true;
    }
    if (p >= r->end || (*p != '<' && *p != '>') ||
        (p == r->p && p + 1 < r->end && p[1] == '('))
        return false;
    *is_other =
        p > r->p && !(p == r->p + 1 && *r->p == (*p == '<' ? '0' : '1'));
    r->p = p;
    return true;
}

static fr_status parse_redirects(fr_sh_reader *r, fr_sh_node *node)
{
    bool is_other;
    FR_TRY(fr_sh_skip_blanks(r, false));
    while (!at_end(r) && at_redirect(r, &is_other)) {
        FR_TRY(parse_redirect(r, is_other, node));
        FR_TRY(fr_sh_skip_blanks(r, false));
    }
    return FR_OK;
}

/* ---- compound commands --------------------------------------------------- */

static fr_status parse_if(fr_sh_reader *r, fr_sh_node **out)
{
    const int line = r->line;
    FR_TRY(make_node(r, FR_SH_IF, out));
    FR_TRY(parse_list(r, 0, &(*out)->first));
    FR_TRY(need_word(r, "then", line));
    FR_TRY(parse_list(r, 0, &(*out)->second));
    FR_TRY(fr_sh_skip_blanks(r, true));
    if (take_word(r, "elif"))
        return parse_if(r, &(*out)->third);
    if (take_word(r, "else"))
        FR_TRY(parse_list(r, 0, &(*out)->third));
    return need_word(r, "fi", line);
}

static fr_status parse_body(fr_sh_reader *r, int line, fr_sh_node **out)
{
    FR_TRY(fr_sh_skip_blanks(r, true));
    if (!at_end(r) && *r->p == '{') { /* for x in y; { ...; } */
        r->p++;
        FR_TRY(parse_list(r, 0, out));
        return need_word(r, "}", line);
    }
    FR_TRY(need_word(r, "do", line));
    FR_TRY(parse_list(r, 0, out));
    return need_word(r, "done", line);
}

static fr_status parse_loop(fr_sh_reader *r, fr_sh_kind kind, fr_sh_node **out)
{
    const int line = r->line;
    FR_TRY(make_node(r, kind, out));
    FR_TRY(parse_list(r, 0, &(*out)->first));
    return parse_body(r, line, &(*out)->second);
}

/* The text within (( )), from its first bracket; false: it is no sum. */
static bool take_sum(fr_sh_reader *r, fr_sh_slice *out)
{
    *out = (fr_sh_slice){.at = r->p + 2, .line = r->line};
    if (!fr_sh_pass_sum(r))
        return false;
    out->n = (size_t)(r->p - 2 - out->at);
    return true;
}

/* for ((a; b; c)), from the brackets. */
static fr_status parse_for_sum(fr_sh_reader *r, fr_sh_node *node, int line)
{
    fr_sh_word **last = &node->words;
    fr_sh_slice all;
    node->kind = FR_SH_FOR_SUM;
    if (!take_sum(r, &all))
        return fr_sh_fail(r, line, "(( without its ))");
    for (int i = 0; i < 3; i++) {
        const char *stop = memchr(all.at, ';', all.n);
        fr_sh_slice part = all;
        if ((stop == NULL) != (i == 2))
            return fr_sh_fail(r, line, "for (( )) takes three parts");
        part.n = stop != NULL ? (size_t)(stop - all.at) : all.n;
        all.at += part.n + 1;
        all.n -= part.n + (stop != NULL);
        FR_TRY(add_word(r, part, &last));
    }
    FR_TRY(fr_sh_skip_blanks(r, false));
    if (!at_end(r) && *r->p == ';')
        r->p++;
    return parse_body(r, line, &node->second);
}

static fr_status parse_for(fr_sh_reader *r, fr_sh_node **out)
{
    const int line = r->line;
    FR_TRY(make_node(r, FR_SH_FOR, out));
    FR_TRY(fr_sh_skip_blanks(r, false));
    if (starts(r, "(("))
        return parse_for_sum(r, *out, line);
    FR_TRY(fr_sh_take_word(r, &(*out)->name));
    FR_TRY(fr_sh_skip_blanks(r, true));
    fr_sh_word **last = &(*out)->words;
    if (take_word(r, "in")) {
        (*out)->has_words = true;
        for (;;) {
            fr_sh_slice word;
            FR_TRY(fr_sh_skip_blanks(r, false));
            FR_TRY(fr_sh_take_word(r, &word));
            if (word.n == 0)
                break;
            FR_TRY(add_word(r, word, &last));
        }
    }
    FR_TRY(fr_sh_skip_blanks(r, true));
    if (!at_end(r) && *r->p == ';')
        r->p++;
    return parse_body(r, line, &(*out)->second);
}

static fr_status parse_arm(fr_sh_reader *r, int line, fr_sh_node **out)
{
    FR_TRY(make_node(r, FR_SH_ARM, out));
    fr_sh_word **last = &(*out)->words;
    if (!at_end(r) && *r->p == '(')
        r->p++;
    while (!at_end(r) && *r->p != ')') {
        fr_sh_slice word;
        FR_TRY(fr_sh_skip_blanks(r, true));
        FR_TRY(fr_sh_take_word(r, &word));
        if (word.n == 0)
            return fr_sh_fail(r, r->line, "a pattern of case is missing");
        FR_TRY(add_word(r, word, &last));
        FR_TRY(fr_sh_skip_blanks(r, true));
        if (!at_end(r) && *r->p == '|')
            r->p++;
    }
    if (at_end(r))
        return fr_sh_fail(r, line, "case without its esac");
    r->p++;
    FR_TRY(parse_list(r, 0, &(*out)->second));
    FR_TRY(fr_sh_skip_blanks(r, true));
    if (starts(r, ";;&") || starts(r, ";&"))
        (*out)->goes_on = true;
    r->p += starts(r, ";;&") ? 3 : starts(r, ";;") || starts(r, ";&") ? 2 : 0;
    return FR_OK;
}

static fr_status parse_case(fr_sh_reader *r, fr_sh_node **out)
{
    const int line = r->line;
    fr_sh_slice subject;
    FR_TRY(make_node(r, FR_SH_CASE, out));
    fr_sh_word **last = &(*out)->words;
    fr_sh_node **arm = &(*out)->first;
    FR_TRY(fr_sh_skip_blanks(r, false));
    FR_TRY(fr_sh_take_word(r, &subject));
    FR_TRY(add_word(r, subject, &last));
    FR_TRY(need_word(r, "in", line));
    for (;;) {
        FR_TRY(fr_sh_skip_blanks(r, true));
        if (at_end(r))
            return fr_sh_fail(r, line, "case without its esac");
        if (take_word(r, "esac"))
            return FR_OK;
        FR_TRY(parse_arm(r, line, arm));
        arm = &(*arm)->next;
    }
}

/* A regular expression, which has brackets of its own: ^(a|b)$ */
static fr_status take_regex(fr_sh_reader *r, fr_sh_slice *out)
{
    int depth = 0;
    *out = (fr_sh_slice){.at = r->p, .line = r->line};
    while (!at_end(r) && *r->p != '\n' &&
           (depth > 0 || isspace((unsigned char)*r->p) == 0)) {
        if (*r->p == '"' || *r->p == '\'') {
            FR_TRY(fr_sh_pass_quoted(r));
        } else if (*r->p == '$') {
            FR_TRY(fr_sh_pass_dollar(r));
        } else {
            depth += (*r->p == '(') - (*r->p == ')');
            r->p += *r->p == '\\' && r->p + 1 < r->end ? 2 : 1;
        }
    }
    out->n = (size_t)(r->p - out->at);
    return FR_OK;
}

/* [[ ... ]]: its words; && || ( ) < > are words there. */
static fr_status parse_test(fr_sh_reader *r, fr_sh_node **out)
{
    static const char *const operators[] = {"&&", "||", "(", ")", "<", ">"};
    const int line = r->line;
    FR_TRY(make_node(r, FR_SH_TEST, out));
    fr_sh_word **last = &(*out)->words;
    for (;;) {
        fr_sh_slice word;
        FR_TRY(fr_sh_skip_blanks(r, true));
        if (at_end(r))
            return fr_sh_fail(r, line, "[[ without its ]]");
        if (take_word(r, "]]"))
            return FR_OK;
        FR_TRY(fr_sh_take_word(r, &word));
        for (size_t i = 0; i < FR_LENGTH(operators) && word.n == 0; i++)
            if (starts(r, operators[i])) {
                word.n = strlen(operators[i]);
                r->p += word.n;
            }
        if (word.n == 0)
            return fr_sh_fail(r, line, "[[ ]] is not understood");
        FR_TRY(add_word(r, word, &last));
        if (!fr_sh_slice_is(word, "=~"))
            continue;
        FR_TRY(fr_sh_skip_blanks(r, true));
        FR_TRY(take_regex(r, &word));
        FR_TRY(add_word(r, word, &last));
    }
}

static fr_status parse_function(fr_sh_reader *r, fr_sh_slice name,
                                fr_sh_node **out)
{
    FR_TRY(make_node(r, FR_SH_FUNCTION, out));
    (*out)->name = name;
    FR_TRY(fr_sh_skip_blanks(r, true));
    if (starts(r, "(")) {
        r->p++;
        FR_TRY(fr_sh_skip_blanks(r, false));
        if (!starts(r, ")"))
            return fr_sh_fail(r, r->line, "a function takes ()");
        r->p++;
        FR_TRY(fr_sh_skip_blanks(r, true));
    }
    return parse_command(r, &(*out)->second);
}

/* ---- simple commands, pipes and lists ------------------------------------ */

/* NAME (): from the name. */
static bool at_function(const fr_sh_reader *r)
{
    const char *p = r->p;
    while (p < r->end && (fr_sh_is_name(*p) || strchr("-:.", *p) != NULL))
        p++;
    if (p == r->p)
        return false;
    while (p < r->end && (*p == ' ' || *p == '\t'))
        p++;
    if (p >= r->end || *p != '(')
        return false;
    for (p++; p < r->end && (*p == ' ' || *p == '\t'); p++)
        continue;
    return p < r->end && *p == ')';
}

static fr_status parse_simple(fr_sh_reader *r, fr_sh_node **out)
{
    bool is_other;
    FR_TRY(make_node(r, FR_SH_SIMPLE, out));
    fr_sh_word **last = &(*out)->words;
    for (;;) {
        fr_sh_slice word;
        FR_TRY(fr_sh_skip_blanks(r, false));
        if (at_end(r))
            return FR_OK;
        if (at_redirect(r, &is_other)) {
            FR_TRY(parse_redirect(r, is_other, *out));
            continue;
        }
        FR_TRY(fr_sh_take_word(r, &word));
        if (word.n == 0)
            return FR_OK;
        FR_TRY(add_word(r, word, &last));
    }
}

static fr_status parse_bracketed(fr_sh_reader *r, fr_sh_node **out)
{
    const int line = r->line;
    const bool is_group = *r->p == '{';
    FR_TRY(make_node(r, is_group ? FR_SH_GROUP : FR_SH_SUBSHELL, out));
    if (starts(r, "((") && take_sum(r, &(*out)->name)) {
        (*out)->kind = FR_SH_SUM;
        return FR_OK;
    }
    r->p++;
    FR_TRY(parse_list(r, is_group ? '\0' : ')', &(*out)->second));
    return need_word(r, is_group ? "}" : ")", line);
}

static fr_status parse_reserved(fr_sh_reader *r, fr_sh_node **out)
{
    if (take_word(r, "if"))
        return parse_if(r, out);
    if (take_word(r, "while"))
        return parse_loop(r, FR_SH_WHILE, out);
    if (take_word(r, "until"))
        return parse_loop(r, FR_SH_UNTIL, out);
    if (take_word(r, "for"))
        return parse_for(r, out);
    if (take_word(r, "case"))
        return parse_case(r, out);
    if (take_word(r, "[["))
        return parse_test(r, out);
    if (at_word(r, "select") || at_word(r, "coproc"))
        return fr_sh_fail(r, r->line,
                          "select and coproc are not evaluated; "
                          "give the arguments alone");
    if (take_word(r, "function")) {
        fr_sh_slice name;
        FR_TRY(fr_sh_skip_blanks(r, false));
        FR_TRY(fr_sh_take_word(r, &name));
        return parse_function(r, name, out);
    }
    *out = NULL;
    return FR_OK;
}

static fr_status parse_command(fr_sh_reader *r, fr_sh_node **out)
{
    if (++r->depth > FR_SH_DEPTH_MAX)
        return fr_sh_fail(r, r->line,
                          "commands within commands, too deep; "
                          "give the arguments alone");
    *out = NULL;
    if (starts(r, "(") || at_word(r, "{"))
        FR_TRY(parse_bracketed(r, out));
    else
        FR_TRY(parse_reserved(r, out));
    if (*out != NULL) {
        FR_TRY(parse_redirects(r, *out));
    } else if (at_function(r)) {
        fr_sh_slice name = {.at = r->p, .line = r->line};
        while (fr_sh_is_name(*r->p) || strchr("-:.", *r->p) != NULL)
            r->p++;
        name.n = (size_t)(r->p - name.at);
        FR_TRY(parse_function(r, name, out));
    } else {
        FR_TRY(parse_simple(r, out));
    }
    r->depth--;
    return FR_OK;
}

static fr_status parse_pipe(fr_sh_reader *r, fr_sh_node **out)
{
    bool is_negated = false;
    fr_sh_node *first;
    while (at_word(r, "!") || at_word(r, "time")) {
        is_negated ^= *r->p == '!';
        r->p += *r->p == '!' ? 1 : 4;
        FR_TRY(fr_sh_skip_blanks(r, false));
        if (at_word(r, "-p"))
            r->p += 2;
        FR_TRY(fr_sh_skip_blanks(r, false));
    }
    FR_TRY(parse_command(r, &first));
    fr_sh_node *last = first;
    FR_TRY(fr_sh_skip_blanks(r, false));
    while (starts(r, "|") && !starts(r, "||")) {
        r->p += starts(r, "|&") ? 2 : 1;
        FR_TRY(fr_sh_skip_blanks(r, true));
        FR_TRY(parse_command(r, &last->next));
        last = last->next;
        FR_TRY(fr_sh_skip_blanks(r, false));
    }
    *out = first;
    if (first->next != NULL || is_negated) {
        FR_TRY(make_node(r, FR_SH_PIPE, out));
        (*out)->line = first->line;
        (*out)->first = first;
        (*out)->is_negated = is_negated;
    }
    return FR_OK;
}

static fr_status parse_and_or(fr_sh_reader *r, fr_sh_node **out)
{
    FR_TRY(parse_pipe(r, out));
    FR_TRY(fr_sh_skip_blanks(r, false));
    while (starts(r, "&&") || starts(r, "||")) {
        fr_sh_node *both;
        FR_TRY(make_node(r, *r->p == '&' ? FR_SH_AND : FR_SH_OR, &both));
        r->p += 2;
        both->line = (*out)->line;
        both->first = *out;
        FR_TRY(fr_sh_skip_blanks(r, true));
        FR_TRY(parse_pipe(r, &both->second));
        FR_TRY(fr_sh_skip_blanks(r, false));
        *out = both;
    }
    return FR_OK;
}

static bool ends_list(const fr_sh_reader *r, char stop)
{
    static const char *const words[] = {"then", "else", "elif", "fi",
                                        "do",   "done", "esac", "}"};
    if (at_end(r) || (stop != '\0' && *r->p == stop) || starts(r, ";;") ||
        starts(r, ";&"))
        return true;
    for (size_t i = 0; i < FR_LENGTH(words); i++)
        if (at_word(r, words[i]))
            return true;
    return false;
}

/* Up to a word or a bracket that ends it, which stays. */
static fr_status parse_list(fr_sh_reader *r, char stop, fr_sh_node **out)
{
    FR_TRY(make_node(r, FR_SH_LIST, out));
    fr_sh_node **last = &(*out)->first;
    for (;;) {
        FR_TRY(fr_sh_skip_blanks(r, true));
        if (ends_list(r, stop))
            return FR_OK;
        const char *from = r->p;
        FR_TRY(parse_and_or(r, last));
        last = &(*last)->next;
        FR_TRY(fr_sh_skip_blanks(r, false));
        if (!at_end(r) && (*r->p == '&' || *r->p == ';') && !ends_list(r, stop))
            r->p++;
        if (r->p == from)
            return fr_sh_fail(r, r->line,
                              *r->p == ')' ? "a ) without its ("
                                           : "the command is not understood");
    }
}

fr_status fr_sh_parse(fr_sh_reader *r, char stop, fr_sh_node **out)
{
    FR_TRY(parse_list(r, stop, out));
    if (at_end(r) || (stop != '\0' && *r->p == stop))
        return FR_OK;
    char why[64];
    const size_t n = (size_t)(r->end - r->p);
    snprintf(why, sizeof why, "unexpected '%.*s'",
             (int)(n < 20 ? strcspn(r->p, " \n") : 20), r->p);
    return fr_sh_fail(r, r->line, why);
}
