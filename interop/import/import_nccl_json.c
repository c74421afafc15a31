/* import_nccl_json.c: what nccl-tests writes with -J, version 3. */
#include "core/base/text.h"
#include "core/document/json.h"
#include "interop/import/import_nccl_tests.h"

#include <string.h>

static fr_status read_side(const fr_json_value *result, const char *key,
                           double *time_s, int64_t *n_wrong, fr_err *err)
{
    const fr_json_value *side, *wrong;
    FR_TRY(fr_json_get_object(result, key, &side, err));
    FR_TRY(fr_json_get_double(side, "time", time_s, err));
    *time_s /= 1e6;
    wrong = fr_json_find(side, "nwrong");
    if (wrong == NULL || fr_json_kind_of(wrong) == FR_JSON_STRING)
        return FR_OK; /* not checked */
    int64_t n;
    FR_TRY(fr_json_as_i64(wrong, &n, err));
    *n_wrong = n > INT64_MAX - *n_wrong ? INT64_MAX : *n_wrong + n;
    return FR_OK;
}

static fr_status read_results(const fr_import_text *in,
                              const fr_json_value *root, fr_import *out,
                              fr_err *err)
{
    const fr_json_value *results;
    FR_TRY(fr_json_get_array(root, "results", &results, err));
    for (size_t i = 0; i < fr_json_n(results); i++) {
        const fr_json_value *at = fr_json_at(results, i);
        fr_nccl_timing row = {.line = fr_json_line(at)};
        FR_TRY(fr_json_get_u64(at, "size", &row.n_bytes, err));
        FR_TRY(
            read_side(at, "out_of_place", &row.time_s[0], &row.n_wrong, err));
        FR_TRY(read_side(at, "in_place", &row.time_s[1], &row.n_wrong, err));
        FR_TRY(fr_nccl_add(in, &row, out, err));
    }
    return FR_OK;
}

static fr_status read_devices(const fr_json_value *root, fr_nccl_run *run,
                              fr_err *err)
{
    const fr_json_value *devices;
    FR_TRY(fr_json_get_array(root, "devices", &devices, err));
    for (size_t i = 0; i < fr_json_n(devices); i++) {
        const fr_json_value *at = fr_json_at(devices, i);
        const char *host, *device;
        bool is_new = true;
        FR_TRY(fr_json_get_string(at, "hostname", &host, err));
        FR_TRY(fr_json_get_string_or(at, "device_info", "", &device, err));
        for (size_t k = 0; k < i && is_new; k++) {
            const char *other = "";
            FR_TRY(fr_json_get_string(fr_json_at(devices, k), "hostname",
                                      &other, err));
            is_new = strcmp(other, host) != 0;
        }
        run->n_hosts += is_new;
        run->n_ranks++;
        if (i == 0)
            fr_text_copy_cut(run->device, sizeof run->device, device);
        if (i > 1u << 16)
            return fr_json_fail(at, err, "more than %u ranks", 1u << 16);
    }
    return FR_OK;
}

/* "args" is a string or an array of words; the first names the program. */
static const char *op_of_args(const fr_json_value *args)
{
    const char *text = NULL, *op = NULL;
    if (args == NULL)
        return NULL;
    if (fr_json_kind_of(args) == FR_JSON_STRING)
        return fr_json_as_string(args, &text, NULL) == FR_OK
                   ? fr_nccl_op_of(text)
                   : NULL;
    for (size_t i = 0; i < fr_json_n(args) && op == NULL; i++)
        if (fr_json_as_string(fr_json_at(args, i), &text, NULL) == FR_OK)
            op = fr_nccl_op_of(text);
    return op;
}

static fr_status read_root(const fr_import_text *in, const fr_json_value *root,
                           fr_import *out, fr_err *err)
{
    fr_nccl_run run = {0};
    int64_t version, n_iterations = 0;
    FR_TRY(fr_json_get_i64(root, "version", &version, err));
    if (version != 3)
        return fr_json_fail(root, err,
                            "version %lld of nccl-tests' JSON; 3 is known",
                            (long long)version);
    run.op = op_of_args(fr_json_find(root, "args"));
    FR_TRY(fr_nccl_take_test(in, &run, fr_json_line(root), err));
    const fr_json_value *config = fr_json_find(root, "config");
    if (config != NULL)
        FR_TRY(fr_json_get_i64_or(config, "iterations", 0, &n_iterations, err));
    run.n_iterations =
        n_iterations > 0 && n_iterations < 1 << 30 ? (int)n_iterations : 1;
    const fr_json_value *bounds = fr_json_find(root, "out_of_bounds");
    bool is_okay = true;
    if (bounds != NULL)
        FR_TRY(fr_json_get_bool_or(bounds, "okay", true, &is_okay, err));
    if (!is_okay)
        return fr_json_fail(bounds, err,
                            "out of bounds values: these results are of a "
                            "broken machine; run again");
    FR_TRY(read_devices(root, &run, err));
    FR_TRY(read_results(in, root, out, err));
    return fr_nccl_finish(in, &run, fr_json_line(root), out, err);
}

fr_status fr_nccl_read_json(const fr_import_text *in, fr_import *out,
                            fr_err *err)
{
    fr_json *json;
    FR_TRY(fr_json_parse(in->name, in->text, in->n, &json, err));
    fr_status status = read_root(in, fr_json_root(json), out, err);
    fr_json_destroy(json);
    return status;
}
