/* runlog_format.c: the list of formats, and the reading of a log line by line.
 */
#include "frameworks/log/runlog_format.h"

#include "core/base/text.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- steps -------------------------------------------------------------- */

static fr_status push(fr_runlog_values *values, double value, fr_err *err)
{
    values->stride = values->stride > 0 ? values->stride : 1;
    if (values->n_seen++ % values->stride != 0)
        return FR_OK;
    if (values->n == FR_RUNLOG_VALUES_MAX) {
        values->stride *= 2;
        values->n /= 2;
        for (size_t i = 0; i < values->n; i++)
            values->at[i] = values->at[2 * i];
    }
    if (values->n == values->cap) {
        size_t cap = values->cap > 0 ? 2 * values->cap : 256;
        double *at = realloc(values->at, cap * sizeof *at);
        if (at == NULL)
            return fr_fail_no_memory(err);
        values->at = at;
        values->cap = cap;
    }
    values->at[values->n++] = value;
    return FR_OK;
}

static void forget_steps(fr_runlog_reader *reader)
{
    for (size_t i = 0; i < FR_LENGTH(reader->values); i++)
        reader->values[i].n = reader->values[i].n_seen =
            reader->values[i].stride = 0;
}

/* The begin of the number that ends at `at`, or `at` where none does. */
static const char *number_before(const char *line, const char *at)
{
    const char *from = at;
    while (from > line && strchr("0123456789.", from[-1]) != NULL)
        from--;
    return from;
}

/* The number of a word in the line; what makes no sense is counted. */
static bool find_number(fr_runlog_reader *reader,
                        const fr_runlog_format *format,
                        const fr_runlog_number *number, double *out)
{
    const char *at = strstr(reader->lines.text, number->word);
    double value;
    if (at == NULL)
        return false;
    const char *from = format->is_unit ? number_before(reader->lines.text, at)
                                       : at + strlen(number->word);
    if (from == at)
        return false; /* "?it/s" */
    if (!fr_runlog_parse_number(from, &value) ||
        !(value > 1e-12 && value < 1e18)) {
        reader->n_bad++;
        return false;
    }
    *out = number->is_inverse ? number->scale / value : number->scale * value;
    return true;
}

static bool is_peak(fr_runlog_measure measure)
{
    return measure == FR_RUNLOG_ALLOCATED_GIB ||
           measure == FR_RUNLOG_RESERVED_GIB;
}

/* The batch first: other steps than those of the last batch do not count.
 * Peaks before the first step are those of loading. */
static fr_status read_numbers(fr_runlog_reader *reader,
                              const fr_runlog_format *format, fr_err *err)
{
    double value;
    uint64_t *n_steps = &reader->values[0].n_seen;
    for (const fr_runlog_number *at = format->numbers; at->word != NULL; at++) {
        if (at->measure != FR_RUNLOG_BATCH ||
            !find_number(reader, format, at, &value))
            continue;
        double before = reader->last[FR_RUNLOG_BATCH];
        if (before > 0 && before != value) {
            reader->n_ramp += *n_steps;
            forget_steps(reader);
        }
        reader->last[FR_RUNLOG_BATCH] = value;
    }
    for (const fr_runlog_number *at = format->numbers; at->word != NULL; at++) {
        if (at->measure == FR_RUNLOG_BATCH ||
            !find_number(reader, format, at, &value))
            continue;
        double *last = &reader->last[at->measure];
        if (!is_peak(at->measure) || value > *last)
            *last = value;
        if ((size_t)at->measure < FR_LENGTH(reader->values))
            FR_TRY(push(&reader->values[at->measure], value, err));
    }
    return FR_OK;
}

/* "[rank0]:", "[default3]:" as torchrun puts before lines of its ranks. */
static void find_rank(const char *line, char *out, size_t n)
{
    const char *end = line[0] == '[' ? strchr(line, ']') : NULL;
    size_t n_label = end != NULL && end[1] == ':' ? (size_t)(end - line) : 0;
    out[0] = '\0';
    if (n_label > 0 && n_label + 1 < n) {
        memcpy(out, line, n_label);
        out[n_label] = '\0';
    }
}

/* Colours: ESC [ ... m. */
static void strip_colours(char *text)
{
    char *to = strchr(text, '\033');
    if (to == NULL)
        return;
    for (const char *from = to; *from != '\0';) {
        if (*from == '\033' && from[1] == '[') {
            from += 2;
            from += strspn(from, "0123456789;");
            from += *from != '\0';
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
}

/* Returns format i of all frameworks, and its framework; NULL past the last. */
static const fr_runlog_format *format_at(int i, const fr_framework **framework)
{
    for (int k = 0; k < fr_n_frameworks; k++) {
        *framework = fr_frameworks[k];
        for (size_t n = 0;
             n < FR_LENGTH((*framework)->logs) && (*framework)->logs[n] != NULL;
             n++)
            if (i-- == 0)
                return (*framework)->logs[n];
    }
    return NULL;
}

/* The first whose mark a line has gets it. */
static const fr_runlog_format *format_of_step(const char *line,
                                              const fr_framework **framework)
{
    const fr_runlog_format *format;
    for (int i = 0; (format = format_at(i, framework)) != NULL; i++)
        if (strstr(line, format->step_mark) != NULL)
            return format;
    return NULL;
}

/* Megatron-DeepSpeed prints lines of both; its iterations are Megatron's. */
static fr_status choose(fr_runlog_reader *reader,
                        const fr_runlog_format *format,
                        const fr_framework *framework, fr_err *err)
{
    const fr_runlog_format *now = reader->format;
    if (now == NULL) {
        reader->format = format;
        reader->framework = framework;
        return FR_OK;
    }
    if (format != now && format->is_weak)
        return FR_OK;
    if (format != now && now->is_weak) {
        forget_steps(reader);
        reader->format = format;
        reader->framework = framework;
        return FR_OK;
    }
    bool is_both =
        (now == &fr_runlog_megatron || format == &fr_runlog_megatron) &&
        (reader->framework == &fr_framework_deepspeed ||
         framework == &fr_framework_deepspeed);
    if (reader->framework != framework && !is_both)
        return fr_fail(err, FR_INPUT,
                       "%s:%llu: a step of %s among steps of %s: two logs in "
                       "one file; give each its own",
                       fr_infile_name(reader->lines.stream),
                       (unsigned long long)reader->lines.number, format->what,
                       now->what);
    reader->is_both |= is_both;
    if (is_both && format == &fr_runlog_megatron && now != format) {
        forget_steps(reader);
        reader->format = format;
        reader->framework = framework;
    }
    return FR_OK;
}

static fr_status read_line(fr_runlog_reader *reader, fr_err *err)
{
    char rank[sizeof reader->rank];
    strip_colours(reader->lines.text);
    const char *line = reader->lines.text;
    const fr_framework *framework;
    const fr_runlog_format *format = format_of_step(line, &framework), *other;
    bool is_other = format != NULL && format->other_mark != NULL &&
                    strstr(line, format->other_mark) != NULL;
    /* The last line of a log that is still written may end in a number. */
    if (is_other || (format != NULL && !reader->lines.is_whole))
        return FR_OK;
    if (format != NULL) {
        const fr_runlog_format *before = reader->format;
        FR_TRY(choose(reader, format, framework, err));
        find_rank(line, rank, sizeof rank);
        if (before == NULL || (before != reader->format && before->is_weak))
            memcpy(reader->rank, rank, sizeof rank);
        if (strcmp(rank, reader->rank) != 0)
            return FR_OK;
    }
    if (reader->format != NULL && (format == NULL || format == reader->format))
        FR_TRY(read_numbers(reader, reader->format, err));
    for (int i = 0;
         reader->format == NULL && (other = format_at(i, &framework)) != NULL;
         i++)
        if (other->read != NULL)
            other->read(reader, line);
    if (format == NULL && (reader->format == NULL || strstr(line, " ...")))
        FR_TRY(fr_runlog_read_words(reader, err));
    return FR_OK;
}

fr_status fr_runlog_read(fr_infile *stream, fr_runlog *out, fr_err *err)
{
    fr_runlog_reader *reader;
    fr_status status;
    bool has_line = true;
    FR_TRY_CALLOC(reader, 1, err);
    FR_TRY_GOTO(status, fr_lines_init(&reader->lines, stream, err), out_reader);
    while (has_line) {
        FR_TRY_GOTO(status, fr_lines_next(&reader->lines, &has_line, err),
                    out_reader);
        if (has_line)
            FR_TRY_GOTO(status, read_line(reader, err), out_reader);
    }
    status = fr_runlog_finish(reader, out, err);
out_reader:
    for (size_t i = 0; i < FR_LENGTH(reader->values); i++)
        free(reader->values[i].at);
    fr_lines_release(&reader->lines);
    free(reader);
    return status;
}
