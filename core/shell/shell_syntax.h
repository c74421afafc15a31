/*
 * shell_syntax.h: the syntax tree of a shell script.  Words stay slices of the
 * text, which shell_expand.c expands.  Private to core/shell.
 */
#ifndef FR_CORE_SHELL_SHELL_SYNTAX_H
#define FR_CORE_SHELL_SHELL_SYNTAX_H

#include "core/base/arena.h"

enum {
    FR_SH_DEPTH_MAX = 48,     /* of brackets, functions, files */
    FR_SH_NODES_MAX = 200000, /* of all trees of a script */
};

/* A part of the text, and the line on which it begins. */
typedef struct fr_sh_slice {
    const char *at;
    size_t n;
    int line;
} fr_sh_slice;

typedef struct fr_sh_word {
    fr_sh_slice text;
    struct fr_sh_word *next;
} fr_sh_word;

typedef enum fr_sh_redirect_kind {
    FR_SH_READ,      /* < word */
    FR_SH_WRITE,     /* > word */
    FR_SH_APPEND,    /* >> word */
    FR_SH_DOCUMENT,  /* << end: `target` is the body */
    FR_SH_HERE_WORD, /* <<< word */
    FR_SH_OTHER      /* 2>&1, 2> word */
} fr_sh_redirect_kind;

typedef struct fr_sh_redirect {
    fr_sh_redirect_kind kind;
    fr_sh_slice target;
    fr_sh_slice end;  /* DOCUMENT: the word that ends it */
    bool strips_tabs; /* <<- */
    bool is_literal;  /* << 'end' */
    struct fr_sh_redirect *next, *next_open;
} fr_sh_redirect;

typedef enum fr_sh_kind {
    FR_SH_SIMPLE,   /* words: assignments, a command and its arguments */
    FR_SH_PIPE,     /* first: the commands */
    FR_SH_AND,      /* first && second */
    FR_SH_OR,       /* first || second */
    FR_SH_LIST,     /* first: the commands */
    FR_SH_IF,       /* first: condition, second: then, third: else or NULL */
    FR_SH_WHILE,    /* first: condition, second: body */
    FR_SH_UNTIL,    /* the same */
    FR_SH_FOR,      /* name in words, second: body */
    FR_SH_FOR_SUM,  /* words: three sums, second: body */
    FR_SH_CASE,     /* words: the subject, first: arms */
    FR_SH_ARM,      /* words: patterns, second: body */
    FR_SH_FUNCTION, /* name, second: body */
    FR_SH_SUBSHELL, /* second */
    FR_SH_GROUP,    /* second */
    FR_SH_SUM,      /* name: the text within (( )) */
    FR_SH_TEST      /* words within [[ ]] */
} fr_sh_kind;

typedef struct fr_sh_node {
    fr_sh_kind kind;
    int line;
    uint64_t site; /* tells the nodes of a script apart in every run of it */
    bool is_negated;
    bool has_words; /* FOR: it says `in` */
    bool goes_on;   /* ARM: ;& or ;;& */
    fr_sh_slice name;
    fr_sh_word *words;
    fr_sh_redirect *redirects;
    struct fr_sh_node *first, *second, *third;
    struct fr_sh_node *next;
} fr_sh_node;

/* A place in a text that is being read. */
typedef struct fr_sh_reader {
    fr_arena *arena;
    const char *path;
    const char *begin, *p, *end;
    int line;
    int depth;
    size_t *n_nodes;      /* so far, of all texts of the script */
    fr_sh_redirect *open; /* here-documents whose body follows this line */
    fr_err *err;
} fr_sh_reader;

bool fr_sh_is_name_start(char c);
bool fr_sh_is_name(char c);
/* The n bytes are NAME=, NAME+= or NAME[...]= and more: the length of the part
 * before "=" or "+=", 0: no assignment. */
size_t fr_sh_assignment(const char *text, size_t n);
bool fr_sh_slice_is(fr_sh_slice slice, const char *text);

/* shell_lex.c.  FR_INPUT with path:line where a bracket or quote stays open. */
/* Skips blanks, comments and continued lines; with `lines`, ends of lines. */
FR_CHECKED fr_status fr_sh_skip_blanks(fr_sh_reader *r, bool lines);
/* The word that begins here; n = 0: none does. */
FR_CHECKED fr_status fr_sh_take_word(fr_sh_reader *r, fr_sh_slice *out);
/* From "$": past $NAME, ${...}, $(...), $((...)), $'...'. */
FR_CHECKED fr_status fr_sh_pass_dollar(fr_sh_reader *r);
/* From an opening quote: past the closing one. */
FR_CHECKED fr_status fr_sh_pass_quoted(fr_sh_reader *r);
/* From "((": past "))"; p stays where the text is no sum. */
bool fr_sh_pass_sum(fr_sh_reader *r);
/* From "(": past its ")"; *is_sum: it was "((...))". */
FR_CHECKED fr_status fr_sh_pass_brackets(fr_sh_reader *r, bool *is_sum);
FR_CHECKED fr_status fr_sh_fail(const fr_sh_reader *r, int line,
                                const char *why);

/* shell_parse.c: the commands up to the end of the text, or with `stop` = ')'
 * up to that, which stays.  NULL: none. */
FR_CHECKED fr_status fr_sh_parse(fr_sh_reader *r, char stop, fr_sh_node **out);

#endif
