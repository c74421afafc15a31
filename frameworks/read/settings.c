/* settings.c: see settings.h; references are in settings_resolve.c. */
#include "frameworks/read/settings.h"

#include "core/base/text.h"
#include "core/document/yaml.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SETTINGS_MAX = 20000 };

void fr_settings_init(fr_settings *settings, const char *path)
{
    *settings = (fr_settings){.path = path};
    fr_arena_init(&settings->arena);
}

void fr_settings_release(fr_settings *settings)
{
    for (size_t i = 0; i < settings->documents.n; i++)
        fr_json_destroy(settings->documents.items[i]);
    fr_vec_release(&settings->documents);
    fr_vec_release(&settings->items);
    fr_arena_release(&settings->arena);
}

fr_status fr_settings_parse(fr_settings *settings, const char *path,
                            const char *text, size_t n_text,
                            const fr_json_value **out, fr_err *err)
{
    fr_json *json;
    FR_TRY(fr_yaml_parse(path, text, n_text, &json, err));
    if (fr_vec_push(&settings->documents, json) != FR_OK) {
        fr_json_destroy(json);
        return fr_fail_no_memory(err);
    }
    *out = fr_json_root(json);
    if (fr_json_kind_of(*out) == FR_JSON_OBJECT)
        return FR_OK;
    return fr_json_fail(*out, err, "the file is %s, not keys and values",
                        fr_json_kind_name(fr_json_kind_of(*out)));
}

/* ---- putting ------------------------------------------------------------- */

/* The text of a scalar, a number as it stands in the file. */
static fr_status copy_text(fr_settings *settings, const fr_json_value *value,
                           const char **out, fr_err *err)
{
    const char *text;
    if (fr_json_kind_of(value) == FR_JSON_STRING) {
        FR_TRY(fr_json_as_string(value, &text, err));
        *out = fr_arena_strdup(&settings->arena, text);
    } else {
        fr_json_writer writer;
        fr_buffer buffer;
        fr_buffer_init(&buffer);
        fr_json_writer_init_line(&writer, &buffer);
        fr_json_copy(&writer, value);
        char *copy = fr_arena_strdup(&settings->arena, fr_buffer_text(&buffer));
        fr_buffer_release(&buffer);
        if (copy != NULL)
            copy[strcspn(copy, "\n")] = '\0';
        *out = copy;
    }
    return *out == NULL ? fr_fail_no_memory(err) : FR_OK;
}

static fr_setting *find_item(const fr_settings *settings, const char *path,
                             size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(settings->items.items[i].path, path) == 0)
            return &settings->items.items[i];
    return NULL;
}

/* n_before: as many were there before this file, whose own names differ. */
static fr_status put_value(fr_settings *settings, const fr_json_value *value,
                           const char *path, size_t n_before, fr_err *err)
{
    const fr_json_kind kind = fr_json_kind_of(value);
    fr_setting item = {.path = path,
                       .value = value,
                       .file = settings->file,
                       .is_preset = settings->is_preset};
    fr_setting *old = find_item(settings, path, n_before);
    if (kind == FR_JSON_ARRAY)
        item.list = value;
    else if (kind != FR_JSON_NULL)
        FR_TRY(copy_text(settings, value, &item.text, err));
    if (old != NULL) {
        *old = item;
        return FR_OK;
    }
    if (settings->items.n == SETTINGS_MAX)
        return fr_json_fail(value, err, "more than %d settings", SETTINGS_MAX);
    FR_TRY_PUSH(&settings->items, item, err);
    return FR_OK;
}

static fr_status put_object(fr_settings *settings, const fr_json_value *object,
                            const char *prefix, size_t n_before, fr_err *err)
{
    for (size_t i = 0; i < fr_json_n(object); i++) {
        const fr_json_value *value = fr_json_at(object, i);
        const bool is_deep = fr_json_kind_of(value) == FR_JSON_OBJECT;
        const char *path =
            fr_arena_printf(&settings->arena, "%s%s%s", prefix,
                            fr_json_key_at(object, i), is_deep ? "." : "");
        if (path == NULL)
            return fr_fail_no_memory(err);
        if (is_deep)
            FR_TRY(put_object(settings, value, path, n_before, err));
        else
            FR_TRY(put_value(settings, value, path, n_before, err));
    }
    return FR_OK;
}

fr_status fr_settings_put(fr_settings *settings, const fr_json_value *object,
                          const char *prefix, fr_err *err)
{
    if (object == NULL)
        return FR_OK;
    if (fr_json_kind_of(object) != FR_JSON_OBJECT)
        return fr_json_fail(object, err, "%.80s must be keys and values",
                            *prefix != '\0' ? prefix : "the file");
    return put_object(settings, object, prefix, settings->items.n, err);
}

fr_status fr_settings_read(const fr_config_request *request, fr_settings *out,
                           fr_err *err)
{
    const fr_json_value *root;
    FR_TRY(fr_settings_parse(out, request->path, request->text, request->n_text,
                             &root, err));
    FR_TRY(fr_settings_put(out, root, "", err));
    return fr_settings_resolve(out, err);
}

fr_status fr_settings_read_config(const fr_config_request *request,
                                  fr_status (*body)(fr_settings_reader *),
                                  fr_config *out, fr_err *err)
{
    fr_settings_reader r = {.request = request, .out = out, .err = err};
    fr_settings_init(&r.settings, request->path);
    const fr_status status = body(&r);
    fr_settings_release(&r.settings);
    return status;
}

/* ---- finding ------------------------------------------------------------- */

static fr_setting *find_said(const fr_settings *settings, const char *path)
{
    fr_setting *item = find_item(settings, path, settings->items.n);
    return item != NULL && (item->text != NULL || item->list != NULL) ? item
                                                                      : NULL;
}

const fr_setting *fr_settings_peek(const fr_settings *settings,
                                   const char *path)
{
    return find_said(settings, path);
}

const fr_setting *fr_settings_find(fr_settings *settings, const char *path)
{
    fr_setting *item = find_said(settings, path);
    if (item != NULL)
        item->is_read = true;
    return item;
}

const fr_setting *fr_settings_first_below(const fr_settings *settings,
                                          const char *prefix)
{
    for (size_t i = 0; i < settings->items.n; i++)
        if (fr_text_starts(settings->items.items[i].path, prefix) &&
            (settings->items.items[i].text != NULL ||
             settings->items.items[i].list != NULL))
            return &settings->items.items[i];
    return NULL;
}

void fr_settings_skip(fr_settings *settings, const char *prefix)
{
    for (size_t i = 0; i < settings->items.n; i++)
        if (fr_text_starts(settings->items.items[i].path, prefix))
            settings->items.items[i].is_read = true;
}

/* ---- values -------------------------------------------------------------- */

fr_status fr_setting_refuse(const fr_setting *setting, const char *why,
                            fr_err *err)
{
    const char *text = setting->text != NULL ? setting->text : "";
    return fr_json_fail(setting->value, err, "%.80s%s%.60s: %s", setting->path,
                        *text != '\0' ? " " : "", text, why);
}

fr_status fr_setting_refuse_value(const fr_setting *setting, const char *why,
                                  fr_err *err)
{
    const char *text = setting->text != NULL ? setting->text : "";
    if (!fr_text_starts(text, "${") && !fr_text_starts(text, "???"))
        return fr_setting_refuse(setting, why, err);
    return fr_json_fail(setting->value, err,
                        "%.80s is %.80s, which the file does not say; write "
                        "its value",
                        setting->path, text);
}

fr_status fr_settings_word(fr_settings *settings, const char *path,
                           const char **out, fr_err *err)
{
    const fr_setting *setting = fr_settings_find(settings, path);
    if (setting == NULL)
        return FR_OK;
    if (setting->text == NULL)
        return fr_setting_refuse_value(setting, "give one value, not a list",
                                       err);
    if (fr_text_starts(setting->text, "${"))
        return fr_setting_refuse_value(setting, "unknown", err);
    *out = setting->text;
    return FR_OK;
}

fr_status fr_settings_i64(fr_settings *settings, const char *path,
                          int64_t least, int64_t *out, fr_err *err)
{
    const char *text = NULL;
    char *end;
    FR_TRY(fr_settings_word(settings, path, &text, err));
    if (text == NULL)
        return FR_OK;
    /* 5e8 is a whole number as well. */
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (*end != '\0' && end != text) {
        const double real = strtod(text, &end);
        const bool is_whole =
            real >= -1e15 && real <= 1e15 && real == (double)(long long)real;
        value = is_whole ? (long long)real : least - 1;
    }
    if (end == text || *end != '\0' || errno != 0 || value < least)
        return fr_setting_refuse_value(fr_settings_peek(settings, path),
                                       least > 0
                                           ? "give a whole number of at least 1"
                                           : "give a whole number from 0",
                                       err);
    *out = value;
    return FR_OK;
}

fr_status fr_settings_i32(fr_settings *settings, const char *path,
                          int32_t least, int32_t *out, fr_err *err)
{
    int64_t value = *out;
    FR_TRY(fr_settings_i64(settings, path, least, &value, err));
    if (value > 1 << 20)
        return fr_setting_refuse_value(fr_settings_peek(settings, path),
                                       "give at most 1048576", err);
    *out = (int32_t)value;
    return FR_OK;
}

fr_status fr_settings_real(fr_settings *settings, const char *path, double *out,
                           fr_err *err)
{
    const char *text = NULL;
    char *end;
    FR_TRY(fr_settings_word(settings, path, &text, err));
    if (text == NULL)
        return FR_OK;
    const double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= 0 && value < 1e30))
        return fr_setting_refuse_value(fr_settings_peek(settings, path),
                                       "give a number from 0", err);
    *out = value;
    return FR_OK;
}

fr_status fr_settings_bool(fr_settings *settings, const char *path, bool *out,
                           fr_err *err)
{
    static const char *const on[] = {"true", "True", "1"};
    static const char *const off[] = {"false", "False", "0"};
    const char *text = NULL;
    FR_TRY(fr_settings_word(settings, path, &text, err));
    if (text == NULL)
        return FR_OK;
    const bool is_on = fr_text_find(text, on, FR_LENGTH(on)) >= 0;
    if (!is_on && fr_text_find(text, off, FR_LENGTH(off)) < 0)
        return fr_setting_refuse_value(fr_settings_peek(settings, path),
                                       "give true or false", err);
    *out = is_on;
    return FR_OK;
}

/* ---- rows ---------------------------------------------------------------- */

static fr_status read_known_word(fr_settings *settings, const char *path,
                                 const fr_framework_key *key,
                                 fr_plan_file *file, fr_err *err)
{
    const char *text = NULL;
    FR_TRY(fr_settings_word(settings, path, &text, err));
    if (text == NULL)
        return FR_OK;
    const fr_key_word *known = fr_key_word_find(key->words, text);
    if (known != NULL)
        fr_field_set_i64(&key->field, known->value, file);
    else if (key->mend != NULL)
        return fr_setting_refuse_value(fr_settings_peek(settings, path),
                                       key->mend, err);
    return FR_OK;
}

static fr_status read_row(fr_settings *settings, const char *path,
                          const fr_framework_key *key, fr_plan_file *file,
                          fr_err *err)
{
    const fr_field *field = &key->field;
    if (key->words != NULL)
        return read_known_word(settings, path, key, file, err);
    if (field->kind == FR_FIELD_DOUBLE) {
        double real = fr_field_get(field, file);
        FR_TRY(fr_settings_real(settings, path, &real, err));
        fr_field_set(field, real, file);
    } else if (field->kind == FR_FIELD_BOOL) {
        bool is_on;
        if (fr_settings_peek(settings, path) == NULL)
            return FR_OK;
        FR_TRY(fr_settings_bool(settings, path, &is_on, err));
        fr_field_set_i64(
            field, key->is_switch ? is_on == (key->on != 0) : is_on, file);
    } else if (field->kind == FR_FIELD_I32) {
        int32_t count = (int32_t)fr_field_get_i64(field, file);
        FR_TRY(
            fr_settings_i32(settings, path, (int32_t)key->least, &count, err));
        fr_field_set_i64(field, count, file);
    } else {
        int64_t count = fr_field_get_i64(field, file);
        FR_TRY(fr_settings_i64(settings, path, key->least, &count, err));
        fr_field_set_i64(field, count, file);
    }
    return FR_OK;
}

fr_status fr_settings_read_rows(fr_settings *settings, fr_framework_keys keys,
                                const char *table, const char *before,
                                fr_plan_file *file, fr_buffer *notes,
                                fr_err *err)
{
    char path[160];
    for (size_t i = 0; i < keys.n; i++) {
        const fr_framework_key *key = &keys.rows[i];
        if (strcmp(key->table, table) != 0 || key->has_reader)
            continue;
        snprintf(path, sizeof path, "%s%s", before, key->name);
        if (key->field.n_bytes > 0) {
            FR_TRY(read_row(settings, path, key, file, err));
            continue;
        }
        const fr_setting *setting = fr_settings_find(settings, path);
        if (setting != NULL && key->why != NULL && !fr_setting_is_off(setting))
            fr_buffer_printf(notes, "line %d: %s is not read: %s\n",
                             fr_json_line(setting->value), path, key->why);
    }
    return FR_OK;
}

/* ---- the rest ------------------------------------------------------------ */

bool fr_setting_is_off(const fr_setting *setting)
{
    static const char *const off[] = {
        "", "false", "False", "null", "None", "none", "0", "0.0", "no_shard"};
    if (setting->list != NULL)
        return fr_json_n(setting->list) == 0;
    return setting->text == NULL ||
           fr_text_find(setting->text, off, FR_LENGTH(off)) >= 0;
}

bool fr_setting_begins(const char *path, const char *const *beginnings,
                       size_t n)
{
    const char *last = strrchr(path, '.');
    last = last != NULL ? last + 1 : path;
    for (size_t i = 0; i < n; i++)
        if (fr_text_starts(path, beginnings[i]) ||
            fr_text_starts(last, beginnings[i]))
            return true;
    return false;
}

static bool is_rest(const fr_setting *setting)
{
    return !setting->is_read && !setting->is_preset &&
           !fr_setting_is_off(setting);
}

/* "line 12", or "line 12 of model.yaml". */
static void put_place(const fr_setting *item, fr_buffer *notes)
{
    fr_buffer_printf(notes, "line %d", fr_json_line(item->value));
    if (item->file != NULL)
        fr_buffer_printf(notes, " of %.80s", item->file);
}

/* Names on one line the first plain ones, or the first others after n_skipped,
 * and says how many more there are. */
static void list_rest(const fr_settings *settings, fr_setting_test *is_plain,
                      bool is_harmless, size_t n_skipped, const char *title,
                      fr_buffer *notes)
{
    enum { MOST_NAMES = 16 };
    size_t n = 0, n_named = 0;
    for (size_t i = 0; i < settings->items.n; i++) {
        const fr_setting *item = &settings->items.items[i];
        if (!is_rest(item) || is_plain(item->path) != is_harmless ||
            n++ < n_skipped || n_named == MOST_NAMES)
            continue;
        fr_buffer_printf(notes, "%s%.80s", n_named++ == 0 ? title : ", ",
                         item->path);
    }
    if (n_named > 0 && n > n_skipped + n_named)
        fr_buffer_printf(notes, " and %zu more", n - n_skipped - n_named);
    if (n_named > 0)
        fr_buffer_putc(notes, '\n');
}

void fr_settings_note_rest(const fr_settings *settings,
                           fr_setting_test *is_plain, fr_buffer *notes)
{
    enum { MOST_LINES = 24 };
    size_t n = 0;
    list_rest(settings, is_plain, true, 0, "no prediction depends on ", notes);
    for (size_t i = 0; i < settings->items.n && n < MOST_LINES; i++) {
        const fr_setting *item = &settings->items.items[i];
        if (!is_rest(item) || is_plain(item->path))
            continue;
        put_place(item, notes);
        fr_buffer_printf(notes,
                         ": %.80s is not read: the plan has no place for it\n",
                         item->path);
        n++;
    }
    list_rest(settings, is_plain, false, MOST_LINES,
              "the plan has no place for these either: ", notes);
}
