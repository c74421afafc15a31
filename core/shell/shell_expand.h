/*
 * shell_expand.h: expansions, patterns, sums and conditions of a script.
 * Private to core/shell.
 */
#ifndef FR_CORE_SHELL_SHELL_EXPAND_H
#define FR_CORE_SHELL_SHELL_EXPAND_H

#include "core/shell/shell_state.h"

/* shell_expand.c */
/* The words that a slice expands to. */
FR_CHECKED fr_status fr_sh_expand_words(fr_sh *sh, fr_sh_slice slice,
                                        fr_shell_words *out);
/* One text: assignments, subjects; no word is split. */
FR_CHECKED fr_status fr_sh_expand_text(fr_sh *sh, fr_sh_slice slice,
                                       const char **out);
/* The same, with "\\" before what was quoted: patterns. */
FR_CHECKED fr_status fr_sh_expand_pattern(fr_sh *sh, fr_sh_slice slice,
                                          const char **out);
/* A here-document, or the text of a sum: quotes stay. */
FR_CHECKED fr_status fr_sh_expand_document(fr_sh *sh, fr_sh_slice slice,
                                           const char **out);

/* shell_parameter.c */
typedef struct fr_sh_parameter {
    fr_shell_word *words; /* its values */
    size_t n;
    bool is_list; /* $@, ${A[@]}: quoted, each is a word */
    bool is_set;
} fr_sh_parameter;
/* $NAME, ${...}: `at` and n are the text between the brackets. */
FR_CHECKED fr_status fr_sh_parameter_read(fr_sh *sh, const char *at, size_t n,
                                          bool has_braces, bool is_quoted,
                                          fr_sh_parameter *out);

/* shell_pattern.c */
typedef enum fr_sh_match { FR_SH_NO, FR_SH_YES, FR_SH_OPEN } fr_sh_match;
/* Does the whole text match the pattern (* ? [a-z] \\c)?  OPEN: it depends on
 * an unknown value. */
fr_sh_match fr_sh_match_text(const char *pattern, const char *text, size_t n);
/* The n bytes of *text with the shortest or longest part that matches cut off
 * at its begin or end. */
void fr_sh_cut(const char *pattern, bool is_end, bool is_longest,
               const char **text, size_t *n);
/* The first match from `text` on: *n bytes, NULL: none. */
const char *fr_sh_find_match(const char *pattern, const char *text, size_t *n);

/* shell_sum.c: a sum, with its assignments; *unknown: number + 1, or 0. */
FR_CHECKED fr_status fr_sh_sum(fr_sh *sh, const char *text, int64_t *out,
                               size_t *unknown);

/* shell_test.c: [ words ] and [[ words ]]. */
FR_CHECKED fr_status fr_sh_test(fr_sh *sh, const fr_shell_word *words, size_t n,
                                fr_sh_status *out);
FR_CHECKED fr_status fr_sh_test_node(fr_sh *sh, const fr_sh_node *node,
                                     fr_sh_status *out);

#endif
