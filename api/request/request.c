/* request.c: values of options from their texts, by the option rows alone. */
#include "api/request/request.h"

#include "api/request/aliases.h"
#include "core/base/buffer.h"
#include "core/base/text.h"
#include "core/base/units.h"
#include "tuner/goal/goal.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_CHOICES 64

static fr_status set_choice(const fr_option_row *row, const char *shown,
                            const char *text, fr_option_value *value,
                            fr_err *err)
{
    const char *names[MAX_CHOICES];
    char all[512] = "";
    size_t n = 0;
    while (n < MAX_CHOICES &&
           (names[n] = fr_option_choice(row, (int)n)) != NULL)
        n++;
    /* "bfloat16"; a name of the list itself comes first. */
    if (fr_text_find(text, names, n) < 0 &&
        fr_text_find(fr_alias_value(text), names, n) >= 0)
        text = fr_alias_value(text);
    for (size_t i = 0; fr_text_find(text, names, n) < 0 && i < n; i++)
        if (strcasecmp(text, names[i]) == 0) /* "BF16", "AdamW" */
            text = names[i];
    const int found =
        fr_text_find(text, names, n) >= 0 || row->names->of_alias != NULL
            ? fr_name_find(row->names, text)
            : -1;
    if (found >= 0) {
        value->count = found;
        return FR_OK;
    }
    for (size_t i = 0; i < n; i++) {
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "",
                 names[i]);
    }
    const char *near = fr_text_nearest(text, names, n);
    if (near != NULL)
        return fr_fail(err, FR_USAGE,
                       "%s '%.80s': did you mean '%s'? (one of %s)", shown,
                       text, near, all);
    return fr_fail(err, FR_USAGE, "%s '%.80s' is not one of %s", shown, text,
                   all);
}

/* No count of anything comes near this: such an option has no upper limit. */
#define MANY (1 << 30)

static fr_status check_range(const fr_option_row *row, const char *shown,
                             const char *text, double number, fr_err *err)
{
    const bool is_time = row->kind == FR_OPTION_TIME;
    const bool is_bare = isalpha((unsigned char)text[strlen(text) - 1]) == 0;
    const char *unit = is_time ? " s" : "";
    const char *hint =
        is_time && is_bare
            ? "; a number without a unit is seconds, a day is 24h"
            : "";
    if (number >= row->min && number <= row->max)
        return FR_OK;
    if (row->max < MANY)
        return fr_fail(err, FR_USAGE, "%s %.80s: must be %.10g%s to %.10g%s%s",
                       shown, text, row->min, unit, row->max, unit, hint);
    if (number > row->max)
        return fr_fail(err, FR_USAGE, "%s %.80s: is too large", shown, text);
    return fr_fail(err, FR_USAGE, "%s %.80s: must be at least %.10g%s%s", shown,
                   text, row->min, unit, hint);
}

static fr_status set_count(const fr_option_row *row, const char *shown,
                           const char *text, fr_option_value *value,
                           fr_err *err)
{
    int64_t count;
    uint64_t large;
    fr_err why;
    if (fr_parse_i64(text, &count, &why) != FR_OK &&
        fr_parse_count(text, &large, &why) == FR_OK)
        count = large < INT64_MAX ? (int64_t)large : INT64_MAX;
    else if (fr_parse_i64(text, &count, &why) != FR_OK)
        return fr_fail(err, FR_USAGE,
                       "%s '%.80s' is not a whole number such as 42, 8k or 8Ki",
                       shown, text);
    FR_TRY(check_range(row, shown, text, (double)count, err));
    value->count = count;
    return FR_OK;
}

static fr_status set_real(const fr_option_row *row, const char *shown,
                          const char *text, fr_option_value *value, fr_err *err)
{
    static const struct {
        fr_quantity quantity;
        const char *what;
    } kinds[] = {
        [FR_OPTION_REAL] = {FR_QUANTITY_COUNT, "a number"},
        [FR_OPTION_SHARE] = {FR_QUANTITY_FRAC, "a share such as 20% or 0.2"},
        [FR_OPTION_TIME] = {FR_QUANTITY_S, "a time such as 30s or 5min"},
    };
    double real;
    fr_err why;
    /* Bare numbers first: their range is told by the option's own limits. */
    if (fr_parse_double(text, &real, &why) != FR_OK &&
        fr_parse_quantity(kinds[row->kind].quantity, text, 0, &real, &why) !=
            FR_OK)
        return fr_fail(err, FR_USAGE, "%s '%.80s' is not %s", shown, text,
                       kinds[row->kind].what);
    FR_TRY(check_range(row, shown, text, real, err));
    value->real = real;
    return FR_OK;
}

static fr_status set_bytes(const char *shown, const char *text,
                           fr_option_value *value, fr_err *err)
{
    fr_err why;
    if (fr_parse_bytes(text, &value->n_bytes, &why) != FR_OK)
        return fr_fail(err, FR_USAGE, "%s: %.400s", shown, why.text);
    return FR_OK;
}

/* COUNT, BYTES or CHOICE. */
static fr_status set_one(const fr_option_row *row, const char *shown,
                         const char *text, fr_option_value *value, fr_err *err)
{
    if (row->kind == FR_OPTION_COUNT)
        return set_count(row, shown, text, value, err);
    if (row->kind == FR_OPTION_BYTES)
        return set_bytes(shown, text, value, err);
    return set_choice(row, shown, text, value, err);
}

/* Commands that search may be given several values of an axis. */
static bool takes_lists(const fr_request *request)
{
    return fr_command_takes(request->command, FR_OPT_SEARCH);
}

static fr_status set_list(const fr_option_row *row, const char *shown,
                          const char *text, fr_option_value *value, fr_err *err)
{
    for (const char *at = text;; at++) {
        fr_option_value one = {0};
        char word[80];
        size_t n = strcspn(at, ",");
        if (value->n_list == FR_MAX_LIST || n >= sizeof word)
            return fr_fail(err, FR_USAGE, "%s '%.80s': at most %d values",
                           shown, text, FR_MAX_LIST);
        memcpy(word, at, n);
        word[n] = '\0';
        FR_TRY(set_one(row, shown, word, &one, err));
        if (value->n_list == 0) {
            value->count = one.count;
            value->n_bytes = one.n_bytes;
        }
        value->list[value->n_list++] =
            row->kind == FR_OPTION_BYTES ? (int64_t)one.n_bytes : one.count;
        at += n;
        if (*at == '\0')
            return FR_OK;
    }
}

fr_status fr_request_read(fr_request *request, fr_option option,
                          const char *shown, const char *text,
                          fr_option_source source, fr_err *err)
{
    const fr_option_row row = fr_option_get(option);
    fr_option_value value = {.source = source, .text = text};
    fr_err why;
    switch (row.kind) {
    case FR_OPTION_FLAG:
        if (fr_parse_bool(text, &value.is_on, &why) != FR_OK)
            return fr_fail(err, FR_USAGE, "%s '%.80s': 0 or 1?", shown, text);
        break;
    case FR_OPTION_COUNT:
    case FR_OPTION_CHOICE:
    case FR_OPTION_BYTES:
        if (takes_lists(request) && strchr(text, ',') != NULL)
            FR_TRY(set_list(&row, shown, text, &value, err));
        else
            FR_TRY(set_one(&row, shown, text, &value, err));
        break;
    case FR_OPTION_REAL:
    case FR_OPTION_SHARE:
    case FR_OPTION_TIME:
        FR_TRY(set_real(&row, shown, text, &value, err));
        break;
    case FR_OPTION_REPEATED:
    case FR_OPTION_SETTING:
        if (request->n_repeats == FR_MAX_REPEATS)
            return fr_fail(err, FR_USAGE, "%s is given more than %d times",
                           shown, FR_MAX_REPEATS);
        /* fall through */
    case FR_OPTION_TEXT:
    case FR_OPTION_PATH:
        if (text[0] == '\0')
            return fr_fail(err, FR_USAGE, "%s needs a value, not ''", shown);
        break;
    case FR_OPTION_OPTIONAL:
        break;
    }
    if (row.kind == FR_OPTION_REPEATED || row.kind == FR_OPTION_SETTING)
        request->repeats[request->n_repeats++] = text;
    request->option[option] = value;
    return FR_OK;
}

void fr_request_init(fr_request *request, const fr_command *command,
                     const fr_session *session)
{
    *request = (fr_request){.command = command, .session = session};
    if (session != NULL)
        request->quiet_log = fr_log_quiet(session->log);
}

fr_status fr_request_add(fr_request *request, const char *word, fr_err *err)
{
    if (request->n_positional == request->command->n_positional)
        return fr_fail(err, FR_USAGE, "unexpected argument '%.200s'", word);
    request->positional[request->n_positional++] = word;
    return FR_OK;
}

fr_status fr_request_put(fr_request *request, const char *name,
                         const char *text, fr_err *err)
{
    const int option =
        fr_command_find_option(request->command, name, strlen(name));
    return option < 0 ? fr_command_fail_option(request->command, name, err)
                      : fr_request_set(request, (fr_option)option, text, err);
}

fr_status fr_request_check(const fr_request *request, fr_err *err)
{
    const fr_command *command = request->command;
    return request->n_positional >= command->n_required
               ? FR_OK
               : fr_fail(err, FR_USAGE,
                         "missing argument; usage: forerun %s %s",
                         command->name, command->synopsis);
}

fr_status fr_request_set(fr_request *request, fr_option option,
                         const char *text, fr_err *err)
{
    char shown[80];
    snprintf(shown, sizeof shown, "--%s", fr_option_get(option).name);
    return fr_request_read(request, option, shown, text, FR_SOURCE_FLAG, err);
}

bool fr_request_counts_interruptions(const fr_request *request,
                                     const fr_job *job)
{
    static const fr_option limits[] = {FR_OPT_TOKENS, FR_OPT_DEADLINE,
                                       FR_OPT_MAX_COST, FR_OPT_MAX_ENERGY};
    if (job != NULL && job->tokens > 0)
        return true;
    for (size_t i = 0; i < FR_LENGTH(limits); i++)
        if (fr_request_has(request, limits[i]))
            return true;
    if (!fr_command_takes(request->command, FR_OPT_GOAL))
        return fr_request_has(request, FR_OPT_STEPS);
    if (!fr_request_has(request, FR_OPT_GOAL))
        return false;
    return fr_goal_rows[request->option[FR_OPT_GOAL].count]->of ==
           FR_GOAL_OF_RUN;
}

const char *fr_request_configs(const fr_request *request)
{
    return request->session == NULL ? NULL : request->session->configs;
}

const fr_log *fr_request_log(const fr_request *request)
{
    return fr_request_on(request, FR_OPT_QUIET) ? &request->quiet_log
           : request->session == NULL           ? NULL
                                                : request->session->log;
}

int fr_request_threads(const fr_request *request)
{
    if (fr_request_has(request, FR_OPT_JOBS))
        return (int)request->option[FR_OPT_JOBS].count;
    return request->session == NULL ? 0 : request->session->n_threads;
}

void fr_request_note(const fr_request *request, const char *format, ...)
{
    const fr_session *session = request->session;
    fr_buffer text;
    va_list args;
    if (session == NULL || session->note == NULL ||
        fr_request_on(request, FR_OPT_QUIET))
        return;
    fr_buffer_init(&text);
    va_start(args, format);
    fr_buffer_vprintf(&text, format, args);
    va_end(args);
    session->note(session->context, fr_buffer_text(&text));
    fr_buffer_release(&text);
}

void fr_request_note_lines(const fr_request *request, const char *topic,
                           const char *text)
{
    while (*text != '\0') {
        int n = (int)strcspn(text, "\n");
        if (n > 0)
            fr_request_note(request, "%s%s%.*s", topic != NULL ? topic : "",
                            topic != NULL ? ": " : "", n, text);
        text += n + (text[n] != '\0');
    }
}
