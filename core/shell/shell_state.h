/*
 * shell_state.h: what a script has set while it is evaluated.  All texts lie in
 * the arena of the answer.  Private to core/shell.
 */
#ifndef FR_CORE_SHELL_SHELL_STATE_H
#define FR_CORE_SHELL_SHELL_STATE_H

#include "core/base/buffer.h"
#include "core/shell/shell.h"
#include "core/shell/shell_syntax.h"

enum {
    FR_SH_UNKNOWN = 1,     /* begins an unknown value in a text */
    FR_SH_UNKNOWN_END = 2, /* ends it; its number stands between */
    FR_SH_SCRIPT_BYTES_MAX = 4 << 20,
    FR_SH_STEPS_MAX = 200000,
    FR_SH_ROUNDS_MAX = 10000,      /* of one loop */
    FR_SH_BYTES_MAX = 48 << 20,    /* of all texts */
    FR_SH_WORD_BYTES_MAX = 1 << 21 /* of one word */
};

typedef enum fr_sh_value_kind {
    FR_SH_UNSET,
    FR_SH_TEXT,
    FR_SH_ARRAY,
    FR_SH_MAP /* declare -A */
} fr_sh_value_kind;

typedef struct fr_sh_item {
    const char *key; /* of a MAP */
    int64_t index;   /* of an ARRAY, ascending */
    fr_shell_word word;
} fr_sh_item;

/* Immutable once it is assigned: a change makes another. */
typedef struct fr_sh_value {
    fr_sh_value_kind kind;
    const fr_sh_item *items;
    size_t n;
} fr_sh_value;

typedef struct fr_sh_variable {
    const char *name;
    fr_sh_value value;
    int scope;     /* 0: the script; n: local to the n-th open function */
    bool is_fixed; /* --set */
    bool is_known; /* assigned or unset by the script: not of its environment */
    struct fr_sh_variable *next; /* of its bucket, inner scopes first */
} fr_sh_variable;

/* A change of a subshell, to be undone at its end. */
typedef struct fr_sh_undo {
    fr_sh_variable *variable;
    fr_sh_value value;
    bool is_known;
} fr_sh_undo;

typedef struct fr_sh_function {
    const char *name;
    const fr_sh_node *body;
} fr_sh_function;

/* 0 or 1 as exit status; with `unknown` it is not known which. */
typedef struct fr_sh_status {
    int code;
    size_t unknown;  /* number of the unknown value + 1; 0: the code is known */
    bool is_program; /* of a program, which is taken to succeed */
    bool is_negated; /* ! stands before the unknown one */
    const char *example; /* the known text that the unknown one is held against;
                            NULL: none */
} fr_sh_status;

/* $1 ...: of the script or of the function. */
typedef struct fr_sh_arguments {
    const fr_shell_word *words;
    size_t n;
    bool is_known;    /* n is their number: of a function, of `set`, of --set */
    bool is_open;     /* there may be more: of the script */
    size_t n_shifted; /* of those after the known ones */
} fr_sh_arguments;

typedef enum fr_sh_flow {
    FR_SH_GO,
    FR_SH_BREAK,
    FR_SH_CONTINUE,
    FR_SH_RETURN,
    FR_SH_EXIT
} fr_sh_flow;

enum { FR_SH_BUCKETS = 256 };

typedef struct fr_sh {
    const fr_shell_request *request;
    /* Expansions and sums lie below commands and assignments, and call them by
     * these: the output of $(...) without its last ends of lines; NAME=word. */
    fr_status (*capture)(struct fr_sh *sh, fr_sh_slice command, fr_buffer *out);
    fr_status (*assign)(struct fr_sh *sh, fr_sh_slice slice, size_t n_name,
                        bool is_local);
    fr_shell *out;
    fr_err *err;
    const char *path; /* of the text that is evaluated */
    int line;         /* of the command that is evaluated */
    int depth;
    int scope;
    size_t n_nodes, n_steps, n_words;
    fr_sh_variable *buckets[FR_SH_BUCKETS];
    fr_vec(fr_sh_function) functions;
    fr_vec(fr_sh_undo) undo;
    int n_subshells; /* that are open */
    fr_sh_arguments arguments;
    const char *folder; /* $(pwd), NULL: unknown */
    fr_sh_status last;  /* $? */
    fr_sh_flow flow;
    int n_levels; /* of break and continue */
    /* $(...) and pipes: where output goes, and what is read; NULL: nowhere. */
    fr_buffer *output;
    const char *input;
    int n_captures; /* $(...) that are open: their programs train nothing */
    bool has_foreign_output; /* a program has written to `output` */
} fr_sh;

/* shell_state.c */
FR_CHECKED fr_status fr_sh_step(fr_sh *sh);
/* "path:line: why" of the command that is evaluated. */
FR_CHECKED fr_status fr_sh_refuse(fr_sh *sh, const char *why);
/* A copy in the arena, counted; NULL: there is no memory, or too much of it is
 * taken already (fr_sh_full() says which). */
char *fr_sh_copy(fr_sh *sh, const char *text, size_t n);
/* A text from outside has no marks of unknown values. */
void fr_sh_clean(char *text, size_t n);
void *fr_sh_alloc(fr_sh *sh, size_t n, size_t item_bytes);
FR_CHECKED fr_status fr_sh_full(fr_sh *sh);
fr_sh_variable *fr_sh_find(const fr_sh *sh, const char *name, size_t n);
/* Finds or makes it; in the scope of the function with `is_local`. */
FR_CHECKED fr_status fr_sh_declare(fr_sh *sh, const char *name, size_t n,
                                   bool is_local, fr_sh_variable **out);
FR_CHECKED fr_status fr_sh_set(fr_sh *sh, fr_sh_variable *variable,
                               fr_sh_value value);
FR_CHECKED fr_status fr_sh_set_items(fr_sh *sh, fr_sh_variable *variable,
                                     fr_sh_value_kind kind,
                                     const fr_sh_item *items, size_t n);
FR_CHECKED fr_status fr_sh_set_text(fr_sh *sh, fr_sh_variable *variable,
                                    fr_shell_word word);
/* Sets item `key` or `index` of an array, or adds it. */
FR_CHECKED fr_status fr_sh_set_item(fr_sh *sh, fr_sh_variable *variable,
                                    fr_sh_item item);
void fr_sh_leave_scope(fr_sh *sh);
size_t fr_sh_enter_subshell(fr_sh *sh);
void fr_sh_leave_subshell(fr_sh *sh, size_t mark);
/* The number of the unknown value of that text. */
FR_CHECKED fr_status fr_sh_unknown(fr_sh *sh, const char *name,
                                   const char *text, size_t *out);
/* Appends the mark of the unknown value; is_unknown_in: the number of the first
 * one + 1, 0: none. */
void fr_sh_put_unknown(fr_buffer *buffer, size_t number);
size_t fr_sh_unknown_in(const char *text);
/* Is an open branch taken?  Records it. */
FR_CHECKED fr_status fr_sh_decide(fr_sh *sh, const fr_sh_node *node,
                                  fr_sh_status status, bool *out);
/* Did a command succeed?  Where that is unknown, it is an open branch. */
FR_CHECKED fr_status fr_sh_succeeds(fr_sh *sh, const fr_sh_node *node,
                                    fr_sh_status status, bool *out);
/* Is the unknown value an argument of the script, or their number? */
bool fr_sh_is_argument(const fr_sh *sh, size_t unknown);

#endif
