/* text.c: see text.h. */
#include "core/base/text.h"

#include "core/base/minmax.h"

#include <stdio.h>
#include <string.h>

bool fr_text_equal(const char *a, const char *b)
{
    return a != NULL && b != NULL ? strcmp(a, b) == 0 : a == b;
}

bool fr_text_starts(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool fr_text_ends(const char *text, const char *suffix)
{
    size_t n = strlen(text), n_suffix = strlen(suffix);

    return n >= n_suffix && strcmp(text + n - n_suffix, suffix) == 0;
}

bool fr_text_copy(char *out, size_t n, const char *text)
{
    size_t n_text = strlen(text);

    if (n_text >= n)
        return false;
    memcpy(out, text, n_text + 1);
    return true;
}

void fr_text_copy_cut(char *out, size_t n, const char *text)
{
    size_t n_text = strlen(text);

    if (n == 0)
        return;
    if (n_text >= n) {
        n_text = n - 1;
        while (n_text > 0 && ((unsigned char)text[n_text] & 0xc0) == 0x80)
            n_text--;
    }
    memcpy(out, text, n_text);
    out[n_text] = '\0';
    for (size_t i = fr_text_utf8_valid(out, n_text); i < n_text;
         i += fr_text_utf8_valid(out + i, n_text - i))
        out[i] = '?';
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

char *fr_text_trim(char *text)
{
    size_t n;

    while (is_blank(*text))
        text++;
    n = strlen(text);
    while (n > 0 && is_blank(text[n - 1]))
        n--;
    text[n] = '\0';
    return text;
}

size_t fr_text_split(char *text, char separator, char **fields, size_t n_max)
{
    size_t n = 0;

    for (;;) {
        char *end = strchr(text, separator);
        if (n < n_max)
            fields[n] = text;
        n++;
        if (end == NULL)
            return n;
        *end = '\0';
        text = end + 1;
    }
}

/* Length of the character at p (n bytes left), 0 when it is broken: RFC 3629,
 * without overlong forms and surrogates. */
static size_t utf8_length(const unsigned char *p, size_t n)
{
    size_t n_more;
    unsigned low = 0x80, high = 0xbf;

    if (p[0] < 0x80)
        return 1;
    if (p[0] >= 0xc2 && p[0] <= 0xdf)
        n_more = 1;
    else if (p[0] >= 0xe0 && p[0] <= 0xef)
        n_more = 2;
    else if (p[0] >= 0xf0 && p[0] <= 0xf4)
        n_more = 3;
    else
        return 0;
    if (p[0] == 0xe0)
        low = 0xa0;
    else if (p[0] == 0xed)
        high = 0x9f;
    else if (p[0] == 0xf0)
        low = 0x90;
    else if (p[0] == 0xf4)
        high = 0x8f;
    if (n <= n_more || p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i <= n_more; i++)
        if (p[i] < 0x80 || p[i] > 0xbf)
            return 0;
    return n_more + 1;
}

size_t fr_text_utf8_valid(const char *text, size_t n)
{
    size_t i = 0;

    while (i < n) {
        size_t n_char = utf8_length((const unsigned char *)text + i, n - i);
        if (n_char == 0)
            break;
        i += n_char;
    }
    return i;
}

enum { DISTANCE_MAX = 64 };

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

size_t fr_text_distance(const char *a, const char *b)
{
    /* The last three rows of the table (optimal string alignment). */
    size_t rows[3][DISTANCE_MAX + 1];
    size_t n_a = strnlen(a, DISTANCE_MAX), n_b = strnlen(b, DISTANCE_MAX);

    for (size_t j = 0; j <= n_b; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= n_a; i++) {
        size_t *now = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3];
        const size_t *two_above = rows[(i + 1) % 3];

        now[0] = i;
        for (size_t j = 1; j <= n_b; j++) {
            bool is_same = lower(a[i - 1]) == lower(b[j - 1]);
            now[j] = fr_min_u64(above[j] + 1, now[j - 1] + 1);
            now[j] = fr_min_u64(now[j], above[j - 1] + (is_same ? 0 : 1));
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                lower(a[i - 2]) == lower(b[j - 1]))
                now[j] = fr_min_u64(now[j], two_above[j - 2] + 1);
        }
    }
    return rows[n_a % 3][n_b];
}

/* Does a part of the candidate, between its ends and - . _ : , begin with
 * `word`, and, is_whole, end with it? */
static bool has_part(const char *candidate, const char *word, size_t n,
                     bool is_whole)
{
    static const char between[] = "-._:";

    for (const char *at = candidate; *at != '\0';) {
        size_t n_part = strcspn(at, between), i = 0;
        while (i < n && at[i] != '\0' && lower(at[i]) == lower(word[i]))
            i++;
        if (i == n && (!is_whole || strchr(between, at[i]) != NULL))
            return true;
        at += n_part;
        at += strspn(at, between);
    }
    return false;
}

/* The shortest candidate that has the word as a part: "dgx-a100" for "a100",
 * or as the beginning of one: "a3-megagpu-8g" for "a3-mega". */
static const char *find_part(const char *word, const char *const *candidates,
                             size_t n, bool is_whole)
{
    size_t n_word = strlen(word);
    const char *best = NULL;

    for (size_t i = 0; n_word >= (is_whole ? 2 : 3) && i < n; i++)
        if (has_part(candidates[i], word, n_word, is_whole) &&
            (best == NULL || strlen(candidates[i]) < strlen(best)))
            best = candidates[i];
    return best;
}

const char *fr_text_nearest(const char *word, const char *const *candidates,
                            size_t n)
{
    const char *part = find_part(word, candidates, n, true);
    if (part == NULL)
        part = find_part(word, candidates, n, false);
    if (part != NULL)
        return part;
    /* A third of the letters may be wrong, at least one, at most three. */
    size_t limit = strlen(word) / 3;
    const char *best = NULL;
    size_t best_distance = limit < 1 ? 2 : limit > 3 ? 4 : limit + 1;

    for (size_t i = 0; i < n; i++) {
        size_t distance = fr_text_distance(word, candidates[i]);
        if (distance < best_distance && distance < strlen(candidates[i])) {
            best = candidates[i];
            best_distance = distance;
        }
    }
    return best;
}

const char *fr_text_hint(const char *nearest, char buf[FR_HINT_MAX])
{
    buf[0] = '\0';
    if (nearest != NULL)
        snprintf(buf, FR_HINT_MAX, ": did you mean '%.100s'?", nearest);
    return buf;
}

int fr_text_find(const char *word, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(word, names[i]) == 0)
            return (int)i;
    return -1;
}

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

size_t fr_text_width(const char *text, size_t n)
{
    size_t n_found = 0;

    for (size_t i = 0; i < n; i++)
        n_found += !is_continuation(text[i]);
    return n_found;
}

/* Does a number end at `gap`?  Its unit follows: "57.4 GiB", "+1 %". */
static bool is_before_unit(const char *text, size_t gap)
{
    size_t i = gap;

    while (i > 0 && strchr("0123456789.,+-", text[i - 1]) != NULL)
        i--;
    return i < gap && (i == 0 || text[i - 1] == ' ');
}

size_t fr_text_take_line(const char *text, size_t n, size_t n_wide)
{
    size_t n_found = 0, gap = 0, any_gap = 0, i;
    size_t n_indent = strspn(text, " ");

    for (i = 0; i < n; i++) {
        if (text[i] == ' ' && i > n_indent) {
            any_gap = i;
            if (!is_before_unit(text, i))
                gap = i;
        }
        if (is_continuation(text[i]))
            continue;
        if (n_found == n_wide && i > 0)
            return gap > 0 ? gap : any_gap > 0 ? any_gap : i;
        n_found++;
    }
    return n;
}
