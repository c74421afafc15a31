/* plan_describe.c: a plan in one line, a word for each field that matters. */
#include "plan/decide/plan_fields.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A buffer that is appended to and cut where it ends. */
typedef struct text {
    char *buf;
    size_t n, used;
} text;

static void add(text *t, const char *format, ...) FR_PRINTF(2, 3);

static void add(text *t, const char *format, ...)
{
    if (t->used >= t->n)
        return;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->buf + t->used, t->n - t->used, format, args);
    va_end(args);
    if (n > 0)
        t->used += (size_t)n;
}

static void add_text(text *t, const char *more, size_t n)
{
    if (t->used < t->n) {
        size_t n_fits = n < t->n - t->used ? n : t->n - t->used - 1;
        memcpy(t->buf + t->used, more, n_fits);
        t->buf[t->used + n_fits] = '\0';
    }
    t->used += n;
}

/* The shortest digits that read back as the same number. */
static void add_double(text *t, double value)
{
    char digits[40];
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    add(t, "%s", digits);
}

static void add_word(text *t, const char *name)
{
    add_text(t, name, strlen(name));
}

static void add_list(text *t, const fr_field *field, const fr_plan *plan)
{
    const int32_t *at = fr_field_at(field, plan);
    int32_t n = fr_field_count(field, plan);
    for (int32_t i = 0; i < n; i++)
        add(t, "%s%d", i > 0 ? "-" : "", at[i]);
}

/* The largest unit that needs no fraction, or one that saves many digits:
 * "25 MB", "25.6 MB", "1 MiB", "160000001 B".  Nothing is rounded: plans that
 * differ read apart. */
static void add_bytes(text *t, uint64_t n_bytes)
{
    static const char *const units[2][5] = {{"B", "kB", "MB", "GB", "TB"},
                                            {"B", "KiB", "MiB", "GiB", "TiB"}};
    const bool is_binary = n_bytes % 1000 != 0 && n_bytes % 1024 == 0;
    const uint64_t step = is_binary ? 1024 : 1000;
    uint64_t n = n_bytes;
    size_t i = 0;
    while (i < 4 && n > 0 && n % step == 0) {
        n /= step;
        i++;
    }
    if (i < 4 && !is_binary && n >= 10000 && n % 10 == 0)
        add(t, "%.10g %s", (double)n / 1000, units[0][i + 1]);
    else
        add(t, "%llu %s", (unsigned long long)n, units[is_binary][i]);
}

/* "attention,norm" */
static void add_mask(text *t, const fr_names *names, uint32_t mask)
{
    const char *between = "";
    for (int i = 0; i < 32; i++)
        if (mask >> i & 1) {
            add(t, "%s%s", between, fr_name_of(names, (uint32_t)i));
            between = ",";
        }
}

static void add_value(text *t, const fr_plan_field *row, const fr_plan *plan)
{
    const fr_field *field = &row->field;
    const fr_names *names = row->words != NULL ? row->words : field->names;
    const void *at = fr_field_at(field, plan);
    switch (field->kind) {
    case FR_FIELD_I32:
        add(t, "%d", *(const int32_t *)at);
        break;
    case FR_FIELD_I64:
        if (field->is_bytes)
            add_bytes(t, (uint64_t) * (const int64_t *)at);
        else
            add(t, "%lld", (long long)*(const int64_t *)at);
        break;
    case FR_FIELD_U32:
        if (field->names == NULL && names != NULL)
            add_mask(t, names, *(const uint32_t *)at);
        else
            add_word(t, fr_name_of(names, *(const uint32_t *)at));
        break;
    case FR_FIELD_U64:
        if (field->is_bytes)
            add_bytes(t, *(const uint64_t *)at);
        else
            add(t, "%llu", (unsigned long long)*(const uint64_t *)at);
        break;
    case FR_FIELD_DOUBLE:
        add_double(t, *(const double *)at);
        break;
    case FR_FIELD_LIST:
        add_list(t, field, plan);
        break;
    default:
        break;
    }
}

static bool is_shown(const fr_plan *plan, int item)
{
    const fr_plan_field *row = fr_plan_item_row(item);
    bool is_changed =
        row->field.kind == FR_FIELD_LIST
            ? fr_field_count(&row->field, plan) > 0
            : fr_field_get(&row->field, plan) != row->field.initial;
    switch (row->shown) {
    case FR_SHOWN_CHANGED:
        return is_changed;
    case FR_SHOWN_CHANGED_PART:
        return is_changed && fr_plan_field_is_used(plan, item);
    case FR_SHOWN_PART:
        return fr_plan_field_is_used(plan, item);
    case FR_SHOWN_ALWAYS:
        break;
    }
    return true;
}

char *fr_plan_describe(const fr_plan *plan, char *buf, size_t n_buf)
{
    text t = {.buf = buf, .n = n_buf};
    if (n_buf > 0)
        buf[0] = '\0';
    for (int i = 0; i < FR_PLAN_ITEMS_N; i++) {
        const fr_plan_field *row = fr_plan_item_row(fr_plan_described[i]);
        if (!is_shown(plan, fr_plan_described[i]))
            continue;
        const char *word = row->word + (i == 0); /* no blank at the start */
        size_t n_before = strcspn(word, "*");
        add_text(&t, word, n_before);
        if (word[n_before] == '\0')
            continue;
        add_value(&t, row, plan);
        add_word(&t, word + n_before + 1);
    }
    return buf;
}

void fr_plan_put_value(const fr_field *field, const fr_plan *plan,
                       fr_buffer *out)
{
    if (field->kind == FR_FIELD_LIST) {
        const int32_t *list = fr_field_at(field, plan);
        for (int32_t i = 0; i < fr_field_count(field, plan); i++)
            fr_buffer_printf(out, "%s%d", i > 0 ? "," : "", list[i]);
        return;
    }
    double value = fr_field_get(field, plan);
    const char *name =
        field->names != NULL ? fr_name_at(field->names, (int)value) : NULL;
    if (name != NULL)
        fr_buffer_puts(out, name);
    else if (field->kind == FR_FIELD_BOOL)
        fr_buffer_puts(out, value != 0 ? "on" : "off");
    else
        fr_buffer_printf(out, "%.12g", value);
}
