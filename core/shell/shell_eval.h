/*
 * shell_eval.h: assignments and commands of a script.  Private to core/shell.
 */
#ifndef FR_CORE_SHELL_SHELL_EVAL_H
#define FR_CORE_SHELL_SHELL_EVAL_H

#include "core/shell/shell_state.h"

/* shell_assign.c */
/* NAME=word, NAME+=(words), NAME[i]=word; `to` is the end of the name. */
FR_CHECKED fr_status fr_sh_assign(fr_sh *sh, fr_sh_slice slice, size_t n_name,
                                  bool is_local);
/* declare, export, local, readonly: with their unexpanded words. */
FR_CHECKED fr_status fr_sh_declare_words(fr_sh *sh, const fr_sh_word *words);

/* shell_eval.c */
/* A text as a script of its own, in the same state. */
FR_CHECKED fr_status fr_sh_eval_text(fr_sh *sh, const char *path,
                                     const char *text, size_t n, int line);
/* A text with $1 ... of its own, as a function or `source` has. */
FR_CHECKED fr_status fr_sh_eval_with(fr_sh *sh, const fr_sh_node *body,
                                     const fr_shell_word *arguments, size_t n);
/* fr_sh.capture */
FR_CHECKED fr_status fr_sh_capture(fr_sh *sh, fr_sh_slice command,
                                   fr_buffer *out);

/* shell_redirect.c: sets sh->input. */
FR_CHECKED fr_status fr_sh_read_input(fr_sh *sh,
                                      const fr_sh_redirect *redirect);

/* shell_command.c: a simple command of n > 0 words. */
FR_CHECKED fr_status fr_sh_command(fr_sh *sh, const fr_sh_node *node,
                                   const fr_shell_word *words, size_t n);

/* shell_builtin.c: read, set, shift, cd ...; *is_known: it is one of them. */
FR_CHECKED fr_status fr_sh_builtin(fr_sh *sh, const fr_shell_word *words,
                                   size_t n, bool *is_known);

/* shell_output.c: what a command prints that only looks at texts; false: no
 * such command is known, or its output is not. */
FR_CHECKED fr_status fr_sh_print(fr_sh *sh, const fr_shell_word *words,
                                 size_t n, bool *is_known);
/* A file that the script has written, or that is there; *out = NULL: neither.
 */
FR_CHECKED fr_status fr_sh_read_file(fr_sh *sh, const char *name,
                                     const char **out);
FR_CHECKED fr_status fr_sh_write_file(fr_sh *sh, const char *name,
                                      const char *text, bool is_appended);

#endif
