/* shell_sum.c: what $((...)) comes to. */
#include "core/shell/shell_words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 8 };

static bool is_name(char c)
{
    return isalnum((unsigned char)c) != 0 || c == '_';
}

static bool is_digit(char c)
{
    return isdigit((unsigned char)c) != 0;
}

/* $(( 2 * NODES )): whole numbers, + - * / and brackets. */
typedef struct sum {
    const fr_shell *shell;
    const char *p, *end;
    int depth;
    bool is_known;
} sum;

static int64_t add_up(sum *s);

static char next_of_sum(sum *s)
{
    while (s->p < s->end && (isspace((unsigned char)*s->p) != 0 ||
                             *s->p == '$' || *s->p == '{' || *s->p == '}'))
        s->p++;
    return s->p < s->end ? *s->p : '\0';
}

static int64_t number_of(sum *s, const char *text)
{
    char *end;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || value > INT32_MAX || value < -INT32_MAX)
        s->is_known = false;
    return s->is_known ? (int64_t)value : 0;
}

static int64_t take_atom(sum *s)
{
    char text[32];
    size_t n = 0;
    char c = next_of_sum(s);
    if (c == '(' && s->depth < MOST_DEPTH) {
        s->p++;
        s->depth++;
        int64_t value = add_up(s);
        s->depth--;
        if (next_of_sum(s) == ')')
            s->p++;
        return value;
    }
    const char *from = s->p;
    while (s->p < s->end && is_name(*s->p))
        s->p++;
    if (s->p > from && !is_digit(*from)) {
        const fr_shell_variable *v =
            fr_shell_find_part(s->shell, from, (size_t)(s->p - from));
        if (v != NULL && v->words.n == 1)
            return number_of(s, v->words.items[0].text);
        s->is_known = false;
        return 0;
    }
    while (from < s->p && n + 1 < sizeof text)
        text[n++] = *from++;
    text[n] = '\0';
    return number_of(s, text);
}

static int64_t multiply(sum *s)
{
    int64_t value = take_atom(s);
    for (;;) {
        char c = next_of_sum(s);
        if ((c != '*' && c != '/') || !s->is_known)
            return value;
        s->p++;
        int64_t other = take_atom(s);
        if (c == '*') {
            if (__builtin_mul_overflow(value, other, &value))
                s->is_known = false;
        } else if (other == 0) {
            s->is_known = false;
        } else {
            value /= other;
        }
        if (value > INT32_MAX || value < -INT32_MAX)
            s->is_known = false;
    }
}

static int64_t add_up(sum *s)
{
    int64_t value = multiply(s);
    for (;;) {
        char c = next_of_sum(s);
        if ((c != '+' && c != '-') || !s->is_known)
            return value;
        s->p++;
        int64_t other = multiply(s);
        value += c == '+' ? other : -other;
        if (value > INT32_MAX || value < -INT32_MAX)
            s->is_known = false;
    }
}

bool fr_shell_sum(const fr_shell *shell, const char *from, const char *to,
                  int64_t *out)
{
    sum s = {.shell = shell, .p = from, .end = to, .is_known = true};
    *out = add_up(&s);
    return s.is_known && next_of_sum(&s) == '\0';
}
