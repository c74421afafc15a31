/*
 * framework_keys.h: the keys of a framework's configuration, one row each, read
 * and written by the same row.
 *
 * A row says where its value stands in a plan file, by which word each value of
 * an enum is known, and in which versions the key exists.  A value that is no
 * member as it stands is written by a function of the row, and read by the
 * reader's own code.
 */
#ifndef FR_FRAMEWORKS_FRAMEWORK_KEYS_H
#define FR_FRAMEWORKS_FRAMEWORK_KEYS_H

#include "core/base/buffer.h"
#include "core/document/fields.h"
#include "plan/decide/plan_json.h"

/* A value of an enum or a switch, and its word. */
typedef struct fr_key_word {
    int value;
    const char *word;
} fr_key_word;

/* The word that is written for a value. */
const char *fr_key_word_of(const fr_key_word *words, int value);
/* The pair of a word, NULL: it is none of them. */
const fr_key_word *fr_key_word_find(const fr_key_word *words, const char *word);

typedef struct fr_framework_key {
    /* "training", "seq_len".  A row without a name is a line that `put` writes,
     * or a comment alone. */
    const char *table, *name;
    fr_field field; /* of fr_plan_file (FR_KEY_MEMBER); n_bytes 0: of none */
    /* Ends with a word NULL.  The first pair that has the value is written, the
     * first of all for a value without a word; the first that has the word is
     * read.  NULL: a number, a switch or a text. */
    const fr_key_word *words;
    bool is_set;      /* a list of the words whose bits are in the member */
    const char *mend; /* where another word stands; NULL: it changes nothing */
    int64_t least;    /* that is read, of a whole number */
    const char *text; /* always written; NULL: the member is */
    const char *word; /* the same, between the quotes of the style */
    /* The name alone says that the member is `on`.  It is written where
     * `is_used` says so, without that where the member has this value. */
    bool is_switch;
    int on;
    bool has_default; /* the key is not written where the member is `usual` */
    double usual;
    /* Writes what is no member; NULL: the member or `text`. */
    void (*put)(const fr_plan_file *file, fr_buffer *out);
    bool (*is_used)(const fr_plan_file *file); /* NULL: always written */
    const char *comment;                       /* the line before it */
    const char *why;                           /* it is not read; NULL: it is */
    bool has_reader; /* the reader's own code reads the member */
    /* Places in the list of versions, as of fr_target_rule. */
    int since, until;
} fr_framework_key;

#define FR_KEY_MEMBER(member) .field = {FR_MEMBER(fr_plan_file, member)}

/* Members of fr_framework_key for a file: a condition, and a value that is no
 * member, in which `plan`, `model` and `job` are the file's. */
#define FR_KEY_FILE                                                            \
    const fr_plan *plan = &file->plan;                                         \
    const fr_model *model = &file->model;                                      \
    const fr_job *job = &file->job;                                            \
    (void)plan;                                                                \
    (void)model;                                                               \
    (void)job;
#define FR_KEY_IF(name, condition)                                             \
    static bool name(const fr_plan_file *file)                                 \
    {                                                                          \
        FR_KEY_FILE                                                            \
        return condition;                                                      \
    }
#define FR_KEY_PUT(name, ...)                                                  \
    static void name(const fr_plan_file *file, fr_buffer *out)                 \
    {                                                                          \
        FR_KEY_FILE                                                            \
        fr_buffer_printf(out, __VA_ARGS__);                                    \
    }
#define FR_KEY_COUNT(name, value) FR_KEY_PUT(name, "%lld", (long long)(value))
#define FR_KEY_PYTHON_SWITCH(name, condition)                                  \
    FR_KEY_PUT(name, "%s", (condition) ? "True" : "False")

typedef struct fr_framework_keys {
    const fr_framework_key *rows;
    size_t n;
} fr_framework_keys;

/* The form of keys in a file: "indent before name between value after". */
typedef struct fr_key_style {
    const char *indent, *before, *between, *after;
    const char *quote;              /* at both ends of a word */
    const char *begin, *then, *end; /* of a list of words */
    const char *off, *on;           /* values of switches */
    const char *alone; /* behind the name of an fr_framework_key.is_switch */
    char hyphen;       /* stands for the '-' of names */
} fr_key_style;

extern const fr_key_style fr_key_style_toml, fr_key_style_python;
/* Arguments of a command, a line each in an array of bash. */
extern const fr_key_style fr_key_style_arguments;

/* Puts the rows of a table that the version has and the file uses, in their
 * order. */
void fr_framework_keys_put(fr_framework_keys keys, const char *table,
                           int version, const fr_key_style *style,
                           const fr_plan_file *file, fr_buffer *out);

/*
 * Reads the members whose keys a table of the file has (NULL: none), but for
 * keys that came after version `newest`.  FR_INPUT "path:line: ..." on a word
 * that is not known and a number that is too small.
 */
FR_CHECKED fr_status fr_framework_keys_read(fr_framework_keys keys,
                                            const char *table, int newest,
                                            const fr_json_value *object,
                                            fr_plan_file *file, fr_err *err);

/* A text between quotes, as TOML and Python have it. */
void fr_framework_put_string(const char *text, fr_buffer *out);

#endif
