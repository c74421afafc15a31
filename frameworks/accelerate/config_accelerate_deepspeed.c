/*
 * config_accelerate_deepspeed.c: deepspeed_config of Accelerate
 * (utils/dataclasses.py, DeepSpeedPlugin), and the ds_config.json that it
 * names or stands for.
 */
#include "core/system/fileio.h"
#include "frameworks/accelerate/accelerate_reader.h"
#include "frameworks/deepspeed/config_deepspeed.h"
#include "frameworks/framework_list.h"
#include "frameworks/read/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const fr_config_key deepspeed_keys[] = {
    {"deepspeed_config_file", NULL},
    {"deepspeed_multinode_launcher", NULL},
    {"deepspeed_hostfile", NULL},
    {"deepspeed_exclusion_filter", NULL},
    {"deepspeed_inclusion_filter", NULL},
    {"deepspeed_moe_layer_cls_names", NULL},
    {"zero3_init_flag", NULL},
    {"zero3_save_16bit_model", NULL},
    {"zero_stage", NULL},
    {"gradient_accumulation_steps", NULL},
    {"gradient_clipping", NULL},
    {"offload_optimizer_device", NULL},
    {"offload_optimizer_nvme_path", NULL},
    {"offload_param_device", "no plan has parameters on the host"},
    {"offload_param_nvme_path", NULL},
};

/* utils/dataclasses.py, _deepspeed_config_checks(). */
static fr_status check_alone(fr_accelerate_reader *r, const fr_json_value *part)
{
    static const char *const keys[] = {"gradient_accumulation_steps",
                                       "gradient_clipping",
                                       "zero_stage",
                                       "offload_optimizer_device",
                                       "offload_param_device",
                                       "zero3_save_16bit_model"};
    const fr_json_value *value = fr_json_find(r->root, "mixed_precision");
    const char *key = "mixed_precision";
    for (size_t i = 0; value == NULL && i < FR_LENGTH(keys); i++) {
        key = keys[i];
        value = fr_json_find(part, key);
    }
    if (value == NULL)
        return FR_OK;
    return fr_json_fail(value, r->err,
                        "accelerate launch refuses %s beside "
                        "deepspeed_config_file; leave it out, the other file "
                        "says it",
                        key);
}

/* The ds_config.json `text`, of so many ranks that share no sequence unless it
 * has them itself. */
static fr_status read_ds_config(fr_accelerate_reader *r, const char *path,
                                const char *text, size_t n_text)
{
    fr_config_request request = *r->request;
    fr_plan *plan = &r->out->file.plan;
    const bool is_split = memmem(text, n_text, "sequence_parallel_size",
                                 sizeof "sequence_parallel_size" - 1) != NULL;
    int32_t n_sequence = 1;
    FR_TRY(fr_accelerate_read_ulysses(r, &n_sequence));
    request.path = path;
    request.text = text;
    request.n_text = n_text;
    if (r->n_processes > 0)
        request.world = r->n_processes;
    if (!is_split && request.world % n_sequence == 0)
        request.world /= n_sequence;
    FR_TRY(fr_config_deepspeed.read(&request, r->out, r->err));
    if (!is_split && n_sequence > 1) {
        plan->cp = n_sequence;
        plan->cp_kind = FR_CP_ALL_TO_ALL;
    }
    if (r->is_compiled)
        plan->execution.kernels = FR_KERNELS_COMPILED;
    return FR_OK;
}

/* The file that is named, in the folder of this one unless it says where. */
static fr_status load_ds_config(fr_accelerate_reader *r,
                                const fr_json_value *value)
{
    char folder[2048], path[4096];
    const char *name;
    char *text;
    size_t n_text;
    fr_err why;
    FR_TRY(fr_json_as_string(value, &name, r->err));
    FR_TRY(fr_path_dir(r->request->path, folder, sizeof folder, r->err));
    snprintf(path, sizeof path, "%s%s%.2000s", name[0] == '/' ? "" : folder,
             name[0] == '/' ? "" : "/", name);
    fr_status status =
        r->request->read_file != NULL
            ? r->request->read_file(r->request->context, name, &text, &n_text,
                                    &why)
            : fr_file_read(path, FR_FILE_BYTES_MAX, &text, &n_text, &why);
    if (status == FR_NO_MEMORY)
        return fr_fail_no_memory(r->err);
    if (status != FR_OK)
        return fr_json_fail(value, r->err, "deepspeed_config_file: %s",
                            why.text);
    status = read_ds_config(r, path, text, n_text);
    free(text);
    return status;
}

/* Makes the ds_config that the plugin makes of the keys
 * (DeepSpeedPlugin.__post_init__). */
static fr_status make_ds_config(fr_accelerate_reader *r,
                                const fr_json_value *part)
{
    static const char *const devices[] = {"none", "cpu"};
    const fr_json_value *value;
    int64_t stage = 2, n_micro = 1;
    double clip_norm = 1;
    int device = 0;
    char text[512];
    value = fr_json_find(part, "zero_stage");
    if (value != NULL)
        FR_TRY(
            fr_deepspeed_read_count(value, "zero_stage", 0, 3, &stage, r->err));
    value = fr_deepspeed_find(part, "gradient_accumulation_steps", "1 is taken",
                              &r->out->notes);
    if (value != NULL)
        FR_TRY(fr_deepspeed_read_count(value, "gradient_accumulation_steps", 1,
                                       1 << 20, &n_micro, r->err));
    value = fr_deepspeed_find(part, "gradient_clipping", "1 is taken",
                              &r->out->notes);
    if (value != NULL)
        FR_TRY(fr_json_as_double(value, &clip_norm, r->err));
    FR_TRY(fr_accelerate_read_word(r, part, "offload_optimizer_device", devices,
                                   2, &device));
    int n = snprintf(text, sizeof text,
                     "{\"gradient_accumulation_steps\": %lld,"
                     "\"gradient_clipping\": %.17g,"
                     "\"bf16\": {\"enabled\": %s},"
                     "\"fp16\": {\"enabled\": %s},"
                     "\"zero_optimization\": {\"stage\": %lld,"
                     "\"offload_optimizer\": {\"device\": \"%s\"}}}",
                     (long long)n_micro, clip_norm,
                     r->precision >= FR_ACCELERATE_BF16 ? "true" : "false",
                     r->precision == FR_ACCELERATE_F16 ? "true" : "false",
                     (long long)stage, devices[device]);
    return read_ds_config(r, r->request->path, text, (size_t)n);
}

fr_status fr_accelerate_read_deepspeed(fr_accelerate_reader *r)
{
    const fr_json_value *part;
    FR_TRY(fr_accelerate_find_part(r, "deepspeed_config", deepspeed_keys,
                                   FR_LENGTH(deepspeed_keys), &part));
    const fr_json_value *file = fr_json_find(part, "deepspeed_config_file");
    if (file == NULL)
        return make_ds_config(r, part);
    FR_TRY(check_alone(r, part));
    return load_ds_config(r, file);
}
