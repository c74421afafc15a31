/* args.c: words and environment -> option values, by the table alone. */
#include "cli/command.h"
#include "cli/option/aliases.h"
#include "core/base/text.h"
#include "core/base/units.h"

#include <ctype.h>
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
    int found = fr_text_find(text, names, n);
    if (found >= 0) {
        value->count = fr_name_find(row->names, text);
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
static bool takes_lists(const fr_cli *cli)
{
    return fr_command_takes(cli->command, FR_OPT_SEARCH);
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

/* `shown` is how the user wrote it: "--dp" or "FORERUN_DP". */
static fr_status set_value(fr_option option, const char *shown,
                           const char *text, fr_option_source source,
                           fr_cli *cli, fr_err *err)
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
        if (takes_lists(cli) && strchr(text, ',') != NULL)
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
        if (cli->n_repeats == FR_MAX_REPEATS)
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
    if (row.kind == FR_OPTION_REPEATED)
        cli->repeats[cli->n_repeats++] = text;
    cli->option[option] = value;
    return FR_OK;
}

fr_status fr_cli_set(fr_cli *cli, fr_option option, const char *text,
                     fr_err *err)
{
    char shown[80];
    snprintf(shown, sizeof shown, "--%s",
             fr_option_get((fr_option)option).name);
    return set_value(option, shown, text, FR_SOURCE_FLAG, cli, err);
}

static int find_option(const fr_command *command, const char *name, size_t n)
{
    for (int i = 0; i < FR_OPT_N; i++) {
        const char *known = fr_option_get((fr_option)i).name;
        if (fr_command_takes(command, (fr_option)i) && strlen(known) == n &&
            strncmp(known, name, n) == 0)
            return i;
    }
    return -1;
}

static int find_letter(const fr_command *command, char letter)
{
    for (int i = 0; i < FR_OPT_N; i++)
        if (fr_option_get((fr_option)i).letter == letter &&
            fr_command_takes(command, (fr_option)i))
            return i;
    return -1;
}

static fr_status fail_unknown(const fr_command *command, const char *word,
                              fr_err *err)
{
    char name[80], hint[96];
    snprintf(name, sizeof name, "%s", word + strspn(word, "-"));
    name[strcspn(name, "=")] = '\0';
    const char *names[FR_OPT_N];
    size_t n = 0;
    for (int i = 0; i < FR_OPT_N; i++)
        if (fr_command_takes(command, (fr_option)i))
            names[n++] = fr_option_get((fr_option)i).name;
    const char *near = fr_text_nearest(name, names, n);
    hint[0] = '\0';
    if (near != NULL)
        snprintf(hint, sizeof hint, "; did you mean '--%s'?", near);
    bool is_elsewhere = false;
    for (int i = 0; i < FR_OPT_N; i++)
        is_elsewhere |= !strcmp(fr_option_get((fr_option)i).name, name);
    return fr_fail(err, FR_USAGE, "%s option '%.80s'%s",
                   is_elsewhere ? "this command does not take the" : "unknown",
                   word, hint);
}

/* "--overlap 0": the word would be taken for a file. */
static fr_status check_flag_value(const char *shown, const char *next,
                                  fr_err *err)
{
    bool unused;
    fr_err why;
    if (next == NULL || fr_parse_bool(next, &unused, &why) != FR_OK)
        return FR_OK;
    return fr_fail(err, FR_USAGE, "%s %s: write %s=%s", shown, next, shown,
                   next);
}

/* One word that begins with '-'; *i_word moves past a separate value. */
static fr_status parse_option(fr_cli *cli, int n_words, char **words,
                              int *i_word, fr_err *err)
{
    const char *word = words[*i_word];
    const char *value = NULL;
    char shown[80];
    int option;
    bool is_negated = false;
    if (word[1] == '-') {
        size_t n_name = strcspn(word + 2, "=");
        option = find_option(cli->command, word + 2, n_name);
        if (option < 0 && !strncmp(word, "--no-", 5)) {
            option = find_option(cli->command, word + 5, n_name - 3);
            is_negated = option >= 0;
            if (is_negated &&
                fr_option_get((fr_option)option).kind != FR_OPTION_FLAG)
                option = -1;
        }
        if (word[2 + n_name] == '=')
            value = word + 3 + n_name;
        const fr_alias *alias =
            option < 0 ? fr_alias_find(word + 2, n_name) : NULL;
        if (alias != NULL && alias->option == FR_OPT_N)
            return fr_fail(err, FR_USAGE, "no option '%.80s': %s", word,
                           alias->value);
        if (alias != NULL && fr_command_takes(cli->command, alias->option)) {
            option = (int)alias->option;
            if (alias->value != NULL && value != NULL)
                return fr_fail(err, FR_USAGE,
                               "'%.80s' takes no value: it is --%s %s", word,
                               fr_option_get(alias->option).name, alias->value);
            value = alias->value != NULL ? alias->value : value;
        }
    } else {
        option = find_letter(cli->command, word[1]);
        if (option >= 0 && word[2] != '\0')
            value = word + 2;
    }
    if (option < 0)
        return fail_unknown(cli->command, word, err);
    snprintf(shown, sizeof shown, "--%s",
             fr_option_get((fr_option)option).name);
    if (option == FR_OPT_HELP && value != NULL && word[1] == '-' &&
        !strcmp(value, "all")) {
        cli->is_help_whole = true;
        value = "1";
    }
    if (fr_option_get((fr_option)option).kind == FR_OPTION_FLAG) {
        if (value != NULL && (is_negated || word[1] != '-'))
            return fr_fail(err, FR_USAGE, "'%.80s' takes no value", word);
        if (value == NULL) {
            FR_TRY(check_flag_value(
                shown, *i_word + 1 < n_words ? words[*i_word + 1] : NULL, err));
            value = is_negated ? "0" : "1";
        }
    } else if (value == NULL &&
               fr_option_get((fr_option)option).kind == FR_OPTION_OPTIONAL &&
               (*i_word + 1 >= n_words || words[*i_word + 1][0] == '-')) {
        value = "";
    } else if (value == NULL) {
        if (*i_word + 1 >= n_words)
            return fr_fail(err, FR_USAGE, "%s needs a value: %s %s", shown,
                           shown, fr_option_get((fr_option)option).metavar);
        value = words[++*i_word];
    }
    return set_value((fr_option)option, shown, value, FR_SOURCE_FLAG, cli, err);
}

static fr_status parse_environment(fr_cli *cli, fr_err *err)
{
    for (int i = 0; i < FR_OPT_N; i++) {
        char name[64];
        fr_option option = (fr_option)i;
        if (option == FR_OPT_HELP || fr_cli_has(cli, option) ||
            !fr_command_takes(cli->command, option))
            continue;
        const char *text = getenv(fr_option_env_name(option, name, 64));
        if (text != NULL && text[0] != '\0')
            FR_TRY(set_value(option, name, text, FR_SOURCE_ENV, cli, err));
    }
    return FR_OK;
}

fr_status fr_cli_parse(fr_cli *cli, int n_words, char **words, fr_err *err)
{
    const fr_command *command = cli->command;
    bool is_only_positional = false;
    for (int i = 0; i < n_words; i++) {
        const char *word = words[i];
        if (!is_only_positional && !strcmp(word, "--")) {
            is_only_positional = true;
        } else if (!is_only_positional && word[0] == '-' && word[1] != '\0') {
            FR_TRY(parse_option(cli, n_words, words, &i, err));
        } else if (cli->n_positional < command->n_positional) {
            cli->positional[cli->n_positional++] = word;
        } else {
            return fr_fail(err, FR_USAGE, "unexpected argument '%.200s'", word);
        }
    }
    if (fr_cli_on(cli, FR_OPT_HELP))
        return FR_OK;
    if (cli->n_positional < command->n_required)
        return fr_fail(err, FR_USAGE, "missing argument; usage: forerun %s %s",
                       command->name, command->synopsis);
    fr_alias_check_environment(cli);
    return parse_environment(cli, err);
}
