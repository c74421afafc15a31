/* settings_resolve.c: references between settings (settings.h). */
#include "core/base/text.h"
#include "frameworks/read/settings.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 8, TEXT_MAX = 512 };

typedef struct resolver {
    const fr_settings *settings;
    const char *path; /* of the setting that refers */
    size_t n_steps;   /* that are left for this setting */
} resolver;

/* A resolved reference: a text, or a list. */
typedef struct resolved {
    char text[TEXT_MAX];
    const fr_json_value *list;
} resolved;

static bool resolve_text(resolver *r, const char *text, int depth,
                         resolved *out);

/* ${.a} is a sibling, ${..a} one of the object around it. */
static bool make_path(const char *path, const char *name, char *out, size_t n)
{
    size_t length = strlen(path);
    if (*name != '.')
        return fr_text_copy(out, n, name);
    for (; *name == '.'; name++) {
        while (length > 0 && path[length - 1] != '.')
            length--;
        if (name[1] == '.' && length > 0)
            length--;
    }
    return snprintf(out, n, "%.*s%s", (int)length, path, name) < (int)n;
}

static bool find_reference(resolver *r, const char *name, int depth,
                           resolved *out)
{
    /* The launcher of NeMo puts the file below `training`. */
    static const char around[] = "training.";
    char path[TEXT_MAX];
    if (!make_path(r->path, name, path, sizeof path))
        return false;
    const fr_setting *found = fr_settings_peek(r->settings, path);
    if (found == NULL && fr_text_starts(path, around))
        found = fr_settings_peek(r->settings, path + strlen(around));
    if (found == NULL)
        return false;
    if (found->list != NULL) {
        out->list = found->list;
        return true;
    }
    resolver next = *r;
    next.path = found->path;
    const bool is_known = resolve_text(&next, found->text, depth + 1, out);
    r->n_steps = next.n_steps;
    return is_known;
}

/* ${NAME:default}, ${oc.env:NAME,default}. */
static bool find_default(const char *name, const char *rest, resolved *out)
{
    const bool is_call = strcmp(name, "oc.env") == 0;
    for (const char *c = name; !is_call && *c != '\0'; c++)
        if (isupper((unsigned char)*c) == 0 && *c != '_' &&
            isdigit((unsigned char)*c) == 0)
            return false;
    const char *value = is_call ? strchr(rest, ',') : rest;
    if (value == NULL)
        return false;
    value += is_call;
    value += strspn(value, " ");
    return fr_text_copy(out->text, sizeof out->text, value);
}

static bool compute(const char *name, double a, double b, double *out)
{
    if (strcmp(name, "multiply") == 0)
        *out = a * b;
    else if (strcmp(name, "sum") == 0 || strcmp(name, "add") == 0)
        *out = a + b;
    else if (strcmp(name, "subtract") == 0)
        *out = a - b;
    else if (strcmp(name, "divide") == 0 && b != 0)
        *out = a / b;
    else if (strcmp(name, "int_div") == 0 && b > 0 && a >= 0 && a < 1e15)
        *out = (double)((long long)a / (long long)(b >= 1 ? b : 1));
    else
        return false;
    return *out > -1e15 && *out < 1e15;
}

/* ${multiply:a,b,...}: numbers, or references. */
static bool call(const char *name, char *rest, resolved *out)
{
    char *fields[8], *end;
    double value = 0;
    const size_t n = fr_text_split(rest, ',', fields, FR_LENGTH(fields));
    for (size_t i = 0; i < n && i < FR_LENGTH(fields); i++) {
        char *text = fr_text_trim(fields[i]);
        const double next = strtod(text, &end);
        if (end == text || *end != '\0')
            return false;
        if (i == 0)
            value = next;
        else if (!compute(name, value, next, &value))
            return false;
    }
    if (n < 2 || n > FR_LENGTH(fields))
        return false;
    snprintf(out->text, sizeof out->text, "%.15g", value);
    return true;
}

/* Resolves the text between ${ and }, and the references within it. */
static bool resolve_expression(resolver *r, char *text, int depth,
                               resolved *out)
{
    resolved inner = {.text = ""};
    char *colon = strchr(text, ':');
    if (colon == NULL)
        return find_reference(r, fr_text_trim(text), depth, out);
    *colon = '\0';
    if (!resolve_text(r, colon + 1, depth + 1, &inner) || inner.list != NULL)
        return false;
    return find_default(text, inner.text, out) || call(text, inner.text, out);
}

/* The '}' of the "${" that `text` begins with; NULL: there is none. */
static const char *find_end(const char *text)
{
    int depth = 0;
    for (const char *c = text; *c != '\0'; c++) {
        if (c[0] == '$' && c[1] == '{')
            depth++;
        else if (*c == '}' && --depth == 0)
            return c;
    }
    return NULL;
}

static bool append(resolved *out, const char *text, size_t n)
{
    const size_t length = strlen(out->text);
    if (length + n >= sizeof out->text)
        return false;
    memcpy(out->text + length, text, n);
    out->text[length + n] = '\0';
    return true;
}

/* The text with its references resolved; false: one of them is unknown. */
static bool resolve_text(resolver *r, const char *text, int depth,
                         resolved *out)
{
    char inside[TEXT_MAX];
    if (depth > DEPTH_MAX || r->n_steps == 0)
        return false;
    r->n_steps--;
    for (const char *p = text; *p != '\0';) {
        const char *next = strstr(p, "${");
        const size_t n = next != NULL ? (size_t)(next - p) : strlen(p);
        const char *end = next != NULL ? find_end(next) : NULL;
        if (!append(out, p, n) || (next != NULL && end == NULL))
            return false;
        if (next == NULL)
            return true;
        const size_t n_inside = (size_t)(end - next - 2);
        resolved part = {.text = ""};
        if (n_inside >= sizeof inside)
            return false;
        memcpy(inside, next + 2, n_inside);
        inside[n_inside] = '\0';
        if (!resolve_expression(r, inside, depth + 1, &part))
            return false;
        if (part.list != NULL) {
            out->list = part.list;
            return next == text && end[1] == '\0';
        }
        if (!append(out, part.text, strlen(part.text)))
            return false;
        p = end + 1;
    }
    return true;
}

fr_status fr_settings_resolve(fr_settings *settings, fr_err *err)
{
    for (size_t i = 0; i < settings->items.n; i++) {
        fr_setting *item = &settings->items.items[i];
        resolved found = {.text = ""};
        resolver r = {.settings = settings, .path = item->path, .n_steps = 64};
        if (item->text == NULL || strstr(item->text, "${") == NULL ||
            !resolve_text(&r, item->text, 0, &found))
            continue;
        item->list = found.list;
        item->text = found.list != NULL
                         ? NULL
                         : fr_arena_strdup(&settings->arena, found.text);
        if (item->list == NULL && item->text == NULL)
            return fr_fail_no_memory(err);
        if (item->text != NULL && strcmp(item->text, "null") == 0)
            item->text = NULL; /* ${NAME:null} */
    }
    return FR_OK;
}
