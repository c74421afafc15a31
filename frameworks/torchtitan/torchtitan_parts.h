/*
 * torchtitan_parts.h: models that torchtitan has in a registry of its own, by
 * their shape, and what it makes again in backward.
 */
#ifndef FR_FRAMEWORKS_TORCHTITAN_TORCHTITAN_PARTS_H
#define FR_FRAMEWORKS_TORCHTITAN_TORCHTITAN_PARTS_H

#include "frameworks/read/config_parts.h"

/* torchtitan/models/NAME. */
typedef enum fr_torchtitan_family {
    FR_TORCHTITAN_LLAMA3,
    FR_TORCHTITAN_QWEN3,
    FR_TORCHTITAN_DEEPSEEK_V3
} fr_torchtitan_family;

/* Words of a configuration. */
typedef struct fr_torchtitan_words {
    const char *name;   /* of the family */
    const char *flavor; /* NULL: it has none with these sizes */
    const char *recipe; /* a function of main's config_registry: of this flavor,
                           or of one with the same data and loss */
} fr_torchtitan_words;

/* Returns the names of a model that the target allows, for main or 0.2. */
fr_torchtitan_words fr_torchtitan_words_of(const fr_model *model, bool is_main);

/* The catalog's name of a registered model; NULL: it has none. */
const char *fr_torchtitan_model_of(const char *name, const char *flavor);

/* The sizes that a flavor has to be given, under torchtitan's names, a line
 * each behind `prefix`. */
void fr_torchtitan_put_sizes(const fr_model *model, const char *prefix,
                             fr_buffer *out);

/* Puts a line behind `prefix` for each value that the family fixes and the
 * model has otherwise (rotary frequencies). */
void fr_torchtitan_put_differences(const fr_model *model, const char *prefix,
                                   fr_buffer *out);

/* selective_ac_option of [activation_checkpoint]; NULL: its default.  The
 * model, pp, vpp and the mode are there. */
FR_CHECKED fr_status fr_torchtitan_read_recompute(const fr_json_value *table,
                                                  fr_config *out, fr_err *err);

#endif
