/*
 * shell_words.h: the words of a shell script's commands, as bash would have
 * them after assignments of the same file: quotes, continued lines, comments,
 * arrays, $NAME, ${NAME:-default}, "${NAME[@]}", $((2 * 8)).  Nothing is run:
 * conditions are not looked at, the result of $(command) is unknown.
 */
#ifndef FR_CORE_SHELL_SHELL_WORDS_H
#define FR_CORE_SHELL_SHELL_WORDS_H

#include "core/base/arena.h"
#include "core/base/vec.h"

typedef struct fr_shell_word {
    const char *text;
    int line;
} fr_shell_word;

typedef fr_vec(fr_shell_word) fr_shell_words;

/* NAME=word, NAME=(words), export NAME=word: as the file leaves it. */
typedef struct fr_shell_variable {
    const char *name;
    fr_shell_words words;
    bool is_array;
} fr_shell_variable;

typedef struct fr_shell {
    fr_arena arena; /* all texts */
    fr_vec(fr_shell_variable) variables;
    /* Words of all commands, one after the other; a command ends with a word
     * whose text is NULL. */
    fr_shell_words commands;
    fr_shell_words unknown; /* names that the file does not set, and $(...) */
    int condition_line;     /* of the first if, case, for, while; 0: none */
    size_t n_words, n_bytes;
} fr_shell;

/*
 * FR_INPUT with path:line where a quote or a bracket is left open, or where the
 * words come to more than a script of arguments is.  fr_shell_release() frees,
 * after a failure too.
 */
FR_CHECKED fr_status fr_shell_parse(const char *path, const char *text,
                                    size_t n_text, fr_shell *out, fr_err *err);
void fr_shell_release(fr_shell *shell);

/* NULL: the file does not set it. */
const fr_shell_variable *fr_shell_find(const fr_shell *shell, const char *name);
/* The same of a name that n bytes are. */
const fr_shell_variable *fr_shell_find_part(const fr_shell *shell,
                                            const char *name, size_t n);

/* shell_sum.c: the sum from `from` to `to`, of whole numbers and variables with
 * + - * / and brackets; false: it cannot be told. */
bool fr_shell_sum(const fr_shell *shell, const char *from, const char *to,
                  int64_t *out);

#endif
