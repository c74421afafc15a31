/* accelerate_values.c: see accelerate_reader.h. */
#include "frameworks/accelerate/accelerate_reader.h"
#include "frameworks/deepspeed/config_deepspeed.h"
#include "frameworks/framework_list.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* transformers, TrainingArguments: per_device_train_batch_size. */
enum { USUAL_MICRO_BATCH = 8 };

fr_status fr_accelerate_find_part(fr_accelerate_reader *r, const char *name,
                                  const fr_config_key *keys, size_t n,
                                  const fr_json_value **out)
{
    char where[64];
    snprintf(where, sizeof where, "%s.", name);
    *out = fr_json_find(r->root, name);
    return fr_config_check_keys(*out, where, keys, n, &r->out->notes, r->err);
}

fr_status fr_accelerate_read_switch(fr_accelerate_reader *r,
                                    const fr_json_value *part, const char *key,
                                    bool *out)
{
    const fr_json_value *value = fr_json_find(part, key);
    const char *text;
    if (value == NULL)
        return FR_OK;
    if (fr_json_kind_of(value) != FR_JSON_STRING)
        return fr_json_as_bool(value, out, r->err);
    FR_TRY(fr_json_as_string(value, &text, r->err));
    *out = strcasecmp(text, "true") == 0;
    return *out || strcasecmp(text, "false") == 0
               ? FR_OK
               : fr_json_fail(value, r->err, "%s '%.40s'; give true or false",
                              key, text);
}

fr_status fr_accelerate_read_degree(fr_accelerate_reader *r,
                                    const fr_json_value *part, const char *key,
                                    int32_t *out)
{
    const fr_json_value *value = fr_json_find(part, key);
    int64_t n;
    if (value == NULL)
        return FR_OK;
    FR_TRY(fr_deepspeed_read_count(value, key, 1, 1 << 20, &n, r->err));
    *out = (int32_t)n;
    return FR_OK;
}

fr_status fr_accelerate_read_word(fr_accelerate_reader *r,
                                  const fr_json_value *part, const char *key,
                                  const char *const *words, int n, int *out)
{
    const fr_json_value *value = fr_json_find(part, key);
    const char *text;
    fr_buffer known;
    if (value == NULL)
        return FR_OK;
    FR_TRY(fr_json_as_string(value, &text, r->err));
    for (int i = 0; i < n; i++)
        if (strcasecmp(words[i], text) == 0) {
            *out = i;
            return FR_OK;
        }
    fr_buffer_init(&known);
    for (int i = 0; i < n; i++)
        fr_buffer_printf(&known, "%s%s", i > 0 ? ", " : "", words[i]);
    fr_status status = fr_json_fail(value, r->err, "%s '%.40s'; give one of %s",
                                    key, text, fr_buffer_text(&known));
    fr_buffer_release(&known);
    return status;
}

void fr_accelerate_take_batch(fr_accelerate_reader *r, int64_t n_micro)
{
    fr_plan *plan = &r->out->file.plan;
    plan->micro_batch = USUAL_MICRO_BATCH;
    r->out->file.job.global_batch = USUAL_MICRO_BATCH * n_micro * plan->dp;
    fr_buffer_printf(&r->out->notes,
                     "micro-batch %d, as Hugging Face's Trainer has it, and a "
                     "global batch of %lld: the training script says them; "
                     "give --micro-batch and --global-batch\n",
                     USUAL_MICRO_BATCH,
                     (long long)r->out->file.job.global_batch);
}

fr_status fr_accelerate_take_script(fr_accelerate_reader *r,
                                    const fr_framework *runner)
{
    static const fr_dtype dtypes[FR_ACCELERATE_PRECISIONS_N] = {
        [FR_ACCELERATE_F32] = FR_DTYPE_F32,
        [FR_ACCELERATE_F16] = FR_DTYPE_F16,
        [FR_ACCELERATE_BF16] = FR_DTYPE_BF16,
        [FR_ACCELERATE_FP8] = FR_DTYPE_FP8};
    fr_plan *plan = &r->out->file.plan;
    FR_TRY(fr_config_take_model(r->request, NULL, NULL, r->out, r->err));
    fr_config_take_seq(r->request, r->out);
    fr_config_take_kernels(runner, r->out);
    plan->precision = dtypes[r->precision];
    if (r->is_compiled)
        plan->execution.kernels = FR_KERNELS_COMPILED;
    /* state.py, AcceleratorState: allow_tf32. */
    if (r->is_compiled && plan->precision == FR_DTYPE_F32)
        plan->precision = FR_DTYPE_TF32;
    return FR_OK;
}
