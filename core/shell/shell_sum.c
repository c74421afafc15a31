/* shell_sum.c: $((...)), ((...)) and subscripts: whole numbers of 64 bits with
 * the operators of C, ** and assignments. */
#include "core/shell/shell_expand.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { SUM_DEPTH_MAX = 64 };

typedef struct number {
    int64_t value;
    size_t unknown; /* number of the unknown value + 1, 0: it is known */
} number;

typedef struct sum {
    fr_sh *sh;
    const char *p;
    int depth;
    bool is_skipped; /* the part of ?: && || that does not count */
} sum;

typedef struct operator
{
    const char *text;
    int level; /* tighter is higher */
}
operator;

/* Longer ones first. */
static const operator operators[] = {
    {"**", 11}, {"||", 1}, {"&&", 2}, {"==", 6}, {"!=", 6},
    {"<=", 7},  {">=", 7}, {"<<", 8}, {">>", 8}, {"|", 3},
    {"^", 4},   {"&", 5},  {"<", 7},  {">", 7},  {"+", 9},
    {"-", 9},   {"*", 10}, {"/", 10}, {"%", 10}};

static fr_status sum_comma(sum *s, number *out);
static fr_status sum_choice(sum *s, number *out);

static char peek(sum *s)
{
    while (isspace((unsigned char)*s->p) != 0)
        s->p++;
    return *s->p;
}

static fr_status sum_fail(const sum *s)
{
    char why[96];
    snprintf(why, sizeof why, "the sum is not understood at '%.40s'", s->p);
    for (char *p = why; *p != '\0'; p++)
        *p = isprint((unsigned char)*p) != 0 ? *p : '?';
    return fr_sh_refuse(s->sh, why);
}

static int64_t power(int64_t base, int64_t exponent)
{
    uint64_t value = 1;
    for (int i = 0; i < 64 && exponent > i; i++)
        value *= (uint64_t)base;
    return (int64_t)value;
}

/* As bash does: overflow wraps. */
static fr_status apply(sum *s, const char *op, number a, number b, number *out)
{
    const uint64_t x = (uint64_t)a.value, y = (uint64_t)b.value;
    const int64_t i = a.value, k = b.value;
    const bool divides = *op == '/' || *op == '%';
    *out = (number){.unknown = a.unknown > 0 ? a.unknown : b.unknown};
    if (out->unknown > 0 || s->is_skipped)
        return FR_OK;
    if (divides && k == 0)
        return fr_sh_refuse(s->sh, "a sum divides by 0");
    if (strcmp(op, "**") == 0)
        out->value = power(i, k);
    else if (strcmp(op, "==") == 0)
        out->value = i == k;
    else if (strcmp(op, "!=") == 0)
        out->value = i != k;
    else if (strcmp(op, "<=") == 0)
        out->value = i <= k;
    else if (strcmp(op, ">=") == 0)
        out->value = i >= k;
    else if (strcmp(op, "<<") == 0)
        out->value = (int64_t)(x << (y & 63));
    else if (strcmp(op, ">>") == 0)
        out->value = i >> (y & 63);
    else if (*op == '/')
        out->value = k == -1 ? (int64_t)(0 - x) : i / k;
    else if (*op == '%')
        out->value = k == -1 ? 0 : i % k;
    else
        out->value = *op == '+'   ? (int64_t)(x + y)
                     : *op == '-' ? (int64_t)(x - y)
                     : *op == '*' ? (int64_t)(x * y)
                     : *op == '<' ? i < k
                     : *op == '>' ? i > k
                     : *op == '&' ? (int64_t)(x & y)
                     : *op == '|' ? (int64_t)(x | y)
                                  : (int64_t)(x ^ y);
    return FR_OK;
}

/* ---- variables ----------------------------------------------------------- */

/* The value of a text: a number, or a sum of its own. */
static fr_status value_of(sum *s, const char *text, number *out)
{
    char *end;
    *out = (number){.unknown = fr_sh_unknown_in(text)};
    if (out->unknown > 0 || *text == '\0')
        return FR_OK;
    const long long value = strtoll(text, &end, 0);
    if (end != text && *end == '\0') {
        out->value = value;
        return FR_OK;
    }
    sum inner = {.sh = s->sh,
                 .p = text,
                 .depth = s->depth + 1,
                 .is_skipped = s->is_skipped};
    if (inner.depth > SUM_DEPTH_MAX)
        return sum_fail(s);
    FR_TRY(sum_comma(&inner, out));
    return peek(&inner) == '\0' ? FR_OK : sum_fail(&inner);
}

/* The name with its subscript that begins here. */
static size_t length_of_name(const char *p)
{
    size_t n = 0;
    int depth = 0;
    while (fr_sh_is_name(p[n]))
        n++;
    if (p[n] != '[')
        return n;
    for (size_t k = n; p[k] != '\0'; k++) {
        depth += (p[k] == '[') - (p[k] == ']');
        if (depth == 0)
            return k + 1;
    }
    return n;
}

static fr_status assign(sum *s, const char *name, size_t n, number value)
{
    char text[64];
    if (s->is_skipped)
        return FR_OK;
    int length = snprintf(text, sizeof text, "=%lld", (long long)value.value);
    if (value.unknown > 0)
        length = snprintf(text, sizeof text, "=%c%zu%c", FR_SH_UNKNOWN,
                          value.unknown - 1, FR_SH_UNKNOWN_END);
    char *whole = fr_sh_alloc(s->sh, n + (size_t)length + 1, 1);
    if (whole == NULL)
        return fr_sh_full(s->sh);
    memcpy(whole, name, n);
    memcpy(whole + n, text, (size_t)length);
    size_t n_name = 0;
    while (n_name < n && fr_sh_is_name(name[n_name]))
        n_name++;
    fr_sh_variable *variable;
    if (n_name < n || value.unknown == 0)
        return s->sh->assign(s->sh,
                             (fr_sh_slice){.at = whole,
                                           .n = n + (size_t)length,
                                           .line = s->sh->line},
                             n, false);
    FR_TRY(fr_sh_declare(s->sh, name, n, false, &variable));
    return fr_sh_set_text(
        s->sh, variable,
        (fr_shell_word){.text = whole + n + 1, .line = s->sh->line});
}

static fr_status read_variable(sum *s, const char *name, size_t n, number *out)
{
    fr_sh_parameter value;
    *out = (number){0};
    if (s->is_skipped)
        return FR_OK;
    FR_TRY(fr_sh_parameter_read(s->sh, name, n, true, true, &value));
    return value.n > 0 ? value_of(s, value.words[0].text, out) : FR_OK;
}

/* NAME, NAME = sum, NAME += sum, NAME++, ++NAME (`before` is its sign). */
static fr_status sum_name(sum *s, char before, number *out)
{
    static const char *const assigning[] = {
        "**=", "<<=", ">>=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^="};
    const char *name = s->p;
    const size_t n = length_of_name(name);
    number other = {.value = 1};
    char op[4] = "";
    s->p += n;
    const char c = peek(s);
    if (before != '\0') {
        op[0] = before;
    } else if (c == '=' && s->p[1] != '=') {
        s->p++;
        FR_TRY(sum_choice(s, out));
        return assign(s, name, n, *out);
    }
    for (size_t i = 0; i < FR_LENGTH(assigning) && op[0] == '\0'; i++) {
        const size_t length = strlen(assigning[i]);
        if (strncmp(s->p, assigning[i], length) != 0)
            continue;
        memcpy(op, assigning[i], length - 1);
        s->p += length;
        FR_TRY(sum_choice(s, &other));
    }
    FR_TRY(read_variable(s, name, n, out));
    const bool is_after =
        op[0] == '\0' && (c == '+' || c == '-') && s->p[0] == c && s->p[1] == c;
    if (op[0] == '\0' && !is_after)
        return FR_OK;
    number changed;
    if (is_after) {
        op[0] = c;
        s->p += 2;
    }
    FR_TRY(apply(s, op, *out, other, &changed));
    FR_TRY(assign(s, name, n, changed));
    if (!is_after)
        *out = changed;
    return FR_OK;
}

/* ---- expressions --------------------------------------------------------- */

static fr_status sum_number(sum *s, number *out)
{
    char *end;
    long long value = strtoll(s->p, &end, 0);
    if (*end == '#') { /* base#digits */
        const char *digits = end + 1;
        if (value < 2 || value > 36)
            return sum_fail(s);
        value = strtoll(digits, &end, (int)value);
    }
    if (fr_sh_is_name(*end) || *end == '.')
        return sum_fail(s);
    s->p = end;
    *out = (number){.value = value};
    return FR_OK;
}

static fr_status sum_atom(sum *s, number *out)
{
    const char c = peek(s);
    if (++s->depth > SUM_DEPTH_MAX)
        return sum_fail(s);
    if (c == '(') {
        s->p++;
        FR_TRY(sum_comma(s, out));
        if (peek(s) != ')')
            return sum_fail(s);
        s->p++;
    } else if ((c == '+' || c == '-') && s->p[1] == c) {
        s->p += 2;
        (void)peek(s);
        if (!fr_sh_is_name_start(*s->p))
            return sum_fail(s);
        FR_TRY(sum_name(s, c, out));
    } else if (c != '\0' && strchr("+-!~", c) != NULL) {
        s->p++;
        FR_TRY(sum_atom(s, out));
        out->value = c == '-'   ? (int64_t)(0 - (uint64_t)out->value)
                     : c == '!' ? out->value == 0
                     : c == '~' ? ~out->value
                                : out->value;
    } else if (isdigit((unsigned char)c) != 0) {
        FR_TRY(sum_number(s, out));
    } else if (fr_sh_is_name_start(c)) {
        FR_TRY(sum_name(s, '\0', out));
    } else if (c == FR_SH_UNKNOWN) {
        *out = (number){.unknown = fr_sh_unknown_in(s->p)};
        while (*s->p != '\0' && *s->p != FR_SH_UNKNOWN_END)
            s->p++;
        s->p += *s->p != '\0';
        if (fr_sh_is_name(*s->p)) /* 1$X */
            s->p += length_of_name(s->p);
    } else {
        return sum_fail(s);
    }
    s->depth--;
    return FR_OK;
}

static const operator* find_operator(sum *s)
{
    (void)peek(s);
    for (size_t i = 0; i < FR_LENGTH(operators); i++) {
        const size_t n = strlen(operators[i].text);
        if (strncmp(s->p, operators[i].text, n) == 0 &&
            (s->p[n] != '=' || operators[i].level == 6 ||
             operators[i].level == 7))
            return &operators[i];
    }
    return NULL;
}

/* a && b, a || b: the value where one of them is enough to know it. */
static void join(bool is_and, number a, number b, number *out)
{
    const bool a_decides = a.unknown == 0 && (a.value != 0) != is_and;
    const bool b_decides = b.unknown == 0 && (b.value != 0) != is_and;
    *out = (number){0};
    if (a_decides || b_decides)
        out->value = !is_and;
    else if (a.unknown > 0 || b.unknown > 0)
        out->unknown = a.unknown > 0 ? a.unknown : b.unknown;
    else
        out->value = is_and;
}

/* Operators of at least that level. */
static fr_status sum_binary(sum *s, int level, number *out)
{
    if (++s->depth > SUM_DEPTH_MAX)
        return sum_fail(s);
    FR_TRY(sum_atom(s, out));
    for (;;) {
        const operator* op = find_operator(s);
        number other;
        if (op == NULL || op->level < level)
            break;
        const bool is_logical = op->level <= 2, was_skipped = s->is_skipped;
        s->p += strlen(op->text);
        FR_TRY(fr_sh_step(s->sh));
        if (is_logical && out->unknown == 0)
            s->is_skipped |= (out->value != 0) != (op->level == 2);
        FR_TRY(sum_binary(s, op->level + (op->level < 11), &other));
        s->is_skipped = was_skipped;
        if (is_logical)
            join(op->level == 2, *out, other, out);
        else
            FR_TRY(apply(s, op->text, *out, other, out));
    }
    s->depth--;
    return FR_OK;
}

/* a ? b : c */
static fr_status sum_choice(sum *s, number *out)
{
    const bool was_skipped = s->is_skipped;
    number a, b;
    FR_TRY(sum_binary(s, 1, out));
    if (peek(s) != '?')
        return FR_OK;
    if (++s->depth > SUM_DEPTH_MAX)
        return sum_fail(s);
    s->p++;
    s->is_skipped = was_skipped || (out->unknown == 0 && out->value == 0);
    FR_TRY(sum_choice(s, &a));
    if (peek(s) != ':')
        return sum_fail(s);
    s->p++;
    s->is_skipped = was_skipped || (out->unknown == 0 && out->value != 0);
    FR_TRY(sum_choice(s, &b));
    s->is_skipped = was_skipped;
    s->depth--;
    if (out->unknown == 0)
        *out = out->value != 0 ? a : b;
    return FR_OK;
}

static fr_status sum_comma(sum *s, number *out)
{
    if (peek(s) == '\0') {
        *out = (number){0};
        return FR_OK;
    }
    FR_TRY(sum_choice(s, out));
    while (peek(s) == ',') {
        s->p++;
        FR_TRY(sum_choice(s, out));
    }
    return FR_OK;
}

fr_status fr_sh_sum(fr_sh *sh, const char *text, int64_t *out, size_t *unknown)
{
    sum s = {.sh = sh, .p = text};
    number value;
    char *clean = NULL;
    if (strpbrk(text, "\"'") != NULL) { /* "quotes" mean nothing here */
        clean = fr_sh_copy(sh, text, strlen(text));
        if (clean == NULL)
            return fr_sh_full(sh);
        char *to = clean;
        for (const char *p = text; *p != '\0'; p++)
            if (*p != '"' && *p != '\'')
                *to++ = *p;
        *to = '\0';
        s.p = clean;
    }
    if (++sh->depth > FR_SH_DEPTH_MAX)
        return sum_fail(&s);
    FR_TRY(sum_comma(&s, &value));
    if (peek(&s) != '\0')
        return sum_fail(&s);
    sh->depth--;
    *out = value.value;
    *unknown = value.unknown;
    return FR_OK;
}
