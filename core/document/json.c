/* json.c: the reader; see json.h.  The only file that knows cJSON. */
#include "core/document/json.h"

#include "core/document/json_impl.h"
#include "core/system/fileio.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The limit of traces; models and plans have FR_FILE_BYTES_MAX. The number of
 * values is limited too, because each takes some hundred bytes for a moment. */
static const size_t trace_bytes_max = (size_t)1 << 30;
static const size_t values_max = (size_t)1 << 21;

typedef struct builder {
    fr_json *json;
    const char *text;
    const fr_json_place *places;
    size_t n_places, i_place;
    fr_err *err;
} builder;

static fr_status build_value(builder *b, cJSON *from, const char *key,
                             fr_json_value *out);

static int compare_keys(const void *a, const void *b)
{
    const fr_json_value *const *left = a, *const *right = b;

    return strcmp((*left)->key, (*right)->key);
}

static fr_status fail_duplicate(const fr_json_value *a, const fr_json_value *b,
                                fr_err *err)
{
    const fr_json_value *later = a > b ? a : b, *first = a > b ? b : a;

    return fr_json_fail(later, err, "duplicate key '%.80s', first on line %d",
                        later->key, first->line);
}

static fr_status check_duplicates(const fr_json_value *object, fr_err *err)
{
    const fr_json_value **sorted;
    fr_status status = FR_OK;

    if (object->n < 2)
        return FR_OK;
    sorted = malloc(object->n * sizeof(*sorted));
    if (sorted == NULL)
        return fr_fail_no_memory(err);
    for (size_t i = 0; i < object->n; i++)
        sorted[i] = &object->items[i];
    qsort(sorted, object->n, sizeof(*sorted), compare_keys);
    for (size_t i = 1; i < object->n && status == FR_OK; i++)
        if (strcmp(sorted[i - 1]->key, sorted[i]->key) == 0)
            status = fail_duplicate(sorted[i - 1], sorted[i], err);
    free(sorted);
    return status;
}

/* A value that has been built is removed from cJSON's tree, so that the two
 * trees never exist in full at the same time. */
static fr_status build_items(builder *b, cJSON *from, fr_json_value *out)
{
    cJSON *child;
    size_t i = 0;

    for (child = from->child; child != NULL; child = child->next)
        out->n++;
    out->items = fr_arena_array(&b->json->arena, out->n, sizeof *out->items);
    if (out->items == NULL)
        return fr_fail_no_memory(b->err);
    for (child = from->child; child != NULL; child = from->child, i++) {
        const char *key = NULL;
        if (out->kind == FR_JSON_OBJECT) {
            key = fr_arena_strdup(&b->json->arena, child->string);
            if (key == NULL)
                return fr_fail_no_memory(b->err);
        }
        FR_TRY(build_value(b, child, key, &out->items[i]));
        cJSON_Delete(cJSON_DetachItemViaPointer(from, child));
    }
    return out->kind == FR_JSON_OBJECT ? check_duplicates(out, b->err) : FR_OK;
}

static fr_status build_value(builder *b, cJSON *from, const char *key,
                             fr_json_value *out)
{
    const fr_json_place *place = &b->places[b->i_place++];

    assert(b->i_place <= b->n_places);
    out->json = b->json;
    out->key = key;
    out->line = place->line;
    out->kind = place->kind;
    switch (place->kind) {
    case FR_JSON_NULL:
        break;
    case FR_JSON_BOOL:
        out->truth = cJSON_IsTrue(from);
        break;
    case FR_JSON_NUMBER:
        out->text =
            fr_arena_strndup(&b->json->arena, b->text + place->first, place->n);
        if (out->text == NULL)
            return fr_fail_no_memory(b->err);
        out->number = strtod(out->text, NULL);
        if (!isfinite(out->number))
            return fr_json_fail(out, b->err, "the number %s is too large",
                                out->text);
        break;
    case FR_JSON_STRING:
        out->text = fr_arena_strdup(&b->json->arena, from->valuestring);
        if (out->text == NULL)
            return fr_fail_no_memory(b->err);
        break;
    case FR_JSON_ARRAY:
    case FR_JSON_OBJECT:
        return build_items(b, from, out);
    }
    return FR_OK;
}

static fr_status build(fr_json *json, const char *text, size_t n,
                       const fr_json_places *places, fr_err *err)
{
    builder b = {.json = json,
                 .text = text,
                 .places = places->items,
                 .n_places = places->n,
                 .err = err};
    /* The text was proven: cJSON can fail for lack of memory alone. */
    cJSON *tree = cJSON_ParseWithLength(text, n);
    fr_status status;

    if (tree == NULL)
        return fr_fail_no_memory(err);
    status = build_value(&b, tree, NULL, &json->root);
    cJSON_Delete(tree);
    return status;
}

static fr_status parse(const char *name, const char *text, size_t n,
                       size_t n_values_max, fr_json **out, fr_err *err)
{
    fr_json_places places = {0};
    fr_json *json = NULL;
    fr_status status;

    FR_TRY_GOTO(status, fr_json_scan(name, text, n, n_values_max, &places, err),
                out_places);
    json = calloc(1, sizeof *json);
    if (json != NULL) {
        fr_arena_init(&json->arena);
        json->name = fr_arena_strdup(&json->arena, name);
    }
    if (json == NULL || json->name == NULL) {
        status = fr_fail_no_memory(err);
        goto out_json;
    }
    FR_TRY_GOTO(status, build(json, text, n, &places, err), out_json);
    *out = json;
    json = NULL;
out_json:
    fr_json_destroy(json);
out_places:
    fr_vec_release(&places);
    return status;
}

fr_status fr_json_parse(const char *name, const char *text, size_t n,
                        fr_json **out, fr_err *err)
{
    return parse(name, text, n, values_max, out, err);
}

static fr_status load(const char *path, size_t n_bytes_max, size_t n_values_max,
                      fr_json **out, fr_err *err)
{
    char *text;
    size_t n;
    fr_status status;

    FR_TRY(fr_file_read(path, n_bytes_max, &text, &n, err));
    status = parse(path, text, n, n_values_max, out, err);
    free(text);
    if (status == FR_NO_MEMORY)
        fr_err_prefix(err, "%s", path);
    return status;
}

fr_status fr_json_load(const char *path, fr_json **out, fr_err *err)
{
    return load(path, FR_FILE_BYTES_MAX, values_max, out, err);
}

fr_status fr_json_load_trace(const char *path, fr_json **out, fr_err *err)
{
    return load(path, trace_bytes_max, SIZE_MAX, out, err);
}

void fr_json_destroy(fr_json *json)
{
    if (json == NULL)
        return;
    fr_arena_release(&json->arena);
    free(json);
}

const fr_json_value *fr_json_root(const fr_json *json)
{
    return &json->root;
}

void fr_json_err_write(const fr_json_value *value, fr_err *err,
                       const char *format, ...)
{
    char text[sizeof err->text];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fr_err_write(err, FR_INPUT, "%s:%d: %s", value->json->name, value->line,
                 text);
}
