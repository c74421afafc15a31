/* framework_keys.c: see framework_keys.h. */
#include "frameworks/framework_keys.h"

#include "frameworks/target.h"

#include <string.h>

#define QUOTED .quote = "\"", .begin = "[", .then = ", ", .end = "]"

const fr_key_style fr_key_style_toml = {"",           "",
                                        " = ",        "\n",
                                        QUOTED,       .off = "false",
                                        .on = "true", .alone = " = true",
                                        .hyphen = '-'};
const fr_key_style fr_key_style_python = {"        ",   "",
                                          "=",          ",\n",
                                          QUOTED,       .off = "False",
                                          .on = "True", .alone = "=True",
                                          .hyphen = '_'};
const fr_key_style fr_key_style_arguments = {
    "    ",      "--",        " ",       "\n",        .quote = "",
    .begin = "", .then = " ", .end = "", .alone = "", .hyphen = '-'};

static bool is_of(const fr_framework_key *key, const char *table)
{
    return strcmp(key->table, table) == 0;
}

/* ---- writing ------------------------------------------------------------- */

static bool is_written(const fr_framework_key *key, int version)
{
    const fr_target_rule versions = {.since = key->since, .until = key->until};
    return (key->text != NULL || key->word != NULL || key->put != NULL ||
            key->comment != NULL || key->is_switch || key->field.n_bytes > 0) &&
           fr_target_rule_is_of(&versions, version);
}

/* Does the file ask for the key? */
static bool is_asked(const fr_framework_key *key, const fr_plan_file *file)
{
    const fr_field *field = &key->field;
    if (key->is_used != NULL && !key->is_used(file))
        return false;
    if (key->is_switch && key->is_used == NULL && field->n_bytes > 0)
        return fr_field_get_i64(field, file) == key->on;
    return !key->has_default || fr_field_get(field, file) != key->usual;
}

const char *fr_key_word_of(const fr_key_word *words, int value)
{
    for (const fr_key_word *at = words; at->word != NULL; at++)
        if (at->value == value)
            return at->word;
    return words->word;
}

const fr_key_word *fr_key_word_find(const fr_key_word *words, const char *word)
{
    for (const fr_key_word *at = words; at->word != NULL; at++)
        if (strcmp(at->word, word) == 0)
            return at;
    return NULL;
}

static void put_word(const char *word, const fr_key_style *style,
                     fr_buffer *out)
{
    fr_buffer_printf(out, "%s%s%s", style->quote, word, style->quote);
}

static void put_set(const fr_framework_key *key, const fr_key_style *style,
                    const fr_plan_file *file, fr_buffer *out)
{
    const int64_t set = fr_field_get_i64(&key->field, file);
    const char *before = "";
    fr_buffer_puts(out, style->begin);
    for (const fr_key_word *at = key->words; at->word != NULL; at++)
        if ((set & at->value) != 0) {
            fr_buffer_puts(out, before);
            put_word(at->word, style, out);
            before = style->then;
        }
    fr_buffer_puts(out, style->end);
}

static void put_member(const fr_framework_key *key, const fr_key_style *style,
                       const fr_plan_file *file, fr_buffer *out)
{
    const fr_field *field = &key->field;
    if (key->is_set)
        put_set(key, style, file, out);
    else if (key->words != NULL)
        put_word(fr_key_word_of(key->words, (int)fr_field_get_i64(field, file)),
                 style, out);
    else if (field->kind == FR_FIELD_TEXT)
        fr_framework_put_string(fr_field_at(field, file), out);
    else if (field->kind == FR_FIELD_BOOL)
        fr_buffer_puts(out, fr_field_get_i64(field, file) != 0 ? style->on
                                                               : style->off);
    else if (field->kind == FR_FIELD_DOUBLE)
        fr_buffer_printf(out, "%.15g", fr_field_get(field, file));
    else
        fr_buffer_printf(out, "%lld", (long long)fr_field_get_i64(field, file));
}

static void put_name(const char *name, char hyphen, fr_buffer *out)
{
    for (const char *c = name; *c != '\0'; c++)
        fr_buffer_putc(out, *c == '-' ? hyphen : *c);
}

static void put_value(const fr_framework_key *key, const fr_key_style *style,
                      const fr_plan_file *file, fr_buffer *out)
{
    fr_buffer_puts(out, style->between);
    if (key->text != NULL)
        fr_buffer_puts(out, key->text);
    else if (key->word != NULL)
        put_word(key->word, style, out);
    else if (key->put != NULL)
        key->put(file, out);
    else
        put_member(key, style, file, out);
}

static void put_key(const fr_framework_key *key, const fr_key_style *style,
                    const fr_plan_file *file, fr_buffer *out)
{
    if (key->comment != NULL)
        fr_buffer_printf(out, "%s# %s\n", style->indent, key->comment);
    if (key->name == NULL) {
        if (key->put != NULL)
            key->put(file, out);
        return;
    }
    fr_buffer_printf(out, "%s%s", style->indent, style->before);
    put_name(key->name, style->hyphen, out);
    if (key->is_switch)
        fr_buffer_puts(out, style->alone);
    else
        put_value(key, style, file, out);
    fr_buffer_puts(out, style->after);
}

void fr_framework_keys_put(fr_framework_keys keys, const char *table,
                           int version, const fr_key_style *style,
                           const fr_plan_file *file, fr_buffer *out)
{
    for (size_t i = 0; i < keys.n; i++) {
        const fr_framework_key *key = &keys.rows[i];
        if (is_of(key, table) && is_written(key, version) &&
            is_asked(key, file))
            put_key(key, style, file, out);
    }
}

void fr_framework_put_string(const char *text, fr_buffer *out)
{
    fr_buffer_putc(out, '"');
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            fr_buffer_putc(out, '\\');
        if ((unsigned char)*c < ' ')
            fr_buffer_printf(out, "\\u%04x", (unsigned char)*c);
        else
            fr_buffer_putc(out, *c);
    }
    fr_buffer_putc(out, '"');
}

/* ---- reading ------------------------------------------------------------- */

static fr_status read_word(const fr_framework_key *key,
                           const fr_json_value *value, fr_plan_file *file,
                           fr_err *err)
{
    const char *text;
    FR_TRY(fr_json_as_string(value, &text, err));
    const fr_key_word *known = fr_key_word_find(key->words, text);
    if (known != NULL) {
        fr_field_set_i64(&key->field, known->value, file);
        return FR_OK;
    }
    return fr_json_fail(value, err,
                        "%s '%.40s' is not known here; known are %s and its "
                        "like",
                        key->name, text, key->words->word);
}

static fr_status read_count(const fr_framework_key *key,
                            const fr_json_value *value, fr_plan_file *file,
                            fr_err *err)
{
    int64_t count;
    FR_TRY(fr_json_as_i64(value, &count, err));
    if (count < key->least || count > INT32_MAX)
        return fr_json_fail(
            value, err, "%s is %lld; give a number of %lld to %d", key->name,
            (long long)count, (long long)key->least, INT32_MAX);
    fr_field_set_i64(&key->field, count, file);
    return FR_OK;
}

/* A double, a switch, a u64. */
static fr_status read_plain(const fr_framework_key *key,
                            const fr_json_value *value, fr_plan_file *file,
                            fr_err *err)
{
    double number;
    uint64_t whole;
    bool is_on;
    if (key->field.kind == FR_FIELD_DOUBLE) {
        FR_TRY(fr_json_as_double(value, &number, err));
        fr_field_set(&key->field, number, file);
    } else if (key->field.kind == FR_FIELD_BOOL) {
        FR_TRY(fr_json_as_bool(value, &is_on, err));
        fr_field_set_i64(&key->field, is_on, file);
    } else {
        FR_TRY(fr_json_as_u64(value, &whole, err));
        memcpy((char *)file + key->field.offset, &whole, sizeof whole);
    }
    return FR_OK;
}

static fr_status read_key(const fr_framework_key *key,
                          const fr_json_value *value, fr_plan_file *file,
                          fr_err *err)
{
    switch (key->field.kind) {
    case FR_FIELD_DOUBLE:
    case FR_FIELD_U64:
        return read_plain(key, value, file, err);
    case FR_FIELD_BOOL:
    case FR_FIELD_U32:
        return key->words != NULL ? read_word(key, value, file, err)
                                  : read_plain(key, value, file, err);
    default:
        return read_count(key, value, file, err);
    }
}

fr_status fr_framework_keys_read(fr_framework_keys keys, const char *table,
                                 int newest, const fr_json_value *object,
                                 fr_plan_file *file, fr_err *err)
{
    for (size_t i = 0; i < keys.n; i++) {
        const fr_framework_key *key = &keys.rows[i];
        const fr_json_value *value =
            is_of(key, table) && key->since <= newest &&
                    key->field.n_bytes > 0 && key->why == NULL &&
                    !key->has_reader
                ? fr_json_find(object, key->name)
                : NULL;
        if (value != NULL)
            FR_TRY(read_key(key, value, file, err));
    }
    return FR_OK;
}
