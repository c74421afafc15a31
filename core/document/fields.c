/* fields.c: a member of a struct from and to JSON, by its row. */
#include "core/document/fields.h"

#include "core/base/hash.h"
#include "core/base/text.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Enums are read and written through an unsigned. */
_Static_assert(sizeof(fr_field_kind) == sizeof(uint32_t),
               "enums are as wide as unsigned");

const void *fr_field_at(const fr_field *field, const void *owner)
{
    return (const char *)owner + field->offset;
}

int32_t fr_field_count(const fr_field *field, const void *owner)
{
    const void *at = (const char *)owner + field->count_offset;
    return *(const int32_t *)at;
}

/* Bytes of the member that mean something. */
static size_t n_bytes_of(const fr_field *field, const void *owner)
{
    return field->kind == FR_FIELD_LIST
               ? (size_t)fr_field_count(field, owner) * sizeof(int32_t)
               : field->n_bytes;
}

bool fr_field_is_same(const fr_field *field, const void *a, const void *b)
{
    const size_t n = n_bytes_of(field, a);
    return n == n_bytes_of(field, b) &&
           memcmp(fr_field_at(field, a), fr_field_at(field, b), n) == 0;
}

void fr_field_copy(const fr_field *field, const void *from, void *to)
{
    memcpy((char *)to + field->offset, fr_field_at(field, from),
           field->n_bytes);
    if (field->kind == FR_FIELD_LIST)
        memcpy((char *)to + field->count_offset,
               (const char *)from + field->count_offset, sizeof(int32_t));
}

uint64_t fr_field_hash(const fr_field *field, const void *owner, uint64_t seed)
{
    return fr_hash_bytes(fr_field_at(field, owner), n_bytes_of(field, owner),
                         seed);
}

int64_t fr_field_get_i64(const fr_field *field, const void *owner)
{
    const void *at = fr_field_at(field, owner);
    switch (field->kind) {
    case FR_FIELD_I32:
        return *(const int32_t *)at;
    case FR_FIELD_I64:
        return *(const int64_t *)at;
    case FR_FIELD_U32:
        return *(const uint32_t *)at;
    case FR_FIELD_U64:
        return (int64_t) * (const uint64_t *)at;
    case FR_FIELD_BOOL:
        return *(const bool *)at;
    default:
        return 0;
    }
}

double fr_field_get(const fr_field *field, const void *owner)
{
    const void *at = fr_field_at(field, owner);
    if (field->kind == FR_FIELD_DOUBLE)
        return *(const double *)at;
    if (field->kind == FR_FIELD_U64)
        return (double)*(const uint64_t *)at;
    return (double)fr_field_get_i64(field, owner);
}

void fr_field_set_i64(const fr_field *field, int64_t value, void *owner)
{
    void *at = (char *)owner + field->offset;
    switch (field->kind) {
    case FR_FIELD_I32:
        *(int32_t *)at = (int32_t)value;
        break;
    case FR_FIELD_I64:
        *(int64_t *)at = value;
        break;
    case FR_FIELD_U32:
        *(uint32_t *)at = (uint32_t)value;
        break;
    case FR_FIELD_U64:
        *(uint64_t *)at = (uint64_t)value;
        break;
    case FR_FIELD_BOOL:
        *(bool *)at = value != 0;
        break;
    default:
        assert(false && "a whole number");
        break;
    }
}

void fr_field_set(const fr_field *field, double value, void *owner)
{
    const int32_t none = 0;
    if (field->kind == FR_FIELD_DOUBLE)
        *(double *)(void *)((char *)owner + field->offset) = value;
    else if (field->kind == FR_FIELD_LIST)
        memcpy((char *)owner + field->count_offset, &none, sizeof none);
    else
        fr_field_set_i64(field, (int64_t)value, owner);
}

void fr_fields_init(const fr_field *fields, size_t n, void *owner)
{
    for (size_t i = 0; i < n; i++)
        if (fields[i].initial != 0)
            fr_field_set(&fields[i], fields[i].initial, owner);
}

/* Few whole numbers are listed, "0, 1, 2 or 3", more are a range. */
static fr_status fail_range(const fr_field *f, double value, fr_err *err)
{
    enum { FEW = 4 };
    char list[64] = "";
    size_t used = 0;
    if (f->kind == FR_FIELD_DOUBLE)
        return fr_fail(err, FR_INPUT, "%s is %g; give %g to %g", f->key, value,
                       f->min, f->max);
    if (f->max - f->min >= FEW)
        return fr_fail(err, FR_INPUT, "%s is %.0f; give %.0f to %.0f", f->key,
                       value, f->min, f->max);
    for (double at = f->min; at <= f->max; at++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%.0f",
                                 at == f->min   ? ""
                                 : at == f->max ? " or "
                                                : ", ",
                                 at);
    return fr_fail(err, FR_INPUT, "%s is %.0f; choose %s", f->key, value, list);
}

fr_status fr_field_check(const fr_field *field, const void *owner, fr_err *err)
{
    if (field->names != NULL && field->kind == FR_FIELD_U32) {
        uint32_t i = *(const uint32_t *)fr_field_at(field, owner);
        if (i > INT32_MAX || fr_name_at(field->names, (int)i) == NULL)
            return fr_fail(err, FR_INPUT, "%s is not one of its kinds",
                           field->key);
        return FR_OK;
    }
    if (field->max == 0)
        return FR_OK;
    double value = fr_field_get(field, owner);
    if (!(value >= field->min && value <= field->max))
        return fail_range(field, value, err);
    return FR_OK;
}

/* A key that only has to be known: the caller reads and writes it. */
static bool is_elsewhere(const fr_field *field)
{
    return field->n_bytes == 0 && field->kind != FR_FIELD_OBJECT;
}

/* ---- reading ------------------------------------------------------------ */

static fr_status read_i32(const fr_json_value *value, const char *key,
                          int32_t *out, fr_err *err)
{
    int64_t wide;
    FR_TRY(fr_json_as_i64(value, &wide, err));
    if (wide < INT32_MIN || wide > INT32_MAX)
        return fr_json_fail(value, err, "%s is %lld: out of range", key,
                            (long long)wide);
    *out = (int32_t)wide;
    return FR_OK;
}

static fr_status read_u32(const fr_json_value *value, const char *key,
                          uint32_t *out, fr_err *err)
{
    uint64_t wide;
    FR_TRY(fr_json_as_u64(value, &wide, err));
    if (wide > UINT32_MAX)
        return fr_json_fail(value, err, "%s is %llu: out of range", key,
                            (unsigned long long)wide);
    *out = (uint32_t)wide;
    return FR_OK;
}

static fr_status read_name(const fr_json_value *value, const fr_field *f,
                           int *out, fr_err *err)
{
    const char *text;
    char list[256] = "";
    size_t used = 0;
    FR_TRY(fr_json_as_string(value, &text, err));
    int found = fr_name_find(f->names, text);
    if (found >= 0) {
        *out = found;
        return FR_OK;
    }
    for (int i = 0; fr_name_at(f->names, i) != NULL; i++) {
        const char *name = fr_name_at(f->names, i);
        size_t n = strlen(name);
        if (used + n + 3 >= sizeof list)
            break;
        memcpy(list + used, ", ", i > 0 ? 2 : 0);
        used += i > 0 ? 2 : 0;
        memcpy(list + used, name, n + 1);
        used += n;
    }
    return fr_json_fail(value, err, "unknown %s '%s'; choose from %s", f->key,
                        text, list);
}

static fr_status read_text(const fr_json_value *value, const fr_field *f,
                           char *out, fr_err *err)
{
    const char *text;
    FR_TRY(fr_json_as_string(value, &text, err));
    if (!fr_text_copy(out, f->n_bytes, text))
        return fr_json_fail(value, err, "%s is longer than %zu bytes", f->key,
                            f->n_bytes - 1);
    return FR_OK;
}

static fr_status read_list(const fr_json_value *value, const fr_field *f,
                           void *owner, fr_err *err)
{
    size_t n = fr_json_n(value), n_max = f->n_bytes / sizeof(int32_t);
    int32_t *at = (int32_t *)(void *)((char *)owner + f->offset);
    int32_t count = (int32_t)n;
    if (fr_json_kind_of(value) != FR_JSON_ARRAY)
        return fr_json_fail(value, err, "%s must be an array, not %s", f->key,
                            fr_json_kind_name(fr_json_kind_of(value)));
    if (n > n_max)
        return fr_json_fail(value, err, "%s has %zu values; at most %zu",
                            f->key, n, n_max);
    for (size_t i = 0; i < n; i++)
        FR_TRY(read_i32(fr_json_at(value, i), f->key, &at[i], err));
    memcpy((char *)owner + f->count_offset, &count, sizeof count);
    return FR_OK;
}

static fr_status read_row(const fr_json_value *value, const fr_field *f,
                          int64_t *out, fr_err *err)
{
    size_t n = f->n_bytes / sizeof *out;
    if (fr_json_kind_of(value) != FR_JSON_ARRAY || fr_json_n(value) != n)
        return fr_json_fail(value, err, "'%s' must be %zu whole numbers",
                            f->key, n);
    for (size_t i = 0; i < n; i++)
        FR_TRY(fr_json_as_i64(fr_json_at(value, i), &out[i], err));
    return FR_OK;
}

static fr_status need_object(const fr_json_value *value, const char *key,
                             fr_err *err)
{
    if (fr_json_kind_of(value) == FR_JSON_OBJECT)
        return FR_OK;
    return fr_json_fail(value, err, "%s must be an object, not %s", key,
                        fr_json_kind_name(fr_json_kind_of(value)));
}

static fr_status read_doubles(const fr_json_value *value, const fr_field *f,
                              double *out, fr_err *err)
{
    const char *known[FR_FIELDS_MAX];
    size_t n = f->n_bytes / sizeof(double);
    assert(n <= FR_FIELDS_MAX);
    FR_TRY(need_object(value, f->key, err));
    for (size_t i = 0; i < n; i++)
        known[i] = fr_name_of(f->names, (int)i);
    FR_TRY(fr_json_check_keys(value, known, n, err));
    for (size_t i = 0; i < n; i++)
        FR_TRY(fr_json_get_double_or(value, known[i], out[i], &out[i], err));
    return FR_OK;
}

static fr_status read_member(const fr_json_value *value, const fr_field *f,
                             void *owner, fr_err *err)
{
    void *at = (char *)owner + f->offset;
    int i;
    switch (f->kind) {
    case FR_FIELD_I32:
        return read_i32(value, f->key, at, err);
    case FR_FIELD_I64:
        return fr_json_as_i64(value, at, err);
    case FR_FIELD_U32:
        if (f->names == NULL)
            return read_u32(value, f->key, at, err);
        FR_TRY(read_name(value, f, &i, err));
        *(uint32_t *)at = (uint32_t)i;
        return FR_OK;
    case FR_FIELD_U64:
        return fr_json_as_u64(value, at, err);
    case FR_FIELD_BOOL:
        return fr_json_as_bool(value, at, err);
    case FR_FIELD_DOUBLE:
        return fr_json_as_double(value, at, err);
    case FR_FIELD_TEXT:
        return read_text(value, f, at, err);
    case FR_FIELD_STRING:
        FR_TRY(read_name(value, f, &i, err));
        *(const char **)at = fr_name_at(f->names, i);
        return FR_OK;
    case FR_FIELD_LIST:
        return read_list(value, f, owner, err);
    case FR_FIELD_DOUBLES:
        return read_doubles(value, f, at, err);
    case FR_FIELD_ROW:
        return read_row(value, f, at, err);
    case FR_FIELD_OBJECT:
        break;
    }
    FR_TRY(need_object(value, f->key, err));
    return fr_fields_read(value, f->members, f->n_members, at, err);
}

fr_status fr_fields_read(const fr_json_value *object, const fr_field *fields,
                         size_t n, void *owner, fr_err *err)
{
    const char *known[FR_FIELDS_MAX];
    assert(n <= FR_FIELDS_MAX);
    if (fr_json_kind_of(object) != FR_JSON_OBJECT)
        return fr_json_fail(object, err, "must be an object, not %s",
                            fr_json_kind_name(fr_json_kind_of(object)));
    for (size_t i = 0; i < n; i++)
        known[i] = fields[i].key;
    FR_TRY(fr_json_check_keys(object, known, n, err));
    for (size_t i = 0; i < n; i++) {
        const fr_json_value *value = fr_json_find(object, fields[i].key);
        if (value == NULL && fields[i].is_required)
            return fr_json_fail(object, err, "'%s' is missing", fields[i].key);
        if (value != NULL && !is_elsewhere(&fields[i]))
            FR_TRY(read_member(value, &fields[i], owner, err));
    }
    return FR_OK;
}

/* ---- writing ------------------------------------------------------------ */

static bool is_left_out(const fr_field *f, const void *owner)
{
    if (!f->is_optional)
        return false;
    switch (f->kind) {
    case FR_FIELD_TEXT:
        return *(const char *)fr_field_at(f, owner) == '\0';
    case FR_FIELD_STRING:
        return *(const char *const *)fr_field_at(f, owner) == NULL;
    case FR_FIELD_LIST:
        return fr_field_count(f, owner) == 0;
    default:
        return fr_field_get(f, owner) == 0;
    }
}

static void write_list(const fr_field *f, const void *owner,
                       fr_json_writer *json)
{
    const int32_t *at = fr_field_at(f, owner);
    fr_json_begin_row(json);
    for (int32_t i = 0; i < fr_field_count(f, owner); i++)
        fr_json_i64(json, at[i]);
    fr_json_end_array(json);
}

static void write_row(const fr_field *f, const int64_t *at,
                      fr_json_writer *json)
{
    fr_json_begin_row(json);
    for (size_t i = 0; i < f->n_bytes / sizeof *at; i++)
        fr_json_i64(json, at[i]);
    fr_json_end_array(json);
}

static void write_doubles(const fr_field *f, const double *at,
                          fr_json_writer *json)
{
    fr_json_begin_object(json);
    for (size_t i = 0; i < f->n_bytes / sizeof *at; i++)
        fr_json_put_double(json, fr_name_of(f->names, (int)i), at[i]);
    fr_json_end_object(json);
}

static void write_member(const fr_field *f, const void *owner,
                         fr_json_writer *json)
{
    const void *at = fr_field_at(f, owner);
    switch (f->kind) {
    case FR_FIELD_I32:
        fr_json_i64(json, *(const int32_t *)at);
        break;
    case FR_FIELD_I64:
        fr_json_i64(json, *(const int64_t *)at);
        break;
    case FR_FIELD_U32:
        if (f->names != NULL)
            fr_json_string(json,
                           fr_name_of(f->names, (int)*(const uint32_t *)at));
        else
            fr_json_u64(json, *(const uint32_t *)at);
        break;
    case FR_FIELD_U64:
        fr_json_u64(json, *(const uint64_t *)at);
        break;
    case FR_FIELD_BOOL:
        fr_json_bool(json, *(const bool *)at);
        break;
    case FR_FIELD_DOUBLE:
        fr_json_double(json, *(const double *)at);
        break;
    case FR_FIELD_TEXT:
        fr_json_string(json, at);
        break;
    case FR_FIELD_STRING:
        fr_json_string(json, *(const char *const *)at);
        break;
    case FR_FIELD_LIST:
        write_list(f, owner, json);
        break;
    case FR_FIELD_DOUBLES:
        write_doubles(f, at, json);
        break;
    case FR_FIELD_ROW:
        write_row(f, at, json);
        break;
    case FR_FIELD_OBJECT:
        fr_fields_write(f->members, f->n_members, at, json);
        break;
    }
}

void fr_fields_put(const fr_field *fields, size_t n, const void *owner,
                   fr_json_writer *json)
{
    for (size_t i = 0; i < n; i++) {
        if (is_elsewhere(&fields[i]) || is_left_out(&fields[i], owner))
            continue;
        fr_json_key(json, fields[i].key);
        write_member(&fields[i], owner, json);
    }
}

void fr_fields_write(const fr_field *fields, size_t n, const void *owner,
                     fr_json_writer *json)
{
    fr_json_begin_object(json);
    fr_fields_put(fields, n, owner, json);
    fr_json_end_object(json);
}

void fr_fields_put_structs(const char *key, const fr_field *fields, size_t n,
                           const void *items, size_t n_items, size_t item_bytes,
                           fr_json_writer *json)
{
    fr_json_open_array(json, key);
    for (size_t i = 0; i < n_items; i++)
        fr_fields_write(fields, n, (const char *)items + i * item_bytes, json);
    fr_json_end_array(json);
}
