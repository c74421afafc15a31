/*
 * config_choice.h: a configuration of a framework as model, job and plan, with
 * what --model, --ranks and --seq say beside it.
 */
#ifndef FR_CLI_SUBJECT_CONFIG_CHOICE_H
#define FR_CLI_SUBJECT_CONFIG_CHOICE_H

#include "cli/command.h"
#include "interop/config/config.h"

/* A file that was read. */
typedef struct fr_config_source {
    const fr_config_format *format;
    const char *path;
    const char *text; /* n_text bytes and a NUL */
    size_t n_text;
    const fr_model *model; /* NULL: --model */
    int64_t world; /* where neither --ranks nor the file says it; 0: unknown */
} fr_config_source;

/*
 * The file of --from, whatever its format; its notes go to stderr.  `world`:
 * ranks where nobody says how many; `model` may be NULL.  fr_config_release()
 * frees what came out.
 */
FR_CHECKED fr_status fr_config_choice_from(const fr_cli *cli,
                                           const fr_model *model, int64_t world,
                                           fr_config *out, fr_err *err);

/* `import FORMAT FILE`: the plan file, or with --json what it holds. */
FR_CHECKED fr_status fr_config_choice_print(const fr_cli *cli,
                                            const fr_config_source *source,
                                            fr_err *err);

#endif
