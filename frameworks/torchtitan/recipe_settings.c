/*
 * recipe_settings.c: reads a Python recipe of torchtitan's main without running
 * it: imports, one function, members set to numbers, texts and calls with
 * these.
 */
#include "frameworks/torchtitan/recipe_settings.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define FAIL(r, ...) fr_recipe_fail((r), (r)->line, __VA_ARGS__)

fr_status fr_recipe_fail(fr_recipe *r, int line, const char *what,
                         const char *value)
{
    return fr_fail(r->err, FR_INPUT, "%s:%d: %s%.80s", r->path, line, what,
                   value);
}

/* ---- words of Python ----------------------------------------------------- */

static void step(fr_recipe *r)
{
    if (*r->at == '\n')
        r->line++;
    r->at++;
}

/* Blanks, comments, and, inside brackets, ends of lines. */
static void skip(fr_recipe *r, bool is_inside)
{
    while (r->at < r->end) {
        if (*r->at == '#')
            while (r->at < r->end && *r->at != '\n')
                r->at++;
        else if (*r->at == ' ' || *r->at == '\t' || *r->at == '\r' ||
                 (is_inside && *r->at == '\n'))
            step(r);
        else
            return;
    }
}

static bool take(fr_recipe *r, char c)
{
    if (r->at >= r->end || *r->at != c)
        return false;
    step(r);
    return true;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* A name with dots; "": there is none. */
static void read_name(fr_recipe *r, char out[NAME_MAX_BYTES])
{
    size_t n = 0;
    while (r->at < r->end && is_word(*r->at) && n + 1 < NAME_MAX_BYTES)
        out[n++] = *r->at++;
    out[n] = '\0';
}

/* An expression, up to a comma, a closing bracket or the end of the line that
 * are outside its own brackets and texts. */
static fr_status read_expression(fr_recipe *r, char out[VALUE_MAX_BYTES])
{
    size_t n = 0;
    int depth = 0;
    char quote = '\0';
    while (r->at < r->end) {
        const char c = *r->at;
        if (quote == '\0' && depth == 0 &&
            (c == ',' || c == ')' || c == ']' || c == '\n' || c == '#'))
            break;
        if (quote != '\0' ? c == quote : c == '"' || c == '\'')
            quote = quote != '\0' ? '\0' : c;
        else if (quote == '\0')
            depth += (strchr("([{", c) != NULL) - (strchr(")]}", c) != NULL);
        if (n + 1 == VALUE_MAX_BYTES || c == '\0')
            return FAIL(r, "a value is longer than 4095 characters", "");
        if (quote != '\0' || !isspace((unsigned char)c))
            out[n++] = c;
        step(r);
    }
    out[n] = '\0';
    return n > 0 && quote == '\0' && depth == 0
               ? FR_OK
               : FAIL(r, "a value is expected", "");
}

static fr_status add(fr_recipe *r, int line, const char *table, const char *key,
                     const char *value)
{
    if (r->n == MOST_SETTINGS)
        return FAIL(r, "the recipe sets more than 128 values", "");
    fr_recipe_setting *s = &r->settings[r->n++];
    s->line = line;
    snprintf(s->table, sizeof s->table, "%s", table);
    snprintf(s->key, sizeof s->key, "%s", key);
    snprintf(s->value, sizeof s->value, "%s", value);
    return FR_OK;
}

/* The arguments of a call, behind its bracket; those without a name are called
 * by their number. */
static fr_status read_arguments(fr_recipe *r, const char *table)
{
    for (int i = 0;; i++) {
        char key[NAME_MAX_BYTES], value[VALUE_MAX_BYTES];
        skip(r, true);
        if (take(r, ')'))
            return FR_OK;
        const int line = r->line;
        const char *before = r->at;
        read_name(r, key);
        skip(r, true);
        if (key[0] != '\0' && take(r, '=')) {
            skip(r, true);
        } else {
            if (r->line != line)
                return FAIL(r, "an argument goes over several lines", "");
            r->at = before;
            snprintf(key, sizeof key, "%d", i);
        }
        const int value_line = r->line;
        FR_TRY(read_expression(r, value));
        FR_TRY(add(r, value_line, table, key, value));
        skip(r, true);
        if (!take(r, ',') && (r->at >= r->end || *r->at != ')'))
            return FAIL(r, "a comma or a closing bracket is expected", "");
    }
}

/* ---- statements ---------------------------------------------------------- */

static fr_status skip_import(fr_recipe *r, const char *module)
{
    static const char models[] = "torchtitan.models.";
    if (strncmp(module, models, sizeof models - 1) == 0)
        snprintf(r->family, sizeof r->family, "%s", module + sizeof models - 1);
    while (r->at < r->end && *r->at != '\n' && *r->at != '(')
        r->at++;
    if (!take(r, '('))
        return FR_OK;
    while (r->at < r->end && *r->at != ')')
        step(r);
    return take(r, ')') ? FR_OK : FAIL(r, "a bracket is not closed", "");
}

/* Calls whose arguments are a table of 0.2, by the member that they set. */
static const struct {
    const char *table, *call;
} calls[] = {
    {"model_spec", "model_registry"},
    {"training", "TrainingConfig"},
    {"optimizer", "default_adamw"},
    {"lr_scheduler", "LRSchedulersContainer.Config"},
    {"parallelism", "ParallelismConfig"},
    {"activation_checkpoint", "FullAC.Config"},
    {"activation_checkpoint", "SelectiveAC.Config"},
    {"compile", "CompileConfig"},
};

static fr_status read_call(fr_recipe *r, int line, const char *table,
                           const char *call)
{
    for (size_t i = 0; i < FR_LENGTH(calls); i++)
        if (strcmp(calls[i].table, table) == 0 &&
            strcmp(calls[i].call, call) == 0) {
            FR_TRY(add(r, line, table, "", call));
            return read_arguments(r, table);
        }
    return FAIL(r, "this call is not read: ", call);
}

/* config.TABLE = CALL(...), or config.TABLE.KEY = VALUE. */
static fr_status read_member(fr_recipe *r, char *name)
{
    const int line = r->line;
    char *key = strchr(name, '.');
    char value[VALUE_MAX_BYTES], call[NAME_MAX_BYTES];
    skip(r, false);
    if (key != NULL) {
        *key++ = '\0';
        FR_TRY(read_expression(r, value));
        return add(r, line, name, key, value);
    }
    const char *before = r->at;
    read_name(r, call);
    if (take(r, '('))
        return read_call(r, line, name, call);
    r->at = before;
    FR_TRY(read_expression(r, value));
    return add(r, line, name, "", value);
}

static fr_status read_statement(fr_recipe *r)
{
    char word[NAME_MAX_BYTES], value[VALUE_MAX_BYTES];
    const char *before = r->at;
    read_name(r, word);
    skip(r, false);
    if (strcmp(word, "from") == 0 || strcmp(word, "import") == 0) {
        read_name(r, word);
        return skip_import(r, word);
    }
    if (strcmp(word, "def") == 0) {
        while (r->at < r->end && *r->at != '\n')
            r->at++;
        return FR_OK;
    }
    if (strcmp(word, "return") == 0) {
        FR_TRY(read_expression(r, value));
        return strcmp(value, "config") == 0
                   ? FR_OK
                   : FAIL(r,
                          "only `return config` is read, of a recipe that "
                          "changes one of config_registry, not ",
                          value);
    }
    if (strcmp(word, "config") == 0 && take(r, '=')) {
        skip(r, false);
        FR_TRY(read_expression(r, value));
        return strncmp(value, "config_registry.", 16) == 0
                   ? FR_OK
                   : FAIL(r,
                          "config is not a recipe of config_registry: ", value);
    }
    if (strncmp(word, "config.", 7) == 0 && take(r, '='))
        return read_member(r, word + 7);
    snprintf(value, sizeof value, "%.*s",
             (int)(r->end - before < 60 ? r->end - before : 60), before);
    value[strcspn(value, "\n")] = '\0';
    return FAIL(r, "this statement is not read: ", value);
}

fr_status fr_recipe_read(fr_recipe *r)
{
    for (;;) {
        skip(r, true);
        if (r->at >= r->end)
            return FR_OK;
        FR_TRY(read_statement(r));
        skip(r, false);
        if (r->at < r->end && *r->at != '\n')
            return FAIL(r, "a statement goes on after its end", "");
    }
}
