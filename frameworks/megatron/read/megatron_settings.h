/*
 * megatron_settings.h: configurations of libraries over Megatron Core: their
 * settings are arguments of Megatron-LM, mostly of the same name, and are read
 * as such.
 */
#ifndef FR_FRAMEWORKS_MEGATRON_READ_MEGATRON_SETTINGS_H
#define FR_FRAMEWORKS_MEGATRON_READ_MEGATRON_SETTINGS_H

#include "frameworks/megatron/read/megatron_flags.h"

/* Another word for a value; `flag` NULL: nothing is said by it. */
typedef struct fr_megatron_alias_word {
    const char *word, *flag;
} fr_megatron_alias_word;

typedef struct fr_megatron_alias {
    /* "model.encoder_seq_length"; with a '.' at the end all settings directly
     * below it, unless a row before this one has them. */
    const char *path;
    const char *flag; /* NULL: the last part of the name */
    bool is_inverted; /* the argument stands where the switch is off */
    bool is_own;      /* the reader's own code reads it */
    const fr_megatron_alias_word *words; /* ends with a word NULL */
} fr_megatron_alias;

/*
 * Makes arguments of the settings: a number or word is a value, true an
 * argument alone, false and null none.  Settings without a row are not made
 * arguments.  fr_megatron_flags_release() frees them, after a failure too.
 */
FR_CHECKED fr_status fr_megatron_take_settings(const fr_config_request *request,
                                               fr_settings *settings,
                                               const fr_megatron_alias *aliases,
                                               size_t n, fr_megatron_flags *out,
                                               fr_err *err);
/* Adds an argument, with a value or alone (NULL), that a setting comes to. */
FR_CHECKED fr_status fr_megatron_put_flag(fr_megatron_flags *flags,
                                          const fr_setting *setting,
                                          const char *name, const char *value,
                                          fr_err *err);

/* The model and its parts that the settings do not say. */
typedef struct fr_megatron_source {
    const char *said;  /* a name of the model in the file, or NULL */
    const char *known; /* the model of the catalog that is meant, or NULL */
    const char *vocab; /* the setting that says the size of the vocabulary */
    int64_t n_vocab;   /* the tokenizer's, where that is absent; 0: unknown */
    int64_t world;     /* 0: not said */
    /* The model's activation, where no argument of Megatron-LM says it. */
    bool has_activation;
    fr_activation activation;
} fr_megatron_source;

/* Reads the arguments, marks the settings that they came from as read, and
 * notes the others, of which no prediction depends on the plain ones. */
FR_CHECKED fr_status fr_megatron_read_settings(fr_megatron_flags *flags,
                                               const fr_megatron_source *source,
                                               fr_settings *settings,
                                               fr_setting_test *is_plain,
                                               fr_config *out, fr_err *err);

/* Does no prediction depend on the argument of that last name? */
fr_setting_test fr_megatron_is_plain_setting;

/* Entries of a tokenizer of the Hugging Face hub; 0: it is not known. */
int64_t fr_megatron_tokenizer_vocab(const char *name);

#endif
