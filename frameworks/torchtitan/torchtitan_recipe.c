/*
 * torchtitan_recipe.c: see torchtitan_recipe.h.  Names of main: its
 * torchtitan/config/configs.py and trainer.py (b5bcd76 of 2026-08-21).
 */
#include "frameworks/torchtitan/torchtitan_recipe.h"

#include "frameworks/torchtitan/recipe_settings.h"

#include <stdlib.h>
#include <string.h>

#define FAIL(r, ...) fr_recipe_fail((r), (r)->line, __VA_ARGS__)

static const fr_recipe_setting *find(const fr_recipe *r, const char *table,
                                     const char *key)
{
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->settings[i].table, table) == 0 &&
            strcmp(r->settings[i].key, key) == 0)
            return &r->settings[i];
    return NULL;
}

/* A whole number from 1; 0: it is absent or something else. */
static long long count_of(const fr_recipe *r, const char *table,
                          const char *key)
{
    const fr_recipe_setting *s = find(r, table, key);
    char *end;
    if (s == NULL)
        return 0;
    const long long n = strtoll(s->value, &end, 10);
    return *end == '\0' && n > 0 && n < 1LL << 48 ? n : 0;
}

/* A text in quotes that is the same in JSON. */
static bool is_plain_text(const char *v, size_t n)
{
    if (n < 2 || (v[0] != '"' && v[0] != '\'') || v[n - 1] != v[0])
        return false;
    for (size_t i = 1; i + 1 < n; i++)
        if (v[i] == '"' || v[i] == '\'' || v[i] == '\\' ||
            (unsigned char)v[i] < ' ')
            return false;
    return true;
}

/* A list of texts, or of lists, without the comma that Python allows at its
 * end. */
static bool put_list(const char *v, fr_buffer *out)
{
    int depth = 0;
    for (; *v != '\0'; v++) {
        const char *end = *v == '"' || *v == '\'' ? strchr(v + 1, *v) : NULL;
        if (end != NULL) {
            if (!is_plain_text(v, (size_t)(end - v) + 1))
                return false;
            fr_buffer_printf(out, "\"%.*s\"", (int)(end - v - 1), v + 1);
            v = end;
            continue;
        }
        if (strchr("[],", *v) == NULL)
            return false;
        depth += (*v == '[') - (*v == ']');
        if (*v != ',' || v[1] != ']')
            fr_buffer_putc(out, *v);
    }
    return depth == 0;
}

/* A value of Python in JSON. */
static fr_status put_value(fr_recipe *r, const fr_recipe_setting *s,
                           fr_buffer *out)
{
    const char *v = s->value;
    const size_t n = strlen(v);
    char *end;
    if (strcmp(v, "True") == 0 || strcmp(v, "False") == 0 ||
        strcmp(v, "None") == 0) {
        fr_buffer_puts(out, v[0] == 'T'   ? "true"
                            : v[0] == 'F' ? "false"
                                          : "null");
        return FR_OK;
    }
    if (is_plain_text(v, n)) {
        fr_buffer_printf(out, "\"%.*s\"", (int)(n - 2), v + 1);
        return FR_OK;
    }
    if (v[0] == '[' && put_list(v, out))
        return FR_OK;
    const double number = strtod(v, &end);
    if (*end == '\0' && number - number == 0 && strpbrk(v, "xXpP") == NULL) {
        fr_buffer_printf(out, "%.17g", number);
        return FR_OK;
    }
    return fr_recipe_fail(r, s->line, "this value is not read: ", v);
}

/* Members of a table that 0.2 has otherwise, or has not. */
static fr_status put_training(fr_recipe *r, const fr_recipe_setting *s,
                              fr_buffer *out, bool *is_put)
{
    const long long seq = count_of(r, "training", "max_context_length");
    const long long n_micro = count_of(r, "parallelism", "num_pp_microbatches");
    const long long n = count_of(r, "training", s->key);
    *is_put = true;
    if (strcmp(s->key, "max_context_length") == 0) {
        fr_buffer_puts(out, "\"seq_len\":");
        return put_value(r, s, out);
    }
    if (strcmp(s->key, "disable_cuda_graphs") == 0) {
        *is_put = false;
        return FR_OK;
    }
    const bool is_micro =
        strcmp(s->key, "num_tokens_per_microbatch_per_dp_rank") == 0;
    if (!is_micro && strcmp(s->key, "num_tokens_per_train_step") != 0) {
        fr_buffer_printf(out, "\"%s\":", s->key);
        return put_value(r, s, out);
    }
    if (seq == 0 || n == 0 || n % seq != 0)
        return fr_recipe_fail(
            r, s->line,
            "tokens are no multiple of max_context_length: ", s->value);
    fr_buffer_printf(out, "\"%s\":%lld",
                     is_micro ? "local_batch_size" : "global_batch_size",
                     n / seq * (is_micro && n_micro > 0 ? n_micro : 1));
    return FR_OK;
}

static fr_status put_parallelism(fr_recipe *r, const fr_recipe_setting *s,
                                 fr_buffer *out, bool *is_put)
{
    const long long seq = count_of(r, "training", "max_context_length");
    const long long tokens =
        count_of(r, "training", "num_tokens_per_microbatch_per_dp_rank");
    *is_put = true;
    if (strcmp(s->key, "num_pp_microbatches") == 0) {
        if (seq == 0 || tokens == 0)
            return fr_recipe_fail(r, s->line,
                                  "micro-batches need max_context_length and "
                                  "num_tokens_per_microbatch_per_dp_rank",
                                  "");
        fr_buffer_printf(out, "\"pipeline_parallel_microbatch_size\":%lld",
                         tokens / seq);
        return FR_OK;
    }
    if (strcmp(s->key, "pipeline_parallel_schedule_csv") == 0) {
        *is_put = false; /* a file that the schedule's name stands for */
        return FR_OK;
    }
    if (strcmp(s->key, "enable_sequence_parallel") == 0) {
        *is_put = false;
        return strcmp(s->value, "True") == 0 ||
                       count_of(r, "parallelism", "tensor_parallel_degree") <= 1
                   ? FR_OK
                   : fr_recipe_fail(
                         r, s->line,
                         "tensor parallelism is read with sequence "
                         "parallelism alone: enable_sequence_parallel=",
                         s->value);
    }
    fr_buffer_printf(out, "\"%s\":", s->key);
    return put_value(r, s, out);
}

/* Two numbers in [0, 1) in brackets, without blanks: (0.9,0.95). */
static bool read_pair(const char *text, double out[2])
{
    char *end;
    if (*text != '(')
        return false;
    out[0] = strtod(text + 1, &end);
    if (end == text + 1 || *end != ',')
        return false;
    text = end + 1;
    out[1] = strtod(text, &end);
    return end != text && strcmp(end, ")") == 0 && out[0] >= 0 && out[0] < 1 &&
           out[1] >= 0 && out[1] < 1;
}

static fr_status put_optimizer(fr_recipe *r, const fr_recipe_setting *s,
                               fr_buffer *out)
{
    double betas[2];
    if (strcmp(s->key, "betas") != 0) {
        fr_buffer_printf(out, "\"%s\":", s->key);
        return put_value(r, s, out);
    }
    if (!read_pair(s->value, betas))
        return fr_recipe_fail(r, s->line,
                              "betas are not two numbers: ", s->value);
    fr_buffer_printf(out, "\"beta1\":%.17g,\"beta2\":%.17g", betas[0],
                     betas[1]);
    return FR_OK;
}

/* The call itself: what it says without arguments. */
static fr_status put_call(fr_recipe *r, const fr_recipe_setting *s,
                          fr_buffer *out, bool *is_put)
{
    const fr_recipe_setting *async =
        find(r, "compile", "enable_async_tensor_parallel");
    const fr_recipe_setting *backend =
        find(r, "model_spec", "moe_comm_backend");
    *is_put = true;
    if (strcmp(s->table, "optimizer") == 0) {
        fr_buffer_puts(out, "\"name\":\"AdamW\"");
        return FR_OK;
    }
    if (strcmp(s->table, "activation_checkpoint") == 0) {
        fr_buffer_printf(out, "\"mode\":\"%s\"",
                         strncmp(s->value, "Full", 4) == 0        ? "full"
                         : strncmp(s->value, "Selective", 9) == 0 ? "selective"
                                                                  : "none");
        return FR_OK;
    }
    *is_put = strcmp(s->table, "parallelism") == 0 &&
              (async != NULL || backend != NULL);
    if (!*is_put)
        return FR_OK;
    if (async != NULL) {
        fr_buffer_puts(out, "\"enable_async_tensor_parallel\":");
        FR_TRY(put_value(r, async, out));
    }
    if (backend != NULL) {
        fr_buffer_printf(out, "%s\"expert_parallel_comm_backend\":",
                         async != NULL ? "," : "");
        FR_TRY(put_value(r, backend, out));
    }
    return FR_OK;
}

static fr_status put_setting(fr_recipe *r, const fr_recipe_setting *s,
                             fr_buffer *out, bool *is_put)
{
    *is_put = true;
    if (s->key[0] == '\0')
        return put_call(r, s, out, is_put);
    if (strcmp(s->table, "training") == 0)
        return put_training(r, s, out, is_put);
    if (strcmp(s->table, "parallelism") == 0)
        return put_parallelism(r, s, out, is_put);
    if (strcmp(s->table, "optimizer") == 0)
        return put_optimizer(r, s, out);
    if (strcmp(s->table, "compile") == 0 &&
        strcmp(s->key, "enable_async_tensor_parallel") == 0) {
        *is_put = false;
        return FR_OK;
    }
    fr_buffer_printf(out, "\"%s\":", s->key);
    return put_value(r, s, out);
}

/* Moves on to the line of a setting. */
static void put_lines(const fr_recipe_setting *s, int *line, fr_buffer *out)
{
    for (; *line < s->line; (*line)++)
        fr_buffer_putc(out, '\n');
}

/* model_registry("8B", converters=[Float8LinearConverter.Config(...)]) */
static fr_status put_model(fr_recipe *r, fr_buffer *out)
{
    const fr_recipe_setting *flavor = find(r, "model_spec", "0");
    const fr_recipe_setting *list = find(r, "model_spec", "converters");
    if (flavor == NULL)
        return FAIL(r, "model_registry has no flavor", "");
    fr_buffer_printf(out, "\"model\":{\"name\":\"%s\",\"flavor\":", r->family);
    FR_TRY(put_value(r, flavor, out));
    if (list != NULL) {
        const bool is_mx = strncmp(list->value, "[MXFP8Linear", 12) == 0;
        if (!is_mx && strncmp(list->value, "[Float8Linear", 13) != 0)
            return fr_recipe_fail(
                r, list->line, "these converters are not read: ", list->value);
        fr_buffer_printf(out, ",\"converters\":[\"quantize.linear.%s\"]",
                         is_mx ? "mx" : "float8");
    }
    fr_buffer_putc(out, '}');
    return FR_OK;
}

/* Tables of which no value is part of a step. */
static bool is_passed_over(const char *table)
{
    static const char *const names[] = {"checkpoint", "dump_folder",
                                        "profiling",  "metrics",
                                        "validator",  "comm"};
    for (size_t i = 0; i < FR_LENGTH(names); i++)
        if (strcmp(names[i], table) == 0)
            return true;
    return false;
}

/* The settings from i on that are of one table; returns the first behind. */
static fr_status put_table(fr_recipe *r, size_t *i, int *line, fr_buffer *out)
{
    const char *table = r->settings[*i].table;
    bool is_first = true;
    fr_buffer_printf(out, "\"%s\":{", table);
    for (; *i < r->n && strcmp(r->settings[*i].table, table) == 0; (*i)++) {
        const fr_recipe_setting *s = &r->settings[*i];
        const size_t n = out->n;
        bool is_put;
        put_lines(s, line, out);
        if (!is_first)
            fr_buffer_putc(out, ',');
        FR_TRY(put_setting(r, s, out, &is_put));
        if (is_put)
            is_first = false;
        else if (!is_first && out->n > n)
            out->data[--out->n] = '\0'; /* the comma */
    }
    fr_buffer_putc(out, '}');
    return FR_OK;
}

static fr_status put_all(fr_recipe *r, fr_buffer *out)
{
    int line = 1;
    bool is_first = true;
    fr_buffer_putc(out, '{');
    for (size_t i = 0; i < r->n;) {
        const fr_recipe_setting *s = &r->settings[i];
        const char *table = s->table;
        for (size_t k = 0; k < i; k++)
            if (strcmp(r->settings[k].table, table) == 0 &&
                !is_passed_over(table))
                return fr_recipe_fail(
                    r, s->line, "it is set in two places: config.", table);
        put_lines(s, &line, out);
        if (!is_first && !is_passed_over(table))
            fr_buffer_putc(out, ',');
        if (is_passed_over(table)) {
            i++;
            continue;
        }
        is_first = false;
        if (strcmp(table, "model_spec") != 0) {
            FR_TRY(put_table(r, &i, &line, out));
            continue;
        }
        FR_TRY(put_model(r, out));
        while (i < r->n && strcmp(r->settings[i].table, "model_spec") == 0)
            i++;
    }
    fr_buffer_putc(out, '}');
    return FR_OK;
}

bool fr_torchtitan_is_recipe(const char *text, size_t n)
{
    static const char trainer[] = "Trainer.Config";
    static const char module[] = "torchtitan";
    return memmem(text, n, trainer, sizeof trainer - 1) != NULL &&
           memmem(text, n, module, sizeof module - 1) != NULL;
}

fr_status fr_torchtitan_recipe_json(const char *path, const char *text,
                                    size_t n, fr_buffer *out, fr_err *err)
{
    static const char *const needed[] = {
        "model_spec", "training", "parallelism", "activation_checkpoint"};
    fr_recipe *r = calloc(1, sizeof *r);
    if (r == NULL)
        return fr_fail_no_memory(err);
    r->path = path;
    r->at = text;
    r->end = text + n;
    r->line = 1;
    r->err = err;
    fr_status status = fr_recipe_read(r);
    for (size_t i = 0; i < FR_LENGTH(needed) && status == FR_OK; i++)
        if (find(r, needed[i], "") == NULL)
            status = fr_recipe_fail(
                r, r->line,
                "the recipe leaves a table to config_registry, which "
                "is not read: set config.",
                needed[i]);
    if (status == FR_OK)
        status = put_all(r, out);
    if (status == FR_OK)
        status = fr_buffer_check(out, err);
    free(r);
    return status;
}
