/* config_megatron_deepspeed.c: the ZeRO stage of a training by
 * Megatron-DeepSpeed. */
#include "core/document/json.h"
#include "frameworks/megatron/read/megatron_flags.h"

#include <stdlib.h>
#include <string.h>

/* The stage that a ds_config has; false: the text is no such file, or has
 * values that are unknown. */
static bool find_stage(const char *name, const char *text, size_t n,
                       int64_t *stage)
{
    fr_json *json;
    fr_err unused;
    if (fr_json_parse(name, text, n, &json, &unused) != FR_OK)
        return false;
    const fr_json_value *root = fr_json_root(json);
    const fr_json_value *zero = fr_json_kind_of(root) == FR_JSON_OBJECT
                                    ? fr_json_find(root, "zero_optimization")
                                    : NULL;
    const fr_json_value *value =
        zero != NULL && fr_json_kind_of(zero) == FR_JSON_OBJECT
            ? fr_json_find(zero, "stage")
            : NULL;
    const bool is_read =
        fr_json_kind_of(root) == FR_JSON_OBJECT &&
        (value == NULL || fr_json_as_i64(value, stage, &unused) == FR_OK);
    if (is_read && value == NULL)
        *stage = 0;
    fr_json_destroy(json);
    return is_read;
}

/* The stage of the file of --deepspeed_config, which the script writes or which
 * is there. */
static bool find_file_stage(fr_megatron_flags *flags, const char *name,
                            int64_t *stage)
{
    const char *written = fr_shell_find_file(&flags->shell, name);
    char *text;
    size_t n;
    fr_err unused;
    if (written != NULL)
        return find_stage(name, written, strlen(written), stage);
    if (fr_shell_unknown_in(&flags->shell, name) != NULL ||
        fr_config_read_named(flags->request, name, &text, &n, &unused) != FR_OK)
        return false;
    const bool is_found = find_stage(name, text, n, stage);
    free(text);
    return is_found;
}

fr_status fr_megatron_read_deepspeed(fr_megatron_flags *flags, fr_config *out,
                                     fr_err *err)
{
    const fr_megatron_flag *file = fr_megatron_find(flags, "deepspeed_config");
    fr_plan *plan = &out->file.plan;
    char shown[101], mend[160];
    int64_t stage = 1; /* megatron/arguments.py, --zero-stage */
    if (!fr_megatron_has(flags, "deepspeed"))
        return FR_OK;
    FR_TRY(fr_megatron_i64(flags, "zero-stage", 0, &stage, err));
    const char *name =
        file != NULL && file->n_values > 0 ? file->values[0].text : NULL;
    const bool is_known = name == NULL || find_file_stage(flags, name, &stage);
    const char *written =
        is_known ? NULL : fr_shell_find_file(&flags->shell, name);
    const fr_shell_unknown *unknown =
        written != NULL ? fr_shell_unknown_in(&flags->shell, written) : NULL;
    if (unknown != NULL)
        return fr_fail(
            err, FR_INPUT, "%s:%d: %s depends on %s, %s", flags->path,
            file->line, fr_shell_show(&flags->shell, name, shown, sizeof shown),
            unknown->text, fr_shell_mend(unknown, "1", mend, sizeof mend));
    if (!is_known && !fr_megatron_has(flags, "zero-stage"))
        return fr_fail(err, FR_INPUT,
                       "%s:%d: the ZeRO stage is in %s, which is not there: "
                       "put it into the folder of the script",
                       flags->path, file->line,
                       fr_shell_show(&flags->shell, name, shown, sizeof shown));
    if (!is_known)
        fr_buffer_printf(
            &out->notes, "%s is not there: ZeRO %lld, of --zero-stage\n",
            fr_shell_show(&flags->shell, name, shown, sizeof shown),
            (long long)stage);
    if (stage > 3)
        return fr_megatron_refuse(flags, fr_megatron_find(flags, "deepspeed"),
                                  "its ZeRO stage is none from 0 to 3", err);
    plan->zero_stage = (int32_t)stage;
    /* DeepSpeed's BF16_Optimizer, which bf16 without ZeRO takes, shares the
     * states of the optimizer by itself (runtime/bf16_optimizer.py). */
    if (stage == 0 && fr_megatron_has(flags, "bf16"))
        plan->zero_stage = 1;
    return FR_OK;
}
