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
    const char *table, *name; /* "training", "seq_len" */
    fr_field field; /* of fr_plan_file (FR_KEY_MEMBER); n_bytes 0: of none */
    /* Ends with a word NULL.  The first pair that has the value is written, the
     * first of all for a value without a word; the first that has the word is
     * read.  NULL: a number, a switch or a text. */
    const fr_key_word *words;
    int64_t least;    /* that is read, of a whole number */
    const char *text; /* always written; NULL: the member is */
    /* Writes what is no member; NULL: the member or `text`. */
    void (*put)(const fr_plan_file *file, fr_buffer *out);
    bool (*is_used)(const fr_plan_file *file); /* NULL: always written */
    const char *comment;                       /* the line before it */
    const char *why;                           /* it is not read; NULL: it is */
    /* Places in the list of versions, as of fr_target_rule. */
    int since, until;
} fr_framework_key;

#define FR_KEY_MEMBER(member) .field = {FR_MEMBER(fr_plan_file, member)}

typedef struct fr_framework_keys {
    const fr_framework_key *rows;
    size_t n;
} fr_framework_keys;

/* The form of keys in a file: "before name between value after". */
typedef struct fr_key_style {
    const char *before, *between, *after;
    const char *off, *on; /* words of switches */
} fr_key_style;

extern const fr_key_style fr_key_style_toml, fr_key_style_python;

/* The rows of a table that the version has and the file uses, in their order.
 */
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
