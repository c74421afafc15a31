/* export_script.c: templates of scripts, filled. */
#include "frameworks/script/export_script.h"

#include "core/base/text.h"
#include "core/document/fields.h"
#include "spec/model/job_fields.h"
#include "spec/model/model_json.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define ORDER_INCLUDE "# forerun: include "
#define ORDER_PLAN "# forerun: plan"

static const fr_script_template *find_template(const char *name)
{
    const fr_script_template *t = fr_script_templates;
    while (t->text != NULL && strcmp(t->name, name) != 0)
        t++;
    assert(t->text != NULL);
    return t;
}

/* ---- the numbers --------------------------------------------------------- */

/* Does a script read a key of a dictionary? */
static bool is_read(const char *script, const char *dictionary, const char *key,
                    size_t n_key)
{
    char expression[128];
    snprintf(expression, sizeof expression, "%s[\"%.*s\"]", dictionary,
             (int)n_key, key);
    return strstr(script, expression) != NULL;
}

/* The rest of a line of JSON after its key, as Python has it. */
static void put_literal(const char *text, size_t n, fr_buffer *out)
{
    static const char *const words[][2] = {
        {"true", "True"}, {"false", "False"}, {"null", "None"}};
    for (size_t i = 0; i < FR_LENGTH(words); i++) {
        size_t n_word = strlen(words[i][0]);
        if (n >= n_word && strncmp(text, words[i][0], n_word) == 0) {
            fr_buffer_puts(out, words[i][1]);
            text += n_word;
            n -= n_word;
            break;
        }
    }
    if (n > 0 && text[n - 1] == ',')
        n--;
    fr_buffer_printf(out, "%.*s,\n", (int)n, text);
}

/* A JSON object with one member a line becomes a dictionary of those members
 * that the script reads. */
static void put_dictionary(const char *name, const char *json,
                           const char *script, fr_buffer *out)
{
    fr_buffer_printf(out, "%s = {\n", name);
    for (const char *line = json; line != NULL && *line != '\0';) {
        const char *end = strchr(line, '\n');
        size_t n = end != NULL ? (size_t)(end - line) : strlen(line);
        const char *key = line + 3;
        const char *quote =
            n > 3 && line[2] == '"' ? memchr(key, '"', n - 3) : NULL;
        if (quote != NULL &&
            is_read(script, name, key, (size_t)(quote - key))) {
            const char *value = quote + 3; /* behind `": ` */
            fr_buffer_printf(out, "    \"%.*s\": ", (int)(quote - key), key);
            put_literal(value, (size_t)(line + n - value), out);
        }
        line = end != NULL ? end + 1 : NULL;
    }
    fr_buffer_puts(out, "}\n");
}

static void put_model(const fr_plan_file *file, const char *script,
                      fr_buffer *out)
{
    fr_json_writer json;
    fr_buffer text;
    fr_buffer_init(&text);
    fr_json_writer_init(&json, &text);
    fr_model_to_json(&file->model, &json);
    put_dictionary("MODEL", fr_buffer_text(&text), script, out);
    fr_buffer_release(&text);
}

static void put_job(const fr_plan_file *file, const char *script,
                    fr_buffer *out)
{
    fr_json_writer json;
    fr_buffer text;
    fr_buffer_init(&text);
    fr_json_writer_init(&json, &text);
    fr_fields_write(fr_job_fields, FR_JOB_FIELDS_N, &file->job, &json);
    put_dictionary("JOB", fr_buffer_text(&text), script, out);
    fr_buffer_release(&text);
}

static void put_plan(const fr_plan_file *file, const char *script,
                     fr_buffer *out)
{
    fr_json_writer json;
    fr_buffer text;
    fr_buffer_init(&text);
    fr_json_writer_init(&json, &text);
    fr_json_begin_object(&json);
    for (int i = 0; i < FR_PLAN_ITEMS_N; i++)
        fr_fields_put(&fr_plan_item_row(fr_plan_items[i])->field, 1,
                      &file->plan, &json);
    fr_json_end_object(&json);
    put_dictionary("PLAN", fr_buffer_text(&text), script, out);
    fr_buffer_release(&text);
}

static void put_numbers(const fr_export_request *request, const char *script,
                        fr_buffer *out)
{
    fr_export_variable variables[FR_EXPORT_VARIABLES_MAX];
    int n = fr_export_environment(request, variables);
    fr_buffer_puts(out, "# ---- the plan: all numbers of this file, with the "
                        "keys of forerun's plan files\n\n");
    put_model(request->file, script, out);
    put_job(request->file, script, out);
    put_plan(request->file, script, out);
    fr_buffer_puts(out, "ENVIRONMENT = {\n");
    for (int i = 0; i < n; i++)
        fr_buffer_printf(out, "    \"%s\": \"%s\",\n", variables[i].name,
                         variables[i].value);
    fr_buffer_puts(out, "}\n\n");
}

/* ---- templates ----------------------------------------------------------- */

/* Appends a template with all that it includes; two empty lines come between
 * parts.  Orders of the plan stay. */
static void expand(const fr_script_template *part, fr_buffer *out)
{
    const char *at = (const char *)part->text, *last = at + part->n;
    while (at < last) {
        const char *end = memchr(at, '\n', (size_t)(last - at));
        size_t n = end != NULL ? (size_t)(end + 1 - at) : (size_t)(last - at);
        if (strncmp(at, ORDER_INCLUDE, strlen(ORDER_INCLUDE)) == 0) {
            char name[64];
            snprintf(name, sizeof name, "%.*s",
                     (int)(n - 1 - strlen(ORDER_INCLUDE)),
                     at + strlen(ORDER_INCLUDE));
            expand(find_template(name), out);
            fr_buffer_puts(out, "\n\n");
        } else {
            fr_buffer_printf(out, "%.*s", (int)n, at);
        }
        at += n;
    }
}

fr_status fr_script_write(const fr_export_request *request,
                          const fr_target *target, const char *name,
                          fr_export_files *out, fr_err *err)
{
    fr_export_file *file = fr_export_add(out, name, true);
    fr_buffer script;
    if (file == NULL)
        return fr_fail_no_memory(err);
    fr_buffer_init(&script);
    expand(find_template(name), &script);
    const char *text = fr_buffer_text(&script);
    const char *order = strstr(text, ORDER_PLAN);
    fr_buffer_puts(&file->text, "#!/usr/bin/env python3\n");
    fr_export_put_header(request, target, "# ", &file->text);
    if (order != NULL) {
        fr_buffer_printf(&file->text, "%.*s", (int)(order - text), text);
        put_numbers(request, text, &file->text);
        fr_buffer_puts(&file->text, order + strlen(ORDER_PLAN));
    }
    fr_status status = fr_buffer_check(&script, err);
    fr_buffer_release(&script);
    return status != FR_OK ? status : fr_buffer_check(&file->text, err);
}
