/*
 * profile_json.c: a profile as JSON, schema "forerun.profile/1".
 */
#include "core/base/buffer.h"
#include "core/base/hash.h"
#include "core/document/json.h"
#include "core/system/fileio.h"
#include "spec/profile/profile.h"
#include "spec/profile/profile_fields.h"

#include <stdlib.h>
#include <string.h>

/* ---- writer ------------------------------------------------------------- */

static void write_record(fr_json_writer *json, const fr_profile *profile,
                         const fr_record *record)
{
    size_t n;
    const void *items = fr_profile_items(profile, record, &n);

    if (!record->is_optional || n > 0)
        fr_fields_put_structs(record->key, record->fields, record->n_fields,
                              items, n, record->item_bytes, json);
}

/* Writes the part that only profiles of a GPU have. */
static void write_gpu(fr_json_writer *json, const fr_profile *profile)
{
    if (!fr_profile_is_gpu(profile))
        return;
    fr_json_key(json, "gpu");
    fr_fields_write(fr_gpu_print_fields, fr_gpu_print_fields_n,
                    &profile->fingerprint.gpu, json);
    fr_json_key(json, "gpu_costs");
    fr_fields_write(fr_gpu_costs_fields, fr_gpu_costs_fields_n, &profile->gpu,
                    json);
}

static void write_running(fr_json_writer *json, const fr_running_costs *costs)
{
    if (costs->n_ranks == 0)
        return;
    fr_json_key(json, "running");
    fr_fields_write(fr_running_fields, fr_running_fields_n, costs, json);
}

fr_status fr_profile_format(const fr_profile *profile, fr_buffer *out,
                            fr_err *err)
{
    fr_json_writer json;
    char hash[17];

    fr_json_writer_init(&json, out);
    fr_json_begin_object(&json);
    fr_json_put_string(&json, "schema", FR_PROFILE_SCHEMA);
    fr_hash_format(fr_fingerprint_hash(&profile->fingerprint), hash);
    fr_json_put_string(&json, "fingerprint_hash", hash);
    fr_json_key(&json, "fingerprint");
    fr_fields_write(fr_fingerprint_fields, fr_fingerprint_fields_n,
                    &profile->fingerprint, &json);
    write_gpu(&json, profile);
    fr_fields_put(fr_profile_scalars, fr_profile_scalars_n, profile, &json);
    write_running(&json, &profile->running);
    for (size_t i = 0; i < FR_RECORDS_N; i++)
        write_record(&json, profile, &fr_profile_records[i]);
    fr_json_end_object(&json);
    return fr_buffer_check(out, err);
}

fr_status fr_profile_save(const fr_profile *profile, const char *path,
                          fr_err *err)
{
    fr_status status;
    fr_buffer buffer;

    fr_buffer_init(&buffer);
    status = fr_profile_format(profile, &buffer, err);
    fr_buffer_putc(&buffer, '\n');
    if (status == FR_OK)
        status = fr_buffer_check(&buffer, err);
    if (status == FR_OK)
        status = fr_file_write(path, fr_buffer_text(&buffer), buffer.n, err);
    fr_buffer_release(&buffer);
    return status;
}

/* ---- reader ------------------------------------------------------------- */

static fr_status read_text(const fr_json_value *value, const fr_field *field,
                           void *at, fr_err *err)
{
    const char *text;

    FR_TRY(fr_json_as_string(value, &text, err));
    if (strlen(text) >= field->n_bytes)
        return fr_json_fail(value, err, "'%s' is longer than %zu bytes",
                            field->key, field->n_bytes - 1);
    if (field->min > 0 && text[0] == '\0')
        return fr_json_fail(value, err, "'%s' is empty", field->key);
    memset(at, 0, field->n_bytes);
    memcpy(at, text, strlen(text));
    return FR_OK;
}

static fr_status read_dims(const fr_json_value *value, const fr_field *field,
                           void *at, fr_err *err)
{
    const int64_t most = INT64_C(1) << 40;
    int64_t dim[FR_PROFILE_DIMS];

    if (fr_json_kind_of(value) != FR_JSON_ARRAY ||
        fr_json_n(value) != FR_PROFILE_DIMS)
        return fr_json_fail(value, err, "'%s' must be %d whole numbers",
                            field->key, FR_PROFILE_DIMS);
    for (size_t i = 0; i < FR_PROFILE_DIMS; i++) {
        FR_TRY(fr_json_as_i64(fr_json_at(value, i), &dim[i], err));
        if (dim[i] < 0)
            return fr_json_fail(value, err, "'%s' has a negative entry",
                                field->key);
        if (dim[i] > most)
            return fr_json_fail(value, err, "'%s' has an entry above 2^40",
                                field->key);
    }
    memcpy(at, dim, sizeof dim);
    return FR_OK;
}

static fr_status check_most(const fr_json_value *value, const fr_field *field,
                            double number, fr_err *err)
{
    if (field->max <= 0 || number <= field->max)
        return FR_OK;
    return fr_json_fail(value, err, "'%s' is %g; give at most %g", field->key,
                        number, field->max);
}

static fr_status read_whole(const fr_json_value *value, const fr_field *field,
                            void *at, fr_err *err)
{
    uint64_t number;
    uint64_t most = field->kind == FR_FIELD_U64   ? UINT64_MAX
                    : field->kind == FR_FIELD_U32 ? UINT32_MAX
                                                  : INT32_MAX;

    FR_TRY(fr_json_as_u64(value, &number, err));
    if (number > most || (field->min > 0 && number == 0))
        return fr_json_fail(value, err, "'%s' is out of range", field->key);
    FR_TRY(check_most(value, field, (double)number, err));
    if (field->kind == FR_FIELD_U64) {
        memcpy(at, &number, sizeof number);
    } else {
        uint32_t small = (uint32_t)number;
        memcpy(at, &small, sizeof small);
    }
    return FR_OK;
}

static fr_status read_number(const fr_json_value *value, const fr_field *field,
                             void *at, fr_err *err)
{
    double number;

    FR_TRY(fr_json_as_double(value, &number, err));
    if (number < 0.0 || (field->min > 0 && number <= 0.0))
        return fr_json_fail(value, err, "'%s' must be %s", field->key,
                            field->min > 0 ? "positive" : ">= 0");
    FR_TRY(check_most(value, field, number, err));
    memcpy(at, &number, sizeof number);
    return FR_OK;
}

static fr_status read_field(const fr_json_value *object, const fr_field *field,
                            void *item, fr_err *err)
{
    void *at = (char *)item + field->offset;
    const fr_json_value *value = fr_json_find(object, field->key);
    bool flag;

    if (value == NULL && field->is_optional)
        return FR_OK;
    if (value == NULL)
        return fr_json_fail(object, err, "'%s' is missing", field->key);
    switch (field->kind) {
    case FR_FIELD_TEXT:
        return read_text(value, field, at, err);
    case FR_FIELD_BOOL:
        FR_TRY(fr_json_as_bool(value, &flag, err));
        memcpy(at, &flag, sizeof flag);
        return FR_OK;
    case FR_FIELD_DOUBLE:
        return read_number(value, field, at, err);
    case FR_FIELD_ROW:
        return read_dims(value, field, at, err);
    default:
        return read_whole(value, field, at, err);
    }
}

enum { KEYS_MAX = 32 };

/* The members of `object` are those of the table and the `more` keys. */
static fr_status read_fields(const fr_json_value *object,
                             const fr_field *fields, size_t n_fields,
                             const char *const *more, size_t n_more, void *item,
                             fr_err *err)
{
    const char *keys[KEYS_MAX];
    size_t n_keys = 0;

    for (size_t i = 0; i < n_fields; i++)
        keys[n_keys++] = fields[i].key;
    for (size_t i = 0; i < n_more; i++)
        keys[n_keys++] = more[i];
    FR_TRY(fr_json_check_keys(object, keys, n_keys, err));
    for (size_t i = 0; i < n_fields; i++)
        FR_TRY(read_field(object, &fields[i], item, err));
    return FR_OK;
}

static fr_status read_record(const fr_json_value *root, const fr_record *record,
                             fr_profile *profile, fr_err *err)
{
    const fr_json_value *array;
    union {
        fr_compute_point compute;
        fr_comm_point comm;
        fr_sharing_point sharing;
        fr_rate_point rate;
        fr_held_out held_out;
        fr_others_point others;
        fr_step_point step;
        fr_run_point run;
    } item;

    if (record->is_optional && fr_json_find(root, record->key) == NULL)
        return FR_OK;
    FR_TRY(fr_json_get_array(root, record->key, &array, err));
    for (size_t i = 0; i < fr_json_n(array); i++) {
        const fr_json_value *object = fr_json_at(array, i);
        if (fr_json_kind_of(object) != FR_JSON_OBJECT)
            return fr_json_fail(object, err, "'%s' holds objects only",
                                record->key);
        memset(&item, 0, sizeof item);
        FR_TRY(read_fields(object, record->fields, record->n_fields, NULL, 0,
                           &item, err));
        FR_TRY(fr_profile_append(profile, record, &item, err));
    }
    return FR_OK;
}

static fr_status check_where(const fr_json_value *root,
                             const fr_profile *profile, fr_err *err)
{
    const fr_json_value *array;

    FR_TRY(fr_json_get_array(root, "compute", &array, err));
    for (size_t i = 0; i < profile->n_compute; i++)
        for (const char *c = profile->compute[i].where; *c != '\0'; c++)
            if (strchr("-nlm", *c) == NULL)
                return fr_json_fail(fr_json_at(array, i), err,
                                    "'where' is letters of -, n, l, m");
    return FR_OK;
}

static fr_status read_gpu(const fr_json_value *root, fr_profile *profile,
                          fr_err *err)
{
    const fr_json_value *print, *costs;

    if (fr_json_find(root, "gpu") == NULL &&
        fr_json_find(root, "gpu_costs") == NULL)
        return FR_OK;
    FR_TRY(fr_json_get_object(root, "gpu", &print, err));
    FR_TRY(read_fields(print, fr_gpu_print_fields, fr_gpu_print_fields_n, NULL,
                       0, &profile->fingerprint.gpu, err));
    FR_TRY(fr_json_get_object(root, "gpu_costs", &costs, err));
    return read_fields(costs, fr_gpu_costs_fields, fr_gpu_costs_fields_n, NULL,
                       0, &profile->gpu, err);
}

static fr_status read_running(const fr_json_value *root, fr_profile *profile,
                              fr_err *err)
{
    const fr_json_value *costs;

    if (fr_json_find(root, "running") == NULL)
        return FR_OK;
    FR_TRY(fr_json_get_object(root, "running", &costs, err));
    return read_fields(costs, fr_running_fields, fr_running_fields_n, NULL, 0,
                       &profile->running, err);
}

static fr_status read_root(const fr_json_value *root, fr_profile *profile,
                           fr_err *err)
{
    static const char *const more[] = {"schema",      "fingerprint_hash",
                                       "fingerprint", "compute",
                                       "comm",        "sharing",
                                       "rate",        "held_out",
                                       "gpu",         "gpu_costs",
                                       "step",        "run",
                                       "running",     "others"};
    const char *schema, *text;
    const fr_json_value *fingerprint;
    uint64_t hash;

    if (fr_json_kind_of(root) != FR_JSON_OBJECT)
        return fr_json_fail(root, err, "a profile is an object");
    FR_TRY(fr_json_get_string(root, "schema", &schema, err));
    if (strcmp(schema, FR_PROFILE_SCHEMA) != 0)
        return fr_json_fail(root, err, "schema '%s' is not '%s'", schema,
                            FR_PROFILE_SCHEMA);
    FR_TRY(read_fields(root, fr_profile_scalars, fr_profile_scalars_n, more,
                       FR_LENGTH(more), profile, err));
    FR_TRY(fr_json_get_object(root, "fingerprint", &fingerprint, err));
    FR_TRY(read_fields(fingerprint, fr_fingerprint_fields,
                       fr_fingerprint_fields_n, NULL, 0, &profile->fingerprint,
                       err));
    FR_TRY(read_gpu(root, profile, err));
    FR_TRY(read_running(root, profile, err));
    FR_TRY(fr_json_get_string(root, "fingerprint_hash", &text, err));
    if (!fr_hash_parse(text, &hash) ||
        hash != fr_fingerprint_hash(&profile->fingerprint))
        return fr_json_fail(fr_json_blamed(root, "fingerprint_hash"), err,
                            "the fingerprint was edited: its hash differs");
    for (size_t i = 0; i < FR_RECORDS_N; i++)
        FR_TRY(read_record(root, &fr_profile_records[i], profile, err));
    return check_where(root, profile, err);
}

static fr_status read_document(fr_json *json, fr_profile *out, fr_err *err)
{
    fr_profile profile;
    fr_status status;

    fr_profile_init(&profile);
    status = read_root(fr_json_root(json), &profile, err);
    fr_json_destroy(json);
    if (status != FR_OK) {
        fr_profile_release(&profile);
        return status;
    }
    *out = profile;
    return FR_OK;
}

fr_status fr_profile_load(const char *path, fr_profile *out, fr_err *err)
{
    fr_json *json;

    FR_TRY(fr_json_load(path, &json, err));
    return read_document(json, out, err);
}

fr_status fr_profile_parse(const char *name, const char *text, size_t n_text,
                           fr_profile *out, fr_err *err)
{
    fr_json *json;

    FR_TRY(fr_json_parse(name, text, n_text, &json, err));
    return read_document(json, out, err);
}
