/*
 * config_megatron.c: arguments of Megatron-LM's pretrain_gpt.py, in the script
 * that starts it, alone in a file, or as "name: value".
 */
#include "core/base/text.h"
#include "frameworks/framework_list.h"
#include "frameworks/megatron/read/megatron_flags.h"
#include "frameworks/megatron/target_megatron.h"
#include "frameworks/read/config_parts.h"

#include <string.h>

/* The release that our own scripts name; else the newest. */
static int find_version(const fr_config_request *request)
{
    static const char mark[] = "tag core_v0.";
    const char *at = strstr(request->text, mark);
    char *end;
    if (at == NULL)
        return FR_MEGATRON_VERSIONS_N - 1;
    long minor = strtol(at + strlen(mark), &end, 10);
    long version = minor - 8;
    return *end == '.' && version >= 0 && version < FR_MEGATRON_VERSIONS_N
               ? (int)version
               : FR_MEGATRON_VERSIONS_N - 1;
}

fr_status fr_megatron_read_flags(fr_megatron_flags *flags,
                                 const fr_config_request *request,
                                 fr_config *out, fr_err *err)
{
    int version = find_version(request);
    bool has_model = request->model != NULL;
    FR_TRY(fr_megatron_check_flags(flags, has_model, err));
    if (has_model) {
        FR_TRY(fr_config_take_model(request, NULL, NULL, out, err));
        fr_megatron_skip_model(flags);
    } else {
        FR_TRY(fr_megatron_read_model(flags, version, out, err));
    }
    FR_TRY(fr_megatron_read_parallel(flags, request, out, err));
    FR_TRY(fr_megatron_read_job(flags, out, err));
    return fr_megatron_read_memory(flags, version, out, err);
}

static fr_status read_way(const fr_config_request *request, fr_script_way *way,
                          fr_config *out, fr_err *err)
{
    fr_megatron_flags flags;
    fr_status status =
        fr_megatron_flags_parse(request, way, &flags, &out->notes, err);
    if (status == FR_OK)
        status = fr_megatron_read_flags(&flags, request, out, err);
    if (status == FR_OK)
        fr_megatron_note_rest(&flags, &out->notes);
    fr_megatron_flags_release(&flags);
    return status;
}

static fr_status read_config(const fr_config_request *request, fr_config *out,
                             fr_err *err)
{
    fr_script_way way = {0};
    return fr_megatron_is_yaml(request)
               ? read_way(request, &way, out, err)
               : fr_config_read_script(request, read_way, out, err);
}

static bool looks_like(const char *text, size_t n)
{
    static const char *const marks[] = {
        "tensor-model-parallel-size", "tensor_model_parallel_size",
        "--num-attention-heads", "pretrain_gpt.py"};
    (void)n;
    if (text[strspn(text, " \t\r\n")] == '{' || fr_megatron_is_relative(text))
        return false; /* JSON, or another framework's */
    for (size_t i = 0; i < FR_LENGTH(marks); i++)
        if (strstr(text, marks[i]) != NULL)
            return true;
    return false;
}

const fr_config_format fr_config_megatron = {
    .summary = "arguments of Megatron-LM, as in a shell script",
    .looks_like = looks_like,
    .read = read_config,
};
