/* shell_test.c: conditions: test, [ ] and [[ ]], which may be unknown. */
#include "core/shell/shell_expand.h"

#include <ctype.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

enum { TEST_DEPTH_MAX = 64, REGEX_BYTES_MAX = 128, REGEX_TEXT_MAX = 1024 };

/* The words of a condition: expanded ones of [ ], or slices of [[ ]]. */
typedef struct test {
    fr_sh *sh;
    const fr_shell_word *words; /* NULL: slices */
    fr_vec(fr_sh_slice) slices;
    size_t i, n;
    int depth;
} test;

static fr_status test_or(test *t, fr_sh_status *out);

static bool word_is(const test *t, size_t i, const char *text)
{
    if (i >= t->n)
        return false;
    return t->words != NULL ? strcmp(t->words[i].text, text) == 0
                            : fr_sh_slice_is(t->slices.items[i], text);
}

static fr_status operand(test *t, size_t i, const char **out)
{
    *out = "";
    if (t->words != NULL) {
        *out = t->words[i].text;
        return FR_OK;
    }
    return fr_sh_expand_text(t->sh, t->slices.items[i], out);
}

static fr_sh_status known(bool is_true)
{
    return (fr_sh_status){.code = !is_true};
}

static bool is_word_of(const test *t, size_t i, const char *const *list,
                       size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (word_is(t, i, list[k]))
            return true;
    return false;
}

static bool is_binary(const test *t, size_t i)
{
    static const char *const list[] = {"=",   "==",  "!=",  "<",   ">",
                                       "=~",  "-eq", "-ne", "-lt", "-le",
                                       "-gt", "-ge", "-nt", "-ot", "-ef"};
    return is_word_of(t, i, list, FR_LENGTH(list));
}

static bool is_unary(const test *t, size_t i)
{
    static const char *const list[] = {
        "-z", "-n", "-f", "-d", "-e", "-s", "-r", "-w", "-x", "-L", "-h",
        "-v", "-b", "-c", "-p", "-S", "-t", "-o", "-a", "-k", "-O"};
    return is_word_of(t, i, list, FR_LENGTH(list));
}

/* ---- single conditions --------------------------------------------------- */

/* A name or a file of which only the machine knows. */
static fr_status ask_machine(test *t, const char *op, const char *text,
                             fr_sh_status *out)
{
    char shown[96], why[128];
    size_t number;
    fr_shell_show(t->sh->out, text, shown, sizeof shown);
    snprintf(why, sizeof why, "[ %s %s ]", op, shown);
    FR_TRY(fr_sh_unknown(t->sh, NULL, why, &number));
    *out = (fr_sh_status){.unknown = number + 1};
    return FR_OK;
}

static fr_status test_unary(test *t, fr_sh_status *out)
{
    char op[3] = "-?";
    const char *text;
    op[1] =
        t->words != NULL ? t->words[t->i].text[1] : t->slices.items[t->i].at[1];
    FR_TRY(operand(t, t->i + 1, &text));
    t->i += 2;
    const size_t unknown = fr_sh_unknown_in(text);
    if (op[1] == 'v') {
        const fr_sh_variable *v = fr_sh_find(t->sh, text, strcspn(text, "["));
        fr_sh_parameter value;
        if (unknown == 0 && v != NULL && (v->is_known || v->is_fixed)) {
            FR_TRY(fr_sh_parameter_read(t->sh, text, strlen(text), true, true,
                                        &value));
            *out = known(value.is_set);
            return FR_OK;
        }
        size_t number;
        char name[96];
        snprintf(name, sizeof name, "$%.80s", text);
        FR_TRY(fr_sh_unknown(t->sh, name + 1, name, &number));
        *out = (fr_sh_status){.unknown = number + 1};
    } else if (op[1] == 'z' || op[1] == 'n') {
        *out = known((*text == '\0') == (op[1] == 'z'));
        if (fr_shell_is_unknown(text))
            *out = (fr_sh_status){.unknown = unknown};
    } else if (strchr("fesr", op[1]) != NULL &&
               fr_shell_find_file(t->sh->out, text) != NULL) {
        *out = known(true);
    } else if (*text == '\0') {
        *out = known(false);
    } else {
        FR_TRY(ask_machine(t, op, text, out));
    }
    return FR_OK;
}

/* Two texts are different if the first difference of them is known. */
static fr_sh_status compare_texts(const char *whole_a, const char *whole_b)
{
    const char *a = whole_a, *b = whole_b;
    while (*a == *b && *a != '\0') {
        a++;
        b++;
    }
    if (*a == *b)
        return known(true);
    if (*a != FR_SH_UNKNOWN && *b != FR_SH_UNKNOWN)
        return known(false);
    const size_t unknown = fr_sh_unknown_in(whole_a);
    return (fr_sh_status){.unknown =
                              unknown > 0 ? unknown : fr_sh_unknown_in(whole_b),
                          .example = unknown > 0 ? whole_b : whole_a};
}

static bool is_whole_number(const char *text)
{
    char *end;
    while (isspace((unsigned char)*text) != 0)
        text++;
    (void)strtoll(text, &end, 10);
    return end != text && end[strspn(end, " \t")] == '\0';
}

static fr_status compare_numbers(test *t, char c1, char c2, const char *a,
                                 const char *b, fr_sh_status *out)
{
    int64_t x = 0, y = 0;
    size_t unknown_x = fr_sh_unknown_in(a), unknown_y = fr_sh_unknown_in(b);
    const bool is_strict = t->words != NULL;
    if (is_strict && ((unknown_x == 0 && !is_whole_number(a)) ||
                      (unknown_y == 0 && !is_whole_number(b)))) {
        *out = (fr_sh_status){.code = 2};
        return FR_OK;
    }
    if (unknown_x == 0 && is_strict)
        x = strtoll(a, NULL, 10);
    else if (unknown_x == 0)
        FR_TRY(fr_sh_sum(t->sh, a, &x, &unknown_x));
    if (unknown_y == 0 && is_strict)
        y = strtoll(b, NULL, 10);
    else if (unknown_y == 0)
        FR_TRY(fr_sh_sum(t->sh, b, &y, &unknown_y));
    if (unknown_x > 0 || unknown_y > 0) {
        *out = (fr_sh_status){.unknown = unknown_x > 0 ? unknown_x : unknown_y,
                              .example = unknown_x > 0 ? b : a};
        return FR_OK;
    }
    const bool is_true = c1 == 'e'   ? x == y
                         : c1 == 'n' ? x != y
                         : c1 == 'l' ? (c2 == 't' ? x < y : x <= y)
                                     : (c2 == 't' ? x > y : x >= y);
    *out = known(is_true);
    return FR_OK;
}

/* [[ text == pattern ]] */
static fr_status match_pattern(test *t, const char *text, fr_sh_slice pattern,
                               fr_sh_status *out)
{
    const char *p;
    FR_TRY(fr_sh_expand_pattern(t->sh, pattern, &p));
    const fr_sh_match match = fr_sh_match_text(p, text, strlen(text));
    const size_t unknown = fr_sh_unknown_in(text);
    *out = known(match == FR_SH_YES);
    if (match == FR_SH_OPEN)
        *out = (fr_sh_status){.unknown =
                                  unknown > 0 ? unknown : fr_sh_unknown_in(p),
                              .example = unknown > 0 ? p : text};
    return FR_OK;
}

/* [[ text =~ expression ]]: short ones without repetition counts, which could
 * cost more memory than there is. */
static fr_status match_regex(test *t, const char *text, const char *expression,
                             bool is_quoted, fr_sh_status *out)
{
    regex_t regex;
    size_t unknown = fr_sh_unknown_in(text);
    if (unknown == 0)
        unknown = fr_sh_unknown_in(expression);
    if (unknown > 0) {
        *out = (fr_sh_status){.unknown = unknown};
        return FR_OK;
    }
    if (is_quoted) { /* a text as it stands */
        *out = known(strstr(text, expression) != NULL);
        return FR_OK;
    }
    if (strlen(expression) > REGEX_BYTES_MAX || strlen(text) > REGEX_TEXT_MAX ||
        strchr(expression, '{') != NULL || strchr(expression, '\\') != NULL ||
        regcomp(&regex, expression, REG_EXTENDED | REG_NOSUB) != 0)
        return ask_machine(t, "=~", expression, out);
    *out = known(regexec(&regex, text, 0, NULL, 0) == 0);
    regfree(&regex);
    return FR_OK;
}

static fr_status test_binary(test *t, fr_sh_status *out)
{
    char op[4];
    const char *a, *b;
    const char *from = t->words != NULL ? t->words[t->i + 1].text
                                        : t->slices.items[t->i + 1].at;
    const size_t n =
        t->words != NULL ? strlen(from) : t->slices.items[t->i + 1].n;
    snprintf(op, sizeof op, "%.*s", (int)n, from);
    const size_t i = t->i;
    t->i += 3;
    FR_TRY(operand(t, i, &a));
    if (t->words == NULL && op[1] != '~' && (op[0] == '=' || op[0] == '!')) {
        FR_TRY(match_pattern(t, a, t->slices.items[i + 2], out));
    } else {
        FR_TRY(operand(t, i + 2, &b));
        if (op[0] == '-' &&
            (op[1] == 'o' || op[2] == 'f' || (op[1] == 'n' && op[2] == 't')))
            return ask_machine(t, op, b, out);
        if (op[0] == '-')
            return compare_numbers(t, op[1], op[2], a, b, out);
        if (op[1] == '~')
            return match_regex(t, a, b,
                               t->words == NULL &&
                                   strchr("\"'", *t->slices.items[i + 2].at),
                               out);
        *out = compare_texts(a, b);
        if ((op[0] == '<' || op[0] == '>') && out->unknown == 0)
            *out = known(op[0] == '<' ? strcmp(a, b) < 0 : strcmp(a, b) > 0);
    }
    if (op[0] == '!' && out->unknown == 0)
        out->code = !out->code;
    else if (op[0] == '!')
        out->is_negated = true;
    return FR_OK;
}

/* ---- and, or, not -------------------------------------------------------- */

static fr_status test_one(test *t, fr_sh_status *out)
{
    const char *text;
    if (++t->depth > TEST_DEPTH_MAX)
        return fr_sh_refuse(t->sh, "a condition is nested too deeply");
    *out = known(false);
    if (t->i >= t->n)
        return FR_OK;
    if (t->i + 2 < t->n && is_binary(t, t->i + 1)) {
        FR_TRY(test_binary(t, out));
    } else if (word_is(t, t->i, "!") && t->i + 1 < t->n) {
        t->i++;
        FR_TRY(test_one(t, out));
        if (out->unknown == 0)
            out->code = !out->code;
        else
            out->is_negated = !out->is_negated;
    } else if (word_is(t, t->i, "(") && t->i + 2 < t->n) {
        t->i++;
        FR_TRY(test_or(t, out));
        if (!word_is(t, t->i, ")"))
            return fr_sh_refuse(t->sh, "a condition lacks its )");
        t->i++;
    } else if (t->i + 1 < t->n && is_unary(t, t->i)) {
        FR_TRY(test_unary(t, out));
    } else {
        FR_TRY(operand(t, t->i++, &text));
        *out = known(*text != '\0');
        if (fr_shell_is_unknown(text))
            *out = (fr_sh_status){.unknown = fr_sh_unknown_in(text)};
    }
    t->depth--;
    return FR_OK;
}

static bool is_joined(const test *t, bool is_and)
{
    return t->words != NULL ? word_is(t, t->i, is_and ? "-a" : "-o")
                            : word_is(t, t->i, is_and ? "&&" : "||");
}

/* `a` and `b`, or `a` or `b`: known where one of them is enough. */
static fr_sh_status join(bool is_and, fr_sh_status a, fr_sh_status b)
{
    const int deciding = is_and ? 1 : 0;
    if (a.unknown == 0 && (a.code != 0) == deciding)
        return a;
    if (b.unknown == 0 && (b.code != 0) == deciding)
        return b;
    fr_sh_status out = a.unknown > 0 ? a : b;
    if (a.unknown > 0 && b.unknown > 0)
        out.is_negated = false;
    return out;
}

static fr_status test_and(test *t, fr_sh_status *out)
{
    fr_sh_status other;
    FR_TRY(test_one(t, out));
    while (is_joined(t, true)) {
        t->i++;
        FR_TRY(test_one(t, &other));
        *out = join(true, *out, other);
    }
    return FR_OK;
}

static fr_status test_or(test *t, fr_sh_status *out)
{
    fr_sh_status other;
    FR_TRY(test_and(t, out));
    while (is_joined(t, false)) {
        t->i++;
        FR_TRY(test_and(t, &other));
        *out = join(false, *out, other);
    }
    return FR_OK;
}

static fr_status test_all(test *t, fr_sh_status *out)
{
    FR_TRY(fr_sh_step(t->sh));
    FR_TRY(test_or(t, out));
    if (t->i == t->n)
        return FR_OK;
    if (t->words == NULL)
        return fr_sh_refuse(t->sh, "the condition is not understood");
    *out = (fr_sh_status){.code = 2}; /* [ = x ]: as bash says */
    return FR_OK;
}

fr_status fr_sh_test(fr_sh *sh, const fr_shell_word *words, size_t n,
                     fr_sh_status *out)
{
    test t = {.sh = sh, .words = words, .n = n};
    return test_all(&t, out);
}

fr_status fr_sh_test_node(fr_sh *sh, const fr_sh_node *node, fr_sh_status *out)
{
    test t = {.sh = sh};
    fr_status status = FR_OK;
    for (const fr_sh_word *w = node->words; w != NULL && status == FR_OK;
         w = w->next)
        if (fr_vec_push(&t.slices, w->text) != FR_OK)
            status = fr_fail_no_memory(sh->err);
    t.n = t.slices.n;
    if (status == FR_OK)
        status = test_all(&t, out);
    fr_vec_release(&t.slices);
    return status;
}
