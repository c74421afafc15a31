/* shell_pattern.c: patterns of a shell (POSIX.1-2017, 2.13). */
#include "core/shell/shell_expand.h"

#include <string.h>

/* Past a [...] whose first character is *p == '['; *is_in: c is one of them.
 * NULL: it is no such list. */
static const char *match_list(const char *p, char c, bool *is_in)
{
    p++;
    const bool is_negated = *p == '!' || *p == '^';
    p += is_negated;
    *is_in = false;
    for (const char *first = p; *p != '\0' && (*p != ']' || p == first); p++) {
        p += *p == '\\' && p[1] != '\0';
        const char low = *p;
        char high = low;
        if (p[1] == '-' && p[2] != ']' && p[2] != '\0') {
            p += 2;
            high = *p;
        }
        *is_in |= c >= low && c <= high;
    }
    *is_in ^= is_negated;
    return *p == ']' ? p + 1 : NULL;
}

/* Past one character of the pattern, if `c` matches it. */
static const char *match_one(const char *p, char c, bool *is_match)
{
    if (*p == '[') {
        const char *next = match_list(p, c, is_match);
        if (next != NULL)
            return next;
    }
    if (*p == '\\' && p[1] != '\0')
        p++;
    else if (*p == '?') {
        *is_match = true;
        return p + 1;
    }
    *is_match = *p == c;
    return p + 1;
}

static bool is_any(const char *pattern)
{
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

fr_sh_match fr_sh_match_text(const char *pattern, const char *text, size_t n)
{
    const char *p = pattern, *star = NULL;
    size_t i = 0, i_star = 0;
    while (i < n || *p != '\0') {
        if (*p == '*') {
            if (is_any(p))
                return FR_SH_YES;
            star = ++p;
            i_star = i;
            continue;
        }
        if (*p == FR_SH_UNKNOWN || (i < n && text[i] == FR_SH_UNKNOWN))
            return FR_SH_OPEN;
        bool is_match = false;
        const char *next = NULL;
        if (i < n && *p != '\0')
            next = match_one(p, text[i], &is_match);
        if (is_match) {
            p = next;
            i++;
        } else if (star != NULL && i_star < n) {
            p = star;
            i = ++i_star;
        } else {
            return FR_SH_NO;
        }
    }
    return FR_SH_YES;
}

void fr_sh_cut(const char *pattern, bool is_end, bool is_longest,
               const char **text, size_t *n)
{
    for (size_t k = 0; k <= *n; k++) {
        const size_t n_cut = is_longest ? *n - k : k;
        const char *part = is_end ? *text + *n - n_cut : *text;
        if (fr_sh_match_text(pattern, part, n_cut) != FR_SH_YES)
            continue;
        *n -= n_cut;
        *text += is_end ? 0 : n_cut;
        return;
    }
}

const char *fr_sh_find_match(const char *pattern, const char *text, size_t *n)
{
    for (; *text != '\0'; text++)
        for (size_t k = strlen(text); k > 0; k--)
            if (fr_sh_match_text(pattern, text, k) == FR_SH_YES) {
                *n = k;
                return text;
            }
    return NULL;
}
