/*
 * settings.h: a YAML file as a flat list of settings, each named by its keys
 * joined with dots ("model.num_layers"), so that files of several layouts are
 * read by tables of names.
 *
 * References are resolved: ${a.b}, ${.sibling} and ${multiply:2,${a.b}} as
 * OmegaConf has them (docs/source/usage.rst, 2.3), and ${NAME:default}, a
 * variable of the environment, as its default.
 */
#ifndef FR_FRAMEWORKS_READ_SETTINGS_H
#define FR_FRAMEWORKS_READ_SETTINGS_H

#include "core/base/arena.h"
#include "core/base/vec.h"
#include "core/document/json.h"
#include "frameworks/framework_keys.h"
#include "frameworks/read/config.h"

typedef struct fr_setting {
    const char *path;
    const fr_json_value *value; /* where it stands, for messages */
    const fr_json_value *list;  /* NULL: it is a scalar */
    const char *text;           /* of a scalar: as it stands, or is resolved */
    const char *file;           /* NULL: the first file */
    bool is_preset;             /* of a file that comes with the framework */
    bool is_read;
} fr_setting;

typedef struct fr_settings {
    const char *path; /* of the file, for messages */
    fr_arena arena;
    fr_vec(fr_json *) documents;
    fr_vec(fr_setting) items;
    /* These go with the next settings that are put. */
    const char *file;
    bool is_preset;
} fr_settings;

void fr_settings_init(fr_settings *settings, const char *path);
void fr_settings_release(fr_settings *settings);

/* Parses a file, which the settings then own; *out is its root. */
FR_CHECKED fr_status fr_settings_parse(fr_settings *settings, const char *path,
                                       const char *text, size_t n_text,
                                       const fr_json_value **out, fr_err *err);
/*
 * Appends all that an object (NULL: nothing) says, below `prefix` ("model.",
 * ""); what has the same name already is replaced, and a null takes it away.
 * FR_INPUT on more than 20,000 settings.
 */
FR_CHECKED fr_status fr_settings_put(fr_settings *settings,
                                     const fr_json_value *object,
                                     const char *prefix, fr_err *err);
/* Resolves the references of all scalars, after the last file was put.  One
 * that names nothing stays as it is. */
FR_CHECKED fr_status fr_settings_resolve(fr_settings *settings, fr_err *err);
/* The whole of a request's file: parsed, put and resolved. */
FR_CHECKED fr_status fr_settings_read(const fr_config_request *request,
                                      fr_settings *out, fr_err *err);

/* A configuration on its way from the settings of its file to a plan. */
typedef struct fr_settings_reader {
    const fr_config_request *request;
    fr_settings settings;
    fr_config *out;
    fr_err *err;
} fr_settings_reader;

/* Lets `body` read the request's file with empty settings, and frees them. */
FR_CHECKED fr_status fr_settings_read_config(
    const fr_config_request *request, fr_status (*body)(fr_settings_reader *),
    fr_config *out, fr_err *err);

/* NULL: the file does not say it.  It counts as read. */
const fr_setting *fr_settings_find(fr_settings *settings, const char *path);
/* The same, without counting as read. */
const fr_setting *fr_settings_peek(const fr_settings *settings,
                                   const char *path);
/* The first whose name begins so and which is not null, NULL: none. */
const fr_setting *fr_settings_first_below(const fr_settings *settings,
                                          const char *prefix);
/* All whose names begin so count as read. */
void fr_settings_skip(fr_settings *settings, const char *prefix);

/* FR_INPUT: "file:line: model.num_layers 3: why".  The second is for values
 * that are not understood, and names a reference to something unknown. */
FR_CHECKED fr_status fr_setting_refuse(const fr_setting *setting,
                                       const char *why, fr_err *err);
FR_CHECKED fr_status fr_setting_refuse_value(const fr_setting *setting,
                                             const char *why, fr_err *err);

/* Values; *out stays as it is where the file does not say it.  FR_INPUT on a
 * value that is none. */
FR_CHECKED fr_status fr_settings_i64(fr_settings *settings, const char *path,
                                     int64_t least, int64_t *out, fr_err *err);
FR_CHECKED fr_status fr_settings_i32(fr_settings *settings, const char *path,
                                     int32_t least, int32_t *out, fr_err *err);
/* From 0 to 1e30. */
FR_CHECKED fr_status fr_settings_real(fr_settings *settings, const char *path,
                                      double *out, fr_err *err);
FR_CHECKED fr_status fr_settings_bool(fr_settings *settings, const char *path,
                                      bool *out, fr_err *err);
FR_CHECKED fr_status fr_settings_word(fr_settings *settings, const char *path,
                                      const char **out, fr_err *err);

/*
 * Reads the members that rows of a table have keys for, but for rows with a
 * reader of their own; a row's setting is `before` and its name.  Rows whose
 * key is not read note why, where the file says something else than false,
 * null or nothing.
 */
FR_CHECKED fr_status fr_settings_read_rows(
    fr_settings *settings, fr_framework_keys keys, const char *table,
    const char *before, fr_plan_file *file, fr_buffer *notes, fr_err *err);

/* Is it a switch that is off, or an empty value? */
bool fr_setting_is_off(const fr_setting *setting);
typedef bool fr_setting_test(const char *path);
/* Does the name, or its last part, begin with one of these? */
bool fr_setting_begins(const char *path, const char *const *beginnings,
                       size_t n);
/* Notes what nobody has read and is not off: on one line the settings that are
 * plain, since no prediction depends on them; one line each for the others. */
void fr_settings_note_rest(const fr_settings *settings,
                           fr_setting_test *is_plain, fr_buffer *notes);

#endif
