/*
 * text.h: small helpers for NUL-terminated strings.
 */
#ifndef FR_CORE_BASE_TEXT_H
#define FR_CORE_BASE_TEXT_H

#include "core/base/err.h"

bool fr_text_equal(const char *a, const char *b); /* NULL equals NULL */
bool fr_text_starts(const char *text, const char *prefix);
bool fr_text_ends(const char *text, const char *suffix);
/* Copies with the NUL; false (and nothing written) when it does not fit. */
bool fr_text_copy(char *out, size_t n, const char *text);
/* Copies what fits, always ends with a NUL, never cuts a UTF-8 character.  A
 * byte that is no UTF-8 becomes '?': what is copied can be written to a file
 * and read back. */
void fr_text_copy_cut(char *out, size_t n, const char *text);
/* Cuts blanks at both ends in place; returns the first other character. */
char *fr_text_trim(char *text);
/* Splits in place at `separator`; fields up to n_max are written, the number
 * of fields (which may be more) is returned. */
size_t fr_text_split(char *text, char separator, char **fields, size_t n_max);
/* Number of valid leading bytes of UTF-8 (n when all is valid). */
size_t fr_text_utf8_valid(const char *text, size_t n);

/* Edits (insert, delete, replace, swap neighbours) from a to b, ASCII case
 * ignored; texts are looked at up to 64 bytes. */
size_t fr_text_distance(const char *a, const char *b);
/* The nearest of the candidates if it is near enough to be meant, else NULL.
 * For "did you mean 'x'?". */
const char *fr_text_nearest(const char *word, const char *const *candidates,
                            size_t n);
/* That as the end of a message, ": did you mean 'x'?", or "" for NULL; returns
 * buf. */
enum { FR_HINT_MAX = 128 };
const char *fr_text_hint(const char *nearest, char buf[FR_HINT_MAX]);
/* The index of `word` among names, -1 when absent. */
int fr_text_find(const char *word, const char *const *names, size_t n);

/* Characters of the first n bytes of a UTF-8 text. */
size_t fr_text_width(const char *text, size_t n);

/* Bytes of the first n that fill a line of n_wide characters: up to a blank,
 * rather not one between a number and its unit; where there is none, a word is
 * cut.  At least one character, unless the text is empty. */
size_t fr_text_take_line(const char *text, size_t n, size_t n_wide);

#endif
