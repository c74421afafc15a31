/* json_access.c: looking into a document; see json.h. */
#include "core/base/text.h"
#include "core/document/json_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fr_json_kind fr_json_kind_of(const fr_json_value *value)
{
    return value->kind;
}

const char *fr_json_kind_name(fr_json_kind kind)
{
    static const char *const names[] = {"null",     "true or false",
                                        "a number", "a string",
                                        "an array", "an object"};

    return names[kind];
}

int fr_json_line(const fr_json_value *value)
{
    return value->line;
}

const fr_json_value *fr_json_find(const fr_json_value *object, const char *key)
{
    if (object == NULL || object->kind != FR_JSON_OBJECT)
        return NULL;
    for (size_t i = 0; i < object->n; i++)
        if (strcmp(object->items[i].key, key) == 0)
            return object->items[i].kind == FR_JSON_NULL ? NULL
                                                         : &object->items[i];
    return NULL;
}

const fr_json_value *fr_json_blamed(const fr_json_value *object,
                                    const char *key)
{
    const fr_json_value *value = fr_json_find(object, key);
    return value != NULL ? value : object;
}

size_t fr_json_n(const fr_json_value *value)
{
    return value->n;
}

const fr_json_value *fr_json_at(const fr_json_value *value, size_t i)
{
    return i < value->n ? &value->items[i] : NULL;
}

const char *fr_json_key_at(const fr_json_value *object, size_t i)
{
    return i < object->n ? object->items[i].key : NULL;
}

/* Digits with an optional minus; no fraction, no exponent. */
static bool is_whole_text(const fr_json_value *value)
{
    return value->kind == FR_JSON_NUMBER && strpbrk(value->text, ".eE") == NULL;
}

static bool read_i64(const fr_json_value *value, int64_t *out)
{
    long long whole;

    if (!is_whole_text(value))
        return false;
    errno = 0;
    whole = strtoll(value->text, NULL, 10);
    if (errno == ERANGE)
        return false;
    *out = whole;
    return true;
}

static bool read_u64(const fr_json_value *value, uint64_t *out)
{
    unsigned long long whole;

    if (!is_whole_text(value))
        return false;
    if (value->text[0] == '-' && strcmp(value->text, "-0") != 0)
        return false;
    errno = 0;
    whole = strtoull(value->text, NULL, 10);
    if (errno == ERANGE)
        return false;
    *out = whole;
    return true;
}

/* "'hidden' must be a whole number, is the string \"12\"" */
static fr_status fail_kind(const fr_json_value *value, const char *wanted,
                           fr_err *err)
{
    char found[80];

    if (value->kind == FR_JSON_NUMBER)
        snprintf(found, sizeof found, "%s", value->text);
    else if (value->kind == FR_JSON_STRING)
        snprintf(found, sizeof found, "the string \"%.40s\"", value->text);
    else
        snprintf(found, sizeof found, "%s", fr_json_kind_name(value->kind));
    if (value->key != NULL)
        return fr_json_fail(value, err, "'%.80s' must be %s, is %s", value->key,
                            wanted, found);
    return fr_json_fail(value, err, "expected %s, found %s", wanted, found);
}

fr_status fr_json_as_string(const fr_json_value *value, const char **out,
                            fr_err *err)
{
    if (value->kind != FR_JSON_STRING)
        return fail_kind(value, "a string", err);
    *out = value->text;
    return FR_OK;
}

fr_status fr_json_as_double(const fr_json_value *value, double *out,
                            fr_err *err)
{
    if (value->kind != FR_JSON_NUMBER)
        return fail_kind(value, "a number", err);
    *out = value->number;
    return FR_OK;
}

fr_status fr_json_as_i64(const fr_json_value *value, int64_t *out, fr_err *err)
{
    return read_i64(value, out) ? FR_OK
                                : fail_kind(value, "a whole number", err);
}

fr_status fr_json_as_u64(const fr_json_value *value, uint64_t *out, fr_err *err)
{
    return read_u64(value, out)
               ? FR_OK
               : fail_kind(value, "a whole number, 0 or more", err);
}

fr_status fr_json_as_bool(const fr_json_value *value, bool *out, fr_err *err)
{
    if (value->kind != FR_JSON_BOOL)
        return fail_kind(value, "true or false", err);
    *out = value->truth;
    return FR_OK;
}

/* NULL, and err written, when it is not there. */
static const fr_json_value *get(const fr_json_value *object, const char *key,
                                fr_err *err)
{
    const fr_json_value *value;

    if (object->kind != FR_JSON_OBJECT) {
        fail_kind(object, "an object", err);
        return NULL;
    }
    value = fr_json_find(object, key);
    if (value == NULL)
        fr_json_fail(object, err, "'%s' is missing", key);
    return value;
}

#define DEFINE_CONTAINER(suffix, wanted, what)                                 \
    fr_status fr_json_get_##suffix(const fr_json_value *object,                \
                                   const char *key, const fr_json_value **out, \
                                   fr_err *err)                                \
    {                                                                          \
        const fr_json_value *value = get(object, key, err);                    \
        if (value == NULL)                                                     \
            return FR_INPUT;                                                   \
        if (value->kind != (wanted))                                           \
            return fail_kind(value, what, err);                                \
        *out = value;                                                          \
        return FR_OK;                                                          \
    }

DEFINE_CONTAINER(array, FR_JSON_ARRAY, "an array")
DEFINE_CONTAINER(object, FR_JSON_OBJECT, "an object")

/* The required and the optional getter of one type. */
#define DEFINE_GETTERS(suffix, type)                                           \
    fr_status fr_json_get_##suffix(const fr_json_value *object,                \
                                   const char *key, type *out, fr_err *err)    \
    {                                                                          \
        const fr_json_value *value = get(object, key, err);                    \
        return value ? fr_json_as_##suffix(value, out, err) : FR_INPUT;        \
    }                                                                          \
    fr_status fr_json_get_##suffix##_or(const fr_json_value *object,           \
                                        const char *key, type otherwise,       \
                                        type *out, fr_err *err)                \
    {                                                                          \
        const fr_json_value *value;                                            \
        if (object->kind != FR_JSON_OBJECT)                                    \
            return fail_kind(object, "an object", err);                        \
        value = fr_json_find(object, key);                                     \
        if (value)                                                             \
            return fr_json_as_##suffix(value, out, err);                       \
        *out = otherwise;                                                      \
        return FR_OK;                                                          \
    }

DEFINE_GETTERS(string, const char *)
DEFINE_GETTERS(double, double)
DEFINE_GETTERS(i64, int64_t)
DEFINE_GETTERS(u64, uint64_t)
DEFINE_GETTERS(bool, bool)

fr_status fr_json_check_keys(const fr_json_value *object,
                             const char *const *known, size_t n_known,
                             fr_err *err)
{
    if (object->kind != FR_JSON_OBJECT)
        return fail_kind(object, "an object", err);
    for (size_t i = 0; i < object->n; i++) {
        const fr_json_value *item = &object->items[i];
        const char *key = fr_json_key_at(object, i), *nearest;

        if (fr_text_find(key, known, n_known) >= 0)
            continue;
        nearest = fr_text_nearest(key, known, n_known);
        if (nearest != NULL)
            return fr_json_fail(item, err,
                                "unknown key '%.80s': did you mean '%s'?", key,
                                nearest);
        return fr_json_fail(item, err, "unknown key '%.80s'", key);
    }
    return FR_OK;
}
