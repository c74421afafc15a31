/*
 * megatron_flags.h: arguments of Megatron-LM as a file has them: in a shell
 * script, alone, or as "name: value"; or as settings of a library over Megatron
 * Core (megatron_settings.h).  Private to the readers of them.
 */
#ifndef FR_FRAMEWORKS_MEGATRON_READ_MEGATRON_FLAGS_H
#define FR_FRAMEWORKS_MEGATRON_READ_MEGATRON_FLAGS_H

#include "core/shell/shell.h"
#include "frameworks/framework_keys.h"
#include "frameworks/read/config_script.h"
#include "frameworks/read/settings.h"

/* --name value ...: n_values words after it. */
typedef struct fr_megatron_flag {
    const char *name; /* without "--" */
    const fr_shell_word *values;
    size_t n_values;
    int line;
    const fr_setting *setting; /* that says it; NULL: it is an argument */
    bool is_read;
} fr_megatron_flag;

typedef struct fr_megatron_flags {
    const char *path;
    const fr_config_request *request;
    fr_shell shell;
    fr_shell_words words; /* those of the arguments */
    fr_vec(fr_megatron_flag) flags;
    int64_t world; /* of torchrun's options, 0: not said */
} fr_megatron_flags;

/* The arguments that a file has, or that its script has on one way through it,
 * whose `end` is set. */
FR_CHECKED fr_status fr_megatron_flags_parse(const fr_config_request *request,
                                             fr_script_way *way,
                                             fr_megatron_flags *out,
                                             fr_buffer *notes, fr_err *err);
/* Is it "name: value"?  Else it is a shell script. */
bool fr_megatron_is_yaml(const fr_config_request *request);
/* Is a text YAML of a framework over Megatron-LM, or like it, which has a
 * reader?  Others are refused here, by their names. */
bool fr_megatron_is_relative(const char *text);
/* Words "--name" and values; FR_INPUT, by name, for YAML of NeMo, Primus,
 * GPT-NeoX and the like. */
FR_CHECKED fr_status fr_megatron_parse_yaml(const fr_config_request *request,
                                            fr_shell *out, fr_err *err);
void fr_megatron_flags_release(fr_megatron_flags *flags);

/* The last one of that name, as argparse takes it; NULL: absent.  All of that
 * name count as read. */
const fr_megatron_flag *fr_megatron_find(fr_megatron_flags *flags,
                                         const char *name);
bool fr_megatron_has(fr_megatron_flags *flags, const char *name);
/* Its only value; `otherwise` where it is absent; FR_INPUT without a value. */
FR_CHECKED fr_status fr_megatron_word(fr_megatron_flags *flags,
                                      const char *name, const char *otherwise,
                                      const char **out, fr_err *err);
/* Numbers: *out stays where the flag is absent. */
FR_CHECKED fr_status fr_megatron_i64(fr_megatron_flags *flags, const char *name,
                                     int64_t min, int64_t *out, fr_err *err);
FR_CHECKED fr_status fr_megatron_i32(fr_megatron_flags *flags, const char *name,
                                     int32_t min, int32_t *out, fr_err *err);
FR_CHECKED fr_status fr_megatron_real(fr_megatron_flags *flags,
                                      const char *name, double *out,
                                      fr_err *err);
/* Reads the members whose arguments a table of megatron_keys.h has, but for
 * those that have a reader of their own; a member without a word stays as it
 * is, a switch is set both ways.  FR_INPUT "path:line: ...". */
FR_CHECKED fr_status fr_megatron_read_rows(fr_megatron_flags *flags,
                                           const char *table,
                                           fr_plan_file *file, fr_err *err);
/* All of a table count as read. */
void fr_megatron_skip_rows(fr_megatron_flags *flags, const char *table);
/* Reads the member of one argument, whoever reads it otherwise. */
FR_CHECKED fr_status fr_megatron_read_key(fr_megatron_flags *flags,
                                          const char *name, fr_plan_file *file,
                                          fr_err *err);
/* FR_INPUT: "path:line: --name word: why". */
FR_CHECKED fr_status fr_megatron_refuse(const fr_megatron_flags *flags,
                                        const fr_megatron_flag *flag,
                                        const char *why, fr_err *err);

/* Refuses what changes the arithmetic and no plan or model has; before the
 * others are read. */
FR_CHECKED fr_status fr_megatron_check_flags(fr_megatron_flags *flags,
                                             bool has_model, fr_err *err);
/* Does no prediction depend on the argument? */
bool fr_megatron_is_plain(const char *name);
/* Notes what nobody has read. */
void fr_megatron_note_rest(const fr_megatron_flags *flags, fr_buffer *notes);

/* Reads all of them, and the model where the request has none. */
FR_CHECKED fr_status fr_megatron_read_flags(fr_megatron_flags *flags,
                                            const fr_config_request *request,
                                            fr_config *out, fr_err *err);

/* Readers of parts: config_megatron_model.c, _job.c, _plan.c. */
FR_CHECKED fr_status fr_megatron_read_model(fr_megatron_flags *flags,
                                            int version, fr_config *out,
                                            fr_err *err);
/* Experts, the router that chooses them, and the layers that have them. */
FR_CHECKED fr_status fr_megatron_read_experts(fr_megatron_flags *flags,
                                              fr_plan_file *file,
                                              fr_buffer *notes, fr_err *err);
/*
 * The list that --moe-layer-freq says, "([0]*3+[1]*58)" or "[0,1]*4": a 0 or 1
 * for each of at most n_most layers, written to out; returns how many, -1: it
 * is no such list.  Lists, numbers, +, * and brackets as Python has them
 * (megatron/training/arguments.py, moe_freq_type).
 */
int64_t fr_megatron_layer_list(const char *text, int64_t n_most, char *out);
/* Flags of the model count as read, where --model names it. */
void fr_megatron_skip_model(fr_megatron_flags *flags);
FR_CHECKED fr_status fr_megatron_read_job(fr_megatron_flags *flags,
                                          fr_config *out, fr_err *err);
FR_CHECKED fr_status fr_megatron_read_parallel(fr_megatron_flags *flags,
                                               const fr_config_request *request,
                                               fr_config *out, fr_err *err);
/* The ZeRO stage of Megatron-DeepSpeed: of the file of --deepspeed_config,
 * which the script may write, else of --zero-stage. */
FR_CHECKED fr_status fr_megatron_read_deepspeed(fr_megatron_flags *flags,
                                                fr_config *out, fr_err *err);
FR_CHECKED fr_status fr_megatron_read_memory(fr_megatron_flags *flags,
                                             int version, fr_config *out,
                                             fr_err *err);

#endif
